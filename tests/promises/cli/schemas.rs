//! Every JSON that this project reads or writes has a schema, and keeps to it.

use std::path::Path;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::bed::{Bed, lines};

fn schema(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn validator(name: &str) -> Validator {
    jsonschema::draft202012::new(&schema(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
pub(super) fn keeps(name: &str, value: &Value) {
    let faults: Vec<String> = validator(name).iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{name}: {faults:#?}\n{value:#}");
}

#[track_caller]
fn breaks(name: &str, value: &Value) {
    assert!(!validator(name).is_valid(value), "{name} takes {value}");
}

const ALL: [&str; 9] =
    ["fan-out-in", "fan-out-out", "sweep-in", "sweep-out", "check", "status", "ndjson-line", "cursor-show", "cursor-export-line"];

#[test]
fn every_schema_names_all_fields_of_its_objects() {
    fn walk(name: &str, at: &Value) {
        if at["type"] == "object" {
            let is_strict =
                at["additionalProperties"] == false || (at.get("properties").is_none() && at.get("additionalProperties").is_some());
            let is_foreign = name == "fan-out-in" && at.get("properties").is_none();
            assert!(is_strict || is_foreign, "{name}: {at}");
        }
        match at {
            Value::Object(fields) => fields.values().for_each(|field| walk(name, field)),
            Value::Array(items) => items.iter().for_each(|item| walk(name, item)),
            _ => {}
        }
    }
    for name in ALL {
        validator(name);
        walk(name, &schema(name));
    }
}

#[test]
fn what_the_command_line_prints_keeps_to_its_schema() {
    let mut bed = Bed::new(50);
    keeps("status", &bed.run(&["status", "--output", "json"]).expect(0).json());
    keeps("cursor-show", &bed.run(&["cursor", "show", "--output", "json"]).expect(0).json());
    keeps("sweep-out", &bed.sweep(&[]).expect(0).json());
    for line in lines(&bed.path("rows.ndjson")) {
        keeps("ndjson-line", &line);
    }
    bed.run(&["cursor", "rewind", "--table", "inc", "--to", "2026-01-01 00:00:00", "--yes"]).expect(0);
    bed.run(&["cursor", "pause", "--table", "inc", "--yes"]).expect(0);
    keeps("sweep-out", &bed.sweep(&[]).expect(1).json());
    keeps("status", &bed.run(&["status", "--output", "json"]).expect(0).json());
    keeps("cursor-show", &bed.run(&["cursor", "show", "--output", "json"]).expect(0).json());
    let exported = bed.run(&["cursor", "export"]).expect(0).stdout;
    assert_eq!(exported.lines().count(), 1);
    keeps("cursor-export-line", &serde_json::from_str(&exported).expect("JSON"));
    keeps("check", &bed.run(&["check", "--output", "json"]).expect(0).json());
    keeps("fan-out-out", &bed.run(&["plan", "--output", "json"]).expect(0).json());
    bed.set("snow.table.inc.query", "active=true");
    keeps("status", &bed.run(&["status", "--output", "json"]).expect(0).json());
    keeps("check", &bed.run(&["check", "--output", "json"]).expect(0).json());
    bed.set("snow.source.schema.mode", "strings");
    keeps("check", &bed.run(&["check", "--output", "json"]).expect(0).json());
    bed.set("snow.sources.schema.mode", "strings");
    keeps("check", &bed.run(&["check", "--output", "json"]).expect(2).json());
}

#[test]
fn the_events_of_the_functions_are_told_from_what_is_none() {
    keeps("fan-out-in", &json!({}));
    keeps(
        "fan-out-in",
        &json!({"mode": "catch-up", "tables": ["snow/inc"], "from": "2026-01-01 00:00:00", "request_id": "r", "dispatch": "return"}),
    );
    let tick = json!({"version": "0", "id": "i", "detail-type": "Scheduled Event", "source": "aws.events", "account": "1",
        "time": "2026-01-01T00:00:00Z", "region": "eu-central-1", "resources": [], "detail": {}});
    keeps("fan-out-in", &tick);
    for wrong in [json!({"modes": "stream"}), json!({"mode": "fast"}), json!({"from": "2026-01-01"}), json!([]), json!({"tables": "inc"})] {
        breaks("fan-out-in", &wrong);
    }
    let task = json!({"connector": "snow", "task": 0, "tasks": 1, "tables": ["inc"], "tick": "2026-01-01T00:00:00Z", "mode": "stream"});
    keeps("sweep-in", &task);
    for (field, wrong) in [("tables", json!([])), ("task", json!(-1)), ("mode", json!("fast")), ("extra", json!(1))] {
        let mut broken = task.clone();
        broken[field] = wrong;
        breaks("sweep-in", &broken);
    }
}

#[test]
fn a_record_of_bytes_keeps_to_the_schema_and_one_without_a_value_does_not() {
    let record = json!({"topic": "t", "key_base64": "AA==", "timestamp": null, "headers": {}, "value": null});
    keeps("ndjson-line", &record);
    keeps("ndjson-line", &json!({"topic": "t", "key": "k", "timestamp": 1, "headers": {"a": "b"}, "value_base64": "AA=="}));
    for wrong in [
        json!({"topic": "t", "key": "k", "timestamp": 1, "headers": {}}),
        json!({"topic": "t", "key": "k", "key_base64": "", "timestamp": 1, "headers": {}, "value": 1}),
        json!({"topic": "t", "key": "k", "timestamp": 1, "headers": {"a": 1}, "value": 1}),
    ] {
        breaks("ndjson-line", &wrong);
    }
}
