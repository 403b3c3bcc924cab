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
