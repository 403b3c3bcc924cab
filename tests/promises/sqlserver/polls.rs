//! Which rows arrive: each once and in order, whatever the table holds and whenever a sweep ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tablesweep::cursor::Phase;
use tablesweep::sweep::{ByteBudget, Outcome};
use tablesweep_testbed::tds::{Effect, Fault};

use super::bed::{Bed, code};

#[tokio::test]
async fn a_record_is_the_row_under_its_sequence_with_the_headers_of_its_table() {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (note nvarchar(40), id int CONSTRAINT orders_id PRIMARY KEY, [a]]b] decimal(9, 2))");
    bed.run("INSERT INTO dbo.orders (note, id, [a]]b]) VALUES (N'gr\u{fc}n', 7, 1.50), (NULL, 8, NULL)");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
    let lines = bed.lines();
    assert_eq!(lines[0].text, "{\"note\":\"gr\u{fc}n\",\"id\":7,\"a]b\":1.50}", "every column in its order, digits as they are");
    assert_eq!(lines[1].value, json!({ "note": null, "id": 8, "a]b": null }));
    let line = &lines[0];
    assert_eq!((line.topic.as_str(), line.key.as_str(), &line.timestamp), ("shop.orders", "7", &json!(null)));
    let mut headers = line.headers.clone();
    let extracted = headers["mssql.extracted_at"].take();
    assert!(extracted.as_str().is_some_and(|at| at.parse::<i64>().is_ok_and(|at| at > 1_700_000_000_000)), "{extracted}");
    let expected =
        json!({ "mssql.table": "dbo.orders", "mssql.server": "127.0.0.1", "mssql.extracted_at": null, "mssql.schema.mode": "schemaless" });
    assert_eq!(headers, expected);
}

#[tokio::test]
async fn a_sweep_goes_on_batch_by_batch_and_poll_by_poll_until_one_is_short() {
    let bed = Bed::new().with("mssql.table.orders.batch.size", 500).with("mssql.table.orders.max.rows.per.poll", 600);
    bed.insert(1_003);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1_003), "{report:?}");
    assert_eq!(bed.keys(), bed.expected());
    let batches: Vec<(u64, usize)> = bed.batches().iter().map(|entry| (entry.connection, entry.rows)).collect();
    let polls: Vec<u64> = batches.iter().map(|(connection, _)| *connection).collect();
    assert_eq!(batches.iter().map(|(_, rows)| *rows).collect::<Vec<_>>(), [500, 100, 403]);
    assert!(polls[0] == polls[1] && polls[1] != polls[2], "two polls, each with a connection of its own: {polls:?}");
    assert_eq!(bed.server.connections().most, 1);
}

#[tokio::test]
async fn every_batch_is_the_same_statement_with_parameters_of_the_same_types() {
    for (kind, declared) in [("tinyint", "tinyint"), ("int", "int"), ("bigint", "bigint"), ("decimal(20, 0)", "nvarchar")] {
        let bed = Bed::with_table(&format!("CREATE TABLE dbo.orders (id {kind} CONSTRAINT orders_id PRIMARY KEY)"))
            .with("mssql.table.orders.batch.size", 3)
            .with("mssql.table.orders.start", 0);
        let ids: Vec<String> = (1..=20).map(|id| format!("({id})")).collect();
        bed.run(&format!("INSERT INTO dbo.orders (id) VALUES {}", ids.join(", ")));
        bed.sweep().await;
        assert_eq!(bed.keys(), bed.expected());
        let batches = bed.batches();
        assert!(batches.len() >= 7 && batches.iter().all(|entry| entry.text == batches[0].text && entry.called), "{batches:#?}");
        let types = |entry: &tablesweep_testbed::tds::Entry| entry.parameters.iter().map(|(_, kind, _)| kind.clone()).collect::<Vec<_>>();
        let first = types(&batches[0]);
        assert!(first[0].starts_with("bigint") && first[1].starts_with(declared), "{first:?}");
        assert!(batches.iter().all(|entry| types(entry) == first), "one plan");
    }
}

