//! The three display modes, projections and views.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{IN_ORDER, get, incidents};
use crate::table_api::change_requests::RECORDED;
use crate::table_api::{Cell, ColumnSpec, Fields, Kind, TableApi, ViewPart, ViewSpec};

const CHANGES: &str = "/api/now/table/change_request";

fn changes() -> TableApi {
    let api = TableApi::start().unwrap();
    api.load_change_requests().unwrap();
    api
}

fn recorded() -> Vec<Value> {
    let document: Value = serde_json::from_str(RECORDED).unwrap();
    document["result"].as_array().unwrap().clone()
}

fn in_order(api: &TableApi, params: &[(&str, &str)]) -> Vec<Value> {
    let mut all = vec![("sysparm_query", "ORDERBYnumber")];
    all.extend_from_slice(params);
    get(api, CHANGES, &all).rows()
}

#[test]
fn the_recorded_rows_come_back_as_they_were_recorded_in_the_mode_all() {
    let api = changes();
    let rows = in_order(&api, &[("sysparm_display_value", "all"), ("sysparm_exclude_reference_link", "true")]);
    assert_eq!(rows.len(), 3);
    for (served, recorded) in rows.iter().zip(recorded()) {
        for (name, field) in recorded.as_object().unwrap().iter().filter(|(name, _)| *name != "sys_id") {
            assert_eq!(&served[name], field, "{name}");
        }
    }
    // The recording is anonymous; the table keeps its rows apart.
    assert_eq!(rows[0]["sys_id"], recorded()[0]["sys_id"]);
    assert_ne!(rows[1]["sys_id"], rows[2]["sys_id"]);
}

#[test]
fn raw_values_are_strings_and_references_have_a_link_unless_they_are_empty_or_links_are_excluded() {
    let api = changes();
    let rows = in_order(&api, &[]);
    let assignee = "681b365ec0a80164000fb0b05854a0cd";
    let link = format!("{}/api/now/table/sys_user/{assignee}", api.url());
    assert_eq!(rows[0]["assigned_to"], json!({"link": link, "value": assignee}));
    assert_eq!(rows[0]["cab_delegate"], json!(""));
    assert_eq!(rows[0]["state"], json!("-5"));
    assert_eq!(rows[0]["sys_updated_on"], json!("2020-09-24 12:42:23"));
    assert_eq!(rows[0]["approval_history"], json!(""));
    assert_eq!(rows[0]["sys_domain"]["value"], json!("global"));
    let plain = in_order(&api, &[("sysparm_exclude_reference_link", "true")]);
    assert_eq!(plain[0]["assigned_to"], json!(assignee));
    assert!(plain[0].as_object().unwrap().values().all(Value::is_string));
}

#[test]
fn display_values_are_those_of_the_recording_and_references_keep_their_link() {
    let api = changes();
    let rows = in_order(&api, &[("sysparm_display_value", "true")]);
    let record = &recorded()[0];
    assert_eq!(rows[0]["priority"], json!("3 - Moderate"));
    assert_eq!(rows[0]["sys_updated_on"], record["sys_updated_on"]["display_value"]);
    assert_eq!(rows[0]["approval_history"], record["approval_history"]["display_value"]);
    assert_eq!(rows[0]["assigned_to"]["display_value"], json!("ITIL User"));
    assert!(rows[0]["assigned_to"]["link"].as_str().unwrap().ends_with("/681b365ec0a80164000fb0b05854a0cd"));
    assert_eq!(rows[0]["assigned_to"].get("value"), None);
    assert_eq!(rows[0]["cmdb_ci"]["display_value"], json!("Sales © Force Automation"));
    let plain = in_order(&api, &[("sysparm_display_value", "true"), ("sysparm_exclude_reference_link", "true")]);
    assert_eq!(plain[0]["assigned_to"], json!("ITIL User"));
}

