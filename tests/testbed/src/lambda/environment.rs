//! One execution environment: a process, the Runtime API it talks to, and where in its life it is.

use std::net::Ipv4Addr;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::record::Failure;
use super::runtime_api::{self, Delivery, Signal, Verdict};
use super::{Function, PART, REGION, arn, request_id};
use crate::parts::PartError;
use crate::process::{Logs, Process, Usage};

/// A test's view of an environment, good beyond the environment's end.
#[derive(Debug, Clone)]
pub struct Environment {
    id: String,
    process: Arc<Process>,
}

impl Environment {
    /// The name that invocations refer to; also the name of its log stream.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The process, to be killed, frozen, thawed or measured.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What the process wrote.
    pub fn logs(&self) -> &Logs {
        self.process.logs()
    }
}

/// What one invocation was given and has used.
pub(super) struct Ran {
    pub(super) outcome: Result<Bytes, Failure>,
    pub(super) started: SystemTime,
    pub(super) duration: Duration,
    pub(super) cpu_ms: Option<u64>,
    pub(super) peak_rss_kib: Option<u64>,
    /// Has the environment asked for another event?
    pub(super) reusable: bool,
}

/// The environment as its driver has it: whoever runs an invocation owns it for as long.
pub(super) struct Driven {
    pub(super) view: Environment,
    pub(super) init_duration: Duration,
    pub(super) init_usage: Option<Usage>,
    signals: mpsc::UnboundedReceiver<Signal>,
    /// The program's open request for its next event.
    waiting: Option<oneshot::Sender<Delivery>>,
    api: AbortHandle,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.view.process.kill();
        self.api.abort();
    }
}

impl Driven {
    /// Starts the program and hands its view out before anything can go wrong with it: a failed start has logs too.
    pub(super) async fn start(function: &Function, started: impl FnOnce(Environment)) -> Result<Self, PartError> {
        let not_started = |error: &dyn std::fmt::Display| PartError::not_started(PART, error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|error| not_started(&error))?;
        let address = listener.local_addr().map_err(|error| not_started(&error))?;
        let (sender, signals) = mpsc::unbounded_channel();
        let api = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, runtime_api::router(sender)).await {
                eprintln!("testbed: the Runtime API ended: {error}");
            }
        });
        let api = api.abort_handle();
        let id = request_id()?.replace('-', "");
        let mut command = Command::new(&function.bootstrap);
        describe(&mut command, function, &id, &address.to_string());
        let process = match Process::spawn(PART, command, None).await {
            Ok(process) => Arc::new(process),
            Err(error) => {
                api.abort();
                return Err(error);
            }
        };
        let view = Environment { id, process };
        started(view.clone());
        Ok(Self { view, init_duration: Duration::ZERO, init_usage: None, signals, waiting: None, api })
    }

    /// Waits until the program asks for its first event.
    pub(super) async fn initialise(&mut self, function: &Function, request_id: &str) -> Result<(), Failure> {
        let begun = Instant::now();
        let process = Arc::clone(&self.view.process);
        let failure = loop {
            tokio::select! {
                biased;
                signal = self.signals.recv() => match signal {
                    Some(Signal::Next(waiting)) => {
                        self.waiting = Some(waiting);
                        self.init_duration = begun.elapsed();
                        self.init_usage = process.usage();
                        return Ok(());
                    }
                    Some(Signal::InitFailed(report)) => break Failure::reported(report.error_type, report.payload),
                    Some(Signal::Done { verdict, .. }) => answer(verdict, Verdict::WrongRequest),
                    None => break Failure::exited(request_id, None),
                },
                status = process.wait() => break Failure::exited(request_id, status),
                () = sleep_until(begun + function.init_timeout) => {
                    break Failure::timed_out(request_id, function.init_timeout);
                }
            }
        };
        process.kill();
        process.wait().await;
        Err(failure)
    }

    /// Runs one invocation, from the handing over of the event until the environment is ready for the next or gone.
    pub(super) async fn invoke(&mut self, function: &Function, id: &str, event: Bytes, max_response: usize) -> Ran {
        let process = Arc::clone(&self.view.process);
        let before = process.usage();
        let (begun, started) = (Instant::now(), SystemTime::now());
        let mut current = Current { id, max_response, outcome: None, delivery: Some(delivery(function, id, event, started)) };
        if let Some(waiting) = self.waiting.take() {
            current.deliver(waiting);
        }
        let (ended, usage) = loop {
            tokio::select! {
                biased;
                signal = self.signals.recv() => {
                    if let Some(waiting) = signal.and_then(|signal| current.hear(signal)) {
                        self.waiting = Some(waiting);
                        break (Ended::Ready, process.usage());
                    }
                }
                status = process.wait() => break (Ended::Exited(status), None),
                () = sleep_until(begun + function.timeout) => {
                    let usage = process.usage();
                    process.kill();
                    process.wait().await;
                    break (Ended::Deadline, usage);
                }
            }
        };
        let outcome = current.outcome.unwrap_or_else(|| match ended {
            Ended::Exited(status) => Err(Failure::exited(id, status)),
            Ended::Ready | Ended::Deadline => Err(Failure::timed_out(id, function.timeout)),
        });
        Ran {
            outcome,
            started,
            duration: begun.elapsed(),
            cpu_ms: before.zip(usage).map(|(before, after)| after.cpu_ms.saturating_sub(before.cpu_ms)),
            peak_rss_kib: usage.map(|usage| usage.peak_rss_kib),
            reusable: matches!(ended, Ended::Ready),
        }
    }
}

