//! The Invoke API: what the SDK's `invoke` talks to.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::dispatch;
use super::{Core, InvokeError, request_id};

pub(super) fn router(core: Arc<Core>) -> Router {
    Router::new()
        .route("/2015-03-31/functions/{name}/invocations", post(invoke))
        .fallback(unknown)
        // The limits on events are the service's, and are told as the service tells them.
        .layer(DefaultBodyLimit::disable())
        .with_state(core)
}

#[derive(Debug, Deserialize)]
struct Qualified {
    #[serde(rename = "Qualifier")]
    qualifier: Option<String>,
}

async fn invoke(
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    Query(query): Query<Qualified>,
    headers: HeaderMap,
    event: Bytes,
) -> Response {
    match answer(&core, &name, query.qualifier.as_deref(), &headers, event).await {
        Ok(response) => response,
        Err(error) => refusal(&error),
    }
}

async fn answer(core: &Arc<Core>, name: &str, qualifier: Option<&str>, headers: &HeaderMap, event: Bytes) -> Result<Response, InvokeError> {
    let name = unqualified(name, qualifier)?;
    let header = |key: &str| headers.get(key).and_then(|value| value.to_str().ok());
    if let Some("Tail") = header("x-amz-log-type") {
        return Err(InvokeError::InvalidParameter("LogType Tail is not emulated".to_owned()));
    }
    match header("x-amz-invocation-type").unwrap_or("RequestResponse") {
        "RequestResponse" => {
            let invocation = dispatch::invoke(core, name, event).await?;
            let identified = [("x-amzn-requestid", invocation.request_id), ("x-amz-executed-version", "$LATEST".into())];
            let json = [("content-type", "application/json")];
            Ok(match invocation.outcome {
                Ok(payload) => (StatusCode::OK, identified, json, payload).into_response(),
                Err(failure) => {
                    let failed = [("x-amz-function-error", "Unhandled")];
                    (StatusCode::OK, identified, json, failed, failure.payload).into_response()
                }
            })
        }
        "Event" => {
            let request_id = dispatch::enqueue(core, name, event)?;
            Ok((StatusCode::ACCEPTED, [("x-amzn-requestid", request_id)]).into_response())
        }
        "DryRun" => {
            dispatch::admit(core, name, event, core.limits.request)?;
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        other => Err(InvokeError::InvalidParameter(format!("InvocationType {other} is not one of RequestResponse, Event, DryRun"))),
    }
}

/// The bare name in a name, a partial ARN or a whole one, each possibly with a version. There is only `$LATEST`.
fn unqualified<'a>(given: &'a str, query: Option<&'a str>) -> Result<&'a str, InvokeError> {
    let after_function = given.rsplit_once("function:").map_or(given, |(_, rest)| rest);
    let (name, suffix) = match after_function.split_once(':') {
        Some((name, suffix)) => (name, Some(suffix)),
        None => (after_function, None),
    };
    match query.or(suffix) {
        None | Some("$LATEST") => Ok(name),
        Some(version) => Err(InvokeError::NotFound(format!("{}:{version}", super::arn(name)))),
    }
}

fn refusal(error: &InvokeError) -> Response {
    let user = |status, error_type, body: Value| (status, error_type, body);
    let message = error.to_string();
    let (status, error_type, body) = match error {
        InvokeError::NotFound(_) => user(StatusCode::NOT_FOUND, "ResourceNotFoundException", json!({"Type": "User", "Message": message})),
        InvokeError::Throttled => user(
            StatusCode::TOO_MANY_REQUESTS,
            "TooManyRequestsException",
            json!({
                "Reason": "ReservedFunctionConcurrentInvocationLimitExceeded",
                "Type": "User",
                "message": message,
            }),
        ),
        InvokeError::TooLarge(_) => {
            user(StatusCode::PAYLOAD_TOO_LARGE, "RequestTooLargeException", json!({"Type": "User", "message": message}))
        }
        InvokeError::NotJson(_) => {
            user(StatusCode::BAD_REQUEST, "InvalidRequestContentException", json!({"Type": "User", "message": message}))
        }
        InvokeError::InvalidParameter(_) => {
            user(StatusCode::BAD_REQUEST, "InvalidParameterValueException", json!({"Type": "User", "message": message}))
        }
        InvokeError::Service(_) => {
            user(StatusCode::INTERNAL_SERVER_ERROR, "ServiceException", json!({"Type": "Service", "Message": message}))
        }
    };
    let id = request_id().unwrap_or_default();
    let headers = [("x-amzn-errortype", error_type), ("content-type", "application/json")];
    (status, headers, [("x-amzn-requestid", id)], body.to_string()).into_response()
}

/// Anything else of Lambda's API is not emulated, and a program that relies on it should learn it.
async fn unknown(uri: Uri) -> Response {
    let body = json!({"Message": format!("{} is not emulated", uri.path())});
    (StatusCode::NOT_FOUND, [("x-amzn-errortype", "UnknownOperationException")], body.to_string()).into_response()
}
