//! `tablesweep cursor export` and `import`: cursors as lines of JSON, and what lies beside them.

use std::collections::BTreeMap;
use std::path::Path;

use tablesweep::cursor::Item;
use tablesweep::operate::{Beside, Line, Order, Place, TopicSchema, beside, export_line, read_line, whose};

use super::change::Orders;
use super::look::Looked;
use super::{change, look};
use crate::args::{ImportArgs, LookArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output::{self, note};

/// Runs `export`.
pub async fn export(arguments: LookArgs) -> Result<Exit, Stop> {
    let looked = look::items(&arguments).await?;
    let mut lines: Vec<String> = looked.found.iter().map(|(item, _)| export_line(item)).collect();
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    let mut of_connectors: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for (item, _) in &looked.found {
        of_connectors.entry(&item.identity.connector).or_default().push(item);
    }
    let mut missing = Vec::new();
    if let (false, Some(store)) = (of_connectors.is_empty(), spec.look().await?) {
        for (connector, items) in &of_connectors {
            match beside(&*store, connector, items).await {
                Ok(found) => lines.extend(found.iter().map(Beside::line)),
                Err(error) => missing.push(error.to_string()),
            }
        }
    }
    missing.iter().for_each(|error| note(error));
    output::text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    ended(&looked, missing.is_empty())
}

/// A copy that passes for a whole one is found out when it is needed.
fn ended(looked: &Looked, has_all_beside: bool) -> Result<Exit, Stop> {
    let Looked { found, unreadable, is_missing, name } = looked;
    match (found.is_empty(), unreadable) {
        (false, 0) if has_all_beside => Ok(Exit::Good),
        (false, _) => {
            note("the copy is not whole: what cannot be read, and is named above, is not in it");
            Ok(Exit::Bad)
        }
        (true, 0) if *is_missing => Err(Stop::failed(format!("Cursor.Missing: {name} does not exist: nothing was exported"))),
        (true, 0) => Err(Stop::failed(format!("Cursor.Missing: {name} holds no cursor of these tables: nothing was exported"))),
        (true, _) => Err(Stop::failed("Cursor.Format: what lies there for these tables cannot be read: nothing was exported")),
    }
}

/// Runs `import`.
pub async fn import(arguments: ImportArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    if arguments.file == Path::new("-") && !arguments.yes {
        return Err(Stop::wrong("with lines from standard input there is nothing to ask on: `--yes` says that the command is meant"));
    }
    let places = documents::places(&documents);
    let orders = orders(&read(&arguments.file)?, &places, arguments.forward)?;
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    change::carry_out(&spec, &places, orders, arguments.yes, arguments.read.output.output).await
}

fn read(file: &Path) -> Result<String, Stop> {
    let text = if file == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    text.map_err(|error| Stop::wrong(format!("{} cannot be read: {error}", file.display())))
}

/// An order for each line of a cursor, with the baseline that it names. A line of a table that stands in no document is refused:
/// nothing would ever read it.
fn orders(text: &str, places: &[Place], forward: bool) -> Result<Orders, Stop> {
    let (mut cursors, mut baselines, mut schemas) = (Vec::new(), Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let foreign = |what: &str| Stop::wrong(format!("line {number}: no document has {what}; take the line out"));
        match read_line(line).map_err(|error| Stop::wrong(format!("line {number}: {error}")))? {
            Line::Cursor(item) => {
                let (connector, alias) = (&item.identity.connector, &item.identity.alias);
                let (place, _) = whose(places, &item.identity).ok_or_else(|| foreign(&format!("{connector}/{alias}")))?;
                cursors.push((place.clone(), item));
            }
            Line::Beside(beside) if places.iter().all(|place| place.connector != beside.connector()) => {
                return Err(foreign(beside.connector()));
            }
            Line::Beside(Beside::Schema { connector, place, text, .. }) => schemas.push(TopicSchema { connector, place, text }),
            Line::Beside(baseline) => baselines.push((number, baseline)),
        }
    }
    if cursors.is_empty() && schemas.is_empty() {
        return Err(Stop::wrong("there is no line to import"));
    }
    for (number, baseline) in &baselines {
        if cursors.iter().all(|(_, item)| baseline.baseline_of(item).is_none()) {
            note(&format!("line {number}: no cursor of these lines names this baseline, and it is passed over"));
        }
    }
    let order = |(place, item): (Place, Box<Item>)| {
        let baseline = baselines.iter().find_map(|(_, baseline)| baseline.baseline_of(&item)).map(str::to_owned);
        (place, Order::Import { item, forward, baseline })
    };
    Ok(Orders { schemas, tables: cursors.into_iter().map(order).collect() })
}
