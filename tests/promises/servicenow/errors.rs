//! The error table: for each answer of an instance how often it is asked for, what becomes of the table, and what is said.
//!
//! Each line strikes one of two tables for good. The other one must not notice; the struck one must say its alias, its table
//! and what to do; a tick must repeat what may pass and leave alone what may not; and when the cause is gone, all rows
//! must come.

use std::sync::Arc;
use std::time::Duration;

use tablesweep::cursor::Standing;
use tablesweep::host::{Host, ManualClock};
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::{Effect, Fault, Fields, Generate, HtmlPage, TooLong};

use crate::laptop::Laptop;

/// Attempts at one request, as the documents of these tests have it.
const ATTEMPTS: u64 = 3;

/// Rows per page, and the requests it takes to find that no page is small enough.
const PAGE: u64 = 8;
const HALVINGS: u64 = 4;

/// A line of the table.
struct Line {
    answer: Effect,
    requests: u64,
    outcome: Outcome,
    code: &'static str,
    words: &'static [&'static str],
}

fn line(answer: Effect, requests: u64, outcome: Outcome, code: &'static str, words: &'static [&'static str]) -> Line {
    Line { answer, requests, outcome, code, words }
}

fn status(status: u16) -> Effect {
    Effect::Status { status, body: None, content_type: None, headers: Default::default() }
}

/// The body that an instance sends with an error.
fn says(status: u16, message: &str, detail: &str) -> Effect {
    let body = serde_json::json!({"error": {"message": message, "detail": detail}, "status": "failure"}).to_string();
    Effect::Status { status, body: Some(body), content_type: None, headers: Default::default() }
}

fn page(status: u16, body: &str) -> Effect {
    Effect::Status { status, body: Some(body.to_owned()), content_type: Some("text/html".to_owned()), headers: Default::default() }
}

/// A laptop with the tables incident and change_request, and its clock.
fn two_tables() -> (Laptop, Arc<ManualClock>) {
    let clock = ManualClock::at(1_772_366_400_000);
    let mut laptop = Laptop::new()
        .with("snow.source.batch.size", PAGE)
        .with("snow.source.startup.probe", false)
        .with("snow.retry.max.attempts", ATTEMPTS)
        .with("snow.http.request.timeout.ms", 300)
        .with("snow.http.max.response.bytes", 1 << 20)
        .with("snow.tables", "inc,chg")
        .with("snow.table.chg.name", "change_request")
        .with("snow.table.chg.topic", "snow.change_request");
    laptop.host = Host::with_clock(clock.clone());
    laptop.generate(20, 3);
    let start = Some("2026-02-01 00:00:00".to_owned());
    laptop.api.generate(Generate { start, ..Generate::rows("change_request", 20) }).expect("rows");
    (laptop, clock)
}

async fn sweep(laptop: &Laptop) -> (TableReport, TableReport) {
    let mut reports = laptop.sweep_all().await.into_iter();
    let (Some(chg), Some(inc)) = (reports.next(), reports.next()) else { panic!("two reports") };
    (inc, chg)
}

/// The queries of the requests for incident since the last call.
fn asked(laptop: &Laptop) -> Vec<String> {
    let queries = laptop.api.reads("incident").into_iter().map(|read| read.query).collect();
    laptop.api.clear_log();
    queries
}

async fn holds(line: Line) {
    let Line { answer, requests, outcome, code, words } = line;
    let name = format!("{answer:?}");
    let (mut laptop, clock) = two_tables();
    laptop.api.fault(Fault::new(answer).table("incident").always());

    let (inc, chg) = sweep(&laptop).await;
    assert_eq!((chg.outcome, chg.rows), (Outcome::CaughtUp, 20), "another table notices nothing: {name}: {chg:?}");
    let reason = inc.reason.clone().unwrap_or_else(|| panic!("{name} has no reason: {inc:?}"));
    assert_eq!((inc.outcome, reason.code.as_str()), (outcome, code), "{name}: {}", reason.message);
    for word in ["snow/inc", "table incident"].iter().chain(words) {
        assert!(reason.message.contains(word), "{name}: {word:?} is not said: {}", reason.message);
    }
    let first = asked(&laptop);
    assert_eq!((first.len() as u64, inc.requests), (requests, requests), "{name}");
    assert_eq!((inc.rows, inc.cursor), (0, None), "{name}");
    let parked = matches!(laptop.standing("inc").await, Standing::Parked(_));
    assert_eq!(parked, outcome == Outcome::Parked, "{name}");

    laptop.scheduled = true;
    clock.advance(Duration::from_secs(30));
    sweep(&laptop).await;
    let next = asked(&laptop);
    match outcome {
        Outcome::Failed => assert_eq!(next.first(), first.first(), "the next tick repeats the request: {name}"),
        _ => assert_eq!(next, Vec::<String>::new(), "a parked table is left alone until its next try: {name}"),
    }
    clock.advance(Duration::from_secs(60));
    laptop.api.clear_faults();
    let (healed, _) = sweep(&laptop).await;
    assert_eq!((healed.outcome, healed.rows), (Outcome::CaughtUp, 20), "{name}: {healed:?}");
    assert_eq!(laptop.standing("inc").await, Standing::Active, "{name}");
}

#[tokio::test]
async fn what_may_pass_is_tried_again_with_pauses_and_then_by_the_next_tick() {
    use Outcome::Failed;
    for (answer, code, words) in [
        (status(425), "Source.Unavailable", &["425", "next tick"][..]),
        (status(429), "Source.RateLimited", &["429", "rate"]),
        (says(500, "Internal error", "x"), "Source.Unavailable", &["500", "Internal error"]),
        (status(502), "Source.Unavailable", &["502"]),
        (status(503), "Source.Unavailable", &["503"]),
        (page(503, "<title>Maintenance</title>"), "Source.NotData", &["503", "Maintenance", "maintenance"]),
        (Effect::Accepted { body: "{}".to_owned() }, "Source.Unavailable", &["202"]),
        (Effect::Accepted { body: String::new() }, "Source.Unavailable", &["202"]),
        (Effect::Reset, "Source.Unavailable", &["no answer"]),
        (says(200, "odd", "an error without a list of rows"), "Source.Unavailable", &["200", "odd"]),
        (Effect::Html { page: HtmlPage::Hibernating }, "Source.NotData", &["text/html", "Instance Hibernating", "hibernates"]),
        (Effect::Html { page: HtmlPage::Login }, "Source.NotData", &["Log in", "login"]),
        (Effect::ContentType { value: "text/html".to_owned() }, "Source.NotData", &["text/html"]),
    ] {
        holds(line(answer, ATTEMPTS, Failed, code, words)).await;
    }
}

#[tokio::test]
async fn what_may_be_for_the_size_of_a_page_is_tried_with_half_a_page_too() {
    for (answer, code, words) in [
        (status(408), "Source.Unavailable", &["408", "next tick"][..]),
        (status(499), "Source.Unavailable", &["499"]),
        (status(504), "Source.Unavailable", &["504"]),
        (page(504, "<title>Gateway Time-out</title>"), "Source.NotData", &["504", "Gateway"]),
        (Effect::CutBody { after: 50 }, "Source.Malformed", &["cut"]),
        (Effect::MalformedJson, "Source.Malformed", &["Nothing of it was used"]),
        (Effect::EmptyBody, "Source.Malformed", &["empty"]),
    ] {
        holds(line(answer, 2 * ATTEMPTS, Outcome::Failed, code, words)).await;
    }
}

#[tokio::test]
async fn what_is_too_much_for_the_instance_is_asked_for_smaller_down_to_one_row() {
    for (answer, outcome, code, words) in [
        (Effect::Cancelled { keep: 2 }, Outcome::Failed, "Source.Cancelled", &["maximum execution time", "index"][..]),
        (Effect::DelayHeaders { millis: 2_000 }, Outcome::Failed, "Source.Unavailable", &["300 ms", "snow.http.request.timeout.ms"]),
        (Effect::DelayBody { after: 10, millis: 2_000 }, Outcome::Failed, "Source.Unavailable", &["300 ms"]),
        (Effect::BigBody { bytes: 2 << 20 }, Outcome::Parked, "Source.TooLarge", &["snow.http.max.response.bytes"]),
    ] {
        holds(line(answer, HALVINGS, outcome, code, words)).await;
    }
}

#[tokio::test]
async fn what_only_a_person_can_mend_is_asked_once_and_parks_the_table() {
    let elsewhere = Effect::Redirect { location: "https://elsewhere.example/login?t=1".to_owned(), status: None };
    for (answer, code, words) in [
        (says(400, "Invalid table incident", ""), "Source.TableMissing", &["Invalid table incident", "name key"][..]),
        (says(400, "Bad query", "x"), "Source.Refused", &["Bad query", "query and fields"]),
        (
            says(403, "Insufficient rights to query records", "Field(s) present in the query do not have permission to be read"),
            "Source.Forbidden",
            &["Field(s) present in the query", "query_range"],
        ),
        (says(403, "Operation Failed", "Failed API level ACL Validation"), "Source.Forbidden", &["Failed API level ACL Validation"]),
        (status(403), "Source.Forbidden", &["403", "access"]),
        (
            says(404, "No Record found", "Record doesn't exist or ACL restricts the record retrieval"),
            "Source.TableMissing",
            &["404", "name key"],
        ),
        (status(406), "Source.Refused", &["406"]),
        (status(415), "Source.Refused", &["415"]),
        (status(414), "Source.UrlTooLong", &["characters", "query or fields"]),
        (page(400, "<html><body><h1>Request header is too large</h1></body></html>"), "Source.UrlTooLong", &["400", "characters"]),
        (elsewhere, "Source.Redirected", &["https://elsewhere.example/login", "snow.url"]),
        (Effect::PredicateIgnored, "Source.PredicateIgnored", &["sys_updated_on", "query_range", "time zone"]),
        (Effect::OrderIgnored, "Source.OutOfOrder", &["ORDERBY", "time zone", "2026-02-01 00:00:0"]),
        (
            Effect::FieldToken { field: "sys_updated_on".to_owned(), token: "\"\"".to_owned() },
            "Source.BadRow",
            &["sys_updated_on", "snow.source.bad.row.behavior"],
        ),
    ] {
        let answer = match answer {
            // A predicate that is ignored shows only once there are rows before it, and an order once there are two.
            Effect::PredicateIgnored => {
                is_named_once_it_shows(Effect::PredicateIgnored, code, words).await;
                continue;
            }
            other => other,
        };
        holds(line(answer, 1, Outcome::Parked, code, words)).await;
    }
}

async fn is_named_once_it_shows(answer: Effect, code: &str, words: &[&str]) {
    let (laptop, _clock) = two_tables();
    laptop.api.fault(Fault::new(answer).table("incident").skip(1).always());
    let (inc, chg) = sweep(&laptop).await;
    assert_eq!(chg.outcome, Outcome::CaughtUp);
    let reason = inc.reason.clone().expect("a reason");
    assert_eq!((inc.outcome, reason.code.as_str(), inc.requests), (Outcome::Parked, code, 2), "{}", reason.message);
    assert!(words.iter().all(|word| reason.message.contains(word)), "{}", reason.message);
    assert_eq!(inc.rows, PAGE, "the page before it is kept");
}

#[tokio::test]
async fn an_instance_that_cannot_be_reached_is_tried_again_and_left_to_the_next_tick() {
    let (laptop, _clock) = two_tables();
    laptop.api.refuse_connections(true).expect("refused");
    let (inc, chg) = sweep(&laptop).await;
    for report in [&inc, &chg] {
        let reason = report.reason.clone().expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str(), report.requests), (Outcome::Failed, "Source.Unavailable", ATTEMPTS));
        assert!(reason.message.contains("cannot connect") && reason.message.contains("next tick"), "{}", reason.message);
    }
    laptop.api.refuse_connections(false).expect("accepted");
    let (inc, chg) = sweep(&laptop).await;
    assert_eq!((inc.rows, chg.rows), (20, 20));
}

