//! Catching up: laps of the engine until every table is final.
//!
//! A lap sweeps the tables that are not final. Waiting for somebody else's lease, going on after `more` and trying again
//! after a failure are all the same to it: another lap, after a pause when nothing moved. The pauses end when the time
//! that was given is over, so they are bounded by it and by nothing else: whoever catches up with history has patience.

use std::collections::BTreeMap;
use std::time::Duration;

use tablesweep::cursor::Position;
use tablesweep::sweep::{Engine, Job, Outcome, Reason, Run, TableReport};

/// A table that failed this often in a row is not tried again.
const FAILURES: u32 = 3;

/// So is one that has more and whose cursor did not move in this many laps in a row.
const UNMOVED: u32 = 3;

/// The pause after a lap in which nothing moved; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The name of a table: connector and alias.
type Name = (String, String);

/// A table that is not final.
struct Open {
    job: Job,
    standing: Standing,
}

/// What the laps so far came to.
#[derive(Debug, Default)]
struct Standing {
    total: Option<TableReport>,
    failures: u32,
    unmoved: u32,
}

/// Sweeps until every table is final, the time is up, or it is to stop.
pub async fn run(engine: &Engine, jobs: Vec<Job>, run: &Run) -> Vec<TableReport> {
    let mut open: BTreeMap<Name, Open> = jobs.into_iter().map(|job| (name(&job), Open { job, standing: Standing::default() })).collect();
    let mut done = Vec::new();
    let mut pause = FIRST_PAUSE;
    // Within the reserve no sweep fetches anything: a lap would only look as if a table did not move.
    let reserve = open.values().map(|table| table.job.reserve()).max().unwrap_or_default();
    let end = run.deadline.map(|deadline| deadline.saturating_sub(reserve));
    while !open.is_empty() {
        let mut moved = false;
        for report in lap(engine, &open, run).await {
            let key = (report.connector.clone(), report.table.clone());
            let Some(table) = open.get_mut(&key) else { continue };
            let (is_final, has_moved) = table.standing.take(report, run.max_rows);
            moved |= has_moved;
            if is_final && let Some(table) = open.remove(&key) {
                done.extend(table.standing.total);
            }
        }
        if *run.stop.borrow() || end.is_some_and(|end| engine.host.monotonic() >= end) {
            break;
        }
        pause = if moved { FIRST_PAUSE } else { rest(engine, run, pause, end).await };
    }
    done.extend(open.into_values().filter_map(|table| table.standing.total));
    done
}

/// Sweeps each open table once, side by side. The rows that a table may still deliver differ; the engine is given those
/// with one limit together.
async fn lap(engine: &Engine, open: &BTreeMap<Name, Open>, run: &Run) -> Vec<TableReport> {
    let mut by_limit: BTreeMap<Option<u64>, Vec<Job>> = BTreeMap::new();
    for table in open.values() {
        let delivered = table.standing.total.as_ref().map_or(0, |total| total.rows);
        let limit = run.max_rows.map(|most| most.saturating_sub(delivered));
        by_limit.entry(limit).or_default().push(table.job.clone());
    }
    let mut laps = tokio::task::JoinSet::new();
    for (max_rows, jobs) in by_limit {
        let (engine, run) = (engine.clone(), Run { max_rows, ..run.clone() });
        laps.spawn(async move { engine.run(jobs, &run).await });
    }
    laps.join_all().await.into_iter().flatten().collect()
}

