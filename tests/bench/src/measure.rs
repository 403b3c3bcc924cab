//! The conductor: starts the parts, has things measured, and judges.

mod backfill;
mod cold;
mod idle;
mod shapes;
mod sql_server;
mod wide;

pub use sql_server::TABLE as SQL_TABLE;

use std::path::PathBuf;

use serde_json::json;
use tablesweep::sweep::Outcome;
use tablesweep_testbed::moto;
use tablesweep_testbed::proxy::Proxy;
use tempfile::TempDir;

use crate::args::{Options, Part, Role, Store};
use crate::broker::Broker;
use crate::child;
use crate::documents::{self, Swept};
use crate::failed::Failed;
use crate::figure;
use crate::instance::Instance;
use crate::job::{StoreJob, SweepDone, SweepJob};

use tablesweep::cursor::dynamodb::{create_table, local_client};

/// The table of the cursors in DynamoDB. Each sweep of the benchmark that is to start anew has a table of its own.
const CURSORS: &str = "cursors";

/// Measures, writes the figures down, and answers whether all bars were cleared.
pub async fn run(options: &Options) -> Result<bool, Failed> {
    let bed = Bed::start(options).await?;
    let mut figures = Vec::new();
    let mut runs = json!({});
    let mut sql_runs = json!({});
    if options.measures(Part::Backfill) {
        figures.extend(backfill::measure(&bed, &mut runs).await?);
    }
    if options.measures(Part::Shapes) {
        figures.extend(shapes::measure(&bed).await?);
    }
    if options.measures(Part::Idle) {
        figures.extend(idle::measure(&bed).await?);
    }
    if options.measures(Part::Memory) {
        figures.push(wide::measure(&bed).await?);
    }
    if options.measures(Part::Cold) {
        figures.extend(cold::measure(&bed).await?);
    }
    if options.measures(Part::SqlServer) {
        figures.extend(sql_server::measure(&bed, &mut sql_runs).await?);
    }
    let optimised = !cfg!(debug_assertions);
    let passed = figures.iter().all(|figure| figure.passed() != Some(false));
    let document = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "optimised": optimised,
        "broker": bed.broker.name(),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "rows": options.rows, "row_bytes": options.row_bytes, "page": options.page,
        "figures": figures, "runs": runs, "sql_server_runs": sql_runs, "passed": passed,
    });
    write_json(&options.json, &document)?;
    println!("{}", figure::table(&figures).trim_end());
    if !optimised {
        println!("\nThis build is not optimised: its times say nothing. `make bench` makes one that is.");
    }
    Ok(passed || options.no_bars)
}

fn write_json(path: &PathBuf, document: &serde_json::Value) -> Result<(), Failed> {
    let failed = |error: std::io::Error| Failed::at(format!("writing {}", path.display()), error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, format!("{document:#}\n")).map_err(failed)
}

/// What the user of the benchmark sees while it works.
fn say(text: &str) {
    eprintln!("bench: {text}");
}

/// The parts.
struct Bed<'o> {
    options: &'o Options,
    scratch: TempDir,
    instance: Instance,
    broker: Broker,
    dynamo: Option<Dynamo>,
}

/// moto, behind a proxy that counts.
struct Dynamo {
    server: moto::Server,
    proxy: Proxy,
}

impl Dynamo {
    async fn start() -> Result<Self, Failed> {
        let server = moto::Server::start().await?;
        let proxy = Proxy::http(server.address()).await?;
        Ok(Self { server, proxy })
    }

    /// A new table.
    async fn store(&self, name: &str) -> Result<StoreJob, Failed> {
        let table = format!("{CURSORS}-{name}");
        create_table(&local_client(&self.server.endpoint()).await, &table).await.map_err(|error| Failed::at(table.clone(), error))?;
        Ok(StoreJob::Dynamodb { endpoint: self.proxy.url(), table })
    }

    /// Writes, and other requests, since the last call.
    fn requests(&self) -> (u64, u64) {
        const WRITES: [&str; 5] = ["UpdateItem", "PutItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"];
        let carried = self.proxy.carried();
        self.proxy.forget_carried();
        let is_write = |operation: &&str| format!("DynamoDB_20120810.{operation}\r\n");
        let writes = carried.iter().filter(|one| WRITES.iter().any(|operation| one.contains(&is_write(operation)))).count() as u64;
        (writes, carried.len() as u64 - writes)
    }
}

impl<'o> Bed<'o> {
    async fn start(options: &'o Options) -> Result<Self, Failed> {
        let scratch = TempDir::new().map_err(|error| Failed::at("making a folder", error))?;
        let single = [idle::TOPIC, wide::TOPIC, cold::TOPIC].map(str::to_owned);
        let shaped = shapes::topics(options).chain(sql_server::topics(options.rounds));
        let topics: Vec<String> = backfill::topics(options).chain(shaped).chain(single).collect();
        say("starting the broker, the instance and the cursor store");
        let broker = Broker::start(options.mock, &topics).await?;
        let instance = Instance::start().await?;
        // What an idle sweep costs is a promise about DynamoDB, and a function knows nothing else, whatever the others use.
        let needed = options.cursors == Store::Dynamodb || options.measures(Part::Idle) || options.measures(Part::Cold);
        let dynamo = if needed { Some(Dynamo::start().await?) } else { None };
        Ok(Self { options, scratch, instance, broker, dynamo })
    }

    fn dynamo(&self) -> Result<&Dynamo, Failed> {
        self.dynamo.as_ref().ok_or_else(|| Failed::at("DynamoDB", "it was not started"))
    }

    /// A store without a cursor.
    async fn store(&self, name: &str) -> Result<StoreJob, Failed> {
        match self.options.cursors {
            Store::Dynamodb => self.dynamo()?.store(name).await,
            Store::Sqlite => Ok(StoreJob::Sqlite(self.scratch.path().join(format!("{name}.db")))),
        }
    }

    /// Sweeps `table` into `topic`, to its end.
    async fn sweep(&self, table: &str, topic: &str, store: &StoreJob) -> Result<SweepDone, Failed> {
        self.sweep_with(table, topic, store, &[]).await
    }

    /// The same with further keys of the connector's document.
    async fn sweep_with(&self, table: &str, topic: &str, store: &StoreJob, keys: &[(&str, &str)]) -> Result<SweepDone, Failed> {
        let bootstrap = self.broker.bootstrap();
        let swept = Swept { url: self.instance.url(), table, bootstrap: &bootstrap, topic, page: self.options.page, keys };
        self.work(documents::write(self.scratch.path().join("config"), &swept)?, store).await
    }

    /// Sweeps the only table of the documents in `config`, to its end.
    async fn work(&self, config: PathBuf, store: &StoreJob) -> Result<SweepDone, Failed> {
        let job = SweepJob { config, store: store.clone(), memory: self.options.memory << 20 };
        let done: SweepDone = child::work(Role::Sweep, &job).await?;
        match done.report.outcome {
            Outcome::CaughtUp => Ok(done),
            outcome => {
                Err(Failed::at(format!("the sweep of {} ended as {outcome:?}", done.report.table), format!("{:?}", done.report.reason)))
            }
        }
    }

    /// Fails unless exactly so many records were produced to `topic`.
    async fn check_count(&self, topic: &str, expected: u64) -> Result<(), Failed> {
        match self.broker.count(topic).await? {
            count if count == expected => Ok(()),
            count => Err(Failed::at(format!("the topic {topic}"), format!("{count} records were produced to it, not {expected}"))),
        }
    }
}
