//! A laptop: documents in a folder, an embedded cursor store, an ndjson file, and a simulated instance.
//!
//! Each sweep builds everything anew from the folder, as a new process would, so that only what was stored carries over.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep::assembly::{Assembly, Refused, SOURCES, Selection, Sinks};
use tablesweep::config::load;
use tablesweep::cursor::sqlite::SqliteStore;
use tablesweep::cursor::{Change, CursorStore, Item, Position, Rewind, Standing, Write};
use tablesweep::delivery::ToOne;
use tablesweep::host::Host;
use tablesweep::secrets;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::source::servicenow;
use tablesweep::sweep::{ByteBudget, Engine, LeasePlan, Mode, Run, TableReport};
use tablesweep_testbed::said;
use tablesweep_testbed::table_api::{Generate, TableApi, Version};
use tempfile::TempDir;
use tokio::sync::watch;

/// The user that every test signs in as.
pub const PASSWORD: &str = "correct-horse-9";

/// One laptop with one connector `snow`.
pub struct Laptop {
    pub api: TableApi,
    dir: TempDir,
    config: Value,
    pub max_rows: Option<u64>,
    pub max_time: Option<Duration>,
    pub memory: u64,
    /// Whether a schedule starts the runs.
    pub scheduled: bool,
    /// The machine, whose clock a test may set.
    pub host: Host,
    /// The tables that a run is given.
    pub selection: Selection,
}

/// A delivered record as a line of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub topic: String,
    pub key: String,
    pub timestamp: i64,
    pub headers: Value,
    pub value: Value,
}

impl Line {
    /// (sys_updated_on, sys_id, sys_mod_count) of a row that was asked for raw.
    pub fn version(&self) -> Version {
        let text = |name: &str| self.value[name].as_str().unwrap_or_else(|| panic!("{name} in {}", self.value)).to_owned();
        (text("sys_updated_on"), text("sys_id"), text("sys_mod_count").parse().expect("a number"))
    }
}

impl Laptop {
    /// A laptop with an instance whose clock stands still, and one alias `inc` for its table `incident`.
    pub fn new() -> Self {
        said::listen();
        let api = TableApi::start().expect("the simulator starts");
        api.set_clock("2026-03-01 12:00:00").expect("a time");
        api.freeze_clock();
        let config = json!({
            "connector.class": "servicenow",
            "tasks.max": "1",
            "snow.url": api.url(),
            "snow.auth.username": "sweep",
            "snow.auth.password": PASSWORD,
            "snow.tables": "inc",
            "snow.table.inc.name": "incident",
            "snow.table.inc.topic": "snow.incident",
            // So that the n-th request of a test is the n-th of its sweep.
            "snow.source.startup.probe": "false",
            "snow.retry.initial.backoff.ms": "1",
            "snow.retry.max.backoff.ms": "5",
        });
        let dir = TempDir::new().expect("a folder");
        std::fs::create_dir_all(dir.path().join("config/connectors")).expect("a folder");
        Self {
            api,
            dir,
            config,
            max_rows: None,
            max_time: None,
            memory: 512 << 20,
            scheduled: false,
            host: Host::system(),
            selection: Selection::default(),
        }
    }

