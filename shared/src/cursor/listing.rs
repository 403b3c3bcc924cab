//! What lies in a store for a connector: its cursors, and what should be one and cannot be read.

use serde_json::Value;

use super::{Identity, Item, Key, StoreError};

/// What lies in the place of a cursor and cannot be read: a newer program wrote it, or another one, or it is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it lies.
    pub key: Key,
    /// Whose cursor it calls itself, if at least that can be read.
    pub identity: Option<Identity>,
    /// What is wrong with it.
    pub detail: String,
}

impl Unreadable {
    /// The same as an error of whoever needs the cursor.
    pub fn error(&self) -> StoreError {
        StoreError::Format { partition: self.key.connector.clone(), place: self.key.place.clone(), detail: self.detail.clone() }
    }
}

/// All that lies in a store for a connector, each in the order of the places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// The cursors.
    pub items: Vec<Item>,
    /// What should be cursors.
    pub unreadable: Vec<Unreadable>,
}

impl Listing {
    /// Takes in what was made of what lies at `key`. `identity`: what it says of whose cursor it is, as JSON.
    ///
    /// # Errors
    /// The store did not answer; what cannot be read is no error here.
    pub(super) fn take(&mut self, key: Key, read: Result<Item, StoreError>, identity: impl FnOnce() -> Value) -> Result<(), StoreError> {
        match read {
            Ok(item) => self.items.push(item),
            Err(StoreError::Format { detail, .. }) => {
                self.unreadable.push(Unreadable { key, identity: identity_in(identity()), detail });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The identity that a newer program wrote, if it has at least the fields of today.
fn identity_in(mut value: Value) -> Option<Identity> {
    const KNOWN: [&str; 8] = ["connector", "alias", "source", "instance", "table", "field", "id_field", "fingerprint"];
    value.as_object_mut()?.retain(|name, _| KNOWN.contains(&name.as_str()));
    serde_json::from_value(value).ok()
}

/// A part of the stored text of an item that cannot be read as one; null if it has none.
pub(super) fn part(text: &str, name: &str) -> Value {
    serde_json::from_str::<Value>(text).ok().and_then(|mut whole| whole.get_mut(name).map(Value::take)).unwrap_or_default()
}
