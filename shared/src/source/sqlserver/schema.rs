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
use crate::record::schema::{Field, Logical, Schema, Type};

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

    /// The fields of the record schema, one per column in order. `columns` are those of a table without a difference;
    /// whether a field is optional is the baseline's to say, so that it stays as it was.
    pub fn fields(&self, columns: &[Column], decimal_as_string: bool) -> Vec<Field> {
        let field = |(column, baseline): (&Column, &BaselineColumn)| {
            let schema = value_schema(column.kind, decimal_as_string);
            Field::new(column.name.as_str(), if baseline.nullable { schema.optional() } else { schema })
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
        let moved = |(was, is): (&String, &String)| was != is;
        let first = was.iter().zip(&is).position(moved)?;
        let last = was.iter().zip(&is).rposition(moved)?;
        Some(format!("the order of columns is {} where it was {}", is[first..=last].join(", "), was[first..=last].join(", ")))
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

/// Connect's schema of a column's values, which [`super::value`] writes as JSON.
///
/// A `tinyint` has no sign and does not fit 8 signed bits. A `date` is the instant of its midnight, as in JSON, and so a
/// timestamp and no day. A `sql_variant` is text: the JSON of its value, unless that is text itself. Decimals say how many
/// digits they have today: a baseline does not hold them to that, so a column that was widened is another schema and no change.
fn value_schema(kind: Kind, decimal_as_string: bool) -> Schema {
    match kind {
        Kind::TinyInt | Kind::SmallInt => Schema::of(Type::Int16),
        Kind::Int => Schema::of(Type::Int32),
        Kind::BigInt => Schema::of(Type::Int64),
        Kind::Bit => Schema::of(Type::Boolean),
        Kind::Decimal { .. } if decimal_as_string => Schema::of(Type::String),
        Kind::Decimal { precision, scale } => Schema::decimal(precision, scale),
        Kind::Real => Schema::of(Type::Float32),
        Kind::Float => Schema::of(Type::Float64),
        Kind::Time => Schema::logical(Logical::Time),
        Kind::Date | Kind::DateTime | Kind::SmallDateTime | Kind::DateTime2 | Kind::DateTimeOffset => Schema::logical(Logical::Timestamp),
        Kind::UniqueIdentifier | Kind::Text | Kind::Variant => Schema::of(Type::String),
        Kind::Binary => Schema::of(Type::Bytes),
    }
}

#[cfg(test)]
mod tests;
