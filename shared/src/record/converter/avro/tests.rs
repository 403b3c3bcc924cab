//! The reference library parses every schema and reads every value that is written.

use std::borrow::Cow;

use apache_avro::Schema as Reference;
use apache_avro::reader::datum::GenericDatumReader;
use apache_avro::types::Value as Read;

use super::*;
use crate::record::schema::{Field, Logical, Type};
use crate::record::value::{Text, Value};

mod instead;
mod random;

fn text(schema: &Schema) -> String {
    Avro::default().describe(schema).expect("a schema").text
}

fn encoded(schema: &Schema, value: &Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    Avro::default().writer(schema, None).expect("a writer").write(value, &mut out).expect("written");
    out
}

/// What the reference library reads from `data`, all of it.
fn read(schema: &str, mut data: &[u8]) -> Read {
    let schema = Reference::parse_str(schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
    let reader = GenericDatumReader::builder(&schema).build().expect("a reader");
    let read = reader.read_value(&mut data).expect("a value");
    assert!(data.is_empty(), "{} bytes too many", data.len());
    read
}

/// Asserts that what was read is the value that was written.
fn same(schema: &Schema, value: &Value<'_>, read: &Read) {
    let read = match (schema.optional, value, read) {
        (true, Value::Null, read) => return assert_eq!(*read, Read::Union(0, Box::new(Read::Null))),
        (true, _, Read::Union(1, inner)) => &**inner,
        (false, _, read) => read,
        other => panic!("{other:?}"),
    };
    let int = |number: i64| i32::try_from(number).expect("32 bits");
    match (value, schema.as_logical(), read) {
        (Value::Struct(values), _, Read::Record(fields)) => {
            assert_eq!(values.len(), fields.len());
            for ((field, value), (name, read)) in schema.fields().iter().zip(values).zip(fields) {
                assert_eq!(field.name, *name);
                same(&field.schema, value, read);
            }
        }
        (Value::Decimal(unscaled), Some(Logical::Decimal(_)), Read::Decimal(decimal)) => {
            let bytes = <Vec<u8>>::try_from(decimal).expect("bytes");
            assert_eq!(bytes, crate::record::value::decimal_bytes(*unscaled));
            let sign = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
            let mut whole = [sign; 16];
            whole[16 - bytes.len()..].copy_from_slice(&bytes);
            assert_eq!(i128::from_be_bytes(whole), *unscaled);
        }
        (Value::Int(days), Some(Logical::Date), Read::Date(read)) => assert_eq!(int(*days), *read),
        (Value::Int(ms), Some(Logical::Time), Read::TimeMillis(read)) => assert_eq!(int(*ms), *read),
        (Value::Int(ms), Some(Logical::Timestamp), Read::TimestampMillis(read)) => assert_eq!(ms, read),
        (Value::Int(number), None, Read::Int(read)) => assert_eq!(int(*number), *read),
        (Value::Int(number), None, Read::Long(read)) => assert_eq!(number, read),
        (Value::Float32(number), None, Read::Float(read)) => assert_eq!(number.to_bits(), read.to_bits()),
        (Value::Float64(number), None, Read::Double(read)) => assert_eq!(number.to_bits(), read.to_bits()),
        (Value::Boolean(value), None, Read::Boolean(read)) => assert_eq!(value, read),
        (Value::Text(text), None, Read::String(read)) => assert_eq!(text.plain(), *read),
        (Value::Bytes(bytes), None, Read::Bytes(read)) => assert_eq!(&**bytes, &**read),
        other => panic!("{other:?}"),
    }
}

/// A schema of every type.
fn every_type() -> Vec<Schema> {
    let plain = [Type::Int8, Type::Int16, Type::Int32, Type::Int64, Type::Float32, Type::Float64, Type::Boolean, Type::String, Type::Bytes];
    let logical = [Logical::Decimal(0), Logical::Decimal(2), Logical::Decimal(38), Logical::Date, Logical::Time, Logical::Timestamp];
    plain.into_iter().map(Schema::of).chain(logical.into_iter().map(Schema::logical)).collect()
}

/// The values at the ends of a type's range, and some between.
fn extremes(schema: &Schema) -> Vec<Value<'static>> {
    let ints = |bits: u32| {
        let limit = 1_i128 << (bits - 1);
        [-limit, -65, -64, -1, 0, 1, 63, 64, limit - 1].map(|number| Value::Int(i64::try_from(number).expect("64 bits"))).to_vec()
    };
    let most = 10_i128.pow(38) - 1;
    match (&schema.kind, schema.as_logical()) {
        (_, Some(Logical::Decimal(_))) => {
            [-most, -129, -128, -1, 0, 1, 127, 128, 255, 256, most, i128::MIN, i128::MAX].map(Value::Decimal).to_vec()
        }
        (_, Some(Logical::Date)) => [-719_162, -1, 0, 2_932_896].map(Value::Int).to_vec(),
        (_, Some(Logical::Time)) => [0, 1, 86_399_999].map(Value::Int).to_vec(),
        (_, Some(Logical::Timestamp)) => [-62_135_596_800_000, -1, 0, 253_402_300_799_999].map(Value::Int).to_vec(),
        (Type::Int8, _) => ints(8),
        (Type::Int16, _) => ints(16),
        (Type::Int32, _) => ints(32),
        (Type::Int64, _) => ints(64),
        (Type::Float32, _) => [f32::MIN, -0.0, 0.0, f32::MIN_POSITIVE, 0.1, f32::MAX].map(Value::Float32).to_vec(),
        (Type::Float64, _) => [f64::MIN, -0.0, 5e-324, 0.1, f64::MAX].map(Value::Float64).to_vec(),
        (Type::Boolean, _) => [true, false].map(Value::Boolean).to_vec(),
        (Type::Bytes, _) => [&[][..], &[0, 255, 128], &[7; 200]].map(|bytes| Value::Bytes(Cow::Borrowed(bytes))).to_vec(),
        (Type::String, _) => {
            let plain = ["", "Zürich ☃ 𝄞", "a\0b"].map(Value::from);
            let long = Value::from("x".repeat(10_000));
            let quoted = Value::Text(Text::Quoted(r#""a\"b\\c\n\u00e4\ud834\udd1e""#));
            plain.into_iter().chain([long, quoted]).collect()
        }
        (Type::Struct(_), _) => unreachable!("not asked for"),
    }
}

#[test]
fn every_type_at_its_extremes_and_null_is_read_back_by_the_reference_library() {
    for schema in every_type() {
        for value in extremes(&schema) {
            same(&schema, &value, &read(&text(&schema), &encoded(&schema, &value)));
            let optional = schema.clone().optional();
            same(&optional, &value, &read(&text(&optional), &encoded(&optional, &value)));
        }
        let optional = schema.optional();
        same(&optional, &Value::Null, &read(&text(&optional), &encoded(&optional, &Value::Null)));
    }
}

#[test]
fn a_value_that_is_not_of_its_type_is_an_error_and_no_bytes_of_something_else() {
    let unfit = [
        (Schema::of(Type::Int32), Value::Int(i64::from(i32::MAX) + 1)),
        (Schema::of(Type::Int32), Value::from("1")),
        (Schema::of(Type::Int64), Value::Null),
        (Schema::of(Type::String), Value::Int(1)),
        (Schema::of(Type::Bytes), Value::Decimal(1)),
        (Schema::logical(Logical::Decimal(2)), Value::Bytes(Cow::Borrowed(&[1]))),
        (Schema::structure("n", vec![Field::new("a", Schema::of(Type::String))]), Value::Struct(Vec::new())),
    ];
    for (schema, value) in unfit {
        let writer = Avro::default().writer(&schema, None).expect("a writer");
        writer.write(&value, &mut Vec::new()).expect_err("not of its type");
    }
}

#[test]
fn a_schema_is_member_for_member_the_one_that_avro_data_makes() {
    let decimal = Schema::logical(Logical::Decimal(2)).optional();
    let fields = vec![
        Field::new("sys_id", Schema::of(Type::String)),
        Field::new("priority", Schema::of(Type::Int8).optional()),
        Field::new("cost", decimal),
        Field::new("opened_at", Schema::logical(Logical::Timestamp).optional()),
        Field::new("due", Schema::logical(Logical::Date)),
        Field::new("at", Schema::logical(Logical::Time)),
    ];
    let schema = Schema::structure("sh.oso.servicenow.incident.Value", fields).versioned(3);
    let expected = concat!(
        r#"{"type":"record","name":"Value","namespace":"sh.oso.servicenow.incident","fields":["#,
        r#"{"name":"sys_id","type":"string"},"#,
        r#"{"name":"priority","type":["null",{"type":"int","connect.type":"int8"}],"default":null},"#,
        r#"{"name":"cost","type":["null",{"type":"bytes","scale":2,"precision":64,"connect.version":1,"connect.parameters":{"scale":"2"},"#,
        r#""connect.name":"org.apache.kafka.connect.data.Decimal","logicalType":"decimal"}],"default":null},"#,
        r#"{"name":"opened_at","type":["null",{"type":"long","connect.version":1,"#,
        r#""connect.name":"org.apache.kafka.connect.data.Timestamp","logicalType":"timestamp-millis"}],"default":null},"#,
        r#"{"name":"due","type":{"type":"int","connect.version":1,"connect.name":"org.apache.kafka.connect.data.Date","logicalType":"date"}},"#,
        r#"{"name":"at","type":{"type":"int","connect.version":1,"connect.name":"org.apache.kafka.connect.data.Time","logicalType":"time-millis"}}"#,
        r#"],"connect.version":3,"connect.name":"sh.oso.servicenow.incident.Value"}"#,
    );
    assert_eq!(text(&schema), expected);
    let plain = Avro::new(AvroSettings { connect_meta_data: false, ..AvroSettings::default() });
    let plain = plain.describe(&schema).expect("a schema").text;
    assert!(!plain.contains("connect."), "{plain}");
    assert!(plain.contains(r#"{"type":"bytes","scale":2,"precision":64,"logicalType":"decimal"}"#), "{plain}");
    Reference::parse_str(&plain).expect("a schema");
}

#[test]
fn a_struct_that_comes_twice_is_written_out_once_and_named_from_then_on() {
    let row = Schema::structure("a.b.Value", vec![Field::new("x", Schema::of(Type::String))]);
    let source = Schema::structure("a.Source", vec![Field::new("y", Schema::of(Type::String))]);
    let alone = Schema::structure("Alone", vec![Field::new("z", Schema::of(Type::Int32))]);
    let fields = vec![
        Field::new("before", row.clone().optional()),
        Field::new("after", row),
        Field::new("source", source.clone()),
        Field::new("origin", source.optional()),
        Field::new("alone", alone),
    ];
    let expected = concat!(
        r#"{"type":"record","name":"Envelope","namespace":"a.b","fields":["#,
        r#"{"name":"before","type":["null",{"type":"record","name":"Value","fields":[{"name":"x","type":"string"}],"connect.name":"a.b.Value"}],"default":null},"#,
        r#"{"name":"after","type":"Value"},"#,
        r#"{"name":"source","type":{"type":"record","name":"Source","namespace":"a","fields":[{"name":"y","type":"string"}],"connect.name":"a.Source"}},"#,
        r#"{"name":"origin","type":["null","a.Source"],"default":null},"#,
        r#"{"name":"alone","type":{"type":"record","name":"Alone","namespace":"","fields":[{"name":"z","type":"int"}],"connect.name":"Alone"}}"#,
        r#"],"connect.name":"a.b.Envelope"}"#,
    );
    let schema = Schema::structure("a.b.Envelope", fields);
    assert_eq!(text(&schema), expected);
    let one = |text: &'static str| Value::Struct(vec![Value::from(text)]);
    let value = Value::Struct(vec![Value::Null, one("after"), one("source"), one("origin"), Value::Struct(vec![Value::Int(7)])]);
    same(&schema, &value, &read(&text(&schema), &encoded(&schema, &value)));
}

#[test]
fn two_structs_of_one_name_are_refused_and_one_without_a_name_gets_connects() {
    let of = |kind: Type| Schema::structure("n.Same", vec![Field::new("a", Schema::of(kind))]);
    let both = Schema::structure("n.Both", vec![Field::new("one", of(Type::String)), Field::new("two", of(Type::Int32))]);
    let error = Avro::default().describe(&both).expect_err("one name for two things");
    assert!(error.to_string().contains("n.Same"), "{error}");
    let unnamed = Schema { name: None, ..of(Type::String) };
    let described = Avro::default().describe(&unnamed).expect("a schema");
    assert_eq!(described.record.as_deref(), Some("io.confluent.connect.avro.ConnectDefault"));
}

#[test]
fn fields_that_are_no_names_in_avro_are_refused_or_scrubbed_and_no_two_become_one() {
    let of = |names: &[&str]| {
        let fields = names.iter().map(|name| Field::new(*name, Schema::of(Type::String)));
        Schema::structure("db.dbo.Order Lines.Value", fields.collect())
    };
    let error = Avro::default().describe(&of(&["u_a$b"])).expect_err("no name");
    assert!(error.to_string().contains("Order Lines") && error.to_string().contains("scrub.invalid.names"), "{error}");
    let scrubbing = Avro::new(AvroSettings { scrub_invalid_names: true, ..AvroSettings::default() });
    let described = scrubbing.describe(&of(&["u_a$b", "assignment_group.name", "1st"])).expect("a schema");
    assert_eq!(described.record.as_deref(), Some("db.dbo.Order_Lines.Value"));
    let names = ["u_a_24b", "assignment_group_name", "x1st"].map(|name| format!(r#"{{"name":"{name}","type":"string"}}"#));
    assert!(described.text.contains(&names.join(",")), "{}", described.text);
    assert!(described.text.contains(r#""connect.name":"db.dbo.Order Lines.Value""#), "Connect keeps its name: {}", described.text);
    Reference::parse_str(&described.text).expect("a schema");
    let error = scrubbing.describe(&of(&["a.b", "a_b"])).expect_err("two fields of one name");
    assert!(["\"a.b\"", "\"a_b\""].iter().all(|name| error.to_string().contains(name)), "{error}");
}

#[test]
fn a_decimal_that_knows_its_digits_says_so() {
    let mut schema = Schema::logical(Logical::Decimal(2));
    schema.parameters.push(("connect.decimal.precision".to_owned(), "10".to_owned()));
    assert!(text(&schema).contains(r#""scale":2,"precision":10,"#), "{}", text(&schema));
}
