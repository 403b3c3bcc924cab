//! What an idle tick asks for, and what docs/cost.md makes of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};
use tablesweep::telemetry::metrics;
use tablesweep_testbed::{kafka, moto};

use super::bed::{Bed, Setup};

/// The inputs of the page, by their names.
fn inputs() -> BTreeMap<String, f64> {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/cost.md");
    let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let inputs = text.split("## ").find(|section| section.starts_with("Inputs")).expect("its inputs");
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        Some((cells.next()?.to_owned(), cells.next()?.parse().ok()?))
    };
    inputs.lines().filter_map(row).collect()
}

/// The bytes that DynamoDB counts of an item: names and values.
fn size(item: &Value) -> usize {
    let values = item.as_object().expect("an item").iter();
    values
        .map(|(name, value)| name.len() + value.as_object().expect("typed").values().map(|v| v.as_str().map_or(1, str::len)).sum::<usize>())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_tick_asks_for_what_the_page_on_cost_counts() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup { tables: 2, ..Setup::of(broker) }).await;
    bed.generate("inc", 500);
    bed.generate("chg", 300);
    let both = async |tick: &str| {
        let task = json!({"connector": "snow", "task": 0, "tasks": 1, "tables": ["chg", "inc"], "tick": tick, "mode": "stream"});
        bed.lambda.invoke("sweep", &task).await.expect("an invocation")
    };
    both("one").await;
    both("two").await;
    let logged = bed.lambda.logs("sweep").len();
    bed.cursors.forget_carried();
    bed.api.clear_log();
    let idle = both("three").await;
    let answer = idle.response().unwrap_or_else(|| panic!("{:?}", idle.outcome));
    for table in answer["tables"].as_array().expect("tables") {
        assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(0)), "{table}");
    }
    let of = inputs();
    let carried = bed.cursors.carried();
    let count = |operation: &str| carried.iter().filter(|request| request.contains(&format!("DynamoDB_20120810.{operation}"))).count();
    let tables = 2.0;
    // Each metric with its own set of dimensions is paid for by the month, and those by table once for each.
    assert_eq!((metrics::SWEEP.len() + metrics::PLAN.len()) as f64, of["metrics of sweep and fan-out"]);
    assert_eq!(metrics::BY_TABLE.len() as f64, of["metrics per table"]);
    assert_eq!(count("UpdateItem") as f64, tables * of["DynamoDB write units, per table"]);
    // Everything else is a consistent read, of a whole unit up to four kilobytes: what is kept of the instance.
    assert_eq!(count("GetItem") + count("Query"), carried.len() - count("UpdateItem"), "{carried:?}");
    assert_eq!((carried.len() - count("UpdateItem")) as f64, of["DynamoDB read units, per invocation"], "{carried:?}");
    assert_eq!(bed.api.log().len() as f64, tables * of["requests to the source, per table"]);

    // A write is one unit up to a kilobyte.
    let server = moto::shared().await.expect("moto runs");
    let (_, found) = server.call("DynamoDB_20120810.Scan", &json!({"TableName": bed.table()})).await.expect("scanned");
    let cursors: Vec<&Value> = found["Items"].as_array().expect("items").iter().filter(|item| item.get("progress").is_some()).collect();
    assert_eq!(cursors.len(), 2, "{found}");
    assert!(cursors.iter().all(|item| size(item) <= 1024), "{:?}", cursors.iter().map(|item| size(item)).collect::<Vec<_>>());

    let logs = bed.logs();
    let per_table = (bed.lambda.logs("sweep").len() - logged) as f64 / tables;
    assert!(per_table <= of["logged bytes per table and tick"], "{per_table} bytes of log per table: {logs}");
}
