//! Rows that become visible behind the cursor: passed over by a plain read, waited for by a locking one, found by the audit.

use std::time::Duration;

use tablesweep::operate::{Order, Rewinding, read_position};
use tablesweep::sweep::Outcome;
use tablesweep_testbed::program::program;
use tablesweep_testbed::said;
use tablesweep_testbed::tds::{self, Effect, Fault, ServerError, Stage};

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
    let bed = versioned().with("mssql.audit.interval.ms", 1_000);
    bed.sweep().await;
    for id in 100..103 {
        bed.run(&format!("INSERT INTO dbo.orders (id) VALUES ({id})"));
        an_interval().await;
        bed.server.clear_log();
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows, report.rows_late), (Outcome::CaughtUp, 1, 0), "{report:?}");
        let counts = bed.asked("COUNT_BIG");
        assert!(!counts.is_empty() && counts.iter().all(|count| count.error.is_none()), "every range was counted: {counts:?}");
    }
    assert_eq!(bed.item().await.progress.counters.late, 0);
    let seldom = versioned().with("mssql.audit.interval.ms", 60_000);
    for _ in 0..3 {
        assert_eq!(seldom.sweep().await.rows_late, 0);
    }
    assert_eq!(seldom.asked("COUNT_BIG"), [], "not due yet");
}

/// What the program says of a sweep of this bed.
fn said_of_a_sweep(bed: &Bed) -> String {
    let mut command = std::process::Command::new(program("tablesweep"));
    command.arg("sweep").arg("--config").arg(bed.documents());
    command.arg("--cursors").arg(format!("sqlite:{}", bed.path("cursors.db").display()));
    command.arg("--sink").arg(format!("ndjson:{}", bed.path("out.ndjson").display()));
    command.env_remove("TABLESWEEP_LOG");
    let ended = command.output().expect("the program runs");
    let said = String::from_utf8(ended.stderr).expect("text");
    said::keep("cli", &said);
    assert!(ended.status.success(), "{said}");
    said
}

#[tokio::test]
async fn a_locking_read_that_waits_for_nobody_is_told_of_once_and_its_late_row_is_found_by_the_audit() {
    let memory = "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY NONCLUSTERED) WITH (MEMORY_OPTIMIZED = ON)";
    let disk = "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)";
    for (babelfish, definition, named) in [(true, disk, "Babelfish"), (false, memory, "memory-optimised"), (false, disk, "")] {
        let bed = Bed::on(tds::Settings { babelfish, ..tds::Settings::default() }, definition)
            .with("mssql.table.orders.max.rows.per.poll", 1)
            .with("mssql.table.orders.batch.size", 1)
            .with("mssql.query.timeout.ms", 300)
            .with("mssql.audit.interval.ms", 1_000)
            .with("mssql.read.mode", "locking");
        bed.run("INSERT INTO dbo.orders (id) VALUES (97), (98), (99)");
        let said = said_of_a_sweep(&bed);
        assert!(bed.asked("sys.schemas").len() > 2, "several polls");
        let told: Vec<&str> = said.lines().filter(|line| line.contains("mssql.read.mode=locking protects nothing")).collect();
        assert_eq!(told.len(), usize::from(!named.is_empty()), "{named}: {said}");
        assert!(told.iter().all(|line| line.contains(named)), "{told:?}");
        let mut writer = bed.server.session();
        writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (100)").expect("written");
        bed.run("INSERT INTO dbo.orders (id) VALUES (101)");
        let passed_over = bed.sweep().await.rows;
        writer.execute("COMMIT").expect("committed");
        an_interval().await;
        let report = bed.sweep().await;
        let expected = if named.is_empty() { (0, 2, 0) } else { (1, 0, 1) };
        assert_eq!((passed_over, report.rows, report.rows_late), expected, "{named}: {report:?}");
    }
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
    let reason = waiting.reason.map(|reason| reason.message).unwrap_or_default();
    assert!(reason.contains("error 1222") && reason.contains("a lock that another session holds"), "the server says why: {reason}");
    assert_eq!(bed.item().await.progress.page_size, None, "the batch is not blamed");
    writer.execute("COMMIT").expect("committed");
    assert_eq!(bed.sweep().await.rows, 2);
    assert_eq!(bed.keys(), bed.expected());
}

/// A database that locks. Two rows are delivered, and the audit is due in a second.
async fn locking() -> Bed {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, note int)")
        .with("mssql.audit.interval.ms", 1_000)
        .with("mssql.query.timeout.ms", 300);
    bed.run("INSERT INTO dbo.orders (id) VALUES (98), (99)");
    assert_eq!(bed.sweep().await.rows, 2);
    bed
}

/// Until the audit is due again.
async fn an_interval() {
    tokio::time::sleep(Duration::from_millis(1_050)).await;
}

