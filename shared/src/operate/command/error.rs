//! Why a command is not carried out.

use super::Place;
use crate::assembly;
use crate::cursor::{Moved, Refusal, StoreError};
use crate::operate::rfc3339;

/// Why a command is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no cursor yet.
    #[error("{table}: there is no cursor in {store} yet: the table was never swept, and its first sweep starts where its document says")]
    Missing {
        /// Connector and alias.
        table: String,
        /// The store.
        store: String,
    },
    /// A sweep is under way.
    #[error("{table}: a sweep holds the lease {}; wait for its end, or stop it, and try again", until(*until_ms))]
    Leased {
        /// Connector and alias.
        table: String,
        /// When the lease ends by itself, in epoch milliseconds.
        until_ms: i64,
    },
    /// The position lies after the cursor.
    #[error("{table}: {to} lies after {from}, so the rows between them would never be delivered; `--forward` says that this is meant")]
    Forward {
        /// Connector and alias.
        table: String,
        /// The cursor, or where a table without one begins, in words.
        from: String,
        /// Where it was to be set.
        to: String,
    },
    /// A table that has no cursor begins where only its source knows.
    #[error(
        "{table}: it has no cursor yet and its document names no position to begin at, so whether rows before {to} would be left out cannot be \
         told; `--forward` says that {to} is meant"
    )]
    Untold {
        /// Connector and alias.
        table: String,
        /// Where it was to be set.
        to: String,
    },
    /// The stored cursor belongs to another place.
    #[error(
        "{table}: the stored cursor has {} {:?} and the document says {:?}; `tablesweep cursor reset` starts anew, \
         or put the document back",
        moved.what, moved.was, moved.is
    )]
    Moved {
        /// Connector and alias.
        table: String,
        /// What differs.
        moved: Moved,
    },
    /// An exported cursor belongs to another place.
    #[error(
        "{table}: the exported cursor has {} {:?} and the document says {:?}, so no sweep would go on from it; correct the line or the document",
        moved.what, moved.was, moved.is
    )]
    Elsewhere {
        /// Connector and alias.
        table: String,
        /// What differs.
        moved: Moved,
    },
    /// The table has no schema to compare with.
    #[error("{table}: there is no schema to accept: {why}")]
    NoBaseline {
        /// Connector and alias.
        table: String,
        /// Why there is none.
        why: &'static str,
    },
    /// A table of the documents goes on from the cursor.
    #[error("{place}: {table} goes on from this cursor; `tablesweep cursor reset` starts that table anew")]
    InUse {
        /// Where it lies.
        place: String,
        /// Connector and alias.
        table: String,
    },
    /// Nothing lies there.
    #[error("{connector} has no cursor at {place} in {store}; `tablesweep status` lists those that no sweep goes on from")]
    NoOrphan {
        /// The connector's name.
        connector: String,
        /// The place that was named.
        place: String,
        /// The store.
        store: String,
    },
    /// The item changed after it was read.
    #[error("{table}: {refusal}; look at `tablesweep cursor show` and try again")]
    Changed {
        /// Connector and alias.
        table: String,
        /// What the store said.
        refusal: Refusal,
    },
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommandError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } | Self::NoOrphan { .. } => "Cursor.Missing",
            Self::Leased { .. } => "Cursor.Leased",
            Self::Forward { .. } | Self::Untold { .. } => "Cursor.Forward",
            Self::Moved { .. } | Self::Elsewhere { .. } => "Cursor.Moved",
            Self::NoBaseline { .. } => "Cursor.NoBaseline",
            Self::InUse { .. } => "Cursor.InUse",
            Self::Changed { .. } => "Cursor.Conflict",
            Self::Store(StoreError::Unreachable { .. }) => "Cursor.Unreachable",
            Self::Store(StoreError::Busy { .. }) => "Cursor.Busy",
            Self::Store(StoreError::Denied { .. }) => "Cursor.Denied",
            Self::Store(StoreError::Format { .. }) => "Cursor.Format",
        }
    }

    /// Why the schema of `place` cannot be accepted: its source keeps none, or has not begun to.
    pub fn no_baseline(place: &Place) -> Self {
        let keeps = assembly::source(&place.source).is_some_and(|kind| kind.cursors.has_baseline);
        let why = if keeps {
            "the table is not activated yet, and its first sweep takes the schema as it is then"
        } else {
            "its source takes columns as they come"
        };
        Self::NoBaseline { table: place.name(), why }
    }
}

fn until(until_ms: i64) -> String {
    if until_ms == i64::MAX { "as long as its process lives".to_owned() } else { format!("until {}", rfc3339(until_ms)) }
}
