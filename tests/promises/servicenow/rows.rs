//! Which rows arrive: each once, whatever the table looks like and whenever a run ends.

use tablesweep::cursor::Phase;
use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Command, Fields, Generate, Ids};

use crate::laptop::Laptop;

#[tokio::test]
async fn twelve_thousand_rows_of_one_second_arrive_once_and_in_order_across_runs() {
    for overlap in [2, 0] {
        let mut laptop = Laptop::new().with("snow.source.batch.size", 5000).with("snow.source.overlap.seconds", overlap);
        laptop.generate(12_000, 12_000);
        laptop.max_rows = Some(7_000);
        let first = laptop.sweep().await;
        assert_eq!((first.outcome, first.rows), (Outcome::More, 7_000), "{first:?}");
        laptop.max_rows = Some(10);
        for _ in 0..5 {
            assert_eq!(laptop.sweep().await.rows, 10);
        }
        laptop.max_rows = None;
        let last = laptop.sweep().await;
        assert_eq!((last.outcome, last.phase), (Outcome::CaughtUp, Some(Phase::Stream)), "{last:?}");
        assert_eq!(laptop.versions(), laptop.expected(), "overlap {overlap}");
        let idle = laptop.sweep().await;
        assert_eq!((idle.rows, idle.outcome), (0, Outcome::CaughtUp));
    }
}

#[tokio::test]
async fn ten_rows_at_a_time_from_the_start_make_progress_through_a_large_second() {
    let mut laptop = Laptop::new().with("snow.source.batch.size", 50);
    laptop.generate(300, 200);
    laptop.max_rows = Some(10);
    for _ in 0..30 {
        assert_eq!(laptop.sweep().await.rows, 10);
    }
    laptop.sweep().await;
    assert_eq!(laptop.versions(), laptop.expected());
}

#[tokio::test]
async fn an_update_within_the_cursors_second_and_late_rows_are_delivered() {
    let laptop = Laptop::new().with("snow.source.overlap.seconds", 5);
    laptop.api.load("incident", rows_at("2026-03-01 11:00:00", "8", 3)).expect("rows");
    laptop.sweep().await;
    let news = |laptop: &Laptop, before: usize| laptop.lines()[before..].iter().map(|line| line.key.clone()).collect::<Vec<_>>();

    let row = laptop.lines()[1].key.clone();
    laptop.api.update("incident", &row, [("sys_updated_on", "2026-03-01 11:00:00"), ("number", "changed")].into()).expect("an update");
    laptop.sweep().await;
    assert_eq!(news(&laptop, 3), [row]);

    let late = laptop.api.load("incident", rows_at("2026-03-01 11:00:00", "1", 1)).expect("a late row");
    laptop.sweep().await;
    assert_eq!(news(&laptop, 4), late, "a smaller sys_id in the cursor's second");

    for _ in 0..60 {
        laptop.api.step_clock(60);
        assert_eq!(laptop.sweep().await.rows, 0);
    }
    let late = laptop.api.load("incident", rows_at("2026-03-01 10:59:56", "5", 1)).expect("a late row");
    laptop.sweep().await;
    assert_eq!(news(&laptop, 5), late, "inside the overlap after an hour of idle ticks");
}

fn rows_at(second: &str, digit: &str, count: usize) -> Vec<Fields> {
    let id = |n: usize| format!("{}{n:02x}", digit.repeat(30));
    (0..count).map(|n| Fields::from([("sys_id", id(n)), ("sys_updated_on", second.to_owned()), ("number", format!("N{n}"))])).collect()
}

#[tokio::test]
async fn an_idle_table_of_any_shape_delivers_nothing_again_in_a_hundred_ticks() {
    for (rows, per_second, batch) in [(40, 40, 10), (40, 1, 10), (3, 3, 100), (0, 1, 10)] {
        let laptop = Laptop::new().with("snow.source.batch.size", batch);
        laptop.generate(1, 1);
        laptop.generate(rows, per_second);
        laptop.sweep().await;
        laptop.sweep().await;
        for _ in 0..100 {
            laptop.api.step_clock(5);
            let idle = laptop.sweep().await;
            assert_eq!((idle.rows, idle.outcome), (0, Outcome::CaughtUp), "{rows} rows, {per_second} per second");
        }
        let (mut all, mut expected) = (laptop.versions(), laptop.expected());
        all.sort();
        expected.sort();
        assert_eq!(all, expected);
    }
}

