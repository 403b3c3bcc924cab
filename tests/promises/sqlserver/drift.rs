//! A table that changes its form, or whose sequence begins anew.

use tablesweep::cursor::Standing;
use tablesweep::operate::{Activity, Order, Place, Rewinding, beside, read_position, status};
use tablesweep::source::LeftOut;
use tablesweep::sweep::{Allowance, ByteBudget, Outcome, TableReport};

use super::bed::{Bed, code};

fn message(report: &TableReport) -> String {
    report.reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default()
}

/// Three rows delivered, two to come, and a new column that has paused the table.
async fn paused_by_a_column() -> Bed {
    let bed = Bed::new();
    bed.insert(3);
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ADD extra int NULL");
    bed.insert(2);
    bed.sweep().await;
    bed
}

async fn activity(bed: &Bed) -> (Activity, Option<String>) {
    let assembly = bed.assembly();
    let places = Place::of(&assembly.documents().connectors[0], &|_| None);
    let report = status(Some(&*bed.store().await), "here", &places, 0).await.expect("a status");
    (report.tables[0].state, report.tables[0].reason.as_ref().map(|reason| reason.code.clone()))
}

#[tokio::test]
async fn a_changed_table_pauses_is_told_once_and_goes_on_when_it_is_as_it_was() {
    let mut bed = Bed::new();
    bed.scheduled = true;
    bed.set("mssql.table.orders.poll.interval.ms", 1_000);
    bed.insert(3);
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ADD extra int NULL");
    bed.insert(4);
    bed.scheduled = false;
    let first = bed.sweep().await;
    assert_eq!((first.outcome, code(&first), first.tried), (Outcome::Paused, Some("Source.SchemaChanged"), true), "{first:?}");
    assert!(message(&first).contains("column extra (int NULL) is new"), "{}", message(&first));
    assert_eq!(activity(&bed).await, (Activity::Paused, Some("Source.SchemaChanged".to_owned())));
    for _ in 0..2 {
        let again = bed.sweep().await;
        assert_eq!((again.outcome, message(&again), again.tried), (Outcome::Paused, message(&first), false), "told already");
    }
    bed.run("ALTER TABLE dbo.orders ALTER COLUMN note nvarchar(400) NOT NULL");
    bed.run("ALTER TABLE dbo.orders ADD more int NULL");
    let other = bed.sweep().await;
    assert!(other.tried && message(&other).contains("more"), "another difference is told: {}", message(&other));
    assert_eq!(bed.cursor().await.as_deref(), Some("3"), "the cursor stays");
    bed.run("ALTER TABLE dbo.orders DROP COLUMN extra, more");
    let restored = bed.sweep().await;
    assert_eq!((restored.outcome, restored.rows), (Outcome::CaughtUp, 4), "{restored:?}");
    assert_eq!(bed.keys(), bed.expected());
    assert_eq!(activity(&bed).await, (Activity::Active, None));
}

#[tokio::test]
async fn a_longer_text_and_a_dropped_null_do_not_pause_a_table() {
    let bed = Bed::new();
    bed.insert(3);
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ALTER COLUMN note nvarchar(500) NOT NULL");
    bed.insert(2);
    for rows in [2, 0] {
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, rows), "{report:?}");
    }
}

#[tokio::test]
async fn an_accepted_schema_goes_on_from_the_same_cursor_with_the_new_column() {
    let bed = paused_by_a_column().await;
    let (announcement, outcome) = bed.order(Order::AcceptSchema).await;
    assert!(outcome.changed && announcement.contains("extra"), "{announcement}");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
    assert_eq!(bed.keys(), bed.expected());
    assert_eq!(bed.lines()[3].text, "{\"id\":4,\"note\":\"row 0\",\"extra\":null}");
    assert_eq!(bed.sweep().await.outcome, Outcome::CaughtUp);
}

#[tokio::test]
async fn a_schema_that_changed_once_more_is_not_accepted_with_the_one_that_was_told() {
    let bed = Bed::new();
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ADD extra int NULL");
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ADD unseen int NULL");
    bed.order(Order::AcceptSchema).await;
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::Paused);
    assert!(message(&report).contains("unseen") && !message(&report).contains("extra"), "{}", message(&report));
}

