//! Database views: rows of one table, joined to others, with a prefix before every field.
//!
//! A view has no `sys_id` of its own: its identity is the prefixed one of its first table, `inc_sys_id`, and so are its
//! timestamps. It is materialised into an ordinary table when it is asked for and kept until a base table changes, so
//! that paging through a view costs what paging through a table does.

use serde::{Deserialize, Serialize};

use super::data::{ColumnSpec, RESERVED, Table};
use super::database::Database;
use super::row::{Cell, Fields};

/// One table of a view.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewPart {
    /// The base table.
    pub table: String,
    /// What stands before its fields; an underscore is added, as the instance does.
    pub prefix: String,
    /// For every part but the first: (a prefixed field of an earlier part, the field of this table that equals it).
    #[serde(default)]
    pub on: Option<(String, String)>,
}

/// A view: its parts and the number of rows that the instance lets a query of it see.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewSpec {
    /// The parts, the one that gives the identity first.
    pub parts: Vec<ViewPart>,
    /// Rows beyond this many are missing from any one query, and nothing says which.
    #[serde(default)]
    pub row_cap: Option<usize>,
}

/// A view and the state of its tables when it was last materialised.
#[derive(Debug)]
pub(super) struct View {
    spec: ViewSpec,
    seen: Option<Vec<Option<u64>>>,
}

impl View {
    pub fn new(spec: ViewSpec) -> Result<Self, String> {
        let Some((_, joined)) = spec.parts.split_first() else {
            return Err("a view has at least one table".to_owned());
        };
        if let Some(part) = joined.iter().find(|part| part.on.is_none()) {
            return Err(format!("the part `{}` needs `on`: how it joins", part.table));
        }
        Ok(Self { spec, seen: None })
    }
}

impl Database {
    /// Brings the view of this name up to date, if there is one.
    pub fn refresh(&mut self, name: &str) -> Result<(), String> {
        let Some(view) = self.views.get(name) else {
            return Ok(());
        };
        let now = view.spec.parts.iter().map(|p| self.table(&p.table).map(|t| t.revision)).collect();
        if view.seen.as_ref() == Some(&now) && self.table(name).is_some() {
            return Ok(());
        }
        let mut fresh = self.materialise(name, &view.spec)?;
        if let Some(old) = self.tables.remove(name) {
            fresh.access = old.access;
        }
        fresh.access.id_field = Some(fresh.columns[fresh.id_column].name.clone());
        self.tables.insert(name.to_owned(), fresh);
        if let Some(view) = self.views.get_mut(name) {
            view.seen = Some(now);
        }
        Ok(())
    }

    fn materialise(&self, name: &str, spec: &ViewSpec) -> Result<Table, String> {
        let mut columns = Vec::new();
        for part in &spec.parts {
            let base = self.table(&part.table).ok_or_else(|| format!("view `{name}`: no table `{}`", part.table))?;
            columns.extend(base.columns.iter().map(|column| ColumnSpec {
                name: format!("{}_{}", part.prefix, column.name),
                kind: column.kind,
                reference: column.reference.clone(),
            }));
        }
        let [identity, updated, created] = [0, 1, 2].map(|reserved| format!("{}_{}", spec.parts[0].prefix, RESERVED[reserved].0));
        let mut table = Table::with_identity(name, self.collation, &columns, &identity, &[&updated, &created]);
        table.row_cap = spec.row_cap;
        table.insert_many(self.joined(spec))?;
        Ok(table)
    }

    /// Inner joins from left to right; the first match of a joined table, so that an identity stays one row.
    fn joined(&self, spec: &ViewSpec) -> Vec<Fields> {
        let Some(first) = self.table(&spec.parts[0].table) else {
            return Vec::new();
        };
        let rows = first.slots().filter_map(|slot| {
            let mut fields = prefixed(first, slot, &spec.parts[0].prefix);
            for part in &spec.parts[1..] {
                let base = self.table(&part.table)?;
                let (left, right) = part.on.as_ref()?;
                let wanted = fields.get(left)?.value.clone();
                let column = base.column(right)?;
                let matching = if column == base.id_column {
                    base.find(&wanted)
                } else {
                    base.slots().find(|other| base.value(*other, column) == wanted)
                }?;
                let more = prefixed(base, matching, &part.prefix);
                for (name, cell) in more.iter() {
                    fields.set(name, cell.clone());
                }
            }
            Some(fields)
        });
        rows.collect()
    }
}

fn prefixed(table: &Table, slot: u32, prefix: &str) -> Fields {
    let cells: Vec<Cell> = table.row(slot).map(|row| row.cells(table.columns.len())).unwrap_or_default();
    table.columns.iter().zip(cells).map(|(column, cell)| (format!("{prefix}_{}", column.name), cell)).collect()
}
