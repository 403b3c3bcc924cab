//! Each fault does what its name says, to the requests that it is meant for and to no other.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::client::{IN_ORDER, Reply, get, get_with, id, incidents, numbered, send};
use crate::table_api::{Command, Effect, Fault, Fields, HtmlPage, TableApi};

const ORDERED: [(&str, &str); 1] = [("sysparm_query", IN_ORDER)];

/// Ten rows and this fault; the answer that it strikes, and a check that the next one is whole again.
fn struck(effect: Effect) -> Reply {
    let api = numbered(10);
    let name = effect.name();
    api.fault(Fault::new(effect));
    let reply = incidents(&api, &ORDERED);
    assert_eq!(api.log()[0].faults, [name]);
    assert_eq!(incidents(&api, &ORDERED).rows().len(), 10);
    assert_eq!(api.pending_faults(), 0);
    reply
}

#[test]
fn a_status_comes_with_its_body_and_headers() {
    let api = numbered(1);
    api.fault(Fault::status(429, "Rate limit exceeded").header("Retry-After", "7"));
    let reply = incidents(&api, &[]);
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("7")));
    assert_eq!(reply.json()["error"]["message"], "Rate limit exceeded");
}

#[test]
fn a_cancelled_transaction_is_200_with_some_rows_and_an_error() {
    let api = numbered(10);
    api.fault(Fault::new(Effect::Cancelled { keep: 2 }).limit_over(5).always());
    let read = |limit: &str| incidents(&api, &[("sysparm_query", IN_ORDER), ("sysparm_limit", limit)]);
    let cancelled = read("6");
    assert_eq!((cancelled.status, cancelled.rows().len()), (200, 2));
    let error = &cancelled.json()["error"]["message"];
    assert_eq!(error, "Transaction cancelled: maximum execution time exceeded");
    let fine = read("5");
    assert!(fine.rows().len() == 5 && fine.json().get("error").is_none());
}

#[test]
fn malformed_json_breaks_off_inside_a_row() {
    let reply = struck(Effect::MalformedJson);
    assert!(reply.status == 200 && reply.complete);
    assert!(reply.text().ends_with("}\"\"") && reply.text().contains(&id(9)));
    assert!(serde_json::from_str::<serde_json::Value>(&reply.text()).is_err());
}

#[test]
fn a_cut_body_ends_before_its_announced_length() {
    let reply = struck(Effect::CutBody { after: 100 });
    assert_eq!((reply.status, reply.complete, reply.body.len()), (200, false, 100));
    let announced: usize = reply.header("content-length").unwrap().parse().unwrap();
    assert!(announced > 100);
}

#[test]
fn bodies_can_be_empty_or_merely_accepted() {
    let empty = struck(Effect::EmptyBody);
    assert_eq!((empty.status, empty.body.len(), empty.complete), (200, 0, true));
    for body in ["{}", ""] {
        let accepted = struck(Effect::Accepted { body: body.to_owned() });
        assert_eq!((accepted.status, accepted.text().as_str()), (202, body));
    }
}

#[test]
fn pages_for_people_come_with_200() {
    for (page, words) in [(HtmlPage::Login, "Log in"), (HtmlPage::Hibernating, "hibernating"), (HtmlPage::Maintenance, "maintenance")] {
        let reply = struck(Effect::Html { page });
        assert_eq!((reply.status, reply.header("content-type").unwrap()), (200, "text/html;charset=UTF-8"));
        assert!(reply.text().contains(words));
    }
}

#[test]
fn answers_can_be_slow_to_start_to_go_on_and_all_along() {
    for effect in
        [Effect::DelayHeaders { millis: 80 }, Effect::DelayBody { after: 50, millis: 80 }, Effect::SlowBody { chunk: 200, millis: 20 }]
    {
        let api = numbered(10);
        api.fault(Fault::new(effect));
        let started = Instant::now();
        assert_eq!(incidents(&api, &ORDERED).rows().len(), 10);
        assert!(started.elapsed() >= Duration::from_millis(80));
    }
}

#[test]
fn a_connection_can_be_reset_and_connections_can_be_refused() {
    let api = numbered(1);
    api.fault(Fault::new(Effect::Reset));
    let reset = get_with(&api, "/api/now/table/incident", &[], "").unwrap_err();
    assert!(matches!(reset.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof), "{reset}");
    assert_eq!(incidents(&api, &[]).status, 200);
    for _ in 0..3 {
        api.refuse_connections(true).unwrap();
        let refused = get_with(&api, "/api/now/table/incident", &[], "").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        api.refuse_connections(false).unwrap();
        assert_eq!(incidents(&api, &[]).status, 200);
    }
}

#[test]
fn a_redirect_leads_elsewhere_and_a_content_type_can_lie() {
    let reply = struck(Effect::Redirect { location: "http://elsewhere.invalid/login".to_owned(), status: None });
    assert_eq!((reply.status, reply.header("location")), (302, Some("http://elsewhere.invalid/login")));
    let reply = struck(Effect::ContentType { value: "text/plain".to_owned() });
    assert_eq!((reply.header("content-type"), reply.rows().len()), (Some("text/plain"), 10));
}

