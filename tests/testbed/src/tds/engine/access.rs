//! How a reader meets the rows of transactions that are still open.

use super::database::{Database, Row, Table};
use super::plan::Line;

/// What a statement does about a row that another transaction has touched and not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Waits for its lock.
    Locking,
    /// Reads the last committed version.
    Versioned,
    /// Reads it as it is.
    Dirty,
    /// Leaves it out.
    ReadPast,
}

/// What a reader finds of a row.
pub enum Found<'a> {
    Row(&'a Line),
    Nothing,
    /// It has to wait.
    Locked,
}

impl Access {
    /// By the hints of the table, else by the session's isolation level and the database's options. On `babelfish` no reader waits.
    pub fn chosen(hints: &[String], level: &str, database: &Database, table: &Table, babelfish: bool) -> Result<Self, String> {
        let mut access = match level {
            "read uncommitted" => Self::Dirty,
            "snapshot" => Self::Versioned,
            "read committed" if database.versioned => Self::Versioned,
            _ => Self::Locking,
        };
        for hint in hints {
            access = match hint.as_str() {
                "nolock" | "readuncommitted" => Self::Dirty,
                "readcommittedlock" | "holdlock" | "serializable" | "repeatableread" | "updlock" | "xlock" | "tablock" => Self::Locking,
                "readpast" => Self::ReadPast,
                "snapshot" => Self::Versioned,
                "readcommitted" | "rowlock" | "paglock" | "forceseek" | "forcescan" => access,
                other => return Err(other.to_owned()),
            };
        }
        // Rows of a memory-optimised table have no locks, and PostgreSQL's readers take none: they see versions whatever the hint.
        Ok(if table.memory_optimized || babelfish { Self::Versioned } else { access })
    }

    pub fn look(self, row: &Row, own: Option<u64>) -> Found<'_> {
        let others = |transaction: Option<u64>| transaction.is_some() && transaction != own;
        let (inserting, deleting) = (others(row.inserted_by), others(row.deleted_by));
        if row.deleted_by.is_some() && !deleting {
            return Found::Nothing;
        }
        match self {
            Self::Locking if inserting || deleting => Found::Locked,
            Self::ReadPast if inserting || deleting => Found::Nothing,
            Self::Versioned if inserting => Found::Nothing,
            Self::Dirty if deleting => Found::Nothing,
            _ => Found::Row(&row.values),
        }
    }
}