#[tokio::test]
async fn a_refused_login_is_the_instances_and_two_tables_try_it_no_more_often_than_one() {
    let (mut laptop, clock) = two_tables();
    laptop.api.fault(Fault::new(says(401, "User Not Authenticated", "Required to provide Auth information")).always());
    let (inc, chg) = sweep(&laptop).await;
    for report in [&inc, &chg] {
        let reason = report.reason.clone().expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Source.Unauthorized"), "{}", reason.message);
        assert!(reason.message.contains("User Not Authenticated") && reason.message.contains("password"), "{}", reason.message);
    }
    assert!(laptop.api.counters().requests <= 2, "{:?}", laptop.api.counters());
    laptop.scheduled = true;
    laptop.api.clear_log();
    for _ in 0..5 {
        clock.advance(Duration::from_secs(10));
        sweep(&laptop).await;
    }
    assert_eq!(laptop.api.counters().requests, 0, "ticks leave the account alone");
    laptop.api.clear_faults();
    clock.advance(Duration::from_secs(60));
    let (inc, chg) = sweep(&laptop).await;
    assert_eq!((inc.rows, chg.rows), (20, 20), "{inc:?} {chg:?}");
}

#[tokio::test]
async fn an_address_that_is_too_long_is_named_with_its_length_and_the_keys_that_make_it_so() {
    for too_long in [TooLong::BadRequest, TooLong::UriTooLong] {
        let fields: Vec<String> = (0..180).map(|n| format!("u_field_number_{n:03}")).collect();
        let laptop = Laptop::new()
            .with("snow.source.startup.probe", false)
            .with("snow.table.inc.fields", format!("sys_id,sys_updated_on,{}", fields.join(",")));
        laptop.generate(5, 1);
        laptop.api.configure(|settings| (settings.url_limit, settings.url_too_long) = (Some(2048), too_long)).expect("a limit");
        let report = laptop.sweep().await;
        let reason = report.reason.expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str(), report.requests), (Outcome::Parked, "Source.UrlTooLong", 1));
        let length = reason.message.split(" characters").next().and_then(|before| before.rsplit(' ').next()).and_then(|n| n.parse().ok());
        // The names alone are 3,240 characters, and as many commas again as %2C.
        assert!(length.is_some_and(|length: usize| (3_700..4_200).contains(&length)), "{}", reason.message);
        assert!(reason.message.contains("query or fields"), "{}", reason.message);
    }
}

