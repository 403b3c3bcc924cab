//! The engine: one writer per table, tables that do not disturb each other, runs that end in time.

use std::time::Duration;

use tablesweep::cursor::{Change, Phase, Standing, Write};
use tablesweep::host::Host;
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::{Credentials, Effect, Fault, Generate, Settings, TableApi};
use tokio::sync::watch;

use crate::laptop::Laptop;

fn code(report: &TableReport) -> Option<&str> {
    report.reason.as_ref().map(|reason| reason.code.as_str())
}

/// A laptop with `count` tables `t0`, `t1`, … of `rows` rows each.
fn many(count: usize, rows: u64) -> Laptop {
    let aliases: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
    let mut laptop = Laptop::new().with("snow.source.batch.size", 50).with("snow.tables", aliases.join(","));
    for key in ["snow.table.inc.name", "snow.table.inc.topic"] {
        laptop.unset(key);
    }
    for alias in &aliases {
        laptop.set(&format!("snow.table.{alias}.name"), format!("u_{alias}"));
        laptop.set(&format!("snow.table.{alias}.topic"), alias);
        let spec = Generate { start: Some("2026-02-01 00:00:00".to_owned()), per_second: 3, ..Generate::rows(&format!("u_{alias}"), rows) };
        laptop.api.generate(spec).expect("rows");
    }
    laptop
}

#[tokio::test]
async fn of_two_sweeps_at_once_one_delivers_and_the_other_steps_aside() {
    let laptop = Laptop::new().with("snow.source.batch.size", 20);
    laptop.generate(200, 3);
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 30 }).always());
    let (one, other) = tokio::join!(laptop.sweep(), laptop.sweep());
    let mut outcomes = [(one.outcome, code(&one)), (other.outcome, code(&other))];
    outcomes.sort_by_key(|(outcome, _)| *outcome == Outcome::Skipped);
    assert_eq!(outcomes, [(Outcome::CaughtUp, None), (Outcome::Skipped, Some("Cursor.Leased"))]);
    assert_eq!(laptop.versions(), laptop.expected());
}

#[tokio::test]
async fn a_broken_a_slow_and_a_missing_table_delay_no_other() {
    let mut laptop = many(5, 120);
    laptop.set("snow.table.t1.name", "u_missing");
    laptop.api.fault(Fault::status(403, "no").table("u_t2").always());
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 5_000 }).table("u_t3").always());
    laptop.max_time = Some(Duration::from_secs(9));
    let host = Host::system();
    let reports = laptop.sweep_all().await;
    assert!(host.monotonic() < Duration::from_secs(10), "the run ends within its time");
    let outcomes: Vec<_> = reports.iter().map(|report| (report.table.as_str(), report.outcome, code(report), report.rows)).collect();
    assert_eq!(
        outcomes,
        [
            ("t0", Outcome::CaughtUp, None, 120),
            ("t1", Outcome::Parked, Some("Source.TableMissing"), 0),
            ("t2", Outcome::Parked, Some("Source.Forbidden"), 0),
            ("t3", Outcome::More, None, 0),
            ("t4", Outcome::CaughtUp, None, 120),
        ]
    );
}

#[tokio::test]
async fn runs_that_end_for_lack_of_time_each_go_on_and_lose_nothing() {
    let mut laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(300, 3);
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 120 }).always());
    // Eight seconds are kept for the last page's acknowledgement and the release, so that a run has time for a few of thirty pages.
    laptop.max_time = Some(Duration::from_millis(9_000));
    let mut rows = 0;
    for run in 0..40 {
        let report = laptop.sweep().await;
        // The last run may find that the one before it was just in time.
        assert!(report.rows > 0 || report.outcome == Outcome::CaughtUp, "run {run} makes progress: {report:?}");
        assert!(run > 0 || report.outcome == Outcome::More, "the time of one run is too short for all: {report:?}");
        rows += report.rows;
        if report.outcome == Outcome::CaughtUp {
            break;
        }
        assert_eq!(report.outcome, Outcome::More);
    }
    assert_eq!(rows, 300);
    assert_eq!(laptop.versions(), laptop.expected());
}

#[tokio::test]
async fn a_page_that_never_comes_in_time_is_asked_for_smaller_by_the_next_run() {
    let mut laptop = Laptop::new().with("snow.source.batch.size", 64);
    laptop.generate(200, 3);
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 3_000 }).limit_over(20).always());
    laptop.max_time = Some(Duration::from_millis(8_500));
    for expected in [Some(32), Some(16)] {
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::More, 0), "{report:?}");
        assert_eq!(laptop.item().await.progress.page_size, expected);
    }
    // From here on pages come; larger ones are tried again now and then.
    for _ in 0..20 {
        laptop.sweep().await;
    }
    assert_eq!(laptop.versions(), laptop.expected());
}

