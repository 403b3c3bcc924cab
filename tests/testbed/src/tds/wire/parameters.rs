//! The parameters of a remote procedure call.

use super::super::collation::Collation;
use super::super::reader::{Read, Reader, Unreadable};
use super::super::types::{Length, Type};
use super::super::value::Value;

/// A parameter as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// With its `@`; empty when it goes by its place.
    pub name: String,
    pub ty: Type,
    pub value: Value,
}

/// Reads the next parameter. Text of code pages is read by the collation that stands with it, or as the server's own.
pub fn parameter(reader: &mut Reader<'_>) -> Read<Parameter> {
    let name = reader.short_text()?;
    let status = reader.u8()?;
    if status & 0x08 != 0 {
        return Err(Unreadable("a parameter is encrypted".to_owned()));
    }
    let (ty, value) = typed(reader)?;
    Ok(Parameter { name, ty, value })
}

fn typed(reader: &mut Reader<'_>) -> Read<(Type, Value)> {
    let token = reader.u8()?;
    Ok(match token {
        0x1f => (Type::Int, Value::Null),
        0x30 | 0x34 | 0x38 | 0x7f => {
            let length =
                [1, 2, 4, 8][usize::from(token != 0x30) + usize::from(token == 0x38 || token == 0x7f) + usize::from(token == 0x7f)];
            (integer_type(length)?, integer(reader.bytes(length)?))
        }
        0x32 => (Type::Bit, Value::Bit(reader.u8()? != 0)),
        0x26 => {
            let size = reader.u8()?;
            let bytes = short(reader)?;
            (integer_type(size.into())?, bytes.map_or(Value::Null, integer))
        }
        0x68 => {
            reader.u8()?;
            (Type::Bit, short(reader)?.map_or(Value::Null, |bytes| Value::Bit(bytes.iter().any(|byte| *byte != 0))))
        }
        0x3b | 0x3e => {
            let bytes = reader.bytes(if token == 0x3b { 4 } else { 8 })?;
            (float_type(bytes.len()), float(bytes)?)
        }
        0x6d => {
            let size = reader.u8()?;
            let value = short(reader)?.map_or(Ok(Value::Null), float)?;
            (float_type(size.into()), value)
        }
        0x6a | 0x6c => {
            reader.u8()?;
            let (precision, scale) = (reader.u8()?, reader.u8()?);
            let ty = if token == 0x6a { Type::Decimal(precision, scale) } else { Type::Numeric(precision, scale) };
            (ty, short(reader)?.map_or(Ok(Value::Null), decimal)?)
        }
        0x6e => {
            let size = reader.u8()?;
            let ty = if size == 4 { Type::SmallMoney } else { Type::Money };
            (ty, short(reader)?.map_or(Ok(Value::Null), money)?)
        }
        0x6f => {
            let size = reader.u8()?;
            let ty = if size == 4 { Type::SmallDateTime } else { Type::DateTime };
            (ty, short(reader)?.map_or(Ok(Value::Null), old_moment)?)
        }
        0x28 => (Type::Date, short(reader)?.map_or(Ok(Value::Null), |bytes| Ok(Value::Date(day(bytes)?)))?),
        0x29..=0x2b => {
            let scale = reader.u8()?;
            if scale > 7 {
                return Err(Unreadable(format!("a scale of {scale}")));
            }
            let ty = [Type::Time(scale), Type::DateTime2(scale), Type::DateTimeOffset(scale)][usize::from(token - 0x29)];
            (ty, short(reader)?.map_or(Ok(Value::Null), |bytes| moment(bytes, token, scale))?)
        }
        0x24 => {
            reader.u8()?;
            (Type::UniqueIdentifier, short(reader)?.map_or(Ok(Value::Null), guid)?)
        }
        0xa5 | 0xad | 0xa7 | 0xaf | 0xe7 | 0xef => sized(reader, token)?,
        0x22 | 0x23 | 0x63 => long(reader, token)?,
        0xf1 => {
            if reader.u8()? != 0 {
                return Err(Unreadable("an xml with a schema".to_owned()));
            }
            (Type::Xml, chunks(reader)?.map_or(Value::Null, |bytes| wide(&bytes)))
        }
        other => return Err(Unreadable(format!("a parameter of type 0x{other:02X}"))),
    })
}

/// A value with one byte for its length; none is `NULL`.
fn short<'a>(reader: &mut Reader<'a>) -> Read<Option<&'a [u8]>> {
    let length = reader.u8()?;
    if length == 0 { Ok(None) } else { reader.bytes(length.into()).map(Some) }
}

fn integer_type(size: usize) -> Read<Type> {
    Ok(match size {
        1 => Type::TinyInt,
        2 => Type::SmallInt,
        4 => Type::Int,
        8 => Type::BigInt,
        other => return Err(Unreadable(format!("an integer of {other} bytes"))),
    })
}

fn integer(bytes: &[u8]) -> Value {
    // tinyint has no sign; the others are extended by theirs.
    let negative = bytes.len() > 1 && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut all = if negative { [0xff; 8] } else { [0; 8] };
    let length = bytes.len().min(8);
    all[..length].copy_from_slice(&bytes[..length]);
    Value::Integer(i64::from_le_bytes(all))
}

fn float_type(size: usize) -> Type {
    if size == 4 { Type::Real } else { Type::Float }
}

