//! What the server holds: databases, tables, rows and logins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::collation::Collation;
use super::super::sql::{Expr, Query};
use super::super::types::Type;
use super::super::value::Value;
use super::error::SqlError;

/// Who may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// A member of `sysadmin` sees and may do everything; the others may read what is not denied to them.
    pub administrator: bool,
    /// The databases that it may open; empty for all.
    pub databases: Vec<String>,
}

/// Everything that connections share.
#[derive(Debug)]
pub struct World {
    pub server_name: String,
    pub collation: &'static Collation,
    pub babelfish: bool,
    pub logins: Vec<Login>,
    pub databases: Vec<Database>,
    /// The transactions that are open.
    pub open: BTreeSet<u64>,
    next_transaction: u64,
    /// What `rowversion` gives next; one counter per server is as good as one per database.
    pub row_version: u64,
    /// The clock of `SYSUTCDATETIME()`: days since 0001-01-01 and units of 100 ns.
    pub now: fn() -> (i32, u64),
}

#[derive(Debug)]
pub struct Database {
    pub name: String,
    pub collation: &'static Collation,
    /// `READ_COMMITTED_SNAPSHOT`: readers see the last committed row and wait for nobody.
    pub versioned: bool,
    pub snapshot: bool,
    pub read_only: bool,
    /// Set by the fault of a database that cannot be opened.
    pub offline: bool,
    pub schemas: Vec<(i32, String)>,
    pub objects: Vec<Object>,
    pub alias_types: Vec<AliasType>,
    pub denials: Vec<Denial>,
    next_id: i32,
}

#[derive(Debug, Clone)]
pub struct AliasType {
    pub id: i32,
    pub schema: i32,
    pub name: String,
    pub base: Type,
    pub nullable: bool,
}

/// What a login is denied. No columns means the whole object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub login: String,
    pub object: i32,
    pub permission: String,
    pub columns: Vec<String>,
}

#[derive(Debug)]
pub struct Object {
    pub id: i32,
    pub schema: i32,
    pub name: String,
    pub kind: Kind,
}

#[derive(Debug)]
pub enum Kind {
    Table(Box<Table>),
    View { query: Box<Query>, text: String },
    Synonym(String),
    Procedure,
}

impl Object {
    /// `sys.objects.type` and `.type_desc`.
    pub fn type_code(&self) -> (&'static str, &'static str) {
        match &self.kind {
            Kind::Table(_) => ("U ", "USER_TABLE"),
            Kind::View { .. } => ("V ", "VIEW"),
            Kind::Synonym(_) => ("SN", "SYNONYM"),
            Kind::Procedure => ("P ", "SQL_STORED_PROCEDURE"),
        }
    }

    pub fn table(&self) -> Option<&Table> {
        if let Kind::Table(table) = &self.kind { Some(table) } else { None }
    }

    pub fn table_mut(&mut self) -> Option<&mut Table> {
        if let Kind::Table(table) = &mut self.kind { Some(table) } else { None }
    }
}

#[derive(Debug, Clone)]
pub struct Column {
    pub id: i32,
    pub name: String,
    pub ty: Type,
    /// The user type, when it is an alias.
    pub alias: Option<i32>,
    pub nullable: bool,
    /// Seed, step, and the last value that was given out.
    pub identity: Option<(i64, i64, Option<i64>)>,
    pub default: Option<Expr>,
    pub computed: Option<(Expr, String, bool)>,
    pub mask: Option<String>,
    pub encryption: Option<u8>,
    pub sparse: bool,
    pub column_set: bool,
    pub hidden: bool,
    pub generated: u8,
}

#[derive(Debug, Clone)]
pub struct Index {
    pub id: i32,
    pub name: String,
    /// 1 clustered, 2 not, 5 and 6 columnstore, 7 hash.
    pub kind: u8,
    pub unique: bool,
    pub primary: bool,
    pub constraint: bool,
    pub disabled: bool,
    pub filter: Option<String>,
    pub ignore_duplicates: bool,
    /// Column and whether it descends.
    pub key: Vec<(i32, bool)>,
    pub included: Vec<i32>,
}

#[derive(Debug, Default)]
pub struct Table {
    pub columns: Vec<Column>,
    pub indexes: Vec<Index>,
    pub external: bool,
    pub file_table: bool,
    pub node: bool,
    pub edge: bool,
    pub memory_optimized: bool,
    pub ledger: bool,
    /// 0 for an ordinary table, 1 for a history table, 2 for the one with a history.
    pub temporal: u8,
    pub history: Option<i32>,
    pub rows: BTreeMap<u64, Row>,
    /// Per index with one whole-number key: the rows in its order. The indexes are those of `indexes`, by position.
    pub orders: BTreeMap<usize, BTreeSet<(i128, u64)>>,
    /// What an open transaction has done, in order: the row, and whether it was inserted.
    pub touched: BTreeMap<u64, Vec<(u64, bool)>>,
    /// The number of the last row, and of the last column: neither is used again.
    pub last_row: u64,
    pub last_column: i32,
}

