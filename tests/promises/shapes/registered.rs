//! Records behind the header of a schema registry, read by others: Confluent's `AvroData` with Apache Avro, and Confluent's client
//! for Python. The registry is Apicurio's, Kafka is Kafka.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};
use tablesweep_testbed::schema_registry::{self, Server};
use tablesweep_testbed::{confluent, connect};

use super::modes::{self, FIELDS};
use super::schemas::{insert, keys as two_tables, only_grows};
use super::{Stand, tables};

const AVRO: &str = "io.confluent.connect.avro.AvroConverter";
const JSON_SCHEMA: &str = "io.confluent.connect.json.JsonSchemaConverter";

async fn registry() -> &'static Server {
    schema_registry::shared().await.expect("the registry starts")
}

/// The same document with values in this format.
fn through(mut config: Value, converter: &str, registry: &Server) -> Value {
    config["value.converter"] = converter.into();
    config["value.converter.schema.registry.url"] = registry.url().into();
    config
}

/// The id in a record's header, and the data behind it.
fn open(record: &[u8]) -> (u32, Vec<u8>) {
    assert_eq!(record[0], 0, "the magic byte");
    (u32::from_be_bytes(record[1..5].try_into().expect("four bytes")), record[5..].to_vec())
}

/// The text of a schema, as any consumer asks for it.
async fn schema(registry: &Server, id: u32) -> String {
    let (status, answer) = registry.ask("GET", &format!("/schemas/ids/{id}"), None).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
    answer["schema"].as_str().expect("a text").to_owned()
}

/// Records with the schemas that their headers name.
async fn opened(registry: &Server, records: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
    let mut schemas = BTreeMap::new();
    let mut opened = Vec::new();
    for record in records {
        let (id, data) = open(record);
        if let Entry::Vacant(vacant) = schemas.entry(id) {
            vacant.insert(schema(registry, id).await);
        }
        opened.push((schemas[&id].clone(), data));
    }
    opened
}

fn canonical(text: &str) -> String {
    serde_json::from_str::<Value>(text).expect("JSON").to_string()
}

#[tokio::test]
async fn confluents_avro_data_finds_the_struct_of_every_mode_and_writes_the_same_schema_and_the_same_bytes() {
    let registry = registry().await;
    let (stand, ids) = modes::stand().await;
    let instance = stand.api.address().ip().to_string();
    for (mode, envelope, meta) in
        [("strings", false, true), ("strings", true, true), ("typed", false, true), ("typed", true, true), ("typed", true, false)]
    {
        let topic = format!("avro-{mode}-{envelope}-{meta}");
        let mut config = through(modes::keys(&topic, mode, envelope), AVRO, registry);
        config["value.converter.connect.meta.data"] = meta.to_string().into();
        config["key.converter"] = AVRO.into();
        config["key.converter.schema.registry.url"] = registry.url().into();
        stand.connector(&config);
        assert_eq!(stand.sweep(&topic, 0)[0]["rows"], 3, "{topic}");
        let records = stand.broker.read_all(&topic).await.expect("the topic can be read");
        let keys: Vec<Vec<u8>> = records.iter().map(|record| record.key.clone().expect("a key")).collect();
        let keys = connect::read_avro(true, &opened(registry, &keys).await).expect("AvroData reads them");
        assert_eq!(
            keys.iter().map(|found| found.value.as_str()).collect::<Vec<_>>(),
            ids.iter().map(|id| Some(id.as_str())).collect::<Vec<_>>()
        );
        let values: Vec<Vec<u8>> = records.into_iter().map(|record| record.value.expect("a value")).collect();
        let values = opened(registry, &values).await;
        for (at, (found, (schema, data))) in connect::read_avro(meta, &values).expect("AvroData reads them").iter().zip(&values).enumerate()
        {
            if meta {
                let expected =
                    if envelope { modes::envelope_schema(mode, &found.schema) } else { modes::row_schema(mode, &found.schema, false) };
                assert_eq!(found.schema, expected, "{topic}");
                let row = modes::expected(mode, at, &ids[at]);
                let row = if envelope { modes::enveloped(row, at, &instance) } else { row };
                assert_eq!(found.value, row, "{topic}, row {at}");
                assert_eq!(canonical(schema), canonical(&found.text), "{topic}: member for member");
            } else {
                assert!(!schema.contains("connect."), "{schema}");
                assert_eq!(
                    found.value["after"]["u_int8"],
                    modes::expected(mode, at, &ids[at])["u_int8"]
                        .as_str()
                        .map_or(Value::Null, |text| text.replace("Byte", "Integer").into())
                );
            }
            assert_eq!(*data, found.again, "{topic}, row {at}: byte for byte");
        }
    }
}

/// What Python's client says of a field where Connect's says `found`.
fn in_python(kind: &str, found: &Value) -> Value {
    let Some(text) = found.as_str() else { return found.clone() };
    let number = || text.split(' ').nth(1).expect("a number");
    match kind.split('(').next().expect("a type") {
        "int8" | "int16" | "int32" | "int64" => format!("int {}", number()).into(),
        "float32" => hexadecimal(number().parse::<f32>().expect("a number").into()).into(),
        "float64" => hexadecimal(number().parse().expect("a number")).into(),
        "timestamp" => text.replace("date", "timestamp").into(),
        "date" => format!("date {}", number().parse::<i64>().expect("milliseconds") / 86_400_000).into(),
        "time" => text.replace("date", "time").into(),
        _ => found.clone(),
    }
}