#[tokio::test]
async fn a_table_that_is_altered_between_the_look_and_the_rows_delivers_no_row_of_the_old_form() {
    let bed = Bed::new();
    bed.insert(3);
    bed.sweep().await;
    bed.insert(2);
    let drop = tablesweep_testbed::tds::Effect::Before("ALTER TABLE dbo.orders DROP COLUMN note".to_owned());
    bed.server.fault(tablesweep_testbed::tds::Fault::new(drop).containing("select top"));
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Paused, Some("Source.SchemaChanged")), "{report:?}");
    assert_eq!(bed.keys().len(), 3);
}

#[tokio::test]
async fn a_reset_while_paused_says_what_it_skips_and_begins_anew_with_the_new_form() {
    let bed = Bed::new().with("mssql.table.orders.start", "latest");
    bed.sweep().await;
    bed.insert(3);
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ADD extra int NULL");
    bed.insert(2);
    bed.sweep().await;
    let cursor = bed.item().await.progress.cursor.expect("a position");
    let table = bed.assembly().table("shop", "orders").await.expect("the table");
    let allowance = Allowance::new(bed.host.clone(), None, ByteBudget::new(0));
    assert_eq!(
        table.left_out_by_reset(&cursor, &allowance).await,
        Ok(Some(LeftOut { rows: 2, began_anew: false })),
        "said before it is done"
    );
    let (announcement, _) = bed.order(Order::Reset).await;
    assert!(announcement.contains("start=latest"), "{announcement}");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 0), "{report:?}");
    bed.insert(1);
    bed.sweep().await;
    assert_eq!(bed.keys(), ["1", "2", "3", "6"], "rows 4 and 5 were skipped, as announced");
}

#[tokio::test]
async fn a_sequence_that_began_anew_pauses_the_table_until_it_passes_the_cursor_or_is_rewound() {
    let mut bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)");
    bed.run("INSERT INTO dbo.orders (id) VALUES (998), (999), (1000)");
    bed.sweep().await;
    bed.run("TRUNCATE TABLE dbo.orders");
    let empty = bed.sweep().await;
    assert_eq!((empty.outcome, code(&empty)), (Outcome::CaughtUp, None), "an empty table is none: {empty:?}");
    bed.run("INSERT INTO dbo.orders (id) VALUES (1), (2), (3)");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Paused, Some("Source.SequenceRegressed")), "{report:?}");
    assert!(message(&report).contains("the cursor at 1000"), "{}", message(&report));
    assert!(matches!(bed.item().await.standing, Standing::Waiting(_)));
    // A reset would pass over all that is there, and says so.
    let cursor = bed.item().await.progress.cursor.expect("a position");
    let allowance = Allowance::new(bed.host.clone(), None, ByteBudget::new(0));
    bed.set("mssql.table.orders.start", "latest");
    let table = bed.assembly().table("shop", "orders").await.expect("the table");
    assert_eq!(table.left_out_by_reset(&cursor, &allowance).await, Ok(Some(LeftOut { rows: 3, began_anew: true })));
    // More rows of the new sequence are no news.
    bed.run("INSERT INTO dbo.orders (id) VALUES (4)");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.tried), (Outcome::Paused, false), "{report:?}");
    // It passes the cursor by itself.
    bed.run("INSERT INTO dbo.orders (id) VALUES (1001)");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    // Or somebody decides.
    let to = read_position("sqlserver", "0").expect("digits");
    bed.order(Order::Rewind(Rewinding { to, forward: false, request_id: None })).await;
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
}

#[tokio::test]
async fn a_readable_secondary_that_is_behind_the_cursor_is_no_regression() {
    let bed =
        Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)").with("mssql.application.intent", "readonly");
    bed.run("INSERT INTO dbo.orders (id) VALUES (1), (2)");
    bed.sweep().await;
    bed.run("DELETE FROM dbo.orders WHERE id = 2");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, None), "{report:?}");
    assert!(bed.server.attempts().iter().all(|attempt| attempt.request.read_only), "the intent was sent");
}

