use std::borrow::Cow;

use proptest::prelude::*;
use tiberius::time::{Date, DateTime, DateTime2, DateTimeOffset, SmallDateTime, Time};
use tiberius::xml::XmlData;

use super::*;
use crate::source::sqlserver::catalog::ColumnInfo;

mod fields;
mod times;

fn zone(name: &str) -> Settings {
    Settings { zone: TimeZone::get(name).expect("a zone"), decimal_as_string: false }
}

fn utc() -> Settings {
    Settings { zone: TimeZone::UTC, decimal_as_string: false }
}

/// A column of a type as the catalog describes it.
fn column(base_type: &str, precision: u8, scale: u8) -> Column {
    let info = ColumnInfo {
        ordinal: 1,
        name: base_type.to_owned(),
        declared_type: Some(base_type.to_owned()),
        base_type: Some(base_type.to_owned()),
        precision,
        scale,
        max_length: 8,
        is_clr: matches!(base_type, "hierarchyid" | "geometry" | "geography"),
        ..ColumnInfo::default()
    };
    Column::of(&info).expect("a type that is read")
}

fn json(value: ColumnData<'_>, base_type: &str, settings: &Settings) -> String {
    let scale = if let ColumnData::Numeric(Some(number)) = &value { number.scale() } else { 0 };
    let mut out = Vec::new();
    write(&value, &column(base_type, 38, scale), settings, &mut out).expect("a value of the type");
    String::from_utf8(out).expect("UTF-8")
}

fn decimal(value: i128, scale: u8) -> ColumnData<'static> {
    ColumnData::Numeric(Some(Numeric::new_with_scale(value, scale)))
}

fn text(text: &str) -> ColumnData<'_> {
    ColumnData::String(Some(Cow::Borrowed(text)))
}

fn binary(bytes: &[u8]) -> ColumnData<'_> {
    ColumnData::Binary(Some(Cow::Borrowed(bytes)))
}

fn xml(text: &str) -> ColumnData<'static> {
    ColumnData::Xml(Some(Cow::Owned(XmlData::new(text))))
}

