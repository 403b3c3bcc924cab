//! A Lambda of our own: it runs the real bootstraps as real processes, by the rules that decide whether rows are lost.
//!
//! What a scheduled function does to a sweep happens outside of the handler: the environment is frozen the moment the
//! answer is out, thawed an hour later with the same sockets, killed at the deadline in the middle of a commit,
//! or started a second time beside the first. The emulators that exist run every invocation to its end in one
//! warm process, which is the one case that needs no test. So this one keeps the rules:
//!
//! * the [Runtime API] is served to each environment on a port of its own, as in the cloud, with the deadline as a
//!   wall clock time; the answer counts once the environment asks for its next event;
//! * between two invocations the environment is stopped (SIGSTOP), for the next it goes on (SIGCONT);
//! * at the deadline it is killed, and the caller is told `Sandbox.Timedout`;
//! * one environment per invocation that runs at the same time, reused afterwards, no more of them than the
//!   reserved concurrency allows;
//! * the Invoke API, for the SDK (`AWS_ENDPOINT_URL_LAMBDA` = [`Runtime::endpoint`]): a failed function is HTTP 200
//!   with `X-Amz-Function-Error`, an event is 202 and is tried again when it fails, a throttle is 429.
//!
//! Unlike the real one, an initialisation that fails is not tried a second time within the invocation, and memory is
//! recorded, not limited.
//!
//! [Runtime API]: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::parts::{self, PartError};
use crate::process::{lock, runtime};

mod dispatch;
mod environment;
mod function;
mod invoke_api;
mod record;
mod runtime_api;

use dispatch::Deployed;
pub use environment::Environment;
pub use function::Function;
pub use record::{DroppedEvent, Failure, Invocation, InvocationType, InvokeError};

pub(crate) const PART: &str = "the Lambda emulator";
const REGION: &str = "us-east-1";
const ACCOUNT: &str = "123456789012";

/// The largest request and answer that the service lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The event of a synchronous invocation, in bytes.
    pub request: usize,
    /// The event of an asynchronous invocation, in bytes.
    pub event: usize,
    /// The answer of a function, in bytes.
    pub response: usize,
}

impl Default for Limits {
    /// 6 MiB, and 256 KiB for events: AWS has raised the latter in 2025, and what fits the old limit fits everywhere.
    fn default() -> Self {
        Self { request: 6 * 1024 * 1024, event: 256 * 1024, response: 6 * 1024 * 1024 }
    }
}

/// A running Lambda service. Dropping it kills all environments.
#[derive(Debug)]
pub struct Runtime {
    core: Arc<Core>,
    address: SocketAddr,
    /// Dropped with the service: ends the Invoke API and the queue of events.
    _open: watch::Sender<()>,
}

#[derive(Debug)]
struct Core {
    limits: Limits,
    functions: Mutex<BTreeMap<String, Arc<Deployed>>>,
    invocations: Mutex<Vec<Invocation>>,
    dropped: Mutex<Vec<DroppedEvent>>,
    /// The events that were accepted and are not done with.
    events: watch::Sender<usize>,
    /// Closed when the service is dropped.
    closed: watch::Receiver<()>,
}

impl Runtime {
    /// Starts the service without functions.
    pub async fn start() -> Result<Self, PartError> {
        Self::start_with(Limits::default()).await
    }