/// A number as Python's `float.hex` writes it.
fn hexadecimal(number: f64) -> String {
    let bits = number.to_bits();
    let (sign, exponent, fraction) = (if bits >> 63 == 1 { "-" } else { "" }, (bits >> 52) & 0x7ff, bits & ((1 << 52) - 1));
    match exponent {
        0 => format!("float {sign}0x0.{fraction:013x}p-1022"),
        _ => format!("float {sign}0x1.{fraction:013x}p{:+}", i64::try_from(exponent).expect("small") - 1023),
    }
}

#[tokio::test]
async fn confluents_client_for_python_reads_every_type_in_avro() {
    let registry = registry().await;
    let (stand, ids) = modes::stand().await;
    for (mode, envelope) in [("strings", true), ("typed", false)] {
        let topic = format!("avro-python-{mode}");
        stand.connector(&through(modes::keys(&topic, mode, envelope), AVRO, registry));
        assert_eq!(stand.sweep(&topic, 0)[0]["rows"], 3);
        let found = confluent::read(&registry.url(), "avro", &stand.values(&topic).await).expect("the client reads them");
        for (at, found) in found.iter().enumerate() {
            let row = if envelope { &found["after"] } else { found };
            let expected = modes::expected(mode, at, &ids[at]);
            for (name, kind, _) in FIELDS {
                let expected = if mode == "typed" { in_python(kind, &expected[name]) } else { expected[name].clone() };
                assert_eq!(row[name], expected, "{mode}: {name} of row {at}");
            }
            assert_eq!((&row["sys_id"], &row["u_null"]), (&ids[at].as_str().into(), &Value::Null));
        }
    }
}

#[tokio::test]
async fn confluents_client_for_python_reads_and_validates_json_schema() {
    let registry = registry().await;
    let (stand, _) = modes::stand().await;
    for (mode, envelope, decimals) in [("strings", false, "BASE64"), ("typed", true, "BASE64"), ("typed", false, "NUMERIC")] {
        let (topic, plain) = (format!("json-schema-{mode}-{decimals}"), format!("json-plain-{mode}-{decimals}"));
        let mut config = through(modes::keys(&topic, mode, envelope), JSON_SCHEMA, registry);
        config["value.converter.decimal.format"] = decimals.into();
        config["value.converter.object.additional.properties"] = "false".into();
        stand.connector(&config);
        assert_eq!(stand.sweep(&topic, 0)[0]["rows"], 3);
        let found = confluent::read(&registry.url(), "json-schema", &stand.values(&topic).await).expect("the client reads them");

        let mut config = modes::keys(&plain, mode, envelope);
        config["value.converter"] = "json".into();
        config["value.converter.schemas.enable"] = "false".into();
        config["value.converter.decimal.format"] = decimals.into();
        stand.connector(&config);
        stand.sweep(&plain, 0);
        let expected: Vec<Value> =
            stand.values(&plain).await.iter().map(|value| numbers(serde_json::from_slice(value).expect("JSON"))).collect();
        assert_eq!(found.into_iter().map(numbers).collect::<Vec<_>>(), expected, "{mode} {decimals}");
    }
}

/// The same JSON with each number as the double that Python makes of it; whole ones stay whole.
fn numbers(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_i64().is_none() => json!(number.as_f64()),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, numbers(value))).collect(),
        other => other,
    }
}

/// The fields of each version of the topic's subject, by the version of the table's schema that it says it is.
async fn versions(registry: &Server, topic: &str) -> BTreeMap<i64, Vec<String>> {
    let subject = format!("{topic}-value");
    let mut found = BTreeMap::new();
    for version in registry.versions(&subject).await.expect("versions") {
        let registered = registry.version(&subject, &version.to_string()).await.expect("a version");
        let schema: Value = serde_json::from_str(registered["schema"].as_str().expect("a text")).expect("JSON");
        let fields = schema["fields"].as_array().expect("fields").iter().map(|field| field["name"].as_str().expect("a name").to_owned());
        let known = found.insert(schema["connect.version"].as_i64().expect("a version"), fields.collect());
        assert_eq!(known, None, "a version of the table's schema means two things");
    }
    found
}

