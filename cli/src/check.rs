//! `tablesweep check`: every fault of every document, told at once.

mod probe;

use serde::Serialize;
use tablesweep::config::{Documents, Fault, Faults};
use tablesweep::delivery;
use tablesweep::host::Host;
use tablesweep::operate::{Activity, StatusReport};
use tablesweep::probe::{Finding, Verdict};

use crate::args::{CheckArgs, Output};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::notices;
use crate::output::{self, note};

/// The answer as JSON.
#[derive(Debug, Default, Serialize)]
struct Checked {
    faults: Vec<Fault>,
    warnings: Vec<Fault>,
    tables: Vec<CheckedTable>,
    /// What `--probe` found; `None` without it.
    probe: Option<Vec<Finding>>,
}

/// A table of the documents.
#[derive(Debug, Serialize)]
struct CheckedTable {
    connector: String,
    table: String,
    source: String,
    /// The table at the source.
    name: Option<String>,
    topic: Option<String>,
    /// What was found in the cursor store; `None` if none was looked into.
    cursor: Option<CursorFound>,
}

/// What is in the cursor store for a table.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum CursorFound {
    None,
    Current,
    ChangedQuery,
    Moved,
    Unreadable,
}

/// Runs the command.
pub async fn run(arguments: CheckArgs) -> Result<Exit, Stop> {
    let read = &arguments.read;
    let documents = match documents::load(&read.config.config) {
        Err(faults) => return refuse(faults, read.output.output),
        Ok(mut documents) => {
            let future = begins_in_future(&documents, &Host::system());
            documents.warnings.0.extend(future);
            let faults = delivery::faults(&documents);
            if !faults.is_empty() {
                return refuse(Faults { warnings: documents.warnings, ..faults }, read.output.output);
            }
            documents
        }
    };
    let places = documents::places(&documents);
    let (stored, refused) = match notices::look(&read.cursors, &places).await {
        Ok(stored) => (stored, None),
        Err(stop) => (None, Some(stop)),
    };
    // A store that cannot be looked into is one finding among others.
    let findings = if arguments.probe { Some(probe::run(&documents, &read.cursors).await) } else { None };
    let is_told = findings.is_some();
    let exit = tell(&documents, stored.as_ref(), findings, read.output.output)?;
    match refused {
        // The documents are in order all the same, and that is said first.
        Some(stop) if !is_told => Err(stop),
        _ => Ok(exit),
    }
}

/// Tables whose document says to begin at a time that has not come yet, by this machine's clock.
fn begins_in_future(documents: &Documents, host: &Host) -> Vec<Fault> {
    let mut found = Vec::new();
    for connector in &documents.connectors {
        let rules = &connector.kind.cursors;
        for (key, start) in connector.tables().iter().filter_map(|alias| (rules.start)(&connector.values, alias)) {
            if let Some(said) = (rules.in_future)(&start, host.now_ms()) {
                let given = connector.values.shown(&key);
                found.push(Fault::of_file(&connector.file, said).at(key).given(given));
            }
        }
    }
    found
}

fn refuse(faults: Faults, output: Output) -> Result<Exit, Stop> {
    note(&faults.to_string());
    if output == Output::Json {
        output::json(&Checked { faults: faults.faults, warnings: faults.warnings.0, ..Checked::default() })?;
    }
    Ok(Exit::Wrong)
}

fn tell(documents: &Documents, stored: Option<&StatusReport>, probe: Option<Vec<Finding>>, output: Output) -> Result<Exit, Stop> {
    let exit = if probe.iter().flatten().any(|finding| finding.verdict == Verdict::Bad) { Exit::Bad } else { Exit::Good };
    if !documents.warnings.is_empty() {
        note(&documents.warnings.to_string());
    }
    if let Some(report) = stored {
        notices::tell(report);
    }
    let tables = tables(documents, stored);
    match output {
        Output::Json => {
            output::json(&Checked { faults: Vec::new(), warnings: documents.warnings.0.clone(), tables, probe })?;
        }
        Output::Text => {
            let (connectors, tables) = (documents.connectors.len(), tables.len());
            let s = |n: usize| if n == 1 { "" } else { "s" };
            output::text(&format!("the documents are in order: {connectors} connector{}, {tables} table{}\n", s(connectors), s(tables)))?;
            if let Some(findings) = probe {
                output::text(&probe::text(&findings))?;
            }
        }
    }
    Ok(exit)
}

fn tables(documents: &Documents, stored: Option<&StatusReport>) -> Vec<CheckedTable> {
    let mut tables = Vec::new();
    for connector in &documents.connectors {
        for alias in connector.tables() {
            let text =
                |setting: &str| connector.values.text(&format!("{}{alias}.{setting}", connector.kind.alias_prefix)).map(str::to_owned);
            let found = stored.and_then(|report| {
                let row = report.tables.iter().find(|row| row.connector == connector.name && row.table == *alias)?;
                Some(match (row.state, row.changed_query) {
                    (Activity::Moved, _) => CursorFound::Moved,
                    (Activity::Unreadable, _) => CursorFound::Unreadable,
                    _ if row.phase.is_some() => CursorFound::Current,
                    (_, true) => CursorFound::ChangedQuery,
                    (_, false) => CursorFound::None,
                })
            });
            tables.push(CheckedTable {
                connector: connector.name.clone(),
                table: alias.clone(),
                source: connector.kind.name.to_owned(),
                name: text("name"),
                topic: text("topic"),
                cursor: found,
            });
        }
    }
    tables
}
