//! Values as the text that `CONVERT` makes of them, per style.

use super::super::types::Type;
use super::super::value::Value;
use super::error::SqlError;
use super::{numbers, temporal};

/// The text of a value of this type. `style` is the third argument of `CONVERT`, 0 without one.
pub fn text(value: &Value, ty: &Type, style: i64) -> Result<String, SqlError> {
    let unknown = || SqlError::refused(format!("CONVERT of {ty} to characters with style {style}"));
    Ok(match value {
        Value::Bit(bit) => u8::from(*bit).to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Decimal(digits) => match ty {
            Type::Money | Type::SmallMoney => match style {
                0 => numbers::text(numbers::rescale(*digits, 4, 2).ok_or_else(unknown)?, 2),
                2 | 126 => numbers::text(*digits, 4),
                _ => return Err(unknown()),
            },
            _ => numbers::text(*digits, ty.precision_scale().1),
        },
        Value::Real(number) => float_text(f64::from(*number), style, 7).ok_or_else(unknown)?,
        Value::Float(number) => float_text(*number, style, 15).ok_or_else(unknown)?,
        Value::Guid(bytes) => guid_text(bytes),
        Value::Date(_)
        | Value::Time(_)
        | Value::DateTime2(..)
        | Value::DateTimeOffset(..)
        | Value::DateTime(..)
        | Value::SmallDateTime(..) => moment_text(value, ty, style).ok_or_else(unknown)?,
        Value::Null | Value::Chars(_) | Value::Wide(_) | Value::Binary(_) | Value::Variant(_) => return Err(unknown()),
    })
}

/// Style 0 gives six digits and loses the rest; style 3 gives 17 and loses nothing.
fn float_text(number: f64, style: i64, digits: i32) -> Option<String> {
    match style {
        0 => {
            let exponent = if number == 0.0 { 0 } else { format!("{number:.5e}").split_once('e')?.1.parse::<i32>().ok()? };
            if (-5..digits).contains(&exponent) {
                let places = usize::try_from(5 - exponent).unwrap_or(0);
                let text = format!("{number:.places$}");
                let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
                return Some(text);
            }
            Some(scientific(number, 5))
        }
        3 if digits == 15 => Some(scientific(number, 16)),
        3 => Some(scientific(number, 8)),
        _ => None,
    }
}

/// `1.7976931348623157e+308`: a sign and three digits of exponent.
fn scientific(number: f64, places: usize) -> String {
    let text = format!("{number:.places$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{mantissa}e{sign}{exponent:0>3}")
}

