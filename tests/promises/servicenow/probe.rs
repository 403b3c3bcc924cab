//! The start-up probe: what an instance hides is found out before a row is delivered, and named so that it can be mended.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tablesweep::cursor::Standing;
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::table_api::{ColumnSpec, HtmlPage};
use tablesweep_testbed::table_api::{Command, Denied, Effect, Fault, Fields, Forbidden, Kind, Rules, USER_ID};

use crate::laptop::Laptop;

/// Requests of the probe of a table in order.
const PROBE: u64 = 3;

/// The look at the user's time zone, once per process.
const OF_USER: u64 = 1;

fn laptop() -> Laptop {
    Laptop::new().with("snow.source.startup.probe", true)
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

fn words(report: &TableReport) -> (&str, &str) {
    let reason = report.reason.as_ref().unwrap_or_else(|| panic!("no reason in {report:?}"));
    (&reason.code, &reason.message)
}

/// A sweep that the probe ends: nothing is delivered, the table is parked with `code`, and the message has these parts.
async fn found(laptop: &Laptop, code: &str, parts: &[&str]) {
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, words(&report).0), (Outcome::Parked, code), "{report:?}");
    assert_eq!((report.rows, laptop.lines().len()), (0, 0), "nothing is delivered");
    let message = words(&report).1;
    for part in ["snow/inc (table "].iter().chain(parts) {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    assert_eq!(laptop.item().await.progress.cursor, None, "the cursor is where it was");
}

/// What was stored of the last probe.
async fn record(laptop: &Laptop) -> Value {
    let place = laptop.item().await.identity.key().sibling("probe");
    let blob = laptop.store().await.get_blob("snow", &place).await.expect("a store").expect("a record of the probe");
    serde_json::from_slice(&blob.bytes).expect("JSON")
}

#[tokio::test]
async fn a_table_in_order_is_probed_once_and_an_idle_tick_is_one_request() {
    let mut laptop = laptop();
    laptop.generate(20, 3);
    let without = Laptop::new();
    without.generate(20, 3);
    let bare = without.sweep().await.requests;
    let first = laptop.sweep().await;
    assert_eq!((first.outcome, first.rows, first.requests), (Outcome::CaughtUp, 20, PROBE + OF_USER + bare), "{first:?}");
    assert_eq!(laptop.versions(), laptop.expected());
    assert_eq!(record(&laptop).await["result"], "proven");
    for _ in 0..3 {
        laptop.api.step_clock(5);
        let idle = laptop.sweep().await;
        assert_eq!((idle.requests, idle.rows), (1, 0));
    }
    for (key, value, probed) in [
        ("snow.table.inc.topic", "another", false),
        ("snow.table.inc.batch.size", "77", false),
        ("snow.table.inc.display.value", "all", false),
        ("snow.table.inc.fields", "sys_id,sys_updated_on,number", true),
        ("snow.auth.username", "somebody", true),
        ("snow.table.inc.query.category", "reporting", true),
    ] {
        laptop.set(key, value);
        let again = laptop.sweep().await;
        assert_eq!(again.requests, if probed { PROBE + OF_USER + 1 } else { 1 }, "{key}");
        assert_eq!(laptop.sweep().await.requests, 1, "{key}: once");
    }
}

#[tokio::test]
async fn the_probe_can_be_switched_off() {
    let laptop = Laptop::new().with("snow.source.startup.probe", false);
    laptop.generate(20, 3);
    assert_eq!(laptop.sweep().await.rows, 20);
    let is_of_a_sweep = |query: &str| query.ends_with("^ORDERBYsys_updated_on^ORDERBYsys_id");
    assert!(laptop.api.reads("incident").iter().all(|read| is_of_a_sweep(&read.query)) && laptop.api.reads("sys_user").is_empty());
}

#[tokio::test]
async fn a_table_without_rows_proves_nothing_fails_nothing_and_is_probed_again_when_it_has_some() {
    let laptop = laptop();
    laptop.api.create("incident", &[]).expect("a table");
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
    assert_eq!(record(&laptop).await["result"], "no-row");
    assert_eq!(laptop.sweep().await.requests, 1, "an idle tick of an empty table");
    laptop.generate(5, 1);
    assert_eq!(laptop.sweep().await.rows, 5);
    let probed = laptop.sweep().await;
    assert!(probed.requests > PROBE, "{probed:?}");
    assert_eq!(record(&laptop).await["result"], "proven");
    assert_eq!(laptop.sweep().await.requests, 1);
}

