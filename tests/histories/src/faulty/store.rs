//! A cursor store that fails, loses answers, or is the last thing that its caller saw.
//!
//! It also looks at every cursor that is written: one that goes back is noted, and the sink is told what is committed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tablesweep::cursor::{Blob, Change, CursorStore, Expect, Item, Key, LeaseTerm, Listing, Position, StoreError, Write, WriteError};

use super::Death;
use super::sink::Collector;
use crate::history::StoreFault;

/// What befalls the store in one sweep.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The call, from 1, and how it fails.
    pub(crate) fault: Option<(u64, StoreFault)>,
    pub(crate) death: Arc<Death>,
}

/// What was seen over a history.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Whether the fault of the current plan struck.
    pub(crate) struck: bool,
    /// Whether it can have cost duplicates: a write that was given up, or a window that was not stored.
    pub(crate) costly: bool,
    /// Whether a write of the item had no answer once, and was to be sent again.
    pub(crate) sent_again: bool,
    /// The last cursor written.
    pub(crate) cursor: Option<(String, String)>,
    /// Cursors that went back: from, to.
    pub(crate) went_back: Vec<String>,
}

/// The store.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn CursorStore>,
    plan: Plan,
    seen: Arc<Mutex<Seen>>,
    sink: Arc<Collector>,
    /// Rows that earlier holders of the lease have committed.
    rows_before: AtomicU64,
    calls: AtomicU64,
}

/// What is asked of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Item,
    Blob,
}

/// What a call does.
enum Fate {
    Good,
    /// Fails, after it took effect or before.
    Fails {
        applied: bool,
        error: StoreError,
    },
    Killed {
        applied: bool,
    },
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn CursorStore>, plan: Plan, seen: Arc<Mutex<Seen>>, sink: Arc<Collector>) -> Self {
        {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.struck = false;
            seen.costly = false;
            seen.sent_again = false;
        }
        Self { inner, plan, seen, sink, rows_before: AtomicU64::new(0), calls: AtomicU64::new(0) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fate(&self, call: Call) -> Fate {
        self.plan.death.bar().await;
        let nth = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let Some((at, how)) = self.plan.fault else { return Fate::Good };
        if nth < at || (nth > at && how != StoreFault::Outage) {
            return Fate::Good;
        }
        let is_sent_again = call == Call::Item && matches!(how, StoreFault::Unreachable | StoreFault::AnswerLost);
        {
            let mut seen = self.seen();
            seen.struck = true;
            seen.sent_again |= is_sent_again;
            seen.costly |= call != Call::Read && !is_sent_again;
        }
        let (store, detail) = (self.name().to_owned(), "as the history says".to_owned());
        match how {
            StoreFault::Denied => Fate::Fails { applied: false, error: StoreError::Denied { store, detail } },
            StoreFault::Unreachable | StoreFault::Outage => {
                Fate::Fails { applied: false, error: StoreError::Unreachable { store, detail } }
            }
            StoreFault::AnswerLost => Fate::Fails { applied: true, error: StoreError::Unreachable { store, detail } },
            StoreFault::KilledBefore => Fate::Killed { applied: false },
            StoreFault::KilledAfter => Fate::Killed { applied: true },
        }
    }

    /// Makes a call whose effect may come without its answer, or not at all.
    async fn call<T, E: From<StoreError>>(&self, kind: Call, call: impl Future<Output = Result<T, E>> + Send) -> Result<T, E> {
        match self.fate(kind).await {
            Fate::Good => call.await,
            Fate::Fails { applied, error } => {
                if applied {
                    call.await?;
                }
                Err(error.into())
            }
            Fate::Killed { applied } => {
                if applied {
                    call.await?;
                }
                self.plan.death.strike_and_hang().await
            }
        }
    }

    /// Takes note of a cursor that was written.
    fn note(&self, change: &Change, item: &Item) {
        let rows = item.progress.counters.rows;
        match change {
            // Of two sweeps at once the second begins when the first has released, and counts from there. The same acquire sent
            // again is told again, before anything was handed over.
            Change::Acquire(_) => {
                self.rows_before.store(rows, Ordering::SeqCst);
                self.sink.begins();
            }
            Change::Commit(..) | Change::Release(..) => {
                self.sink.committed(rows.saturating_sub(self.rows_before.load(Ordering::SeqCst)));
            }
            _ => {}
        }
        let mut seen = self.seen();
        if matches!(change, Change::Rewind(_)) {
            seen.cursor = None;
        }
        let Some(now) = item.progress.cursor.as_ref().and_then(place) else { return };
        if let Some(before) = seen.cursor.clone().filter(|before| *before > now) {
            seen.went_back.push(format!("{before:?} -> {now:?}"));
        }
        seen.cursor = Some(now);
    }
}

/// Second and id: their texts are ordered as they are here, where ids are lower-case hexadecimal digits.
fn place(position: &Position) -> Option<(String, String)> {
    Some((position.get("timestamp")?.to_owned(), position.get("sys_id")?.to_owned()))
}

#[async_trait]
impl CursorStore for FaultyStore {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn lease_term(&self) -> LeaseTerm {
        self.inner.lease_term()
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        let effect = async {
            let written = self.inner.write(key, write).await;
            if let Ok(item) = &written {
                self.note(&write.change, item);
            }
            written
        };
        self.call(Call::Item, effect).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.call(Call::Read, self.inner.read(key)).await
    }

    async fn survey(&self, connector: &str) -> Result<Listing, StoreError> {
        self.call(Call::Read, self.inner.survey(connector)).await
    }

    async fn connectors(&self) -> Result<Vec<String>, StoreError> {
        self.call(Call::Read, self.inner.connectors()).await
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.call(Call::Item, self.inner.remove(key, now_ms)).await
    }

    async fn discard(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.call(Call::Item, self.inner.discard(key, now_ms)).await
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        self.call(Call::Read, self.inner.get_blob(partition, place)).await
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        self.call(Call::Blob, self.inner.put_blob(partition, place, bytes, expect, expires_at_ms)).await
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        self.call(Call::Read, self.inner.list_blobs(partition)).await
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        self.call(Call::Blob, self.inner.remove_blob(partition, place)).await
    }
}
