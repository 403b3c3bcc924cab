//! Metrics: what the functions write, what the documentation says, and what the template looks at are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};
use tablesweep::telemetry::metrics::{self, FUNCTION, NAMESPACE};
use tablesweep_testbed::kafka;
use tablesweep_testbed::table_api::Fault;

use super::bed::{Bed, Setup, event};

fn read(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines with metrics that a function wrote.
pub fn written(bed: &Bed, function: &str) -> Vec<Value> {
    let lines = bed.lambda.logs(function);
    lines.lines().filter(|line| line.starts_with("{\"_aws\"")).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// What CloudWatch makes of a line: a value by metric and dimension values. Panics at what CloudWatch would not take.
fn recorded(line: &Value) -> BTreeMap<(String, String), f64> {
    let mut values = BTreeMap::new();
    assert!(line["_aws"]["Timestamp"].as_i64().is_some_and(|ms| ms > 1_700_000_000_000), "{line}");
    for group in line["_aws"]["CloudWatchMetrics"].as_array().expect("groups") {
        assert_eq!(group["Namespace"], NAMESPACE);
        for set in group["Dimensions"].as_array().expect("dimension sets") {
            let of = |name: &Value| line[name.as_str().expect("a name")].as_str().expect("a dimension is a text").to_owned();
            let dimensions: Vec<String> = set.as_array().expect("a set").iter().map(of).collect();
            assert!(dimensions.iter().all(|value| !value.is_empty()), "{line}");
            for metric in group["Metrics"].as_array().expect("metrics") {
                let name = metric["Name"].as_str().expect("a name").to_owned();
                let value = line[&name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {line}"));
                values.insert((name, dimensions.join(" ")), value);
            }
        }
    }
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sweep_writes_what_it_did_and_each_plan_what_it_started() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup { tables: 2, ..Setup::of(broker) }).await;
    bed.generate("inc", 500);
    bed.api.fault(Fault::status(403, "Failed API level ACL Validation").table("change_request").always());
    bed.fan_out(&event("schedule")).await;
    let plans = written(&bed, "fan-out");
    assert_eq!(plans.len(), 1);
    let plan = recorded(&plans[0]);
    let of = |name: &str| (name.to_owned(), "fan-out".to_owned());
    assert_eq!((plan[&of("Tasks")], plan[&of("Invoked")]), (2.0, 2.0));
    let sweeps = written(&bed, "sweep");
    assert_eq!(sweeps.len(), 2, "{sweeps:?}");
    let by_table = |alias: &str| sweeps.iter().find(|line| line["table"] == alias).unwrap_or_else(|| panic!("{alias}: {sweeps:?}"));
    let (inc, chg) = (recorded(by_table("inc")), recorded(by_table("chg")));
    let of = |name: &str, dimensions: &str| (name.to_owned(), dimensions.to_owned());
    assert_eq!((inc[&of("Sweeps", "sweep")], inc[&of("Rows", "sweep snow inc")], inc[&of("Failed", "sweep")]), (1.0, 500.0, 0.0));
    assert!(inc.contains_key(&of("LagSeconds", "sweep snow inc")) && inc[&of("DurationMilliseconds", "sweep")] > 0.0);
    assert_eq!((chg[&of("Sweeps", "sweep")], chg[&of("Parked", "sweep")], chg[&of("Reasons", "sweep Source.Forbidden")]), (0.0, 1.0, 1.0));
    assert_eq!(by_table("inc")["tick"], event("schedule")["time"]);
    bed.logs();
}

#[test]
fn the_documentation_lists_every_metric_as_it_is_written() {
    let page = read("docs/metrics.md");
    let listed: BTreeSet<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let written: BTreeSet<String> = metrics::all()
        .map(|metric| {
            let dimensions: Vec<String> = std::iter::once(&FUNCTION).chain(metric.dimensions).map(|name| format!("`{name}`")).collect();
            format!("| `{}` | {} | {} | {} |", metric.name, metric.unit, dimensions.join(", "), metric.meaning)
        })
        .collect();
    assert_eq!(listed, written.iter().map(String::as_str).collect());
}

#[test]
fn alarms_and_dashboard_look_at_metrics_that_are_written() {
    let template = read("template.yaml");
    let known = |name: &str| metrics::all().any(|metric| metric.name == name);
    let alarmed: Vec<&str> = template
        .split("Namespace: tablesweep\n")
        .skip(1)
        .map(|rest| rest.lines().next().unwrap_or_default().trim().trim_start_matches("MetricName: "))
        .collect();
    assert!(alarmed.len() >= 3 && alarmed.iter().all(|name| known(name)), "{alarmed:?}");
    for (name, rest) in template.split("MetricName=\\\"").skip(1).filter_map(|rest| rest.split_once("\\\"")) {
        assert!(known(name), "{name}, before {:.40}", rest);
    }
    for schema in template.split("SEARCH('{").skip(1).filter_map(|rest| rest.split('}').next()) {
        let mut names = schema.split(',');
        assert_eq!(names.next(), Some(NAMESPACE));
        let searched: BTreeSet<&str> = names.collect();
        let matches =
            metrics::all().any(|metric| metric.dimensions.iter().chain([&FUNCTION]).copied().collect::<BTreeSet<_>>() == searched);
        assert!(matches, "no metric has the dimensions {searched:?}");
    }
    assert_eq!(json!(NAMESPACE), "tablesweep");
}
