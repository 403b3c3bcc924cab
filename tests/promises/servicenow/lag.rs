//! The result of a sweep: how far behind a table is, in both phases, and what was counted on the way.

use std::sync::Arc;
use std::time::Duration;

use tablesweep::cursor::Phase;
use tablesweep::host::{Host, ManualClock};
use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Command, Effect, Fault, Fields};

use crate::laptop::Laptop;

/// 2026-03-01 12:00:00, where both clocks begin.
const NOON: i64 = 1_772_366_400;

/// 2026-02-01 00:00:00, the first row.
const FIRST: i64 = 1_769_904_000;

const SAFETY_LAG: i64 = 7;
const POLL: i64 = 5;

/// A hundred rows, one a second, in pages of ten; and this machine's clock.
fn laptop() -> (Laptop, Arc<ManualClock>) {
    let clock = ManualClock::at(NOON * 1000);
    let mut laptop = Laptop::new()
        .with("snow.source.batch.size", 10)
        .with("snow.source.safety.lag.seconds", SAFETY_LAG)
        .with("snow.source.startup.probe", false);
    laptop.host = Host::with_clock(clock.clone());
    laptop.generate(100, 1);
    (laptop, clock)
}

fn pass(laptop: &Laptop, clock: &ManualClock, seconds: i64) {
    clock.advance(Duration::from_secs(seconds.unsigned_abs()));
    laptop.api.step_clock(seconds);
}

#[tokio::test]
async fn a_backfill_lags_from_its_cursor_and_a_table_that_is_caught_up_from_what_was_swept() {
    // The second time the instance's clock is two hours ahead of ours, which is no lag.
    for ahead in [0, 7_200] {
        let (mut laptop, clock) = laptop();
        laptop.api.step_clock(ahead);
        laptop.max_rows = Some(30);
        for run in 1..=3 {
            let report = laptop.sweep().await;
            assert_eq!((report.outcome, report.phase), (Outcome::More, Some(Phase::Backfill)), "{report:?}");
            assert_eq!(report.lag_seconds, Some(NOON + ahead - (FIRST + 30 * run - 1)), "run {run}");
        }
        laptop.max_rows = None;
        let report = laptop.sweep().await;
        assert_eq!(
            (report.outcome, report.phase, report.lag_seconds),
            (Outcome::CaughtUp, Some(Phase::Stream), Some(SAFETY_LAG)),
            "{report:?}"
        );
        for idle in [5, 60, 86_400] {
            pass(&laptop, &clock, idle);
            let report = laptop.sweep().await;
            assert_eq!((report.rows, report.lag_seconds), (0, Some(SAFETY_LAG)), "an idle table does not fall behind");
        }
    }
}

#[tokio::test]
async fn the_lag_of_a_sweep_during_which_time_passes_is_what_passed() {
    let (laptop, _clock) = laptop();
    laptop.api.fault(Fault::new(Effect::Then { commands: vec![Command::StepClock { seconds: 10 }] }).always());
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 100), "{report:?}");
    let lag = report.lag_seconds.expect("a lag");
    // The last sweep may have taken two requests: one full page is no reason for another sweep.
    assert!((SAFETY_LAG..=SAFETY_LAG + POLL + 20).contains(&lag), "sweeps follow each other until one ends in time: {lag}");
    let swept_to = laptop.item().await.progress.swept_to_ms.expect("swept") / 1000;
    assert!(swept_to > NOON, "and each has a mark of its own: {swept_to}");
}

#[tokio::test]
async fn a_table_that_new_rows_come_to_lags_by_the_safety_lag_and_not_by_its_last_row() {
    let (laptop, clock) = laptop();
    laptop.sweep().await;
    for _ in 0..5 {
        laptop.api.insert("incident", Fields::from([("number", "new")])).expect("a row");
        pass(&laptop, &clock, 60);
        let report = laptop.sweep().await;
        assert_eq!((report.rows, report.lag_seconds, report.phase), (1, Some(SAFETY_LAG), Some(Phase::Stream)), "{report:?}");
    }
}

#[tokio::test]
async fn a_table_whose_sweeps_deliver_nothing_falls_behind_whatever_they_have_read() {
    let (laptop, clock) = laptop();
    let laptop = laptop
        .with("snow.source.schema.mode", "typed")
        .with("snow.source.typed.fields", "priority:int32")
        .with("snow.source.schema.evolution", "backward");
    assert_eq!(laptop.sweep().await.lag_seconds, Some(SAFETY_LAG));
    let behind = async |outcome| {
        pass(&laptop, &clock, 60);
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (outcome, 0), "{report:?}");
        report.lag_seconds.map(|lag| lag - SAFETY_LAG)
    };
    // No answer, and then a page that no record can be made of.
    laptop.api.fault(Fault::status(503, "busy").times(5));
    assert_eq!(behind(Outcome::Failed).await, Some(60));
    laptop.api.clear_faults();
    laptop.api.insert("incident", Fields::from([("priority", "high")])).expect("a row");
    assert_eq!(behind(Outcome::Parked).await, Some(120));
    assert_eq!(behind(Outcome::Parked).await, Some(180));
}

#[tokio::test]
async fn every_field_of_the_result_is_what_was_counted() {
    let (mut laptop, clock) = laptop();
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    laptop.api.hide("incident", ids[40..47].to_vec()).expect("hidden");
    laptop.api.fault(Fault::status(503, "busy").skip(2).times(2));
    let report = laptop.sweep().await;
    let seen = laptop.api.counters();
    assert_eq!((report.connector.as_str(), report.table.as_str(), &report.reason), ("snow", "inc", &None));
    assert_eq!((report.rows, report.rows_hidden, report.rows_skipped), (93, 7, 0), "{report:?}");
    assert_eq!((report.requests, report.bytes_in), (seen.requests, seen.wire_bytes), "repeated ones and answers of errors count too");
    let cursor = report.cursor.clone().expect("a cursor");
    let last = laptop.expected().pop().expect("a row");
    assert_eq!((cursor.get("timestamp"), cursor.get("sys_id")), (Some(last.0.as_str()), Some(last.1.as_str())));

    pass(&laptop, &clock, 60);
    let idle = laptop.sweep().await;
    assert_eq!((idle.rows, idle.duplicates_suppressed, idle.rows_hidden), (0, 3, 0), "the rows of two seconds and the cursor's: {idle:?}");
    assert_eq!(idle.requests, 1);

    laptop.set("snow.source.bad.row.behavior", "skip");
    laptop.api.insert("incident", Fields::from([("number", "bad")])).expect("a row");
    pass(&laptop, &clock, 60);
    laptop.api.fault(Fault::new(Effect::FieldToken { field: "sys_id".to_owned(), token: "null".to_owned() }));
    let skipped = laptop.sweep().await;
    assert_eq!((skipped.rows, skipped.rows_skipped), (0, 4), "{skipped:?}");
    let counters = laptop.item().await.progress.counters;
    assert_eq!((counters.rows, counters.hidden, counters.skipped), (93, 7, 4), "status adds them up");
}
