//! Values as Avro's binary encoding has them: no names, no types, one value after the other in the order of the schema.
//!
//! ```text
//! int, long        zigzag, seven bits per byte, lowest first      record    its fields
//! bytes, string    a long for the length, and the bytes           union     a long for the branch, and its value
//! float, double    four and eight bytes, lowest first             boolean   one byte
//! ```

use crate::record::converter::EncodeError;
use crate::record::converter::framed::Writer;
use crate::record::schema::{Logical, Schema, Type};
use crate::record::value::{Value, decimal_bytes};

/// How values of a schema are written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// An int: a whole number of 32 bits.
    Int,
    /// A long: a whole number of 64 bits.
    Long,
    /// A float.
    Float,
    /// A double.
    Double,
    Boolean,
    /// Text.
    String,
    Bytes,
    /// The shortest bytes of an unscaled decimal.
    Decimal,
    /// The same of at most so many digits. The name is the field's.
    DecimalWithin {
        precision: u32,
        name: String,
    },
    /// A record's fields, in the order in which they are written.
    Record(Vec<Step>),
    /// A union of null and something else, by the places of the two.
    Nullable {
        null: i64,
        other: i64,
        plan: Box<Plan>,
    },
    /// One branch of a union that has no place for null, or something else that has none. The name is the field's.
    Required {
        branch: Option<i64>,
        name: String,
        plan: Box<Plan>,
    },
}

/// What is written for a field of a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// The value at this place of the struct.
    Value { place: usize, plan: Plan },
    /// These bytes, whatever the struct says.
    Constant(Vec<u8>),
    /// Nothing, for a null at this place. A value has no place in the record. The name is the field's.
    Absent { place: usize, name: String },
}

impl Plan {
    /// For values of `schema`, by its own description.
    pub(super) fn of(schema: &Schema) -> Self {
        let plan = match &schema.kind {
            Type::Int8 | Type::Int16 | Type::Int32 => Self::Int,
            Type::Int64 => Self::Long,
            Type::Float32 => Self::Float,
            Type::Float64 => Self::Double,
            Type::Boolean => Self::Boolean,
            Type::String => Self::String,
            Type::Bytes if matches!(schema.as_logical(), Some(Logical::Decimal(_))) => Self::Decimal,
            Type::Bytes => Self::Bytes,
            Type::Struct(fields) => {
                let steps = fields.iter().enumerate().map(|(place, field)| Step::Value { place, plan: Self::of(&field.schema) });
                Self::Record(steps.collect())
            }
        };
        if schema.optional { Self::Nullable { null: 0, other: 1, plan: Box::new(plan) } } else { plan }
    }
}

impl Writer for Plan {
    fn write(&self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match (self, value) {
            (Self::Nullable { null, .. }, Value::Null) => long(*null, out),
            (Self::Nullable { other, plan, .. }, value) => {
                long(*other, out);
                plan.write(value, out)?;
            }
            (Self::Required { name, .. }, Value::Null) => {
                let detail = format!("field {name} has no value here, and in the registry's schema it is required");
                return Err(EncodeError { detail });
            }
            (Self::Required { branch, plan, .. }, value) => {
                branch.iter().for_each(|branch| long(*branch, out));
                plan.write(value, out)?;
            }
            (Self::Record(steps), Value::Struct(values)) => return write_record(steps, values, out),
            (Self::String, Value::Text(text)) => bytes(text.plain().as_bytes(), out),
            (Self::Int, Value::Int(number)) if i32::try_from(*number).is_ok() => long(*number, out),
            (Self::Long, Value::Int(number)) => long(*number, out),
            (Self::Float, Value::Float32(number)) => out.extend_from_slice(&number.to_le_bytes()),
            (Self::Double, Value::Float64(number)) => out.extend_from_slice(&number.to_le_bytes()),
            (Self::Double, Value::Float32(number)) => out.extend_from_slice(&f64::from(*number).to_le_bytes()),
            // Of an int of at most 32 bits, which a double holds exactly.
            (Self::Double, Value::Int(number)) => out.extend_from_slice(&(*number as f64).to_le_bytes()),
            (Self::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
            (Self::Bytes, Value::Bytes(value)) => bytes(value, out),
            (Self::Decimal, Value::Decimal(unscaled)) => bytes(&decimal_bytes(*unscaled), out),
            (Self::DecimalWithin { precision, name }, Value::Decimal(unscaled)) => {
                if 10_u128.checked_pow(*precision).is_some_and(|limit| unscaled.unsigned_abs() >= limit) {
                    let detail = format!("field {name} has more digits than the registry's schema takes, whose precision is {precision}");
                    return Err(EncodeError { detail });
                }
                bytes(&decimal_bytes(*unscaled), out);
            }
            _ => return Err(EncodeError::unlike("its schema")),
        }
        Ok(())
    }
}

fn write_record(steps: &[Step], values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    for step in steps {
        match step {
            Step::Value { place, plan } => {
                let value = values.get(*place).ok_or_else(|| EncodeError::unlike("its schema"))?;
                plan.write(value, out)?;
            }
            Step::Constant(bytes) => out.extend_from_slice(bytes),
            Step::Absent { place, .. } if matches!(values.get(*place), Some(Value::Null)) => {}
            Step::Absent { name, .. } => return Err(EncodeError::lacking(name)),
        }
    }
    Ok(())
}

/// Writes a number in zigzag: 0, -1, 1, -2 are 0, 1, 2, 3, so that small ones are short whatever their sign.
pub(super) fn long(number: i64, out: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Writes bytes with their length in front.
pub(super) fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    long(i64::try_from(bytes.len()).unwrap_or(i64::MAX), out);
    out.extend_from_slice(bytes);
}
