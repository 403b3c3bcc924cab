//! What is produced: one record per row.
//!
//! ```text
//! shape      from a page's rows to records      schema   what fields are: Connect's model
//! row        a row's JSON, field by field       value    a row's values in the schema's order
//! typed      fields of declared types           growing  a schema that only grows, and its store
//! envelope   before, after, source, op, ts_ms   converter  from data to bytes
//! ```

pub mod converter;
mod envelope;
mod growing;
mod row;
pub mod schema;
mod shape;
#[cfg(test)]
mod shelf;
mod store;
pub mod typed;
pub mod value;

use std::sync::Arc;

use bytes::Bytes;

pub use shape::{Names, Shape};
pub use store::{SchemaPlace, SchemaStore};

/// One record for the sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The topic.
    pub topic: Arc<str>,
    /// The key, as the key converter writes it.
    pub key: Bytes,
    /// The value, as the value converter writes it; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// Record timestamp in epoch milliseconds; `None` leaves it to the broker.
    pub timestamp_ms: Option<i64>,
    /// Headers in order. Shared by the records of a page.
    pub headers: Arc<[(String, String)]>,
}

impl Record {
    /// The bytes that a size limit counts: key, value and headers.
    pub fn size(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len) + headers
    }
}
