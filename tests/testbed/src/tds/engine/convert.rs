//! `CAST` and `CONVERT`, and every conversion that happens without being asked for.
//!
//! A pair of types that is not here is an error that says so: a conversion that is made up would prove whatever the
//! client expects.

use super::super::types::{Length, Type};
use super::super::value::Value;
use super::error::SqlError;
use super::text::{moment, parse_guid, text};
use super::{numbers, temporal};

type Converted = Result<Value, SqlError>;

/// A value of one type as a value of another.
pub fn convert(value: &Value, from: &Type, to: &Type, style: i64) -> Converted {
    if let Value::Variant(inner) = value {
        if *to == Type::Variant {
            return Ok(value.clone());
        }
        return convert(&inner.1, &inner.0, to, style);
    }
    if value.is_null() {
        return Ok(Value::Null);
    }
    match to {
        Type::Bit | Type::TinyInt | Type::SmallInt | Type::Int | Type::BigInt => to_integer(value, from, to),
        Type::Decimal(..) | Type::Numeric(..) | Type::Money | Type::SmallMoney => to_decimal(value, from, to),
        Type::Real | Type::Float => to_float(value, from, to),
        Type::Date | Type::Time(_) | Type::DateTime | Type::SmallDateTime | Type::DateTime2(_) | Type::DateTimeOffset(_) => {
            to_moment(value, from, to)
        }
        Type::Char(..) | Type::VarChar(..) | Type::Text(_) => to_chars(value, from, to, style),
        Type::NChar(..) | Type::NVarChar(..) | Type::NText(_) | Type::Xml => to_wide(value, from, to, style),
        Type::Binary(_) | Type::VarBinary(_) | Type::Image | Type::RowVersion => to_binary(value, from, to, style),
        Type::HierarchyId | Type::Geometry | Type::Geography => match value {
            Value::Binary(_) => Ok(value.clone()),
            _ => Err(SqlError::not_allowed(from, to)),
        },
        Type::UniqueIdentifier => to_guid(value, from, to),
        Type::Variant => to_variant(value, from),
    }
}

/// The characters of a value of characters.
pub fn characters(value: &Value, ty: &Type) -> Option<String> {
    match value {
        Value::Wide(units) => Some(String::from_utf16_lossy(units)),
        Value::Chars(bytes) => Some(ty.collation()?.decode(bytes)),
        _ => None,
    }
}

