//! Which parked tables a tick has tried.
//!
//! A tick that leaves a parked table alone until its next try says `parked`, and so does one that tried it in vain. Only the
//! second makes the invocation fail: otherwise an alarm would ring every minute for what was told once. The difference is
//! what the store answered to the acquire, and this is where that passes by.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::cursor::{Blob, Change, CursorStore, Expect, Item, Key, LeaseTerm, Refusal, StoreError, Write, WriteError};

/// The store of one invocation, which notes whom it let begin.
#[derive(Debug)]
pub(super) struct Noting {
    store: Arc<dyn CursorStore>,
    tried: Mutex<BTreeSet<Key>>,
}

impl Noting {
    pub(super) fn new(store: Arc<dyn CursorStore>) -> Arc<Self> {
        Arc::new(Self { store, tried: Mutex::default() })
    }

    /// Whether a sweep of the table at `key` was begun, or failed to begin. One that was told to wait, or that did not even
    /// ask because its instance refuses the login, was not tried.
    pub(super) fn has_tried(&self, key: &Key) -> bool {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }
}

#[async_trait]
impl CursorStore for Noting {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn lease_term(&self) -> LeaseTerm {
        self.store.lease_term()
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        let written = self.store.write(key, write).await;
        let waits = matches!(written, Err(WriteError::Refused(Refusal::Parked(_))));
        if matches!(write.change, Change::Acquire(_)) && !waits {
            self.tried.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        }
        written
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.store.read(key).await
    }

    async fn list(&self, connector: &str) -> Result<Vec<Item>, StoreError> {
        self.store.list(connector).await
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.store.remove(key, now_ms).await
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        self.store.get_blob(partition, place).await
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        self.store.put_blob(partition, place, bytes, expect, expires_at_ms).await
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        self.store.list_blobs(partition).await
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        self.store.remove_blob(partition, place).await
    }
}
