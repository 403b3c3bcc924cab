//! Tables: what the start-up probe of a sweep asks, of every table of every connector.

use futures_util::future::join_all;

use super::{Finding, Part, WITHIN, is_everywhere};
use crate::assembly::Assembly;
use crate::config::{Connector, Documents};
use crate::failure::Failure;
use crate::host::Host;
use crate::source::Probed;
use crate::sweep::{Allowance, ByteBudget};

/// The memory that pages may take: a probe reads single rows.
const MEMORY: u64 = 256 << 20;

/// One finding per table, or one per connector that cannot be asked at all.
pub(super) async fn ask(documents: &Documents, assembly: &Assembly, host: &Host) -> Vec<Finding> {
    join_all(documents.connectors.iter().map(|connector| of_connector(connector, assembly, host))).await.concat()
}

async fn of_connector(connector: &Connector, assembly: &Assembly, host: &Host) -> Vec<Finding> {
    let deadline = host.monotonic() + WITHIN;
    let allowance = Allowance::new(host.clone(), Some(deadline), ByteBudget::of_memory(MEMORY));
    let mut findings = Vec::new();
    let mut refused: Option<Failure> = None;
    for alias in connector.tables() {
        let name = format!("{}/{alias}", connector.name);
        if let Some(failure) = &refused {
            let found = format!("not asked, since the table before it met {}", failure.code);
            findings.push(Finding::note(Part::Source, name, found));
            continue;
        }
        match one(connector, alias, assembly, &allowance).await {
            None => findings.push(Finding::silent(Part::Source, name)),
            Some(Ok(probed)) => findings.push(told(name, &probed)),
            Some(Err((failure, reach))) => {
                match reach {
                    Reach::Connector if failure.code == "Config.Unresolved" => {
                        let found = "not asked: it needs a placeholder that has no value";
                        findings
                            .push(Finding { code: Some(failure.code.to_string()), ..Finding::note(Part::Source, &connector.name, found) });
                    }
                    Reach::Connector => findings.push(Finding::bad(Part::Source, &connector.name, &failure)),
                    Reach::Table => findings.push(Finding::bad(Part::Source, name, &failure)),
                }
                if reach == Reach::Connector {
                    break;
                }
                if is_everywhere(&failure) {
                    refused = Some(failure);
                }
            }
        }
    }
    findings
}

/// Whether the connector could not be put together, or one of its tables fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Connector,
    Table,
}

async fn one(connector: &Connector, alias: &str, assembly: &Assembly, allowance: &Allowance) -> Option<Result<Probed, (Failure, Reach)>> {
    let table = match assembly.table(&connector.name, alias).await {
        Ok(table) => table,
        Err(failure) => return Some(Err((failure, Reach::Connector))),
    };
    let left = allowance.left().unwrap_or(WITHIN);
    let probed = tokio::time::timeout(left, table.probe(allowance)).await.ok()?;
    Some(probed.map_err(|failure| (failure, Reach::Table)))
}

fn told(name: String, probed: &Probed) -> Finding {
    let mut found = match probed.is_proven {
        true => "it can be swept as its document says".to_owned(),
        false => "it answers, and shows no row that would prove that it can be swept as its document says: it is empty, or what is \
                  in it is hidden from this user"
            .to_owned(),
    };
    for remark in &probed.remarks {
        found.push_str("; ");
        found.push_str(remark);
    }
    if probed.is_proven && probed.remarks.is_empty() {
        Finding::good(Part::Source, name, found)
    } else {
        Finding::note(Part::Source, name, found)
    }
}
