//! Rows that were lost, or came again.

use std::collections::BTreeSet;

use tablesweep::sweep::Outcome;
use tablesweep_testbed::tds::{Effect, Fault, ServerError};

use super::super::bed::code;
use super::Bed;

#[tokio::test]
async fn the_last_rows_behind_full_batches_are_sent_too() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/1317
    let bed = Bed::new().with("mssql.table.orders.batch.size", 500);
    bed.insert(1_003);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows, bed.batches().len()), (Outcome::CaughtUp, 1_003, 3), "{report:?}");
    assert_eq!(bed.keys(), bed.expected());
    let mut limited = Bed::new().with("mssql.table.orders.batch.size", 500).with("mssql.table.orders.max.rows.per.poll", 600);
    limited.insert(1_003);
    limited.max_rows = Some(600);
    assert_eq!(limited.sweep().await.rows, 600);
    assert_eq!(limited.sweep().await.rows, 403);
    assert_eq!(limited.keys(), limited.expected());
}

#[tokio::test]
async fn two_transactions_that_commit_the_other_way_round_are_both_seen_by_a_locking_read() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/1015, /27. What a plain read does about it: `late`.
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)")
        .with("mssql.read.mode", "locking")
        .with("mssql.query.timeout.ms", 300);
    bed.run("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON");
    let (mut first, mut second) = (bed.server.session(), bed.server.session());
    first.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (1)").expect("written");
    second.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (2); COMMIT").expect("committed");
    let report = bed.sweep().await;
    assert_eq!((report.rows, report.outcome), (0, Outcome::Failed), "{report:?}");
    first.execute("COMMIT").expect("committed");
    assert_eq!(bed.sweep().await.rows, 2);
    assert_eq!(bed.keys(), ["1", "2"]);
}

#[tokio::test]
async fn a_rolled_back_row_leaves_a_gap_and_nothing_else() {
    let bed = Bed::new();
    bed.insert(1);
    let mut writer = bed.server.session();
    writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (note) VALUES (N'never')").expect("written");
    writer.execute("ROLLBACK").expect("rolled back");
    bed.insert(1);
    bed.sweep().await;
    assert_eq!(bed.keys(), ["1", "3"]);
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn a_deadlock_in_the_middle_of_a_batch_neither_loses_nor_repeats() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/829
    let bed = Bed::new();
    bed.insert(5);
    let victim = ServerError::new(1205, "chosen as the deadlock victim").class(13).state(45);
    bed.server.fault(Fault::new(Effect::ErrorAfterRows(3, victim)).containing("select top").always());
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report), report.rows), (Outcome::Failed, Some("Source.Unavailable"), 0), "{report:?}");
    assert_eq!(bed.keys(), Vec::<String>::new(), "rows in front of the error are none");
    bed.server.clear_faults();
    assert_eq!(bed.sweep().await.rows, 5);
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn a_replica_that_is_not_ready_is_asked_again_later() {
    // https://github.com/airbytehq/airbyte/pull/78415
    let bed = Bed::new();
    bed.insert(2);
    bed.server.fault(Fault::new(Effect::Error(ServerError::new(3947, "the transaction was aborted"))).containing("select top"));
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
}

#[tokio::test]
async fn a_statement_that_is_given_up_leaves_no_connection_that_is_used_again() {
    // https://github.com/tiberius-rs/tiberius/issues/79
    let bed = Bed::new().with("mssql.query.timeout.ms", 200);
    bed.insert(4);
    bed.server.fault(Fault::new(Effect::SilenceAfterRows(2)).containing("select top").always());
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{report:?}");
    bed.server.clear_faults();
    assert_eq!(bed.sweep().await.rows, 4);
    assert_eq!(bed.keys(), bed.expected());
    let tries: Vec<u64> = bed.batches().iter().map(|entry| entry.connection).collect();
    let connections: BTreeSet<u64> = tries.iter().copied().collect();
    assert!(tries.len() == 4 && connections.len() == tries.len(), "three tries and the next sweep, each with its own: {tries:?}");
}
