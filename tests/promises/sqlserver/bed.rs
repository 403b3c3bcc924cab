//! A folder with documents, an embedded cursor store, an ndjson file, and a SQL Server.
//!
//! Each sweep builds everything anew from the folder, as a new process would. After each, no connection may be left open,
//! and the server must have understood everything that it was asked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep::assembly::{Assembly, SOURCES, Selection, Sinks};
use tablesweep::config::load;
use tablesweep::cursor::sqlite::SqliteStore;
use tablesweep::cursor::{CursorStore, Item};
use tablesweep::delivery::ToOne;
use tablesweep::host::Host;
use tablesweep::operate::{Operator, Order, Outcome, Place};
use tablesweep::secrets;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::source::sqlserver::keys;
use tablesweep::sweep::{ByteBudget, Engine, LeasePlan, Mode, Run, TableReport};
use tablesweep_testbed::said;
use tablesweep_testbed::tds::{self, Server};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::laptop::whole_lines;

/// The longest that anything in these tests may take; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// One connector `shop` with the alias `orders` of the table `dbo.orders`.
pub struct Bed {
    pub server: Server,
    pub dir: TempDir,
    pub config: Value,
    pub max_rows: Option<u64>,
    pub max_time: Option<Duration>,
    pub memory: u64,
    /// What pages take their room from, in place of a share of `memory`.
    pub budget: Option<Arc<ByteBudget>>,
    /// Whether a schedule starts the sweeps.
    pub scheduled: bool,
    /// What connector and engine know of their machine: one clock, since the one measures what the other allows.
    pub host: Host,
    /// The tables that a sweep is given.
    pub selection: Selection,
}

/// A delivered record.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub topic: String,
    pub key: String,
    pub timestamp: Value,
    pub headers: Value,
    pub value: Value,
    /// The value as it was written.
    pub text: String,
}

impl Bed {
    /// A table `dbo.orders` with a `bigint` identity `id` and a `note`, swept from its first row on.
    pub fn new() -> Self {
        Self::with_table("CREATE TABLE dbo.orders (id bigint IDENTITY CONSTRAINT orders_id PRIMARY KEY, note nvarchar(400))")
    }

    /// The same with a table of the test's own.
    pub fn with_table(definition: &str) -> Self {
        Self::on(tds::Settings::default(), definition)
    }

