//! `tablesweep migrate`: a document of Confluent's ServiceNow source becomes one of ours.
//!
//! Every key is carried over, dropped for a reason, or named as something that needs a hand; none is passed over in silence.
//! Secrets that stand in the document are not carried over: a placeholder takes the place of each.

mod confluent;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use crate::args::MigrateArgs;
use crate::exit::{Exit, Stop};
use crate::output::{self, note};

/// What becomes of a document.
#[derive(Debug, Default)]
pub struct Translation {
    name: String,
    config: Map<String, Value>,
    /// What somebody has to decide or do, with the key that it is about.
    hand: Vec<(String, String)>,
    /// What is worth knowing.
    notes: Vec<(String, String)>,
}

impl Translation {
    fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.config.insert(key.into(), Value::String(value.into()));
    }

    fn hand(&mut self, key: &str, why: impl Into<String>) {
        self.hand.push((key.to_owned(), why.into()));
    }

    fn note(&mut self, key: &str, what: impl Into<String>) {
        self.notes.push((key.to_owned(), what.into()));
    }

    /// Carries a value over as it is, unless it is an address with a password in it, which is a secret.
    fn carry(&mut self, to: &str, (key, value): (&str, &str)) {
        if has_login(value) {
            self.secret(to, &variable(key), (key, value));
        } else {
            self.set(to, value);
        }
    }

    /// Carries a secret over if it is a placeholder, and puts one in its place if it is not.
    fn secret(&mut self, to: &str, variable: &str, (key, value): (&str, &str)) {
        if value.starts_with("${") && value.ends_with('}') {
            self.set(to, value);
        } else {
            self.set(to, format!("${{env:{variable}}}"));
            self.hand(key, format!("was a plain secret; give it to {to} by the variable {variable}, or by a placeholder of another kind"));
        }
    }
}

/// The variable of the environment that a secret is asked for by, if its key has none of its own.
fn variable(key: &str) -> String {
    key.to_ascii_uppercase().replace(['.', '-'], "_")
}

/// Whether an address carries a user and a password, and not as placeholders.
fn has_login(value: &str) -> bool {
    let addresses = value.split(',').filter_map(|address| address.split_once("://"));
    addresses.map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default()).any(|host| host.contains('@') && !host.contains("${"))
}

/// Runs the command.
pub fn run(arguments: &MigrateArgs) -> Result<Exit, Stop> {
    let (name, given) = read(&arguments.file)?;
    let translated = confluent::translate(&name, given).map_err(Stop::wrong)?;
    for (key, what) in &translated.notes {
        note(&format!("note: {key}: {what}"));
    }
    for (key, why) in &translated.hand {
        note(&format!("needs a hand: {key}: {why}"));
    }
    output::json(&serde_json::json!({"name": translated.name, "config": translated.config}))?;
    Ok(if translated.hand.is_empty() { Exit::Good } else { Exit::Bad })
}

/// The name of a document and its keys, from either of Connect's JSON forms or a `.properties` file.
fn read(file: &Path) -> Result<(String, BTreeMap<String, String>), Stop> {
    let shown = file.display();
    let text = if file == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    let text = text.map_err(|error| Stop::wrong(format!("{shown}: {error}")))?;
    let stem = || file.file_stem().map_or_else(|| "servicenow".to_owned(), |stem| stem.to_string_lossy().into_owned());
    if !text.trim_start().starts_with('{') {
        let pairs = tablesweep::config::properties(&text).map_err(|error| Stop::wrong(format!("{shown}: {error}")))?;
        // The last of two that are the same is Connect's.
        let mut keys: BTreeMap<String, String> = pairs.into_iter().collect();
        let name = keys.remove("name").unwrap_or_else(stem);
        return Ok((name, keys));
    }
    let document: Map<String, Value> = serde_json::from_str(&text).map_err(|error| Stop::wrong(format!("{shown}: {error}")))?;
    let named = document.get("name").and_then(Value::as_str).map(str::to_owned);
    let config = match document.get("config") {
        Some(Value::Object(config)) => config.clone(),
        Some(_) => return Err(Stop::wrong(format!("{shown}: config is no object"))),
        None => document,
    };
    let name = config.get("name").and_then(Value::as_str).map(str::to_owned).or(named).unwrap_or_else(stem);
    let mut keys = BTreeMap::new();
    for (key, value) in config.into_iter().filter(|(key, _)| key != "name") {
        let value = match value {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(boolean) => boolean.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => return Err(Stop::wrong(format!("{shown}: {key} is neither a text nor a number"))),
        };
        keys.insert(key, value);
    }
    Ok((name, keys))
}
