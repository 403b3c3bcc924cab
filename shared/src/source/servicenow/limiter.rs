//! How many requests an instance gets at once from this process.
//!
//! Two bounds hold together: that of each connector's document, and one per instance, which all connectors share. The
//! latter adapts as an instance asks for it: a 429 halves the number, and fifty answers without one add one again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Answers without a 429 after which one more request is allowed.
const SUCCESSES_PER_STEP: u32 = 50;

/// The limiters of a process, one per instance.
#[derive(Debug, Default)]
pub struct Limiters(Mutex<BTreeMap<String, Arc<Shared>>>);

impl Limiters {
    /// A connector's part of the limiter of the instance `host`: up to `most` requests at once.
    pub(super) fn share(&self, host: &str, most: usize, adaptive: bool) -> Limiter {
        let most = most.max(1);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = known.entry(host.to_owned()).or_default();
        shared.widen(most);
        Limiter { own: Arc::new(Semaphore::new(most)), shared: Arc::clone(shared), adaptive }
    }
}

/// A connector's bound on concurrent requests, within that of its instance.
#[derive(Debug)]
pub(super) struct Limiter {
    own: Arc<Semaphore>,
    shared: Arc<Shared>,
    adaptive: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The largest bound of a connector.
    most: usize,
    allowed: usize,
    in_flight: usize,
    successes: u32,
}

impl Limiter {
    /// Waits for a turn.
    pub(super) async fn turn(&self) -> Turn {
        // It is never closed; should it be, the instance's bound still holds.
        let own = Arc::clone(&self.own).acquire_owned().await.ok();
        self.shared.enter().await;
        Turn { shared: Arc::clone(&self.shared), _own: own }
    }

    /// The instance answered 429.
    pub(super) fn throttled(&self) {
        if self.adaptive {
            let mut state = self.shared.state();
            state.allowed = (state.allowed / 2).max(1);
            state.successes = 0;
        }
    }

    /// The instance answered otherwise.
    pub(super) fn answered(&self) {
        let mut state = self.shared.state();
        state.successes += 1;
        if state.successes >= SUCCESSES_PER_STEP && state.allowed < state.most {
            state.allowed += 1;
            state.successes = 0;
            self.shared.freed.notify_waiters();
        }
    }
}

impl Shared {
    fn widen(&self, most: usize) {
        let mut state = self.state();
        if most > state.most {
            state.allowed += most - state.most;
            state.most = most;
        }
    }

    async fn enter(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            {
                let mut state = self.state();
                if state.in_flight < state.allowed {
                    state.in_flight += 1;
                    return;
                }
            }
            freed.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    shared: Arc<Shared>,
    _own: Option<OwnedSemaphorePermit>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.shared.state().in_flight -= 1;
        self.shared.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is a turn without waiting for one.
    async fn taken(limiter: &Limiter) -> Option<Turn> {
        let turn = limiter.turn();
        tokio::pin!(turn);
        tokio::select! {
            biased;
            turn = &mut turn => Some(turn),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn a_429_halves_the_concurrency_and_fifty_answers_add_one() {
        let limiter = Limiters::default().share("acme", 4, true);
        limiter.throttled();
        let turns = [limiter.turn().await, limiter.turn().await];
        assert!(taken(&limiter).await.is_none());
        (0..SUCCESSES_PER_STEP).for_each(|_| limiter.answered());
        assert!(taken(&limiter).await.is_some());
        drop(turns);
    }

    #[tokio::test]
    async fn without_adaptive_throttling_a_429_changes_nothing() {
        let limiter = Limiters::default().share("acme", 2, false);
        limiter.throttled();
        let _first = limiter.turn().await;
        assert!(taken(&limiter).await.is_some());
    }

    #[tokio::test]
    async fn connectors_of_one_instance_share_its_limiter_and_keep_their_own_bounds() {
        let limiters = Limiters::default();
        let (narrow, wide) = (limiters.share("acme", 1, true), limiters.share("acme", 3, true));
        let of_narrow = narrow.turn().await;
        assert!(taken(&narrow).await.is_none(), "its own bound");
        let of_wide = [wide.turn().await, wide.turn().await];
        assert!(taken(&wide).await.is_none(), "three at the instance in all");
        assert!(taken(&limiters.share("other", 1, true)).await.is_some(), "another instance");
        drop(of_narrow);
        assert!(taken(&wide).await.is_some());
        drop(of_wide);
    }
}
