//! The engine's side of [`SchemaStore`]: schemas that grow, as blobs of the cursor store.
//!
//! They lie in the connector's own partition, at `topic/<topic>/<mode>#schema`. No cursor's place begins so: it begins with the
//! name of its source.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::cursor::{CursorStore, Expect, StoreError};
use crate::failure::Failure;
use crate::host::{Host, failpoint};
use crate::record::{SchemaPlace, SchemaStore};

/// Tries of one request whose answer was lost or refused for now.
const TRIES: u32 = 3;

/// The schemas in a cursor store.
#[derive(Debug, Clone)]
pub(super) struct Schemas {
    pub(super) store: Arc<dyn CursorStore>,
    pub(super) host: Host,
}

fn lies_at(place: &SchemaPlace) -> String {
    format!("topic/{}/{}#schema", place.topic, place.mode)
}

/// Whether the schema of a topic lies at `place`; a cursor does not know it, so whoever carries cursors elsewhere has to look for it.
pub fn is_topic_schema(place: &str) -> bool {
    place.starts_with("topic/") && place.ends_with("#schema")
}

#[async_trait]
impl SchemaStore for Schemas {
    async fn read(&self, place: &SchemaPlace) -> Result<Option<(Vec<u8>, u64)>, Failure> {
        let lies_at = lies_at(place);
        let mut tries = 1;
        loop {
            match self.store.get_blob(&place.connector, &lies_at).await {
                Err(error) if self.again(&error, &mut tries).await => {}
                settled => return Ok(settled?.map(|blob| (blob.bytes, blob.revision))),
            }
        }
    }

    async fn replace(&self, place: &SchemaPlace, bytes: &[u8], known: Option<u64>) -> Result<Option<u64>, Failure> {
        let lies_at = lies_at(place);
        let expect = known.map_or(Expect::Absent, Expect::Revision);
        let mut tries = 1;
        loop {
            // A write whose answer was lost is refused when it is sent again; whoever asked then reads, and finds its own fields.
            match self.store.put_blob(&place.connector, &lies_at, bytes, expect, None).await {
                Err(error) if self.again(&error, &mut tries).await => {}
                settled => {
                    let written = settled?;
                    failpoint("schema-stored");
                    return Ok(written);
                }
            }
        }
    }
}

impl Schemas {
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
