//! Sequence columns that were refused although they are one, or taken although they are none.

use tablesweep::config::load;
use tablesweep::sweep::Outcome;

use super::super::bed::code;
use super::Bed;

#[tokio::test]
async fn a_decimal_of_scale_0_is_a_sequence() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/125
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id decimal(10, 0) CONSTRAINT orders_id PRIMARY KEY)")
        .with("mssql.table.orders.batch.size", 2);
    bed.run("INSERT INTO dbo.orders (id) VALUES (1), (2), (3)");
    assert_eq!(bed.sweep().await.rows, 3);
    assert_eq!(bed.keys(), ["1", "2", "3"]);
}

/// Sweeps a table that cannot be polled, and gives the reason.
async fn refused(definition: &str) -> String {
    let bed = Bed::with_table(definition);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report), report.rows), (Outcome::Parked, Some("Source.Sequence"), 0), "{definition}: {report:?}");
    assert!(bed.batches().is_empty(), "no row was asked for: {definition}");
    report.reason.map(|reason| reason.message).unwrap_or_default()
}

#[tokio::test]
async fn a_rowversion_or_a_text_is_no_sequence_and_the_type_is_named() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/976
    let reason = refused("CREATE TABLE dbo.orders (id rowversion CONSTRAINT orders_id UNIQUE)").await;
    assert!(reason.contains("is of type rowversion") || reason.contains("is of type timestamp"), "{reason}");
    // https://github.com/estuary/connectors/pull/655, /2602
    for (ty, words) in [
        ("varchar(20)", "is of type varchar"),
        ("uniqueidentifier", "is of type uniqueidentifier"),
        ("datetime2", "is of type datetime2"),
        ("decimal(10, 2)", "has scale 2"),
        ("float", "is of type float"),
    ] {
        let reason = refused(&format!("CREATE TABLE dbo.orders (id {ty} NOT NULL CONSTRAINT orders_id UNIQUE)")).await;
        assert!(reason.contains(words), "{ty}: {reason}");
    }
}

#[tokio::test]
async fn a_column_with_equal_values_in_two_rows_is_no_sequence() {
    // https://github.com/logstash-plugins/logstash-input-jdbc/issues/313, /206; https://github.com/activepieces/activepieces/pull/14701
    for definition in [
        "CREATE TABLE dbo.orders (id int NOT NULL, v int)",
        "CREATE TABLE dbo.orders (id int NOT NULL, v int); CREATE INDEX by_id ON dbo.orders (id)",
        "CREATE TABLE dbo.orders (id int NOT NULL, v int); CREATE UNIQUE INDEX by_id ON dbo.orders (id)",
        "CREATE TABLE dbo.orders (id int NOT NULL, v int NOT NULL, CONSTRAINT both PRIMARY KEY (id, v))",
    ] {
        refused(definition).await;
    }
}

#[tokio::test]
async fn a_table_whose_sequence_column_is_not_given_is_a_fault_of_the_document_and_not_read_again_and_again() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/52
    let mut bed = Bed::new();
    bed.config.as_object_mut().expect("an object").remove("mssql.table.orders.sequence.column");
    let faults = load(&bed.documents(), tablesweep::assembly::SOURCES, &|_| None).err().map(|faults| faults.to_string());
    assert!(faults.as_ref().is_some_and(|faults| faults.contains("mssql.table.orders.sequence.column")), "{faults:?}");
    assert_eq!(bed.server.connections().opened, 0);
}

#[tokio::test]
async fn a_start_above_a_number_delivers_the_next_and_no_other() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/408, /370, /432
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY)").with("mssql.table.orders.start", 12_500);
    bed.run("INSERT INTO dbo.orders (id) VALUES (12499), (12500), (12501)");
    bed.sweep().await;
    assert_eq!(bed.keys(), ["12501"]);
}
