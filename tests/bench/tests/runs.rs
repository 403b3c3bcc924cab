//! The benchmark itself, in little: mock cluster, cursors in a file, a few pages.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Four full pages. The request that finds the end weighs too much at so few pages, so that bar is always missed.
const FEW: &[&str] = &[
    "--rows",
    "2000",
    "--page",
    "500",
    "--rounds",
    "1",
    "--wide-rows",
    "1000",
    "--shape-rows",
    "1000",
    "--mock",
    "--cursors",
    "sqlite",
    "--only",
    "backfill,shapes,memory,sql-server",
];

fn bench(json: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(FEW).args(more).arg("--json").arg(json);
    command.output().expect("the benchmark starts")
}

fn figure<'f>(document: &'f Value, name: &str) -> &'f Value {
    let figures = document["figures"].as_array().expect("figures");
    figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("there is no {name} in {document}"))
}

#[test]
fn a_missed_bar_fails_the_run_and_is_marked_in_table_and_json() {
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("below/bench.json");
    let output = bench(&json, &[]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = table.lines().find(|line| line.starts_with("requests per full page")).expect("a line of the table");
    assert!(line.ends_with("MISSED"), "{table}");
    let document: Value = serde_json::from_slice(&std::fs::read(&json).expect("the file")).expect("JSON");
    assert_eq!((&document["passed"], &figure(&document, "requests per full page")["passed"]), (&false.into(), &false.into()));
}

#[test]
fn without_bars_the_same_run_reports_the_same_and_succeeds() {
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("bench.json");
    let output = bench(&json, &["--no-bars"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: Value = serde_json::from_slice(&std::fs::read(&json).expect("the file")).expect("JSON");
    assert_eq!(document["passed"], false);
    let value = |name: &str| figure(&document, name)["value"].as_f64().expect("a number");
    let ratio = value("rows per processor second, sweep") / value("rows per processor second, floor");
    assert!((ratio - value("sweep to floor")).abs() < 1e-6, "{document}");
    // A row has a key of 32 bytes beside its JSON; a sweep that went around the instance would not have read it.
    assert!((value("bytes of key and value per row") - 500.0).abs() < 50.0, "{document}");
    assert!(value("bytes over the wire per row") > 50.0 && value("requests per full page") >= 1.25, "{document}");
    assert!(value("strings to schemaless, processor time") > 0.5 && value("strings with schema beside them to schemaless") > 0.5);
    assert!(value("peak memory at 2 KB rows") > 5.0, "{document}");
    assert!(value("SQL Server sweep to bare driver") > 0.0 && value("SQL Server bytes over the wire per row") > 400.0, "{document}");
}
