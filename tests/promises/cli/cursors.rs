//! What an operator may do to cursors.

use serde_json::Value;

use super::bed::{Bed, lines};

/// What `cursor show` says of the only table.
fn shown(bed: &Bed) -> Value {
    let answer = bed.run(&["cursor", "show", "--output", "json"]).expect(0).json();
    assert_eq!(answer["cursors"].as_array().map(Vec::len), Some(1), "{answer}");
    answer["cursors"][0].clone()
}

#[test]
fn a_rewind_says_what_will_happen_and_the_rows_after_it_are_delivered_again() {
    let bed = Bed::new(100);
    bed.sweep(&[]).expect(0);
    // 20 rows a second: the rows of the last two seconds come again.
    let ended = bed.run(&["cursor", "rewind", "--table", "inc", "--to", "2026-01-01 00:00:03", "--yes"]).expect(0);
    assert!(
        ended.stderr.contains("moves snow/inc from 2026-01-01 00:00:04") && ended.stderr.contains("are delivered again"),
        "{}",
        ended.stderr
    );
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40);
    assert_eq!(bed.keys().len(), 140);
    let audit = shown(&bed)["audit"].clone();
    assert_eq!(audit.as_array().map(Vec::len), Some(1));
    assert_eq!((&audit[0]["what"], &audit[0]["after"]["timestamp"]), (&"rewind".into(), &"2026-01-01 00:00:03".into()));
}

#[test]
fn a_forward_move_needs_to_be_meant() {
    let bed = Bed::new(100);
    bed.sweep(&["--max-rows", "20"]).expect(0);
    let forward = ["cursor", "rewind", "--table", "inc", "--to", "2026-01-01 00:00:04", "--yes"];
    let ended = bed.run(&forward).expect(2);
    assert!(ended.stderr.contains("Cursor.Forward") && ended.stderr.contains("--forward"), "{}", ended.stderr);
    bed.run(&[&forward[..], &["--forward"]].concat()).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 20, "the rows between were skipped");
}

#[test]
fn without_a_terminal_nothing_is_changed_unless_yes_is_said() {
    let bed = Bed::new(40);
    bed.sweep(&[]).expect(0);
    let before = shown(&bed)["item"].clone();
    let commands: &[&[&str]] = &[
        &["cursor", "reset", "--table", "inc"],
        &["cursor", "rewind", "--table", "inc", "--to", "2026-01-01 00:00:00"],
        &["cursor", "pause", "--table", "inc"],
        &["cursor", "resume", "--table", "inc"],
    ];
    for command in commands {
        let ended = bed.run(command).expect(2);
        assert!(ended.stderr.contains("--yes"), "{}", ended.stderr);
    }
    assert_eq!(shown(&bed)["item"], before);
    bed.run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40, "a table that was reset starts anew");
}

#[test]
fn a_paused_table_is_not_swept_until_it_is_resumed() {
    let bed = Bed::new(40);
    bed.run(&["cursor", "pause", "--table", "inc", "--reason", "an upgrade", "--yes"]).expect(0);
    let status = bed.status();
    assert_eq!((&status["state"], &status["reason"]["message"]), (&"paused".into(), &"an upgrade".into()));
    let table = bed.sweep(&[]).expect(1).table();
    assert_eq!((&table["outcome"], &table["reason"]["code"]), (&"paused".into(), &"Cursor.Paused".into()));
    let ended = bed.run(&["cursor", "resume", "--table", "inc", "--yes"]).expect(0);
    assert!(ended.stderr.contains("an upgrade"), "{}", ended.stderr);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40);
    bed.run(&["cursor", "resume", "--table", "inc", "--yes", "--output", "json"]).expect(0).json()[0]["changed"]
        .as_bool()
        .map(|changed| assert!(!changed, "there was nothing to resume"))
        .expect("an answer");
}

