//! Values that came out wrong, or not at all.

use super::{Bed, swept, table_of};

#[tokio::test]
async fn money_keeps_its_last_digit() {
    // https://github.com/risingwavelabs/risingwave/issues/21761
    let bed = table_of("money", &["922337203685477.5807", "-922337203685477.5808", "900719925474.0993", "NULL"]);
    assert_eq!(swept(&bed).await, ["922337203685477.5807", "-922337203685477.5808", "900719925474.0993", "null"]);
    let bed = table_of("smallmoney", &["214748.3647", "-214748.3648"]);
    assert_eq!(swept(&bed).await, ["214748.3647", "-214748.3648"]);
}

#[tokio::test]
async fn a_datetimeoffset_is_the_instant_that_it_means() {
    // https://github.com/airbytehq/airbyte/issues/32780, /36225, /42957
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/614, https://github.com/apache/seatunnel/issues/5454
    let values = ["'2024-05-11 02:00:00.276489 +03:00'", "'2026-06-23 00:01:05.0900948 -07:00'", "'1969-12-31 23:59:59.9999 +00:00'"];
    let bed = table_of("datetimeoffset(7)", &values).with("mssql.timezone", "Asia/Tokyo");
    // 2024-05-10T23:00:00.276Z, 2026-06-23T07:01:05.090Z, one millisecond before 1970.
    assert_eq!(swept(&bed).await, ["1715382000276", "1782198065090", "-1"]);
    let bed = table_of("datetimeoffset(4)", &["'2024-05-11 02:00:00.2764 +03:00'"]);
    assert_eq!(swept(&bed).await, ["1715382000276"]);
}

#[tokio::test]
async fn a_time_without_a_zone_is_that_of_the_configured_zone_and_keeps_its_milliseconds() {
    // https://github.com/debezium/debezium/pull/2606, https://github.com/airbytehq/airbyte/issues/31447
    let values = ["'2026-08-05 10:15:30.1234567'", "'2026-03-29 02:30:00'", "'2026-10-25 02:30:00'"];
    let bed = table_of("datetime2(7)", &values).with("mssql.timezone", "Europe/Berlin");
    assert_eq!(swept(&bed).await, ["1785917730123", "1774747800000", "1792888200000"]);
    // https://github.com/logstash-plugins/logstash-input-jdbc/issues/140
    let bed =
        table_of("datetime", &["'2016-06-07 10:20:05.223'", "'2026-08-05 23:59:59.997'", "'1753-01-01'"]).with("mssql.timezone", "UTC");
    assert_eq!(swept(&bed).await, ["1465294805223", "1785974399997", "-6847804800000"]);
}

#[tokio::test]
async fn a_time_of_day_is_never_negative_nor_null_in_any_zone() {
    // https://github.com/apache/flink-cdc/pull/4548
    let bed = table_of("time(7)", &["'00:00:00'", "'23:59:59.9999999'", "'10:15:30.1234567'"]).with("mssql.timezone", "Pacific/Auckland");
    assert_eq!(swept(&bed).await, ["0", "86399999", "36930123"]);
}

#[tokio::test]
async fn a_moment_of_seven_digits_is_cut_and_never_compared_so_that_two_in_a_millisecond_both_come() {
    // https://github.com/airbytehq/airbyte/pull/79149, /issues/79687
    let bed = table_of("datetime2(7)", &["'2026-08-05 10:15:30.1234567'", "'2026-08-05 10:15:30.1234568'"])
        .with("mssql.table.orders.batch.size", 1);
    assert_eq!(swept(&bed).await, ["1785924930123", "1785924930123"]);
}

#[tokio::test]
async fn a_decimal_is_a_number_with_its_scale_and_neither_bytes_nor_parts_nor_text() {
    // https://github.com/confluentinc/kafka-connect-jdbc/issues/101, /603, /563
    let bed = table_of("decimal(18, 2)", &["100.01", "NULL", "-0.01"]);
    assert_eq!(swept(&bed).await, ["100.01", "null", "-0.01"]);
    // https://github.com/logstash-plugins/logstash-input-jdbc/issues/238
    let bed = table_of("numeric(18, 4)", &["21.13"]);
    assert_eq!(swept(&bed).await, ["21.1300"]);
    // https://github.com/airbytehq/airbyte/issues/32982
    let bed = table_of("decimal(18, 4)", &["123.45"]);
    assert_eq!(swept(&bed).await, ["123.4500"]);
    let bed = table_of("decimal(38, 10)", &["9999999999999999999999999999.9999999999"]).with("mssql.decimal.as.string", true);
    assert_eq!(swept(&bed).await, ["\"9999999999999999999999999999.9999999999\""]);
}

#[tokio::test]
async fn a_rowversion_is_bytes_and_no_date() {
    // https://github.com/singer-io/tap-mssql/issues/27, https://github.com/wintersrd/pipelinewise-tap-mssql/issues/86,
    // https://github.com/apache/seatunnel/issues/2963
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, v rowversion)");
    bed.run("INSERT INTO dbo.orders (id) VALUES (1)");
    // The server's first version is 0x7D1.
    assert_eq!(swept(&bed).await, ["\"AAAAAAAAB9E=\""]);
}

