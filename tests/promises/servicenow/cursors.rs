//! What a document says about where a table begins, and what it may change without losing its place.

use tablesweep::sweep::Outcome;

use crate::laptop::Laptop;

#[tokio::test]
async fn a_table_begins_at_its_start_timestamp_and_only_once() {
    let mut laptop = Laptop::new().with("snow.table.inc.start.timestamp", "2026-02-01 00:00:05");
    laptop.generate(10, 1);
    assert_eq!(laptop.sweep().await.rows, 5, "the second of the start is in");
    assert_eq!(laptop.versions(), laptop.expected()[5..]);
    laptop.set("snow.table.inc.start.timestamp", "2026-01-01 00:00:00");
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.reason), (0, None), "it counts only while there is no cursor");
}

#[tokio::test]
async fn what_only_changes_how_rows_look_keeps_the_cursor() {
    for (key, value) in [
        ("snow.table.inc.fields", "sys_id,sys_updated_on,number"),
        ("snow.table.inc.display.value", "all"),
        ("snow.table.inc.exclude.reference.link", "false"),
        ("snow.table.inc.topic", "another"),
        ("snow.table.inc.batch.size", "7"),
        ("snow.source.poll.interval.ms", "60000"),
        ("snow.source.overlap.seconds", "9"),
        ("snow.source.emit.envelope", "true"),
    ] {
        let mut laptop = Laptop::new();
        laptop.generate(10, 1);
        laptop.sweep().await;
        laptop.set(key, value);
        laptop.api.step_clock(60);
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows, report.reason), (Outcome::CaughtUp, 0, None), "{key}");
    }
}

#[tokio::test]
async fn a_changed_query_is_said_by_the_sweep_that_begins_anew() {
    for (key, value) in [("snow.table.inc.query", "active=true^ORactive=false"), ("snow.table.inc.query.domain", "false")] {
        let mut laptop = Laptop::new();
        laptop.generate(10, 1);
        assert_eq!(laptop.sweep().await.reason, None, "the first sweep of all is no change");
        laptop.set(key, value);
        let report = laptop.sweep().await;
        let reason = report.reason.clone().expect("a reason");
        assert_eq!((reason.code.as_str(), report.outcome), ("Cursor.ChangedQuery", Outcome::CaughtUp), "{report:?}");
        assert!(
            reason.message.contains("snow/inc (table incident)") && reason.message.contains("servicenow/127.0.0.1/incident/"),
            "{}",
            reason.message
        );
        laptop.api.step_clock(60);
        assert_eq!(laptop.sweep().await.reason, None, "it is said once");
    }
}