#[tokio::test]
async fn rows_that_are_hidden_at_first_do_not_fail_a_table() {
    let laptop = laptop().with("snow.source.batch.size", 4);
    laptop.generate(12, 1);
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    laptop.api.hide("incident", ids[..6].to_vec()).expect("hidden");
    assert_eq!(laptop.sweep().await.rows, 6);
    laptop.sweep().await;
    assert_eq!(record(&laptop).await["result"], "proven");
}

#[tokio::test]
async fn a_row_without_a_field_is_a_hidden_one_and_one_without_a_cursor_is_skipped_where_that_is_wanted() {
    let laptop = laptop();
    laptop.generate(5, 1);
    laptop.api.fault(Fault::new(Effect::EmptyRows { every: 1 }).table("incident"));
    assert_eq!(laptop.sweep().await.rows, 5);
    assert_eq!(record(&laptop).await["result"], "proven");

    let laptop = self::laptop().with("snow.source.bad.row.behavior", "skip");
    laptop.generate(5, 1);
    laptop.api.fault(Fault::new(Effect::FieldMissing { field: "sys_updated_on".to_owned() }).table("incident"));
    assert_eq!(laptop.sweep().await.rows, 5);
    let record = record(&laptop).await;
    assert!(record["result"] == "unsettled" && record["remarks"].to_string().contains("bad.row.behavior"), "{record}");
}

#[tokio::test]
async fn the_three_kinds_of_403_are_told_apart_and_the_field_is_named() {
    let forbidden = |why| Rules { forbidden: Some(why), ..Rules::default() };
    let refused = |rules: Rules| Rules { denied: Denied::Refused, ..rules };
    for (rules, parts) in [
        (forbidden(Forbidden::Api), vec!["Table API is closed", "snc_platform_rest_api_access"]),
        (forbidden(Forbidden::Rights), vec!["may not read this table", "read ACL"]),
        (
            refused(Rules { no_range: set(["sys_updated_on"]), ..Rules::default() }),
            vec!["the field sys_updated_on", "query_range", "the table itself can be read"],
        ),
        (refused(Rules { no_range: set(["sys_id"]), ..Rules::default() }), vec!["the field sys_id", "query_range"]),
        (refused(Rules { no_match: set(["state"]), ..Rules::default() }), vec!["the field state", "query_match"]),
    ] {
        let laptop = laptop().with("snow.table.inc.query", "state=1");
        laptop.api.load("incident", vec![Fields::from([("state", "1"), ("sys_updated_on", "2026-02-01 00:00:00")])]).expect("a row");
        laptop.api.access("incident", rules).expect("rules");
        found(&laptop, "Source.Forbidden", &parts).await;
    }
}

#[tokio::test]
async fn a_missing_table_is_named_by_alias_and_name() {
    for status in [400, 404] {
        let laptop = laptop().with("snow.table.inc.name", "incidents");
        if status == 404 {
            laptop.api.fault(Fault::status(404, "No Record found").table("incidents").always());
        }
        found(&laptop, "Source.TableMissing", &["table incidents", "name key"]).await;
    }
}

#[tokio::test]
async fn a_hidden_cursor_field_is_named_with_its_key() {
    for (field, key) in [("sys_updated_on", "snow.table.inc.timestamp.field"), ("sys_id", "snow.table.inc.sys.id.field")] {
        let laptop = laptop();
        laptop.generate(3, 1);
        laptop.api.access("incident", Rules { hidden_fields: set([field]), ..Rules::default() }).expect("rules");
        found(&laptop, "Source.NoCursor", &[field, key, "field ACL"]).await;
    }
}

#[tokio::test]
async fn a_view_without_its_prefix_is_told_the_fields_that_would_do() {
    let mut laptop = laptop();
    laptop.generate(3, 1);
    let view = json!({ "parts": [{ "table": "incident", "prefix": "inc" }] });
    laptop.api.view("u_view", serde_json::from_value(view).expect("a view")).expect("a view");
    laptop.set("snow.table.inc.name", "u_view");
    found(&laptop, "Source.NoCursor", &["sys_id", "inc_sys_id", "snow.table.inc.sys.id.field"]).await;
    laptop.set("snow.table.inc.sys.id.field", "inc_sys_id");
    let report = laptop.sweep().await;
    assert_eq!(words(&report).0, "Cursor.Moved", "another cursor is the operator's decision");

    let laptop = self::laptop().with("snow.table.inc.name", "u_view").with("snow.table.inc.sys.id.field", "inc_sys_id");
    laptop.generate(3, 1);
    let view = json!({ "parts": [{ "table": "incident", "prefix": "inc" }] });
    laptop.api.view("u_view", serde_json::from_value(view).expect("a view")).expect("a view");
    found(&laptop, "Source.NoCursor", &["inc_sys_updated_on", "inc_sys_created_on", "snow.table.inc.timestamp.field"]).await;
}

