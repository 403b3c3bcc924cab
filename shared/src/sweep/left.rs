//! Leases that sweeps ended with.
//!
//! A sweep whose write gets no answer does not know what became of it, and moves the cursor no more. Its lease may be its own all the
//! same, and then nobody else sweeps the table until it ends: with the deadline in one store, with this process in another. So the lease is
//! given back by itself. The item is read, and if it still names this sweep, it is released as it stands there: the cursor is what the
//! store has, and what was acknowledged and not committed is sent again. Everything that the sweep gave to the sink is settled by then.
//!
//! A store that does not answer to that either is not waited for. [`Left`] remembers the lease, and the next sweep of the table in this
//! process begins with giving it back. So it does with the lease of a sweep that panicked, once nothing of it can be with the sink.

use std::collections::{BTreeMap, BTreeSet};
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

/// The leases that sweeps of this process ended with, or may have ended with.
#[derive(Debug, Default)]
pub struct Left {
    /// By key: the owners, each with the monotonic moment from which nothing of its sweep is with the sink.
    owners: Mutex<BTreeMap<Key, BTreeMap<String, Duration>>>,
}

impl Left {
    /// The sweep `owner` ended and may hold the lease; from the monotonic moment `from` on nothing of it is with the sink.
    pub(super) fn remember(&self, key: Key, owner: String, from: Duration) {
        self.owners().entry(key).or_default().insert(owner, from);
    }

    /// Gives back the lease at `key` if it is one of those that are remembered, before a sweep asks for it.
    pub(super) async fn settle(&self, engine: &Engine, key: &Key) {
        let due = self.due(key, engine.host.monotonic());
        if due.is_empty() {
            return;
        }
        let settled = async {
            let owner = engine.store.read(key).await?.and_then(|item| item.lease).map(|lease| lease.owner);
            match owner.filter(|owner| due.contains(owner)) {
                Some(owner) => give_back(engine, key, &owner, &Ending::default()).await.map(drop),
                None => Ok(()),
            }
        };
        match settled.await {
            Ok(()) => self.forget(key, &due),
            // The sweep that begins now meets the same and says so.
            Err(error) => tracing::debug!(connector = key.connector, place = key.place, %error, "a lease cannot be given back yet"),
        }
    }

    fn due(&self, key: &Key, now: Duration) -> BTreeSet<String> {
        let owners = self.owners();
        owners.get(key).into_iter().flatten().filter(|(_, from)| **from <= now).map(|(owner, _)| owner.clone()).collect()
    }

    fn forget(&self, key: &Key, settled: &BTreeSet<String>) {
        let mut owners = self.owners();
        if let Some(of_key) = owners.get_mut(key) {
            of_key.retain(|owner, _| !settled.contains(owner));
            if of_key.is_empty() {
                owners.remove(key);
            }
        }
    }

    /// A thread that panicked left the map whole: each change is one insertion or removal.
    fn owners(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeMap<String, Duration>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
