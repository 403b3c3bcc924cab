//! `check` and `plan`.

use super::bed::Bed;

#[test]
fn twenty_faults_are_one_report_and_exit_code_2() {
    let mut bed = Bed::new(0);
    for n in 0..19 {
        bed.set(&format!("snow.misspelt.{n}"), "x");
    }
    bed.set("snow.table.inc.batch.size", "many");
    let ended = bed.run(&["check", "--output", "json"]).expect(2);
    let faults = ended.json()["faults"].as_array().expect("faults").clone();
    assert_eq!(faults.len(), 20, "{faults:#?}");
    for fault in &faults {
        let key = fault["key"].as_str().expect("a key");
        assert!(ended.stderr.contains(key), "{key} is missing in {}", ended.stderr);
    }
    for command in [&["plan"][..], &["status"], &["sweep"], &["cursor", "show"]] {
        let ended = bed.run(command).expect(2);
        assert!(ended.stderr.contains("20 faults") && ended.stdout.is_empty(), "{ended:?}");
    }
    assert_eq!(bed.api.log().len(), 0, "nothing was asked of the instance");
}

#[test]
fn producer_settings_that_do_not_suit_each_other_are_faults_at_the_keys_that_give_them() {
    let mut bed = Bed::new(0);
    bed.worker(&[
        ("bootstrap.servers", "${env:NOT_SET_HERE}"),
        ("producer.queue.buffering.max.ms", "30000"),
        ("producer.reconnect.backoff.ms", "500"),
    ]);
    bed.set("producer.override.reconnect.backoff.max.ms", "400");
    let ended = bed.run(&["check", "--output", "json"]).expect(2);
    let faults = ended.json()["faults"].as_array().expect("faults").clone();
    let found: Vec<_> = faults.iter().map(|fault| (fault["file"].as_str(), fault["key"].as_str(), fault["value"].as_str())).collect();
    let of_the_worker = (Some("worker.json"), Some("producer.queue.buffering.max.ms"), Some("30000"));
    let of_the_connector = (Some("connectors/snow.json"), Some("producer.override.reconnect.backoff.max.ms"), Some("400"));
    assert_eq!(found, [of_the_worker, of_the_connector], "{faults:#?}");
    for word in ["message.timeout.ms (20000)", "reconnect.backoff.ms (500)"] {
        assert!(ended.stderr.contains(word), "{word} is missing in {}", ended.stderr);
    }
    // A fault of the worker's is told once, whoever else overrides something.
    bed.set("producer.override.reconnect.backoff.max.ms", "600");
    let more = [("connector.class", "sqlserver"), ("mssql.host", "db"), ("mssql.database", "d"), ("mssql.user", "u")];
    let table = [("mssql.password", "${env:P}"), ("mssql.tables", "a"), ("mssql.table.a.name", "dbo.a"), ("mssql.table.a.topic", "a")];
    let sequence = [("mssql.table.a.sequence.column", "seq"), ("producer.override.message.timeout.ms", "25000")];
    let pairs = more.into_iter().chain(table).chain(sequence);
    bed.document(
        "more",
        &pairs.map(|(key, value)| (key.to_owned(), value.into())).collect::<serde_json::Map<_, serde_json::Value>>().into(),
    );
    let faults = bed.run(&["check", "--output", "json"]).expect(2).json()["faults"].as_array().expect("faults").clone();
    let messages: Vec<_> = faults.iter().filter_map(|fault| fault["message"].as_str()).collect();
    assert_eq!(messages.len(), 2, "{faults:#?}");
    assert!(messages.iter().any(|said| said.ends_with("message.timeout.ms (20000)")), "{messages:?}");
    let of_one = "message.timeout.ms (25000) (with the settings of the connector more)";
    assert!(messages.iter().any(|said| said.ends_with(of_one)), "{messages:?}");
    bed.worker(&[("bootstrap.servers", "${env:NOT_SET_HERE}")]);
    bed.run(&["check"]).expect(0);
}

#[test]
fn checking_contacts_no_instance_and_makes_no_database() {
    let bed = Bed::new(10);
    for command in
        [&["check"][..], &["check", "--output", "json"], &["plan"], &["plan", "--output", "json"], &["status"], &["cursor", "show"]]
    {
        bed.run(command).expect(0);
    }
    assert_eq!(bed.api.log().len(), 0);
    let left: Vec<_> = std::fs::read_dir(bed.dir.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["config"]);
}

