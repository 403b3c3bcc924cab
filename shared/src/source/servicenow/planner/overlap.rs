//! The re-read of an overlap too large to ride in the first request: after the rows ahead, some pages per sweep, in turn.
//!
//! Only the cursor fields and the modification count are read; versions that the window does not know are then fetched
//! whole and delivered, at most a page of them. The same pass refills a window that was lost.
//!
//! How many pages? An idle table is given one per sweep. Where the cursor moves, each sweep adds to what is owed, and a round over the
//! overlap must not fall behind: it goes by [`PACE`] seconds for each that the sweep has moved the cursor. The seconds that a round of
//! length L has gone by by its end, and with them the next round's length, are then the overlap and L / (`PACE` - 1) at most. So a round
//! is never much longer than two overlaps, whatever the size of a page and however much a tick brings, and the window need hold no
//! more than that.
//!
//! A sweep that goes far at once fills the window with the rows ahead before it gets to the overlap. So what is owed is read in
//! between, before the window has to forget it.
//!
//! A part of the overlap counts as read only as far as its unknown rows have come. The second request may be answered with less than
//! the first has shown: it is asked for smaller when it was too large, the instance may cut it, and rows that appeared between the
//! two push others off its end. What did not come is left to the next page.

use super::super::range::{Head, Range};
use super::forward::halved;
use super::passed::rows_of;
use super::{Answer, Ask, At, Outcome, Parts, Planner, Step, Sweep};
use crate::source::SweepEnd;
use crate::sweep::{Stretch, WindowChange};

/// Up to this many unknown rows are fetched by id; more are fetched by the range that they came in.
pub(super) const BY_ID: usize = 40;

/// The most characters of ids in one request, commas included: those of as many ids of an instance's own. What else is in the address is
/// the alias's query, once per branch, and its fields; where all of it is too long, fewer are asked for ([`Planner::ask_for_fewer_ids`]).
const BY_ID_LENGTH: usize = BY_ID * 33;

/// How many seconds of the overlap are read again for each by which the sweep has moved the cursor. More than two, or each round is
/// longer than the one before it.
const PACE: i64 = 3;

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

