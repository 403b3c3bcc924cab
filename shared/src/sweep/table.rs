//! The sweep of one table: carries out what the pipeline asks for.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::acquire::{NotBegun, acquire, not_taken, write};
use super::allowance::Allowance;
use super::engine::{Engine, Job, Run};
use super::instance::Verdict;
use super::lease::Held;
use super::pipeline::{Effect, Event, Pipeline};
use super::report::{Outcome, Reason, TableReport};
use super::siblings::Beside;
use super::window::Window;
use super::window_store::{self, Loaded};
use crate::cursor::{Change, Item, Key, Parked, Progress, Standing, StoredWindow, Waiting, WriteError};
use crate::failure::{Failure, Retry, Scope};
use crate::host::failpoint;
use crate::record::Record;
use crate::sink::{Acks, Delivered};
use crate::source::{Checkpoint, Page, Resume, Spent, TableSweep};

/// The result of a table, and what it says about its instance.
pub(super) struct Swept {
    pub(super) report: TableReport,
    pub(super) instance_verdict: Option<Verdict>,
}

/// A checkpoint with what was counted on the way to it.
#[derive(Debug, Clone)]
struct Step {
    checkpoint: Checkpoint,
    suppressed: u64,
    hidden: u64,
    skipped: u64,
    /// The page's number in the pipeline, under which the sink's report is kept.
    page: u64,
}

/// Sweeps the table of `job`.
pub(super) async fn sweep(engine: Engine, job: Job, run: Run) -> Swept {
    let identity = job.table.identity();
    let mut report = TableReport::new(&identity.connector, &identity.alias);
    let begun = engine.host.monotonic();
    let owner = engine.host.nonce();
    let key = identity.key();
    let mut verdict = None;
    let acquired = acquire(&engine, &job, &run, &key, &owner).await;
    report.tried = !matches!(acquired, Err(NotBegun::Refused(_)));
    match acquired {
        Ok(item) => match Held::from_item(&item, &owner) {
            Some(held) => {
                let sweep = Sweep::new(&engine, &job, &run, key, item, held, &mut report);
                verdict = sweep.run().await;
            }
            None => not_taken(&item, &mut report),
        },
        Err(stop) => stop.describe(&mut report),
    }
    report.duration_ms = u64::try_from((engine.host.monotonic().saturating_sub(begun)).as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        connector = report.connector, table = report.table, outcome = ?report.outcome, rows = report.rows,
        suppressed = report.duplicates_suppressed, hidden = report.rows_hidden, skipped = report.rows_skipped,
        requests = report.requests, bytes_in = report.bytes_in, lag_seconds = report.lag_seconds,
        duration_ms = report.duration_ms, code = report.reason.as_ref().map(|reason| reason.code.as_str()),
        "swept"
    );
    Swept { report, instance_verdict: verdict }
}

type Fetched = (Box<dyn TableSweep>, Result<Option<Page>, Failure>);

/// A sweep that holds its lease.
struct Sweep<'a> {
    engine: &'a Engine,
    job: &'a Job,
    run: &'a Run,
    key: Key,
    held: Held,
    item: Item,
    report: &'a mut TableReport,
    allowance: Allowance,
    pipeline: Pipeline<Step>,
    window: Option<Window>,
    window_changed: bool,
    delivered: BTreeMap<u64, Delivered>,
    unsent: VecDeque<(u64, Page)>,
    /// The last page that the pipeline has let through to the sink.
    let_through: u64,
    rows_fetched: u64,
    /// The page size that works, as the source last said; kept even if no page came of it.
    learned: Option<Option<u32>>,
    failure: Option<Failure>,
    caught_up: bool,
    accepted: bool,
}

impl<'a> Sweep<'a> {
    fn new(engine: &'a Engine, job: &'a Job, run: &'a Run, key: Key, item: Item, held: Held, report: &'a mut TableReport) -> Self {
        let deadline = run.deadline.map(|deadline| deadline.saturating_sub(job.reserve()));
        let allowance = Allowance::new(engine.host.clone(), deadline, engine.bytes.clone());
        Self {
            engine,
            job,
            run,
            key,
            held,
            item,
            report,
            allowance,
            pipeline: Pipeline::default(),
            window: None,
            window_changed: false,
            delivered: BTreeMap::new(),
            unsent: VecDeque::new(),
            let_through: 0,
            rows_fetched: 0,
            learned: None,
            failure: None,
            caught_up: false,
            accepted: false,
        }
    }

