//! Sweeps of one table: polls, each on a connection of its own, made of batches.
//!
//! ```text
//! poll:   connect -> look at the table -> batch, batch, ... -> count late rows, if due -> close
//! ```
//!
//! Rows do not wait for the count of late ones: their page is given first, and then one without rows that says what the count
//! found. It is a service beside the delivery, and if it fails nothing else does.
//!
//! A poll ends at `max.rows.per.poll` rows, and another begins at once, until a batch is short: then the table is caught up. The
//! engine fetches a batch while the one before is produced.
//!
//! A wait that the end of the invocation ends is a normal end, as long as something came of the sweep or the server had little time. A
//! server that had [`UNANSWERED`](crate::source::UNANSWERED) and brought nothing is a failure, though no time-out of its own has
//! passed: in a short invocation it never would.
//!
//! The table is looked at once per poll. It is compared with the baseline by a digest that the cursor's notes hold, so the
//! baseline itself is read only to say what differs.

mod behind;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::activate::{self, Place};
use super::audit::{Audit, Late};
use super::batch::{Batch, Plan};
use super::catalog;
use super::connect::{Open, Server};
use super::drift;
use super::error::{Error, Remedy, Stage};
use super::keys;
use super::limit::Locks;
use super::sequence::Sequence;
use super::size::BatchSize;
use super::{position, validate};
use crate::cursor::{Phase, REMARK_NOTE};
use crate::failure::Failure;
use crate::host::Host;
use crate::record::schema::Schema;
use crate::source::{Checkpoint, Page, Resume, Siblings, Spent, SweepEnd, TableSweep};
use crate::sweep::{Admission, Allowance, Reason, Window, WindowChange};

/// Tries in a row for what may pass at once.
const TRIES: u32 = 3;

/// The note that the cursor is the sequence of a row, or was the highest one: one that falls below it has regressed. A cursor
/// that was set by hand may lie above all rows.
const REACHED: &str = "reached";

/// The note that holds the [`Audit`].
const AUDIT: &str = "audit";

/// Who a table is, for messages.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) connector: String,
    pub(super) alias: String,
}

/// Sweeps of one table.
pub(super) struct Session {
    server: Arc<Server>,
    names: Names,
    table: keys::Table,
    siblings: Arc<dyn Siblings>,
    place: Place,
    notes: BTreeMap<String, String>,
    audit: Option<Audit>,
    phase: Phase,
    /// Rows that may still be delivered.
    remaining: Option<u64>,
    size: BatchSize,
    poll: Option<Poll>,
    /// The rows of this sweep are given, and the count of late ones is due.
    owed: Option<Owed>,
    /// What rows are values of, in typed mode.
    schema: Option<Arc<Schema>>,
    /// Whether no page was given yet.
    is_first: bool,
    /// How long the last batch took.
    last_took: Duration,
    spent: Spent,
    remarks: Vec<Reason>,
}

/// A poll that is under way.
struct Poll {
    open: Open,
    plan: Plan,
    rows: u32,
}

/// What is left of a poll whose rows are given.
struct Owed {
    poll: Poll,
    /// When the last of them were asked for, in epoch milliseconds.
    asked_ms: i64,
}

impl Session {
    pub(super) fn new(server: Arc<Server>, names: Names, table: keys::Table, place: Place, from: Resume) -> Self {
        let audit =
            server.settings.audit_interval.map(|_| from.progress.notes.get(AUDIT).and_then(|text| Audit::read(text)).unwrap_or_default());
        Self {
            server,
            names,
            size: BatchSize::new(table.batch_size, from.page_size),
            table,
            siblings: from.siblings,
            place,
            audit,
            phase: from.progress.phase,
            remaining: from.max_rows,
            poll: None,
            owed: None,
            schema: None,
            is_first: true,
            last_took: Duration::ZERO,
            spent: Spent::default(),
            remarks: Vec::new(),
            // What was remarked is said again for as long as it is so.
            notes: from.progress.notes.into_iter().filter(|(name, _)| name != REMARK_NOTE).collect(),
        }
    }

    /// Asks until there is a page. `None`: time or rows are used up.
    async fn page(&mut self, allowance: &Allowance) -> Result<Option<Page>, Error> {
        if let Some(Owed { poll, asked_ms }) = self.owed.take() {
            let late = self.count_late(poll, allowance).await;
            return Ok(Some(self.finish(Batch::default(), &late, true, asked_ms, None)));
        }
        let (mut tries, mut before) = (1, None);
        loop {
            if self.remaining == Some(0) || !(self.is_first || allowance.covers(self.last_took)) {
                self.hang_up().await;
                return Ok(None);
            }
            // Boxed: the driver's futures are large.
            let error = match Box::pin(self.step(allowance)).await {
                Ok(page) => {
                    self.is_first &= page.is_none();
                    return Ok(page);
                }
                Err(error) => error,
            };
            // Whatever it was, the connection is not to be trusted any more.
            self.drop_poll();
            if error.is_cut() {
                return self.cut_short(error, before).map(|()| None);
            }
            before = (error.remedy() == Remedy::Again).then(|| error.clone());
            self.prepare(error, tries, allowance).await?;
            tries += 1;
        }
    }

