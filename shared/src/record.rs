//! What is produced: one record per row.
//!
//! A source gives [`Rows`], a sink takes [`Record`]s, and this part knows neither of them.
//!
//! ```text
//! shape      from rows to records               schema   what fields are: Connect's model
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

pub use growing::joined as joined_schemas;
use schema::Schema;
pub use shape::{Made, Names, Shape};
pub use store::{SchemaPlace, SchemaStore};
use value::Value;

/// One row as a source gives it.
#[derive(Debug, Clone)]
pub struct Row {
    /// The record's key.
    pub key: Bytes,
    /// What it says.
    pub content: Content,
    /// The cursor timestamp in epoch milliseconds, where the source has one.
    pub timestamp_ms: Option<i64>,
}

/// What a row says.
#[derive(Debug, Clone)]
pub enum Content {
    /// A JSON object, as the server sent it where it could be left as it is.
    Json(Bytes),
    /// A value per field of the rows' schema, in its order.
    Fields(Vec<Value<'static>>),
}

/// Rows that were read together.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'p> {
    /// The rows, in their order.
    pub rows: &'p [Row],
    /// What the fields of rows with [`Content::Fields`] are, the same value for as long as it stays the same; `None` where
    /// rows are JSON.
    pub schema: Option<&'p Arc<Schema>>,
    /// When they were read, in epoch milliseconds of the local clock.
    pub extracted_at_ms: i64,
}

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
