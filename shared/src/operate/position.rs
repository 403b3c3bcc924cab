//! Positions as people type and read them.
//!
//! A cursor carries the fields of its source's positions, so its own shape says how a new one is to be read: a time of
//! the form that ServiceNow writes, or the digits of a sequence.

use jiff::civil::DateTime;

use crate::cursor::Position;

/// Reads a position that was typed for a cursor of `source`.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub fn read_position(source: &str, text: &str) -> Result<Position, String> {
    let text = text.trim();
    match source {
        "servicenow" => match time(text) {
            Some(stamp) => Ok(Position::new([("timestamp", Some(stamp)), ("sys_id", Some(String::new()))])),
            None => Err(format!("{text:?} is not a time of the form \"YYYY-MM-DD hh:mm:ss\" (UTC)")),
        },
        "sqlserver" => match text.parse::<i128>() {
            Ok(number) => Ok(Position::new([("sequence", Some(number.to_string()))])),
            Err(_) => Err(format!("{text:?} is not the number of a sequence, such as 1200345")),
        },
        other => Err(format!("positions of the source {other} cannot be set by hand")),
    }
}

/// Whether `to` lies after `from`, or that cannot be told: then the caller must be as careful as if it did.
pub fn is_forward(from: Option<&Position>, to: &Position) -> bool {
    let Some(from) = from else { return true };
    if let (Some(before), Some(after)) = (from.get("timestamp"), to.get("timestamp")) {
        // Both are in the one form whose order as text is that of the times. The id of a typed position is empty
        // and lies before every row of its second.
        return match after.cmp(before) {
            std::cmp::Ordering::Equal => to.get("sys_id").is_some_and(|id| !id.is_empty() && Some(id) != from.get("sys_id")),
            order => order.is_gt(),
        };
    }
    let number = |position: &Position| position.get("sequence").and_then(|digits| digits.parse::<i128>().ok());
    match (number(from), number(to)) {
        (Some(before), Some(after)) => after > before,
        _ => true,
    }
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

/// The time in its one form; `None` for every other form and for a day that no calendar has.
fn time(text: &str) -> Option<String> {
    const FORM: &str = "%Y-%m-%d %H:%M:%S";
    let stamp = DateTime::strptime(FORM, text).ok()?.strftime(FORM).to_string();
    (stamp == text).then_some(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(stamp: &str, id: &str) -> Position {
        Position::new([("timestamp", Some(stamp.to_owned())), ("sys_id", Some(id.to_owned()))])
    }

    #[test]
    fn a_time_is_taken_in_its_one_form_only() {
        assert_eq!(read_position("servicenow", " 2026-01-01 00:00:00 "), Ok(at("2026-01-01 00:00:00", "")));
        for text in ["2026-01-01", "2026-1-01 00:00:00", "2026-02-30 00:00:00", "2026-01-01T00:00:00Z", "7", ""] {
            assert!(read_position("servicenow", text).is_err(), "{text}");
        }
        assert_eq!(read_position("sqlserver", "007").map(|to| shown(Some(&to))), Ok("7".to_owned()));
        assert!(read_position("sqlserver", "2026-01-01 00:00:00").is_err());
    }

    #[test]
    fn the_start_of_the_cursors_own_second_is_no_move_forward() {
        let from = at("2026-01-01 00:00:10", "b");
        for (to, forward) in [("2026-01-01 00:00:09", false), ("2026-01-01 00:00:10", false), ("2026-01-01 00:00:11", true)] {
            assert_eq!(is_forward(Some(&from), &at(to, "")), forward, "{to}");
        }
        assert!(is_forward(None, &at("2026-01-01 00:00:09", "")), "what cannot be told counts as forward");
    }

    #[test]
    fn sequences_are_compared_as_numbers() {
        let number = |digits: &str| Position::new([("sequence", Some(digits.to_owned()))]);
        assert!(is_forward(Some(&number("9")), &number("10")));
        assert!(!is_forward(Some(&number("10")), &number("9")));
        assert!(is_forward(Some(&Position::new([("sequence", None)])), &number("9")));
    }
}
