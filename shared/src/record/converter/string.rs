//! Connect's `StringConverter`: a text as it is, and of everything else what Java's `toString` says.
//!
//! For keys this is the text itself. For values it is a notation that nothing reads back; a document that asks for it is
//! warned, and gets what Connect would write. Two things differ: bytes have their length where Java's have an address in
//! memory, and days before October 1582 are of today's calendar where Java goes over to the Julian one.

use std::fmt::{LowerExp, Write as _};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::SignedDuration;
use jiff::civil::DateTime;

use super::{Converter, EncodeError, Encoder};
use crate::failure::Failure;
use crate::record::schema::{Logical, Schema, Type};
use crate::record::value::{Value, decimal_text};

/// Writes text.
#[derive(Debug, Clone, Copy, Default)]
pub struct StringConverter;

#[async_trait]
impl Converter for StringConverter {
    async fn encoder(&self, _topic: &str, schema: Option<&Arc<Schema>>, _by: Option<Duration>) -> Result<Arc<dyn Encoder>, Failure> {
        Ok(Arc::new(StringEncoder { schema: schema.cloned() }))
    }
}

#[derive(Debug)]
struct StringEncoder {
    schema: Option<Arc<Schema>>,
}

impl Encoder for StringEncoder {
    fn encode(&self, value: &Value<'_>) -> Result<Bytes, EncodeError> {
        let mut out = String::new();
        match (&self.schema, value) {
            (None, Value::Json(json)) => write_json(&read(json)?, &mut out),
            (Some(schema), value) => write(schema, value, &mut out)?,
            (None, _) => return Err(EncodeError::unlike("JSON without a schema")),
        }
        Ok(Bytes::from(out))
    }

    fn encode_text(&self, text: &Bytes) -> Result<Bytes, EncodeError> {
        Ok(text.clone())
    }
}

fn read(json: &[u8]) -> Result<serde_json::Value, EncodeError> {
    serde_json::from_slice(json).map_err(|error| EncodeError { detail: format!("the row is no JSON: {error}") })
}

/// A value as the `toString` of its Java class writes it. A struct leaves out what is null.
fn write(schema: &Schema, value: &Value<'_>, out: &mut String) -> Result<(), EncodeError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Text(text) => out.push_str(&text.plain()),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Float32(number) => float(f64::from(*number), &scientific(number), out),
        Value::Float64(number) => float(*number, &scientific(number), out),
        Value::Decimal(unscaled) => match schema.as_logical() {
            Some(Logical::Decimal(scale)) => out.push_str(&decimal_text(*unscaled, scale)),
            _ => return Err(EncodeError::unlike("its schema")),
        },
        Value::Int(number) => match schema.as_logical() {
            Some(Logical::Date) => date(number.checked_mul(86_400_000), out)?,
            Some(Logical::Time | Logical::Timestamp) => date(Some(*number), out)?,
            _ => write!(out, "{number}").map_err(|_| EncodeError::unlike("text"))?,
        },
        // Java names the buffer and not what is in it.
        Value::Bytes(bytes) => {
            let length = bytes.len();
            write!(out, "java.nio.HeapByteBuffer[pos=0 lim={length} cap={length}]").map_err(|_| EncodeError::unlike("text"))?;
        }
        Value::Struct(values) => {
            let Type::Struct(fields) = &schema.kind else { return Err(EncodeError::unlike("its schema")) };
            out.push_str("Struct{");
            let mut comma = "";
            for (field, value) in fields.iter().zip(values).filter(|(_, value)| !matches!(value, Value::Null)) {
                out.push_str(comma);
                out.push_str(&field.name);
                out.push('=');
                write(&field.schema, value, out)?;
                comma = ",";
            }
            out.push('}');
        }
        Value::Json(_) => return Err(EncodeError::unlike("its schema")),
    }
    Ok(())
}

/// A moment as `java.util.Date` writes it in UTC.
fn date(milliseconds: Option<i64>, out: &mut String) -> Result<(), EncodeError> {
    let moment = milliseconds.and_then(|milliseconds| {
        // Not by way of a timestamp of this library, which ends a day before the year 9999 does.
        let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        epoch.checked_add(SignedDuration::from_millis(milliseconds)).ok()
    });
    let moment = moment.ok_or_else(|| EncodeError { detail: "a moment is beyond the year 9999".to_owned() })?;
    write!(out, "{} UTC {}", moment.strftime("%a %b %d %H:%M:%S"), moment.year()).map_err(|_| EncodeError::unlike("text"))
}

/// The shortest digits that read back as `number`, but at least two: then the two that are nearest to it.
fn scientific(number: &impl LowerExp) -> String {
    let shortest = format!("{number:e}");
    if shortest.contains('.') { shortest } else { format!("{number:.1e}") }
}

/// A number as Java writes it: plain between 10^-3 and 10^7, else with an exponent, and always with a point.
fn float(number: f64, scientific: &str, out: &mut String) {
    let size = number.abs();
    let (digits, power) = scientific.split_once('e').unwrap_or((scientific, "0"));
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        out.push_str(&plain(digits, power.parse().unwrap_or(0)));
        return;
    }
    out.push_str(digits);
    out.push('E');
    out.push_str(power);
}

/// `digits` times ten to the power of `power`, which is small, with at least one digit on both sides of the point.
fn plain(digits: &str, power: i32) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let digits: String = digits.chars().filter(|digit| *digit != '.').collect();
    let digits = digits.trim_end_matches('0');
    let whole = usize::try_from(power + 1).unwrap_or(0);
    if power < 0 {
        let zeros = "0".repeat(usize::try_from(-power - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    }
    let padded = format!("{digits:0<whole$}");
    let (whole, fraction) = padded.split_at(whole);
    format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

/// JSON without a schema as Java's maps and lists write it.
fn write_json(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::String(text) => out.push_str(text),
        serde_json::Value::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push_str(name);
                out.push('=');
                write_json(value, out);
            }
            out.push('}');
        }
        serde_json::Value::Array(items) => {
            out.push('[');
            for (at, value) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_json(value, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        let written = |number: f64| {
            let mut out = String::new();
            float(number, &scientific(&number), &mut out);
            out
        };
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-100.0, "-100.0"),
            (0.001, "0.001"),
            (9.99e-4, "9.99E-4"),
            (1234.5, "1234.5"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (f64::MAX, "1.7976931348623157E308"),
            (5e-324, "4.9E-324"),
        ] {
            assert_eq!(written(number), text);
        }
    }
}