/// A row and the open transactions that it belongs to.
#[derive(Debug, Clone)]
pub struct Row {
    pub values: Arc<[Value]>,
    pub inserted_by: Option<u64>,
    pub deleted_by: Option<u64>,
}

impl World {
    pub fn new(now: fn() -> (i32, u64)) -> Self {
        let collation = Collation::default_of_server();
        let mut world = Self {
            server_name: "TESTSQL".to_owned(),
            collation,
            babelfish: false,
            logins: Vec::new(),
            databases: Vec::new(),
            open: BTreeSet::new(),
            next_transaction: 0,
            row_version: 2000,
            now,
        };
        for name in ["master", "tempdb"] {
            world.databases.push(Database::new(name, collation));
        }
        world
    }

    pub fn database(&self, name: &str) -> Option<usize> {
        self.databases.iter().position(|database| self.collation.compare(&database.name, name).is_eq())
    }

    pub fn begin(&mut self) -> u64 {
        self.next_transaction += 1;
        self.open.insert(self.next_transaction);
        self.next_transaction
    }

    /// Ends a transaction: its rows become everybody's, or as if they had never been.
    pub fn finish(&mut self, transaction: u64, commit: bool) {
        self.open.remove(&transaction);
        let tables = self.databases.iter_mut().flat_map(|database| &mut database.objects).filter_map(Object::table_mut);
        for table in tables {
            table.finish(transaction, commit);
        }
    }
}

impl World {
    /// How much a transaction has done to each table so far.
    pub fn marks(&self, transaction: u64) -> Vec<(usize, i32, usize)> {
        let mut marks = Vec::new();
        for (number, database) in self.databases.iter().enumerate() {
            for object in &database.objects {
                if let Some(done) = object.table().and_then(|table| table.touched.get(&transaction)) {
                    marks.push((number, object.id, done.len()));
                }
            }
        }
        marks
    }

    /// Takes back what a transaction has done since.
    pub fn undo(&mut self, transaction: u64, marks: &[(usize, i32, usize)]) {
        for (number, database) in self.databases.iter_mut().enumerate() {
            for object in &mut database.objects {
                let mark = marks.iter().find(|mark| (mark.0, mark.1) == (number, object.id)).map_or(0, |mark| mark.2);
                if let Some(table) = object.table_mut() {
                    table.undo(transaction, mark);
                }
            }
        }
    }
}

impl Database {
    pub fn new(name: &str, collation: &'static Collation) -> Self {
        Self {
            name: name.to_owned(),
            collation,
            versioned: false,
            snapshot: false,
            read_only: false,
            offline: false,
            schemas: vec![(1, "dbo".to_owned()), (3, "INFORMATION_SCHEMA".to_owned()), (4, "sys".to_owned())],
            objects: Vec::new(),
            alias_types: Vec::new(),
            denials: Vec::new(),
            next_id: 245_575_913,
        }
    }

    /// Names compare under the database's collation.
    pub fn same(&self, left: &str, right: &str) -> bool {
        self.collation.compare(left, right).is_eq()
    }

    pub fn schema(&self, name: &str) -> Option<i32> {
        self.schemas.iter().find(|(_, known)| self.same(known, name)).map(|(id, _)| *id)
    }

    pub fn schema_name(&self, id: i32) -> &str {
        self.schemas.iter().find(|(known, _)| *known == id).map_or("", |(_, name)| name)
    }

    pub fn new_id(&mut self) -> i32 {
        // Numbers of a real server look like this too: far apart, in no order that anybody may rely on.
        self.next_id = (self.next_id + 16_000_057) % i32::MAX;
        self.next_id
    }

    pub fn find(&self, schema: Option<&str>, name: &str) -> Option<usize> {
        let schema = self.schema(schema.unwrap_or("dbo"))?;
        self.objects.iter().position(|object| object.schema == schema && self.same(&object.name, name))
    }

    pub fn object(&self, id: i32) -> Option<&Object> {
        self.objects.iter().find(|object| object.id == id)
    }

    /// Does a login see that the object exists?
    pub fn shows(&self, object: i32, login: &Login) -> bool {
        login.administrator || !self.denied(object, login, "view definition", None)
    }