#[test]
fn a_moved_table_is_refused_until_it_is_reset() {
    let mut bed = Bed::new(40);
    bed.sweep(&[]).expect(0);
    bed.set("snow.url", bed.api.url().replace("127.0.0.1", "localhost"));
    let table = bed.sweep(&[]).expect(1).table();
    assert_eq!((&table["reason"]["code"], &table["rows"]), (&"Cursor.Moved".into(), &0.into()));
    assert_eq!(bed.status()["state"], "moved");
    let ended = bed.run(&["cursor", "rewind", "--table", "inc", "--to", "2026-01-01 00:00:00", "--yes"]).expect(1);
    assert!(ended.stderr.contains("Cursor.Moved"), "{}", ended.stderr);
    bed.run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40);
    assert_eq!(shown(&bed)["item"]["identity"]["instance"], "localhost", "the old cursor is gone");
}

#[test]
fn an_exported_cursor_goes_on_in_another_store() {
    let bed = Bed::new(100);
    bed.sweep(&["--max-rows", "60"]).expect(0);
    let exported = bed.run(&["cursor", "export"]).expect(0).stdout;
    std::fs::write(bed.path("cursors.ndjson"), &exported).expect("written");
    let other = ["--cursors", "sqlite:other.db"];
    bed.run(&[&["cursor", "import", "cursors.ndjson"][..], &other].concat()).expect(2);
    assert!(!bed.path("other.db").exists(), "nothing is made for a command that is refused");
    bed.run(&[&["cursor", "import", "cursors.ndjson", "--yes"][..], &other].concat()).expect(0);
    bed.sweep(&other).expect(0);
    let mut keys = bed.keys();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 100, "no row is lost");
    // The window does not travel: rows of the cursor's second and of the overlap before it may come once more.
    assert!(bed.keys().len() <= 100 + 60, "{}", bed.keys().len());
    for text in ["{}\n", "nonsense\n", "", "{\"format\":9}\n"] {
        std::fs::write(bed.path("bad.ndjson"), text).expect("written");
        bed.run(&["cursor", "import", "bad.ndjson", "--yes"]).expect(2);
    }
}

#[test]
fn a_table_that_was_never_swept_has_nothing_to_rewind_or_reset() {
    let bed = Bed::new(1);
    for command in [&["cursor", "rewind", "--to", "2026-01-01 00:00:00"][..], &["cursor", "reset"], &["cursor", "resume"]] {
        let ended = bed.run(&[command, &["--table", "inc", "--yes"]].concat()).expect(1);
        assert!(ended.stderr.contains("Cursor.Missing"), "{}", ended.stderr);
    }
    assert!(!bed.path("tablesweep.db").exists() && lines(&bed.path("rows.ndjson")).is_empty());
}

#[test]
fn an_alias_of_two_connectors_is_not_enough_of_a_name() {
    let bed = Bed::new(10);
    let mut other = bed.config.clone();
    other["snow.table.inc.topic"] = "other.incident".into();
    bed.document("other", &other);
    bed.sweep(&[]).expect(0);
    let ended = bed.run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(2);
    assert!(ended.stderr.contains("other/inc or snow/inc"), "{}", ended.stderr);
    for named in [&["--table", "snow/inc"][..], &["--connector", "snow", "--table", "inc"]] {
        let answer = bed.run(&[&["cursor", "reset", "--yes", "--output", "json"], named].concat()).expect(0).json();
        assert_eq!((answer.as_array().map(Vec::len), &answer[0]["connector"]), (Some(1), &"snow".into()), "{answer}");
    }
}

