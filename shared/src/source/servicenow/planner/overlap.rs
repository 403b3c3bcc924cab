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

/// The most pages that are asked for at once to get past hidden rows.
const MOST_PAGES: u32 = 1 << 12;

impl<R: Clone> Planner<R> {
    /// The re-read that this sweep still has to do.
    pub(super) fn overlap_step(&mut self, sweep: &mut Sweep<R>) -> Option<Step<R>> {
        let (from, to) = sweep.pending.take()?;
        // Eviction may have moved the edge meanwhile; what lies before it cannot be told from new rows.
        let from = from.max(self.window.from());
        if from > to {
            (self.reread, self.again) = (None, None);
            return None;
        }
        let at = self.reread.clone().filter(|at| (from..=to).contains(&at.second)).unwrap_or(At { second: from, id: String::new() });
        let range = if at.id.is_empty() { Range::from(at.second, Some(to)) } else { Range::rest_of(at.second, &at.id) };
        sweep.pending = Some((from, to));
        Some(Step::Versions { range, pages: 1 })
    }

    /// The versions of one page of the overlap.
    pub(super) fn versions(&mut self, mut sweep: Sweep<R>, range: Range, pages: u32, limit: u32, answer: &Answer<R>) -> Outcome<R> {
        if answer.rows.is_empty() && !fits(answer, limit) && pages < MOST_PAGES {
            // Hidden whole. Versions are small, so that a larger page costs less than to look for the end of the hidden rows.
            sweep.step = Step::Versions { range, pages: pages.saturating_mul(4) };
            self.sweep = Some(sweep);
            return Outcome::Continue;
        }
        let next = self.reread_after(&sweep, &range, limit, answer);
        let unknown: Vec<_> = answer.rows.iter().filter(|(head, _)| !self.window.contains(head.second, &head.version())).collect();
        if unknown.is_empty() {
            return self.reread_done(sweep, next, Vec::new(), answer.rows.len() as u64);
        }
        let ids = if unknown.len() <= BY_ID { unknown.iter().map(|(head, _)| head.id.clone()).collect() } else { Vec::new() };
        sweep.step = Step::Unknown { range, pages, ids, next };
        self.sweep = Some(sweep);
        Outcome::Continue
    }

    /// Where the next sweep goes on; `None` if the overlap has been read to its end.
    fn reread_after(&self, sweep: &Sweep<R>, range: &Range, limit: u32, answer: &Answer<R>) -> Option<At> {
        let end = sweep.pending.map_or(i64::MIN, |(_, to)| to);
        let fits = fits(answer, limit);
        match (range, answer.rows.last()) {
            (Range::Second { at, .. }, _) if fits => (*at < end).then(|| At { second: at.saturating_add(1), id: String::new() }),
            (Range::Seconds { .. }, _) if fits => None,
            (_, Some((last, _))) => Some(At { second: last.second, id: last.id.clone() }),
            // More hidden rows than can be asked for at once: this pass ends, the next one begins anew.
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
        let to = sweep.pending.take().map_or(self.cursor.second, |(_, to)| to);
        // The rest of this pass, or the next one, must not depend on where the cursor is by then.
        self.overdue = match &next {
            Some(at) => Some((at.second, to)),
            None => self.again.take().map(|from| (from, to)),
        };
        self.reread = next;
        let window = self.settle_window(change);
        let end = Some(self.end(&sweep));
        let carried = sweep.carried;
        self.deliver(Parts { rows, counts: Counts { suppressed: carried.suppressed + suppressed, ..carried }, window, end })
    }

    /// A sweep begins while a pass is under way: what of its overlap the pass has gone by is read again by the next pass.
    pub(super) fn go_round_again(&mut self) {
        let overlap_from = self.cursor.second.saturating_sub(self.settings.overlap);
        if self.reread.as_ref().is_some_and(|at| at.second >= overlap_from) {
            self.again = Some(self.again.map_or(overlap_from, |again| again.min(overlap_from)));
        }
    }

    /// At the end of a sweep only the overlap before the cursor is kept, and what is still owed.
    pub(super) fn settle_window(&mut self, mut change: WindowChange) -> WindowChange {
        change.forget_before = Some(self.keep_from(None));
        self.window.apply(&change);
        change
    }
}

/// Whether the answer covers its range to the end.
fn fits<R>(answer: &Answer<R>, limit: u32) -> bool {
    match answer.total {
        Some(total) => total <= u64::from(limit),
        None => answer.rows.is_empty() && !answer.next_link,
    }
}
