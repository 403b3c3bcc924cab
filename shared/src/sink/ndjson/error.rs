//! What can go wrong with a file or a pipe, and what a person can do about it.

use std::io;

use crate::failure::{Failure, Retry};

/// Errors of the ndjson sink.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum NdjsonError {
    #[error("{target} cannot be {doing}: {reason}. {remedy}")]
    Io { target: String, doing: &'static str, reason: String, remedy: &'static str, retry: Retry },

    #[error(
        "the last line of {target} has no end and was not written by this program, so it is not cut off. \
         If the file is the right one, add a line break at its end; otherwise name another file after `ndjson:`"
    )]
    Foreign { target: String },

    #[error("{target} holds something else than records, so nothing is appended to it. Name another file after `ndjson:`")]
    NotRecords { target: String },

    #[error(
        "{target} is locked by another process for more than {waited_ms} ms, so this page was not written. \
         End that process, or give each process its own file"
    )]
    Locked { target: String, waited_ms: u128 },

    #[error(
        "a sync of {target} failed before ({reason}); what was written since may be lost, so nothing is acknowledged any more. Check the disk and start again"
    )]
    Unsynced { target: String, reason: String },

    #[error("writing to {target} was broken off: {reason}")]
    Interrupted { target: String, reason: String },
}

impl NdjsonError {
    pub(super) fn io(target: &str, doing: &'static str, error: &io::Error) -> Self {
        let (remedy, retry) = remedy(error.kind());
        Self::Io { target: target.to_owned(), doing, reason: error.to_string(), remedy, retry }
    }
}

/// What to do about it, and whether the next tick may find it done.
fn remedy(kind: io::ErrorKind) -> (&'static str, Retry) {
    match kind {
        io::ErrorKind::NotFound => ("Create the directory first; the file itself is created", Retry::Never),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ("Give this user the right to write there, or name another file", Retry::Never)
        }
        io::ErrorKind::IsADirectory => ("Name a file in that directory", Retry::Never),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ("Free some space; the page is sent again by the next sweep", Retry::NextTick)
        }
        io::ErrorKind::FileTooLarge => ("Move the file away; the next sweep starts a new one", Retry::NextTick),
        io::ErrorKind::BrokenPipe => {
            ("The program that reads from the pipe has ended; the cursor stays where it was last acknowledged", Retry::NextTick)
        }
        io::ErrorKind::Unsupported => ("The file system has no locks; use a local one", Retry::Never),
        _ => ("The page is sent again by the next sweep", Retry::NextTick),
    }
}

impl From<NdjsonError> for Failure {
    fn from(error: NdjsonError) -> Self {
        let retry = match &error {
            NdjsonError::Io { retry, .. } => *retry,
            NdjsonError::Foreign { .. } | NdjsonError::NotRecords { .. } => Retry::Never,
            NdjsonError::Locked { .. } | NdjsonError::Unsynced { .. } | NdjsonError::Interrupted { .. } => Retry::NextTick,
        };
        Failure::new("Sink.Io", retry, error.to_string())
    }
}
