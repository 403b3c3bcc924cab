//! What keeps the benchmark from measuring.

use std::fmt::Display;

use tablesweep_testbed::parts::PartError;

/// Something that the benchmark needs did not work, or two things that must agree do not.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// A real part did not start or refused something.
    #[error(transparent)]
    Part(#[from] PartError),
    /// Anything else: what was to be done, and why it could not be.
    #[error("{what}: {why}")]
    Doing {
        /// What was to be done.
        what: String,
        /// Why it could not be.
        why: String,
    },
}

impl Failed {
    /// `what` could not be done because of `why`.
    pub fn at(what: impl Into<String>, why: impl Display) -> Self {
        Self::Doing { what: what.into(), why: why.to_string() }
    }
}
