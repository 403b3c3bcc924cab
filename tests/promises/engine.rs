//! The engine: one writer per table, tables that do not disturb each other, runs that end in time.

mod leases;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tablesweep::assembly::{SOURCES, Selection};
use tablesweep::config::load;
use tablesweep::cursor::memory::MemoryStore;
use tablesweep::cursor::{Change, CursorStore, Phase, Standing, Write};
use tablesweep::delivery::ToOne;
use tablesweep::host::{Host, ManualClock};
use tablesweep::plan::Plan;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::sweep::{ByteBudget, Engine, LeasePlan, Mode, Outcome, Run, TableReport};
use tablesweep_testbed::table_api::{Credentials, Effect, Fault, Fields, Generate, Settings, TableApi};
use tokio::sync::watch;

use crate::laptop::{Laptop, PASSWORD};

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

/// Takes connections and answers nothing: longer than a run has time.
fn hangs() -> Fault {
    Fault::new(Effect::DelayHeaders { millis: 20_000 }).always()
}

#[tokio::test]
async fn an_instance_that_takes_connections_and_hangs_fails_its_tables_and_one_that_brought_rows_goes_on() {
    // Eight seconds are kept for the last page's acknowledgement and the release; more than ten are left for the instance.
    let with = |probe: bool, timeout: u64| {
        let mut laptop = Laptop::new()
            .with("snow.source.batch.size", 64)
            .with("snow.source.startup.probe", probe)
            .with("snow.http.request.timeout.ms", timeout);
        laptop.max_time = Some(Duration::from_millis(19_500));
        laptop.generate(200, 3);
        laptop
    };
    let (silent, probed, impatient, late) = (with(false, 60_000), with(true, 60_000), with(false, 3_500), with(false, 60_000));
    for laptop in [&silent, &probed, &impatient] {
        laptop.api.fault(hangs());
    }
    late.api.fault(hangs().skip(1));
    let (silent_report, probed_report, impatient_report, late_report) =
        tokio::join!(silent.sweep(), probed.sweep(), impatient.sweep(), late.sweep());
    for report in [&silent_report, &probed_report, &impatient_report] {
        assert_eq!((report.outcome, code(report), report.rows), (Outcome::Failed, Some("Source.Unavailable"), 0), "{report:?}");
        let message = &report.reason.as_ref().expect("a reason").message;
        assert!(message.contains("no answer from the instance within 1") && message.contains("snow/inc"), "{message}");
    }
    assert_eq!(silent.item().await.progress.page_size, Some(32), "a query that is too slow looks the same");
    assert_eq!((late_report.outcome, code(&late_report), late_report.rows), (Outcome::More, None, 64), "{late_report:?}");
    for laptop in [&silent, &probed, &impatient, &late] {
        laptop.api.clear_faults();
        while laptop.sweep().await.outcome != Outcome::CaughtUp {}
        assert_eq!(laptop.versions(), laptop.expected());
    }
}

#[tokio::test]
async fn tables_that_change_hands_with_each_number_of_tasks_lose_no_row_and_no_cursor() {
    let clock = ManualClock::at(1_772_366_400_000);
    let mut laptop = many(6, 40);
    laptop.host = Host::with_clock(clock.clone());
    let mut owners = BTreeSet::new();
    for (round, tasks_max) in [1, 4, 2, 6, 3].into_iter().enumerate() {
        laptop.set("tasks.max", tasks_max);
        let documents = load(&laptop.documents(), SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
        let plan = Plan::of(&documents, &Selection::default(), Mode::Stream, None);
        assert_eq!(plan.tasks.iter().map(|task| task.tables.len()).sum::<usize>(), 6);
        for task in plan.tasks {
            owners.extend(task.tables.iter().filter(|alias| *alias == "t3").map(|_| task.task));
            laptop.selection = Selection { connectors: vec![task.connector], tables: task.tables };
            for report in laptop.sweep_all().await {
                let expected = if round == 0 { 40 } else { 1 };
                assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, expected), "{tasks_max} tasks: {report:?}");
            }
        }
        for alias in 0..6 {
            laptop.api.insert(&format!("u_t{alias}"), Fields::from([("number", format!("{round}"))])).expect("a row");
        }
        clock.advance(Duration::from_secs(60));
        laptop.api.step_clock(60);
    }
    assert!(owners.len() > 1, "a table moved: {owners:?}");
}

