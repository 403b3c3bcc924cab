use std::io::Read as _;

use flate2::read::ZlibDecoder;

use super::super::avro::Avro;
use super::super::ledger::Ledger;
use super::*;
use crate::record::schema::{Field, Type};

fn schema() -> Arc<Schema> {
    Arc::new(Schema::structure("n.Value", vec![Field::new("a", Schema::of(Type::String).optional())]))
}

fn converter(registry: &Arc<Ledger>) -> RegistryConverter<Avro> {
    RegistryConverter::new(Avro::default(), Part::Value, Arc::clone(registry) as Arc<dyn Registry>)
}

fn row(text: &str) -> Value<'_> {
    Value::Struct(vec![Value::from(text)])
}

#[tokio::test]
async fn data_stands_behind_the_registrys_header() {
    let registry = Arc::new(Ledger::default());
    let encoder = converter(&registry).encoder("t", Some(&schema()), None).await.expect("an encoder");
    assert_eq!(encoder.encode(&row("xy")).expect("bytes"), &b"\0\0\0\0\x01\x02\x04xy"[..]);
    let candidate = registry.schemas()[0].clone();
    assert_eq!((&*candidate.topic, candidate.part, candidate.language), ("t", Part::Value, Language::Avro));
    assert_eq!(candidate.record.as_deref(), Some("n.Value"));
}

#[tokio::test]
async fn a_key_is_a_text_behind_the_header_and_no_record() {
    let registry = Arc::new(Ledger::default());
    let keys = RegistryConverter::new(Avro::default(), Part::Key, Arc::clone(&registry) as Arc<dyn Registry>);
    let encoder = keys.encoder("t", Some(&Arc::new(Schema::of(Type::String))), None).await.expect("an encoder");
    assert_eq!(encoder.encode_text(&Bytes::from_static(b"8f4b")).expect("bytes"), &b"\0\0\0\0\x01\x088f4b"[..]);
    let candidate = registry.schemas()[0].clone();
    assert_eq!((candidate.text.as_str(), candidate.part, candidate.record), ("\"string\"", Part::Key, None));
}

#[tokio::test]
async fn data_behind_a_header_that_says_so_is_compressed_and_the_header_is_not() {
    let registry = Arc::new(Ledger { zlib: true, ..Ledger::default() });
    let encoder = converter(&registry).encoder("t", Some(&schema()), None).await.expect("an encoder");
    let text = "long ".repeat(100);
    let record = encoder.encode(&row(&text)).expect("bytes");
    assert_eq!(record[..5], [0, 0, 0, 0, 1]);
    assert!(record.len() < text.len());
    let mut data = Vec::new();
    ZlibDecoder::new(&record[5..]).read_to_end(&mut data).expect("zlib");
    let plain = converter(&Arc::new(Ledger::default())).encoder("t", Some(&schema()), None).await.expect("an encoder");
    assert_eq!(data, plain.encode(&row(&text)).expect("bytes")[5..]);
}

#[tokio::test]
async fn the_registry_is_asked_with_every_page_and_an_encoder_lasts_as_long_as_its_answer() {
    let registry = Arc::new(Ledger::default());
    let (converter, schema) = (converter(&registry), schema());
    let first = converter.encoder("t", Some(&schema), None).await.expect("an encoder");
    let second = converter.encoder("t", Some(&schema), None).await.expect("an encoder");
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(*registry.asked.lock().expect("whole"), 2);
    let other = converter.encoder("u", Some(&schema), None).await.expect("an encoder");
    assert_eq!(other.encode(&row("")).expect("bytes")[..5], [0, 0, 0, 0, 2], "another topic is another subject");
    let again = converter.encoder("t", Some(&schema), None).await.expect("an encoder");
    assert_eq!(again.encode(&row("")).expect("bytes")[..5], [0, 0, 0, 0, 1]);
}

#[tokio::test]
async fn what_the_registry_wants_instead_is_what_records_are_written_by_and_what_does_not_fit_it_is_refused() {
    let field = |name: &str, default: &str| format!(r#"{{"name":"{name}","type":["null","string"]{default}}}"#);
    let theirs = |fields: &[String]| format!(r#"{{"type":"record","name":"Theirs","fields":[{}]}}"#, fields.join(","));
    let more = theirs(&[field("more", r#","default":null"#), field("a", "")]);
    let registry = Arc::new(Ledger { instead: Some(more), ..Ledger::default() });
    let encoder = converter(&registry).encoder("t", Some(&schema()), None).await.expect("an encoder");
    assert_eq!(encoder.encode(&row("xy")).expect("bytes"), &b"\0\0\0\0\x01\x00\x02\x04xy"[..], "their field comes first");
    let registry = Arc::new(Ledger { instead: Some(theirs(&[field("more", "")])), ..Ledger::default() });
    let failure = converter(&registry).encoder("t", Some(&schema()), None).await.expect_err("it does not fit");
    assert_eq!((&*failure.code, failure.retry), ("Record.SchemaMismatch", Retry::Never));
    assert!(failure.message.starts_with("topic t: ") && failure.message.contains("requires a field more"), "{failure}");
}

#[tokio::test]
async fn a_registry_that_is_out_of_reach_gives_no_encoder_and_is_asked_again() {
    let registry = Arc::new(Ledger::default());
    let (converter, schema) = (converter(&registry), schema());
    *registry.is_out.lock().expect("whole") = true;
    let failure = converter.encoder("t", Some(&schema), None).await.expect_err("out of reach");
    assert_eq!((&*failure.code, failure.retry), ("Registry.Unavailable", Retry::NextTick));
    *registry.is_out.lock().expect("whole") = false;
    converter.encoder("t", Some(&schema), None).await.expect("an encoder");
}

#[tokio::test]
async fn rows_without_a_schema_are_refused_with_the_settings_that_give_them_one() {
    let registry = Arc::new(Ledger::default());
    let failure = converter(&registry).encoder("t", None, None).await.expect_err("no schema");
    assert_eq!((&*failure.code, failure.retry), ("Record.Schemaless", Retry::Never));
    for part in ["topic t", "Avro", "snow.source.schema.mode", "mssql.schema.mode", "strings", "json"] {
        assert!(failure.message.contains(part), "{part} in {failure}");
    }
    assert_eq!(*registry.asked.lock().expect("whole"), 0);
}
