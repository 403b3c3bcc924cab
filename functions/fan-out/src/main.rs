//! The fan-out function: documents become tasks, and each task an invocation of the sweep function.
//!
//! What it does is in `tablesweep::function::fan_out`. This program speaks with Lambda: its Runtime API on one side, its
//! Invoke API on the other.

mod invoke;

use lambda_runtime::{Diagnostic, Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use tablesweep::failure::Failure;
use tablesweep::function::{self, FanOut, Settings};
use tablesweep::host::{Host, env};

use invoke::Lambda;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Error> {
    function::start_logging();
    let fan_out = FanOut::new(Settings::read(&|name| env(name)), Host::system());
    let lambda = Lambda::from_env().await;
    let (fan_out, lambda) = (&fan_out, &lambda);
    run(service_fn(async move |event: LambdaEvent<Value>| {
        let (event, context) = event.into_parts();
        fan_out.handle(&event, &context.request_id, &lambda.awake()).await.map_err(failed)
    }))
    .await
}

/// The stable code is the type of the error: what alarms and state machines match.
fn failed(failure: Failure) -> Diagnostic {
    let failure = function::logged(failure);
    Diagnostic { error_type: failure.code.into_owned(), error_message: failure.message }
}
