//! Exit codes, and what may be on which stream.

use serde_json::json;
use tablesweep_testbed::table_api::{Credentials, Effect, Fault};

use super::bed::{Bed, PASSWORD, ended, lines};

#[test]
fn caught_up_and_more_are_exit_code_0() {
    let bed = Bed::new(300);
    let first = bed.sweep(&["--max-rows", "120"]).expect(0).table();
    assert_eq!((&first["outcome"], &first["rows"]), (&"more".into(), &120.into()));
    let rest = bed.sweep(&[]).expect(0).table();
    assert_eq!((&rest["outcome"], &rest["rows"]), (&"caught_up".into(), &180.into()));
    let mut keys = bed.keys();
    keys.sort();
    keys.dedup();
    assert_eq!((bed.keys().len(), keys.len()), (300, 300), "each row once");
}

#[test]
fn a_table_that_cannot_be_swept_is_exit_code_1_and_the_others_are_swept() {
    let bed = Bed::new(20);
    let mut other = bed.config.clone();
    other["snow.auth.password"] = "${env:NO_SUCH_VARIABLE_5512}".into();
    bed.document("other", &other);
    let ended = bed.sweep(&[]).expect(1);
    let tables = ended.json()["tables"].clone();
    assert_eq!((&tables[0]["connector"], &tables[0]["outcome"]), (&"other".into(), &"parked".into()));
    assert_eq!(tables[0]["reason"]["code"], "Config.Unresolved");
    assert_eq!((&tables[1]["outcome"], &tables[1]["rows"]), (&"caught_up".into(), &20.into()));
}

