//! What the engine needs to know of any failure: a stable code, what to do next, and words for a person.
//!
//! Every part has its own error enum with its own facts; at the boundary to the engine each becomes a [`Failure`].
//! The code is the Lambda error type, the metric dimension and a heading of docs/operations, so a code is never
//! renamed. The message names the table, the field and the remedy.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What may be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// The same request may succeed at once; whoever asked retries within its limits.
    Now,
    /// Nothing here will help; the next tick may.
    NextTick,
    /// The source is not as it must be for rows to be read, and may become so again: every tick looks, and it is told
    /// once.
    Wait,
    /// Only a person can help: the table is parked.
    Never,
}

/// How far a failure reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// One table.
    Table,
    /// Everything that talks to the same instance: credentials are wrong, the host is gone.
    Instance,
}

/// A failure as the engine sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Stable code, `Part.Name`.
    pub code: Cow<'static, str>,
    /// What happened and what to do, in words.
    pub message: String,
    /// What may be done about it.
    pub retry: Retry,
    /// How far it reaches.
    pub scope: Scope,
}

impl Failure {
    /// A failure of one table.
    pub fn new(code: &'static str, retry: Retry, message: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), message: message.into(), retry, scope: Scope::Table }
    }

    /// The same failure, reaching everything that talks to the instance.
    pub fn of_instance(mut self) -> Self {
        self.scope = Scope::Instance;
        self
    }
}
