//! Every mode, with and without envelope and schema, every type at its extremes.

use serde_json::{Value, json};
use tablesweep_testbed::connect::{self, Found, JsonSettings};
use tablesweep_testbed::table_api::{Cell, ColumnSpec, Fields, Kind};

use super::Stand;

/// A field, its type, and what rows hold there: the text that is sent, and what Connect finds in mode `typed`.
pub(super) type Field = (&'static str, &'static str, [(&'static str, &'static str); 3]);

/// Three rows: the lowest values, the highest, and none. What is found is JSON; see `connect::Found` for the classes.
pub(super) const FIELDS: &[Field] = &[
    ("u_string", "string", [("Zürich ☃ 𝄞", "\"Zürich ☃ 𝄞\""), ("a\"b\\c\n\t\u{1f}/", "\"a\\\"b\\\\c\\n\\t\\u001f/\""), ("", "\"\"")]),
    ("u_int8", "int8", [("-128", "\"Byte -128\""), ("127", "\"Byte 127\""), ("", "null")]),
    ("u_int16", "int16", [("-32768", "\"Short -32768\""), ("32767", "\"Short 32767\""), ("", "null")]),
    ("u_int32", "int32", [("-2147483648", "\"Integer -2147483648\""), ("2147483647", "\"Integer 2147483647\""), ("", "null")]),
    (
        "u_int64",
        "int64",
        [("-9223372036854775808", "\"Long -9223372036854775808\""), ("9223372036854775807", "\"Long 9223372036854775807\""), ("", "null")],
    ),
    ("u_float32", "float32", [("-3.4028235e38", "\"Float -3.4028235E38\""), ("0.1", "\"Float 0.1\""), ("", "null")]),
    (
        "u_float64",
        "float64",
        [("-1.7976931348623157e308", "\"Double -1.7976931348623157E308\""), ("5e-324", "\"Double 4.9E-324\""), ("", "null")],
    ),
    ("u_boolean", "boolean", [("false", "false"), ("true", "true"), ("", "null")]),
    ("u_bytes", "bytes", [("AP+A", "\"bytes 00ff80\""), ("/w==", "\"bytes ff\""), ("", "null")]),
    (
        "u_timestamp",
        "timestamp",
        [("0001-01-01 00:00:00", "\"date -62135596800000\""), ("9999-12-31 23:59:59", "\"date 253402300799000\""), ("", "null")],
    ),
    ("u_date", "date", [("0001-01-01", "\"date -62135596800000\""), ("9999-12-31", "\"date 253402214400000\""), ("", "null")]),
    ("u_time", "time", [("1970-01-01 00:00:00", "\"date 0\""), ("23:59:59", "\"date 86399000\""), ("", "null")]),
    (
        "u_decimal",
        "decimal(2)",
        [
            ("-999999999999999999999999999999999999.99", "\"decimal -99999999999999999999999999999999999999 scale 2\""),
            ("0.01", "\"decimal 1 scale 2\""),
            ("", "null"),
        ],
    ),
    ("u_tiny", "decimal(10)", [("0.0000000001", "\"decimal 1 scale 10\""), ("7", "\"decimal 70000000000 scale 10\""), ("", "null")]),
];

const SECONDS: [&str; 3] = ["2026-01-01 00:00:01", "2026-01-01 00:00:02", "2026-01-01 00:00:03"];

/// The rows' cursor timestamps in epoch milliseconds, one after the other.
const FIRST_MS: i64 = 1_767_225_601_000;

/// A column of texts.
pub(super) fn text_column(name: &str) -> ColumnSpec {
    ColumnSpec::new(name, Kind::Text)
}

/// An instance with the three rows, and their ids.
pub(super) async fn stand() -> (Stand, Vec<String>) {
    let stand = Stand::new().await;
    let mut columns: Vec<ColumnSpec> = FIELDS.iter().map(|(name, ..)| ColumnSpec::new(*name, Kind::Text)).collect();
    columns.push(ColumnSpec::new("u_null", Kind::Text));
    stand.api.create("u_all", &columns).expect("a table");
    let row = |at: usize| {
        let mut row: Fields = FIELDS.iter().map(|(name, _, cells)| (*name, Cell::new(cells[at].0))).collect();
        row.set("sys_updated_on", SECONDS[at]);
        row.set("u_null", Cell::new("").raw("null"));
        row
    };
    let ids = stand.api.load("u_all", (0..3).map(row).collect()).expect("rows");
    (stand, ids)
}

/// The keys of a document that sweeps the table into `topic`, in this mode.
pub(super) fn keys(topic: &str, mode: &str, envelope: bool) -> Value {
    let fields: Vec<&str> = FIELDS.iter().map(|(name, ..)| *name).chain(["sys_id", "sys_updated_on", "u_null"]).collect();
    let mut typed: Vec<String> = FIELDS.iter().map(|(name, kind, _)| format!("{name}:{kind}")).collect();
    typed.push("sys_id:string, sys_updated_on:timestamp, u_null:int32".to_owned());
    json!({
        "snow.tables": "all",
        "snow.table.all.name": "u_all",
        "snow.table.all.topic": topic,
        "snow.table.all.start.timestamp": "2026-01-01 00:00:00",
        "snow.table.all.fields": fields.join(","),
        "snow.source.schema.mode": mode,
        "snow.source.typed.fields": typed.join(","),
        "snow.source.emit.envelope": envelope.to_string(),
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    })
}

