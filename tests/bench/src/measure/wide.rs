//! The peak of memory while pages of wide rows pass through.

use tablesweep_testbed::table_api::Generate;

use super::{Bed, say};
use crate::failed::Failed;
use crate::figure::{Bar, Figure};

/// The topic.
pub const TOPIC: &str = "wide";

const TABLE: &str = "bench_wide";

/// Bytes of a row's JSON, about.
const ROW: usize = 2_000;

/// MiB.
const PEAK: Bar = Bar::AtMost(128.0);

/// Sweeps the wide table once.
pub async fn measure(bed: &Bed<'_>) -> Result<Figure, Failed> {
    let rows = bed.options.wide_rows;
    say(&format!("making {rows} rows of {ROW} bytes, and sweeping them"));
    let start = Some("2026-02-01 00:00:00".to_owned());
    bed.instance.generate(Generate { bytes_per_row: ROW, per_second: 25, start, ..Generate::rows(TABLE, rows) }).await?;
    let done = bed.sweep(TABLE, TOPIC, &bed.store("wide").await?).await?;
    bed.check_count(TOPIC, rows).await?;
    Ok(Figure::of("peak memory at 2 KB rows", done.usage.peak_mib(), "MiB").bar(PEAK))
}
