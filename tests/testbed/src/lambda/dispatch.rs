//! Who runs what, when: concurrency, the reuse of environments, and the queue of events.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use tokio::time::Instant;

use super::environment::{Driven, Ran};
use super::record::Failure;
use super::{Core, DroppedEvent, Environment, Function, Invocation, InvocationType, InvokeError, arn, request_id};
use crate::process::{lock, runtime};

/// A function and its environments.
pub(super) struct Deployed {
    pub(super) function: Function,
    /// Ready for an event, the one used last at the end.
    idle: Mutex<Vec<Driven>>,
    all: Mutex<Vec<Environment>>,
    /// Invocations that run now.
    running: watch::Sender<usize>,
    throttles: Mutex<u64>,
}

impl std::fmt::Debug for Deployed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deployed").field("function", &self.function).finish_non_exhaustive()
    }
}

impl Deployed {
    pub(super) fn new(function: Function) -> Self {
        Self { function, idle: Mutex::default(), all: Mutex::default(), running: watch::Sender::new(0), throttles: Mutex::default() }
    }

    pub(super) fn environments(&self) -> Vec<Environment> {
        lock(&self.all).clone()
    }

    pub(super) fn throttles(&self) -> u64 {
        *lock(&self.throttles)
    }

    pub(super) fn kill_all(&self) {
        lock(&self.idle).clear();
        for environment in lock(&self.all).iter() {
            environment.process().kill();
        }
    }

    /// One more invocation, if the reserved concurrency allows it.
    fn enter(self: &Arc<Self>) -> Option<Slot> {
        let most = self.function.reserved_concurrency.unwrap_or(usize::MAX);
        let entered = self.running.send_if_modified(|running| {
            let free = *running < most;
            *running += usize::from(free);
            free
        });
        if !entered {
            *lock(&self.throttles) += 1;
            return None;
        }
        Some(Slot(Arc::clone(self)))
    }

    /// An environment for one invocation: the one used last, or a new one.
    async fn environment(&self, request_id: &str) -> Result<(Driven, bool), Failure> {
        // One that died while it was idle is forgotten, as is one that a test has killed.
        let idle = std::iter::from_fn(|| lock(&self.idle).pop()).find(|idle| idle.view.process().is_running());
        if let Some(idle) = idle {
            idle.view.process().thaw();
            return Ok((idle, false));
        }
        let started = |view| lock(&self.all).push(view);
        let driven = Driven::start(&self.function, started).await;
        let mut driven = driven.map_err(|error| Failure::of_the_service("Runtime.InvalidEntrypoint", error.to_string()))?;
        driven.initialise(&self.function, request_id).await?;
        Ok((driven, true))
    }

    async fn put_back(&self, driven: Driven) {
        if self.function.freeze
            && let Err(error) = driven.view.process().freeze().await
        {
            eprintln!("testbed: {} is not reused, since it cannot be frozen: {error}", self.function.name);
            return;
        }
        lock(&self.idle).push(driven);
    }
}

