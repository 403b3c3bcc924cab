//! Tables side by side, within one budget.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::bytes::ByteBudget;
use super::instance::{Account, Instances};
use super::lease::{LAST_COMMIT, LeasePlan};
use super::left::Left;
use super::report::{Mode, Outcome, Reason, TableReport};
use super::table;
use super::window_store::WindowCache;
use crate::cursor::{CursorStore, Key};
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::record::Shape;
use crate::sink::Sink;
use crate::source::Table;

/// Time to hand over a page that was fetched last.
pub(super) const LAST_PAGE: Duration = Duration::from_secs(1);

/// What sweeps need, built once per process.
#[derive(Debug, Clone)]
pub struct Engine {
    /// The machine.
    pub host: Host,
    /// Where cursors are kept.
    pub store: Arc<dyn CursorStore>,
    /// What bounds the memory for pages.
    pub bytes: Arc<ByteBudget>,
    /// The dedup windows of the last sweeps.
    pub windows: Arc<WindowCache>,
    /// The leases that sweeps of this process ended with.
    pub left: Arc<Left>,
}

/// One table to sweep.
#[derive(Clone)]
pub struct Job {
    /// The table.
    pub table: Arc<dyn Table>,
    /// What its records look like.
    pub shape: Arc<Shape>,
    /// Where its records go.
    pub sink: Arc<dyn Sink>,
    /// The cursors of all tables of its connector, whether they are swept now or not. A stored cursor belongs to the table
    /// whose place it lies in, whatever alias it was made under.
    pub cursors: Arc<[Key]>,
}

impl Job {
    /// How long before the end of an invocation the last page must have been fetched.
    pub fn reserve(&self) -> Duration {
        LAST_PAGE + self.sink.message_timeout() + LAST_COMMIT
    }
}

/// One invocation.
#[derive(Debug, Clone)]
pub struct Run {
    /// How far to go.
    pub mode: Mode,
    /// Whether a schedule started this: then a table that is not due, or parked until later, is left alone.
    pub scheduled: bool,
    /// The monotonic moment at which the invocation must have ended; `None` leaves time open.
    pub deadline: Option<Duration>,
    /// The most rows to deliver per table.
    pub max_rows: Option<u64>,
    /// How leases are held.
    pub lease: LeasePlan,
    /// Becomes true when the invocation is to drain and end.
    pub stop: watch::Receiver<bool>,
}

impl Engine {
    /// An engine of a process that has swept nothing yet.
    pub fn new(host: Host, store: Arc<dyn CursorStore>, bytes: Arc<ByteBudget>) -> Self {
        Self { host, store, bytes, windows: Arc::default(), left: Arc::default() }
    }

    /// Sweeps the tables side by side and reports each, in the order of connector and alias.
    ///
    /// A failure of one table is part of its report and touches no other, with one exception: what the instance refuses
    /// to a whole account is kept once per account and asked once.
    pub async fn run(&self, jobs: Vec<Job>, run: &Run) -> Vec<TableReport> {
        let instances = Instances::load(self, &jobs, run).await;
        let mut reports = BTreeMap::new();
        let mut tasks = JoinSet::new();
        let mut tables = BTreeMap::new();
        for job in jobs {
            let identity = job.table.identity().clone();
            let name = (identity.connector.clone(), identity.alias.clone());
            let account = Account::of(&*job.table);
            if let Some(failure) = instances.refuses(&account) {
                let mut report = TableReport::new(&name.0, &name.1);
                report.outcome = Outcome::Parked;
                report.reason = Some(Reason::from(&failure));
                reports.insert(name, self.as_stored(&identity.key(), report).await);
                continue;
            }
            if let Some(reason) = instances.has_spent(self, &identity) {
                let report = TableReport { outcome: Outcome::Skipped, reason: Some(reason), ..TableReport::new(&name.0, &name.1) };
                reports.insert(name, self.as_stored(&identity.key(), report).await);
                continue;
            }
            let requests = instances.requests(&identity);
            let begun = Begun { name, account, key: identity.key(), owner: self.host.nonce(), timeout: job.sink.message_timeout() };
            let task = tasks.spawn(table::sweep(self.clone(), job, begun.owner.clone(), run.clone(), requests));
            tables.insert(task.id(), begun);
        }
        let mut verdicts = BTreeMap::new();
        while let Some(joined) = tasks.join_next_with_id().await {
            let (id, swept) = match joined {
                Ok((id, swept)) => (id, Ok(swept)),
                Err(error) => (error.id(), Err(error)),
            };
            let Some(begun) = tables.remove(&id) else { continue };
            let report = match swept {
                Ok(swept) => {
                    instances.note(&mut verdicts, begun.account, swept.instance_verdict);
                    swept.report
                }
                Err(error) => {
                    // A lease that ends by itself does so, and the death counts. What the sweep gave to the sink is under way for no longer.
                    if run.lease == LeasePlan::Process {
                        self.left.remember(begun.key, begun.owner, self.host.monotonic() + begun.timeout);
                    }
                    panicked(&begun.name, &error)
                }
            };
            reports.insert(begun.name, report);
        }
        instances.store(self, verdicts).await;
        reports.into_values().collect()
    }

    /// The report of a table that is left alone, with what its stored item tells: how far behind it is must not be out of sight while
    /// nobody asks its source.
    async fn as_stored(&self, key: &Key, report: TableReport) -> TableReport {
        match self.store.read(key).await {
            Ok(Some(item)) => TableReport {
                phase: Some(item.progress.phase),
                lag_seconds: item.lag_seconds(self.host.now_ms()),
                cursor: item.progress.cursor,
                ..report
            },
            Ok(None) => report,
            Err(error) => {
                tracing::warn!(connector = report.connector, table = report.table, %error, "how far behind the table is cannot be told");
                report
            }
        }
    }
}

/// A sweep under way.
struct Begun {
    name: (String, String),
    account: Account,
    key: Key,
    owner: String,
    /// See [`Sink::message_timeout`].
    timeout: Duration,
}

/// A defect of this program in one table must not take the others with it.
fn panicked((connector, table): &(String, String), error: &tokio::task::JoinError) -> TableReport {
    let failure = Failure::new(
        "Sweep.Panicked",
        Retry::NextTick,
        format!("the sweep of {connector}/{table} ended by a defect of this program: {error}; please report it"),
    );
    let mut report = TableReport::new(connector, table);
    report.reason = Some(Reason::from(&failure));
    report
}
