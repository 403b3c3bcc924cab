//! Positions: the digits of a sequence, or an explicit none before the first row.

use super::keys::{SOURCE, TableName, instance};
use super::sequence::Sequence;
use crate::config::{CursorRules, KnownIdentity, Lookup, Values};
use crate::cursor::{Identity, Position};

/// What the source tells of its cursors.
pub(super) const RULES: CursorRules = CursorRules {
    identity: known_identity,
    read: typed,
    is_position: |position| read(position).is_some_and(|at| written(at) == *position),
    is_forward,
    start,
    // A sequence knows no time.
    in_future: |_, _| None,
    after_reset: " (start): with start=latest, rows that are there now and were not delivered never are",
    has_baseline: true,
};

/// The field of a position.
const SEQUENCE: &str = "sequence";

/// The position before the first row as people type it; `start` calls it so too.
const EARLIEST: &str = "earliest";

/// A position as people type it.
pub(super) fn typed_as(at: Option<Sequence>) -> String {
    at.map_or_else(|| EARLIEST.to_owned(), |at| at.to_string())
}

/// A position as it is stored and reported.
pub(super) fn written(at: Option<Sequence>) -> Position {
    Position::new([(SEQUENCE, at.map(|at| at.to_string()))])
}

/// Reads what [`written`] wrote.
pub(super) fn read(position: &Position) -> Option<Option<Sequence>> {
    match position.get(SEQUENCE) {
        Some(digits) => Sequence::parse(digits).map(Some),
        None => position.has(SEQUENCE).then_some(None),
    }
}

/// The fingerprint of what chooses the rows. Schema and table are apart: a point may be part of either.
pub(super) fn fingerprint(table: &TableName, column: &str) -> String {
    Identity::fingerprint_of(&[&table.schema, &table.table, column])
}

fn typed(text: &str) -> Result<Position, String> {
    if text == EARLIEST {
        return Ok(written(None));
    }
    match Sequence::parse(text) {
        Some(sequence) => Ok(written(Some(sequence))),
        None => {
            Err(format!("{text:?} is neither the number of a sequence, such as 1200345, nor {EARLIEST}, which is before the first row"))
        }
    }
}

/// With `latest` only the table knows.
fn start(values: &Values, alias: &str) -> Option<(String, Position)> {
    let key = format!("{}{alias}.start", SOURCE.alias_prefix);
    let position = typed(values.text(&key)?).ok()?;
    Some((key, position))
}

fn is_forward(from: &Position, to: &Position) -> bool {
    match (read(from), read(to)) {
        (Some(from), Some(to)) => to > from,
        _ => true,
    }
}

fn known_identity(values: &Values, alias: &str, known: Lookup<'_>) -> KnownIdentity {
    let key = |setting: &str| format!("{}{alias}.{setting}", SOURCE.alias_prefix);
    let table = values.text(&key("name")).and_then(TableName::parse);
    let column = values.text(&key("sequence.column"));
    let port = known("mssql.port").and_then(|port| port.trim().parse().ok());
    let instance = match (known("mssql.host"), port, known("mssql.database")) {
        (Some(host), Some(port), Some(database)) => Some(instance(host.trim(), port, database.trim())),
        _ => None,
    };
    KnownIdentity {
        instance,
        fingerprint: table.as_ref().zip(column).map(|(table, column)| fingerprint(table, column)),
        table: table.map(|table| table.to_string()),
        field: column.map(str::to_owned),
        id_field: Some(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(digits: &str) -> Position {
        Position::new([(SEQUENCE, Some(digits.to_owned()))])
    }

    #[test]
    fn sequences_are_read_and_compared_as_numbers() {
        assert_eq!(typed("007"), Ok(number("7")));
        for at in [None, Sequence::new(0), Sequence::new(-7), Sequence::new(10_i128.pow(38) - 1)] {
            assert_eq!(typed(&typed_as(at)), Ok(written(at)), "what messages advise can be typed");
        }
        assert!(typed("2026-01-01 00:00:00").is_err() && typed(&"9".repeat(39)).is_err());
        assert!(is_forward(&number("9"), &number("10")) && !is_forward(&number("10"), &number("9")));
        assert!(is_forward(&written(None), &number("-5")), "none lies before every row");
    }

    #[test]
    fn a_position_is_read_back_and_an_empty_table_is_no_missing_position() {
        for at in [None, Sequence::new(0), Sequence::new(-7), Sequence::new(10_i128.pow(38) - 1)] {
            assert_eq!(read(&written(at)), Some(at));
        }
        assert_eq!(read(&Position::new([("timestamp", None)])), None);
        assert_eq!(read(&number("x")), None);
    }

    #[test]
    fn a_point_in_a_name_makes_no_two_tables_one() {
        let name = |schema: &str, table: &str| TableName { schema: schema.into(), table: table.into() };
        assert_ne!(fingerprint(&name("a.b", "c"), "id"), fingerprint(&name("a", "b.c"), "id"));
    }
}