#[tokio::test]
async fn thirty_eight_digits_are_exact_in_statement_key_value_and_cursor() {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id decimal(38, 0) CONSTRAINT orders_id PRIMARY KEY)")
        .with("mssql.table.orders.batch.size", 1);
    let ids =
        ["9223372036854775807", "9223372036854775808", "99999999999999999999999999999999999998", "99999999999999999999999999999999999999"];
    for id in ids {
        bed.run(&format!("INSERT INTO dbo.orders (id) VALUES ({id})"));
    }
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 4), "{report:?}");
    assert_eq!(bed.keys(), ids);
    assert_eq!(bed.lines().iter().map(|line| line.text.clone()).collect::<Vec<_>>(), ids.map(|id| format!("{{\"id\":{id}}}")));
    assert_eq!(bed.cursor().await.as_deref(), Some(ids[3]));
    assert_eq!(bed.sweep().await.rows, 0);
}

#[tokio::test]
async fn a_tinyint_sequence_is_read_to_its_end() {
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id tinyint CONSTRAINT orders_id PRIMARY KEY)");
    bed.run("INSERT INTO dbo.orders (id) VALUES (0), (127), (128), (255)");
    bed.sweep().await;
    assert_eq!(bed.keys(), ["0", "127", "128", "255"]);
    assert_eq!(bed.sweep().await.outcome, Outcome::CaughtUp);
}

#[tokio::test]
async fn names_with_brackets_spaces_dots_and_words_of_the_language_are_quoted() {
    let bed = Bed::with_table(
        "CREATE SCHEMA [sp.test]; CREATE TABLE [sp.test].[orders]].current] ([order by] int CONSTRAINT seq PRIMARY KEY, [FOR] int, [a]]b;--] int)",
    )
    .with("mssql.table.orders.name", "[sp.test].[orders]].current]")
    .with("mssql.table.orders.sequence.column", "order by");
    bed.run("INSERT INTO [sp.test].[orders]].current] ([order by], [FOR], [a]]b;--]) VALUES (1, 2, 3)");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    assert_eq!(bed.lines()[0].text, "{\"order by\":1,\"FOR\":2,\"a]b;--\":3}");
    assert_eq!(bed.lines()[0].headers["mssql.table"], "sp.test.orders].current");
}

#[tokio::test]
async fn a_limit_of_rows_ends_a_sweep_and_the_next_goes_on() {
    let mut bed = Bed::new().with("mssql.table.orders.batch.size", 20);
    bed.insert(100);
    bed.max_rows = Some(33);
    for rows in [33, 33, 33, 1, 0] {
        assert_eq!(bed.sweep().await.rows, rows);
    }
    assert_eq!(bed.keys(), bed.expected());
    assert_eq!(bed.item().await.progress.phase, Phase::Stream);
}

#[tokio::test]
async fn sweeps_that_end_for_lack_of_time_each_go_on_and_lose_nothing() {
    let mut bed = Bed::new().with("mssql.table.orders.batch.size", 5);
    bed.insert(120);
    bed.server.fault(Fault::new(Effect::Delay(Duration::from_millis(60))).containing("select top").always());
    // The engine keeps eight seconds for the last page's acknowledgement and the release.
    bed.max_time = Some(Duration::from_millis(8_400));
    let mut sweeps = 0;
    loop {
        let report = bed.sweep().await;
        sweeps += 1;
        assert!(report.outcome.is_good() && sweeps < 60, "{report:?}");
        if report.outcome == Outcome::CaughtUp {
            break;
        }
    }
    assert!(sweeps > 2, "one sweep had the time for all");
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn large_rows_come_in_batches_that_fit_the_memory_and_the_size_that_works_is_remembered() {
    let mut bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, body varchar(max))");
    for id in 0..130 {
        bed.run(&format!("INSERT INTO dbo.orders (id, body) VALUES ({id}, REPLICATE(CAST('x' AS varchar(max)), 1000000))"));
    }
    bed.memory = 192 << 20;
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 130), "{report:?}");
    assert_eq!(bed.keys(), bed.expected());
    // 33 came of the 500 that were asked for; after four good batches no more are asked for than fit.
    assert_eq!(bed.batches().len(), 7, "one of them was dropped");
    let works = bed.item().await.progress.page_size.expect("a smaller one than configured");
    assert!((8..=33).contains(&works), "{works} rows of a megabyte in 32 MiB");
    bed.server.clear_log();
    bed.run("INSERT INTO dbo.orders (id, body) VALUES (1000, 'x')");
    bed.sweep().await;
    let asked = &bed.batches()[0].parameters[0].2;
    assert_eq!(asked, &works.to_string(), "asked for again");
}

