//! Whether a table can be polled, or why not.
//!
//! Every refusal says what is in the way and what to do. None of them passes by itself, so the table is parked. The checks
//! are those that make keyset paging right: the sequence is never NULL, two rows never share one, and what the
//! statement compares is what the table stores.

use super::catalog::{ColumnInfo, Computed, IndexInfo, Lookup, ObjectKind, TableInfo, Unlocked};
use super::column::{self, Column, quote};
use super::keys::TableName;
use super::schema::Baseline;
use super::sequence::SequenceType;
use crate::failure::{Failure, Retry};

/// A table that can be polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pollable {
    /// The schema, as the catalog spells it.
    pub schema: String,
    /// The table, as the catalog spells it.
    pub table: String,
    /// Every column in the table's order.
    pub columns: Vec<Column>,
    /// Where in `columns` the sequence is.
    pub sequence: usize,
    /// The sequence's type.
    pub sequence_type: SequenceType,
    /// Why reads of it wait for nobody, if that is so.
    pub unlocked: Option<Unlocked>,
    /// What the table looks like.
    pub baseline: Baseline,
}

impl Pollable {
    /// The table as a statement writes it: `[schema].[table]`.
    pub fn quoted_name(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.table))
    }

    /// The sequence column as a statement writes it.
    pub fn quoted_sequence(&self) -> String {
        quote(&self.columns[self.sequence].name)
    }

    /// The list after SELECT.
    pub fn select_list(&self) -> String {
        column::select_list(&self.columns)
    }
}

/// Why a table cannot be polled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The schema is not there, or hidden.
    #[error("the login sees no schema {0}. Check the alias's name key and its case; a schema without permissions is not shown")]
    NoSchema(String),
    /// The table is not there, or hidden.
    #[error("the login sees no object {0}. Check the alias's name key and its case, or grant SELECT: the server shows nothing without")]
    NoObject(TableName),
    /// It is something else.
    #[error("it is {0}, and only tables can be polled. Name the table behind it")]
    NotATable(String),
    /// It is a table of a kind that keeps no sequence.
    #[error("it is {0}, which cannot be polled")]
    UnfitTable(&'static str),
    /// Its rows cannot be read.
    #[error("its clustered index {index} is disabled, and with it the table. Rebuild the index")]
    TableDisabled {
        /// The index.
        index: String,
    },
    /// No such column.
    #[error("there is no column {column}{near}. Check the alias's sequence.column key")]
    NoSequence {
        /// As the document spells it.
        column: String,
        /// A column that differs in its case, if there is one.
        near: String,
    },
    /// The sequence column is not fit.
    #[error("sequence column {column} {reason}")]
    Sequence {
        /// The column.
        column: String,
        /// What is in the way.
        reason: Unfit,
    },
    /// A column cannot be read.
    #[error("{0}. Every column is part of a record, so the table cannot be read")]
    Column(#[from] column::Refused),
}

/// Why a column is no sequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Another type.
    #[error("is of type {0}. It must be tinyint, smallint, int, bigint, or decimal or numeric with scale 0")]
    Type(String),
    /// A fraction.
    #[error("has scale {0}. A decimal or numeric sequence must have scale 0")]
    Scale(u8),
    /// NULLs.
    #[error("takes NULL, and rows without a sequence would never be read. Declare it NOT NULL")]
    Nullable,
    /// Ciphertext.
    #[error("is encrypted (Always Encrypted), so the server cannot compare it. Choose another")]
    Encrypted,
    /// Made-up values.
    #[error("is masked, so that a login without UNMASK reads something else than the table holds. Remove the mask, or choose another")]
    Masked,
    /// Values that depend on the time of reading.
    #[error("is computed when it is read, so its values may change. Mark it PERSISTED, or choose another")]
    Computed,
    /// New rows come below the cursor.
    #[error("is an identity that counts down, so that every new row comes below the cursor. Choose another")]
    Descending,
    /// Nothing keeps two rows apart.
    #[error("is not unique. Give it a PRIMARY KEY or UNIQUE constraint of its own")]
    NotUnique,
    /// Unique with others only.
    #[error("is unique only together with {others} ({index}). Give it a UNIQUE constraint of its own")]
    NotAlone {
        /// The index.
        index: String,
        /// The key's other columns.
        others: String,
    },
    /// An index that anybody may drop.
    #[error("has a unique index ({0}) and no constraint. Add a UNIQUE constraint on it: an index may be dropped by whoever tunes queries")]
    IndexOnly(String),
    /// Uniqueness is not enforced.
    #[error("has a constraint whose index {0} is disabled, so uniqueness is not enforced. Rebuild the index")]
    Disabled(String),
    /// Uniqueness of some rows.
    #[error("is unique among some of the rows only (filtered index {0}). Give it a UNIQUE constraint")]
    Filtered(String),
}

