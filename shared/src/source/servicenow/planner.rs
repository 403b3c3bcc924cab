//! What to ask next, and what an answer means: the paging of a sweep without any I/O.
//!
//! The planner holds the cursor (T, S), the position of the last delivered row in the server's order, and goes
//! on exactly there. It takes answers in and gives deliveries out; [`Planner::request`] and [`Planner::answer`]
//! alternate. Four facts about the Table API shape it:
//!
//! * The row limit is applied before row access rules. A short page is not the end, and an empty one neither: only the
//!   row count tells, or a row above the high-water mark. A page that is hidden whole is stepped over by halving the range until
//!   the count fits one page.
//! * Timestamps have one second of precision and thousands of rows can share one. A second is read in id order, in
//!   the server's collation, which is never compared here.
//! * Rows appear behind the cursor: late commits, updates within the cursor's second. The overlap before the cursor is read
//!   again, in the same request while the dedup window says that it is small, else page by page after the rows ahead. Versions that were
//!   delivered are dropped.
//! * The clock that counts is the instance's. The high-water mark lies below its time when the request was sent; it is
//!   lowered by what the answer says and never raised within a sweep.
//!
//! Each full page moves the cursor or delivers new rows, whatever the page size.

mod forward;
mod known;
mod overlap;
mod passed;
mod whole;

use std::collections::BTreeMap;

use forward::Ask;
use known::known;
use overlap::{Read, Repaid, Reread};
use passed::Passed;
use whole::{Counting, OwnLimit};

use super::answer::Skipped;
use super::error::Error;
use super::hidden::HiddenCount;
use super::range::{CursorFields, Head, Range};
use crate::cursor::Phase;
use crate::source::SweepEnd;
use crate::sweep::{Kept, Owed, Window, WindowChange};

/// How a table is paged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// Seconds before the cursor that are read again.
    pub(super) overlap: i64,
    /// Seconds between the instance's clock and the high-water mark.
    pub(super) lag: i64,
    /// The poll interval in seconds, rounded up.
    pub(super) poll: i64,
    /// The most versions in the dedup window.
    pub(super) window_limit: usize,
    /// The cursor fields.
    pub(super) fields: CursorFields,
}

/// The position of a row. An empty id is the position before the first row of the second.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct At {
    pub(super) second: i64,
    pub(super) id: String,
}

/// What is asked of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Projection {
    /// All fields of the alias.
    Whole,
    /// The cursor fields and the modification count.
    Versions,
    /// As little as possible: only the count matters.
    Count,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) range: Range,
    /// Only rows with one of these ids, if there are any.
    pub(super) ids: Vec<String>,
    pub(super) limit: u32,
    pub(super) counted: bool,
    pub(super) projection: Projection,
}

/// One answer. `R` is the row as it is delivered; the planner looks at its head only.
#[derive(Debug, Clone)]
pub(super) struct Answer<R> {
    /// The visible rows, in the server's order.
    pub(super) rows: Vec<(Head, R)>,
    /// Rows without a readable cursor that the policy skips; they are visible and not delivered.
    pub(super) skipped: Vec<Skipped>,
    /// `X-Total-Count`.
    pub(super) total: Option<u64>,
    /// Whether a `Link` to a next page came.
    pub(super) next_link: bool,
    /// The instance's time when it answered, in epoch seconds.
    pub(super) date: Option<i64>,
    /// The local time when the request was sent, in epoch milliseconds.
    pub(super) sent_ms: i64,
    /// From sending to the answer's head, in milliseconds.
    pub(super) elapsed_ms: i64,
}

impl<R> Answer<R> {
    /// The rows that the instance showed.
    pub(super) fn visible(&self) -> u64 {
        self.rows.len() as u64 + self.skipped.len() as u64
    }
}

/// What came out of one or more answers.
#[derive(Debug, Clone)]
pub(super) struct Delivery<R> {
    pub(super) rows: Vec<(Head, R)>,
    pub(super) suppressed: u64,
    /// Rows without a readable cursor that were met for the first time.
    pub(super) skipped: Vec<Skipped>,
    pub(super) hidden: u64,
    pub(super) cursor: At,
    pub(super) window: WindowChange,
    pub(super) swept_to: Option<i64>,
    pub(super) phase: Phase,
    pub(super) notes: BTreeMap<String, String>,
    pub(super) end: Option<SweepEnd>,
}

