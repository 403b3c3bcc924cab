//! Faults of the parts around the functions: the cursor stays right, the error names the cause, the next tick recovers.

use serde_json::{Value, json};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::proxy::Action;

use super::bed::{Bed, Setup, event, swept, tick};
use super::metrics::written;

const UPDATE: &str = "DynamoDB_20120810.UpdateItem";

async fn usual(tables: usize) -> Bed {
    let broker = kafka::shared().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup { tables, batch_size: 100, ..Setup::of(broker) }).await;
    bed.generate("inc", 500);
    if tables > 1 {
        bed.generate("chg", 300);
    }
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_broker_is_down_the_cursor_stays_and_the_tick_after_delivers() {
    let broker = Broker::start().await.expect("Kafka starts");
    let bed = Bed::new(&broker, Setup::of(&broker)).await;
    bed.generate("inc", 500);
    swept(&bed.sweep("inc", "one", "stream").await);
    let before = bed.cursor("inc").await;
    bed.insert("inc");
    broker.kill().await;
    let failed = bed.sweep("inc", "two", "stream").await;
    let code = failed.error_type().expect("it fails");
    assert!(["Sink.Unreachable", "Sink.Timeout"].contains(&code), "{:?}", failed.outcome);
    let message = failed.error_message().expect("a message");
    assert!(message.contains("snow/inc") && message.contains(&broker.bootstrap()), "{message}");
    assert_eq!(bed.cursor("inc").await, before);
    broker.restart().await.expect("Kafka starts again");
    let table = swept(&bed.sweep("inc", "three", "stream").await);
    assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(1)));
    // The purged record may have been taken by the broker: one more is a duplicate after a fault.
    assert!(bed.extra_records("inc").await <= 1);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_store_fails_the_tick_by_its_code_and_a_short_throttle_is_not_noticed() {
    let bed = usual(1).await;
    let body = json!({"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow down"});
    let content = ("content-type".to_owned(), "application/x-amz-json-1.0".to_owned());
    let throttle = Action::Answer { status: 400, headers: vec![content], body: body.to_string() };
    bed.cursors.on(UPDATE, .., throttle.clone());
    let failed = bed.sweep("inc", "one", "stream").await;
    assert_eq!(failed.error_type(), Some("Cursor.Busy"), "{:?}", failed.outcome);
    assert!(failed.error_message().is_some_and(|message| message.contains("snow/inc")), "{:?}", failed.outcome);
    assert_eq!(bed.cursor("inc").await, None);
    assert!(bed.delivered("inc").await.is_empty());
    bed.cursors.clear();
    // Two commits in the middle of a sweep are refused once each.
    let shortly = bed.cursors.on(UPDATE, 3..=4, throttle);
    let table = swept(&bed.sweep("inc", "two", "stream").await);
    assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(500)), "{table}");
    assert_eq!(shortly.fired(), 2);
    assert_eq!(bed.extra_records("inc").await, 0);
    assert_eq!(bed.cursor("inc").await, Some(bed.newest("inc")));
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_writes_that_were_taken_are_known_as_such_and_the_next_tick_goes_on() {
    let bed = usual(1).await;
    // The acquire, a commit, and whatever comes fourth.
    let lost = bed.cursors.on(UPDATE, 2..=4, Action::DropResponse);
    let table = swept(&bed.sweep("inc", "one", "stream").await);
    assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(500)), "{table}");
    assert_eq!(lost.fired(), 3);
    assert_eq!(bed.extra_records("inc").await, 0);
    assert_eq!(bed.cursor("inc").await, Some(bed.newest("inc")));
    assert_eq!(bed.item("inc").await.expect("an item").lease, None);
    bed.cursors.clear();
    bed.insert("inc");
    let table = swept(&bed.sweep("inc", "two", "stream").await);
    assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(1)), "{table}");
    assert_eq!(bed.extra_records("inc").await, 0);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_is_named_once_and_other_tables_go_on() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup { tables: 2, without_topic: &["chg"], ..Setup::of(broker) }).await;
    bed.generate("inc", 500);
    bed.generate("chg", 300);
    let both =
        |tick: &str, mode: &str| json!({"connector": "snow", "task": 0, "tasks": 1, "tables": ["chg", "inc"], "tick": tick, "mode": mode});
    let sweep = async |task: Value| bed.lambda.invoke("sweep", &task).await.expect("an invocation");
    let failed = sweep(both("2026-03-01T12:00:00Z", "stream")).await;
    assert_eq!(failed.error_type(), Some("Sink.TopicMissing"), "{:?}", failed.outcome);
    let message = failed.error_message().expect("a message");
    assert!(message.contains("1 of 2") && message.contains("snow/chg") && message.contains(&bed.topic("chg")), "{message}");
    assert_eq!(bed.extra_records("inc").await, 0, "the other table was swept before the failure");
    // The table waits for its next try, a minute later: that is told, and is no failure any more.
    let waiting = sweep(both("2026-03-01T12:00:01Z", "stream")).await.response().expect("no failure");
    let outcomes = [&waiting["tables"][0]["outcome"], &waiting["tables"][1]["outcome"]];
    assert_eq!(outcomes, [&json!("parked"), &json!("caught_up")], "{waiting}");
    // A catch-up tries at once, and its answer is the result.
    let tried = sweep(both("by-hand", "catch-up")).await.response().expect("a catch-up never fails for a table");
    assert_eq!((&tried["tables"][0]["outcome"], &tried["tables"][0]["reason"]["code"]), (&json!("parked"), &json!("Sink.TopicMissing")));
    broker.create_topic_with(&bed.topic("chg"), 1, &[("retention.ms", "-1")]).await.expect("the topic is created");
    let mended = sweep(both("by-hand-2", "catch-up")).await.response().expect("a result");
    assert_eq!((&mended["tables"][0]["outcome"], &mended["tables"][0]["rows"]), (&json!("caught_up"), &json!(300)), "{mended}");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_invoke_names_its_task_is_not_repeated_and_keeps_no_other_from_being_invoked() {
    let bed = usual(2).await;
    let body = json!({"Reason": "ReservedFunctionConcurrentInvocationLimitExceeded", "Type": "User", "message": "Rate Exceeded."});
    let headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("x-amzn-errortype".to_owned(), "TooManyRequestsException".to_owned()),
    ];
    let throttle = Action::Answer { status: 429, headers, body: body.to_string() };
    let refused = bed.invokes.on("\"chg\"", .., throttle);
    let failed = bed.fan_out(&event("schedule")).await;
    assert_eq!(failed.error_type(), Some("FanOut.InvokeFailed"), "{:?}", failed.outcome);
    let message = failed.error_message().expect("a message");
    for part in ["1 of 2", "snow task", "(chg)", "TooManyRequestsException"] {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
    assert_eq!((refused.matched(), bed.invokes.carried().len()), (1, 2), "each task is asked for once");
    let plans = written(&bed, "fan-out");
    assert_eq!(plans.len(), 1, "a plan that failed is counted like any other: {plans:?}");
    assert_eq!((&plans[0]["Tasks"], &plans[0]["Invoked"]), (&json!(2), &json!(1)), "{plans:?}");
    assert_eq!(bed.extra_records("inc").await, 0);
    assert!(bed.delivered("chg").await.is_empty());
    bed.invokes.clear();
    bed.fan_out(&tick("2026-03-01T12:01:00Z")).await;
    assert_eq!(bed.extra_records("chg").await, 0);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoke_whose_answer_was_lost_is_told_and_not_made_twice() {
    let bed = usual(1).await;
    let lost = bed.invokes.on("/invocations", .., Action::DropResponse);
    let failed = bed.fan_out(&event("schedule")).await;
    assert_eq!(failed.error_type(), Some("FanOut.InvokeFailed"), "{:?}", failed.outcome);
    assert_eq!((lost.fired(), bed.lambda.invocations_of("sweep").len()), (1, 1));
    assert_eq!(bed.extra_records("inc").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_documents_are_the_answer_to_every_invocation_and_no_environment_dies_of_them() {
    let bed = usual(1).await;
    bed.document("connectors/other.json", &json!({"name": "other", "config": {"connector.class": "oracle"}}));
    bed.document("connectors/third.json", &json!({"name": "third", "config": {"connector.class": "servicenow", "snow.tabels": "inc"}}));
    for number in 1..=2 {
        let planned = bed.fan_out(&event("schedule")).await;
        let swept = bed.sweep("inc", "one", "catch-up").await;
        for failed in [planned, swept] {
            assert_eq!(failed.error_type(), Some("Config.Invalid"), "{:?}", failed.outcome);
            let message = failed.error_message().expect("a message");
            for part in ["oracle", "snow.tabels", "connectors/other.json", "connectors/third.json"] {
                assert!(message.contains(part), "`{part}` is missing in: {message}");
            }
            assert_eq!(failed.cold, number == 1, "the environment lives on");
        }
    }
    assert!(bed.lambda.invocations_of("sweep").len() == 2, "fan-out invoked nothing");
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_an_unknown_field_or_table_is_refused_naming_it() {
    let bed = usual(1).await;
    for (event, code, word) in [
        (json!({"tabels": ["inc"]}), "Event.Invalid", "tabels"),
        (json!({"tables": ["prb"]}), "Event.UnknownTable", "prb"),
        (json!({"from": "2026-01-01 00:00:00"}), "Event.Invalid", "request_id"),
    ] {
        let failed = bed.fan_out(&event).await;
        assert_eq!(failed.error_type(), Some(code), "{event}: {:?}", failed.outcome);
        assert!(failed.error_message().is_some_and(|message| message.contains(word)), "{:?}", failed.outcome);
    }
    let failed = bed.sweep("prb", "one", "stream").await;
    assert_eq!(failed.error_type(), Some("Event.UnknownTable"), "{:?}", failed.outcome);
    assert!(bed.lambda.invocations_of("sweep").len() == 1, "fan-out invoked nothing");
}