    async fn run(mut self) -> Option<Verdict> {
        match self.open().await {
            Ok(session) => self.drive(session).await,
            Err(failure) => self.failure = Some(failure),
        }
        self.finish().await;
        match &self.failure {
            Some(failure) if failure.scope == Scope::Instance && failure.retry == Retry::Never => Some(Verdict::Refused(failure.clone())),
            _ => self.accepted.then_some(Verdict::Accepted),
        }
    }

    async fn open(&mut self) -> Result<Box<dyn TableSweep>, Failure> {
        let loaded = window_store::load(&*self.engine.store, &self.item).await?;
        let lost = loaded == Loaded::Lost;
        if lost {
            tracing::warn!(
                connector = self.report.connector,
                table = self.report.table,
                "the dedup window does not belong to the stored cursor; rows of the overlap may be delivered once more"
            );
        }
        let resume = Resume {
            progress: self.item.progress.clone(),
            window: if let Loaded::Found(window) = loaded { Some(window) } else { None },
            window_lost: lost,
            page_size: self.page_size(),
            max_rows: self.run.max_rows,
            siblings: Arc::new(Beside { store: Arc::clone(&self.engine.store), host: self.engine.host.clone(), key: self.key.clone() }),
        };
        self.job.sink.check(&[self.job.table.topic()]).await?;
        let session = self.job.table.open(resume).await?;
        self.window = session.window();
        self.window_changed = lost;
        Ok(session)
    }

    /// The page size that works, halved for each holder that died since.
    fn page_size(&self) -> u32 {
        let configured = self.job.table.page_size();
        let works = self.item.progress.page_size.unwrap_or(configured).min(configured);
        (works >> self.item.tries.saturating_sub(1).min(8)).max(1)
    }

    async fn drive(&mut self, session: Box<dyn TableSweep>) {
        let mut session = Some(session);
        let mut fetching: Option<BoxFuture<'a, Fetched>> = None;
        let mut sending: Option<BoxFuture<'a, (u64, Result<Acks, Failure>)>> = None;
        let mut acks: FuturesUnordered<BoxFuture<'a, (u64, Result<Delivered, Failure>)>> = FuturesUnordered::new();
        let mut writing: Option<BoxFuture<'a, Result<Item, WriteError>>> = None;
        let mut committing = false;
        let mut pending_commit: Option<Vec<Step>> = None;
        let mut stop = self.run.stop.clone();
        let mut stopped = *stop.borrow();
        let renew_every = self.run.lease.renew_every();
        let mut renew_at = renew_every.map(|every| self.engine.host.monotonic() + every);
        if stopped {
            self.pipeline.stop();
        }
        loop {
            while let Some(effect) = self.pipeline.effect() {
                match effect {
                    Effect::Fetch => match session.take() {
                        Some(mut table) if self.wants_more() => {
                            let allowance = self.allowance.clone();
                            fetching = Some(Box::pin(async move {
                                let page = table.next_page(&allowance).await;
                                (table, page)
                            }));
                        }
                        given => {
                            session = given;
                            self.pipeline.on(Event::Closed);
                        }
                    },
                    Effect::Send(page) => self.let_through = page,
                    Effect::Commit(steps) => pending_commit = Some(steps),
                }
            }
            if sending.is_none() {
                sending = self.send_next();
            }
            if writing.is_none()
                && let Some(steps) = pending_commit.take()
            {
                failpoint("before-commit");
                let mut progress = self.fold(&steps);
                progress.window = self.window_underway(&progress);
                committing = true;
                writing = Some(self.start_write(Change::Commit(self.held.hold(), progress)));
            }
            if self.pipeline.is_done() && writing.is_none() && sending.is_none() && acks.is_empty() && self.unsent.is_empty() {
                break;
            }
            tokio::select! {
                (table, page) = ready(&mut fetching) => {
                    fetching = None;
                    let mut table = table;
                    self.spent(table.spent());
                    session = Some(table);
                    self.fetched(page);
                }
                (page, sent) = ready(&mut sending) => {
                    sending = None;
                    match sent {
                        Ok(ack) => acks.push(Box::pin(async move { (page, ack.await) })),
                        Err(failure) => self.sink_failed(page, failure),
                    }
                }
                Some((page, acked)) = acks.next(), if !acks.is_empty() => match acked {
                    Ok(delivered) => {
                        failpoint("page-acknowledged");
                        self.delivered.insert(page, delivered);
                        self.pipeline.on(Event::Acked(page));
                    }
                    Err(failure) => self.sink_failed(page, failure),
                },
                written = ready(&mut writing) => {
                    writing = None;
                    self.written(written, std::mem::take(&mut committing));
                    failpoint("committed");
                }
                _ = stop.wait_for(|stop| *stop), if !stopped => {
                    stopped = true;
                    // What is being fetched is not needed any more; what is with the sink is awaited.
                    if fetching.take().is_some() {
                        self.pipeline.on(Event::Closed);
                    }
                    self.pipeline.stop();
                    self.drop_unsent();
                }
                () = self.sleep_until(renew_at), if renew_at.is_some() && writing.is_none() => {
                    renew_at = renew_every.map(|every| self.engine.host.monotonic() + every);
                    let until_ms = self.run.lease.until_ms(self.engine.host.now_ms());
                    writing = Some(self.start_write(Change::Renew(self.held.hold(), until_ms)));
                }
            }
        }
    }