#[tokio::test]
async fn types_of_the_clr_are_bytes_and_no_panic() {
    // https://github.com/airbytehq/airbyte/issues/7739, https://github.com/microsoft/go-mssqldb/issues/167,
    // https://github.com/tiberius-rs/tiberius/issues/257
    let bed = table_of("hierarchyid", &["CAST(0x5AC0 AS hierarchyid)", "NULL"]);
    assert_eq!(swept(&bed).await, ["\"WsA=\"", "null"]);
    let point = "CAST(0xE6100000010C000000000000F03F0000000000000040 AS geography)";
    let bed = table_of("geography", &[point]);
    assert_eq!(swept(&bed).await, ["\"5hAAAAEMAAAAAAAA8D8AAAAAAAAAQA==\""]);
}

#[tokio::test]
async fn a_variant_is_what_its_value_is_row_by_row() {
    // https://github.com/t8y2/dbx/pull/2907
    let values = [
        "CAST(42 AS int)",
        "N'x'",
        "CAST(1.5 AS decimal(38,10))",
        "CAST('2026-08-05 10:15:30.1234567' AS datetime2(7))",
        "NULL",
        "CAST(922337203685477.5807 AS money)",
        "CAST('Müller' AS varchar(10)) COLLATE SQL_Latin1_General_CP850_CI_AS",
        "N'A' + NCHAR(0xD83D)",
    ];
    let bed = table_of("sql_variant", &values);
    let expected = ["42", "\"x\"", "1.5000000000", "1785924930123", "null", "922337203685477.5807", "\"Müller\"", "\"A\u{fffd}\""];
    assert_eq!(swept(&bed).await, expected);
}

#[tokio::test]
async fn text_of_an_old_code_page_is_readable() {
    // https://github.com/tiberius-rs/tiberius/issues/326
    let bed = table_of("varchar(20) COLLATE SQL_Latin1_General_CP850_CI_AS", &["N'Müller'", "0x81"]);
    assert_eq!(swept(&bed).await, ["\"Müller\"", "\"ü\""]);
    let bed = table_of("varchar(20) COLLATE SQL_Latin1_General_CP437_CI_AS", &["N'Müller ≥'"]);
    assert_eq!(swept(&bed).await, ["\"Müller ≥\""]);
    // https://github.com/airbytehq/airbyte/issues/5077
    let bed = table_of("varchar(20) COLLATE Thai_CI_AS", &["0xA1", "N'ก'"]);
    assert_eq!(swept(&bed).await, ["\"\u{e01}\"", "\"\u{e01}\""]);
}

#[tokio::test]
async fn half_a_character_does_not_stall_a_table() {
    // https://github.com/risingwavelabs/risingwave/pull/25596, https://github.com/pymssql/pymssql/issues/610
    for column in ["nvarchar(20)", "nvarchar(max)", "nchar(3)", "ntext"] {
        let bed = table_of(column, &["N'one'", "N'A' + NCHAR(0xD83D) + N'B'", "N'two'"]);
        assert_eq!(swept(&bed).await, ["\"one\"", "\"A\u{fffd}B\"", "\"two\""], "{column}");
    }
    // A byte that the code page does not have.
    let bed = Bed::with_table("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, v varchar(20) COLLATE Greek_CI_AS)");
    bed.run("INSERT INTO dbo.orders (id, v) VALUES (1, 'a'), (2, 0x61D262), (3, 'b')");
    let read = swept(&bed).await;
    assert_eq!((read.len(), read[0].as_str(), read[2].as_str()), (3, "\"a\"", "\"b\""), "{read:?}");
}

#[tokio::test]
async fn text_of_a_utf8_collation_is_the_same_in_either_form_of_the_wire() {
    // https://github.com/tediousjs/tedious/issues/1143
    for as_it_is in [false, true] {
        let bed = table_of("varchar(20) COLLATE Latin1_General_100_CI_AS_SC_UTF8", &["N'héllo €'"]);
        bed.server.configure(|settings| settings.utf8_as_it_is = as_it_is);
        assert_eq!(swept(&bed).await, ["\"héllo €\""], "as it is: {as_it_is}");
    }
}

#[tokio::test]
async fn the_padding_of_a_char_is_kept() {
    // https://github.com/prisma/orm/issues/7476
    let bed = table_of("char(5)", &["'ab'", "N'é'"]);
    assert_eq!(swept(&bed).await, ["\"ab   \"", "\"é    \""]);
    let bed = table_of("char(1)", &["N'é'"]);
    assert_eq!(swept(&bed).await, ["\"é\""]);
}

#[tokio::test]
async fn a_uniqueidentifier_is_upper_case_and_orders_nothing() {
    // https://github.com/estuary/connectors/pull/785, https://github.com/risingwavelabs/risingwave/issues/27107
    let values = ["'ffffffff-ffff-ffff-ffff-000000000001'", "'00000000-0000-0000-0000-000000000002'"];
    let bed = table_of("uniqueidentifier", &values).with("mssql.table.orders.batch.size", 1);
    assert_eq!(swept(&bed).await, ["\"FFFFFFFF-FFFF-FFFF-FFFF-000000000001\"", "\"00000000-0000-0000-0000-000000000002\""]);
}
