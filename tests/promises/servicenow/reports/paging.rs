//! Pages that are short, cut, or move while they are read.

use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Effect, Fault};

use crate::laptop::Laptop;

/// Report 1: KB3047115. A limit of 36 gives 12 rows, or none, because row access rules come after the limit.
#[tokio::test]
async fn hidden_rows_wherever_they_lie_in_a_page_end_no_sweep() {
    let first_page = |n: usize| n < 5;
    let middle = |n: usize| (7..18).contains(&n);
    let last_page = |n: usize| n >= 25;
    let all_but_the_last = |n: usize| n < 29;
    let every_other = |n: usize| n.is_multiple_of(2);
    let hidden: [(&str, &dyn Fn(usize) -> bool); 5] = [
        ("first page", &first_page),
        ("more than two pages in the middle", &middle),
        ("last page", &last_page),
        ("all but the last", &all_but_the_last),
        ("every other", &every_other),
    ];
    for (name, is_hidden) in hidden {
        for per_second in [1, 30] {
            let laptop = Laptop::new().with("snow.source.batch.size", 5);
            laptop.generate(30, per_second);
            let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
            let ids: Vec<String> = ids.into_iter().enumerate().filter(|(n, _)| is_hidden(*n)).map(|(_, id)| id).collect();
            let count = ids.len() as u64;
            laptop.api.hide("incident", ids).expect("hidden");
            let report = laptop.sweep().await;
            let found = (report.outcome, report.rows, report.rows_hidden);
            assert_eq!(found, (Outcome::CaughtUp, 30 - count, count), "{name}, {per_second} per second: {report:?}");
            assert_eq!(laptop.versions(), laptop.expected(), "{name}, {per_second} per second");
        }
    }
}

/// Report 3: a short page, and rows that are `{}`. Report 10: 26,119 rows where 26,143 were expected, and nothing said which.
#[tokio::test]
async fn rows_that_are_missing_or_empty_are_counted_so_that_somebody_can_ask_for_them() {
    let laptop = Laptop::new().with("snow.source.batch.size", 200);
    laptop.generate(2_614, 7);
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    laptop.api.hide("incident", ids.iter().step_by(109).cloned()).expect("hidden");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows, report.rows_hidden), (Outcome::CaughtUp, 2_590, 24), "{report:?}");
    assert_eq!(laptop.item().await.progress.counters.hidden, 24);
    assert_eq!(laptop.versions(), laptop.expected());

    let laptop = Laptop::new().with("snow.source.batch.size", 2).with("snow.source.startup.probe", false);
    laptop.generate(3, 1);
    laptop.api.fault(Fault::new(Effect::EmptyRows { every: 2 }));
    let report = laptop.sweep().await;
    assert_eq!(
        (report.outcome, report.rows),
        (Outcome::CaughtUp, 3),
        "a row that was empty once comes when it is asked for again: {report:?}"
    );
    assert_eq!(laptop.versions(), laptop.expected());
}

/// Report 20: only the first 1,000 rows came. Report 42: rows beyond 10,000 were lost. An instance may have a page limit of its own, below the one
/// that is asked for.
#[tokio::test]
async fn a_page_limit_of_the_instances_own_loses_no_row() {
    for (rows, per_second, clamp, batch) in
        [(2_500, 3, 1_000, 5_000), (2_500, 2_500, 1_000, 5_000), (12_000, 9, 10_000, 20_000), (150, 1, 100, 5_000)]
    {
        let laptop = Laptop::new().with("snow.source.batch.size", batch).with("snow.table.inc.fields", "sys_id,sys_updated_on");
        laptop.generate(rows, per_second);
        laptop.api.configure(|settings| settings.limit_clamp = Some(clamp)).expect("a limit");
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, rows), "{clamp} of {batch}: {report:?}");
        assert_eq!(laptop.versions(), laptop.expected(), "{clamp} of {batch}");
    }
}

/// Report 31: a page failed five times, was skipped, and the sync went on behind it. Report 37: a refusal on page two moved the bookmark.
#[tokio::test]
async fn a_page_that_fails_is_not_passed_over() {
    for (status, outcome) in
        [(500, Outcome::Failed), (502, Outcome::Failed), (429, Outcome::Failed), (403, Outcome::Parked), (400, Outcome::Parked)]
    {
        let laptop = Laptop::new().with("snow.source.batch.size", 10).with("snow.source.startup.probe", false);
        laptop.generate(50, 1);
        laptop.api.fault(Fault::status(status, "Field(s) present in the query do not have permission to be read").skip(1).times(5));
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (outcome, 10), "{status}: {report:?}");
        let tenth = laptop.expected().remove(9);
        let cursor = report.cursor.expect("a cursor");
        assert_eq!((cursor.get("timestamp"), cursor.get("sys_id")), (Some(tenth.0.as_str()), Some(tenth.1.as_str())), "{status}");
        laptop.api.clear_faults();
        assert_eq!(laptop.sweep().await.rows, 40, "{status}");
        assert_eq!(laptop.versions(), laptop.expected(), "{status}");
    }
}
