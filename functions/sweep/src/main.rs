//! The sweep function: sweeps the tables of one task.
//!
//! What it does is in `tablesweep::function::sweep`. This program speaks with Lambda's Runtime API. It is deployed twice: for the
//! ticks of a schedule, and with a longer timeout for catch-ups.

use lambda_runtime::{Diagnostic, Error, LambdaEvent, run, service_fn};
use serde_json::Value;
use tablesweep::failure::Failure;
use tablesweep::function::{self, Settings, Sweep};
use tablesweep::host::{Host, env};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Error> {
    function::start_logging();
    let sweep = Sweep::new(Settings::read(&|name| env(name)), Host::system());
    let sweep = &sweep;
    run(service_fn(async move |event: LambdaEvent<Value>| {
        let (event, context) = event.into_parts();
        sweep.handle(&event, context.deadline).await.map_err(failed)
    }))
    .await
}

/// The stable code is the type of the error: what alarms and state machines match.
fn failed(failure: Failure) -> Diagnostic {
    let failure = function::logged(failure);
    Diagnostic { error_type: failure.code.into_owned(), error_message: failure.message }
}
