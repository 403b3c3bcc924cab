//! Deadlines: a sweep ends in good order before its own, and one that is killed at it loses nothing.

use std::time::Duration;

use serde_json::json;
use tablesweep_testbed::kafka;
use tablesweep_testbed::parts::until;
use tablesweep_testbed::proxy::Action;
use tablesweep_testbed::table_api::{Effect, Fault};

use super::bed::{Bed, PATIENCE, Setup, swept};

/// Of nine seconds, eight are kept for a page's acknowledgements and the last commit.
async fn short(batch_size: u32) -> Bed {
    let broker = kafka::shared().await.expect("Kafka starts");
    let setup = Setup { timeout: Duration::from_secs(9), message_timeout_ms: 2_000, batch_size, ..Setup::of(broker) };
    Bed::new(broker, setup).await
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_backfills_that_run_out_of_time_each_advance_and_lose_and_double_nothing() {
    const TICKS: u64 = 20;
    let bed = short(40).await;
    bed.generate("inc", 10_000);
    // Pages are slow, the start-up probe is not: it would take half of the first second.
    bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 120 }).table("incident").limit_over(2).always());
    let mut rows = 0;
    let mut before = None;
    for number in 0..TICKS {
        let invocation = bed.sweep("inc", &format!("lap-{number}"), "stream").await;
        let table = swept(&invocation);
        assert_eq!((&table["outcome"], &table["reason"]), (&json!("more"), &json!(null)), "{table}");
        rows += table["rows"].as_u64().expect("a number");
        let after = bed.cursor("inc").await;
        assert!(after > before, "tick {number}: from {before:?} to {after:?}");
        before = after;
    }
    let delivered = bed.delivered("inc").await;
    assert_eq!((delivered.len() as u64, delivered.values().sum::<usize>() as u64), (rows, rows), "acknowledged and in the topic");
    bed.api.clear_faults();
    let mut last = json!("more");
    while last == "more" {
        last = swept(&bed.sweep("inc", "rest", "stream").await)["outcome"].clone();
    }
    assert_eq!(last, "caught_up");
    assert_eq!(bed.extra_records("inc").await, 0);
    assert_eq!(bed.cursor("inc").await, Some(bed.newest("inc")));
    bed.logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_killed_at_its_deadline_before_a_commit_loses_nothing_and_doubles_two_pages_at_most() {
    const PAGE: u32 = 100;
    let bed = short(PAGE).await;
    bed.generate("inc", 600);
    // The first UpdateItem is the acquire of an item that is not there, the second the one of the item just created, the third
    // keeps what the start-up probe came to.
    let held = bed.cursors.on("DynamoDB_20120810.UpdateItem", 4.., Action::HoldRequest);
    let killed = bed.sweep("inc", "killed", "stream").await;
    assert_eq!(killed.error_type(), Some("Sandbox.Timedout"), "{:?}", killed.outcome);
    assert!(held.fired() > 0, "it was waiting for a commit");
    let delivered: usize = bed.delivered("inc").await.values().sum();
    assert!(delivered > 0 && delivered <= 2 * PAGE as usize, "{delivered} records are in the topic and not committed");
    assert_eq!(bed.cursor("inc").await, None);
    // Requests that still wait belong to connections of a process that is gone; they are carried out late, or never.
    bed.cursors.cut_all();
    bed.cursors.clear();
    // The lease outlives the deadline by the skew of clocks; until then it is somebody else's.
    let first = swept(&bed.sweep("inc", "early", "stream").await);
    assert_eq!((&first["outcome"], &first["reason"]["code"]), (&json!("skipped"), &json!("Cursor.Leased")));
    let outcome = until("the end of the lease", PATIENCE, async || {
        let table = swept(&bed.sweep("inc", "next", "stream").await);
        if table["outcome"] == "skipped" { Err(table.to_string()) } else { Ok(table["outcome"].clone()) }
    });
    assert_eq!(outcome.await.expect("the lease ends"), "caught_up");
    let doubled = bed.extra_records("inc").await;
    assert!(doubled > 0 && doubled <= 2 * PAGE as usize, "{doubled} records are there twice");
    assert_eq!(bed.cursor("inc").await, Some(bed.newest("inc")));
}