fn to_integer(value: &Value, from: &Type, to: &Type) -> Converted {
    let number = match value {
        Value::Bit(bit) => i128::from(*bit),
        Value::Integer(number) => i128::from(*number),
        // Money is rounded, decimals are cut off: both are as documented.
        Value::Decimal(digits) if matches!(from, Type::Money | Type::SmallMoney) => {
            numbers::rescale(*digits, 4, 0).ok_or_else(|| SqlError::overflow(to))?
        }
        Value::Decimal(digits) => digits / numbers::power(from.precision_scale().1).unwrap_or(1),
        Value::Real(number) => float_to_integer(f64::from(*number), to)?,
        Value::Float(number) => float_to_integer(*number, to)?,
        Value::Binary(bytes) => {
            let tail = &bytes[bytes.len().saturating_sub(8)..];
            let number = tail.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            i128::from(match to {
                Type::BigInt => number.cast_signed(),
                Type::Int => i64::from((number as u32).cast_signed()),
                Type::SmallInt => i64::from((number as u16).cast_signed()),
                _ => i64::from(number as u8),
            })
        }
        Value::Chars(_) | Value::Wide(_) => {
            let text = characters(value, from).unwrap_or_default();
            let text = text.trim();
            if *to == Type::Bit && (text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")) {
                return Ok(Value::Bit(text.eq_ignore_ascii_case("true")));
            }
            let failed = || {
                SqlError::new(
                    245,
                    1,
                    format!("Conversion failed when converting the {} value '{text}' to data type {}.", from.name(), to.name()),
                )
            };
            // An empty text is zero.
            if text.is_empty() { 0 } else { text.parse().map_err(|_| failed())? }
        }
        _ => return Err(SqlError::not_allowed(from, to)),
    };
    let (low, high) = match to {
        Type::Bit => return Ok(Value::Bit(number != 0)),
        Type::TinyInt => (0, 255),
        Type::SmallInt => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Type::Int => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    let whole = i64::try_from(number).ok().filter(|_| (low..=high).contains(&number));
    whole.map(Value::Integer).ok_or_else(|| SqlError::overflow(to))
}

#[allow(clippy::cast_possible_truncation, reason = "cut off as CAST does; what is out of range saturates and is refused after")]
fn float_to_integer(number: f64, to: &Type) -> Result<i128, SqlError> {
    if number.abs() < 1e19 { Ok(number as i128) } else { Err(SqlError::overflow(to)) }
}

fn to_decimal(value: &Value, from: &Type, to: &Type) -> Converted {
    let (precision, scale) = to.precision_scale();
    let overflow = || SqlError::overflow(to);
    let digits = match value {
        Value::Bit(_) | Value::Integer(_) => numbers::rescale(value.integer().unwrap_or(0), 0, scale).ok_or_else(overflow)?,
        Value::Decimal(digits) => numbers::rescale(*digits, from.precision_scale().1, scale).ok_or_else(overflow)?,
        Value::Real(number) => float_digits(f64::from(*number), scale).ok_or_else(overflow)?,
        Value::Float(number) => float_digits(*number, scale).ok_or_else(overflow)?,
        Value::Chars(_) | Value::Wide(_) => {
            let text = characters(value, from).unwrap_or_default();
            numbers::parse(&text, scale).ok_or_else(|| SqlError::conversion(from, to))?
        }
        _ => return Err(SqlError::not_allowed(from, to)),
    };
    let (low, high) = match to {
        Type::Money => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Type::SmallMoney => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => return if numbers::fits(digits, precision) { Ok(Value::Decimal(digits)) } else { Err(overflow()) },
    };
    if (low..=high).contains(&digits) { Ok(Value::Decimal(digits)) } else { Err(overflow()) }
}

fn float_digits(number: f64, scale: u8) -> Option<i128> {
    // 17 significant digits are all that a float has; the rest is zeros.
    let text = format!("{number:.*}", usize::from(scale));
    numbers::parse(&text, scale)
}

#[allow(clippy::cast_precision_loss, reason = "CAST to float rounds")]
fn to_float(value: &Value, from: &Type, to: &Type) -> Converted {
    let number = match value {
        Value::Real(number) => f64::from(*number),
        Value::Float(number) => *number,
        Value::Bit(_) | Value::Integer(_) => value.integer().unwrap_or(0) as f64,
        Value::Decimal(digits) => numbers::text(*digits, from.precision_scale().1).parse().map_err(|_| SqlError::conversion(from, to))?,
        Value::Chars(_) | Value::Wide(_) => {
            characters(value, from).unwrap_or_default().trim().parse().map_err(|_| SqlError::conversion(from, to))?
        }
        _ => return Err(SqlError::not_allowed(from, to)),
    };
    if *to == Type::Float {
        return Ok(Value::Float(number));
    }
    #[allow(clippy::cast_possible_truncation, reason = "CAST to real rounds")]
    let narrow = number as f32;
    if narrow.is_finite() { Ok(Value::Real(narrow)) } else { Err(SqlError::overflow(to)) }
}

fn to_moment(value: &Value, from: &Type, to: &Type) -> Converted {
    let failed = || SqlError::new(241, 1, "Conversion failed when converting date and/or time from character string.");
    let (day, ticks, offset) = match value {
        Value::Chars(_) | Value::Wide(_) => {
            let moment = temporal::parse(&characters(value, from).unwrap_or_default()).ok_or_else(failed)?;
            (moment.day, moment.ticks, moment.offset)
        }
        _ => {
            let (day, ticks, _, offset) = moment(value, from).ok_or_else(|| SqlError::not_allowed(from, to))?;
            (day, ticks, offset)
        }
    };
    let out_of_range = || {
        SqlError::new(
            242,
            3,
            format!("The conversion of a {} data type to a {} data type resulted in an out-of-range value.", from.name(), to.name()),
        )
    };
    let carried = |ticks: u64| if ticks >= temporal::DAY { (day + 1, ticks - temporal::DAY) } else { (day, ticks) };
    Ok(match to {
        Type::Date => Value::Date(day),
        // Within a day there is none to carry into.
        Type::Time(scale) => Value::Time(temporal::round(ticks, *scale) % temporal::DAY),
        Type::DateTime2(scale) => {
            let (day, ticks) = carried(temporal::round(ticks, *scale));
            Value::DateTime2(day, ticks)
        }
        Type::DateTimeOffset(scale) => {
            let offset = offset.unwrap_or(0);
            let (day, ticks) = carried(temporal::round(ticks, *scale));
            let (day, ticks) = temporal::shift(day, ticks, -offset);
            Value::DateTimeOffset(day, ticks, offset)
        }
        Type::DateTime => {
            let thirds = temporal::to_thirds(ticks);
            let (day, thirds) = if thirds >= 25_920_000 { (day + 1, thirds - 25_920_000) } else { (day, thirds) };
            if !(639_905..=temporal::LAST_DAY).contains(&day) {
                return Err(out_of_range());
            }
            Value::DateTime(day - temporal::TO_1900, u32::try_from(thirds).unwrap_or(0))
        }
        _ => {
            let minutes = (ticks + 300_000_000) / 600_000_000;
            let (day, minutes) = if minutes >= 1440 { (day + 1, minutes - 1440) } else { (day, minutes) };
            let days = u16::try_from(day - temporal::TO_1900).map_err(|_| out_of_range())?;
            Value::SmallDateTime(days, u16::try_from(minutes).unwrap_or(0))
        }
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn to_chars(value: &Value, from: &Type, to: &Type, style: i64) -> Converted {
    let collation = to.collation().ok_or_else(|| SqlError::not_allowed(from, to))?;
    let mut bytes = match value {
        Value::Chars(bytes) if from.collation() == Some(collation) => bytes.to_vec(),
        Value::Chars(_) | Value::Wide(_) => collation.encode(&characters(value, from).unwrap_or_default()),
        Value::Binary(bytes) if !from.is_user_defined() => match style {
            0 => bytes.to_vec(),
            1 => format!("0x{}", hex(bytes)).into_bytes(),
            2 => hex(bytes).into_bytes(),
            _ => return Err(SqlError::refused(format!("CONVERT of {from} to characters with style {style}"))),
        },
        Value::Binary(_) => return Err(SqlError::not_allowed(from, to)),
        _ => collation.encode(&text(value, from, style)?),
    };
    let limit = match to {
        Type::Char(length, _) => Some(usize::from(*length)),
        Type::VarChar(Length::Limited(length), _) => Some(usize::from(*length)),
        _ => None,
    };
    if let Some(limit) = limit {
        if bytes.len() > limit && from.is_number() {
            return Err(SqlError::overflow(to));
        }
        bytes.truncate(limit);
        if matches!(to, Type::Char(..)) {
            bytes.resize(limit, b' ');
        }
    }
    Ok(Value::Chars(bytes.into()))
}

fn to_wide(value: &Value, from: &Type, to: &Type, style: i64) -> Converted {
    let mut units: Vec<u16> = match value {
        Value::Wide(units) => units.to_vec(),
        Value::Chars(_) => characters(value, from).unwrap_or_default().encode_utf16().collect(),
        Value::Binary(bytes) if !from.is_user_defined() => match style {
            0 => bytes.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])).collect(),
            1 => format!("0x{}", hex(bytes)).encode_utf16().collect(),
            2 => hex(bytes).encode_utf16().collect(),
            _ => return Err(SqlError::refused(format!("CONVERT of {from} to characters with style {style}"))),
        },
        Value::Binary(_) => return Err(SqlError::not_allowed(from, to)),
        _ => text(value, from, style)?.encode_utf16().collect(),
    };
    if *to == Type::Xml {
        return xml(units, from);
    }
    let limit = match to {
        Type::NChar(length, _) | Type::NVarChar(Length::Limited(length), _) => Some(usize::from(*length)),
        _ => None,
    };
    if let Some(limit) = limit {
        if units.len() > limit && from.is_number() {
            return Err(SqlError::overflow(to));
        }
        units.truncate(limit);
        if matches!(to, Type::NChar(..)) {
            units.resize(limit, u16::from(b' '));
        }
    }
    Ok(Value::Wide(units.into()))
}

/// What is kept of an xml is its content: the declaration is gone. It is not parsed here beyond that.
fn xml(units: Vec<u16>, from: &Type) -> Converted {
    if !from.is_characters() && *from != Type::Xml {
        return Err(SqlError::not_allowed(from, &Type::Xml));
    }
    let text = String::from_utf16_lossy(&units);
    let content = match text.trim_start().strip_prefix("<?xml ") {
        Some(rest) => rest.split_once("?>").map_or("", |(_, content)| content).trim_start(),
        None => return Ok(Value::Wide(units.into())),
    };
    Ok(Value::wide(content))
}

fn to_binary(value: &Value, from: &Type, to: &Type, style: i64) -> Converted {
    let mut bytes = match value {
        Value::Binary(bytes) => bytes.to_vec(),
        Value::Chars(_) | Value::Wide(_) if style != 0 => {
            let text = characters(value, from).unwrap_or_default();
            let digits = if style == 1 { text.strip_prefix("0x").unwrap_or(&text) } else { &text };
            let pairs = digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
            pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| SqlError::conversion(from, to))?
        }
        Value::Chars(bytes) => bytes.to_vec(),
        Value::Wide(units) => units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
        Value::Bit(bit) => vec![u8::from(*bit)],
        Value::Integer(number) => number.to_be_bytes()[8 - usize::try_from(from.max_length()).unwrap_or(8)..].to_vec(),
        Value::Guid(guid) => guid_bytes(guid).to_vec(),
        _ => return Err(SqlError::refused(format!("conversion of {from} to {to}"))),
    };
    match to {
        Type::Binary(length) => {
            let length = usize::from(*length);
            // Numbers are padded in front, everything else behind.
            if from.is_integer() && bytes.len() < length {
                let mut padded = vec![0; length - bytes.len()];
                padded.append(&mut bytes);
                bytes = padded;
            }
            bytes.resize(length, 0);
        }
        Type::VarBinary(Length::Limited(length)) => {
            // A number that is cut loses its high bytes.
            if from.is_integer() && bytes.len() > usize::from(*length) {
                bytes.drain(..bytes.len() - usize::from(*length));
            }
            bytes.truncate(usize::from(*length));
        }
        Type::RowVersion => bytes.resize(8, 0),
        _ => {}
    }
    Ok(Value::Binary(bytes.into()))
}

