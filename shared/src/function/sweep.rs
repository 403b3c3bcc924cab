//! Sweep: the tables of one task, side by side, until they are caught up or the invocation has to end.
//!
//! The budget is Lambda's deadline, and so is the lease: an invocation cannot outlive its deadline, so a lease that
//! ends a little later than that needs no renewal, and a killed invocation blocks its tables no longer than that.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{OnceCell, watch};

use super::event::SweepTask;
use super::fan_out::known;
use super::producers::Producers;
use super::reports;
use super::settings::Settings;
use crate::assembly::{Assembly, Refused, Selection};
use crate::config::{Connector, Documents, Resolver};
use crate::cursor::{CursorStore, LEASE_SKEW_MS};
use crate::delivery::ToKafka;
use crate::failure::{Failure, Retry};
use crate::host::{Host, env};
use crate::secrets;
use crate::sink::kafka::KafkaOptions;
use crate::sweep::{ByteBudget, Engine, Job, LeasePlan, Left, Mode, Run, SweepReport, TableReport, WindowCache};

/// The sweep function: what an execution environment keeps from one invocation to the next.
pub struct Sweep {
    host: Host,
    settings: Settings,
    ready: Result<Ready, Failure>,
    bytes: Arc<ByteBudget>,
    windows: Arc<WindowCache>,
    left: Arc<Left>,
    store: OnceCell<Arc<dyn CursorStore>>,
    producers: Producers,
}

/// What comes of documents that are in order.
struct Ready {
    assembly: Assembly,
    resolver: Arc<Resolver>,
}

impl fmt::Debug for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Sweep {
    /// Reads the documents. What is wrong with them is the answer to every event.
    pub fn new(settings: Settings, host: Host) -> Self {
        let documents = settings.load(&|name| env(name)).map_err(super::logged);
        let ready = documents.map(|documents| {
            let resolver = Arc::new(secrets::resolver(&documents, &host));
            Ready { assembly: Assembly::new(documents, Arc::clone(&resolver), host.clone()), resolver }
        });
        let bytes = ByteBudget::of_memory(settings.memory);
        Self {
            host,
            settings,
            ready,
            bytes,
            windows: Arc::default(),
            left: Arc::default(),
            store: OnceCell::new(),
            producers: Producers::default(),
        }
    }

    /// What the sweeps of this invocation share with those before it.
    async fn engine(&self) -> Result<Engine, Failure> {
        let (bytes, windows, left) = (Arc::clone(&self.bytes), Arc::clone(&self.windows), Arc::clone(&self.left));
        Ok(Engine { host: self.host.clone(), store: self.store().await?, bytes, windows, left })
    }

    /// Sweeps the tables of a task. `deadline_ms` is when Lambda ends this invocation, in epoch milliseconds.
    ///
    /// # Errors
    /// `Event.…`, `Config.Invalid`; in mode stream the code of the first table that failed or was tried and parked.
    pub async fn handle(&self, event: &Value, deadline_ms: u64) -> Result<SweepReport, Failure> {
        let task = SweepTask::read(event)?;
        let ready = self.ready.as_ref().map_err(Clone::clone)?;
        let selection = Selection { connectors: vec![task.connector.clone()], tables: task.tables.clone() };
        let connector = owner(ready.assembly.documents(), &task)?;
        let deadline = Deadline::new(&self.host, deadline_ms);
        let (jobs, refused) = self.jobs(ready, connector, &selection, &deadline).await;
        let engine = self.engine().await?;
        let (_keep, stop) = watch::channel(false);
        let run = Run {
            mode: task.mode,
            scheduled: task.is_scheduled(),
            deadline: Some(deadline.monotonic),
            max_rows: None,
            lease: LeasePlan::Until(deadline.at_ms.saturating_add(LEASE_SKEW_MS)),
            stop,
        };
        for refused in &refused {
            engine.hindered(&refused.connector, &refused.failure).await;
        }
        let mut tables = engine.run(jobs, &run).await;
        tables.extend(refused.iter().flat_map(Refused::reports));
        let report = SweepReport::together(task.mode, tables);
        log(&report, &task);
        for table in &report.tables {
            self.settings.metrics.swept(table, task.tick.as_deref(), self.host.now_ms());
        }
        match reports::failure(&report) {
            Some(failure) => Err(failure),
            None => Ok(report),
        }
    }

