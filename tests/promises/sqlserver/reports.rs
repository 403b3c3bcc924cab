//! What people have reported of other pollers and of drivers, each as a test over the whole way: from the statement that
//! makes the table to the line in the file. docs/reports-sqlserver.md lists the reports and where each is held; those that a
//! test of another file holds already are not repeated here.

mod encryption;
mod names;
mod rows;
mod sequences;
mod values;

use super::bed::Bed;

/// A table with a key `id` and one column `v` of this type, with one row per value.
fn table_of(column: &str, values: &[&str]) -> Bed {
    let bed = Bed::with_table(&format!("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, v {column})"));
    for (at, value) in values.iter().enumerate() {
        bed.run(&format!("INSERT INTO dbo.orders (id, v) VALUES ({}, {value})", at + 1));
    }
    bed
}

/// The values of `v` as they were written, in the order of the rows.
async fn swept(bed: &Bed) -> Vec<String> {
    let report = bed.sweep().await;
    assert_eq!(report.outcome, tablesweep::sweep::Outcome::CaughtUp, "{report:?}");
    let written = |text: String| text.split_once("\"v\":").map(|(_, value)| value.trim_end_matches('}').to_owned()).unwrap_or(text);
    bed.lines().into_iter().map(|line| written(line.text)).collect()
}
