//! Names that were taken for something else.

use tablesweep::sweep::Outcome;
use tablesweep_testbed::tds::Settings;

use super::super::bed::code;
use super::Bed;

#[tokio::test]
async fn an_underscore_in_a_name_is_no_wildcard() {
    // https://github.com/microsoft/mssql-jdbc/issues/1136, https://github.com/dbeaver/dbeaver/issues/9998
    let bed = Bed::with_table("CREATE TABLE dbo.ABC (id int CONSTRAINT abc_id PRIMARY KEY, other int); CREATE TABLE dbo.A_C (id int CONSTRAINT a_c_id PRIMARY KEY, mine int)")
        .with("mssql.table.orders.name", "dbo.A_C");
    bed.run("INSERT INTO dbo.A_C VALUES (1, 10); INSERT INTO dbo.ABC VALUES (2, 20)");
    bed.sweep().await;
    assert_eq!(bed.lines().iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["{\"id\":1,\"mine\":10}"]);
}

#[tokio::test]
async fn hidden_columns_are_in_the_record() {
    // https://github.com/JordanMarr/SqlHydra/issues/77, https://github.com/dotnet/efcore/issues/37720
    let bed = Bed::with_table(
        "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, \
         began datetime2 GENERATED ALWAYS AS ROW START HIDDEN NOT NULL, ends datetime2 GENERATED ALWAYS AS ROW END HIDDEN NOT NULL, \
         PERIOD FOR SYSTEM_TIME (began, ends)) WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.orders_before))",
    );
    bed.run("INSERT INTO dbo.orders (id) VALUES (1)");
    bed.sweep().await;
    let value = &bed.lines()[0].value;
    assert!(value["began"].is_i64(), "{value}");
    assert_eq!(value["ends"], 253_402_300_799_999_i64);
}

#[tokio::test]
async fn a_history_a_view_and_a_synonym_are_told_apart_from_a_missing_table() {
    let tables = "CREATE TABLE dbo.t (id int CONSTRAINT t_id PRIMARY KEY, \
         began datetime2 GENERATED ALWAYS AS ROW START NOT NULL, ends datetime2 GENERATED ALWAYS AS ROW END NOT NULL, \
         PERIOD FOR SYSTEM_TIME (began, ends)) WITH (SYSTEM_VERSIONING = ON (HISTORY_TABLE = dbo.t_before)); \
         CREATE VIEW dbo.v AS SELECT id FROM dbo.t; CREATE SYNONYM dbo.s FOR dbo.t";
    for (name, expected, word) in [
        ("dbo.t_before", "Source.NotATable", "history"),
        ("dbo.v", "Source.NotATable", "view"),
        ("dbo.s", "Source.NotATable", "synonym"),
        ("dbo.u", "Source.TableMissing", "dbo"),
        ("nowhere.t", "Source.TableMissing", "nowhere"),
    ] {
        let bed = Bed::with_table(tables).with("mssql.table.orders.name", name);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some(expected)), "{name}: {report:?}");
        let reason = report.reason.map(|reason| reason.message).unwrap_or_default();
        assert!(reason.contains(word), "{name}: {reason}");
    }
}

#[tokio::test]
async fn names_that_differ_in_case_alone_are_two_in_a_database_that_tells_case_apart() {
    let bed = Bed::with_table(
        "ALTER DATABASE CURRENT COLLATE SQL_Latin1_General_CP1_CS_AS; CREATE TABLE dbo.Orders (id int CONSTRAINT o_id PRIMARY KEY, ID int)",
    )
    .with("mssql.table.orders.name", "dbo.Orders");
    bed.run("INSERT INTO dbo.Orders VALUES (1, 2)");
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, "{\"id\":1,\"ID\":2}");
    let other = Bed::with_table(
        "ALTER DATABASE CURRENT COLLATE SQL_Latin1_General_CP1_CS_AS; CREATE TABLE dbo.Orders (id int CONSTRAINT o_id PRIMARY KEY)",
    );
    let report = other.sweep().await;
    assert_eq!(code(&report), Some("Source.TableMissing"), "dbo.orders is another name: {report:?}");
}

#[tokio::test]
async fn babelfish_with_its_own_type_numbers_and_lower_case_names_is_a_server_too() {
    let bed = Bed::on(
        Settings { babelfish: true, ..Settings::default() },
        "CREATE TABLE dbo.orders (ID bigint CONSTRAINT orders_id PRIMARY KEY, Amount decimal(18, 2), Note nvarchar(20), At datetime2)",
    );
    bed.run("INSERT INTO dbo.orders VALUES (1, 1.50, N'é', '2026-08-05 10:15:30')");
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    assert_eq!(bed.lines()[0].text, "{\"id\":1,\"amount\":1.50,\"note\":\"é\",\"at\":1785924930000}");
}
