//! Answers that hold less than was asked for, whoever cut them: no row is lost for it, and no sweep comes to a stop.

use std::collections::BTreeSet;
use std::time::Duration;

use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Effect, Fault, Fields};

use crate::laptop::Laptop;

/// `count` rows from 11:00:00 plus `from` seconds on, one per second, whose ids sort before generated ones.
fn rows(from: i64, count: i64) -> Vec<Fields> {
    (0..count).map(|n| row(n + 1, from + n)).collect()
}

/// Row `n`, `second` seconds after 11:00:00.
fn row(n: i64, second: i64) -> Fields {
    let time = format!("2026-03-01 {:02}:{:02}:{:02}", 11 + second / 3600, second / 60 % 60, second % 60);
    [("sys_id", format!("{n:032x}")), ("sys_updated_on", time), ("sys_mod_count", "0".to_owned())].into()
}

/// Everything visible was delivered, each version once.
fn is_complete(laptop: &Laptop, what: &str) {
    let (delivered, distinct) = (laptop.versions(), laptop.versions().into_iter().collect::<BTreeSet<_>>());
    assert_eq!(distinct, laptop.expected().into_iter().collect(), "{what}");
    assert_eq!(delivered.len(), distinct.len(), "{what}: each once");
}

async fn sweeps(laptop: &Laptop, count: usize) {
    for _ in 0..count {
        laptop.api.step_clock(5);
        let report = laptop.sweep().await;
        assert!(matches!(report.outcome, Outcome::CaughtUp | Outcome::More), "{report:?}");
    }
}

#[tokio::test]
async fn late_rows_that_are_too_large_for_one_answer_are_delivered_by_several() {
    for late in [80, 30] {
        let laptop = Laptop::new()
            .with("snow.source.batch.size", 100)
            .with("snow.source.overlap.seconds", 300)
            .with("snow.http.max.response.bytes", 300_000);
        laptop.api.load("incident", (0..300).map(|n| row(1_000 + n, n)).collect()).expect("rows");
        sweeps(&laptop, 6).await;
        let large = rows(10, late).into_iter().map(|row| row.with("u_text", "x".repeat(15_000)));
        laptop.api.load("incident", large.collect()).expect("late rows");
        // Rows ahead move the cursor on, and the overlap with it.
        laptop.api.load("incident", (0..50).map(|n| row(2_000 + n, 420 + n)).collect()).expect("rows");
        sweeps(&laptop, 60).await;
        is_complete(&laptop, &format!("{late} late rows"));
    }
}

#[tokio::test]
async fn late_rows_are_found_past_a_page_limit_of_the_instances_own() {
    for (limit, links) in [(100, false), (60, true)] {
        let laptop = Laptop::new().with("snow.source.batch.size", 1_000).with("snow.source.overlap.seconds", 3_000);
        laptop.api.configure(|settings| (settings.limit_clamp, settings.links) = (Some(limit), links)).expect("a limit");
        laptop.api.load("incident", (0..600).map(|n| row(1_000 + n, n)).collect()).expect("rows");
        sweeps(&laptop, 4).await;
        laptop.api.load("incident", rows(300, 5)).expect("late rows");
        sweeps(&laptop, 30).await;
        is_complete(&laptop, &format!("limit {limit}"));
    }
}

#[tokio::test]
async fn a_page_limit_of_the_instances_own_loses_no_row_behind_hidden_ones() {
    let laptop = Laptop::new().with("snow.source.batch.size", 5_000);
    laptop.api.configure(|settings| (settings.limit_clamp, settings.links) = (Some(1_000), false)).expect("a limit");
    laptop.api.load("incident", (0..2_500).map(|n| row(1 + n, n / 3)).collect()).expect("rows");
    laptop.api.hide("incident", (20..1_500).map(|n| format!("{:032x}", n + 1))).expect("hidden");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1_020), "{report:?}");
    is_complete(&laptop, "a page of the instance with 20 rows to see");
}

#[tokio::test]
async fn hidden_rows_whose_ids_are_of_any_text_are_stepped_over() {
    for hidden in [5..25, 0..20] {
        let laptop = Laptop::new().with("snow.source.batch.size", 5).with("snow.table.inc.sys.id.field", "number");
        let numbered = |n: i64, second: i64| row(n + 1, second).with("number", format!("INC{n:04}"));
        laptop.api.load("incident", (0..30).map(|n| numbered(n, 0)).collect()).expect("rows");
        laptop.api.load("incident", (100..105).map(|n| numbered(n, n)).collect()).expect("rows");
        laptop.api.hide("incident", hidden.clone().map(|n| format!("{:032x}", n + 1))).expect("hidden");
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows, report.rows_hidden), (Outcome::CaughtUp, 15, 20), "{hidden:?}: {report:?}");
        assert!(report.requests < 100, "{hidden:?}: {report:?}");
        sweeps(&laptop, 3).await;
        is_complete(&laptop, &format!("{hidden:?}"));
    }
}

