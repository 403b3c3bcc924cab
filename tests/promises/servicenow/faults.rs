//! What goes wrong with requests: nothing is lost, at most one page comes twice, and the message says what to do.

use std::collections::BTreeSet;

use tablesweep::cursor::Standing;
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::{Credentials, Effect, Fault, HtmlPage, Settings, TableApi};

use crate::laptop::{Laptop, PASSWORD};

const PAGE: usize = 10;

/// A backfill of ten pages, struck at the third request; then a run without the fault.
async fn struck(fault: Fault) -> (Laptop, TableReport) {
    let laptop = Laptop::new().with("snow.source.batch.size", PAGE).with("snow.http.request.timeout.ms", 400);
    laptop.generate(100, 3);
    laptop.api.fault(fault.skip(2));
    let report = laptop.sweep().await;
    (laptop, report)
}

/// After the fault is gone everything has arrived, and at most one page twice.
async fn heals(laptop: &Laptop) {
    laptop.api.clear_faults();
    for _ in 0..3 {
        laptop.sweep().await;
    }
    let delivered = laptop.versions();
    let distinct: BTreeSet<_> = delivered.iter().cloned().collect();
    assert_eq!(distinct, laptop.expected().into_iter().collect(), "nothing lost");
    assert!(delivered.len() - distinct.len() <= PAGE, "{} rows twice", delivered.len() - distinct.len());
}

#[tokio::test]
async fn a_passing_fault_in_the_middle_of_a_backfill_is_not_even_noticed() {
    let html = |page| Effect::Html { page };
    for effect in [
        Effect::Status { status: 503, body: None, content_type: None, headers: Default::default() },
        Effect::Status { status: 429, body: None, content_type: None, headers: [("Retry-After".to_owned(), "0".to_owned())].into() },
        Effect::Status { status: 429, body: None, content_type: None, headers: Default::default() },
        Effect::Status { status: 408, body: None, content_type: None, headers: Default::default() },
        Effect::Status { status: 425, body: None, content_type: None, headers: Default::default() },
        Effect::MalformedJson,
        Effect::CutBody { after: 100 },
        Effect::EmptyBody,
        Effect::Accepted { body: "{}".to_owned() },
        Effect::Accepted { body: String::new() },
        html(HtmlPage::Hibernating),
        html(HtmlPage::Login),
        html(HtmlPage::Maintenance),
        Effect::Reset,
        Effect::Cancelled { keep: 3 },
        Effect::DelayHeaders { millis: 1_000 },
        Effect::DelayBody { after: 50, millis: 1_000 },
    ] {
        let name = format!("{effect:?}");
        let (laptop, report) = struck(Fault::new(effect)).await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 100), "{name}: {report:?}");
        assert_eq!(laptop.api.pending_faults(), 0, "{name} struck");
        assert_eq!(laptop.versions(), laptop.expected(), "{name}");
        heals(&laptop).await;
    }
}

#[tokio::test]
async fn a_fault_that_stays_says_what_happened_and_the_next_run_goes_on_where_it_struck() {
    let status = |status, body: Option<&str>| Effect::Status {
        status,
        body: body.map(str::to_owned),
        content_type: None,
        headers: Default::default(),
    };
    for (effect, outcome, code, words) in [
        (status(503, None), Outcome::Failed, "Source.Unavailable", "next tick"),
        (status(500, None), Outcome::Failed, "Source.Unavailable", "500"),
        (status(403, None), Outcome::Parked, "Source.Forbidden", "read access"),
        (status(404, None), Outcome::Parked, "Source.TableMissing", "name key"),
        (
            status(400, Some(r#"{"error":{"message":"Invalid table incident","detail":null},"status":"failure"}"#)),
            Outcome::Parked,
            "Source.TableMissing",
            "Invalid table incident",
        ),
        (status(414, None), Outcome::Parked, "Source.UrlTooLong", "characters"),
        (Effect::MalformedJson, Outcome::Failed, "Source.Malformed", "Nothing of it was used"),
        (Effect::CutBody { after: 100 }, Outcome::Failed, "Source.Malformed", "cut"),
        (Effect::EmptyBody, Outcome::Failed, "Source.Malformed", "empty"),
        (Effect::Accepted { body: "{}".to_owned() }, Outcome::Failed, "Source.Unavailable", "202"),
        (Effect::Html { page: HtmlPage::Hibernating }, Outcome::Failed, "Source.NotData", "Instance Hibernating"),
        (
            Effect::Redirect { location: "https://elsewhere.example/login?t=1".to_owned(), status: None },
            Outcome::Parked,
            "Source.Redirected",
            "https://elsewhere.example/login",
        ),
        (Effect::PredicateIgnored, Outcome::Parked, "Source.PredicateIgnored", "query_range"),
        (Effect::OrderIgnored, Outcome::Parked, "Source.OutOfOrder", "ORDERBY"),
        (Effect::RowsRepeated { rows: 2 }, Outcome::Parked, "Source.PredicateIgnored", "sysparm_limit"),
        (Effect::FieldMissing { field: "sys_updated_on".to_owned() }, Outcome::Parked, "Source.BadRow", "sys_updated_on"),
    ] {
        let name = format!("{effect:?}");
        let (laptop, report) = struck(Fault::new(effect).always()).await;
        let reason = report.reason.clone().unwrap_or_else(|| panic!("{name} has no reason: {report:?}"));
        assert_eq!((report.outcome, reason.code.as_str()), (outcome, code), "{name}: {}", reason.message);
        assert!(reason.message.contains(words) && reason.message.contains("snow/inc"), "{name}: {}", reason.message);
        assert!(report.rows >= PAGE as u64, "what came before the fault is kept: {name}");
        let parked = matches!(laptop.item().await.standing, Standing::Parked(_));
        assert_eq!(parked, outcome == Outcome::Parked, "{name}");
        heals(&laptop).await;
        assert_eq!(laptop.item().await.standing, Standing::Active, "{name}");
    }
}

#[tokio::test]
async fn a_page_larger_than_may_be_read_is_asked_for_smaller() {
    for effect in [Effect::BigBody { bytes: 3 << 20 }, Effect::GzipBomb { bytes: 200 << 20 }] {
        let laptop = Laptop::new().with("snow.source.batch.size", 100).with("snow.http.max.response.bytes", 1 << 20);
        laptop.generate(300, 5);
        laptop.api.fault(Fault::new(effect).limit_over(30).always());
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 300), "{report:?}");
        assert_eq!(laptop.versions(), laptop.expected());
    }
}

