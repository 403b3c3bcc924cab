//! How far behind a table is, as its stored item tells.
//!
//! Only what is stored counts: a page that was read and not delivered, or delivered and not committed, brings nobody closer to the
//! source. So a table whose sweeps fail falls behind by the second, whatever they have read, and `status` and the result of a sweep
//! say the same.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{Item, Phase, Progress};

/// By so much the source's time may be wrong here: it is told in whole seconds, and its nodes' clocks differ.
const INEXACT_MS: i64 = 10_000;

impl Item {
    /// Seconds between the source's now and what has been delivered up to; `None` where the item does not tell. `now_ms`: the local
    /// time in epoch milliseconds; the source's differs from it as it was last seen to.
    pub fn lag_seconds(&self, now_ms: i64) -> Option<i64> {
        let progress = &self.progress;
        let now_ms = now_ms.saturating_add(progress.clock_difference_ms.unwrap_or(0));
        // A cursor ahead of the source's time has seen nothing of what lies between.
        let at_cursor = cursor_ms(progress).filter(|at| *at <= now_ms.saturating_add(INEXACT_MS));
        let seen_ms = match progress.phase {
            // It has seen everything up to `swept_to`, and is past it while it reads what came since.
            Phase::Stream => at_cursor.max(progress.swept_to_ms),
            // It has seen everything up to its cursor. A source without a time in its cursor knows when it was last caught up.
            Phase::Backfill => at_cursor.or(progress.swept_to_ms),
        };
        Some(now_ms.saturating_sub(seen_ms?).max(0) / 1000)
    }
}

/// The time in the cursor, where it has one, in epoch milliseconds.
fn cursor_ms(progress: &Progress) -> Option<i64> {
    let civil: DateTime = progress.cursor.as_ref()?.get("timestamp")?.parse().ok()?;
    TimeZone::UTC.to_timestamp(civil).ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use super::super::{Identity, Position};
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    fn lag(phase: Phase, cursor_ago: Option<i64>, swept_ago: Option<i64>) -> Option<i64> {
        let at = |ago: i64| Timestamp::from_millisecond(NOW - ago * 1000).expect("a time").strftime("%Y-%m-%d %H:%M:%S").to_string();
        let progress = Progress {
            phase,
            cursor: cursor_ago.map(|ago| Position::new([("timestamp", Some(at(ago))), ("id", Some("1".to_owned()))])),
            swept_to_ms: swept_ago.map(|ago| NOW - ago * 1000),
            ..Progress::default()
        };
        let mut item = Item::new(Identity {
            connector: "snow".to_owned(),
            alias: "inc".to_owned(),
            source: "servicenow".to_owned(),
            instance: "dev1".to_owned(),
            table: "incident".to_owned(),
            fingerprint: "f".to_owned(),
            field: "sys_updated_on".to_owned(),
            id_field: "sys_id".to_owned(),
        });
        item.progress = progress;
        item.lag_seconds(NOW)
    }

    #[test]
    fn what_is_delivered_or_swept_last_counts_and_a_cursor_ahead_of_the_time_has_swept_nothing() {
        use Phase::{Backfill, Stream};
        let cases = [
            (Stream, Some(3600), Some(9), Some(9)),
            (Stream, Some(100), Some(3600), Some(100)),
            (Stream, Some(-7200), Some(9), Some(9)),
            (Stream, Some(50), None, Some(50)),
            (Stream, Some(-7200), None, None),
            (Stream, Some(-2), None, Some(0)),
            (Backfill, Some(-7200), None, None),
            (Stream, None, Some(9), Some(9)),
            (Backfill, Some(3600), Some(9), Some(3600)),
            (Backfill, None, Some(9), Some(9)),
            (Backfill, None, None, None),
        ];
        for (phase, cursor, swept, expected) in cases {
            assert_eq!(lag(phase, cursor, swept), expected, "{phase:?}, cursor {cursor:?}, swept {swept:?}");
        }
    }
}
