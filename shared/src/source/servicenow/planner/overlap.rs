//! The re-read of an overlap too large to ride in the first request: one page per sweep, in turn.
//!
//! Only the cursor fields and the modification count are read; versions that the window does not know are then fetched
//! whole and delivered, at most a page of them. The same pass refills a window that was lost.
//!
//! A part of the overlap counts as read only as far as its unknown rows have come. The second request may be answered with less than
//! the first has shown: it is asked for smaller when it was too large, the instance may cut it, and rows that appeared between the
//! two push others off its end. What did not come is left to the next sweep.

use super::super::range::{Head, Range};
use super::passed::rows_of;
use super::{Answer, At, Outcome, Parts, Planner, Step, Sweep};
use crate::sweep::{Stretch, WindowChange};

/// Up to this many unknown rows are fetched by id; more are fetched by the range that they came in.
const BY_ID: usize = 40;

/// The most characters of ids in one request, commas included. It keeps the request's address below 2,048.
const BY_ID_LENGTH: usize = BY_ID * 33;

/// The most pages that are asked for at once to get past hidden rows.
pub(super) const MOST_PAGES: u32 = 1 << 12;

/// A page of the re-read.
#[derive(Debug, Clone)]
pub(super) struct Reread {
    pub(super) range: Range,
    /// The last second of the stretch.
    pub(super) to: i64,
    /// How many times the size of a page is asked for.
    pub(super) pages: u32,
}

/// How far a page of the overlap has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    /// To this row.
    To(At),
    /// To the end of this second.
    Through(i64),
}

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
        Some(Step::Versions(Reread { range, to, pages: 1 }))
    }

    /// The versions of one page of the overlap.
    pub(super) fn versions(&mut self, mut sweep: Sweep<R>, ask: Reread, limit: u32, answer: &Answer<R>) -> Outcome<R> {
        let whole = self.own_limit.spares(answer, limit);
        if answer.rows.is_empty() && !whole && ask.pages < MOST_PAGES {
            // Hidden whole. Versions are small, so that a larger page costs less than to look for the end of the hidden rows.
            sweep.step = Step::Versions(ask.wider());
            self.sweep = Some(sweep);
            return Outcome::Continue;
        }
        // One that is known by its whole content only was counted when it was read whole, or is not told from those.
        let skipped = answer.skipped.iter().filter(|skipped| skipped.is_known_by_its_cursor()).cloned().collect();
        sweep.passed = self.met_first(ask.range.first_second(), ask.to, &answer.rows, skipped);
        let heads: Vec<&Head> = answer.rows.iter().map(|(head, _)| head).collect();
        let read = ask.read(whole, heads.last().copied());
        let is_unknown = |head: &&&Head| sweep.hi.is_none_or(|hi| head.second <= hi) && !self.window.contains(head.second, &head.version());
        let unknown: Vec<&Head> = heads.iter().filter(is_unknown).copied().collect();
        let Some(first) = unknown.first() else {
            return self.reread_done(&sweep, &ask, Some(read), Vec::new(), heads.len() as u64);
        };
        let by_id = by_id(&unknown);
        let are_many = unknown.len() > BY_ID && self.limit() as usize > BY_ID;
        // Past hidden rows a range is no help: they would be the first of it again.
        sweep.step = if by_id.is_empty() || (are_many && ask.pages == 1) {
            let before = heads.iter().take_while(|head| head != &first).last().copied();
            Step::UnknownIn(ask.beginning_at(before, first))
        } else {
            let read = if by_id.len() < unknown.len() { by_id.last().cloned().map_or(read, Read::To) } else { read };
            Step::UnknownOf { ask, rows: by_id, read }
        };
        self.sweep = Some(sweep);
        Outcome::Continue
    }

    /// Unknown rows that were asked for by id, `asked` of them. `read`: how far the page has read with all of them.
    pub(super) fn unknown_of(
        &mut self,
        sweep: &Sweep<R>,
        ask: &Reread,
        (rows, asked, read): (&[At], usize, Read),
        limit: u32,
        answer: Answer<R>,
    ) -> Outcome<R> {
        let read = rows.get(asked.wrapping_sub(1)).filter(|_| asked < rows.len()).cloned().map_or(read, Read::To);
        // One that has changed since lies ahead of the cursor, and is not counted any more.
        let is_whole = !answer.next_link && answer.total.map_or(answer.visible() < u64::from(limit), |total| total <= answer.visible());
        let cut_at = answer.rows.last().filter(|_| !is_whole).map(|(head, _)| Read::To(At::of(head)));
        self.take(sweep, ask, cut_at.unwrap_or(read), answer)
    }

    /// Unknown rows that were asked for by the range that they came in.
    pub(super) fn unknown_in(&mut self, mut sweep: Sweep<R>, ask: Reread, limit: u32, answer: Answer<R>) -> Outcome<R> {
        let whole = self.own_limit.spares(&answer, limit);
        if answer.rows.is_empty() && !whole && ask.pages < MOST_PAGES {
            sweep.step = Step::UnknownIn(ask.wider());
            self.sweep = Some(sweep);
            return Outcome::Continue;
        }
        let read = ask.read(whole, answer.rows.last().map(|(head, _)| head));
        self.take(&sweep, &ask, read, answer)
    }

    /// Delivers the rows of an answer that are not known: at most a page of them, and none above the high-water mark. `read`: how
    /// far the answer goes.
    fn take(&mut self, sweep: &Sweep<R>, ask: &Reread, read: Read, answer: Answer<R>) -> Outcome<R> {
        let to = sweep.hi.map_or(ask.to, |hi| hi.min(ask.to));
        let most = self.rows_left.unwrap_or(u64::MAX).min(u64::from(self.page_size));
        let (mut new, mut suppressed, mut last, mut cut) = (Vec::new(), 0, None, false);
        for (head, row) in answer.rows {
            let is_known = self.window.contains(head.second, &head.version());
            cut = !is_known && new.len() as u64 >= most;
            if cut || head.second > to {
                break;
            }
            last = Some(At::of(&head));
            if is_known { suppressed += 1 } else { new.push((head, row)) }
        }
        // What did not fit is still unknown when the next sweep goes on there.
        let read = if cut { last.map(Read::To) } else { Some(read) };
        self.reread_done(sweep, ask, read, new, suppressed)
    }

    /// `read`: up to where this page has read.
    fn reread_done(&mut self, sweep: &Sweep<R>, ask: &Reread, read: Option<Read>, rows: Vec<(Head, R)>, suppressed: u64) -> Outcome<R> {
        let delivered = rows.iter().map(|(head, _)| (head.second, head.version()));
        let delivered = delivered.chain(sweep.passed.iter().map(|(second, skipped)| (*second, skipped.version))).collect();
        let refilled = match read.and_then(|read| read.up_to(sweep.hi, ask.range.first_second())) {
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
        let mut counts = sweep.carried;
        counts.suppressed += suppressed;
        self.deliver(Parts { rows, skipped: rows_of(sweep.passed.clone()), counts, window, end })
    }

    /// At the end of a sweep only the overlap before the cursor is kept, and what is still owed.
    pub(super) fn settle_window(&mut self, mut change: WindowChange) -> WindowChange {
        change.forget_before = Some(self.keep_from());
        self.window.apply(&change);
        change
    }
}

