use super::super::shelf::Shelf;
use super::super::typed::FieldType;
use super::*;

mod registered;

const ROW: &str = "{\"sys_id\":\"8f4b\", \"n\":\"\u{e4}\"}";

impl Shape {
    /// The records of a page, with all the time there is.
    async fn of(&self, page: &Given, store: &Shelf) -> Result<Vec<Record>, Failure> {
        self.records(page.rows(), store, None).await.map(|made| made.records)
    }
}

/// Rows that were read together.
#[derive(Debug, Default)]
struct Given {
    rows: Vec<Row>,
    schema: Option<Arc<Schema>>,
}

impl Given {
    fn rows(&self) -> Rows<'_> {
        Rows { rows: &self.rows, schema: self.schema.as_ref(), extracted_at_ms: 17 }
    }
}

fn page_of(rows: &[Bytes]) -> Given {
    let row = |json: &Bytes| Row {
        key: Bytes::from_static(b"8f4b"),
        content: Content::Json(json.clone()),
        timestamp_ms: Some(1_790_667_042_000),
    };
    Given { rows: rows.iter().map(row).collect(), schema: None }
}

fn page(rows: &[&str]) -> Given {
    let rows: Vec<Bytes> = rows.iter().map(|row| Bytes::copy_from_slice(row.as_bytes())).collect();
    page_of(&rows)
}

fn shape() -> Shape {
    let names = Names { connector: "c".into(), alias: "inc".into(), table: "incident".into(), namespace: "sh.oso.servicenow".into() };
    Shape::schemaless(names, "snow.incident", &[("snow.table", "incident")], "snow.extracted_at", "snow.schema.mode")
}

fn with_schema(shape: Shape) -> Shape {
    shape.through(Arc::new(StringConverter), Arc::new(JsonConverter::new(true, DecimalFormat::Base64)))
}

fn value(record: &Record) -> serde_json::Value {
    serde_json::from_slice(record.value.as_deref().expect("a value")).expect("JSON")
}

