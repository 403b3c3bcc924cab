//! Positions: what is stored of a cursor, what a person types, and which of two lies further on.

use url::Url;

use super::ahead::Future;
use super::keys::normalised_query;
use super::planner::At;
use super::time;
use crate::config::{CursorRules, KnownIdentity, Lookup, Values};
use crate::cursor::{Identity, Position};

/// What the source tells of its cursors.
pub(super) const RULES: CursorRules = CursorRules {
    identity: known_identity,
    read: typed,
    is_position: |position| read(position).is_some_and(|at| written(&at) == *position),
    is_forward,
    start,
    in_future,
    after_reset: " (start.timestamp), and rows after that are delivered again",
    has_baseline: false,
};

/// A position as it is stored and reported.
pub(super) fn written(at: &At) -> Position {
    Position::new([("timestamp", Some(time::format(at.second))), ("sys_id", Some(at.id.clone()))])
}

/// Reads what [`written`] wrote.
pub(super) fn read(position: &Position) -> Option<At> {
    Some(At { second: time::parse(position.get("timestamp")?)?, id: position.get("sys_id")?.to_owned() })
}

/// The fingerprint of what chooses the rows. `query` is the normalised base query.
pub(super) fn fingerprint(table: &str, query: &str, query_domain: bool) -> String {
    Identity::fingerprint_of(&[table, query, if query_domain { "true" } else { "false" }])
}

fn typed(text: &str) -> Result<Position, String> {
    match time::parse(text) {
        Some(second) => Ok(written(&At { second, id: String::new() })),
        None => Err(format!("{text:?} is not a time of the form \"YYYY-MM-DD hh:mm:ss\" (UTC)")),
    }
}

fn start(values: &Values, alias: &str) -> Option<(String, Position)> {
    let key = super::keys::of(alias, "start.timestamp");
    let position = typed(values.text(&key)?).ok()?;
    Some((key, position))
}

fn in_future(position: &Position, now_ms: i64) -> Option<String> {
    let future = Future::of(read(position)?.second, now_ms.div_euclid(1000), 0)?;
    Some(format!("lies {} ahead of this machine's clock, and rows that are written until then are not delivered", future.length()))
}

fn is_forward(from: &Position, to: &Position) -> bool {
    match (read(from), read(to)) {
        // A typed position has no id: it lies before every row of its second.
        (Some(from), Some(to)) => to.second > from.second || (to.second == from.second && !to.id.is_empty() && to.id != from.id),
        _ => true,
    }
}

fn known_identity(values: &Values, alias: &str, known: Lookup<'_>) -> KnownIdentity {
    let key = |setting: &str| format!("{}{alias}.{setting}", super::keys::SOURCE.alias_prefix);
    let text = |setting: &str| values.text(&key(setting)).map(str::to_owned);
    let parts = (text("name"), text("query"), values.boolean(&key("query.domain")));
    let fingerprint = match parts {
        (Some(table), Some(query), Some(domain)) => Some(fingerprint(&table, normalised_query(&query), domain)),
        _ => None,
    };
    KnownIdentity {
        instance: known("snow.url").and_then(|url| Url::parse(url.trim()).ok()?.host_str().map(str::to_ascii_lowercase)),
        table: None,
        field: text("timestamp.field"),
        id_field: text("sys.id.field"),
        fingerprint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(stamp: &str, id: &str) -> Position {
        Position::new([("timestamp", Some(stamp.to_owned())), ("sys_id", Some(id.to_owned()))])
    }

    #[test]
    fn a_time_is_taken_in_its_one_form_only() {
        assert_eq!(typed("2026-01-01 00:00:00"), Ok(at("2026-01-01 00:00:00", "")));
        for text in ["2026-01-01", "2026-1-01 00:00:00", "2026-02-30 00:00:00", "2026-01-01T00:00:00Z", "7", ""] {
            assert!(typed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_position_after_the_time_that_it_is_set_at_is_told() {
        let said = |to: &str| in_future(&at(to, ""), 1_767_225_600_000);
        assert_eq!(said("2026-01-01 00:00:00"), None);
        assert!(said("2026-01-01 03:00:00").is_some_and(|text| text.starts_with("lies 3 h ahead")));
        assert!(said("9999-12-31 23:59:59").is_some());
    }

    #[test]
    fn the_start_of_the_cursors_own_second_is_no_move_forward() {
        let from = at("2026-01-01 00:00:10", "b");
        for (to, forward) in [("2026-01-01 00:00:09", false), ("2026-01-01 00:00:10", false), ("2026-01-01 00:00:11", true)] {
            assert_eq!(is_forward(&from, &at(to, "")), forward, "{to}");
        }
    }
}