/// A place among the invocations that run at the same time.
struct Slot(Arc<Deployed>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// One invocation to be run.
struct Job {
    request_id: String,
    kind: InvocationType,
    attempt: u32,
    event: Bytes,
}

/// Finds the function and checks the event, as the service does before it does anything else.
pub(super) fn admit(core: &Core, name: &str, event: Bytes, limit: usize) -> Result<(Arc<Deployed>, Bytes), InvokeError> {
    let deployed = lock(&core.functions).get(name).cloned();
    let deployed = deployed.ok_or_else(|| InvokeError::NotFound(arn(name)))?;
    if event.len() > limit {
        return Err(InvokeError::TooLarge(limit));
    }
    if event.is_empty() {
        return Ok((deployed, Bytes::from_static(b"{}")));
    }
    match serde_json::from_slice::<IgnoredAny>(&event) {
        Ok(_) => Ok((deployed, event)),
        Err(error) => Err(InvokeError::NotJson(error.to_string())),
    }
}

/// Invokes and waits. A caller that goes away meanwhile changes nothing: the invocation goes on.
pub(super) async fn invoke(core: &Arc<Core>, name: &str, event: Bytes) -> Result<Invocation, InvokeError> {
    let (deployed, event) = admit(core, name, event, core.limits.request)?;
    let slot = deployed.enter().ok_or(InvokeError::Throttled)?;
    let job = Job {
        request_id: request_id().map_err(|error| InvokeError::Service(error.to_string()))?,
        kind: InvocationType::RequestResponse,
        attempt: 1,
        event,
    };
    let core = Arc::clone(core);
    let run = runtime().spawn(async move { run(&core, slot, &job).await });
    run.await.map_err(|error| InvokeError::Service(error.to_string()))
}

/// Accepts an event, and sees to it that it is carried out.
pub(super) fn enqueue(core: &Arc<Core>, name: &str, event: Bytes) -> Result<String, InvokeError> {
    let (deployed, event) = admit(core, name, event, core.limits.event)?;
    let request_id = request_id().map_err(|error| InvokeError::Service(error.to_string()))?;
    let job = Job { request_id: request_id.clone(), kind: InvocationType::Event, attempt: 1, event };
    let open = OpenEvent::new(core);
    runtime().spawn(async move {
        let core = Arc::clone(&open.0);
        let mut closed = core.closed.clone();
        tokio::select! {
            () = carry_out(&core, &deployed, job) => {}
            _ = closed.changed() => {}
        }
        drop(open);
    });
    Ok(request_id)
}

/// Counts an accepted event until it is done with, however that comes about.
struct OpenEvent(Arc<Core>);

impl OpenEvent {
    fn new(core: &Arc<Core>) -> Self {
        core.events.send_modify(|open| *open += 1);
        Self(Arc::clone(core))
    }
}

impl Drop for OpenEvent {
    fn drop(&mut self) {
        self.0.events.send_modify(|open| *open -= 1);
    }
}

/// Runs an event until it succeeds, its retries are used up, or it is too old.
async fn carry_out(core: &Core, deployed: &Arc<Deployed>, mut job: Job) {
    let function = &deployed.function;
    let too_old = Instant::now() + function.event_max_age;
    let condition = loop {
        let Ok(slot) = tokio::time::timeout_at(too_old, wait_for_slot(deployed)).await else {
            break "EventAgeExceeded";
        };
        if run(core, slot, &job).await.outcome.is_ok() {
            return;
        }
        if job.attempt > function.event_retries {
            break "RetriesExhausted";
        }
        job.attempt += 1;
        tokio::time::sleep(function.event_retry_delay).await;
        if Instant::now() >= too_old {
            break "EventAgeExceeded";
        }
    };
    lock(&core.dropped).push(DroppedEvent { request_id: job.request_id, function: function.name.clone(), event: job.event, condition });
}

/// The service tries a throttled event again and again; here it is tried whenever an invocation has ended.
async fn wait_for_slot(deployed: &Arc<Deployed>) -> Slot {
    let mut running = deployed.running.subscribe();
    loop {
        running.borrow_and_update();
        if let Some(slot) = deployed.enter() {
            return slot;
        }
        // The sender lives in `deployed`: it cannot be gone.
        drop(running.changed().await);
    }
}

/// Runs one invocation to its end and records it. The place is given back last: whoever waits for it finds the
/// environment idle.
async fn run(core: &Core, slot: Slot, job: &Job) -> Invocation {
    let deployed = Arc::clone(&slot.0);
    let invocation = match deployed.environment(&job.request_id).await {
        Ok((mut driven, cold)) => {
            let limit = core.limits.response;
            let ran = driven.invoke(&deployed.function, &job.request_id, job.event.clone(), limit).await;
            let (reusable, invocation) = (ran.reusable, recorded(&deployed, job, &driven, cold, ran));
            if reusable {
                deployed.put_back(driven).await;
            }
            invocation
        }
        Err(failure) => never_ran(&deployed, job, failure),
    };
    lock(&core.invocations).push(invocation.clone());
    drop(slot);
    invocation
}

fn recorded(deployed: &Deployed, job: &Job, driven: &Driven, cold: bool, ran: Ran) -> Invocation {
    Invocation {
        request_id: job.request_id.clone(),
        function: deployed.function.name.clone(),
        environment: driven.view.id().to_owned(),
        kind: job.kind,
        attempt: job.attempt,
        event: job.event.clone(),
        outcome: ran.outcome,
        cold,
        started: ran.started,
        duration: ran.duration,
        init_duration: cold.then_some(driven.init_duration),
        init_cpu_ms: driven.init_usage.filter(|_| cold).map(|usage| usage.cpu_ms),
        cpu_ms: ran.cpu_ms,
        peak_rss_kib: ran.peak_rss_kib,
    }
}

/// The record of an invocation whose environment never came up.
fn never_ran(deployed: &Deployed, job: &Job, failure: Failure) -> Invocation {
    let last = lock(&deployed.all).last().map(|environment| environment.id().to_owned());
    Invocation {
        request_id: job.request_id.clone(),
        function: deployed.function.name.clone(),
        environment: last.unwrap_or_default(),
        kind: job.kind,
        attempt: job.attempt,
        event: job.event.clone(),
        outcome: Err(failure),
        cold: true,
        started: SystemTime::now(),
        duration: std::time::Duration::ZERO,
        init_duration: None,
        init_cpu_ms: None,
        cpu_ms: None,
        peak_rss_kib: None,
    }
}
