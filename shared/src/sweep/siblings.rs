//! The engine's side of [`Siblings`]: named bytes beside a cursor, in the cursor's own partition.
//!
//! A sibling lies at the cursor's place followed by `#` and its name, so that whoever looks into the table finds them
//! together. `cursor reset` removes them with the cursor; a rewind and an import leave them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::cursor::{CursorStore, Expect, Key, StoreError};
use crate::failure::Failure;
use crate::host::Host;
use crate::source::Siblings;

/// Tries of one request whose answer was lost or refused for now.
const TRIES: u32 = 3;

/// The siblings of one cursor.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) store: Arc<dyn CursorStore>,
    pub(super) host: Host,
    pub(super) key: Key,
}

#[async_trait]
impl Siblings for Beside {
    async fn get(&self, name: &'static str) -> Result<Option<Vec<u8>>, Failure> {
        let place = self.key.sibling(name);
        let mut tries = 1;
        loop {
            match self.store.get_blob(&self.key.connector, &place).await {
                Err(error) if self.again(&error, &mut tries).await => {}
                settled => return Ok(settled?.map(|blob| blob.bytes)),
            }
        }
    }

    async fn put(&self, name: &'static str, bytes: &[u8]) -> Result<(), Failure> {
        let place = self.key.sibling(name);
        let mut tries = 1;
        loop {
            // Written twice it is the same, so a lost answer needs no care.
            match self.store.put_blob(&self.key.connector, &place, bytes, Expect::Any, None).await {
                Err(error) if self.again(&error, &mut tries).await => {}
                settled => return Ok(settled.map(|_| ())?),
            }
        }
    }

    async fn remove(&self, name: &'static str) -> Result<(), Failure> {
        let place = self.key.sibling(name);
        let mut tries = 1;
        loop {
            match self.store.remove_blob(&self.key.connector, &place).await {
                Err(error) if self.again(&error, &mut tries).await => {}
                settled => return Ok(settled?),
            }
        }
    }
}

impl Beside {
    /// Waits before another try, if there is one.
    async fn again(&self, error: &StoreError, tries: &mut u32) -> bool {
        let passes = matches!(error, StoreError::Unreachable { .. } | StoreError::Busy { .. }) && *tries < TRIES;
        if passes {
            tokio::time::sleep(Duration::from_millis(self.host.jitter(200 << *tries))).await;
            *tries += 1;
        }
        passes
    }
}

/// Removes all siblings of the cursor at `key`.
///
/// # Errors
/// The store does not answer.
pub async fn remove(store: &dyn CursorStore, key: &Key) -> Result<(), StoreError> {
    let prefix = key.sibling("");
    for (place, _) in store.list_blobs(&key.connector).await? {
        // A name has no mark in it; what has one is beside another cursor, whose column's name has the mark.
        if place.strip_prefix(&prefix).is_some_and(|name| !name.contains('#')) {
            store.remove_blob(&key.connector, &place).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::memory::MemoryStore;

    fn beside(store: &Arc<dyn CursorStore>, place: &str) -> Beside {
        let key = Key { connector: "c".to_owned(), place: place.to_owned() };
        Beside { store: Arc::clone(store), host: Host::system(), key }
    }

    #[tokio::test]
    async fn siblings_belong_to_one_cursor_and_go_with_it() {
        let store: Arc<dyn CursorStore> = Arc::new(MemoryStore::new());
        let (own, other) = (beside(&store, "sqlserver/h/t/f/id"), beside(&store, "sqlserver/h/t/f/id#2"));
        assert_eq!(own.get("baseline").await, Ok(None));
        own.put("baseline", b"a").await.expect("kept");
        own.put("baseline", b"b").await.expect("replaced");
        own.put("probe", b"p").await.expect("kept");
        other.put("baseline", b"o").await.expect("kept");
        assert_eq!(own.get("baseline").await, Ok(Some(b"b".to_vec())));
        own.remove("probe").await.expect("removed");
        assert_eq!(own.get("probe").await, Ok(None));
        remove(&*store, &own.key).await.expect("removed");
        assert_eq!((own.get("baseline").await, other.get("baseline").await), (Ok(None), Ok(Some(b"o".to_vec()))));
    }
}
