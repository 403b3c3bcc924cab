//! What a source may still use: time until the work has to be handed over, and memory for pages.

use std::sync::Arc;
use std::time::Duration;

use super::bytes::{Admission, ByteBudget};
use crate::host::Host;

/// Time and memory for fetching.
#[derive(Debug, Clone)]
pub struct Allowance {
    host: Host,
    deadline: Option<Duration>,
    bytes: Arc<ByteBudget>,
}

impl Allowance {
    /// `deadline`: the monotonic moment by which the last page has to be fetched; `None` leaves time open.
    pub fn new(host: Host, deadline: Option<Duration>, bytes: Arc<ByteBudget>) -> Self {
        Self { host, deadline, bytes }
    }

    /// The time left; `None` if it is not limited.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.host.monotonic()))
    }

    /// Whether work that takes `needed` may begin.
    pub fn covers(&self, needed: Duration) -> bool {
        self.left().is_none_or(|left| left > needed)
    }

    /// The least of the time left and a time-out of its own.
    pub fn timeout(&self, own: Duration) -> Duration {
        self.left().map_or(own, |left| left.min(own))
    }

    /// Waits for room for a page of about `bytes`, as long as there is time.
    pub async fn admit(&self, bytes: u64) -> Option<Admission> {
        match self.left() {
            None => Some(self.bytes.admit(bytes).await),
            Some(left) => tokio::time::timeout(left, self.bytes.admit(bytes)).await.ok(),
        }
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        &self.host
    }
}