#[tokio::test]
async fn late_rows_are_found_whatever_their_ids_hold() {
    let laptop = Laptop::new()
        .with("snow.source.batch.size", 10)
        .with("snow.source.overlap.seconds", 600)
        .with("snow.table.inc.sys.id.field", "u_key");
    laptop.api.load("incident", (0..30).map(|n| row(n + 1, n).with("u_key", format!("Key {n}"))).collect()).expect("rows");
    sweeps(&laptop, 8).await;
    let odd = ["Miller, Bob", "a^b", "^NQactive=true", " leading", "plain", "ORDERBY", "comma,"];
    let odd = odd.into_iter().zip(0..).map(|(key, n)| row(100 + n, 12 + n).with("u_key", key));
    laptop.api.load("incident", odd.collect()).expect("late rows");
    sweeps(&laptop, 30).await;
    is_complete(&laptop, "keys of any text");
}

#[tokio::test]
async fn an_id_that_an_instance_would_run_as_a_script_is_a_bad_row() {
    let laptop = Laptop::new().with("snow.table.inc.sys.id.field", "u_key");
    laptop.api.load("incident", vec![row(1, 0).with("u_key", "JavaScript:gs.log(1)")]).expect("a row");
    let report = laptop.sweep().await;
    assert_eq!(report.reason.map(|reason| reason.code).as_deref(), Some("Source.BadRow"));
    let asked = laptop.api.log().into_iter().map(|entry| entry.query.to_lowercase());
    assert!(asked.into_iter().all(|query| !query.contains("javascript")), "no request holds it");
}

/// A backfill of 60 rows, 20 a page, of which some are hidden, so that a count is asked for; it takes too long.
fn uncounted() -> Laptop {
    let laptop = Laptop::new().with("snow.source.batch.size", 20).with("snow.http.request.timeout.ms", 400);
    laptop.api.load("incident", rows(0, 60)).expect("rows");
    laptop.api.hide("incident", (5..8).map(|n| format!("{:032x}", n + 1))).expect("hidden");
    laptop
}

#[tokio::test]
async fn a_count_that_does_not_come_holds_no_row_back_and_makes_no_page_smaller() {
    let laptop = uncounted();
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 1_000 }).skip(1));
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 57), "{report:?}");
    assert_eq!(laptop.item().await.progress.page_size, None);
    is_complete(&laptop, "one count was missed");

    // No count ever comes: the rows do, and then the table says what is missing.
    let laptop = uncounted();
    for count in [1, 5, 7, 9] {
        laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 1_000 }).skip(count));
    }
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::Failed, 57), "{report:?}");
    let reason = report.reason.expect("a reason");
    assert!(reason.code == "Source.Unavailable" && reason.message.contains("did not count"), "{reason:?}");
    assert_eq!(laptop.item().await.progress.page_size, None);
    laptop.api.clear_faults();
    sweeps(&laptop, 2).await;
    is_complete(&laptop, "counts come again");
}

#[tokio::test]
async fn rows_in_hand_are_delivered_when_the_time_is_over_before_their_count_comes() {
    let mut laptop = uncounted();
    laptop.set("snow.http.request.timeout.ms", 30_000);
    laptop.max_time = Some(Duration::from_millis(9_500));
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 30_000 }).skip(1));
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::More, 17), "{report:?}");
    laptop.api.clear_faults();
    laptop.max_time = None;
    sweeps(&laptop, 2).await;
    is_complete(&laptop, "the next run goes on there");
}

#[tokio::test]
async fn a_page_that_is_slow_for_its_count_is_asked_for_without_it() {
    let laptop = uncounted();
    laptop.api.unhide_all("incident").expect("shown");
    sweeps(&laptop, 2).await;
    // A tick asks for page and count at once.
    laptop.api.load("incident", (0..3).map(|n| row(900 + n, 100 + n)).collect()).expect("rows");
    laptop.api.clear_log();
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 1_000 }));
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 3), "{report:?}");
    let asked: Vec<_> = laptop.api.log().iter().map(|entry| entry.limit).collect();
    assert_eq!((&asked[..2], laptop.item().await.progress.page_size), (&[20, 20][..], None), "{asked:?}");
    is_complete(&laptop, "a slow count");
}