#[test]
fn every_type_at_its_extremes() {
    let largest = 10_i128.pow(38) - 1;
    let guid = Uuid::from_u128(0x6F96_19FF_8B86_D011_B42D_00C0_4FC9_64FF);
    let cases: Vec<(&str, ColumnData<'_>, String)> = vec![
        ("tinyint", ColumnData::U8(Some(0)), "0".into()),
        ("tinyint", ColumnData::U8(Some(255)), "255".into()),
        ("smallint", ColumnData::I16(Some(i16::MIN)), "-32768".into()),
        ("int", ColumnData::I32(Some(i32::MIN)), "-2147483648".into()),
        ("bigint", ColumnData::I64(Some(i64::MIN)), "-9223372036854775808".into()),
        ("bigint", ColumnData::I64(Some(i64::MAX)), "9223372036854775807".into()),
        ("bit", ColumnData::Bit(Some(true)), "true".into()),
        ("bit", ColumnData::Bit(Some(false)), "false".into()),
        ("decimal", decimal(largest, 0), "9".repeat(38)),
        ("decimal", decimal(-largest, 38), format!("-0.{}", "9".repeat(38))),
        ("decimal", decimal(1, 38), format!("0.{}1", "0".repeat(37))),
        ("numeric", decimal(108_000, 3), "108.000".into()),
        ("numeric", decimal(0, 2), "0.00".into()),
        ("numeric", decimal(-5, 2), "-0.05".into()),
        ("money", decimal(9_223_372_036_854_775_807, 4), "922337203685477.5807".into()),
        ("money", decimal(-9_223_372_036_854_775_808, 4), "-922337203685477.5808".into()),
        ("money", decimal(9_007_199_254_740_993, 4), "900719925474.0993".into()),
        ("smallmoney", decimal(-2_147_483_648, 4), "-214748.3648".into()),
        ("real", ColumnData::F32(Some(0.1)), "0.1".into()),
        ("real", ColumnData::F32(Some(f32::MAX)), "3.4028235e+38".into()),
        ("real", ColumnData::F32(Some(16_777_216.0)), "16777216.0".into()),
        ("float", ColumnData::F64(Some(f64::MAX)), "1.7976931348623157e+308".into()),
        ("float", ColumnData::F64(Some(f64::from_bits(1))), "5e-324".into()),
        ("float", ColumnData::F64(Some(-0.0)), "-0.0".into()),
        ("float", ColumnData::F64(Some(0.1 + 0.2)), "0.30000000000000004".into()),
        ("uniqueidentifier", ColumnData::Guid(Some(guid)), "\"6F9619FF-8B86-D011-B42D-00C04FC964FF\"".into()),
        ("nvarchar", text(""), "\"\"".into()),
        ("nvarchar", text("\0\u{1f}\"\\/\u{7f}\u{2028}\u{10ffff}"), "\"\\u0000\\u001f\\\"\\\\/\u{7f}\u{2028}\u{10ffff}\"".into()),
        ("char", text("ab   "), "\"ab   \"".into()),
        ("xml", text("<a b=\"1\"/>"), "\"<a b=\\\"1\\\"/>\"".into()),
        ("varbinary", binary(&[]), "\"\"".into()),
        ("varbinary", binary(&[1, 2, 3]), "\"AQID\"".into()),
        ("image", binary(&[0xff]), "\"/w==\"".into()),
        ("timestamp", binary(&[0, 0, 0, 0, 0, 0, 7, 0xd2]), "\"AAAAAAAAB9I=\"".into()),
        ("hierarchyid", binary(&[0x5a, 0xc0]), "\"WsA=\"".into()),
        ("geography", binary(&[0xe6, 0x10, 0, 0]), "\"5hAAAA==\"".into()),
        ("sql_variant", ColumnData::I32(Some(42)), "42".into()),
        ("sql_variant", decimal(15, 1), "1.5".into()),
        ("sql_variant", xml("x"), "\"x\"".into()),
    ];
    for (base_type, value, expected) in cases {
        assert_eq!(json(value, base_type, &utc()), expected, "{base_type}");
    }
}

#[test]
fn decimals_are_texts_if_the_document_says_so_and_integers_stay_numbers() {
    let settings = Settings { decimal_as_string: true, ..utc() };
    assert_eq!(json(decimal(-10_001, 2), "decimal", &settings), "\"-100.01\"");
    assert_eq!(json(decimal(9_223_372_036_854_775_807, 4), "money", &settings), "\"922337203685477.5807\"");
    assert_eq!(json(decimal(1, 0), "sql_variant", &settings), "\"1\"");
    assert_eq!(json(ColumnData::I64(Some(i64::MAX)), "bigint", &settings), "9223372036854775807");
}

#[test]
fn a_replacement_is_counted_and_a_number_that_is_none_is_null() {
    let written = |value: ColumnData<'_>, base_type: &str| {
        let mut out = Vec::new();
        let replaced = write(&value, &column(base_type, 0, 0), &utc(), &mut out).expect("written");
        (String::from_utf8(out).expect("UTF-8"), replaced)
    };
    assert_eq!(written(text("A\u{fffd}B"), "nvarchar"), ("\"A\u{fffd}B\"".to_owned(), true));
    assert_eq!(written(text("A\u{fffc}B"), "nvarchar"), ("\"A\u{fffc}B\"".to_owned(), false));
    assert_eq!(written(ColumnData::F64(Some(f64::NAN)), "float"), ("null".to_owned(), true));
    assert_eq!(written(ColumnData::F32(Some(f32::INFINITY)), "real"), ("null".to_owned(), true));
}

