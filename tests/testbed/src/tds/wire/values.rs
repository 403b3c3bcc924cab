//! What an answer holds.

use bytes::{BufMut as _, BytesMut};

use super::super::types::{Length, Type, decimal_length, time_length};
use super::super::value::Value;
use super::{put_short_text, put_text};

/// How long a chunk of a value without a limit is. Even, so that no character is cut in two.
const CHUNK: usize = 8_000;
/// The length that stands for `(max)`.
const UNLIMITED: u16 = 0xffff;

/// The metadata of a type. A column that cannot be `NULL` has the shorter form, as with a real server.
pub fn put_type(out: &mut BytesMut, ty: &Type, nullable: bool, database: &str) {
    let fixed = |out: &mut BytesMut, plain: u8, variable: u8, length: u8| {
        if nullable {
            out.put_u8(variable);
            out.put_u8(length);
        } else {
            out.put_u8(plain);
        }
    };
    match ty {
        Type::Bit => fixed(out, 0x32, 0x68, 1),
        Type::TinyInt => fixed(out, 0x30, 0x26, 1),
        Type::SmallInt => fixed(out, 0x34, 0x26, 2),
        Type::Int => fixed(out, 0x38, 0x26, 4),
        Type::BigInt => fixed(out, 0x7f, 0x26, 8),
        Type::Real => fixed(out, 0x3b, 0x6d, 4),
        Type::Float => fixed(out, 0x3e, 0x6d, 8),
        Type::Money => fixed(out, 0x3c, 0x6e, 8),
        Type::SmallMoney => fixed(out, 0x7a, 0x6e, 4),
        Type::DateTime => fixed(out, 0x3d, 0x6f, 8),
        Type::SmallDateTime => fixed(out, 0x3a, 0x6f, 4),
        Type::Decimal(precision, scale) | Type::Numeric(precision, scale) => {
            out.put_u8(if ty.name() == "decimal" { 0x6a } else { 0x6c });
            out.put_slice(&[decimal_length(*precision), *precision, *scale]);
        }
        Type::Date => out.put_u8(0x28),
        Type::Time(scale) => out.put_slice(&[0x29, *scale]),
        Type::DateTime2(scale) => out.put_slice(&[0x2a, *scale]),
        Type::DateTimeOffset(scale) => out.put_slice(&[0x2b, *scale]),
        Type::Char(length, _) => out.put_slice(&sized(0xaf, *length)),
        Type::VarChar(length, _) => out.put_slice(&sized(0xa7, bytes_of(*length, 1))),
        Type::NChar(length, _) => out.put_slice(&sized(0xef, length * 2)),
        Type::NVarChar(length, _) => out.put_slice(&sized(0xe7, bytes_of(*length, 2))),
        Type::Binary(length) => out.put_slice(&sized(0xad, *length)),
        Type::VarBinary(length) => out.put_slice(&sized(0xa5, bytes_of(*length, 1))),
        Type::RowVersion => out.put_slice(&sized(0xad, 8)),
        Type::Text(_) => {
            out.put_u8(0x23);
            out.put_u32_le(0x7fff_ffff);
        }
        Type::NText(_) => {
            out.put_u8(0x63);
            out.put_u32_le(0x7fff_fffe);
        }
        Type::Image => {
            out.put_u8(0x22);
            out.put_u32_le(0x7fff_ffff);
        }
        Type::UniqueIdentifier => out.put_slice(&[0x24, 16]),
        // Without a schema.
        Type::Xml => out.put_slice(&[0xf1, 0]),
        Type::Variant => {
            out.put_u8(0x62);
            out.put_u32_le(8009);
        }
        Type::HierarchyId | Type::Geometry | Type::Geography => {
            out.put_u8(0xf0);
            out.put_u16_le(if *ty == Type::HierarchyId { 892 } else { UNLIMITED });
            put_short_text(out, database);
            put_short_text(out, "sys");
            put_short_text(out, ty.name());
            let class = match ty {
                Type::HierarchyId => "SqlHierarchyId",
                Type::Geometry => "SqlGeometry",
                _ => "SqlGeography",
            };
            put_text(
                out,
                &format!(
                    "Microsoft.SqlServer.Types.{class}, Microsoft.SqlServer.Types, Version=11.0.0.0, Culture=neutral, PublicKeyToken=89845dcd8080cc91"
                ),
            );
        }
    }
    if let Some(collation) = ty.collation() {
        out.put_slice(&collation.bytes());
    }
}

