//! Metrics in CloudWatch's embedded metric format: one line of JSON on stdout per sweep of a table.
//!
//! CloudWatch reads the metrics out of the function's log, so that nothing is called and nothing is waited for. A line
//! says who, what, how many and how long, and can be searched like any other. Every combination of dimension values is
//! paid for by the month, so that only what must be seen table by table has the table for a dimension.
//!
//! The format: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::io::Write as _;

use serde_json::{Map, Value, json};

use crate::plan::Plan;
use crate::sweep::{Outcome, TableReport};

/// The namespace of all metrics.
pub const NAMESPACE: &str = "tablesweep";

/// The dimension that all metrics have: the function's name, which begins with that of the stack.
pub const FUNCTION: &str = "function";

/// A metric, and what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit, one of CloudWatch's.
    pub unit: &'static str,
    /// The dimensions that it has beside the function.
    pub dimensions: &'static [&'static str],
    /// What it says, for the documentation.
    pub meaning: &'static str,
}

const fn metric(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, unit, dimensions: &[], meaning }
}

/// The metrics of a sweep of a table.
pub static SWEEP: &[Metric] = &[
    metric("InOrder", "Count", "1 if nothing is wrong with the table: swept in good order, or left alone as it should be; 0 otherwise"),
    metric("Sweeps", "Count", "1 if the table was swept in good order: caught up, with more to do, or out of requests for this hour"),
    metric("Rows", "Count", "rows acknowledged by the sink"),
    metric("DuplicatesSuppressed", "Count", "rows read again and not sent again"),
    metric("RowsHidden", "Count", "rows that the source counts and does not show"),
    metric("RowsLate", "Count", "rows that became visible behind the cursor and were not delivered"),
    metric("RowsSkipped", "Count", "rows left out by a policy"),
    metric(
        "ValuesReplaced",
        "Count",
        "values that were replaced: a part could not be read and is U+FFFD or null, or the value does not fit its type and is null as \
         snow.source.schema.evolution=permissive asks",
    ),
    metric("Requests", "Count", "requests to the source, repeated ones included"),
    metric("BytesIn", "Bytes", "the source's answers, as they came over the wire"),
    metric(
        "LagSeconds",
        "Seconds",
        "how far the table is behind its source by what is committed, so that it grows while sweeps fail; absent where that is not known",
    ),
    metric("DurationMilliseconds", "Milliseconds", "how long the sweep took"),
    metric("Parked", "Count", "1 if the table is parked"),
    metric("Paused", "Count", "1 if the table is paused, by hand or by its source"),
    metric(
        "Waiting",
        "Count",
        "1 if the table is paused by its source, and a person has to decide: a schema that changed, a sequence that began anew",
    ),
    metric("Failed", "Count", "1 if the sweep failed"),
];

/// Those that are kept table by table as well, unless that is switched off.
pub static BY_TABLE: &[Metric] = &[
    Metric { dimensions: &["connector", "table"], ..metric("Rows", "Count", "the same, by table") },
    Metric { dimensions: &["connector", "table"], ..metric("LagSeconds", "Seconds", "the same, by table") },
];

/// Why a table was not swept, or not to its end.
pub static REASONS: &[Metric] =
    &[Metric { dimensions: &["code"], ..metric("Reasons", "Count", "1 for each sweep with a reason, by its code") }];

/// The metrics of a plan.
pub static PLAN: &[Metric] = &[
    metric("Tasks", "Count", "tasks with at least one table"),
    metric("Invoked", "Count", "tasks that were handed to the sweep function"),
];

/// Every metric that is ever written.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [SWEEP, BY_TABLE, REASONS, PLAN].into_iter().flatten()
}

/// Writes the metrics of a function. The default writes none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The function's name; `None` outside of Lambda, where nobody would read them.
    pub function: Option<String>,
    /// Whether some are kept table by table.
    pub by_table: bool,
}

