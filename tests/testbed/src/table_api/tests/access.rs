//! The four places where access is enforced.

use super::client::{IN_ORDER, get, id, incidents, numbered};
use crate::table_api::{Denied, Forbidden, Rules};

fn set<const N: usize>(names: [&str; N]) -> std::collections::BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn an_unknown_table_is_400_and_a_forbidden_one_403_in_both_wordings() {
    let api = numbered(1);
    let unknown = get(&api, "/api/now/table/nosuch", &[]);
    assert_eq!(unknown.status, 400);
    assert_eq!(unknown.text(), r#"{"error":{"message":"Invalid table nosuch","detail":null},"status":"failure"}"#);
    for (forbidden, words) in
        [(Forbidden::Rights, "Insufficient rights to query records"), (Forbidden::Api, "Failed API level ACL Validation")]
    {
        api.access("incident", Rules { forbidden: Some(forbidden), ..Rules::default() }).unwrap();
        let reply = incidents(&api, &[]);
        assert!(reply.status == 403 && reply.text().contains(words));
    }
}

#[test]
fn a_single_record_is_found_by_its_identity_unless_it_is_missing_or_hidden() {
    let api = numbered(2);
    let read = |n| get(&api, &format!("/api/now/v2/table/incident/{}", id(n)), &[]);
    assert_eq!(read(1).json()["result"]["number"], "1");
    assert_eq!((read(3).status, read(3).text().contains("No Record found")), (404, true));
    api.hide("incident", [id(1)]).unwrap();
    assert_eq!(read(1).status, 404);
    api.unhide("incident", [id(1)]).unwrap();
    assert_eq!(read(1).status, 200);
}

#[test]
fn a_hidden_field_is_missing_from_rows_without_a_mark() {
    let api = numbered(1);
    api.access("incident", Rules { hidden_fields: set(["number"]), ..Rules::default() }).unwrap();
    assert!(incidents(&api, &[]).rows()[0].get("number").is_none());
    assert!(incidents(&api, &[("sysparm_fields", "number,sys_id")]).rows()[0].get("number").is_none());
}

#[test]
fn rows_are_hidden_by_identity_by_value_and_by_predicate_now_and_later() {
    let api = numbered(6);
    api.hide("incident", [id(1)]).unwrap();
    api.apply(
        serde_json::from_value(serde_json::json!(
        {"op": "hide_where", "table": "incident", "field": "number", "equals": "2"}))
        .unwrap(),
    )
    .unwrap();
    api.hide_when("incident", |field| field("number").is_some_and(|number| number.as_str() > "5")).unwrap();
    let seen = || incidents(&api, &[("sysparm_query", IN_ORDER)]).column("number").concat();
    assert_eq!(seen(), "345");
    api.update("incident", &id(3), [("number", "2"), ("sys_updated_on", "2026-01-01 00:00:03")].into()).unwrap();
    assert_eq!(seen(), "45");
    assert_eq!(api.visible_versions("incident").unwrap().len(), 2);
    api.unhide_all("incident").unwrap();
    assert_eq!(seen(), "122456");
}

#[test]
fn a_query_range_denial_drops_the_predicate_and_the_order_or_refuses_the_query() {
    let api = numbered(40);
    let query = [("sysparm_query", "sys_updated_on>2026-01-01 00:00:35^ORDERBYsys_updated_on^ORDERBYsys_id")];
    assert_eq!(incidents(&api, &query).rows().len(), 5);
    let mut rules = Rules { no_range: set(["sys_updated_on", "sys_id"]), ..Rules::default() };
    api.access("incident", rules.clone()).unwrap();
    let answered = incidents(&api, &query).column("number");
    assert_eq!(answered.len(), 40);
    assert_ne!(answered, incidents(&api, &query).column("number"));
    assert_eq!(api.log().last().unwrap().dropped.len(), 3);
    // A match on the same field is another right.
    assert_eq!(incidents(&api, &[("sysparm_query", "sys_updated_on=2026-01-01 00:00:35")]).rows().len(), 1);
    rules.denied = Denied::Refused;
    api.access("incident", rules).unwrap();
    let refused = incidents(&api, &query);
    let words = "Field(s) present in the query do not have permission to be read";
    assert!(refused.status == 403 && refused.text().contains(words));
}

#[test]
fn other_domains_are_seen_on_demand_and_are_no_part_of_the_count() {
    let api = numbered(3);
    api.access("incident", Rules { other_domain: set([&id(2)]), ..Rules::default() }).unwrap();
    let count = |params: &[(&str, &str)]| incidents(&api, params).total();
    assert_eq!(count(&[("sysparm_query", IN_ORDER)]), Some(2));
    assert_eq!(count(&[("sysparm_query", IN_ORDER), ("sysparm_query_no_domain", "true")]), Some(3));
    assert_eq!(count(&[("sysparm_query_no_domain", "true")]), Some(3));
    api.configure(|s| s.no_domain_allowed = false).unwrap();
    assert_eq!(count(&[("sysparm_query_no_domain", "true")]), Some(2));
}

#[test]
fn only_json_is_answered_and_only_reads_are_understood() {
    let api = numbered(1);
    let accept = |kind: &str| super::client::get_with(&api, "/api/now/table/incident", &[], &format!("accept: {kind}\n")).unwrap().status;
    assert_eq!((accept("application/json"), accept("*/*"), accept("text/xml")), (200, 200, 406));
    let write = super::client::send(&api, "POST /api/now/table/incident HTTP/1.1", "{}").unwrap();
    assert_eq!((write.status, api.refusals().len()), (501, 1));
}