impl Refusal {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSchema(_) | Self::NoObject(_) => "Source.TableMissing",
            Self::NotATable(_) | Self::UnfitTable(_) => "Source.NotATable",
            Self::TableDisabled { .. } => "Source.TableDisabled",
            Self::NoSequence { .. } | Self::Sequence { .. } => "Source.Sequence",
            Self::Column(_) => "Source.ColumnType",
        }
    }

    /// The failure of the table `alias` (`table` on the server) of `connector`.
    pub fn of(&self, connector: &str, alias: &str, table: &TableName) -> Failure {
        Failure::new(self.code(), Retry::Never, format!("{connector}/{alias} (table {table}): {self}"))
    }
}

/// Checks what the catalog says of the table `wanted` and the column that its alias calls `sequence_column`.
///
/// # Errors
/// The first thing that is in the way.
pub fn check(lookup: Lookup, wanted: &TableName, sequence_column: &str) -> Result<Pollable, Refusal> {
    let table = match lookup {
        Lookup::NoSchema => return Err(Refusal::NoSchema(wanted.schema.clone())),
        Lookup::NoObject => return Err(Refusal::NoObject(wanted.clone())),
        Lookup::Found(table) => *table,
    };
    check_object(&table)?;
    let sequence = find_sequence(&table, sequence_column)?;
    let sequence_type = check_sequence(&table, &table.columns[sequence])?;
    let columns = table.columns.iter().map(Column::of).collect::<Result<Vec<_>, _>>()?;
    let baseline = Baseline::of(&table);
    let unlocked = table.unlocked;
    Ok(Pollable { schema: table.schema, table: table.name, columns, sequence, sequence_type, unlocked, baseline })
}

fn check_object(table: &TableInfo) -> Result<(), Refusal> {
    let other = |what: &str| Err(Refusal::NotATable(what.to_owned()));
    match &table.kind {
        ObjectKind::Table => {}
        ObjectKind::External => return Err(Refusal::UnfitTable("an external table, whose rows another system keeps")),
        ObjectKind::History => return Err(Refusal::UnfitTable("the history of a temporal table, which has no constraints")),
        ObjectKind::FileTable => return Err(Refusal::UnfitTable("a FileTable, which has no sequence")),
        ObjectKind::View => return other("a view"),
        ObjectKind::Synonym(target) => return other(&format!("a synonym of {target}")),
        ObjectKind::Other(code) => return other(object_name(code)),
    }
    if table.columns.iter().any(is_graph_column) {
        return Err(Refusal::UnfitTable("a node or edge table of a graph, whose inner columns cannot be read"));
    }
    match table.indexes.iter().find(|index| index.id == 1 && index.is_disabled) {
        Some(index) => Err(Refusal::TableDisabled { index: index.name.clone() }),
        None => Ok(()),
    }
}

/// What an object is by its two letters in `sys.objects.type`.
fn object_name(code: &str) -> &'static str {
    match code {
        "IF" | "TF" | "FT" => "a function that answers a table",
        "FN" | "FS" | "AF" => "a function",
        "P" | "PC" | "X" => "a procedure",
        "IT" => "an internal table",
        "S" => "a table of the system",
        "SQ" => "a queue",
        "SO" => "a sequence object",
        "TT" => "a table type",
        "PK" | "UQ" | "C" | "D" | "F" => "a constraint",
        _ => "no table",
    }
}

