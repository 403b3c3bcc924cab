use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::cursor::memory::MemoryStore;
use crate::host::ManualClock;
use crate::sweep::Outcome;
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
