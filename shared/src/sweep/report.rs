//! What a sweep says about each table: the contract `sweep out`, the same from the function and from the command line.

use serde::{Deserialize, Serialize};

use crate::cursor::{Phase, Position};
use crate::failure::Failure;

/// How far an invocation is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// A tick: until caught up or out of budget.
    #[default]
    Stream,
    /// A backfill by hand: parked tables are tried at once, and a table's failure is a result, not an error.
    CatchUp,
}

/// How the sweep of a table ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing is left to deliver for now.
    CaughtUp,
    /// The budget was spent first; the next sweep goes on.
    More,
    /// Not swept: somebody else does, or it is not due.
    Skipped,
    /// Not swept: an operator or a changed schema holds it.
    Paused,
    /// Not swept, or given up, until a person mends something.
    Parked,
    /// A failure that the next sweep may not meet.
    Failed,
}

impl Outcome {
    /// Whether this outcome is as it should be.
    pub fn is_good(self) -> bool {
        matches!(self, Self::CaughtUp | Self::More | Self::Skipped)
    }
}

/// Why, by stable code and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// The stable code.
    pub code: String,
    /// What happened and what to do.
    pub message: String,
}

impl From<&Failure> for Reason {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.code.to_string(), message: failure.message.clone() }
    }
}

/// The code of a table that an operator holds.
pub(super) const PAUSED_BY_HAND: &str = "Cursor.Paused";

/// What happened to one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableReport {
    /// The connector's name.
    pub connector: String,
    /// The alias.
    pub table: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Why, unless all is well.
    pub reason: Option<Reason>,
    /// Backfill or stream, as committed; `None` where the cursor was not read, as of a table that is paused or leased.
    pub phase: Option<Phase>,
    /// Rows acknowledged in this invocation.
    pub rows: u64,
    /// Rows read again and not sent again.
    pub duplicates_suppressed: u64,
    /// Rows left out by policy.
    pub rows_skipped: u64,
    /// Hidden rows found for the first time.
    pub rows_hidden: u64,
    /// Rows that became visible behind the cursor and were not delivered, each counted once.
    pub rows_late: u64,
    /// Values that were replaced: of the rows read those of which a part could not be read, by U+FFFD or null; of the rows
    /// acknowledged those that do not fit their type, by null.
    pub values_replaced: u64,
    /// Requests to the source, repeated ones included.
    pub requests: u64,
    /// Bytes of the source's answers as they came over the wire.
    pub bytes_in: u64,
    /// The committed cursor; `None` where it was not read, or there is none yet.
    pub cursor: Option<Position>,
    /// Seconds behind the source, by what is committed; `None` where that is not known.
    pub lag_seconds: Option<i64>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether a sweep was begun, or failed to begin. A table that waits for its next try, is not due or is held by
    /// somebody else was not tried. Not a part of the contract: it decides whether a tick fails.
    #[serde(skip)]
    pub tried: bool,
}

impl TableReport {
    /// A table of which nothing is known yet.
    pub fn new(connector: &str, table: &str) -> Self {
        Self {
            connector: connector.to_owned(),
            table: table.to_owned(),
            outcome: Outcome::Failed,
            reason: None,
            phase: None,
            rows: 0,
            duplicates_suppressed: 0,
            rows_skipped: 0,
            rows_hidden: 0,
            rows_late: 0,
            values_replaced: 0,
            requests: 0,
            bytes_in: 0,
            cursor: None,
            lag_seconds: None,
            duration_ms: 0,
            tried: false,
        }
    }

    /// Whether the source keeps the table from being swept until a person decides. An operator's pause is none of that.
    pub fn waits_for_source(&self) -> bool {
        self.outcome == Outcome::Paused && self.reason.as_ref().is_none_or(|reason| reason.code != PAUSED_BY_HAND)
    }

    /// Whether the source was not asked, and need not have been: somebody else sweeps the table, it is not due, or the
    /// hour's requests were spent before it began.
    pub fn was_left_alone(&self) -> bool {
        self.outcome == Outcome::Skipped && self.requests == 0
    }

    /// Whether nothing is wrong with the table. One that was left alone is in order, and so is one that an operator holds.
    pub fn is_in_order(&self) -> bool {
        self.outcome.is_good() || self.outcome == Outcome::Paused && !self.waits_for_source()
    }
}

/// The result of an invocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepReport {
    /// How far it was to go.
    pub mode: Mode,
    /// The tables in the order of connector and alias.
    pub tables: Vec<TableReport>,
}

impl SweepReport {
    /// All reports in the order of connector and alias.
    pub fn together(mode: Mode, mut tables: Vec<TableReport>) -> Self {
        tables.sort_by(|one, other| (&one.connector, &one.table).cmp(&(&other.connector, &other.table)));
        Self { mode, tables }
    }
}
