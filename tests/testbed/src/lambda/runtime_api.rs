//! The Runtime API as one environment sees it.
//!
//! The handlers decide nothing: each turns a request into a [`Signal`] and waits for the verdict of whoever drives
//! the environment. So the state of an environment lives in one place, and a request that comes at the wrong time
//! waits or is refused there.

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

/// What the program has just asked or told.
#[derive(Debug)]
pub(super) enum Signal {
    /// It wants its next event.
    Next(oneshot::Sender<Delivery>),
    /// It has ended an invocation.
    Done { request_id: String, outcome: Result<Bytes, Report>, verdict: oneshot::Sender<Verdict> },
    /// It could not initialise itself.
    InitFailed(Report),
}

/// An error as the program told it.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) error_type: Option<String>,
    pub(super) payload: Bytes,
}

/// An event on its way to the program.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) request_id: String,
    pub(super) deadline_ms: u128,
    pub(super) arn: String,
    pub(super) event: Bytes,
}

/// What the program is told about its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    /// The answer belongs to no invocation that runs.
    WrongRequest,
    /// The invocation has been answered already.
    AnsweredTwice,
    TooLarge,
}

type Signals = mpsc::UnboundedSender<Signal>;

pub(super) fn router(signals: Signals) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
        .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
        .route("/2018-06-01/runtime/init/error", post(init_error))
        .fallback(unknown)
        // The limit on answers is the service's, and is told as the service tells it.
        .layer(DefaultBodyLimit::disable())
        .with_state(signals)
}

async fn next(State(signals): State<Signals>) -> Response {
    let (delivery, event) = oneshot::channel();
    if signals.send(Signal::Next(delivery)).is_err() {
        return gone();
    }
    let Ok(delivery) = event.await else {
        return refusal(StatusCode::FORBIDDEN, "InvalidStateTransition", "an invocation is still to be answered");
    };
    let trace = format!("Root=1-00000000-{:.24};Sampled=0", delivery.request_id.replace('-', ""));
    let headers = [
        ("lambda-runtime-aws-request-id", delivery.request_id),
        ("lambda-runtime-deadline-ms", delivery.deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", delivery.arn),
        ("lambda-runtime-trace-id", trace),
        (header::CONTENT_TYPE.as_str(), "application/json".to_owned()),
    ];
    let mut response = Response::builder();
    for (name, value) in headers {
        response = response.header(name, value);
    }
    match response.body(Body::from(delivery.event)) {
        Ok(response) => response,
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, "Emulator", &error.to_string()),
    }
}

async fn response(State(signals): State<Signals>, Path(id): Path<String>, body: Bytes) -> Response {
    done(&signals, id, Ok(body)).await
}

async fn error(State(signals): State<Signals>, Path(id): Path<String>, headers: HeaderMap, body: Bytes) -> Response {
    done(&signals, id, Err(report(&headers, body))).await
}

async fn done(signals: &Signals, request_id: String, outcome: Result<Bytes, Report>) -> Response {
    let (verdict, answer) = oneshot::channel();
    let signal = Signal::Done { request_id, outcome, verdict };
    if signals.send(signal).is_err() {
        return gone();
    }
    match answer.await {
        Ok(Verdict::Accepted) => accepted(),
        Ok(Verdict::WrongRequest) => refusal(StatusCode::BAD_REQUEST, "InvalidRequestID", "no such invocation runs"),
        Ok(Verdict::AnsweredTwice) => refusal(StatusCode::FORBIDDEN, "InvalidStateTransition", "it is answered"),
        Ok(Verdict::TooLarge) => refusal(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", "the answer exceeds the limit"),
        Err(_) => gone(),
    }
}

async fn init_error(State(signals): State<Signals>, headers: HeaderMap, body: Bytes) -> Response {
    match signals.send(Signal::InitFailed(report(&headers, body))) {
        Ok(()) => accepted(),
        Err(_) => gone(),
    }
}

/// Extensions, streaming and snapshots are not emulated, and a program that asks for them should learn it.
async fn unknown(uri: axum::http::Uri) -> Response {
    refusal(StatusCode::NOT_FOUND, "UnknownPath", &format!("{} is not emulated", uri.path()))
}

fn report(headers: &HeaderMap, payload: Bytes) -> Report {
    let error_type = headers.get("lambda-runtime-function-error-type");
    Report { error_type: error_type.and_then(|value| value.to_str().ok()).map(str::to_owned), payload }
}

fn accepted() -> Response {
    (StatusCode::ACCEPTED, json!({"status": "OK"}).to_string()).into_response()
}

fn gone() -> Response {
    refusal(StatusCode::INTERNAL_SERVER_ERROR, "Emulator", "the environment has been given up")
}

fn refusal(status: StatusCode, error_type: &str, message: &str) -> Response {
    let body = json!({"errorType": error_type, "errorMessage": message});
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