#[tokio::test]
async fn a_row_without_a_readable_cursor_fails_by_its_id_or_is_skipped_alone() {
    let bad = Fields::from([("sys_id", "b".repeat(32)), ("sys_updated_on", String::new())]);
    for (behavior, outcome) in [("fail", Outcome::Parked), ("skip", Outcome::CaughtUp)] {
        let laptop = Laptop::new()
            .with("snow.source.bad.row.behavior", behavior)
            .with("snow.source.startup.probe", false)
            .with("snow.source.overlap.seconds", 3_600);
        laptop.generate(9, 1);
        let good = laptop.expected();
        // A row with no timestamp passes no predicate on it; an instance that shows one ignores its predicate for that row.
        laptop.api.load("incident", vec![bad.clone()]).expect("a row");
        laptop.api.fault(Fault::new(Effect::PredicateIgnored).always());
        let report = laptop.sweep().await;
        assert_eq!(report.outcome, outcome, "{report:?}");
        match outcome {
            Outcome::Parked => {
                let reason = report.reason.expect("a reason");
                assert_eq!(reason.code, "Source.BadRow");
                assert!(reason.message.contains(&"b".repeat(32)) && reason.message.contains("sys_updated_on"), "{}", reason.message);
                assert_eq!(report.rows, 0);
            }
            _ => {
                assert_eq!((report.rows, report.rows_skipped), (9, 1), "{report:?}");
                assert_eq!(laptop.versions(), good);
                for _ in 0..3 {
                    laptop.api.step_clock(60);
                    let again = laptop.sweep().await;
                    assert_eq!((again.outcome, again.rows, again.rows_skipped), (Outcome::CaughtUp, 0, 0), "{again:?}");
                }
                assert_eq!(laptop.item().await.progress.counters.skipped, 1);
            }
        }
    }
}

