//! Which task owns which table: rendezvous hashing.
//!
//! Each table goes to the task whose hash with it is highest. That makes the assignment a pure function of names and the
//! number of tasks: nothing is stored, every process computes the same, and one more task takes tables from the others
//! without moving any between them.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::assembly::Selection;
use crate::config::Documents;
use crate::sweep::Mode;

/// One task: the tables that one invocation of the sweep function owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The connector's name.
    pub connector: String,
    /// The task's number, from 0.
    pub task: u32,
    /// The number of tasks of the connector: the least of `tasks.max` and its tables.
    pub tasks: u32,
    /// The aliases of its tables, sorted.
    pub tables: Vec<String>,
}

/// What the fan-out function answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The scheduled time, or the id of the request.
    pub tick: Option<String>,
    /// How far the sweeps are to go.
    pub mode: Mode,
    /// The tasks that own a table.
    pub tasks: Vec<Task>,
    /// How many of them were invoked.
    pub invoked: u32,
    /// The tables that `from` has not set back, since their cursors lie before it or they have none; connector/alias each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_rewound: Vec<String>,
}

impl Plan {
    /// The tasks of the selected tables of all connectors; nothing is invoked yet.
    pub fn of(documents: &Documents, selection: &Selection, mode: Mode, tick: Option<String>) -> Self {
        let tasks = documents.connectors.iter().flat_map(|connector| {
            tasks(&connector.name, connector.tables(), connector.tasks_max, |alias| selection.includes(&connector.name, alias))
        });
        Self { tick, mode, tasks: tasks.collect(), invoked: 0, not_rewound: Vec::new() }
    }
}

/// The tasks of a connector that own one of its tables, by number. `wanted` filters tables after the assignment, so
/// that a filter never changes who owns a table.
pub fn tasks(connector: &str, tables: &[String], tasks_max: u32, wanted: impl Fn(&str) -> bool) -> Vec<Task> {
    let count = tasks_max.min(u32::try_from(tables.len()).unwrap_or(u32::MAX)).max(1);
    let mut tasks: Vec<Task> =
        (0..count).map(|task| Task { connector: connector.to_owned(), task, tasks: count, tables: Vec::new() }).collect();
    let mut sorted: Vec<&String> = tables.iter().filter(|table| wanted(table)).collect();
    sorted.sort();
    for table in sorted {
        if let Some(task) = tasks.iter_mut().max_by_key(|task| (score(connector, table, task.task), task.task)) {
            task.tables.push(table.clone());
        }
    }
    tasks.retain(|task| !task.tables.is_empty());
    tasks
}

/// How strongly a task wants a table. The connector and the alias are delimited by their lengths.
fn score(connector: &str, table: &str, task: u32) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(task.to_be_bytes());
    for part in [connector, table] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("table{i}")).collect()
    }

    fn owner(tasks: &[Task], table: &str) -> u32 {
        tasks.iter().find(|task| task.tables.iter().any(|own| own == table)).expect("every table has an owner").task
    }

    #[test]
    fn every_table_has_one_owner_and_no_task_is_empty() {
        for count in 1..20 {
            let tables = aliases(count);
            let tasks = tasks("c", &tables, 4, |_| true);
            let mut owned: Vec<_> = tasks.iter().flat_map(|task| task.tables.clone()).collect();
            owned.sort();
            let mut expected = tables.clone();
            expected.sort();
            assert_eq!(owned, expected);
            assert!(tasks.iter().all(|task| !task.tables.is_empty() && task.tasks == 4.min(count as u32)));
        }
    }

    #[test]
    fn one_more_task_moves_only_the_tables_that_it_wins() {
        let tables = aliases(200);
        for max in 1..8 {
            let (before, after) = (tasks("c", &tables, max, |_| true), tasks("c", &tables, max + 1, |_| true));
            for table in &tables {
                let (old, new) = (owner(&before, table), owner(&after, table));
                assert!(old == new || new == max, "{table} moved from {old} to {new}");
            }
        }
    }

    #[test]
    fn a_filter_changes_no_owner_and_no_task_count() {
        let tables = aliases(10);
        let all = tasks("c", &tables, 3, |_| true);
        let some = tasks("c", &tables, 3, |table| table == "table7");
        assert_eq!(some.len(), 1);
        assert_eq!((some[0].task, some[0].tasks), (owner(&all, "table7"), 3));
    }

    #[test]
    fn the_assignment_is_the_same_in_every_version() {
        let shown = |tables: &[&str], max| -> Vec<(u32, String)> {
            let tables: Vec<String> = tables.iter().map(|table| (*table).to_owned()).collect();
            tasks("servicenow-source", &tables, max, |_| true).iter().map(|task| (task.task, task.tables.join(","))).collect()
        };
        // The specification's own example: two tables and two tasks give each table its own.
        assert_eq!(shown(&["inc", "chg"], 2), [(0, "inc".to_owned()), (1, "chg".to_owned())]);
        assert_eq!(shown(&["inc", "chg", "prb"], 3), [(0, "inc,prb".to_owned()), (1, "chg".to_owned())]);
    }
}