    /// The tables to sweep. Whatever keeps the whole connector from being swept becomes the result of its tables.
    async fn jobs(&self, ready: &Ready, connector: &Connector, selection: &Selection, deadline: &Deadline) -> (Vec<Job>, Vec<Refused>) {
        let refused =
            |failure| (Vec::new(), vec![Refused { connector: connector.name.clone(), tables: selection.tables.clone(), failure }]);
        match self.sinks(ready, deadline).await {
            Ok(sinks) => ready.assembly.jobs(selection, &*sinks).await,
            Err(failure) => refused(failure),
        }
    }

    async fn store(&self) -> Result<Arc<dyn CursorStore>, Failure> {
        self.store.get_or_try_init(|| self.settings.open_store()).await.cloned()
    }

    async fn sinks(&self, ready: &Ready, deadline: &Deadline) -> Result<Arc<ToKafka>, Failure> {
        let told = self.settings.timeout.clone().unwrap_or_default();
        let options = KafkaOptions {
            function_timeout: Some(told.unwrap_or(deadline.timeout)),
            ..KafkaOptions::new(&self.settings.name, self.host.clone())
        };
        self.producers.get(&ready.assembly.documents().worker, &ready.resolver, options).await
    }
}

/// When the invocation ends.
#[derive(Debug)]
struct Deadline {
    at_ms: i64,
    monotonic: Duration,
    /// What the function's timeout must be, going by this invocation.
    timeout: Duration,
}

impl Deadline {
    fn new(host: &Host, deadline_ms: u64) -> Self {
        let at_ms = i64::try_from(deadline_ms).unwrap_or(i64::MAX);
        let left = Duration::from_millis(u64::try_from(at_ms.saturating_sub(host.now_ms())).unwrap_or(0));
        // A timeout is in whole seconds, and some milliseconds of it are spent by now.
        let timeout = Duration::from_secs(u64::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
        Self { at_ms, monotonic: host.monotonic().saturating_add(left), timeout }
    }
}

/// The connector of a task. Its tables are checked by their bare aliases: a task is no selection by an operator.
fn owner<'d>(documents: &'d Documents, task: &SweepTask) -> Result<&'d Connector, Failure> {
    let tables = task.tables.iter().map(|alias| format!("{}/{alias}", task.connector)).collect();
    known(documents, &Selection { connectors: vec![task.connector.clone()], tables })?;
    documents
        .connector(&task.connector)
        .ok_or_else(|| Failure::new("Event.UnknownTable", Retry::Never, format!("no document has the connector {}", task.connector)))
}

/// One line per table. It stands for the engine's own, which does not know the tick.
fn log(report: &SweepReport, task: &SweepTask) {
    for table in &report.tables {
        let TableReport { connector, table: alias, outcome, phase, rows, requests, bytes_in, lag_seconds, duration_ms, .. } = table;
        let code = table.reason.as_ref().map(|reason| reason.code.as_str());
        tracing::info!(
            connector, table = alias, tick = task.tick, mode = ?task.mode, ?outcome, code, phase = phase.map(tracing::field::debug), rows,
            suppressed = table.duplicates_suppressed, hidden = table.rows_hidden, late = table.rows_late, skipped = table.rows_skipped,
            replaced = table.values_replaced, requests, bytes_in, lag_seconds, duration_ms, "swept"
        );
        if report.mode == Mode::CatchUp && !table.outcome.is_good() {
            let message = table.reason.as_ref().map(|reason| reason.message.as_str());
            tracing::warn!(connector, table = alias, tick = task.tick, code, "{}", message.unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests;
