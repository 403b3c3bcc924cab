//! `status`: is it up to date?

use serde_json::Value;
use tablesweep::cursor::dynamodb::{create_table, local_client};
use tablesweep_testbed::moto;
use tablesweep_testbed::table_api::Fault;

use super::bed::{Bed, Ended, ended};
use super::schemas::keeps;

#[test]
fn status_follows_a_table_through_its_life() {
    let bed = Bed::new(100);
    let never = bed.status();
    assert_eq!((&never["state"], &never["cursor"], &never["rows"]), (&"never_swept".into(), &serde_json::Value::Null, &0.into()));
    assert!(!bed.path("tablesweep.db").exists(), "a look makes no database");

    bed.sweep(&["--max-rows", "50"]).expect(0);
    let behind = bed.status();
    assert_eq!((&behind["state"], &behind["phase"], &behind["rows"]), (&"active".into(), &"backfill".into(), &50.into()));

    bed.sweep(&[]).expect(0);
    let there = bed.status();
    assert_eq!((&there["phase"], &there["rows"], &there["last_rows"]), (&"stream".into(), &100.into(), &50.into()));
    assert_eq!(there["cursor"]["timestamp"], "2026-01-01 00:00:04");
    assert!(there["lag_seconds"].as_i64().is_some_and(|lag| lag < 90), "a table that is caught up is up to date: {there}");
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("snow/inc") && text.contains("2026-01-01 00:00:04"), "{text}");
}

#[test]
fn a_table_behind_shows_how_far() {
    let bed = Bed::new(100);
    bed.api.set_clock("2026-01-01 02:00:00").expect("a time");
    bed.sweep(&["--max-rows", "50"]).expect(0);
    let lag = bed.status()["lag_seconds"].as_i64().expect("a lag");
    // By the instance's clock, which the status knows from the last answer: two hours less the seconds of the rows.
    assert!((7_190..7_300).contains(&lag), "{lag}");
}

#[test]
fn hidden_and_suppressed_rows_are_counted() {
    let bed = Bed::new(100);
    bed.api.hide_when("incident", |field| field("number").is_some_and(|number| number.ends_with('7'))).expect("hidden");
    bed.sweep(&[]).expect(0);
    bed.insert("2026-01-01 00:00:04");
    bed.sweep(&[]).expect(0);
    let status = bed.status();
    assert_eq!((&status["rows"], &status["hidden"]), (&91.into(), &10.into()));
    assert!(status["suppressed"].as_u64() > Some(0), "the overlap was read again: {status}");
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("10 hidden"), "{text}");
}

#[test]
fn a_cursor_that_no_document_has_any_more_is_listed() {
    let mut bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    bed.set("snow.table.inc.query", "active=true");
    let answer = bed.run(&["status", "--output", "json"]).expect(0).json();
    assert_eq!((&answer["orphans"][0]["why"], &answer["orphans"][0]["rows"]), (&"changed_query".into(), &10.into()));
    assert_eq!((&answer["tables"][0]["state"], &answer["tables"][0]["changed_query"]), (&"never_swept".into(), &true.into()));
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("the query changed"), "{text}");

    for (key, setting) in [("snow.table.other.name", "problem"), ("snow.table.other.topic", "t"), ("snow.tables", "other")] {
        bed.set(key, setting);
    }
    let config = bed.config.as_object_mut().expect("an object");
    config.retain(|key, _| !key.starts_with("snow.table.inc."));
    bed.set("tasks.max", "1");
    let answer = bed.run(&["status", "--output", "json"]).expect(0).json();
    assert_eq!((&answer["orphans"][0]["table"], &answer["orphans"][0]["why"]), (&"inc".into(), &"no_document".into()));
}

#[test]
fn a_cursor_of_a_connector_that_no_document_has_any_more_is_listed() {
    let bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    bed.document("another", &bed.config);
    std::fs::remove_file(bed.path("config/connectors/snow.json")).expect("its document");
    let answer = bed.run(&["status", "--output", "json"]).expect(0).json();
    let orphan = &answer["orphans"][0];
    assert_eq!((&orphan["connector"], &orphan["why"], &orphan["rows"]), (&"snow".into(), &"no_document".into(), &10.into()), "{answer}");
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("snow/inc"), "{text}");
}