fn sized(token: u8, length: u16) -> [u8; 3] {
    let length = length.to_le_bytes();
    [token, length[0], length[1]]
}

fn bytes_of(length: Length, unit: u16) -> u16 {
    match length {
        Length::Limited(length) => length * unit,
        Length::Max => UNLIMITED,
    }
}

/// The bytes of a value, as its type wants them. In a row without a bitmap `NULL` is written too.
pub fn put_value(out: &mut BytesMut, value: &Value, ty: &Type, nullable: bool) {
    match ty {
        Type::Char(..)
        | Type::VarChar(Length::Limited(_), _)
        | Type::NChar(..)
        | Type::NVarChar(Length::Limited(_), _)
        | Type::Binary(_)
        | Type::VarBinary(Length::Limited(_))
        | Type::RowVersion => match content(value, ty) {
            None => out.put_u16_le(0xffff),
            Some(bytes) => {
                out.put_u16_le(u16::try_from(bytes.len()).unwrap_or(0xfffe));
                out.put_slice(&bytes);
            }
        },
        Type::VarChar(Length::Max, _)
        | Type::NVarChar(Length::Max, _)
        | Type::VarBinary(Length::Max)
        | Type::Xml
        | Type::HierarchyId
        | Type::Geometry
        | Type::Geography => put_chunks(out, content(value, ty).as_deref()),
        Type::Text(_) | Type::NText(_) | Type::Image => match content(value, ty) {
            None => out.put_u8(0),
            Some(bytes) => {
                // A pointer and a timestamp, which nobody uses any more; clients skip them.
                out.put_u8(16);
                out.put_slice(&[0x11; 16]);
                out.put_slice(&[0; 8]);
                out.put_u32_le(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
                out.put_slice(&bytes);
            }
        },
        Type::Variant => put_variant(out, value),
        _ => {
            let bytes = content(value, ty);
            let fixed = !nullable && fixed_when_not_null(ty);
            if !fixed {
                out.put_u8(bytes.as_ref().map_or(0, |bytes| u8::try_from(bytes.len()).unwrap_or(0)));
            }
            out.put_slice(&bytes.unwrap_or_default());
        }
    }
}

fn fixed_when_not_null(ty: &Type) -> bool {
    ty.is_integer() || matches!(ty, Type::Real | Type::Float | Type::Money | Type::SmallMoney | Type::DateTime | Type::SmallDateTime)
}

/// A value whose length need not be known when it begins.
fn put_chunks(out: &mut BytesMut, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        out.put_u64_le(u64::MAX);
        return;
    };
    out.put_u64_le(bytes.len() as u64);
    for chunk in bytes.chunks(CHUNK) {
        out.put_u32_le(u32::try_from(chunk.len()).unwrap_or(0));
        out.put_slice(chunk);
    }
    out.put_u32_le(0);
}