/// The table `incident` is called `new` from now on.
fn rename(bed: &mut Bed, new: &str) {
    let config = bed.config.as_object_mut().expect("an object");
    let own = |key: &String| key.starts_with("snow.table.inc.");
    let moved: Vec<(String, Value)> = config.iter().filter(|(key, _)| own(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    config.retain(|key, _| !own(key));
    for (key, value) in moved {
        config.insert(key.replace(".inc.", &format!(".{new}.")), value);
    }
    bed.set("snow.tables", new);
}

#[test]
fn a_renamed_table_goes_on_from_its_cursor_and_takes_every_command_under_its_new_name() {
    let mut bed = Bed::new(40);
    bed.sweep(&[]).expect(0);
    rename(&mut bed, "incidents");
    // Before the first sweep under the new name as well as after it.
    for _ in 0..2 {
        let report = bed.run(&["status", "--output", "json"]).expect(0).json();
        assert_eq!((&report["tables"][0]["state"], &report["orphans"]), (&"active".into(), &Value::Array(vec![])), "{report}");
        assert_eq!(shown(&bed)["table"], "incidents");
        bed.run(&["cursor", "pause", "--table", "incidents", "--yes"]).expect(0);
        bed.sweep(&[]).expect(1);
        let answer = bed.run(&["cursor", "resume", "--table", "incidents", "--yes", "--output", "json"]).expect(0).json();
        assert_eq!(answer[0]["changed"], true, "what pauses a table resumes it: {answer}");
        assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 0, "nothing is delivered again");
    }
    bed.run(&["cursor", "rewind", "--table", "incidents", "--to", "2026-01-01 00:00:00", "--yes"]).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40);
    bed.run(&["cursor", "reset", "--table", "incidents", "--yes"]).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40);
    let trail: Vec<String> = shown(&bed)["audit"].as_array().expect("a trail").iter().map(|entry| entry["what"].to_string()).collect();
    assert_eq!(trail, ["\"pause\"", "\"resume\"", "\"pause\"", "\"resume\"", "\"rewind\"", "\"reset\""]);
}

/// Everything that is stored was written by a newer program.
fn renew(bed: &Bed) {
    let database = rusqlite::Connection::open(bed.path("tablesweep.db")).expect("the database");
    database.execute("UPDATE item SET body = json_set(body, '$.format', 99)", []).expect("changed");
}

#[test]
fn a_rollback_puts_an_exported_cursor_in_the_place_of_one_that_a_newer_program_wrote() {
    let bed = Bed::new(100);
    bed.sweep(&["--max-rows", "60"]).expect(0);
    std::fs::write(bed.path("before.ndjson"), bed.run(&["cursor", "export"]).expect(0).stdout).expect("written");
    bed.sweep(&[]).expect(0);
    renew(&bed);
    assert_eq!(bed.sweep(&[]).expect(1).table()["reason"]["code"], "Cursor.Format");
    let report = bed.run(&["status", "--output", "json"]).expect(0).json();
    super::schemas::keeps("status", &report);
    let row = &report["tables"][0];
    assert_eq!((&row["state"], &row["reason"]["code"]), (&"unreadable".into(), &"Cursor.Format".into()), "{row}");
    bed.run(&["check"]).expect(0);
    bed.run(&["cursor", "import", "before.ndjson"]).expect(2);
    let ended = bed.run(&["cursor", "import", "before.ndjson", "--yes"]).expect(0);
    assert!(ended.stderr.contains("format 99") && ended.stderr.contains("servicenow/127.0.0.1/incident/"), "{}", ended.stderr);
    bed.sweep(&[]).expect(0);
    let mut keys = bed.keys();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), bed.status()["state"].as_str()), (100, Some("active")), "what came since comes again, and nothing is lost");
    renew(&bed);
    let ended = bed.run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(0);
    assert!(ended.stderr.contains("format 99") && ended.stderr.contains("starts anew"), "{}", ended.stderr);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 100);
}

#[test]
fn an_import_that_no_sweep_could_go_on_from_or_that_skips_rows_is_refused_before_it_is_written() {
    let bed = Bed::new(100);
    bed.sweep(&["--max-rows", "60"]).expect(0);
    let exported = bed.run(&["cursor", "export"]).expect(0).stdout;
    let before = shown(&bed)["item"].clone();
    let stamp = before["progress"]["cursor"]["timestamp"].as_str().expect("a time").to_owned();
    for wrong in [exported.replace(&stamp, "2026-99-01 00:00:00"), exported.replace("\"identity\"", "\"identify\"")] {
        std::fs::write(bed.path("wrong.ndjson"), format!("\n{wrong}")).expect("written");
        let ended = bed.run(&["cursor", "import", "wrong.ndjson", "--yes"]).expect(2);
        assert_eq!(ended.stderr.matches("line ").count(), 1, "one number, that of the line: {}", ended.stderr);
        assert!(ended.stderr.contains("line 2: "), "{}", ended.stderr);
    }
    std::fs::write(bed.path("later.ndjson"), exported.replace(&stamp, "2026-01-01 00:00:04")).expect("written");
    let ended = bed.run(&["cursor", "import", "later.ndjson", "--yes"]).expect(2);
    assert!(ended.stderr.contains("Cursor.Forward") && ended.stderr.contains("--forward"), "{}", ended.stderr);
    assert_eq!(shown(&bed)["item"], before, "nothing was changed");
    let ended = bed.run(&["cursor", "import", "later.ndjson", "--yes", "--forward"]).expect(0);
    assert!(ended.stderr.contains("are never delivered"), "{}", ended.stderr);
    let ended = bed.run(&["cursor", "import", "-", "--yes"]).expect(2);
    assert!(ended.stderr.contains("no line"), "{}", ended.stderr);
}

