//! Errors with the numbers that SQL Server gives them.

use super::super::types::Type;

/// An error as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{number}: {message}")]
pub struct SqlError {
    /// The number, such as 208.
    pub number: i32,
    /// The state.
    pub state: u8,
    /// The class, also called severity or level.
    pub class: u8,
    /// The text.
    pub message: String,
    /// Is it a gap of this server, which a real one would not have?
    pub refusal: bool,
}

/// Why a statement has not gone on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// It failed.
    Error(SqlError),
    /// A row that it has to read belongs to a transaction that is still open.
    Blocked,
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

impl SqlError {
    /// An error of class 16, which is what nearly all are.
    pub(in super::super) fn new(number: i32, state: u8, message: impl Into<String>) -> Self {
        Self { number, state, class: 16, message: message.into(), refusal: false }
    }

    pub(in super::super) fn class(mut self, class: u8) -> Self {
        self.class = class;
        self
    }

    /// What this server does not understand. The message says so, and the text ends up in the refusals.
    pub(in super::super) fn refused(message: impl std::fmt::Display) -> Self {
        Self { refusal: true, ..Self::new(40_510, 1, format!("This test server does not understand that: {message}")) }
    }

    pub(in super::super) fn syntax(near: &str, statement: &str) -> Self {
        let message =
            format!("Incorrect syntax near '{near}'. (This test server understands a part of T-SQL only; the statement was: {statement})");
        Self { refusal: true, ..Self::new(102, 1, message).class(15) }
    }

    pub(in super::super) fn invalid_column(name: &str) -> Self {
        Self::new(207, 1, format!("Invalid column name '{name}'."))
    }

    pub(in super::super) fn invalid_object(name: &str) -> Self {
        Self::new(208, 1, format!("Invalid object name '{name}'."))
    }

    pub(in super::super) fn conversion(from: &Type, to: &Type) -> Self {
        Self::new(8114, 5, format!("Error converting data type {} to {}.", from.name(), to.name()))
    }

    pub(in super::super) fn not_allowed(from: &Type, to: &Type) -> Self {
        Self::new(529, 2, format!("Explicit conversion from data type {} to {} is not allowed.", from.name(), to.name()))
    }

    pub(in super::super) fn overflow(to: &Type) -> Self {
        Self::new(8115, 2, format!("Arithmetic overflow error converting expression to data type {}.", to.name()))
    }

    pub(in super::super) fn lock_timeout() -> Self {
        Self::new(1222, 51, "Lock request time out period exceeded.")
    }
}
