//! `tablesweep demo`: a simulated ServiceNow instance and a SQL Server, swept by the very same engine.
//!
//! It shows what makes sweeping hard: thousands of rows of one second, rows that are counted and not shown, a row that
//! appears behind the cursor. Everything lies in a folder that is gone afterwards.

mod broker;
mod database;
mod instance;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tablesweep::assembly::{Assembly, Refused, Selection, Sinks};
use tablesweep::cursor::memory::MemoryStore;
use tablesweep::cursor::sqlite::SqliteStore;
use tablesweep::delivery::ToOne;
use tablesweep::host::Host;
use tablesweep::secrets;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::sweep::{ByteBudget, Engine, LeasePlan, Mode, Run, SweepReport};
use tokio::sync::watch;

use crate::documents;
use crate::exit::{Exit, Stop};
use crate::interrupt;
use crate::output;
use crate::sweep::report;

use broker::Broker;
use database::Database;
use instance::Instance;

/// What is swept.
struct World {
    instance: Instance,
    database: Database,
}

/// Something that happens in the world.
type Event = fn(&World) -> Result<(), Stop>;

/// What happens before each sweep, and what the sweep is to show.
const STEPS: [(&str, Event); 3] = [
    (
        "The first sweep: of ServiceNow 20,001 incidents, 3,000 change requests of one second, and 500 problems\n   \
         of which the user may not see every tenth, although the instance counts them; of SQL Server 2,000 orders.",
        |_| Ok(()),
    ),
    (
        "A tick on which nothing happened: one request per ServiceNow table, one connection for the SQL Server table, and\n   nothing is sent twice.",
        |_| Ok(()),
    ),
    ("An incident was updated, another one appeared behind the cursor, and three orders were placed. All are delivered, once.", |world| {
        world.instance.update()?;
        world.instance.add_late_row()?;
        world.database.grow()
    }),
];

/// The topics of all tables.
fn topics() -> Vec<String> {
    instance::topics().into_iter().chain([database::TOPIC.to_owned()]).collect()
}

/// The memory that the demo counts as having.
const MEMORY: u64 = 256 * 1024 * 1024;

/// How many records are shown at the end.
const SHOWN: usize = 5;

/// Runs the command.
pub async fn run() -> Result<Exit, Stop> {
    let stop = interrupt::listen()?;
    let folder = tempfile::Builder::new().prefix("tablesweep-demo-").tempdir().map_err(|error| unusable(&error))?;
    let ended = show(folder.path(), &stop).await;
    folder.close().map_err(|error| Stop::failed(format!("the folder of the demo cannot be removed: {error}")))?;
    ended
}

fn unusable(error: &io::Error) -> Stop {
    Stop::failed(format!("the demo needs a folder for temporary files: {error}"))
}

async fn show(folder: &Path, stop: &watch::Receiver<bool>) -> Result<Exit, Stop> {
    let world = World { instance: Instance::start()?, database: Database::start()? };
    let broker = Broker::start(&topics())?;
    world.instance.write_documents(folder, &broker.bootstrap_servers()).map_err(|error| unusable(&error))?;
    world.database.write_document(folder).map_err(|error| unusable(&error))?;
    let rows = folder.join("rows.ndjson");
    let sweeper = Sweeper::new(folder, &rows, stop.clone()).await?;
    let mut reports = Vec::new();
    for (step, (title, prepare)) in (1..).zip(STEPS) {
        prepare(&world)?;
        output::text(&format!("{step}. {title}\n\n"))?;
        let report = sweeper.sweep().await;
        output::text(&format!("{}\n", report::text(&report)))?;
        if *stop.borrow() {
            return Ok(Exit::Interrupted);
        }
        let is_good = report.tables.iter().all(|table| table.outcome.is_good());
        reports.push(report);
        if !is_good {
            return Ok(Exit::Bad);
        }
    }
    output::text(&format!(
        "{}. The same into Kafka: a broker in this process, and a consumer that reads the records back.\n\n",
        reports.len() + 1
    ))?;
    let is_good = into_kafka(&sweeper, &broker).await?;
    output::text(&summary(&reports, &rows)?)?;
    Ok(if is_good { Exit::Good } else { Exit::Bad })
}

