//! Timestamps that are missing, do not move, or go back.

use tablesweep::cursor::{Change, Import, Write};
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::{Fault, Fields};

use crate::laptop::Laptop;

fn code(report: &TableReport) -> Option<&str> {
    report.reason.as_ref().map(|reason| reason.code.as_str())
}

fn at(second: &str, number: &str) -> Fields {
    Fields::from([("sys_updated_on", second), ("number", number)])
}

/// Report 11: a table has no sys_updated_on. Report 40: a log is swept by a time that its rows do not have, and rows are missed.
#[tokio::test]
async fn a_table_without_the_time_that_it_is_swept_by_says_so_and_is_swept_by_its_creation() {
    for without in [true, false] {
        let mut laptop = Laptop::new().with("snow.table.inc.name", "sys_audit_delete");
        // Either the column is not there, or it is empty in every row.
        laptop.api.create_without("sys_audit_delete", &[], if without { &["sys_updated_on"] } else { &[] }).expect("a table");
        let row = |n: usize| {
            let fields = Fields::from([("sys_created_on", format!("2026-02-01 00:00:{n:02}"))]);
            if without { fields } else { fields.with("sys_updated_on", "") }
        };
        laptop.api.load("sys_audit_delete", (0..20).map(row).collect()).expect("rows");
        let report = laptop.sweep().await;
        if report.outcome == Outcome::Parked {
            let message = report.reason.expect("a reason").message;
            assert!(message.contains("sys_updated_on") && message.contains("sys_audit_delete"), "{message}");
        } else {
            // An empty field passes no condition on it: the instance has no such rows for us, and counts none.
            assert!(!without && report.rows == 0, "{report:?}");
        }
        laptop.set("snow.table.inc.timestamp.field", "sys_created_on");
        laptop.set("snow.table.inc.topic", "again");
        std::fs::remove_file(laptop.path("cursors.db")).expect("the store");
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 20), "{report:?}");
    }
}

/// Report 15: the profile of the integration user has no time zone, which is normal.
#[tokio::test]
async fn a_user_without_a_time_zone_is_no_fault() {
    let laptop = Laptop::new();
    laptop.api.load("sys_user", vec![Fields::from([("user_name", "sweep"), ("time_zone", "")])]).expect("a user");
    laptop.generate(5, 1);
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows, code(&report)), (Outcome::CaughtUp, 5, None), "{report:?}");
}

/// Report 41: a script changed rows and left their timestamp alone. No poller can see that; a rewind delivers it.
#[tokio::test]
async fn a_change_that_leaves_the_timestamp_alone_comes_with_a_rewind_and_not_before() {
    let laptop = Laptop::new();
    let ids = laptop.api.load("incident", vec![at("2026-02-01 00:00:00", "old"), at("2026-02-01 09:00:00", "last")]).expect("rows");
    laptop.sweep().await;
    let silent = [("sys_updated_on", "2026-02-01 00:00:00"), ("sys_mod_count", "1"), ("number", "new")];
    laptop.api.update("incident", &ids[0], silent.into()).expect("an update");
    laptop.api.step_clock(60);
    assert_eq!(laptop.sweep().await.rows, 0, "nothing tells that it changed");
    laptop.rewind("2026-01-01 00:00:00").await;
    laptop.sweep().await;
    assert!(laptop.lines().iter().any(|line| line.value["number"] == "new"));
}

/// An instance is cloned over another: what was delivered is gone, and the cursor stands where no row is.
#[tokio::test]
async fn a_cursor_ahead_of_the_data_is_reported_once_and_costs_no_more_than_that() {
    for (crowd, overlap) in [(1, 2), (1, 0), (40, 2)] {
        let laptop = Laptop::new().with("snow.source.batch.size", 20).with("snow.source.overlap.seconds", overlap);
        laptop.api.load("incident", vec![at("2026-02-01 00:00:00", "kept")]).expect("a row");
        laptop.api.load("incident", (0..crowd).map(|_| at("2026-02-20 12:00:00", "lost")).collect()).expect("rows");
        while laptop.sweep().await.rows > 0 {}
        laptop.api.clear_log();
        let idle = laptop.sweep().await;
        let idle_cost = idle.requests;
        assert_eq!(code(&idle), None, "{idle:?}");

        for (_, id, _) in laptop.expected().into_iter().skip(1) {
            laptop.api.delete("incident", &id).expect("a clone has no such row");
        }
        laptop.api.step_clock(5);
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, Some("Source.CursorAhead")), "{crowd} {overlap}: {report:?}");
        let message = report.reason.expect("a reason").message;
        for word in ["snow/inc", "incident", "2026-02-20 12:00:00", "2026-02-01 00:00:00", "cursor rewind"] {
            assert!(message.contains(word), "{word:?}: {message}");
        }
        for _ in 0..5 {
            laptop.api.step_clock(5);
            let next = laptop.sweep().await;
            assert_eq!((code(&next), next.rows), (None, 0));
            assert!(next.requests <= idle_cost, "looked for once: {next:?}");
            assert_eq!(laptop.item().await.progress.notes.get("remark").map(String::as_str), Some("Source.CursorAhead"), "status shows it");
        }
        laptop.api.load("incident", vec![at("2026-03-01 11:59:00", "new")]).expect("a row");
        laptop.api.step_clock(60);
        laptop.sweep().await;
        assert_eq!(laptop.lines().last().expect("a line").value["number"], "new", "the sweep goes on");
        assert_eq!(laptop.item().await.progress.notes.get("remark"), None);
    }
}

