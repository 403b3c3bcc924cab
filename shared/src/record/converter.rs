//! From data to bytes, in the two steps that a schema asks for.
//!
//! [`Converter::encoder`] is asked once per page and schema and may talk to a registry; the [`Encoder`] that it answers
//! writes one row after the other and does no I/O. A schema is shared and never changes, so an encoder, and all that is
//! prepared in it, belongs to one schema and is kept as long as that is in use.
//!
//! ```text
//! string, json         formats that need nobody      registration   what is asked of a registry, and what it says
//! avro, json_schema    formats whose schemas a       framed         the converter of such a format: its schema
//!                      registry keeps                               registered, its data behind the registry's header
//! ```

pub mod avro;
mod framed;
pub mod json;
pub mod json_schema;
#[cfg(test)]
pub(super) mod ledger;
pub mod registration;
pub mod string;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::schema::Schema;
use super::value::Value;
use crate::failure::Failure;

pub use framed::RegistryConverter;

/// What keys or values are written as.
#[async_trait]
pub trait Converter: Send + Sync + fmt::Debug {
    /// What writes data of `schema`, or data without a schema, into records of `topic`. Whoever keeps its schemas is waited
    /// for until `by`, a reading of the monotonic clock, at the longest.
    ///
    /// # Errors
    /// The format has no place for such data, or whoever keeps its schemas refuses or cannot be reached. Nothing was
    /// produced then.
    async fn encoder(&self, topic: &str, schema: Option<&Arc<Schema>>, by: Option<Duration>) -> Result<Arc<dyn Encoder>, Failure>;

    /// Whether the format has a place for data of `schema`, its names above all. Asks nobody: it is for a schema that is about to
    /// be kept for good.
    ///
    /// # Errors
    /// The format has none. [`Converter::encoder`] would fail with the same.
    fn accepts(&self, _topic: &str, _schema: &Arc<Schema>) -> Result<(), Failure> {
        Ok(())
    }

    /// Asks whoever keeps the schemas of `topic`, and leaves nothing behind; `None` if nobody does.
    async fn probe(&self, _topic: &str) -> Option<Result<registration::Kept, Failure>> {
        None
    }
}

/// Writes values of one schema.
pub trait Encoder: Send + Sync + fmt::Debug {
    /// The bytes of a value, which is as the schema says: [`Value::Json`] without one.
    ///
    /// # Errors
    /// The value has no form in this format.
    fn encode(&self, value: &Value<'_>) -> Result<Bytes, EncodeError>;

    /// The bytes of a text, which may be these bytes themselves.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    fn encode_text(&self, text: &Bytes) -> Result<Bytes, EncodeError> {
        let text = std::str::from_utf8(text).map_err(|_| EncodeError { detail: "it is not UTF-8".to_owned() })?;
        self.encode(&Value::from(text))
    }
}

/// A value that a format cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct EncodeError {
    /// What is wrong with it; not the value itself.
    pub detail: String,
}

impl EncodeError {
    /// A value that is not what `what` says: a defect of whoever made it.
    pub fn unlike(what: &str) -> Self {
        Self { detail: format!("a value is not as {what} says") }
    }

    /// A value of a field that the registry's schema does not have.
    pub(in crate::record) fn lacking(field: &str) -> Self {
        let remedy = "add it there, or leave it out here with the table's `fields`";
        Self { detail: format!("field {field} has a value here, and the registry's schema lacks the field; {remedy}") }
    }
}

/// What is kept per schema. Schemas are told apart by identity: they are shared and never change, and comparing hundreds of
/// fields per page would cost more than it saves.
#[derive(Debug)]
pub struct PerSchema<T> {
    entries: Mutex<Vec<(Arc<Schema>, T)>>,
}

/// More schemas than are in use at a time. The oldest goes first; it is made again if it comes back.
const KEPT: usize = 64;

impl<T> Default for PerSchema<T> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

impl<T: Clone> PerSchema<T> {
    /// What is kept for `schema`.
    pub fn get(&self, schema: &Arc<Schema>) -> Option<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().find(|(known, _)| Arc::ptr_eq(known, schema)).map(|(_, kept)| kept.clone())
    }

    /// Keeps `value` for `schema`.
    pub fn put(&self, schema: &Arc<Schema>, value: T) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= KEPT {
            entries.remove(0);
        }
        entries.push((Arc::clone(schema), value));
    }

    /// What is kept for `schema`, made now if there is nothing.
    pub fn get_or_make(&self, schema: &Arc<Schema>, make: impl FnOnce() -> T) -> T {
        if let Some(kept) = self.get(schema) {
            return kept;
        }
        let made = make();
        self.put(schema, made.clone());
        made
    }
}
