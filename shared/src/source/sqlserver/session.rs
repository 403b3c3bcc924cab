//! Sweeps of one table: polls, each on a connection of its own, made of batches.
//!
//! ```text
//! poll:   connect -> look at the table -> batch, batch, ... -> count late rows, if due -> close
//! ```
//!
//! A poll ends at `max.rows.per.poll` rows, and another begins at once, until a batch is short: then the table is caught up. The
//! engine fetches a batch while the one before is produced.
//!
//! The table is looked at once per poll. It is compared with the baseline by a digest that the cursor's notes hold, so the
//! baseline itself is read only to say what differs.

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
use super::keys::{self, Intent};
use super::sequence::Sequence;
use super::{position, validate};
use crate::cursor::Phase;
use crate::failure::Failure;
use crate::host::Host;
use crate::record::schema::Schema;
use crate::source::{Checkpoint, Page, Resume, Siblings, Spent, SweepEnd, TableSweep};
use crate::sweep::{Admission, Allowance, Window, WindowChange};

/// The room asked for before the first batch, whose size is not known.
const FIRST_BATCH: u64 = 8 << 20;

/// Good full batches in a row after which a batch size that was lowered is doubled.
const GOOD_BATCHES: u32 = 4;

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
    batch_size: u32,
    good_batches: u32,
    poll: Option<Poll>,
    /// What rows are values of, in typed mode.
    schema: Option<Arc<Schema>>,
    is_first: bool,
    /// How long the last batch took.
    last_took: Duration,
    /// Bytes of the last batch; 0 before the first.
    last_size: u64,
    /// The room to ask for: half as much again as the last batch.
    estimate: u64,
    spent: Spent,
}

/// A poll that is under way.
struct Poll {
    open: Open,
    plan: Plan,
    rows: u32,
}

impl Session {
    pub(super) fn new(server: Arc<Server>, names: Names, table: keys::Table, place: Place, from: Resume) -> Self {
        let audit =
            server.settings.audit_interval.map(|_| from.progress.notes.get(AUDIT).and_then(|text| Audit::read(text)).unwrap_or_default());
        Self {
            server,
            names,
            table,
            siblings: from.siblings,
            place,
            audit,
            phase: from.progress.phase,
            remaining: from.max_rows,
            batch_size: from.page_size,
            good_batches: 0,
            poll: None,
            schema: None,
            is_first: true,
            last_took: Duration::ZERO,
            last_size: 0,
            estimate: FIRST_BATCH,
            spent: Spent::default(),
            notes: from.progress.notes,
        }
    }

    /// Asks until there is a page. `None`: time or rows are used up.
    async fn page(&mut self, allowance: &Allowance) -> Result<Option<Page>, Error> {
        let mut tries = 1;
        loop {
            if self.remaining == Some(0) || !(self.is_first || allowance.covers(self.last_took)) {
                self.hang_up().await;
                return Ok(None);
            }
            let error = match self.step(allowance).await {
                Ok(Some(page)) => {
                    self.is_first = false;
                    return Ok(Some(page));
                }
                Ok(None) => return Ok(None),
                Err(error) => error,
            };
            // Whatever it was, the connection is not to be trusted any more.
            self.drop_poll();
            match error.remedy() {
                _ if error == Error::BudgetSpent => return Ok(None),
                Remedy::Again if tries < TRIES => self.pause(allowance, tries, &error).await,
                Remedy::Smaller if self.batch_size > 1 => match error {
                    // How many fit is known now, and with fewer each time this comes to an end.
                    Error::Squeezed { rows } => self.shrink_to(rows - rows / 4, &error.to_string()),
                    _ if tries < TRIES => self.shrink_to(self.batch_size / 2, &error.to_string()),
                    _ => return Err(error),
                },
                _ => return Err(error),
            }
            tries += 1;
        }
    }