    /// The end of the invocation ended a wait, in another try after `before`.
    ///
    /// # Errors
    /// Nothing came of this sweep, and that is the server's doing.
    fn cut_short(&mut self, error: Error, before: Option<Error>) -> Result<(), Error> {
        // Later batches have what the ones before have left, which says nothing about them.
        if !self.is_first {
            return Ok(());
        }
        if let Some(before) = before {
            return Err(before);
        }
        if matches!(error, Error::Slow { .. }) {
            self.size.halve();
            self.tell_smaller(&error);
        }
        if error.is_silence() {
            return Err(error);
        }
        self.remarks.push(Reason::from(&error.of(&self.names.connector, &self.names.alias, &self.table.name)));
        Ok(())
    }

    /// Makes ready for another try after `error`.
    ///
    /// # Errors
    /// There is none to be made.
    async fn prepare(&mut self, error: Error, tries: u32, allowance: &Allowance) -> Result<(), Error> {
        let is_another = match (error.remedy(), &error) {
            (Remedy::Again, _) if tries < TRIES => {
                self.pause(allowance, tries, &error).await;
                return Ok(());
            }
            // How many fit is known now, and how much room to wait for. With fewer each time this comes to an end.
            (Remedy::Smaller, Error::Squeezed { rows, bytes }) => self.size.dropped(*rows, *bytes),
            (Remedy::Smaller, _) => tries < TRIES && self.size.halve(),
            _ => false,
        };
        if !is_another {
            return Err(error);
        }
        self.tell_smaller(&error);
        Ok(())
    }

    async fn step(&mut self, allowance: &Allowance) -> Result<Option<Page>, Error> {
        let mut poll = match self.poll.take() {
            Some(poll) => poll,
            None => self.begin(allowance).await?,
        };
        if self.place == Place::NotActivated {
            let page = self.activate(&mut poll, allowance).await?;
            self.after(Some(poll), page.end.is_some()).await;
            return Ok(Some(page));
        }
        let rows = self.wanted(&poll);
        let Some(admission) = allowance.admit(self.size.room(rows)).await else {
            poll.open.close().await;
            return Ok(None);
        };
        let asked_ms = allowance.host().now_ms();
        let batch = self.batch(&mut poll, rows, allowance, &admission).await?;
        poll.rows += rows.min(batch.rows());
        if batch.rows() < rows {
            return Box::pin(self.end(poll, batch, asked_ms, admission, allowance)).await.map(Some);
        }
        let is_over = poll.rows >= self.table.max_rows_per_poll;
        self.after(Some(poll), is_over).await;
        Ok(Some(self.finish(batch, &[], false, asked_ms, admission)))
    }

    /// The page of the last rows for now; whatever fails from here on holds back none of them.
    async fn end(&mut self, poll: Poll, batch: Batch, asked_ms: i64, admission: Admission, allowance: &Allowance) -> Result<Page, Error> {
        let poll = if poll.rows == 0 { self.check_highest(poll, allowance).await? } else { Some(poll) };
        let is_due = self.is_audit_due(allowance);
        match poll {
            Some(poll) if is_due && batch.rows() == 0 => {
                let late = self.count_late(poll, allowance).await;
                Ok(self.finish(batch, &late, true, asked_ms, admission))
            }
            // At the last row of a limit no page is asked for that could say what was found.
            Some(poll) if is_due && self.remaining.is_none_or(|left| left > batch.rows().into()) => {
                let page = self.finish(batch, &[], true, asked_ms, admission);
                self.owed = Some(Owed { poll, asked_ms });
                Ok(Page { end: None, ..page })
            }
            poll => {
                self.after(poll, true).await;
                Ok(self.finish(batch, &[], true, asked_ms, admission))
            }
        }
    }

    async fn begin(&mut self, allowance: &Allowance) -> Result<Poll, Error> {
        let is_activated = matches!(self.place, Place::After(_));
        self.look(allowance).await.map_err(|error| if is_activated { error.of_activated() } else { error })
    }

