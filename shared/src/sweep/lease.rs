//! What the holder of a lease knows of it, and what it may do with that knowledge.

use std::time::Duration;

use crate::cursor::{Change, Failed, Hold, Item, Standing};

/// What is kept at the end of an invocation for the last commit, after the last acknowledgement.
pub const LAST_COMMIT: Duration = Duration::from_secs(2);

/// How long the leases of a run last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeasePlan {
    /// Until this moment, in epoch milliseconds: no holder outlives it. A function's deadline plus the skew of clocks.
    Until(i64),
    /// For this long, renewed while the work goes on: nothing ends the process by itself.
    Renewed(Duration),
    /// As long as this process lives; the store can tell.
    Process,
}

impl LeasePlan {
    /// When a lease that is taken or renewed at `now_ms` ends, in epoch milliseconds.
    pub fn until_ms(&self, now_ms: i64) -> i64 {
        match self {
            Self::Until(until) => *until,
            Self::Renewed(length) => now_ms.saturating_add(i64::try_from(length.as_millis()).unwrap_or(i64::MAX)),
            Self::Process => i64::MAX,
        }
    }

    /// How often a lease is to be renewed; three times within its length, so that one lost renewal does no harm.
    pub fn renew_every(&self) -> Option<Duration> {
        match self {
            Self::Renewed(length) => Some(*length / 3),
            Self::Until(_) | Self::Process => None,
        }
    }
}

/// A lease that is held.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    owner: String,
    revision: u64,
    until_ms: i64,
}

impl Held {
    /// The lease that an acquire by `owner` brought, if `item` shows that it did.
    pub fn from_item(item: &Item, owner: &str) -> Option<Self> {
        let lease = item.lease.as_ref().filter(|lease| lease.owner == owner)?;
        Some(Self { owner: owner.to_owned(), revision: item.revision, until_ms: lease.until_ms })
    }

    /// A write of the holder took effect.
    pub fn wrote(&mut self, item: &Item) {
        self.revision = item.revision;
        if let Some(lease) = item.lease.as_ref().filter(|lease| lease.owner == self.owner) {
            self.until_ms = lease.until_ms;
        }
    }

    /// The nonce of the holder.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// What a write has to name.
    pub fn hold(&self) -> Hold {
        Hold { owner: self.owner.clone(), revision: self.revision }
    }

    /// Whether something that is begun at `now_ms` and takes up to `length` ends within the lease. A record that is
    /// handed over later could arrive after another holder's.
    pub fn outlives(&self, now_ms: i64, length: Duration) -> bool {
        let needed = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        now_ms.saturating_add(needed) < self.until_ms
    }

    /// Whether records that are handed over at `now` are settled within the lease, and within the invocation with time left
    /// for the last commit. Later ones could come after another holder's, or be cut off. `length`: the sink's message timeout.
    pub fn may_hand_over(&self, now: Reading, deadline: Option<Duration>, length: Duration) -> bool {
        let in_time = deadline.is_none_or(|deadline| now.monotonic + length + LAST_COMMIT <= deadline);
        in_time && self.outlives(now.wall_ms, length)
    }
}

/// The monotonic moment by which records must be handed over so that [`Held::may_hand_over`] lets them through: what is waited
/// for until then is in time. `length`: the sink's message timeout.
pub fn hand_over_by(deadline: Option<Duration>, length: Duration) -> Option<Duration> {
    deadline.map(|deadline| deadline.saturating_sub(length + LAST_COMMIT))
}

/// What an item is to say of the sweep that ended. What is `None` stays as it is.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// The sweeps that failed in a row.
    pub failed: Option<Failed>,
    /// How the table stands.
    pub standing: Option<Standing>,
}

/// The write that gives back the lease of `owner` on `item`, as it was read after everything that the sweep gave to the sink was
/// settled. It moves no cursor. `None` if the lease is not that sweep's any more.
pub fn given_back(item: &Item, owner: &str, ending: &Ending) -> Option<Change> {
    let held = Held::from_item(item, owner)?;
    let progress = match &ending.failed {
        Some(failed) => item.progress.clone().with_failed(Some(failed)),
        None => item.progress.clone(),
    };
    let standing = ending.standing.clone().unwrap_or_else(|| item.standing.clone());
    Some(Change::Release(held.hold(), progress, standing))
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Epoch milliseconds.
    pub wall_ms: i64,
    /// Time since an arbitrary moment, the same as that of deadlines.
    pub monotonic: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_begun_that_could_outlive_the_lease() {
        let held = Held { owner: "a".into(), revision: 1, until_ms: 10_000 };
        assert!(held.outlives(0, Duration::from_secs(9)));
        assert!(!held.outlives(1_000, Duration::from_secs(9)));
        assert!(!held.outlives(i64::MAX, Duration::ZERO));
    }

    #[test]
    fn nothing_is_handed_over_that_leaves_no_time_for_the_last_commit() {
        let held = Held { owner: "a".into(), revision: 1, until_ms: 60_000 };
        let seconds = Duration::from_secs;
        let at = |monotonic| Reading { wall_ms: 0, monotonic };
        let (deadline, length) = (Some(seconds(30)), seconds(10));
        assert!(held.may_hand_over(at(seconds(18)), deadline, length));
        assert!(!held.may_hand_over(at(seconds(19)), deadline, length));
        assert!(held.may_hand_over(at(seconds(1_000)), None, length), "no deadline ends it");
        assert!(!held.may_hand_over(Reading { wall_ms: 50_000, monotonic: seconds(1) }, deadline, length), "the lease ends first");
    }

    #[test]
    fn what_is_ready_by_then_may_be_handed_over_and_what_comes_later_may_not() {
        let held = Held { owner: "a".into(), revision: 1, until_ms: i64::MAX };
        let (deadline, length) = (Some(Duration::from_secs(30)), Duration::from_secs(10));
        let by = hand_over_by(deadline, length).expect("a deadline");
        let may = |monotonic| held.may_hand_over(Reading { wall_ms: 0, monotonic }, deadline, length);
        assert_eq!((may(by), may(by + Duration::from_millis(1))), (true, false));
        assert_eq!(hand_over_by(None, length), None);
        assert_eq!(hand_over_by(Some(Duration::from_secs(5)), length), Some(Duration::ZERO), "there never was time");
    }

    #[test]
    fn a_renewed_lease_is_renewed_three_times_within_its_length() {
        let plan = LeasePlan::Renewed(Duration::from_secs(60));
        assert_eq!((plan.until_ms(1_000), plan.renew_every()), (61_000, Some(Duration::from_secs(20))));
    }
}