impl Metrics {
    /// Writes what came of the sweep of one table.
    pub fn swept(&self, report: &TableReport, tick: Option<&str>, now_ms: i64) {
        if let Some(function) = &self.function {
            write(&swept(function, self.by_table, report, tick, now_ms));
        }
    }

    /// Writes what was planned.
    pub fn planned(&self, plan: &Plan, now_ms: i64) {
        if let Some(function) = &self.function {
            write(&planned(function, plan, now_ms));
        }
    }
}

fn swept(function: &str, by_table: bool, report: &TableReport, tick: Option<&str>, now_ms: i64) -> Value {
    let is = |outcome: Outcome| u64::from(report.outcome == outcome);
    let mut line = Map::new();
    let mut set = |name: &str, value: Value| line.insert(name.to_owned(), value);
    set(FUNCTION, json!(function));
    set("connector", json!(report.connector));
    set("table", json!(report.table));
    set("tick", json!(tick));
    set("outcome", json!(report.outcome));
    set("phase", json!(report.phase));
    set("InOrder", json!(u64::from(report.is_in_order())));
    set("Sweeps", json!(u64::from(report.outcome.is_good() && !report.was_left_alone())));
    set("Rows", json!(report.rows));
    set("DuplicatesSuppressed", json!(report.duplicates_suppressed));
    set("RowsHidden", json!(report.rows_hidden));
    set("RowsLate", json!(report.rows_late));
    set("RowsSkipped", json!(report.rows_skipped));
    set("ValuesReplaced", json!(report.values_replaced));
    set("Requests", json!(report.requests));
    set("BytesIn", json!(report.bytes_in));
    set("DurationMilliseconds", json!(report.duration_ms));
    set("Parked", json!(is(Outcome::Parked)));
    set("Paused", json!(is(Outcome::Paused)));
    set("Waiting", json!(u64::from(report.waits_for_source())));
    set("Failed", json!(is(Outcome::Failed)));
    if let Some(lag) = report.lag_seconds {
        set("LagSeconds", json!(lag));
    }
    let mut groups = vec![SWEEP];
    if by_table {
        groups.push(BY_TABLE);
    }
    if let Some(reason) = &report.reason {
        set("code", json!(reason.code));
        set("Reasons", json!(1));
        groups.push(REASONS);
    }
    embedded(line, &groups, now_ms)
}

fn planned(function: &str, plan: &Plan, now_ms: i64) -> Value {
    let mut line = Map::new();
    line.insert(FUNCTION.to_owned(), json!(function));
    line.insert("tick".to_owned(), json!(plan.tick));
    line.insert("Tasks".to_owned(), json!(plan.tasks.len()));
    line.insert("Invoked".to_owned(), json!(plan.invoked));
    embedded(line, &[PLAN], now_ms)
}

/// The line with its head, which says which of its members are metrics. A metric without a value is left out there.
fn embedded(line: Map<String, Value>, groups: &[&[Metric]], now_ms: i64) -> Value {
    let head = groups.iter().filter_map(|group| {
        let known: Vec<Value> =
            group.iter().filter(|one| line.contains_key(one.name)).map(|one| json!({"Name": one.name, "Unit": one.unit})).collect();
        let dimensions: Vec<&str> = std::iter::once(FUNCTION).chain(group.first()?.dimensions.iter().copied()).collect();
        (!known.is_empty()).then(|| json!({"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": known}))
    });
    let mut whole = Map::from_iter([("_aws".to_owned(), json!({"Timestamp": now_ms, "CloudWatchMetrics": head.collect::<Vec<_>>()}))]);
    whole.extend(line);
    Value::Object(whole)
}

