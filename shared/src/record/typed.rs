//! Mode `typed`: fields of declared types, and what happens to what does not fit them.
//!
//! An instance sends every value as text. A type says how that text is read, and reading is exact: a number out of range,
//! a digit too many or a date that is none is a difference and never the nearest value. An empty text, which is how an
//! instance writes "no value", is null for every type but `string`.

mod differences;

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::{Date, DateTime, Time};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::row::{Fields, text_of};
use super::schema::{Field, Logical, Schema, Type};
use super::value::Value;
pub(super) use differences::Differences;

/// The most digits of a decimal, and so its largest scale.
pub const MAX_SCALE: u8 = 38;

/// A type that a field may be declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// Text as it is.
    String,
    /// A whole number of this many bits: 8, 16, 32 or 64.
    Int(u8),
    /// A floating-point number of 32 bits.
    Float32,
    /// A floating-point number of 64 bits.
    Float64,
    /// `true` or `false`, also written `1` or `0`.
    Boolean,
    /// Bytes, sent in base64.
    Bytes,
    /// A date and a time of day in UTC.
    Timestamp,
    /// A date.
    Date,
    /// A time of day, alone or on 1970-01-01.
    Time,
    /// A decimal number with this many digits after the point.
    Decimal(u8),
}

/// What happens to a field without a declared type, and to a value that its type does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Evolution {
    /// Both fail the table.
    #[default]
    Fail,
    /// The field is appended to the schema as an optional string; the value fails the table, since its type cannot
    /// change.
    Backward,
    /// The field is left out and the value becomes null, and both are logged.
    Permissive,
}

impl FieldType {
    /// The type of this name, as documents write it.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "int8" => Self::Int(8),
            "int16" => Self::Int(16),
            "int32" => Self::Int(32),
            "int64" => Self::Int(64),
            "float32" => Self::Float32,
            "float64" => Self::Float64,
            "boolean" => Self::Boolean,
            "bytes" => Self::Bytes,
            "timestamp" => Self::Timestamp,
            "date" => Self::Date,
            "time" => Self::Time,
            other => {
                let scale = other.strip_prefix("decimal(")?.strip_suffix(')')?.parse().ok()?;
                return (scale <= MAX_SCALE).then_some(Self::Decimal(scale));
            }
        })
    }

    /// The schema of an optional field of this type.
    pub fn schema(self) -> Schema {
        match self {
            Self::String => Schema::of(Type::String),
            Self::Int(8) => Schema::of(Type::Int8),
            Self::Int(16) => Schema::of(Type::Int16),
            Self::Int(32) => Schema::of(Type::Int32),
            Self::Int(_) => Schema::of(Type::Int64),
            Self::Float32 => Schema::of(Type::Float32),
            Self::Float64 => Schema::of(Type::Float64),
            Self::Boolean => Schema::of(Type::Boolean),
            Self::Bytes => Schema::of(Type::Bytes),
            Self::Timestamp => Schema::logical(Logical::Timestamp),
            Self::Date => Schema::logical(Logical::Date),
            Self::Time => Schema::logical(Logical::Time),
            Self::Decimal(scale) => Schema::logical(Logical::Decimal(scale)),
        }
        .optional()
    }

    /// The value that was sent as `json`; `None` if it does not fit.
    fn read<'a>(self, json: &'a str) -> Option<Value<'a>> {
        let json = raw_value(json);
        let sent = text_of(json);
        let Value::Text(text) = &sent else { return Some(Value::Null) };
        if self == Self::String {
            return Some(sent);
        }
        let text = text.plain();
        if text.is_empty() { Some(Value::Null) } else { self.read_text(&text) }
    }

    fn read_text(self, text: &str) -> Option<Value<'static>> {
        match self {
            Self::String => Some(Value::from(text.to_owned())),
            Self::Int(bits) => {
                let number: i64 = text.parse().ok()?;
                let limit = 1_i64.checked_shl(u32::from(bits) - 1).filter(|limit| *limit > 0);
                limit.is_none_or(|limit| (-limit..limit).contains(&number)).then_some(Value::Int(number))
            }
            Self::Float32 => finite(text)?.parse().ok().filter(|number: &f32| number.is_finite()).map(Value::Float32),
            Self::Float64 => finite(text)?.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float64),
            Self::Boolean => match text {
                "true" | "1" => Some(Value::Boolean(true)),
                "false" | "0" => Some(Value::Boolean(false)),
                _ => None,
            },
            Self::Bytes => STANDARD.decode(text).ok().map(|bytes| Value::Bytes(Cow::Owned(bytes))),
            Self::Timestamp => timestamp(text).map(Value::Int),
            Self::Date => date(text).map(Value::Int),
            Self::Time => time(text).map(Value::Int),
            Self::Decimal(scale) => decimal(text, scale).map(Value::Decimal),
        }
    }
}

