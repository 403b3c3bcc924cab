//! Records behind the header of a schema registry, read back by the reference library of Avro.

use apache_avro::Schema as Reference;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Read;

use super::super::super::converter::RegistryConverter;
use super::super::super::converter::avro::Avro;
use super::super::super::converter::json_schema::{Dialect, JsonSchema};
use super::super::super::converter::ledger::Ledger;
use super::super::super::converter::registration::{Candidate, Part, Registry};
use super::super::super::schema::{Field, Logical};
use super::*;

fn through(shape: Shape, registry: &Arc<Ledger>) -> Shape {
    let registry = || Arc::clone(registry) as Arc<dyn Registry>;
    let keys = RegistryConverter::new(Avro::default(), Part::Key, registry());
    let values = RegistryConverter::new(Avro::default(), Part::Value, registry());
    shape.through(Arc::new(keys), Arc::new(values))
}

/// What the reference library reads from bytes, by the schema that their header names, and that schema.
fn read(registry: &Ledger, bytes: &[u8]) -> (Candidate, Read) {
    let (candidate, mut data) = registry.open(bytes);
    let schema = Reference::parse_str(&candidate.text).expect("a schema");
    let read = GenericDatumReader::builder(&schema).build().expect("a reader").read_value(&mut data).expect("a value");
    assert!(data.is_empty());
    (candidate, read)
}

fn read_value(registry: &Ledger, record: &Record) -> (Candidate, Read) {
    read(registry, record.value.as_deref().expect("a value"))
}

fn some(value: Read) -> Read {
    Read::Union(1, Box::new(value))
}

fn null() -> Read {
    Read::Union(0, Box::new(Read::Null))
}

fn text(text: &str) -> Read {
    Read::String(text.to_owned())
}

fn record<const N: usize>(fields: [(&str, Read); N]) -> Read {
    Read::Record(fields.map(|(name, value)| (name.to_owned(), value)).into())
}

/// The names of the fields of a registered record, and its version.
fn versioned(candidate: &Candidate) -> (i64, Vec<String>) {
    let schema: serde_json::Value = serde_json::from_str(&candidate.text).expect("JSON");
    let names = schema["fields"].as_array().expect("fields").iter().map(|field| field["name"].as_str().expect("a name").to_owned());
    (schema["connect.version"].as_i64().expect("a version"), names.collect())
}

