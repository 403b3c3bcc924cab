//! When a sweep makes its invocation fail.

use crate::failure::{Failure, Retry};
use crate::sweep::{Mode, Outcome, Reason, SweepReport, TableReport};

/// How a stream invocation fails: by the code of the first table that failed or was tried and parked, naming all of them. A
/// parked table that waits for its next try was told of when it was parked, and one that waits for its source when it began
/// to; otherwise an alarm would ring every minute.
pub fn failure(report: &SweepReport) -> Option<Failure> {
    if report.mode != Mode::Stream {
        return None;
    }
    let is_bad = |table: &&TableReport| match table.outcome {
        Outcome::Failed => true,
        Outcome::Parked | Outcome::Paused => table.tried,
        Outcome::CaughtUp | Outcome::More | Outcome::Skipped => false,
    };
    let bad: Vec<(&TableReport, Reason)> = report.tables.iter().filter(is_bad).map(|table| (table, reason(table))).collect();
    let (_, first) = bad.first()?;
    let told: Vec<String> = bad.iter().map(|(table, reason)| told(table, reason)).collect();
    let message = format!("{} of {} tables: {}", bad.len(), report.tables.len(), told.join("; "));
    Some(Failure { code: first.code.clone().into(), ..Failure::new("", Retry::NextTick, message) })
}

fn told(table: &TableReport, reason: &Reason) -> String {
    let how = match table.outcome {
        Outcome::Parked => "parked",
        Outcome::Paused => "paused",
        _ => "failed",
    };
    format!("{}/{} {how} by {}: {}", table.connector, table.table, reason.code, reason.message)
}

fn reason(table: &TableReport) -> Reason {
    table.reason.clone().unwrap_or_else(|| Reason {
        code: "Sweep.Panicked".to_owned(),
        message: "the sweep gave no reason, which is a defect of this program; please report it".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(alias: &str, outcome: Outcome, code: Option<&str>) -> TableReport {
        let reason = code.map(|code| Reason { code: code.to_owned(), message: format!("{alias} is broken") });
        TableReport { outcome, reason, tried: !["waits", "held"].contains(&alias), ..TableReport::new("snow", alias) }
    }

    fn tables() -> Vec<TableReport> {
        vec![
            table("waits", Outcome::Parked, Some("Source.Forbidden")),
            table("late", Outcome::Skipped, Some("Sweep.NotDue")),
            table("fine", Outcome::CaughtUp, None),
            table("tried", Outcome::Parked, Some("Sink.TopicMissing")),
            table("held", Outcome::Paused, Some("Cursor.Paused")),
            table("down", Outcome::Failed, Some("Source.Unavailable")),
            table("drifted", Outcome::Paused, Some("Source.SchemaChanged")),
        ]
    }

    #[test]
    fn a_stream_fails_by_the_first_table_and_names_each_that_failed_or_was_tried() {
        let report = SweepReport::together(Mode::Stream, tables());
        let failure = failure(&report).expect("a failure");
        assert_eq!(failure.code, "Source.Unavailable", "`down` is the first by name");
        for named in
            ["3 of 7", "snow/down", "Source.Unavailable", "down is broken", "snow/tried", "Sink.TopicMissing", "snow/drifted paused"]
        {
            assert!(failure.message.contains(named), "`{named}` is missing in: {failure}");
        }
        for spared in ["waits", "late", "fine", "held"] {
            assert!(!failure.message.contains(spared), "{failure}");
        }
    }

    #[test]
    fn a_stream_whose_parked_tables_wait_and_a_catch_up_whatever_happened_do_not_fail() {
        let waiting =
            tables().into_iter().map(|table| TableReport { tried: false, ..table }).filter(|table| table.table != "down").collect();
        assert_eq!(failure(&SweepReport::together(Mode::Stream, waiting)), None);
        assert_eq!(failure(&SweepReport::together(Mode::CatchUp, tables())), None);
    }
}
