//! Rows that become visible behind the cursor: passed over by a plain read, waited for by a locking one, found by the audit.

use std::time::Duration;

use tablesweep::sweep::Outcome;

use super::bed::{Bed, code};

/// A database whose readers see row versions and wait for nobody, as on Azure SQL.
fn versioned() -> Bed {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)");
    bed.run("ALTER DATABASE shop SET READ_COMMITTED_SNAPSHOT ON");
    bed.run("INSERT INTO dbo.orders (id) VALUES (98), (99)");
    bed
}

#[tokio::test]
async fn a_row_that_is_committed_late_is_reported_once_by_the_audit_with_its_range() {
    let bed = versioned().with("mssql.audit.interval.ms", 1_000);
    bed.sweep().await;
    let mut writer = bed.server.session();
    writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (100)").expect("written");
    bed.run("INSERT INTO dbo.orders (id) VALUES (101)");
    assert_eq!(bed.sweep().await.rows, 1, "101 is seen, 100 is not");
    writer.execute("COMMIT").expect("committed");
    let mut late = 0;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(1_050)).await;
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 0), "{report:?}");
        late += report.rows_late;
    }
    assert_eq!(late, 1, "told once");
    assert_eq!(bed.item().await.progress.counters.late, 1);
    assert_eq!(bed.keys(), ["98", "99", "101"], "it is reported and not delivered");
}

#[tokio::test]
async fn an_audit_of_a_table_without_late_rows_reports_none_and_asks_only_when_it_is_due() {
    let bed = versioned().with("mssql.audit.interval.ms", 60_000);
    for _ in 0..3 {
        assert_eq!(bed.sweep().await.rows_late, 0);
    }
    assert!(bed.server.log().iter().all(|entry| !entry.text.contains("COUNT_BIG")), "not due yet");
}

#[tokio::test]
async fn a_locking_read_waits_for_a_row_that_is_being_written_and_passes_over_none() {
    let bed = versioned().with("mssql.read.mode", "locking").with("mssql.query.timeout.ms", 300);
    bed.sweep().await;
    let mut writer = bed.server.session();
    writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (100)").expect("written");
    bed.run("INSERT INTO dbo.orders (id) VALUES (101)");
    let waiting = bed.sweep().await;
    assert_eq!((waiting.outcome, code(&waiting), waiting.rows), (Outcome::Failed, Some("Source.Unavailable"), 0), "{waiting:?}");
    assert!(waiting.reason.is_some_and(|reason| reason.message.contains("error 1222")), "the server says why");
    assert_eq!(bed.item().await.progress.page_size, None, "the batch is not blamed");
    writer.execute("COMMIT").expect("committed");
    assert_eq!(bed.sweep().await.rows, 2);
    assert_eq!(bed.keys(), bed.expected());
}