#[tokio::test]
async fn one_row_larger_than_may_be_read_parks_the_table_and_says_which_key_to_raise() {
    let laptop = Laptop::new().with("snow.source.batch.size", 4).with("snow.http.max.response.bytes", 1 << 20);
    laptop.generate(3, 1);
    laptop.api.fault(Fault::new(Effect::BigBody { bytes: 2 << 20 }).always());
    let report = laptop.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Source.TooLarge"));
    assert!(reason.message.contains("snow.http.max.response.bytes"), "{}", reason.message);
}

#[tokio::test]
async fn rows_without_any_readable_field_are_hidden_rows() {
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(9, 1);
    laptop.api.fault(Fault::new(Effect::EmptyRows { every: 3 }).always());
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.rows_hidden, report.outcome), (6, 3, Outcome::CaughtUp), "{report:?}");
}

#[tokio::test]
async fn a_row_without_a_readable_cursor_is_skipped_and_counted_if_so_wished() {
    let laptop = Laptop::new().with("snow.source.bad.row.behavior", "skip");
    laptop.generate(9, 1);
    laptop.api.fault(Fault::new(Effect::FieldToken { field: "sys_updated_on".to_owned(), token: "null".to_owned() }).times(1));
    let report = laptop.sweep().await;
    assert_eq!(report.rows_skipped, 9, "{report:?}");
    laptop.sweep().await;
    assert_eq!(laptop.versions(), laptop.expected(), "skipping moved no cursor past them");
}

#[tokio::test]
async fn a_refused_password_is_tried_once_and_no_row_is_lost() {
    let credentials = Credentials { basic: Some(("sweep".to_owned(), "another".to_owned())), ..Credentials::default() };
    let mut laptop = Laptop::new();
    laptop.api = TableApi::start_with(([127, 0, 0, 1], 0).into(), Settings::default(), credentials).expect("the simulator");
    let url = laptop.api.url();
    laptop.set("snow.url", url);
    laptop.generate(5, 1);
    let report = laptop.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str(), report.requests), (Outcome::Parked, "Source.Unauthorized", 1), "{}", reason.message);
    assert!(!reason.message.contains(PASSWORD));
}

#[tokio::test]
async fn a_token_that_dies_in_the_middle_of_a_run_is_replaced_once() {
    let credentials = Credentials { oauth: Some(("cid".to_owned(), "csecret".to_owned())), ..Credentials::default() };
    let settings = Settings { token_uses: Some(3), ..Settings::default() };
    let mut laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.api = TableApi::start_with(([127, 0, 0, 1], 0).into(), settings, credentials).expect("the simulator");
    let url = laptop.api.url();
    for (key, value) in
        [("snow.url", url.as_str()), ("snow.auth.type", "oauth2"), ("snow.oauth.client.id", "cid"), ("snow.oauth.client.secret", "csecret")]
    {
        laptop.set(key, value);
    }
    laptop.generate(100, 3);
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 100), "{report:?}");
    assert_eq!(laptop.versions(), laptop.expected());
    assert!(laptop.api.counters().tokens_issued >= 3);
}

#[tokio::test]
async fn a_page_that_something_in_front_of_the_instance_does_not_let_through_is_asked_for_smaller() {
    let status = |status, page: bool| Effect::Status {
        status,
        body: page.then(|| "<html><title>Gateway Time-out</title></html>".to_owned()),
        content_type: page.then(|| "text/html".to_owned()),
        headers: Default::default(),
    };
    for effect in [
        status(504, false),
        status(504, true),
        status(408, false),
        status(499, false),
        Effect::CutBody { after: 200 },
        Effect::MalformedJson,
    ] {
        let name = format!("{effect:?}");
        let laptop = Laptop::new().with("snow.source.batch.size", 200).with("snow.retry.max.attempts", 2);
        laptop.generate(600, 5);
        laptop.api.fault(Fault::new(effect.clone()).limit_over(100).always());
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 600), "{name}: {report:?}");
        assert_eq!(laptop.versions(), laptop.expected(), "{name}");

        // Where half a page does not come either, the tick ends, and the next one asks for half of that.
        let laptop = Laptop::new().with("snow.source.batch.size", 200).with("snow.retry.max.attempts", 2);
        laptop.generate(600, 5);
        laptop.api.fault(Fault::new(effect).limit_over(20).always());
        for (requests, left) in [(4, 50), (4, 12)] {
            let report = laptop.sweep().await;
            assert_eq!((report.outcome, report.requests), (Outcome::Failed, requests), "{name}: {report:?}");
            assert_eq!(laptop.item().await.progress.page_size, Some(left), "{name}");
        }
        assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp, "{name}");
        assert_eq!(laptop.versions(), laptop.expected(), "{name}");
    }
}