/// The bytes of a `uniqueidentifier` as they are stored: the first three groups the other way round.
pub fn guid_bytes(guid: &[u8; 16]) -> [u8; 16] {
    let mut bytes = *guid;
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

fn to_guid(value: &Value, from: &Type, to: &Type) -> Converted {
    match value {
        Value::Guid(_) => Ok(value.clone()),
        Value::Chars(_) | Value::Wide(_) => {
            let text = characters(value, from).unwrap_or_default();
            let failed = SqlError::new(8169, 2, "Conversion failed when converting from a character string to uniqueidentifier.");
            parse_guid(&text).map(Value::Guid).ok_or(failed)
        }
        Value::Binary(bytes) => {
            let mut guid = [0; 16];
            let length = bytes.len().min(16);
            guid[..length].copy_from_slice(&bytes[..length]);
            Ok(Value::Guid(guid_bytes(&guid)))
        }
        _ => Err(SqlError::not_allowed(from, to)),
    }
}

fn to_variant(value: &Value, from: &Type) -> Converted {
    let too_large = matches!(
        from,
        Type::VarChar(Length::Max, _)
            | Type::NVarChar(Length::Max, _)
            | Type::VarBinary(Length::Max)
            | Type::Text(_)
            | Type::NText(_)
            | Type::Image
            | Type::Xml
    );
    if too_large || from.is_user_defined() || *from == Type::RowVersion {
        return Err(SqlError::new(206, 2, format!("Operand type clash: {} is incompatible with sql_variant", from.name())));
    }
    Ok(Value::Variant(Box::new((*from, value.clone()))))
}
