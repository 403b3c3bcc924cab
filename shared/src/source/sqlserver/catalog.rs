//! What the catalog says about a table: the question, and its answer as plain structs.
//!
//! One statement asks for everything and answers three results: the object of that name, its columns, and the key
//! columns of its indexes. It is sent with three texts as parameters: schema, table, sequence column. The server compares
//! them, so a name means what the database's collation says it means; nothing here folds case, and no pattern is matched.
//!
//! Two joins are `LEFT` for a reason. A login may read a table and not see the alias type of one of its columns: an inner
//! join would leave that column out of every record without a word. And [`ColumnInfo::base_type`] is a name, since the
//! numbers behind the names differ between SQL Server and Aurora Babelfish.

use tiberius::ColumnData;

/// Asks for schema `@P1`, object `@P2` and, marked among the columns, column `@P3`.
pub const STATEMENT: &str = "\
SELECT s.name, o.name, o.type, y.base_object_name, t.is_external, t.temporal_type, t.is_filetable, t.is_memory_optimized, \
CAST(SERVERPROPERTY('Babelfish') AS varchar(9)) \
FROM sys.schemas AS s \
LEFT JOIN sys.objects AS o ON o.schema_id = s.schema_id AND o.name = @P2 \
LEFT JOIN sys.tables AS t ON t.object_id = o.object_id \
LEFT JOIN sys.synonyms AS y ON y.object_id = o.object_id \
WHERE s.name = @P1; \
SELECT c.column_id, c.name, q.column_id, u.name, u.is_user_defined, u.is_assembly_type, b.name, \
c.max_length, c.precision, c.scale, c.collation_name, c.is_nullable, c.is_identity, c.is_computed, k.is_persisted, \
c.is_hidden, c.is_masked, c.encryption_type, c.is_sparse, c.is_column_set, CAST(d.increment_value AS float) \
FROM sys.schemas AS s \
INNER JOIN sys.objects AS o ON o.schema_id = s.schema_id \
INNER JOIN sys.columns AS c ON c.object_id = o.object_id \
LEFT JOIN sys.columns AS q ON q.object_id = c.object_id AND q.column_id = c.column_id AND q.name = @P3 \
LEFT JOIN sys.types AS u ON u.user_type_id = c.user_type_id \
LEFT JOIN sys.types AS b ON b.user_type_id = c.system_type_id \
LEFT JOIN sys.computed_columns AS k ON k.object_id = c.object_id AND k.column_id = c.column_id \
LEFT JOIN sys.identity_columns AS d ON d.object_id = c.object_id AND d.column_id = c.column_id \
WHERE s.name = @P1 AND o.name = @P2 \
ORDER BY c.column_id; \
SELECT i.index_id, i.name, i.type, i.is_unique, i.is_primary_key, i.is_unique_constraint, i.is_disabled, i.has_filter, \
i.is_hypothetical, x.column_id \
FROM sys.schemas AS s \
INNER JOIN sys.objects AS o ON o.schema_id = s.schema_id \
INNER JOIN sys.indexes AS i ON i.object_id = o.object_id \
INNER JOIN sys.index_columns AS x ON x.object_id = i.object_id AND x.index_id = i.index_id \
WHERE s.name = @P1 AND o.name = @P2 AND x.key_ordinal > 0 \
ORDER BY i.index_id, x.key_ordinal";

/// [`STATEMENT`] about the table of an alias. A table that is being altered makes it wait.
pub(super) fn question(table: &super::keys::Table, locks: super::limit::Locks) -> tiberius::Query<'static> {
    let mut query = tiberius::Query::new(format!("{locks}{STATEMENT}"));
    for text in [&table.name.schema, &table.name.table, &table.sequence_column] {
        query.bind(text.clone());
    }
    query
}

/// How many results [`STATEMENT`] answers.
pub const RESULTS: usize = 3;

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// No schema of that name, as far as the login can see.
    NoSchema,
    /// No object of that name in the schema, as far as the login can see.
    NoObject,
    /// There is one.
    Found(Box<TableInfo>),
}

