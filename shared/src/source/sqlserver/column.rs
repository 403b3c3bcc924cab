//! Columns: how each is selected, and what of it arrives.
//!
//! Most columns are selected as they are. The others are cast by the server, because the driver would lose something on
//! the way or stop at it:
//!
//! * `money` arrives as a double. As `decimal(19, 4)` it arrives exact.
//! * Text in a code page is decoded by the driver, which gives up the whole result at a byte that the code page does not
//!   define, and does not know some code pages at all. One such value would stop the table for good. So text is cast to
//!   Unicode by the server, unless its code page defines every byte: that is most text, and half the bytes on the wire.
//! * `xml` and the text inside of `sql_variant` are decoded strictly by the driver; as `nvarchar` they are not.
//! * What has no form of its own (`json`, `vector`, CLR types) is asked for in one that every client can read.
//!
//! What arrives is checked against [`Kind`], so that a column that was altered between the look at the catalog and the
//! statement is noticed and not passed on as something else.

use std::fmt::{self, Write as _};

use super::catalog::ColumnInfo;

/// A column as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name, as the catalog spells it.
    pub name: String,
    /// What arrives.
    pub kind: Kind,
    /// How the statement asks for it: one expression, or three for a `sql_variant`.
    expressions: Expressions,
}

/// What arrives of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `tinyint`, unsigned.
    TinyInt,
    /// `smallint`
    SmallInt,
    /// `int`
    Int,
    /// `bigint`
    BigInt,
    /// `bit`
    Bit,
    /// `decimal`, `numeric`, and, with scale 4, `money` and `smallmoney`.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// `real`
    Real,
    /// `float`
    Float,
    /// `date`
    Date,
    /// `time`
    Time,
    /// `datetime`
    DateTime,
    /// `smalldatetime`
    SmallDateTime,
    /// `datetime2`
    DateTime2,
    /// `datetimeoffset`
    DateTimeOffset,
    /// `uniqueidentifier`
    UniqueIdentifier,
    /// Text of any kind.
    Text,
    /// Bytes of any kind.
    Binary,
    /// `sql_variant`: in each row something else.
    Variant,
}

/// How a column is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expressions {
    /// As it is.
    Plain,
    /// Cast to a type.
    Cast(Target),
    /// As text, as money, and as it is: at most one of the three is not NULL.
    Variant,
}

/// What the server casts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Money,
    SmallMoney,
    /// Characters; 0 for `max`.
    Unicode(u16),
    Bytes,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Money => f.write_str("decimal(19, 4)"),
            Self::SmallMoney => f.write_str("decimal(10, 4)"),
            Self::Unicode(0) => f.write_str("nvarchar(max)"),
            Self::Unicode(length) => write!(f, "nvarchar({length})"),
            Self::Bytes => f.write_str("varbinary(max)"),
        }
    }
}

/// A column that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The type is none that this program knows.
    #[error("column {column} is of type {type_name}, which is not supported")]
    UnknownType {
        /// The column.
        column: String,
        /// Its type.
        type_name: String,
    },
    /// The login does not see what the type is.
    #[error("the type of column {column} is hidden from the login; grant VIEW DEFINITION on it")]
    HiddenType {
        /// The column.
        column: String,
    },
}

impl Column {
    /// How a column of the catalog is read.
    ///
    /// # Errors
    /// The column's type is not supported.
    pub fn of(info: &ColumnInfo) -> Result<Self, Refused> {
        let (kind, expressions) = if info.is_encrypted {
            // Without its key the driver sees the ciphertext, as bytes.
            (Kind::Binary, Expressions::Plain)
        } else {
            let base = info.base_type.as_deref().ok_or_else(|| Refused::HiddenType { column: info.name.clone() })?;
            reading(info, base).ok_or_else(|| Refused::UnknownType { column: info.name.clone(), type_name: base.to_owned() })?
        };
        Ok(Self { name: info.name.clone(), kind, expressions })
    }

    /// How many values of a row belong to the column.
    pub fn cells(&self) -> usize {
        if self.expressions == Expressions::Variant { 3 } else { 1 }
    }

    /// Appends what a select list asks for.
    fn select(&self, list: &mut String) {
        let name = quote(&self.name);
        // Writing to a String cannot fail.
        let _ = match self.expressions {
            Expressions::Plain => write!(list, "{name}"),
            Expressions::Cast(target) => write!(list, "CAST({name} AS {target})"),
            Expressions::Variant => {
                let base = format!("CAST(SQL_VARIANT_PROPERTY({name}, 'BaseType') AS nvarchar(128))");
                write!(
                    list,
                    "CASE WHEN {base} IN (N'char', N'varchar', N'nchar', N'nvarchar') THEN CAST({name} AS nvarchar(max)) END, \
                     CASE WHEN {base} IN (N'money', N'smallmoney') THEN CAST({name} AS decimal(19, 4)) END, \
                     CASE WHEN {base} NOT IN (N'char', N'varchar', N'nchar', N'nvarchar', N'money', N'smallmoney') THEN {name} END"
                )
            }
        };
    }
}

