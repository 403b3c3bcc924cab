//! A registry that refuses, fails, lies or is gone: each is an error with a code, the cursor stays, and the rows come
//! once the registry is back.

use std::time::Duration;

use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::proxy::{Action, Fault, Proxy};
use tablesweep_testbed::schema_registry::PATH;
use tablesweep_testbed::table_api::Fields;

use super::Stand;

fn answer(status: u16, body: &str) -> Action {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Action::Answer { status, headers, body: body.to_owned() }
}

/// The outcome and the code of a sweep that failed before anything was produced.
async fn failed(stand: &Stand) -> (TableReport, String) {
    let report = stand.sweep().await;
    stand.assert_untouched().await;
    let reason = report.reason.clone().expect("a reason");
    let named = [stand.subject().as_str(), "snow/inc"].map(|word| reason.message.contains(word));
    assert_eq!(named, [true; 2], "subject and table are named: {}", reason.message);
    (report, reason.code)
}

#[tokio::test]
async fn each_refusal_has_its_code_and_is_asked_for_again_only_where_that_may_help() {
    let error = |code: u32| format!(r#"{{"error_code":{code},"message":"so it is"}}"#);
    for (status, body, code, outcome, requests) in [
        (401, error(401), "Registry.Unauthorized", Outcome::Parked, 1),
        (403, error(40301), "Registry.Forbidden", Outcome::Parked, 1),
        (404, "<html>not here</html>".to_owned(), "Registry.NotARegistry", Outcome::Parked, 1),
        (409, error(409), "Registry.Incompatible", Outcome::Parked, 1),
        (422, error(42201), "Registry.Refused", Outcome::Parked, 1),
        (429, error(429), "Registry.Unavailable", Outcome::Failed, 3),
        (500, error(50001), "Registry.Unavailable", Outcome::Failed, 3),
        (503, "<html>maintenance</html>".to_owned(), "Registry.Unavailable", Outcome::Failed, 3),
        (200, "<html>a login</html>".to_owned(), "Registry.NotARegistry", Outcome::Parked, 1),
        (200, r#"{"id":"x"}"#.to_owned(), "Registry.NotARegistry", Outcome::Parked, 1),
    ] {
        let stand = Stand::new(&format!("refused-{status}-{requests}-{}", body.len())).await.with("max.retries", "2");
        stand.proxy.on("POST", 1.., answer(status, &body));
        let (report, found) = failed(&stand).await;
        assert_eq!((found.as_str(), report.outcome, stand.asked().len()), (code, outcome, requests), "{status} {body}");
        let message = report.reason.expect("a reason").message;
        assert!(!body.contains("so it is") || message.contains("so it is"), "{message}");
        stand.proxy.clear();
        assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp, "{status}");
        stand.assert_complete();
    }
}

#[tokio::test]
async fn a_failure_that_passes_within_the_sweep_is_no_failure() {
    let stand = Stand::new("passes").await;
    stand.proxy.on("POST", 1..=2, answer(503, ""));
    let report = stand.sweep().await;
    assert_eq!((report.outcome, report.reason), (Outcome::CaughtUp, None));
    assert_eq!(stand.asked().len(), 3);
    stand.assert_complete();
}

#[tokio::test]
async fn an_answer_that_is_lost_is_asked_for_again_and_registers_nothing_twice() {
    let stand = Stand::new("lost-answer").await;
    let lost = stand.proxy.on("POST", 1..=1, Action::DropResponse);
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    assert_eq!((lost.fired(), stand.asked().len()), (1, 2));
    assert_eq!(stand.registry.versions(&stand.subject()).await.expect("versions"), [1]);
    stand.assert_complete();
}

#[tokio::test]
async fn a_registry_that_is_gone_is_told_so_and_the_rows_come_when_it_is_back() {
    let stand = Stand::new("gone").await;
    stand.proxy.set(Fault::Refuse);
    let (report, code) = failed(&stand).await;
    assert_eq!((report.outcome, code.as_str()), (Outcome::Failed, "Registry.Unavailable"));
    stand.proxy.clear();
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    stand.assert_complete();
}

#[tokio::test]
async fn a_registry_that_hangs_holds_a_sweep_up_no_longer_than_its_timeout() {
    let stand = Stand::new("hangs").await.with("http.read.timeout.ms", "300").with("max.retries", "1");
    let held = stand.proxy.on("POST", 1.., Action::HoldRequest);
    let begun = stand.laptop.host.monotonic();
    let (report, code) = failed(&stand).await;
    let took = stand.laptop.host.monotonic() - begun;
    assert_eq!((report.outcome, code.as_str(), held.fired()), (Outcome::Failed, "Registry.Unavailable", 2));
    assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(15), "{took:?}");
    assert!(report.reason.expect("a reason").message.contains("timed out"));
    stand.proxy.clear();
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    stand.assert_complete();
}

