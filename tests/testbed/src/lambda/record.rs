//! What is known of an invocation once it has ended.

use std::process::ExitStatus;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::{Value, json};

/// How a function was invoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvocationType {
    /// The caller waits for the answer.
    RequestResponse,
    /// The caller has gone on; failures are tried again.
    Event,
}

/// An invocation that has ended.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The request id; the attempts of one event share it.
    pub request_id: String,
    /// The function's name.
    pub function: String,
    /// The environment that ran it; see [`Environment::id`](super::Environment::id).
    pub environment: String,
    /// How it was invoked.
    pub kind: InvocationType,
    /// Which try of an event this was, counted from 1.
    pub attempt: u32,
    /// What the function was given.
    pub event: Bytes,
    /// What it answered, or how it failed.
    pub outcome: Result<Bytes, Failure>,
    /// Was the environment started for this invocation?
    pub cold: bool,
    /// When the event was handed over.
    pub started: SystemTime,
    /// From the event's being handed over until the environment asked for the next, or was gone.
    pub duration: Duration,
    /// From the start of the program until it asked for its first event; of a cold start only.
    pub init_duration: Option<Duration>,
    /// CPU time of the process until it asked for its first event; of a cold start only.
    pub init_cpu_ms: Option<u64>,
    /// CPU time of the process within the invocation; `None` if the process ended by itself, which leaves nothing to
    /// measure.
    pub cpu_ms: Option<u64>,
    /// The largest resident set of the process so far.
    pub peak_rss_kib: Option<u64>,
}

impl Invocation {
    /// The answer as JSON; `None` if the function failed or its answer is no JSON.
    pub fn response(&self) -> Option<Value> {
        serde_json::from_slice(self.outcome.as_ref().ok()?).ok()
    }

    /// The type of the error; `None` if the function did not fail.
    pub fn error_type(&self) -> Option<&str> {
        self.outcome.as_ref().err().map(|failure| failure.error_type.as_str())
    }

    /// The text of the error; `None` if the function did not fail.
    pub fn error_message(&self) -> Option<&str> {
        self.outcome.as_ref().err().map(|failure| failure.message.as_str())
    }

    pub(super) fn summary(&self) -> String {
        let outcome = match &self.outcome {
            Ok(response) => String::from_utf8_lossy(response),
            Err(failure) => String::from_utf8_lossy(&failure.payload),
        };
        format!("{} {} attempt {} {:?}: {outcome}", self.function, self.request_id, self.attempt, self.duration)
    }
}

/// How a function failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `errorType`: the function's own, or Lambda's for what the function could not report itself.
    pub error_type: String,
    /// `errorMessage`.
    pub message: String,
    /// The whole answer to the caller.
    pub payload: Bytes,
}

impl Failure {
    /// A failure in Lambda's own words.
    pub(super) fn of_the_service(error_type: &str, message: String) -> Self {
        let payload = json!({"errorType": error_type, "errorMessage": message}).to_string();
        Self { error_type: error_type.to_owned(), message, payload: Bytes::from(payload) }
    }

    /// A failure as the program reported it; the header counts where the body names no type.
    pub(super) fn reported(header: Option<String>, payload: Bytes) -> Self {
        let body: Value = serde_json::from_slice(&payload).unwrap_or(Value::Null);
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        Self {
            error_type: text("errorType").or(header).unwrap_or_else(|| "Runtime.Unknown".to_owned()),
            message: text("errorMessage").unwrap_or_default(),
            payload,
        }
    }

    pub(super) fn timed_out(request_id: &str, after: Duration) -> Self {
        let seconds = after.as_secs_f64();
        let message = format!("RequestId: {request_id} Error: Task timed out after {seconds:.2} seconds");
        Self::of_the_service("Sandbox.Timedout", message)
    }

    pub(super) fn exited(request_id: &str, status: Option<ExitStatus>) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let how = match status.map(|status| (status.code(), status.signal())) {
            Some((Some(0), _)) => "Runtime exited without providing a reason".to_owned(),
            Some((Some(code), _)) => format!("Runtime exited with error: exit status {code}"),
            Some((None, Some(9))) => "Runtime exited with error: signal: killed".to_owned(),
            Some((None, Some(signal))) => format!("Runtime exited with error: signal: {signal}"),
            Some((None, None)) | None => "Runtime exited with error: unknown".to_owned(),
        };
        Self::of_the_service("Runtime.ExitError", format!("RequestId: {request_id} Error: {how}"))
    }

    pub(super) fn response_too_large(limit: usize) -> Self {
        let message = format!("Response payload size exceeded maximum allowed payload size ({limit} bytes).");
        Self::of_the_service("Function.ResponseSizeTooLarge", message)
    }
}

/// An event that nobody will carry out any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedEvent {
    /// The request id.
    pub request_id: String,
    /// The function's name.
    pub function: String,
    /// What the function should have been given.
    pub event: Bytes,
    /// `RetriesExhausted` or `EventAgeExceeded`, as a dead-letter queue is told.
    pub condition: &'static str,
}

/// Why a function was not invoked at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvokeError {
    /// `ResourceNotFoundException`.
    #[error("Function not found: {0}")]
    NotFound(String),
    /// `TooManyRequestsException`.
    #[error("Rate Exceeded.")]
    Throttled,
    /// `RequestTooLargeException`.
    #[error("Request must be smaller than {0} bytes for the InvokeFunction operation")]
    TooLarge(usize),
    /// `InvalidRequestContentException`.
    #[error("Could not parse request body into json: {0}")]
    NotJson(String),
    /// `InvalidParameterValueException`.
    #[error("{0}")]
    InvalidParameter(String),
    /// `ServiceException`: the emulator itself failed.
    #[error("{0}")]
    Service(String),
}
