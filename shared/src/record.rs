//! What is produced: one record per row.
//!
//! ```text
//! shape      from a page's rows to records      schema     what fields are: Connect's model
//! envelope   before, after, source, op, ts_ms   value      a row's values in the schema's order
//! converter  from data to bytes
//! ```

pub mod converter;
mod envelope;
pub mod schema;
mod shape;
pub mod value;

use std::sync::Arc;

use bytes::Bytes;

pub use shape::Shape;

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
