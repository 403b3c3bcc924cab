//! From data to bytes, in the two steps that a schema asks for.
//!
//! [`Converter::encoder`] is asked once per page and schema and may talk to a registry; the [`Encoder`] that it answers
//! writes one row after the other and does no I/O. A schema is shared and never changes, so an encoder, and all that is
//! prepared in it, belongs to one schema and is kept as long as that is in use.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::schema::Schema;
use super::value::Value;
use crate::failure::Failure;

/// What keys or values are written as.
#[async_trait]
pub trait Converter: Send + Sync + fmt::Debug {
    /// What writes data of `schema`, or data without a schema, into records of `topic`.
    ///
    /// # Errors
    /// The format has no place for such data, or whoever keeps its schemas refuses or cannot be reached. Nothing was
    /// produced then.
    async fn encoder(&self, topic: &str, schema: Option<&Arc<Schema>>) -> Result<Arc<dyn Encoder>, Failure>;
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