#[tokio::test]
async fn a_row_that_is_skipped_is_counted_once_however_often_it_is_read_again() {
    let row = |second: u64, reference: &str| {
        let at = format!("2026-02-01 00:00:{second:02}");
        Fields::from([("sys_updated_on", at), ("u_ref", reference.to_owned()), ("number", reference.to_owned())])
    };
    // The overlap rides in the first request, or is read by itself, a page per sweep.
    for (overlap, page) in [(2, 100), (600, 100), (600, 8)] {
        let name = format!("overlap {overlap}, pages of {page}");
        let laptop = Laptop::new()
            .with("snow.source.bad.row.behavior", "skip")
            .with("snow.source.startup.probe", false)
            .with("snow.table.inc.sys.id.field", "u_ref")
            .with("snow.source.overlap.seconds", overlap)
            .with("snow.source.batch.size", page);
        let good = (0..20).map(|second| row(second, &format!("k{second:02}")));
        // One among good rows, two that nothing tells apart, and one that no good row follows.
        let bad = [3, 18, 18, 25].map(|second| row(second, ""));
        laptop.api.load("incident", good.chain(bad).collect()).expect("rows");
        let (mut rows, mut skipped) = (0, 0);
        for _ in 0..12 {
            let report = laptop.sweep().await;
            assert_eq!(report.outcome, Outcome::CaughtUp, "{name}: {report:?}");
            (rows, skipped) = (rows + report.rows, skipped + report.rows_skipped);
            laptop.api.step_clock(60);
        }
        assert_eq!((rows, skipped), (20, 4), "{name}");
        // One that comes late into the second of two others is another one.
        laptop.api.load("incident", vec![row(18, ""), row(26, "k26")]).expect("rows");
        for _ in 0..12 {
            let report = laptop.sweep().await;
            (rows, skipped) = (rows + report.rows, skipped + report.rows_skipped);
            laptop.api.step_clock(60);
        }
        assert_eq!((rows, skipped), (21, 5), "{name}");
        assert_eq!(laptop.item().await.progress.counters.skipped, 5, "{name}: status adds them up");
    }
}

