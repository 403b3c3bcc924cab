//! Parameters, errors, and messages of every length.

use serde_json::{Value, json};
use tablesweep_testbed::tds::{Effect, Fault, PASSWORD, Server, ServerError, USER};

use super::client::{PYTHON, Settings, Tsql, python, rows};

fn orders(rows: usize) -> Server {
    let server = Server::start().expect("a server");
    server.execute("CREATE TABLE dbo.orders (id bigint IDENTITY PRIMARY KEY, note nvarchar(400), amount decimal(18,2))").expect("a table");
    let insert = format!("INSERT INTO dbo.orders (note, amount) SELECT CONCAT(N'note ', value), value FROM GENERATE_SERIES(1, {rows})");
    server.execute(&insert).expect("rows");
    server
}

#[test]
fn parameters_of_a_call_have_their_types_and_choose_the_rows() {
    let server = orders(20);
    let keyset = "SELECT TOP (3) [id], [note] FROM [dbo].[orders] WHERE [id] > %s AND [note] <> %s ORDER BY [id] ASC";
    for client in PYTHON {
        let read = rows(client, &server, keyset, json!([10, "note 12"]));
        assert_eq!(read, json!([["11", "note 11"], ["13", "note 13"], ["14", "note 14"]]), "{client}");
    }
    let log = server.log();
    let called = log.iter().find(|entry| entry.called).expect("python-tds calls sp_executesql");
    let (types, values): (Vec<_>, Vec<_>) = called.parameters.iter().map(|(_, ty, value)| (ty.clone(), value.clone())).unzip();
    assert_eq!(values, ["10", "note 12"]);
    assert!(types[0].contains("int") && types[1].starts_with("nvarchar"), "{types:?}");
    let echo = "SELECT %s, %s, %s, %s, %s";
    let big = 9_007_199_254_740_993_i64;
    let read = rows("pytds", &server, echo, json!([big, "日本", 0.1, true, null]));
    assert_eq!(read, json!([[big.to_string(), "日本", "0.1", true, null]]));
    assert_eq!(server.refusals(), Vec::<String>::new());
}

#[test]
fn an_error_has_its_number_and_the_connection_goes_on() {
    let server = orders(3);
    let statements = json!([
        ["SELECT nothing FROM dbo.orders", []],
        ["SELECT * FROM dbo.missing", []],
        ["SELECT CAST('x' AS int)", []],
        ["SELECT COUNT_BIG(*) FROM dbo.orders", []],
    ]);
    for client in PYTHON {
        let lines = python(client, &Settings::of(&server), &statements);
        let numbers: Vec<&Value> = lines.iter().map(|line| &line["error"]).collect();
        assert_eq!(numbers, [&json!(207), &json!(208), &json!(245), &Value::Null], "{client}: {lines:?}");
        assert_eq!(lines[3]["rows"], json!([["3"]]), "{client}");
    }
    let printed = Tsql::of(&server, &["encryption = off"]).run(USER, PASSWORD, &["SELECT nothing FROM dbo.orders", "SELECT 7"]);
    assert!(printed.contains("Msg 207 (severity 16, state 1)") && printed.contains("Invalid column name 'nothing'"), "{printed}");
    assert!(printed.lines().any(|line| line == "7"), "{printed}");
}

#[test]
fn an_error_in_the_middle_of_rows_comes_after_those_before_it() {
    let server = orders(9);
    server.fault(Fault::new(Effect::ErrorAfterRows(4, ServerError::new(1205, "You are the victim.").class(13).state(45))));
    let printed = Tsql::of(&server, &["encryption = off"]).run(USER, PASSWORD, &["SELECT id FROM dbo.orders ORDER BY id"]);
    assert_eq!(printed.lines().filter(|line| line.parse::<u32>().is_ok()).count(), 4, "{printed}");
    assert!(printed.contains("Msg 1205 (severity 13, state 45)"), "{printed}");
    assert_eq!(server.pending_faults(), 0);
}

#[test]
fn a_statement_that_is_not_understood_is_an_error_that_shows_it_and_never_an_empty_answer() {
    let server = orders(1);
    let strange = "MERGE INTO dbo.orders USING dbo.orders AS o ON 1 = 1";
    for client in PYTHON {
        let lines = python(client, &Settings::of(&server), &json!([[strange, []]]));
        assert_eq!(lines[0]["error"], 102, "{client}: {lines:?}");
        assert!(lines[0]["message"].as_str().is_some_and(|message| message.contains("MERGE INTO")), "{client}: {lines:?}");
    }
    assert_eq!(server.refusals().len(), 2, "{:?}", server.refusals());
}

#[test]
fn answers_of_many_packets_are_whole_at_every_size() {
    let server = orders(5_000);
    server.execute("CREATE TABLE dbo.large (id int PRIMARY KEY, v nvarchar(max))").expect("a table");
    server.execute("INSERT INTO dbo.large VALUES (1, REPLICATE(CAST(N'ab😀' AS nvarchar(max)), 262144))").expect("a row of two megabytes");
    for size in [512, 4096, 16_384, 32_767] {
        let statements = json!([["SELECT id, note, amount FROM dbo.orders ORDER BY id", []], ["SELECT v FROM dbo.large", []]]);
        let lines = python("pytds", &Settings::of(&server).with("packet_size", size), &statements);
        let read = lines[0]["rows"].as_array().expect("rows");
        assert_eq!(read.len(), 5_000, "{size}");
        for (at, row) in read.iter().enumerate() {
            let number = (at + 1).to_string();
            assert_eq!((&row[0], &row[1]), (&json!(number), &json!(format!("note {number}"))), "{size}");
        }
        assert_eq!(lines[1]["rows"][0][0].as_str(), Some("ab😀".repeat(262_144).as_str()), "{size}");
        let agreed = server.attempts().last().map(|attempt| attempt.packet_size);
        assert_eq!(agreed, Some(size));
    }
    let read = rows("pymssql", &server, "SELECT id, note, amount FROM dbo.orders ORDER BY id", json!([]));
    assert_eq!(read.as_array().map(Vec::len), Some(5_000));
}

#[test]
fn a_request_of_many_packets_is_put_together() {
    let server = orders(1);
    let long = "é".repeat(30_000);
    for client in PYTHON {
        server.clear_log();
        let lines = python(client, &Settings::of(&server), &json!([[format!("SELECT LEN(N'{long}'), N'{long}'"), []]]));
        assert_eq!(lines[0]["rows"], json!([["30000", long]]), "{client}");
        let packets = server.log().iter().map(|entry| entry.packets).max();
        assert!(packets.is_some_and(|packets| packets > 10), "{client}: {packets:?}");
    }
}

#[test]
fn a_transaction_of_a_client_is_seen_by_nobody_until_it_is_committed() {
    let server = orders(1);
    server.execute("ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON").expect("an option");
    let mut writer = server.session();
    writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (note) VALUES (N'in flight')").expect("a row");
    let count = "SELECT COUNT_BIG(*) FROM dbo.orders";
    assert_eq!(rows("pytds", &server, count, json!([])), json!([["1"]]), "the versions of before");
    let locking = json!([["SET LOCK_TIMEOUT 50", []], ["SELECT COUNT_BIG(*) FROM dbo.orders WITH (READCOMMITTEDLOCK)", []]]);
    let lines = python("pytds", &Settings::of(&server), &locking);
    assert_eq!(lines[1]["error"], 1222, "{lines:?}");
    writer.execute("COMMIT").expect("committed");
    assert_eq!(rows("pymssql", &server, count, json!([])), json!([["2"]]));
}
