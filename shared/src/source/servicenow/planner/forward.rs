//! The forward part of a sweep: from the cursor to the high-water mark.

use super::super::error::Error;
use super::super::range::{Head, Range, is_hex};
use super::super::time;
use super::overlap::MOST_PAGES;
use super::passed::{Passed, rows_of};
use super::whole::Counting;
use super::{At, Counts, Outcome, Parts, Planner, Received, Step, Sweep};

/// A page of the forward part, as it is asked for.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) range: Range,
    /// The range's upper bound lies below the high-water mark.
    narrowed: bool,
    /// How many times the size of a page is asked for: more than one only to get past hidden rows.
    pub(super) pages: u32,
}

/// What a page turned out to be.
struct Page<R> {
    ask: Ask,
    limit: u32,
    /// New rows, in order.
    new: Vec<(Head, R)>,
    suppressed: u64,
    /// Rows without a readable cursor that are met for the first time.
    skipped: Passed,
    /// No row came whose position can be read.
    is_blank: bool,
    /// The last row within the high-water mark, and whether the cursor's own row came before it or is it.
    last: Option<(Head, bool)>,
    /// The range holds nothing beyond this page that is left to this sweep.
    is_last: bool,
    /// After how many rows the page was cut to what may be delivered.
    cut_at: Option<usize>,
    /// The answer covers the range to its end.
    fits: bool,
    /// The answer goes beyond the high-water mark, so that nothing at or below it is left.
    passes_mark: bool,
}

impl<R: Clone> Planner<R> {
    /// An answer to a request for a page.
    pub(super) fn page(&mut self, mut sweep: Sweep<R>, page: Received<R>) -> Result<Outcome<R>, Error> {
        let answer = &page.answer;
        let short = answer.visible() < u64::from(page.limit);
        let above = answer.rows.last().is_some_and(|(head, _)| sweep.hi.is_some_and(|hi| head.second > hi));
        if short && !above && answer.total.is_none() && self.counting != Counting::DoesNot {
            sweep.counting = true;
            sweep.step = Step::Total(Box::new(page));
            self.sweep = Some(sweep);
            return Ok(Outcome::Continue);
        }
        self.counted_page(sweep, page)
    }

    /// A page whose count, if it needs one, is known: opens the count of hidden rows where there are any.
    pub(super) fn counted_page(&mut self, mut sweep: Sweep<R>, page: Received<R>) -> Result<Outcome<R>, Error> {
        let Received { ask: Ask { range, narrowed, .. }, limit, answer } = &page;
        let visible = answer.visible();
        let hidden = answer.total.map_or(0, |total| total.saturating_sub(visible));
        // Whether hidden rows exist shows only where the limit did not cut visible ones off.
        if hidden == 0 || visible >= u64::from(*limit) || *narrowed || !sweep.hidden.is_closed() {
            return self.evaluate(sweep, page, false);
        }
        let total = answer.total.unwrap_or(0);
        let first = range.first_second();
        let unseen_from = self.swept_to.map_or(first, |swept| swept.saturating_add(1));
        match range {
            Range::Second { through: Some(_), .. } => self.evaluate(sweep, page, false),
            Range::Second { .. } => {
                sweep.hidden.open(total, first, true);
                self.evaluate(sweep, page, true)
            }
            Range::Seconds { .. } if first >= unseen_from => {
                sweep.hidden.open(total, first, false);
                self.evaluate(sweep, page, true)
            }
            Range::Seconds { .. } => {
                // A part of the range was read by earlier sweeps, and hidden rows in it were reported then.
                let sight = format!("{}|{hidden}", self.cursor.encode());
                let unchanged = self.hidden_before.replace(sight.clone()).is_some_and(|before| before == sight);
                if unchanged || sweep.hi.is_none_or(|hi| hi < unseen_from) {
                    sweep.hidden.set_known();
                    return self.evaluate(sweep, page, false);
                }
                sweep.step = Step::NewHidden { from: unseen_from, page: Box::new(page) };
                self.sweep = Some(sweep);
                Ok(Outcome::Continue)
            }
        }
    }

    /// Goes on without the count that the last request was for. `None`: then nothing is known of what to ask next.
    ///
    /// A page with rows is delivered all the same, and its last row is where to go on. It is not the last one: only the count could
    /// have said so. Hidden rows that were to be told from known ones are left to a later sweep.
    pub(in super::super) fn do_without_count(&mut self) -> Result<Option<Outcome<R>>, Error> {
        let Some(mut sweep) = self.sweep.take() else { return Ok(None) };
        match sweep.take_step() {
            Step::Total(page) if !page.answer.rows.is_empty() => {
                sweep.counting = false;
                self.evaluate(sweep, *page, false).map(Some)
            }
            Step::NewHidden { page, .. } => {
                sweep.hidden.set_known();
                self.hidden_before = None;
                self.evaluate(sweep, *page, false).map(Some)
            }
            step => {
                sweep.step = step;
                self.sweep = Some(sweep);
                Ok(None)
            }
        }
    }

