//! Ticks: from the event of a schedule to records in topics and cursors in DynamoDB.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::lambda::Invocation;
use tablesweep_testbed::table_api::{Effect, Fault};

use super::bed::{Bed, Setup, event, swept, tick};

async fn two_tables() -> Bed {
    let broker = kafka::shared().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup { tables: 2, ..Setup::of(broker) }).await;
    bed.generate("inc", 1_200);
    bed.generate("chg", 700);
    bed
}

fn succeeded(invocations: &[Invocation]) {
    for invocation in invocations {
        assert!(invocation.outcome.is_ok(), "{:?}", invocation.outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_of_a_schedule_becomes_two_sweeps_at_once_records_in_topics_and_cursors() {
    let bed = two_tables().await;
    // Both sweeps are held up, so that they can only both be done if they run side by side.
    for table in ["incident", "change_request"] {
        bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 700 }).table(table));
    }
    let planned = bed.fan_out(&event("schedule")).await;
    let plan = planned.response().unwrap_or_else(|| panic!("{:?}", planned.outcome));
    assert_eq!((&plan["tick"], &plan["mode"], &plan["invoked"]), (&json!("2026-03-01T12:00:00Z"), &json!("stream"), &json!(2)));
    let sweeps = bed.lambda.invocations_of("sweep");
    succeeded(&sweeps);
    let environments: BTreeSet<&str> = sweeps.iter().map(|sweep| &*sweep.environment).collect();
    assert_eq!((sweeps.len(), environments.len()), (2, 2), "side by side, each in an environment of its own");
    let swept: Vec<(Value, Value)> = sweeps.iter().map(swept).map(|table| (table["table"].clone(), table["outcome"].clone())).collect();
    for alias in ["inc", "chg"] {
        assert!(swept.contains(&(json!(alias), json!("caught_up"))), "{swept:?}");
        assert_eq!(bed.extra_records(alias).await, 0);
        assert_eq!(bed.cursor(alias).await, Some(bed.newest(alias)));
        assert_eq!(bed.item(alias).await.expect("an item").lease, None);
    }
    assert_eq!(bed.api.pending_faults(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_the_log_per_table_is_json_and_knows_connector_table_and_tick() {
    let bed = two_tables().await;
    bed.fan_out(&event("schedule")).await;
    let logs = bed.logs();
    let lines: Vec<Value> = logs
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let told: Vec<&Value> = lines.iter().filter(|line| line["message"] == "swept").collect();
    assert_eq!(told.len(), 2, "{logs}");
    let tick = json!("2026-03-01T12:00:00Z");
    for (alias, rows) in [("inc", 1_200), ("chg", 700)] {
        let line = told.iter().find(|line| line["table"] == alias).unwrap_or_else(|| panic!("{alias}: {logs}"));
        assert_eq!((&line["connector"], &line["tick"], &line["rows"]), (&json!("snow"), &tick, &json!(rows)), "who and how many: {line}");
        assert_eq!((&line["outcome"], &line["mode"]), (&json!("CaughtUp"), &json!("Stream")), "what became of it: {line}");
        for number in ["requests", "bytes_in", "duration_ms", "lag_seconds"] {
            assert!(line[number].as_u64().is_some_and(|value| value > 0), "{number} is a number: {line}");
        }
    }
    let planned: Vec<&Value> = lines.iter().filter(|line| line["message"] == "planned").collect();
    assert_eq!(planned.len(), 1, "{logs}");
    let of = |field: &str| &planned[0][field];
    assert_eq!((of("tick"), of("tasks"), of("invoked")), (&tick, &json!(2), &json!(2)), "and fan-out says what it started");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_event_twice_at_once_delivers_each_row_once_and_is_no_error() {
    let bed = two_tables().await;
    for table in ["incident", "change_request"] {
        bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 700 }).table(table));
    }
    let event = event("schedule");
    let (one, other) = tokio::join!(bed.fan_out(&event), bed.fan_out(&event));
    succeeded(&[one, other]);
    let sweeps = bed.lambda.invocations_of("sweep");
    assert_eq!(sweeps.len(), 4);
    succeeded(&sweeps);
    let skipped = sweeps.iter().map(swept).filter(|table| table["outcome"] == "skipped").count();
    assert_eq!(skipped, 2, "of two sweeps of a table one found the lease held");
    for alias in ["inc", "chg"] {
        assert_eq!(bed.extra_records(alias).await, 0);
        assert_eq!(bed.cursor(alias).await, Some(bed.newest(alias)));
    }
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_that_slept_while_the_broker_restarted_sweeps_its_next_tick_cleanly() {
    let broker = Broker::start().await.expect("Kafka starts");
    let bed = Bed::new(&broker, Setup::of(&broker)).await;
    bed.generate("inc", 600);
    bed.fan_out(&tick("2026-03-01T12:00:00Z")).await;
    // Every environment is stopped by now, with open connections.
    broker.restart().await.expect("Kafka starts again");
    bed.cursors.cut_all();
    bed.invokes.cut_all();
    bed.insert("inc");
    let ticked = bed.fan_out(&tick("2026-03-01T12:01:00Z")).await;
    assert!(!ticked.cold, "the same environment");
    let sweeps = bed.lambda.invocations_of("sweep");
    succeeded(&sweeps);
    assert!(!sweeps[1].cold && sweeps[1].environment == sweeps[0].environment, "the same environment");
    assert_eq!((&swept(&sweeps[1])["rows"], &swept(&sweeps[1])["outcome"]), (&json!(1), &json!("caught_up")));
    assert_eq!(bed.extra_records("inc").await, 0);
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catch_up_from_a_time_delivers_again_from_there_and_its_repetition_rewinds_nothing() {
    let bed = two_tables().await;
    bed.fan_out(&event("schedule")).await;
    let from = json!({"mode": "catch-up", "tables": ["inc"], "from": "2026-02-01 00:00:30", "request_id": "again", "dispatch": "return"});
    let plan = bed.fan_out(&from).await.response().expect("a plan");
    assert_eq!((&plan["tick"], &plan["mode"], &plan["invoked"]), (&json!("again"), &json!("catch-up"), &json!(0)));
    assert_eq!(plan["tasks"].as_array().map(Vec::len), Some(1));
    assert_eq!(bed.cursor("inc").await, Some(("2026-02-01 00:00:30".to_owned(), String::new())));
    let mut task = plan["tasks"][0].clone();
    task["tick"] = plan["tick"].clone();
    task["mode"] = plan["mode"].clone();
    let swept = swept(&bed.lambda.invoke("sweep", &task).await.expect("an invocation"));
    // 20 rows share a second: the last 30 seconds of 60.
    assert_eq!((&swept["outcome"], &swept["rows"]), (&json!("caught_up"), &json!(600)));
    assert_eq!(bed.extra_records("inc").await, 600);
    let repeated = bed.fan_out(&from).await;
    assert!(repeated.outcome.is_ok(), "{:?}", repeated.outcome);
    assert_eq!(bed.cursor("inc").await, Some(bed.newest("inc")));
    let forward = json!({"mode": "catch-up", "tables": ["inc"], "from": "2026-03-01 00:00:00", "request_id": "f", "dispatch": "return"});
    assert_eq!(bed.fan_out(&forward).await.error_type(), Some("Cursor.Forward"));
    // Of many tables, those that stand before the time are passed over, and the answer says which.
    let of = |tables: &Value, second: u8, id: &str| {
        let from = format!("2026-02-01 00:00:{second}");
        json!({"mode": "catch-up", "tables": tables, "from": from, "request_id": id, "dispatch": "return"})
    };
    let plan = bed.fan_out(&of(&json!(["inc"]), 10, "one")).await.response().expect("a plan");
    assert_eq!(plan.get("not_rewound"), None);
    let plan = bed.fan_out(&of(&json!([]), 20, "all")).await.response().expect("a plan");
    assert_eq!(plan["not_rewound"], json!(["snow/inc"]));
    assert_eq!(bed.cursor("inc").await, Some(("2026-02-01 00:00:10".to_owned(), String::new())));
    assert_eq!(bed.cursor("chg").await, Some(("2026-02-01 00:00:20".to_owned(), String::new())));
    bed.logs();
}