enum Ended {
    /// The program asked for its next event.
    Ready,
    Exited(Option<ExitStatus>),
    Deadline,
}

/// The invocation that an environment is busy with.
struct Current<'a> {
    id: &'a str,
    max_response: usize,
    outcome: Option<Result<Bytes, Failure>>,
    /// The event, until the program has it.
    delivery: Option<Delivery>,
}

impl Current<'_> {
    /// A request for the next event may have been given up by the program meanwhile (a client that was frozen for an
    /// hour takes its connection for dead); then the event stays here and the next request gets it.
    fn deliver(&mut self, waiting: oneshot::Sender<Delivery>) {
        if let Some(delivery) = self.delivery.take() {
            self.delivery = waiting.send(delivery).err();
        }
    }

    /// Takes in what the program says. Gives back its request for the next event once this one is answered.
    fn hear(&mut self, signal: Signal) -> Option<oneshot::Sender<Delivery>> {
        match signal {
            Signal::Next(waiting) if self.outcome.is_some() => return Some(waiting),
            // Dropping the request of a program that has an event to answer refuses it.
            Signal::Next(waiting) => self.deliver(waiting),
            Signal::Done { request_id, verdict, .. } if request_id != self.id || self.delivery.is_some() => {
                answer(verdict, Verdict::WrongRequest);
            }
            Signal::Done { verdict, .. } if self.outcome.is_some() => answer(verdict, Verdict::AnsweredTwice),
            Signal::Done { outcome: Ok(response), verdict, .. } if response.len() > self.max_response => {
                self.outcome = Some(Err(Failure::response_too_large(self.max_response)));
                answer(verdict, Verdict::TooLarge);
            }
            Signal::Done { outcome, verdict, .. } => {
                let outcome = outcome.map_err(|report| Failure::reported(report.error_type, report.payload));
                self.outcome = Some(outcome);
                answer(verdict, Verdict::Accepted);
            }
            // An initialisation that failed after the program had asked for an event: its exit will tell.
            Signal::InitFailed(_) => {}
        }
        None
    }
}

/// The program may have gone before it is told; its exit is seen elsewhere.
fn answer(verdict: oneshot::Sender<Verdict>, says: Verdict) {
    let _unheard = verdict.send(says);
}

fn delivery(function: &Function, id: &str, event: Bytes, started: SystemTime) -> Delivery {
    let deadline = started + function.timeout;
    let since_epoch = deadline.duration_since(UNIX_EPOCH).unwrap_or_default();
    Delivery { request_id: id.to_owned(), deadline_ms: since_epoch.as_millis(), arn: arn(&function.name), event }
}

/// Gives the program the environment that Lambda gives, and nothing of ours.
fn describe(command: &mut Command, function: &Function, id: &str, api: &str) {
    let name = &function.name;
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin:/opt/bin")
        .env("LANG", "en_US.UTF-8")
        .env("TZ", ":UTC")
        .envs(&function.env)
        .env("_HANDLER", "bootstrap")
        .env("AWS_ACCESS_KEY_ID", "testbed")
        .env("AWS_SECRET_ACCESS_KEY", "testbed-secret-access-key")
        .env("AWS_SESSION_TOKEN", "testbed-session-token")
        .env("AWS_REGION", REGION)
        .env("AWS_DEFAULT_REGION", REGION)
        .env("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023")
        .env("AWS_LAMBDA_FUNCTION_NAME", name)
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", function.memory_mb.to_string())
        .env("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{name}"))
        .env("AWS_LAMBDA_LOG_STREAM_NAME", id)
        .env("AWS_LAMBDA_RUNTIME_API", api)
        .env("LAMBDA_RUNTIME_DIR", "/var/runtime");
    if let Some(root) = function.bootstrap.parent() {
        command.env("LAMBDA_TASK_ROOT", root).current_dir(root);
    }
}
