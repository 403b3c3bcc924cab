//! Every type, through every client.

use serde_json::{Value, json};
use tablesweep_testbed::tds::{PASSWORD, Server, USER};

use super::client::{PYTHON, Settings, Tsql, python, rows};

/// A column: its definition, the literal of a value, what the Python clients show of it, what `tsql` prints. `None` where
/// a client has no such type: pymssql gives the bytes of a `sql_variant`, and `tsql` nothing of a type of the CLR.
struct Case {
    column: &'static str,
    value: &'static str,
    pytds: Value,
    pymssql: Option<Value>,
    tsql: Option<&'static str>,
}

fn same(column: &'static str, value: &'static str, shown: impl Into<Value>, tsql: &'static str) -> Case {
    let shown = shown.into();
    Case { column, value, pymssql: Some(shown.clone()), pytds: shown, tsql: Some(tsql) }
}

fn cases() -> Vec<Case> {
    let big = "99999999999999999999999999999999999999";
    let mut cases = vec![
        same("bit", "1", true, "1"),
        same("tinyint", "255", "255", "255"),
        same("smallint", "-32768", "-32768", "-32768"),
        same("int", "-2147483648", "-2147483648", "-2147483648"),
        same("bigint", "9223372036854775807", "9223372036854775807", "9223372036854775807"),
        same("bigint", "CAST('-9223372036854775808' AS bigint)", "-9223372036854775808", "-9223372036854775808"),
        same("decimal(38,0)", "99999999999999999999999999999999999999", big, big),
        same("decimal(38,0)", "-99999999999999999999999999999999999999", format!("-{big}"), "-99999999999999999999999999999999999999"),
        // python-tds drops zeros at the end of a decimal.
        Case { pytds: json!("108"), ..same("decimal(9,4)", "108", "108.0000", "108.0000") },
        same("numeric(19,2)", "-0.01", "-0.01", "-0.01"),
        same("numeric(28,28)", "0.0000000000000000000000000001", "0.0000000000000000000000000001", "0.0000000000000000000000000001"),
        same("money", "922337203685477.5807", "922337203685477.5807", "922337203685477.5807"),
        same("money", "-922337203685477.5808", "-922337203685477.5808", "-922337203685477.5808"),
        same("money", "900719925474.0993", "900719925474.0993", "900719925474.0993"),
        same("smallmoney", "-214748.3648", "-214748.3648", "-214748.3648"),
        same("real", "0.1", "0.10000000149011612", "0.100000001"),
        same("float", "1.7976931348623157E308", "1.7976931348623157e+308", "1.7976931348623157e+308"),
        same(
            "uniqueidentifier",
            "'6F9619FF-8B86-D011-B42D-00C04FC964FF'",
            "6F9619FF-8B86-D011-B42D-00C04FC964FF",
            "6F9619FF-8B86-D011-B42D-00C04FC964FF",
        ),
        same("date", "'2026-08-05'", "2026-08-05", "Aug  5 2026 12:00AM"),
        same("datetime", "'2026-08-05 23:59:59.997'", "2026-08-05T23:59:59.997000", "Aug  5 2026 11:59PM"),
        same("smalldatetime", "'2079-06-06 23:59'", "2079-06-06T23:59:00", "Jun  6 2079 11:59PM"),
        same("char(5)", "'ab'", "ab   ", "ab   "),
        same("varchar(20)", "'5 € für ü'", "5 € für ü", "5 € für ü"),
        same("varchar(20) COLLATE Cyrillic_General_CI_AS", "N'Яблоко'", "Яблоко", "Яблоко"),
        same("varchar(20) COLLATE Thai_CI_AS", "N'ก'", "ก", "ก"),
        same("varchar(20) COLLATE Japanese_CI_AS", "N'日本'", "日本", "日本"),
        same("varchar(max)", "REPLICATE(CAST('a' AS varchar(max)), 20)", "a".repeat(20), "aaaaaaaaaaaaaaaaaaaa"),
        same("nchar(3)", "N'ж'", "ж  ", "ж  "),
        same("nvarchar(20)", "N'Ünïcödé 😀'", "Ünïcödé 😀", "Ünïcödé 😀"),
        same("nvarchar(max)", "N'日本'", "日本", "日本"),
        same("varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8", "N'héllo €'", "héllo €", "héllo €"),
        same("text", "'old text'", "old text", "old text"),
        same("ntext", "N'old téxt'", "old téxt", "old téxt"),
        same("xml", "N'<?xml version=\"1.0\"?><a>é</a>'", "<a>é</a>", "<a>é</a>"),
        same("binary(4)", "0x0102", "0x01020000", "01020000"),
        same("varbinary(8)", "0x010203", "0x010203", "010203"),
        same("varbinary(max)", "0xFF00", "0xFF00", "ff00"),
        same("image", "0xCAFE", "0xCAFE", "cafe"),
        same("time(7)", "'10:15:30.123456'", "10:15:30.123456", "Jan  1 1900 10:15AM"),
        same("datetime2(7)", "'2026-08-05 10:15:30.123456'", "2026-08-05T10:15:30.123456", "Aug  5 2026 10:15AM"),
        same("datetime2(0)", "'0001-01-01 00:00:01'", "0001-01-01T00:00:01", "Jan  1 1 12:00AM"),
        same("datetime2(3)", "'9999-12-31 23:59:59.999'", "9999-12-31T23:59:59.999000", "Dec 31 9999 11:59PM"),
        same("datetimeoffset(3)", "'2026-06-23 00:01:05.090 -07:00'", "2026-06-23T00:01:05.090000-07:00", "Jun 23 2026 12:01AM"),
        Case { tsql: None, ..same("hierarchyid", "CAST(0x5AC0 AS hierarchyid)", "0x5AC0", "") },
    ];
    for (value, shown, tsql) in [
        ("CAST(42 AS int)", "42", "42"),
        ("N'x'", "x", "x"),
        ("CAST(1.5 AS decimal(38,10))", "1.5", "1.5000000000"),
        ("CAST('2026-08-05 10:15:30.123456' AS datetime2(7))", "2026-08-05T10:15:30.123456", "Aug  5 2026 10:15AM"),
        ("CAST(0x0102 AS varbinary(5))", "0x0102", "0102"),
        ("CAST(1.25 AS money)", "1.25", "1.2500"),
    ] {
        cases.push(Case { pymssql: None, ..same("sql_variant", value, shown, tsql) });
    }
    cases
}

