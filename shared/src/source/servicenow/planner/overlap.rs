//! The re-read of an overlap too large to ride in the first request: one page per sweep, in turn.
//!
//! Only the cursor fields and the modification count are read; versions that the window does not know are then fetched
//! whole and delivered. The same pass refills a window that was lost.

use super::super::range::Range;
use super::{Answer, At, Counts, Outcome, Parts, Planner, Step, Sweep};
use crate::sweep::{Stretch, WindowChange};

/// Up to this many unknown rows are fetched by id; more are fetched by the range that they came in. Ids of 32 characters
/// keep the request's address below 2,048.
const BY_ID: usize = 40;

/// The most pages that are asked for at once to get past hidden rows.
const MOST_PAGES: u32 = 1 << 12;

impl<R: Clone> Planner<R> {
    /// The re-read that this sweep still has to do, up to the high-water mark. What is owed above it, after a clock was set
    /// back, stays owed: the forward part has left those rows to a later sweep.
    pub(super) fn overlap_step(&mut self, hi: Option<i64>) -> Option<Step<R>> {
        // Eviction may have moved the edge meanwhile; what lies before it cannot be told from new rows.
        self.owed.forget_before(self.window.from());
        let Stretch { from, after, to } = self.owed.next()?;
        let to = hi.map_or(to, |hi| hi.min(to));
        if to < from {
            return None;
        }
        let range = if after.is_empty() { Range::from(from, Some(to)) } else { Range::rest_of(from, &after) };
        Some(Step::Versions { range, to, pages: 1 })
    }

    /// The versions of one page of the overlap.
    pub(super) fn versions(
        &mut self,
        mut sweep: Sweep<R>,
        (range, to): (Range, i64),
        pages: u32,
        limit: u32,
        answer: &Answer<R>,
    ) -> Outcome<R> {
        if answer.rows.is_empty() && !fits(answer, limit) && pages < MOST_PAGES {
            // Hidden whole. Versions are small, so that a larger page costs less than to look for the end of the hidden rows.
            sweep.step = Step::Versions { range, to, pages: pages.saturating_mul(4) };
            self.sweep = Some(sweep);
            return Outcome::Continue;
        }
        let read = read_of(&range, to, limit, answer);
        let unknown: Vec<_> = answer.rows.iter().filter(|(head, _)| !self.window.contains(head.second, &head.version())).collect();
        if unknown.is_empty() {
            return self.reread_done(&sweep, Some(read), Vec::new(), answer.rows.len() as u64);
        }
        let ids = if unknown.len() <= BY_ID { unknown.iter().map(|(head, _)| head.id.clone()).collect() } else { Vec::new() };
        sweep.step = Step::Unknown { span: (range.first_second(), to), range, pages, ids, read };
        self.sweep = Some(sweep);
        Outcome::Continue
    }

    /// Rows of the overlap, whole. One that has changed since lies ahead of the cursor and did not come.
    pub(super) fn unknown(&mut self, sweep: &Sweep<R>, (from, to): (i64, i64), read: Read, answer: Answer<R>) -> Outcome<R> {
        let came = answer.rows.len() as u64;
        let mut new: Vec<_> = answer
            .rows
            .into_iter()
            .filter(|(head, _)| (from..=to).contains(&head.second) && !self.window.contains(head.second, &head.version()))
            .collect();
        let suppressed = came - new.len() as u64;
        let mut read = Some(read);
        if let Some(left) = self.rows_left
            && new.len() as u64 > left
        {
            // What does not fit is still unknown when this page of the overlap is read again.
            new.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            read = None;
        }
        self.reread_done(sweep, read, new, suppressed)
    }

    /// `read`: up to where this page has read.
    fn reread_done(&mut self, sweep: &Sweep<R>, read: Option<Read>, rows: Vec<(super::Head, R)>, suppressed: u64) -> Outcome<R> {
        let delivered = rows.iter().map(|(head, _)| (head.second, head.version())).collect();
        let refilled = match read {
            Some(Read::Through(second)) => self.owed.read_through(second),
            Some(Read::To(at)) => {
                self.owed.read_to(at.second, &at.id);
                false
            }
            None => false,
        };
        let change = WindowChange { delivered, refilled, limit: self.settings.window_limit.max(1), forget_before: None };
        self.window.apply(&change);
        let window = self.settle_window(change);
        let end = Some(self.end(sweep));
        let carried = sweep.carried;
        self.deliver(Parts { rows, counts: Counts { suppressed: carried.suppressed + suppressed, ..carried }, window, end })
    }

    /// At the end of a sweep only the overlap before the cursor is kept, and what is still owed.
    pub(super) fn settle_window(&mut self, mut change: WindowChange) -> WindowChange {
        change.forget_before = Some(self.keep_from());
        self.window.apply(&change);
        change
    }
}

/// How far a page of the overlap has read.
#[derive(Debug, Clone)]
pub(super) enum Read {
    /// To this row.
    To(At),
    /// To the end of this second.
    Through(i64),
}

/// How far an answer to a request for `range`, in a stretch that ends with second `to`, has read.
fn read_of<R>(range: &Range, to: i64, limit: u32, answer: &Answer<R>) -> Read {
    match (range, answer.rows.last()) {
        (Range::Second { at, .. }, _) if fits(answer, limit) => Read::Through(*at),
        (Range::Seconds { .. }, _) if fits(answer, limit) => Read::Through(to),
        (_, Some((last, _))) => Read::To(At { second: last.second, id: last.id.clone() }),
        // More hidden rows than can be asked for at once: this stretch is given up.
        (_, None) => Read::Through(to),
    }
}

/// Whether the answer covers its range to the end.
fn fits<R>(answer: &Answer<R>, limit: u32) -> bool {
    match answer.total {
        Some(total) => total <= u64::from(limit),
        None => answer.rows.is_empty() && !answer.next_link,
    }
}