#[tokio::test]
async fn an_answer_without_a_result_is_an_error_and_not_the_end_of_the_rows() {
    let bed = Bed::new();
    bed.insert(4);
    bed.sweep().await;
    bed.insert(4);
    // DONE and nothing else, in a packet of its own.
    let done = [0x04, 0x01, 0x00, 0x15, 0, 0, 1, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bed.server.fault(Fault::new(Effect::Garbage(tablesweep_testbed::tds::Stage::Statement, done.to_vec())).containing("select top"));
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Malformed")), "{report:?}");
    assert_eq!(bed.sweep().await.rows, 4);
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn an_idle_sweep_is_one_connection_and_three_statements() {
    let bed = Bed::new();
    bed.insert(3);
    // A process that has swept the table before, as a warm function has.
    let assembly = bed.assembly();
    for connections in [2, 1, 1] {
        bed.server.clear_log();
        let before = bed.server.connections().opened;
        let report = bed.sweep_with(&assembly).await.remove(0);
        assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
        assert_eq!(bed.server.connections().opened - before, connections, "that the server has no TLS is found out once");
    }
    let idle = bed.sweep_with(&assembly).await.remove(0);
    bed.server.clear_log();
    assert_eq!((idle.rows, idle.requests), (0, 3), "{idle:?}");
    bed.sweep_with(&assembly).await;
    assert_eq!(bed.server.log().len(), 3);
}

#[tokio::test]
async fn memory_that_other_tables_hold_is_waited_for_and_fails_no_table() {
    let mut bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, body varchar(max))");
    for id in 0..3 {
        bed.run(&format!("INSERT INTO dbo.orders (id, body) VALUES ({id}, REPLICATE(CAST('x' AS varchar(max)), 12000000))"));
    }
    let budget = ByteBudget::new(16 << 20);
    bed.budget = Some(Arc::clone(&budget));
    // A page of another table. There is room for the first request beside it, and none for one of the rows.
    let page = budget.admit(5 << 20).await;
    bed.max_time = Some(Duration::from_secs(12));
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows, code(&report)), (Outcome::More, 0, None), "{report:?}");
    let asked: Vec<String> = bed.batches().into_iter().map(|entry| entry.parameters[0].2.clone()).collect();
    assert_eq!(asked, ["500"], "what a row takes is known after one batch");
    drop(page);
    bed.max_time = None;
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 3), "{report:?}");
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn typed_rows_and_the_envelope_hold_the_same_values_as_plain_ones() {
    let table =
        "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, total decimal(9, 2), note nvarchar(40), placed datetime2(3))";
    let rows = "INSERT INTO dbo.orders (id, total, note, placed) VALUES (1, 1.50, N'a', '2026-08-05T10:15:30.123'), (2, NULL, NULL, NULL)";
    let values = |typed: &str, envelope: &str| {
        let bed = Bed::with_table(table)
            .with("mssql.schema.mode", typed)
            .with("mssql.emit.envelope", envelope)
            .with("mssql.decimal.as.string", "true")
            .with("value.converter", "org.apache.kafka.connect.json.JsonConverter")
            .with("value.converter.schemas.enable", "false");
        bed.run(rows);
        bed
    };
    let plain = values("schemaless", "false");
    assert_eq!(plain.sweep().await.rows, 2);
    let expected: Vec<_> = plain.lines().into_iter().map(|line| line.value).collect();
    for (mode, envelope) in [("typed", "false"), ("typed", "true"), ("schemaless", "true")] {
        let bed = values(mode, envelope);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{mode} {envelope}: {report:?}");
        let lines = bed.lines();
        assert!(lines.iter().all(|line| line.headers["mssql.schema.mode"] == mode && line.timestamp.is_null()), "{lines:?}");
        let value = |line: &super::bed::Line| if envelope == "true" { line.value["after"].clone() } else { line.value.clone() };
        assert_eq!(lines.iter().map(value).collect::<Vec<_>>(), expected, "{mode} {envelope}");
    }
}
