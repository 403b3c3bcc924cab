//! Order and equality of values, and the common type of two operands.

use std::cmp::Ordering;

use super::super::types::{Length, Type};
use super::super::value::Value;
use super::convert::{characters, guid_bytes};
use super::text::moment;

/// Compares two values of one type; `None` if either is `NULL`.
pub fn compare(left: &Value, right: &Value, ty: &Type) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Null, _) | (_, Value::Null) => return None,
        (Value::Real(left), Value::Real(right)) => left.partial_cmp(right)?,
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right)?,
        (Value::Chars(_) | Value::Wide(_), Value::Chars(_) | Value::Wide(_)) => {
            let collation = ty.collation()?;
            collation.compare(&characters(left, ty)?, &characters(right, ty)?)
        }
        (Value::Binary(left), Value::Binary(right)) => trimmed(left).cmp(trimmed(right)),
        (Value::Guid(left), Value::Guid(right)) => guid_order(left).cmp(&guid_order(right)),
        // An offset does not count: the moment does.
        (Value::DateTimeOffset(left, left_ticks, _), Value::DateTimeOffset(right, right_ticks, _)) => {
            (left, left_ticks).cmp(&(right, right_ticks))
        }
        _ => match (left.integer(), right.integer()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => {
                let (left, right) = (moment(left, ty)?, moment(right, ty)?);
                (left.0, left.1).cmp(&(right.0, right.1))
            }
        },
    })
}

/// For sorting: `NULL` first.
pub fn order(left: &Value, right: &Value, ty: &Type) -> Ordering {
    match (left.is_null(), right.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => compare(left, right, ty).unwrap_or(Ordering::Equal),
    }
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    &bytes[..end]
}

/// SQL Server compares the last group of a `uniqueidentifier` first, and the first last.
fn guid_order(guid: &[u8; 16]) -> [u8; 16] {
    let bytes = guid_bytes(guid);
    let mut order = [0; 16];
    for (at, from) in [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3].into_iter().enumerate() {
        order[at] = bytes[from];
    }
    order
}

/// The type in which two operands meet.
pub fn common(left: Type, right: Type) -> Type {
    let (high, low) = if left.precedence() <= right.precedence() { (left, right) } else { (right, left) };
    if high.is_decimal() && (low.is_decimal() || low.is_integer() || matches!(low, Type::Money | Type::SmallMoney)) {
        let (whole, scale) = (high.digits().0.max(low.digits().0), high.digits().1.max(low.digits().1));
        // The whole part is kept when both do not fit.
        let scale = scale.min(38 - whole.min(38));
        return if matches!(high, Type::Numeric(..)) { Type::Numeric(whole + scale, scale) } else { Type::Decimal(whole + scale, scale) };
    }
    if high.is_characters() && low.is_characters() {
        return widest(high, low);
    }
    match (high, low) {
        (Type::VarBinary(left), Type::VarBinary(right)) => Type::VarBinary(longer(left, right)),
        (Type::VarBinary(left), Type::Binary(right)) => Type::VarBinary(longer(left, Length::Limited(right))),
        (Type::Binary(left), Type::Binary(right)) => Type::VarBinary(Length::Limited(left.max(right))),
        (Type::DateTime2(left), Type::DateTime2(right)) => Type::DateTime2(left.max(right)),
        (Type::DateTime2(scale), Type::Time(other)) => Type::DateTime2(scale.max(other)),
        (Type::DateTime2(scale), Type::DateTime) => Type::DateTime2(scale.max(3)),
        (Type::DateTimeOffset(left), Type::DateTimeOffset(right) | Type::DateTime2(right)) => Type::DateTimeOffset(left.max(right)),
        (Type::Time(left), Type::Time(right)) => Type::Time(left.max(right)),
        _ => high,
    }
}

fn longer(left: Length, right: Length) -> Length {
    match (left, right) {
        (Length::Limited(left), Length::Limited(right)) => Length::Limited(left.max(right)),
        _ => Length::Max,
    }
}

/// Bytes or UTF-16 units that a type of characters may hold.
pub fn length(ty: &Type) -> Length {
    match ty {
        Type::Char(length, _) | Type::NChar(length, _) => Length::Limited(*length),
        Type::VarChar(length, _) | Type::NVarChar(length, _) => *length,
        _ => Length::Max,
    }
}

fn widest(high: Type, low: Type) -> Type {
    let collation = high.collation().unwrap_or_else(super::super::collation::Collation::default_of_server);
    let length = longer(length(&high), length(&low));
    match high {
        Type::NVarChar(..) | Type::NChar(..) => {
            let length = match length {
                Length::Limited(units) if units > 4000 => Length::Max,
                other => other,
            };
            Type::NVarChar(length, collation)
        }
        Type::VarChar(..) | Type::Char(..) => Type::VarChar(length, collation),
        other => other,
    }
}