    /// Is the permission denied on the object, or on this column of it?
    pub fn denied(&self, object: i32, login: &Login, permission: &str, column: Option<&str>) -> bool {
        !login.administrator
            && self.denials.iter().any(|denial| {
                denial.object == object
                    && denial.permission == permission
                    && denial.login.eq_ignore_ascii_case(&login.name)
                    && match column {
                        None => denial.columns.is_empty(),
                        Some(column) => denial.columns.iter().any(|denied| self.same(denied, column)),
                    }
            })
    }
}

impl Table {
    pub fn new_column_id(&mut self) -> i32 {
        self.last_column += 1;
        self.last_column
    }

    /// The place of a column by its number.
    pub fn place(&self, id: i32) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    pub fn add_index(&mut self, mut index: Index) {
        // 0 is the heap; 1 the clustered index.
        let clustered = matches!(index.kind, 1 | 5);
        index.id = if clustered { 1 } else { 1 + self.indexes.iter().map(|index| index.id.max(1)).max().unwrap_or(1) };
        let at = self.indexes.len();
        self.indexes.push(index);
        self.order(at);
    }

    /// Makes the order of an index with one whole-number key.
    fn order(&mut self, at: usize) {
        let Some(place) = self.ordered_column(at) else { return };
        let order = self.rows.iter().filter_map(|(id, row)| Some((row.values.get(place)?.integer()?, *id))).collect();
        self.orders.insert(at, order);
    }

    pub fn reorder(&mut self) {
        self.orders.clear();
        for at in 0..self.indexes.len() {
            self.order(at);
        }
    }

    /// The place of the column, if the index has one ascending key that is a whole number.
    pub fn ordered_column(&self, at: usize) -> Option<usize> {
        let index = self.indexes.get(at)?;
        let [(column, false)] = index.key[..] else { return None };
        if !matches!(index.kind, 1 | 2) || index.filter.is_some() || index.disabled {
            return None;
        }
        let place = self.place(column)?;
        let ty = self.columns[place].ty;
        let whole = ty.is_integer() || (ty.is_decimal() && ty.precision_scale().1 == 0);
        (whole && self.columns[place].mask.is_none() && self.columns[place].encryption.is_none()).then_some(place)
    }

    pub fn insert(&mut self, values: Vec<Value>, transaction: u64) -> u64 {
        self.last_row += 1;
        let id = self.last_row;
        for at in 0..self.indexes.len() {
            if let Some(key) = self.ordered_column(at).and_then(|place| values[place].integer()) {
                self.orders.entry(at).or_default().insert((key, id));
            }
        }
        self.rows.insert(id, Row { values: values.into(), inserted_by: Some(transaction), deleted_by: None });
        self.touched.entry(transaction).or_default().push((id, true));
        id
    }

    /// Deletes a row as far as this transaction is concerned.
    pub fn delete(&mut self, id: u64, transaction: u64) {
        if let Some(row) = self.rows.get_mut(&id) {
            row.deleted_by = Some(transaction);
            self.touched.entry(transaction).or_default().push((id, false));
        }
    }

    pub fn remove(&mut self, id: u64) {
        let Some(row) = self.rows.remove(&id) else { return };
        for at in 0..self.indexes.len() {
            if let Some(key) = self.ordered_column(at).and_then(|place| row.values[place].integer()) {
                self.orders.entry(at).or_default().remove(&(key, id));
            }
        }
    }

    fn undo(&mut self, transaction: u64, mark: usize) {
        let Some(done) = self.touched.get_mut(&transaction) else { return };
        for (id, inserted) in done.split_off(mark).into_iter().rev() {
            if inserted {
                self.remove(id);
            } else if let Some(row) = self.rows.get_mut(&id) {
                row.deleted_by = None;
            }
        }
    }

    fn finish(&mut self, transaction: u64, commit: bool) {
        for (id, _) in self.touched.remove(&transaction).unwrap_or_default() {
            let Some(row) = self.rows.get_mut(&id) else { continue };
            let (inserted, deleted) = (row.inserted_by == Some(transaction), row.deleted_by == Some(transaction));
            if (deleted && commit) || (inserted && !commit) {
                self.remove(id);
                continue;
            }
            if inserted {
                row.inserted_by = None;
            }
            if deleted {
                row.deleted_by = None;
            }
        }
    }

    /// The rows that are committed, in the order in which they were inserted: the truth that a test compares with.
    pub fn committed(&self) -> impl Iterator<Item = &Arc<[Value]>> {
        self.rows.values().filter(|row| row.inserted_by.is_none()).map(|row| &row.values)
    }

    pub fn column(&self, name: &str, database: &Database) -> Result<usize, SqlError> {
        let found = self.columns.iter().position(|column| database.same(&column.name, name));
        found.ok_or_else(|| SqlError::invalid_column(name))
    }
}
