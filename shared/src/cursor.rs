//! Where a table's sweep stands, and the store that keeps it.
//!
//! One [`Item`] per table holds the cursor and everything that decides the next sweep: the lease, the phase, the page
//! size that works, why the table is parked. It changes only by a [`Write`]: one conditional write whose meaning is the
//! pure function [`apply`]. The stores differ in how they make a write atomic (a lock, a transaction, a
//! condition expression) and in nothing else; `cursor/conformance.rs` holds them to that.
//!
//! A write carries an id that stays in the item. A store or a network may lose the answer to a write that took effect;
//! when the same write is sent again, the id shows that it is already there, and it counts as done.
//!
//! What is too large or too different for the item lies beside it as a [`Blob`]: the dedup window, schemas, audit
//! entries, what is known about a whole instance.

pub mod conformance;
pub mod dynamodb;
mod lag;
mod listing;
pub mod memory;
mod model;
mod notes;
mod protocol;
pub mod sqlite;

use async_trait::async_trait;

pub use listing::{Listing, Unreadable};
pub use model::{
    Counters, FORMAT, Identity, Item, Key, Lease, Moved, Parked, Paused, Phase, Position, Progress, Slot, Standing, StoredWindow, Waiting,
    baseline_digest, decode, encode, server_of,
};
pub use notes::{BASELINE_KEPT_NOTE, BASELINE_NOTE, Failed, REMARK_NOTE};
pub use protocol::{Acquire, Change, Hold, Import, LEASE_SKEW_MS, Refusal, Rewind, Write, apply};

use crate::failure::{Failure, Retry};

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It did not answer, or not in time. Whether a write took effect is not known.
    #[error("the cursor store {store} cannot be reached: {detail}")]
    Unreachable {
        /// Which store, as the user named it.
        store: String,
        /// What the driver said.
        detail: String,
    },
    /// It refuses for now: throttled or busy. The write did not take effect.
    #[error("the cursor store {store} is busy: {detail}")]
    Busy {
        /// Which store.
        store: String,
        /// What the driver said.
        detail: String,
    },
    /// It refuses for good: the table is missing, access is denied.
    #[error("the cursor store {store} refused: {detail}")]
    Denied {
        /// Which store.
        store: String,
        /// What the driver said, and what to do.
        detail: String,
    },
    /// What is stored was not written by this program or by a newer one.
    #[error("the cursor in partition {partition}, {place} cannot be read: {detail}")]
    Format {
        /// The partition key.
        partition: String,
        /// The sort key.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let (code, retry) = match &error {
            StoreError::Unreachable { .. } => ("Cursor.Unreachable", Retry::NextTick),
            StoreError::Busy { .. } => ("Cursor.Busy", Retry::NextTick),
            StoreError::Denied { .. } => ("Cursor.Denied", Retry::NextTick),
            StoreError::Format { .. } => ("Cursor.Format", Retry::Never),
        };
        Failure::new(code, retry, error.to_string())
    }
}

/// Why a write did not take effect.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The item does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Bytes beside an item, with a revision for conditional replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The content.
    pub bytes: Vec<u8>,
    /// Counts from 1; each replacement adds one, or brings a number of its own ([`Expect::UpTo`]).
    pub revision: u64,
}

/// What must hold for a blob to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// There is none yet.
    Absent,
    /// It has this revision.
    Revision(u64),
    /// There is none, or one of this revision or a lower one; what is written has this revision. Whoever lost the right
    /// to write names a lower revision than whoever has it, and cannot write over what that one wrote.
    UpTo(u64),
}

impl Expect {
    /// Whether it holds for a blob of `revision`; `None` is a blob that is not there, or whose time is past.
    pub fn holds(self, revision: Option<u64>) -> bool {
        match self {
            Expect::Any => true,
            Expect::Absent => revision.is_none(),
            Expect::Revision(wanted) => revision == Some(wanted),
            Expect::UpTo(most) => revision.is_none_or(|revision| revision <= most),
        }
    }

    /// The revision of what is written over a blob of revision `before`, or 0 where there was none.
    pub fn next(self, before: u64) -> u64 {
        match self {
            Expect::UpTo(most) => most,
            _ => before.saturating_add(1),
        }
    }
}

/// How long a lease lasts in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseTerm {
    /// Until the time written in it.
    Clock,
    /// As long as the process that took it lives: the store can tell.
    Process,
}

/// A connector that no document can name, for [`CursorStore::probe`]: nothing ever lies under it.
const PROBE: &str = "tablesweep#probe";

/// A place that keeps cursors.
#[async_trait]
pub trait CursorStore: Send + Sync + std::fmt::Debug {
    /// How the user named this store, for messages.
    fn name(&self) -> &str;

    /// How leases end here.
    fn lease_term(&self) -> LeaseTerm {
        LeaseTerm::Clock
    }

    /// Applies `write` to the item at `key` atomically, as [`apply`] says, and returns the item as it is afterwards.
    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError>;

    /// The item at `key`, read consistently.
    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError>;

    /// All that lies here for a connector, what cannot be read included: one such item takes none of the others away.
    async fn survey(&self, connector: &str) -> Result<Listing, StoreError>;

    /// All items of a connector, in the order of their sort keys.
    ///
    /// # Errors
    /// The store does not answer, or one of them cannot be read.
    async fn list(&self, connector: &str) -> Result<Vec<Item>, StoreError> {
        let Listing { items, unreadable } = self.survey(connector).await?;
        match unreadable.first() {
            Some(unreadable) => Err(unreadable.error()),
            None => Ok(items),
        }
    }

    /// The connectors that have cursors here, sorted. It may have to look at everything that is stored, so it is for people who
    /// ask and not for sweeps.
    async fn connectors(&self) -> Result<Vec<String>, StoreError>;

    /// Removes the item at `key`, unless a lease is held on it at `now_ms`. Removing what is not there is no error.
    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError>;

    /// Removes what lies at `key` and cannot be read, unless a lease is held on it at `now_ms` as far as that can be told.
    /// Removing what is not there is no error; a cursor that can be read is refused as [`Refusal::Exists`], and stays.
    async fn discard(&self, key: &Key, now_ms: i64) -> Result<(), WriteError>;

    /// The blob at `partition`, `place`.
    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError>;

    /// Writes a blob if `expect` holds. Returns the new revision, or `None` if `expect` does not hold.
    /// `expires_at_ms`: when the store may forget it; `None` keeps it.
    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError>;

    /// All blobs of a partition in the order of their places.
    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError>;

    /// Finds out whether cursors can be read and written here, as far as that can be asked without changing anything.
    ///
    /// # Errors
    /// What a sweep would end with.
    async fn probe(&self) -> Result<(), StoreError> {
        self.list(PROBE).await.map(drop)
    }

    /// Removes a blob. Removing what is not there is no error.
    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError>;
}
