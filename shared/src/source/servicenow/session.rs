//! The planner driven over HTTP: pages within the allowance, smaller ones where large ones do not work.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::SnowTable;
use super::ahead::{self, Future, Look, Sight};
use super::answer::{NO_ID, Reading};
use super::error::{Error, Remedy};
use super::http::{Call, Fetched, Instance, Wanted};
use super::keys::DisplayValue;
use super::planner::{Answer, At, Delivery, Outcome, Planner, Projection, Request, Start};
use super::probe::{NOTE, Pending, Trouble};
use super::range::{CursorFields, encoded, newest};
use super::{keys, position};
use crate::cursor::Phase;
use crate::failure::Failure;
use crate::source::{Checkpoint, Content, Page, Resume, Row, Spent, TableSweep, UNANSWERED};
use crate::sweep::{Admission, Allowance, Reason, Window};

/// The room asked for before the first page, whose size is not known.
const FIRST_PAGE: u64 = 8 << 20;

/// The stable code of a window with no room for the overlap.
const WINDOW_CODE: &str = "Source.WindowTooSmall";

/// Good full pages in a row after which a page size that was lowered is doubled.
const GOOD_PAGES: u32 = 4;

/// Sweeps of one table.
pub(super) struct Session {
    instance: Arc<Instance>,
    table: keys::Table,
    reading: Reading,
    planner: Planner<Bytes>,
    window: Window,
    identity: (String, String),
    configured: u32,
    good_pages: u32,
    /// Half a page was asked for after a failure that may have been for its size, and no page has come since.
    has_halved: bool,
    /// The probe to begin with.
    pending: Option<Pending>,
    /// What is remembered of the last probe.
    probed: Option<String>,
    /// How long the last request for a page took.
    last_took: Duration,
    /// When the last request for rows was sent, in epoch milliseconds.
    extracted_at_ms: i64,
    /// Bytes of the last page, inflated; 0 before the first.
    last_size: u64,
    /// The room to ask for: half as much again as the last page.
    estimate: u64,
    spent: Spent,
    /// Whether a page came of this session, all the time that there was for one, and how long requests were waited for in vain before it
    /// came.
    brought: bool,
    had: Option<Duration>,
    unanswered: Duration,
    /// What the answers of this sweep have shown, and whether it began caught up.
    sight: Sight,
    began_in: Phase,
    /// The last look for rows before a cursor that none is behind.
    look: Option<Look>,
    /// Whether the cursor lies ahead of the instance's clock.
    future: Option<Future>,
    /// Seconds before the cursor that are read again, and how many rows of them can be known.
    overlap: i64,
    room: usize,
    remarks: Vec<Reason>,
}

impl Session {
    pub(super) fn new(table: &SnowTable, from: Resume, cursor: At) -> Self {
        let pending = Pending::of(table, &from, &cursor);
        let probed = from.progress.notes.get(NOTE).cloned();
        let look = Look::read(&from.progress.notes);
        let began_in = from.progress.phase;
        let start = Start {
            cursor,
            kept: from.kept,
            phase: from.progress.phase,
            swept_to: from.progress.swept_to_ms.map(|ms| ms.div_euclid(1000)),
            difference_ms: from.progress.clock_difference_ms,
            notes: from.progress.notes,
            page_size: from.page_size,
            max_rows: from.max_rows,
        };
        let planning = table.planning();
        let (overlap, room) = (planning.overlap, planning.window_limit);
        let planner = Planner::new(planning, start);
        Self {
            instance: Arc::clone(&table.instance),
            table: table.table.clone(),
            reading: Reading { fields: table.fields(), display: table.table.display_value, bad_row: table.settings.bad_row },
            window: planner.window().clone(),
            planner,
            identity: (table.identity.connector.clone(), table.identity.alias.clone()),
            configured: table.table.batch_size,
            good_pages: 0,
            has_halved: false,
            pending,
            probed,
            last_took: Duration::ZERO,
            extracted_at_ms: 0,
            last_size: 0,
            estimate: FIRST_PAGE,
            spent: Spent::default(),
            brought: false,
            had: None,
            unanswered: Duration::ZERO,
            sight: Sight::default(),
            began_in,
            look,
            future: None,
            overlap,
            room,
            remarks: Vec::new(),
        }
    }