    /// The same with a key of the document set.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.set(key, value);
        self
    }

    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.config[key] = Value::from(value.to_string());
    }

    pub fn unset(&mut self, key: &str) {
        self.config.as_object_mut().expect("a map").remove(key);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the documents and answers their folder.
    pub fn documents(&self) -> PathBuf {
        let document = json!({ "name": "snow", "config": self.config });
        let folder = self.path("config");
        std::fs::write(folder.join("connectors/snow.json"), document.to_string()).expect("a document");
        folder
    }

    /// Makes rows of `incident`, all before the instance's now.
    pub fn generate(&self, rows: u64, per_second: u64) {
        let spec = Generate { start: Some("2026-02-01 00:00:00".to_owned()), per_second, ..Generate::rows("incident", rows) };
        self.api.generate(spec).expect("rows");
    }

    pub async fn store(&self) -> Arc<dyn CursorStore> {
        Arc::new(SqliteStore::open_with(self.path("cursors.db"), self.host.clone()).await.expect("a store"))
    }

    /// One run of all tables, as a process of its own would do it.
    pub async fn sweep_all(&self) -> Vec<TableReport> {
        let (_stop, stopped) = watch::channel(false);
        self.sweep_until(stopped).await
    }

    pub async fn sweep_until(&self, stop: watch::Receiver<bool>) -> Vec<TableReport> {
        let file = ToOne(Arc::new(NdjsonSink::open(self.path("out.ndjson")).expect("a file")));
        self.sweep_into(&file, stop).await
    }

    /// What a process makes of the documents once.
    pub fn assembly(&self, host: &Host) -> Assembly {
        let documents = load(&self.documents(), SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
        // What a debugger of the future may print of them.
        said::keep("in-process", &format!("{documents:?}"));
        for connector in &documents.connectors {
            said::keep("in-process", &format!("{:?}", servicenow::keys::ServiceNow::read(&connector.values)));
        }
        let resolver = Arc::new(secrets::resolver(&documents, host));
        Assembly::new(documents, resolver, host.clone())
    }

    /// The connectors that cannot be swept at all.
    pub async fn refused(&self) -> Vec<Refused> {
        let file = ToOne(Arc::new(NdjsonSink::open(self.path("out.ndjson")).expect("a file")));
        self.assembly(&Host::system()).jobs(&Selection::default(), &file).await.1
    }

    /// One run into sinks of the test's own.
    pub async fn sweep_into(&self, sinks: &dyn Sinks, stop: watch::Receiver<bool>) -> Vec<TableReport> {
        self.sweep_warm(&self.assembly(&self.host), sinks, stop).await
    }

    /// The same in a process that has swept before: with what it made of the documents.
    pub async fn sweep_warm(&self, assembly: &Assembly, sinks: &dyn Sinks, stop: watch::Receiver<bool>) -> Vec<TableReport> {
        let host = self.host.clone();
        let (jobs, refused) = assembly.jobs(&self.selection, sinks).await;
        assert!(refused.is_empty(), "{refused:?}");
        let engine = Engine::new(host.clone(), self.store().await, ByteBudget::of_memory(self.memory));
        let run = Run {
            mode: Mode::Stream,
            scheduled: self.scheduled,
            deadline: self.max_time.map(|time| host.monotonic() + time),
            max_rows: self.max_rows,
            lease: LeasePlan::Process,
            stop,
        };
        engine.run(jobs, &run).await
    }

    /// One run; the report of the only table.
    pub async fn sweep(&self) -> TableReport {
        let mut reports = self.sweep_all().await;
        assert_eq!(reports.len(), 1);
        assert!(self.api.refusals().is_empty(), "the simulator does not understand: {:?}", self.api.refusals());
        reports.remove(0)
    }

    /// Everything delivered so far.
    pub fn lines(&self) -> Vec<Line> {
        read_lines(&self.path("out.ndjson"))
    }

    pub fn versions(&self) -> Vec<Version> {
        self.lines().iter().map(Line::version).collect()
    }

    /// What a complete sweep must have delivered, from the data.
    pub fn expected(&self) -> Vec<Version> {
        self.api.visible_versions("incident").expect("the table")
    }

    /// Sets the cursor of the only table back, as `cursor rewind` does.
    pub async fn rewind(&self, to: &str) {
        let key = self.item().await.identity.key();
        let to = Position::new([("timestamp", Some(to.to_owned())), ("sys_id", Some(String::new()))]);
        let change = Change::Rewind(Rewind { to, now_ms: self.host.now_ms(), revision: None, request_id: None });
        self.store().await.write(&key, &Write { id: self.host.nonce(), change }).await.expect("a rewind");
    }

    /// How the table of this alias stands.
    pub async fn standing(&self, alias: &str) -> Standing {
        let items = self.store().await.list("snow").await.expect("a store");
        let item = items.into_iter().find(|item| item.identity.alias == alias);
        item.unwrap_or_else(|| panic!("{alias} has no cursor")).standing
    }

    /// The stored cursor of the only table.
    pub async fn item(&self) -> Item {
        let mut items = self.store().await.list("snow").await.expect("a store");
        assert_eq!(items.len(), 1);
        items.remove(0)
    }
}

/// The lines of an ndjson file; none if there is no file. One that is being written, or was torn by a kill, does not count.
pub fn read_lines(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    whole_lines(&text)
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
            Line {
                topic: line["topic"].as_str().expect("a topic").to_owned(),
                key: line["key"].as_str().expect("a key").to_owned(),
                timestamp: line["timestamp"].as_i64().expect("a timestamp"),
                headers: line["headers"].clone(),
                value: line["value"].clone(),
            }
        })
        .collect()
}

/// The lines of a text that end.
pub fn whole_lines(text: &str) -> std::str::Lines<'_> {
    text.rfind('\n').map_or("", |end| &text[..end]).lines()
}