fn float(bytes: &[u8]) -> Read<Value> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Ok(Value::Real(f32::from_le_bytes(bytes)));
    }
    <[u8; 8]>::try_from(bytes).map(|bytes| Value::Float(f64::from_le_bytes(bytes))).map_err(|_| Unreadable("a float".to_owned()))
}

fn decimal(bytes: &[u8]) -> Read<Value> {
    let wrong = || Unreadable("a decimal".to_owned());
    let (sign, magnitude) = bytes.split_first().ok_or_else(wrong)?;
    let mut all = [0; 16];
    all.get_mut(..magnitude.len()).ok_or_else(wrong)?.copy_from_slice(magnitude);
    let digits = i128::try_from(u128::from_le_bytes(all)).map_err(|_| wrong())?;
    Ok(Value::Decimal(if *sign == 0 { -digits } else { digits }))
}

fn money(bytes: &[u8]) -> Read<Value> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    match bytes.len() {
        4 => Ok(Value::Decimal(number(bytes).cast_signed().into())),
        8 => {
            let high = i64::from(number(&bytes[..4]).cast_signed());
            Ok(Value::Decimal(i128::from(high << 32 | i64::from(number(&bytes[4..])))))
        }
        other => Err(Unreadable(format!("money of {other} bytes"))),
    }
}

fn old_moment(bytes: &[u8]) -> Read<Value> {
    let mut reader = Reader::new(bytes);
    match bytes.len() {
        4 => Ok(Value::SmallDateTime(reader.u16()?, reader.u16()?)),
        8 => Ok(Value::DateTime(reader.u32()?.cast_signed(), reader.u32()?)),
        other => Err(Unreadable(format!("a datetime of {other} bytes"))),
    }
}

fn day(bytes: &[u8]) -> Read<i32> {
    match bytes {
        [low, middle, high] => Ok(i32::from_le_bytes([*low, *middle, *high, 0])),
        other => Err(Unreadable(format!("a date of {} bytes", other.len()))),
    }
}

fn moment(bytes: &[u8], token: u8, scale: u8) -> Read<Value> {
    let wrong = || Unreadable("a moment".to_owned());
    let time = usize::from(super::super::types::time_length(scale));
    let (ticks, rest) = bytes.split_at_checked(time).ok_or_else(wrong)?;
    let ticks = ticks.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) * 10_u64.pow(u32::from(7 - scale));
    match (token, rest) {
        (0x29, []) => Ok(Value::Time(ticks)),
        (0x2a, date) => Ok(Value::DateTime2(day(date)?, ticks)),
        (0x2b, [low, middle, high, offset_low, offset_high]) => {
            Ok(Value::DateTimeOffset(day(&[*low, *middle, *high])?, ticks, i16::from_le_bytes([*offset_low, *offset_high])))
        }
        _ => Err(wrong()),
    }
}

fn guid(bytes: &[u8]) -> Read<Value> {
    let mut guid = <[u8; 16]>::try_from(bytes).map_err(|_| Unreadable("a uniqueidentifier".to_owned()))?;
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    Ok(Value::Guid(guid))
}

fn wide(bytes: &[u8]) -> Value {
    Value::Wide(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
}

/// Characters and bytes with two bytes for their length, or in chunks when they are `(max)`.
fn sized(reader: &mut Reader<'_>, token: u8) -> Read<(Type, Value)> {
    let size = reader.u16()?;
    if !matches!(token, 0xa5 | 0xad) {
        reader.bytes(5)?;
    }
    let collation = Collation::default_of_server();
    let max = size == 0xffff;
    let length = |unit: u16| if max { Length::Max } else { Length::Limited((size / unit).max(1)) };
    let bytes = if max {
        chunks(reader)?
    } else {
        match reader.u16()? {
            0xffff => None,
            length => Some(reader.bytes(length.into())?.to_vec()),
        }
    };
    let ty = match token {
        0xa5 => Type::VarBinary(length(1)),
        0xad => Type::Binary(size.max(1)),
        0xa7 => Type::VarChar(length(1), collation),
        0xaf => Type::Char(size.max(1), collation),
        0xe7 => Type::NVarChar(length(2), collation),
        _ => Type::NChar((size / 2).max(1), collation),
    };
    let value = bytes.map_or(Value::Null, |bytes| value_of(&bytes, token));
    Ok((ty, value))
}

fn value_of(bytes: &[u8], token: u8) -> Value {
    match token {
        0xa5 | 0xad | 0x22 => Value::binary(bytes),
        0xa7 | 0xaf | 0x23 => Value::chars(bytes),
        _ => wide(bytes),
    }
}

/// `text`, `ntext`, `image`, which old clients still send.
fn long(reader: &mut Reader<'_>, token: u8) -> Read<(Type, Value)> {
    reader.u32()?;
    if token != 0x22 {
        reader.bytes(5)?;
    }
    let collation = Collation::default_of_server();
    let ty = match token {
        0x22 => Type::VarBinary(Length::Max),
        0x23 => Type::VarChar(Length::Max, collation),
        _ => Type::NVarChar(Length::Max, collation),
    };
    let value = match reader.u32()? {
        u32::MAX => Value::Null,
        length => value_of(reader.bytes(length as usize)?, token),
    };
    Ok((ty, value))
}

fn chunks(reader: &mut Reader<'_>) -> Read<Option<Vec<u8>>> {
    if reader.u64()? == u64::MAX {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    loop {
        match reader.u32()? {
            0 => return Ok(Some(bytes)),
            length => bytes.extend_from_slice(reader.bytes(length as usize)?),
        }
    }
}
