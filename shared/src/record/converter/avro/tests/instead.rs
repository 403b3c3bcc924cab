//! Rows written by a schema of the registry's.

use super::*;

fn ours() -> Schema {
    let fields = vec![
        Field::new("sys_id", Schema::of(Type::String)),
        Field::new("priority", Schema::of(Type::Int8).optional()),
        Field::new("cost", Schema::logical(Logical::Decimal(2)).optional()),
        Field::new("opened_at", Schema::logical(Logical::Timestamp).optional()),
    ];
    Schema::structure("n.incident.Value", fields)
}

fn row() -> Value<'static> {
    Value::Struct(vec![Value::from("8f4b"), Value::Int(-3), Value::Decimal(-12_345), Value::Int(1_793_277_042_000)])
}

/// A record of theirs with these fields, as JSON.
fn theirs(fields: &[&str]) -> String {
    format!(r#"{{"type":"record","name":"Theirs","namespace":"other","fields":[{}]}}"#, fields.join(","))
}

const ID: &str = r#"{"name":"sys_id","type":"string"}"#;
const PRIORITY: &str = r#"{"name":"priority","type":["int","null"]}"#;
const COST: &str = r#"{"name":"cost","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}]}"#;
const OPENED: &str = r#"{"name":"opened_at","type":["null",{"type":"long","logicalType":"timestamp-millis"}]}"#;

fn resolved(schema: &Schema, instead: &str) -> Result<Box<dyn Writer>, SchemaError> {
    Reference::parse_str(instead).unwrap_or_else(|error| panic!("{error}: {instead}"));
    Avro::default().writer(schema, Some(instead))
}

fn written(schema: &Schema, value: &Value<'_>, instead: &str) -> Vec<(String, Read)> {
    let mut out = Vec::new();
    resolved(schema, instead).expect("a writer").write(value, &mut out).expect("written");
    match read(instead, &out) {
        Read::Record(fields) => fields,
        other => panic!("{other:?}"),
    }
}

fn some(at: u32, value: Read) -> Read {
    Read::Union(at, Box::new(value))
}

#[test]
fn fields_find_each_other_by_name_whatever_their_order_and_the_order_of_null() {
    let fields = written(&ours(), &row(), &theirs(&[OPENED, PRIORITY, ID, COST]));
    let expected = [
        ("opened_at", some(1, Read::TimestampMillis(1_793_277_042_000))),
        ("priority", some(0, Read::Int(-3))),
        ("sys_id", Read::String("8f4b".into())),
        ("cost", some(1, Read::Decimal(vec![0xcf, 0xc7].into()))),
    ];
    assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value)));
    let nulls = Value::Struct(vec![Value::from("8f4b"), Value::Null, Value::Null, Value::Null]);
    let fields = written(&ours(), &nulls, &theirs(&[OPENED, PRIORITY, ID, COST]));
    assert_eq!(fields[1].1, some(1, Read::Null));
}

