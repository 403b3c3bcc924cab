//! Signals, and two processes that want one table.

use std::io::Read as _;
use std::process::Child;

use tablesweep_testbed::table_api::{Effect, Fault};

use super::bed::{Bed, PATIENCE, ended, lines, signal, soon, wait};

const ROWS: u64 = 20_000;

/// A bed with enough rows for several pages.
fn large() -> Bed {
    let mut bed = Bed::new(ROWS);
    bed.set("snow.table.inc.batch.size", "500");
    bed
}

/// A sweep that holds its lease and cannot go on: nobody reads the records that it writes.
fn stuck(bed: &Bed) -> Child {
    let mut child = bed.command(&["sweep", "--sink", "-"]).spawn().expect("started");
    let mut first = [0];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("a record");
    assert_eq!(&first, b"{");
    child
}

#[test]
fn an_interrupted_sweep_commits_what_was_acknowledged_and_ends_with_130() {
    for name in ["INT", "TERM"] {
        let bed = large();
        let child = bed.command(&["sweep", "--sink", "ndjson:rows.ndjson", "--output", "json"]).spawn().expect("started");
        assert!(soon(|| !lines(&bed.path("rows.ndjson")).is_empty()), "nothing was delivered");
        signal(&child, name);
        let ended = ended(child).expect(130);
        let delivered = bed.keys().len() as u64;
        assert!((1..ROWS).contains(&delivered), "{delivered}: the signal came too late to prove anything");
        assert_eq!(ended.table()["rows"], delivered);
        let status = bed.status();
        assert_eq!((&status["rows"], &status["leased"]), (&delivered.into(), &false.into()), "committed and released");
        bed.sweep(&[]).expect(0);
        let mut keys = bed.keys();
        keys.sort();
        keys.dedup();
        assert_eq!((bed.keys().len() as u64, keys.len() as u64), (ROWS, ROWS), "each row once");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let bed = large();
    let mut child = stuck(&bed);
    signal(&child, "INT");
    let mut err = child.stderr.take().expect("a pipe");
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("stopping") {
        let mut part = [0; 256];
        let read = err.read(&mut part).expect("read");
        assert_ne!(read, 0, "it ended instead: {}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&part[..read]);
    }
    assert!(child.try_wait().expect("a child").is_none(), "nobody reads its records, so it waits");
    signal(&child, "INT");
    assert_eq!(wait(&mut child), Some(130));
}

#[test]
fn a_table_that_another_process_sweeps_is_skipped_and_its_cursor_cannot_be_set() {
    let bed = large();
    let mut child = stuck(&bed);
    let table = bed.sweep(&[]).expect(0).table();
    assert_eq!((&table["outcome"], &table["reason"]["code"]), (&"skipped".into(), &"Cursor.Leased".into()));
    assert_eq!(bed.status()["leased"], true);
    for command in [&["cursor", "reset"][..], &["cursor", "pause"], &["cursor", "rewind", "--to", "2026-01-01 00:00:00"]] {
        let ended = bed.run(&[command, &["--table", "inc", "--yes"]].concat()).expect(1);
        assert!(ended.stderr.contains("Cursor.Leased"), "{}", ended.stderr);
    }
    child.kill().expect("killed");
    wait(&mut child);
    assert_eq!(bed.status()["leased"], false, "a lease dies with its process");
    bed.run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(0);
}

#[test]
fn a_catch_up_waits_for_the_lease_of_another_process() {
    let bed = large();
    let mut holder = stuck(&bed);
    let mut command = bed.command(&["sweep", "--mode", "catch-up", "--sink", "ndjson:rows.ndjson", "--output", "json"]);
    let log = std::fs::File::create(bed.path("log")).expect("a file");
    let child = command.env("TABLESWEEP_LOG", "info").stderr(log).spawn().expect("started");
    let has_met_the_lease = || std::fs::read_to_string(bed.path("log")).is_ok_and(|log| log.contains("Cursor.Leased"));
    assert!(soon(has_met_the_lease), "the catch-up was not refused the lease within {PATIENCE:?}");
    holder.kill().expect("killed");
    wait(&mut holder);
    let table = ended(child).expect(0).table();
    assert_eq!(table["outcome"], "caught_up");
    let mut keys = bed.keys();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len() as u64, ROWS);
}

#[test]
fn a_catch_up_ends_when_its_time_is_over() {
    let bed = large();
    let mut holder = stuck(&bed);
    let table = bed.sweep(&["--mode", "catch-up", "--max-seconds", "10"]).expect(0).table();
    assert_eq!((&table["outcome"], &table["reason"]["code"]), (&"skipped".into(), &"Cursor.Leased".into()));
    holder.kill().expect("killed");
    wait(&mut holder);
}

#[test]
fn a_catch_up_whose_time_is_over_has_more_and_goes_on_next_time() {
    let bed = large();
    // Pages are slow, the start-up probe is not: it would take most of the two seconds that are not kept in reserve.
    bed.api.fault(Fault::new(Effect::DelayHeaders { millis: 400 }).table("incident").limit_over(2).always());
    let table = bed.sweep(&["--mode", "catch-up", "--max-seconds", "10"]).expect(0).table();
    assert_eq!((&table["outcome"], &table["reason"]), (&"more".into(), &serde_json::Value::Null));
    let first = bed.keys().len();
    assert!((1..ROWS as usize).contains(&first), "{first}");
    bed.api.clear_faults();
    bed.sweep(&["--mode", "catch-up"]).expect(0);
    let mut keys = bed.keys();
    keys.sort();
    keys.dedup();
    assert_eq!((bed.keys().len() as u64, keys.len() as u64), (ROWS, ROWS), "each row once");
}

#[test]
fn a_catch_up_tries_a_failing_table_three_times_and_delivers_each_row_once_when_it_recovers() {
    let bed = Bed::new(200);
    // Two tries of a request within a sweep: four answers are two failed sweeps.
    bed.api.fault(Fault::new(Effect::MalformedJson).table("incident").times(4));
    assert_eq!(bed.sweep(&["--mode", "catch-up"]).expect(0).table()["rows"], 200);
    bed.api.fault(Fault::new(Effect::MalformedJson).table("incident").always());
    bed.api.clear_log();
    assert_eq!(bed.sweep(&["--mode", "catch-up"]).expect(1).table()["outcome"], "failed");
    let stream = bed.api.reads("incident").len();
    bed.api.clear_log();
    bed.sweep(&[]).expect(1);
    assert_eq!(stream, 3 * bed.api.reads("incident").len(), "three sweeps");
}