#[tokio::test]
async fn rows_above_a_mark_that_another_node_lowers_are_left_to_the_next_sweep_and_not_lost() {
    for nth in 0..12 {
        for overlap in [0, 2] {
            let laptop = Laptop::new().with("snow.source.batch.size", 2).with("snow.source.overlap.seconds", overlap);
            laptop.api.set_clock("2026-03-01 11:01:00").expect("a time");
            laptop.api.load("incident", (0..40).chain([41, 50]).map(|n| row(n + 1, n)).collect()).expect("rows");
            laptop.api.hide("incident", (1..40).map(|n| format!("{:032x}", n + 1))).expect("hidden");
            let value = "Sun, 01 Mar 2026 11:00:38 GMT".to_owned();
            laptop.api.fault(Fault::new(Effect::DateHeader { value }).skip(nth));
            laptop.sweep().await;
            sweeps(&laptop, 4).await;
            is_complete(&laptop, &format!("request {nth}, overlap {overlap}"));
        }
    }
}

/// 60 rows of one second, ids far apart, of which two pages of ten are hidden, and 25 later ones. A `Link` comes only with a count.
fn hidden_pages() -> Laptop {
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.api.configure(|settings| settings.links_without_count = false).expect("links");
    let apart = |n: i64| format!("{:032x}", u128::from(n.unsigned_abs()) << 120);
    laptop.api.load("incident", (1..=60).map(|n| row(n, 0).with("sys_id", apart(n))).collect()).expect("rows");
    laptop.api.load("incident", (100..125).map(|n| row(n, n)).collect()).expect("rows");
    laptop.api.hide("incident", (11..=30).map(apart)).expect("hidden");
    laptop
}

#[tokio::test]
async fn a_count_that_the_instance_gives_up_is_no_sign_that_it_never_counts() {
    let cancelled =
        r#"{"result":[],"error":{"message":"Transaction cancelled: maximum execution time exceeded","detail":null},"status":"failure"}"#;
    let unable = r#"{"result":[],"error":{"message":"Internal error","detail":"semaphore"},"status":"failure"}"#;
    let mut struck = 0;
    for (body, times) in [(cancelled, 1), (unable, 1), (cancelled, 20), (unable, 20)] {
        for nth in 0..2 {
            let laptop = hidden_pages();
            let effect = Effect::Status { status: 200, body: Some(body.to_owned()), content_type: None, headers: Default::default() };
            laptop.api.fault(Fault::new(effect).fields("sys_id").skip(nth).times(times));
            let report = laptop.sweep().await;
            let was_struck = laptop.api.log().iter().any(|entry| !entry.faults.is_empty());
            struck += u32::from(was_struck);
            if report.outcome == Outcome::CaughtUp {
                is_complete(&laptop, &format!("{body} for count {nth}"));
            } else {
                let reason = report.reason.expect("a reason");
                assert!(was_struck && reason.code == "Source.Unavailable", "{reason:?}");
            }
            laptop.api.clear_faults();
            sweeps(&laptop, 3).await;
            is_complete(&laptop, &format!("{body} for count {nth}"));
        }
    }
    assert!(struck >= 4, "counts were asked for on their own");
}

#[tokio::test]
async fn late_rows_whose_ids_make_an_address_too_long_are_asked_for_fewer_at_a_time() {
    for url_limit in [2_048, 1_300] {
        let fields: Vec<_> = (0..30).map(|n| format!("u_custom_field_{n:02}")).collect();
        let laptop = Laptop::new()
            .with("snow.source.batch.size", 100)
            .with("snow.source.overlap.seconds", 300)
            .with("snow.table.inc.fields", format!("sys_id,sys_updated_on,sys_mod_count,{}", fields.join(",")));
        laptop.api.configure(|settings| settings.url_limit = Some(url_limit)).expect("a limit");
        laptop.api.load("incident", (0..300).map(|n| row(1_000 + n, n)).collect()).expect("rows");
        sweeps(&laptop, 6).await;
        laptop.api.load("incident", rows(200, 40)).expect("late rows");
        laptop.api.clear_log();
        sweeps(&laptop, 30).await;
        assert!(laptop.api.log().iter().any(|entry| entry.status == 400), "one was too long");
        is_complete(&laptop, &format!("at most {url_limit} characters"));
    }
}
