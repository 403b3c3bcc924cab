//! Sweeps that come between any two steps of a command.

use async_trait::async_trait;

use super::*;
use crate::cursor::{BASELINE_NOTE, Blob, LeaseTerm, Listing};

/// Whenever something was written, a sweep follows at once; one that finds no cursor begins, and keeps a baseline.
#[derive(Debug)]
struct Meddling<'b>(&'b Bed);

impl Meddling<'_> {
    async fn sweep(&self) {
        let (bed, key) = (self.0, own().key());
        let write = async |change| bed.store.write(&key, &Write { id: bed.host.nonce(), change }).await;
        let acquire = Acquire { owner: "m".into(), until_ms: NOW + 1, now_ms: NOW, scheduled: None };
        let Ok(item) = write(Change::Acquire(acquire)).await else { return };
        let mut progress = item.progress;
        if progress.cursor.is_none() {
            bed.store.put_blob("c", &key.sibling(BASELINE), b"as it is", Expect::Any, None).await.expect("kept");
            progress.cursor = Some(at("2026-01-01 00:00:00"));
            progress.notes.insert(BASELINE_NOTE.to_owned(), baseline_digest(b"as it is"));
        }
        let hold = Hold { owner: "m".into(), revision: item.revision };
        write(Change::Release(hold, progress, Standing::Active)).await.expect("it holds the lease");
    }
}

#[async_trait]
impl CursorStore for Meddling<'_> {
    fn name(&self) -> &str {
        self.0.store.name()
    }

    fn lease_term(&self) -> LeaseTerm {
        self.0.store.lease_term()
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        let written = self.0.store.write(key, write).await;
        self.sweep().await;
        written
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.0.store.read(key).await
    }

    async fn survey(&self, connector: &str) -> Result<Listing, StoreError> {
        self.0.store.survey(connector).await
    }

    async fn connectors(&self) -> Result<Vec<String>, StoreError> {
        self.0.store.connectors().await
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.0.store.remove(key, now_ms).await
    }

    async fn discard(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.0.store.discard(key, now_ms).await
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        self.0.store.get_blob(partition, place).await
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        end: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        self.0.store.put_blob(partition, place, bytes, expect, end).await
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        self.0.store.list_blobs(partition).await
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        self.0.store.remove_blob(partition, place).await
    }
}

#[tokio::test]
async fn a_reset_takes_nothing_from_the_sweep_that_begins_anew() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let store = Meddling(&bed);
    store.put_blob("c", &own().key().sibling(BASELINE), b"as it was", Expect::Any, None).await.expect("kept");
    let operator = Operator { store: &store, ..bed.operator() };
    operator.carry_out(operator.prepare(&place(), Order::Reset).await.expect("allowed")).await.expect("reset");
    let item = bed.store.read(&own().key()).await.expect("read").expect("there");
    assert_eq!((item.standing, item.progress.cursor), (Standing::Active, Some(at("2026-01-01 00:00:00"))), "it began anew");
    let baseline = bed.store.get_blob("c", &own().key().sibling(BASELINE)).await.expect("read").expect("it lies there");
    assert_eq!(item.progress.notes.get(BASELINE_NOTE), Some(&baseline_digest(&baseline.bytes)));
}
