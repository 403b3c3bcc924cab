//! Tables, their rows, and the indexes that keep a page cheap.
//!
//! An index is a vector of row numbers, sorted by (timestamp, identity) through the table's own collation. A sorted
//! vector and not a tree, for two reasons: the number of rows between two cursors is a subtraction, so a count costs no
//! scan; and a million entries are four megabytes. Its price is a move of that memory for a late insert, which tests
//! make by the handful; bulk loads append.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::acl::Access;
use super::collation::Collation;
use super::row::{Cell, Column, Fields, Kind, Row};

/// A column of a table to create.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// What it holds.
    #[serde(default)]
    pub kind: Kind,
    /// The table that a reference points to.
    #[serde(default)]
    pub reference: Option<String>,
}

impl ColumnSpec {
    /// A column of this kind.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind, reference: None }
    }

    /// A reference to a table.
    pub fn reference(name: impl Into<String>, table: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Text, reference: Some(table.into()) }
    }
}

/// The columns that the instance writes itself.
pub(super) const RESERVED: [(&str, Kind); 4] =
    [("sys_id", Kind::Id), ("sys_updated_on", Kind::DateTime), ("sys_created_on", Kind::DateTime), ("sys_mod_count", Kind::Number)];

/// A row as the truth of a test: timestamp, identity, modification count.
pub type Version = (String, String, u64);

/// Row numbers in the order of (a timestamp column, the identity).
#[derive(Debug)]
pub(super) struct Index {
    pub column: usize,
    pub slots: Vec<u32>,
}

/// A table, or a view once it is materialised.
#[derive(Debug)]
pub(super) struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    positions: HashMap<String, usize>,
    pub id_column: usize,
    rows: Vec<Option<Row>>,
    by_id: HashMap<Box<str>, u32>,
    pub indexes: Vec<Index>,
    pub collation: Collation,
    pub access: Access,
    /// Counts changes, so that a view knows when it is stale.
    pub revision: u64,
    /// Rows that a query of this view may bring to light at most.
    pub row_cap: Option<usize>,
}

impl Table {
    pub fn new(name: &str, collation: Collation, columns: &[ColumnSpec], without: &[String]) -> Self {
        let reserved = RESERVED
            .iter()
            .filter(|(column, _)| *column == "sys_id" || !without.iter().any(|w| w == column))
            .map(|(column, kind)| ColumnSpec::new(*column, *kind));
        let all: Vec<ColumnSpec> = reserved.chain(columns.iter().cloned()).collect();
        Self::with_identity(name, collation, &all, "sys_id", &["sys_updated_on", "sys_created_on"])
    }

    /// A table whose identity and timestamps have other names, as a view's have.
    pub fn with_identity(name: &str, collation: Collation, columns: &[ColumnSpec], identity: &str, stamps: &[&str]) -> Self {
        let mut table = Self {
            name: name.to_owned(),
            columns: Vec::new(),
            positions: HashMap::new(),
            id_column: 0,
            rows: Vec::new(),
            by_id: HashMap::new(),
            indexes: Vec::new(),
            collation,
            access: Access::default(),
            revision: 0,
            row_cap: None,
        };
        for column in columns {
            table.add_column(column);
        }
        table.id_column = table.column(identity).unwrap_or(0);
        let stamped = stamps.iter().filter_map(|stamp| table.column(stamp));
        table.indexes = stamped.map(|column| Index { column, slots: Vec::new() }).collect();
        table
    }

    fn add_column(&mut self, spec: &ColumnSpec) -> usize {
        if let Some(position) = self.column(&spec.name) {
            return position;
        }
        let position = self.columns.len();
        self.columns.push(Column::new(&spec.name, spec.kind, spec.reference.clone()));
        self.positions.insert(spec.name.clone(), position);
        position
    }

    pub fn add_columns(&mut self, columns: &[ColumnSpec]) {
        for column in columns {
            self.add_column(column);
        }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    pub fn row(&self, slot: u32) -> Option<&Row> {
        self.rows.get(slot as usize)?.as_ref()
    }

    pub fn value(&self, slot: u32, column: usize) -> Cow<'_, str> {
        self.row(slot).map_or(Cow::Borrowed(""), |row| row.value(column))
    }

