//! The keys of a table, one by one, as an instance sees them.

use serde_json::{Value, json};
use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Cell, ColumnSpec, Fields, Kind, Rules};

use crate::laptop::Laptop;

const KEY: &str = "snow.table.inc.";

fn row<const N: usize>(fields: [(&str, &str); N]) -> Fields {
    Fields::from(fields)
}

/// The named fields of every line, in order of delivery.
fn column(laptop: &Laptop, field: &str) -> Vec<String> {
    laptop.lines().iter().map(|line| line.value[field].as_str().unwrap_or_else(|| panic!("{field} in {}", line.value)).to_owned()).collect()
}

fn names(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().expect("a row").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// Incidents with their service levels, as a database view shows them.
fn with_view(mut laptop: Laptop) -> Laptop {
    laptop.api.load("u_sla", vec![row([("u_name", "gold"), ("sys_updated_on", "2026-01-01 00:00:00")])]).expect("a row");
    for n in 0..5 {
        let stamp = format!("2026-02-01 00:00:0{}", n / 2);
        let fields = [("number", format!("INC{n}")), ("u_sla_name", "gold".to_owned()), ("sys_updated_on", stamp)];
        laptop.api.insert("incident", fields.into()).expect("a row");
    }
    let parts =
        json!([{ "table": "incident", "prefix": "inc" }, { "table": "u_sla", "prefix": "sla", "on": ["inc_u_sla_name", "u_name"] }]);
    laptop.api.view("u_incident_sla", serde_json::from_value(json!({ "parts": parts })).expect("a view")).expect("a view");
    for (key, value) in [("name", "u_incident_sla"), ("timestamp.field", "inc_sys_updated_on"), ("sys.id.field", "inc_sys_id")] {
        laptop.set(&format!("{KEY}{key}"), value);
    }
    laptop
}

#[tokio::test]
async fn a_view_adds_the_version_counter_with_its_prefix_and_tells_versions_of_one_second_apart() {
    let laptop = with_view(Laptop::new()).with("snow.table.inc.fields", "inc_sys_id,inc_sys_updated_on,inc_number,sla_u_name");
    assert_eq!(laptop.sweep().await.rows, 5);
    let lines = laptop.lines();
    assert_eq!(names(&lines[0].value), ["inc_number", "inc_sys_id", "inc_sys_mod_count", "inc_sys_updated_on", "sla_u_name"]);
    assert!(lines.iter().all(|line| line.key == line.value["inc_sys_id"].as_str().expect("an id") && line.value["sla_u_name"] == "gold"));
    // A change within the cursor's second shows in the counter alone.
    let changed = [("number", "INC4b"), ("sys_updated_on", "2026-02-01 00:00:02")];
    laptop.api.update("incident", &lines[4].key, changed.into()).expect("an update");
    assert_eq!(laptop.sweep().await.rows, 1);
    assert_eq!(column(&laptop, "inc_number")[5], "INC4b");
    assert_eq!(laptop.sweep().await.rows, 0);
}

#[tokio::test]
async fn a_view_keeps_its_prefixed_cursor_fields_raw_among_display_values() {
    let laptop = with_view(Laptop::new()).with("snow.table.inc.display.value", true);
    laptop.api.configure(|settings| settings.display_offset_seconds = 7200).expect("set");
    assert_eq!(laptop.sweep().await.rows, 5);
    let first = &laptop.lines()[0].value;
    assert_eq!(first["inc_sys_updated_on"], "2026-02-01 00:00:00", "the cursor's field is raw");
    assert_eq!(first["inc_sys_created_on"], "2026-02-01 02:00:00", "any other one is as the user sees it");
    assert_eq!(laptop.sweep().await.rows, 0);
}

#[tokio::test]
async fn a_table_without_updates_is_swept_by_creation() {
    let mut laptop = Laptop::new().with("snow.table.inc.name", "u_log").with("snow.table.inc.timestamp.field", "sys_created_on");
    laptop.api.create_without("u_log", &[ColumnSpec::new("u_text", Kind::Text)], &["sys_updated_on", "sys_mod_count"]).expect("a table");
    let entry = |n: usize| Fields::from([("u_text", format!("line {n}")), ("sys_created_on", format!("2026-02-01 00:00:{n:02}"))]);
    laptop.api.load("u_log", (0..12).map(entry).collect()).expect("rows");
    laptop.set("snow.source.batch.size", 5);
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.outcome), (12, Outcome::CaughtUp), "{report:?}");
    assert_eq!(column(&laptop, "u_text"), (0..12).map(|n| format!("line {n}")).collect::<Vec<_>>());
    laptop.api.load("u_log", vec![entry(20)]).expect("a row");
    assert_eq!((laptop.sweep().await.rows, laptop.sweep().await.rows), (1, 0));
}

#[tokio::test]
async fn a_projection_of_a_table_without_version_counter_has_none() {
    let laptop = Laptop::new().with("snow.table.inc.name", "u_plain").with("snow.table.inc.fields", "sys_id,sys_updated_on,u_text");
    laptop.api.create_without("u_plain", &[ColumnSpec::new("u_text", Kind::Text)], &["sys_mod_count"]).expect("a table");
    laptop.api.load("u_plain", vec![row([("u_text", "a"), ("sys_updated_on", "2026-02-01 00:00:00")])]).expect("a row");
    assert_eq!((laptop.sweep().await.rows, laptop.sweep().await.rows), (1, 0));
    assert_eq!(names(&laptop.lines()[0].value), ["sys_id", "sys_updated_on", "u_text"]);
}

