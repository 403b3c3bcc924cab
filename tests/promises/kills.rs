//! kill -9 at named moments, in a real process; then a run to the end.
//!
//! The program stops at a failpoint and is killed there, so that each test kills exactly where its name says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use tablesweep::sweep::{Outcome, UNCOMMITTED};
use tablesweep_testbed::program::program;
use tablesweep_testbed::said;

use crate::laptop::Laptop;

const PAGE: usize = 50;

/// Rows that share a second, where a test does not say otherwise.
const PER_SECOND: usize = 3;

/// What may come twice: the pages that were not committed, and, as the window of these rows is too large for the cursor item and so is
/// lost with the process, the rows of the overlap of two seconds and of the cursor's own.
const BOUND: usize = UNCOMMITTED * PAGE + 3 * PER_SECOND;

/// Starts a sweep, kills it at the nth visit of the failpoint, and answers how many rows lay in the file then.
fn killed_at(laptop: &Laptop, failpoint: &str, visit: u32) -> usize {
    kill_sweep(&laptop.documents(), &laptop.path("cursors.db"), &laptop.path("out.ndjson"), failpoint, visit);
    laptop.lines().len()
}

/// Starts the program with these documents, cursors and records, and kills it at the nth visit of the failpoint.
pub fn kill_sweep(documents: &Path, cursors: &Path, records: &Path, failpoint: &str, visit: u32) {
    let mut child = Command::new(program("tablesweep"))
        .args(["sweep", "--output", "json", "--config"])
        .arg(documents)
        .arg("--cursors")
        .arg(format!("sqlite:{}", cursors.display()))
        .arg("--sink")
        .arg(format!("ndjson:{}", records.display()))
        .env("TABLESWEEP_FAILPOINT", format!("{failpoint}:{visit}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let kept = |line: &String| said::keep("cli", line);
    let reached = stderr.lines().map_while(Result::ok).inspect(kept).any(|line| line == format!("failpoint {failpoint}"));
    child.kill().expect("kill -9");
    child.wait().expect("it ended");
    assert!(reached, "the sweep ended before the failpoint {failpoint}:{visit}");
}

/// Kills at the moment, runs to the end, and checks what came of it. Answers the number of rows that came twice.
async fn survives(laptop: &Laptop, failpoint: &str, visit: u32, bound: usize) -> usize {
    let before = laptop.lines().len();
    let written = killed_at(laptop, failpoint, visit);
    assert!(written > before || failpoint == "before-release", "killed before anything was written");
    let report = laptop.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    let delivered = laptop.versions();
    let distinct: BTreeSet<_> = delivered.iter().cloned().collect();
    assert_eq!(distinct, laptop.expected().into_iter().collect(), "nothing lost");
    let twice = delivered.len() - distinct.len();
    assert!(twice <= bound, "{twice} rows twice at {failpoint}:{visit}, {bound} allowed");
    let mut counts = BTreeMap::new();
    delivered.iter().for_each(|version| *counts.entry(version).or_insert(0) += 1);
    assert!(counts.values().all(|times| *times <= 2), "no row more than twice");
    twice
}

fn laptop(per_second: u64) -> Laptop {
    let laptop = Laptop::new().with("snow.source.batch.size", PAGE);
    laptop.generate(1_000, per_second);
    laptop
}

#[tokio::test]
async fn killed_after_a_page_was_written_loses_nothing_and_repeats_at_most_two_pages_and_the_overlap() {
    for visit in [1, 2, 7] {
        let twice = survives(&laptop(PER_SECOND as u64), "page-acknowledged", visit, BOUND).await;
        assert!(twice > 0, "a kill between write and commit must show");
    }
}

#[tokio::test]
async fn killed_between_write_and_commit_loses_nothing_and_repeats_at_most_two_pages_and_the_overlap() {
    for visit in [1, 3] {
        let twice = survives(&laptop(PER_SECOND as u64), "before-commit", visit, BOUND).await;
        assert!(twice > 0, "a kill between write and commit must show");
    }
}

#[tokio::test]
async fn killed_between_the_last_page_and_the_release_loses_nothing_and_repeats_at_most_two_pages_and_the_overlap() {
    let twice = survives(&laptop(PER_SECOND as u64), "before-release", 1, BOUND).await;
    assert!(twice > 0, "the last pages were not committed yet");
}

#[tokio::test]
async fn killed_right_after_a_commit_repeats_only_what_was_sent_since() {
    for visit in [1, 4] {
        survives(&laptop(PER_SECOND as u64), "committed", visit, BOUND).await;
    }
}

#[tokio::test]
async fn killed_in_the_middle_of_a_large_second_repeats_at_most_two_pages_and_the_overlap() {
    // The window of such a second lies beside the item and is lost with the process: what was delivered of it is the overlap.
    let laptop = laptop(1_000);
    let written = killed_at(&laptop, "page-acknowledged", 5);
    assert!(written >= 5 * PAGE);
    for _ in 0..40 {
        laptop.sweep().await;
    }
    let delivered = laptop.versions();
    let distinct: BTreeSet<_> = delivered.iter().cloned().collect();
    assert_eq!(distinct, laptop.expected().into_iter().collect(), "nothing lost");
    assert!(delivered.len() - distinct.len() <= UNCOMMITTED * PAGE + written, "{} rows twice", delivered.len() - distinct.len());
    let settled = laptop.lines().len();
    laptop.sweep().await;
    assert_eq!(laptop.lines().len(), settled, "and then never again");
}

#[tokio::test]
async fn a_table_that_kills_its_sweep_again_and_again_is_asked_for_smaller_pages_and_then_parked() {
    let laptop = laptop(PER_SECOND as u64);
    for _ in 0..3 {
        killed_at(&laptop, "page-acknowledged", 1);
    }
    let report = laptop.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Sweep.Died"));
    let limits: Vec<usize> = laptop.api.reads("incident").iter().map(|read| read.limit).collect();
    assert!(limits.contains(&(PAGE / 2)) && limits.contains(&(PAGE / 4)), "{limits:?}");
    let report = laptop.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "by hand it is tried at once: {report:?}");
}