#[tokio::test]
async fn a_cursor_field_that_is_no_time_or_always_empty_is_named_with_what_to_use() {
    let laptop = laptop().with("snow.table.inc.timestamp.field", "number");
    laptop.generate(3, 1);
    found(&laptop, "Source.NoCursor", &["number (snow.table.inc.timestamp.field)", "yyyy-MM-dd HH:mm:ss"]).await;

    let laptop = self::laptop().with("snow.table.inc.timestamp.field", "u_seen");
    laptop.api.create("incident", &[ColumnSpec::new("u_seen", Kind::DateTime)]).expect("a table");
    laptop.generate(3, 1);
    found(&laptop, "Source.NoCursor", &["u_seen", "empty in every row", "sys_created_on", "sys_updated_on"]).await;
}

#[tokio::test]
async fn a_table_that_is_known_to_have_no_usable_cursor_is_told_what_to_use_before_anything_is_asked() {
    let laptop = laptop().with("snow.table.inc.name", "sys_audit_delete");
    found(&laptop, "Source.NoCursor", &["sys_updated_on", "snow.table.inc.timestamp.field to sys_created_on"]).await;
    assert_eq!(laptop.api.counters().requests, 0);

    let laptop = self::laptop().with("snow.table.inc.name", "sys_audit_delete").with("snow.table.inc.timestamp.field", "sys_created_on");
    laptop.api.create_without("sys_audit_delete", &[], &["sys_updated_on", "sys_mod_count"]).expect("a table");
    laptop.api.load("sys_audit_delete", vec![Fields::from([("sys_created_on", "2026-02-01 00:00:00")])]).expect("a row");
    assert_eq!(laptop.sweep().await.rows, 1);
    let remarks = record(&laptop).await["remarks"].to_string();
    assert!(remarks.contains("sys_mod_count"), "{remarks}");
}

#[tokio::test]
async fn a_condition_that_the_instance_drops_is_named_with_the_right_that_is_missing() {
    for (rules, parts) in [
        (Rules { no_range: set(["sys_updated_on"]), ..Rules::default() }, ["sys_updated_on>", "query_range", "field sys_updated_on"]),
        (Rules { no_range: set(["sys_id"]), ..Rules::default() }, ["sys_id>", "query_range", "field sys_id"]),
        (Rules { no_match: set(["sys_updated_on"]), ..Rules::default() }, ["sys_updated_on=", "query_match", "field sys_updated_on"]),
        (Rules { no_match: set(["sys_id"]), ..Rules::default() }, ["sys_id=", "query_match", "field sys_id"]),
        (Rules { no_match: set(["category"]), ..Rules::default() }, ["categoryISEMPTY", "query_match", "field category"]),
    ] {
        let laptop = laptop().with("snow.table.inc.query", "category=network^NQstate=9");
        let stamped = |n: usize| {
            let stamp = format!("2026-02-01 00:00:{n:02}");
            Fields::from([("category", "network".to_owned()), ("state", "1".to_owned()), ("sys_updated_on", stamp)])
        };
        laptop.api.load("incident", (0..5).map(stamped).collect()).expect("rows");
        laptop.api.access("incident", rules).expect("rules");
        found(&laptop, "Source.PredicateIgnored", &parts).await;
    }
}

/// An instance that reads times in the user's zone, and the user's row.
fn shifted(hours: i64, zone: Option<&str>) -> Laptop {
    let laptop = laptop();
    laptop.generate(5, 1);
    let fields = [("sys_id", USER_ID), ("user_name", "sweep"), ("time_zone", zone.unwrap_or_default())];
    laptop.api.load("sys_user", vec![fields.into()]).expect("a row");
    laptop.api.configure(|settings| settings.literal_offset_seconds = hours * 3600).expect("set");
    laptop
}

#[tokio::test]
async fn times_that_are_read_in_another_zone_are_found_by_experiment_and_the_zone_is_named() {
    for hours in [-7, 2] {
        let laptop = shifted(hours, Some("America/Los_Angeles"));
        found(&laptop, "Source.TimeZone", &["sys_updated_on", "America/Los_Angeles", "GMT", "sys_user.time_zone"]).await;
        found(&shifted(hours, None), "Source.TimeZone", &["no time zone of their own"]).await;
        // Mended, the table goes on without a word.
        laptop.api.configure(|settings| settings.literal_offset_seconds = 0).expect("set");
        assert_eq!(laptop.sweep().await.rows, 5);
        assert_eq!(laptop.item().await.standing, Standing::Active);
    }
}