#[tokio::test]
async fn two_tables_that_find_different_fields_at_once_end_with_one_registered_schema_that_has_both() {
    const ROUNDS: u32 = 3;
    let registry = registry().await;
    let stand = Stand::new().await;
    stand.connector(&through(two_tables("avro-both"), AVRO, registry));
    let mut own: BTreeMap<&str, Vec<String>> = BTreeMap::from([("a", Vec::new()), ("b", Vec::new())]);
    for round in 0..ROUNDS {
        for (alias, fields) in &mut own {
            fields.push(format!("u_{alias}_{round}"));
            let columns: Vec<_> = fields.iter().map(|name| modes::text_column(name)).collect();
            stand.api.create(&format!("u_{alias}"), &columns).expect("a table");
            insert(&stand, &format!("u_{alias}"), 10 * round + 1, fields);
        }
        let sweeps = ["a", "b"].map(|alias| stand.start("avro-both", &["--table", alias]));
        for sweep in sweeps {
            assert_eq!(tables(&sweep.wait_with_output().expect("it ends"), 0)[0]["rows"], 1);
        }
    }
    for (alias, fields) in &own {
        insert(&stand, &format!("u_{alias}"), 50, fields);
    }
    stand.sweep("avro-both", 0);
    let versions = versions(registry, "avro-both").await;
    only_grows(&versions);
    let last = versions.values().next_back().expect("a version");
    for field in own.values().flatten() {
        assert_eq!(last.iter().filter(|known| *known == field).count(), 1, "{field} in {last:?}");
    }
    // Each record is of a registered version, and every field that its table had then is in it.
    let records = opened(registry, &stand.values("avro-both").await).await;
    let found = connect::read_avro(true, &records).expect("AvroData reads them");
    assert_eq!(found.len(), 2 * ROUNDS as usize + 2);
    for alias in ["a", "b"] {
        let of_table = |row: &Value, round: u32| row[format!("u_{alias}_{round}")] == "x";
        for round in 0..ROUNDS {
            let with = found.iter().filter(|found| of_table(&found.value, round)).count();
            assert_eq!(with, (ROUNDS - round) as usize + 1, "records with u_{alias}_{round}");
        }
    }
}

#[tokio::test]
async fn a_crash_between_the_schemas_write_and_the_first_record_leaves_one_version_in_the_registry() {
    let registry = registry().await;
    let stand = Stand::new().await;
    for table in ["u_a", "u_b"] {
        stand.api.create(table, &[modes::text_column("u_one")]).expect("a table");
        insert(&stand, table, 1, &["u_one".to_owned()]);
    }
    stand.connector(&through(two_tables("avro-crash"), AVRO, registry));
    stand.broker.create_topic("avro-crash", 1).await.expect("a topic");
    let mut killed = stand.command("avro-crash", &["--table", "a"]).env("TABLESWEEP_FAILPOINT", "schema-stored:1").spawn().expect("starts");
    let stderr = BufReader::new(killed.stderr.take().expect("a pipe"));
    let reached = stderr.lines().map_while(Result::ok).any(|line| line == "failpoint schema-stored");
    killed.kill().expect("kill -9");
    killed.wait().expect("it ended");
    assert!(reached, "the sweep ended before the schema was stored");
    assert_eq!(registry.versions("avro-crash-value").await.expect("an answer"), [0; 0], "a schema is registered after it is stored");
    for table in stand.sweep("avro-crash", 0) {
        assert_eq!((&table["outcome"], &table["rows"]), (&"caught_up".into(), &1.into()));
    }
    assert_eq!(versions(registry, "avro-crash").await.into_keys().collect::<Vec<_>>(), [1]);
    assert_eq!(stand.values("avro-crash").await.len(), 2);
}

#[tokio::test]
async fn a_field_that_is_no_name_in_avro_parks_its_table_until_the_document_says_what_to_do() {
    let registry = registry().await;
    let stand = Stand::new().await;
    stand.api.create("u_a", &[modes::text_column("u_a$b")]).expect("a table");
    stand.api.create("u_b", &[]).expect("a table");
    insert(&stand, "u_a", 1, &["u_a$b".to_owned()]);
    let mut config = through(two_tables("avro-names"), AVRO, registry);
    stand.connector(&config);
    let table = stand.sweep("avro-names", 1)[0].clone();
    let message = table["reason"]["message"].as_str().expect("words");
    assert_eq!(table["reason"]["code"], "Record.InvalidName", "{message}");
    assert!(["snow/a", "u_a$b", "scrub.invalid.names"].iter().all(|part| message.contains(part)), "{message}");
    assert!(stand.values("avro-names").await.is_empty());
    // What is left out is not in the stored schema, so the table goes on without it.
    config["snow.table.a.fields"] = "sys_id,sys_updated_on".into();
    stand.connector(&config);
    assert_eq!(stand.sweep("avro-names", 0)[0]["rows"], 1);
    let found = confluent::read(&registry.url(), "avro", &stand.values("avro-names").await).expect("the client reads it");
    assert!(found[0]["sys_id"].is_string() && found[0].as_object().expect("a record").len() == 3, "{}", found[0]);
    // Or it comes under a name that Avro takes.
    config.as_object_mut().expect("a map").remove("snow.table.a.fields");
    config["value.converter.scrub.invalid.names"] = "true".into();
    stand.connector(&config);
    insert(&stand, "u_a", 2, &["u_a$b".to_owned()]);
    assert_eq!(stand.sweep("avro-names", 0)[0]["rows"], 1);
    let found = confluent::read(&registry.url(), "avro", &stand.values("avro-names").await).expect("the client reads it");
    assert_eq!(found[1]["u_a_24b"], "x");
}
