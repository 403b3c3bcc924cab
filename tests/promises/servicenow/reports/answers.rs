//! Answers that are no answers: a status of 200 that means nothing, pages for people, requests that were dropped.

use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Effect, Fault, HtmlPage};

use crate::laptop::Laptop;

const PAGE: u64 = 10;

fn body(status: u16, content_type: &str, body: &str) -> Effect {
    Effect::Status { status, body: Some(body.to_owned()), content_type: Some(content_type.to_owned()), headers: Default::default() }
}

fn laptop() -> Laptop {
    let laptop = Laptop::new().with("snow.source.batch.size", PAGE).with("snow.source.startup.probe", false);
    laptop.generate(40, 1);
    laptop
}

/// Once the fault is gone every row comes, none twice.
async fn heals(laptop: &Laptop, name: &str) {
    laptop.api.clear_faults();
    laptop.sweep().await;
    assert_eq!(laptop.versions(), laptop.expected(), "{name}");
}

/// Report 4: a status of 200 with some rows and an error was taken for a page, or crashed the reader.
#[tokio::test]
async fn rows_that_come_with_an_error_are_not_used() {
    for (limit, keep) in [(4, 2), (0, 0), (1, 1)] {
        let laptop = laptop();
        laptop.api.fault(Fault::new(Effect::Cancelled { keep }).limit_over(limit).skip(1).always());
        let report = laptop.sweep().await;
        match limit {
            0 => assert_eq!((report.outcome, report.rows), (Outcome::Failed, PAGE), "{report:?}"),
            _ => assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 40), "{report:?}"),
        }
        heals(&laptop, &format!("more than {limit} rows are cancelled")).await;
    }
    let partial = "{\"result\":[{\"sys_id\":\"a\",\"sys_updated_on\":\"2026-02-01 00:00:00\"}],\"error\":{\"message\":\"odd\",\"detail\":null},\"status\":\"failure\"}";
    let text = "{\"result\":\"none\",\"error\":{\"message\":\"odd\",\"detail\":null},\"status\":\"failure\"}";
    for said in [partial, text] {
        let laptop = laptop();
        laptop.api.fault(Fault::new(body(200, "application/json", said)).skip(1).always());
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::Failed, PAGE), "{said}: {report:?}");
        heals(&laptop, said).await;
    }
}

/// Report 5: a batch of any size runs into the instance's time limit, again and again.
#[tokio::test]
async fn a_page_that_is_too_much_for_the_instance_is_asked_for_smaller_and_the_size_is_remembered() {
    let laptop = Laptop::new().with("snow.source.batch.size", 1000);
    laptop.generate(3_000, 5);
    laptop.api.fault(Fault::new(Effect::Cancelled { keep: 2 }).limit_over(500).always());
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 3_000), "{report:?}");
    assert_eq!(laptop.versions(), laptop.expected());
    assert!(laptop.item().await.progress.page_size.is_some_and(|rows| rows <= 500));
}

/// Report 7: JSON that breaks off within a row and ends in stray quotes, with a status of 200.
#[tokio::test]
async fn json_that_breaks_off_anywhere_moves_nothing_and_is_asked_for_again() {
    let odd = [
        Effect::MalformedJson,
        Effect::CutBody { after: 1 },
        Effect::CutBody { after: 900 },
        Effect::EmptyBody,
        body(200, "application/json", "{\"result\":[{\"sys_id\":\"a\"}\"\",{\"error\":{\"message\":\"odd\"}}"),
        body(200, "application/json", "{\"result\":[]} {\"result\":[]}"),
        body(200, "application/json", "{}"),
        body(200, "application/json", "null"),
        body(200, "application/json", "[]"),
    ];
    for effect in odd {
        let name = format!("{effect:?}");
        for page in 0..4 {
            let laptop = laptop();
            laptop.api.fault(Fault::new(effect.clone()).skip(page).times(2));
            let report = laptop.sweep().await;
            assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 40), "{name} on page {page}: {report:?}");
            assert_eq!(laptop.versions(), laptop.expected(), "{name} on page {page}");
        }
        let laptop = laptop();
        laptop.api.fault(Fault::new(effect).skip(2).always());
        let report = laptop.sweep().await;
        let reason = report.reason.expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Failed, "Source.Malformed"), "{name}: {}", reason.message);
        heals(&laptop, &name).await;
    }
}

/// Reports 22 and 25: a page for people (the instance hibernates, wants a login, is in maintenance) was parsed as JSON, or taken for no rows.
#[tokio::test]
async fn a_page_for_people_is_no_data_whatever_its_status_and_type() {
    let html = "<!DOCTYPE html><html><head><title>Your instance is hibernating</title></head><body>Sign in</body></html>";
    for effect in [
        Effect::Html { page: HtmlPage::Hibernating },
        Effect::Html { page: HtmlPage::Login },
        Effect::Html { page: HtmlPage::Maintenance },
        body(200, "application/json", html),
        body(200, "text/plain", html),
        body(503, "text/html", html),
        Effect::ContentType { value: "text/html;charset=UTF-8".to_owned() },
    ] {
        let name = format!("{effect:?}");
        let laptop = laptop();
        laptop.api.fault(Fault::new(effect).skip(2).always());
        let report = laptop.sweep().await;
        let reason = report.reason.clone().expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Failed, "Source.NotData"), "{name}: {}", reason.message);
        assert!(reason.message.contains("hibernates, is in maintenance, or asks for a login"), "{name}: {}", reason.message);
        assert!(report.rows > 0 && report.rows < 40, "{name}: {report:?}");
        heals(&laptop, &name).await;
    }
}

/// Report 35: a status of 202, because a request came with the cookie of a session that is busy, or for no reason at all.
#[tokio::test]
async fn a_request_that_is_queued_or_dropped_is_sent_again_without_a_session() {
    for said in ["", "{}", "{\"result\":[]}"] {
        let laptop = laptop();
        let accepted = || Effect::Accepted { body: said.to_owned() };
        laptop.api.fault(Fault::new(accepted()).with_cookie().always());
        laptop.api.fault(Fault::new(accepted()).skip(2).times(2));
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 40), "{said:?}: {report:?}");
        assert_eq!(laptop.versions(), laptop.expected(), "{said:?}");
        assert_eq!(laptop.api.counters().with_cookie, 0, "no cookie is ever sent back");
    }
}

/// Report 27: a login that single sign-on or MFA refuses was tried until the account was locked.
#[tokio::test]
async fn a_login_that_is_refused_for_ever_is_tried_seldom_and_says_which_it_was() {
    let mut laptop = laptop();
    let said =
        "{\"error\":{\"message\":\"User Not Authenticated\",\"detail\":\"Required to provide Auth information\"},\"status\":\"failure\"}";
    laptop.api.fault(Fault::new(body(401, "application/json", said)).always());
    let report = laptop.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Source.Unauthorized"), "{}", reason.message);
    assert!(reason.message.contains("User Not Authenticated") && reason.message.contains("password"), "{}", reason.message);
    laptop.scheduled = true;
    for _ in 0..20 {
        laptop.sweep().await;
    }
    assert!(laptop.api.counters().requests <= 2, "{:?}", laptop.api.counters());
}