#[tokio::test]
async fn a_zone_in_the_profile_is_warned_about_and_fails_nothing_by_itself() {
    for (zone, warned) in [(Some("Europe/Vienna"), true), (Some("GMT"), false), (None, false)] {
        let laptop = shifted(0, zone);
        assert_eq!(laptop.sweep().await.rows, 5);
        let remarks = record(&laptop).await["remarks"].to_string();
        assert_eq!(remarks.contains("time zone"), warned, "{remarks}");
    }
    let unreadable = laptop();
    unreadable.generate(5, 1);
    unreadable.api.fault(Fault::status(403, "no").table("sys_user").always());
    assert_eq!(unreadable.sweep().await.rows, 5, "the user's row need not be shown");
}

#[tokio::test]
async fn a_wrong_name_in_the_query_is_named_whether_the_instance_drops_it_or_answers_with_nothing() {
    for (returns_no_rows, words) in [(true, "glide.invalid_query.returns_no_rows"), (false, "More rows")] {
        let laptop = laptop().with("snow.table.inc.query", "active=true^stat=3");
        laptop.api.configure(|settings| settings.invalid_query_returns_no_rows = returns_no_rows).expect("set");
        laptop.api.load("incident", vec![Fields::from([("active", "true"), ("sys_updated_on", "2026-02-01 00:00:00")])]).expect("a row");
        found(&laptop, "Source.QueryInvalid", &["names stat,", words]).await;
    }
    // A query that merely finds nothing is not taken for a wrong one.
    let laptop = laptop().with("snow.table.inc.query", "active=false");
    laptop.api.configure(|settings| settings.invalid_query_returns_no_rows = true).expect("set");
    laptop.api.load("incident", vec![Fields::from([("active", "true"), ("sys_updated_on", "2026-02-01 00:00:00")])]).expect("a row");
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
    assert_eq!(record(&laptop).await["result"], "proven");
}

#[tokio::test]
async fn an_unknown_cursor_field_is_found_where_invalid_queries_answer_with_nothing() {
    let laptop = laptop().with("snow.table.inc.timestamp.field", "sys_update_on");
    laptop.api.configure(|settings| settings.invalid_query_returns_no_rows = true).expect("set");
    laptop.generate(5, 1);
    found(&laptop, "Source.NoCursor", &["sys_update_on", "sys_updated_on", "sys_created_on"]).await;
}

#[tokio::test]
async fn an_identity_that_two_rows_share_is_no_cursor() {
    let laptop = laptop();
    laptop.generate(5, 1);
    laptop.api.fault(Fault::new(Effect::RowsRepeated { rows: 1 }).query("sys_id=").always());
    found(&laptop, "Source.NoCursor", &["snow.table.inc.sys.id.field", "differs in every row"]).await;
}

#[tokio::test]
async fn a_row_that_changes_while_it_is_asked_about_fails_nothing() {
    for changes in [1, 2, 3, 9] {
        let laptop = laptop();
        laptop.generate(5, 1);
        let id = laptop.expected()[0].1.clone();
        let change = vec![
            Command::StepClock { seconds: 1 },
            Command::Update { table: "incident".to_owned(), sys_id: id, fields: Fields::default() },
        ];
        laptop.api.fault(Fault::then(change).query("sys_").times(changes));
        assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp, "{changes} changes");
        laptop.api.clear_faults();
        laptop.api.step_clock(10);
        laptop.sweep().await;
        assert_eq!(record(&laptop).await["result"], "proven", "{changes} changes");
    }
}

#[tokio::test]
async fn a_passing_fault_during_the_probe_is_not_even_noticed() {
    for (n, effect) in [
        Effect::Status { status: 503, body: None, content_type: None, headers: Default::default() },
        Effect::MalformedJson,
        Effect::CutBody { after: 20 },
        Effect::Html { page: HtmlPage::Maintenance },
        Effect::Reset,
        Effect::EmptyBody,
    ]
    .into_iter()
    .enumerate()
    {
        for request in 0..PROBE {
            let laptop = laptop();
            laptop.generate(5, 1);
            laptop.api.fault(Fault::new(effect.clone()).table("incident").skip(request));
            let report = laptop.sweep().await;
            assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "effect {n} at request {request}: {report:?}");
            assert_eq!(record(&laptop).await["result"], "proven");
        }
    }
}

#[tokio::test]
async fn a_probe_that_takes_too_long_is_put_off_and_holds_up_nothing() {
    let laptop = laptop();
    laptop.generate(5, 1);
    laptop.api.fault(Fault::new(Effect::Cancelled { keep: 0 }).table("incident").times(1));
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
    assert_eq!(record(&laptop).await["result"], "unsettled");
    laptop.sweep().await;
    assert_eq!(record(&laptop).await["result"], "proven");
}

