//! The clock, changes of data, the log and the control endpoint.

use serde_json::{Value, json};

use super::client::{IN_ORDER, get, get_with, id, incidents, numbered, send};
use crate::table_api::{Fields, Generate, TableApi};

fn control(api: &TableApi, commands: &Value) -> (u16, Value) {
    let reply = send(api, "POST /control/apply HTTP/1.1", &commands.to_string()).unwrap();
    (reply.status, reply.json())
}

#[test]
fn the_clock_is_the_date_header_and_stamps_what_is_written() {
    let api = TableApi::start().unwrap();
    api.freeze_clock();
    api.set_clock("2026-03-01 12:00:00").unwrap();
    let row = api.insert("incident", Fields::from([("number", "1")])).unwrap();
    assert_eq!(incidents(&api, &[]).header("date"), Some("Sun, 01 Mar 2026 12:00:00 GMT"));
    api.step_clock(90);
    api.update("incident", &row, Fields::from([("number", "2")])).unwrap();
    let read = || incidents(&api, &[]).rows()[0].clone();
    let fields = |row: Value| ["sys_created_on", "sys_updated_on", "sys_mod_count"].map(|name| row[name].clone());
    assert_eq!(fields(read()), ["2026-03-01 12:00:00", "2026-03-01 12:01:30", "1"].map(Value::from));
    // A script without system fields changes the row and not its timestamp.
    let still = Fields::from([("number", "3"), ("sys_updated_on", "2026-03-01 12:01:30")]);
    api.step_clock(90);
    api.update("incident", &row, still).unwrap();
    assert_eq!(fields(read()), ["2026-03-01 12:00:00", "2026-03-01 12:01:30", "2"].map(Value::from));
    api.step_clock(-3600);
    assert_eq!(api.now(), "2026-03-01 11:03:00");
    api.run_clock();
    let started = std::time::Instant::now();
    while api.now() == "2026-03-01 11:03:00" {
        assert!(started.elapsed().as_secs() < 5, "a running clock advances");
        std::thread::yield_now();
    }
}

#[test]
fn the_truth_is_read_off_the_data_and_follows_every_change() {
    let api = numbered(4);
    api.set_clock("2026-02-01 00:00:00").unwrap();
    api.freeze_clock();
    api.delete("incident", &id(1)).unwrap();
    api.hide("incident", [id(2)]).unwrap();
    api.update("incident", &id(3), Fields::new()).unwrap();
    api.insert("incident", Fields::from([("sys_id", "late"), ("sys_updated_on", "2020-01-01 00:00:00")])).unwrap();
    let version = |stamp: &str, id: String, count| (stamp.to_owned(), id, count);
    assert_eq!(
        api.visible_versions("incident").unwrap(),
        [
            version("2020-01-01 00:00:00", "late".to_owned(), 0),
            version("2026-01-01 00:00:04", id(4), 0),
            version("2026-02-01 00:00:00", id(3), 1),
        ]
    );
    let served = incidents(&api, &[("sysparm_query", IN_ORDER)]).column("sys_id");
    assert_eq!(served, ["late".to_owned(), id(4), id(3)]);
}

#[test]
fn commands_that_make_no_sense_are_errors() {
    let api = numbered(1);
    assert!(api.insert("incident", Fields::from([("sys_id", id(1))])).is_err());
    assert!(api.update("incident", "nosuch", Fields::new()).is_err());
    assert!(api.delete("nosuch", &id(1)).is_err());
    assert!(api.hide("nosuch", ["x"]).is_err());
    assert!(api.set_clock("noon").is_err());
    for command in [json!({"op": "dance"}), json!({"op": "step_clock", "seconds": 1, "hours": 2}), json!(7)] {
        assert_eq!(control(&api, &command).0, 400, "{command}");
    }
    let wrong = json!({"op": "settings", "settings": {"colation": "binary"}});
    assert_eq!(control(&api, &wrong).0, 400);
}

#[test]
fn the_log_shows_every_request_with_its_outcome() {
    let api = numbered(10);
    let query = "number>2^ORDERBYsys_updated_on";
    let path = "/api/now/v2/table/incident";
    let headers = "user-agent: test/1\ncookie: a=b\n";
    get_with(&api, path, &[("sysparm_query", query), ("sysparm_limit", "3")], headers).unwrap();
    get(&api, "/api/now/table/nosuch", &[]);
    let log = api.log();
    let first = &log[0];
    assert_eq!((first.table.as_str(), first.path.as_str(), first.query.as_str()), ("incident", path, query));
    assert_eq!((first.limit, first.rows, first.total, first.status), (3, 3, Some(8), 200));
    assert_eq!((first.param("sysparm_limit"), first.user_agent.as_deref()), (Some("3"), Some("test/1")));
    assert_eq!(first.cookie.as_deref(), Some("a=b"));
    assert_eq!(log[1].status, 400);
    assert_eq!(api.reads("incident").len(), 1);
    let counters = api.counters();
    assert_eq!((counters.requests, counters.tables["incident"], counters.with_cookie), (2, 1, 1));
    assert_eq!((counters.statuses[&200], counters.statuses[&400], counters.rows), (1, 1, 3));
    assert!(counters.bytes > 0 && counters.connections == 2);
    api.clear_log();
    assert_eq!((api.log().len(), api.counters().requests), (0, 0));
}

