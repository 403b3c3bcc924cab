//! From what files say to documents that can be trusted, with every fault on the way.

use std::path::Path;

use super::fault::{Fault, Faults};
use super::{Connector, Documents, Env, SourceKind, document};

mod connector;
mod draft;
mod worker;

/// The folder of the connectors' documents.
const CONNECTORS: &str = "connectors";

/// Reads and checks everything below a configuration directory.
pub(super) fn documents(dir: &Path, kinds: &[&'static SourceKind], env: Env<'_>) -> Result<Documents, Faults> {
    let mut faults = Faults::default();
    let worker = worker::read(dir, &mut faults);
    let mut connectors: Vec<Connector> = Vec::new();
    let mut names: Vec<(String, String)> = Vec::new();
    for file in connector_files(dir, &mut faults) {
        let Some(raw) = document::read(dir, &file, &mut faults) else {
            continue;
        };
        if let Some(name) = &raw.name {
            match names.iter().find(|(known, _)| known == name) {
                Some((_, first)) => {
                    let message = format!("is the name of the connector in {first} already; a name is a connector's identity");
                    faults.push(Fault::of_file(&file, message).at("name").given(Some(name.clone())));
                }
                None => names.push((name.clone(), file.clone())),
            }
        }
        connectors.extend(connector::check(raw, &worker, kinds, env, &mut faults));
    }
    connectors.sort_by(|a, b| a.name.cmp(&b.name));
    let warnings = std::mem::take(&mut faults.warnings);
    if faults.is_empty() { Ok(Documents { worker, connectors, warnings }) } else { Err(Faults { warnings, ..faults }) }
}

/// Whether a file is there for people and not to be read.
fn is_aside(name: &str) -> bool {
    name.starts_with('.') || [".example", ".md", ".txt", "~"].iter().any(|end| name.ends_with(end))
}

/// The connectors' documents, in the order of their names. A file that looks like a document and is not read is told:
/// somebody wrote it for a purpose.
fn connector_files(dir: &Path, faults: &mut Faults) -> Vec<String> {
    let entries = match std::fs::read_dir(dir.join(CONNECTORS)) {
        Ok(entries) => entries,
        Err(error) => {
            faults.push(Fault::of_file(
                CONNECTORS,
                format!("{} cannot be read as the folder of connector documents: {error}", dir.join(CONNECTORS).display()),
            ));
            return Vec::new();
        }
    };
    let mut files = Vec::new();
    for entry in entries {
        let name = match entry {
            Ok(entry) if entry.path().is_dir() => continue,
            Ok(entry) => entry.file_name().to_string_lossy().into_owned(),
            Err(error) => {
                faults.push(Fault::of_file(CONNECTORS, format!("cannot be listed: {error}")));
                continue;
            }
        };
        let file = format!("{CONNECTORS}/{name}");
        if name.ends_with(".json") || name.ends_with(".properties") {
            if !name.starts_with('.') {
                files.push(file);
            }
        } else if !is_aside(&name) {
            faults.warn(Fault::of_file(file, "is not read: a document ends in .json or .properties"));
        }
    }
    if files.is_empty() && faults.is_empty() {
        faults.push(Fault::of_file(CONNECTORS, "holds no connector document (*.json, *.properties)"));
    }
    files.sort();
    files
}