#[tokio::test]
async fn an_interrupted_run_drains_commits_and_releases() {
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(300, 3);
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 40 }).always());
    let (stop, stopped) = watch::channel(false);
    let run = laptop.sweep_until(stopped);
    let interrupt = async {
        while laptop.lines().len() < 50 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.send(true).expect("a run");
    };
    let (reports, ()) = tokio::join!(run, interrupt);
    assert_eq!(reports[0].outcome, Outcome::More, "{reports:?}");
    let item = laptop.item().await;
    assert!(item.lease.is_none());
    assert_eq!(item.progress.counters.rows, laptop.lines().len() as u64, "all that was written is committed");
    laptop.api.clear_faults();
    laptop.sweep().await;
    assert_eq!(laptop.versions(), laptop.expected());
}

#[tokio::test]
async fn many_tables_share_a_byte_budget_smaller_than_a_page_of_each() {
    let mut laptop = many(6, 300);
    laptop.memory = 60 << 10;
    let reports = laptop.sweep_all().await;
    assert!(reports.iter().all(|report| report.outcome == Outcome::CaughtUp && report.rows == 300), "{reports:#?}");
}

#[tokio::test]
async fn a_parked_table_waits_for_its_next_try_on_ticks_and_is_tried_at_once_by_hand() {
    let mut laptop = Laptop::new().with("snow.source.poll.interval.ms", 1);
    laptop.generate(5, 1);
    laptop.api.fault(Fault::status(403, "no"));
    laptop.scheduled = true;
    let first = laptop.sweep().await;
    assert_eq!((first.outcome, code(&first)), (Outcome::Parked, Some("Source.Forbidden")));
    let asked = laptop.api.counters().requests;
    let second = laptop.sweep().await;
    assert_eq!((second.outcome, code(&second)), (Outcome::Parked, Some("Source.Forbidden")));
    assert_eq!(laptop.api.counters().requests, asked, "not tried");
    laptop.scheduled = false;
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
    assert_eq!(laptop.item().await.standing, Standing::Active);
}

#[tokio::test]
async fn a_tick_that_comes_too_early_is_skipped_and_a_run_by_hand_is_not() {
    let mut laptop = Laptop::new().with("snow.source.poll.interval.ms", 3_600_000);
    laptop.generate(5, 1);
    laptop.scheduled = true;
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
    let early = laptop.sweep().await;
    assert_eq!((early.outcome, code(&early)), (Outcome::Skipped, Some("Sweep.NotDue")));
    laptop.scheduled = false;
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
}

#[tokio::test]
async fn a_refused_login_is_asked_once_by_all_tables_and_ticks_together() {
    let mut laptop = many(6, 5);
    let credentials = Credentials { basic: Some(("sweep".to_owned(), "another".to_owned())), ..Credentials::default() };
    laptop.api = TableApi::start_with(([127, 0, 0, 1], 0).into(), Settings::default(), credentials).expect("the simulator");
    let url = laptop.api.url();
    laptop.set("snow.url", url);
    laptop.set("snow.http.max.concurrent.requests", 1);
    laptop.scheduled = true;
    for _ in 0..3 {
        let reports = laptop.sweep_all().await;
        assert!(
            reports.iter().all(|report| report.outcome == Outcome::Parked && code(report) == Some("Source.Unauthorized")),
            "{reports:#?}"
        );
    }
    assert_eq!(laptop.api.counters().requests, 1, "one try, so that the account is not locked");
    let items = laptop.store().await.list("snow").await.expect("a store");
    assert!(items.iter().all(|item| item.standing == Standing::Active), "no table is parked for what its instance refused");
}

#[tokio::test]
async fn a_document_that_points_elsewhere_under_the_same_alias_is_refused_and_moves_nothing() {
    let mut laptop = Laptop::new();
    laptop.generate(5, 1);
    laptop.sweep().await;
    let before = laptop.item().await;
    laptop.set("snow.table.inc.name", "problem");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Cursor.Moved")), "{report:?}");
    let message = report.reason.expect("a reason").message;
    assert!(message.contains("incident") && message.contains("problem") && message.contains("cursor reset"), "{message}");
    laptop.set("snow.table.inc.name", "incident");
    laptop.set("snow.table.inc.sys.id.field", "number");
    assert_eq!(code(&laptop.sweep().await), Some("Cursor.Moved"), "the id field is part of the cursor too");
    assert_eq!(laptop.item().await.progress, before.progress);
}