#[tokio::test]
async fn a_registry_that_hangs_when_the_invocation_is_nearly_over_does_not_outlive_it() {
    let mut stand = Stand::new("hangs-late").await;
    // The last page is fetched within two seconds, records are handed over within three; a registry alone may take twenty.
    let length = Duration::from_secs(6);
    stand.laptop.max_time = Some(length);
    let held = stand.proxy.on("POST", 1.., Action::HoldRequest);
    let begun = stand.laptop.host.monotonic();
    let (report, code) = failed(&stand).await;
    let took = stand.laptop.host.monotonic() - begun;
    assert!(held.fired() >= 1 && took < length, "{took:?}");
    assert_eq!((report.outcome, code.as_str()), (Outcome::Failed, "Registry.Unavailable"));
    let item = stand.laptop.item().await;
    assert_eq!((item.lease, item.tries), (None, 0), "the lease was given back, and nobody died");
    stand.proxy.clear();
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    stand.assert_complete();
}

#[tokio::test]
async fn a_later_page_whose_registry_does_not_answer_before_the_invocation_ends_is_left_for_the_next_one() {
    let stand = Stand::new("hangs-later").await;
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    // Two pages, and a registry that is asked with each.
    let mut stand = stand.with("auto.register.schemas", false).with("use.latest.version", true).with("latest.cache.ttl.sec", 0);
    stand.laptop.set("snow.source.batch.size", "5");
    for second in 0..10 {
        let time = format!("2026-02-02 00:00:{second:02}");
        stand.laptop.api.insert("incident", Fields::from([("sys_updated_on", time.as_str())])).expect("a row");
    }
    // Pages are fetched for four seconds, and handed over for five.
    stand.laptop.max_time = Some(Duration::from_secs(8));
    let held = stand.proxy.on("/versions/latest", 2.., Action::HoldRequest);
    let report = stand.sweep().await;
    assert!(held.fired() >= 1 && (1..10).contains(&report.rows), "{report:?}");
    assert_eq!((report.outcome, report.reason), (Outcome::More, None), "out of time is no failure");
    let item = stand.laptop.item().await;
    assert_eq!((item.lease, item.tries), (None, 0), "the lease was given back, and nobody died");
    stand.proxy.clear();
    stand.laptop.max_time = None;
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    stand.assert_complete();
}

#[tokio::test]
async fn the_next_address_is_asked_when_one_does_not_answer_and_stays_the_first_to_be_asked() {
    let stand = Stand::new("failover").await;
    let dead = Proxy::http(stand.registry.address()).await.expect("a proxy");
    let unwell = dead.on("POST", 1.., answer(503, ""));
    let urls = format!("{}{PATH},{}{PATH}", dead.url(), stand.proxy.url());
    let stand = stand.with("schema.registry.url", urls);
    let process = stand.laptop.assembly(&stand.laptop.host);
    assert_eq!(stand.warm(&process).await.outcome, Outcome::CaughtUp);
    assert_eq!((unwell.fired(), stand.asked().len()), (1, 1));
    stand.assert_complete();

    // Another schema, and so another question.
    let row = Fields::from([("sys_updated_on", "2026-02-02 00:00:00"), ("u_new", "x")]);
    stand.laptop.api.insert("incident", row).expect("a row");
    assert_eq!(stand.warm(&process).await.rows, 1);
    assert_eq!((unwell.fired(), stand.asked().len()), (1, 2));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_takes_no_credential_along() {
    let elsewhere = Proxy::http("127.0.0.1:9".parse().expect("an address")).await.expect("a proxy");
    let stand =
        Stand::new("redirect").await.with("basic.auth.credentials.source", "USER_INFO").with("basic.auth.user.info", "me:hunter2-hunter2");
    let headers = vec![("location".to_owned(), elsewhere.url())];
    stand.proxy.on("POST", 1.., Action::Answer { status: 307, headers, body: String::new() });
    let (report, code) = failed(&stand).await;
    assert_eq!((report.outcome, code.as_str()), (Outcome::Parked, "Registry.NotARegistry"));
    assert!(elsewhere.carried().is_empty());
    assert!(!report.reason.expect("a reason").message.contains("hunter2-hunter2"));
}
