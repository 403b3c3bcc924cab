use super::*;
use crate::record::schema::Field;

fn schema() -> Schema {
    let row = Schema::structure(
        "n.incident.Value",
        vec![
            Field::new("sys_id", Schema::of(Type::String)),
            Field::new("u_a$b", Schema::of(Type::Int8).optional()),
            Field::new("cost", Schema::logical(Logical::Decimal(2)).optional()),
        ],
    );
    let row = row.versioned(2);
    Schema::structure("n.incident.Envelope", vec![Field::new("before", row.clone().optional()), Field::new("after", row)])
}

fn described(format: JsonSchema) -> Json {
    let description = format.describe(&schema()).expect("a schema");
    assert_eq!(description.record.as_deref(), Some("n.incident.Envelope"));
    serde_json::from_str(&description.text).expect("JSON")
}

fn expected_row(index: Option<usize>) -> Json {
    let decimal = json!({
        "type": "string", "title": "org.apache.kafka.connect.data.Decimal", "connect.version": 1,
        "connect.parameters": {"scale": "2"}, "connect.type": "bytes",
    });
    let mut row = json!({
        "type": "object",
        "title": "n.incident.Value",
        "properties": {
            "sys_id": {"type": "string", "connect.index": 0},
            "u_a$b": {"oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int8"}], "connect.index": 1},
            "cost": {"oneOf": [{"type": "null"}, decimal], "connect.index": 2},
        },
        "connect.version": 2,
    });
    if let Some(index) = index {
        row["connect.index"] = index.into();
    }
    row
}

#[test]
fn a_schema_is_the_one_that_confluents_converter_makes() {
    let expected = json!({
        "type": "object",
        "title": "n.incident.Envelope",
        "properties": {
            "before": {"oneOf": [{"type": "null"}, expected_row(None)], "connect.index": 0},
            "after": expected_row(Some(1)),
        },
    });
    assert_eq!(described(JsonSchema::new(Dialect::Confluent)), expected);
    let closed = described(JsonSchema { additional_properties: false, ..JsonSchema::new(Dialect::Confluent) });
    assert_eq!(closed["additionalProperties"], false);
    assert_eq!(closed["properties"]["after"]["additionalProperties"], false);
}

#[test]
fn awss_converter_has_connects_name_in_a_property_of_its_own_and_null_last() {
    let found = described(JsonSchema::new(Dialect::Glue));
    assert_eq!((&found["title"], &found["connect.name"]), (&Json::Null, &"n.incident.Envelope".into()));
    let expected =
        json!({"oneOf": [{"type": "integer", "connect.type": "int8", "connect.index": 1}, {"type": "null"}], "connect.index": 1});
    assert_eq!(found["properties"]["after"]["properties"]["u_a$b"], expected);
    assert_eq!(found["properties"]["before"]["oneOf"][0], json!({"type": "null"}), "of a struct it is first there too");
}

