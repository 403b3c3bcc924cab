use std::sync::Mutex;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::cursor::memory::MemoryStore;
use crate::host::ManualClock;
use crate::sweep::{Outcome, Reason};
use crate::telemetry::metrics::Metrics;

const NOW: i64 = 1_800_000_000_000;

fn sweep(worker: &Value, class: &str) -> (Sweep, TempDir) {
    let dir = TempDir::new().expect("a folder");
    std::fs::create_dir_all(dir.path().join("connectors")).expect("a folder");
    let snow = match class {
        "sqlserver" => json!({"connector.class": class, "mssql.host": "h", "mssql.database": "d", "mssql.user": "u",
            "mssql.password": "p", "mssql.tables": "inc", "mssql.table.inc.name": "dbo.inc", "mssql.table.inc.topic": "inc",
            "mssql.table.inc.sequence.column": "id"}),
        _ => json!({"connector.class": class, "snow.url": "https://acme.service-now.com", "snow.auth.username": "u",
            "snow.auth.password": "p", "snow.tables": "inc", "snow.table.inc.name": "incident", "snow.table.inc.topic": "inc"}),
    };
    let document = json!({"name": "snow", "config": snow}).to_string();
    std::fs::write(dir.path().join("connectors/snow.json"), document).expect("written");
    std::fs::write(dir.path().join("worker.json"), worker.to_string()).expect("written");
    let settings = Settings {
        config: dir.path().to_owned(),
        cursors: Ok("cursors".to_owned()),
        sweep_function: None,
        memory: 1 << 27,
        timeout: Ok(None),
        name: "sweep".to_owned(),
        metrics: Metrics::default(),
    };
    let sweep = Sweep::new(settings, Host::with_clock(ManualClock::at(NOW)));
    let store: Arc<dyn CursorStore> = Arc::new(MemoryStore::new());
    sweep.store.set(store).expect("not set before");
    (sweep, dir)
}

fn task(table: &str, mode: &str) -> Value {
    json!({"connector": "snow", "task": 0, "tasks": 1, "tables": [table], "tick": "2026-01-01T00:00:00Z", "mode": mode})
}

fn deadline() -> u64 {
    u64::try_from(NOW + 45_000).expect("positive")
}

#[tokio::test]
async fn a_table_that_no_document_has_is_named_with_those_that_there_are() {
    let (sweep, _dir) = sweep(&json!({"bootstrap.servers": "b:9092"}), "servicenow");
    let failure = sweep.handle(&task("prb", "stream"), deadline()).await.expect_err("unknown");
    assert_eq!(failure.code, "Event.UnknownTable");
    assert!(failure.message.contains("snow/prb") && failure.message.contains("snow (inc)"), "{failure}");
    let mut elsewhere = task("inc", "stream");
    elsewhere["connector"] = json!("snowy");
    assert!(sweep.handle(&elsewhere, deadline()).await.expect_err("unknown").message.contains("snowy"));
}

#[tokio::test]
async fn wrong_documents_fail_every_invocation_with_the_report() {
    let (sweep, _dir) = sweep(&json!({"bootstrap.servers": "b:9092"}), "servicenowy");
    for mode in ["stream", "catch-up"] {
        let failure = sweep.handle(&task("inc", mode), deadline()).await.expect_err("wrong documents");
        assert!(failure.code == "Config.Invalid" && failure.message.contains("servicenowy"), "{failure}");
    }
}

#[tokio::test]
async fn what_keeps_a_whole_connector_from_being_swept_fails_a_stream_by_its_code_and_is_the_result_of_a_catch_up() {
    for class in ["sqlserver", "servicenow"] {
        let (sweep, _dir) = sweep(&json!({"bootstrap.servers": "${env:BROKERS_THAT_NOBODY_SET}"}), class);
        let failure = sweep.handle(&task("inc", "stream"), deadline()).await.expect_err("no brokers");
        assert!(failure.code == "Config.Unresolved" && failure.message.contains("snow/inc"), "{failure}");
        let report = sweep.handle(&task("inc", "catch-up"), deadline()).await.expect("a result");
        let reason = report.tables[0].reason.as_ref().expect("a reason");
        assert_eq!((report.tables[0].outcome, &*reason.code), (Outcome::Parked, "Config.Unresolved"));
    }
}

#[test]
fn the_timeout_is_read_off_the_deadline_in_whole_seconds() {
    let clock = ManualClock::at(NOW + 12);
    let deadline = Deadline::new(&Host::with_clock(clock.clone()), deadline());
    assert_eq!((deadline.timeout, deadline.monotonic), (Duration::from_secs(45), Duration::from_millis(44_988)));
    let past = Deadline::new(&Host::with_clock(clock), 5);
    assert_eq!((past.timeout, past.monotonic), (Duration::ZERO, Duration::ZERO));
}

/// A place for the lines of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is logged of `table`, line by line.
fn logged(mode: Mode, table: TableReport) -> Vec<Value> {
    let task = json!({"connector": "snow", "task": 0, "tasks": 1, "tables": ["inc"], "tick": "t", "mode": mode});
    let (task, lines) = (SweepTask::read(&task).expect("a task"), Lines::default());
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || written.clone()).finish();
    tracing::subscriber::with_default(subscriber, || log(&SweepReport::together(mode, vec![table]), &task));
    let written = lines.0.lock().expect("nobody panicked");
    String::from_utf8_lossy(&written).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn the_line_of_a_table_has_each_count_under_its_name() {
    let table = TableReport {
        outcome: Outcome::More,
        phase: Some(crate::cursor::Phase::Backfill),
        rows: 1,
        duplicates_suppressed: 2,
        rows_hidden: 3,
        rows_late: 4,
        rows_skipped: 5,
        values_replaced: 6,
        requests: 7,
        bytes_in: 8,
        lag_seconds: Some(9),
        duration_ms: 10,
        ..TableReport::new("snow", "inc")
    };
    let lines = logged(Mode::Stream, table);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let figures = [
        ("rows", 1),
        ("suppressed", 2),
        ("hidden", 3),
        ("late", 4),
        ("skipped", 5),
        ("replaced", 6),
        ("requests", 7),
        ("bytes_in", 8),
        ("lag_seconds", 9),
        ("duration_ms", 10),
    ];
    for (name, value) in figures {
        assert_eq!(lines[0][name], json!(value), "{name}");
    }
    for (name, value) in
        [("connector", "snow"), ("table", "inc"), ("tick", "t"), ("mode", "Stream"), ("outcome", "More"), ("phase", "Backfill")]
    {
        assert_eq!(lines[0][name], json!(value), "{name}");
    }
}

#[test]
fn what_went_wrong_in_a_catch_up_is_logged_in_words_since_no_error_says_it() {
    let parked = || {
        let reason = Some(Reason { code: "Source.Forbidden".into(), message: "no right to read".into() });
        TableReport { outcome: Outcome::Parked, reason, ..TableReport::new("snow", "inc") }
    };
    let lines = logged(Mode::CatchUp, parked());
    assert_eq!((lines.len(), &lines[0]["code"]), (2, &json!("Source.Forbidden")), "{lines:?}");
    let said = ["level", "table", "tick", "code", "message"].map(|name| lines[1][name].clone());
    assert_eq!(said.to_vec(), ["WARN", "inc", "t", "Source.Forbidden", "no right to read"], "{lines:?}");
    assert_eq!(logged(Mode::Stream, parked()).len(), 1, "a tick fails, and its error has the words");
}