    /// Asks for pages without their count from here on: it may be what takes so long. Returns whether the last request asked for it. A part
    /// of a range that was cut to get around hidden rows is proven by the count that comes with it, and keeps it.
    pub(in super::super) fn drop_count(&mut self) -> bool {
        let is_whole = |sweep: &&mut Sweep<R>| matches!(&sweep.step, Step::Page(ask) if !ask.is_part());
        self.sweep.as_mut().filter(is_whole).is_some_and(|sweep| std::mem::take(&mut sweep.counting))
    }

    /// What the page delivers, where the cursor stands after it, and what to ask next. `opens`: the count of hidden rows
    /// was opened with this page, so that all of its rows belong to it.
    pub(super) fn evaluate(&mut self, mut sweep: Sweep<R>, page: Received<R>, opens: bool) -> Result<Outcome<R>, Error> {
        let total = page.answer.total;
        let skipped = std::iter::repeat_n(i64::MAX, page.answer.skipped.len());
        let seconds: Vec<i64> = if opens { page.answer.rows.iter().map(|(head, _)| head.second).collect() } else { Vec::new() };
        let page = self.sift(&sweep, page);
        if opens {
            // Rows behind a cut come again.
            sweep.hidden.saw(seconds.into_iter().take(page.cut_at.unwrap_or(usize::MAX)).chain(skipped));
        } else {
            sweep.hidden.saw(page.new.iter().map(|(head, _)| head.second));
        }
        let before = self.cursor.clone();
        let goes_on = self.move_cursor(&page);
        let mut window = self.window_change(&page.new, &page.skipped);
        let next = self.next_ask(&sweep, &page, before != self.cursor, goes_on)?;
        let hidden = hidden_passed(&mut sweep, &page, if opens { None } else { total }, next.is_none());
        let nothing = page.new.is_empty() && page.skipped.is_empty() && before == self.cursor;
        // Requests that feel their way around hidden rows are no sign of a table that moves on.
        sweep.full_pages += u32::from(!page.is_last && !nothing);
        let carried = std::mem::take(&mut sweep.carried);
        let counts = Counts { suppressed: carried.suppressed + page.suppressed, hidden: carried.hidden + hidden };
        let mut end = None;
        match next {
            Some(ask) => self.go_on_at(&mut sweep, ask),
            None => {
                sweep.is_recent = self.is_recent(sweep.hi);
                self.swept_to = self.swept_to(sweep.hi);
                match self.overlap_step(sweep.hi) {
                    Some(step) => sweep.step = step,
                    None => {
                        end = Some(self.end(&sweep));
                        window = self.settled(window);
                    }
                }
            }
        }
        if end.is_none() {
            sweep.carried = if nothing { counts } else { Counts::default() };
            self.sweep = Some(sweep);
            if nothing {
                return Ok(Outcome::Continue);
            }
        }
        Ok(self.deliver(Parts { rows: page.new, skipped: rows_of(page.skipped), counts, window, end }))
    }

    /// Sorts the rows of an answer: above the high-water mark, delivered before, new.
    fn sift(&mut self, sweep: &Sweep<R>, received: Received<R>) -> Page<R> {
        let Received { ask, limit, answer } = received;
        let hi = sweep.hi.unwrap_or(i64::MAX);
        let is_blank = answer.rows.is_empty();
        let skipped = self.met_first(ask.range.first_second(), hi, &answer.rows, answer.skipped.clone());
        let fits = self.covers(&answer, limit);
        // No more than a page is delivered, also where more were asked for to get past hidden rows.
        let most = self.rows_left.unwrap_or(u64::MAX).min(u64::from(self.page_size));
        let mut page = Page {
            passes_mark: ask.range.first_second() > hi,
            ask,
            limit,
            new: Vec::new(),
            suppressed: 0,
            skipped,
            is_blank,
            last: None,
            is_last: false,
            cut_at: None,
            fits,
        };
        let mut rows = answer.rows;
        let (mut above, mut cut, mut passed_own, mut new) = (false, false, false, 0);
        let mut delivered = Vec::with_capacity(rows.len());
        for (head, _) in &rows {
            above = head.second > hi;
            // What has left the window is not told from new rows, so behind the cursor it counts as delivered.
            let has_left = head.second < self.window.from() && head.second < self.cursor.second;
            let known = !above && (has_left || (self.window.has_second(head.second) && self.window.contains(head.second, &head.version())));
            cut = !known && !above && new >= most;
            if above || cut {
                break;
            }
            passed_own |= head.second == self.cursor.second && head.id == self.cursor.id;
            new += u64::from(!known);
            delivered.push(known);
        }
        page.cut_at = cut.then_some(delivered.len());
        rows.truncate(delivered.len());
        page.last = rows.last().map(|(head, _)| (head.clone(), passed_own));
        page.suppressed = rows.len() as u64 - new;
        let mut known = delivered.into_iter();
        rows.retain(|_| known.next() == Some(false));
        page.new = rows;
        page.passes_mark |= above;
        page.is_last = !cut && (page.fits || page.passes_mark);
        page
    }

