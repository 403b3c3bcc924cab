//! The hourly allowance: counted by us across tables, tasks and invocations, and never slept away.

use std::sync::Arc;
use std::time::Duration;

use tablesweep::cursor::Phase;
use tablesweep::host::{Host, ManualClock};
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::{Effect, Fault, Generate, RateLimit};

use crate::laptop::Laptop;

const HOUR: Duration = Duration::from_secs(3600);

/// 2026-03-01 12:00:00, where the instance's clock stands.
const NOON_MS: i64 = 1_772_366_400_000;

/// A laptop whose clock a test moves, and an instance that takes `limit` requests per hour.
fn limited(limit: u64, headers: bool) -> (Laptop, Arc<ManualClock>) {
    let clock = ManualClock::at(NOON_MS);
    let mut laptop = Laptop::new().with("snow.source.batch.size", 10).with("snow.source.startup.probe", false);
    laptop.host = Host::with_clock(clock.clone());
    laptop.api.configure(|settings| settings.rate_limit = Some(RateLimit { limit, window_seconds: 3600, headers })).expect("a limit");
    (laptop, clock)
}

/// Time passes, here and there.
fn pass(laptop: &Laptop, clock: &ManualClock, time: Duration) {
    clock.advance(time);
    laptop.api.step_clock(i64::try_from(time.as_secs()).expect("a short time"));
}

fn refusals(laptop: &Laptop) -> u64 {
    laptop.api.counters().statuses.get(&429).copied().unwrap_or(0)
}

fn is_spent(report: &TableReport) -> bool {
    report.outcome == Outcome::Skipped && report.reason.as_ref().is_some_and(|reason| reason.code == "Source.Allowance")
}

#[tokio::test]
async fn a_backfill_spreads_over_the_hours_of_the_allowance_and_is_never_refused() {
    let (laptop, clock) = limited(20, true);
    laptop.generate(500, 3);
    let (mut hours, mut outcomes) = (0, Vec::new());
    loop {
        let report = laptop.sweep().await;
        outcomes.push(report.outcome);
        if report.outcome == Outcome::CaughtUp {
            break;
        }
        assert!(is_spent(&report), "{report:?}");
        let message = report.reason.expect("a reason").message;
        assert!(message.contains("snow/inc (table incident)") && message.contains("20 requests per hour"), "{message}");
        assert_eq!(report.requests, 19, "one in twenty is left to others");
        for minutes in [1, 58] {
            pass(&laptop, &clock, Duration::from_secs(minutes * 60));
            let idle = laptop.sweep().await;
            assert!(is_spent(&idle) && idle.requests == 0, "the rest of the hour asks nothing: {idle:?}");
        }
        pass(&laptop, &clock, Duration::from_secs(60));
        hours += 1;
        assert!(hours < 10, "{outcomes:?}");
    }
    assert_eq!(refusals(&laptop), 0);
    assert_eq!(laptop.versions(), laptop.expected());
    assert_eq!(hours, 3, "some 60 requests at 19 an hour: each page reads the row of the cursor again");
}

#[tokio::test]
async fn a_table_whose_requests_are_spent_says_how_far_behind_it_is() {
    let (laptop, clock) = limited(20, true);
    laptop.generate(500, 3);
    let spent = laptop.sweep().await;
    assert!(is_spent(&spent), "{spent:?}");
    for minutes in [1, 10, 20] {
        pass(&laptop, &clock, Duration::from_secs(minutes * 60));
        let (idle, item) = (laptop.sweep().await, laptop.item().await);
        assert!(is_spent(&idle) && idle.requests == 0, "{idle:?}");
        let now_ms = laptop.host.now_ms();
        let cursor = laptop.expected()[usize::try_from(item.progress.counters.rows).expect("a small number") - 1].0.clone();
        assert_eq!(idle.cursor.as_ref().and_then(|cursor| cursor.get("timestamp")), Some(cursor.as_str()));
        let at_ms = format!("{}Z", cursor.replace(' ', "T")).parse::<jiff::Timestamp>().expect("a time").as_millisecond();
        assert_eq!((idle.phase, idle.lag_seconds), (Some(Phase::Backfill), Some((now_ms - at_ms) / 1000)), "{idle:?}");
    }
}