    /// Probes the table unless what is remembered answers for it. `false`: the time is over.
    async fn probe(&mut self, allowance: &Allowance) -> Result<bool, Failure> {
        let Some(mut pending) = self.pending.take() else { return Ok(true) };
        let now_ms = allowance.host().now_ms();
        if let Some(note) = pending.answered(now_ms).await {
            self.probed = Some(note);
            return Ok(true);
        }
        let verdict = pending.prober.run(allowance, &mut self.spent).await;
        for remark in &pending.prober.remarks {
            tracing::warn!(connector = self.identity.0, table = self.identity.1, remark, "probed");
        }
        let settled = match verdict {
            Err(Trouble::Failed(Error::BudgetSpent | Error::RequestsSpent)) => {
                self.pending = Some(pending);
                return Ok(false);
            }
            Err(Trouble::Failed(Error::Cut { waited, token_url })) => {
                self.pending = Some(pending);
                return self.cut(waited, token_url).map(|()| false).map_err(|error| self.failure(&error));
            }
            Ok(verdict) => Ok(verdict),
            Err(Trouble::Failed(error)) => Err(self.failure(&error)),
            Err(Trouble::Found(finding)) => Err(finding.of(&self.identity.0, &self.identity.1, &self.table.name)),
        };
        self.probed = pending.record(settled.as_ref().copied(), now_ms).await;
        settled.map(|_| true)
    }