    pub fn id(&self, slot: u32) -> Cow<'_, str> {
        self.value(slot, self.id_column)
    }

    pub fn find(&self, id: &str) -> Option<u32> {
        self.by_id.get(&*self.collation.fold(id)).copied()
    }

    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.rows.iter().enumerate().filter(|(_, row)| row.is_some()).map(|(slot, _)| slot as u32)
    }

    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Inserts rows whose reserved fields are already filled in; those before a faulty one stay.
    pub fn insert_many(&mut self, rows: impl IntoIterator<Item = Fields>) -> Result<usize, String> {
        let mut cells = Vec::new();
        for fields in rows {
            for (name, _) in fields.iter() {
                self.add_column(&ColumnSpec::new(name, Kind::Text));
            }
            let mut row = vec![Cell::default(); self.columns.len()];
            for (name, cell) in fields.iter() {
                row[self.positions[name]] = cell.clone();
            }
            cells.push(row);
        }
        self.insert_cells(cells)
    }

    /// Inserts rows given as one cell per column; columns left out at the end are empty.
    pub fn insert_cells(&mut self, rows: impl IntoIterator<Item = Vec<Cell>>) -> Result<usize, String> {
        let mut fresh = Vec::new();
        let mut failure = None;
        for cells in rows {
            match self.store(&cells) {
                Ok(slot) => fresh.push(slot),
                Err(why) => {
                    failure = Some(why);
                    break;
                }
            }
        }
        let inserted = fresh.len();
        self.index(fresh);
        failure.map_or(Ok(inserted), Err)
    }

    fn store(&mut self, cells: &[Cell]) -> Result<u32, String> {
        let id = cells.get(self.id_column).map(|cell| cell.value.clone()).unwrap_or_default();
        if id.is_empty() {
            return Err(format!("a row of `{}` has no {}", self.name, self.columns[self.id_column].name));
        }
        if self.find(&id).is_some() {
            return Err(format!("table `{}` has a row {id} already", self.name));
        }
        let slot = u32::try_from(self.rows.len()).map_err(|_| "too many rows".to_owned())?;
        self.rows.push(Some(Row::build(&self.columns, cells)));
        self.by_id.insert(self.collation.fold(&id).into(), slot);
        self.revision += 1;
        Ok(slot)
    }

    /// Writes fields over a row's own; its identity stays.
    pub fn update(&mut self, id: &str, fields: &Fields) -> Result<(), String> {
        let slot = self.find(id).ok_or_else(|| format!("table `{}` has no row {id}", self.name))?;
        for (name, _) in fields.iter() {
            self.add_column(&ColumnSpec::new(name, Kind::Text));
        }
        let row = self.row(slot).ok_or_else(|| format!("row {id} is gone"))?;
        let mut cells = row.cells(self.columns.len());
        for (name, cell) in fields.iter() {
            let position = self.positions[name];
            if position != self.id_column {
                cells[position] = cell.clone();
            }
        }
        self.unindex(slot);
        self.rows[slot as usize] = Some(Row::build(&self.columns, &cells));
        self.index(vec![slot]);
        self.revision += 1;
        Ok(())
    }

    pub fn delete(&mut self, id: &str) -> Result<(), String> {
        let slot = self.find(id).ok_or_else(|| format!("table `{}` has no row {id}", self.name))?;
        self.unindex(slot);
        self.by_id.remove(&*self.collation.fold(id));
        self.rows[slot as usize] = None;
        self.revision += 1;
        Ok(())
    }

    /// Sorts everything anew under another collation.
    pub fn recollate(&mut self, collation: Collation) -> Result<(), String> {
        let slots: Vec<u32> = self.slots().collect();
        let by_id: HashMap<Box<str>, u32> = slots.iter().map(|slot| (collation.fold(&self.id(*slot)).into(), *slot)).collect();
        if by_id.len() != slots.len() {
            return Err(format!("two rows of `{}` have one identity under that collation", self.name));
        }
        self.collation = collation;
        self.by_id = by_id;
        for index in &mut self.indexes {
            index.slots.clear();
        }
        self.revision += 1;
        self.index(slots);
        Ok(())
    }

    fn index(&mut self, mut fresh: Vec<u32>) {
        for number in 0..self.indexes.len() {
            let column = self.indexes[number].column;
            let mut known = std::mem::take(&mut self.indexes[number].slots);
            fresh.sort_by(|a, b| self.compare(column, *a, *b));
            let appends = match (known.last(), fresh.first()) {
                (Some(last), Some(first)) => self.compare(column, *last, *first).is_lt(),
                _ => true,
            };
            if appends {
                known.extend_from_slice(&fresh);
            } else if fresh.len() <= 16 {
                for slot in &fresh {
                    let place = known.partition_point(|other| self.compare(column, *other, *slot).is_lt());
                    known.insert(place, *slot);
                }
            } else {
                known.extend_from_slice(&fresh);
                known.sort_by(|a, b| self.compare(column, *a, *b));
            }
            self.indexes[number].slots = known;
        }
    }

    fn unindex(&mut self, slot: u32) {
        for number in 0..self.indexes.len() {
            let index = &self.indexes[number];
            let column = index.column;
            let place = index.slots.partition_point(|other| self.compare(column, *other, slot).is_lt());
            if self.indexes[number].slots.get(place) == Some(&slot) {
                self.indexes[number].slots.remove(place);
            }
        }
    }

    /// (timestamp, identity); two identities that the collation holds equal cannot both be in the table.
    fn compare(&self, column: usize, a: u32, b: u32) -> Ordering {
        let stamps = self.value(a, column).cmp(&self.value(b, column));
        stamps.then_with(|| self.collation.compare(&self.id(a), &self.id(b)))
    }

    /// Is the row kept from the user by a row ACL? Asked after the limit, as the instance does.
    pub fn is_hidden(&self, slot: u32) -> bool {
        self.access.hides(&|name| self.column(name).map(|column| self.value(slot, column).into_owned()))
    }

    /// What a complete sweep must have delivered, read off the rows themselves: no line of the query code is involved.
    pub fn visible_versions(&self) -> Vec<Version> {
        let stamp = self.indexes.first().map(|index| index.column);
        let count = self.column(&self.columns[self.id_column].name.replace("sys_id", "sys_mod_count"));
        let mut versions: Vec<Version> = self
            .slots()
            .filter(|slot| !self.is_hidden(*slot))
            .map(|slot| {
                let text = |column: Option<usize>| column.map(|c| self.value(slot, c).into_owned()).unwrap_or_default();
                (text(stamp), self.id(slot).into_owned(), text(count).parse().unwrap_or(0))
            })
            .collect();
        versions.sort();
        versions
    }
}