#[tokio::test]
async fn a_backfill_in_pages_of_two_thousand_and_an_idle_tick_ask_as_little_as_they_can() {
    let laptop = Laptop::new().with("snow.source.batch.size", 2000).with("snow.table.inc.fields", "sys_id,sys_updated_on");
    laptop.generate(100_000, 7);
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.outcome), (100_000, Outcome::CaughtUp), "{report:?}");
    assert!(report.requests <= 55, "{} requests", report.requests);
    assert_eq!(laptop.lines().len(), 100_000);
    laptop.api.step_clock(5);
    let idle = laptop.sweep().await;
    assert_eq!((idle.requests, idle.rows), (1, 0));
}

#[tokio::test]
async fn hidden_rows_among_three_thousand_are_stepped_over_and_counted() {
    let laptop = Laptop::new().with("snow.source.batch.size", 100);
    laptop.generate(3_030, 30);
    // A third: every third row at first, then whole pages and whole seconds.
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    let hidden: Vec<&String> =
        ids.iter().enumerate().filter(|(n, _)| (*n < 1_200 && n % 3 == 0) || (1_500..2_110).contains(n)).map(|(_, id)| id).collect();
    assert_eq!(hidden.len(), 1_010);
    laptop.api.hide("incident", hidden.into_iter().cloned()).expect("hidden");
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows, report.rows_hidden), (Outcome::CaughtUp, 2_020, 1_010), "{report:?}");
    assert_eq!(laptop.versions(), laptop.expected());
    laptop.api.step_clock(5);
    let idle = laptop.sweep().await;
    assert_eq!((idle.rows, idle.rows_hidden), (0, 0));
    assert_eq!(laptop.item().await.progress.counters.hidden, 1_010, "counted once");
}

#[tokio::test]
async fn a_short_or_empty_page_is_not_the_end() {
    let laptop = Laptop::new().with("snow.source.batch.size", 5);
    laptop.generate(10, 1);
    let ids: Vec<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    laptop.api.hide("incident", ids[..5].to_vec()).expect("hidden");
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.rows_hidden), (5, 5), "{report:?}");
}

#[tokio::test]
async fn the_servers_collation_decides_the_order_of_ids() {
    let laptop = Laptop::new().with("snow.source.batch.size", 20);
    let settings = serde_json::Map::from_iter([("collation".to_owned(), "case_insensitive".into())]);
    laptop.api.apply(Command::Settings { settings }).expect("set");
    let start = Some("2026-02-01 00:00:00".to_owned());
    let spec = Generate { start, per_second: 70, ids: Ids::MixedCase, ..Generate::rows("incident", 200) };
    laptop.api.generate(spec).expect("rows");
    let report = laptop.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    let (mut all, mut expected) = (laptop.versions(), laptop.expected());
    all.sort();
    expected.sort();
    assert_eq!(all, expected);
}

#[tokio::test]
async fn a_view_is_swept_by_its_prefixed_fields() {
    let mut laptop = Laptop::new();
    laptop.generate(30, 3);
    let view = serde_json::from_value(serde_json::json!({ "parts": [{ "table": "incident", "prefix": "inc" }] })).expect("a view");
    laptop.api.view("u_incident_view", view).expect("a view");
    for (key, value) in [("name", "u_incident_view"), ("timestamp.field", "inc_sys_updated_on"), ("sys.id.field", "inc_sys_id")] {
        laptop.set(&format!("snow.table.inc.{key}"), value);
    }
    let report = laptop.sweep().await;
    assert_eq!((report.rows, report.outcome), (30, Outcome::CaughtUp), "{report:?}");
    let first = &laptop.lines()[0];
    assert_eq!(first.value["inc_sys_id"], first.key.as_str());
    laptop.api.step_clock(5);
    assert_eq!(laptop.sweep().await.rows, 0);
}