/// What Connect is to find in the row at this place, field by field, in this mode.
pub(super) fn expected(mode: &str, at: usize, id: &str) -> Value {
    let mut row = json!({});
    for (name, _, cells) in FIELDS {
        let (sent, found) = cells[at];
        row[*name] = if mode == "typed" { serde_json::from_str(found).expect("JSON") } else { sent.into() };
    }
    row["sys_id"] = id.into();
    let time = FIRST_MS + 1000 * i64::try_from(at).expect("small");
    row["sys_updated_on"] = if mode == "typed" { format!("date {time}").into() } else { SECONDS[at].into() };
    row["u_null"] = Value::Null;
    if mode != "typed" {
        row["sys_mod_count"] = "0".into();
    }
    row
}

pub(super) fn enveloped(row: Value, at: usize, instance: &str) -> Value {
    let time = FIRST_MS + 1000 * i64::try_from(at).expect("small");
    let source = json!({"table": "u_all", "instance": instance});
    json!({"before": null, "after": row, "source": source, "op": "u", "ts_ms": format!("Long {time}")})
}

/// The schema that Connect is to find for rows in this mode.
pub(super) fn row_schema(mode: &str, found: &Value, optional: bool) -> Value {
    let timestamp = json!({"type": "int64", "optional": true, "name": "org.apache.kafka.connect.data.Timestamp", "version": 1});
    let logical = |kind: &str, name: &str| json!({"type": kind, "optional": true, "name": format!("org.apache.kafka.connect.data.{name}"), "version": 1});
    let of = |kind: &str| match (mode, kind) {
        ("strings", _) => json!({"type": "string", "optional": true}),
        (_, "timestamp") => timestamp.clone(),
        (_, "date") => logical("int32", "Date"),
        (_, "time") => logical("int32", "Time"),
        (_, plain) => match plain.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')')) {
            Some(scale) => {
                let mut schema = logical("bytes", "Decimal");
                schema["parameters"] = json!({"scale": scale});
                schema
            }
            None => json!({"type": plain, "optional": true}),
        },
    };
    let mut fields: Vec<(String, Value)> = FIELDS.iter().map(|(name, kind, _)| ((*name).to_owned(), of(kind))).collect();
    let more = [("sys_id", "string"), ("sys_updated_on", "timestamp"), ("u_null", "int32")];
    fields.extend(more.map(|(name, kind)| (name.to_owned(), of(kind))));
    if mode == "strings" {
        fields.push(("sys_mod_count".to_owned(), of("string")));
        // They come in the order in which the instance names them.
        let place = |name: &str| found["fields"].as_array().expect("fields").iter().position(|field| field["field"] == name);
        fields.sort_by_key(|(name, _)| place(name));
    }
    let fields: Vec<Value> = fields.into_iter().map(|(field, schema)| json!({"field": field, "schema": schema})).collect();
    let mut schema = json!({"type": "struct", "optional": optional, "name": "sh.oso.servicenow.u_all.Value"});
    if mode == "strings" {
        schema["version"] = 1.into();
    }
    schema["fields"] = fields.into();
    schema
}

pub(super) fn envelope_schema(mode: &str, found: &Value) -> Value {
    let text = json!({"type": "string", "optional": false});
    let source = json!({
        "type": "struct", "optional": false, "name": "sh.oso.servicenow.Source",
        "fields": [{"field": "table", "schema": text}, {"field": "instance", "schema": text}],
    });
    let row = &found["fields"][1]["schema"];
    let mut schema = json!({"type": "struct", "optional": false, "name": "sh.oso.servicenow.u_all.Envelope"});
    if mode == "strings" {
        schema["version"] = 1.into();
    }
    schema["fields"] = json!([
        {"field": "before", "schema": row_schema(mode, row, true)},
        {"field": "after", "schema": row_schema(mode, row, false)},
        {"field": "source", "schema": source},
        {"field": "op", "schema": text},
        {"field": "ts_ms", "schema": {"type": "int64", "optional": true}},
    ]);
    schema
}

/// What a converter that is written in Java makes of the same data, member for member.
fn same_as_connect(own: &[u8], found: &Found) {
    let canonical = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON").to_string();
    assert_eq!(canonical(own), canonical(&found.again));
}

