//! Reading a document into names and texts, before anybody asks what they mean.
//!
//! Kafka Connect takes connectors in two JSON forms (with a `config` object, or flat with a `name`) and as Java
//! properties. All three end here as the same list of pairs. JSON numbers and booleans become the text that stands in
//! the file, as Connect does, so that `"tasks.max": 2` and `"tasks.max": "2"` are one. A key that stands twice is a
//! fault: one of the two would win in silence, and rarely the one that was meant.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fault::{Fault, Faults};

mod properties;

pub(super) use properties::parse as properties;

/// A document as it was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Raw {
    /// The path relative to the configuration directory.
    pub(super) file: String,
    /// The name, if one is given.
    pub(super) name: Option<String>,
    /// Every other key with its text, in the order of the file.
    pub(super) entries: Vec<(String, String)>,
}

/// Members that Connect's REST interface prints around a configuration, and that say nothing about it.
const PRINTED_BY_CONNECT: [&str; 2] = ["tasks", "type"];

/// The text of a file: UTF-8 when it is that, else ISO-8859-1, which is what Java reads properties as.
pub(super) fn decode(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// Reads one file. `None` when it cannot be read at all; the reason is among the faults then.
pub(super) fn read(dir: &Path, file: &str, faults: &mut Faults) -> Option<Raw> {
    let bytes = match std::fs::read(dir.join(file)) {
        Ok(bytes) => bytes,
        Err(error) => {
            faults.push(Fault::of_file(file, format!("cannot be read: {error}")));
            return None;
        }
    };
    let is_json = file.ends_with(".json");
    if is_json && std::str::from_utf8(&bytes).is_err() {
        faults.push(Fault::of_file(file, "is not UTF-8, as JSON must be"));
        return None;
    }
    let text = decode(&bytes);
    let mut raw = if is_json { json(file, &text, faults)? } else { from_properties(file, &text, faults)? };
    refuse_doubles(&mut raw, faults);
    Some(raw)
}

fn from_properties(file: &str, text: &str, faults: &mut Faults) -> Option<Raw> {
    match properties(text) {
        Ok(mut entries) => {
            let name = take_name(&mut entries);
            Some(Raw { file: file.to_owned(), name, entries })
        }
        Err(error) => {
            faults.push(Fault::of_file(file, error.to_string()));
            None
        }
    }
}

/// Takes the first name out; a second one stays and is reported as a double.
fn take_name(entries: &mut Vec<(String, String)>) -> Option<String> {
    let at = entries.iter().position(|(key, _)| key == "name")?;
    if entries.iter().filter(|(key, _)| key == "name").count() > 1 {
        return Some(entries[at].1.clone());
    }
    Some(entries.remove(at).1)
}

fn refuse_doubles(raw: &mut Raw, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    let mut told = BTreeSet::new();
    for (key, _) in &raw.entries {
        if !seen.insert(key.clone()) && told.insert(key.clone()) {
            let message = "stands more than once in the document; keep the one that is meant";
            faults.push(Fault { connector: raw.name.clone(), ..Fault::of_file(&raw.file, message) }.at(key));
        }
    }
    let mut kept = BTreeSet::new();
    raw.entries.retain(|(key, _)| kept.insert(key.clone()));
    // The name was left in only to be counted.
    raw.entries.retain(|(key, _)| key != "name" || raw.name.is_none());
}

fn json(file: &str, text: &str, faults: &mut Faults) -> Option<Raw> {
    let outer = match members(text) {
        Ok(outer) => outer,
        Err(message) => {
            faults.push(Fault::of_file(file, message));
            return None;
        }
    };
    let nested = outer.iter().any(|(key, value)| key == "config" && value.get().starts_with('{'));
    if !nested {
        let mut entries = texts(file, outer, faults);
        let name = take_name(&mut entries);
        return Some(Raw { file: file.to_owned(), name, entries });
    }
    let (configs, around): (Vec<_>, Vec<_>) = outer.into_iter().partition(|(key, _)| key == "config");
    if configs.len() > 1 {
        faults.push(Fault::of_file(file, "stands more than once in the document").at("config"));
    }
    let mut entries = Vec::new();
    for (_, config) in &configs {
        match members(config.get()) {
            Ok(inner) => entries.extend(texts(file, inner, faults)),
            Err(message) => faults.push(Fault::of_file(file, message).at("config")),
        }
    }
    let around = around.into_iter().filter(|(key, _)| !PRINTED_BY_CONNECT.contains(&key.as_str())).collect();
    let name = around_config(file, texts(file, around, faults), &mut entries, faults);
    Some(Raw { file: file.to_owned(), name, entries })
}

/// Reads the members beside `config`: the name, which may be repeated inside, and the state that Connect 3.7 knows.
fn around_config(
    file: &str,
    mut around: Vec<(String, String)>,
    entries: &mut Vec<(String, String)>,
    faults: &mut Faults,
) -> Option<String> {
    let name = take_name(&mut around);
    let inner = take_name(entries);
    if let (Some(outer), Some(inner)) = (&name, &inner)
        && outer != inner
    {
        let message = format!("differs from the name {outer:?} beside \"config\"");
        faults.push(Fault::of_file(file, message).at("name").given(Some(inner.clone())));
    }
    for (key, value) in around {
        let message = match key.as_str() {
            "initial_state" if value.eq_ignore_ascii_case("running") => continue,
            "initial_state" => "cannot be set here; pause a table with `tablesweep cursor pause`",
            "name" => "stands more than once in the document; keep the one that is meant",
            _ => "does not belong beside \"config\"; move it inside",
        };
        faults.push(Fault::of_file(file, message).at(key));
    }
    name.or(inner)
}

/// Turns values into the texts that Connect would see.
fn texts(file: &str, members: Vec<(String, Box<RawValue>)>, faults: &mut Faults) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (key, value) in members {
        let raw = value.get();
        let text = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).ok(),
            Some(b'{' | b'[' | b'n') | None => None,
            Some(_) => Some(raw.to_owned()),
        };
        match text {
            Some(text) => texts.push((key, text)),
            None => {
                let message = match raw.as_bytes().first() {
                    Some(b'[') => "is an array; write a list as one text with commas, \"a,b\"",
                    Some(b'{') => "is an object; a value is one text",
                    _ => "is no text; leave the key out to get its default",
                };
                faults.push(Fault::of_file(file, message).at(key).allowing("a JSON string, number or boolean"));
            }
        }
    }
    texts
}

/// The members of a JSON object in the order of the file, doubles included.
fn members(text: &str) -> Result<Vec<(String, Box<RawValue>)>, String> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, Box<RawValue>)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    if text.trim().is_empty() {
        return Err("is empty, and no JSON object".to_owned());
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Members).and_then(|members| deserializer.end().map(|()| members));
    // The parser's own message can quote the text, and the text can hold a secret: only the place is passed on.
    members.map_err(|error| format!("is no JSON object (line {}, column {})", error.line(), error.column()))
}
