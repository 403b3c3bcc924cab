//! A store of schemas for tests, which remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;

use super::store::{SchemaPlace, SchemaStore};
use crate::failure::{Failure, Retry};

#[derive(Debug, Default)]
pub(super) struct Shelf {
    content: Mutex<HashMap<SchemaPlace, (Vec<u8>, u64)>>,
    requests: Mutex<Vec<&'static str>>,
    /// Whether no write is answered any more.
    pub(super) is_out: Mutex<bool>,
    /// Whether writes are waited for without end.
    pub(super) hangs: Mutex<bool>,
}

impl Shelf {
    fn content(&self) -> MutexGuard<'_, HashMap<SchemaPlace, (Vec<u8>, u64)>> {
        self.content.lock().expect("whole")
    }

    /// What it was asked since the last call.
    pub(super) fn requests(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.requests.lock().expect("whole"))
    }

    pub(super) fn at(&self, place: &SchemaPlace) -> Option<Vec<u8>> {
        self.content().get(place).map(|(bytes, _)| bytes.clone())
    }

    pub(super) fn put(&self, place: &SchemaPlace, bytes: &[u8]) {
        self.content().insert(place.clone(), (bytes.to_vec(), 1));
    }

    pub(super) fn clear(&self) {
        self.content().clear();
    }
}

#[async_trait]
impl SchemaStore for Shelf {
    async fn read(&self, place: &SchemaPlace) -> Result<Option<(Vec<u8>, u64)>, Failure> {
        self.requests.lock().expect("whole").push("read");
        Ok(self.content().get(place).cloned())
    }

    async fn replace(&self, place: &SchemaPlace, bytes: &[u8], known: Option<u64>) -> Result<Option<u64>, Failure> {
        self.requests.lock().expect("whole").push("write");
        if *self.is_out.lock().expect("whole") {
            return Err(Failure::new("Cursor.Unreachable", Retry::NextTick, "out of reach"));
        }
        let hangs = *self.hangs.lock().expect("whole");
        if hangs {
            std::future::pending::<()>().await;
        }
        let mut content = self.content();
        if content.get(place).map(|(_, revision)| *revision) != known {
            return Ok(None);
        }
        let revision = known.unwrap_or(0) + 1;
        content.insert(place.clone(), (bytes.to_vec(), revision));
        Ok(Some(revision))
    }
}