#[tokio::test]
async fn a_login_that_is_refused_to_one_connector_keeps_no_other_from_the_instance() {
    let clock = ManualClock::at(1_772_366_400_000);
    let mut laptop = Laptop::new().with("snow.source.poll.interval.ms", 1);
    let credentials = Credentials { basic: Some(("sweep".to_owned(), PASSWORD.to_owned())), ..Credentials::default() };
    laptop.api = TableApi::start_with(([127, 0, 0, 1], 0).into(), Settings::default(), credentials).expect("the simulator");
    laptop.api.set_clock("2026-03-01 12:00:00").expect("a time");
    laptop.generate(5, 1);
    let url = laptop.api.url();
    laptop.set("snow.url", &url);
    laptop.host = Host::with_clock(clock.clone());
    laptop.scheduled = true;
    let other = serde_json::json!({"name": "other", "config": {
        "connector.class": "servicenow", "snow.url": url, "snow.auth.username": "another", "snow.auth.password": "wrong-9",
        "snow.tables": "prb", "snow.table.prb.name": "problem", "snow.table.prb.topic": "t",
        "snow.source.startup.probe": "false", "snow.source.poll.interval.ms": "1",
    }});
    std::fs::write(laptop.documents().join("connectors/other.json"), other.to_string()).expect("a document");
    // The pause of the refused one doubles: tries in the minutes 0, 1, 3 and 7.
    let mut tried = Vec::new();
    for minute in 0..8 {
        laptop.api.clear_log();
        let reports = laptop.sweep_all().await;
        let [refused, good] = &reports[..] else { panic!("{reports:?}") };
        assert_eq!((good.outcome, code(good)), (Outcome::CaughtUp, None), "minute {minute}: {good:?}");
        assert_eq!((refused.outcome, code(refused)), (Outcome::Parked, Some("Source.Unauthorized")), "minute {minute}: {refused:?}");
        assert!(refused.reason.as_ref().expect("a reason").message.contains("other/prb"), "{refused:?}");
        if !laptop.api.reads("problem").is_empty() {
            tried.push(minute);
        }
        clock.advance(Duration::from_millis(60_001));
        laptop.api.step_clock(60);
    }
    assert_eq!(tried, [0, 1, 3, 7]);
    for (place, _) in laptop.store().await.list_blobs("@127.0.0.1").await.expect("a store") {
        assert!(!place.contains("another") && !place.contains("wrong"), "{place} names nobody");
    }
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
async fn a_backfill_goes_on_with_the_next_tick_whatever_the_interval() {
    let mut laptop = Laptop::new().with("snow.source.poll.interval.ms", 3_600_000).with("snow.source.batch.size", 10);
    laptop.generate(50, 1);
    laptop.scheduled = true;
    laptop.max_rows = Some(20);
    for _ in 0..2 {
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::More, 20), "{report:?}");
    }
    let last = laptop.sweep().await;
    assert_eq!((last.outcome, last.rows), (Outcome::CaughtUp, 10), "{last:?}");
    assert_eq!(laptop.sweep().await.outcome, Outcome::Skipped, "and then it has its interval");
}

/// A table of a long interval that grew by more than one sweep takes, and one whose instance was away for a moment.
#[tokio::test]
async fn a_sweep_that_was_cut_or_failed_goes_on_with_the_next_tick_whatever_the_interval() {
    let mut laptop = Laptop::new().with("snow.source.poll.interval.ms", 3_600_000).with("snow.source.batch.size", 10);
    laptop.generate(5, 1);
    laptop.sweep().await;
    let later = Generate { start: Some("2026-02-01 00:01:00".to_owned()), per_second: 1, ..Generate::rows("incident", 30) };
    laptop.api.generate(later).expect("rows");
    laptop.max_rows = Some(20);
    let cut = laptop.sweep().await;
    assert_eq!((cut.outcome, cut.rows, cut.phase), (Outcome::More, 20, Some(Phase::Stream)), "{cut:?}");
    laptop.scheduled = true;
    laptop.api.fault(Fault::status(503, "busy").always());
    let failed = laptop.sweep().await;
    assert_eq!((failed.outcome, code(&failed)), (Outcome::Failed, Some("Source.Unavailable")), "{failed:?}");
    laptop.api.clear_faults();
    let last = laptop.sweep().await;
    assert_eq!((last.outcome, last.rows), (Outcome::CaughtUp, 10), "{last:?}");
    assert_eq!(laptop.sweep().await.outcome, Outcome::Skipped, "and then it has its interval");
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

/// The lease is of a store that looks at clocks, as DynamoDB does.
#[tokio::test]
async fn a_sweep_that_was_frozen_for_longer_than_its_lease_is_refused_when_it_wakes() {
    let clock = ManualClock::at(1_772_366_400_000);
    let host = Host::with_clock(clock.clone());
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(100, 3);
    let store: Arc<dyn CursorStore> = Arc::new(MemoryStore::with_host(host.clone()));
    let file = ToOne(Arc::new(NdjsonSink::open(laptop.path("out.ndjson")).expect("a file")));
    let (_stop, stop) = watch::channel(false);
    let sweep = async || {
        let (jobs, refused) = laptop.assembly(&host).jobs(&laptop.selection, &file).await;
        assert!(refused.is_empty(), "{refused:?}");
        let engine = Engine::new(host.clone(), Arc::clone(&store), ByteBudget::of_memory(laptop.memory));
        let lease = LeasePlan::Until(host.now_ms() + 60_000);
        let run = Run { mode: Mode::Stream, scheduled: false, deadline: None, max_rows: None, lease, stop: stop.clone() };
        engine.run(jobs, &run).await.remove(0)
    };
    // Its fourth page comes when another sweep has had the table.
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 3_000 }).skip(3).times(1));
    let other = async {
        while laptop.lines().len() < 30 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clock.advance(Duration::from_secs(61));
        sweep().await
    };
    let (frozen, other) = tokio::join!(sweep(), other);
    assert_eq!((other.outcome, code(&other)), (Outcome::CaughtUp, None), "{other:?}");
    assert_eq!((frozen.outcome, code(&frozen)), (Outcome::Failed, Some("Cursor.Conflict")), "{frozen:?}");
    let delivered = laptop.versions();
    assert!(delivered.len() <= 120, "two pages twice at most: {}", delivered.len());
    assert_eq!(BTreeSet::from_iter(delivered), BTreeSet::from_iter(laptop.expected()));
    let last = sweep().await;
    assert_eq!((last.outcome, last.rows), (Outcome::CaughtUp, 0), "the cursor is the other's: {last:?}");
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
