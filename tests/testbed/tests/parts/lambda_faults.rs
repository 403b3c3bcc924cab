//! The Lambda emulator: deadlines, deaths, throttles, and the retries of events.

use std::time::Duration;

use serde_json::json;
use tablesweep_testbed::lambda::{InvocationType, InvokeError};
use tablesweep_testbed::parts::until;

use super::lambda::{SOON, function, runtime};

#[tokio::test]
async fn at_the_deadline_a_function_is_killed_and_the_caller_is_told() {
    let runtime = runtime(function("f").timeout(Duration::from_millis(700))).await;
    let invocation = runtime.invoke("f", &json!({"do": "sleep", "ms": 60_000})).await.unwrap();
    assert_eq!(invocation.error_type(), Some("Sandbox.Timedout"));
    let message = invocation.error_message().unwrap();
    assert!(message.ends_with("Error: Task timed out after 0.70 seconds"), "{message}");
    assert!(message.contains(&invocation.request_id));
    assert!(invocation.duration >= Duration::from_millis(700) && invocation.duration < Duration::from_secs(10));
    let first = &runtime.environments("f")[0];
    assert!(!first.process().is_running());

    let next = runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    assert!(next.cold && next.environment != invocation.environment);
}

#[tokio::test]
async fn a_function_that_a_test_has_frozen_meets_its_deadline_all_the_same() {
    let runtime = runtime(function("f").timeout(Duration::from_secs(3))).await;
    let event = json!({"do": "sleep", "ms": 1500});
    let (invocation, ()) = tokio::join!(runtime.invoke("f", &event), async {
        let environment = runtime.environment("f", 1, SOON).await.unwrap();
        environment.logs().wait_for("sleeping", SOON).await.unwrap();
        environment.process().freeze().await.unwrap();
    });
    assert_eq!(invocation.unwrap().error_type(), Some("Sandbox.Timedout"));
}

#[tokio::test]
async fn a_function_that_ends_without_an_answer_is_a_runtime_exit() {
    let runtime = runtime(function("f")).await;
    let invocation = runtime.invoke("f", &json!({"do": "exit", "code": 3})).await.unwrap();
    assert_eq!(invocation.error_type(), Some("Runtime.ExitError"));
    assert!(invocation.error_message().unwrap().ends_with("Runtime exited with error: exit status 3"));
    assert!(runtime.logs("f").contains("exiting"));
    let invocation = runtime.invoke("f", &json!({"do": "exit", "code": 0})).await.unwrap();
    assert!(invocation.error_message().unwrap().ends_with("Runtime exited without providing a reason"));
    assert!(runtime.invoke("f", &json!({"do": "echo"})).await.unwrap().outcome.is_ok());
}

#[tokio::test]
async fn a_function_that_is_killed_within_an_invocation_says_so() {
    let runtime = runtime(function("f")).await;
    let event = json!({"do": "sleep", "ms": 60_000});
    let (invocation, ()) = tokio::join!(runtime.invoke("f", &event), async {
        let environment = runtime.environment("f", 1, SOON).await.unwrap();
        environment.logs().wait_for("sleeping", SOON).await.unwrap();
        environment.process().kill();
    });
    let invocation = invocation.unwrap();
    assert!(invocation.error_message().unwrap().ends_with("Runtime exited with error: signal: killed"));
}

#[tokio::test]
async fn an_environment_that_died_while_it_was_idle_is_replaced() {
    let runtime = runtime(function("f")).await;
    runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    let environment = &runtime.environments("f")[0];
    environment.process().kill();
    environment.process().wait().await;
    let next = runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    assert!(next.cold && next.outcome.is_ok());
}

#[tokio::test]
async fn a_start_that_fails_fails_the_invocation_with_its_own_error() {
    let runtime = runtime(function("fails").env("ECHO_INIT", "fail")).await;
    runtime.register(function("exits").env("ECHO_INIT", "exit")).unwrap();
    runtime.register(function("hangs").env("ECHO_INIT", "hang").init_timeout(Duration::from_millis(300))).unwrap();
    let failed = async |name: &str| runtime.invoke(name, &json!({})).await.unwrap();
    assert_eq!(failed("fails").await.error_type(), Some("Echo.Init"));
    let exited = failed("exits").await;
    assert_eq!(exited.error_type(), Some("Runtime.ExitError"));
    assert!(exited.error_message().unwrap().ends_with("exit status 7"));
    assert_eq!(failed("hangs").await.error_type(), Some("Sandbox.Timedout"));
    assert!(runtime.logs("hangs").contains("starts"), "a failed start has logs too");
    assert!(!runtime.environments("hangs")[0].process().is_running());
}

