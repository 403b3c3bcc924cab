//! Where a table begins, and that it goes on from there.

use tablesweep::cursor::{Expect, Phase};
use tablesweep::operate::Order;
use tablesweep::sweep::Outcome;

use super::bed::{Bed, code};

#[tokio::test]
async fn the_first_sweep_delivers_no_row_that_was_there_and_the_next_every_row_since() {
    let bed = Bed::new().with("mssql.table.orders.start", "latest");
    bed.insert(7);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.phase, report.rows), (Outcome::CaughtUp, Some(Phase::Stream), 0), "{report:?}");
    assert_eq!(bed.cursor().await.as_deref(), Some("7"));
    // While nothing runs.
    bed.insert(5);
    assert_eq!(bed.sweep().await.rows, 5);
    assert_eq!(bed.keys(), bed.expected()[7..]);
    assert_eq!(bed.sweep().await.rows, 0);
}

#[tokio::test]
async fn a_table_that_hands_its_alias_on_to_another_loses_no_row() {
    let mut bed = Bed::new().with("mssql.table.orders.start", "latest");
    bed.insert(5);
    bed.sweep().await;
    bed.run("CREATE TABLE dbo.fresh (id bigint IDENTITY CONSTRAINT fresh_id PRIMARY KEY, note nvarchar(400))");
    bed.insert(2);
    for (key, value) in [("name", "dbo.orders"), ("topic", "shop.orders"), ("sequence.column", "id"), ("start", "latest")] {
        bed.set(&format!("mssql.table.before.{key}"), value);
    }
    bed.set("mssql.table.orders.name", "dbo.fresh");
    bed.set("mssql.tables", "before,orders");
    let reports = bed.sweep_all().await;
    let said: Vec<_> = reports.iter().map(|report| (report.table.as_str(), report.outcome, report.rows, code(report))).collect();
    assert_eq!(said, [("before", Outcome::CaughtUp, 2, None), ("orders", Outcome::CaughtUp, 0, None)], "{reports:#?}");
    assert_eq!(bed.keys(), bed.expected()[5..]);
}

#[tokio::test]
async fn an_empty_table_is_activated_with_an_explicit_none_and_its_first_row_is_delivered() {
    for start in ["latest", "earliest"] {
        let bed = Bed::new().with("mssql.table.orders.start", start);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 0), "{report:?}");
        let cursor = bed.item().await.progress.cursor.expect("a position");
        assert!(cursor.has("sequence") && cursor.get("sequence").is_none(), "{cursor:?}");
        bed.insert(3);
        assert_eq!(bed.sweep().await.rows, 3);
        assert_eq!(bed.keys(), bed.expected());
    }
}

#[tokio::test]
async fn a_table_may_begin_with_its_first_row_or_above_a_number() {
    let bed = Bed::new();
    bed.insert(9);
    bed.sweep().await;
    assert_eq!(bed.keys(), bed.expected());
    let bed = Bed::new().with("mssql.table.orders.start", "5");
    bed.insert(9);
    bed.sweep().await;
    assert_eq!(bed.keys(), bed.expected()[5..]);
    // Above all rows it waits for them, which is said, and is no regression.
    let bed = Bed::new().with("mssql.table.orders.start", "12");
    bed.insert(9);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, Some("Source.CursorAboveAll")), "{report:?}");
    let message = &report.reason.as_ref().expect("a remark").message;
    assert!(message.contains("where its document says to begin"), "{message}");
    bed.insert(9);
    bed.sweep().await;
    assert_eq!(bed.keys(), bed.expected()[12..]);
}

#[tokio::test]
async fn two_first_sweeps_at_once_agree_on_one_boundary() {
    let bed = Bed::new().with("mssql.table.orders.start", "latest");
    bed.insert(40);
    bed.server
        .fault(tablesweep_testbed::tds::Fault::new(tablesweep_testbed::tds::Effect::Delay(std::time::Duration::from_millis(50))).always());
    let (one, other) = tokio::join!(bed.sweep(), bed.sweep());
    let mut outcomes = [(one.outcome, code(&one)), (other.outcome, code(&other))];
    outcomes.sort_by_key(|(outcome, _)| *outcome == Outcome::Skipped);
    assert_eq!(outcomes, [(Outcome::CaughtUp, None), (Outcome::Skipped, Some("Cursor.Leased"))]);
    assert_eq!(bed.cursor().await.as_deref(), Some("40"));
}

#[tokio::test]
async fn a_baseline_without_a_cursor_is_what_a_cut_activation_leaves_and_is_overwritten() {
    let bed = Bed::new();
    bed.insert(2);
    bed.sweep().await;
    let key = bed.item().await.identity.key();
    bed.order(Order::Reset).await;
    let store = bed.store().await;
    store.put_blob(&key.connector, &key.sibling("baseline"), b"of a process that died", Expect::Any, None).await.expect("written");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
    let baseline = store.get_blob(&key.connector, &key.sibling("baseline")).await.expect("read").expect("there").bytes;
    assert!(String::from_utf8_lossy(&baseline).contains("note"), "the columns");
    let named = bed.item().await.progress.notes["baseline"].clone();
    assert_eq!(named, tablesweep::cursor::baseline_digest(&baseline), "the cursor names it");
}

#[tokio::test]
async fn another_server_database_table_or_column_under_the_alias_is_a_move_and_nothing_is_read() {
    let mut bed = Bed::new();
    bed.run("CREATE TABLE dbo.other (id bigint CONSTRAINT other_id PRIMARY KEY, second int NOT NULL CONSTRAINT other_second UNIQUE)");
    bed.insert(2);
    bed.sweep().await;
    bed.server.add_database("attic");
    for (key, value, what) in [
        ("mssql.host", "localhost", "instance"),
        ("mssql.database", "attic", "instance"),
        ("mssql.table.orders.name", "dbo.other", "table"),
        ("mssql.table.orders.sequence.column", "second", "field"),
    ] {
        let before = bed.config[key].clone();
        bed.set(key, value);
        bed.server.clear_log();
        let report = bed.sweep().await;
        let message = report.reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default();
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Cursor.Moved")), "{key}: {report:?}");
        assert!(message.contains(what), "{message}");
        assert_eq!(bed.server.log(), [], "{key}");
        bed.config[key] = before;
    }
    assert_eq!(bed.sweep().await.outcome, Outcome::CaughtUp, "the document was put back");
}