/// The list after SELECT, in the columns' order.
pub fn select_list(columns: &[Column]) -> String {
    let mut list = String::new();
    for column in columns {
        if !list.is_empty() {
            list.push_str(", ");
        }
        column.select(&mut list);
    }
    list
}

/// An identifier as a statement writes it.
pub fn quote(identifier: &str) -> String {
    format!("[{}]", identifier.replace(']', "]]"))
}

fn reading(info: &ColumnInfo, base: &str) -> Option<(Kind, Expressions)> {
    let plain = |kind| Some((kind, Expressions::Plain));
    let cast = |kind, target| Some((kind, Expressions::Cast(target)));
    match base {
        _ if info.is_clr => cast(Kind::Binary, Target::Bytes),
        "tinyint" => plain(Kind::TinyInt),
        "smallint" => plain(Kind::SmallInt),
        "int" => plain(Kind::Int),
        "bigint" => plain(Kind::BigInt),
        "bit" => plain(Kind::Bit),
        "decimal" | "numeric" => plain(Kind::Decimal { precision: info.precision, scale: info.scale }),
        "money" => cast(Kind::Decimal { precision: 19, scale: 4 }, Target::Money),
        "smallmoney" => cast(Kind::Decimal { precision: 10, scale: 4 }, Target::SmallMoney),
        "real" => plain(Kind::Real),
        "float" => plain(Kind::Float),
        "date" => plain(Kind::Date),
        "time" => plain(Kind::Time),
        "datetime" => plain(Kind::DateTime),
        "smalldatetime" => plain(Kind::SmallDateTime),
        "datetime2" => plain(Kind::DateTime2),
        "datetimeoffset" => plain(Kind::DateTimeOffset),
        "uniqueidentifier" => plain(Kind::UniqueIdentifier),
        "nchar" | "nvarchar" | "ntext" => plain(Kind::Text),
        "char" | "varchar" | "text" if info.collation.as_deref().is_some_and(defines_every_byte) => plain(Kind::Text),
        "char" | "varchar" => cast(Kind::Text, Target::Unicode(characters(info.max_length))),
        "text" | "xml" | "json" | "vector" => cast(Kind::Text, Target::Unicode(0)),
        "binary" | "varbinary" | "image" | "timestamp" | "rowversion" => plain(Kind::Binary),
        "sql_variant" => Some((Kind::Variant, Expressions::Variant)),
        _ => None,
    }
}

/// The length that holds what so many bytes of a code page can stand for: none has a character of fewer bytes than
/// UTF-16 units. 4,000 is the most that may be written as a number.
fn characters(bytes: i64) -> u16 {
    u16::try_from(bytes).ok().filter(|length| (1..=4000).contains(length)).unwrap_or(0)
}

/// Whether the driver can decode every byte string of a column of this collation.
///
/// These are the collations whose code page has one byte per character and no gaps. What is not listed is cast, which is
/// right for any collation, if slower; so are names that another server spells differently.
fn defines_every_byte(collation: &str) -> bool {
    /// Windows code pages 1250, 1251, 1252, 1254 and 1256, by the names that collations give to languages.
    const WINDOWS: &[&str] = &[
        "Latin1_General",
        "French",
        "Finnish_Swedish",
        "Danish_Norwegian",
        "Danish_Greenlandic",
        "Norwegian",
        "Icelandic",
        "Modern_Spanish",
        "Traditional_Spanish",
        "German_PhoneBook",
        "Polish",
        "Czech",
        "Slovak",
        "Slovenian",
        "Hungarian",
        "Croatian",
        "Romanian",
        "Albanian",
        "Cyrillic_General",
        "Ukrainian",
        "Turkish",
        "Arabic",
    ];
    if collation.ends_with("_UTF8") {
        return false;
    }
    if let Some(old) = collation.strip_prefix("SQL_") {
        return ["_CP1_", "_CP1250_", "_CP1251_", "_CP1254_", "_CP1256_"].iter().any(|page| old.contains(page));
    }
    // What follows the language is a version or a sensitivity: Polish_100_CI_AS, Polish_CI_AS, Polish_BIN2.
    let rest = WINDOWS.iter().find_map(|language| collation.strip_prefix(language));
    rest.is_some_and(|rest| ["_CI_", "_CS_", "_BIN", "_90_", "_100_", "_140_", "_160_"].iter().any(|next| rest.starts_with(next)))
}

#[cfg(test)]
mod tests;