    /// Asks until an answer leads to a page. `None`: the time is over.
    async fn page(&mut self, allowance: &Allowance) -> Result<Option<Page>, Error> {
        loop {
            let is_first = self.planner.is_first();
            let in_time = is_first || allowance.covers(self.last_took);
            let admission = if in_time { allowance.admit(self.estimate).await } else { None };
            let Some(admission) = admission else { return self.in_hand() };
            let request = self.planner.request(allowance.host().now_ms());
            let outcome = match self.ask(&request, allowance, &admission).await {
                Ok((fetched, answer)) => {
                    self.learn(&request, &fetched, &answer);
                    self.sight.saw(answer.visible(), answer.total);
                    self.planner.answer(&request, answer)?
                }
                Err(error) if request.projection == Projection::Count => match self.without_count(error)? {
                    Some(outcome) => outcome,
                    None => return Ok(None),
                },
                Err(Error::BudgetSpent) => return Ok(None),
                Err(Error::Cut { waited, token_url }) => {
                    if token_url.is_none() && self.was_long(waited) {
                        self.shrink("it did not come within the time of an invocation");
                    }
                    return self.cut(waited, token_url).map(|()| None);
                }
                Err(error) if error.remedy() == Remedy::Smaller => {
                    self.ask_for_less(error)?;
                    continue;
                }
                Err(error) if error.may_be_for_size() && self.planner.page_size() > 1 => {
                    self.ask_for_half(error)?;
                    continue;
                }
                Err(error @ Error::UrlTooLong { .. }) if self.planner.ask_for_fewer_ids() => {
                    tracing::debug!(connector = self.identity.0, table = self.identity.1, %error, "asking for fewer rows by id");
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Outcome::Page(delivery) = outcome {
                (self.brought, self.has_halved) = (true, false);
                if delivery.end.is_some() {
                    self.look_at_window();
                    self.look_ahead(&delivery.cursor);
                    self.look_behind(&delivery.cursor, allowance, &admission).await?;
                }
                return Ok(Some(self.finish(*delivery, Some(admission))));
            }
        }
    }

    /// What there is without another request, when there is no time for one: the page that waits for a count, or the end of a sweep
    /// that has re-read what it could.
    fn in_hand(&mut self) -> Result<Option<Page>, Error> {
        let outcome = match self.planner.do_without_count()? {
            None => self.planner.end_without_the_rest(),
            some => some,
        };
        let Some(Outcome::Page(delivery)) = outcome else { return Ok(None) };
        if delivery.end.is_some() {
            self.look_at_window();
            self.look_ahead(&delivery.cursor);
        }
        Ok(Some(self.finish(*delivery, None)))
    }

    /// Goes on after the request for a count has failed, with the page that waits for it. `None`: the time is over.
    fn without_count(&mut self, error: Error) -> Result<Option<Outcome<Bytes>>, Error> {
        if error.is_refusal() {
            return Err(error);
        }
        let outcome = self.planner.do_without_count()?;
        match error {
            error if outcome.is_some() => {
                tracing::warn!(connector = self.identity.0, table = self.identity.1, %error, "going on without a count");
                Ok(outcome)
            }
            Error::BudgetSpent => Ok(None),
            Error::Cut { waited, token_url } => self.cut(waited, token_url).map(|()| None),
            // The page of a count is as small as it can be.
            error if error.remedy() == Remedy::Smaller => Err(Error::Uncounted { detail: error.to_string() }),
            error => Err(error),
        }
    }

    /// What to change about a page that is too much for the instance, the connection or the memory.
    fn ask_for_less(&mut self, error: Error) -> Result<(), Error> {
        if let Error::TimedOut { after, .. } = &error {
            self.unanswered += *after;
        }
        // What took so long may have been its count.
        if matches!(error, Error::TimedOut { .. } | Error::Cancelled { .. }) && self.planner.drop_count() {
            tracing::warn!(connector = self.identity.0, table = self.identity.1, %error, "asking again without a count");
            return Ok(());
        }
        if self.planner.page_size() <= 1 {
            return Err(error);
        }
        self.shrink(&error.to_string());
        Ok(())
    }

    /// Goes on with half a page after the tries for a whole one have run out with what may be for its size. Where half a page does not come
    /// either, the instance may be out of reach for all sizes: the next sweep goes on with half of that.
    fn ask_for_half(&mut self, error: Error) -> Result<(), Error> {
        self.shrink(&error.to_string());
        if std::mem::replace(&mut self.has_halved, true) { Err(error) } else { Ok(()) }
    }

    /// Whether a wait that the end of the invocation cut tells that a page may be too big: nothing came before it, and it was long in itself or
    /// had most of the time there was. One with what a probe or other sweeps have left over tells nothing.
    fn was_long(&self, waited: Duration) -> bool {
        !self.brought && (waited >= UNANSWERED || self.had.is_some_and(|had| waited >= had / 2))
    }

    /// The end of the invocation cut a wait that had lasted for `waited`, for the instance or for a token of `token_url`.
    ///
    /// # Errors
    /// The wait was long, and the session has brought no page: a source that hangs must not look like one that is busy.
    fn cut(&self, waited: Duration, token_url: Option<String>) -> Result<(), Error> {
        let waited = waited + self.unanswered;
        if self.brought || waited < UNANSWERED { Ok(()) } else { Err(Error::Cut { waited, token_url }) }
    }

    /// After a sweep: whether the window had no room for seconds in which late rows can still appear. With room for one it is switched off.
    fn look_at_window(&mut self) {
        let Some(last) = self.planner.given_up().filter(|_| self.room > 1) else { return };
        let (connector, alias, table, room) = (&self.identity.0, &self.identity.1, &self.table.name, self.room);
        let message = format!(
            "{connector}/{alias} (table {table}): the dedup window of {room} rows has no room for the overlap of {} s. Late rows of {} and before are not \
             looked for. Raise snow.source.dedup.window.records to the rows that the table gets in two overlaps, or lower snow.source.overlap.seconds",
            self.overlap,
            super::time::format(last),
        );
        self.remarks.push(Reason { code: WINDOW_CODE.to_owned(), message });
    }

    /// After a sweep: whether the cursor lies ahead of the instance's clock.
    fn look_ahead(&mut self, cursor: &At) {
        self.future = self.planner.instance_now().and_then(|now| Future::of(cursor.second, now, self.overlap));
        let text = self.future.map(|future| future.text(&self.identity.0, &self.identity.1, &self.table.name));
        self.remarks.extend(text.map(|message| Reason { code: ahead::FUTURE_CODE.to_owned(), message }));
    }

    /// After a sweep that has seen nothing: whether rows are left before the cursor only.
    async fn look_behind(&mut self, cursor: &At, allowance: &Allowance, admission: &Admission) -> Result<(), Error> {
        let (sight, began_in) = (std::mem::take(&mut self.sight), std::mem::replace(&mut self.began_in, self.planner.phase()));
        let is_known = self.look.as_ref().is_some_and(|look| look.cursor == *cursor);
        // Where the cursor lies after the high-water mark nothing could be seen.
        let could_see = self.planner.has_reached_cursor() && began_in == Phase::Stream && !cursor.id.is_empty();
        if !sight.is_nothing() || !could_see || is_known || !allowance.covers(self.last_took) {
            return Ok(());
        }
        let fields = &self.reading.fields;
        let mut parameters = vec![
            ("sysparm_query", newest(&self.table.query, fields)),
            ("sysparm_limit", "1".to_owned()),
            ("sysparm_no_count", "true".to_owned()),
            ("sysparm_display_value", "false".to_owned()),
        ];
        parameters.extend(self.projected(Projection::Versions, fields).map(|fields| ("sysparm_fields", fields)));
        parameters.extend(self.rights());
        let reading = self.reading(Projection::Versions);
        let mut call = Call { allowance, admission, limit: 1, expected: 0, wanted: Wanted::Rows(&reading), spent: &mut self.spent };
        let newest = match self.instance.get(&self.table.name, &parameters, &mut call).await {
            Ok(fetched) => fetched.rows.rows.first().map(|(head, _)| head.second),
            Err(error @ Error::Unauthorized { .. }) => return Err(error),
            Err(error) => {
                // The sweep itself is through; the next one looks again.
                tracing::debug!(connector = self.identity.0, table = self.identity.1, %error, "no look behind the cursor");
                return Ok(());
            }
        };
        if newest.is_some_and(|newest| newest >= cursor.second) {
            // It changed too lately for this sweep: the next one delivers it.
            return Ok(());
        }
        let look = Look { cursor: cursor.clone(), newest };
        let text = look.text(&self.identity.0, &self.identity.1, &self.table.name);
        self.remarks.extend(text.map(|message| Reason { code: ahead::CODE.to_owned(), message }));
        self.look = Some(look);
        Ok(())
    }

    async fn ask(&mut self, request: &Request, allowance: &Allowance, admission: &Admission) -> Result<(Fetched, Answer<Bytes>), Error> {
        let parameters = self.parameters(request);
        let reading = (request.projection != Projection::Count).then(|| self.reading(request.projection));
        let wanted = reading.as_ref().map_or(Wanted::Count, Wanted::Rows);
        // A little more than the last page, as pages of one table are much alike.
        let expected = if request.projection == Projection::Whole { self.last_size + self.last_size / 16 } else { 0 };
        let mut call = Call { allowance, admission, limit: request.limit, expected, wanted, spent: &mut self.spent };
        let mut fetched = self.instance.get(&self.table.name, &parameters, &mut call).await?;
        let rows = std::mem::take(&mut fetched.rows);
        let answer = Answer {
            rows: rows.rows,
            skipped: rows.skipped,
            total: fetched.total,
            next_link: fetched.next_link,
            date: fetched.date,
            sent_ms: fetched.sent_ms,
            elapsed_ms: fetched.elapsed_ms,
        };
        Ok((fetched, answer))
    }

    fn reading(&self, projection: Projection) -> Reading {
        let display = if projection == Projection::Versions { DisplayValue::False } else { self.reading.display };
        Reading { display, ..self.reading.clone() }
    }

    /// The request's parameters.
    fn parameters(&self, request: &Request) -> Vec<(&'static str, String)> {
        let fields = &self.reading.fields;
        let mut terms = request.range.terms(fields);
        if !request.ids.is_empty() {
            terms.push_str(&format!("^{}IN{}", fields.id, request.ids.join(",")));
        }
        let mut parameters = vec![
            ("sysparm_query", encoded(&self.table.query, &terms, fields)),
            ("sysparm_limit", request.limit.to_string()),
            ("sysparm_no_count", (!request.counted).to_string()),
            ("sysparm_exclude_reference_link", self.table.exclude_reference_link.to_string()),
        ];
        let display = match self.reading.display {
            // Display values come with the raw ones, so that the cursor stays readable.
            DisplayValue::True | DisplayValue::All if request.projection == Projection::Whole => "all",
            _ => "false",
        };
        parameters.push(("sysparm_display_value", display.to_owned()));
        if let Some(fields) = self.projected(request.projection, fields) {
            parameters.push(("sysparm_fields", fields));
        }
        parameters.extend(self.rights());
        parameters
    }

    /// The parameters that say whose rows are meant, and who is to find them.
    fn rights(&self) -> Vec<(&'static str, String)> {
        let no_domain = (!self.table.query_domain).then(|| ("sysparm_query_no_domain", "true".to_owned()));
        let category = self.table.query_category.as_ref().map(|category| ("sysparm_query_category", category.clone()));
        no_domain.into_iter().chain(category).collect()
    }

    fn projected(&self, projection: Projection, cursor: &CursorFields) -> Option<String> {
        match projection {
            Projection::Whole => self.table.fields.as_ref().map(|fields| fields.join(",")),
            Projection::Versions => Some([cursor.id.as_str(), &cursor.timestamp, &cursor.mod_count].join(",")),
            Projection::Count => Some(cursor.id.clone()),
        }
    }

    fn shrink(&mut self, why: &str) {
        let smaller = (self.planner.page_size() / 2).max(1);
        tracing::warn!(connector = self.identity.0, table = self.identity.1, rows = smaller, why, "asking for smaller pages");
        self.planner.set_page_size(smaller);
        self.good_pages = 0;
    }

    /// What a good answer teaches about the next request.
    fn learn(&mut self, request: &Request, fetched: &Fetched, answer: &Answer<Bytes>) {
        if request.projection != Projection::Whole {
            return;
        }
        (self.last_took, self.extracted_at_ms) = (fetched.took, fetched.sent_ms);
        self.last_size = fetched.size;
        self.estimate = (fetched.size + fetched.size / 2).max(64 << 10);
        if answer.rows.len() < request.limit as usize {
            return;
        }
        self.good_pages += 1;
        if self.good_pages >= GOOD_PAGES && self.planner.page_size() < self.configured {
            self.planner.set_page_size(self.planner.page_size().saturating_mul(2).min(self.configured));
            self.good_pages = 0;
        }
    }

    fn finish(&self, mut delivery: Delivery<Bytes>, admission: Option<Admission>) -> Page {
        for skipped in &delivery.skipped {
            tracing::warn!(
                connector = self.identity.0,
                table = self.identity.1,
                row = skipped.id.as_deref().unwrap_or(NO_ID),
                field = skipped.field,
                value = skipped.value,
                "row skipped: its cursor cannot be read"
            );
        }
        if let Some(probed) = &self.probed {
            delivery.notes.insert(NOTE.to_owned(), probed.clone());
        }
        if let Some(look) = &self.look {
            look.write(&delivery.cursor, &mut delivery.notes);
        }
        if let Some(future) = self.future {
            future.write(&mut delivery.notes);
        }
        Page {
            rows: delivery
                .rows
                .into_iter()
                .map(|(head, value)| Row {
                    key: Bytes::from(head.id),
                    content: Content::Json(value),
                    timestamp_ms: Some(head.second.saturating_mul(1000)),
                })
                .collect(),
            schema: None,
            extracted_at_ms: self.extracted_at_ms,
            checkpoint: Checkpoint {
                cursor: Some(position::written(&delivery.cursor)),
                window: delivery.window,
                swept_to_ms: delivery.swept_to.map(|second| second.saturating_mul(1000)),
                phase: delivery.phase,
                page_size: self.lowered(),
                clock_difference_ms: self.planner.difference_ms(),
                notes: delivery.notes,
            },
            end: delivery.end,
            suppressed: delivery.suppressed,
            skipped: delivery.skipped.len() as u64,
            hidden: delivery.hidden,
            late: 0,
            admission: admission.map(Arc::new),
        }
    }

    /// The page size that works, if it is not the configured one.
    fn lowered(&self) -> Option<u32> {
        Some(self.planner.page_size()).filter(|rows| *rows != self.configured)
    }

    fn failure(&self, error: &Error) -> Failure {
        error.of(&self.identity.0, &self.identity.1, &self.table.name)
    }
}

#[async_trait]
impl TableSweep for Session {
    async fn next_page(&mut self, allowance: &Allowance) -> Result<Option<Page>, Failure> {
        self.had.get_or_insert_with(|| allowance.timeout(Duration::MAX));
        if !self.probe(allowance).await? {
            return Ok(None);
        }
        match self.page(allowance).await {
            // Whoever holds the allowance knows why.
            Err(Error::RequestsSpent) => Ok(None),
            page => page.map_err(|error| self.failure(&error)),
        }
    }

    fn spent(&mut self) -> Spent {
        Spent { page_size: self.lowered(), ..std::mem::take(&mut self.spent) }
    }

    fn window(&self) -> Option<Window> {
        Some(self.window.clone())
    }

    fn remarks(&mut self) -> Vec<Reason> {
        std::mem::take(&mut self.remarks)
    }
}