#[test]
fn a_decimal_has_no_more_digits_than_the_registrys_schema_says() {
    let ours = Schema::structure("n.v", vec![Field::new("cost", Schema::logical(Logical::Decimal(2)).optional())]);
    let cost = |precision: &str| {
        theirs(&[&format!(r#"{{"name":"cost","type":["null",{{"type":"bytes","logicalType":"decimal"{precision},"scale":2}}]}}"#)])
    };
    let most = [(5, 99_999), (38, 10_i128.pow(38) - 1), (64, i128::MAX)];
    for (precision, largest) in most {
        let writer = resolved(&ours, &cost(&format!(r#","precision":{precision}"#))).expect("a writer");
        let write = |unscaled| writer.write(&Value::Struct(vec![Value::Decimal(unscaled)]), &mut Vec::new());
        assert_eq!((write(largest), write(-largest)), (Ok(()), Ok(())), "{precision}");
        for beyond in [largest.checked_add(1), (-largest).checked_sub(1)].into_iter().flatten().filter(|_| precision < 64) {
            let error = write(beyond).expect_err("a digit too many");
            assert!(error.detail.contains("field cost") && error.detail.contains(&format!("precision is {precision}")), "{error}");
        }
    }
    // Avro's own library takes that for plain bytes.
    let error = Avro::default().writer(&ours, Some(&cost(""))).expect_err("no decimal");
    assert!(error.to_string().contains("cost"), "{error}");
}

#[test]
fn what_the_rows_do_not_have_is_written_as_the_schemas_default() {
    let more = [
        r#"{"name":"a","type":["null","string"],"default":null}"#,
        r#"{"name":"b","type":["int","null"],"default":-70}"#,
        r#"{"name":"c","type":"string","default":"text"}"#,
        r#"{"name":"d","type":"bytes","default":"\u00ff\u0000"}"#,
        r#"{"name":"e","type":{"type":"array","items":"long"},"default":[1,-2]}"#,
        r#"{"name":"f","type":{"type":"map","values":"boolean"},"default":{"x":true}}"#,
        r#"{"name":"g","type":{"type":"enum","name":"E","symbols":["P","Q"]},"default":"Q"}"#,
        r#"{"name":"h","type":{"type":"fixed","name":"F","size":2},"default":"ab"}"#,
        r#"{"name":"i","type":{"type":"record","name":"R","fields":[{"name":"x","type":"int"},{"name":"y","type":"double","default":0.5}]},"default":{"x":7}}"#,
        r#"{"name":"j","type":"R","default":{"x":8,"y":1.5}}"#,
        r#"{"name":"k","type":{"type":"array","items":"long"},"default":[]}"#,
        r#"{"name":"l","type":"float","default":1.5}"#,
    ];
    let fields: Vec<&str> = [ID, PRIORITY, COST, OPENED].into_iter().chain(more).collect();
    let fields = written(&ours(), &row(), &theirs(&fields));
    let point = |x, y| Read::Record(vec![("x".into(), Read::Int(x)), ("y".into(), Read::Double(y))]);
    let expected = [
        some(0, Read::Null),
        some(0, Read::Int(-70)),
        Read::String("text".into()),
        Read::Bytes(vec![0xff, 0]),
        Read::Array(vec![Read::Long(1), Read::Long(-2)]),
        Read::Map([("x".to_owned(), Read::Boolean(true))].into()),
        Read::Enum(1, "Q".into()),
        Read::Fixed(2, b"ab".to_vec()),
        point(7, 0.5),
        point(8, 1.5),
        Read::Array(Vec::new()),
        Read::Float(1.5),
    ];
    let defaults: Vec<Read> = fields.into_iter().skip(4).map(|(_, value)| value).collect();
    assert_eq!(defaults, expected);
}

#[test]
fn a_wider_type_is_written_and_what_would_say_something_else_is_refused_with_the_field() {
    let wide =
        Schema::structure("n", vec![Field::new("a", Schema::of(Type::Int16)), Field::new("b", Schema::of(Type::Float32).optional())]);
    let value = Value::Struct(vec![Value::Int(-300), Value::Float32(0.5)]);
    let fields = written(&wide, &value, &theirs(&[r#"{"name":"a","type":"long"}"#, r#"{"name":"b","type":["null","double"]}"#]));
    assert_eq!((&fields[0].1, &fields[1].1), (&Read::Long(-300), &some(1, Read::Double(0.5))));
    let fields = written(&wide, &value, &theirs(&[r#"{"name":"a","type":"double"}"#, r#"{"name":"b","type":["null","float"]}"#]));
    assert_eq!(fields[0].1, Read::Double(-300.0));

    let long = r#"{"name":"sys_id","type":"long"}"#;
    let scale = r#"{"name":"cost","type":["null",{"type":"bytes","logicalType":"decimal","precision":10,"scale":3}]}"#;
    let bytes = r#"{"name":"cost","type":["null","bytes"]}"#;
    let micros = r#"{"name":"opened_at","type":["null",{"type":"long","logicalType":"timestamp-micros"}]}"#;
    let day = r#"{"name":"priority","type":["null",{"type":"int","logicalType":"date"}]}"#;
    let fixed = r#"{"name":"priority","type":["null",{"type":"fixed","name":"F","size":1}]}"#;
    let only_null = r#"{"name":"priority","type":["null"]}"#;
    let more = r#"{"name":"more","type":"string"}"#;
    let cases = [
        (vec![PRIORITY, COST, OPENED], "it lacks sys_id; add it there"),
        (vec![ID, PRIORITY, COST, OPENED, more], "requires a field more"),
        (vec![long, PRIORITY, COST, OPENED], "field sys_id is string here and long there"),
        (vec![ID, PRIORITY, scale, OPENED], "field cost is decimal(2) here and bytes (decimal, scale 3) there"),
        (vec![ID, PRIORITY, bytes, OPENED], "field cost is decimal(2) here and bytes there"),
        (vec![ID, PRIORITY, COST, micros], "field opened_at is timestamp-millis here and long (timestamp-micros) there"),
        (vec![ID, day, COST, OPENED], "field priority is int8 here and int (date) there"),
        (vec![ID, fixed, COST, OPENED], "field priority is int8 here and fixed there"),
        (vec![ID, only_null, COST, OPENED], "field priority has no type there but null"),
    ];
    for (fields, part) in cases {
        let error = resolved(&ours(), &theirs(&fields)).expect_err(part).to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    let plain = r#"{"name":"opened_at","type":["null","long"]}"#;
    let fields = written(&ours(), &row(), &theirs(&[ID, PRIORITY, COST, plain]));
    assert_eq!(fields[3].1, some(1, Read::Long(1_793_277_042_000)), "a number whose meaning only its reader knows");
}

#[test]
fn a_null_where_the_schema_has_no_place_for_it_is_an_error_of_the_row_that_names_the_field() {
    let required = r#"{"name":"priority","type":"int"}"#;
    let union = r#"{"name":"priority","type":["string","int"]}"#;
    for (field, read) in [(required, Read::Int(-3)), (union, some(1, Read::Int(-3)))] {
        let instead = theirs(&[ID, field, COST, OPENED]);
        assert_eq!(written(&ours(), &row(), &instead)[1].1, read);
        let null = Value::Struct(vec![Value::from("8f4b"), Value::Null, Value::Null, Value::Null]);
        let error = resolved(&ours(), &instead).expect("a writer").write(&null, &mut Vec::new()).expect_err("no place for null");
        assert!(error.to_string().contains("field priority"), "{error}");
    }
}

#[test]
fn a_field_that_the_schema_lacks_is_written_as_nothing_while_it_is_null_and_its_value_is_an_error_of_the_row() {
    let instead = theirs(&[COST, ID]);
    let value = |priority| Value::Struct(vec![Value::from("8f4b"), priority, Value::Decimal(-12_345), Value::Null]);
    let expected = [("cost", some(1, Read::Decimal(vec![0xcf, 0xc7].into()))), ("sys_id", Read::String("8f4b".into()))];
    assert_eq!(written(&ours(), &value(Value::Null), &instead), expected.map(|(name, value)| (name.to_owned(), value)));
    let writer = resolved(&ours(), &instead).expect("a writer");
    let error = writer.write(&value(Value::Int(1)), &mut Vec::new()).expect_err("no place for a value");
    assert!(error.detail.contains("field priority has a value here") && error.detail.contains("`fields`"), "{error}");
}

#[test]
fn an_envelope_is_written_by_one_whose_records_have_other_names_and_namespaces() {
    let row_schema = Schema::structure("n.incident.Value", vec![Field::new("a", Schema::of(Type::String).optional())]);
    let envelope = Schema::structure(
        "n.incident.Envelope",
        vec![
            Field::new("before", row_schema.clone().optional()),
            Field::new("after", row_schema),
            Field::new("op", Schema::of(Type::String)),
        ],
    );
    let instead = concat!(
        r#"{"type":"record","name":"Change","namespace":"x","fields":["#,
        r#"{"name":"op","type":"string"},"#,
        r#"{"name":"after","type":{"type":"record","name":"y.Row","fields":[{"name":"a","type":["null","string"]},{"name":"b","type":["null","Inner"],"default":null}]}},"#,
        r#"{"name":"before","type":["null","y.Row"],"default":null}]}"#
    )
    .replace("\"Inner\"", r#"{"type":"record","name":"Inner","fields":[]}"#);
    let value = Value::Struct(vec![Value::Null, Value::Struct(vec![Value::from("x")]), Value::from("u")]);
    let fields = written(&envelope, &value, &instead);
    let after = Read::Record(vec![("a".into(), some(1, Read::String("x".into()))), ("b".into(), some(0, Read::Null))]);
    let expected = [("op", Read::String("u".into())), ("after", after), ("before", some(0, Read::Null))];
    assert_eq!(fields, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn text_that_is_no_schema_is_refused_and_never_a_panic() {
    for text in [
        "",
        "7",
        "{}",
        "[]",
        r#""nowhere""#,
        r#"{"type":"record","name":"n"}"#,
        r#"{"type":"record","name":"n","fields":[{}]}"#,
        r#"{"type":{"type":7}}"#,
    ] {
        let error = Avro::default().writer(&ours(), Some(text)).expect_err(text);
        assert!(matches!(error, SchemaError::Unlike(_)), "{text}: {error}");
    }
}