impl Reread {
    /// The same, asked for larger.
    fn wider(&self) -> Self {
        Self { pages: self.pages.saturating_mul(4), ..self.clone() }
    }

    /// The same from the row `first` on, which follows `before`.
    fn beginning_at(&self, before: Option<&Head>, first: &Head) -> Self {
        let range = match before {
            None => self.range.clone(),
            Some(before) if before.second == first.second => Range::rest_of(before.second, &before.id),
            Some(_) => Range::from(first.second, Some(self.to)),
        };
        Self { range, ..self.clone() }
    }

    /// How far an answer whose last row is `last` has read. `whole`: it covers its range to the end.
    fn read(&self, whole: bool, last: Option<&Head>) -> Read {
        match (last.filter(|_| !whole), &self.range) {
            (Some(last), _) => Read::To(At::of(last)),
            // Or more rows are hidden than can be asked for at once: then this much is given up.
            (None, Range::Second { at, .. }) => Read::Through(*at),
            (None, Range::Seconds { .. }) => Read::Through(self.to),
        }
    }
}

impl Read {
    /// The same up to the mark `hi`, which may have been lowered since the page was chosen. `None`: the page, which begins in second
    /// `from`, lies above it.
    fn up_to(self, hi: Option<i64>, from: i64) -> Option<Self> {
        let second = match &self {
            Self::To(at) => at.second,
            Self::Through(second) => *second,
        };
        match hi {
            Some(hi) if hi < from => None,
            Some(hi) if hi < second => Some(Self::Through(hi)),
            _ => Some(self),
        }
    }
}

/// The first of these rows, as many as can be asked for by id in one request. An id of other characters than these may not mean
/// itself in a list: a comma would end it.
fn by_id(unknown: &[&Head]) -> Vec<At> {
    let is_plain = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let mut length = 0;
    let fits = |head: &&&Head| {
        length += head.id.len() + 1;
        is_plain(&head.id) && length <= BY_ID_LENGTH
    };
    unknown.iter().take(BY_ID).take_while(fits).map(|head| At::of(head)).collect()
}