#[test]
fn every_type_says_what_json_has_no_words_for() {
    let types = [
        (Schema::of(Type::Int16), "integer", Some("int16")),
        (Schema::of(Type::Int32), "integer", Some("int32")),
        (Schema::of(Type::Int64), "integer", Some("int64")),
        (Schema::of(Type::Float32), "number", Some("float32")),
        (Schema::of(Type::Float64), "number", Some("float64")),
        (Schema::of(Type::Boolean), "boolean", None),
        (Schema::of(Type::Bytes), "string", Some("bytes")),
        (Schema::logical(Logical::Date), "integer", Some("int32")),
        (Schema::logical(Logical::Time), "integer", Some("int32")),
        (Schema::logical(Logical::Timestamp), "integer", Some("int64")),
        (Schema::logical(Logical::Decimal(2)), "string", Some("bytes")),
    ];
    for (schema, json, connect) in types {
        let text = JsonSchema::new(Dialect::Confluent).describe(&schema).expect("a schema").text;
        let found: Json = serde_json::from_str(&text).expect("JSON");
        assert_eq!((found["type"].as_str(), found["connect.type"].as_str()), (Some(json), connect), "{text}");
    }
    let numeric = JsonSchema { decimals: DecimalFormat::Numeric, ..JsonSchema::new(Dialect::Confluent) };
    let text = numeric.describe(&Schema::logical(Logical::Decimal(2))).expect("a schema").text;
    assert!(text.contains(r#""type":"number""#), "{text}");
}

fn row() -> Value<'static> {
    Value::Struct(vec![Value::from("8f4b"), Value::Null, Value::Decimal(150)])
}

fn row_schema() -> Schema {
    (*schema().fields()[1].schema).clone()
}

fn written(format: JsonSchema, instead: Option<&str>, value: &Value<'_>) -> Result<String, EncodeError> {
    let mut out = Vec::new();
    format.writer(&row_schema(), instead).expect("a writer").write(value, &mut out)?;
    Ok(String::from_utf8(out).expect("UTF-8"))
}

#[test]
fn data_is_plain_json_that_its_schema_validates() {
    let (base64, numeric) = (DecimalFormat::Base64, DecimalFormat::Numeric);
    for (decimals, expected) in
        [(base64, r#"{"sys_id":"8f4b","u_a$b":null,"cost":"AJY="}"#), (numeric, r#"{"sys_id":"8f4b","u_a$b":null,"cost":1.50}"#)]
    {
        for dialect in [Dialect::Confluent, Dialect::Glue] {
            let format = JsonSchema { dialect, decimals, additional_properties: false };
            let data = written(format, None, &row()).expect("written");
            assert_eq!(data, expected);
            let schema: Json = serde_json::from_str(&format.describe(&row_schema()).expect("a schema").text).expect("JSON");
            let validator = jsonschema::validator_for(&schema).expect("a JSON Schema");
            assert!(validator.is_valid(&serde_json::from_str(&data).expect("JSON")), "{data} by {schema}");
            assert!(!validator.is_valid(&json!({"sys_id": "8f4b", "u_a$b": "text", "cost": null})), "{schema}");
        }
    }
}

fn theirs(properties: &Json, required: &[&str]) -> String {
    let definitions = json!({"text": {"type": "string"}, "loop": {"$ref": "#/definitions/loop"}});
    json!({"type": "object", "properties": properties, "required": required, "definitions": definitions}).to_string()
}

#[test]
fn a_schema_of_the_registrys_says_what_becomes_of_a_null() {
    let format = JsonSchema::new(Dialect::Confluent);
    let of =
        |number: Json| json!({"cost": {"type": ["string", "null"]}, "sys_id": {"$ref": "#/definitions/text"}, "u_a$b": number, "more": {}});
    let takes_null = theirs(&of(json!({"oneOf": [{"type": "integer"}, {"type": "null"}]})), &["u_a$b"]);
    assert_eq!(written(format, Some(&takes_null), &row()).expect("written"), r#"{"sys_id":"8f4b","u_a$b":null,"cost":"AJY="}"#);
    let may_lack = theirs(&of(json!({"type": "integer"})), &["sys_id"]);
    assert_eq!(written(format, Some(&may_lack), &row()).expect("written"), r#"{"sys_id":"8f4b","cost":"AJY="}"#);
    let requires = theirs(&of(json!({"type": "number"})), &["u_a$b"]);
    let error = written(format, Some(&requires), &row()).expect_err("required");
    assert!(error.to_string().contains("field u_a$b"), "{error}");
    let value = Value::Struct(vec![Value::from(""), Value::Int(7), Value::Null]);
    assert_eq!(written(format, Some(&requires), &value).expect("written"), r#"{"sys_id":"","u_a$b":7,"cost":null}"#);
}

#[test]
fn a_field_that_the_schema_lacks_is_left_out_while_it_is_null_and_its_value_is_an_error_of_the_row() {
    let format = JsonSchema::new(Dialect::Confluent);
    let lacking = theirs(&json!({"sys_id": {"type": "string"}}), &["sys_id"]);
    let value = |number| Value::Struct(vec![Value::from("8f4b"), number, Value::Null]);
    assert_eq!(written(format, Some(&lacking), &value(Value::Null)).expect("written"), r#"{"sys_id":"8f4b"}"#);
    let error = written(format, Some(&lacking), &value(Value::Int(1))).expect_err("no place for a value");
    assert!(error.detail.contains("field u_a$b has a value here") && error.detail.contains("`fields`"), "{error}");
}

#[test]
fn a_schema_that_does_not_fit_is_refused_with_the_field() {
    let format = JsonSchema::new(Dialect::Confluent);
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let fits = json!({"sys_id": text, "u_a$b": number, "cost": text});
    let cases = [
        (theirs(&json!({"u_a$b": number, "cost": text}), &[]), "it lacks sys_id; add it there"),
        (theirs(&fits, &["sys_id", "more"]), "requires a field more"),
        (theirs(&json!({"sys_id": number, "u_a$b": number, "cost": text}), &[]), "field sys_id is string here and integer there"),
        (theirs(&json!({"sys_id": {"$ref": "#/definitions/none"}, "u_a$b": number, "cost": text}), &[]), "#/definitions/none"),
        (theirs(&json!({"sys_id": {"$ref": "#/definitions/loop"}, "u_a$b": number, "cost": text}), &[]), "circle"),
        (theirs(&json!({"sys_id": {"anyOf": [text, number]}, "u_a$b": number, "cost": text}), &[]), "a choice"),
        ("{}".to_owned(), "no properties"),
        ("{".to_owned(), "no JSON"),
    ];
    for (schema, part) in cases {
        let error = format.writer(&row_schema(), Some(&schema)).expect_err(part).to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}
