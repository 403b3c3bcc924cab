//! A backfill against the floor, in turn, and what it asked for.

use std::path::Path;

use serde_json::{Value, json};
use tablesweep_testbed::table_api::Generate;

use super::{Bed, say};
use crate::args::{Options, Role, Store};
use crate::child;
use crate::documents;
use crate::failed::Failed;
use crate::figure::{Bar, Figure, median};
use crate::instance::Counters;
use crate::job::{FloorDone, FloorJob, SweepDone};
use crate::plan;
use crate::usage::Usage;

const TABLE: &str = "bench_backfill";

/// Rows that share a second.
const PER_SECOND: u64 = 25;

fn sweep_topic(round: u32) -> String {
    format!("sweep-{round}")
}

fn floor_topic(round: u32) -> String {
    format!("floor-{round}")
}

/// The topics, each written once.
pub fn topics(options: &Options) -> impl Iterator<Item = String> {
    (0..options.rounds).flat_map(|round| [sweep_topic(round), floor_topic(round)])
}

/// One sweep and one run of the floor.
struct Round {
    sweep: SweepDone,
    floor: FloorDone,
}

/// What the first sweep asked for.
struct Asked {
    counters: Counters,
    writes: u64,
}

/// Runs sweep and floor in turn.
pub async fn measure(bed: &Bed<'_>, runs: &mut Value) -> Result<Vec<Figure>, Failed> {
    let options = bed.options;
    say(&format!("making {} rows of {} bytes", options.rows, options.row_bytes));
    let start = Some("2026-02-01 00:00:00".to_owned());
    let rows = Generate { bytes_per_row: options.row_bytes, per_second: PER_SECOND, start, ..Generate::rows(TABLE, options.rows) };
    bed.instance.generate(rows).await?;
    let plan = bed.scratch.path().join("plan");
    std::fs::create_dir(&plan).map_err(|error| Failed::at("making a folder for the plan", error))?;
    let (mut rounds, mut asked) = (Vec::new(), None);
    for round in 0..options.rounds {
        say(&format!("round {} of {}: sweep", round + 1, options.rounds));
        let sweep = sweep(bed, round).await?;
        if asked.is_none() {
            asked = Some(look(bed).await?);
            make_plan(bed, &plan).await?;
        }
        say(&format!("round {} of {}: floor", round + 1, options.rounds));
        let floor = floor(bed, round, &plan).await?;
        rounds.push(Round { sweep, floor });
    }
    compare(bed).await?;
    *runs = json!(rounds.iter().map(shown).collect::<Vec<_>>());
    let asked = asked.ok_or_else(|| Failed::at("the backfill", "there was no round"))?;
    Ok(figures(options, &rounds, &asked))
}

/// One sweep from nothing into a topic of its own.
async fn sweep(bed: &Bed<'_>, round: u32) -> Result<SweepDone, Failed> {
    let store = bed.store(&format!("backfill-{round}")).await?;
    bed.instance.forget().await?;
    if let Some(dynamo) = &bed.dynamo {
        dynamo.requests();
    }
    let done = bed.sweep(TABLE, &sweep_topic(round), &store).await?;
    if done.report.rows != bed.options.rows {
        return Err(Failed::at("the sweep", format!("it says it delivered {} rows, not {}", done.report.rows, bed.options.rows)));
    }
    bed.check_count(&sweep_topic(round), bed.options.rows).await?;
    Ok(done)
}

async fn look(bed: &Bed<'_>) -> Result<Asked, Failed> {
    let writes = bed.dynamo.as_ref().map_or(0, |dynamo| dynamo.requests().0);
    Ok(Asked { counters: bed.instance.counters().await?, writes })
}

/// Plans the floor from what the instance saw of the sweep.
async fn make_plan(bed: &Bed<'_>, folder: &Path) -> Result<(), Failed> {
    say("planning the floor");
    let mut plan = plan::Writer::create(folder)?;
    for seen in bed.instance.seen().await? {
        let url = bed.instance.address_of(&seen)?;
        plan.add(&url, &bed.instance.body(&url).await?, seen.asks_for_rows())?;
    }
    match plan.finish()? {
        records if records == bed.options.rows => Ok(()),
        records => Err(Failed::at("planning the floor", format!("the sweep's pages hold {records} rows, not {}", bed.options.rows))),
    }
}

/// One run of the floor into a topic of its own.
async fn floor(bed: &Bed<'_>, round: u32, plan: &Path) -> Result<FloorDone, Failed> {
    let job = FloorJob {
        plan: plan.to_owned(),
        user: documents::user(),
        topic: floor_topic(round),
        producer: documents::producer(&bed.broker.bootstrap()),
        headers: bed.broker.headers(&sweep_topic(round)).await?,
    };
    let done = child::work(Role::Floor, &job).await?;
    bed.check_count(&floor_topic(round), bed.options.rows).await?;
    Ok(done)
}

/// Fails unless sweep and floor have produced the same.
async fn compare(bed: &Bed<'_>) -> Result<(), Failed> {
    say("comparing what sweep and floor have produced");
    let (sweep, floor) = (bed.broker.contents(&sweep_topic(0)).await?, bed.broker.contents(&floor_topic(0)).await?);
    if sweep != floor {
        return Err(Failed::at("comparing sweep and floor", format!("{sweep:?} is not {floor:?}")));
    }
    Ok(())
}

fn shown(round: &Round) -> Value {
    let usage = |usage: Usage| json!({"cpu_seconds": usage.cpu_seconds, "peak_mib": usage.peak_mib()});
    let (sweep, floor) = (&round.sweep, &round.floor);
    json!({
        "sweep": usage(sweep.usage), "floor": usage(floor.usage),
        "ratio": floor.usage.cpu_seconds / sweep.usage.cpu_seconds,
        "sweep_seconds": sweep.report.duration_ms as f64 / 1000.0,
    })
}

fn figures(options: &Options, rounds: &[Round], asked: &Asked) -> Vec<Figure> {
    let rows = options.rows as f64;
    let pages = rows / f64::from(options.page);
    let swept = median(rounds.iter().map(|round| round.sweep.usage.cpu_seconds));
    let floor = median(rounds.iter().map(|round| round.floor.usage.cpu_seconds));
    let peak = rounds.iter().map(|round| round.sweep.usage.peak_mib()).fold(0.0, f64::max);
    let per_row = |bytes: u64| bytes as f64 / rows;
    let mut figures = vec![
        Figure::of("rows per processor second, sweep", rows / swept, ""),
        Figure::of("rows per processor second, floor", rows / floor, ""),
        Figure::of("sweep to floor", floor / swept, "").bar(Bar::AtLeast(0.7)),
        Figure::of("requests per full page", asked.counters.requests as f64 / pages, "").bar(Bar::AtMost(1.1)),
        Figure::of("rows read per row delivered", asked.counters.rows as f64 / rows, ""),
    ];
    if options.cursors == Store::Dynamodb {
        figures.push(Figure::of("DynamoDB writes per full page", asked.writes as f64 / pages, ""));
    }
    figures.extend(rounds.first().map(|round| Figure::of("bytes over the wire per row", per_row(round.sweep.report.bytes_in), "")));
    figures.push(Figure::of("bytes inflated per row", per_row(asked.counters.bytes), ""));
    figures.extend(rounds.first().map(|round| Figure::of("bytes of key and value per row", per_row(round.floor.bytes_out), "")));
    figures.push(Figure::of("peak memory of the backfill", peak, "MiB"));
    figures
}
