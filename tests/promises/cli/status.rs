//! `status`: is it up to date?

use super::bed::Bed;

#[test]
fn status_follows_a_table_through_its_life() {
    let bed = Bed::new(100);
    let never = bed.status();
    assert_eq!((&never["state"], &never["cursor"], &never["rows"]), (&"never_swept".into(), &serde_json::Value::Null, &0.into()));
    assert!(!bed.path("tablesweep.db").exists(), "a look makes no database");

    bed.sweep(&["--max-rows", "50"]).expect(0);
    let behind = bed.status();
    assert_eq!((&behind["state"], &behind["phase"], &behind["rows"]), (&"active".into(), &"backfill".into(), &50.into()));

    bed.sweep(&[]).expect(0);
    let there = bed.status();
    assert_eq!((&there["phase"], &there["rows"], &there["last_rows"]), (&"stream".into(), &100.into(), &50.into()));
    assert_eq!(there["cursor"]["timestamp"], "2026-01-01 00:00:04");
    assert!(there["lag_seconds"].as_i64().is_some_and(|lag| lag < 90), "a table that is caught up is up to date: {there}");
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("snow/inc") && text.contains("2026-01-01 00:00:04"), "{text}");
}

#[test]
fn a_table_behind_shows_how_far() {
    let bed = Bed::new(100);
    bed.api.set_clock("2026-01-01 02:00:00").expect("a time");
    bed.sweep(&["--max-rows", "50"]).expect(0);
    let lag = bed.status()["lag_seconds"].as_i64().expect("a lag");
    // By the instance's clock, which the status knows from the last answer: two hours less the seconds of the rows.
    assert!((7_190..7_300).contains(&lag), "{lag}");
}

#[test]
fn hidden_and_suppressed_rows_are_counted() {
    let bed = Bed::new(100);
    bed.api.hide_when("incident", |field| field("number").is_some_and(|number| number.ends_with('7'))).expect("hidden");
    bed.sweep(&[]).expect(0);
    bed.insert("2026-01-01 00:00:04");
    bed.sweep(&[]).expect(0);
    let status = bed.status();
    assert_eq!((&status["rows"], &status["hidden"]), (&91.into(), &10.into()));
    assert!(status["suppressed"].as_u64() > Some(0), "the overlap was read again: {status}");
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("10 hidden"), "{text}");
}

#[test]
fn a_cursor_that_no_document_has_any_more_is_listed() {
    let mut bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    bed.set("snow.table.inc.query", "active=true");
    let answer = bed.run(&["status", "--output", "json"]).expect(0).json();
    assert_eq!((&answer["orphans"][0]["why"], &answer["orphans"][0]["rows"]), (&"changed_query".into(), &10.into()));
    assert_eq!((&answer["tables"][0]["state"], &answer["tables"][0]["changed_query"]), (&"never_swept".into(), &true.into()));
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("the query changed"), "{text}");

    for (key, setting) in [("snow.table.other.name", "incident"), ("snow.table.other.topic", "t"), ("snow.tables", "other")] {
        bed.set(key, setting);
    }
    let config = bed.config.as_object_mut().expect("an object");
    config.retain(|key, _| !key.starts_with("snow.table.inc."));
    bed.set("tasks.max", "1");
    let answer = bed.run(&["status", "--output", "json"]).expect(0).json();
    assert_eq!((&answer["orphans"][0]["table"], &answer["orphans"][0]["why"]), (&"inc".into(), &"no_document".into()));
}

#[test]
fn a_cursor_of_a_connector_that_no_document_has_any_more_is_listed() {
    let bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    bed.document("another", &bed.config);
    std::fs::remove_file(bed.path("config/connectors/snow.json")).expect("its document");
    let answer = bed.run(&["status", "--output", "json"]).expect(0).json();
    let orphan = &answer["orphans"][0];
    assert_eq!((&orphan["connector"], &orphan["why"], &orphan["rows"]), (&"snow".into(), &"no_document".into(), &10.into()), "{answer}");
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("snow/inc"), "{text}");
}
