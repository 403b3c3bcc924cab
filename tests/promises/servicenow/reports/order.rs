//! Rows that come twice, or not at all, because of how an instance orders them.

use std::collections::BTreeSet;
use std::time::Duration;

use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Command, Effect, Fault, Fields, Generate};

use crate::laptop::Laptop;

/// Report 8: without an order an instance gives one row on two pages. Report 34: an order by a field with equal values does the same.
/// Report 48: an offset does it too, when rows change meanwhile.
#[tokio::test]
async fn every_page_asks_for_the_whole_order_and_none_for_an_offset() {
    for (per_second, batch) in [(1, 7), (40, 7), (200, 50)] {
        let laptop = Laptop::new().with("snow.source.batch.size", batch).with("snow.source.startup.probe", false);
        laptop.generate(200, per_second);
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 200), "{report:?}");
        assert_eq!(laptop.versions(), laptop.expected(), "{per_second} per second");
        let reads = laptop.api.reads("incident");
        let pages: Vec<_> = reads.iter().filter(|read| read.limit > 1).collect();
        assert!(pages.len() > 3);
        for read in pages {
            assert!(read.query.ends_with("^ORDERBYsys_updated_on^ORDERBYsys_id"), "{}", read.query);
            assert_eq!(read.param("sysparm_offset"), None);
        }
    }
}

/// Report 48: rows that are updated while the table is read by offset are missed, or come twice.
#[tokio::test]
async fn rows_that_change_while_the_table_is_read_arrive_in_their_last_state() {
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(60, 4);
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    for (page, id) in [(1, &ids[50]), (2, &ids[5]), (3, &ids[35])] {
        let update = Command::Update { table: "incident".into(), sys_id: id.clone(), fields: [("number", format!("page {page}"))].into() };
        laptop.api.fault(Fault::then(vec![update]).skip(page));
    }
    laptop.sweep().await;
    laptop.api.step_clock(10);
    // The first of these learns that the clock has jumped.
    laptop.sweep().await;
    laptop.sweep().await;
    assert_eq!(laptop.api.pending_faults(), 0);
    let delivered = laptop.versions();
    assert!(laptop.expected().iter().all(|version| delivered.contains(version)));
    assert!(delivered.len() <= 63, "each state at most once");
}

/// Report 12: rows were updated over and over because timestamps were compared as they looked. Reports 21 and 23: `>=` sends the last record again
/// with each poll.
#[tokio::test]
async fn a_row_that_does_not_change_comes_once_however_often_it_is_read_again() {
    for (rows, overlap) in [(1, 0), (1, 2), (1, 86_400), (30, 0), (30, 2), (30, 86_400)] {
        let laptop = Laptop::new().with("snow.source.batch.size", 10).with("snow.source.overlap.seconds", overlap);
        let now = laptop.api.now();
        let row = |n: usize| Fields::from([("sys_updated_on", now.clone()), ("number", format!("N{n}"))]);
        laptop.api.load("incident", (0..rows).map(row).collect()).expect("rows");
        for _ in 0..12 {
            laptop.api.step_clock(5);
            let report = laptop.sweep().await;
            assert_eq!(report.outcome, Outcome::CaughtUp);
        }
        let (mut all, mut expected) = (laptop.versions(), laptop.expected());
        all.sort();
        expected.sort();
        assert_eq!(all, expected, "{rows} rows of one second, an overlap of {overlap} s");
    }
}

/// Report 44: the end rolls on, because the table grows faster than it is read.
#[tokio::test]
async fn a_table_that_grows_faster_than_it_is_read_ends_each_sweep() {
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(50, 5);
    let grow = Command::Generate(Generate { per_second: 10, ..Generate::rows("incident", 10) });
    laptop.api.fault(Fault::new(Effect::Then { commands: vec![Command::StepClock { seconds: 1 }, grow] }).times(30));
    let report = laptop.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    laptop.api.clear_faults();
    laptop.api.step_clock(10);
    laptop.sweep().await;
    laptop.sweep().await;
    let (mut all, mut expected) = (laptop.versions(), laptop.expected());
    all.sort();
    expected.sort();
    assert_eq!(all, expected);
}

/// Report 51: what is appended to a query of several branches binds only the last of them, so that the others are read from the start for ever.
#[tokio::test]
async fn a_query_with_several_branches_reads_no_branch_again() {
    let laptop = Laptop::new().with("snow.source.batch.size", 7).with("snow.table.inc.query", "active=true^NQpriority=1^ORpriority=2^EQ");
    let row = |n: usize| {
        let active = if n.is_multiple_of(2) { "true" } else { "false" };
        Fields::from([
            ("active", active.to_owned()),
            ("priority", (n % 5).to_string()),
            ("sys_updated_on", format!("2026-02-01 00:00:{:02}", n / 2)),
        ])
    };
    laptop.api.load("incident", (0..100).map(row).collect()).expect("rows");
    let report = laptop.sweep().await;
    let wanted = (0..100).filter(|n| n % 2 == 0 || n % 5 == 1 || n % 5 == 2).count();
    assert_eq!((report.rows as usize, report.outcome), (wanted, Outcome::CaughtUp), "{report:?}");
    assert_eq!(laptop.sweep().await.rows, 0);
    assert_eq!(laptop.lines().len(), wanted);
}

/// Report 55: one trigger comes twice, and two invocations overlap.
#[tokio::test]
async fn a_duplicate_trigger_in_the_middle_of_a_sweep_doubles_nothing() {
    let laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.generate(100, 3);
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 20 }).always());
    let late = async {
        tokio::time::timeout(Duration::from_secs(20), async {
            while laptop.api.counters().requests < 3 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the first sweep is under way");
        laptop.sweep().await
    };
    let (first, second) = tokio::join!(laptop.sweep(), late);
    assert_eq!((first.outcome, second.outcome), (Outcome::CaughtUp, Outcome::Skipped), "{first:?} {second:?}");
    assert_eq!(second.reason.expect("a reason").code, "Cursor.Leased");
    let distinct: BTreeSet<_> = laptop.versions().into_iter().collect();
    assert_eq!((laptop.versions().len(), distinct.len()), (100, 100));
}
