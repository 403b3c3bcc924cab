//! What strikes a sweep from this side of the network: its clock, its store, its sink.
//!
//! A killed process is a future that is dropped at an await, with nothing that it had begun taking effect afterwards.
//! [`Death`] says when: whoever finds that the moment has come calls [`Death::strike`] and never answers again; the run is
//! dropped by whoever waits for [`Death::struck`].

pub(crate) mod clock;
pub(crate) mod sink;
pub(crate) mod store;

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether the process of the current sweep has been killed.
#[derive(Debug, Default)]
pub(crate) struct Death {
    dead: AtomicBool,
    struck: Notify,
}

impl Death {
    pub(crate) fn strike(&self) {
        self.dead.store(true, Ordering::SeqCst);
        self.struck.notify_one();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Waits for the end, or for ever.
    pub(crate) async fn struck(&self) {
        while !self.is_dead() {
            self.struck.notified().await;
        }
    }

    /// Kills the process while somebody waits for an answer.
    pub(crate) async fn strike_and_hang<T>(&self) -> T {
        self.strike();
        std::future::pending().await
    }

    /// A dead process does nothing more.
    pub(crate) async fn bar(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}
