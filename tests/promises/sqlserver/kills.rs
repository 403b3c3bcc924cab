//! kill -9 at named moments, in a real process; then a sweep to the end.

use std::collections::BTreeMap;

use tablesweep::sweep::{Outcome, UNCOMMITTED};

use super::bed::Bed;
use crate::kills::kill_sweep;

const BATCH: usize = 50;

/// Starts a sweep and kills it at the nth visit of the failpoint; answers how many rows lay in the file then.
fn killed_at(bed: &Bed, failpoint: &str, visit: u32) -> usize {
    kill_sweep(&bed.documents(), &bed.path("cursors.db"), &bed.path("out.ndjson"), failpoint, visit);
    bed.lines().len()
}

/// Sweeps to the end after a kill; how many rows came twice.
async fn survives(failpoint: &str, visit: u32) -> usize {
    let bed = Bed::new().with("mssql.table.orders.batch.size", BATCH);
    bed.insert(1_000);
    killed_at(&bed, failpoint, visit);
    bed.check().await;
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    let mut times: BTreeMap<i64, usize> = BTreeMap::new();
    bed.keys().iter().for_each(|key| *times.entry(key.parse().expect("digits")).or_default() += 1);
    assert_eq!(times.keys().map(i64::to_string).collect::<Vec<_>>(), bed.expected(), "nothing lost");
    assert!(times.values().all(|times| *times <= 2), "no row more than twice");
    bed.keys().len() - times.len()
}

#[tokio::test]
async fn killed_between_acknowledgement_and_commit_loses_nothing_and_repeats_at_most_two_batches() {
    // The first page is the activation, which has no rows.
    for (failpoint, visit) in [("page-acknowledged", 2), ("page-acknowledged", 6), ("before-commit", 3)] {
        let twice = survives(failpoint, visit).await;
        assert!(twice > 0, "a kill between acknowledgement and commit must show ({failpoint}:{visit})");
        assert!(twice <= UNCOMMITTED * BATCH, "{twice} rows twice at {failpoint}:{visit}");
    }
}

#[tokio::test]
async fn killed_between_the_last_commit_and_the_release_loses_nothing_and_repeats_at_most_two_batches() {
    // Whether the last batch was committed by then is a matter of time: it may show, and need not.
    let twice = survives("before-release", 1).await;
    assert!(twice <= UNCOMMITTED * BATCH, "{twice} rows twice");
}

#[tokio::test]
async fn killed_before_the_activation_is_committed_begins_anew_and_loses_nothing() {
    let twice = survives("before-commit", 1).await;
    assert!(twice <= UNCOMMITTED * BATCH, "{twice}");
    // With start=latest nothing is sent before the boundary is durable.
    let bed = Bed::new().with("mssql.table.orders.start", "latest");
    bed.insert(10);
    assert_eq!(killed_at(&bed, "before-release", 1), 0);
    bed.insert(5);
    assert_eq!(bed.sweep().await.rows, 0, "another boundary, and no row was sent before it");
    bed.insert(5);
    bed.sweep().await;
    assert_eq!(bed.keys(), bed.expected()[15..]);
}