    async fn step(&mut self, allowance: &Allowance) -> Result<Option<Page>, Error> {
        let mut poll = match self.poll.take() {
            Some(poll) => poll,
            None => self.begin(allowance).await?,
        };
        if self.place == Place::NotActivated {
            let page = self.activate(&mut poll, allowance).await?;
            self.after(poll, page.end.is_some()).await;
            return Ok(Some(page));
        }
        let Some(admission) = allowance.admit(self.estimate).await else {
            poll.open.close().await;
            return Ok(None);
        };
        let asked_ms = allowance.host().now_ms();
        let rows = self.wanted(&poll);
        let batch = self.batch(&mut poll, rows, allowance, &admission).await?;
        let is_last = batch.len() < rows as usize;
        poll.rows += rows.min(u32::try_from(batch.len()).unwrap_or(rows));
        let late = if is_last { self.look_back(&mut poll, &batch, allowance).await? } else { Vec::new() };
        let is_over = is_last || poll.rows >= self.table.max_rows_per_poll || self.remaining == Some(0);
        self.after(poll, is_over).await;
        self.tell(&batch, &late);
        Ok(Some(self.finish(batch, &late, is_last, asked_ms, admission)))
    }

    /// Connects, and looks at the table.
    async fn begin(&mut self, allowance: &Allowance) -> Result<Poll, Error> {
        let mut open = Box::pin(self.server.open(allowance)).await?;
        let query = catalog::question(&self.table);
        let results = self.ask(&mut open, query, allowance).await?;
        let table = &self.table;
        let pollable = validate::check(catalog::read(&results)?, &table.name, &table.sequence_column)?;
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

    async fn ask(&mut self, open: &mut Open, query: tiberius::Query<'_>, allowance: &Allowance) -> Result<Vec<Vec<tiberius::Row>>, Error> {
        self.spent.requests += 1;
        let asked = open.ask(query, allowance).await;
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
        let query = poll.plan.highest();
        let results = self.ask(&mut poll.open, query, allowance).await?;
        let value = only(&results, "the question for the highest sequence")?;
        match Sequence::read(value) {
            Some(highest) => Ok(Some(highest)),
            None if is_null(value) => Ok(None),
            None => Err(Error::Malformed { stage: Stage::Statement, detail: "the highest sequence is no whole number".to_owned() }),
        }
    }

    /// How many rows the next batch may have.
    fn wanted(&self, poll: &Poll) -> u32 {
        let of_poll = self.table.max_rows_per_poll.saturating_sub(poll.rows).max(1);
        let of_run = self.remaining.map_or(u32::MAX, |left| u32::try_from(left).unwrap_or(u32::MAX));
        self.batch_size.min(of_poll).min(of_run)
    }

    async fn batch(&mut self, poll: &mut Poll, rows: u32, allowance: &Allowance, admission: &Admission) -> Result<Batch, Error> {
        let begun = allowance.host().monotonic();
        let limit = poll.open.limit(allowance);
        let expected = usize::try_from(self.last_size + self.last_size / 16).unwrap_or_default();
        self.spent.requests += 1;
        let reading = poll.plan.read(&mut poll.open, self.place.position(), rows, expected, admission);
        let read = timeout(limit.left(allowance.host()), reading).await;
        self.spent.bytes_in += poll.open.take_bytes_in();
        let batch = match read {
            Ok(read) => read?,
            Err(_) => {
                let error = limit.passed(Stage::Statement);
                // Only a sweep's first batch had all the time there was: if even that is not enough, it is too big.
                if error == Error::BudgetSpent && self.is_first && self.batch_size > 1 {
                    self.shrink_to(self.batch_size / 2, "it did not come within the time of an invocation");
                }
                return Err(error);
            }
        };
        self.last_took = allowance.host().monotonic().saturating_sub(begun);
        self.last_size = batch.size() as u64;
        self.estimate = (self.last_size + self.last_size / 2).max(64 << 10);
        admission.settle(self.last_size);
        self.grow(batch.len() >= self.batch_size as usize);
        Ok(batch)
    }

    /// At the end of the rows: has the sequence begun anew, and did rows come late?
    async fn look_back(&mut self, poll: &mut Poll, batch: &Batch, allowance: &Allowance) -> Result<Vec<Late>, Error> {
        let server = Arc::clone(&self.server);
        // A readable secondary may be behind the cursor, which the primary gave.
        let may_regress = self.notes.contains_key(REACHED) && server.settings.application_intent == Intent::ReadWrite;
        if let (0, 0, true, Some(cursor)) = (batch.len(), poll.rows, may_regress, self.place.position())
            && let Some(highest) = self.highest(poll, allowance).await?.filter(|highest| *highest < cursor)
        {
            return Err(Error::Regressed { highest, cursor });
        }
        self.delivered(batch);
        let Some(interval) = server.settings.audit_interval else { return Ok(Vec::new()) };
        let (now_ms, interval_ms) = (allowance.host().now_ms(), i64::try_from(interval.as_millis()).unwrap_or(i64::MAX));
        let Some(mut audit) = self.audit.take() else { return Ok(Vec::new()) };
        let late = match audit.is_due(now_ms, interval_ms) {
            false => Vec::new(),
            true => {
                let mut counts = Vec::new();
                for range in audit.ranges() {
                    let query = poll.plan.count(range.from, Some(range.to));
                    let results = self.ask(&mut poll.open, query, allowance).await?;
                    counts.push(count(&results)?);
                }
                audit.counted(&counts, now_ms, interval_ms)
            }
        };
        self.audit = Some(audit);
        Ok(late)
    }

    /// Takes a batch into the audit. A batch that is dropped later on takes the whole session with it.
    fn delivered(&mut self, batch: &Batch) {
        if let (Some(audit), Some(last), true) = (&mut self.audit, batch.last, batch.len() > 0) {
            audit.delivered(self.place.position(), last, batch.len() as u64);
        }
    }

    /// What follows from a batch that was read.
    fn finish(&mut self, batch: Batch, late: &[Late], is_last: bool, asked_ms: i64, admission: impl Into<Option<Admission>>) -> Page {
        if batch.len() > 0 {
            if !is_last {
                self.delivered(&batch);
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
                page_size: self.lowered(),
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

    fn tell(&mut self, batch: &Batch, late: &[Late]) {
        let Names { connector, alias } = &self.names;
        if batch.replaced > 0 {
            self.spent.values_replaced += batch.replaced;
            tracing::warn!(connector, table = alias, values = batch.replaced, "values could not be read and were replaced (U+FFFD, null)");
        }
        for Late { range, rows } in late {
            let from = range.from.map_or_else(|| "the first".to_owned(), |from| from.to_string());
            tracing::error!(
                connector, table = alias, code = "Source.LateRows", rows, above = from, up_to = %range.to,
                "rows became visible behind the cursor and were not delivered; `tablesweep cursor rewind` to the lower end delivers the range again"
            );
        }
    }

    /// Keeps the connection for the next batch, or ends it.
    async fn after(&mut self, poll: Poll, is_over: bool) {
        if is_over { poll.open.close().await } else { self.poll = Some(poll) }
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
        tracing::warn!(connector = self.names.connector, table = self.names.alias, %error, tries, "trying again with a new connection");
        tokio::time::sleep(allowance.timeout(pause)).await;
    }

    /// Asks for at most so many rows from now on, and for fewer than before.
    fn shrink_to(&mut self, rows: u32, why: &str) {
        self.batch_size = rows.clamp(1, (self.batch_size / 2).max(1));
        self.good_batches = 0;
        self.estimate = FIRST_BATCH;
        tracing::warn!(
            connector = self.names.connector,
            table = self.names.alias,
            rows = self.batch_size,
            why,
            "asking for smaller batches"
        );
    }

    fn grow(&mut self, is_full: bool) {
        if !is_full || self.batch_size >= self.table.batch_size {
            return;
        }
        self.good_batches += 1;
        if self.good_batches >= GOOD_BATCHES {
            self.batch_size = self.batch_size.saturating_mul(2).min(self.table.batch_size);
            self.good_batches = 0;
        }
    }

    /// The batch size that works, if it is not the configured one.
    fn lowered(&self) -> Option<u32> {
        Some(self.batch_size).filter(|rows| *rows != self.table.batch_size)
    }
}

/// The only value of the only row of an answer.
fn only<'r>(results: &'r [Vec<tiberius::Row>], statement: &'static str) -> Result<&'r tiberius::ColumnData<'static>, Error> {
    let row = results.first().and_then(|rows| rows.first()).ok_or(Error::NoResult { statement })?;
    row.get_column_data(0).map_err(|error| Error::of_driver(Stage::Statement, error))
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
        Spent { page_size: self.lowered(), ..std::mem::take(&mut self.spent) }
    }

    fn window(&self) -> Option<Window> {
        None
    }
}
