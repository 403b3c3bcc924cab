//! Leases that sweeps ended with.
//!
//! A sweep whose write gets no answer does not know what became of it, and moves the cursor no more. Its lease may be its own all the
//! same, and then nobody else sweeps the table until it ends: with the deadline in one store, with this process in another. So the lease is
//! given back by itself. The item is read, and if it still names this sweep, it is released as it stands there: the cursor is what the
//! store has, and what was acknowledged and not committed is sent again. Everything that the sweep gave to the sink is settled by then.
//!
//! A store that does not answer to that either is not waited for. [`Left`] remembers the lease, and the next sweep of the table in this
//! process begins with giving it back. So it does with the lease of a sweep that panicked, once nothing of it can be with the sink.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::engine::Engine;
use super::lease::{Ending, given_back};
use crate::cursor::{Item, Key, StoreError, Write, WriteError};

/// How often an item is read again because a write came in between. A sweep has one write under way, so that more is no accident.
const READINGS: u32 = 4;

/// Gives back the lease of `owner` at `key`, if it is still that one's. The item as it is then; `None` if there is none.
///
/// # Errors
/// The store does not answer: nothing is known about the lease.
pub(super) async fn give_back(engine: &Engine, key: &Key, owner: &str, ending: &Ending) -> Result<Option<Item>, StoreError> {
    for _ in 0..READINGS {
        let Some(item) = engine.store.read(key).await? else { return Ok(None) };
        let Some(change) = given_back(&item, owner, ending) else { return Ok(Some(item)) };
        match engine.store.write(key, &Write { id: engine.host.nonce(), change }).await {
            Ok(item) => return Ok(Some(item)),
            // A write that was under way has arrived after the item was read.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Store(error)) => return Err(error),
        }
    }
    let detail = format!("the cursor {}, {} changes faster than its lease can be given back", key.connector, key.place);
    Err(StoreError::Busy { store: engine.store.name().to_owned(), detail })
}

/// The leases that sweeps of this process ended with.
#[derive(Debug, Default)]
pub struct Left {
    leases: Mutex<BTreeMap<Key, Lease>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Lease {
    owner: String,
    /// The monotonic moment from which nothing of its sweep is with the sink.
    from: Duration,
}

impl Left {
    /// The sweep `owner` ended and may hold the lease; from the monotonic moment `from` on nothing of it is with the sink.
    pub(super) fn remember(&self, key: Key, owner: String, from: Duration) {
        self.leases().insert(key, Lease { owner, from });
    }

    /// Gives back the lease at `key` that is remembered, before a sweep asks for it.
    pub(super) async fn settle(&self, engine: &Engine, key: &Key) {
        let Some(lease) = self.leases().get(key).filter(|lease| lease.from <= engine.host.monotonic()).cloned() else { return };
        match give_back(engine, key, &lease.owner, &Ending::default()).await {
            Ok(_) => {
                let mut leases = self.leases();
                // Another sweep may have ended meanwhile.
                if leases.get(key) == Some(&lease) {
                    leases.remove(key);
                }
            }
            // The sweep that begins now meets the same and says so.
            Err(error) => tracing::debug!(connector = key.connector, place = key.place, %error, "a lease cannot be given back yet"),
        }
    }

    /// A thread that panicked left the map whole: each change is one insertion or removal.
    fn leases(&self) -> MutexGuard<'_, BTreeMap<Key, Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