#[tokio::test]
async fn rows_in_mode_strings_are_records_of_optional_texts_and_each_names_the_version_it_has() {
    let (registry, shelf) = (Arc::new(Ledger::default()), Shelf::default());
    let shape = through(shape().strings(), &registry);
    let rows = [r#"{"sys_id":"a","n":1.50}"#, r#"{"sys_id":"\u00e4","n":null}"#];
    let first = shape.of(&page(&rows), &shelf).await.expect("records");
    let more = shape.of(&page(&[r#"{"sys_id":"c","more":""}"#]), &shelf).await.expect("records");
    let (candidate, value) = read_value(&registry, &first[0]);
    assert_eq!((candidate.topic.as_str(), candidate.record.as_deref()), ("snow.incident", Some("sh.oso.servicenow.incident.Value")));
    assert_eq!(versioned(&candidate), (1, vec!["sys_id".to_owned(), "n".to_owned()]));
    assert_eq!(value, record([("sys_id", some(text("a"))), ("n", some(text("1.50")))]));
    assert_eq!(read_value(&registry, &first[1]).1, record([("sys_id", some(text("\u{e4}"))), ("n", null())]));
    let (candidate, value) = read_value(&registry, &more[0]);
    assert_eq!(versioned(&candidate), (2, ["sys_id", "n", "more"].map(str::to_owned).to_vec()));
    assert_eq!(value, record([("sys_id", some(text("c"))), ("n", null()), ("more", some(text("")))]));
    let (key, value) = read(&registry, &first[0].key);
    assert_eq!((key.part, key.text.as_str(), value), (Part::Key, "\"string\"", text("8f4b")));
}

#[tokio::test]
async fn every_declared_type_is_read_back_and_what_was_empty_is_null() {
    let registry = Arc::new(Ledger::default());
    let cells = [
        ("s", "string", "\"x\"", some(text("x"))),
        ("i8", "int8", "\"-128\"", some(Read::Int(-128))),
        ("i16", "int16", "\"32767\"", some(Read::Int(32_767))),
        ("i32", "int32", "\"-2147483648\"", some(Read::Int(i32::MIN))),
        ("i64", "int64", "\"9223372036854775807\"", some(Read::Long(i64::MAX))),
        ("f32", "float32", "\"-3.4028235e38\"", some(Read::Float(f32::MIN))),
        ("f64", "float64", "\"5e-324\"", some(Read::Double(5e-324))),
        ("b", "boolean", "\"1\"", some(Read::Boolean(true))),
        ("raw", "bytes", "\"AP+A\"", some(Read::Bytes(vec![0, 255, 128]))),
        ("at", "timestamp", "\"9999-12-31 23:59:59\"", some(Read::TimestampMillis(253_402_300_799_000))),
        ("day", "date", "\"0001-01-01\"", some(Read::Date(-719_162))),
        ("time", "time", "\"23:59:59\"", some(Read::TimeMillis(86_399_000))),
        ("d", "decimal(2)", "\"-1.28\"", some(Read::Decimal(vec![0x80].into()))),
    ];
    let fields = cells.iter().map(|(name, kind, ..)| ((*name).to_owned(), FieldType::parse(kind).expect("a type"))).collect();
    let mapping = Mapping { fields, evolution: Evolution::Fail, uninvited: None };
    let shape = through(shape().mapped(mapping).enveloped("acme.service-now.com"), &registry);
    let full = cells.iter().map(|(name, _, sent, _)| format!("\"{name}\":{sent}")).collect::<Vec<_>>().join(",");
    let empty = cells.iter().skip(1).map(|(name, ..)| format!("\"{name}\":\"\"")).collect::<Vec<_>>().join(",");
    let records = shape.of(&page(&[&format!("{{{full}}}"), &format!("{{{empty}}}")]), &Shelf::default()).await.expect("records");

    let envelope = |after: Vec<(String, Read)>| {
        let source = record([("table", text("incident")), ("instance", text("acme.service-now.com"))]);
        let time = some(Read::Long(1_790_667_042_000));
        record([("before", null()), ("after", Read::Record(after)), ("source", source), ("op", text("u")), ("ts_ms", time)])
    };
    let after = cells.iter().map(|(name, .., read)| ((*name).to_owned(), read.clone())).collect();
    let (candidate, value) = read_value(&registry, &records[0]);
    assert_eq!(value, envelope(after));
    assert_eq!(candidate.record.as_deref(), Some("sh.oso.servicenow.incident.Envelope"));
    let nulls = cells.iter().map(|(name, ..)| ((*name).to_owned(), null())).collect();
    assert_eq!(read_value(&registry, &records[1]).1, envelope(nulls));
}

#[tokio::test]
async fn rows_of_a_source_that_knows_its_schema_keep_what_is_required_and_what_is_not() {
    let registry = Arc::new(Ledger::default());
    let fields = vec![
        Field::new("Id", Schema::of(Type::Int64)),
        Field::new("Flag", Schema::of(Type::Boolean).optional()),
        Field::new("Price", Schema::logical(Logical::Decimal(4)).optional()),
        Field::new("When", Schema::logical(Logical::Timestamp)),
    ];
    let schema = Arc::new(Schema::structure("tablesweep.sqlserver.dbo.Orders.Value", fields));
    let row = |content| Row { key: Bytes::from_static(b"7"), content: Content::Fields(content), timestamp_ms: None };
    let most = vec![Value::Int(i64::MIN), Value::Boolean(false), Value::Decimal(i128::from(i64::MAX)), Value::Int(-1)];
    let least = vec![Value::Int(7), Value::Null, Value::Null, Value::Int(0)];
    let typed = Given { rows: vec![row(most), row(least)], schema: Some(schema) };
    let records = through(shape().of_source(), &registry).of(&typed, &Shelf::default()).await.expect("records");
    let price = Read::Decimal(i64::MAX.to_be_bytes().to_vec().into());
    let expected =
        [("Id", Read::Long(i64::MIN)), ("Flag", some(Read::Boolean(false))), ("Price", some(price)), ("When", Read::TimestampMillis(-1))];
    assert_eq!(read_value(&registry, &records[0]).1, record(expected));
    let expected = [("Id", Read::Long(7)), ("Flag", null()), ("Price", null()), ("When", Read::TimestampMillis(0))];
    assert_eq!(read_value(&registry, &records[1]).1, record(expected));
}

#[tokio::test]
async fn two_tables_that_find_different_fields_end_with_one_registered_schema_that_has_both() {
    let (registry, shelf) = (Arc::new(Ledger::default()), Shelf::default());
    let of = |alias: &str| {
        let names = Names { alias: alias.to_owned(), ..shape().names };
        through(Shape { names, ..shape() }.strings(), &registry)
    };
    let (one, two) = (of("one"), of("two"));
    for shape in [&one, &two] {
        shape.of(&page(&[r#"{"a":"0"}"#]), &shelf).await.expect("records");
    }
    one.of(&page(&[r#"{"a":"1","x":"1"}"#]), &shelf).await.expect("records");
    two.of(&page(&[r#"{"a":"2","y":"2"}"#]), &shelf).await.expect("records");
    let last = one.of(&page(&[r#"{"x":"3","y":"3"}"#]), &shelf).await.expect("records");
    let values: Vec<(i64, Vec<String>)> = registry.schemas().iter().filter(|known| known.part == Part::Value).map(versioned).collect();
    let expected = [(1, vec!["a"]), (2, vec!["a", "x"]), (3, vec!["a", "x", "y"])];
    assert_eq!(values, expected.map(|(version, names)| (version, names.into_iter().map(str::to_owned).collect())));
    assert_eq!(read_value(&registry, &last[0]).1, record([("a", null()), ("x", some(text("3"))), ("y", some(text("3")))]));
}

#[tokio::test]
async fn a_registry_that_fails_leaves_no_record_and_the_stored_schema_is_the_one_that_is_registered_later() {
    let (registry, shelf) = (Arc::new(Ledger::default()), Shelf::default());
    *registry.is_out.lock().expect("whole") = true;
    let failure = through(shape().strings(), &registry).of(&page(&[ROW]), &shelf).await.expect_err("out of reach");
    assert_eq!((&*failure.code, failure.retry), ("Registry.Unavailable", Retry::NextTick));
    assert!(failure.message.starts_with("c/inc: "), "{failure}");
    assert!(registry.schemas().is_empty());
    *registry.is_out.lock().expect("whole") = false;
    // Another process, which knows nothing but what is stored.
    let records = through(shape().strings(), &registry).of(&page(&[ROW]), &shelf).await.expect("records");
    assert_eq!(versioned(&read_value(&registry, &records[0]).0).0, 1);
}

/// A registry that wants records by this Avro schema of optional and required fields, each as JSON.
fn wanting(fields: &[&str]) -> Arc<Ledger> {
    let instead = format!(r#"{{"type":"record","name":"Theirs","fields":[{}]}}"#, fields.join(","));
    Arc::new(Ledger { instead: Some(instead), ..Ledger::default() })
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_told_as_that_of_the_whole_page_and_not_as_the_null_that_it_stands_as_meanwhile() {
    let registry = wanting(&[r#"{"name":"n","type":"int"}"#, r#"{"name":"m","type":"int"}"#]);
    let fields = ["n", "m"].map(|name| (name.to_owned(), FieldType::Int(8))).to_vec();
    let of = |evolution| {
        let values = RegistryConverter::new(Avro::default(), Part::Value, Arc::clone(&registry) as Arc<dyn Registry>);
        let shape = shape().mapped(Mapping { fields: fields.clone(), evolution, uninvited: None });
        shape.through(Arc::new(StringConverter), Arc::new(values))
    };
    let rows = page(&[r#"{"n":"128","m":"1"}"#, r#"{"n":"2","m":"x"}"#]);
    for evolution in [Evolution::Fail, Evolution::Backward] {
        let failure = of(evolution).of(&rows, &Shelf::default()).await.expect_err("neither fits");
        assert_eq!(failure.code, "Record.Uncoercible", "{failure}");
        for part in ["field n is no int8 (row 8f4b: \"128\")", "field m is no int8 (row 8f4b: \"x\")"] {
            assert!(failure.message.contains(part), "{part} is missing in: {failure}");
        }
    }
    // Where null is what is sent instead, it is the null that has no place.
    let failure = of(Evolution::Permissive).of(&rows, &Shelf::default()).await.expect_err("required there");
    assert!(failure.code == "Record.Unencodable" && failure.message.contains("field n has no value here"), "{failure}");
    let empty = page(&[r#"{"n":"","m":"1"}"#]);
    let failure = of(Evolution::Fail).of(&empty, &Shelf::default()).await.expect_err("required there");
    assert!(failure.code == "Record.Unencodable" && failure.message.contains("field n has no value here"), "{failure}");
}

#[tokio::test]
async fn a_field_that_the_registrys_schema_lacks_may_be_left_out_though_the_stored_schema_keeps_it() {
    let json = r#"{"type":"object","properties":{"sys_id":{"type":"string"}}}"#.to_owned();
    let json = Arc::new(Ledger { instead: Some(json), ..Ledger::default() });
    let json_schema = RegistryConverter::new(JsonSchema::new(Dialect::Confluent), Part::Value, Arc::clone(&json) as Arc<dyn Registry>);
    let avro = wanting(&[r#"{"name":"sys_id","type":["null","string"]}"#]);
    let avro = RegistryConverter::new(Avro::default(), Part::Value, Arc::clone(&avro) as Arc<dyn Registry>);
    for (converter, data) in
        [(Arc::new(json_schema) as Arc<dyn Converter>, &b"{\"sys_id\":\"b\"}"[..]), (Arc::new(avro), &b"\x02\x02b"[..])]
    {
        let (shelf, shape) = (Shelf::default(), shape().strings().through(Arc::new(StringConverter), converter));
        let failure = shape.of(&page(&[r#"{"sys_id":"a","more":"x"}"#]), &shelf).await.expect_err("no place for it");
        assert_eq!((&*failure.code, failure.retry), ("Record.Unencodable", Retry::Never));
        assert!(["c/inc", "8f4b", "field more", "`fields`"].iter().all(|part| failure.message.contains(part)), "{failure}");
        // With `fields` the rows come without it.
        let records = shape.of(&page(&[r#"{"sys_id":"b"}"#, r#"{"sys_id":"b","more":null}"#]), &shelf).await.expect("records");
        for record in records {
            assert_eq!(record.value.expect("a value")[5..], *data);
        }
    }
}

#[tokio::test]
async fn a_field_that_is_no_name_is_never_stored_so_that_leaving_it_out_helps() {
    for envelope in [false, true] {
        let (registry, shelf) = (Arc::new(Ledger::default()), Shelf::default());
        let strings = if envelope { shape().strings().enveloped("acme.service-now.com") } else { shape().strings() };
        let shape = through(strings, &registry);
        let failure = shape.of(&page(&[r#"{"a":"1","b.c":"2"}"#]), &shelf).await.expect_err("no name");
        assert_eq!((&*failure.code, failure.retry), ("Record.InvalidName", Retry::Never));
        assert!(["c/inc", "b.c", "`fields`"].iter().all(|part| failure.message.contains(part)), "{failure}");
        assert_eq!(shelf.at(&shape.place("strings")), None, "nothing is stored");
        let records = shape.of(&page(&[r#"{"a":"1"}"#]), &shelf).await.expect("records");
        assert_eq!(records.len(), 1);
    }
}

#[tokio::test]
async fn json_schema_writes_the_same_rows_as_plain_json() {
    let registry = Arc::new(Ledger::default());
    let values = RegistryConverter::new(JsonSchema::new(Dialect::Confluent), Part::Value, Arc::clone(&registry) as Arc<dyn Registry>);
    let shape = shape().strings().enveloped("acme.service-now.com").through(Arc::new(StringConverter), Arc::new(values));
    let records = shape.of(&page(&[ROW]), &Shelf::default()).await.expect("records");
    let (candidate, data) = registry.open(records[0].value.as_deref().expect("a value"));
    assert_eq!(candidate.record.as_deref(), Some("sh.oso.servicenow.incident.Envelope"));
    let found: serde_json::Value = serde_json::from_slice(data).expect("JSON");
    let source = serde_json::json!({"table": "incident", "instance": "acme.service-now.com"});
    let after = serde_json::json!({"sys_id": "8f4b", "n": "\u{e4}"});
    assert_eq!(found, serde_json::json!({"before": null, "after": after, "source": source, "op": "u", "ts_ms": 1_790_667_042_000_i64}));
}

#[tokio::test]
async fn rows_without_a_schema_are_refused_with_their_table() {
    let registry = Arc::new(Ledger::default());
    let failure = through(shape(), &registry).of(&page(&[ROW]), &Shelf::default()).await.expect_err("no schema");
    assert_eq!((&*failure.code, failure.retry), ("Record.Schemaless", Retry::Never));
    assert!(failure.message.starts_with("c/inc: "), "{failure}");
}

#[tokio::test]
async fn the_schema_of_the_documentation_is_what_is_registered() {
    let registry = Arc::new(Ledger::default());
    let row = Bytes::from(example("row").to_string());
    let shape = through(shape().mapped(documented_mapping()), &registry);
    let records = shape.of(&page_of(&[row]), &Shelf::default()).await.expect("records");
    let (candidate, value) = read_value(&registry, &records[0]);
    assert_eq!(candidate.text, example("avro").to_string(), "member for member");
    let time = some(Read::TimestampMillis(1_793_277_042_000));
    assert_eq!(
        value,
        record([("sys_id", some(text("8f4b"))), ("priority", some(Read::Int(2))), ("opened_at", time), ("due_date", null())])
    );
}