    /// The cursor goes to the last row of the page, as far as that is known to lie after it. Returns whether what the page has
    /// read reaches beyond the cursor as it was.
    fn move_cursor(&mut self, page: &Page<R>) -> bool {
        let passed_own = page.last.as_ref().is_some_and(|(_, passed_own)| *passed_own);
        let last = page.last.as_ref().map(|(head, _)| head);
        let goes_on = match &page.ask.range {
            Range::Second { at, after, .. } => self.goes_on_from(*at, after) || passed_own,
            Range::Seconds { .. } => last.is_some_and(|last| {
                last.second > self.cursor.second || (last.second == self.cursor.second && (self.cursor.id.is_empty() || passed_own))
            }),
        };
        if let Some(last) = last.filter(|_| goes_on) {
            self.cursor = At { second: last.second, id: last.id.clone() };
        }
        goes_on
    }

    /// What to ask instead of a page that is hidden whole: a smaller range from the same position on, or a larger page.
    fn around_hidden(&mut self, page: &Page<R>, hi: Option<i64>) -> Result<Ask, Error> {
        let (range, At { second, id }) = (&page.ask.range, &self.cursor);
        let is_own = range.first_second() == *second && !id.is_empty();
        if let Range::Seconds { to, .. } = range
            && is_own
            && to.or(hi).is_none_or(|upper| upper <= *second)
        {
            // A second is stepped through by ids, and the window may not keep what it knows of it for so long. So the rows behind the
            // cursor's are read later, and by themselves.
            self.owed.add(*second, *second, self.window.unknown());
            return Ok(Ask::of(Range::rest_of(*second, id)));
        }
        halved(range, hi, self.settings.fields.has_hexadecimal_ids()).map_or_else(|| page.ask.wider(page.limit), Ok)
    }

    /// Whether a range of second `at` after the id `after` begins where the cursor stands, or beyond. The second of the cursor
    /// may also be read from its beginning, and ids are not compared here.
    fn goes_on_from(&self, at: i64, after: &str) -> bool {
        let At { second, id } = &self.cursor;
        *second < at || (*second == at && (id.is_empty() || id == after))
    }

    /// What the forward part asks for next; `None` if it is done.
    fn next_ask(&mut self, sweep: &Sweep<R>, page: &Page<R>, moved: bool, goes_on: bool) -> Result<Option<Ask>, Error> {
        let hi = sweep.hi;
        if page.passes_mark {
            return Ok(None);
        }
        if page.is_blank && !page.is_last {
            return self.around_hidden(page, hi).map(Some);
        }
        match &page.ask.range {
            Range::Second { at, through: Some(through), after } if page.fits && page.is_last => {
                // Everything up to `through` has been read: the position is proven.
                if goes_on {
                    self.cursor = At { second: *at, id: through.clone() };
                }
                let width = prefix(through).saturating_sub(prefix(after));
                Ok(Some(Ask::of(Range::Second { at: *at, after: through.clone(), through: widened(through, width) })))
            }
            Range::Second { at, .. } if page.is_last => Ok(Some(Ask::of(Range::after(*at, hi)))),
            Range::Second { at, after, .. } => {
                let last = page.last.as_ref().map_or(after, |(head, _)| &head.id);
                Ok(Some(Ask::of(Range::rest_of(*at, last))))
            }
            Range::Seconds { to: Some(to), .. } if page.ask.narrowed && page.fits && page.is_last => Ok(self.after_narrowed(page, *to, hi)),
            Range::Seconds { .. } if page.is_last => Ok(None),
            Range::Seconds { .. } => Ok(Some(Ask::of(self.after_seconds(sweep, page, moved)))),
        }
    }