#[test]
fn in_the_mode_all_references_have_three_members_and_currencies_their_code() {
    let api = changes();
    let rows = in_order(&api, &[("sysparm_display_value", "all")]);
    let members = rows[0]["assigned_to"].as_object().unwrap();
    assert_eq!(members.keys().collect::<Vec<_>>(), ["display_value", "value", "link"]);
    assert_eq!(rows[0]["reason"], json!({"display_value": null, "value": ""}));
    let mut cost = Cell::new("509.95").display("$509.95");
    cost.currency_display_value = Some("USD;509.95".to_owned());
    api.insert("incident", Fields::new().with("cost", cost)).unwrap();
    let rows = incidents(&api, &[("sysparm_display_value", "all")]).rows();
    assert_eq!(rows[0]["cost"]["currency_display_value"], json!("USD;509.95"));
}

#[test]
fn dates_without_a_display_value_are_shown_in_the_zone_of_the_user() {
    let api = TableApi::start().unwrap();
    api.configure(|s| s.display_offset_seconds = 7200).unwrap();
    api.insert("incident", Fields::from([("sys_updated_on", "2026-01-01 23:00:00")])).unwrap();
    let rows = incidents(&api, &[("sysparm_display_value", "all"), ("sysparm_fields", "sys_updated_on")]).rows();
    assert_eq!(rows[0], json!({"sys_updated_on": {"display_value": "2026-01-02 01:00:00", "value": "2026-01-01 23:00:00"}}));
}

#[test]
fn a_projection_keeps_to_its_fields_follows_references_flat_and_ignores_what_is_no_field() {
    let api = TableApi::start().unwrap();
    api.create("incident", &[ColumnSpec::reference("caller_id", "sys_user")]).unwrap();
    api.insert("sys_user", Fields::from([("sys_id", "u1"), ("name", "Zoë \"Z\" ☃ 𝄞")])).unwrap();
    api.insert("incident", Fields::from([("sys_id", "i1"), ("caller_id", "u1"), ("u_a$b", "x")])).unwrap();
    let fields = [("sysparm_fields", "sys_id,caller_id.name,nosuch,u_a$b,caller_id.nosuch")];
    let expected = json!({"sys_id": "i1", "caller_id.name": "Zoë \"Z\" ☃ 𝄞", "u_a$b": "x"});
    assert_eq!(incidents(&api, &fields).rows(), [expected]);
    assert_eq!(get(&api, "/api/now/table/incident/i1", &fields).json()["result"]["u_a$b"], json!("x"));
}

#[test]
fn a_form_view_projects_unless_fields_are_named() {
    let api = TableApi::start().unwrap();
    let form = BTreeMap::from([("mobile".to_owned(), vec!["number".to_owned()])]);
    api.configure(|s| s.forms = BTreeMap::from([("incident".to_owned(), form)])).unwrap();
    api.insert("incident", Fields::from([("number", "1"), ("state", "2")])).unwrap();
    let view = ("sysparm_view", "mobile");
    assert_eq!(incidents(&api, &[view]).rows(), [json!({"number": "1"})]);
    assert_eq!(incidents(&api, &[view, ("sysparm_fields", "state")]).rows(), [json!({"state": "2"})]);
}

#[test]
fn odd_values_travel_as_they_are() {
    let api = TableApi::start().unwrap();
    let fields = Fields::new()
        .with("plain", "tab\t\u{0}\u{1f} \\ \"quoted\" 𝄞")
        .with("surrogate", Cell::new("?").raw("\"\\ud800\""))
        .with("count", Cell::new("17").raw("17"))
        .with("nothing", Cell::new("").raw("null"));
    api.insert("incident", fields).unwrap();
    let text = incidents(&api, &[]).text();
    assert!(text.contains("\"surrogate\":\"\\ud800\",\"count\":17,\"nothing\":null"), "{text}");
    assert!(text.contains("\\u0000\\u001f \\\\ \\\"quoted\\\" 𝄞"), "{text}");
    assert_eq!(incidents(&api, &[("sysparm_query", "plainENDSWITH\"quoted\" 𝄞"), ("sysparm_fields", "plain")]).rows().len(), 1);
}