#[test]
fn a_body_can_be_larger_than_any_bound_on_the_wire_or_after_inflation() {
    let big = struck(Effect::BigBody { bytes: 1_000_000 });
    assert!(big.body.len() == 1_000_000 && big.rows().len() == 10);
    let bomb = struck(Effect::GzipBomb { bytes: 20_000_000 });
    assert_eq!(bomb.header("content-encoding"), Some("gzip"));
    assert!(bomb.body.len() < 200_000 && bomb.text().len() == 20_000_000);
}

#[test]
fn the_query_can_be_ignored_in_part() {
    let api = numbered(30);
    let query = [("sysparm_query", "sys_updated_on>2026-01-01 00:00:25^ORDERBYsys_updated_on^ORDERBYsys_id")];
    api.fault(Fault::new(Effect::PredicateIgnored));
    let all = incidents(&api, &query).column("sys_id");
    assert!(all.len() == 30 && all.is_sorted());
    api.fault(Fault::new(Effect::OrderIgnored));
    let shuffled = incidents(&api, &ORDERED).column("sys_id");
    assert!(shuffled.len() == 30 && !shuffled.is_sorted());
}

#[test]
fn rows_can_be_repeated_emptied_and_have_odd_or_missing_fields() {
    assert_eq!(struck(Effect::RowsRepeated { rows: 2 }).column("number").concat(), "1234567891012");
    let emptied = struck(Effect::EmptyRows { every: 4 }).rows();
    assert_eq!(emptied.iter().filter(|row| row.as_object().unwrap().is_empty()).count(), 2);
    let odd = |token: &str| struck(Effect::FieldToken { field: "number".to_owned(), token: token.to_owned() });
    for token in ["null", "17", "\"\\ud800\"", "\"\\u0000\"", "\"𝄞\""] {
        assert_eq!(odd(token).text().matches(&format!("\"number\":{token}")).count(), 10, "{token}");
    }
    let missing = struck(Effect::FieldMissing { field: "sys_updated_on".to_owned() }).rows();
    assert!(missing.iter().all(|row| row.get("sys_updated_on").is_none() && row.get("number").is_some()));
}

#[test]
fn the_count_and_the_date_can_lie() {
    assert_eq!(struck(Effect::TotalCount { total: 99 }).total(), Some(99));
    let date = struck(Effect::DateHeader { value: "yesterday".to_owned() });
    let dates: Vec<_> = date.headers.iter().filter(|(name, _)| name == "date").collect();
    assert_eq!(dates, [&("date".to_owned(), "yesterday".to_owned())]);
}

#[test]
fn a_fault_strikes_the_requests_it_is_meant_for_in_their_turn() {
    let api = numbered(3);
    api.insert("task", Fields::new()).unwrap();
    api.fault(Fault::status(500, "x").table("incident").query("number>1").skip(1).times(2));
    let matching = || incidents(&api, &[("sysparm_query", "number>1")]).status;
    let mut seen = vec![matching()];
    assert_eq!(get(&api, "/api/now/table/task", &[("sysparm_query", "number>1")]).status, 200);
    assert_eq!(incidents(&api, &[("sysparm_query", "number>2")]).status, 200);
    seen.extend([matching(), matching(), matching()]);
    assert_eq!(seen, [200, 500, 500, 200]);
    api.fault(Fault::new(Effect::Accepted { body: "{}".to_owned() }).with_cookie().always());
    let with = |headers: &str| get_with(&api, "/api/now/table/incident", &[], headers).unwrap().status;
    assert_eq!((with(""), with("cookie: JSESSIONID=1\n")), (200, 202));
    api.clear_faults();
    assert_eq!(with("cookie: JSESSIONID=1\n"), 200);
}

#[test]
fn the_data_can_change_right_after_an_answer() {
    let api = numbered(3);
    let insert = Command::Insert { table: "incident".to_owned(), fields: [("number", "new")].into() };
    let update = Command::Update { table: "incident".to_owned(), sys_id: id(1), fields: [("number", "one")].into() };
    api.fault(Fault::then(vec![insert, update]).table("incident").skip(1));
    let numbers = || {
        let mut numbers = incidents(&api, &[]).column("number");
        numbers.sort();
        numbers.join(",")
    };
    assert_eq!([numbers(), numbers(), numbers()], ["1,2,3", "1,2,3", "2,3,new,one"]);
    assert_eq!(api.refusals(), Vec::<String>::new());
    api.fault(Fault::then(vec![Command::Delete { table: "incident".to_owned(), sys_id: "nosuch".to_owned() }]));
    numbers();
    assert_eq!(api.refusals().len(), 1, "a hook that fails is not passed over");
}

#[test]
fn two_faults_add_up_and_the_control_endpoint_takes_them_too() {
    let api: TableApi = numbered(3);
    let fault = r#"[{"op":"fault","effect":{"kind":"content_type","value":"text/plain"},"times":null},
        {"op":"fault","effect":{"kind":"rows_repeated","rows":1},"table":"incident"}]"#;
    let reply = send(&api, "POST /control/apply HTTP/1.1", fault).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.text());
    let struck = incidents(&api, &ORDERED);
    assert_eq!((struck.header("content-type"), struck.rows().len()), (Some("text/plain"), 4));
    assert_eq!(api.pending_faults(), 1);
}