    async fn sleep_until(&self, moment: Option<Duration>) {
        match moment {
            Some(moment) => tokio::time::sleep(moment.saturating_sub(self.engine.host.monotonic())).await,
            None => pending().await,
        }
    }

    /// Whether another page is wanted: rows may be limited.
    fn wants_more(&self) -> bool {
        self.run.max_rows.is_none_or(|most| self.rows_fetched < most)
    }

    fn start_write(&self, change: Change) -> BoxFuture<'a, Result<Item, WriteError>> {
        let (engine, key) = (self.engine, self.key.clone());
        Box::pin(async move { write(engine, &key, change).await })
    }

    fn spent(&mut self, spent: Spent) {
        self.report.requests += spent.requests;
        self.report.bytes_in += spent.bytes_in;
        self.learned = Some(spent.page_size);
    }

    fn fetched(&mut self, page: Result<Option<Page>, Failure>) {
        match page {
            Ok(Some(page)) => {
                self.accepted = true;
                self.rows_fetched += page.rows.len() as u64;
                if page.lag_seconds.is_some() {
                    self.report.lag_seconds = page.lag_seconds;
                }
                let number = self.pipeline.next_page();
                let step = Step {
                    checkpoint: page.checkpoint.clone(),
                    suppressed: page.suppressed,
                    hidden: page.hidden,
                    skipped: page.skipped,
                    page: number,
                };
                let last = page.end.is_some_and(|end| end.caught_up);
                self.pipeline.on(Event::Fetched(step));
                if !self.pipeline.is_waiting() {
                    // The sweep failed while this page was fetched.
                    return;
                }
                self.unsent.push_back((number, page));
                if last {
                    self.caught_up = true;
                    self.pipeline.on(Event::Closed);
                }
            }
            Ok(None) => self.pipeline.on(Event::Closed),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                self.pipeline.on(Event::Closed);
            }
        }
    }

    /// Hands the next page that the pipeline has let through to the sink.
    fn send_next(&mut self) -> Option<BoxFuture<'a, (u64, Result<Acks, Failure>)>> {
        let (number, _) = self.unsent.front()?;
        if *number > self.let_through {
            return None;
        }
        let (number, page) = self.unsent.pop_front()?;
        let records = self.records(&page);
        let admission = page.admission;
        let job = self.job;
        if !records.is_empty() && !self.may_send() {
            // Not a failure: the budget is spent.
            self.caught_up = false;
            self.pipeline.on(Event::Failed(number));
            self.drop_unsent();
            return None;
        }
        Some(Box::pin(async move {
            if records.is_empty() {
                let nothing: Acks = Box::pin(async { Ok(Delivered::default()) });
                return (number, Ok(nothing));
            }
            let sent = job.sink.send(records).await.map(|acks| {
                let held: Acks = Box::pin(async move {
                    let settled = acks.await;
                    drop(admission);
                    settled
                });
                held
            });
            (number, sent)
        }))
    }

    /// Whether records that are handed over now are settled within the lease and the invocation. Later ones could come
    /// after another holder's, or be cut off.
    fn may_send(&self) -> bool {
        let host = &self.engine.host;
        let length = self.job.sink.message_timeout();
        let in_time = self.run.deadline.is_none_or(|deadline| host.monotonic() + length <= deadline);
        in_time && self.held.outlives(host.now_ms(), length)
    }

    fn records(&self, page: &Page) -> Vec<Record> {
        let headers = self.job.shape.headers(page.extracted_at_ms);
        page.rows.iter().map(|row| self.job.shape.record(row, &headers)).collect()
    }

    fn sink_failed(&mut self, page: u64, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.caught_up = false;
        self.pipeline.on(Event::Failed(page));
        self.drop_unsent();
    }

    /// Forgets the pages that the sink has not been given. Those that the pipeline counts on have failed.
    fn drop_unsent(&mut self) {
        self.caught_up &= self.unsent.is_empty();
        for (number, _) in std::mem::take(&mut self.unsent) {
            if number <= self.let_through {
                self.pipeline.on(Event::Failed(number));
            }
        }
    }

    fn written(&mut self, written: Result<Item, WriteError>, committing: bool) {
        match written {
            Ok(item) => {
                self.held.wrote(&item);
                self.item = item;
                if committing {
                    self.pipeline.on(Event::Committed);
                }
            }
            // A renewal that got no answer is tried again; two thirds of the lease are left for that.
            Err(WriteError::Store(error)) if !committing => {
                tracing::warn!(table = self.report.table, %error, "the lease could not be renewed");
            }
            Err(error) => {
                self.caught_up = false;
                self.failure = Some(lease_lost(self.report, error));
                self.pipeline.on(Event::Fenced);
                self.drop_unsent();
            }
        }
    }

    /// The progress after these acknowledged pages.
    fn fold(&mut self, steps: &[Step]) -> Progress {
        let mut progress = self.item.progress.clone();
        for step in steps {
            let delivered = self.delivered.remove(&step.page).unwrap_or_default();
            let checkpoint = &step.checkpoint;
            if let Some(window) = &mut self.window {
                self.window_changed |= window.apply(&checkpoint.window) || checkpoint.cursor != progress.cursor;
            }
            progress.cursor.clone_from(&checkpoint.cursor);
            progress.swept_to_ms = checkpoint.swept_to_ms.or(progress.swept_to_ms);
            progress.phase = checkpoint.phase;
            progress.page_size = checkpoint.page_size;
            progress.clock_difference_ms = checkpoint.clock_difference_ms;
            progress.notes.clone_from(&checkpoint.notes);
            let counters = &mut progress.counters;
            counters.rows += delivered.rows;
            counters.suppressed += step.suppressed;
            counters.hidden += step.hidden;
            counters.skipped += step.skipped + delivered.skipped;
            self.report.rows += delivered.rows;
            self.report.duplicates_suppressed += step.suppressed;
            self.report.rows_hidden += step.hidden;
            self.report.rows_skipped += step.skipped + delivered.skipped;
        }
        if self.report.rows > 0 {
            progress.counters.last_rows = self.report.rows;
            progress.counters.last_rows_ms = self.engine.host.now_ms();
        }
        progress
    }

    /// Where the window is with a commit in the middle of a run: one too large for the item is not written then, and
    /// counts as lost until the end of the run writes it.
    fn window_underway(&self, progress: &Progress) -> StoredWindow {
        match &self.window {
            None => progress.window.clone(),
            Some(_) if !self.window_changed => progress.window.clone(),
            Some(window) => window_store::inline(&self.item, progress, window).unwrap_or(StoredWindow::Beside(0)),
        }
    }

    /// Where the window is at the end of a run; one too large for the item is written beside it now.
    async fn window_at_rest(&self, progress: &Progress) -> StoredWindow {
        let (Some(window), Some(cursor)) = (&self.window, &progress.cursor) else { return progress.window.clone() };
        if !self.window_changed {
            return progress.window.clone();
        }
        if let Some(inline) = window_store::inline(&self.item, progress, window) {
            return inline;
        }
        let written = window_store::write(&*self.engine.store, &self.key, cursor, window).await;
        written.unwrap_or_else(|error| {
            tracing::warn!(table = self.report.table, %error, "the dedup window could not be stored; rows of the overlap may be delivered once more");
            StoredWindow::Beside(0)
        })
    }

    /// Commits what is left, gives the lease back, and reports.
    async fn finish(&mut self) {
        let steps = self.pipeline.remainder();
        let mut progress = self.fold(&steps);
        if let Some(page_size) = self.learned {
            progress.page_size = page_size;
        }
        if self.pipeline.is_fenced() {
            self.report.rows += self.delivered.values().map(|delivered| delivered.rows).sum::<u64>();
        } else {
            self.release(progress).await;
        }
        self.report.phase = self.item.progress.phase;
        self.report.cursor.clone_from(&self.item.progress.cursor);
        self.report.reason = self.failure.as_ref().map(Reason::from);
        self.report.outcome = match &self.failure {
            Some(failure) if failure.retry == Retry::Never => Outcome::Parked,
            Some(failure) if failure.retry == Retry::Wait => Outcome::Paused,
            Some(_) => Outcome::Failed,
            None if self.caught_up => Outcome::CaughtUp,
            None => Outcome::More,
        };
    }

    async fn release(&mut self, mut progress: Progress) {
        progress.window = self.window_at_rest(&progress).await;
        let standing = self.standing();
        self.tell_waiting();
        failpoint("before-release");
        let released = write(self.engine, &self.key, Change::Release(self.held.hold(), progress, standing)).await;
        match released {
            Ok(item) => self.item = item,
            Err(error) => {
                self.caught_up = false;
                let lost = lease_lost(self.report, error);
                self.failure.get_or_insert(lost);
            }
        }
    }

    /// How the table stands after this sweep.
    fn standing(&self) -> Standing {
        match &self.failure {
            Some(failure) if failure.scope == Scope::Instance => self.item.standing.clone(),
            Some(failure) if failure.retry == Retry::Never => {
                Standing::Parked(Parked::after(&self.item.standing, &failure.code, failure.message.clone(), self.engine.host.now_ms()))
            }
            Some(failure) if failure.retry == Retry::Wait => {
                Standing::Waiting(Waiting::after(&self.item.standing, &failure.code, failure.message.clone(), self.engine.host.now_ms()))
            }
            Some(_) => self.item.standing.clone(),
            None => Standing::Active,
        }
    }

    /// Says once that the table waits for its source and once that it goes on; in between it is as if it had not been
    /// tried. What was said last is what the table stands by.
    fn tell_waiting(&mut self) {
        let (connector, table) = (&self.report.connector, &self.report.table);
        match (&self.item.standing, &self.failure) {
            (Standing::Waiting(waiting), Some(failure)) if waiting.code == failure.code && waiting.message == failure.message => {
                self.report.tried = false;
            }
            (_, Some(failure)) if failure.retry == Retry::Wait => {
                tracing::error!(connector, table, code = &*failure.code, reason = failure.message, "the table waits for its source");
            }
            (Standing::Waiting(waiting), None) => {
                tracing::info!(connector, table, code = waiting.code, "the source is as it was; the table goes on");
            }
            _ => {}
        }
    }
}

/// Resolves with the future in `slot`, or never if there is none.
async fn ready<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    match slot {
        Some(future) => future.await,
        None => pending().await,
    }
}

fn lease_lost(report: &TableReport, error: WriteError) -> Failure {
    let table = format!("{}/{}", report.connector, report.table);
    match error {
        WriteError::Refused(refusal) => Failure::new(
            "Cursor.Conflict",
            Retry::NextTick,
            format!(
                "{table}: the cursor was not moved: {refusal}. Another sweep or an operator took over; the next tick goes on from the stored cursor"
            ),
        ),
        WriteError::Store(error) => {
            let failure = Failure::from(error);
            Failure { message: format!("{table}: {}; records sent since the last commit are sent again", failure.message), ..failure }
        }
    }
}
