//! The registration of a schema, as converters ask for it: a schema goes in, what stands before each record comes out.
//!
//! A converter makes the text of a schema in its own format and asks a [`Registry`] for it once per page and schema. The
//! registry knows the subject or name that the schema is kept under, caches what it answered for as long as the process
//! lives, and answers with a [`Registered`]: the bytes that go before the data, and how the data is packed. Which registry
//! it is, Confluent's or AWS Glue's, no converter knows.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::failure::Failure;

/// Whose bytes a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The record's key.
    Key,
    /// The record's value.
    Value,
}

/// The language of a schema's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    /// Avro, as JSON.
    Avro,
    /// JSON Schema.
    JsonSchema,
}

/// A schema on its way to a registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The topic of the records.
    pub topic: String,
    /// Whose bytes it describes.
    pub part: Part,
    /// The full name of the record that it describes, for the strategies that name subjects after it; none of a schema that
    /// is no record.
    pub record: Option<String>,
    /// Its language.
    pub language: Language,
    /// The schema itself, without needless space.
    pub text: String,
}

/// What a registry said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// What goes before the data of each record.
    pub header: Bytes,
    /// Whether the data behind the header is compressed with zlib.
    pub zlib: bool,
    /// The schema to write with, where the registry holds another than the one it was asked for and the settings say that
    /// this one counts.
    pub instead: Option<String>,
}

/// What a registry has for the records of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The subject or the schema's name; the topic where the name depends on the record.
    pub name: String,
    /// Whether there is a version; `None` where that cannot be told before there is a record.
    pub is_there: Option<bool>,
    /// Whether a missing one is registered.
    pub registers: bool,
}

/// Keeps schemas.
#[async_trait]
pub trait Registry: Send + Sync + fmt::Debug {
    /// Registers the schema or finds it, as the settings say. What it takes ends by `by`, a reading of the monotonic clock, if
    /// that comes before the time that the registry has anyway.
    ///
    /// # Errors
    /// The registry cannot be reached or refuses; told with the subject or name and the reason. Nothing was produced then.
    async fn register(&self, candidate: &Candidate, by: Option<Duration>) -> Result<Registered, Failure>;

    /// Asks what is there for the records of `topic`, and leaves nothing behind.
    ///
    /// # Errors
    /// The registry cannot be reached, or does not let us ask.
    async fn probe(&self, topic: &str, part: Part) -> Result<Kept, Failure>;
}