#[test]
fn a_copy_of_nothing_is_no_copy_and_is_told() {
    let bed = Bed::new(1);
    for (store, why) in [("sqlite:no-such.db", "does not exist"), ("sqlite:empty.db", "holds no cursor")] {
        if why == "holds no cursor" {
            bed.sweep(&[]).expect(0);
            std::fs::rename(bed.path("tablesweep.db"), bed.path("empty.db")).expect("moved");
            bed.run(&["cursor", "export", "--cursors", store]).expect(0);
            let database = rusqlite::Connection::open(bed.path("empty.db")).expect("the database");
            database.execute("DELETE FROM item", []).expect("emptied");
        }
        let ended = bed.run(&["cursor", "export", "--cursors", store]).expect(1);
        assert!(ended.stdout.is_empty() && ended.stderr.contains(why), "{ended:?}");
    }
    let ended = bed.run(&["cursor", "show", "--cursors", "sqlite:no-such.db"]).expect(0);
    assert!(ended.stderr.contains("does not exist"), "{ended:?}");
    assert!(!bed.path("no-such.db").exists(), "a look makes no database");
}

#[test]
fn who_commands_is_known_where_the_environment_does_not_say() {
    let bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    let mut command = bed.command(&["cursor", "pause", "--table", "inc", "--yes"]);
    for name in ["USER", "LOGNAME", "USERNAME"] {
        command.env_remove(name);
    }
    super::bed::ended(command.spawn().expect("started")).expect(0);
    let who = shown(&bed)["audit"][0]["who"].as_str().expect("a name").to_owned();
    assert!(!who.is_empty() && who != "unknown", "{who}");
}

#[test]
fn a_damaged_database_is_moved_away_before_its_copy_is_imported() {
    let bed = Bed::new(100);
    bed.sweep(&["--max-rows", "60"]).expect(0);
    std::fs::write(bed.path("copy.ndjson"), bed.run(&["cursor", "export"]).expect(0).stdout).expect("written");
    let mut bytes = std::fs::read(bed.path("tablesweep.db")).expect("the file");
    // The header and the schema stay; every page after the first is damaged.
    bytes[4096..].fill(0xff);
    std::fs::write(bed.path("tablesweep.db"), bytes).expect("written");
    let ended = bed.run(&["cursor", "import", "copy.ndjson", "--yes"]).expect(1);
    assert!(ended.stderr.contains("move it away"), "{}", ended.stderr);
    std::fs::rename(bed.path("tablesweep.db"), bed.path("damaged.db")).expect("moved");
    bed.run(&["cursor", "import", "copy.ndjson", "--yes"]).expect(0);
    bed.sweep(&[]).expect(0);
    let mut keys = bed.keys();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 100, "no row is lost");
}