    /// Starts the service with other limits.
    pub async fn start_with(limits: Limits) -> Result<Self, PartError> {
        let (open, closed) = watch::channel(());
        let core = Arc::new(Core {
            limits,
            functions: Mutex::default(),
            invocations: Mutex::default(),
            dropped: Mutex::default(),
            events: watch::Sender::new(0),
            closed,
        });
        let listener = runtime().spawn(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.await.map_err(|error| PartError::not_started(PART, error))?;
        let listener = listener.map_err(|error| PartError::not_started(PART, error))?;
        let address = listener.local_addr().map_err(|error| PartError::not_started(PART, error))?;
        let (served, mut closed) = (Arc::clone(&core), core.closed.clone());
        runtime().spawn(async move {
            tokio::select! {
                ended = axum::serve(listener, invoke_api::router(served)) => {
                    eprintln!("testbed: the Invoke API ended: {ended:?}");
                }
                _ = closed.changed() => {}
            }
        });
        Ok(Self { core, address, _open: open })
    }

    /// Makes a function known. A function of the same name is replaced, and its environments are killed.
    pub fn register(&self, function: Function) -> Result<(), PartError> {
        function.validate()?;
        let deployed = Arc::new(Deployed::new(function));
        let before = lock(&self.core.functions).insert(deployed.function.name.clone(), deployed);
        if let Some(before) = before {
            before.kill_all();
        }
        Ok(())
    }

    /// What `AWS_ENDPOINT_URL_LAMBDA` is to be set to.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where the Invoke API listens, for a proxy in front of it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Invokes a function and waits for its end. A function that fails is not an error here: see
    /// [`Invocation::outcome`].
    pub async fn invoke(&self, name: &str, event: &impl Serialize) -> Result<Invocation, InvokeError> {
        let event = to_json(event)?;
        dispatch::invoke(&self.core, name, event).await
    }

    /// Hands an event to a function and returns the request id, without waiting for anything.
    pub fn invoke_event(&self, name: &str, event: &impl Serialize) -> Result<String, InvokeError> {
        dispatch::enqueue(&self.core, name, to_json(event)?)
    }

    /// Waits until every event that was accepted has been carried out, retries included, or dropped.
    pub async fn idle(&self, within: Duration) -> Result<(), PartError> {
        let mut events = self.core.events.subscribe();
        let idle = tokio::time::timeout(within, events.wait_for(|open| *open == 0)).await;
        if matches!(idle, Ok(Ok(_))) {
            return Ok(());
        }
        let done: Vec<String> = self.invocations().iter().map(Invocation::summary).collect();
        Err(PartError::Timeout {
            what: "the end of all events".to_owned(),
            within,
            last: format!("{} open; done:\n{}", *self.core.events.borrow(), done.join("\n")),
        })
    }

    /// All invocations that have ended, of all functions, in the order of their ends.
    pub fn invocations(&self) -> Vec<Invocation> {
        lock(&self.core.invocations).clone()
    }

    /// The invocations of one function that have ended.
    pub fn invocations_of(&self, name: &str) -> Vec<Invocation> {
        let mut all = self.invocations();
        all.retain(|invocation| invocation.function == name);
        all
    }

    /// Forgets the invocations and the dropped events so far.
    pub fn forget_invocations(&self) {
        lock(&self.core.invocations).clear();
        lock(&self.core.dropped).clear();
    }

    /// Events that were given up: their age or their retries were exhausted.
    pub fn dropped_events(&self) -> Vec<DroppedEvent> {
        lock(&self.core.dropped).clone()
    }

    /// All environments that a function has had, in the order of their starts, those that have ended included.
    pub fn environments(&self, name: &str) -> Vec<Environment> {
        let deployed = lock(&self.core.functions).get(name).cloned();
        deployed.map(|deployed| deployed.environments()).unwrap_or_default()
    }

    /// Waits until a function has had that many environments, and gives the last of them: the way to get hold of
    /// the process of an invocation that runs.
    pub async fn environment(&self, name: &str, number: usize, within: Duration) -> Result<Environment, PartError> {
        let what = format!("environment {number} of {name}");
        parts::until(&what, within, async || {
            let all = self.environments(name);
            let found = number.checked_sub(1).and_then(|index| all.get(index).cloned());
            found.ok_or_else(|| format!("{} environments", all.len()))
        })
        .await
    }

    /// What all environments of a function wrote, in the order of their starts.
    pub fn logs(&self, name: &str) -> String {
        let environments = self.environments(name);
        let texts: Vec<String> = environments.iter().map(|environment| environment.logs().text()).collect();
        texts.join("\n")
    }

    /// How many invocations of a function were refused for want of concurrency, events' attempts included.
    pub fn throttles(&self, name: &str) -> u64 {
        let deployed = lock(&self.core.functions).get(name).cloned();
        deployed.map(|deployed| deployed.throttles()).unwrap_or_default()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for deployed in lock(&self.core.functions).values() {
            deployed.kill_all();
        }
    }
}

fn to_json(event: &impl Serialize) -> Result<Bytes, InvokeError> {
    let json = serde_json::to_vec(event);
    json.map(Bytes::from).map_err(|error| InvokeError::NotJson(error.to_string()))
}

fn arn(name: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}")
}

/// A random version 4 UUID, which is what request ids look like.
fn request_id() -> Result<String, PartError> {
    let mut bytes = parts::random::<16>()?;
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