/// Total length, base type, its properties, then the value without a length of its own.
fn put_variant(out: &mut BytesMut, value: &Value) {
    let Value::Variant(inner) = value else {
        out.put_u32_le(0);
        return;
    };
    let (ty, value) = (&inner.0, &inner.1);
    let mut properties = BytesMut::new();
    let token = match ty {
        Type::Bit => 0x32,
        Type::TinyInt => 0x30,
        Type::SmallInt => 0x34,
        Type::Int => 0x38,
        Type::BigInt => 0x7f,
        Type::Real => 0x3b,
        Type::Float => 0x3e,
        Type::Money => 0x3c,
        Type::SmallMoney => 0x7a,
        Type::DateTime => 0x3d,
        Type::SmallDateTime => 0x3a,
        Type::UniqueIdentifier => 0x24,
        Type::Date => 0x28,
        Type::Time(scale) | Type::DateTime2(scale) | Type::DateTimeOffset(scale) => {
            properties.put_u8(*scale);
            match ty {
                Type::Time(_) => 0x29,
                Type::DateTime2(_) => 0x2a,
                _ => 0x2b,
            }
        }
        Type::Decimal(precision, scale) | Type::Numeric(precision, scale) => {
            properties.put_slice(&[*precision, *scale]);
            if ty.name() == "decimal" { 0x6a } else { 0x6c }
        }
        Type::Binary(length) => {
            properties.put_u16_le(*length);
            0xad
        }
        Type::VarBinary(length) => {
            properties.put_u16_le(bytes_of(*length, 1));
            0xa5
        }
        characters => {
            if let Some(collation) = characters.collation() {
                properties.put_slice(&collation.bytes());
            }
            let (token, length) = match characters {
                Type::Char(length, _) => (0xaf, *length),
                Type::VarChar(length, _) => (0xa7, bytes_of(*length, 1)),
                Type::NChar(length, _) => (0xef, length * 2),
                Type::NVarChar(length, _) => (0xe7, bytes_of(*length, 2)),
                // No other type gets into a sql_variant.
                _ => (0xa7, 0),
            };
            properties.put_u16_le(length);
            token
        }
    };
    let bytes = content(value, ty).unwrap_or_default();
    out.put_u32_le(u32::try_from(2 + properties.len() + bytes.len()).unwrap_or(0));
    out.put_u8(token);
    out.put_u8(u8::try_from(properties.len()).unwrap_or(0));
    out.put_slice(&properties);
    out.put_slice(&bytes);
}

/// The bytes of a value alone; `None` for `NULL`.
fn content(value: &Value, ty: &Type) -> Option<Vec<u8>> {
    Some(match value {
        Value::Null => return None,
        Value::Bit(bit) => vec![u8::from(*bit)],
        Value::Integer(number) => number.to_le_bytes()[..usize::try_from(ty.max_length()).unwrap_or(8)].to_vec(),
        Value::Decimal(digits) => match ty {
            // The high half comes first, each half the other way round.
            Type::Money => {
                let bytes = i64::try_from(*digits).unwrap_or(0).to_le_bytes();
                [&bytes[4..], &bytes[..4]].concat()
            }
            Type::SmallMoney => i32::try_from(*digits).unwrap_or(0).to_le_bytes().to_vec(),
            _ => {
                let length = usize::from(decimal_length(ty.precision_scale().0)) - 1;
                let mut bytes = vec![u8::from(*digits >= 0)];
                bytes.extend_from_slice(&digits.unsigned_abs().to_le_bytes()[..length]);
                bytes
            }
        },
        Value::Real(number) => number.to_le_bytes().to_vec(),
        Value::Float(number) => number.to_le_bytes().to_vec(),
        Value::Date(day) => day_bytes(*day).to_vec(),
        Value::Time(ticks) => time_bytes(*ticks, ty),
        Value::DateTime2(day, ticks) => [&time_bytes(*ticks, ty)[..], &day_bytes(*day)].concat(),
        Value::DateTimeOffset(day, ticks, offset) => [&time_bytes(*ticks, ty)[..], &day_bytes(*day), &offset.to_le_bytes()].concat(),
        Value::DateTime(days, thirds) => [days.to_le_bytes(), thirds.to_le_bytes()].concat(),
        Value::SmallDateTime(days, minutes) => [days.to_le_bytes(), minutes.to_le_bytes()].concat(),
        Value::Chars(bytes) | Value::Binary(bytes) => bytes.to_vec(),
        Value::Wide(units) => units.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
        Value::Guid(guid) => {
            let mut bytes = *guid;
            bytes[..4].reverse();
            bytes[4..6].reverse();
            bytes[6..8].reverse();
            bytes.to_vec()
        }
        Value::Variant(_) => return None,
    })
}

fn day_bytes(day: i32) -> [u8; 3] {
    let bytes = day.to_le_bytes();
    [bytes[0], bytes[1], bytes[2]]
}

fn time_bytes(ticks: u64, ty: &Type) -> Vec<u8> {
    let scale = ty.precision_scale().1;
    let units = ticks / 10_u64.pow(u32::from(7 - scale.min(7)));
    units.to_le_bytes()[..usize::from(time_length(scale))].to_vec()
}
