//! Typed mode: records with a schema that the table itself tells.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tablesweep::sweep::Outcome;
use tablesweep_testbed::connect::{self, JsonSettings};
use tablesweep_testbed::schema_registry;

use super::bed::Bed;
use super::types::all_types;

fn typed(definition: &str) -> Bed {
    Bed::with_table(definition).with("mssql.schema.mode", "typed")
}

#[tokio::test]
async fn a_typed_row_says_what_a_schemaless_one_says() {
    let definition = "CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, a tinyint, b bigint NOT NULL, c real, d float, e bit, \
                      f nvarchar(20), g uniqueidentifier, h time(3), i datetime2(7), j datetimeoffset, k varchar(20) COLLATE Thai_CI_AS)";
    let insert = "INSERT INTO dbo.orders VALUES (1, 255, 9223372036854775807, 0.1, -1.5, 1, N'h\"é', '6f9619ff-8b86-d011-b42d-00c04fc964ff', \
                  '10:15:30.123', '1969-12-31T23:59:59.9999', '2026-06-23 00:01:05 -07:00', N'ก'), \
                  (2, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";
    let (typed, plain) = (typed(definition), Bed::with_table(definition));
    for bed in [&typed, &plain] {
        bed.run(insert);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
    }
    let (typed, plain) = (typed.lines(), plain.lines());
    assert_eq!(typed.iter().map(|line| &line.value).collect::<Vec<_>>(), plain.iter().map(|line| &line.value).collect::<Vec<_>>());
    assert_eq!(typed[0].headers["mssql.schema.mode"], "typed");
    assert_eq!(typed[1].key, "2");
}

/// The schema as Connect's JSON writes it: names, types and what is optional come from the table.
#[tokio::test]
async fn the_schema_is_the_tables() {
    let bed = typed(
        "CREATE TABLE dbo.orders (id decimal(38, 0) CONSTRAINT orders_id PRIMARY KEY, at date NOT NULL, price money, raw varbinary(4), \
         any sql_variant)",
    )
    .with("value.converter", "org.apache.kafka.connect.json.JsonConverter")
    .with("value.converter.schemas.enable", "true");
    bed.run("INSERT INTO dbo.orders VALUES (7, '2026-08-05', 1.5, 0x0102, CAST(2.50 AS decimal(5, 2)))");
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    let value = &bed.lines()[0].value;
    assert_eq!(value["schema"]["name"], "tablesweep.sqlserver.dbo.orders.Value");
    let told = |field: &Value| {
        let part = |name: &str| field[name].clone();
        json!([part("field"), part("type"), part("optional"), part("name"), part("parameters")])
    };
    let fields: Vec<Value> = value["schema"]["fields"].as_array().expect("fields").iter().map(told).collect();
    let logical = |name: &str| format!("org.apache.kafka.connect.data.{name}");
    let digits = |precision: &str, scale: &str| json!({"scale": scale, "connect.decimal.precision": precision});
    let expected = [
        json!(["id", "bytes", false, logical("Decimal"), digits("38", "0")]),
        json!(["at", "int64", false, logical("Timestamp"), null]),
        json!(["price", "bytes", true, logical("Decimal"), digits("19", "4")]),
        json!(["raw", "bytes", true, null, null]),
        json!(["any", "string", true, null, null]),
    ];
    assert_eq!(fields, expected);
    // Unscaled big-endian bytes in Base64: 7 and 15000.
    assert_eq!(value["payload"], json!({"id": "Bw==", "at": 1_785_888_000_000_i64, "price": "Opg=", "raw": "AQI=", "any": "2.50"}));
}

/// A column that no longer takes NULL is no difference, and readers go on with the schema that they know.
#[tokio::test]
async fn a_field_stays_optional_as_it_was_when_the_table_was_activated() {
    let bed = typed("CREATE TABLE dbo.orders (id int CONSTRAINT orders_id PRIMARY KEY, a int NULL)")
        .with("value.converter", "org.apache.kafka.connect.json.JsonConverter")
        .with("value.converter.schemas.enable", "true");
    bed.run("INSERT INTO dbo.orders VALUES (1, 1)");
    bed.sweep().await;
    bed.run("ALTER TABLE dbo.orders ALTER COLUMN a int NOT NULL; INSERT INTO dbo.orders VALUES (2, 2)");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    let lines = bed.lines();
    assert_eq!(lines[0].value["schema"], lines[1].value["schema"]);
    assert_eq!(lines[1].value["schema"]["fields"][1]["optional"], true);
}

/// Two formats, two readers of Connect's, one struct: what its JSON converter finds, Confluent's `AvroData` finds too.
#[tokio::test]
async fn connect_finds_the_same_struct_of_every_type_in_json_and_in_avro() {
    let registry = schema_registry::shared().await.expect("the registry starts");
    let json = all_types("").with("mssql.schema.mode", "typed").with("value.converter", "org.apache.kafka.connect.json.JsonConverter");
    let avro = all_types("")
        .with("mssql.schema.mode", "typed")
        .with("mssql.emit.envelope", "false")
        .with("mssql.table.orders.topic", "sqlserver.avro.types")
        .with("value.converter", "io.confluent.connect.avro.AvroConverter")
        .with("value.converter.schema.registry.url", registry.url());
    for bed in [&json, &avro] {
        let report = bed.sweep().await;
        assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    }
    let texts: Vec<Vec<u8>> = json.lines().iter().map(|line| line.value.to_string().into_bytes()).collect();
    let registered = registry.version("sqlserver.avro.types-value", "latest").await.expect("a version");
    let schema = registered["schema"].as_str().expect("a text");
    let lines = std::fs::read_to_string(avro.path("out.ndjson")).expect("records");
    let values = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let bytes = STANDARD.decode(line["value_base64"].as_str().expect("bytes")).expect("base64");
        let id = u32::from_be_bytes(bytes[1..5].try_into().expect("four bytes"));
        assert_eq!((bytes[0], u64::from(id)), (0, registered["id"].as_u64().expect("an id")));
        (schema.to_owned(), bytes[5..].to_vec())
    });
    let values: Vec<(String, Vec<u8>)> = values.collect();
    let expected = connect::read(JsonSettings::default(), &texts).expect("Connect reads them");
    let found = connect::read_avro(true, &values).expect("AvroData reads them");
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!((&found.schema, &as_json_reads(&found.value)), (&expected.schema, &expected.value), "row {at}");
        assert_eq!(found.again, values[at].1, "row {at}: byte for byte");
    }
}

/// The value as Connect's JSON converter can find it: it reads fractions as `BigDecimal` (KAFKA-8595), which has no negative
/// zero. The record has its sign in both formats.
fn as_json_reads(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "Double -0.0" => json!("Double 0.0"),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), as_json_reads(value))).collect(),
        value => value.clone(),
    }
}
