//! The byte budget of the process: how much of pages may be in memory at once.
//!
//! Tables are swept side by side, and a page is held until its records are acknowledged. Each page is admitted before it
//! is fetched, with an estimate, and may grow while there is room. One page is always admitted when nothing else is in
//! flight, so that a budget smaller than a page slows the work down and never stops it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Shared by everything that holds pages.
#[derive(Debug)]
pub struct ByteBudget {
    limit: u64,
    state: Mutex<InFlight>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct InFlight {
    bytes: u64,
    pages: usize,
}

impl ByteBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, state: Mutex::default(), freed: Notify::new() })
    }

    /// A third of `memory` bytes, the memory of the function.
    pub fn of_memory(memory: u64) -> Arc<Self> {
        Self::new(memory / 3)
    }

    /// Waits until a page of about `bytes` may be fetched.
    pub async fn admit(self: &Arc<Self>, bytes: u64) -> Admission {
        loop {
            // Registered before the look, so that room made in between is not missed.
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            {
                let mut state = self.state();
                if state.pages == 0 || state.bytes.saturating_add(bytes) <= self.limit {
                    state.pages += 1;
                    state.bytes += bytes;
                    return Admission { budget: Arc::clone(self), bytes: Mutex::new(bytes) };
                }
            }
            freed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, InFlight> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page's share of the budget; given back when dropped.
#[derive(Debug)]
pub struct Admission {
    budget: Arc<ByteBudget>,
    bytes: Mutex<u64>,
}

impl Admission {
    /// Asks for room for a page that has reached `bytes`. `false`: there is none, and the page is to be dropped and
    /// asked for smaller. A page that is alone in flight always has room.
    #[must_use]
    pub fn grow_to(&self, bytes: u64) -> bool {
        let mut held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let more = bytes.saturating_sub(*held);
        let mut state = self.budget.state();
        if more > 0 && state.pages > 1 && state.bytes.saturating_add(more) > self.budget.limit {
            return false;
        }
        state.bytes += more;
        *held += more;
        true
    }

    /// What was made of the page takes `bytes` beside it, room or not: it is there already, and later pages wait for it.
    pub fn add(&self, bytes: u64) {
        let mut held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        self.budget.state().bytes += bytes;
        *held += bytes;
    }

    /// The page is complete and takes `bytes`; what was admitted beyond that is free again.
    pub fn settle(&self, bytes: u64) {
        let mut held = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = held.saturating_sub(bytes);
        *held -= spare;
        self.budget.state().bytes -= spare;
        self.budget.freed.notify_waiters();
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let held = *self.bytes.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.budget.state();
        state.pages -= 1;
        state.bytes -= held;
        drop(state);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_waits_until_there_is_room_and_one_alone_is_always_admitted() {
        let budget = ByteBudget::new(100);
        let large = budget.admit(1_000).await;
        assert!(large.grow_to(5_000), "alone, a page may outgrow the budget");
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.admit(60).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(large);
        let small = waiting.await.expect("admitted");
        let second = budget.admit(40).await;
        assert!(!second.grow_to(41), "no room beside the other page");
        small.settle(10);
        assert!(second.grow_to(90));
    }

    #[tokio::test]
    async fn what_is_made_of_a_page_counts_until_the_page_is_given_back() {
        let budget = ByteBudget::new(100);
        let page = budget.admit(40).await;
        page.add(500);
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.admit(1).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(page);
        drop(waiting.await.expect("admitted"));
        assert_eq!(budget.state().bytes, 0);
    }
}