#[tokio::test]
async fn tables_and_tasks_count_together() {
    let (mut laptop, clock) = limited(40, true);
    for (key, value) in [("snow.tables", "inc,chg"), ("snow.table.chg.name", "change_request"), ("snow.table.chg.topic", "t")] {
        laptop.set(key, value);
    }
    laptop.set("tasks.max", 2);
    laptop.generate(600, 3);
    laptop.api.generate(Generate { start: Some("2026-02-01 00:00:00".to_owned()), ..Generate::rows("change_request", 600) }).expect("rows");
    let first = laptop.sweep_all().await;
    assert!(first.iter().all(is_spent), "{first:?}");
    assert_eq!(first.iter().map(|report| report.requests).sum::<u64>(), 38, "both tables of one invocation");

    pass(&laptop, &clock, HOUR);
    laptop.api.clear_log();
    laptop.max_rows = Some(150);
    for table in ["inc", "chg"] {
        // Each as the task of another function would.
        laptop.selection.tables = vec![table.to_owned()];
        laptop.sweep_all().await;
    }
    laptop.max_rows = None;
    laptop.selection.tables.clear();
    laptop.sweep_all().await;
    assert_eq!(laptop.api.counters().requests, 38, "both tasks of an hour");
    assert_eq!(refusals(&laptop), 0);
}

#[tokio::test]
async fn what_others_use_up_ends_the_sweep_at_the_first_refusal_and_no_time_is_slept_away() {
    let (laptop, clock) = limited(5, true);
    laptop.generate(100, 3);
    let machine = Host::system();
    for _ in 0..3 {
        reqwest::get(format!("{}/api/now/table/incident?sysparm_limit=1", laptop.api.url())).await.expect("another program asks");
    }
    let report = laptop.sweep().await;
    assert!(is_spent(&report) && report.rows == 19, "{report:?}");
    assert_eq!((report.requests, refusals(&laptop)), (3, 1), "two answers and one refusal, with Retry-After of an hour");
    for _ in 0..5 {
        pass(&laptop, &clock, Duration::from_secs(60));
        assert_eq!(laptop.sweep().await.requests, 0);
    }
    assert!(machine.monotonic() < Duration::from_secs(20), "nobody waited for the hour to end");
    pass(&laptop, &clock, HOUR - Duration::from_secs(300));
    assert!(laptop.sweep().await.rows > 40);
}

#[tokio::test]
async fn refusals_that_tell_no_allowance_are_waited_for_with_jitter_and_then_left_to_the_next_tick() {
    let (laptop, clock) = limited(3, false);
    laptop.generate(100, 3);
    let report = laptop.sweep().await;
    assert_eq!(report.outcome, Outcome::Failed, "{report:?}");
    assert_eq!(report.reason.expect("a reason").code, "Source.RateLimited");
    assert_eq!((report.rows, report.requests), (28, 3 + 5), "all attempts of the fourth request were refused");
    pass(&laptop, &clock, HOUR);
    assert!(laptop.sweep().await.rows > 20, "nothing is kept of it");
}

#[tokio::test]
async fn a_short_wait_that_is_asked_for_is_a_pause_within_the_sweep() {
    let laptop = Laptop::new().with("snow.source.batch.size", 10).with("snow.retry.max.backoff.ms", 2000);
    laptop.generate(100, 3);
    for status in [429, 503] {
        laptop.api.fault(Fault::status(status, "busy").header("Retry-After", "1").skip(3));
    }
    let machine = Host::system();
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 100), "{report:?}");
    assert!(machine.monotonic() >= Duration::from_secs(1), "Retry-After counts, not the first backoff of a millisecond");
}

#[tokio::test]
async fn no_header_and_no_clock_blocks_a_table_for_longer_than_an_hour() {
    let headers = |limit: &str, reset: &str, retry: &str| {
        let pairs = [("X-RateLimit-Limit", limit), ("X-RateLimit-Reset", reset), ("X-RateLimit-Rule", "r"), ("Retry-After", retry)];
        let headers = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Effect::Status { status: 429, body: None, content_type: None, headers }
    };
    for (limit, reset, retry) in [
        ("5", "99999999999", "99999999999"),
        ("0", "0", "86400"),
        ("many", "soon", "604800"),
        ("-1", "-1", "-1"),
        ("5", "1772366400", "never"),
        ("5", "1772366399999", ""),
    ] {
        let (laptop, clock) = limited(1_000, true);
        laptop.generate(10, 1);
        laptop.api.fault(Fault::new(headers(limit, reset, retry)).times(5));
        let report = laptop.sweep().await;
        assert!(matches!(report.outcome, Outcome::Skipped | Outcome::Failed), "{limit} {reset} {retry}: {report:?}");
        laptop.api.clear_faults();
        pass(&laptop, &clock, HOUR);
        let next = laptop.sweep().await;
        assert_eq!((next.outcome, next.rows), (Outcome::CaughtUp, 10), "{limit} {reset} {retry}: {next:?}");
    }
    // The clock of this machine was an age ahead when the allowance was spent, and is set right.
    let (laptop, clock) = limited(5, true);
    laptop.generate(100, 3);
    assert!(is_spent(&laptop.sweep().await));
    clock.step_to(NOON_MS - 365 * 86_400_000);
    laptop.api.step_clock(3600);
    // The first sweep learns how far apart the clocks are now.
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
    assert!(laptop.sweep().await.rows > 0);
}