#[tokio::test]
async fn a_schema_is_accepted_whatever_ticks_come_between_and_the_next_change_is_told_against_it() {
    let bed = paused_by_a_column().await;
    let tick = async || assert_eq!(bed.sweep().await.outcome, Outcome::Paused);
    let (_, outcome) = bed.order_after(Order::AcceptSchema, tick).await;
    assert!(outcome.changed, "{outcome:?}");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
    bed.run("ALTER TABLE dbo.orders ALTER COLUMN note nvarchar(500) NOT NULL");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, None), "a change that does not count: {report:?}");
    bed.run("ALTER TABLE dbo.orders DROP COLUMN extra");
    let report = bed.sweep().await;
    assert!(report.outcome == Outcome::Paused && message(&report).contains("column extra (int NULL) is gone"), "{report:?}");
}

/// The only cursor is carried into an empty store, with its baseline or as an older program exported it.
async fn carried(bed: &Bed, with_baseline: bool) {
    let item = bed.item().await;
    let found = beside(&*bed.store().await, "shop", &[&item]).await.expect("listed");
    let baseline = found.iter().find_map(|beside| beside.baseline_of(&item)).map(str::to_owned);
    assert!(baseline.is_some(), "{found:?}");
    for file in ["cursors.db", "cursors.db-wal", "cursors.db-shm"] {
        let _ = std::fs::remove_file(bed.path(file));
    }
    let baseline = baseline.filter(|_| with_baseline);
    bed.order(Order::Import { item: Box::new(item), forward: false, baseline }).await;
}

#[tokio::test]
async fn a_cursor_in_another_store_is_held_by_what_counts_and_by_nothing_else() {
    for (with_baseline, sweeps_first) in [(true, false), (true, true), (false, true)] {
        let bed = Bed::new();
        bed.insert(3);
        bed.sweep().await;
        carried(&bed, with_baseline).await;
        bed.insert(2);
        if sweeps_first {
            assert_eq!(bed.sweep().await.rows, 2);
        }
        bed.run("ALTER TABLE dbo.orders ALTER COLUMN note nvarchar(500) NOT NULL");
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, None), "{with_baseline} {sweeps_first}: {report:?}");
        bed.run("ALTER TABLE dbo.orders ADD extra int NULL");
        let report = bed.sweep().await;
        assert!(report.outcome == Outcome::Paused && message(&report).contains("column extra (int NULL) is new"), "{report:?}");
        assert_eq!(bed.keys(), bed.expected());
    }
}

async fn remark(bed: &Bed) -> Option<String> {
    let places = Place::of(&bed.assembly().documents().connectors[0], &|_| None);
    status(Some(&*bed.store().await), "here", &places, 0).await.expect("a status").tables.remove(0).remark
}

#[tokio::test]
async fn a_cursor_that_was_set_above_all_rows_is_said_until_a_row_passes_it() {
    const CODE: &str = "Source.CursorAboveAll";
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)");
    bed.sweep().await;
    let to = read_position("sqlserver", "100").expect("digits");
    bed.order(Order::Rewind(Rewinding { to, forward: true, request_id: None })).await;
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, None), "of an empty table nothing is known: {report:?}");
    bed.run("INSERT INTO dbo.orders (id) VALUES (4), (5)");
    for _ in 0..2 {
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows, code(&report)), (Outcome::CaughtUp, 0, Some(CODE)), "{report:?}");
        assert!(message(&report).contains("stands at 100, where it was set by hand") && message(&report).contains("--to 5"), "{report:?}");
        assert_eq!(remark(&bed).await.as_deref(), Some(CODE));
    }
    bed.run("INSERT INTO dbo.orders (id) VALUES (101)");
    let report = bed.sweep().await;
    assert_eq!((report.rows, code(&report), remark(&bed).await), (1, None, None), "{report:?}");
    // From now on the cursor is a row's.
    bed.run("DELETE FROM dbo.orders WHERE id = 101");
    assert_eq!(code(&bed.sweep().await), Some("Source.SequenceRegressed"));
}
