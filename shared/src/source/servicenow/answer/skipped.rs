//! Rows without a readable cursor, as the policy `skip` leaves them out.
//!
//! They are read again and again, like any other row, and are to be counted once. So each is known by a version, like a row that was
//! delivered, and goes into the dedup window under it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::sweep::Version;

/// What stands for an id that cannot be read.
pub(in super::super) const NO_ID: &str = "without an id";

/// A row without a readable cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Skipped {
    /// How many readable rows came before it.
    pub(in super::super) after: usize,
    /// Its second, if that can be read.
    pub(in super::super) second: Option<i64>,
    /// Its id, if that can be read.
    pub(in super::super) id: Option<String>,
    /// What it is known by when it is read again.
    pub(in super::super) version: Version,
    /// The field that cannot be read, and what it holds.
    pub(in super::super) field: String,
    pub(in super::super) value: String,
}

impl Skipped {
    /// Whether it is known by the fields that every reading asks for, and not by the whole row.
    pub(in super::super) fn is_known_by_its_cursor(&self) -> bool {
        self.second.is_some() || self.id.is_some()
    }
}

/// What rows without a readable cursor are known by when they are read again.
///
/// By what of the cursor can be read. Rows without an id that share second and modification count are told apart by counting them:
/// wherever a second is read, it is read from its beginning. A row with neither is known by all of it.
#[derive(Debug, Default)]
pub(super) struct Versions(BTreeMap<Version, u64>);

impl Versions {
    pub(super) fn of(&mut self, second: Option<i64>, id: Option<&str>, mod_count: Option<&str>, raw: &RawValue) -> Version {
        let mut digest = Sha256::new();
        digest.update(b"without a readable cursor");
        match (second, id) {
            (None, None) => digest.update(raw.get()),
            (second, id) => {
                digest.update(second.map_or([0; 8], i64::to_be_bytes));
                digest.update(id.unwrap_or_default());
                digest.update([0]);
                digest.update(mod_count.unwrap_or_default());
            }
        }
        let nth = self.0.entry(shortened(digest.clone())).or_default();
        digest.update(nth.to_be_bytes());
        *nth += 1;
        shortened(digest)
    }
}

fn shortened(digest: Sha256) -> Version {
    let mut version = [0; 16];
    version.copy_from_slice(&digest.finalize()[..16]);
    version
}
