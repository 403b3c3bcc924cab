use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Barrier;

use super::*;
use crate::cursor::memory::MemoryStore;
use crate::cursor::{Acquire, Change, Hold, Identity, Position, Progress, Standing, Write};
use crate::sweep::Mode;
use crate::telemetry::metrics::Metrics;

fn documents() -> TempDir {
    let dir = TempDir::new().expect("a folder");
    std::fs::create_dir_all(dir.path().join("connectors")).expect("a folder");
    let snow = json!({"name": "snow", "config": {
        "connector.class": "servicenow", "tasks.max": "2", "snow.url": "https://acme.service-now.com",
        "snow.auth.username": "u", "snow.auth.password": "p", "snow.tables": "inc,chg",
        "snow.table.inc.name": "incident", "snow.table.inc.topic": "inc",
        "snow.table.chg.name": "change_request", "snow.table.chg.topic": "chg",
    }});
    std::fs::write(dir.path().join("connectors/snow.json"), snow.to_string()).expect("written");
    std::fs::write(dir.path().join("worker.json"), json!({"bootstrap.servers": "b:9092"}).to_string()).expect("written");
    dir
}

fn settings(config: PathBuf) -> Settings {
    Settings {
        config,
        cursors: Ok("cursors".to_owned()),
        sweep_function: Some("sweep".to_owned()),
        memory: 1 << 27,
        timeout: Ok(None),
        name: "fan-out".to_owned(),
        metrics: Metrics::default(),
    }
}

fn fan_out(dir: &TempDir) -> FanOut {
    FanOut::new(settings(dir.path().to_owned()), Host::system())
}

/// Takes events once all of them are there at once, and refuses those that contain a word.
struct Together {
    all: Barrier,
    refuses: &'static str,
    taken: Mutex<Vec<Value>>,
}

impl Together {
    fn of(count: usize, refuses: &'static str) -> Self {
        Self { all: Barrier::new(count), refuses, taken: Mutex::default() }
    }
}

#[async_trait]
impl Invoke for Together {
    async fn invoke(&self, function: &str, event: Vec<u8>) -> Result<(), String> {
        let together = tokio::time::timeout(Duration::from_secs(10), self.all.wait());
        together.await.expect("all are invoked at the same time");
        assert_eq!(function, "sweep");
        let event: Value = serde_json::from_slice(&event).expect("JSON");
        if !self.refuses.is_empty() && event.to_string().contains(self.refuses) {
            return Err("throttled".to_owned());
        }
        self.taken.lock().expect("a lock").push(event);
        Ok(())
    }
}

#[tokio::test]
async fn a_tick_invokes_every_task_at_the_same_time_with_all_that_the_plan_says() {
    let dir = documents();
    let invoke = Together::of(2, "");
    let event = json!({"detail-type": "Scheduled Event", "time": "2026-01-01T00:00:00Z"});
    let plan = fan_out(&dir).handle(&event, "lambda", &invoke).await.expect("planned");
    assert_eq!((plan.tick.as_deref(), plan.mode, plan.tasks.len(), plan.invoked), (Some("2026-01-01T00:00:00Z"), Mode::Stream, 2, 2));
    let mut taken = invoke.taken.lock().expect("a lock").clone();
    taken.sort_by_key(|event| event["task"].as_u64());
    let planned: Vec<SweepTask> = plan.tasks.iter().map(|task| SweepTask::new(&plan, task)).collect();
    assert_eq!(taken.iter().map(|event| SweepTask::read(event).expect("a task")).collect::<Vec<_>>(), planned);
    assert!(planned.iter().all(SweepTask::is_scheduled));
}

#[tokio::test]
async fn a_failed_invocation_stops_no_other_and_is_named() {
    let dir = documents();
    let invoke = Together::of(2, "\"inc\"");
    let failure = fan_out(&dir).handle(&json!({}), "lambda", &invoke).await.expect_err("one failed");
    assert_eq!(failure.code, "FanOut.InvokeFailed");
    for part in ["1 of 2", "snow task", "(inc)", "throttled"] {
        assert!(failure.message.contains(part), "`{part}` is missing in: {failure}");
    }
    assert!(!failure.message.contains("chg"), "{failure}");
    assert_eq!(invoke.taken.lock().expect("a lock").len(), 1);
}