/// Sweeps all tables from their beginning into the broker, and tells what a consumer finds there.
async fn into_kafka(sweeper: &Sweeper, broker: &Broker) -> Result<bool, Stop> {
    let documents = sweeper.assembly.documents();
    let resolver = Arc::new(secrets::resolver(documents, &sweeper.engine.host));
    let sinks = broker.sinks(documents.worker.clone(), &resolver, &sweeper.engine.host);
    let engine = Engine { store: Arc::new(MemoryStore::new()), ..sweeper.engine.clone() };
    let report = sweeper.sweep_into(&engine, &sinks).await;
    sinks.close().await;
    output::text(&report::text(&report))?;
    let mut found = 0;
    for topic in topics() {
        let topic = broker.read_back(&topic)?;
        output::text(&format!("   {}: {} records; the last one: {}\n", topic.name, topic.records, topic.last))?;
        found += topic.records;
    }
    output::text("\n")?;
    Ok(found == report.tables.iter().map(|table| table.rows).sum::<u64>())
}

/// What one process of the demo keeps between its sweeps.
struct Sweeper {
    assembly: Assembly,
    sinks: ToOne,
    engine: Engine,
    run: Run,
}

impl Sweeper {
    async fn new(folder: &Path, rows: &Path, stop: watch::Receiver<bool>) -> Result<Self, Stop> {
        let host = Host::system();
        let documents = documents::load(folder)?;
        let resolver = Arc::new(secrets::resolver(&documents, &host));
        let store = Arc::new(SqliteStore::open(folder.join("tablesweep.db")).await?);
        let sinks = ToOne(Arc::new(NdjsonSink::open(rows)?));
        let engine = Engine::new(host.clone(), store, ByteBudget::of_memory(MEMORY));
        let run = Run { mode: Mode::Stream, scheduled: false, deadline: None, max_rows: None, lease: LeasePlan::Process, stop };
        Ok(Self { assembly: Assembly::new(documents, resolver, host), sinks, engine, run })
    }

    async fn sweep(&self) -> SweepReport {
        self.sweep_into(&self.engine, &self.sinks).await
    }

    async fn sweep_into(&self, engine: &Engine, sinks: &dyn Sinks) -> SweepReport {
        let (jobs, refused) = self.assembly.jobs(&Selection::default(), sinks).await;
        let mut tables = engine.run(jobs, &self.run).await;
        tables.extend(refused.iter().flat_map(Refused::reports));
        SweepReport::together(Mode::Stream, tables)
    }
}

fn summary(reports: &[SweepReport], rows: &Path) -> Result<String, Stop> {
    let text = std::fs::read_to_string(rows).map_err(|error| Stop::failed(format!("the records of the demo cannot be read: {error}")))?;
    let tables = || reports.iter().flat_map(|report| &report.tables);
    let (sent, requests): (u64, u64) = (tables().map(|table| table.rows).sum(), tables().map(|table| table.requests).sum());
    // Tables are swept side by side: a sweep takes as long as its slowest table.
    let taken = reports.iter().filter_map(|report| report.tables.iter().map(|table| table.duration_ms).max()).sum::<u64>();
    let pace = sent.saturating_mul(1000) / taken.max(1);
    let taken = Duration::from_millis(taken).as_secs_f64();
    let records: Vec<&str> = text.lines().collect();
    let mut summary = format!(
        "{sent} rows swept in {taken:.1} s with {requests} requests, {pace} rows/s; {} records written. The last {SHOWN}:\n\n",
        records.len()
    );
    for line in records.iter().skip(records.len().saturating_sub(SHOWN)) {
        summary.push_str(&record(line)?);
    }
    summary.push_str("\nNow for your own tables: put documents into ./config and run `tablesweep check`.\n");
    Ok(summary)
}

/// A record in two lines: what a consumer sees of it, and the fields that matter here.
fn record(line: &str) -> Result<String, Stop> {
    let record: Value = serde_json::from_str(line).map_err(|error| Stop::failed(format!("a record of the demo is not JSON: {error}")))?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = ["number", "sys_updated_on", "sys_mod_count", "state", "id", "customer", "total", "placed_at"];
    let shown: Vec<String> = fields.iter().filter_map(|name| Some(format!("{name}={}", text(record["value"].get(name)?)))).collect();
    Ok(format!("   {}  key {}\n      {}\n", text(&record["topic"]), text(&record["key"]), shown.join("  ")))
}
