//! Fan-out: plans, and invokes the sweep function once per task.
//!
//! Each task is invoked asynchronously and once. An invocation whose answer was lost may have been taken, and a second one
//! would only find the leases held; so nothing is tried again here, and the next tick is the retry. One that fails does
//! not keep the others from being invoked; afterwards fan-out fails and names the tasks, so that an alarm sees it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::event::{Dispatch, Order, RewindOrder, SweepTask};
use super::rewind::rewind;
use super::settings::Settings;
use crate::assembly::Selection;
use crate::config::{Documents, Faults};
use crate::cursor::CursorStore;
use crate::failure::{Failure, Retry};
use crate::host::{Host, env};
use crate::operate::Place;
use crate::plan::Plan;

/// Hands events to a function, without waiting for what becomes of them.
#[async_trait]
pub trait Invoke: Send + Sync {
    /// Hands `event` to `function`, once.
    ///
    /// # Errors
    /// It was not taken, or nobody knows: why, in words.
    async fn invoke(&self, function: &str, event: Vec<u8>) -> Result<(), String>;
}

/// The fan-out function.
#[derive(Debug)]
pub struct FanOut {
    host: Host,
    settings: Settings,
    documents: Result<Documents, Failure>,
    store: OnceCell<Arc<dyn CursorStore>>,
}

impl FanOut {
    /// Reads the documents. What is wrong with them is the answer to every event.
    pub fn new(settings: Settings, host: Host) -> Self {
        let documents = settings.load(&|name| env(name)).map_err(super::logged);
        Self { host, settings, documents, store: OnceCell::new() }
    }

    /// Carries an event out and answers the plan. `invocation` is Lambda's id of the request.
    ///
    /// # Errors
    /// `Event.…` for an event that makes no sense, `Config.Invalid`, `Cursor.…` for a rewind that is refused,
    /// `FanOut.InvokeFailed` naming the tasks that were not invoked.
    pub async fn handle(&self, event: &Value, invocation: &str, invoke: &dyn Invoke) -> Result<Plan, Failure> {
        let order = Order::read(event, invocation)?;
        let documents = self.documents.as_ref().map_err(Clone::clone)?;
        known(documents, &order.selection)?;
        let function = match (order.dispatch, &self.settings.sweep_function) {
            (Dispatch::Return, _) => None,
            (Dispatch::Invoke, Some(function)) => Some(function),
            (Dispatch::Invoke, None) => {
                return Err(Failure::new(Faults::CODE, Retry::Never, "SWEEP_FUNCTION is not set; it names the function that is invoked"));
            }
        };
        let not_rewound = match &order.rewind {
            Some(wish) => self.rewind(documents, &order.selection, wish).await?,
            None => Vec::new(),
        };
        let plan = Plan::of(documents, &order.selection, order.mode, Some(order.tick.clone()));
        let mut plan = Plan { not_rewound, ..plan };
        let dispatched = match function {
            Some(function) => dispatch(&mut plan, function, invoke).await,
            None => Ok(()),
        };
        self.settings.metrics.planned(&plan, self.host.now_ms());
        dispatched?;
        tracing::info!(tick = order.tick, mode = ?plan.mode, tasks = plan.tasks.len(), invoked = plan.invoked, "planned");
        Ok(plan)
    }

    async fn rewind(&self, documents: &Documents, selection: &Selection, wish: &RewindOrder) -> Result<Vec<String>, Failure> {
        let all: Vec<Place> = documents.connectors.iter().flat_map(|connector| Place::of(connector, &|name| env(name))).collect();
        let places: Vec<Place> = all.iter().filter(|place| selection.includes(&place.connector, &place.alias)).cloned().collect();
        let store = self.store().await?;
        rewind(&*store, &self.host, &all, places, wish).await
    }

    async fn store(&self) -> Result<Arc<dyn CursorStore>, Failure> {
        self.store.get_or_try_init(|| self.settings.open_store()).await.cloned()
    }
}

/// Refuses names that stand in no document: a misspelt alias must not pass for a table that had nothing to do.
pub(super) fn known(documents: &Documents, selection: &Selection) -> Result<(), Failure> {
    let unknown = selection.unknown(documents);
    if unknown.is_empty() {
        return Ok(());
    }
    let known: Vec<String> =
        documents.connectors.iter().map(|connector| format!("{} ({})", connector.name, connector.tables().join(", "))).collect();
    Err(Failure::new("Event.UnknownTable", Retry::Never, format!("no document has {}; there are {}", unknown.join(", "), known.join("; "))))
}

async fn dispatch(plan: &mut Plan, function: &str, invoke: &dyn Invoke) -> Result<(), Failure> {
    let invocations = plan.tasks.iter().map(|task| {
        let task = SweepTask::new(plan, task);
        async move {
            let event = serde_json::to_vec(&task).map_err(|error| format!("{task}: {error}"))?;
            invoke.invoke(function, event).await.map_err(|why| format!("{task}: {why}"))
        }
    });
    let failed: Vec<String> = join_all(invocations).await.into_iter().filter_map(Result::err).collect();
    let tasks = plan.tasks.len();
    plan.invoked = u32::try_from(tasks - failed.len()).unwrap_or(u32::MAX);
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        "FanOut.InvokeFailed",
        Retry::NextTick,
        format!(
            "{} of {tasks} tasks were not invoked at {function}, and wait for the next tick; the others were: {}",
            failed.len(),
            failed.join("; ")
        ),
    ))
}

#[cfg(test)]
mod tests;
