//! Checking the worker's document.

use std::path::Path;

use super::draft::{Draft, converter_role, raw_text};
use super::is_aside;
use crate::config::connect::{self, PRODUCER, REFUSED_IN_WORKER, TOPIC_CREATION, WORKER_KEYS};
use crate::config::converter::{self, CLASS_KEYS};
use crate::config::document::{self, Raw};
use crate::config::fault::{Fault, Faults};
use crate::config::{Worker, producer, topics};

const FILES: [&str; 2] = ["worker.json", "worker.properties"];

/// Reads the worker's document; an absent one says nothing, which is enough without Kafka.
pub(super) fn read(dir: &Path, faults: &mut Faults) -> Worker {
    let present: Vec<&str> = FILES.into_iter().filter(|file| dir.join(file).exists()).collect();
    if let [first, second] = present[..] {
        faults.push(Fault::of_file(second, format!("stands beside {first}; keep one of them")));
    }
    for file in meant_as_worker(dir) {
        faults.warn(Fault::of_file(file, "is not read: the worker's document is worker.json or worker.properties"));
    }
    let file = present.first().copied().unwrap_or(FILES[0]);
    let raw = if present.is_empty() { None } else { document::read(dir, file, faults) };
    check(raw.unwrap_or_else(|| Raw { file: file.to_owned(), name: None, entries: Vec::new() }), faults)
}

/// Files that somebody may have written as the worker's document. What cannot be listed is told with the connectors.
fn meant_as_worker(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter(|entry| !entry.path().is_dir()).map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut meant: Vec<String> = names
        .filter(|name| !FILES.contains(&name.as_str()) && !is_aside(name))
        .filter(|name| name.to_ascii_lowercase().starts_with("worker."))
        .collect();
    meant.sort();
    meant
}

fn check(raw: Raw, faults: &mut Faults) -> Worker {
    let mut draft = Draft::new(&raw, None, faults);
    if raw.name.is_some() {
        draft.unknown("name", []);
    }
    for (name, text) in &raw.entries {
        place(&mut draft, &raw, name, text);
    }
    for key in WORKER_KEYS {
        draft.fill(key.name, key);
    }
    let Draft { values, .. } = draft;
    converter::check(&values, faults);
    topics::check(&values, faults);
    producer::merge(&values, None, faults);
    Worker { values }
}

fn place(draft: &mut Draft<'_>, raw: &Raw, name: &str, text: &str) {
    let own = WORKER_KEYS.iter().chain(CLASS_KEYS).chain([&topics::GROUPS_KEY]);
    let refused = connect::refused(REFUSED_IN_WORKER, name);
    if let Some(key) = own.clone().find(|key| key.name == name) {
        draft.accept(name, key, text, refused);
    } else if let Some(refused) = refused {
        draft.refuse(name, refused, text);
    } else if let Some((role, setting)) = converter_role(name) {
        draft.converter_setting(role, setting, text, raw_text(raw, role.class_key()));
    } else if let Some(setting) = name.strip_prefix(PRODUCER) {
        draft.producer_setting(PRODUCER, setting, text);
    } else if name.starts_with("sasl.") || name.starts_with("ssl.") {
        // The worker's own connection is the producer's: there is no other client here.
        draft.producer_setting("", name, text);
    } else if let Some(rest) = name.strip_prefix(TOPIC_CREATION) {
        draft.topic_setting(rest, text);
    } else if connect::is_cluster_only(name) {
        draft.warn(name, "has no effect: it is for the workers of a Connect cluster; leave it out");
    } else if producer::definition(name).is_some() {
        draft.faults.push(draft.values.fault_of_file(format!("is a setting of the producer; write {PRODUCER}{name}")).at(name));
    } else {
        draft.unknown(name, own.map(|key| key.name));
    }
}
