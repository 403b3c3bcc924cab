//! Timestamps that are missing, do not move, or go back.

use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::Fields;

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