/// One write for the whole line: two halves could end up in two log events.
fn write(line: &Value) {
    if let Err(error) = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()) {
        tracing::warn!(%error, "the metrics of a sweep could not be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Phase;
    use crate::failure::{Failure, Retry};
    use crate::plan::Task;
    use crate::sweep::{Mode, Reason};

    fn report(outcome: Outcome) -> TableReport {
        TableReport { outcome, rows: 7, lag_seconds: Some(3), ..TableReport::new("snow", "inc") }
    }

    fn declared(line: &Value) -> Vec<(Vec<String>, Vec<String>)> {
        let groups = line["_aws"]["CloudWatchMetrics"].as_array().expect("groups");
        let texts = |values: &Value, member: Option<&str>| -> Vec<String> {
            let text = |value: &Value| member.map_or(value, |name| &value[name]).as_str().expect("a text").to_owned();
            values.as_array().expect("a list").iter().map(text).collect()
        };
        groups.iter().map(|group| (texts(&group["Dimensions"][0], None), texts(&group["Metrics"], Some("Name")))).collect()
    }

    #[test]
    fn every_declared_metric_and_dimension_is_a_member_of_the_line() {
        let mut failed = report(Outcome::Parked);
        failed.reason = Some(Reason::from(&Failure::new("Source.Forbidden", Retry::Never, "no")));
        for line in [swept("f", true, &report(Outcome::More), Some("t"), 5), swept("f", true, &failed, None, 5)] {
            for (dimensions, metrics) in declared(&line) {
                assert!(dimensions.iter().all(|name| line[name].is_string()), "{line}");
                assert!(metrics.iter().all(|name| line[name].is_number()), "{line}");
            }
        }
    }

    #[test]
    fn each_metric_is_its_own_figure_of_the_sweep() {
        let mut swept_to_more = TableReport {
            outcome: Outcome::More,
            rows: 1,
            duplicates_suppressed: 2,
            rows_hidden: 3,
            rows_late: 4,
            rows_skipped: 5,
            values_replaced: 6,
            requests: 7,
            bytes_in: 8,
            lag_seconds: Some(9),
            duration_ms: 10_000,
            phase: Some(Phase::Backfill),
            ..TableReport::new("snow", "inc")
        };
        let line = swept("f", false, &swept_to_more, Some("t"), 1_800_000_000_123);
        let figures = [
            ("InOrder", 1),
            ("Sweeps", 1),
            ("Rows", 1),
            ("DuplicatesSuppressed", 2),
            ("RowsHidden", 3),
            ("RowsLate", 4),
            ("RowsSkipped", 5),
            ("ValuesReplaced", 6),
            ("Requests", 7),
            ("BytesIn", 8),
            ("LagSeconds", 9),
            ("DurationMilliseconds", 10_000),
            ("Parked", 0),
            ("Paused", 0),
            ("Waiting", 0),
            ("Failed", 0),
        ];
        assert_eq!(figures.map(|(name, _)| name).to_vec(), SWEEP.iter().map(|metric| metric.name).collect::<Vec<_>>());
        for (name, value) in figures {
            assert_eq!(line[name], json!(value), "{name}");
        }
        for (name, value) in
            [("function", "f"), ("connector", "snow"), ("table", "inc"), ("tick", "t"), ("outcome", "more"), ("phase", "backfill")]
        {
            assert_eq!(line[name], json!(value), "{name}");
        }
        assert_eq!(line["_aws"]["Timestamp"], json!(1_800_000_000_123_i64), "in milliseconds");
        // Whoever was skipped before anything was asked was not swept.
        swept_to_more.requests = 0;
        for (outcome, counted) in [
            (Outcome::CaughtUp, "Sweeps"),
            (Outcome::More, "Sweeps"),
            (Outcome::Skipped, "-"),
            (Outcome::Paused, "Paused"),
            (Outcome::Parked, "Parked"),
            (Outcome::Failed, "Failed"),
        ] {
            swept_to_more.outcome = outcome;
            let line = swept("f", false, &swept_to_more, None, 5);
            for name in ["Sweeps", "Parked", "Paused", "Failed"] {
                assert_eq!(line[name], json!(u64::from(name == counted)), "{name} of {outcome:?}");
            }
        }
    }

    #[test]
    fn a_plan_counts_its_tasks_and_those_that_were_handed_over() {
        let task = |number| Task { connector: "snow".into(), task: number, tasks: 2, tables: vec!["inc".into()] };
        let plan = Plan { tick: Some("t".into()), mode: Mode::Stream, tasks: vec![task(0), task(1)], invoked: 1, not_rewound: vec![] };
        let line = planned("f", &plan, 5);
        assert_eq!((&line["Tasks"], &line["Invoked"], &line["tick"]), (&json!(2), &json!(1), &json!("t")));
    }

    #[test]
    fn only_lag_and_rows_are_kept_by_table_and_only_if_they_are_wanted() {
        let by_table = declared(&swept("f", true, &report(Outcome::CaughtUp), None, 5));
        assert_eq!(by_table[1], (vec!["function".into(), "connector".into(), "table".into()], vec!["Rows".into(), "LagSeconds".into()]));
        assert_eq!(declared(&swept("f", false, &report(Outcome::CaughtUp), None, 5)).len(), 1);
    }

    #[test]
    fn a_lag_that_is_not_known_is_no_metric() {
        let line = swept("f", true, &TableReport { lag_seconds: None, ..report(Outcome::Skipped) }, None, 5);
        assert!(declared(&line).iter().all(|(_, metrics)| !metrics.contains(&"LagSeconds".to_owned())), "{line}");
        assert_eq!((&line["Sweeps"], &line["Rows"]), (&json!(0), &json!(7)));
    }

    fn because(outcome: Outcome, code: &str, requests: u64) -> TableReport {
        let reason = Some(Reason { code: code.to_owned(), message: "as told".to_owned() });
        TableReport { outcome, reason, requests, rows: 0, ..report(outcome) }
    }

    #[test]
    fn what_is_as_it_should_be_is_in_order_and_only_what_was_swept_is_a_sweep() {
        let of = |report: &TableReport| {
            let line = swept("f", false, report, None, 5);
            ["InOrder", "Sweeps", "Paused", "Waiting"].map(|name| line[name].as_u64().expect("a count"))
        };
        assert_eq!(of(&report(Outcome::CaughtUp)), [1, 1, 0, 0]);
        assert_eq!(of(&report(Outcome::More)), [1, 1, 0, 0]);
        assert_eq!(of(&because(Outcome::Skipped, "Source.Allowance", 19)), [1, 1, 0, 0], "swept until the hour's requests were spent");
        for (code, held) in [("Source.Allowance", "by the hour"), ("Sweep.NotDue", "by its interval"), ("Cursor.Leased", "by a catch-up")] {
            assert_eq!(of(&because(Outcome::Skipped, code, 0)), [1, 0, 0, 0], "kept back {held}");
        }
        assert_eq!(of(&because(Outcome::Paused, "Cursor.Paused", 0)), [1, 0, 1, 0], "an operator wants it so");
        for code in ["Source.SchemaChanged", "Source.SequenceRegressed"] {
            assert_eq!(of(&because(Outcome::Paused, code, 1)), [0, 0, 1, 1], "a person has to decide");
        }
        assert_eq!(of(&because(Outcome::Parked, "Source.Forbidden", 1)), [0, 0, 0, 0]);
        assert_eq!(of(&because(Outcome::Failed, "Source.Unavailable", 1)), [0, 0, 0, 0]);
    }

    #[test]
    fn a_reason_is_counted_by_its_code_and_its_message_is_not_shown() {
        let mut parked = report(Outcome::Parked);
        parked.reason = Some(Reason { code: "Source.Forbidden".into(), message: "a long story".into() });
        let line = swept("f", true, &parked, None, 5);
        assert!(declared(&line).contains(&(vec!["function".into(), "code".into()], vec!["Reasons".into()])), "{line}");
        assert!(!line.to_string().contains("a long story"));
    }
}
