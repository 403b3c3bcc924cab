//! Catching up by the state machine that is deployed: its definition, against the two programs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep_testbed::kafka;
use tablesweep_testbed::parts::until;
use tablesweep_testbed::proxy::Action;
use tablesweep_testbed::state_machine::{Execution, StateMachine};
use tablesweep_testbed::table_api::{Effect, Fault, RateLimit};

use super::bed::{Bed, PATIENCE, Setup, event};

/// What one second of waiting takes, unless a test waits for something real.
const SECOND: Duration = Duration::from_millis(2);

fn machine() -> StateMachine {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../functions/catch-up.asl.yaml");
    let names = BTreeMap::from([("FanOutFunction", "fan-out"), ("CatchUpFunction", "catch-up"), ("Partition", "aws")]);
    StateMachine::read(&file, &names).expect("a definition")
}

/// The same, but every lap that leaves a table open is the last of its execution.
fn taking_over() -> StateMachine {
    machine().changed("> 24500", "> 0").expect("the limit")
}

/// Two tables, and functions that live for nine seconds, of which eight are kept for a page's acknowledgements and the last
/// commit.
async fn short_lived() -> Bed {
    let broker = kafka::shared().await.expect("Kafka starts");
    let setup = Setup { tables: 2, timeout: Duration::from_secs(9), message_timeout_ms: 2_000, batch_size: 40, ..Setup::of(broker) };
    let bed = Bed::new(broker, setup).await;
    bed.generate("chg", 50);
    bed
}

async fn usual(tables: usize) -> Bed {
    let broker = kafka::shared().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup { tables, batch_size: 100, ..Setup::of(broker) }).await;
    bed.generate("inc", 500);
    if tables > 1 {
        bed.generate("chg", 300);
    }
    bed
}

async fn run(bed: &Bed, machine: &StateMachine, name: &str, input: &Value, second: Duration) -> Vec<Execution> {
    machine.run(&bed.lambda.endpoint(), name, input, second).await.expect("the machine runs")
}

/// Runs one execution that starts no other.
async fn alone(bed: &Bed, name: &str, input: &Value) -> Execution {
    let mut executions = run(bed, &machine(), name, input, SECOND).await;
    assert_eq!(executions.len(), 1, "{executions:?}");
    executions.remove(0)
}

fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Action {
    let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Action::Answer { status, headers, body: body.to_owned() }
}

/// What the Invoke API answers for an invocation that ended with `error`; it is not made.
fn died(error: &str) -> Action {
    let body = json!({"errorType": error, "errorMessage": "as the test ordered"}).to_string();
    answer(200, &[("X-Amz-Function-Error", "Unhandled")], &body)
}

