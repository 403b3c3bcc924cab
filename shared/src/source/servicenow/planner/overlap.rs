//! The re-read of an overlap too large to ride in the first request: one page per sweep, in turn.
//!
//! Only the cursor fields and the modification count are read; versions that the window does not know are then fetched
//! whole and delivered. The same pass refills a window that was lost.

use super::super::range::Range;
use super::{Answer, At, Counts, Outcome, Parts, Planner, Step, Sweep};
use crate::sweep::WindowChange;

/// Up to this many unknown rows are fetched by id; more are fetched by the range that they came in. Ids of 32 characters
/// keep the request's address below 2,048.
const BY_ID: usize = 40;

impl<R: Clone> Planner<R> {
    /// The re-read that this sweep still has to do.
    pub(super) fn overlap_step(&mut self, sweep: &mut Sweep<R>) -> Option<Step<R>> {
        let (from, to) = sweep.pending.take()?;
        // Eviction may have moved the edge meanwhile; what lies before it cannot be told from new rows.
        let from = from.max(self.window.from());
        if from > to {
            self.reread = None;
            return None;
        }
        let at = self.reread.clone().filter(|at| (from..=to).contains(&at.second)).unwrap_or(At { second: from, id: String::new() });
        let range = if at.id.is_empty() { Range::from(at.second, Some(to)) } else { Range::rest_of(at.second, &at.id) };
        sweep.pending = Some((from, to));
        Some(Step::Versions { range })
    }

    /// The versions of one page of the overlap.
    pub(super) fn versions(&mut self, mut sweep: Sweep<R>, range: Range, limit: u32, answer: &Answer<R>) -> Outcome<R> {
        let next = self.reread_after(&sweep, &range, limit, answer);
        let unknown: Vec<_> = answer.rows.iter().filter(|(head, _)| !self.window.contains(head.second, &head.version())).collect();
        if unknown.is_empty() {
            return self.reread_done(sweep, next, Vec::new(), answer.rows.len() as u64);
        }
        let ids = if unknown.len() <= BY_ID { unknown.iter().map(|(head, _)| head.id.clone()).collect() } else { Vec::new() };
        sweep.step = Step::Unknown { range, ids, next };
        self.sweep = Some(sweep);
        Outcome::Continue
    }

    /// Where the next sweep goes on; `None` if the overlap has been read to its end.
    fn reread_after(&self, sweep: &Sweep<R>, range: &Range, limit: u32, answer: &Answer<R>) -> Option<At> {
        let end = sweep.pending.map_or(i64::MIN, |(_, to)| to);
        let fits = answer.total.is_some_and(|total| total <= u64::from(limit)) || (answer.total.is_none() && answer.rows.is_empty());
        match (range, answer.rows.last()) {
            (Range::Second { at, .. }, _) if fits => (*at < end).then(|| At { second: at.saturating_add(1), id: String::new() }),
            (Range::Seconds { .. }, _) if fits => None,
            (_, Some((last, _))) => Some(At { second: last.second, id: last.id.clone() }),
            // A page of the overlap that is hidden whole: this pass ends, the next one begins anew.
            (_, None) => None,
        }
    }

    /// Rows of the overlap, whole. One that has changed since lies ahead of the cursor and did not come.
    pub(super) fn unknown(&mut self, sweep: Sweep<R>, next: Option<At>, answer: Answer<R>) -> Outcome<R> {
        let (from, to) = sweep.pending.unwrap_or((i64::MIN, i64::MAX));
        let read = answer.rows.len() as u64;
        let mut new: Vec<_> = answer
            .rows
            .into_iter()
            .filter(|(head, _)| (from..=to).contains(&head.second) && !self.window.contains(head.second, &head.version()))
            .collect();
        let suppressed = read - new.len() as u64;
        let mut next = next;
        if let Some(left) = self.rows_left
            && new.len() as u64 > left
        {
            // What does not fit is still unknown when this page of the overlap is read again.
            new.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            next = self.reread.clone().or(Some(At { second: from, id: String::new() }));
        }
        self.reread_done(sweep, next, new, suppressed)
    }

    fn reread_done(&mut self, mut sweep: Sweep<R>, next: Option<At>, rows: Vec<(super::Head, R)>, suppressed: u64) -> Outcome<R> {
        let delivered = rows.iter().map(|(head, _)| (head.second, head.version())).collect();
        let change = WindowChange { delivered, refilled: next.is_none(), limit: self.settings.window_limit.max(1), forget_before: None };
        self.window.apply(&change);
        self.reread = next;
        sweep.pending = None;
        let window = self.settle_window(change);
        let end = Some(self.end(&sweep));
        let carried = sweep.carried;
        self.deliver(Parts { rows, counts: Counts { suppressed: carried.suppressed + suppressed, ..carried }, window, end })
    }

    /// At the end of a sweep only the overlap before the cursor is kept.
    pub(super) fn settle_window(&mut self, mut change: WindowChange) -> WindowChange {
        change.forget_before = Some(self.cursor.second.saturating_sub(self.settings.overlap));
        self.window.apply(&change);
        change
    }
}