#[test]
fn a_moved_instance_and_a_changed_query_are_announced_before_anything_is_swept() {
    let mut bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    let ended = bed.run(&["check", "--output", "json"]).expect(0);
    assert_eq!(ended.table()["cursor"], "current");
    assert!(!ended.stderr.contains("note:"), "{}", ended.stderr);

    bed.set("snow.table.inc.query", "active=true");
    for command in ["check", "plan"] {
        let ended = bed.run(&[command, "--output", "json"]).expect(0);
        assert!(ended.stderr.contains("snow/inc: its query changed"), "{command}: {}", ended.stderr);
    }
    bed.set("snow.table.inc.query", "");
    let url = bed.api.url().replace("127.0.0.1", "localhost");
    bed.set("snow.url", url);
    for command in ["check", "plan"] {
        let ended = bed.run(&[command, "--output", "json"]).expect(0);
        assert!(ended.stderr.contains("Cursor.Moved") && ended.stderr.contains("\"127.0.0.1\""), "{command}: {}", ended.stderr);
    }
    assert_eq!(bed.run(&["check", "--output", "json"]).table()["cursor"], "moved");
}

#[test]
fn a_plan_says_which_task_sweeps_which_tables() {
    let mut bed = Bed::new(0);
    bed.set("snow.tables", "inc,chg");
    bed.set("snow.table.chg.name", "change_request");
    bed.set("snow.table.chg.topic", "snow.change");
    bed.set("tasks.max", "8");
    let plan = bed.run(&["plan", "--output", "json"]).expect(0).json();
    assert_eq!((&plan["tick"], &plan["mode"], &plan["invoked"]), (&serde_json::Value::Null, &"stream".into(), &0.into()));
    let tasks = plan["tasks"].as_array().expect("tasks");
    let mut tables: Vec<&str> =
        tasks.iter().flat_map(|task| task["tables"].as_array().expect("tables")).filter_map(|t| t.as_str()).collect();
    tables.sort_unstable();
    assert_eq!(tables, ["chg", "inc"]);
    assert!(tasks.iter().all(|task| task["tasks"] == 2), "{plan}");
}

#[test]
fn a_start_that_has_not_come_yet_is_warned_about_and_so_is_a_cursor_that_is_set_there() {
    let mut bed = Bed::new(10);
    bed.sweep(&[]).expect(0);
    let rewind = ["cursor", "rewind", "--table", "inc", "--to", "2999-01-01 00:00:00", "--forward", "--yes"];
    let ended = bed.run(&rewind).expect(0);
    assert!(ended.stderr.contains("ahead of this machine's clock"), "{}", ended.stderr);
    let ended = bed.run(&["check", "--output", "json"]).expect(0);
    assert!(!ended.stderr.contains("start.timestamp"), "{}", ended.stderr);
    bed.set("snow.table.inc.start.timestamp", "2999-01-01 00:00:00");
    let ended = bed.run(&["check", "--output", "json"]).expect(0);
    let json = ended.json();
    let warnings = json["warnings"].as_array().expect("warnings");
    let start = warnings.iter().find(|warning| warning["key"] == "snow.table.inc.start.timestamp").expect("a warning");
    assert_eq!(start["value"], "2999-01-01 00:00:00");
    assert!(ended.stderr.contains("ahead of this machine's clock"), "{}", ended.stderr);
}

#[test]
fn a_query_that_no_request_can_carry_is_a_fault() {
    let mut bed = Bed::new(0);
    // Each ^ and each = is three characters of an address.
    bed.set("snow.table.inc.query", ["a=1"; 11_001].join("^OR"));
    let ended = bed.run(&["check", "--output", "json"]).expect(2);
    let faults = ended.json()["faults"].as_array().expect("faults").clone();
    assert_eq!((faults.len(), &faults[0]["key"]), (1, &"snow.table.inc.query".into()), "{faults:?}");
    assert!(faults[0]["message"].as_str().is_some_and(|message| message.contains("longer than any can be")), "{faults:?}");
    bed.set("snow.table.inc.query", ["a=1"; 1_000].join("^OR"));
    bed.run(&["check"]).expect(0);
}
