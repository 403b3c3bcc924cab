//! A cursor that stands where no row is any more.
//!
//! An instance that is cloned over, or restored, has rows that are older than what was delivered. The sweep finds nothing
//! then, tick after tick, and looks like one that is up to date. So when a sweep that began caught up is through and has seen no
//! row at all, not even those that it reads again, and the instance counts none either, one more request asks for the
//! newest row before the cursor. Deleted rows look the same, so it is said and not held against the table: rows that
//! are written from now on are delivered.
//!
//! The request is made once per position of the cursor. An idle table whose last rows are still there never makes it.

use super::planner::At;
use super::time;

/// The name under which the source keeps what it has looked at.
const NOTE: &str = "ahead";

/// The name under which `status` finds the code of what is to be known.
const REMARK: &str = "remark";

/// The stable code.
pub(super) const CODE: &str = "Source.CursorAhead";

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
    pub(super) fn read(notes: &std::collections::BTreeMap<String, String>) -> Option<Self> {
        let (newest, cursor) = notes.get(NOTE)?.split_once('|')?;
        Some(Self { cursor: At::decode(cursor)?, newest: newest.parse().ok() })
    }

    /// Keeps the look beside the cursor that it belongs to.
    pub(super) fn write(&self, cursor: &At, notes: &mut std::collections::BTreeMap<String, String>) {
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
            "{connector}/{alias} (table {table}): the cursor stands at {}, and no row is there or after it any more; the newest one is of {newest}. Either \
             the last rows were deleted, or the instance was cloned over or restored. New rows are delivered as ever. After a clone, \
             `tablesweep cursor rewind --connector {connector} --table {alias} --to \"{newest}\"` or an earlier time delivers what differs",
            time::format(self.cursor.second)
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
}
