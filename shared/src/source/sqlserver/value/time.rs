//! Times off the wire in milliseconds.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use tiberius::time::{Date, DateTime, DateTime2, SmallDateTime, Time};

const DAY_MS: i64 = 86_400_000;
/// Days from 0001-01-01 to 1970-01-01.
const EPOCH_FROM_YEAR_1: i64 = 719_162;
/// Days from 1900-01-01 to 1970-01-01.
const EPOCH_FROM_1900: i64 = 25_567;

pub(super) fn date_ms(date: Date) -> i64 {
    (i64::from(date.days()) - EPOCH_FROM_YEAR_1) * DAY_MS
}

/// Units of 10^-scale seconds, rounded down to milliseconds.
pub(super) fn time_ms(time: Time) -> i64 {
    let (units, scale) = (u128::from(time.increments()), u32::from(time.scale()));
    let ms = match scale {
        0..=3 => units * 10_u128.pow(3 - scale),
        // A divisor that is out of reach leaves nothing of 64 bits.
        _ => 10_u128.checked_pow(scale - 3).map_or(0, |divisor| units / divisor),
    };
    // A day and far more fits; the bound keeps a nonsensical value from overflowing the sums.
    i64::try_from(ms).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

/// The time of day is never negative, so rounding it down rounds the whole down, before 1970 too.
pub(super) fn datetime2_ms(time: DateTime2) -> i64 {
    date_ms(time.date()) + time_ms(time.time())
}

/// A tick is 10/3 ms: .003, .007, .010 are what the server and its tools show for 1, 2 and 3.
pub(super) fn datetime_ms(time: DateTime) -> i64 {
    let ms = (i64::from(time.seconds_fragments()) * 10 + 1) / 3;
    (i64::from(time.days()) - EPOCH_FROM_1900) * DAY_MS + ms
}

/// The driver calls them fragments; they are minutes (MS-TDS 2.2.5.5.1.8).
pub(super) fn smalldatetime_ms(time: SmallDateTime) -> i64 {
    (i64::from(time.days()) - EPOCH_FROM_1900) * DAY_MS + i64::from(time.seconds_fragments()) * 60_000
}

/// The instant at which clocks of `zone` show `local`, both in milliseconds.
///
/// In a gap the offset before it is applied, which moves the time on by the gap's length. Of two equal times the first
/// has the offset before the change as well.
pub(super) fn instant(local: i64, zone: &TimeZone) -> i64 {
    if *zone == TimeZone::UTC {
        return local;
    }
    // The edges of jiff's range lie within a day of the last days that a column can hold. No zone changes its offset there.
    let (first, last) = (Timestamp::MIN.as_millisecond() + DAY_MS, Timestamp::MAX.as_millisecond() - DAY_MS);
    let Ok(near) = Timestamp::from_millisecond(local.clamp(first, last)) else { return local };
    let shown = Offset::UTC.to_datetime(near);
    let offset = match zone.to_ambiguous_timestamp(shown).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
    };
    local - i64::from(offset.seconds()) * 1000
}