#[tokio::test]
async fn an_address_that_no_request_can_have_parks_the_table_before_anything_is_sent() {
    // The query alone fits, and with the cursor's terms it does not.
    let laptop =
        Laptop::new().with("snow.source.startup.probe", false).with("snow.table.inc.query", format!("number={}", "x".repeat(65_450)));
    let report = laptop.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str(), report.requests), (Outcome::Parked, "Source.UrlTooLong", 0), "{}", reason.message);
    assert!(reason.message.contains("any request") && reason.message.contains("query or fields"), "{}", reason.message);
}

#[tokio::test]
async fn rows_out_of_order_are_named_by_both_tuples_and_the_two_likely_causes() {
    let laptop = Laptop::new().with("snow.source.startup.probe", false);
    laptop.generate(9, 1);
    laptop.api.fault(Fault::new(Effect::OrderIgnored).always());
    let message = laptop.sweep().await.reason.expect("a reason").message;
    let known = laptop.expected();
    let tuples: Vec<String> = known.iter().map(|(at, id, _)| format!("({at}, {id})")).filter(|tuple| message.contains(tuple)).collect();
    assert_eq!(tuples.len(), 2, "{message}");
    assert!(message.contains("ORDERBY") && message.contains("query_range") && message.contains("time zone is not UTC"), "{message}");
}
