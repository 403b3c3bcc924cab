//! Reading the documents, and what is meant of them.

use std::path::Path;

use tablesweep::assembly::{SOURCES, Selection};
use tablesweep::config::{self, Documents, Faults};
use tablesweep::host::env;
use tablesweep::operate::Place;

use crate::args::SelectionArgs;
use crate::exit::Stop;

/// Reads and checks the documents below `dir`.
pub fn load(dir: &Path) -> Result<Documents, Faults> {
    config::load(dir, SOURCES, &|name| env(name))
}

/// What the documents say about where cursors lie.
pub fn places(documents: &Documents) -> Vec<Place> {
    documents.connectors.iter().flat_map(|connector| Place::of(connector, &|name| env(name))).collect()
}

/// The tables that were named.
///
/// # Errors
/// One of them stands in no document.
pub fn selected(documents: &Documents, arguments: &SelectionArgs) -> Result<Selection, Stop> {
    let selection = Selection { connectors: arguments.connectors.clone(), tables: arguments.tables.clone() };
    let unknown = selection.unknown(documents);
    if unknown.is_empty() {
        return Ok(selection);
    }
    let known: Vec<String> =
        documents.connectors.iter().map(|connector| format!("{} ({})", connector.name, connector.tables().join(", "))).collect();
    Err(Stop::wrong(format!("no document has {}; there are {}", unknown.join(", "), known.join("; "))))
}
