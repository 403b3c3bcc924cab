//! One schema per connector and topic, whoever writes, whatever breaks.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};
use tablesweep_testbed::connect::{self, JsonSettings};
use tablesweep_testbed::table_api::{Cell, ColumnSpec, Fields, Kind};

use super::{Stand, tables};

/// Two tables in one topic. Each has a field of its own.
pub(super) fn keys(topic: &str) -> Value {
    let mut keys = json!({
        "tasks.max": "2",
        "snow.tables": "a,b",
        "snow.source.schema.mode": "strings",
        "value.converter": "json",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    });
    for alias in ["a", "b"] {
        keys[format!("snow.table.{alias}.name")] = format!("u_{alias}").into();
        keys[format!("snow.table.{alias}.topic")] = topic.into();
        keys[format!("snow.table.{alias}.start.timestamp")] = "2026-01-01 00:00:00".into();
    }
    keys
}

pub(super) fn insert(stand: &Stand, table: &str, second: u32, own: &[String]) {
    let mut row: Fields = own.iter().map(|name| (name.clone(), Cell::new("x"))).collect();
    row.set("sys_updated_on", format!("2026-01-01 00:00:{second:02}"));
    stand.api.insert(table, row).expect("a row");
}

/// The version of each value with its fields. The same version with other fields is what must never be.
fn versions(values: &[Vec<u8>]) -> BTreeMap<i64, Vec<String>> {
    let mut versions = BTreeMap::new();
    for found in connect::read(JsonSettings::default(), values).expect("Connect reads them") {
        let fields = found.schema["fields"].as_array().expect("fields").iter();
        let fields: Vec<String> = fields.map(|field| field["field"].as_str().expect("a name").to_owned()).collect();
        let version = found.schema["version"].as_i64().expect("a version");
        let known = versions.entry(version).or_insert_with(|| fields.clone());
        assert_eq!(*known, fields, "version {version} means two things");
    }
    versions
}

/// Each version has the fields of the one before, in their order, and more.
pub(super) fn only_grows(versions: &BTreeMap<i64, Vec<String>>) {
    for (before, after) in versions.values().zip(versions.values().skip(1)) {
        assert!(after.len() > before.len() && after.starts_with(before), "{before:?} then {after:?}");
    }
}

#[tokio::test]
async fn two_tables_that_find_different_fields_at_once_end_with_one_schema_that_has_both() {
    const ROUNDS: u32 = 4;
    let stand = Stand::new().await;
    stand.connector(&keys("shapes-both"));
    let mut own: BTreeMap<&str, Vec<String>> = BTreeMap::from([("a", Vec::new()), ("b", Vec::new())]);
    for round in 0..ROUNDS {
        for (alias, fields) in &mut own {
            fields.push(format!("u_{alias}_{round}"));
            // What was there is gone with the old table, and delivered.
            let columns: Vec<ColumnSpec> = fields.iter().map(|name| ColumnSpec::new(name.clone(), Kind::Text)).collect();
            stand.api.create(&format!("u_{alias}"), &columns).expect("a table");
            insert(&stand, &format!("u_{alias}"), 10 * round + 1, fields);
        }
        // Two processes with nothing in common but the store, started together.
        let sweeps = ["a", "b"].map(|alias| stand.start("both", &["--table", alias]));
        for sweep in sweeps {
            assert_eq!(tables(&sweep.wait_with_output().expect("it ends"), 0)[0]["rows"], 1);
        }
    }
    let all = stand.values("shapes-both").await;
    assert_eq!(all.len(), 2 * ROUNDS as usize);
    only_grows(&versions(&all));

    // In one process too, where nobody finds anything new any more.
    for (alias, fields) in &own {
        insert(&stand, &format!("u_{alias}"), 50, fields);
    }
    stand.sweep("both", 0);
    let last = versions(&stand.values("shapes-both").await).into_values().next_back().expect("a version");
    for field in own.values().flatten() {
        assert_eq!(last.iter().filter(|known| *known == field).count(), 1, "{field} in {last:?}");
    }
}

#[tokio::test]
async fn a_crash_between_the_schemas_write_and_the_first_record_does_no_harm() {
    let stand = Stand::new().await;
    for table in ["u_a", "u_b"] {
        stand.api.create(table, &[ColumnSpec::new("u_one", Kind::Text)]).expect("a table");
        insert(&stand, table, 1, &["u_one".to_owned()]);
    }
    stand.connector(&keys("shapes-crash"));
    stand.broker.create_topic("shapes-crash", 1).await.expect("a topic");
    let mut killed = stand.command("crash", &["--table", "a"]).env("TABLESWEEP_FAILPOINT", "schema-stored:1").spawn().expect("starts");
    let stderr = BufReader::new(killed.stderr.take().expect("a pipe"));
    let reached = stderr.lines().map_while(Result::ok).any(|line| line == "failpoint schema-stored");
    killed.kill().expect("kill -9");
    killed.wait().expect("it ended");
    assert!(reached, "the sweep ended before the schema was stored");
    assert!(stand.values("shapes-crash").await.is_empty(), "no record of a version before it is stored");

    for table in stand.sweep("crash", 0) {
        assert_eq!((&table["outcome"], &table["rows"]), (&"caught_up".into(), &1.into()));
    }
    let found = versions(&stand.values("shapes-crash").await);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1], "what was stored before the crash is what is used after it");
}