#[test]
fn a_value_of_another_type_than_the_catalogs_is_not_passed_on() {
    let refused = |value: ColumnData<'_>, base_type: &str, scale: u8| {
        let mut out = Vec::new();
        write(&value, &column(base_type, 38, scale), &utc(), &mut out).expect_err("altered")
    };
    refused(ColumnData::I64(Some(1)), "int", 0);
    refused(text("1"), "int", 0);
    refused(ColumnData::F64(Some(1.0)), "money", 4);
    refused(ColumnData::SmallDateTime(Some(SmallDateTime::new(0, 0))), "datetime", 0);
    let error = refused(decimal(100, 3), "decimal", 2);
    assert_eq!(
        error.to_string(),
        "column decimal holds a decimal, and the catalog says Decimal { precision: 38, scale: 2 }: the table was altered in between"
    );
}

/// A row of three columns, the second a sql_variant.
fn writer() -> RowWriter {
    let columns = [column("bigint", 0, 0), column("sql_variant", 0, 0), column("nvarchar", 0, 0)];
    RowWriter::new(&columns, 0, utc())
}

fn row(text_part: Option<&'static str>, money: Option<i128>, rest: ColumnData<'static>) -> Vec<ColumnData<'static>> {
    let money = money.map(|value| Numeric::new_with_scale(value, 4));
    vec![
        ColumnData::I64(Some(7)),
        ColumnData::String(text_part.map(Cow::Borrowed)),
        ColumnData::Numeric(money),
        rest,
        ColumnData::String(None),
    ]
}

#[test]
fn a_row_is_an_object_of_all_columns_in_their_order() {
    let written = |row: Vec<ColumnData<'static>>| {
        let mut out = b"before".to_vec();
        let written = writer().write(&row, &mut out).expect("a row");
        assert_eq!(written.sequence.number(), 7);
        String::from_utf8(out).expect("UTF-8")
    };
    let whole = |value: &str| format!(r#"before{{"bigint":7,"sql_variant":{value},"nvarchar":null}}"#);
    assert_eq!(written(row(Some(""), None, ColumnData::String(None))), whole("\"\""));
    assert_eq!(written(row(None, Some(-1), ColumnData::String(None))), whole("-0.0001"));
    assert_eq!(written(row(None, None, ColumnData::Bit(Some(true)))), whole("true"));
    assert_eq!(written(row(None, None, ColumnData::String(None))), whole("null"));
}

#[test]
fn a_row_of_another_length_or_without_a_sequence_is_refused() {
    let refused = |row: Vec<ColumnData<'static>>| writer().write(&row, &mut Vec::new()).expect_err("refused");
    let good = row(None, None, ColumnData::String(None));
    for shorter in 0..good.len() {
        assert_eq!(refused(good[..shorter].to_vec()), Error::Length { expected: 5 });
    }
    let longer = [good.clone(), vec![ColumnData::Bit(None)]].concat();
    assert_eq!(refused(longer), Error::Length { expected: 5 });
    let mut without = good;
    without[0] = ColumnData::I64(None);
    assert_eq!(refused(without), Error::NoSequence { column: "bigint".into() });
}