#[tokio::test]
async fn a_renamed_table_goes_on_and_its_old_alias_may_mean_another_table_at_once() {
    for between in [false, true] {
        let mut laptop = Laptop::new();
        laptop.generate(5, 1);
        laptop.sweep().await;
        let cursor = laptop.item().await.progress.cursor;
        let start = Some("2026-02-01 00:00:00".to_owned());
        laptop.api.generate(Generate { start, per_second: 1, ..Generate::rows("problem", 3) }).expect("rows");
        for (key, value) in [("old.name", "incident"), ("old.topic", "snow.incident")] {
            laptop.set(&format!("snow.table.{key}"), value);
        }
        if between {
            laptop.unset("snow.table.inc.name");
            laptop.unset("snow.table.inc.topic");
            laptop.set("snow.tables", "old");
            let report = laptop.sweep().await;
            assert_eq!((report.outcome, report.rows, code(&report)), (Outcome::CaughtUp, 0, None), "{report:?}");
            assert_eq!((laptop.item().await.identity.alias, laptop.item().await.progress.cursor), ("old".to_owned(), cursor.clone()));
        }
        laptop.set("snow.tables", "old,inc");
        laptop.set("snow.table.inc.name", "problem");
        laptop.set("snow.table.inc.topic", "snow.problem");
        // The one with the name of the other first, alone: the other's cursor is none of its own.
        laptop.selection.tables = vec!["inc".to_owned()];
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows, code(&report)), (Outcome::CaughtUp, 3, None), "{report:?}");
        laptop.selection.tables.clear();
        let reports = laptop.sweep_all().await;
        assert!(reports.iter().all(|report| (report.outcome, report.rows, code(report)) == (Outcome::CaughtUp, 0, None)), "{reports:#?}");
        let items = laptop.store().await.list("snow").await.expect("a store");
        let found: Vec<_> = items.iter().map(|item| (item.identity.table.as_str(), item.identity.alias.as_str())).collect();
        assert_eq!(found, [("incident", "old"), ("problem", "inc")]);
    }
}

#[tokio::test]
async fn a_new_alias_hides_no_changed_id_field() {
    let mut laptop = Laptop::new();
    laptop.generate(5, 1);
    laptop.sweep().await;
    for (key, value) in [("old.name", "incident"), ("old.topic", "t"), ("old.sys.id.field", "number")] {
        laptop.set(&format!("snow.table.{key}"), value);
    }
    laptop.unset("snow.table.inc.name");
    laptop.unset("snow.table.inc.topic");
    laptop.set("snow.tables", "old");
    assert_eq!(code(&laptop.sweep().await), Some("Cursor.Moved"));
}

#[tokio::test]
async fn a_changed_query_begins_a_new_cursor_and_keeps_the_old_one() {
    let mut laptop = Laptop::new();
    laptop.generate(5, 1);
    laptop.sweep().await;
    laptop.set("snow.table.inc.query", "active=true");
    let report = laptop.sweep().await;
    assert!(report.rows > 0, "{report:?}");
    assert_eq!(laptop.store().await.list("snow").await.expect("a store").len(), 2);
}

#[tokio::test]
async fn a_paused_table_is_left_alone_until_it_is_resumed() {
    let laptop = Laptop::new();
    laptop.generate(5, 1);
    laptop.sweep().await;
    let (store, key, host) = (laptop.store().await, laptop.item().await.identity.key(), Host::system());
    let pause = Write { id: host.nonce(), change: Change::Pause { reason: "maintenance".to_owned(), now_ms: host.now_ms() } };
    store.write(&key, &pause).await.expect("paused");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Paused, Some("Cursor.Paused")));
    let resume = Write { id: host.nonce(), change: Change::Resume { now_ms: host.now_ms() } };
    store.write(&key, &resume).await.expect("resumed");
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
}

#[tokio::test]
async fn a_lost_window_costs_the_overlap_once_and_no_row() {
    let laptop = Laptop::new().with("snow.source.overlap.seconds", 3);
    laptop.generate(90, 30);
    laptop.sweep().await;
    let store = laptop.store().await;
    for (place, _) in store.list_blobs("snow#window").await.expect("a store") {
        store.remove_blob("snow#window", &place).await.expect("removed");
    }
    for _ in 0..5 {
        laptop.sweep().await;
    }
    assert_eq!(laptop.lines().len(), 180, "the overlap holds all rows of this table");
}

#[tokio::test]
async fn a_wrong_local_clock_loses_no_row_and_holds_none_back_for_long() {
    // The instance lives in another year than this machine; then its clock steps back, and on again.
    let laptop = Laptop::new();
    laptop.api.set_clock("2031-05-05 05:05:05").expect("a time");
    laptop
        .api
        .generate(Generate { per_second: 2, start: Some("2031-05-05 05:00:00".to_owned()), ..Generate::rows("incident", 40) })
        .expect("rows");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.phase, report.rows), (Outcome::CaughtUp, Some(Phase::Stream), 40));
    assert!(report.lag_seconds.is_some_and(|lag| lag <= 2), "{report:?}");
    laptop.api.set_clock("2031-05-05 04:00:00").expect("a time");
    assert_eq!(laptop.sweep().await.rows, 0);
    laptop.api.set_clock("2031-05-05 06:00:00").expect("a time");
    laptop
        .api
        .generate(Generate { per_second: 2, start: Some("2031-05-05 05:30:00".to_owned()), ..Generate::rows("incident", 4) })
        .expect("rows");
    laptop.sweep().await;
    laptop.sweep().await;
    assert_eq!(laptop.lines().len(), 44);
}
