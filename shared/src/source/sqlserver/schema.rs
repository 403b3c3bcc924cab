//! The baseline: what a table looked like when it was activated, and what counts as having changed.
//!
//! A change counts if it could change what a reader of the records sees: a column that came, went, moved or was renamed; a
//! type other than before; a scale, since decimals keep theirs; NULL where there was none; values that are masked or
//! encrypted from now on. A longer `varchar`, more digits in front of the point, a finer `datetime2`, another collation or
//! an alias of the same type do not: the values that were there look as before, and nobody needs waking.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::catalog::{ColumnInfo, TableInfo};
use super::column::{Column, Kind};
use crate::host::hex;

/// The columns of a table in their order, as far as a change of them counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    columns: Vec<BaselineColumn>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineColumn {
    name: String,
    /// The base type.
    #[serde(rename = "type")]
    type_name: String,
    /// Digits of a decimal. Told, and not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    precision: Option<u8>,
    /// Digits of a decimal after the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<u8>,
    nullable: bool,
    /// How the values are withheld from the login, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    withheld: Option<Withheld>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Withheld {
    Masked,
    Encrypted,
}

/// A stored baseline that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the stored baseline cannot be read: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

impl Baseline {
    /// The baseline of a table as the catalog describes it.
    pub fn of(table: &TableInfo) -> Self {
        Self { columns: table.columns.iter().map(BaselineColumn::of).collect() }
    }

    /// The text that is stored: JSON, the same for the same columns.
    pub fn text(&self) -> String {
        // Texts, numbers and flags in a list: there is nothing that JSON could not write.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads [`Baseline::text`].
    ///
    /// # Errors
    /// The text is no baseline, or one of a newer program.
    pub fn parse(text: &str) -> Result<Self, Unreadable> {
        Ok(serde_json::from_str(text)?)
    }

    /// SHA-256 of [`Baseline::text`] in hexadecimal, by which a cursor names its baseline.
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(self.text()))
    }

    /// How `now` differs from this baseline, one text for a person per difference; empty if it does not.
    ///
    /// A change that does not count gives `now` another [`Baseline::hash`] and no difference.
    pub fn difference(&self, now: &Self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let find = |columns: &[BaselineColumn], name: &str| columns.iter().position(|column| column.name == name);
        for column in &self.columns {
            match find(&now.columns, &column.name) {
                None => found.push(format!("column {} ({column}) is gone", column.name)),
                Some(at) => found.extend(column.difference(&now.columns[at])),
            }
        }
        for (at, column) in now.columns.iter().enumerate() {
            if find(&self.columns, &column.name).is_none() {
                found.push(format!("column {} ({column}) is new, at place {}", column.name, at + 1));
            }
        }
        found.extend(self.moves(now));
        found
    }

    /// The fields of records of `columns`, in their order. The columns are those of a table without a difference; whether a
    /// field is optional is the baseline's to say, so that it stays as it was.
    pub fn fields(&self, columns: &[Column], decimal_as_string: bool) -> Vec<SchemaField> {
        let field = |(column, baseline): (&Column, &BaselineColumn)| SchemaField {
            name: column.name.clone(),
            field_type: field_type(column.kind, decimal_as_string),
            optional: baseline.nullable,
        };
        columns.iter().zip(&self.columns).map(field).collect()
    }

    /// The columns that both have, if their order differs.
    fn moves(&self, now: &Self) -> Option<String> {
        let order = |of: &Self, other: &Self| -> Vec<String> {
            let shared = |column: &&BaselineColumn| other.columns.iter().any(|their| their.name == column.name);
            of.columns.iter().filter(shared).map(|column| column.name.clone()).collect()
        };
        let (was, is) = (order(self, now), order(now, self));
        let first = was.iter().zip(&is).position(|(was, is)| was != is)?;
        Some(format!("the order of columns is {} where it was {}", is[first..].join(", "), was[first..].join(", ")))
    }
}

impl BaselineColumn {
    fn of(info: &ColumnInfo) -> Self {
        let type_name = info.base_type.clone().unwrap_or_else(|| "unknown".to_owned());
        let is_decimal = matches!(type_name.as_str(), "decimal" | "numeric");
        let withheld = match (info.is_encrypted, info.is_masked) {
            (true, _) => Some(Withheld::Encrypted),
            (false, true) => Some(Withheld::Masked),
            (false, false) => None,
        };
        Self {
            name: info.name.clone(),
            precision: is_decimal.then_some(info.precision),
            scale: is_decimal.then_some(info.scale),
            nullable: info.is_nullable,
            withheld,
            type_name,
        }
    }

    /// How `now`, a column of the same name, differs.
    fn difference(&self, now: &Self) -> Option<String> {
        let counts =
            self.type_name != now.type_name || self.scale != now.scale || (now.nullable && !self.nullable) || self.withheld != now.withheld;
        counts.then(|| format!("column {} is {now} where it was {self}", self.name))
    }
}

/// The type as SQL writes it.
impl fmt::Display for BaselineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_name)?;
        if let (Some(precision), Some(scale)) = (self.precision, self.scale) {
            write!(f, "({precision}, {scale})")?;
        }
        f.write_str(if self.nullable { " NULL" } else { " NOT NULL" })?;
        match self.withheld {
            Some(Withheld::Masked) => f.write_str(", masked"),
            Some(Withheld::Encrypted) => f.write_str(", encrypted"),
            None => Ok(()),
        }
    }
}

/// A field of a record schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaField {
    /// The column.
    pub name: String,
    /// What its values are.
    pub field_type: FieldType,
    /// Whether it may be null.
    pub optional: bool,
}

/// What the values of a field are. In JSON they look as [`super::value`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// true or false
    Boolean,
    /// `tinyint`, which is unsigned, and `smallint`
    Int16,
    /// `int`
    Int32,
    /// `bigint`
    Int64,
    /// `real`
    Float32,
    /// `float`
    Float64,
    /// Exact numbers.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Text. A `sql_variant` is one too: the JSON of its value, unless that is text itself.
    String,
    /// Bytes.
    Bytes,
    /// An instant in epoch milliseconds.
    Timestamp,
    /// Milliseconds past midnight.
    Time,
}

fn field_type(kind: Kind, decimal_as_string: bool) -> FieldType {
    match kind {
        Kind::TinyInt | Kind::SmallInt => FieldType::Int16,
        Kind::Int => FieldType::Int32,
        Kind::BigInt => FieldType::Int64,
        Kind::Bit => FieldType::Boolean,
        Kind::Decimal { .. } if decimal_as_string => FieldType::String,
        Kind::Decimal { precision, scale } => FieldType::Decimal { precision, scale },
        Kind::Real => FieldType::Float32,
        Kind::Float => FieldType::Float64,
        Kind::Time => FieldType::Time,
        Kind::Date | Kind::DateTime | Kind::SmallDateTime | Kind::DateTime2 | Kind::DateTimeOffset => FieldType::Timestamp,
        Kind::UniqueIdentifier | Kind::Text | Kind::Variant => FieldType::String,
        Kind::Binary => FieldType::Bytes,
    }
}

#[cfg(test)]
mod tests;