/// The instance's clock ran ahead while a row was stamped, and was set right. What is written then lies behind the cursor.
#[tokio::test]
async fn a_cursor_ahead_of_the_instances_clock_is_said_for_as_long_as_it_is_so() {
    let laptop = Laptop::new();
    laptop.api.set_clock("2026-03-01 15:00:00").expect("a time");
    laptop.api.insert("incident", Fields::from([("number", "ahead")])).expect("a row");
    laptop.api.step_clock(60);
    assert_eq!(laptop.sweep().await.rows, 1);
    let seen = laptop.item().await.progress.swept_to_ms;
    laptop.api.set_clock("2026-03-01 12:00:00").expect("a time");
    laptop.api.insert("incident", Fields::from([("number", "behind")])).expect("a row");
    for _ in 0..3 {
        laptop.api.step_clock(60);
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::CaughtUp, Some("Source.CursorInFuture"), 0), "{report:?}");
        let message = report.reason.expect("a reason").message;
        for word in ["snow/inc", "incident", "2026-03-01 15:00:00", "2 h ahead", "2026-03-01 12:0", "cursor rewind"] {
            assert!(message.contains(word), "{word:?}: {message}");
        }
        let progress = laptop.item().await.progress;
        assert_eq!(progress.notes.get("remark").map(String::as_str), Some("Source.CursorInFuture"), "status shows it");
        assert_eq!(progress.swept_to_ms, seen, "nothing was seen, so the lag grows");
    }
    laptop.rewind("2026-03-01 12:00:00").await;
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, code(&report), report.rows), (Outcome::CaughtUp, None, 1), "what the message says to do: {report:?}");
    assert_eq!(laptop.item().await.progress.notes.get("remark"), None);
    // The row of the wrong time comes when its time does.
    laptop.api.set_clock("2026-03-01 15:01:00").expect("a time");
    // The first sweep goes by what was known of the clock.
    laptop.sweep().await;
    laptop.sweep().await;
    let numbers: Vec<String> = laptop.lines().iter().map(|line| line.value["number"].as_str().expect("a number").to_owned()).collect();
    assert_eq!(numbers, ["ahead", "behind", "ahead"]);
}

#[tokio::test]
async fn a_start_in_the_future_is_said_too_and_a_clock_that_is_seconds_off_is_not() {
    let laptop = Laptop::new().with("snow.table.inc.start.timestamp", "2999-01-01 00:00:00");
    laptop.generate(5, 1);
    let report = laptop.sweep().await;
    assert_eq!((code(&report), report.rows), (Some("Source.CursorInFuture"), 0), "{report:?}");

    let laptop = Laptop::new();
    laptop.api.load("incident", vec![at("2026-03-01 11:59:58", "last")]).expect("a row");
    laptop.sweep().await;
    laptop.api.step_clock(-8);
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, code(&report), report.rows), (Outcome::CaughtUp, None, 0), "{report:?}");
}

