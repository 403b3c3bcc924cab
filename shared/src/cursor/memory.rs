//! A store in memory: for a preview, which moves no cursor for good, and for tests.
//!
//! A lock around two maps makes each write atomic. Items are kept in their stored text, so that whatever would not
//! survive a real store does not survive this one either.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::listing::part;
use super::{Blob, CursorStore, Expect, Item, Key, Listing, Refusal, StoreError, Write, WriteError, apply, decode, encode};
use crate::host::Host;

/// A store that is gone when it is dropped.
#[derive(Debug)]
pub struct MemoryStore {
    host: Host,
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    items: BTreeMap<Key, String>,
    blobs: BTreeMap<(String, String), Kept>,
}

/// A blob and when it may be forgotten, in epoch milliseconds.
#[derive(Debug)]
struct Kept {
    blob: Blob,
    expires_at_ms: Option<i64>,
}

impl Kept {
    fn is_past(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|end| end <= now_ms)
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_host(Host::system())
    }

    /// An empty store that forgets blobs by the clock of `host`.
    pub fn with_host(host: Host) -> Self {
        Self { host, content: Mutex::default() }
    }

    /// The content. A thread that panicked while it held the lock left it whole: every change is one insertion or
    /// removal.
    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
impl MemoryStore {
    /// Changes the format number of a stored item, as another program would write it.
    pub(crate) fn set_format(&self, key: &Key, format: u32) {
        let mut content = self.content();
        let text = content.items.get_mut(key).expect("the item");
        let mut stored: serde_json::Value = serde_json::from_str(text).expect("JSON");
        stored["format"] = format.into();
        *text = stored.to_string();
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl CursorStore for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        let mut content = self.content();
        let before = content.items.get(key).map(|text| decode(key, text)).transpose()?;
        let after = apply(before.as_ref(), write)?;
        content.items.insert(key.clone(), encode(&after));
        Ok(after)
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.content().items.get(key).map(|text| decode(key, text)).transpose()
    }

    async fn survey(&self, connector: &str) -> Result<Listing, StoreError> {
        let content = self.content();
        let mut listing = Listing::default();
        for (key, text) in content.items.iter().filter(|(key, _)| key.connector == connector) {
            listing.take(key.clone(), decode(key, text), || part(text, "identity"))?;
        }
        Ok(listing)
    }

    async fn connectors(&self) -> Result<Vec<String>, StoreError> {
        let mut connectors: Vec<String> = self.content().items.keys().map(|key| key.connector.clone()).collect();
        connectors.dedup();
        Ok(connectors)
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        let mut content = self.content();
        let Some(text) = content.items.get(key) else { return Ok(()) };
        if let Some(lease) = decode(key, text)?.lease.filter(|lease| lease.until_ms > now_ms) {
            return Err(Refusal::Leased { until_ms: lease.until_ms }.into());
        }
        content.items.remove(key);
        Ok(())
    }

    async fn discard(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        let mut content = self.content();
        let Some(text) = content.items.get(key) else { return Ok(()) };
        if decode(key, text).is_ok() {
            return Err(Refusal::Exists.into());
        }
        if let Some(until_ms) = part(text, "lease")["until_ms"].as_i64().filter(|until_ms| *until_ms > now_ms) {
            return Err(Refusal::Leased { until_ms }.into());
        }
        content.items.remove(key);
        Ok(())
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        let now_ms = self.host.now_ms();
        let content = self.content();
        let kept = content.blobs.get(&(partition.to_owned(), place.to_owned())).filter(|kept| !kept.is_past(now_ms));
        Ok(kept.map(|kept| kept.blob.clone()))
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        let now_ms = self.host.now_ms();
        let mut content = self.content();
        let at = (partition.to_owned(), place.to_owned());
        let before = content.blobs.get(&at);
        if !expect.holds(before.filter(|kept| !kept.is_past(now_ms)).map(|kept| kept.blob.revision)) {
            return Ok(None);
        }
        // A blob whose time is past hands on its count: an old reading of it must not fit the new one.
        let revision = expect.next(before.map_or(0, |kept| kept.blob.revision));
        content.blobs.insert(at, Kept { blob: Blob { bytes: bytes.to_vec(), revision }, expires_at_ms });
        Ok(Some(revision))
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        let now_ms = self.host.now_ms();
        let content = self.content();
        let own = content.blobs.iter().filter(|((of, _), kept)| of == partition && !kept.is_past(now_ms));
        Ok(own.map(|((_, place), kept)| (place.clone(), kept.blob.clone())).collect())
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        self.content().blobs.remove(&(partition.to_owned(), place.to_owned()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::conformance::Bed;
    use super::*;

    struct Memory(Arc<MemoryStore>);

    #[async_trait]
    impl Bed for Memory {
        async fn open(&self) -> Arc<dyn CursorStore> {
            Arc::clone(&self.0) as Arc<dyn CursorStore>
        }

        async fn set_format(&self, key: &Key, format: u32) {
            self.0.set_format(key, format);
        }
    }

    crate::cursor_store_promises!(Memory(Arc::new(MemoryStore::new())));
}
