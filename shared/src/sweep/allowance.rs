//! What a source may still use: time until the work has to be handed over, memory for pages, and requests where the
//! instance counts them.

use std::sync::Arc;
use std::time::Duration;

use super::bytes::{Admission, ByteBudget};
use super::requests::{Requests, Spent, Ticket, Told};
use crate::host::Host;

/// Time, memory and requests for fetching.
#[derive(Debug, Clone)]
pub struct Allowance {
    host: Host,
    deadline: Option<Duration>,
    bytes: Arc<ByteBudget>,
    requests: Requests,
}

impl Allowance {
    /// `deadline`: the monotonic moment by which the last page has to be fetched; `None` leaves time open.
    pub fn new(host: Host, deadline: Option<Duration>, bytes: Arc<ByteBudget>) -> Self {
        Self { host, deadline, bytes, requests: Requests::default() }
    }

    /// The same, with requests that are counted together with those of other tables.
    pub(super) fn counting(self, requests: Requests) -> Self {
        Self { requests, ..self }
    }

    /// Counts a request that is about to be made.
    ///
    /// # Errors
    /// The instance takes no more of them for now; the sweep ends.
    pub fn request(&self) -> Result<Ticket, Spent> {
        self.requests.take(self.host.now_ms())
    }

    /// What the answer to a request says about how many the instance takes.
    pub fn told(&self, ticket: &Ticket, told: Told) {
        self.requests.told(ticket, told, self.host.now_ms());
    }

    /// Why a request was not made, if one was not.
    pub(super) fn denied(&self) -> Option<String> {
        self.requests.denied().map(|spent| spent.text(self.host.now_ms()))
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