/// The paging of one table.
#[derive(Debug, Clone)]
pub(super) struct Planner<R> {
    settings: Settings,
    cursor: At,
    window: Window,
    phase: Phase,
    swept_to: Option<i64>,
    /// The instance's clock less the local one, in milliseconds.
    difference_ms: Option<i64>,
    /// The instance's time as of the last answer, in epoch seconds.
    instance_now: Option<i64>,
    /// The high-water mark as of the last answer.
    reached: Option<i64>,
    /// The seconds before the cursor that are still to be read again.
    owed: Owed,
    /// The last second that the window had no room for though late rows can still appear in it.
    given_up: Option<i64>,
    /// The most unknown rows that are asked for by id at once.
    most_ids: usize,
    /// Cursor and number of hidden rows of the last sweep, to recognise an unchanged table.
    hidden_before: Option<String>,
    counting: Counting,
    own_limit: OwnLimit,
    page_size: u32,
    rows_left: Option<u64>,
    sweep: Option<Sweep<R>>,
}

/// A sweep that has begun.
#[derive(Debug, Clone)]
struct Sweep<R> {
    /// The high-water mark, once it is known.
    hi: Option<i64>,
    /// Requests carry the count.
    counting: bool,
    /// Pages that did not end their range, and delivered a row or moved the cursor.
    full_pages: u32,
    first: bool,
    /// The cursor's second when it began.
    begun: i64,
    /// The forward part has ended as late as it takes to be caught up.
    is_recent: bool,
    /// How much of the overlap was read again.
    reread: Repaid,
    /// Where the forward part goes on after a part of the overlap that could wait no longer.
    then: Option<Ask>,
    hidden: HiddenCount,
    /// What was counted on pages that delivered nothing; it goes with the next one that does.
    carried: Counts,
    /// What a page of the overlap showed without a readable cursor.
    passed: Passed,
    step: Step<R>,
}

/// Rows that were seen and not delivered.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    suppressed: u64,
    hidden: u64,
}

#[derive(Debug, Clone)]
enum Step<R> {
    /// A page of the forward part.
    Page(Ask),
    /// The count of a short page that came without one.
    Total(Box<Received<R>>),
    /// The count from second `from` on, to tell new hidden rows from known ones.
    NewHidden { from: i64, page: Box<Received<R>> },
    /// Versions of a page of the overlap.
    Versions(Reread),
    /// Unknown versions of that page, whole, by id. `read`: how far the page has read once all of them have come.
    UnknownOf { ask: Reread, rows: Vec<At>, read: Read },
    /// The same by range, as there are many.
    UnknownIn(Reread),
}

/// An answer to a request for a page of the forward part.
#[derive(Debug, Clone)]
struct Received<R> {
    ask: Ask,
    limit: u32,
    answer: Answer<R>,
}

/// What an answer led to.
#[derive(Debug, Clone)]
pub(super) enum Outcome<R> {
    /// Another request is needed first.
    Continue,
    /// A page.
    Page(Box<Delivery<R>>),
}

/// What a planner starts from.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) cursor: At,
    pub(super) kept: Kept,
    pub(super) phase: Phase,
    pub(super) swept_to: Option<i64>,
    pub(super) difference_ms: Option<i64>,
    pub(super) notes: BTreeMap<String, String>,
    pub(super) page_size: u32,
    pub(super) max_rows: Option<u64>,
}

impl<R: Clone> Planner<R> {
    pub(super) fn new(settings: Settings, start: Start) -> Self {
        let notes = &start.notes;
        let (window, owed) = known(start.kept, &start.cursor, settings.overlap, notes);
        Self {
            settings,
            cursor: start.cursor,
            phase: start.phase,
            swept_to: start.swept_to,
            difference_ms: start.difference_ms,
            instance_now: None,
            reached: None,
            owed,
            given_up: None,
            most_ids: overlap::BY_ID,
            hidden_before: notes.get("hidden").cloned(),
            counting: Counting::read(notes),
            own_limit: OwnLimit::default(),
            window,
            page_size: start.page_size.max(1),
            rows_left: start.max_rows,
            sweep: None,
        }
    }

    /// The window, as the source knows it by now.
    pub(super) fn window(&self) -> &Window {
        &self.window
    }

