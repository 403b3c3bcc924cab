//! The sweep of one table: carries out what the pipeline asks for.

mod end;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::acquire::{NotBegun, acquire, not_taken, write};
use super::allowance::Allowance;
use super::engine::{Engine, Job, LAST_PAGE, Run};
use super::fold::{Fold, Step};
use super::hand::{Hand, Wish};
use super::instance::Verdict;
use super::kept::Kept;
use super::lease::{Held, Reading, hand_over_by};
use super::report::{Reason, TableReport};
use super::requests::Requests;
use super::say::{Said, say};
use super::schemas::Schemas;
use super::siblings::Beside;
use super::window_store::{self, SMALL_ITEM};
use crate::cursor::{Change, Failed, Item, Key, Standing, WriteError};
use crate::failure::{Failure, Retry, Scope};
use crate::host::{Host, failpoint};
use crate::record::Made;
use crate::sink::{Acks, Delivered};
use crate::source::{Page, Resume, Spent, TableSweep};

/// The target of the line that each sweep of a table ends with. A function leaves it out, since it writes one that also
/// knows the tick; what else is said here has to be heard there too.
pub const SWEPT: &str = "tablesweep::swept";

/// The result of a table, and what it says about its instance.
pub(super) struct Swept {
    pub(super) report: TableReport,
    pub(super) instance_verdict: Option<Verdict>,
}

/// Sweeps the table of `job`, under a lease of `owner`.
pub(super) async fn sweep(engine: Engine, job: Job, owner: String, run: Run, requests: Requests) -> Swept {
    let identity = job.table.identity();
    let mut report = TableReport::new(&identity.connector, &identity.alias);
    let begun = engine.host.monotonic();
    let key = identity.key();
    let mut verdict = None;
    let acquired = acquire(&engine, &job, &run, &key, &owner).await;
    report.tried = !matches!(acquired, Err(NotBegun::Refused(_)));
    match acquired {
        Ok((item, remark)) => match Held::from_item(&item, &owner) {
            Some(held) => {
                let mut sweep = Sweep::new(&engine, &job, &run, key, item, held, &mut report);
                sweep.allowance = sweep.allowance.counting(requests);
                sweep.remark(remark);
                verdict = sweep.run().await;
            }
            None => not_taken(&item, &mut report),
        },
        Err(stop) => {
            if matches!(stop, NotBegun::Failed(_)) {
                // A write that got no answer may have taken the lease.
                engine.left.remember(key, owner, engine.host.monotonic());
            }
            stop.describe(&mut report);
        }
    }
    report.duration_ms = u64::try_from((engine.host.monotonic().saturating_sub(begun)).as_millis()).unwrap_or(u64::MAX);
    tracing::info!(
        target: SWEPT, connector = report.connector, table = report.table, outcome = ?report.outcome, rows = report.rows,
        suppressed = report.duplicates_suppressed, hidden = report.rows_hidden, late = report.rows_late, skipped = report.rows_skipped,
        replaced = report.values_replaced, requests = report.requests, bytes_in = report.bytes_in, lag_seconds = report.lag_seconds,
        duration_ms = report.duration_ms, code = report.reason.as_ref().map(|reason| reason.code.as_str()),
        "swept"
    );
    Swept { report, instance_verdict: verdict }
}

/// A page's number, how many of its values are null, and what the sink says of it.
type Settled = (u64, u64, Result<Delivered, Failure>);

type Fetched = (Box<dyn TableSweep>, Result<Option<Page>, Failure>);

/// What came of a write.
enum Written {
    Commit(Said),
    Renewal(Result<Item, WriteError>),
}

