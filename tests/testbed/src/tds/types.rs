//! The types of SQL Server, their names, their numbers in the catalog, and what follows from a type alone.

use std::fmt;

use super::collation::Collation;

/// How much a type of variable length may hold: bytes, or UTF-16 units for `nvarchar`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many.
    Limited(u16),
    /// `(max)`.
    Max,
}

/// A type of SQL Server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the type of that name")]
pub enum Type {
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Decimal(u8, u8),
    Numeric(u8, u8),
    Money,
    SmallMoney,
    Real,
    Float,
    Date,
    Time(u8),
    DateTime,
    SmallDateTime,
    DateTime2(u8),
    DateTimeOffset(u8),
    Char(u16, &'static Collation),
    VarChar(Length, &'static Collation),
    Text(&'static Collation),
    NChar(u16, &'static Collation),
    NVarChar(Length, &'static Collation),
    NText(&'static Collation),
    Binary(u16),
    VarBinary(Length),
    Image,
    RowVersion,
    UniqueIdentifier,
    Xml,
    Variant,
    HierarchyId,
    Geometry,
    Geography,
}

/// The rows of `sys.types`: name, system type, user type, largest length in bytes, precision, scale.
pub(super) const CATALOG: &[(&str, u8, i32, i16, u8, u8)] = &[
    ("image", 34, 34, 16, 0, 0),
    ("text", 35, 35, 16, 0, 0),
    ("uniqueidentifier", 36, 36, 16, 0, 0),
    ("date", 40, 40, 3, 10, 0),
    ("time", 41, 41, 5, 16, 7),
    ("datetime2", 42, 42, 8, 27, 7),
    ("datetimeoffset", 43, 43, 10, 34, 7),
    ("tinyint", 48, 48, 1, 3, 0),
    ("smallint", 52, 52, 2, 5, 0),
    ("int", 56, 56, 4, 10, 0),
    ("smalldatetime", 58, 58, 4, 16, 0),
    ("real", 59, 59, 4, 24, 0),
    ("money", 60, 60, 8, 19, 4),
    ("datetime", 61, 61, 8, 23, 3),
    ("float", 62, 62, 8, 53, 0),
    ("sql_variant", 98, 98, 8016, 0, 0),
    ("ntext", 99, 99, 16, 0, 0),
    ("bit", 104, 104, 1, 1, 0),
    ("decimal", 106, 106, 17, 38, 38),
    ("numeric", 108, 108, 17, 38, 38),
    ("smallmoney", 122, 122, 4, 10, 4),
    ("bigint", 127, 127, 8, 19, 0),
    ("hierarchyid", 240, 128, 892, 0, 0),
    ("geometry", 240, 129, -1, 0, 0),
    ("geography", 240, 130, -1, 0, 0),
    ("varbinary", 165, 165, 8000, 0, 0),
    ("varchar", 167, 167, 8000, 0, 0),
    ("binary", 173, 173, 8000, 0, 0),
    ("char", 175, 175, 8000, 0, 0),
    ("timestamp", 189, 189, 8, 0, 0),
    ("nvarchar", 231, 231, 8000, 0, 0),
    ("nchar", 239, 239, 8000, 0, 0),
    ("xml", 241, 241, -1, 0, 0),
    ("sysname", 231, 256, 256, 0, 0),
];

impl Type {
    /// Names of the catalog (`sysname`) are of this type.
    pub(super) fn sysname(collation: &'static Collation) -> Self {
        Self::NVarChar(Length::Limited(128), collation)
    }

    /// The base type's name in `sys.types`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bit => "bit",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Decimal(..) => "decimal",
            Self::Numeric(..) => "numeric",
            Self::Money => "money",
            Self::SmallMoney => "smallmoney",
            Self::Real => "real",
            Self::Float => "float",
            Self::Date => "date",
            Self::Time(_) => "time",
            Self::DateTime => "datetime",
            Self::SmallDateTime => "smalldatetime",
            Self::DateTime2(_) => "datetime2",
            Self::DateTimeOffset(_) => "datetimeoffset",
            Self::Char(..) => "char",
            Self::VarChar(..) => "varchar",
            Self::Text(_) => "text",
            Self::NChar(..) => "nchar",
            Self::NVarChar(..) => "nvarchar",
            Self::NText(_) => "ntext",
            Self::Binary(_) => "binary",
            Self::VarBinary(_) => "varbinary",
            Self::Image => "image",
            Self::RowVersion => "timestamp",
            Self::UniqueIdentifier => "uniqueidentifier",
            Self::Xml => "xml",
            Self::Variant => "sql_variant",
            Self::HierarchyId => "hierarchyid",
            Self::Geometry => "geometry",
            Self::Geography => "geography",
        }
    }

    /// The numbers of the type in `sys.types`: system type, user type.
    pub(super) fn ids(&self) -> (u8, i32) {
        CATALOG.iter().find(|row| row.0 == self.name()).map_or((0, 0), |row| (row.1, row.2))
    }

    /// `sys.columns.max_length`: bytes, -1 for `(max)`.
    pub(super) fn max_length(&self) -> i16 {
        match self {
            Self::Decimal(precision, _) | Self::Numeric(precision, _) => i16::from(decimal_length(*precision)),
            Self::Time(scale) => i16::from(time_length(*scale)),
            Self::DateTime2(scale) => i16::from(time_length(*scale)) + 3,
            Self::DateTimeOffset(scale) => i16::from(time_length(*scale)) + 5,
            Self::Char(length, _) | Self::Binary(length) => length.cast_signed(),
            Self::NChar(length, _) => (length * 2).cast_signed(),
            Self::VarChar(length, _) | Self::VarBinary(length) => match length {
                Length::Limited(length) => length.cast_signed(),
                Length::Max => -1,
            },
            Self::NVarChar(length, _) => match length {
                Length::Limited(length) => (length * 2).cast_signed(),
                Length::Max => -1,
            },
            other => CATALOG.iter().find(|row| row.0 == other.name()).map_or(0, |row| row.3),
        }
    }

    /// `sys.columns.precision` and `.scale`.
    pub(super) fn precision_scale(&self) -> (u8, u8) {
        match self {
            Self::Decimal(precision, scale) | Self::Numeric(precision, scale) => (*precision, *scale),
            Self::Time(scale) => (if *scale == 0 { 8 } else { 9 + scale }, *scale),
            Self::DateTime2(scale) => (if *scale == 0 { 19 } else { 20 + scale }, *scale),
            Self::DateTimeOffset(scale) => (if *scale == 0 { 26 } else { 27 + scale }, *scale),
            other => CATALOG.iter().find(|row| row.0 == other.name()).map_or((0, 0), |row| (row.4, row.5)),
        }
    }

    /// The collation of a type of characters.
    pub fn collation(&self) -> Option<&'static Collation> {
        match self {
            Self::Char(_, collation)
            | Self::VarChar(_, collation)
            | Self::Text(collation)
            | Self::NChar(_, collation)
            | Self::NVarChar(_, collation)
            | Self::NText(collation) => Some(collation),
            _ => None,
        }
    }

    /// The same type under another collation; other types stay as they are.
    pub(super) fn collated(self, collation: &'static Collation) -> Self {
        match self {
            Self::Char(length, _) => Self::Char(length, collation),
            Self::VarChar(length, _) => Self::VarChar(length, collation),
            Self::Text(_) => Self::Text(collation),
            Self::NChar(length, _) => Self::NChar(length, collation),
            Self::NVarChar(length, _) => Self::NVarChar(length, collation),
            Self::NText(_) => Self::NText(collation),
            other => other,
        }
    }

    pub(super) fn is_characters(&self) -> bool {
        self.collation().is_some()
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self, Self::Bit | Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt)
    }

    pub(super) fn is_decimal(&self) -> bool {
        matches!(self, Self::Decimal(..) | Self::Numeric(..))
    }

    pub(super) fn is_number(&self) -> bool {
        self.is_integer() || self.is_decimal() || matches!(self, Self::Money | Self::SmallMoney | Self::Real | Self::Float)
    }

    pub(super) fn is_temporal(&self) -> bool {
        matches!(self, Self::Date | Self::Time(_) | Self::DateTime | Self::SmallDateTime | Self::DateTime2(_) | Self::DateTimeOffset(_))
    }

    pub(super) fn is_user_defined(&self) -> bool {
        matches!(self, Self::HierarchyId | Self::Geometry | Self::Geography)
    }

    /// The order in which SQL Server chooses the common type of two operands: the smaller number wins.
    pub(super) fn precedence(&self) -> u8 {
        match self {
            Self::HierarchyId | Self::Geometry | Self::Geography => 1,
            Self::Variant => 2,
            Self::Xml => 3,
            Self::DateTimeOffset(_) => 4,
            Self::DateTime2(_) => 5,
            Self::DateTime => 6,
            Self::SmallDateTime => 7,
            Self::Date => 8,
            Self::Time(_) => 9,
            Self::Float => 10,
            Self::Real => 11,
            Self::Decimal(..) | Self::Numeric(..) => 12,
            Self::Money => 13,
            Self::SmallMoney => 14,
            Self::BigInt => 15,
            Self::Int => 16,
            Self::SmallInt => 17,
            Self::TinyInt => 18,
            Self::Bit => 19,
            Self::NText(_) => 20,
            Self::Text(_) => 21,
            Self::Image => 22,
            Self::RowVersion => 23,
            Self::UniqueIdentifier => 24,
            Self::NVarChar(..) => 25,
            Self::NChar(..) => 26,
            Self::VarChar(..) => 27,
            Self::Char(..) => 28,
            Self::VarBinary(_) => 29,
            Self::Binary(_) => 30,
        }
    }

    /// Digits before the point and after it that a number of this type may have.
    pub(super) fn digits(&self) -> (u8, u8) {
        match self {
            Self::Bit => (1, 0),
            Self::TinyInt => (3, 0),
            Self::SmallInt => (5, 0),
            Self::Int => (10, 0),
            Self::BigInt => (19, 0),
            Self::Money => (15, 4),
            Self::SmallMoney => (6, 4),
            Self::Decimal(precision, scale) | Self::Numeric(precision, scale) => (precision - scale, *scale),
            _ => (0, 0),
        }
    }
}

/// Bytes of a decimal on the wire, with its sign.
pub(super) fn decimal_length(precision: u8) -> u8 {
    match precision {
        0..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

/// Bytes of the time of day at a scale.
pub(super) fn time_length(scale: u8) -> u8 {
    match scale {
        0..=2 => 3,
        3..=4 => 4,
        _ => 5,
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Decimal(precision, scale) | Self::Numeric(precision, scale) => write!(f, "({precision},{scale})"),
            Self::Time(scale) | Self::DateTime2(scale) | Self::DateTimeOffset(scale) => write!(f, "({scale})"),
            Self::Char(length, _) | Self::NChar(length, _) | Self::Binary(length) => write!(f, "({length})"),
            Self::VarChar(length, _) | Self::NVarChar(length, _) | Self::VarBinary(length) => match length {
                Length::Limited(length) => write!(f, "({length})"),
                Length::Max => f.write_str("(max)"),
            },
            _ => Ok(()),
        }
    }
}