    /// The rows per page from now on.
    pub(super) fn set_page_size(&mut self, rows: u32) {
        self.page_size = rows.max(1);
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn page_size(&self) -> u32 {
        self.page_size
    }

    pub(super) fn difference_ms(&self) -> Option<i64> {
        self.difference_ms
    }

    /// The instance's time, in epoch seconds, once an answer has told it.
    pub(super) fn instance_now(&self) -> Option<i64> {
        self.instance_now
    }

    /// Whether what was asked for last reached the cursor: it does not where the cursor lies after the high-water mark.
    pub(super) fn has_reached_cursor(&self) -> bool {
        self.reached.is_some_and(|reached| reached >= self.cursor.second)
    }

    /// Whether the next request is the first of its sweep.
    pub(super) fn is_first(&self) -> bool {
        self.sweep.as_ref().is_none_or(|sweep| sweep.first)
    }

    /// The next request. `now_ms`: the local time, in epoch milliseconds.
    pub(super) fn request(&mut self, now_ms: i64) -> Request {
        let limit = self.limit();
        let sweep = match self.sweep.take() {
            Some(sweep) => sweep,
            None => self.begin(now_ms),
        };
        let count = |range: Range| Request { range, ids: Vec::new(), limit: 1, counted: true, projection: Projection::Count };
        let page = |ask: &Reread, size: u32, projection| {
            let limit = size.saturating_mul(ask.pages);
            Request { range: ask.range.clone(), ids: Vec::new(), limit, counted: true, projection }
        };
        let request = match &sweep.step {
            Step::Page(ask) => {
                let limit = limit.saturating_mul(ask.pages);
                Request { range: ask.range.clone(), ids: Vec::new(), limit, counted: sweep.counting, projection: Projection::Whole }
            }
            Step::Total(page) => count(page.ask.range.clone()),
            Step::NewHidden { from, .. } => count(Range::from(*from, sweep.hi)),
            Step::Versions(ask) => page(ask, self.page_size, Projection::Versions),
            Step::UnknownOf { ask, rows, .. } => {
                let ids = rows.iter().take(limit as usize).map(|at| at.id.clone()).collect();
                Request { ids, limit, ..page(ask, limit, Projection::Whole) }
            }
            Step::UnknownIn(ask) => page(ask, limit, Projection::Whole),
        };
        self.sweep = Some(sweep);
        request
    }

    /// Takes in the answer to `request`, the last one given.
    ///
    /// # Errors
    /// The answer does not keep to the request.
    pub(super) fn answer(&mut self, request: &Request, answer: Answer<R>) -> Result<Outcome<R>, Error> {
        request.range.check(&answer.rows, request.limit, &self.settings.fields)?;
        let Some(mut sweep) = self.sweep.take() else { return Ok(Outcome::Continue) };
        self.read_clock(&mut sweep, &answer);
        sweep.first = false;
        if request.projection != Projection::Count {
            self.own_limit.saw(&answer);
        }
        if request.counted {
            self.counting.asked(answer.total);
        }
        let limit = request.limit;
        match sweep.take_step() {
            Step::Page(ask) => self.page(sweep, Received { ask, limit, answer }),
            step @ (Step::Total(_) | Step::NewHidden { .. }) if answer.total.is_none() && self.counting == Counting::Does => {
                sweep.step = step;
                self.sweep = Some(sweep);
                let detail = "other answers had an X-Total-Count, and this one has none".to_owned();
                self.do_without_count()?.ok_or(Error::Uncounted { detail })
            }
            step @ Step::Total(_) if answer.total.is_none() && self.counting == Counting::Missed => {
                sweep.step = step;
                self.sweep = Some(sweep);
                Ok(Outcome::Continue)
            }
            Step::Total(mut page) => {
                page.answer.total = answer.total;
                self.counted_page(sweep, *page)
            }
            Step::NewHidden { from, page } => {
                sweep.hidden.open(answer.total.unwrap_or(0), from, false);
                self.evaluate(sweep, *page, true)
            }
            Step::Versions(ask) => Ok(self.versions(sweep, ask, limit, &answer)),
            Step::UnknownOf { ask, rows, read } => Ok(self.unknown_of(sweep, &ask, (&rows, request.ids.len(), read), limit, answer)),
            Step::UnknownIn(ask) => Ok(self.unknown_in(sweep, ask, limit, answer)),
        }
    }

    fn limit(&self) -> u32 {
        self.rows_left.map_or(self.page_size, |left| u32::try_from(left.max(1)).unwrap_or(u32::MAX).min(self.page_size))
    }

    /// Begins a sweep: chooses the first request.
    fn begin(&mut self, now_ms: i64) -> Sweep<R> {
        let At { second, id } = &self.cursor;
        let hi = self.difference_ms.map(|difference| now_ms.saturating_add(difference).div_euclid(1000) - self.settings.lag);
        let overlap_from = second.saturating_sub(self.settings.overlap).max(self.window.from());
        let knows = self.window.knows(*second);
        let (range, owed) = if knows && self.window.unknown().is_none() && self.is_less_than_half(self.window.count_from(overlap_from)) {
            (Range::from(overlap_from, hi), None)
        } else if id.is_empty() || (knows && self.is_less_than_half(self.window.count_from(*second))) {
            (Range::from(*second, hi), Some((overlap_from, *second - 1)))
        } else {
            (Range::rest_of(*second, id), Some((overlap_from, *second)))
        };
        if let Some((from, to)) = owed {
            self.owed.add(from, to, self.window.unknown());
        }
        Sweep {
            hi,
            counting: self.phase == Phase::Stream,
            full_pages: 0,
            first: true,
            begun: self.cursor.second,
            is_recent: false,
            reread: Repaid::default(),
            then: None,
            hidden: HiddenCount::default(),
            carried: Counts::default(),
            passed: Passed::new(),
            step: Step::Page(Ask::of(range)),
        }
    }

    fn is_less_than_half(&self, rows: usize) -> bool {
        rows.saturating_mul(2) < self.limit() as usize
    }

    /// Lowers the high-water mark by what the answer says of the instance's clock.
    fn read_clock(&mut self, sweep: &mut Sweep<R>, answer: &Answer<R>) {
        let received_ms = answer.sent_ms.saturating_add(answer.elapsed_ms);
        if let Some(date) = answer.date {
            self.instance_now = Some(date);
            self.difference_ms = Some(date.saturating_mul(1000).saturating_sub(received_ms));
        }
        // Without a Date the local clock has to do, corrected by what was last known of the instance's.
        let sent = match answer.date {
            Some(date) => date.saturating_mul(1000).saturating_sub(answer.elapsed_ms),
            None => answer.sent_ms.saturating_add(self.difference_ms.unwrap_or(0)),
        };
        let mark = sent.div_euclid(1000).saturating_sub(self.settings.lag);
        sweep.hi = Some(sweep.hi.map_or(mark, |hi| hi.min(mark)));
        self.reached = sweep.hi;
        if self.instance_now.is_none() {
            self.instance_now = Some(sent.div_euclid(1000));
        }
    }

    /// Up to when a sweep that is through has seen everything. One whose range begins after its high-water mark, since the cursor
    /// lies ahead of the instance's clock, has seen nothing.
    fn swept_to(&self, hi: Option<i64>) -> Option<i64> {
        let begun = self.cursor.second.saturating_sub(self.settings.overlap);
        self.swept_to.max(hi.filter(|hi| *hi >= begun))
    }

    /// Whether the forward part, which ends now, has been read up to what is recent. What a re-read takes after it does not count.
    fn is_recent(&self, hi: Option<i64>) -> bool {
        let now = self.instance_now.unwrap_or(i64::MAX);
        hi.is_some_and(|hi| hi >= now.saturating_sub(self.settings.lag).saturating_sub(self.settings.poll))
    }

    /// The last step of a sweep: says whether the table is caught up.
    fn end(&mut self, sweep: &Sweep<R>) -> SweepEnd {
        let caught_up = sweep.is_recent || sweep.full_pages <= 1;
        self.phase = if caught_up { Phase::Stream } else { Phase::Backfill };
        SweepEnd { caught_up }
    }

    fn deliver(&mut self, parts: Parts<R>) -> Outcome<R> {
        if let Some(left) = &mut self.rows_left {
            *left = left.saturating_sub(parts.rows.len() as u64);
        }
        Outcome::Page(Box::new(Delivery {
            rows: parts.rows,
            suppressed: parts.counts.suppressed,
            skipped: parts.skipped,
            hidden: parts.counts.hidden,
            cursor: self.cursor.clone(),
            window: parts.window,
            swept_to: if parts.end.is_some() { self.swept_to } else { None },
            phase: self.phase,
            notes: self.notes(),
            end: parts.end,
        }))
    }

    fn notes(&self) -> BTreeMap<String, String> {
        let mut notes = BTreeMap::new();
        self.owed.note(&mut notes);
        if let Some(hidden) = &self.hidden_before {
            notes.insert("hidden".to_owned(), hidden.clone());
        }
        self.counting.note(&mut notes);
        notes
    }
}

/// What a delivery is made of, beside the planner's own state.
struct Parts<R> {
    rows: Vec<(Head, R)>,
    skipped: Vec<Skipped>,
    counts: Counts,
    window: WindowChange,
    end: Option<SweepEnd>,
}

impl<R> Sweep<R> {
    /// The step that has been carried out; another takes its place.
    fn take_step(&mut self) -> Step<R> {
        std::mem::replace(&mut self.step, Step::Page(Ask::of(Range::from(0, None))))
    }
}

impl At {
    fn of(head: &Head) -> Self {
        Self { second: head.second, id: head.id.clone() }
    }

    pub(super) fn encode(&self) -> String {
        format!("{}|{}", self.second, self.id)
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        let (second, id) = text.split_once('|')?;
        Some(Self { second: second.parse().ok()?, id: id.to_owned() })
    }
}

#[cfg(test)]
mod tests;
