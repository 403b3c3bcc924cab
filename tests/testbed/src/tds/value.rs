//! Values as the tables hold them: what is on the wire and nothing more.
//!
//! Characters are kept as bytes of the column's code page or as UTF-16 units, not as `String`: a table of a real server
//! may hold a lone surrogate, or a byte that its code page does not know, and a client has to live with it.

use std::fmt;
use std::sync::Arc;

use super::types::Type;

/// One value of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `NULL`.
    #[default]
    Null,
    /// `bit`.
    Bit(bool),
    /// `tinyint` (0 to 255), `smallint`, `int`, `bigint`.
    Integer(i64),
    /// `decimal`, `numeric`, `money` and `smallmoney`: the digits without the point; the scale is the type's (4 for money).
    Decimal(i128),
    /// `real`.
    Real(f32),
    /// `float`.
    Float(f64),
    /// `date`: days since 0001-01-01.
    Date(i32),
    /// `time`: units of 100 ns since midnight.
    Time(u64),
    /// `datetime2`: days since 0001-01-01, units of 100 ns since midnight.
    DateTime2(i32, u64),
    /// `datetimeoffset`: the same in UTC, and the offset in minutes.
    DateTimeOffset(i32, u64, i16),
    /// `datetime`: days since 1900-01-01, units of 1/300 s since midnight.
    DateTime(i32, u32),
    /// `smalldatetime`: days since 1900-01-01, minutes since midnight.
    SmallDateTime(u16, u16),
    /// `char`, `varchar`, `text`: bytes of the code page.
    Chars(Arc<[u8]>),
    /// `nchar`, `nvarchar`, `ntext`, `xml`: UTF-16, which need not be valid.
    Wide(Arc<[u16]>),
    /// `binary`, `varbinary`, `image`, `rowversion`, and the serialised form of a type of the CLR.
    Binary(Arc<[u8]>),
    /// `uniqueidentifier`, in the order in which it is written.
    Guid([u8; 16]),
    /// `sql_variant`: never of another `sql_variant`, never `NULL`.
    Variant(Box<(Type, Value)>),
}

impl Value {
    /// Is it `NULL`?
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// UTF-16 of a string.
    pub fn wide(text: &str) -> Self {
        Self::Wide(text.encode_utf16().collect())
    }

    /// Bytes of a code page.
    pub fn chars(bytes: &[u8]) -> Self {
        Self::Chars(bytes.into())
    }

    /// Bytes.
    pub fn binary(bytes: &[u8]) -> Self {
        Self::Binary(bytes.into())
    }

    /// The number of a value that is a whole one.
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Bit(bit) => Some(i128::from(*bit)),
            Self::Integer(number) => Some(i128::from(*number)),
            Self::Decimal(digits) => Some(*digits),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(bit: bool) -> Self {
        Self::Bit(bit)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::wide(text)
    }
}

/// For the log: what a reader wants to see of a parameter or a key, not a form that could be read back.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bit(bit) => write!(f, "{}", u8::from(*bit)),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Decimal(digits) => write!(f, "{digits}"),
            Self::Real(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Chars(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            Self::Wide(units) => f.write_str(&String::from_utf16_lossy(units)),
            other => write!(f, "{other:?}"),
        }
    }
}
