//! What was done to cursors by hand, kept beside them for thirty days.

use serde::{Deserialize, Serialize};

use super::rfc3339;
use crate::cursor::{CursorStore, Expect, Position, StoreError};
use crate::host::Host;

/// How long an entry is kept, in milliseconds.
const KEPT_MS: i64 = 30 * 24 * 3_600_000;

/// One command of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// Who, as the system names the user.
    pub who: String,
    /// The command.
    pub what: String,
    /// The alias.
    pub table: String,
    /// Where the cursor lay; an entry without it is told by its alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The cursor before.
    pub before: Option<Position>,
    /// The cursor after.
    pub after: Option<Position>,
    /// When, in RFC 3339.
    pub at: String,
}

impl Audit {
    /// Whether the entry is about the cursor at `place`, which has the alias `alias` now.
    pub fn is_of(&self, place: &str, alias: &str) -> bool {
        self.place.as_ref().map_or(self.table == alias, |own| own == place)
    }
}

/// Keeps an entry. Its place sorts by time, and its nonce keeps two of one moment apart.
pub(super) async fn keep(store: &dyn CursorStore, host: &Host, connector: &str, audit: &Audit) -> Result<(), StoreError> {
    let now_ms = host.now_ms();
    let bytes = serde_json::to_vec(audit).expect("strings and maps of strings are representable in JSON");
    let place = format!("{}.{:03}#{}", rfc3339(now_ms), now_ms.rem_euclid(1000), host.nonce());
    store.put_blob(&partition(connector), &place, &bytes, Expect::Any, Some(now_ms.saturating_add(KEPT_MS))).await?;
    Ok(())
}

/// What was done to the cursors of a connector, oldest first. An entry that another version wrote is left out.
///
/// # Errors
/// The store does not answer.
pub async fn audits(store: &dyn CursorStore, connector: &str) -> Result<Vec<Audit>, StoreError> {
    let entries = store.list_blobs(&partition(connector)).await?;
    Ok(entries.iter().filter_map(|(_, blob)| serde_json::from_slice(&blob.bytes).ok()).collect())
}

fn partition(connector: &str) -> String {
    format!("{connector}#audit")
}
