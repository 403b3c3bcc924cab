//! A cursor that stands where no row is, or where none can be yet.
//!
//! Two things bring one there, and in both the sweep finds nothing, tick after tick, and looks like one that is up to date.
//!
//! * An instance was cloned over, or restored: its rows are older than what was delivered ([`Look`]). So when a sweep that
//!   began caught up is through, has reached the cursor and has seen no row at all, not even those that it reads again, and
//!   the instance counts none either, one more request asks for the newest row. One that is older than the cursor shows that nothing is
//!   left where the cursor stands. Deleted rows look the same, so it is said and not held against the table: rows that are written from
//!   now on are delivered. A newer one has changed, or come, too lately for this sweep, and is delivered by the next. The request is
//!   made once per position of the cursor. An idle table whose last rows are still there never makes it.
//! * The cursor lies ahead of the instance's clock ([`Future`]): the clock was ahead when the last rows were stamped and was
//!   set right since, or somebody set a start or a cursor in the future. Rows that are written now lie *behind* the cursor,
//!   and are lost until the clock gets there. It takes no request to know, and is said by every sweep for as long as it is so.

use std::collections::BTreeMap;

use super::planner::At;
use super::time;

/// The name under which the source keeps what it has looked at.
const NOTE: &str = "ahead";

/// The name under which `status` finds the code of what is to be known.
const REMARK: &str = crate::cursor::REMARK_NOTE;

/// The stable codes.
pub(super) const CODE: &str = "Source.CursorAhead";
pub(super) const FUTURE_CODE: &str = "Source.CursorInFuture";

/// Seconds by which clocks differ and no word is lost about it: those of an instance's nodes, and one that is being set right.
const ORDINARY: i64 = 10;

/// What the answers of one sweep have shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sight {
    answers: u32,
    has_seen: bool,
}

impl Sight {
    /// An answer came: the rows that it showed, and how many the instance counted.
    pub(super) fn saw(&mut self, visible: u64, total: Option<u64>) {
        self.answers += 1;
        // Where nothing is counted, hidden rows may be there.
        self.has_seen |= visible > 0 || total != Some(0);
    }

    /// Whether nothing lies in all that was asked for.
    pub(super) fn is_nothing(self) -> bool {
        self.answers > 0 && !self.has_seen
    }
}

/// The last look: the cursor that it was for, and the newest row that was found before that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) cursor: At,
    pub(super) newest: Option<i64>,
}

impl Look {
    pub(super) fn read(notes: &BTreeMap<String, String>) -> Option<Self> {
        let (newest, cursor) = notes.get(NOTE)?.split_once('|')?;
        Some(Self { cursor: At::decode(cursor)?, newest: newest.parse().ok() })
    }

    /// Keeps the look beside the cursor that it belongs to.
    pub(super) fn write(&self, cursor: &At, notes: &mut BTreeMap<String, String>) {
        if self.cursor != *cursor {
            return;
        }
        let newest = self.newest.map_or_else(String::new, |newest| newest.to_string());
        notes.insert(NOTE.to_owned(), format!("{newest}|{}", cursor.encode()));
        if self.newest.is_some() {
            notes.insert(REMARK.to_owned(), CODE.to_owned());
        }
    }

    /// In words; `None` if the rows before the cursor say nothing.
    pub(super) fn text(&self, connector: &str, alias: &str, table: &str) -> Option<String> {
        let newest = time::format(self.newest?);
        Some(format!(
            "{connector}/{alias} (table {table}): the cursor stands at {}, and no row is from there up to now any more; the newest one is of {newest}. \
             Either the last rows were deleted, or the instance was cloned over or restored. Rows that are written from now on are delivered. After a \
             clone, `tablesweep cursor rewind --connector {connector} --table {alias} --to \"{newest}\"` or an earlier time delivers what differs",
            time::format(self.cursor.second)
        ))
    }
}

/// A cursor ahead of a clock, in epoch seconds both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Future {
    cursor: i64,
    now: i64,
}

impl Future {
    /// A cursor in second `cursor` at the time `now`, if rows that are written now are not found from there: not by the overlap
    /// either, and by more than clocks differ ordinarily.
    pub(super) fn of(cursor: i64, now: i64, overlap: i64) -> Option<Self> {
        let unseen = cursor.saturating_sub(overlap).saturating_sub(now);
        (unseen > ORDINARY).then_some(Self { cursor, now })
    }

    /// Says it in `status`.
    pub(super) fn write(self, notes: &mut BTreeMap<String, String>) {
        notes.insert(REMARK.to_owned(), FUTURE_CODE.to_owned());
    }

    /// How far ahead it is.
    pub(super) fn length(self) -> String {
        length(self.cursor.saturating_sub(self.now))
    }

    /// In words.
    pub(super) fn text(self, connector: &str, alias: &str, table: &str) -> String {
        let (cursor, now, length) = (time::format(self.cursor), time::format(self.now), self.length());
        format!(
            "{connector}/{alias} (table {table}): the cursor stands at {cursor}, {length} ahead of the instance's clock ({now}). Rows that are written \
             until then lie behind it and are not delivered. If the clock was ahead and was set right, or start.timestamp or a command named a wrong \
             time, `tablesweep cursor rewind --connector {connector} --table {alias} --to \"{now}\"` or an earlier time delivers what is written from then on"
        )
    }
}

/// A length of time in its largest unit, rounded down; from two of it on.
fn length(seconds: i64) -> String {
    let units = [("days", 86_400), ("h", 3_600), ("min", 60)];
    let fits = units.into_iter().find(|(_, unit)| seconds >= 2 * unit);
    fits.map_or_else(|| format!("{seconds} s"), |(name, unit)| format!("{} {name}", seconds / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_is_kept_with_its_cursor_and_with_no_other() {
        let cursor = At { second: 7, id: "a|b".to_owned() };
        for newest in [Some(-3), None] {
            let look = Look { cursor: cursor.clone(), newest };
            let mut notes = BTreeMap::new();
            look.write(&cursor, &mut notes);
            assert_eq!(Look::read(&notes), Some(look.clone()));
            assert_eq!(notes.contains_key(REMARK), newest.is_some());
            let mut moved = BTreeMap::new();
            look.write(&At { second: 8, ..cursor.clone() }, &mut moved);
            assert!(moved.is_empty());
        }
    }

    #[test]
    fn one_row_or_one_count_is_something() {
        let saw = |answers: &[(u64, Option<u64>)]| {
            let mut sight = Sight::default();
            answers.iter().for_each(|(visible, total)| sight.saw(*visible, *total));
            sight.is_nothing()
        };
        assert!(saw(&[(0, Some(0)), (0, Some(0))]));
        for something in [&[][..], &[(1, Some(1))], &[(0, Some(3))], &[(0, None)], &[(0, Some(0)), (2, Some(2))]] {
            assert!(!saw(something), "{something:?}");
        }
    }

    #[test]
    fn seconds_ahead_of_a_clock_are_ordinary_and_more_than_the_overlap_covers_is_not() {
        for (ahead, overlap, is_said) in
            [(0, 2, false), (12, 2, false), (13, 2, true), (13, 600, false), (7200, 600, true), (i64::MAX, 0, true)]
        {
            assert_eq!(Future::of(1_000_i64.saturating_add(ahead), 1_000, overlap).is_some(), is_said, "{ahead} s, overlap {overlap} s");
        }
        assert_eq!([119, 120, 7_199, 7_200, 172_799, 172_800].map(length), ["119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]);
    }
}
