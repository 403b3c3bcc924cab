//! How many requests an instance gets at once from this process: all tables of the instance share one limiter.
//!
//! It adapts as an instance asks for it: a 429 halves the number, and fifty answers without one add one again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Answers without a 429 after which one more request is allowed.
const SUCCESSES_PER_STEP: u32 = 50;

/// A shared bound on concurrent requests.
#[derive(Debug)]
pub(super) struct Limiter {
    most: usize,
    adaptive: bool,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    allowed: usize,
    in_flight: usize,
    successes: u32,
}

impl Limiter {
    pub(super) fn new(most: usize, adaptive: bool) -> Arc<Self> {
        let most = most.max(1);
        Arc::new(Self { most, adaptive, state: Mutex::new(State { allowed: most, in_flight: 0, successes: 0 }), freed: Notify::new() })
    }

    /// Waits for a turn.
    pub(super) async fn turn(self: &Arc<Self>) -> Turn {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            {
                let mut state = self.state();
                if state.in_flight < state.allowed {
                    state.in_flight += 1;
                    return Turn(Arc::clone(self));
                }
            }
            freed.await;
        }
    }

    /// The instance answered 429.
    pub(super) fn throttled(&self) {
        if self.adaptive {
            let mut state = self.state();
            state.allowed = (state.allowed / 2).max(1);
            state.successes = 0;
        }
    }

    /// The instance answered otherwise.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.successes += 1;
        if state.successes >= SUCCESSES_PER_STEP && state.allowed < self.most {
            state.allowed += 1;
            state.successes = 0;
            self.freed.notify_waiters();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request's turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Arc<Limiter>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.state().in_flight -= 1;
        self.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_429_halves_the_concurrency_and_fifty_answers_add_one() {
        let limiter = Limiter::new(4, true);
        limiter.throttled();
        let turns = [limiter.turn().await, limiter.turn().await];
        let third = tokio::spawn({
            let limiter = Arc::clone(&limiter);
            async move { limiter.turn().await }
        });
        tokio::task::yield_now().await;
        assert!(!third.is_finished());
        (0..SUCCESSES_PER_STEP).for_each(|_| limiter.answered());
        drop(third.await.expect("a third turn"));
        drop(turns);
    }
}