#[tokio::test]
async fn a_changed_query_and_a_new_process_go_on_with_the_fields_that_are_there() {
    let stand = Stand::new().await;
    stand.api.create("u_a", &[ColumnSpec::new("u_one", Kind::Text), ColumnSpec::new("u_two", Kind::Text)]).expect("a table");
    stand.api.create("u_b", &[]).expect("a table");
    insert(&stand, "u_a", 1, &["u_one".to_owned(), "u_two".to_owned()]);
    let mut config = keys("shapes-query");
    stand.connector(&config);
    stand.sweep("query", 0);
    config["snow.table.a.query"] = "u_oneISNOTEMPTY".into();
    config["snow.table.a.fields"] = "sys_id,sys_updated_on,u_one".into();
    stand.connector(&config);
    assert_eq!(stand.sweep("query", 0)[0]["rows"], 1, "a changed query is a new cursor");
    let values = stand.values("shapes-query").await;
    assert_eq!((values.len(), versions(&values).len()), (2, 1));
    let found = connect::read(JsonSettings::default(), &values).expect("Connect reads them");
    assert_eq!((&found[0].value["u_two"], &found[1].value["u_two"]), (&"x".into(), &Value::Null), "no field is removed");
}

/// A table with a row that fits and one that does not, and the keys that read it as types.
async fn misfits(stand: &Stand, topic: &str) -> (Vec<String>, Value) {
    stand.api.create("u_a", &["u_one", "u_two", "u_three"].map(|name| ColumnSpec::new(name, Kind::Text))).expect("a table");
    let fits: Fields = [("u_one", "7"), ("u_two", ""), ("sys_updated_on", "2026-01-01 00:00:01")].into();
    let unfit: Fields = [("u_one", "seven"), ("u_two", "soon"), ("u_three", "x"), ("sys_updated_on", "2026-01-01 00:00:02")].into();
    let ids = stand.api.load("u_a", vec![fits, unfit]).expect("rows");
    stand.broker.create_topic(topic, 1).await.expect("a topic");
    let keys = json!({
        "snow.tables": "a",
        "snow.table.a.name": "u_a",
        "snow.table.a.topic": topic,
        "snow.table.a.start.timestamp": "2026-01-01 00:00:00",
        "snow.table.a.fields": "sys_id,sys_updated_on,u_one,u_two,u_three",
        "snow.source.schema.mode": "typed",
        "snow.source.typed.fields": "sys_id:string,sys_updated_on:timestamp,u_one:int16,u_two:date",
        "value.converter": "json",
    });
    (ids, keys)
}

#[tokio::test]
async fn rows_that_do_not_fit_stop_their_table_before_any_record_of_the_page_and_one_round_of_mending_is_enough() {
    let stand = Stand::new().await;
    let (ids, mut keys) = misfits(&stand, "shapes-unfit").await;
    stand.connector(&keys);
    let table = stand.sweep("unfit", 1)[0].clone();
    assert_eq!((&table["outcome"], &table["reason"]["code"]), (&"parked".into(), &"Record.Unmapped".into()));
    let message = table["reason"]["message"].as_str().expect("words");
    let told = format!(
        "snow/a: field u_three has no type (row {}: \"\", and 1 more row); field u_one is no int16 (row {row}: \"seven\"); \
         field u_two is no date (row {row}: \"soon\"). ",
        ids[0],
        row = ids[1],
    );
    assert!(message.starts_with(&told), "{message}");
    assert!(stand.values("shapes-unfit").await.is_empty());
    keys["snow.source.typed.fields"] = "sys_id:string,sys_updated_on:timestamp,u_one:int16,u_two:date,u_three:string".into();
    stand.connector(&keys);
    let mended: Fields = [("u_one", "8"), ("u_two", "2026-01-02"), ("sys_updated_on", "2026-01-01 00:00:03")].into();
    stand.api.update("u_a", &ids[1], mended).expect("mended");
    assert_eq!(stand.sweep("unfit", 0)[0]["rows"], 2);
    let found = connect::read(JsonSettings::default(), &stand.values("shapes-unfit").await).expect("Connect reads them");
    assert_eq!((&found[0].value["u_one"], &found[1].value["u_one"]), (&"Short 7".into(), &"Short 8".into()));
}

#[tokio::test]
async fn values_that_permissive_sends_as_null_are_counted_in_the_result() {
    let stand = Stand::new().await;
    let (_, mut keys) = misfits(&stand, "shapes-permissive").await;
    keys["snow.source.schema.evolution"] = "permissive".into();
    stand.connector(&keys);
    let table = stand.sweep("permissive", 0)[0].clone();
    assert_eq!((&table["rows"], &table["values_replaced"]), (&2.into(), &2.into()), "{table}");
    let found = connect::read(JsonSettings::default(), &stand.values("shapes-permissive").await).expect("Connect reads them");
    assert_eq!((&found[0].value["u_one"], &found[0].value["u_two"]), (&"Short 7".into(), &Value::Null));
    assert_eq!((&found[1].value["u_one"], &found[1].value["u_two"]), (&Value::Null, &Value::Null));
}