/// The last sweep was one of a machine whose clock is wrong: the first request of the next one ends before the cursor.
#[tokio::test]
async fn a_range_that_ends_before_the_cursor_says_nothing_of_the_rows_there() {
    let laptop = Laptop::new();
    laptop.api.load("incident", (0..10).map(|n| at(&format!("2026-03-01 11:59:{:02}", 40 + n), "x")).collect()).expect("rows");
    laptop.sweep().await;
    let idle = laptop.sweep().await;
    let mut item = laptop.item().await;
    let difference = item.progress.clock_difference_ms.expect("the instance told its time");
    item.progress.clock_difference_ms = Some(difference - 600_000);
    item.progress.phase = tablesweep::cursor::Phase::Stream;
    let key = item.identity.key();
    let change = Change::Import(Import { item, now_ms: laptop.host.now_ms() });
    laptop.store().await.write(&key, &Write { id: laptop.host.nonce(), change }).await.expect("an import");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, code(&report), report.requests), (Outcome::CaughtUp, None, idle.requests), "{report:?}");
    let item = laptop.item().await;
    assert_eq!(item.progress.notes.get("remark"), None);
    // The instance's clock stands still here, and ours goes on.
    let off = item.progress.clock_difference_ms.expect("it told its time again") - difference;
    assert!((-60_000..=0).contains(&off), "the clock is right again: {off} ms");
}

/// "Never", as instances write it, lies above every high-water mark, and parks nothing.
#[tokio::test]
async fn a_row_of_the_last_second_of_all_is_left_for_later_like_any_other_row_of_the_future() {
    let laptop = Laptop::new();
    laptop.api.load("incident", vec![at("2026-02-01 00:00:00", "good"), at("9999-12-31 23:59:59", "never")]).expect("rows");
    for rows in [1, 0, 0] {
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::CaughtUp, None, rows), "{report:?}");
        laptop.api.step_clock(60);
    }
    assert_eq!(laptop.lines()[0].value["number"], "good");
}

#[tokio::test]
async fn an_empty_or_a_hidden_table_is_not_taken_for_a_clone() {
    let laptop = Laptop::new();
    laptop.generate(10, 1);
    laptop.sweep().await;
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    laptop.api.hide("incident", ids.clone()).expect("hidden");
    assert_eq!(code(&laptop.sweep().await), None, "rows that are hidden are there");
    laptop.api.unhide_all("incident").expect("shown");
    for id in ids {
        laptop.api.delete("incident", &id).expect("a row");
    }
    assert_eq!(code(&laptop.sweep().await), None, "a table that was emptied has nothing to be compared with");
}

/// The newest row changes within the safety lag: the sweep does not see it where it was, and not yet where it is.
#[tokio::test]
async fn a_newest_row_that_has_only_changed_a_moment_ago_is_no_clone() {
    for ago in [0, 1] {
        let laptop = Laptop::new().with("snow.source.safety.lag.seconds", 2);
        laptop.api.load("incident", (0..5).map(|n| at(&format!("2026-03-01 10:00:0{n}"), "old")).collect()).expect("rows");
        laptop.api.load("incident", vec![at("2026-03-01 11:00:00", "newest")]).expect("a row");
        let (_, id, _) = laptop.expected().pop().expect("rows");
        for _ in 0..2 {
            laptop.api.step_clock(60);
            laptop.sweep().await;
        }
        laptop.api.step_clock(60);
        laptop.api.update("incident", &id, Fields::new()).expect("an update");
        laptop.api.step_clock(ago);
        laptop.api.clear_log();
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::CaughtUp, None, 0), "{report:?}");
        assert!(laptop.api.log().iter().any(|entry| entry.query.contains("ORDERBYDESC")), "it was looked for");
        assert_eq!(laptop.item().await.progress.notes.get("remark"), None);
        laptop.api.step_clock(60);
        // The first sweep goes by what was known of the clock.
        laptop.sweep().await;
        let report = laptop.sweep().await;
        assert_eq!((code(&report), laptop.lines().len()), (None, 7), "{report:?}");
    }
}

/// The look for older rows is the last request of a sweep that is through, whatever becomes of it.
#[tokio::test]
async fn a_look_that_the_allowance_denies_takes_nothing_from_the_sweep() {
    let laptop = Laptop::new();
    laptop.api.load("incident", vec![at("2026-02-01 00:00:00", "kept"), at("2026-02-20 12:00:00", "lost")]).expect("rows");
    while laptop.sweep().await.rows > 0 {}
    let (_, id, _) = laptop.expected().pop().expect("rows");
    laptop.api.delete("incident", &id).expect("a row");
    laptop.api.step_clock(5);
    laptop.api.fault(Fault::status(429, "spent").header("Retry-After", "1800").header("X-RateLimit-Limit", "100").query("ORDERBYDESC"));
    let report = laptop.sweep().await;
    assert_eq!(laptop.api.pending_faults(), 0, "the look was denied");
    assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, None), "{report:?}");
}