    /// After a narrowed range up to second `to` that has been read to its end. The mark may have been lowered below `to` meanwhile: in the
    /// seconds above it rows can still appear.
    fn after_narrowed(&mut self, page: &Page<R>, to: i64, hi: Option<i64>) -> Option<Ask> {
        let next = hi.map_or(to, |hi| hi.min(to)).saturating_add(1);
        if next > self.cursor.second {
            self.cursor = At { second: next, id: String::new() };
        }
        if hi.is_some_and(|hi| hi < next) {
            return None;
        }
        let width = next.saturating_sub(page.ask.range.first_second()).saturating_mul(2);
        let upper = hi.map(|hi| hi.min(next.saturating_add(width)));
        Some(Ask { narrowed: upper != hi, ..Ask::of(Range::from(next, upper)) })
    }

    /// After a page of whole seconds that is not the last one.
    fn after_seconds(&mut self, sweep: &Sweep<R>, page: &Page<R>, moved: bool) -> Range {
        let At { second, id } = &self.cursor;
        if !moved && page.ask.range.first_second() <= *second {
            // The page ended before the cursor's own row was passed: the rest of the overlap is read later.
            self.owed.add(page.ask.range.first_second().min(*second), *second, self.window.unknown());
        }
        let known = self.window.knows(*second) && self.is_less_than_half(self.window.count_at(*second));
        if id.is_empty() || (known && !page.new.is_empty() && moved) { Range::from(*second, sweep.hi) } else { Range::rest_of(*second, id) }
    }
}

/// The hidden rows that the sweep passed with this page. `total`: what a later page than the opening one counted.
fn hidden_passed<R>(sweep: &mut Sweep<R>, page: &Page<R>, total: Option<u64>, done: bool) -> u64 {
    let mut hidden = 0;
    if let (Some(total), Range::Seconds { .. }, false) = (total, &page.ask.range, page.ask.narrowed) {
        hidden += sweep.hidden.ahead(total, page.suppressed);
    }
    if let (Range::Second { through: None, .. }, true) = (&page.ask.range, page.is_last) {
        hidden += sweep.hidden.second_ends();
    }
    if done {
        hidden += sweep.hidden.sweep_ends();
    }
    hidden
}

impl Ask {
    pub(super) fn of(range: Range) -> Self {
        Self { range, narrowed: false, pages: 1 }
    }

    /// Whether the range was cut.
    fn is_part(&self) -> bool {
        self.narrowed || matches!(self.range, Range::Second { through: Some(_), .. })
    }

    /// The same, asked for larger. `limit`: the rows that were asked for.
    fn wider(&self, limit: u32) -> Result<Self, Error> {
        if self.pages >= MOST_PAGES {
            return Err(Error::HiddenBlock { limit, second: time::format(self.range.first_second()) });
        }
        Ok(Self { pages: self.pages.saturating_mul(4), ..self.clone() })
    }
}

/// The first half of a range, or its first second row by row; `None` if it cannot be halved.
///
/// A second is cut at an id of our own making. It lies after `after` for certain only where both are hexadecimal: against any other id
/// the server's order decides, and a cursor might go back to it.
pub(super) fn halved(range: &Range, hi: Option<i64>, has_hexadecimal_ids: bool) -> Option<Ask> {
    let first = range.first_second();
    match range {
        Range::Seconds { to, .. } => {
            let upper = to.or(hi).unwrap_or(first);
            if first >= upper {
                return Some(Ask::of(Range::rest_of(first, "")));
            }
            Some(Ask { narrowed: true, ..Ask::of(Range::from(first, Some(first + (upper - first) / 2))) })
        }
        Range::Second { at, after, through } if has_hexadecimal_ids && after.len() <= 32 && is_hex(after) => {
            let low = prefix(after);
            let high = through.as_deref().map_or(u128::MAX, prefix);
            let middle = low + (high.saturating_sub(low)) / 2;
            let through = Some(format!("{middle:032x}"));
            (middle > low).then(|| Ask::of(Range::Second { at: *at, after: after.clone(), through }))
        }
        Range::Second { .. } => None,
    }
}

/// The id as a number, as far as it is hexadecimal: 32 digits, the missing ones zero.
fn prefix(id: &str) -> u128 {
    let digits: String = id.chars().take_while(char::is_ascii_hexdigit).take(32).collect();
    u128::from_str_radix(&format!("{digits:0<32}"), 16).unwrap_or(0)
}

/// The upper bound of twice the width beyond `id`; none where that reaches past the hexadecimal ids.
fn widened(id: &str, width: u128) -> Option<String> {
    prefix(id).checked_add(width.saturating_mul(2)).filter(|upper| *upper < u128::MAX).map(|upper| format!("{upper:032x}"))
}
