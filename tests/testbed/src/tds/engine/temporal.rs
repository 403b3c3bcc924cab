//! Dates and times: the numbers of the wire, and the texts that T-SQL reads and writes.

/// Units of 100 ns in a day.
pub const DAY: u64 = 864_000_000_000;
/// Days from 0001-01-01 to 1900-01-01, which `datetime` counts from.
pub const TO_1900: i32 = 693_595;
/// Days from 0001-01-01 to 9999-12-31.
pub const LAST_DAY: i32 = 3_652_058;

/// A moment as a text gives it: day, time of day, offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moment {
    pub day: i32,
    pub ticks: u64,
    pub offset: Option<i16>,
}

/// Days since 0001-01-01 of a date of the Gregorian calendar.
pub fn day(year: i32, month: u32, day: u32) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 || day > length[month as usize - 1] {
        return None;
    }
    let before = year - 1;
    let days_before: u32 = length[..month as usize - 1].iter().sum();
    Some(before * 365 + before / 4 - before / 100 + before / 400 + i32::try_from(days_before + day - 1).ok()?)
}

/// The date of a day.
pub fn civil(days: i32) -> (i32, u32, u32) {
    // By trial from below: a year is at most one off, and a month needs no table of its own.
    let mut year = days / 366 + 1;
    while day(year + 1, 1, 1).is_some_and(|next| next <= days) {
        year += 1;
    }
    let mut month = 12;
    while day(year, month, 1).is_some_and(|first| first > days) {
        month -= 1;
    }
    let first = day(year, month, 1).unwrap_or(days);
    (year, month, u32::try_from(days - first).unwrap_or(0) + 1)
}

/// A time of day at a scale, rounded; the last tick of a day may round into the next.
pub fn round(ticks: u64, scale: u8) -> u64 {
    let unit = 10_u64.pow(u32::from(7 - scale.min(7)));
    (ticks + unit / 2) / unit * unit
}

/// Reads what T-SQL reads: dates, times, both, with or without an offset.
pub fn parse(text: &str) -> Option<Moment> {
    let text = text.trim();
    let (text, offset) = split_offset(text)?;
    let text = text.trim();
    let mut moment = Moment { day: TO_1900, ticks: 0, offset };
    let (date, time) = match text.find(['T', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None if text.contains(':') => ("", text),
        None => (text, ""),
    };
    if !date.is_empty() {
        moment.day = parse_date(date)?;
    }
    if !time.is_empty() {
        moment.ticks = parse_time(time)?;
    }
    (!date.is_empty() || !time.is_empty()).then_some(moment)
}

/// `…Z`, `… +02:00`; the minus of a date is none.
fn split_offset(text: &str) -> Option<(&str, Option<i16>)> {
    if let Some(rest) = text.strip_suffix('Z') {
        return Some((rest, Some(0)));
    }
    let Some(colon) = text.rfind(':') else { return Some((text, None)) };
    let Some(sign) = text[..colon].rfind(['+', '-']).filter(|sign| text[..*sign].contains(':') && colon - sign == 3) else {
        return Some((text, None));
    };
    let hours: i16 = text[sign + 1..colon].parse().ok()?;
    let minutes: i16 = text[colon + 1..].parse().ok()?;
    let offset = hours * 60 + minutes;
    if offset > 14 * 60 || minutes > 59 {
        return None;
    }
    Some((&text[..sign], Some(if text[sign..].starts_with('-') { -offset } else { offset })))
}

fn parse_date(text: &str) -> Option<i32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let (year, month, day_of_month) = if plain && text.len() == 8 {
        (&text[..4], &text[4..6], &text[6..])
    } else {
        let mut parts = text.split(['-', '/']);
        let three = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || three.0.len() != 4 {
            return None;
        }
        three
    };
    day(year.parse().ok()?, month.parse().ok()?, day_of_month.parse().ok()?)
}

fn parse_time(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let hours: u64 = parts.next()?.parse().ok()?;
    let minutes: u64 = parts.next()?.parse().ok()?;
    let (seconds, fraction) = match parts.next() {
        Some(text) => text.split_once('.').unwrap_or((text, "")),
        None => ("0", ""),
    };
    let seconds: u64 = seconds.parse().ok()?;
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 59 || fraction.len() > 7 {
        return None;
    }
    let ticks: u64 = if fraction.is_empty() { 0 } else { format!("{fraction:0<7}").parse().ok()? };
    Some(((hours * 60 + minutes) * 60 + seconds) * 10_000_000 + ticks)
}

/// `2026-08-05`.
pub fn date_text(day: i32) -> String {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `10:15:30.1234567`, with as many digits as the scale has.
pub fn time_text(ticks: u64, scale: u8) -> String {
    let seconds = ticks / 10_000_000;
    let text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if scale == 0 { text } else { format!("{text}.{}", &format!("{:07}", ticks % 10_000_000)[..usize::from(scale.min(7))]) }
}

/// `+02:00`.
pub fn offset_text(minutes: i16) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

/// A day and ticks moved by minutes.
pub fn shift(day: i32, ticks: u64, minutes: i16) -> (i32, u64) {
    let moved = i128::from(day) * i128::from(DAY) + i128::from(ticks) + i128::from(minutes) * 600_000_000;
    let day = moved.div_euclid(i128::from(DAY));
    (i32::try_from(day).unwrap_or(0), u64::try_from(moved.rem_euclid(i128::from(DAY))).unwrap_or(0))
}

/// 100 ns units as the 1/300 s of `datetime`, rounded.
pub fn to_thirds(ticks: u64) -> u64 {
    (ticks * 3 + 50_000) / 100_000
}

/// 1/300 s as 100 ns units, at the millisecond that SQL Server shows.
pub fn from_thirds(thirds: u32) -> u64 {
    (u64::from(thirds) * 10 + 1) / 3 * 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_one_another() {
        assert_eq!(day(1, 1, 1), Some(0));
        assert_eq!(day(1900, 1, 1), Some(TO_1900));
        assert_eq!(day(9999, 12, 31), Some(LAST_DAY));
        assert_eq!(day(2026, 2, 29), None);
        for days in [0, 58, 59, 365, 366, 730, 1_000_000, 730_000, LAST_DAY] {
            let (year, month, of_month) = civil(days);
            assert_eq!(day(year, month, of_month), Some(days));
        }
    }

    #[test]
    fn texts_are_read_as_they_are_written() {
        let moment = parse("2026-06-23 00:01:05.0900948 -07:00").unwrap();
        assert_eq!(moment.offset, Some(-420));
        assert_eq!(format!("{} {}", date_text(moment.day), time_text(moment.ticks, 7)), "2026-06-23 00:01:05.0900948");
        assert_eq!(parse("2026-08-05T10:15:30").map(|moment| moment.ticks), Some(36_930 * 10_000_000));
        assert_eq!(parse("23:59").map(|moment| (moment.day, moment.ticks)), Some((TO_1900, 86_340 * 10_000_000)));
        assert_eq!(parse("20260805").map(|moment| date_text(moment.day)).as_deref(), Some("2026-08-05"));
        assert_eq!(parse("yesterday"), None);
    }
}