#[tokio::test]
async fn beyond_the_reserved_concurrency_callers_are_throttled() {
    let runtime = runtime(function("f").reserved_concurrency(1)).await;
    runtime.register(function("none").reserved_concurrency(0)).unwrap();
    let event = json!({"do": "sleep", "ms": 1500});
    let (slow, throttled) = tokio::join!(runtime.invoke("f", &event), async {
        let environment = runtime.environment("f", 1, SOON).await.unwrap();
        environment.logs().wait_for("sleeping", SOON).await.unwrap();
        let url = format!("{}/2015-03-31/functions/f/invocations", runtime.endpoint());
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.post(url).body(r#"{"do":"echo"}"#).send().await.unwrap();
        let error = answer.headers()["x-amzn-errortype"].to_str().unwrap().to_owned();
        (answer.status().as_u16(), error, answer.text().await.unwrap())
    });
    assert!(slow.unwrap().outcome.is_ok());
    assert_eq!((throttled.0, throttled.1.as_str()), (429, "TooManyRequestsException"));
    assert!(throttled.2.contains("ReservedFunctionConcurrentInvocationLimitExceeded"), "{}", throttled.2);
    assert_eq!(runtime.throttles("f"), 1);
    // The place is free again, without any waiting.
    assert!(runtime.invoke("f", &json!({"do": "echo"})).await.unwrap().outcome.is_ok());
    assert_eq!(runtime.invoke("none", &json!({})).await.unwrap_err(), InvokeError::Throttled);
}

#[tokio::test]
async fn an_event_is_accepted_at_once_and_idle_waits_for_its_end() {
    let runtime = runtime(function("f")).await;
    let begun = std::time::Instant::now();
    let id = runtime.invoke_event("f", &json!({"do": "sleep", "ms": 1000})).unwrap();
    assert!(begun.elapsed() < Duration::from_millis(900));
    assert!(runtime.idle(Duration::from_millis(1)).await.is_err());
    runtime.idle(SOON).await.unwrap();
    let invocations = runtime.invocations_of("f");
    assert_eq!(invocations.len(), 1);
    assert_eq!((&invocations[0].request_id, invocations[0].kind), (&id, InvocationType::Event));
    assert!(invocations[0].outcome.is_ok());

    let url = format!("{}/2015-03-31/functions/f/invocations", runtime.endpoint());
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let event = client.post(url).header("X-Amz-Invocation-Type", "Event").body(r#"{"do":"echo"}"#);
    let answer = event.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (202, ""));
    runtime.idle(SOON).await.unwrap();
    assert_eq!(runtime.invocations().len(), 2);
}

#[tokio::test]
async fn a_failed_event_is_tried_again_under_its_id_and_then_given_up() {
    let retried = function("f").event_retries(2).event_retry_delay(Duration::from_millis(20));
    let runtime = runtime(retried).await;
    runtime.register(function("once").event_retries(0)).unwrap();
    let id = runtime.invoke_event("f", &json!({"do": "fail"})).unwrap();
    runtime.invoke_event("once", &json!({"do": "exit"})).unwrap();
    runtime.idle(SOON).await.unwrap();
    let attempts: Vec<_> = runtime.invocations_of("f").iter().map(|one| (one.request_id.clone(), one.attempt)).collect();
    assert_eq!(attempts, [(id.clone(), 1), (id.clone(), 2), (id.clone(), 3)]);
    assert_eq!(runtime.invocations_of("once").len(), 1);
    let mut dropped = runtime.dropped_events();
    dropped.sort_by(|one, other| one.function.cmp(&other.function));
    let given_up: Vec<_> = dropped.iter().map(|event| (event.function.as_str(), event.condition)).collect();
    assert_eq!(given_up, [("f", "RetriesExhausted"), ("once", "RetriesExhausted")]);
    assert_eq!(dropped[0].request_id, id);
}

#[tokio::test]
async fn throttled_events_wait_for_their_turn_or_grow_too_old() {
    let runtime = runtime(function("f").reserved_concurrency(1)).await;
    let never = function("never").reserved_concurrency(0).event_max_age(Duration::from_millis(200));
    runtime.register(never).unwrap();
    for number in 0..3 {
        runtime.invoke_event("f", &json!({"do": "sleep", "ms": 100, "number": number})).unwrap();
    }
    runtime.invoke_event("never", &json!({"do": "echo"})).unwrap();
    runtime.idle(SOON).await.unwrap();
    let invocations = runtime.invocations_of("f");
    assert_eq!(invocations.len(), 3);
    assert!(invocations.iter().all(|one| one.outcome.is_ok()));
    assert_eq!(runtime.environments("f").len(), 1, "one at a time, in one environment");
    assert!(runtime.throttles("f") >= 2);
    assert_eq!(runtime.invocations_of("never").len(), 0);
    assert_eq!(runtime.dropped_events()[0].condition, "EventAgeExceeded");
}

#[tokio::test]
async fn an_invocation_goes_on_when_its_caller_has_gone() {
    let runtime = runtime(function("f")).await;
    let event = json!({"do": "sleep", "ms": 400});
    tokio::select! {
        _ = runtime.invoke("f", &event) => panic!("the caller was to go first"),
        environment = runtime.environment("f", 1, SOON) => {
            environment.unwrap().logs().wait_for("sleeping", SOON).await.unwrap();
        }
    }
    let ended = until("the end of the invocation", SOON, async || {
        let mut invocations = runtime.invocations();
        invocations.pop().ok_or_else(|| "no invocation has ended".to_owned())
    });
    assert!(ended.await.unwrap().outcome.is_ok());
}

#[tokio::test]
async fn a_dropped_service_leaves_no_process() {
    let runtime = runtime(function("f")).await;
    runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    let frozen = runtime.environments("f").remove(0);
    runtime.invoke_event("f", &json!({"do": "sleep", "ms": 60_000})).unwrap();
    frozen.logs().wait_for("sleeping", SOON).await.unwrap();
    drop(runtime);
    tokio::time::timeout(SOON, frozen.process().wait()).await.expect("it ends with the service");
}