/// An object with its columns and indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// The schema, as the catalog spells it.
    pub schema: String,
    /// The object, as the catalog spells it.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Why reads of it wait for nobody, if that is so.
    pub unlocked: Option<Unlocked>,
    /// Its columns in their order.
    pub columns: Vec<ColumnInfo>,
    /// Its indexes that have key columns.
    pub indexes: Vec<IndexInfo>,
}

/// What an object is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table of this database.
    Table,
    /// A table whose rows lie elsewhere.
    External,
    /// The history of a temporal table.
    History,
    /// A table over files.
    FileTable,
    /// A view.
    View,
    /// A synonym, and the name that it stands for.
    Synonym(String),
    /// Anything else, by the catalog's two letters (`sys.objects.type`).
    Other(String),
}

/// Why reads wait for no row that is being written, whatever they ask for: readers see versions of rows, and there are no locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlocked {
    /// All isolation levels of Aurora Babelfish are PostgreSQL's.
    /// https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/babelfish-transaction.html
    Babelfish,
    /// The rows of a memory-optimised table.
    MemoryOptimized,
}

impl std::fmt::Display for Unlocked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Babelfish => "the server is Aurora Babelfish",
            Self::MemoryOptimized => "the table is memory-optimised",
        })
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ColumnInfo {
    /// `column_id`: grows with the order of the columns, with gaps where columns were dropped.
    pub ordinal: i64,
    /// The name.
    pub name: String,
    /// Whether the server says that this is the column asked for as sequence.
    pub is_asked_for: bool,
    /// The type as the table declares it; `None` if the login may not see it.
    pub declared_type: Option<String>,
    /// The type of the system behind an alias, in lower case; a CLR type stands for itself.
    pub base_type: Option<String>,
    /// Whether the type is made of .NET code, such as `geometry` or one of the database's own.
    pub is_clr: bool,
    /// Bytes; -1 for `max`.
    pub max_length: i64,
    /// Digits of a number.
    pub precision: u8,
    /// Digits after the point.
    pub scale: u8,
    /// The collation of text.
    pub collation: Option<String>,
    /// Whether it takes NULL.
    pub is_nullable: bool,
    /// Whether the server counts it.
    pub is_identity: bool,
    /// Whether the server counts it down.
    pub is_descending: bool,
    /// Whether it is computed from others.
    pub computed: Computed,
    /// Whether `SELECT *` leaves it out, as with the period columns of a temporal table.
    pub is_hidden: bool,
    /// Whether logins without UNMASK read something else than what is stored.
    pub is_masked: bool,
    /// Whether the client alone can read it (Always Encrypted).
    pub is_encrypted: bool,
    /// Whether it is sparse.
    pub is_sparse: bool,
    /// Whether it is XML made of the sparse columns.
    pub is_column_set: bool,
}

/// Whether a column is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Computed {
    /// It is stored as written.
    #[default]
    No,
    /// It is computed when it is written, and stored.
    Persisted,
    /// It is computed when it is read.
    OnRead,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexInfo {
    /// `index_id`; 1 is the clustered one.
    pub id: i64,
    /// The name.
    pub name: String,
    /// `type`: 1 clustered, 2 nonclustered, 5 and 6 columnstore, 7 hash.
    pub kind: i64,
    /// Whether no two rows have the same key.
    pub is_unique: bool,
    /// Whether it stands behind the primary key or a UNIQUE constraint.
    pub is_constraint: bool,
    /// Whether it is switched off.
    pub is_disabled: bool,
    /// Whether it covers some of the rows only.
    pub is_filtered: bool,
    /// Whether it is a mere plan of a tuning tool.
    pub is_hypothetical: bool,
    /// The key columns by [`ColumnInfo::ordinal`], in the key's order. Included columns are none.
    pub key: Vec<i64>,
}

/// A row of an answer, by position.
pub trait Cells {
    /// The value at `at`, if the row is that long.
    fn cell(&self, at: usize) -> Option<&ColumnData<'static>>;
}

