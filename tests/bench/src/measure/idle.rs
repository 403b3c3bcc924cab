//! What a sweep costs that finds nothing new: the usual case, many times an hour, for every table.

use tablesweep_testbed::table_api::Generate;

use super::{Bed, say};
use crate::failed::Failed;
use crate::figure::{Bar, Figure};

/// The topic.
pub const TOPIC: &str = "idle";

const TABLE: &str = "bench_idle";

/// Rows, and how many share a second: the last ones lie a few seconds before the instance's now, so that they are
/// among those that a careful sweep reads again.
const ROWS: u64 = 12_000;
const PER_SECOND: u64 = 5;
const START: &str = "2026-03-01 11:19:56";

/// Idle sweeps; the dearest one counts. The first of them may still have something to settle.
const SWEEPS: u32 = 3;

/// Seconds of the instance from one idle sweep to the next.
const INTERVAL: i64 = 60;

/// Catches up once, and then sweeps with nothing to do.
pub async fn measure(bed: &Bed<'_>) -> Result<Vec<Figure>, Failed> {
    say("sweeping a table in which nothing happens");
    let dynamo = bed.dynamo()?;
    let start = Some(START.to_owned());
    bed.instance.generate(Generate { per_second: PER_SECOND, start, ..Generate::rows(TABLE, ROWS) }).await?;
    let store = dynamo.store("idle").await?;
    bed.sweep(TABLE, TOPIC, &store).await?;
    bed.check_count(TOPIC, ROWS).await?;
    let (mut requests, mut writes, mut reads, mut cpu) = (0, 0, 0, f64::INFINITY);
    for _ in 0..SWEEPS {
        bed.instance.step(INTERVAL).await?;
        bed.instance.forget().await?;
        dynamo.requests();
        let done = bed.sweep(TABLE, TOPIC, &store).await?;
        let (wrote, other) = dynamo.requests();
        requests = requests.max(bed.instance.counters().await?.requests);
        writes = writes.max(wrote);
        reads = reads.max(other);
        cpu = done.usage.cpu_seconds.min(cpu);
    }
    bed.check_count(TOPIC, ROWS).await?;
    Ok(vec![
        Figure::of("requests of an idle sweep", requests as f64, "").bar(Bar::AtMost(1.0)),
        Figure::of("DynamoDB writes of an idle sweep", writes as f64, "").bar(Bar::AtMost(2.0)),
        Figure::of("DynamoDB reads of an idle sweep in a new process", reads as f64, ""),
        Figure::of("processor time of an idle sweep in a new process", cpu * 1000.0, "ms"),
    ])
}
