//! Which requests are meddled with, and how.

use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::parts::PartError;
use crate::process::lock;

/// What is done to a request that a rule chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The part never sees the request; the connection ends.
    DropRequest,
    /// The part carries the request out; its answer is lost and the connection ends.
    DropResponse,
    /// The answer is held back for this long.
    Delay(Duration),
    /// The request waits in front of the part until [`Trigger::release`].
    HoldRequest,
    /// The part carries the request out; its answer waits until [`Trigger::release`].
    HoldResponse,
    /// The part never sees the request; the client gets this answer.
    Answer {
        /// The status.
        status: u16,
        /// The content type and any further header lines, as (name, value).
        headers: Vec<(String, String)>,
        /// The body.
        body: String,
    },
}

/// The view of one rule that the test keeps. Dropping it changes nothing: the rule stays until
/// [`Proxy::clear`](super::Proxy::clear).
#[derive(Debug, Clone)]
pub struct Trigger {
    rule: Arc<Rule>,
}

impl Trigger {
    /// How many requests have matched, chosen or not.
    pub fn matched(&self) -> u64 {
        *lock(&self.rule.matched)
    }

    /// How many requests the action was applied to: a dropped answer counts once the part has answered, a held
    /// request once it waits.
    pub fn fired(&self) -> u64 {
        *self.rule.fired.borrow()
    }

    /// Waits until the action was applied to that many requests.
    pub async fn wait_fired(&self, times: u64, within: Duration) -> Result<(), PartError> {
        let mut fired = self.rule.fired.subscribe();
        let reached = tokio::time::timeout(within, fired.wait_for(|count| *count >= times)).await;
        match reached {
            Ok(Ok(_)) => Ok(()),
            _ => Err(PartError::Timeout {
                what: format!("{:?} of {times} requests with {:?}", self.rule.action, self.rule.needle),
                within,
                last: format!("{} matched, {} done", self.matched(), self.fired()),
            }),
        }
    }

    /// Lets go what the rule holds, and holds nothing from now on.
    pub fn release(&self) {
        self.rule.released.send_replace(true);
    }
}

#[derive(Debug)]
pub(super) struct Rule {
    needle: String,
    which: (Bound<u64>, Bound<u64>),
    pub(super) action: Action,
    matched: Mutex<u64>,
    fired: watch::Sender<u64>,
    released: watch::Sender<bool>,
}

impl Rule {
    /// The action has taken effect on one more request.
    pub(super) fn fire(&self) {
        self.fired.send_modify(|count| *count += 1);
    }

    /// Waits for [`Trigger::release`].
    pub(super) async fn hold(&self) {
        let mut released = self.released.subscribe();
        // The sender lives in `self`: it cannot be gone while this waits.
        drop(released.wait_for(|released| *released).await);
    }
}

/// The rules of one proxy, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Mutex<Vec<Arc<Rule>>>,
}

impl Rules {
    pub(super) fn add(&self, needle: &str, which: impl RangeBounds<u64>, action: Action) -> Trigger {
        let rule = Arc::new(Rule {
            needle: needle.to_owned(),
            which: (which.start_bound().cloned(), which.end_bound().cloned()),
            action,
            matched: Mutex::default(),
            fired: watch::Sender::new(0),
            released: watch::Sender::new(false),
        });
        lock(&self.rules).push(Arc::clone(&rule));
        Trigger { rule }
    }

    pub(super) fn clear(&self) {
        for rule in lock(&self.rules).drain(..) {
            rule.released.send_replace(true);
        }
    }

    /// The first rule that chooses this request. Every rule that matches counts it, chosen or not.
    pub(super) fn choose(&self, request: &[u8]) -> Option<Arc<Rule>> {
        let mut chosen = None;
        for rule in lock(&self.rules).iter() {
            if !contains(request, rule.needle.as_bytes()) {
                continue;
            }
            let mut matched = lock(&rule.matched);
            *matched += 1;
            if chosen.is_none() && rule.which.contains(&*matched) {
                chosen = Some(Arc::clone(rule));
            }
        }
        chosen
    }
}

/// An empty needle is in everything.
pub(super) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    needle.is_empty() || haystack.windows(needle.len()).any(|window| window == needle)
}
