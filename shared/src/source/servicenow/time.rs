//! The one form in which raw timestamps travel: `yyyy-MM-dd HH:mm:ss`, UTC, whole seconds.
//!
//! They are counted in civil time: an instant of a time zone's library ends a day before the year 9999 does, so that there is
//! one in every zone, and `9999-12-31 23:59:59` is how instances write "never".

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

/// The beginning of what is counted from.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Epoch seconds of a raw timestamp; `None` if it has any other form or names no moment.
pub(super) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let separated =
        bytes.len() == 19 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[10] == b' ' && bytes[13] == b':' && bytes[16] == b':';
    if !separated {
        return None;
    }
    let number = |from: usize, to: usize| {
        bytes[from..to].iter().try_fold(0_i16, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i16::from(digit - b'0')))
    };
    let small = |from: usize| number(from, from + 2).and_then(|value| i8::try_from(value).ok());
    let civil = DateTime::new(number(0, 4)?, small(5)?, small(8)?, small(11)?, small(14)?, small(17)?, 0).ok()?;
    Some(civil.duration_since(EPOCH).as_secs())
}

/// The raw form of epoch seconds. Seconds outside of the years 0 to 9999 are moved to the nearest of these.
pub(super) fn format(second: i64) -> String {
    const FIRST: i64 = -62_167_219_200;
    const LAST: i64 = 253_402_300_799;
    let civil = EPOCH.checked_add(SignedDuration::from_secs(second.clamp(FIRST, LAST))).unwrap_or(EPOCH);
    civil.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_timestamps_are_read_and_written_to_the_second() {
        for (text, second) in [
            ("1970-01-01 00:00:00", 0),
            ("2026-09-29 08:10:42", 1_790_669_442),
            ("2024-02-29 23:59:59", 1_709_251_199),
            ("1969-12-31 23:59:59", -1),
            ("0000-01-01 00:00:00", -62_167_219_200),
            ("9999-12-30 22:00:01", 253_402_207_201),
            ("9999-12-31 23:59:59", 253_402_300_799),
        ] {
            assert_eq!(parse(text), Some(second), "{text}");
            assert_eq!(format(second), text);
        }
    }

    #[test]
    fn anything_else_is_not_a_timestamp() {
        for text in [
            "",
            "2026-09-29",
            "2026-13-01 00:00:00",
            "2026-02-30 00:00:00",
            "29/09/2026 08:10:42",
            "2026-09-29T08:10:42",
            "2026-09-29 08:10:4x",
            "2026-09-29 08:10:42 PM",
            "２026-09-29 08:10:4",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_second_beyond_every_calendar_is_still_a_literal() {
        assert_eq!((format(i64::MAX).as_str(), format(i64::MIN).as_str()), ("9999-12-31 23:59:59", "0000-01-01 00:00:00"));
    }
}