    /// Connects, and looks at the table.
    async fn look(&mut self, allowance: &Allowance) -> Result<Poll, Error> {
        let mut open = Box::pin(self.server.open(allowance)).await?;
        let table = self.table.clone();
        let results = self.ask(&mut open, |locks| catalog::question(&table, locks), allowance).await?;
        let pollable = validate::check(catalog::read(&results)?, &table.name, &table.sequence_column)?;
        self.server.tell_unprotected(&self.names.connector, &self.names.alias, &pollable);
        let baseline = match self.place {
            Place::NotActivated => pollable.baseline.clone(),
            Place::After(_) => drift::compare(&*self.siblings, &mut self.notes, &pollable.baseline, &self.names).await?,
        };
        let mut plan = self.server.plan(pollable, &baseline);
        if plan.schema == self.schema {
            // The very same, so that nobody has to find out that it is equal.
            plan.schema.clone_from(&self.schema);
        } else {
            self.schema.clone_from(&plan.schema);
        }
        Ok(Poll { open, plan, rows: 0 })
    }

    async fn ask<'q>(
        &mut self,
        open: &mut Open,
        statement: impl FnOnce(Locks) -> tiberius::Query<'q>,
        allowance: &Allowance,
    ) -> Result<Vec<Vec<tiberius::Row>>, Error> {
        self.spent.requests += 1;
        let asked = open.ask(statement, allowance).await;
        self.spent.bytes_in += open.take_bytes_in();
        asked
    }

    /// Writes the baseline, and answers the page whose commit is the activation.
    async fn activate(&mut self, poll: &mut Poll, allowance: &Allowance) -> Result<Page, Error> {
        let asked_ms = allowance.host().now_ms();
        let highest = match self.table.start {
            keys::Start::Latest => self.highest(poll, allowance).await?,
            keys::Start::Earliest | keys::Start::After(_) => None,
        };
        let watermark = activate::watermark(&self.table.start, highest);
        drift::keep(&*self.siblings, &mut self.notes, &poll.plan.table.baseline).await?;
        self.place = Place::After(watermark);
        let is_caught_up = self.table.start == keys::Start::Latest;
        if highest.is_some() {
            self.notes.insert(REACHED.to_owned(), String::new());
        }
        let at = watermark.map_or_else(|| "none".to_owned(), |at| at.to_string());
        tracing::info!(connector = self.names.connector, table = self.names.alias, watermark = at, "the table is activated");
        Ok(self.finish(Batch::default(), &[], is_caught_up, asked_ms, None))
    }

    /// The highest sequence; `None` where there is no row.
    async fn highest(&mut self, poll: &mut Poll, allowance: &Allowance) -> Result<Option<Sequence>, Error> {
        highest(&self.ask(&mut poll.open, |locks| poll.plan.highest(locks), allowance).await?)
    }

    /// How many rows the next batch may have.
    fn wanted(&self, poll: &Poll) -> u32 {
        let of_poll = self.table.max_rows_per_poll.saturating_sub(poll.rows).max(1);
        let of_run = self.remaining.map_or(u32::MAX, |left| u32::try_from(left).unwrap_or(u32::MAX));
        self.size.rows().min(of_poll).min(of_run)
    }

    async fn batch(&mut self, poll: &mut Poll, rows: u32, allowance: &Allowance, admission: &Admission) -> Result<Batch, Error> {
        let host = allowance.host();
        let begun = host.monotonic();
        let limit = poll.open.limit(allowance);
        let locks = limit.locks(host);
        let mut batch = Batch::above(self.place.position(), self.size.expected(rows));
        self.spent.requests += 1;
        let reading = poll.plan.read(&mut poll.open, &mut batch, rows, locks, admission);
        let read = timeout(limit.left(host), reading).await;
        self.spent.bytes_in += poll.open.take_bytes_in();
        match read {
            Ok(read) => read.map_err(|error| limit.explain(locks, error))?,
            Err(_) => return Err(not_in_time(limit.passed(Stage::Statement), rows, batch.rows())),
        }
        self.last_took = host.monotonic().saturating_sub(begun);
        self.size.read(batch.len(), batch.size());
        admission.settle(batch.size() as u64);
        Ok(batch)
    }

    /// What follows from a batch that was read.
    fn finish(&mut self, batch: Batch, late: &[Late], is_last: bool, asked_ms: i64, admission: impl Into<Option<Admission>>) -> Page {
        self.tell_replaced(&batch);
        if let (Some(last), true) = (batch.last, batch.len() > 0) {
            if let Some(audit) = &mut self.audit {
                audit.delivered(self.place.position(), last, batch.len() as u64);
            }
            self.place = Place::After(batch.last);
            self.notes.insert(REACHED.to_owned(), String::new());
            self.remaining = self.remaining.map(|left| left.saturating_sub(batch.len() as u64));
        }
        if let Some(audit) = &self.audit {
            self.notes.insert(AUDIT.to_owned(), audit.text());
        }
        self.phase = if is_last { Phase::Stream } else { Phase::Backfill };
        Page {
            checkpoint: Checkpoint {
                cursor: Some(position::written(self.place.position())),
                window: WindowChange::default(),
                swept_to_ms: is_last.then_some(asked_ms),
                phase: self.phase,
                page_size: self.size.lowered(),
                clock_difference_ms: None,
                notes: self.notes.clone(),
            },
            schema: self.schema.clone(),
            rows: batch.into_rows(),
            extracted_at_ms: asked_ms,
            end: is_last.then_some(SweepEnd { caught_up: true }),
            suppressed: 0,
            skipped: 0,
            hidden: 0,
            late: late.iter().map(|late| late.rows).sum(),
            admission: admission.into().map(Arc::new),
        }
    }

    fn tell_replaced(&mut self, batch: &Batch) {
        if batch.replaced > 0 {
            let Names { connector, alias } = &self.names;
            self.spent.values_replaced += batch.replaced;
            tracing::warn!(connector, table = alias, values = batch.replaced, "values could not be read and were replaced (U+FFFD, null)");
        }
    }

    fn tell_smaller(&self, why: &Error) {
        let Names { connector, alias } = &self.names;
        tracing::warn!(connector, table = alias, rows = self.size.rows(), %why, "asking for smaller batches");
    }

    /// Keeps the connection for the next batch, or ends it.
    async fn after(&mut self, poll: Option<Poll>, is_over: bool) {
        self.poll = poll;
        if is_over {
            self.hang_up().await;
        }
    }

    async fn hang_up(&mut self) {
        if let Some(poll) = self.poll.take() {
            poll.open.close().await;
        }
    }

    /// Closes the socket without a word.
    fn drop_poll(&mut self) {
        self.poll = None;
    }

    async fn pause(&self, allowance: &Allowance, tries: u32, error: &Error) {
        let host: &Host = allowance.host();
        let pause = Duration::from_millis(100 + host.jitter(200 << tries));
        tracing::warn!(
            connector = self.names.connector,
            table = self.names.alias,
            error = error.cause(),
            tries,
            "trying again with a new connection"
        );
        tokio::time::sleep(allowance.timeout(pause)).await;
    }
}

