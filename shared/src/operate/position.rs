//! Positions as people type and read them; what a position means is its source's to say.

use crate::assembly;
use crate::cursor::Position;

/// Reads a position that was typed for a cursor of `source`.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub fn read_position(source: &str, text: &str) -> Result<Position, String> {
    let kind = assembly::source(source).ok_or_else(|| format!("positions of the source {source} cannot be set by hand"))?;
    (kind.cursors.read)(text.trim())
}

/// Whether `to` lies after `from` in the order of `source`, or that cannot be told: then the caller must be as careful
/// as if it did.
pub fn is_forward(source: &str, from: &Position, to: &Position) -> bool {
    assembly::source(source).is_none_or(|kind| (kind.cursors.is_forward)(from, to))
}

/// A position in words: the time or the digits, with the row of that second where there is one.
pub fn shown(position: Option<&Position>) -> String {
    let Some(position) = position else { return "the beginning".to_owned() };
    if let Some(stamp) = position.get("timestamp") {
        return match position.get("sys_id") {
            Some(id) if !id.is_empty() => format!("{stamp} {id}"),
            _ => stamp.to_owned(),
        };
    }
    position.get("sequence").map_or_else(|| "none".to_owned(), str::to_owned)
}

/// Which rows a cursor at `position` leaves to come, in words. A second of which no row is named is not delivered yet.
pub(super) fn to_come(position: &Position) -> String {
    let at = shown(Some(position));
    let is_whole_second = position.get("timestamp").is_some() && position.get("sys_id").is_none_or(str::is_empty);
    if is_whole_second { format!("from {at} on") } else { format!("after {at}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_by_its_source_and_by_no_other() {
        assert_eq!(read_position("servicenow", " 2026-01-01 00:00:00 ").map(|to| shown(Some(&to))), Ok("2026-01-01 00:00:00".to_owned()));
        assert_eq!(read_position("sqlserver", "7").map(|to| shown(Some(&to))), Ok("7".to_owned()));
        assert!(read_position("servicenow", "7").is_err() && read_position("elsewhere", "7").is_err());
    }

    #[test]
    fn rows_of_a_second_that_is_set_come_again_and_a_row_that_is_named_does_not() {
        let second = read_position("servicenow", "2026-01-01 00:00:00").expect("a time");
        assert_eq!(to_come(&second), "from 2026-01-01 00:00:00 on");
        let row = Position::new([("timestamp", Some("2026-01-01 00:00:00".to_owned())), ("sys_id", Some("0a".to_owned()))]);
        assert_eq!(to_come(&row), "after 2026-01-01 00:00:00 0a");
        assert_eq!(to_come(&read_position("sqlserver", "7").expect("digits")), "after 7");
    }

    #[test]
    fn what_cannot_be_told_counts_as_forward() {
        let to = read_position("sqlserver", "7").expect("digits");
        assert!(is_forward("elsewhere", &to, &to) && !is_forward("sqlserver", &to, &to));
    }
}
