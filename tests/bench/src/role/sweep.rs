//! The sweep: the real engine, put together as the programs put it together.

use std::sync::Arc;

use tablesweep::assembly::{Assembly, SOURCES, Selection};
use tablesweep::config::load;
use tablesweep::cursor::CursorStore;
use tablesweep::cursor::dynamodb::{DynamoStore, local_client};
use tablesweep::cursor::sqlite::SqliteStore;
use tablesweep::delivery::ToKafka;
use tablesweep::host::{Host, env};
use tablesweep::secrets;
use tablesweep::sink::kafka::KafkaOptions;
use tablesweep::sweep::{ByteBudget, Engine, LeasePlan, Mode, Run};
use tokio::sync::watch;

use crate::failed::Failed;
use crate::job::{StoreJob, SweepDone, SweepJob};
use crate::usage::Usage;

/// How long the lease lasts: longer than any run, as in a function, where no renewal is needed either.
const LEASE_MS: i64 = 24 * 60 * 60 * 1000;

/// Sweeps the only table of the documents until it is caught up.
pub async fn run(job: SweepJob) -> Result<SweepDone, Failed> {
    let host = Host::system();
    let documents = load(&job.config, SOURCES, &env).map_err(|faults| Failed::at("the benchmark's own documents", faults))?;
    let resolver = Arc::new(secrets::resolver(&documents, &host));
    let worker = documents.worker.resolve(&resolver).await.map_err(|error| Failed::at("worker.json", error))?;
    let options = KafkaOptions::new("tablesweep-bench", host.clone());
    let sinks = ToKafka::new(worker, Arc::clone(&resolver), options);
    let assembly = Assembly::new(documents, resolver, host.clone());
    let (jobs, refused) = assembly.jobs(&Selection::default(), &sinks).await;
    if let Some(refused) = refused.first() {
        return Err(Failed::at(format!("the connector {}", refused.connector), &refused.failure));
    }
    let (store, lease) = store(&job.store, &host).await?;
    let engine = Engine::new(host, store, ByteBudget::of_memory(job.memory));
    let (_stop, stop) = watch::channel(false);
    let run = Run { mode: Mode::Stream, scheduled: false, deadline: None, max_rows: None, lease, stop };
    let mut reports = engine.run(jobs, &run).await;
    match (reports.pop(), reports.is_empty()) {
        (Some(report), true) => Ok(SweepDone { report, usage: Usage::own()? }),
        _ => Err(Failed::at("the sweep", "it was to report one table")),
    }
}

async fn store(job: &StoreJob, host: &Host) -> Result<(Arc<dyn CursorStore>, LeasePlan), Failed> {
    Ok(match job {
        StoreJob::Dynamodb { endpoint, table } => {
            let store = DynamoStore::new(local_client(endpoint).await, table);
            (Arc::new(store), LeasePlan::Until(host.now_ms().saturating_add(LEASE_MS)))
        }
        StoreJob::Sqlite(path) => {
            let store = SqliteStore::open(path).await.map_err(|error| Failed::at(path.display().to_string(), error))?;
            (Arc::new(store), LeasePlan::Process)
        }
    })
}