    /// The same on a server with these settings.
    pub fn on(settings: tds::Settings, definition: &str) -> Self {
        said::listen();
        let server = Server::start_with(SocketAddr::from(([127, 0, 0, 1], 0)), settings).expect("the server starts");
        server.execute(definition).unwrap_or_else(|error| panic!("{error} in {definition}"));
        let config = json!({
            "connector.class": "sqlserver",
            "tasks.max": "1",
            "mssql.host": "127.0.0.1",
            "mssql.port": server.port().to_string(),
            "mssql.database": tds::DATABASE,
            "mssql.user": tds::USER,
            "mssql.password": tds::PASSWORD,
            "mssql.encrypt": "optional",
            "mssql.tables": "orders",
            "mssql.table.orders.name": "dbo.orders",
            "mssql.table.orders.topic": "shop.orders",
            "mssql.table.orders.sequence.column": "id",
            "mssql.table.orders.start": "earliest",
        });
        let dir = TempDir::new().expect("a folder");
        std::fs::create_dir_all(dir.path().join("config/connectors")).expect("a folder");
        let host = Host::system();
        Self {
            server,
            dir,
            config,
            max_rows: None,
            max_time: None,
            memory: 512 << 20,
            budget: None,
            scheduled: false,
            host,
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the documents and answers their folder.
    pub fn documents(&self) -> PathBuf {
        let folder = self.path("config");
        std::fs::write(folder.join("connectors/shop.json"), json!({ "name": "shop", "config": self.config }).to_string())
            .expect("a document");
        folder
    }

    /// Adds `count` rows to `dbo.orders`.
    pub fn insert(&self, count: usize) {
        let rows: Vec<String> = (0..count).map(|n| format!("(N'row {n}')")).collect();
        for rows in rows.chunks(1_000) {
            self.run(&format!("INSERT INTO dbo.orders (note) VALUES {}", rows.join(", ")));
        }
    }

    /// Runs statements on the server, as somebody else.
    pub fn run(&self, statements: &str) {
        self.server.execute(statements).unwrap_or_else(|error| panic!("{error} in {statements}"));
    }

    pub async fn store(&self) -> Arc<dyn CursorStore> {
        Arc::new(SqliteStore::open(self.path("cursors.db")).await.expect("a store"))
    }

    /// What a process makes of the documents once.
    pub fn assembly(&self) -> Assembly {
        let documents = load(&self.documents(), SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
        said::keep("in-process", &format!("{documents:?}"));
        for connector in &documents.connectors {
            said::keep("in-process", &format!("{:?}", keys::SqlServer::read(&connector.values)));
        }
        let resolver = Arc::new(secrets::resolver(&documents, &self.host));
        Assembly::new(documents, resolver, self.host.clone())
    }

    /// One sweep of all tables by what `assembly` keeps.
    pub async fn sweep_with(&self, assembly: &Assembly) -> Vec<TableReport> {
        let file = ToOne(Arc::new(NdjsonSink::open(self.path("out.ndjson")).expect("a file")));
        self.sweep_into(assembly, &file).await
    }

    /// The same into sinks of the test's own.
    pub async fn sweep_into(&self, assembly: &Assembly, sinks: &dyn Sinks) -> Vec<TableReport> {
        let (jobs, refused) = assembly.jobs(&self.selection, sinks).await;
        assert!(refused.is_empty(), "{refused:?}");
        let host = self.host.clone();
        let budget = self.budget.clone().unwrap_or_else(|| ByteBudget::of_memory(self.memory));
        let engine = Engine::new(host.clone(), self.store().await, budget);
        let (_stop, stop) = watch::channel(false);
        let deadline = self.max_time.map(|time| host.monotonic() + time);
        let (scheduled, max_rows) = (self.scheduled, self.max_rows);
        let run = Run { mode: Mode::Stream, scheduled, deadline, max_rows, lease: LeasePlan::Process, stop };
        let reports = engine.run(jobs, &run).await;
        self.check().await;
        for report in &reports {
            let shown = format!("{report:?}");
            assert!(!shown.contains(tds::PASSWORD), "a secret was shown");
        }
        reports
    }

    /// No connection is open, and nothing was not understood.
    pub async fn check(&self) {
        let host = Host::system();
        while self.server.connections().open > 0 {
            assert!(host.monotonic() < PATIENCE, "a connection is left open: {:?}", self.server.connections());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(self.server.refusals().is_empty(), "the server does not understand: {:#?}", self.server.refusals());
    }

    pub async fn sweep_all(&self) -> Vec<TableReport> {
        self.sweep_with(&self.assembly()).await
    }

    /// One sweep; the report of the only table.
    pub async fn sweep(&self) -> TableReport {
        let mut reports = self.sweep_all().await;
        assert_eq!(reports.len(), 1);
        reports.remove(0)
    }

    /// An operator's command on the only table; the announcement, and what it did.
    pub async fn order(&self, order: Order) -> (String, Outcome) {
        self.order_after(order, async || {}).await
    }

    /// The same, with something that happens while a person is asked.
    pub async fn order_after(&self, order: Order, asked: impl AsyncFnOnce()) -> (String, Outcome) {
        let documents = load(&self.documents(), SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
        let places = Place::of(&documents.connectors[0], &|_| None);
        let (store, host) = (self.store().await, Host::system());
        let operator = Operator { store: &*store, host: &host, places: &places, who: "ada".to_owned() };
        let prepared = operator.prepare(&places[0], order).await.unwrap_or_else(|error| panic!("{error}"));
        let announcement = prepared.announcement.clone();
        asked().await;
        let outcome = operator.carry_out(prepared).await.unwrap_or_else(|error| panic!("{error}"));
        (announcement, outcome)
    }

    /// Everything delivered so far.
    pub fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(self.path("out.ndjson")).unwrap_or_default();
        whole_lines(&text)
            .map(|text| {
                let line: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"));
                let value = text.split_once("\"value\":").map_or("", |(_, value)| value.trim_end_matches('}')).to_owned() + "}";
                Line {
                    topic: line["topic"].as_str().expect("a topic").to_owned(),
                    key: line["key"].as_str().expect("a key").to_owned(),
                    timestamp: line["timestamp"].clone(),
                    headers: line["headers"].clone(),
                    value: line["value"].clone(),
                    text: value,
                }
            })
            .collect()
    }

    /// The keys of everything delivered so far.
    pub fn keys(&self) -> Vec<String> {
        self.lines().into_iter().map(|line| line.key).collect()
    }

    /// The sequences of the table's rows in their order, from the data.
    pub fn expected(&self) -> Vec<String> {
        let id = |row: &Vec<tds::Value>| match row[0] {
            tds::Value::Integer(id) => i128::from(id),
            tds::Value::Decimal(digits) => digits,
            ref other => panic!("{other:?} is no sequence"),
        };
        let mut ids: Vec<i128> = self.server.rows("dbo.orders").expect("the table").iter().map(id).collect();
        ids.sort_unstable();
        ids.iter().map(i128::to_string).collect()
    }

    /// The stored cursor of the only table.
    pub async fn item(&self) -> Item {
        let mut items = self.store().await.list("shop").await.expect("a store");
        assert_eq!(items.len(), 1);
        items.remove(0)
    }

    /// The digits of the stored cursor.
    pub async fn cursor(&self) -> Option<String> {
        self.item().await.progress.cursor.expect("a position").get("sequence").map(str::to_owned)
    }

    /// The statements that read rows, in their order.
    pub fn batches(&self) -> Vec<tds::Entry> {
        self.asked("SELECT TOP")
    }

    /// The statements with these words in them, in their order.
    pub fn asked(&self, words: &str) -> Vec<tds::Entry> {
        self.server.log().into_iter().filter(|entry| entry.text.contains(words)).collect()
    }
}

pub fn code(report: &TableReport) -> Option<&str> {
    report.reason.as_ref().map(|reason| reason.code.as_str())
}