/// A table with a column for each case, a row of values, a row of `NULL`s, and the values again where none may be `NULL`.
fn server(cases: &[Case]) -> Server {
    let server = Server::start().expect("a server");
    for (table, nullable) in [("dbo.nullable", "NULL"), ("dbo.whole", "NOT NULL")] {
        let columns: String = cases.iter().enumerate().map(|(at, case)| format!(", c{at} {} {nullable}", case.column)).collect();
        let values: String = cases.iter().map(|case| format!(", {}", case.value)).collect();
        server.execute(&format!("CREATE TABLE {table} (id int NOT NULL PRIMARY KEY{columns})")).expect("a table");
        server.execute(&format!("INSERT INTO {table} VALUES (1{values})")).expect("a row");
    }
    server.execute("INSERT INTO dbo.nullable (id) VALUES (2)").expect("a row of NULLs");
    server
}

#[test]
fn python_clients_read_every_type_with_its_value_its_null_and_where_none_is_allowed() {
    let cases = cases();
    let server = server(&cases);
    for client in PYTHON {
        let statements = (0..cases.len()).flat_map(|at| {
            let nullable = json!([format!("SELECT id, c{at} FROM dbo.nullable ORDER BY id"), []]);
            [nullable, json!([format!("SELECT id, c{at} FROM dbo.whole"), []])]
        });
        let lines = python(client, &Settings::of(&server), &statements.collect());
        assert_eq!(lines.len(), cases.len() * 2);
        for (case, lines) in cases.iter().zip(lines.chunks(2)) {
            let shown = if client == "pytds" { Some(&case.pytds) } else { case.pymssql.as_ref() };
            let Some(shown) = shown else { continue };
            assert_eq!(lines[0], json!({"rows": [["1", shown], ["2", null]]}), "{client}: {} = {}", case.column, case.value);
            assert_eq!(lines[1], json!({"rows": [["1", shown]]}), "{client}: {} NOT NULL = {}", case.column, case.value);
        }
    }
    assert_eq!(server.refusals(), Vec::<String>::new());
}

#[test]
fn tsql_reads_every_type() {
    let cases = cases();
    let server = server(&cases);
    let batches: Vec<String> = (0..cases.len()).map(|at| format!("SELECT c{at} FROM dbo.nullable ORDER BY id")).collect();
    let batches: Vec<&str> = batches.iter().map(String::as_str).collect();
    let printed = Tsql::of(&server, &["encryption = off"]).run(USER, PASSWORD, &batches);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), cases.len() * 3, "a head, a value and a NULL each: {printed}");
    for ((at, case), lines) in cases.iter().enumerate().zip(lines.chunks(3)) {
        let Some(shown) = case.tsql else { continue };
        assert_eq!(lines, [format!("c{at}"), shown.to_owned(), "NULL".to_owned()], "{} = {}", case.column, case.value);
    }
    assert_eq!(server.refusals(), Vec::<String>::new());
}

#[test]
fn utf8_is_sent_as_it_is_to_a_server_that_is_told_to_and_read_by_its_flag() {
    let server = Server::start().expect("a server");
    server.configure(|settings| settings.utf8_as_it_is = true);
    server.execute("CREATE TABLE dbo.t (v varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8)").expect("a table");
    server.execute("INSERT INTO dbo.t VALUES (N'héllo €')").expect("a row");
    // python-tds reads the bytes by the locale alone, as other clients do that have not asked for UTF-8.
    assert_eq!(rows("pymssql", &server, "SELECT v FROM dbo.t", json!([])), json!([["héllo €"]]));
    assert_eq!(rows("pytds", &server, "SELECT v FROM dbo.t", json!([])), json!([["hÃ©llo â‚¬"]]));
}
