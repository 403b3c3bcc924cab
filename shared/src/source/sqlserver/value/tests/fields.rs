//! Rows as values of a schema say what they say as JSON.

use super::*;
use crate::record::value::{Text, Value};

fn text_value(text: &'static str) -> Value<'static> {
    Value::Text(Text::Plain(Cow::Borrowed(text)))
}

/// A table of an int sequence and one column.
fn written(value: ColumnData<'static>, base_type: &str, settings: Settings) -> Result<(Value<'static>, Written), Error> {
    let scale = if let ColumnData::Numeric(Some(number)) = &value { number.scale() } else { 0 };
    let columns = [column("int", 0, 0), column(base_type, 38, scale)];
    let row = match base_type {
        "sql_variant" => vec![ColumnData::I32(Some(5)), ColumnData::String(None), ColumnData::Numeric(None), value],
        _ => vec![ColumnData::I32(Some(5)), value],
    };
    let (mut values, written) = RowWriter::new(&columns, 0, settings).fields(row)?;
    assert_eq!((values.len(), &values[0], written.sequence.number()), (2, &Value::Int(5), 5));
    Ok((values.remove(1), written))
}

#[test]
fn each_type_has_its_value() {
    let berlin = || zone("Europe/Berlin");
    let guid = Uuid::from_u128(0x6F96_19FF_8B86_D011_B42D_00C0_4FC9_64FF);
    let time = Time::new(102_150, 1);
    let cases = [
        ("tinyint", ColumnData::U8(Some(255)), Value::Int(255)),
        ("bit", ColumnData::Bit(Some(false)), Value::Boolean(false)),
        ("real", ColumnData::F32(Some(0.1)), Value::Float32(0.1)),
        ("float", ColumnData::F64(Some(f64::MIN)), Value::Float64(f64::MIN)),
        ("decimal", decimal(i128::MAX, 38), Value::Decimal(i128::MAX)),
        ("money", decimal(-5, 4), Value::Decimal(-5)),
        ("varbinary", binary(&[1, 2]), Value::Bytes(Cow::Borrowed(&[1, 2]))),
        ("nvarchar", text("\"x\""), text_value("\"x\"")),
        ("xml", xml("<a/>"), text_value("<a/>")),
        ("uniqueidentifier", ColumnData::Guid(Some(guid)), text_value("6F9619FF-8B86-D011-B42D-00C04FC964FF")),
        ("time", ColumnData::Time(Some(time)), Value::Int(10_215_000)),
        ("smalldatetime", ColumnData::SmallDateTime(Some(SmallDateTime::new(46_237, 615))), Value::Int(1_785_917_700_000)),
        ("nvarchar", ColumnData::String(None), Value::Null),
        ("sql_variant", text("\"x\""), text_value("\"x\"")),
        ("sql_variant", decimal(150, 2), text_value("1.50")),
        ("sql_variant", ColumnData::Bit(Some(true)), text_value("true")),
        ("sql_variant", ColumnData::String(None), Value::Null),
    ];
    for (base_type, value, expected) in cases {
        assert_eq!(written(value, base_type, berlin()).expect("fits").0, expected, "{base_type}");
    }
    let as_string = Settings { decimal_as_string: true, ..utc() };
    assert_eq!(written(decimal(-5, 4), "money", as_string).expect("fits").0, text_value("-0.0005"));
}

#[test]
fn replacements_are_counted_as_in_json() {
    let replaced = |value: ColumnData<'static>, base_type| written(value, base_type, utc()).expect("fits").1.replaced;
    assert_eq!(replaced(text("\u{fffd}"), "nvarchar"), 1);
    assert_eq!(replaced(text("\u{fffd}"), "sql_variant"), 1);
    assert_eq!(replaced(ColumnData::F64(Some(f64::NAN)), "float"), 1);
    assert_eq!(replaced(text("x"), "nvarchar"), 0);
}

#[test]
fn a_row_of_another_shape_is_refused_here_too() {
    let writer = RowWriter::new(&[column("int", 0, 0), column("bit", 0, 0)], 0, utc());
    let refused = |row: Vec<ColumnData<'static>>| writer.fields(row).expect_err("refused");
    assert_eq!(refused(vec![ColumnData::I32(Some(1))]), Error::Length { expected: 2 });
    assert_eq!(refused(vec![ColumnData::I32(Some(1)), ColumnData::Bit(None), ColumnData::Bit(None)]), Error::Length { expected: 2 });
    assert_eq!(refused(vec![ColumnData::I32(None), ColumnData::Bit(None)]), Error::NoSequence { column: "int".into() });
    assert!(matches!(refused(vec![ColumnData::I32(Some(1)), text("x")]), Error::Altered { .. }));
}

/// The JSON of a value, by the definition of its schema and not by the code that is tested.
fn json_of(value: &Value<'_>, scale: u8) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Boolean(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float32(value) => serde_json::to_string(value).expect("finite"),
        Value::Float64(value) => serde_json::to_string(value).expect("finite"),
        Value::Decimal(value) => json(decimal(*value, scale), "decimal", &utc()),
        Value::Bytes(bytes) => format!("\"{}\"", BASE64.encode(bytes)),
        Value::Text(text) => serde_json::to_string(&text.plain()).expect("text"),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn values_say_what_the_json_says(value in any_value()) {
        const TYPES: &[&str] = &[
            "tinyint", "smallint", "int", "bigint", "bit", "real", "float", "decimal", "nvarchar", "uniqueidentifier", "binary", "date",
            "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset",
        ];
        let scale = if let ColumnData::Numeric(Some(number)) = &value { number.scale() } else { 0 };
        let base_type = TYPES.iter().find(|base| check(&value, &column(base, 38, scale)).is_ok()).expect("of some type");
        let as_json = json(value.clone(), base_type, &zone("Europe/Berlin"));
        let (as_value, _) = written(value, base_type, zone("Europe/Berlin")).expect("fits");
        prop_assert_eq!(json_of(&as_value, scale), as_json);
    }
}
