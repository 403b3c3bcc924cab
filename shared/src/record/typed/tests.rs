use super::*;

fn read(kind: &str, json: &str) -> Option<Value<'static>> {
    let kind = FieldType::parse(kind).unwrap_or_else(|| panic!("{kind} is a type"));
    kind.read(json).map(|value| match value {
        Value::Text(text) => Value::from(text.plain().into_owned()),
        Value::Null => Value::Null,
        Value::Boolean(value) => Value::Boolean(value),
        Value::Int(value) => Value::Int(value),
        Value::Float32(value) => Value::Float32(value),
        Value::Float64(value) => Value::Float64(value),
        Value::Bytes(bytes) => Value::Bytes(Cow::Owned(bytes.into_owned())),
        Value::Decimal(value) => Value::Decimal(value),
        other => panic!("{other:?}"),
    })
}

#[test]
fn every_type_reads_its_extremes_exactly() {
    for (kind, json, value) in [
        ("int8", "\"-128\"", Value::Int(-128)),
        ("int8", "127", Value::Int(127)),
        ("int16", "\"-32768\"", Value::Int(-32_768)),
        ("int32", "\"2147483647\"", Value::Int(2_147_483_647)),
        ("int64", "\"-9223372036854775808\"", Value::Int(i64::MIN)),
        ("int64", "9223372036854775807", Value::Int(i64::MAX)),
        ("float32", "\"3.4028235e38\"", Value::Float32(f32::MAX)),
        ("float32", "0.1", Value::Float32(0.1)),
        ("float64", "\"-1.7976931348623157e308\"", Value::Float64(f64::MIN)),
        ("float64", "\"5e-324\"", Value::Float64(5e-324)),
        ("boolean", "\"true\"", Value::Boolean(true)),
        ("boolean", "false", Value::Boolean(false)),
        ("boolean", "\"0\"", Value::Boolean(false)),
        ("bytes", "\"AP+A\"", Value::Bytes(Cow::Borrowed(&[0, 255, 128]))),
        ("timestamp", "\"1970-01-01 00:00:00\"", Value::Int(0)),
        ("timestamp", "\"2026-10-29 12:30:42\"", Value::Int(1_793_277_042_000)),
        ("timestamp", "\"0001-01-01 00:00:00\"", Value::Int(-62_135_596_800_000)),
        ("timestamp", "\"9999-12-31 23:59:59.999\"", Value::Int(253_402_300_799_999)),
        ("date", "\"1969-12-31\"", Value::Int(-1)),
        ("date", "\"9999-12-31\"", Value::Int(2_932_896)),
        ("date", "\"0001-01-01\"", Value::Int(-719_162)),
        ("time", "\"23:59:59\"", Value::Int(86_399_000)),
        ("time", "\"1970-01-01 08:00:00\"", Value::Int(28_800_000)),
        ("decimal(2)", "\"-1234.5\"", Value::Decimal(-123_450)),
        ("decimal(2)", "1.500", Value::Decimal(150)),
        ("decimal(0)", "\"99999999999999999999999999999999999999\"", Value::Decimal(10_i128.pow(38) - 1)),
        ("decimal(38)", "\".1\"", Value::Decimal(10_i128.pow(37))),
        ("string", "\"\"", Value::from("")),
        ("string", "12", Value::from("12")),
    ] {
        assert_eq!(read(kind, json), Some(value), "{kind} {json}");
    }
}

#[test]
fn what_does_not_fit_its_type_exactly_is_no_value_of_it() {
    for (kind, unfit) in [
        ("int8", &["\"128\"", "\"-129\"", "\"1.0\"", "\" 1\"", "\"1,000\"", "true", "[1]", "{}"][..]),
        ("int16", &["\"32768\""]),
        ("int32", &["\"-2147483649\""]),
        ("int64", &["\"9223372036854775808\""]),
        ("float32", &["\"1e39\"", "\"nan\"", "\"inf\"", "\"x\""]),
        ("float64", &["\"1e309\"", "\"NaN\"", "\"-inf\""]),
        ("boolean", &["\"yes\"", "\"TRUE\"", "2"]),
        ("bytes", &["\"not base64\"", "\"AA\""]),
        (
            "timestamp",
            &["\"2026-01-01\"", "\"2026-02-30 00:00:00\"", "\"2026-01-01 00:00:00+02:00\"", "\"2026-01-01T00:00:00Z\"", "1767225600000"],
        ),
        ("date", &["\"2026-02-30\"", "\"2026-01-01 00:00:00\"", "\"01/02/2026\""]),
        ("time", &["\"24:00:00\"", "\"1970-01-02 03:04:05\"", "\"8:00\"", "\"2026-01-01\""]),
        ("decimal(2)", &["\"1.001\"", "\"1e3\"", "\"1,5\"", "\".\"", "\"-\"", "\"999999999999999999999999999999999999999\""]),
        ("decimal(0)", &["\"100000000000000000000000000000000000000\"", "\"-100000000000000000000000000000000000000\""]),
        ("decimal(38)", &["\"1\""]),
    ] {
        for json in unfit {
            assert_eq!(read(kind, json), None, "{kind} {json}");
        }
    }
}

#[test]
fn an_empty_text_and_null_are_null_and_a_pair_is_its_raw_value() {
    for kind in ["int8", "float64", "boolean", "bytes", "timestamp", "date", "time", "decimal(3)"] {
        assert_eq!(read(kind, "\"\""), Some(Value::Null), "{kind}");
        assert_eq!(read(kind, "null"), Some(Value::Null), "{kind}");
        assert_eq!(read(kind, r#"{"display_value":"Nothing","value":""}"#), Some(Value::Null), "{kind}");
    }
    assert_eq!(read("string", "null"), Some(Value::Null));
    assert_eq!(read("int32", r#"{"display_value":"1 - Critical","value":"1"}"#), Some(Value::Int(1)));
    assert_eq!(read("string", r#"{"link":"https://acme/x","value":"46d4"}"#), Some(Value::from("46d4")));
}

#[test]
fn a_scale_is_at_most_the_digits_of_a_decimal() {
    assert_eq!(FieldType::parse("decimal(38)"), Some(FieldType::Decimal(38)));
    for unknown in ["decimal(39)", "decimal()", "decimal", "decimal(-1)", "int128", "String", ""] {
        assert_eq!(FieldType::parse(unknown), None, "{unknown}");
    }
}

#[test]
fn a_type_is_shown_as_documents_write_it() {
    for name in
        ["string", "int8", "int16", "int32", "int64", "float32", "float64", "boolean", "bytes", "timestamp", "date", "time", "decimal(7)"]
    {
        assert_eq!(FieldType::parse(name).map(|kind| kind.to_string()).as_deref(), Some(name));
    }
}