/// What came of handing a page to the sink.
enum Sent {
    /// It waits for its acknowledgements. With them, how many of its values are null because they did not fit their types.
    Acks(Acks, u64),
    /// It could have outlived the lease or the invocation, so it was not handed over.
    TooLate,
    /// The sink did not take it.
    Failed(Failure),
}

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
    hand: Hand<Step, Page>,
    fold: Fold,
    rows_fetched: u64,
    /// The page size that works, as the source last said.
    learned: Option<Option<u32>>,
    failure: Option<Failure>,
    /// The last write got no answer: whether the lease is held is not known.
    unanswered: bool,
    /// Sweeps before this one that failed in a row.
    failed_before: Option<Failed>,
    /// What is to be reported though nothing failed.
    remark: Option<Reason>,
    accepted: bool,
    /// Whether a page of this sweep lies behind the cursor. Without one nothing was learned of the table.
    brought: bool,
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
            fold: Fold::new(item.progress.clone(), None, false),
            failed_before: item.progress.failed(),
            item,
            report,
            allowance,
            hand: Hand::default(),
            rows_fetched: 0,
            learned: None,
            failure: None,
            unanswered: false,
            remark: None,
            accepted: false,
            brought: false,
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
        let kept = window_store::load(&*self.engine.store, &self.engine.windows, &self.item).await?;
        let known = match &kept {
            Kept::Older(..) => Some("the last sweep died before it stored its dedup window; what it sent may be delivered once more"),
            Kept::Lost => Some("the dedup window is lost; rows of the overlap may be delivered once more"),
            Kept::Fresh | Kept::Whole(_) => None,
        };
        if let Some(message) = known {
            tracing::warn!(connector = self.report.connector, table = self.report.table, message);
        }
        let resume = Resume {
            progress: self.item.progress.clone(),
            kept,
            page_size: self.page_size(),
            max_rows: self.run.max_rows,
            siblings: Arc::new(Beside { store: Arc::clone(&self.engine.store), host: self.engine.host.clone(), key: self.key.clone() }),
            parked: if let Standing::Parked(parked) = &self.item.standing { Some(parked.code.clone()) } else { None },
        };
        self.job.sink.check(&[self.job.table.topic()]).await?;
        let session = self.job.table.open(resume).await?;
        self.fold = Fold::new(self.item.progress.clone(), session.window(), known.is_some());
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
        let mut sending: Option<BoxFuture<'a, (u64, Sent)>> = None;
        let mut acks: FuturesUnordered<BoxFuture<'a, Settled>> = FuturesUnordered::new();
        let mut writing: Option<BoxFuture<'a, Written>> = None;
        let mut pending_commit: Option<Vec<Step>> = None;
        let mut stop = self.run.stop.clone();
        let mut stopped = *stop.borrow();
        let renew_every = self.run.lease.renew_every();
        let mut renew_at = renew_every.map(|every| self.engine.host.monotonic() + every);
        if stopped {
            self.hand.stop();
        }
        loop {
            while let Some(wish) = self.hand.wish() {
                match wish {
                    Wish::Page => match session.take() {
                        Some(mut table) if self.wants_more() => {
                            let allowance = self.allowance.clone();
                            fetching = Some(Box::pin(async move {
                                let page = table.next_page(&allowance).await;
                                (table, page)
                            }));
                        }
                        given => {
                            session = given;
                            self.hand.closed();
                        }
                    },
                    Wish::Commit(steps) => pending_commit = Some(steps),
                }
            }
            if sending.is_none() {
                sending = self.send_next();
            }
            if writing.is_none()
                && let Some(steps) = pending_commit.take()
            {
                self.take_in(&steps);
                let saying = self.fold.saying(&self.item, SMALL_ITEM, false);
                let (engine, key, hold) = (self.engine, self.key.clone(), self.held.hold());
                writing = Some(Box::pin(async move { Written::Commit(say(engine, &key, hold, saying, Change::Commit).await) }));
            }
            if self.hand.is_done() && writing.is_none() && sending.is_none() && acks.is_empty() {
                break;
            }
            tokio::select! {
                (table, page) = ready(&mut fetching) => {
                    fetching = None;
                    let mut table = table;
                    self.spent(table.spent());
                    self.remark(table.remarks());
                    session = Some(table);
                    self.fetched(page);
                }
                (page, sent) = ready(&mut sending) => {
                    sending = None;
                    match sent {
                        Sent::Acks(ack, nulled) => acks.push(Box::pin(async move { (page, nulled, ack.await) })),
                        // Not a failure: the budget is spent.
                        Sent::TooLate => self.hand.failed(page),
                        Sent::Failed(failure) => self.page_failed(page, failure),
                    }
                }
                Some((page, nulled, acked)) = acks.next(), if !acks.is_empty() => match acked {
                    Ok(delivered) => {
                        failpoint("page-acknowledged");
                        self.report.values_replaced += nulled;
                        self.fold.acknowledged(page, delivered);
                        self.hand.acked(page);
                    }
                    Err(failure) => self.page_failed(page, failure),
                },
                written = ready(&mut writing) => {
                    writing = None;
                    self.written(written);
                    failpoint("committed");
                }
                _ = stop.wait_for(|stop| *stop), if !stopped => {
                    stopped = true;
                    fetching = None;
                    self.hand.stop();
                }
                () = self.sleep_until(renew_at), if renew_at.is_some() && writing.is_none() => {
                    renew_at = renew_every.map(|every| self.engine.host.monotonic() + every);
                    let until_ms = self.run.lease.until_ms(self.engine.host.now_ms());
                    let (engine, key, renewal) = (self.engine, self.key.clone(), Change::Renew(self.held.hold(), until_ms));
                    writing = Some(Box::pin(async move { Written::Renewal(write(engine, &key, renewal).await) }));
                }
            }
        }
    }

    fn take_in(&mut self, steps: &[Step]) {
        self.brought |= !steps.is_empty();
        self.fold.take_in(steps, self.engine.host.now_ms());
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

    /// Logs what a person should know; the first of it is reported.
    fn remark(&mut self, remarks: impl IntoIterator<Item = Reason>) {
        for remark in remarks {
            tracing::warn!(connector = self.report.connector, table = self.report.table, code = remark.code, "{}", remark.message);
            self.remark.get_or_insert(remark);
        }
    }

    fn spent(&mut self, spent: Spent) {
        self.report.requests += spent.requests;
        self.report.bytes_in += spent.bytes_in;
        self.report.values_replaced += spent.values_replaced;
        self.learned = Some(spent.page_size);
    }

    fn fetched(&mut self, page: Result<Option<Page>, Failure>) {
        match page {
            Ok(Some(page)) => {
                self.accepted = true;
                self.rows_fetched += page.rows.len() as u64;
                let step = Step {
                    checkpoint: page.checkpoint.clone(),
                    suppressed: page.suppressed,
                    hidden: page.hidden,
                    late: page.late,
                    skipped: page.skipped,
                    page: self.hand.next_page(),
                    ends: page.end.is_some(),
                };
                let last = page.end.is_some_and(|end| end.caught_up);
                self.hand.fetched(step, page, last);
            }
            Ok(None) => self.hand.closed(),
            Err(failure) => {
                self.failure.get_or_insert(failure);
                self.hand.closed();
            }
        }
    }

    /// Hands the next page that is let through to the sink.
    fn send_next(&mut self) -> Option<BoxFuture<'a, (u64, Sent)>> {
        let (number, page) = self.hand.take()?;
        let (held, deadline, job, host) = (self.held.clone(), self.run.deadline, self.job, &self.engine.host);
        let schemas = Schemas { store: Arc::clone(&self.engine.store), host: host.clone() };
        let by = hand_over_by(deadline, job.sink.message_timeout());
        Some(Box::pin(async move {
            let Made { records, values_nulled } = match in_time(host, by, job.shape.records(page.as_rows(), &schemas, by)).await {
                Some(Ok(made)) => made,
                // Cut short by the end of the invocation. The next sweep begins with this page and has all the time there is; the
                // first page of a sweep had it already.
                Some(Err(failure)) if failure.retry == Retry::NextTick && is_past(host, by) && number > 1 => {
                    return (number, Sent::TooLate);
                }
                Some(Err(failure)) => return (number, Sent::Failed(failure)),
                None => return (number, Sent::TooLate),
            };
            if records.is_empty() {
                return (number, Sent::Acks(Box::pin(async { Ok(Delivered::default()) }), 0));
            }
            let now = Reading { wall_ms: host.now_ms(), monotonic: host.monotonic() };
            if !held.may_hand_over(now, deadline, job.sink.message_timeout()) {
                return (number, Sent::TooLate);
            }
            let admission = page.admission;
            if let (true, Some(admission)) = (job.shape.copies_rows(), &admission) {
                admission.add(records.iter().map(|record| record.size() as u64).sum());
            }
            match job.sink.send(records).await {
                Ok(acks) => {
                    let held: Acks = Box::pin(async move {
                        let settled = acks.await;
                        drop(admission);
                        settled
                    });
                    (number, Sent::Acks(held, values_nulled))
                }
                Err(failure) => (number, Sent::Failed(failure)),
            }
        }))
    }

    fn page_failed(&mut self, page: u64, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.hand.failed(page);
    }

    fn written(&mut self, written: Written) {
        let item = match written {
            Written::Commit(Said { window, item: Ok(item) }) => {
                self.fold.said(&window, &item);
                self.hand.committed();
                Ok(item)
            }
            Written::Commit(Said { item: Err(error), .. }) => Err(error),
            // A renewal that got no answer is tried again; two thirds of the lease are left for that.
            Written::Renewal(Err(WriteError::Store(error))) => {
                self.unanswered = true;
                tracing::warn!(table = self.report.table, %error, "the lease could not be renewed");
                return;
            }
            Written::Renewal(renewed) => renewed,
        };
        match item {
            Ok(item) => {
                self.unanswered = false;
                self.held.wrote(&item);
                self.item = item;
            }
            Err(error) => {
                self.unanswered |= matches!(error, WriteError::Store(_));
                self.failure = Some(end::lease_lost(self.report, error));
                self.hand.fenced();
            }
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

/// What making a page's records comes to, or `None` if there is no time for it. A registry is asked until `by` and says then who
/// did not answer; whatever else is waited for ends a little later, while nothing has been handed over and all the time that
/// was kept for that is left for the last commit.
async fn in_time<T>(host: &Host, by: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    let Some(by) = by else { return Some(work.await) };
    let left = by.saturating_sub(host.monotonic());
    tokio::time::timeout(left + LAST_PAGE, work).await.ok()
}

fn is_past(host: &Host, moment: Option<Duration>) -> bool {
    moment.is_some_and(|moment| host.monotonic() >= moment)
}
