//! What a record looks like.

use serde_json::{Value, json};
use tablesweep::host::Host;
use tablesweep::sweep::Outcome;

use crate::laptop::{Laptop, Line};

/// The three recorded rows, swept with this display mode.
async fn change_requests(display: &str) -> Vec<Line> {
    let laptop = Laptop::new().with("snow.table.inc.name", "change_request").with("snow.table.inc.display.value", display);
    laptop.api.load_change_requests().expect("the recorded rows");
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.outcome), (3, Outcome::CaughtUp), "{report:?}");
    laptop.lines()
}

/// The recorded rows as they were recorded: all fields with raw and display values, but the ids, which the recording
/// has made one.
fn recorded() -> Vec<Value> {
    let text = include_str!("../../testbed/data/change_request.display_all.json");
    let body: Value = serde_json::from_str(text).expect("recorded JSON");
    let mut rows = body["result"].as_array().expect("rows").clone();
    rows.sort_by_key(|row| row["sys_updated_on"]["value"].to_string());
    rows.iter_mut().for_each(|row| drop(row.as_object_mut().expect("a row").remove("sys_id")));
    rows
}

#[tokio::test]
async fn real_rows_arrive_raw() {
    for (line, row) in change_requests("false").await.iter().zip(recorded()) {
        for (name, field) in row.as_object().expect("a row") {
            assert_eq!(line.value[name], field["value"], "{name}");
        }
        assert_eq!(line.value["sys_id"], line.key.as_str());
    }
}

#[tokio::test]
async fn real_rows_arrive_with_raw_and_display_values() {
    for (line, row) in change_requests("all").await.iter().zip(recorded()) {
        for (name, field) in row.as_object().expect("a row") {
            assert_eq!(line.value[name]["value"], field["value"], "{name}");
            assert_eq!(line.value[name]["display_value"], field["display_value"], "{name}");
            assert!(line.value[name].get("link").is_none(), "links are left out by default");
        }
        assert_eq!(line.value["sys_id"]["value"], line.key.as_str());
    }
}

#[tokio::test]
async fn real_rows_arrive_with_display_values_and_a_raw_cursor() {
    for (line, row) in change_requests("true").await.iter().zip(recorded()) {
        for (name, field) in row.as_object().expect("a row") {
            let is_cursor = ["sys_updated_on", "sys_mod_count"].contains(&name.as_str());
            assert_eq!(line.value[name], field[if is_cursor { "value" } else { "display_value" }], "{name}");
        }
    }
}

#[tokio::test]
async fn a_record_has_key_timestamp_and_the_five_headers() {
    let laptop = Laptop::new();
    laptop.generate(1, 1);
    let before = Host::system().now_ms();
    laptop.sweep().await;
    let line = &laptop.lines()[0];
    assert_eq!((line.topic.as_str(), line.key.as_str()), ("snow.incident", line.value["sys_id"].as_str().expect("an id")));
    assert_eq!(line.timestamp, 1_769_904_000_000, "2026-02-01 00:00:00");
    let headers = line.headers.as_object().expect("headers");
    assert_eq!(headers.len(), 5);
    assert_eq!(headers["snow.table"], "incident");
    assert_eq!(headers["snow.instance"], "127.0.0.1");
    assert_eq!(headers["snow.source.operation"], "UPSERT");
    assert_eq!(headers["snow.schema.mode"], "schemaless");
    let extracted: i64 = headers["snow.extracted_at"].as_str().expect("text").parse().expect("digits");
    assert!((before..before + 60_000).contains(&extracted));
}

#[tokio::test]
async fn an_envelope_wraps_the_row_and_nothing_else_changes() {
    let laptop = Laptop::new().with("snow.source.emit.envelope", true);
    laptop.generate(1, 1);
    laptop.sweep().await;
    let line = &laptop.lines()[0];
    assert_eq!(line.value["before"], Value::Null);
    assert_eq!(line.value["after"]["sys_id"], line.key.as_str());
    assert_eq!(line.value["source"], json!({"table": "incident", "instance": "127.0.0.1"}));
    assert_eq!((&line.value["op"], &line.value["ts_ms"]), (&json!("u"), &json!(line.timestamp)));
}

#[tokio::test]
async fn a_projection_asks_for_the_modification_count_too() {
    let laptop = Laptop::new().with("snow.table.inc.fields", "sys_id,sys_updated_on,number");
    laptop.generate(2, 1);
    laptop.sweep().await;
    let mut names: Vec<_> = laptop.lines()[0].value.as_object().expect("a row").keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["number", "sys_id", "sys_mod_count", "sys_updated_on"]);
}