/// How much of the overlap a sweep has read again.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repaid {
    pages: u32,
    seconds: i64,
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
        if self.owed.forget_before(self.window.from()) {
            self.given_up = self.given_up.max(Some(self.window.from().saturating_sub(1)));
        }
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
        let whole = self.covers(answer, limit);
        if answer.rows.is_empty()
            && !whole
            && let Some(ask) = self.past_hidden(&ask)
        {
            sweep.step = Step::Versions(ask);
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
            return self.reread_done(sweep, &ask, Some(read), Vec::new(), heads.len() as u64);
        };
        let by_id = by_id(&unknown, self.most_ids);
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

    /// What to ask instead of a page of versions that is hidden whole. They are small, so that a larger page costs less than to look for the
    /// end of the hidden rows; but an instance may have a limit of its own, and then only half of the range is left.
    fn past_hidden(&self, ask: &Reread) -> Option<Reread> {
        if ask.pages < MOST_PAGES {
            return Some(ask.wider());
        }
        let half = halved(&ask.range, Some(ask.to), self.settings.fields.has_hexadecimal_ids())?;
        Some(Reread { range: half.range, pages: MOST_PAGES, ..ask.clone() })
    }

    /// Unknown rows that were asked for by id, `asked` of them. `read`: how far the page has read with all of them.
    pub(super) fn unknown_of(
        &mut self,
        sweep: Sweep<R>,
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
        let whole = self.covers(&answer, limit);
        if answer.rows.is_empty() && !whole && ask.pages < MOST_PAGES {
            sweep.step = Step::UnknownIn(ask.wider());
            self.sweep = Some(sweep);
            return Outcome::Continue;
        }
        let read = ask.read(whole, answer.rows.last().map(|(head, _)| head));
        self.take(sweep, &ask, read, answer)
    }

    /// Delivers the rows of an answer that are not known: at most a page of them, and none above the high-water mark. `read`: how
    /// far the answer goes.
    fn take(&mut self, sweep: Sweep<R>, ask: &Reread, read: Read, answer: Answer<R>) -> Outcome<R> {
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
    fn reread_done(&mut self, mut sweep: Sweep<R>, ask: &Reread, read: Option<Read>, rows: Vec<(Head, R)>, suppressed: u64) -> Outcome<R> {
        let passed = std::mem::take(&mut sweep.passed);
        let delivered = rows.iter().map(|(head, _)| (head.second, head.version()));
        let delivered = delivered.chain(passed.iter().map(|(second, skipped)| (*second, skipped.version))).collect();
        let from = ask.range.first_second();
        let read = read.and_then(|read| read.up_to(sweep.hi, from));
        sweep.reread.page(from, read.as_ref());
        let goes_on = read.is_some();
        let refilled = match read {
            Some(Read::Through(second)) => self.owed.read_through(second),
            Some(Read::To(at)) => {
                self.owed.read_to(at.second, &at.id);
                false
            }
            None => false,
        };
        let window = self.settled(WindowChange { delivered, refilled, limit: self.settings.window_limit.max(1), forget_before: None });
        let mut counts = std::mem::take(&mut sweep.carried);
        counts.suppressed += suppressed;
        let end = self.after_reread(sweep, goes_on && self.rows_left.is_none_or(|left| left > rows.len() as u64));
        self.deliver(Parts { rows, skipped: rows_of(passed), counts, window, end })
    }

    /// What comes after a page of the overlap: another one, the forward part that it came in between of, or the end of the sweep.
    /// `may_go_on`: the page has read something, and rows may follow.
    fn after_reread(&mut self, mut sweep: Sweep<R>, may_go_on: bool) -> Option<SweepEnd> {
        let has_more_to_do = match sweep.then {
            Some(_) => self.cannot_wait(),
            None => sweep.reread.seconds < self.cursor.second.saturating_sub(sweep.begun).saturating_mul(PACE),
        };
        let step = if may_go_on && has_more_to_do { self.overlap_step(sweep.hi) } else { None };
        sweep.step = match step.or_else(|| sweep.then.take().map(Step::Page)) {
            Some(step) => step,
            None => return Some(self.end(&sweep)),
        };
        self.sweep = Some(sweep);
        None
    }

    /// Goes on with the forward part, or with what is owed of the overlap first, if that cannot wait.
    pub(super) fn go_on_at(&mut self, sweep: &mut Sweep<R>, ask: Ask) {
        let first = if self.cannot_wait() { self.overlap_step(sweep.hi) } else { None };
        sweep.step = match first {
            Some(step) => {
                sweep.then = Some(ask);
                step
            }
            None => Step::Page(ask),
        };
    }

    /// Whether the rows of another page would push out of the window what is known of seconds that are still to be read again.
    fn cannot_wait(&self) -> bool {
        let next = self.window.len().saturating_add(self.page_size as usize);
        let overlap_from = self.cursor.second.saturating_sub(self.settings.overlap);
        next > self.settings.window_limit && self.owed.from().is_some_and(|from| from < overlap_from)
    }

    /// Ends a sweep that lacks the time for more of the overlap. The rest of it stays owed. `None`: the sweep is not that far.
    pub(in super::super) fn end_without_the_rest(&mut self) -> Option<Outcome<R>> {
        let sweep =
            self.sweep.take_if(|sweep| matches!(sweep.step, Step::Versions(_)) && sweep.then.is_none() && sweep.reread.pages > 0)?;
        let window = self.settled(WindowChange { limit: self.settings.window_limit.max(1), ..WindowChange::default() });
        let end = Some(self.end(&sweep));
        Some(self.deliver(Parts { rows: Vec::new(), skipped: Vec::new(), counts: sweep.carried, window, end }))
    }

    /// After a question by ids whose address was too long: asks for half of them; in the end by the range that they came in. Returns whether
    /// the last request asked by ids.
    pub(in super::super) fn ask_for_fewer_ids(&mut self) -> bool {
        let limit = self.limit() as usize;
        let Some(sweep) = &mut self.sweep else { return false };
        let Step::UnknownOf { ask, rows, read } = &mut sweep.step else { return false };
        self.most_ids = rows.len().min(limit) / 2;
        rows.truncate(self.most_ids);
        match rows.last() {
            Some(last) => *read = Read::To(last.clone()),
            None => sweep.step = Step::UnknownIn(ask.clone()),
        }
        true
    }

    /// The change, and what is kept after it: the overlap before the cursor, and what is still owed.
    pub(super) fn settled(&mut self, mut change: WindowChange) -> WindowChange {
        change.forget_before = Some(self.keep_from());
        self.apply(&change);
        change
    }
}

impl Repaid {
    /// A page that begins in second `from` has been read.
    fn page(&mut self, from: i64, read: Option<&Read>) {
        let to = match read {
            Some(Read::To(at)) => at.second,
            Some(Read::Through(second)) => second.saturating_add(1),
            None => from,
        };
        self.pages = self.pages.saturating_add(1);
        self.seconds = self.seconds.saturating_add(to.saturating_sub(from).max(0));
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
            (None, Range::Second { at, through: Some(through), .. }) => Read::To(At { second: *at, id: through.clone() }),
            (None, Range::Second { at, .. }) => Read::Through(*at),
            (None, Range::Seconds { to, .. }) => Read::Through(to.unwrap_or(self.to)),
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
fn by_id(unknown: &[&Head], most: usize) -> Vec<At> {
    let is_plain = |id: &str| id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let mut length = 0;
    let fits = |head: &&&Head| {
        length += head.id.len() + 1;
        is_plain(&head.id) && length <= BY_ID_LENGTH
    };
    unknown.iter().take(most).take_while(fits).map(|head| At::of(head)).collect()
}
