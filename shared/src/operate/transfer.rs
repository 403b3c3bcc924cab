//! Cursors as lines of JSON: to carry them into another store, to keep a copy, to answer "where did it stand?".
//!
//! What lies beside cursors and must not be lost goes with them, as lines of a kind of their own ([`Beside`]).

mod beside;

use serde::Deserialize;

pub use beside::{Beside, beside};

use super::shown;
use crate::assembly;
use crate::cursor::{Identity, Item, StoreError, StoredWindow, decode, encode};

/// A line of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A cursor.
    Cursor(Box<Item>),
    /// What lies beside cursors.
    Beside(Beside),
}

/// The line of an item. What belongs to the place it lies in stays behind: the lease and the dedup window.
pub fn export_line(item: &Item) -> String {
    let mut item = Item { lease: None, tries: 0, ..item.clone() };
    item.progress.window = StoredWindow::None;
    encode(&item)
}

/// Reads a line of an export.
///
/// # Errors
/// What is wrong with it.
pub fn read_line(line: &str) -> Result<Line, String> {
    if beside::is_one(line) { beside::read(line).map(Line::Beside) } else { read_cursor(line).map(|item| Line::Cursor(Box::new(item))) }
}

/// Reads a line that [`export_line`] wrote. Its position is read by its source, as one that is typed: what no sweep could go on from
/// is told here, and not by the next sweep.
///
/// # Errors
/// It is not one, or of a newer program, or its position is none of its source.
fn read_cursor(line: &str) -> Result<Item, String> {
    #[derive(Deserialize)]
    struct Named {
        identity: Identity,
    }
    let named: Named = serde_json::from_str(line).map_err(|error| format!("it is no exported cursor: {}", without_place(&error)))?;
    let item = decode(&named.identity.key(), line).map_err(|error| match error {
        StoreError::Format { detail, .. } => detail,
        error => error.to_string(),
    })?;
    let Identity { connector, alias, source, .. } = &item.identity;
    let kind = assembly::source(source).ok_or_else(|| format!("{connector}/{alias}: there is no source {source:?}"))?;
    match &item.progress.cursor {
        Some(position) if !(kind.cursors.is_position)(position) => {
            let given = serde_json::to_string(position).unwrap_or_else(|_| shown(Some(position)));
            Err(format!("{connector}/{alias}: {given} is no position of a {source} table"))
        }
        _ => Ok(item),
    }
}

/// What is wrong with the JSON, without the place in it: the line is one, and whoever imports counts it.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} (character {column})"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exported_cursor_comes_back_without_its_lease_and_its_window() {
        let identity = Identity {
            connector: "c".into(),
            alias: "inc".into(),
            source: "servicenow".into(),
            instance: "acme.service-now.com".into(),
            table: "incident".into(),
            field: "sys_updated_on".into(),
            id_field: "sys_id".into(),
            fingerprint: "f".into(),
        };
        let mut item = Item::new(identity);
        item.tries = 2;
        item.progress.window = StoredWindow::Beside(3);
        item.lease = Some(crate::cursor::Lease { owner: "o".into(), until_ms: 1 });
        let back = read_cursor(&export_line(&item)).expect("a line");
        assert_eq!((back.lease, back.tries, back.progress.window), (None, 0, StoredWindow::None));
        assert_eq!(back.identity, item.identity);
        assert!(read_cursor("{}").is_err());
    }

    #[test]
    fn a_line_whose_position_no_sweep_could_go_on_from_is_refused_in_words() {
        let identity = |source: &str| Identity {
            connector: "c".into(),
            alias: "t".into(),
            source: source.into(),
            instance: "h".into(),
            table: "t".into(),
            field: "f".into(),
            id_field: String::new(),
            fingerprint: "f".into(),
        };
        let line = |source: &str, cursor: &str| {
            export_line(&Item::new(identity(source))).replace("\"cursor\":null", &format!("\"cursor\":{cursor}"))
        };
        for (source, cursor) in [
            ("servicenow", r#"{"timestamp":"2026-01-01 00:00:00","sys_id":"a"}"#),
            ("servicenow", "null"),
            ("sqlserver", r#"{"sequence":"7"}"#),
            ("sqlserver", r#"{"sequence":null}"#),
        ] {
            read_cursor(&line(source, cursor)).unwrap_or_else(|error| panic!("{source} {cursor}: {error}"));
        }
        for (source, cursor) in [
            ("servicenow", r#"{"timestamp":"2026-99-01 00:00:00","sys_id":""}"#),
            ("servicenow", r#"{"timestamp":"9999-12-31 23:59:60","sys_id":""}"#),
            ("servicenow", r#"{"timestamp":"2026-01-01 00:00:00"}"#),
            ("servicenow", r#"{"timestamp":"2026-01-01 00:00:00","sys_id":"","more":"x"}"#),
            ("servicenow", r#"{"sequence":"5"}"#),
            ("sqlserver", r#"{"sequence":"five"}"#),
            ("sqlserver", r#"{"timestamp":"2026-01-01 00:00:00","sys_id":""}"#),
        ] {
            let error = read_cursor(&line(source, cursor)).expect_err(cursor);
            assert!(error.contains("c/t") && error.contains("is no position of"), "{error}");
        }
        assert!(read_cursor(&line("elsewhere", "null")).is_err_and(|error| error.contains("there is no source")));
        let damaged = read_cursor("{\"identity\":3}").expect_err("damaged");
        assert!(!damaged.contains("line"), "{damaged}");
    }
}
