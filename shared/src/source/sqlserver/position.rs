//! Positions: the digits of a sequence.

use crate::config::{CursorRules, KnownIdentity, Lookup, Values};
use crate::cursor::Position;

/// What the source tells of its cursors. Server and fingerprint are not compared until the source is built.
pub(super) const RULES: CursorRules =
    CursorRules { identity: known_identity, read: typed, is_forward, after_reset: "", has_baseline: true };

fn typed(text: &str) -> Result<Position, String> {
    match text.parse::<i128>() {
        Ok(number) => Ok(Position::new([("sequence", Some(number.to_string()))])),
        Err(_) => Err(format!("{text:?} is not the number of a sequence, such as 1200345")),
    }
}

fn is_forward(from: &Position, to: &Position) -> bool {
    let number = |position: &Position| position.get("sequence").and_then(|digits| digits.parse::<i128>().ok());
    match (number(from), number(to)) {
        (Some(from), Some(to)) => to > from,
        _ => true,
    }
}

fn known_identity(values: &Values, alias: &str, _known: Lookup<'_>) -> KnownIdentity {
    let key = format!("{}{alias}.sequence.column", super::keys::SOURCE.alias_prefix);
    KnownIdentity { field: values.text(&key).map(str::to_owned), id_field: Some(String::new()), ..KnownIdentity::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_read_and_compared_as_numbers() {
        let number = |digits: &str| Position::new([("sequence", Some(digits.to_owned()))]);
        assert_eq!(typed("007"), Ok(number("7")));
        assert!(typed("2026-01-01 00:00:00").is_err());
        assert!(is_forward(&number("9"), &number("10")) && !is_forward(&number("10"), &number("9")));
        assert!(is_forward(&Position::new([("sequence", None)]), &number("9")));
    }
}