#[test]
fn a_copy_without_what_cannot_be_read_says_what_is_missing_and_is_no_success() {
    let mut bed = Bed::new(40);
    bed.set("snow.tables", "inc,act");
    for (key, value) in [("name", "incident"), ("topic", "snow.active"), ("query", "active=true")] {
        bed.set(&format!("snow.table.act.{key}"), value);
    }
    bed.sweep(&[]).expect(0);
    assert_eq!(bed.run(&["cursor", "export"]).expect(0).stdout.lines().count(), 2);
    let database = rusqlite::Connection::open(bed.path("tablesweep.db")).expect("the database");
    let renewed = "UPDATE item SET body = json_set(body, '$.format', 99) WHERE json_extract(body, '$.identity.alias') = 'act'";
    assert_eq!(database.execute(renewed, []).expect("changed"), 1);
    let ended = bed.run(&["cursor", "export"]).expect(1);
    assert_eq!(ended.stdout.lines().count(), 1, "what there is: {ended:?}");
    assert!(
        ended.stdout.contains("\"alias\":\"inc\"") && ended.stderr.contains("snow/act") && ended.stderr.contains("not whole"),
        "{ended:?}"
    );
    assert_eq!(bed.run(&["cursor", "export", "--table", "inc"]).expect(0).stdout, ended.stdout);
    let ended = bed.run(&["cursor", "export", "--table", "act"]).expect(1);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("snow/act") && ended.stderr.contains("format 99"), "{ended:?}");
    let ended = bed.run(&["cursor", "show", "--table", "act"]).expect(0);
    assert!(ended.stderr.contains("snow/act") && !ended.stdout.contains("no cursor"), "{ended:?}");
}

#[test]
fn the_schemas_of_topics_go_with_the_cursors_and_a_copy_without_them_is_still_one() {
    let mut bed = Bed::new(40);
    bed.set("snow.source.schema.mode", "strings");
    bed.sweep(&[]).expect(0);
    let exported = bed.run(&["cursor", "export"]).expect(0).stdout;
    let (cursor, schema) = exported.split_once('\n').expect("two lines");
    for line in [cursor, schema] {
        super::schemas::keeps("cursor-export-line", &serde_json::from_str(line).expect("JSON"));
    }
    assert!(schema.contains("topic/snow.incident/strings#schema"), "{schema}");
    std::fs::write(bed.path("cursors.ndjson"), &exported).expect("written");
    let other = ["--cursors", "sqlite:other.db"];
    let ended = bed.run(&[&["cursor", "import", "cursors.ndjson", "--yes"][..], &other].concat()).expect(0);
    assert!(ended.stderr.contains("puts the schema topic/snow.incident/strings#schema"), "{}", ended.stderr);
    let again = bed.run(&[&["cursor", "export"][..], &other].concat()).expect(0).stdout;
    assert_eq!(again.lines().nth(1), Some(schema.trim_end()), "the same version of the same fields");
    std::fs::write(bed.path("older.ndjson"), cursor).expect("written");
    bed.run(&["cursor", "import", "older.ndjson", "--yes", "--cursors", "sqlite:third.db"]).expect(0);
    std::fs::write(bed.path("damaged.ndjson"), exported.replace("#schema", "#probe")).expect("written");
    let ended = bed.run(&["cursor", "import", "damaged.ndjson", "--yes"]).expect(2);
    assert!(ended.stderr.contains("line 2: "), "{}", ended.stderr);
}

#[test]
fn a_paused_table_that_is_reset_stays_paused_and_says_so() {
    let bed = Bed::new(40);
    bed.sweep(&[]).expect(0);
    bed.run(&["cursor", "pause", "--table", "inc", "--reason", "an upgrade", "--yes"]).expect(0);
    let ended = bed.run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(0);
    assert!(ended.stderr.contains("; it stays paused: an upgrade"), "{}", ended.stderr);
    let status = bed.status();
    assert_eq!((&status["state"], &status["reason"]["message"]), (&"paused".into(), &"an upgrade".into()));
    bed.run(&["cursor", "resume", "--table", "inc", "--yes"]).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 40);
}

#[test]
fn a_rewind_of_a_table_that_has_not_begun_is_refused_for_what_it_would_leave_out_and_else_done() {
    let bed = Bed::new(100);
    bed.run(&["cursor", "pause", "--table", "inc", "--yes"]).expect(0);
    let rewind = |to: &str| bed.run(&["cursor", "rewind", "--table", "inc", "--to", to, "--yes"]);
    let ended = rewind("2026-01-01 00:00:03").expect(2);
    assert!(ended.stderr.contains("2026-01-01 00:00:00, where its document begins"), "{}", ended.stderr);
    rewind("2025-12-31 00:00:00").expect(0);
    bed.run(&["cursor", "resume", "--table", "inc", "--yes"]).expect(0);
    assert_eq!(bed.sweep(&[]).expect(0).table()["rows"], 100);
}