/// What it means that a batch of up to `rows` rows did not come in time though `arrived` had: it is too large, unless it is as small as
/// can be.
fn not_in_time(error: Error, rows: u32, arrived: u32) -> Error {
    match error {
        Error::TimedOut { limit, .. } | Error::Cut { waited: limit, .. } if arrived > 0 && rows > 1 => {
            Error::Slow { rows, arrived, limit, is_cut: error.is_cut() }
        }
        other => other,
    }
}

/// The only value of the only row of an answer.
fn only<'r>(results: &'r [Vec<tiberius::Row>], statement: &'static str) -> Result<&'r tiberius::ColumnData<'static>, Error> {
    let row = results.first().and_then(|rows| rows.first()).ok_or(Error::NoResult { statement })?;
    row.get_column_data(0).map_err(|error| Error::of_driver(Stage::Statement, error))
}

/// The answer to the question for the highest sequence; `None` where there is no row.
pub(super) fn highest(results: &[Vec<tiberius::Row>]) -> Result<Option<Sequence>, Error> {
    let value = only(results, "the question for the highest sequence")?;
    match Sequence::read(value) {
        Some(highest) => Ok(Some(highest)),
        None if is_null(value) => Ok(None),
        None => Err(Error::Malformed { stage: Stage::Statement, detail: "the highest sequence is no whole number".to_owned() }),
    }
}

/// The answer to a question for a count.
pub(super) fn count(results: &[Vec<tiberius::Row>]) -> Result<u64, Error> {
    match only(results, "the question for a count")? {
        tiberius::ColumnData::I64(Some(count)) => Ok(u64::try_from(*count).unwrap_or_default()),
        other => Err(Error::Malformed { stage: Stage::Statement, detail: format!("a count is {other:?}") }),
    }
}

fn is_null(value: &tiberius::ColumnData<'_>) -> bool {
    use tiberius::ColumnData::{I16, I32, I64, Numeric, U8};
    matches!(value, U8(None) | I16(None) | I32(None) | I64(None) | Numeric(None))
}

#[async_trait]
impl TableSweep for Session {
    async fn next_page(&mut self, allowance: &Allowance) -> Result<Option<Page>, Failure> {
        // Boxed: the driver's futures are large.
        let page = Box::pin(self.page(allowance)).await;
        page.map_err(|error| error.of(&self.names.connector, &self.names.alias, &self.table.name))
    }

    fn spent(&mut self) -> Spent {
        Spent { page_size: self.size.lowered(), ..std::mem::take(&mut self.spent) }
    }

    fn window(&self) -> Option<Window> {
        None
    }

    fn remarks(&mut self) -> Vec<Reason> {
        std::mem::take(&mut self.remarks)
    }
}
