//! How long a step may take, and what it means that it took longer.
//!
//! Every step has a time-out of its own, and none outlasts the invocation. Which of the two ended it matters: a server that met its
//! own time-out failed, while one that was cut off by the end of the invocation may have been about to answer.
//!
//! A statement may also wait at the server, for rows that somebody else is writing. The server is told to give that up a
//! while before we do, since its error (1222) says what is the matter and silence does not. How long that is stands in the
//! text of the statement, and every text is planned anew; so it is one of a few numbers.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use tokio::time::timeout;

use super::error::{Error, Stage};
use crate::host::Host;
use crate::sweep::Allowance;

/// The moment by which something must have happened, and what set it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    at: Duration,
    whole: Duration,
    by_budget: bool,
}

impl Limit {
    /// `own` from now on, or the end of the invocation if that comes first.
    pub(super) fn new(allowance: &Allowance, own: Duration) -> Self {
        let whole = allowance.timeout(own);
        Self { at: allowance.host().monotonic() + whole, whole, by_budget: allowance.left().is_some_and(|left| left < own) }
    }

    /// What is left of it.
    pub(super) fn left(&self, host: &Host) -> Duration {
        self.at.saturating_sub(host.monotonic())
    }

    /// What `step` comes to, if it does before the limit.
    ///
    /// # Errors
    /// What [`passed`](Self::passed) says.
    pub(super) async fn bound<T>(&self, host: &Host, stage: Stage, step: impl Future<Output = T>) -> Result<T, Error> {
        timeout(self.left(host), step).await.map_err(|_| self.passed(stage))
    }

    /// What it means that it has passed.
    pub(super) fn passed(&self, stage: Stage) -> Error {
        if self.by_budget { Error::Cut { stage, waited: self.whole, said: None } } else { Error::TimedOut { stage, limit: self.whole } }
    }

    /// How long a statement that begins now may wait for rows that are being written: most of what is left.
    pub(super) fn locks(&self, host: &Host) -> Locks {
        Locks(rounded(self.left(host) * 4 / 5))
    }

    /// What an error means that a statement ended with before its limit. Locks that were waited for until the invocation ends are no
    /// other than an answer that was.
    pub(super) fn explain(&self, locks: Locks, error: Error) -> Error {
        match error {
            Error::Blocked { said } if self.by_budget => Error::Cut { stage: Stage::Statement, waited: locks.0, said: Some(said) },
            other => other,
        }
    }
}

/// How long the server is to wait for a lock before it gives up. Shown, it is what a statement begins with: within the call that
/// carries the statement it costs no round trip, and it ends with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locks(Duration);

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SET LOCK_TIMEOUT {}; ", self.0.as_millis())
    }
}

/// The next number of the series 1, 2, 5, 10, 20, 50, … milliseconds that is not above `wait`; 0 would mean not to wait at all.
/// [`UNANSWERED`](crate::source::UNANSWERED) is one of them, so that no wait falls below it by being rounded.
fn rounded(wait: Duration) -> Duration {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    let decade = 10_u64.pow(millis.ilog10());
    let steps = match millis / decade {
        5.. => 5,
        2.. => 2,
        _ => 1,
    };
    Duration::from_millis(steps * decade)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::UNANSWERED;

    #[test]
    fn a_wait_for_locks_is_one_of_a_few_numbers_and_never_longer_than_there_is_time() {
        for (wait, expected) in [(0, 1), (1, 1), (4, 2), (240, 200), (999, 500), (1_000, 1_000), (19_200, 10_000), (24_000, 20_000)] {
            assert_eq!(rounded(Duration::from_millis(wait)), Duration::from_millis(expected), "{wait}");
        }
        assert_eq!(rounded(UNANSWERED), UNANSWERED, "else a wait of that length would count as a shorter one");
        assert_eq!(rounded(Duration::MAX), Duration::from_millis(10_000_000_000_000_000_000), "and nothing overflows");
        assert_eq!(Locks(Duration::from_secs(2)).to_string(), "SET LOCK_TIMEOUT 2000; ");
    }
}