fn view_of_incidents(row_cap: Option<usize>) -> TableApi {
    let api = TableApi::start().unwrap();
    api.create("incident", &[ColumnSpec::reference("caller_id", "sys_user")]).unwrap();
    api.insert("sys_user", Fields::from([("sys_id", "u1"), ("name", "Ada")])).unwrap();
    let row = |n: usize| {
        Fields::from([
            ("sys_id", format!("i{n:02}")),
            ("caller_id", if n == 3 { "gone".to_owned() } else { "u1".to_owned() }),
            ("sys_updated_on", format!("2026-01-01 00:00:{n:02}")),
        ])
    };
    api.load("incident", (0..20).map(row).collect()).unwrap();
    let part = |table: &str, prefix: &str, on| ViewPart { table: table.to_owned(), prefix: prefix.to_owned(), on };
    let on = Some(("inc_caller_id".to_owned(), "sys_id".to_owned()));
    let parts = vec![part("incident", "inc", None), part("sys_user", "usr", on)];
    api.view("u_inc_users", ViewSpec { parts, row_cap }).unwrap();
    api
}

#[test]
fn a_view_joins_its_tables_under_prefixes_and_follows_their_changes() {
    let api = view_of_incidents(None);
    let order = "ORDERBYinc_sys_updated_on^ORDERBYinc_sys_id";
    let query = format!("inc_sys_updated_on>2026-01-01 00:00:17^{order}");
    let read = || get(&api, "/api/now/table/u_inc_users", &[("sysparm_query", &query)]);
    assert_eq!(read().column("inc_sys_id"), ["i18", "i19"]);
    assert_eq!(read().column("usr_name"), ["Ada", "Ada"]);
    assert!(read().rows()[0].get("sys_id").is_none());
    api.update("incident", "i05", Fields::from([("sys_updated_on", "2026-01-01 00:01:00")])).unwrap();
    assert_eq!(read().column("inc_sys_id"), ["i18", "i19", "i05"]);
    let versions = api.visible_versions("u_inc_users").unwrap();
    assert_eq!(versions.len(), 19);
    assert_eq!(versions[18], ("2026-01-01 00:01:00".to_owned(), "i05".to_owned(), 1));
    api.hide("u_inc_users", ["i18"]).unwrap();
    assert_eq!(read().column("inc_sys_id"), ["i19", "i05"]);
    assert!(api.insert("u_inc_users", Fields::new()).is_err());
}

#[test]
fn a_view_shows_no_more_rows_than_its_cap() {
    let api = view_of_incidents(Some(7));
    let order = [("sysparm_query", "ORDERBYinc_sys_updated_on^ORDERBYinc_sys_id")];
    let reply = get(&api, "/api/now/table/u_inc_users", &order);
    let ids = reply.column("inc_sys_id");
    assert_eq!((ids.len(), reply.total(), ids.is_sorted()), (7, Some(7), true));
    assert_ne!(ids, get(&api, "/api/now/table/u_inc_users", &order).column("inc_sys_id"));
}

#[test]
fn a_table_can_lack_reserved_columns() {
    let api = TableApi::start().unwrap();
    api.create_without("sys_audit_delete", &[ColumnSpec::new("documentkey", Kind::Text)], &["sys_updated_on"]).unwrap();
    api.insert("sys_audit_delete", Fields::from([("documentkey", "x")])).unwrap();
    let query = [("sysparm_query", IN_ORDER)];
    let rows = get(&api, "/api/now/table/sys_audit_delete", &query).rows();
    assert!(rows[0].get("sys_updated_on").is_none() && rows[0].get("sys_created_on").is_some());
    assert_eq!(api.log()[0].dropped, ["ORDERBYsys_updated_on"]);
}
