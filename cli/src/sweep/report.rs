//! The result of a sweep for people: a line per table, the reason below it.

use tablesweep::cursor::Phase;
use tablesweep::sweep::{Outcome, SweepReport, TableReport};

use crate::text::{Table, lag};

/// The result as a table.
pub fn text(report: &SweepReport) -> String {
    let mut table = Table::new(&["connector/table", "outcome", "phase", "rows", "suppressed", "hidden", "rows/s", "lag"], 3);
    for swept in &report.tables {
        table.row(cells(swept), notes(swept));
    }
    table.render()
}

fn cells(swept: &TableReport) -> Vec<String> {
    let outcome = match swept.outcome {
        Outcome::CaughtUp => "caught_up",
        Outcome::More => "more",
        Outcome::Skipped => "skipped",
        Outcome::Paused => "paused",
        Outcome::Parked => "parked",
        Outcome::Failed => "failed",
    };
    let phase = match swept.phase {
        None => "-",
        Some(Phase::Backfill) => "backfill",
        Some(Phase::Stream) => "stream",
    };
    vec![
        format!("{}/{}", swept.connector, swept.table),
        outcome.to_owned(),
        phase.to_owned(),
        swept.rows.to_string(),
        swept.duplicates_suppressed.to_string(),
        swept.rows_hidden.to_string(),
        per_second(swept.rows, swept.duration_ms),
        lag(swept.lag_seconds),
    ]
}

fn per_second(rows: u64, duration_ms: u64) -> String {
    if rows == 0 { "-".to_owned() } else { (rows.saturating_mul(1000) / duration_ms.max(1)).to_string() }
}

fn notes(swept: &TableReport) -> Vec<String> {
    let reason = swept.reason.as_ref().map(|reason| format!("{}: {}", reason.code, reason.message));
    let skipped = (swept.rows_skipped > 0).then(|| format!("{} rows left out by policy; the log names them", swept.rows_skipped));
    reason.into_iter().chain(skipped).collect()
}