/// Node and edge tables keep ids in columns that no statement may name. They are hidden, and called like this with
/// 32 hexadecimal digits behind.
fn is_graph_column(column: &ColumnInfo) -> bool {
    let inner = ["graph_id_", "from_id_", "to_id_", "from_obj_id_", "to_obj_id_"];
    let digits = inner.iter().find_map(|name| column.name.strip_prefix(name));
    column.is_hidden && digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn find_sequence(table: &TableInfo, wanted: &str) -> Result<usize, Refusal> {
    table.columns.iter().position(|column| column.is_asked_for).ok_or_else(|| {
        let near = table.columns.iter().find(|column| column.name.to_lowercase() == wanted.to_lowercase());
        let near = near.map_or_else(String::new, |column| format!("; there is {}, and this database tells case apart", column.name));
        Refusal::NoSequence { column: wanted.to_owned(), near }
    })
}

fn check_sequence(table: &TableInfo, column: &ColumnInfo) -> Result<SequenceType, Refusal> {
    let refused = |reason| Refusal::Sequence { column: column.name.clone(), reason };
    if column.is_encrypted {
        return Err(refused(Unfit::Encrypted));
    }
    let sequence_type = sequence_type(column).map_err(refused)?;
    if column.is_nullable {
        return Err(refused(Unfit::Nullable));
    }
    if column.is_masked {
        return Err(refused(Unfit::Masked));
    }
    if column.computed == Computed::OnRead {
        return Err(refused(Unfit::Computed));
    }
    if column.is_descending {
        return Err(refused(Unfit::Descending));
    }
    check_unique(table, column).map_err(refused)?;
    Ok(sequence_type)
}

fn sequence_type(column: &ColumnInfo) -> Result<SequenceType, Unfit> {
    match column.base_type.as_deref() {
        Some("tinyint") => Ok(SequenceType::TinyInt),
        Some("smallint") => Ok(SequenceType::SmallInt),
        Some("int") => Ok(SequenceType::Int),
        Some("bigint") => Ok(SequenceType::BigInt),
        Some("decimal" | "numeric") if column.scale == 0 => Ok(SequenceType::Decimal(column.precision)),
        Some("decimal" | "numeric") => Err(Unfit::Scale(column.scale)),
        Some(other) => Err(Unfit::Type(other.to_owned())),
        None => Err(Unfit::Type("hidden from the login".to_owned())),
    }
}

/// Proves that no two rows have the same value: an index that enforces it, on the column alone, over all rows, and that
/// belongs to a constraint. If none does, the closest miss is the reason.
fn check_unique(table: &TableInfo, column: &ColumnInfo) -> Result<(), Unfit> {
    let unique = || table.indexes.iter().filter(|index| index.is_unique && !index.is_hypothetical && index.key.contains(&column.ordinal));
    let alone = || unique().filter(|index| index.key == [column.ordinal]);
    if alone().any(|index| index.is_constraint && !index.is_disabled && !index.is_filtered) {
        return Ok(());
    }
    let name = |index: &IndexInfo| index.name.clone();
    if let Some(index) = alone().find(|index| index.is_constraint && index.is_disabled) {
        return Err(Unfit::Disabled(name(index)));
    }
    if let Some(index) = alone().find(|index| !index.is_filtered && !index.is_disabled) {
        return Err(Unfit::IndexOnly(name(index)));
    }
    if let Some(index) = alone().find(|index| index.is_filtered) {
        return Err(Unfit::Filtered(name(index)));
    }
    match unique().find(|index| index.key.len() > 1) {
        Some(index) => Err(Unfit::NotAlone { index: name(index), others: others(table, index, column) }),
        None => Err(Unfit::NotUnique),
    }
}

fn others(table: &TableInfo, index: &IndexInfo, column: &ColumnInfo) -> String {
    let name = |ordinal: &i64| table.columns.iter().find(|other| other.ordinal == *ordinal).map(|other| other.name.as_str());
    let names: Vec<&str> = index.key.iter().filter(|ordinal| **ordinal != column.ordinal).filter_map(name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
