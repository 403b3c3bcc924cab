//! The tables and views of an instance together: references between them, and the fields that it writes itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::collation::Collation;
use super::data::{RESERVED, Table};
use super::row::{Column, Fields};
use super::view::View;

/// Every table and view of the instance.
#[derive(Debug, Default)]
pub(super) struct Database {
    pub tables: BTreeMap<String, Table>,
    pub views: BTreeMap<String, View>,
    pub collation: Collation,
}

impl Database {
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// The table of this name, created with the reserved columns when there is none.
    pub fn table_mut(&mut self, name: &str) -> &mut Table {
        let collation = self.collation;
        self.tables.entry(name.to_owned()).or_insert_with(|| Table::new(name, collation, &[], &[]))
    }

    pub fn existing(&mut self, name: &str) -> Result<&mut Table, String> {
        self.tables.get_mut(name).ok_or_else(|| format!("there is no table `{name}`"))
    }

    /// Follows references from a row along a dotted path and gives the value at its end.
    pub fn walk<'a>(&'a self, table: &'a Table, slot: u32, path: &[usize]) -> Cow<'a, str> {
        let Some((first, rest)) = path.split_first() else {
            return Cow::Borrowed("");
        };
        if rest.is_empty() {
            return table.value(slot, *first);
        }
        let target = table.columns[*first].reference.as_deref().and_then(|name| self.table(name));
        let found = target.and_then(|target| Some((target, target.find(&table.value(slot, *first))?)));
        found.map_or(Cow::Borrowed(""), |(target, slot)| self.walk(target, slot, rest))
    }

    /// The columns that a name stands for: one, or one per reference on the way.
    pub fn resolve(&self, table: &Table, name: &str) -> Option<Vec<usize>> {
        if let Some(column) = table.column(name) {
            return Some(vec![column]);
        }
        let (head, tail) = name.split_once('.')?;
        let first = table.column(head)?;
        let target = self.table(table.columns[first].reference.as_deref()?)?;
        let mut path = self.resolve(target, tail)?;
        path.insert(0, first);
        Some(path)
    }

    /// The column at the end of a path.
    pub fn column_at<'a>(&'a self, table: &'a Table, path: &[usize]) -> Option<&'a Column> {
        let (first, rest) = path.split_first()?;
        let column = table.columns.get(*first)?;
        if rest.is_empty() {
            return Some(column);
        }
        self.column_at(self.table(column.reference.as_deref()?)?, rest)
    }

    pub fn recollate(&mut self, collation: Collation) -> Result<(), String> {
        self.collation = collation;
        self.tables.values_mut().try_for_each(|table| table.recollate(collation))
    }
}

/// Fills in what the instance writes itself when a row is inserted.
pub(super) fn complete(fields: &mut Fields, now: &str, id: impl FnOnce() -> String) {
    if fields.get("sys_id").is_none() {
        fields.set("sys_id", id());
    }
    if fields.get("sys_updated_on").is_none() {
        let stamp = fields.get("sys_created_on").map_or_else(|| now.to_owned(), |cell| cell.value.clone());
        fields.set("sys_updated_on", stamp);
    }
    if fields.get("sys_created_on").is_none() {
        let stamp = fields.get("sys_updated_on").map_or_else(|| now.to_owned(), |cell| cell.value.clone());
        fields.set("sys_created_on", stamp);
    }
    if fields.get("sys_mod_count").is_none() {
        fields.set("sys_mod_count", "0");
    }
}

/// Fills in what the instance writes itself when a row is changed.
pub(super) fn touch(table: &Table, id: &str, fields: &mut Fields, now: &str) {
    if fields.get("sys_updated_on").is_none() && table.column("sys_updated_on").is_some() {
        fields.set("sys_updated_on", now);
    }
    let counted = table.find(id).zip(table.column("sys_mod_count"));
    if let (None, Some((slot, column))) = (fields.get("sys_mod_count"), counted) {
        let count = table.value(slot, column).parse::<u64>().unwrap_or(0);
        fields.set("sys_mod_count", (count + 1).to_string());
    }
}

/// Removes the reserved fields that a table was created without, so that an insert does not bring them back.
pub(super) fn only_known_reserved(table: &Table, fields: Fields) -> Fields {
    let reserved = |name: &str| RESERVED.iter().any(|(column, _)| *column == name);
    fields
        .iter()
        .filter(|(name, _)| !reserved(name) || table.column(name).is_some())
        .map(|(name, cell)| (name.to_owned(), cell.clone()))
        .collect()
}