#[tokio::test]
async fn rows_do_not_wait_for_the_count_of_late_ones_and_what_fails_it_fails_nothing_else() {
    let bed = locking().await;
    an_interval().await;
    let mut writer = bed.server.session();
    writer.execute("BEGIN TRAN; UPDATE dbo.orders SET note = 1 WHERE id = 98").expect("written");
    for id in [100, 101] {
        bed.run(&format!("INSERT INTO dbo.orders (id) VALUES ({id})"));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows, report.rows_late), (Outcome::CaughtUp, 1, 0), "{report:?}");
    }
    let idle = bed.sweep().await;
    assert_eq!((idle.outcome, idle.rows), (Outcome::CaughtUp, 0), "{idle:?}");
    let counts: Vec<_> = bed.asked("COUNT_BIG").into_iter().map(|entry| entry.error).collect();
    assert_eq!(counts, [Some(1222)], "it waited once for the row, and not again before the next audit");
    assert_eq!(bed.keys(), ["98", "99", "100", "101"]);
    writer.execute("COMMIT").expect("committed");
    an_interval().await;
    assert_eq!((bed.sweep().await.rows_late, bed.asked("COUNT_BIG").len()), (0, 2), "now it is counted");
    bed.run("INSERT INTO dbo.orders (id) VALUES (97)");
    an_interval().await;
    assert_eq!(bed.sweep().await.rows_late, 1, "and what comes late is found");
}

#[tokio::test]
async fn a_count_that_fails_makes_no_row_late_and_leaves_no_row_uncounted() {
    let deadlock = ServerError::new(1205, "chosen as the deadlock victim").class(13).state(45);
    for effect in [Effect::Close(Stage::Statement), Effect::Error(deadlock), Effect::Silence(Stage::Statement), Effect::Cut(9)] {
        let bed = locking().await;
        for id in 100..104 {
            bed.run(&format!("INSERT INTO dbo.orders (id) VALUES ({id})"));
            bed.server.fault(Fault::new(effect.clone()).containing("count_big"));
            an_interval().await;
            let report = bed.sweep().await;
            assert_eq!((report.outcome, report.rows, report.rows_late), (Outcome::CaughtUp, 1, 0), "{effect:?}: {report:?}");
            assert_eq!(bed.server.pending_faults(), 0, "{effect:?}: the count failed");
        }
        an_interval().await;
        assert_eq!(bed.sweep().await.rows_late, 0, "{effect:?}: nothing was late");
        bed.run("INSERT INTO dbo.orders (id) VALUES (1), (2)");
        an_interval().await;
        assert_eq!(bed.sweep().await.rows_late, 2, "{effect:?}: every row that was delivered is in a range");
        assert_eq!(bed.keys(), ["98", "99", "100", "101", "102", "103"]);
    }
}

#[tokio::test]
async fn a_range_of_late_rows_is_delivered_again_from_the_first_row_on() {
    let bed = locking().await;
    bed.run("INSERT INTO dbo.orders (id) VALUES (-7)");
    an_interval().await;
    assert_eq!(bed.sweep().await.rows_late, 1);
    let to = read_position("sqlserver", "earliest").expect("as the message says");
    bed.order(Order::Rewind(Rewinding { to, forward: false, request_id: None })).await;
    assert_eq!(bed.sweep().await.rows, 3);
    assert_eq!(bed.keys()[2..], bed.expected());
}

#[tokio::test]
async fn a_row_below_the_cursor_that_is_being_deleted_fails_no_sweep_that_has_nothing_to_read() {
    let bed = locking().await;
    let mut writer = bed.server.session();
    writer.execute("BEGIN TRAN; DELETE FROM dbo.orders WHERE id = 99").expect("written");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::CaughtUp, None), "{report:?}");
    assert_eq!(bed.asked("SELECT MAX").last().and_then(|entry| entry.error), Some(1222), "the highest sequence was not to be had");
    writer.execute("COMMIT").expect("committed");
    assert_eq!(code(&bed.sweep().await), Some("Source.SequenceRegressed"), "it is looked at again");
}

#[tokio::test]
async fn a_row_that_is_being_written_is_reported_as_what_a_sweep_waited_for_though_its_time_was_short() {
    let bed = async |time| {
        let mut bed = versioned().with("mssql.read.mode", "locking");
        bed.sweep().await;
        bed.max_time = Some(Duration::from_secs(time));
        bed
    };
    let waits_in_vain = async {
        let bed = bed(24).await;
        let mut writer = bed.server.session();
        writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (100)").expect("written");
        bed.sweep().await
    };
    let waits_briefly = async {
        let mut bed = bed(11).await;
        let mut writer = bed.server.session();
        writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (id) VALUES (100)").expect("written");
        let report = bed.sweep().await;
        assert_eq!(bed.item().await.progress.page_size, None, "the batch is not blamed");
        writer.execute("COMMIT").expect("committed");
        bed.max_time = None;
        assert_eq!((bed.sweep().await.rows, bed.keys()), (1, bed.expected()));
        report
    };
    let (long, short) = tokio::join!(waits_in_vain, waits_briefly);
    for (report, expected) in [(long, (Outcome::Failed, Some("Source.Unavailable"))), (short, (Outcome::More, Some("Source.BudgetSpent")))]
    {
        assert_eq!((report.outcome, code(&report)), expected, "{report:?}");
        assert!(report.reason.is_some_and(|reason| reason.message.contains("error 1222")), "the server says why");
    }
}