impl Cells for tiberius::Row {
    fn cell(&self, at: usize) -> Option<&ColumnData<'static>> {
        self.get_column_data(at).ok()
    }
}

impl Cells for Vec<ColumnData<'static>> {
    fn cell(&self, at: usize) -> Option<&ColumnData<'static>> {
        self.get(at)
    }
}

/// The answer is not what [`STATEMENT`] asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the catalog's answer cannot be read: {0}")]
pub struct Unreadable(String);

/// Reads the results of [`STATEMENT`].
///
/// # Errors
/// Results or values are missing, or not of a type that the catalog has. A missing result is never taken for an
/// empty one.
pub fn read<R: Cells>(results: &[Vec<R>]) -> Result<Lookup, Unreadable> {
    let [objects, columns, indexes] = results else {
        return Err(Unreadable(format!("{} results instead of {RESULTS}", results.len())));
    };
    let Some(object) = objects.first() else { return Ok(Lookup::NoSchema) };
    let object = Reader { row: object, result: "object" };
    let Some(name) = object.optional_text(1)? else { return Ok(Lookup::NoObject) };
    Ok(Lookup::Found(Box::new(TableInfo {
        schema: object.text(0)?,
        name,
        kind: kind(&object)?,
        unlocked: unlocked(&object)?,
        columns: columns.iter().map(|row| column(&Reader { row, result: "column" })).collect::<Result<_, _>>()?,
        indexes: index_rows(indexes)?,
    })))
}

fn kind<R: Cells>(object: &Reader<'_, R>) -> Result<ObjectKind, Unreadable> {
    let code = object.text(2)?;
    Ok(match code.trim_end() {
        "U" if object.flag(4)? => ObjectKind::External,
        "U" if object.optional_integer(5)? == Some(1) => ObjectKind::History,
        "U" if object.flag(6)? => ObjectKind::FileTable,
        "U" => ObjectKind::Table,
        "V" => ObjectKind::View,
        "SN" => ObjectKind::Synonym(object.optional_text(3)?.unwrap_or_default()),
        other => ObjectKind::Other(other.to_owned()),
    })
}

/// SQL Server has no property of that name and answers NULL; Babelfish answers 1.
fn unlocked<R: Cells>(object: &Reader<'_, R>) -> Result<Option<Unlocked>, Unreadable> {
    Ok(match (object.optional_text(8)?, object.flag(7)?) {
        (Some(_), _) => Some(Unlocked::Babelfish),
        (None, true) => Some(Unlocked::MemoryOptimized),
        (None, false) => None,
    })
}

fn column<R: Cells>(row: &Reader<'_, R>) -> Result<ColumnInfo, Unreadable> {
    let declared = row.optional_text(3)?;
    let (is_user_defined, is_clr) = (row.flag(4)?, row.flag(5)?);
    let base = base_type(declared.as_deref(), is_user_defined, is_clr, row.optional_text(6)?);
    let computed = match (row.flag(13)?, row.flag(14)?) {
        (false, _) => Computed::No,
        (true, true) => Computed::Persisted,
        (true, false) => Computed::OnRead,
    };
    Ok(ColumnInfo {
        ordinal: row.integer(0)?,
        name: row.text(1)?,
        is_asked_for: row.optional_integer(2)?.is_some(),
        declared_type: declared,
        base_type: base,
        is_clr,
        max_length: row.integer(7)?,
        precision: row.small(8)?,
        scale: row.small(9)?,
        collation: row.optional_text(10)?,
        is_nullable: row.flag(11)?,
        is_identity: row.flag(12)?,
        is_descending: row.optional_float(20)?.is_some_and(|increment| increment < 0.0),
        computed,
        is_hidden: row.flag(15)?,
        is_masked: row.flag(16)?,
        is_encrypted: row.optional_integer(17)?.is_some(),
        is_sparse: row.flag(18)?,
        is_column_set: row.flag(19)?,
    })
}