#[tokio::test]
async fn a_probe_after_which_the_time_was_over_is_not_made_again() {
    let mut laptop = laptop();
    laptop.generate(5, 1);
    // Eight seconds are kept for the last page. The probe comes through, and the page does not.
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 5_000 }).limit_over(10).always());
    laptop.max_time = Some(std::time::Duration::from_millis(9_500));
    let cut = laptop.sweep().await;
    assert_eq!((cut.outcome, cut.rows), (Outcome::More, 0), "{cut:?}");
    assert_eq!(record(&laptop).await["result"], "proven");
    laptop.api.clear_faults();
    laptop.api.clear_log();
    laptop.max_time = None;
    assert_eq!(laptop.sweep().await.rows, 5);
    let asked = laptop.api.reads("incident").into_iter().filter(|read| read.query.starts_with("sys_id=")).count();
    assert_eq!(asked, 0, "no experiment was made");
}

#[tokio::test]
async fn a_right_that_is_taken_away_later_is_named_by_the_next_try() {
    let laptop = laptop();
    laptop.generate(5, 1);
    laptop.sweep().await;
    laptop.api.access("incident", Rules { no_range: set(["sys_updated_on"]), ..Rules::default() }).expect("rules");
    let mut old = Fields::from([("number", "OLD")]);
    old.set("sys_updated_on", "2025-01-01 00:00:00");
    laptop.api.load("incident", vec![old]).expect("a row");
    let struck = laptop.sweep().await;
    assert_eq!(words(&struck).0, "Source.PredicateIgnored", "a sweep checks every row by itself");
    let named = laptop.sweep().await;
    assert!(words(&named).1.contains("query_range access to the field sys_updated_on"), "{named:?}");
    assert_eq!(record(&laptop).await["result"], "Source.PredicateIgnored");
    laptop.api.access("incident", Rules::default()).expect("rules");
    assert_eq!(laptop.sweep().await.outcome, Outcome::CaughtUp);
    assert_eq!(laptop.lines().len(), 5);
}

#[tokio::test]
async fn a_view_as_large_as_what_an_instance_shows_of_one_is_remarked_upon() {
    let laptop = laptop().with("snow.table.inc.name", "u_view");
    laptop.generate(3, 1);
    let view = json!({ "parts": [{ "table": "incident", "prefix": "inc" }] });
    laptop.api.view("u_view", serde_json::from_value(view).expect("a view")).expect("a view");
    let laptop = laptop.with("snow.table.inc.sys.id.field", "inc_sys_id").with("snow.table.inc.timestamp.field", "inc_sys_updated_on");
    laptop.api.fault(Fault::new(Effect::TotalCount { total: 10_000 }).table("u_view"));
    assert_eq!(laptop.sweep().await.rows, 3);
    let remarks = record(&laptop).await["remarks"].to_string();
    assert!(remarks.contains("glide.db.max_view_records"), "{remarks}");
}

#[tokio::test]
async fn a_table_whose_rows_are_all_hidden_is_not_probed_with_every_tick() {
    let laptop = laptop().with("snow.source.batch.size", 10);
    laptop.generate(60, 60);
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    laptop.api.hide("incident", ids).expect("hidden");
    for _ in 0..2 {
        laptop.sweep().await;
        laptop.api.step_clock(60);
    }
    assert!(!laptop.item().await.progress.cursor.expect("a cursor").get("sys_id").unwrap_or_default().is_empty(), "it stands at an id");
    for _ in 0..3 {
        laptop.api.clear_log();
        laptop.sweep().await;
        laptop.api.step_clock(60);
        let probed = laptop.api.log().into_iter().filter(|entry| entry.table != "incident" || entry.query.is_empty()).count();
        assert_eq!(probed, 0, "{:?}", laptop.api.log());
    }
}

#[tokio::test]
async fn a_page_that_is_cut_for_a_slow_probe_is_not_too_big() {
    let mut laptop = laptop();
    laptop.generate(30, 1);
    // Of a second and a half the probe takes most.
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 330 }).query("sys_id=").always());
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 5_000 }).limit_over(10).always());
    laptop.max_time = Some(std::time::Duration::from_millis(9_500));
    let cut = laptop.sweep().await;
    assert_eq!((cut.outcome, cut.rows), (Outcome::More, 0), "{cut:?}");
    assert_eq!(laptop.item().await.progress.page_size, None, "the page had not the time of an invocation");
}
