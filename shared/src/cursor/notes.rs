//! What a sweep leaves in the cursor for the next one, beside where it stands.
//!
//! Sources keep notes of their own there. These are the engine's: whether the last sweep failed, and whether it was cut. They are notes,
//! and no fields of their own, so that a program of before reads the item and passes them over: a rollback finds its cursors.

use serde::{Deserialize, Serialize};

use super::{Phase, Progress};

/// The note of [`Progress`] that names the digest of the baseline beside the cursor. A rewind keeps it: what a table
/// looks like does not depend on where its cursor stands.
pub const BASELINE_NOTE: &str = "baseline";

/// The note of [`Progress`] that the baseline which [`BASELINE_NOTE`] names lies in this store as the baseline. Where it is missing,
/// the cursor came from another store or the baseline was accepted since, and the next sweep sees to it.
pub const BASELINE_KEPT_NOTE: &str = "kept";

/// The note of [`Progress`] with the code of what a person should know though the table is swept, which `status` shows. A source writes it.
pub const REMARK_NOTE: &str = "remark";

/// The note of [`Progress`] that tells of sweeps that failed in a row ([`Failed`]).
const FAILED_NOTE: &str = "failed";

/// The note of [`Progress`] that the last sweep of a table in phase `stream` was cut by its time or its number of rows.
const CUT_NOTE: &str = "cut";

/// Sweeps in a row that ended with a failure which the next one might not have met. What parks a table or holds it is kept as
/// its [`Standing`](super::Standing).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failed {
    /// The stable code of the last one.
    pub code: String,
    /// When the first of them ended, in epoch milliseconds.
    pub since_ms: i64,
    /// When the last of them ended, in epoch milliseconds.
    pub at_ms: i64,
    /// How many.
    pub times: u32,
}

impl Failed {
    /// One more after `before`.
    pub fn after(before: Option<&Self>, code: &str, now_ms: i64) -> Self {
        Self {
            code: code.to_owned(),
            since_ms: before.map_or(now_ms, |before| before.since_ms),
            at_ms: now_ms,
            times: before.map_or(1, |before| before.times.saturating_add(1)),
        }
    }
}

impl Progress {
    /// The failures since the last sweep that succeeded. A note that cannot be read tells of none.
    pub fn failed(&self) -> Option<Failed> {
        self.notes.get(FAILED_NOTE).and_then(|note| serde_json::from_str(note).ok())
    }

    /// The same progress, which tells of these failures.
    #[must_use]
    pub fn with_failed(mut self, failed: Option<&Failed>) -> Self {
        match failed {
            // As in `encode`: a string and numbers are representable in JSON.
            Some(failed) => {
                self.notes.insert(FAILED_NOTE.to_owned(), serde_json::to_string(failed).expect("a failure is representable in JSON"))
            }
            None => self.notes.remove(FAILED_NOTE),
        };
        self
    }

    /// The same progress, which tells whether the sweep had more to read when it ended. A backfill needs no note for it.
    #[must_use]
    pub fn with_cut(mut self, is_cut: bool) -> Self {
        if is_cut && self.phase == Phase::Stream {
            self.notes.insert(CUT_NOTE.to_owned(), String::new());
        } else {
            self.notes.remove(CUT_NOTE);
        }
        self
    }

    /// Whether the last sweep came to the end of what there was. One that did not goes on with the next tick, whatever the interval at
    /// which its table is looked at.
    pub fn is_swept(&self) -> bool {
        self.phase == Phase::Stream && !self.notes.contains_key(FAILED_NOTE) && !self.notes.contains_key(CUT_NOTE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_are_counted_and_a_success_forgets_them() {
        let first = Failed::after(None, "Sink.Timeout", 5);
        let second = Failed::after(Some(&first), "Source.Unavailable", 9);
        assert_eq!(second, Failed { code: "Source.Unavailable".into(), since_ms: 5, at_ms: 9, times: 2 });
        let progress = Progress::default().with_failed(Some(&second));
        assert_eq!(progress.failed(), Some(second));
        assert_eq!(progress.with_failed(None), Progress::default());
    }
}