/// A type of the system stands for itself, but for `sysname`, which is an alias that the system brings along. What is
/// behind an alias is the type whose id is the column's `system_type_id`. Types of .NET code share one such id, and no
/// type has it.
fn base_type(declared: Option<&str>, is_user_defined: bool, is_clr: bool, behind: Option<String>) -> Option<String> {
    let name = match declared {
        Some(name) if is_clr || (!is_user_defined && !name.eq_ignore_ascii_case("sysname")) => Some(name.to_owned()),
        _ => behind,
    };
    name.map(|name| if is_user_defined && is_clr { name } else { name.to_ascii_lowercase() })
}

/// One row per key column becomes one index.
fn index_rows<R: Cells>(rows: &[R]) -> Result<Vec<IndexInfo>, Unreadable> {
    let mut indexes: Vec<IndexInfo> = Vec::new();
    for row in rows {
        let row = Reader { row, result: "index" };
        let (id, column) = (row.integer(0)?, row.integer(9)?);
        if let Some(index) = indexes.last_mut().filter(|index| index.id == id) {
            index.key.push(column);
            continue;
        }
        indexes.push(IndexInfo {
            id,
            name: row.optional_text(1)?.unwrap_or_default(),
            kind: row.integer(2)?,
            is_unique: row.flag(3)?,
            is_constraint: row.flag(4)? || row.flag(5)?,
            is_disabled: row.flag(6)?,
            is_filtered: row.flag(7)?,
            is_hypothetical: row.flag(8)?,
            key: vec![column],
        });
    }
    Ok(indexes)
}

struct Reader<'a, R> {
    row: &'a R,
    result: &'static str,
}

impl<R: Cells> Reader<'_, R> {
    fn optional_text(&self, at: usize) -> Result<Option<String>, Unreadable> {
        match self.row.cell(at) {
            Some(ColumnData::String(text)) => Ok(text.as_deref().map(str::to_owned)),
            other => self.odd(at, "text", other),
        }
    }

    fn text(&self, at: usize) -> Result<String, Unreadable> {
        match self.optional_text(at)? {
            Some(text) => Ok(text),
            None => self.odd(at, "text", None),
        }
    }

    fn optional_float(&self, at: usize) -> Result<Option<f64>, Unreadable> {
        match self.row.cell(at) {
            Some(ColumnData::F64(value)) => Ok(*value),
            other => self.odd(at, "a float", other),
        }
    }

    /// Any of the integer types: which one it is differs between servers, even for a flag.
    fn optional_integer(&self, at: usize) -> Result<Option<i64>, Unreadable> {
        match self.row.cell(at) {
            Some(ColumnData::Bit(value)) => Ok(value.map(i64::from)),
            Some(ColumnData::U8(value)) => Ok(value.map(i64::from)),
            Some(ColumnData::I16(value)) => Ok(value.map(i64::from)),
            Some(ColumnData::I32(value)) => Ok(value.map(i64::from)),
            Some(ColumnData::I64(value)) => Ok(*value),
            other => self.odd(at, "a number", other),
        }
    }

    fn integer(&self, at: usize) -> Result<i64, Unreadable> {
        match self.optional_integer(at)? {
            Some(number) => Ok(number),
            None => self.odd(at, "a number", None),
        }
    }

    /// A number of digits; NULL where the type has none.
    fn small(&self, at: usize) -> Result<u8, Unreadable> {
        let number = self.optional_integer(at)?.unwrap_or_default();
        u8::try_from(number).or_else(|_| self.odd(at, "a small number", self.row.cell(at)))
    }

    /// A flag; NULL where it does not apply.
    fn flag(&self, at: usize) -> Result<bool, Unreadable> {
        Ok(self.optional_integer(at)?.is_some_and(|number| number != 0))
    }

    fn odd<T>(&self, at: usize, wanted: &str, found: Option<&ColumnData<'static>>) -> Result<T, Unreadable> {
        Err(Unreadable(format!("value {at} of the {} result is {found:?} instead of {wanted}", self.result)))
    }
}

#[cfg(test)]
mod tests;