#[tokio::test]
async fn a_plan_that_is_returned_invokes_nothing_and_a_filter_moves_no_table() {
    let dir = documents();
    let nobody = Together::of(9, "");
    let all = fan_out(&dir).handle(&json!({"dispatch": "return"}), "lambda", &nobody).await.expect("planned");
    assert_eq!((all.tick.as_deref(), all.tasks.len(), all.invoked), (Some("lambda"), 2, 0));
    let event = json!({"mode": "catch-up", "tables": ["snow/chg"], "request_id": "r", "dispatch": "return"});
    let some = fan_out(&dir).handle(&event, "lambda", &nobody).await.expect("planned");
    assert_eq!((some.tick.as_deref(), some.mode), (Some("r"), Mode::CatchUp));
    let owner = all.tasks.iter().find(|task| task.tables == ["chg"]).expect("an owner");
    assert_eq!(some.tasks, std::slice::from_ref(owner));
}

#[tokio::test]
async fn what_is_wrong_is_told_by_every_invocation_and_nothing_is_invoked() {
    let dir = documents();
    let nobody = Together::of(9, "");
    let unknown = fan_out(&dir).handle(&json!({"tables": ["inc", "prb"]}), "lambda", &nobody).await.expect_err("unknown");
    assert_eq!(unknown.code, "Event.UnknownTable");
    assert!(unknown.message.contains("prb") && unknown.message.contains("snow (chg, inc)"), "{unknown}");
    std::fs::copy(dir.path().join("connectors/snow.json"), dir.path().join("connectors/other.json")).expect("copied");
    let other = std::fs::read_to_string(dir.path().join("connectors/other.json")).expect("read");
    let other = other.replace("\"snow\"", "\"other\"").replace("chg", "prb").replace("change_request", "problem");
    std::fs::write(dir.path().join("connectors/other.json"), other).expect("written");
    let half = fan_out(&dir).handle(&json!({"connectors": ["snow"], "tables": ["inc", "prb"]}), "lambda", &nobody).await;
    let half = half.expect_err("prb is another connector's");
    assert_eq!(half.code, "Event.UnknownTable");
    assert!(half.message.contains("no document has prb in snow; there are other (inc, prb)"), "{half}");
    std::fs::remove_file(dir.path().join("connectors/other.json")).expect("removed");
    let unset = FanOut::new(Settings { sweep_function: None, ..settings(dir.path().to_owned()) }, Host::system());
    let failure = unset.handle(&json!({}), "lambda", &nobody).await.expect_err("no function");
    assert!(failure.code == "Config.Invalid" && failure.message.contains("SWEEP_FUNCTION"), "{failure}");
    std::fs::write(dir.path().join("connectors/bad.json"), r#"{"name":"bad","config":{"connector.class":"oracle"}}"#).expect("written");
    let broken = fan_out(&dir);
    for _ in 0..2 {
        let failure = broken.handle(&json!({}), "lambda", &nobody).await.expect_err("wrong documents");
        assert!(failure.code == "Config.Invalid" && failure.message.contains("oracle"), "{failure}");
    }
}

fn at(stamp: &str, id: &str) -> Position {
    Position::new([("timestamp", Some(stamp.to_owned())), ("sys_id", Some(id.to_owned()))])
}

/// The store of a fan-out whose tables were swept to this time; the lease of those in `held` is left.
async fn swept(fan_out: &FanOut, stamp: &str, held: &[&str]) -> Vec<Identity> {
    let store: Arc<dyn CursorStore> = Arc::new(MemoryStore::new());
    let documents = fan_out.documents.as_ref().expect("documents");
    let places = documents.connectors.iter().flat_map(|connector| Place::of(connector, &|_| None));
    let mut identities = Vec::new();
    for identity in places.map(|place| place.identity().expect("all is known")) {
        let key = identity.key();
        let write = async |change| store.write(&key, &Write { id: fan_out.host.nonce(), change }).await.expect("written");
        write(Change::Create(identity.clone())).await;
        let now_ms = fan_out.host.now_ms();
        let acquire = Acquire { owner: "o".to_owned(), until_ms: now_ms + 60_000, now_ms, scheduled: None };
        let item = write(Change::Acquire(acquire)).await;
        let hold = Hold { owner: "o".to_owned(), revision: item.revision };
        let progress = Progress { cursor: Some(at(stamp, "x")), ..Progress::default() };
        if held.contains(&&*identity.alias) {
            write(Change::Commit(hold, progress)).await;
        } else {
            write(Change::Release(hold, progress, Standing::Active)).await;
        }
        identities.push(identity);
    }
    fan_out.store.set(store).expect("not set before");
    identities
}

async fn cursors(fan_out: &FanOut) -> Vec<Option<Position>> {
    let items = fan_out.store.get().expect("a store").list("snow").await.expect("items");
    items.into_iter().map(|item| item.progress.cursor).collect()
}

fn from(stamp: &str, id: &str) -> Value {
    json!({"mode": "catch-up", "from": stamp, "request_id": id, "dispatch": "return"})
}

#[tokio::test]
async fn one_request_rewinds_each_table_once_however_often_it_comes() {
    let dir = documents();
    let (fan_out, nobody) = (fan_out(&dir), Together::of(9, ""));
    let identities = swept(&fan_out, "2026-03-01 00:00:00", &[]).await;
    let start = at("2026-01-01 00:00:00", "");
    fan_out.handle(&from("2026-01-01 00:00:00", "r"), "lambda", &nobody).await.expect("rewound");
    assert_eq!(cursors(&fan_out).await, [Some(start.clone()), Some(start.clone())]);
    // A sweep goes on from there, and holds its lease while the same request comes again.
    let key = identities[0].key();
    let store = fan_out.store.get().expect("a store");
    let now_ms = fan_out.host.now_ms();
    let acquire = Acquire { owner: "p".to_owned(), until_ms: now_ms + 60_000, now_ms, scheduled: None };
    let item = store.write(&key, &Write { id: "a".to_owned(), change: Change::Acquire(acquire) }).await.expect("a lease");
    let moved = Progress { cursor: Some(at("2026-02-01 00:00:00", "y")), ..Progress::default() };
    let commit = Change::Commit(Hold { owner: "p".to_owned(), revision: item.revision }, moved.clone());
    store.write(&key, &Write { id: "c".to_owned(), change: commit }).await.expect("committed");
    fan_out.handle(&from("2026-01-01 00:00:00", "r"), "lambda", &nobody).await.expect("nothing to do");
    assert!(cursors(&fan_out).await.contains(&moved.cursor));
}

#[tokio::test]
async fn a_held_lease_rewinds_nothing_and_is_told_by_its_code_unless_waiting_would_not_help() {
    let dir = documents();
    let (fan_out, nobody) = (fan_out(&dir), Together::of(9, ""));
    let identities = swept(&fan_out, "2026-03-01 00:00:00", &["inc"]).await;
    let before = cursors(&fan_out).await;
    // Whether the held one lies before the time is known when it is free.
    for time in ["2026-01-01 00:00:00", "2026-04-01 00:00:00"] {
        let failure = fan_out.handle(&from(time, "r"), "lambda", &nobody).await.expect_err("held");
        assert!(failure.code == "Cursor.Leased" && failure.message.contains("snow/inc"), "{failure}");
        assert_eq!(cursors(&fan_out).await, before);
    }
    let store = fan_out.store.get().expect("a store");
    let chg = identities.into_iter().find(|identity| identity.alias == "chg").expect("it was swept");
    store.remove(&chg.key(), fan_out.host.now_ms()).await.expect("removed");
    let moved = Identity { instance: "elsewhere".to_owned(), ..chg };
    store.write(&moved.key(), &Write { id: "m".to_owned(), change: Change::Create(moved.clone()) }).await.expect("made");
    let failure = fan_out.handle(&from("2026-01-01 00:00:00", "r"), "lambda", &nobody).await.expect_err("moved, and held");
    assert!(failure.code == "Cursor.Moved" && failure.message.contains("snow/chg"), "{failure}");
}

#[tokio::test]
async fn a_rewind_leaves_tables_alone_that_were_not_selected() {
    let dir = documents();
    let (fan_out, nobody) = (fan_out(&dir), Together::of(9, ""));
    let identities = swept(&fan_out, "2026-03-01 00:00:00", &["inc"]).await;
    let mut event = from("2026-01-01 00:00:00", "r");
    event["tables"] = json!(["snow/chg"]);
    fan_out.handle(&event, "lambda", &nobody).await.expect("rewound, although a sweep holds the other");
    let store = fan_out.store.get().expect("a store");
    for identity in identities {
        let stamp = if identity.alias == "chg" { at("2026-01-01 00:00:00", "") } else { at("2026-03-01 00:00:00", "x") };
        let item = store.read(&identity.key()).await.expect("read").expect("an item");
        assert_eq!(item.progress.cursor, Some(stamp), "{}", identity.alias);
    }
}

#[tokio::test]
async fn connectors_and_tables_that_have_none_in_common_are_refused() {
    let dir = documents();
    let file = dir.path().join("connectors/snow.json");
    let other = std::fs::read_to_string(&file).expect("read").replace(r#""name":"snow""#, r#""name":"crm""#);
    std::fs::write(dir.path().join("connectors/crm.json"), other).expect("written");
    let event = json!({"connectors": ["crm"], "tables": ["snow/inc"]});
    let failure = fan_out(&dir).handle(&event, "lambda", &Together::of(9, "")).await.expect_err("nothing is selected");
    assert!(failure.code == "Event.UnknownTable" && failure.message.contains("no document has snow/inc in crm;"), "{failure}");
}