#[test]
fn a_parked_table_shows_its_reason_since_when_and_its_next_try_within_a_hundred_columns() {
    let mut bed = Bed::new(30);
    let (connector, alias) = ("a-connector-with-a-long-name-".repeat(3), "an_alias_that_says_it_all_".repeat(3));
    for (key, value) in [("name", "incident"), ("topic", "t"), ("start.timestamp", "2026-01-01 00:00:00")] {
        bed.set(&format!("snow.table.{alias}.{key}"), value);
    }
    let config = bed.config.as_object_mut().expect("an object");
    config.retain(|key, _| !key.starts_with("snow.table.inc."));
    bed.set("snow.tables", &alias);
    std::fs::remove_file(bed.path("config/connectors/snow.json")).expect("its document");
    bed.document(&connector, &bed.config);
    bed.api.fault(Fault::status(403, "Failed API level ACL Validation").table("incident").always());
    bed.sweep(&[]).expect(1);

    let report = bed.run(&["status", "--output", "json"]).expect(0).json();
    keeps("status", &report);
    let row = &report["tables"][0];
    assert_eq!((&row["state"], &row["reason"]["code"]), (&"parked".into(), &"Source.Forbidden".into()), "{row}");
    let moment = |field: &str| row[field].as_str().unwrap_or_else(|| panic!("{field}: {row}")).to_owned();
    assert!(moment("next_try") > moment("since"), "{row}");

    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["parked", "Source.Forbidden since", &moment("since"), &format!("next scheduled try {}", moment("next_try"))] {
        assert!(flat.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn a_table_whose_sweeps_fail_shows_it_until_one_succeeds() {
    let bed = Bed::new(5);
    std::fs::write(bed.path("config/worker.json"), r#"{"bootstrap.servers": "127.0.0.1:1"}"#).expect("written");
    for times in 1..=2 {
        let code = bed.run(&["sweep", "--output", "json"]).expect(1).table()["reason"]["code"].clone();
        let report = bed.run(&["status", "--output", "json"]).expect(0).json();
        keeps("status", &report);
        let row = &report["tables"][0];
        assert_eq!((&row["state"], &row["reason"]["code"], &row["failures"]), (&"failing".into(), &code, &times.into()), "{row}");
        assert!(row["started_at"].is_string() && row["failed_at"].is_string(), "{row}");
    }
    let text = bed.run(&["status"]).expect(0).stdout;
    assert!(text.contains("failing") && text.contains("Sink.") && text.contains("last failed"), "{text}");
    bed.sweep(&[]).expect(0);
    let row = bed.status();
    assert_eq!((&row["state"], &row["reason"], &row["failures"]), (&"active".into(), &Value::Null, &0.into()), "{row}");
}

#[test]
fn a_refused_login_and_a_missing_secret_are_shown_for_every_table_they_keep_from_being_swept() {
    let mut bed = Bed::new(5);
    let password = bed.config["snow.auth.password"].as_str().expect("a password").to_owned();
    bed.api.fault(Fault::status(401, "User Not Authenticated").always());
    assert_eq!(bed.sweep(&[]).expect(1).table()["reason"]["code"], "Source.Unauthorized");
    let row = bed.status();
    assert_eq!((&row["state"], &row["reason"]["code"]), (&"parked".into(), &"Source.Unauthorized".into()), "{row}");
    assert!(row["next_try"].is_string(), "{row}");
    let ended = bed.run(&["cursor", "resume", "--table", "inc", "--yes"]).expect(0);
    assert!(ended.stderr.contains("sign in again") && ended.stderr.contains("Source.Unauthorized"), "{}", ended.stderr);
    assert_ne!(bed.status()["state"], "parked", "the next sweep signs in");
    bed.api.clear_faults();

    bed.set("snow.auth.password", "${env:TABLESWEEP_TEST_NOT_SET}");
    assert_eq!(bed.sweep(&[]).expect(1).table()["reason"]["code"], "Config.Unresolved");
    let row = bed.status();
    assert_eq!((&row["state"], &row["reason"]["code"]), (&"parked".into(), &"Config.Unresolved".into()), "{row}");
    bed.set("snow.auth.password", password);
    bed.sweep(&[]).expect(0);
    assert_eq!(bed.status()["state"], "active");
}

#[test]
fn an_orphan_is_removed_by_its_place_and_a_cursor_in_use_is_not() {
    let mut bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    let place = bed.run(&["cursor", "show", "--output", "json"]).expect(0).json()["cursors"][0]["place"].clone();
    let remove = ["cursor", "remove", "--connector", "snow", "--place", place.as_str().expect("a place")];
    let ended = bed.run(&[&remove[..], &["--yes"]].concat()).expect(2);
    assert!(ended.stderr.contains("Cursor.InUse") && ended.stderr.contains("snow/inc"), "{}", ended.stderr);
    bed.set("snow.table.inc.query", "active=true");
    bed.run(&remove).expect(2);
    let ended = bed.run(&[&remove[..], &["--yes"]].concat()).expect(0);
    assert!(ended.stderr.contains("10 rows delivered") && ended.stderr.contains("starts anew"), "{}", ended.stderr);
    assert_eq!(bed.run(&["status", "--output", "json"]).expect(0).json()["orphans"], Value::Array(vec![]));
    bed.run(&[&remove[..], &["--yes"]].concat()).expect(1);
}

/// A table's status without what depends on the moment.
fn lasting(mut row: Value) -> Value {
    for (field, value) in row.as_object_mut().expect("an object") {
        let moves = ["since", "next_try", "swept_to", "lag_seconds", "last_rows_at", "started_at", "started_seconds", "leased_until"];
        if moves.contains(&field.as_str()) && !value.is_null() {
            *value = "at some moment".into();
        }
    }
    row
}

#[tokio::test]
async fn the_status_is_the_same_in_dynamodb_and_in_sqlite() {
    let endpoint = moto::shared().await.expect("moto starts").endpoint();
    create_table(&local_client(&endpoint).await, "status-of-both").await.expect("the table is created");
    let bed = Bed::new(100);
    bed.api.hide_when("incident", |field| field("number").is_some_and(|number| number.ends_with('7'))).expect("hidden");
    let run = |store: &str, arguments: &[&str]| -> Ended {
        let mut command = bed.command(arguments);
        command.env("AWS_ENDPOINT_URL", &endpoint).env("AWS_REGION", "us-east-1").env("TABLESWEEP_CURSORS", store);
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        ended(command.spawn().expect("started"))
    };
    let sweep = ["sweep", "--sink", "ndjson:rows.ndjson", "--output", "json"];
    let mut seen: Vec<Vec<Value>> = Vec::new();
    for store in ["dynamodb:status-of-both", "sqlite:both.db"] {
        let mut stages = Vec::new();
        let mut look = || {
            let report = run(store, &["status", "--output", "json"]).expect(0).json();
            keeps("status", &report);
            assert_eq!(report["store"], store);
            stages.push(lasting(report["tables"][0].clone()));
        };
        look();
        run(store, &[&sweep[..], &["--max-rows", "40"]].concat()).expect(0);
        look();
        run(store, &sweep).expect(0);
        run(store, &sweep).expect(0);
        look();
        run(store, &["cursor", "pause", "--table", "inc", "--reason", "maintenance", "--yes"]).expect(0);
        look();
        run(store, &["cursor", "resume", "--table", "inc", "--yes"]).expect(0);
        bed.api.fault(Fault::status(403, "Failed API level ACL Validation").table("incident").always());
        run(store, &sweep).expect(1);
        look();
        bed.api.clear_faults();
        seen.push(stages);
    }
    assert_eq!(seen[0], seen[1]);
    let states: Vec<&Value> = seen[0].iter().map(|row| &row["state"]).collect();
    assert_eq!(states, ["never_swept", "active", "active", "paused", "parked"]);
    let last = &seen[0][4];
    assert_eq!((&last["rows"], &last["hidden"]), (&90.into(), &10.into()), "{last}");
}

#[test]
fn a_file_of_no_bytes_is_no_store_yet_and_a_look_leaves_it_so() {
    let bed = Bed::new(5);
    let database = bed.path("tablesweep.db");
    std::fs::write(&database, "").expect("written");
    let files = || std::fs::read_dir(bed.dir.path()).expect("the folder").count();
    let before = files();
    for look in [&["status"][..], &["cursor", "show"], &["check"], &["plan"]] {
        let ended = bed.run(look).expect(0);
        let is_told = look[0] == "check" || look[0] == "plan" || format!("{}{}", ended.stdout, ended.stderr).contains("does not exist");
        assert!(is_told, "{look:?}: {ended:?}");
        assert_eq!((std::fs::metadata(&database).expect("the file").len(), files()), (0, before), "{look:?}");
    }
    bed.run(&["cursor", "resume", "--table", "inc", "--yes"]).expect(1);
    assert_eq!(std::fs::metadata(&database).expect("the file").len(), 0, "there is nothing to resume in it");
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 5);
    assert_eq!(bed.status()["rows"], 5);
}
