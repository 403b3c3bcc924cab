//! `tablesweep sweep`: the engine of the functions, once or until every table is final.
//!
//! Everything that could refuse the command is asked before a cursor is touched: documents, selection, the time that is given. What is wrong with one connector only (a secret that cannot be had) becomes
//! the report of its tables, and the others are swept.

mod catch_up;
mod progress;
pub mod report;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use tablesweep::assembly::{Assembly, Refused, Sinks as _};
use tablesweep::host::Host;
use tablesweep::secrets;
use tablesweep::sweep::{ByteBudget, Engine, Job, Mode, Run, SweepReport};

use crate::args::{Output, SweepArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::interrupt;
use crate::output::{self, note};
use crate::sinks::{self, SinkSpec};
use crate::stores::StoreSpec;

use progress::Progress;

/// The memory that this program counts as having: a third of it holds pages.
const MEMORY: u64 = 512 * 1024 * 1024;

/// Runs the command.
pub async fn run(arguments: SweepArgs) -> Result<Exit, Stop> {
    let stop = interrupt::listen()?;
    let host = Host::system();
    let documents = documents::load(&arguments.config.config)?;
    let selection = documents::selected(&documents, &arguments.selection)?;
    for warning in &documents.warnings.0 {
        tracing::warn!(file = warning.file, key = warning.key, "{}", warning.message);
    }
    let deadline = arguments.max_seconds.map(|seconds| host.monotonic() + Duration::from_secs(seconds));

    let into_kafka = documents.worker.values.is_set(sinks::BROKERS);
    let resolver = Arc::new(secrets::resolver(&documents, &host));
    let progress = Progress::new(host.clone());
    let sinks = progress.watching(arguments.sink.open(&documents, &resolver, &host).await?);
    let store_spec = arguments.cursors.cursors.clone().unwrap_or_default();
    let store = store_spec.open().await?;
    let assembly = Assembly::new(documents, resolver, host.clone());
    let (jobs, refused) = assembly.jobs(&selection, &sinks).await;
    refuse_too_short(&jobs, arguments.max_seconds)?;

    let lease = store_spec.lease(jobs.iter().map(|job| job.sink.message_timeout()).max().unwrap_or_default());
    let engine = Engine::new(host.clone(), store, ByteBudget::of_memory(MEMORY));
    for refused in &refused {
        engine.hindered(&refused.connector, &refused.failure).await;
    }
    let run = Run { mode: arguments.mode, scheduled: false, deadline, max_rows: arguments.max_rows, lease, stop: stop.clone() };
    let shown = std::io::stderr().is_terminal().then(|| progress.show());
    let mut tables = match arguments.mode {
        Mode::Stream => engine.run(jobs, &run).await,
        Mode::CatchUp => catch_up::run(&engine, jobs, &run).await,
    };
    drop(shown);
    sinks.close().await;
    tables.extend(refused.iter().flat_map(Refused::reports));
    let report = SweepReport::together(arguments.mode, tables);
    tell(&report, &arguments)?;
    if arguments.sink != SinkSpec::Kafka && store_spec != StoreSpec::Memory && into_kafka {
        tell_moved(&report, &store_spec);
    }
    Ok(match (*stop.borrow(), report.tables.iter().all(|table| table.outcome.is_good())) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Good,
        (false, false) => Exit::Bad,
    })
}

/// A look at rows moves the cursors that sweeps into Kafka go on from, unless it has cursors of its own.
fn tell_moved(report: &SweepReport, store: &StoreSpec) {
    let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
    if rows > 0 {
        let store = store.name();
        note(&format!(
            "the cursors in {store} have moved: a sweep into Kafka from there will not deliver these {rows} rows. `--cursors memory` \
             looks and moves nothing, and `--cursors sqlite:PATH` gives a file cursors of its own"
        ));
    }
}

/// With less time than the reserve nothing could ever be delivered.
fn refuse_too_short(jobs: &[Job], max_seconds: Option<u64>) -> Result<(), Stop> {
    let reserve = jobs.iter().map(Job::reserve).max().unwrap_or_default();
    match max_seconds {
        Some(seconds) if Duration::from_secs(seconds) <= reserve => Err(Stop::wrong(format!(
            "--max-seconds {seconds} leaves no time to sweep: {} s are kept for the sink's acknowledgements and the last commit",
            reserve.as_secs()
        ))),
        _ => Ok(()),
    }
}

/// The result goes to standard output, unless that is where the records are.
fn tell(report: &SweepReport, arguments: &SweepArgs) -> Result<(), Stop> {
    let text = match arguments.output.output {
        Output::Json => output::json_text(report)?,
        Output::Text => report::text(report),
    };
    if arguments.sink == SinkSpec::Stdout {
        note(text.trim_end());
        return Ok(());
    }
    output::text(&text)
}