#[tokio::test]
async fn connects_own_converter_finds_the_struct_of_every_mode_with_and_without_envelope() {
    let (stand, ids) = stand().await;
    let instance = stand.api.address().ip().to_string();
    for (mode, envelope, decimals) in [
        ("strings", false, "BASE64"),
        ("strings", true, "BASE64"),
        ("typed", false, "BASE64"),
        ("typed", true, "BASE64"),
        ("typed", false, "NUMERIC"),
        ("schemaless", false, "BASE64"),
        ("schemaless", true, "BASE64"),
    ] {
        let topic = format!("shapes-{mode}-{envelope}-{decimals}");
        let mut config = keys(&topic, mode, envelope);
        config["value.converter"] = "org.apache.kafka.connect.json.JsonConverter".into();
        config["value.converter.decimal.format"] = decimals.into();
        stand.connector(&config);
        assert_eq!(stand.sweep(&topic, 0)[0]["rows"], 3, "{topic}");
        let values = stand.values(&topic).await;
        let settings = JsonSettings { decimals, ..JsonSettings::default() };
        for (at, found) in connect::read(settings, &values).expect("Connect reads them").iter().enumerate() {
            let schema = match (mode, envelope) {
                ("schemaless", _) => Value::Null,
                (_, true) => envelope_schema(mode, &found.schema),
                (_, false) => row_schema(mode, &found.schema, false),
            };
            assert_eq!(found.schema, schema, "{topic}");
            let row = expected(mode, at, &ids[at]);
            let row = if envelope { enveloped(row, at, &instance) } else { row };
            assert_eq!(found.value, row, "{topic}, row {at}");
            if mode != "schemaless" {
                same_as_connect(&values[at], found);
            }
        }
    }
}

#[tokio::test]
async fn without_schemas_connect_finds_the_same_values_as_maps() {
    let (stand, ids) = stand().await;
    let instance = stand.api.address().ip().to_string();
    for (mode, envelope) in [("schemaless", false), ("schemaless", true), ("strings", false), ("strings", true)] {
        let topic = format!("shapes-plain-{mode}-{envelope}");
        let mut config = keys(&topic, mode, envelope);
        config["value.converter"] = "json".into();
        config["value.converter.schemas.enable"] = "false".into();
        stand.connector(&config);
        stand.sweep(&topic, 0);
        let settings = JsonSettings { schemas: false, ..JsonSettings::default() };
        let found = connect::read(settings, &stand.values(&topic).await).expect("Connect reads them");
        assert_eq!(found.len(), 3);
        for (at, found) in found.iter().enumerate() {
            let row = expected(mode, at, &ids[at]);
            let row = if envelope { enveloped(row, at, &instance) } else { row };
            assert_eq!((&found.schema, &found.value), (&Value::Null, &row), "{topic}, row {at}");
        }
    }
}

#[tokio::test]
async fn keys_and_headers_are_texts_and_a_key_may_carry_its_schema() {
    let (stand, ids) = stand().await;
    for (mode, converter, schema) in [
        ("strings", "org.apache.kafka.connect.json.JsonConverter", json!({"type": "string", "optional": false})),
        ("typed", "org.apache.kafka.connect.storage.StringConverter", Value::Null),
    ] {
        let topic = format!("shapes-keys-{mode}");
        let mut config = keys(&topic, mode, false);
        config["key.converter"] = converter.into();
        stand.connector(&config);
        stand.sweep(&topic, 0);
        let records = stand.broker.read_all(&topic).await.expect("the topic can be read");
        assert!(records.iter().all(|record| record.header("snow.schema.mode") == Some(mode)));
        let keys: Vec<Vec<u8>> = records.into_iter().map(|record| record.key.expect("a key")).collect();
        if schema.is_null() {
            assert_eq!(keys, ids.iter().map(|id| id.clone().into_bytes()).collect::<Vec<_>>());
            continue;
        }
        let settings = JsonSettings { keys: true, ..JsonSettings::default() };
        let found = connect::read(settings, &keys).expect("Connect reads them");
        for (found, id) in found.iter().zip(&ids) {
            assert_eq!((&found.schema, &found.value), (&schema, &id.as_str().into()));
        }
    }
}

#[tokio::test]
async fn a_string_converter_writes_rows_as_javas_own_does() {
    let (stand, _) = stand().await;
    for mode in ["strings", "typed"] {
        let (json, text) = (format!("shapes-of-json-{mode}"), format!("shapes-of-text-{mode}"));
        for (topic, converter) in [(&json, "json"), (&text, "org.apache.kafka.connect.storage.StringConverter")] {
            let mut config = keys(topic, mode, true);
            config["value.converter"] = converter.into();
            stand.connector(&config);
            stand.sweep(topic, 0);
        }
        let found = connect::read(JsonSettings::default(), &stand.values(&json).await).expect("Connect reads them");
        assert_eq!(found.len(), 3);
        // The first row's days lie before 1582, where Java counts by another calendar.
        for (found, own) in found.iter().zip(stand.values(&text).await).skip(usize::from(mode == "typed")) {
            assert_eq!(without_bytes(&String::from_utf8(own).expect("text")), without_bytes(&found.text), "{mode}");
        }
    }
}

/// Java names arrays of bytes by where they lie in memory.
fn without_bytes(text: &str) -> String {
    let Some((before, after)) = text.split_once("u_bytes=") else { return text.to_owned() };
    let Some((_, after)) = after.split_once(",u_") else { return text.to_owned() };
    format!("{before}{after}")
}