fn fields(record: &Record) -> Vec<String> {
    let fields = value(record)["schema"]["fields"].take();
    fields.as_array().expect("fields").iter().map(|field| field["field"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn a_schemaless_value_is_the_servers_bytes() {
    let row = Bytes::from(ROW);
    let records = shape().of(&page_of(std::slice::from_ref(&row)), &Shelf::default()).await.expect("records");
    let record = &records[0];
    assert_eq!(record.value.as_ref().expect("a value").as_ptr(), row.as_ptr(), "not even copied");
    assert_eq!((&*record.key, record.timestamp_ms), (b"8f4b".as_slice(), Some(1_790_667_042_000)));
    let headers: Vec<_> = record.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(headers, [("snow.table", "incident"), ("snow.extracted_at", "17"), ("snow.schema.mode", "schemaless")]);
}

#[tokio::test]
async fn an_envelope_holds_the_servers_bytes_and_names_table_and_instance() {
    let shape = shape().enveloped("acme.service-now.com");
    let records = shape.of(&page(&[ROW]), &Shelf::default()).await.expect("records");
    assert_eq!(
        records[0].value.as_ref().expect("a value"),
        "{\"before\":null,\"after\":{\"sys_id\":\"8f4b\", \"n\":\"\u{e4}\"},\"source\":{\"table\":\"incident\",\
         \"instance\":\"acme.service-now.com\"},\"op\":\"u\",\"ts_ms\":1790667042000}"
    );
}

#[tokio::test]
async fn without_a_schema_a_json_converter_with_schemas_says_null() {
    let records = with_schema(shape()).of(&page(&[ROW]), &Shelf::default()).await.expect("records");
    let expected = format!("{{\"schema\":null,\"payload\":{ROW}}}");
    assert_eq!(records[0].value.as_ref().expect("a value"), expected.as_bytes());
}

#[tokio::test]
async fn a_page_in_mode_strings_has_one_schema_with_every_field_met_so_far() {
    let (shelf, shape) = (Shelf::default(), with_schema(shape().strings()));
    let rows = [r#"{"sys_id":"a","n":1.50}"#, r#"{"sys_id":"b","m":{"value":"1", "link":null},"n":null}"#];
    let records = shape.of(&page(&rows), &shelf).await.expect("records");
    for record in &records {
        assert_eq!(fields(record), ["sys_id", "n", "m"]);
        let schema = value(record)["schema"].take();
        assert_eq!((&schema["version"], &schema["name"]), (&1.into(), &"sh.oso.servicenow.incident.Value".into()));
    }
    assert_eq!(value(&records[0])["payload"], serde_json::json!({"sys_id": "a", "n": "1.50", "m": null}));
    let expected = serde_json::json!({"sys_id": "b", "n": null, "m": "{\"value\":\"1\", \"link\":null}"});
    assert_eq!(value(&records[1])["payload"], expected);
    shelf.requests();
    let records = shape.of(&page(&[r#"{"n":"3"}"#]), &shelf).await.expect("records");
    assert_eq!(fields(&records[0]), ["sys_id", "n", "m"], "a field that is absent stays in the schema");
    assert!(shelf.requests().is_empty());
}

#[tokio::test]
async fn no_record_is_made_of_a_version_that_is_not_stored() {
    let (shelf, shape) = (Shelf::default(), with_schema(shape().strings()));
    *shelf.is_out.lock().expect("whole") = true;
    let failure = shape.of(&page(&[ROW]), &shelf).await.expect_err("not stored");
    assert_eq!((&*failure.code, failure.retry), ("Cursor.Unreachable", Retry::NextTick));
    *shelf.is_out.lock().expect("whole") = false;
    assert_eq!(shape.of(&page(&[ROW]), &shelf).await.expect("records").len(), 1);
}

#[tokio::test]
async fn the_envelope_of_a_struct_carries_the_tables_schema_in_before_and_after() {
    let shape = with_schema(shape().strings().enveloped("acme.service-now.com"));
    let records = shape.of(&page(&[ROW, ROW]), &Shelf::default()).await.expect("records");
    let schema = value(&records[1])["schema"].take();
    assert_eq!((&schema["name"], &schema["version"]), (&"sh.oso.servicenow.incident.Envelope".into(), &1.into()));
    let members = schema["fields"].as_array().expect("fields");
    let found: Vec<_> = members.iter().map(|field| (field["field"].as_str(), field["optional"].as_bool())).collect();
    let expected = [("before", true), ("after", false), ("source", false), ("op", false), ("ts_ms", true)];
    assert_eq!(found, expected.map(|(name, optional)| (Some(name), Some(optional))));
    assert_eq!(members[2]["name"], "sh.oso.servicenow.Source");
    assert_eq!((&members[0]["fields"], &members[0]["name"]), (&members[1]["fields"], &members[1]["name"]));
    let payload = value(&records[1])["payload"].take();
    let source = serde_json::json!({"table": "incident", "instance": "acme.service-now.com"});
    let after = serde_json::json!({"sys_id": "8f4b", "n": "\u{e4}"});
    let expected = serde_json::json!({"before": null, "after": after, "source": source, "op": "u", "ts_ms": 1_790_667_042_000_i64});
    assert_eq!(payload, expected);
}

fn mapped(evolution: Evolution) -> Shape {
    let fields = [("sys_id", "string"), ("n", "int8"), ("at", "timestamp")];
    let fields = fields.map(|(name, kind)| (name.to_owned(), FieldType::parse(kind).expect("a type"))).to_vec();
    with_schema(shape().mapped(Mapping { fields, evolution, uninvited: Some("sys_mod_count".into()) }))
}

const FITS: &str = r#"{"sys_id":"a","sys_mod_count":"3","n":"7","at":""}"#;
const UNMAPPED: &str = r#"{"sys_id":"b","n":"7","more":"things"}"#;
const UNFIT: &str = r#"{"sys_id":"c","n":"128","at":"today"}"#;

#[tokio::test]
async fn a_typed_row_that_fits_is_a_struct_of_the_declared_types() {
    for evolution in [Evolution::Fail, Evolution::Backward, Evolution::Permissive] {
        let records = mapped(evolution).of(&page(&[FITS]), &Shelf::default()).await.expect("records");
        assert_eq!(fields(&records[0]), ["sys_id", "n", "at"]);
        assert_eq!(value(&records[0])["payload"], serde_json::json!({"sys_id": "a", "n": 7, "at": null}), "{evolution:?}");
    }
}

#[tokio::test]
async fn every_difference_of_a_page_fails_it_with_table_field_row_and_value() {
    let unmapped = "field more has no type (row 8f4b: \"things\")";
    let unfit = "field n is no int8 (row 8f4b: \"128\"); field at is no timestamp (row 8f4b: \"today\")";
    for (evolution, code, told) in [
        (Evolution::Fail, "Record.Unmapped", format!("c/inc: {unmapped}; {unfit}. ")),
        (Evolution::Backward, "Record.Uncoercible", format!("c/inc: {unfit}. ")),
    ] {
        let shelf = Shelf::default();
        let failure = mapped(evolution).of(&page(&[FITS, UNMAPPED, UNFIT]), &shelf).await.expect_err("a difference");
        assert_eq!((&*failure.code, failure.retry), (code, Retry::Never), "{evolution:?}");
        assert!(failure.message.starts_with(&told), "{failure}");
    }
}

#[tokio::test]
async fn backward_appends_an_unmapped_field_as_an_optional_string_under_the_next_version() {
    let (shelf, shape) = (Shelf::default(), mapped(Evolution::Backward));
    let first = shape.of(&page(&[FITS]), &shelf).await.expect("records");
    let second = shape.of(&page(&[FITS, UNMAPPED]), &shelf).await.expect("records");
    assert_eq!((value(&first[0])["schema"]["version"].clone(), value(&second[0])["schema"]["version"].clone()), (1.into(), 2.into()));
    assert_eq!(fields(&second[0]), ["sys_id", "n", "at", "more"]);
    assert_eq!(value(&second[1])["payload"], serde_json::json!({"sys_id": "b", "n": 7, "at": null, "more": "things"}));
}

#[tokio::test]
async fn no_typed_record_is_made_of_a_version_that_is_not_stored_not_even_after_a_store_that_failed_once() {
    let (shelf, shape) = (Shelf::default(), mapped(Evolution::Backward));
    *shelf.is_out.lock().expect("whole") = true;
    for _ in 0..2 {
        let failure = shape.of(&page(&[FITS]), &shelf).await.expect_err("not stored");
        assert_eq!((&*failure.code, failure.retry), ("Cursor.Unreachable", Retry::NextTick));
    }
    *shelf.is_out.lock().expect("whole") = false;
    let records = shape.of(&page(&[FITS]), &shelf).await.expect("records");
    assert_eq!(value(&records[0])["schema"]["version"], 1);
    assert!(shelf.at(&shape.place("typed")).is_some(), "it is stored");
}

#[tokio::test]
async fn permissive_leaves_out_what_has_no_type_and_sends_null_for_what_does_not_fit() {
    let shape = mapped(Evolution::Permissive);
    let made = shape.records(page(&[UNMAPPED, UNFIT]).rows(), &Shelf::default(), None).await.expect("records");
    assert_eq!(value(&made.records[0])["payload"], serde_json::json!({"sys_id": "b", "n": 7, "at": null}));
    assert_eq!(value(&made.records[1])["payload"], serde_json::json!({"sys_id": "c", "n": null, "at": null}));
    assert_eq!(made.values_nulled, 2, "each value that is lost is counted, and no empty one");
}

#[tokio::test]
async fn rows_of_a_source_that_knows_its_schema_are_written_by_it() {
    let schema = Arc::new(Schema::structure("v", vec![super::super::schema::Field::new("id", Schema::of(Type::Int64))]));
    let row = Row { key: Bytes::from_static(b"7"), content: Content::Fields(vec![Value::Int(7)]), timestamp_ms: None };
    let typed = Given { rows: vec![row], schema: Some(schema) };
    let records = with_schema(shape().of_source()).of(&typed, &Shelf::default()).await.expect("records");
    let expected = r#"{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"}],"optional":false,"name":"v"},"payload":{"id":7}}"#;
    assert_eq!(records[0].value.as_ref().expect("a value"), expected);
    assert!(records[0].headers.contains(&("snow.schema.mode".to_owned(), "typed".to_owned())));
}

#[tokio::test]
async fn keys_go_through_their_converter() {
    for (keys, expected) in [
        (JsonConverter::new(true, DecimalFormat::Base64), r#"{"schema":{"type":"string","optional":false},"payload":"8f4b"}"#),
        (JsonConverter::new(false, DecimalFormat::Base64), r#""8f4b""#),
    ] {
        let shape = shape().through(Arc::new(keys), Arc::new(JsonConverter::new(false, DecimalFormat::Base64)));
        let records = shape.of(&page(&[ROW]), &Shelf::default()).await.expect("records");
        assert_eq!(records[0].key, expected);
    }
}

/// The JSON of an example of docs/records.md.
fn example(name: &str) -> serde_json::Value {
    let page = include_str!("../../../../docs/records.md");
    let (_, after) = page.split_once(&format!("<!-- example: {name} -->\n```json\n")).unwrap_or_else(|| panic!("no example {name}"));
    let (json, _) = after.split_once("```").expect("an end");
    serde_json::from_str(json).expect("JSON")
}

fn documented_mapping() -> Mapping {
    let fields = "sys_id:string,priority:int8,opened_at:timestamp,due_date:date".split(',').map(|entry| {
        let (name, kind) = entry.split_once(':').expect("a pair");
        (name.to_owned(), FieldType::parse(kind).expect("a type"))
    });
    Mapping { fields: fields.collect(), evolution: Evolution::Permissive, uninvited: None }
}

#[tokio::test]
async fn the_examples_of_the_documentation_are_what_is_written() {
    let row = Bytes::from(example("row").to_string());
    let mut page = page_of(&[row]);
    page.rows[0].timestamp_ms = Some(1_793_277_042_000);
    for (name, shape) in [
        ("strings", with_schema(shape().strings())),
        ("typed", with_schema(shape().mapped(documented_mapping()))),
        ("envelope", shape().enveloped("acme.service-now.com")),
        ("schemaless with schemas.enable", with_schema(shape())),
    ] {
        let records = shape.of(&page, &Shelf::default()).await.expect("records");
        assert_eq!(value(&records[0]).to_string(), example(name).to_string(), "{name}, member for member");
    }
    let keys = JsonConverter::new(true, DecimalFormat::Base64);
    let key = keys.encoder("t", Some(&Arc::new(Schema::of(Type::String))), None).await.expect("an encoder");
    let key = key.encode_text(&Bytes::from_static(b"8f4b")).expect("a key");
    assert_eq!(key, example("key").to_string());
}