/// `6F9619FF-8B86-D011-B42D-00C04FC964FF`.
pub fn guid_text(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The 16 bytes of a text, with or without braces.
pub fn parse_guid(text: &str) -> Option<[u8; 16]> {
    let text = text.trim().trim_start_matches('{').trim_end_matches('}');
    if text.len() != 36 || !text.is_ascii() || [8, 13, 18, 23].iter().any(|at| text.as_bytes()[*at] != b'-') {
        return None;
    }
    let digits: String = text.chars().filter(|char| *char != '-').collect();
    let mut bytes = [0; 16];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// Day, ticks, scale and offset of any temporal value; `datetime` at its millisecond.
pub fn moment(value: &Value, ty: &Type) -> Option<(i32, u64, u8, Option<i16>)> {
    let scale = ty.precision_scale().1;
    Some(match value {
        Value::Date(day) => (*day, 0, 0, None),
        Value::Time(ticks) => (temporal::TO_1900, *ticks, scale, None),
        Value::DateTime2(day, ticks) => (*day, *ticks, scale, None),
        Value::DateTimeOffset(day, ticks, offset) => {
            let (day, ticks) = temporal::shift(*day, *ticks, *offset);
            (day, ticks, scale, Some(*offset))
        }
        Value::DateTime(days, thirds) => (temporal::TO_1900 + days, temporal::from_thirds(*thirds), 3, None),
        Value::SmallDateTime(days, minutes) => (temporal::TO_1900 + i32::from(*days), u64::from(*minutes) * 600_000_000, 0, None),
        _ => return None,
    })
}

fn moment_text(value: &Value, ty: &Type, style: i64) -> Option<String> {
    let (day, ticks, scale, offset) = moment(value, ty)?;
    let date = temporal::date_text(day);
    let time = temporal::time_text(ticks, scale);
    let zone = offset.map(temporal::offset_text);
    // Style 0 of the older types is `Aug  5 2026 10:15AM`, which loses the seconds; the newer ones have ISO from the start.
    let old = matches!(ty, Type::DateTime | Type::SmallDateTime);
    Some(match (style, ty) {
        (0 | 20 | 21 | 25 | 120 | 121 | 23 | 126, Type::Date) => date,
        (0 | 21 | 25 | 121 | 126 | 114, Type::Time(_)) => time,
        (112, _) if !matches!(ty, Type::Time(_)) => date.replace('-', ""),
        (23, _) if !matches!(ty, Type::Time(_)) => date,
        (0, _) if old => {
            const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
            let (year, month, of_month) = temporal::civil(day);
            let minutes = ticks / 600_000_000;
            let (hour, half) = (minutes / 60, if minutes >= 720 { "PM" } else { "AM" });
            let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
            format!("{} {of_month:>2} {year} {hour:>2}:{:02}{half}", MONTHS[month as usize - 1], minutes % 60)
        }
        (20 | 120, _) => format!("{date} {}", temporal::time_text(ticks, 0)),
        (0 | 21 | 25 | 121, _) => {
            // The styles of milliseconds show three digits of the older types even if they are zero.
            let time = if matches!(ty, Type::SmallDateTime) { temporal::time_text(ticks, 3) } else { time };
            match zone {
                Some(zone) => format!("{date} {time} {zone}"),
                None => format!("{date} {time}"),
            }
        }
        (126, _) => {
            // ISO 8601 leaves out a fraction of zero for the older types.
            let time = if old && ticks % 10_000_000 == 0 { temporal::time_text(ticks, 0) } else { time };
            format!("{date}T{time}{}", zone.unwrap_or_default())
        }
        (127, _) => {
            let (day, ticks) = offset.map_or((day, ticks), |offset| temporal::shift(day, ticks, -offset));
            let time = if old && ticks % 10_000_000 == 0 { temporal::time_text(ticks, 0) } else { temporal::time_text(ticks, scale) };
            format!("{}T{time}{}", temporal::date_text(day), if offset.is_some() { "Z" } else { "" })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_lose_nothing_under_style_3() {
        assert_eq!(float_text(f64::MAX, 3, 15).as_deref(), Some("1.7976931348623157e+308"));
        assert_eq!(float_text(0.1, 0, 15).as_deref(), Some("0.1"));
        assert_eq!(float_text(1e20, 0, 15).as_deref(), Some("1.00000e+020"));
    }

    #[test]
    fn moments_have_the_form_of_their_style() {
        let noon = Value::DateTime(46_237, 12 * 3600 * 300 + 7 * 300 + 1);
        assert_eq!(text(&noon, &Type::DateTime, 126).unwrap(), "2026-08-05T12:00:07.003");
        assert_eq!(text(&noon, &Type::DateTime, 0).unwrap(), "Aug  5 2026 12:00PM");
        let zoned = Value::DateTimeOffset(temporal::TO_1900 + 46_237, 252_650_900_948, -420);
        assert_eq!(text(&zoned, &Type::DateTimeOffset(7), 127).unwrap(), "2026-08-05T07:01:05.0900948Z");
        assert_eq!(text(&zoned, &Type::DateTimeOffset(7), 121).unwrap(), "2026-08-05 00:01:05.0900948 -07:00");
    }
}