/// As documents write it: what [`FieldType::parse`] reads.
impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Int(bits) => write!(f, "int{bits}"),
            Self::Float32 => f.write_str("float32"),
            Self::Float64 => f.write_str("float64"),
            Self::Boolean => f.write_str("boolean"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Date => f.write_str("date"),
            Self::Time => f.write_str("time"),
            Self::Decimal(scale) => write!(f, "decimal({scale})"),
        }
    }
}

/// A number as JSON or a form would write it: Rust also reads `inf` and `nan`, which are none here.
fn finite(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)).then_some(text)
}

/// Epoch milliseconds; finer parts of a second are cut off, as a timestamp of Connect has none.
fn timestamp(text: &str) -> Option<i64> {
    let (_, time) = text.split_at_checked("2026-01-01".len())?;
    // An offset would be read past, and the moment would be another one.
    if time.is_empty() || time.contains(['+', '-', '[', 'Z', 'z']) {
        return None;
    }
    let moment: DateTime = text.parse().ok()?;
    Some(days(moment.date()) * 86_400_000 + milliseconds(moment.time()))
}

/// Days since 1970-01-01.
fn date(text: &str) -> Option<i64> {
    let day: Date = text.parse().ok().filter(|_| text.len() == "2026-01-01".len())?;
    Some(days(day))
}

fn days(day: Date) -> i64 {
    i64::from((day - Date::constant(1970, 1, 1)).get_days())
}

fn milliseconds(time: Time) -> i64 {
    let seconds = (i64::from(time.hour()) * 60 + i64::from(time.minute())) * 60 + i64::from(time.second());
    seconds * 1000 + i64::from(time.millisecond())
}

/// Milliseconds since midnight. An instance sends a time of day as one of 1970-01-01.
fn time(text: &str) -> Option<i64> {
    let text = text.strip_prefix("1970-01-01 ").unwrap_or(text);
    let is_clock = |(at, byte): (usize, u8)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() };
    if text.len() < "08:00:00".len() || !text.bytes().take(8).enumerate().all(is_clock) {
        return None;
    }
    Some(milliseconds(text.parse().ok()?))
}

/// The digits of a decimal with its point moved by `scale`. More digits after the point are accepted where they are 0.
fn decimal(text: &str, scale: u8) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let scale = usize::from(scale);
    let all = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all(whole) || !all(fraction) {
        return None;
    }
    let (kept, spare) = fraction.split_at(fraction.len().min(scale));
    if spare.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let mut unscaled: i128 = 0;
    for byte in whole.bytes().chain(kept.bytes()).chain(std::iter::repeat_n(b'0', scale - kept.len())) {
        unscaled = unscaled.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
    }
    (unscaled < 10_i128.pow(u32::from(MAX_SCALE))).then_some(sign * unscaled)
}

/// The raw value of a field: of a pair of raw and display value, and of a reference with its link, the member `value`.
fn raw_value(json: &str) -> &str {
    #[derive(Deserialize)]
    struct Pair<'a> {
        #[serde(borrow)]
        value: &'a RawValue,
    }
    if !json.starts_with('{') {
        return json;
    }
    serde_json::from_str::<Pair<'_>>(json).map_or(json, |pair| pair.value.get())
}

/// The declared fields of a table.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// Names and types, in the order of the schema.
    pub fields: Vec<(String, FieldType)>,
    /// What happens to what does not fit.
    pub evolution: Evolution,
    /// A field that comes with each row because the source asks for it, not the user: no difference if it has no type.
    pub uninvited: Option<String>,
}

impl Mapping {
    /// The declared fields as those of a schema.
    pub(super) fn schema_fields(&self) -> Vec<Field> {
        self.fields.iter().map(|(name, kind)| Field::new(name, kind.schema())).collect()
    }
}

/// A row as it is read by a mapping. Fields that were appended after the declared ones are texts.
pub(super) struct Row<'r, 'a> {
    pub(super) mapping: &'r Mapping,
    pub(super) values: &'r mut Vec<Value<'a>>,
    pub(super) key: &'a str,
    pub(super) differences: &'r mut Differences,
}

impl<'a> Fields<'a> for Row<'_, 'a> {
    fn known(&mut self, place: usize, json: &'a str) {
        let Some((name, kind)) = self.mapping.fields.get(place) else {
            self.values[place] = text_of(json);
            return;
        };
        match kind.read(json) {
            Some(value) => self.values[place] = value,
            None => self.differences.unfit(place, name, self.key, json),
        }
    }

    fn unknown(&mut self, name: &str, json: &'a str) {
        if self.mapping.uninvited.as_deref() != Some(name) {
            self.differences.unmapped(name, self.key, json);
        }
    }
}

#[cfg(test)]
mod tests;