/// Any value that the driver's types can hold, also such as no server sends.
fn any_value() -> impl Strategy<Value = ColumnData<'static>> {
    let time = (any::<u64>(), any::<u8>()).prop_map(|(units, scale)| Time::new(units, scale));
    let date = (0_u32..1 << 24).prop_map(Date::new);
    let both = (date.clone(), time.clone()).prop_map(|(date, time)| DateTime2::new(date, time));
    prop_oneof![
        any::<Option<u8>>().prop_map(ColumnData::U8),
        any::<Option<i16>>().prop_map(ColumnData::I16),
        any::<Option<i32>>().prop_map(ColumnData::I32),
        any::<Option<i64>>().prop_map(ColumnData::I64),
        any::<Option<u32>>().prop_map(|bits| ColumnData::F32(bits.map(f32::from_bits))),
        any::<Option<u64>>().prop_map(|bits| ColumnData::F64(bits.map(f64::from_bits))),
        any::<Option<bool>>().prop_map(ColumnData::Bit),
        any::<Option<String>>().prop_map(|text| ColumnData::String(text.map(Cow::Owned))),
        any::<String>().prop_map(|text| ColumnData::Xml(Some(Cow::Owned(XmlData::new(text))))),
        any::<Option<u128>>().prop_map(|bits| ColumnData::Guid(bits.map(Uuid::from_u128))),
        any::<Option<Vec<u8>>>().prop_map(|bytes| ColumnData::Binary(bytes.map(Cow::Owned))),
        (any::<i128>(), 0_u8..=38).prop_map(|(value, scale)| decimal(value, scale)),
        (any::<i32>(), any::<u32>()).prop_map(|(days, ticks)| ColumnData::DateTime(Some(DateTime::new(days, ticks)))),
        (any::<u16>(), any::<u16>()).prop_map(|(days, minutes)| ColumnData::SmallDateTime(Some(SmallDateTime::new(days, minutes)))),
        time.prop_map(|time| ColumnData::Time(Some(time))),
        date.prop_map(|date| ColumnData::Date(Some(date))),
        both.clone().prop_map(|time| ColumnData::DateTime2(Some(time))),
        (both, any::<i16>()).prop_map(|(time, offset)| ColumnData::DateTimeOffset(Some(DateTimeOffset::new(time, offset)))),
    ]
}

proptest! {
    #[test]
    fn no_value_panics_and_each_is_json(value in any_value(), place in 0_usize..4, decimal_as_string in any::<bool>()) {
        let name = ["UTC", "Europe/Berlin", "Pacific/Apia", "America/Sao_Paulo"][place];
        let settings = Settings { decimal_as_string, ..zone(name) };
        let mut out = Vec::new();
        write(&value, &column("sql_variant", 0, 0), &settings, &mut out).expect("a sql_variant may hold anything");
        let read: Result<Box<serde_json::value::RawValue>, _> = serde_json::from_slice(&out);
        prop_assert!(read.is_ok(), "{value:?} became {}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn every_type_takes_its_own_values_and_refuses_the_others(value in any_value()) {
        const TYPES: &[&str] = &[
            "tinyint", "smallint", "int", "bigint", "bit", "real", "float", "decimal", "nvarchar", "uniqueidentifier", "binary", "date",
            "time", "datetime", "smalldatetime", "datetime2", "datetimeoffset",
        ];
        let scale = if let ColumnData::Numeric(Some(number)) = &value { number.scale() } else { 0 };
        let takers = TYPES.iter().filter(|base| write(&value, &column(base, 38, scale), &utc(), &mut Vec::new()).is_ok()).count();
        prop_assert_eq!(takers, if is_null(&value) { TYPES.len() } else { 1 });
    }

    /// Against text: the digits with a point put in.
    #[test]
    fn a_decimal_is_its_digits_with_a_point(value in any::<i128>(), scale in 0_u8..=38) {
        let written = json(decimal(value, scale), "decimal", &utc());
        let digits = format!("{:0>width$}", value.unsigned_abs(), width = usize::from(scale) + 1);
        let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
        let sign = if value < 0 { "-" } else { "" };
        let expected = if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") };
        prop_assert_eq!(written, expected);
    }

    #[test]
    fn floats_and_bytes_and_text_are_read_back(float in any::<f64>(), bytes in any::<Vec<u8>>(), string in any::<String>()) {
        if float.is_finite() {
            let read: f64 = json(ColumnData::F64(Some(float)), "float", &utc()).parse().expect("a number");
            prop_assert_eq!(read.to_bits(), float.to_bits());
        }
        let written = json(binary(&bytes), "varbinary", &utc());
        prop_assert_eq!(BASE64.decode(written.trim_matches('"')).expect("Base64"), bytes);
        let read: String = serde_json::from_str(&json(text(&string), "nvarchar", &utc())).expect("a string");
        prop_assert_eq!(read, string);
    }
}