#[track_caller]
fn caught_up(execution: &Execution, tables: &[&str]) {
    let Execution { status, error, cause, .. } = execution;
    assert_eq!(status, "SUCCEEDED", "{error:?}: {cause:?}");
    assert_eq!(execution.output, json!({"caught_up": tables}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_of_several_laps_ends_when_every_table_is_caught_up_and_doubles_nothing() {
    let bed = short_lived().await;
    bed.generate("inc", 600);
    bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 150 }).table("incident").always());
    let execution = alone(&bed, "backfill", &json!({})).await;
    caught_up(&execution, &["snow/chg", "snow/inc"]);
    assert!(execution.entered("Plan") >= 3, "{} laps", execution.entered("Plan"));
    assert_eq!(execution.entered("Rewind"), 0);
    // The small table was final after its first sweep.
    let plans = execution.entered("Plan");
    assert_eq!(execution.entered("SweepTask"), plans + 1);
    assert_eq!((bed.extra_records("inc").await, bed.extra_records("chg").await), (0, 0));
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_table_is_final_and_named_and_the_others_are_caught_up() {
    let bed = usual(2).await;
    bed.api.fault(Fault::status(403, "Failed API level ACL Validation").table("change_request").always());
    let execution = alone(&bed, "parked", &json!({})).await;
    assert_eq!((&*execution.status, execution.error.as_deref()), ("FAILED", Some("CatchUp.Incomplete")));
    let cause = execution.cause.as_deref().expect("a cause");
    assert!(cause.contains("snow/chg: Source.Forbidden") && !cause.contains("snow/inc"), "{cause}");
    assert_eq!(execution.entered("Plan"), 1, "one lap is enough");
    assert_eq!(bed.extra_records("inc").await, 0);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_table_is_final_and_named_and_the_others_are_caught_up() {
    let bed = usual(2).await;
    bed.sweep("chg", "before", "stream").await;
    bed.pause("chg").await;
    let execution = alone(&bed, "paused", &json!({})).await;
    assert_eq!((&*execution.status, execution.error.as_deref()), ("FAILED", Some("CatchUp.Incomplete")));
    assert_eq!(execution.cause.as_deref(), Some("not caught up: snow/chg: Cursor.Paused"));
    assert_eq!(execution.entered("Plan"), 1, "one lap is enough");
    assert_eq!(bed.extra_records("inc").await, 0);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_fails_three_times_in_a_row_is_final_by_its_code() {
    let bed = usual(2).await;
    bed.api.fault(Fault::status(503, "a moment").table("incident").always());
    let execution = alone(&bed, "failing", &json!({})).await;
    assert_eq!((&*execution.status, execution.error.as_deref()), ("FAILED", Some("CatchUp.Incomplete")));
    let cause = execution.cause.as_deref().expect("a cause");
    assert!(cause.starts_with("not caught up: snow/inc: Source.") && !cause.contains("snow/chg"), "{cause}");
    assert_eq!(execution.entered("Plan"), 3, "{cause}");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_gets_no_further_in_three_laps_ends_the_catch_up_by_name() {
    let bed = short_lived().await;
    bed.generate("inc", 100);
    bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 60_000 }).table("incident").always());
    let execution = alone(&bed, "stuck", &json!({})).await;
    assert_eq!((&*execution.status, execution.error.as_deref()), ("FAILED", Some("CatchUp.Incomplete")));
    let cause = execution.cause.as_deref().expect("a cause");
    assert_eq!(cause, "not caught up: snow/inc: Sweep.Unmoved");
    assert_eq!(execution.entered("Plan"), 3, "{cause}");
    // In the first lap the other table moved, and after the third nothing was left to wait for.
    assert_eq!(execution.entered("Rest"), 1);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_holds_a_lease_is_waited_for_and_the_rewind_comes_after_it() {
    let bed = usual(1).await;
    bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 3_000 }).table("incident").skip(1));
    let task = json!({"connector": "snow", "task": 0, "tasks": 1, "tables": ["inc"], "tick": "2026-03-01T12:00:00Z", "mode": "stream"});
    bed.lambda.invoke_event("sweep", &task).expect("the tick starts");
    let leased = async || bed.item("inc").await.and_then(|item| item.lease).map(drop).ok_or_else(|| "no lease".to_owned());
    until("the tick's lease", PATIENCE, leased).await.expect("the tick sweeps");
    // A fifteenth of the real pace: the state asks once a second.
    let input = json!({"from": "2026-02-01 00:00:00"});
    let executions = run(&bed, &machine(), "after-the-tick", &input, Duration::from_millis(66)).await;
    caught_up(&executions[0], &["snow/inc"]);
    let rewind = executions[0].history.iter().position(|one| one.state == "Rewind").expect("it rewinds");
    assert!(executions[0].history[rewind + 1].at >= 15.0, "it waited for the lease: {:?}", executions[0].history[rewind + 1]);
    bed.lambda.idle(PATIENCE).await.expect("the tick has ended");
    // Once by the tick, and once more because of the rewind.
    assert_eq!(bed.extra_records("inc").await, 500);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_that_finds_the_store_throttled_is_tried_again() {
    let bed = usual(1).await;
    bed.sweep("inc", "before", "stream").await;
    let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"});
    let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.0".to_owned())];
    let throttle = bed.cursors.on("DynamoDB_20120810.Query", .., Action::Answer { status: 400, headers, body: body.to_string() });
    let machine = machine();
    let input = json!({"from": "2026-02-01 00:00:00"});
    let running = run(&bed, &machine, "throttled", &input, SECOND);
    let eased = async {
        until("a rewind that failed", PATIENCE, async || {
            let failed = bed.lambda.invocations_of("fan-out").iter().any(|one| one.error_type() == Some("Cursor.Busy"));
            if failed { Ok(()) } else { Err("none failed".to_owned()) }
        })
        .await
        .expect("it is told by its code");
        bed.cursors.clear();
    };
    let (executions, ()) = tokio::join!(running, eased);
    assert!(throttle.fired() > 0);
    caught_up(&executions[0], &["snow/inc"]);
    assert_eq!(bed.extra_records("inc").await, 500, "rewound once");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn from_is_applied_once_even_when_its_answer_is_lost_and_when_the_execution_is_taken_over() {
    let bed = usual(1).await;
    bed.sweep("inc", "before", "stream").await;
    assert_eq!(bed.extra_records("inc").await, 0);
    let machine = taking_over();
    bed.api.fault(Fault::status(503, "a moment").table("incident").skip(2).times(4));
    let input = json!({"tables": ["snow/inc"], "from": "2026-02-01 00:00:00"});
    let executions = run(&bed, &machine, "origin", &input, SECOND).await;
    caught_up(executions.last().expect("executions"), &["snow/inc"]);
    let rewinds: usize = executions.iter().map(|execution| execution.entered("Rewind")).sum();
    assert_eq!(rewinds, 1, "an execution that takes over has no `from`");
    // The same order again, as after a lost answer: the origin is the same, and so nothing is rewound.
    let again = run(&bed, &machine, "origin", &input, SECOND).await;
    caught_up(again.last().expect("executions"), &["snow/inc"]);
    assert_eq!(bed.extra_records("inc").await, 500, "every row came twice, and none three times");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_takes_over_knows_which_tables_are_final_and_how_often_the_others_failed() {
    let bed = usual(2).await;
    bed.api.fault(Fault::status(403, "Failed API level ACL Validation").table("change_request").always());
    bed.api.fault(Fault::status(503, "a moment").table("incident").always());
    let executions = run(&bed, &taking_over(), "origin", &json!({}), SECOND).await;
    assert_eq!(executions.len(), 3, "{executions:?}");
    let swept: Vec<usize> = executions.iter().map(|execution| execution.entered("SweepTask")).collect();
    assert_eq!(swept, [2, 1, 1], "what is parked is not swept again");
    let cause = executions[2].cause.as_deref().expect("a cause");
    assert!(cause.starts_with("not caught up: snow/chg: Source.Forbidden, snow/inc: Source."), "{cause}");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_dies_counts_as_one_lap_and_the_next_goes_on_where_it_was_acknowledged() {
    let bed = short_lived().await;
    bed.generate("inc", 200);
    // The commits of the first sweep are never answered, so that it is killed at its deadline.
    let held = bed.cursors.on("DynamoDB_20120810.UpdateItem", 6..=9, Action::HoldRequest);
    let input = json!({"tables": ["inc"]});
    let machine = machine();
    let running = run(&bed, &machine, "death", &input, Duration::from_millis(600));
    let freed = async {
        until("the death", PATIENCE, async || {
            let died = bed.lambda.invocations_of("catch-up").iter().any(|one| one.error_type() == Some("Sandbox.Timedout"));
            if died { Ok(()) } else { Err("no invocation died".to_owned()) }
        })
        .await
        .expect("it is killed");
        bed.cursors.cut_all();
        bed.cursors.clear();
    };
    let (executions, ()) = tokio::join!(running, freed);
    assert!(held.fired() > 0);
    caught_up(&executions[0], &["snow/inc"]);
    assert_eq!(executions[0].entered("Died"), 1);
    let doubled = bed.extra_records("inc").await;
    // Two pages, and the rows of the overlap and of the cursor's second, twenty each: the window was lost with the process.
    assert!(doubled <= 2 * 40 + 3 * 20, "{doubled} records are there twice");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_executions_are_the_end_and_name_what_is_open() {
    let bed = usual(1).await;
    let standing = json!({"snow/inc": {"cursor": "null", "failures": 0, "unmoved": 0}, "snow/old": {"code": "caught_up"}});
    let input = json!({"origin": "first", "generation": 20, "standing": standing});
    // One request a sweep: it has more each time.
    bed.api.fault(Fault::status(503, "a moment").table("incident").always());
    let executions = run(&bed, &taking_over(), "first-20", &input, SECOND).await;
    assert_eq!((executions.len(), executions[0].error.as_deref()), (1, Some("CatchUp.Incomplete")));
    assert_eq!(executions[0].cause.as_deref(), Some("not caught up: snow/inc: Source.Unavailable"), "with what it was last told");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catch_up_hands_over_before_its_history_is_full_whatever_the_laps_are_made_of() {
    let bed = usual(1).await;
    bed.sweep("inc", "before", "stream").await;
    bed.hold("inc").await;
    // Retries take their place in the history too: each lap is planned at the fifth attempt, and swept at the ninth.
    let throttled = answer(429, &[("X-Amzn-Errortype", "TooManyRequestsException")], "{}");
    for lap in 0..40 {
        bed.invokes.on("/functions/fan-out/invocations", 5 * lap + 1..=5 * lap + 4, died("Sandbox.Timedout"));
        bed.invokes.on("/functions/catch-up/invocations", 9 * lap + 1..=9 * lap + 8, throttled.clone());
    }
    let machine = machine().changed("> 24500", "> 600").expect("the limit").with_history_of(650);
    let standing = json!({"snow/inc": {"cursor": "null", "failures": 0, "unmoved": 0}});
    let input = json!({"origin": "long", "generation": 19, "standing": standing});
    let second = Duration::from_micros(100);
    let executions = machine.run(&bed.invokes.url(), "long-19", &input, second).await.expect("the machine runs");
    let [first, last] = &executions[..] else { panic!("{executions:?}") };
    assert_eq!((&*first.status, &*first.started), ("SUCCEEDED", &["long-20".to_owned()][..]), "{:?}", first.cause);
    assert!((500..=600).contains(&first.events), "neither late nor long before: {} events", first.events);
    assert_eq!(last.cause.as_deref(), Some("not caught up: snow/inc: Cursor.Leased"), "the end of the last generation");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_cannot_be_started_is_tried_again_and_in_the_end_the_open_tables_are_named() {
    let bed = usual(1).await;
    bed.invokes.on("/functions/catch-up/invocations", 1..=1, died("Runtime.ExitError"));
    let twice = taking_over().not_started_by(&["StepFunctions.SdkClientException", "StepFunctions.ExecutionLimitExceeded"]);
    let executions = twice.run(&bed.invokes.url(), "late", &json!({}), SECOND).await.expect("the machine runs");
    caught_up(executions.last().expect("executions"), &["snow/inc"]);
    assert!(executions.len() > 1, "{executions:?}");
    bed.api.fault(Fault::status(503, "a moment").table("incident").always());
    let always = ["StepFunctions.ExecutionLimitExceeded"; 9];
    let executions = run(&bed, &taking_over().not_started_by(&always), "never", &json!({}), SECOND).await;
    let cause = executions[0].cause.as_deref().expect("a cause");
    let why = "; the execution that was to take over could not be started: StepFunctions.ExecutionLimitExceeded";
    assert_eq!(
        (executions[0].error.as_deref(), cause),
        (Some("CatchUp.Incomplete"), &*format!("not caught up: snow/inc: Source.Unavailable{why}"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewind_that_dies_or_whose_answer_is_lost_is_asked_again_and_applied_once() {
    let bed = usual(1).await;
    bed.sweep("inc", "before", "stream").await;
    let fan_out = "/functions/fan-out/invocations";
    bed.invokes.on(fan_out, 1..=1, died("Sandbox.Timedout"));
    bed.invokes.on(fan_out, 2..=2, died("Lambda.Unknown"));
    let lost = bed.invokes.on(fan_out, 3..=3, Action::DropResponse);
    let input = json!({"from": "2026-02-01 00:00:00"});
    let executions = machine().run(&bed.invokes.url(), "again", &input, SECOND).await.expect("the machine runs");
    caught_up(&executions[0], &["snow/inc"]);
    assert_eq!((lost.fired(), executions[0].entered("Rewind")), (1, 1));
    assert_eq!(bed.extra_records("inc").await, 500, "every row came twice, and none three times");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_is_refused_three_times_is_named_by_its_own_error() {
    let bed = usual(1).await;
    // Fan-out keeps the documents with which it started; the sweeps begin after they were broken.
    bed.fan_out(&json!({"dispatch": "return"})).await;
    bed.document("connectors/snow.json", &json!({"name": "snow", "config": {"connector.class": "servicenow"}}));
    let execution = alone(&bed, "refused", &json!({})).await;
    assert_eq!(execution.cause.as_deref(), Some("not caught up: snow/inc: Config.Invalid"));
    assert_eq!((execution.entered("Died"), execution.entered("Rest")), (3, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_allowance_is_waited_for_and_is_no_want_of_progress() {
    let bed = usual(1).await;
    bed.api.run_clock();
    let hour = RateLimit { limit: 6, window_seconds: 4, headers: true };
    bed.api.configure(|settings| settings.rate_limit = Some(hour)).expect("a limit");
    // Two laps without progress would be the end of it.
    let machine = machine().changed("$still >= 60", "$still >= 2").expect("the bound");
    let executions = run(&bed, &machine, "hours", &json!({}), Duration::from_millis(2)).await;
    let execution = &executions[0];
    caught_up(execution, &["snow/inc"]);
    assert!(execution.entered("Rest") > 3, "{} rests", execution.entered("Rest"));
    let rests = execution.history.windows(2).filter(|pair| pair[0].state == "Rest").map(|pair| pair[1].at - pair[0].at);
    assert!(rests.clone().all(|seconds| (seconds - 300.0).abs() < 1.0), "{:?}", rests.collect::<Vec<_>>());
    assert_eq!(bed.extra_records("inc").await, 0);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowance_that_others_spend_hour_after_hour_is_named_in_the_end() {
    let bed = usual(1).await;
    let hour = RateLimit { limit: 1, window_seconds: 3_600, headers: true };
    bed.api.configure(|settings| settings.rate_limit = Some(hour)).expect("a limit");
    let machine = machine().changed("$spent >= 288", "$spent >= 3").expect("the bound");
    let executions = run(&bed, &machine, "never", &json!({}), SECOND).await;
    assert_eq!(executions[0].error.as_deref(), Some("CatchUp.Incomplete"));
    assert_eq!(executions[0].cause.as_deref(), Some("not caught up: snow/inc: Source.Allowance"));
    assert_eq!(executions[0].entered("Rest"), 2);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_order_is_one_that_the_state_machine_and_fan_out_take() {
    let bed = usual(1).await;
    let mut input = event("catch-up-execution");
    input["connectors"] = json!(["snow"]);
    bed.sweep("inc", "before", "stream").await;
    let execution = alone(&bed, "example", &input).await;
    caught_up(&execution, &["snow/inc"]);
    assert_eq!(execution.entered("Rewind"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_starts_nothing() {
    let bed = usual(1).await;
    let execution = alone(&bed, "misspelt", &json!({"form": "2026-01-01 00:00:00"})).await;
    assert_eq!((&*execution.status, execution.error.as_deref()), ("FAILED", Some("Event.Invalid")));
    assert!(execution.cause.as_deref().is_some_and(|cause| cause.ends_with("no form")), "{:?}", execution.cause);
    assert!(bed.lambda.invocations().is_empty());
}
