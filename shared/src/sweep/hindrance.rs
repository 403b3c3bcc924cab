//! What keeps all tables of a connector from being swept before any cursor is read: a placeholder without a value, a setting that
//! makes no sink.
//!
//! There is no lease then, and often no item, so it cannot be kept where a table's failures are. It is kept once for the connector,
//! for `status` alone: no sweep reads it. It needs no removal either, since a table of the connector that was started later shows
//! that it is over.

use serde::{Deserialize, Serialize};

use super::engine::Engine;
use crate::cursor::{CursorStore, Expect, StoreError};
use crate::failure::{Failure, Retry};

/// The name of the blob in the connector's own partition.
const PLACE: &str = "hindrance";

/// A connector that nobody tries for this long has other troubles, in milliseconds.
const KEPT_MS: i64 = 30 * 24 * 3_600_000;

/// What kept a connector from being swept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hindrance {
    /// The stable code.
    pub code: String,
    /// In words.
    pub message: String,
    /// When it was met last, in epoch milliseconds.
    pub at_ms: i64,
    /// Whether only a person can help.
    pub is_lasting: bool,
}

impl Engine {
    /// Keeps that `failure` kept the tables of `connector` from being swept. A store that does not answer is no reason to say
    /// anything but the failure itself.
    pub async fn hindered(&self, connector: &str, failure: &Failure) {
        let hindrance = Hindrance {
            code: failure.code.to_string(),
            message: failure.message.clone(),
            at_ms: self.host.now_ms(),
            is_lasting: failure.retry == Retry::Never,
        };
        let bytes = serde_json::to_vec(&hindrance).expect("strings and numbers are representable in JSON");
        let forgotten_ms = hindrance.at_ms.saturating_add(KEPT_MS);
        if let Err(error) = self.store.put_blob(&partition(connector), PLACE, &bytes, Expect::Any, Some(forgotten_ms)).await {
            tracing::warn!(connector, %error, "what keeps the connector from being swept could not be stored; `status` does not show it");
        }
    }
}

/// What kept `connector` from being swept last, be it over or not.
///
/// # Errors
/// The store does not answer.
pub async fn hindrance(store: &dyn CursorStore, connector: &str) -> Result<Option<Hindrance>, StoreError> {
    // By a query, as all that `status` asks: whoever may look needs no other right.
    let blobs = store.list_blobs(&partition(connector)).await?;
    let own = blobs.iter().find(|(place, _)| place == PLACE);
    // What another version wrote is left to it.
    Ok(own.and_then(|(_, blob)| serde_json::from_slice(&blob.bytes).ok()))
}

fn partition(connector: &str) -> String {
    format!("{connector}#hindrance")
}