#[test]
fn answers_set_session_cookies() {
    let api = numbered(1);
    let reply = incidents(&api, &[]);
    let cookies: Vec<_> = reply.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
    assert!(cookies.len() == 2 && cookies[0].1.starts_with("JSESSIONID="));
    api.configure(|s| s.cookies = false).unwrap();
    assert_eq!(incidents(&api, &[]).header("set-cookie"), None);
}

#[test]
fn everything_can_be_done_and_seen_over_the_control_endpoint() {
    let api = TableApi::start().unwrap();
    let (status, done) = control(
        &api,
        &json!([
            {"op": "run_clock", "running": false},
            {"op": "set_clock", "at": "2026-01-01 00:00:00"},
            {"op": "create", "table": "u_thing", "columns": [{"name": "weight", "kind": "number"}]},
            {"op": "load", "table": "u_thing", "rows": [
                {"sys_id": "t1", "weight": 3, "owner": {"value": "u1", "display_value": "Ada", "link": "http://x/u1"}},
                {"sys_id": "t2", "weight": null, "active": true},
            ]},
            {"op": "insert", "table": "u_thing", "fields": {"sys_id": "t3"}},
            {"op": "update", "table": "u_thing", "sys_id": "t3", "fields": {"weight": "7"}},
            {"op": "delete", "table": "u_thing", "sys_id": "t2"},
            {"op": "generate", "table": "incident", "rows": 20, "per_second": 5},
            {"op": "change_requests"},
            {"op": "access", "table": "change_request", "rules": {"forbidden": "rights"}},
            {"op": "settings", "settings": {"limit_clamp": 2}},
            {"op": "view", "name": "v", "view": {"parts": [{"table": "u_thing", "prefix": "th"}]}},
        ]),
    );
    assert_eq!(status, 200, "{done}");
    let things = get(&api, "/api/now/table/u_thing", &[("sysparm_query", "ORDERBYsys_id")]);
    assert_eq!(things.column("sys_id"), ["t1", "t3"]);
    assert_eq!(things.rows()[0]["owner"], json!({"link": "http://x/u1", "value": "u1"}));
    assert_eq!(things.rows()[1]["sys_mod_count"], "1");
    assert_eq!(incidents(&api, &[]).rows().len(), 2);
    assert_eq!(get(&api, "/api/now/table/change_request", &[]).status, 403);
    assert_eq!(get(&api, "/api/now/table/v", &[]).rows().len(), 2);
    let show = |what: &str| get(&api, &format!("/control/{what}"), &[]).json();
    assert_eq!(show("versions/u_thing")["versions"], json!([["2026-01-01 00:00:00", "t1", 0], ["2026-01-01 00:00:00", "t3", 1]]));
    assert_eq!(show("log")["log"].as_array().unwrap().len(), 4);
    assert_eq!(show("counters")["counters"]["requests"], 4);
    assert_eq!(show("refusals"), json!({"refusals": []}));
    assert_eq!(show("settings")["settings"]["limit_clamp"], 2);
    assert_eq!(show("clock")["now"], "2026-01-01 00:00:00");
    assert_eq!(show("faults")["pending"], 0);
    assert_eq!(get(&api, "/control/nothing", &[]).status, 400);
}

#[test]
fn made_up_rows_have_the_size_the_pace_and_the_start_that_were_asked_for() {
    let api = TableApi::start().unwrap();
    let start = Some("2026-01-01 00:00:00".to_owned());
    let spec = Generate { per_second: 50, start, bytes_per_row: 1000, ..Generate::rows("incident", 1000) };
    assert_eq!(api.generate(spec.clone()).unwrap(), 1000);
    let versions = api.visible_versions("incident").unwrap();
    assert_eq!((versions[0].0.as_str(), versions[999].0.as_str()), ("2026-01-01 00:00:00", "2026-01-01 00:00:19"));
    let reply = incidents(&api, &[("sysparm_query", IN_ORDER), ("sysparm_limit", "100")]);
    let size = reply.body.len() / 100;
    assert!((900..1100).contains(&size), "{size}");
    api.generate(spec).unwrap();
    assert_eq!(api.visible_versions("incident").unwrap().len(), 2000);
}
