//! What the fields of a record are: Kafka Connect's schemas, as far as a source needs them.
//!
//! A schema is a type, whether it may be null, and optionally a name with a version. A name with parameters over a plain
//! type is a logical type: a decimal is bytes named `org.apache.kafka.connect.data.Decimal` with a scale. Schemas are
//! built once and shared; what is made from one (its JSON text, an id in a registry) is cached by whoever makes it, under
//! the schema itself, which never changes.
//!
//! Left out of Connect's model: maps and arrays, which no source here has in a schema, and default values, which neither
//! an instance nor a table's columns promise to a reader.

use std::sync::Arc;

/// The types of Connect. Structs hold their fields in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Type {
    /// A signed integer of 8 bits.
    Int8,
    /// A signed integer of 16 bits.
    Int16,
    /// A signed integer of 32 bits.
    Int32,
    /// A signed integer of 64 bits.
    Int64,
    /// A binary floating-point number of 32 bits.
    Float32,
    /// A binary floating-point number of 64 bits.
    Float64,
    /// True or false.
    Boolean,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// Fields in order.
    Struct(Vec<Field>),
}

/// A field of a struct. Its index is its place in the struct.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Field {
    /// The field's name.
    pub name: String,
    /// What its values are.
    pub schema: Arc<Schema>,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Schema {
    /// The type.
    pub kind: Type,
    /// Whether null is a value.
    pub optional: bool,
    /// The name; of a logical type, Connect's.
    pub name: Option<String>,
    /// The version under this name.
    pub version: Option<i32>,
    /// Words for a reader.
    pub doc: Option<String>,
    /// Further properties by name, in order.
    pub parameters: Vec<(String, String)>,
}

/// The types that Connect builds on plain ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Logical {
    /// A decimal number of this many digits after the point: the unscaled value as bytes.
    Decimal(u8),
    /// A day: days since 1970-01-01, as int32.
    Date,
    /// A time of day: milliseconds since midnight, as int32.
    Time,
    /// A moment: milliseconds since 1970-01-01 00:00 UTC, as int64.
    Timestamp,
}

/// The names of the logical types, as `org.apache.kafka.connect.data` has them.
const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";
const DATE: &str = "org.apache.kafka.connect.data.Date";
const TIME: &str = "org.apache.kafka.connect.data.Time";
const TIMESTAMP: &str = "org.apache.kafka.connect.data.Timestamp";

/// The parameter of a decimal that holds its scale.
const SCALE: &str = "scale";

/// The parameter of a decimal that says how many digits it has at most, where that is known. Connect has none of its own: this is
/// the one that Confluent's Avro converter reads (`AvroData`) and that Debezium's sources set.
pub const DECIMAL_PRECISION: &str = "connect.decimal.precision";

impl Schema {
    /// A required value of this type, without a name.
    pub fn of(kind: Type) -> Self {
        Self { kind, optional: false, name: None, version: None, doc: None, parameters: Vec::new() }
    }

    /// A required value of a logical type.
    pub fn logical(logical: Logical) -> Self {
        let (kind, name) = match logical {
            Logical::Decimal(_) => (Type::Bytes, DECIMAL),
            Logical::Date => (Type::Int32, DATE),
            Logical::Time => (Type::Int32, TIME),
            Logical::Timestamp => (Type::Int64, TIMESTAMP),
        };
        let parameters = match logical {
            Logical::Decimal(scale) => vec![(SCALE.to_owned(), scale.to_string())],
            Logical::Date | Logical::Time | Logical::Timestamp => Vec::new(),
        };
        Self { name: Some(name.to_owned()), version: Some(1), parameters, ..Self::of(kind) }
    }

    /// A required decimal of which it is known how many digits it has at most, `scale` of them after the point.
    pub fn decimal(precision: u8, scale: u8) -> Self {
        let mut schema = Self::logical(Logical::Decimal(scale));
        schema.parameters.push((DECIMAL_PRECISION.to_owned(), precision.to_string()));
        schema
    }

    /// A required struct of this name.
    pub fn structure(name: impl Into<String>, fields: Vec<Field>) -> Self {
        Self { name: Some(name.into()), ..Self::of(Type::Struct(fields)) }
    }

    /// The same, and null is a value too.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// The same under this version.
    #[must_use]
    pub fn versioned(self, version: i32) -> Self {
        Self { version: Some(version), ..self }
    }

    /// The fields of a struct; none of any other type.
    pub fn fields(&self) -> &[Field] {
        match &self.kind {
            Type::Struct(fields) => fields,
            _ => &[],
        }
    }

    /// Which logical type this is, if it is one.
    pub fn as_logical(&self) -> Option<Logical> {
        match (self.name.as_deref()?, &self.kind) {
            (DECIMAL, Type::Bytes) => {
                let (_, scale) = self.parameters.iter().find(|(name, _)| name == SCALE)?;
                Some(Logical::Decimal(scale.parse().ok()?))
            }
            (DATE, Type::Int32) => Some(Logical::Date),
            (TIME, Type::Int32) => Some(Logical::Time),
            (TIMESTAMP, Type::Int64) => Some(Logical::Timestamp),
            _ => None,
        }
    }
}

impl Type {
    /// The type's name, as Connect's JSON writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Type::Int8 => "int8",
            Type::Int16 => "int16",
            Type::Int32 => "int32",
            Type::Int64 => "int64",
            Type::Float32 => "float",
            Type::Float64 => "double",
            Type::Boolean => "boolean",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Struct(_) => "struct",
        }
    }
}

impl Field {
    /// A field.
    pub fn new(name: impl Into<String>, schema: Schema) -> Self {
        Self { name: name.into(), schema: Arc::new(schema) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logical_type_is_recognised_by_name_and_type() {
        for logical in [Logical::Decimal(0), Logical::Decimal(38), Logical::Date, Logical::Time, Logical::Timestamp] {
            assert_eq!(Schema::logical(logical).as_logical(), Some(logical));
            assert_eq!(Schema::logical(logical).optional().as_logical(), Some(logical));
        }
        assert_eq!(Schema::decimal(18, 2).as_logical(), Some(Logical::Decimal(2)));
        assert_eq!(Schema::of(Type::Int32).as_logical(), None);
        let renamed = Schema { kind: Type::Int64, ..Schema::logical(Logical::Date) };
        assert_eq!(renamed.as_logical(), None, "a day is no int64");
    }
}