/// Waits, and gives the next pause. An end that is asked for, or time that is up, ends the wait.
async fn rest(engine: &Engine, run: &Run, pause: Duration, end: Option<Duration>) -> Duration {
    let left = end.map_or(pause, |end| end.saturating_sub(engine.host.monotonic()));
    let mut stop = run.stop.clone();
    tokio::select! {
        () = tokio::time::sleep(pause.min(left)) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    (pause * 2).min(LONGEST_PAUSE)
}

fn name(job: &Job) -> Name {
    let identity = job.table.identity();
    (identity.connector.clone(), identity.alias.clone())
}

impl Standing {
    /// Takes the report of a lap; says whether the table is final, and whether its cursor moved or rows came.
    fn take(&mut self, report: TableReport, max_rows: Option<u64>) -> (bool, bool) {
        let before: Option<Position> = self.total.as_ref().and_then(|total| total.cursor.clone());
        let moved = report.rows > 0 || (report.cursor.is_some() && report.cursor != before);
        // A lap that left the table alone says nothing of either.
        if report.outcome != Outcome::Skipped {
            self.failures = if report.outcome == Outcome::Failed { self.failures + 1 } else { 0 };
            self.unmoved = if report.outcome == Outcome::More && !moved { self.unmoved + 1 } else { 0 };
        }
        let mut total = joined(self.total.take(), report);
        let is_full = max_rows.is_some_and(|most| total.rows >= most);
        if self.unmoved >= UNMOVED {
            total.outcome = Outcome::Failed;
            let message = format!(
                "{}/{}: {UNMOVED} sweeps in a row ended before anything was delivered; a smaller batch.size, or more time, lets it go on",
                total.connector, total.table
            );
            total.reason = Some(Reason { code: "Sweep.Unmoved".to_owned(), message });
        }
        let is_final = match total.outcome {
            Outcome::CaughtUp | Outcome::Parked | Outcome::Paused => true,
            Outcome::More => is_full,
            Outcome::Failed => self.failures >= FAILURES || self.unmoved >= UNMOVED,
            Outcome::Skipped => false,
        };
        self.total = Some(total);
        (is_final, moved)
    }
}

/// Two laps as one sweep: what was counted is added, how it stands is the later one's.
fn joined(before: Option<TableReport>, after: TableReport) -> TableReport {
    let Some(before) = before else { return after };
    TableReport {
        rows: before.rows + after.rows,
        duplicates_suppressed: before.duplicates_suppressed + after.duplicates_suppressed,
        rows_skipped: before.rows_skipped + after.rows_skipped,
        rows_hidden: before.rows_hidden + after.rows_hidden,
        rows_late: before.rows_late + after.rows_late,
        values_replaced: before.values_replaced + after.values_replaced,
        requests: before.requests + after.requests,
        bytes_in: before.bytes_in + after.bytes_in,
        duration_ms: before.duration_ms + after.duration_ms,
        // A lap that was kept out by a lease knows none of these.
        phase: after.phase.or(before.phase),
        cursor: after.cursor.clone().or(before.cursor),
        lag_seconds: after.lag_seconds.or(before.lag_seconds),
        ..after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcome: Outcome, rows: u64, at: Option<&str>) -> TableReport {
        let cursor = at.map(|at| Position::new([("timestamp", Some(at.to_owned()))]));
        TableReport { outcome, rows, cursor, ..TableReport::new("c", "inc") }
    }

    #[test]
    fn a_table_that_fails_three_times_in_a_row_is_final_and_one_that_recovers_is_not() {
        let mut standing = Standing::default();
        for outcome in [Outcome::Failed, Outcome::Failed, Outcome::More, Outcome::Failed, Outcome::Skipped, Outcome::Failed] {
            let rows = u64::from(outcome == Outcome::More);
            assert!(!standing.take(report(outcome, rows, None), None).0);
        }
        assert!(standing.take(report(Outcome::Failed, 0, None), None).0);
    }

    #[test]
    fn a_leased_table_is_waited_for() {
        let mut standing = Standing::default();
        for _ in 0..50 {
            assert_eq!(standing.take(report(Outcome::Skipped, 0, None), None), (false, false));
        }
        assert_eq!(standing.take(report(Outcome::CaughtUp, 5, Some("a")), None), (true, true));
    }

    #[test]
    fn more_without_a_moved_cursor_fails_after_three_laps() {
        let mut standing = Standing::default();
        assert_eq!(standing.take(report(Outcome::More, 0, Some("a")), None), (false, true));
        for _ in 0..2 {
            assert_eq!(standing.take(report(Outcome::More, 0, Some("a")), None), (false, false));
        }
        assert!(standing.take(report(Outcome::More, 0, Some("a")), None).0);
        let total = standing.total.expect("a report");
        assert_eq!((total.outcome, total.reason.map(|reason| reason.code)), (Outcome::Failed, Some("Sweep.Unmoved".to_owned())));
    }

    #[test]
    fn laps_add_up_and_the_last_one_says_how_the_table_stands() {
        let mut standing = Standing::default();
        assert!(!standing.take(report(Outcome::More, 5, Some("a")), Some(8)).0);
        assert!(standing.take(report(Outcome::More, 3, Some("b")), Some(8)).0, "the limit is reached");
        let total = standing.total.expect("a report");
        assert_eq!((total.rows, total.outcome, total.cursor), (8, Outcome::More, report(Outcome::More, 0, Some("b")).cursor));
    }
}
