//! Which tables are accepted, and with which words the others are refused.

use tablesweep::cursor::Standing;
use tablesweep::sweep::Outcome;
use tablesweep_testbed::tds::{self, Login};

use super::bed::{Bed, code};

/// Defines, sweeps and answers the code and the words of the refusal. Nothing may have been delivered.
async fn refused(definition: &str) -> (String, String) {
    refused_by(&Bed::with_table(definition)).await
}

async fn refused_by(bed: &Bed) -> (String, String) {
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::Parked, "{report:?}");
    assert_eq!(bed.keys(), [] as [String; 0]);
    let reason = report.reason.expect("a reason");
    assert!(reason.message.contains("shop/orders") && reason.message.contains("dbo.orders"), "{}", reason.message);
    (reason.code.to_string(), reason.message)
}

async fn accepted(definition: &str, insert: &str) -> Bed {
    let bed = Bed::with_table(definition);
    bed.run(insert);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    bed
}

#[tokio::test]
async fn what_is_no_table_is_refused_with_what_it_is() {
    let table = "CREATE TABLE dbo.rows (id int CONSTRAINT rows_id PRIMARY KEY); ";
    for (definition, words) in [
        (format!("{table}CREATE VIEW dbo.orders AS SELECT id FROM dbo.rows"), "a view"),
        (format!("{table}CREATE SYNONYM dbo.orders FOR dbo.rows"), "a synonym of"),
        ("CREATE PROCEDURE dbo.orders AS SELECT 1".to_owned(), "a procedure"),
        ("CREATE EXTERNAL TABLE dbo.orders (id int) WITH (DATA_SOURCE = elsewhere)".to_owned(), "an external table"),
        (
            // What CREATE TABLE ... AS NODE adds.
            "CREATE TABLE dbo.orders (graph_id_DC2D8DDDDD1346E79ED15B50CB2F2F1B bigint HIDDEN NOT NULL, id int CONSTRAINT orders_id PRIMARY KEY)".to_owned(),
            "a node or edge table",
        ),
    ] {
        let (code, message) = refused(&definition).await;
        assert_eq!(code, "Source.NotATable", "{definition}: {message}");
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn a_table_that_is_not_there_or_not_shown_is_missing() {
    let (code, message) = refused("CREATE TABLE dbo.others (id int PRIMARY KEY)").await;
    assert!(code == "Source.TableMissing" && message.contains("no object dbo.orders"), "{message}");

    let mut bed = Bed::new();
    bed.set("mssql.table.orders.name", "sales.orders");
    let report = bed.sweep().await;
    let message = report.reason.expect("a reason").message;
    assert!(message.contains("no schema sales"), "{message}");

    // The same table for a login without any permission on it.
    let bed = Bed::new().with("mssql.user", "reader").with("mssql.password", tds::PASSWORD);
    bed.server.add_login(Login {
        name: "reader".into(),
        password: tds::PASSWORD.into(),
        administrator: false,
        databases: vec![tds::DATABASE.into()],
    });
    bed.run("DENY VIEW DEFINITION ON dbo.orders TO reader");
    let (code, message) = refused_by(&bed).await;
    assert!(code == "Source.TableMissing" && message.contains("grant SELECT"), "{message}");
}

#[tokio::test]
async fn a_sequence_column_that_does_not_guarantee_its_order_is_refused_with_the_reason() {
    let table = |columns: &str| format!("CREATE TABLE dbo.orders ({columns})");
    for (definition, words) in [
        (table("number int CONSTRAINT orders_id PRIMARY KEY"), "there is no column id"),
        (table("id int NULL CONSTRAINT orders_id UNIQUE"), "takes NULL"),
        (table("id varchar(20) CONSTRAINT orders_id PRIMARY KEY"), "is of type varchar"),
        (table("id uniqueidentifier CONSTRAINT orders_id PRIMARY KEY"), "is of type uniqueidentifier"),
        (table("id datetime2 CONSTRAINT orders_id PRIMARY KEY"), "is of type datetime2"),
        (table("id rowversion NOT NULL CONSTRAINT orders_id UNIQUE"), "is of type timestamp"),
        (table("id decimal(10, 2) CONSTRAINT orders_id PRIMARY KEY"), "has scale 2"),
        (table("id int NOT NULL"), "is not unique"),
        (table("id int NOT NULL, r int NOT NULL, CONSTRAINT orders_id PRIMARY KEY (r, id)"), "unique only together with r (orders_id)"),
        (table("id int NOT NULL") + "; CREATE INDEX i ON dbo.orders (id)", "is not unique"),
        (table("id int NOT NULL") + "; CREATE UNIQUE INDEX i ON dbo.orders (id)", "has a unique index (i) and no constraint"),
        (
            table("id int NOT NULL, r int") + "; CREATE UNIQUE INDEX i ON dbo.orders (id) WHERE r IS NULL",
            "unique among some of the rows only",
        ),
        (
            table("id int NOT NULL CONSTRAINT orders_id PRIMARY KEY NONCLUSTERED") + "; ALTER INDEX orders_id ON dbo.orders DISABLE",
            "index orders_id is disabled",
        ),
        (table("a int NOT NULL, id AS a + 1, CONSTRAINT orders_id UNIQUE (id)"), "is computed when it is read"),
        (table("id int MASKED WITH (FUNCTION = 'default()') NOT NULL CONSTRAINT orders_id PRIMARY KEY"), "is masked"),
        (table("id int IDENTITY(-1, -1) CONSTRAINT orders_id PRIMARY KEY"), "counts down"),
        (
            table(
                "id int ENCRYPTED WITH (COLUMN_ENCRYPTION_KEY = k, ENCRYPTION_TYPE = DETERMINISTIC, ALGORITHM = 'AEAD_AES_256_CBC_HMAC_SHA_256') \
                 NOT NULL CONSTRAINT orders_id PRIMARY KEY",
            ),
            "is encrypted",
        ),
    ] {
        let (code, message) = refused(&definition).await;
        assert_eq!(code, "Source.Sequence", "{definition}: {message}");
        assert!(message.contains(words), "{definition}: {message}");
    }
}

#[tokio::test]
async fn a_table_whose_clustered_index_is_disabled_is_refused() {
    let (code, message) = refused(
        "CREATE TABLE dbo.orders (id int NOT NULL CONSTRAINT orders_id PRIMARY KEY CLUSTERED); ALTER INDEX orders_id ON dbo.orders DISABLE",
    )
    .await;
    assert!(code == "Source.TableDisabled" && message.contains("orders_id"), "{message}");
}

#[tokio::test]
async fn a_whole_number_with_a_constraint_of_its_own_is_a_sequence_whatever_its_type() {
    for (declared, largest) in [
        ("tinyint", "255"),
        ("smallint", "32767"),
        ("int", "2147483647"),
        ("bigint", "9223372036854775807"),
        ("decimal(10, 0)", "9999999999"),
        ("numeric(38, 0)", "99999999999999999999999999999999999999"),
    ] {
        for key in ["PRIMARY KEY", "UNIQUE"] {
            let definition = format!("CREATE TABLE dbo.orders (note int, id {declared} NOT NULL CONSTRAINT orders_id {key})");
            let bed = accepted(&definition, &format!("INSERT INTO dbo.orders VALUES (1, {largest})")).await;
            assert_eq!((bed.keys(), bed.cursor().await.as_deref()), (vec![largest.to_owned()], Some(largest)), "{definition}");
            assert_eq!(bed.sweep().await.rows, 0, "{definition}: nothing is above the largest");
        }
    }
}

#[tokio::test]
async fn an_alias_type_a_stored_computation_and_included_columns_are_accepted() {
    accepted(
        "CREATE TYPE dbo.OrderId FROM bigint NOT NULL; CREATE TABLE dbo.orders (id dbo.OrderId CONSTRAINT orders_id PRIMARY KEY)",
        "INSERT INTO dbo.orders VALUES (1)",
    )
    .await;
    accepted(
        "CREATE TABLE dbo.orders (a int NOT NULL, id AS a + 1 PERSISTED NOT NULL, CONSTRAINT orders_id UNIQUE (id))",
        "INSERT INTO dbo.orders (a) VALUES (1)",
    )
    .await;
    accepted(
        "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, a int); CREATE UNIQUE INDEX i ON dbo.orders (id, a)",
        "INSERT INTO dbo.orders VALUES (1, 2)",
    )
    .await;
}

/// A table of one name must not be described with the columns of another.
#[tokio::test]
async fn a_name_is_no_pattern() {
    let bed = Bed::with_table(
        "CREATE TABLE dbo.A_C (id int CONSTRAINT ac_id PRIMARY KEY, mine int); \
         CREATE TABLE dbo.ABC (id int CONSTRAINT abc_id PRIMARY KEY, other int)",
    )
    .with("mssql.table.orders.name", "dbo.A_C");
    bed.run("INSERT INTO dbo.A_C VALUES (1, 2)");
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, r#"{"id":1,"mine":2}"#);
}

#[tokio::test]
async fn names_are_compared_as_the_database_does() {
    // As most databases do: without regard to case. The catalog's spelling goes into the record.
    let bed = Bed::new().with("mssql.table.orders.name", "DBO.Orders").with("mssql.table.orders.sequence.column", "ID");
    bed.insert(1);
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, r#"{"id":1,"note":"row 0"}"#);

    let sensitive = |name: &str, column: &str| {
        let bed = Bed::new().with("mssql.table.orders.name", name).with("mssql.table.orders.sequence.column", column);
        bed.run("ALTER DATABASE shop COLLATE Latin1_General_CS_AS");
        bed
    };
    let bed = sensitive("dbo.Orders", "id");
    let report = bed.sweep().await;
    assert_eq!(code(&report), Some("Source.TableMissing"), "{report:?}");
    let bed = sensitive("dbo.orders", "ID");
    let (code, message) = refused_by(&bed).await;
    assert!(code == "Source.Sequence" && message.contains("there is id, and this database tells case apart"), "{message}");
    let bed = sensitive("dbo.orders", "id");
    bed.run("ALTER TABLE dbo.orders ADD ID int NULL");
    bed.insert(1);
    bed.sweep().await;
    assert_eq!(bed.lines()[0].text, r#"{"id":1,"note":"row 0","ID":null}"#, "two columns that differ in case");
}

#[tokio::test]
async fn a_constraint_that_is_dropped_later_stops_the_table_at_its_cursor() {
    let bed = Bed::new();
    bed.insert(2);
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders DROP CONSTRAINT orders_id");
    bed.insert(1);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Paused, Some("Source.Sequence")), "{report:?}");
    assert_eq!(bed.cursor().await.as_deref(), Some("2"));
    bed.run("ALTER TABLE dbo.orders ADD CONSTRAINT orders_id PRIMARY KEY (id)");
    assert_eq!(bed.sweep().await.rows, 1);
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn a_table_that_was_polled_and_cannot_be_any_more_waits_and_is_looked_at_with_every_sweep() {
    let away = "EXEC sp_rename 'dbo.orders', 'orders_old'";
    let back = "EXEC sp_rename 'dbo.orders_old', 'orders'";
    let cases = [
        ("EXEC sp_rename 'dbo.orders.id', 'number', 'COLUMN'", "EXEC sp_rename 'dbo.orders.number', 'id', 'COLUMN'", "Source.Sequence"),
        (away, back, "Source.TableMissing"),
    ];
    for (undo, redo, expected) in cases {
        let bed = Bed::new();
        bed.insert(2);
        bed.sweep().await;
        bed.run(undo);
        for tried in [true, false] {
            let report = bed.sweep().await;
            assert_eq!((report.outcome, code(&report), report.tried), (Outcome::Paused, Some(expected), tried), "{report:?}");
        }
        assert!(matches!(bed.item().await.standing, Standing::Waiting(_)), "parked, it would be looked at more and more seldom");
        bed.run(redo);
        bed.insert(1);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
        assert_eq!(bed.keys(), bed.expected());
    }
}

/// Aurora Babelfish numbers its types otherwise and keeps names in lower case.
#[tokio::test]
async fn babelfish_is_a_server_too() {
    let settings = tds::Settings { babelfish: true, ..tds::Settings::default() };
    let bed =
        Bed::on(settings, "CREATE TABLE dbo.Orders (Id bigint IDENTITY CONSTRAINT orders_id PRIMARY KEY, Amount money, Note nvarchar(20))")
            .with("mssql.table.orders.name", "dbo.Orders")
            .with("mssql.table.orders.sequence.column", "Id");
    bed.run("INSERT INTO dbo.Orders (Amount, Note) VALUES (922337203685477.5807, N'é')");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    assert_eq!(bed.lines()[0].text, r#"{"id":1,"amount":922337203685477.5807,"note":"é"}"#);
}
