//! What is known of the rows that were delivered: the dedup window, which is bounded, and what it had no room for.

use std::collections::BTreeMap;

use super::super::position;
use super::super::range::Head;
use super::passed::Passed;
use super::{At, Planner};
use crate::cursor::Position;
use crate::sweep::{Kept, Owed, Window, WindowChange};

/// What a sweep knows at its start of the rows that were delivered, and what it owes.
pub(super) fn known(kept: Kept, cursor: &At, overlap: i64, notes: &BTreeMap<String, String>) -> (Window, Owed) {
    let mut owed = Owed::from_notes(notes, cursor.second);
    let overlap_from = cursor.second.saturating_sub(overlap);
    let older = |of: &Position| position::read(of).map(|at| at.second).filter(|second| *second <= cursor.second);
    let window = match kept {
        Kept::Fresh => return (Window::complete_from(cursor.second), owed),
        Kept::Whole(window) => return (window, owed),
        Kept::Older(window, of) if older(&of).is_some() => window.ignorant_of(older(&of).unwrap_or(cursor.second), cursor.second),
        // What is owed is read again even if it is delivered once more for that: a late row may be among it.
        Kept::Older(..) | Kept::Lost => Window::lost(owed.from().map_or(overlap_from, |from| from.min(overlap_from)), cursor.second),
    };
    owed.restart(overlap_from);
    (window, owed)
}

impl<R: Clone> Planner<R> {
    /// What a page of delivered rows does to the window. The versions of seconds that are still to be read again stay.
    pub(super) fn window_change(&mut self, rows: &[(Head, R)], skipped: &Passed) -> WindowChange {
        let keep_from = self.keep_from();
        let delivered = rows.iter().filter(|(head, _)| head.second >= keep_from).map(|(head, _)| (head.second, head.version()));
        let delivered = delivered.chain(skipped.iter().map(|(second, skipped)| (*second, skipped.version))).collect();
        let change = WindowChange { delivered, forget_before: Some(keep_from), limit: self.settings.window_limit.max(1), refilled: false };
        self.apply(&change);
        change
    }

    /// Keeps the window as the change leaves it, and what it had no room for. A second of which all rows were written longer ago than the
    /// overlap is no loss: none of them can be late any more.
    pub(super) fn apply(&mut self, change: &WindowChange) {
        let needed = self.window.from().max(change.forget_before.unwrap_or(i64::MIN));
        self.window.apply(change);
        let last = self.window.from().saturating_sub(1);
        let can_have_late = self.instance_now.is_some_and(|now| last.saturating_add(self.settings.overlap) > now);
        if self.window.from() > needed && can_have_late {
            self.given_up = self.given_up.max(Some(last));
        }
    }

    /// The last second that was given up since this was asked last: late rows up to there, and within the overlap, are not looked for.
    pub(in super::super) fn given_up(&mut self) -> Option<i64> {
        self.given_up.take()
    }

    /// The second from which on versions are needed: for the overlap, and for what is still to be read again.
    pub(super) fn keep_from(&self) -> i64 {
        let overlap_from = self.cursor.second.saturating_sub(self.settings.overlap);
        self.owed.from().map_or(overlap_from, |owed| owed.min(overlap_from))
    }
}