#[test]
fn a_selection_of_which_a_part_is_nowhere_is_refused_whole() {
    let bed = Bed::new(20);
    let mut shop = bed.config.clone();
    shop["snow.tables"] = "orders".into();
    for (key, value) in [("name", "incident"), ("topic", "shop.orders")] {
        shop.as_object_mut().expect("a map").remove(&format!("snow.table.inc.{key}"));
        shop[format!("snow.table.orders.{key}")] = value.into();
    }
    shop.as_object_mut().expect("a map").remove("snow.table.inc.start.timestamp");
    bed.document("shop", &shop);
    let sweep: &[&str] = &["sweep", "--sink", "ndjson:rows.ndjson", "--connector", "snow", "--table", "orders"];
    let half: &[&str] = &["sweep", "--sink", "ndjson:rows.ndjson", "--connector", "snow", "--table", "inc", "--table", "orders"];
    let pause: &[&str] = &["cursor", "pause", "--connector", "snow", "--table", "inc", "--table", "orders", "--reason", "r", "--yes"];
    for refused in [sweep, half, pause] {
        let ended = bed.run(refused).expect(2);
        assert!(ended.stderr.contains("no document has orders in snow; there are shop (orders); snow (inc)"), "{ended:?}");
        assert!(!bed.path("rows.ndjson").exists() && !bed.path("tablesweep.db").exists(), "nothing of it was done");
    }
    let both = bed.sweep(&["--connector", "snow", "--connector", "shop", "--table", "inc", "--table", "orders"]).expect(0);
    assert_eq!(both.json()["tables"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_is_tried_again_says_why_and_only_the_end_says_what_becomes_of_it() {
    let mut bed = Bed::new(1);
    bed.set("snow.url", "http://127.0.0.1:1");
    bed.set("snow.retry.max.attempts", 4);
    let ended = bed.sweep(&[]).expect(1);
    let tries = ended.stderr.lines().filter(|line| line.contains("request failed, trying again")).count();
    assert!(tries >= 3 && !ended.stderr.contains("The next tick"), "{}", ended.stderr);
    assert!(ended.stderr.contains("no answer from the instance"), "{}", ended.stderr);
    assert!(ended.table()["reason"]["message"].as_str().is_some_and(|message| message.ends_with("The next tick tries again")));
}

#[test]
fn a_choice_of_what_is_logged_that_cannot_be_read_is_said_and_the_usual_is_logged() {
    let bed = Bed::new(1);
    let with = |filter: &str| {
        let mut command = bed.command(&["status"]);
        command.env("TABLESWEEP_LOG", filter);
        ended(command.spawn().expect("started")).expect(0).stderr
    };
    let said = with("tablesweep=loud");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("TABLESWEEP_LOG")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains("\"tablesweep=loud\"") && lines[0].contains("warn is logged instead"), "{said}");
    assert!(!with("tablesweep=error").contains("TABLESWEEP_LOG"));
}

#[test]
fn a_refused_login_is_exit_code_1_and_no_output_shows_the_password() {
    let bed = Bed::new(1);
    bed.api.set_credentials(Credentials { basic: Some(("sweep".into(), "another".into())), ..Credentials::default() });
    let mut command = bed.command(&["sweep", "--sink", "-", "--output", "json"]);
    command.env("TABLESWEEP_LOG", "trace");
    let ended = ended(command.spawn().expect("started")).expect(1);
    assert!(ended.stdout.is_empty() && !ended.stderr.contains(PASSWORD));
    assert!(ended.stderr.contains("\"parked\""), "{}", ended.stderr);
}

#[test]
fn a_failure_that_may_pass_is_exit_code_1_and_the_next_sweep_goes_on() {
    let bed = Bed::new(20);
    bed.api.fault(Fault::new(Effect::MalformedJson).table("incident").times(50));
    let table = bed.sweep(&[]).expect(1).table();
    assert!(table["reason"]["message"].as_str().expect("a reason").contains("inc"), "{table}");
    bed.api.clear_faults();
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 20);
}

#[test]
fn a_look_that_moves_the_cursors_of_a_sweep_into_kafka_says_so() {
    let bed = Bed::new(20);
    let said = |sink: &str, arguments: &[&str]| {
        let all = [&["sweep", "--sink", sink, "--table", "inc"], arguments].concat();
        bed.run(&all).expect(0).stderr.contains("the cursors in sqlite:tablesweep.db have moved")
    };
    assert!(!said("-", &["--max-rows", "5"]), "nothing here says that there is a Kafka");
    std::fs::write(bed.path("config/worker.json"), r#"{"bootstrap.servers": "b:9092"}"#).expect("written");
    assert!(!said("-", &["--cursors", "memory"]), "no stored cursor moved");
    assert!(said("-", &["--max-rows", "5"]));
    assert!(said("ndjson:rows.ndjson", &[]), "a file is no Kafka either");
    assert!(!said("-", &[]), "no row was left to deliver");
}

#[test]
fn wrong_arguments_are_exit_code_2() {
    let bed = Bed::new(1);
    let wrong: &[&[&str]] = &[
        &["sweep"],
        &["sweep", "--sink", "file"],
        &["sweep", "--cursors", "redis:x"],
        &["sweep", "--mode", "fast"],
        &["sweep", "--sink", "-", "--table", "nosuch"],
        &["sweep", "--sink", "-", "--connector", "nosuch"],
        &["sweep", "--sink", "-", "--max-seconds", "3"],
        &["sweep", "--sink", "-", "--max-rows", "0"],
        &["sweep", "--config", "nosuch"],
        &["cursor", "rewind", "--table", "inc", "--to", "yesterday", "--yes"],
        &["cursor", "accept-schema", "--table", "inc", "--yes"],
        &["cursor", "reset"],
        &["sweeep"],
    ];
    for arguments in wrong {
        let ended = bed.run(arguments).expect(2);
        assert!(!ended.stderr.is_empty() && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
    assert_eq!(bed.api.log().len(), 0);
}

#[test]
fn a_store_or_a_broker_out_of_reach_is_exit_code_1() {
    let bed = Bed::new(1);
    let ended = bed.sweep(&["--cursors", "sqlite:no/such/folder/x.db"]).expect(1);
    assert!(ended.stderr.contains("no/such/folder"), "{}", ended.stderr);
    let worker = json!({"bootstrap.servers": "127.0.0.1:1"});
    std::fs::write(bed.path("config/worker.json"), worker.to_string()).expect("written");
    let table = bed.run(&["sweep", "--output", "json"]).expect(1).table();
    assert_eq!((&table["outcome"], &table["rows"]), (&"failed".into(), &0.into()));
    assert!(table["reason"]["code"].as_str().is_some_and(|code| code.starts_with("Sink.")), "{table}");
}

#[test]
fn with_records_on_standard_output_the_result_is_on_standard_error() {
    let bed = Bed::new(7);
    let ended = bed.run(&["sweep", "--sink", "-", "--output", "json"]).expect(0);
    assert_eq!(ended.stdout.lines().count(), 7);
    for line in ended.stdout.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["topic"], "snow.incident");
    }
    let from = ended.stderr.find("{\n").expect("the result");
    let result: serde_json::Value = serde_json::from_str(&ended.stderr[from..]).expect("JSON");
    assert_eq!(result["tables"][0]["rows"], 7);
}

#[test]
fn a_preview_in_memory_moves_no_cursor() {
    let bed = Bed::new(7);
    for _ in 0..2 {
        let ended = bed.run(&["sweep", "--cursors", "memory", "--sink", "-"]).expect(0);
        assert_eq!(ended.stdout.lines().count(), 7);
    }
    assert!(!bed.path("tablesweep.db").exists());
}

#[test]
fn the_environment_gives_what_the_arguments_leave_out() {
    let bed = Bed::new(7);
    std::fs::rename(bed.path("config"), bed.path("documents")).expect("renamed");
    let mut command = bed.command(&["sweep"]);
    command.env("TABLESWEEP_CONFIG", "documents").env("TABLESWEEP_CURSORS", "sqlite:other.db").env("TABLESWEEP_SINK", "ndjson:out.ndjson");
    ended(command.spawn().expect("started")).expect(0);
    assert_eq!(lines(&bed.path("out.ndjson")).len(), 7);
    assert!(bed.path("other.db").exists() && !bed.path("tablesweep.db").exists());
}

#[test]
fn a_reader_that_went_away_is_no_error_and_no_panic() {
    let bed = Bed::new(7);
    let commands: &[&[&str]] = &[
        &["reference"],
        &["check"],
        &["plan", "--output", "json"],
        &["status"],
        &["sweep", "--sink", "ndjson:rows.ndjson"],
        &["cursor", "show"],
    ];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = bed.command(arguments);
        command.stdout(writer);
        let ended = ended(command.spawn().expect("started"));
        // The pipe's writing end lives in the command too.
        drop(command);
        let ended = ended.expect(0);
        assert!(!ended.stderr.contains("standard output"), "{arguments:?}: {ended:?}");
    }
    assert_eq!(bed.keys().len(), 7, "the sweep was done all the same");
}

#[test]
fn no_line_for_people_is_longer_than_100_columns() {
    let mut bed = Bed::new(30);
    bed.set("snow.tables", "inc,a_table_with_a_name_that_is_much_longer_than_anybody_would_wish_for_in_a_report");
    let alias = "snow.table.a_table_with_a_name_that_is_much_longer_than_anybody_would_wish_for_in_a_report";
    bed.set(&format!("{alias}.name"), "no_such_table");
    bed.set(&format!("{alias}.topic"), "t");
    let swept = bed.run(&["sweep", "--sink", "ndjson:rows.ndjson"]).expect(1);
    let status = bed.run(&["status"]).expect(0);
    for line in swept.stdout.lines().chain(status.stdout.lines()) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(swept.stdout.contains("Source.") && status.stdout.contains("Source."), "{}\n{}", swept.stdout, status.stdout);
}

#[test]
fn the_demo_succeeds_and_leaves_nothing_behind() {
    let bed = Bed::new(0);
    let temporary = bed.path("tmp");
    std::fs::create_dir(&temporary).expect("a folder");
    let mut command = bed.command(&["demo"]);
    command.env("TMPDIR", &temporary);
    let ended = ended(command.spawn().expect("started")).expect(0);
    assert!(ended.stdout.contains("25456 rows swept") && ended.stdout.contains("25456 records written"), "{}", ended.stdout);
    assert!(ended.stdout.contains("number=INC0000099") && ended.stdout.contains("number=INC0000042"), "{}", ended.stdout);
    assert_eq!(std::fs::read_dir(&temporary).expect("a folder").count(), 0);
    assert_eq!(std::fs::read_dir(bed.dir.path()).expect("a folder").count(), 2, "config and tmp");
}