#[tokio::test]
async fn another_identity_than_sys_id_is_the_cursors_and_the_records_key() {
    let laptop = Laptop::new().with("snow.table.inc.sys.id.field", "number").with("snow.source.batch.size", 3);
    let numbered = |n: usize| row([("sys_updated_on", "2026-02-01 00:00:00")]).with("number", format!("INC{n:04}"));
    laptop.api.load("incident", [7, 2, 9, 4, 1, 8, 3].map(numbered).into()).expect("rows");
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.outcome), (7, Outcome::CaughtUp), "{report:?}");
    let keys: Vec<String> = laptop.lines().iter().map(|line| line.key.clone()).collect();
    assert_eq!(keys, ["INC0001", "INC0002", "INC0003", "INC0004", "INC0007", "INC0008", "INC0009"]);
    assert_eq!(laptop.sweep().await.rows, 0);
}

#[tokio::test]
async fn a_caret_in_a_value_is_searched_for_as_a_caret() {
    let laptop = Laptop::new().with("snow.table.inc.query", "u_path=a^^NQb^active=true");
    let stamped = |path: &str| row([("u_path", path), ("active", "true"), ("sys_updated_on", "2026-02-01 00:00:00")]);
    laptop.api.load("incident", vec![stamped("a^NQb"), stamped("a"), stamped("b")]).expect("rows");
    assert_eq!(laptop.sweep().await.rows, 1);
    assert_eq!(column(&laptop, "u_path"), ["a^NQb"]);
}

#[tokio::test]
async fn a_script_in_the_query_arrives_as_it_was_written() {
    let script = "new X('a b','ü%+&#?=/\\\\').f(1, \"y\")";
    let laptop = Laptop::new().with("snow.table.inc.query", format!("number=javascript:{script}^NQstate=javascript:g()^EQ"));
    laptop
        .api
        .configure(|settings| settings.scripts = [(script, "INC1"), ("g()", "7")].map(|(from, to)| (from.to_owned(), to.to_owned())).into())
        .expect("set");
    let stamped = |number: &str, state: &str| row([("number", number), ("state", state), ("sys_updated_on", "2026-02-01 00:00:00")]);
    laptop.api.load("incident", vec![stamped("INC1", "1"), stamped("INC2", "7"), stamped("INC3", "1")]).expect("rows");
    assert_eq!(laptop.sweep().await.rows, 2);
    let mut numbers = column(&laptop, "number");
    numbers.sort();
    assert_eq!(numbers, ["INC1", "INC2"]);
}

#[tokio::test]
async fn a_field_of_a_referenced_row_comes_by_its_dotted_name() {
    let laptop = Laptop::new().with("snow.table.inc.fields", "sys_id,sys_updated_on,caller_id.name");
    laptop.api.load("sys_user", vec![row([("sys_id", "u1"), ("name", "Ada")])]).expect("a row");
    laptop.api.create("incident", &[ColumnSpec::reference("caller_id", "sys_user")]).expect("a table");
    laptop.api.load("incident", vec![row([("caller_id", "u1"), ("sys_updated_on", "2026-02-01 00:00:00")])]).expect("a row");
    assert_eq!(laptop.sweep().await.rows, 1);
    assert_eq!(column(&laptop, "caller_id.name"), ["Ada"]);
}

/// A row with a reference, swept with these keys.
async fn reference(display: &str, exclude: bool) -> Value {
    let laptop = Laptop::new().with("snow.table.inc.display.value", display).with("snow.table.inc.exclude.reference.link", exclude);
    laptop.api.create("incident", &[ColumnSpec::reference("caller_id", "sys_user")]).expect("a table");
    let fields = row([("sys_updated_on", "2026-02-01 00:00:00")]).with("caller_id", Cell::new("u1").display("Ada"));
    laptop.api.load("incident", vec![fields]).expect("a row");
    assert_eq!(laptop.sweep().await.rows, 1);
    laptop.lines()[0].value["caller_id"].clone()
}

#[tokio::test]
async fn links_of_references_are_left_out_unless_they_are_asked_for() {
    assert_eq!(reference("false", true).await, "u1");
    assert_eq!(reference("all", true).await, json!({"display_value": "Ada", "value": "u1"}));
    assert_eq!(reference("true", true).await, "Ada");
    let raw = reference("false", false).await;
    assert_eq!(raw["value"], "u1");
    assert!(raw["link"].as_str().is_some_and(|link| link.ends_with("/api/now/table/sys_user/u1")), "{raw}");
    assert!(reference("all", false).await["link"].is_string());
    assert_eq!(reference("true", false).await, "Ada", "display values have no place for a link");
}

#[tokio::test]
async fn rows_of_other_domains_come_only_without_the_limit_to_the_users_own() {
    for (key, rows) in [(None, 2), (Some("true"), 2), (Some("false"), 3)] {
        let mut laptop = Laptop::new();
        laptop.generate(3, 1);
        let other = laptop.expected()[1].1.clone();
        laptop.api.access("incident", Rules { other_domain: [other].into(), ..Rules::default() }).expect("rules");
        if let Some(value) = key {
            laptop.set("snow.table.inc.query.domain", value);
        }
        assert_eq!(laptop.sweep().await.rows, rows, "{key:?}");
    }
}

#[tokio::test]
async fn a_query_category_is_sent_with_every_request_and_none_without_one() {
    for (category, sent) in [("", None), ("reporting", Some("reporting"))] {
        let laptop = Laptop::new().with("snow.table.inc.query.category", category).with("snow.source.startup.probe", true);
        laptop.generate(3, 1);
        laptop.sweep().await;
        let reads = laptop.api.reads("incident");
        assert!(!reads.is_empty());
        for read in reads {
            let found = read.params.iter().find(|(name, _)| name == "sysparm_query_category").map(|(_, value)| value.as_str());
            assert_eq!(found, sent, "{:?}", read.params);
        }
    }
}
