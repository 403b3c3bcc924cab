//! The converter of every format with a schema registry: describe a schema, have it registered, write values behind a header.
//!
//! ```text
//! schema -> Format::describe -> Candidate -> Registry -> Registered -> Format::writer -> [header][data] per row
//! ```
//!
//! The text of a schema is made once per schema. The registry is asked with every page, so that what it decides to forget is
//! forgotten here too; as long as its answer is the same, so is the encoder.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::registration::{Candidate, Kept, Language, Part, Registered, Registry};
use super::{Converter, EncodeError, Encoder, PerSchema};
use crate::failure::{Failure, Retry};
use crate::record::schema::Schema;
use crate::record::value::Value;

/// A format whose schemas a registry keeps.
pub trait Format: Send + Sync + fmt::Debug {
    /// The language of its schemas.
    fn language(&self) -> Language;

    /// The schema in that language.
    ///
    /// # Errors
    /// The language has no place for such a schema.
    fn describe(&self, schema: &Schema) -> Result<Description, SchemaError>;

    /// What writes values of `schema`: by its own description, or by the schema that the registry wants `instead`.
    ///
    /// # Errors
    /// `instead` has no place for such values.
    fn writer(&self, schema: &Schema, instead: Option<&str>) -> Result<Box<dyn Writer>, SchemaError>;
}

/// Writes values of one schema, without a header.
pub trait Writer: Send + Sync + fmt::Debug {
    /// Appends a value to `out`.
    ///
    /// # Errors
    /// The value has no form in this format. What was appended by then means nothing.
    fn write(&self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError>;
}

/// A schema in the language of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The full name of the record, if it is one.
    pub record: Option<String>,
    /// The schema, without needless space.
    pub text: String,
}

/// Why a format cannot write values of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Values come without a schema, and the format has none without.
    #[error(
        "{format} needs a schema, and rows have none in schema mode schemaless; set the schema mode (snow.source.schema.mode, \
         mssql.schema.mode) to strings or typed, or write JSON with the converter `json`"
    )]
    Schemaless {
        /// The format.
        format: &'static str,
    },
    /// A name that the format does not take.
    #[error("{0}")]
    Name(String),
    /// The registry's schema has no place for such rows, whatever their values.
    #[error("the schema that the registry holds does not fit these rows: {0}")]
    Unlike(String),
}

impl SchemaError {
    fn of(self, topic: &str) -> Failure {
        Failure::new(self.code(), Retry::Never, format!("topic {topic}: {self}"))
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Schemaless { .. } => "Record.Schemaless",
            Self::Name(_) => "Record.InvalidName",
            Self::Unlike(_) => "Record.SchemaMismatch",
        }
    }
}

/// A converter of a format by way of a registry.
#[derive(Debug)]
pub struct RegistryConverter<F> {
    format: F,
    part: Part,
    registry: Arc<dyn Registry>,
    known: PerSchema<Arc<Known>>,
}

/// What is kept of one schema.
#[derive(Debug)]
struct Known {
    description: Description,
    last: Mutex<Option<Made>>,
}

/// An encoder, and what it was made for. Which topic it is for makes no difference to it.
#[derive(Debug, Clone)]
struct Made {
    registered: Registered,
    encoder: Arc<dyn Encoder>,
}

impl<F: Format> RegistryConverter<F> {
    /// Writes the `part` of records in `format`, with schemas kept in `registry`.
    pub fn new(format: F, part: Part, registry: Arc<dyn Registry>) -> Self {
        Self { format, part, registry, known: PerSchema::default() }
    }

    fn known(&self, schema: &Arc<Schema>) -> Result<Arc<Known>, SchemaError> {
        if let Some(known) = self.known.get(schema) {
            return Ok(known);
        }
        let known = Arc::new(Known { description: self.format.describe(schema)?, last: Mutex::default() });
        self.known.put(schema, Arc::clone(&known));
        Ok(known)
    }
}

#[async_trait]
impl<F: Format> Converter for RegistryConverter<F> {
    async fn probe(&self, topic: &str) -> Option<Result<Kept, Failure>> {
        Some(self.registry.probe(topic, self.part).await)
    }

    fn accepts(&self, topic: &str, schema: &Arc<Schema>) -> Result<(), Failure> {
        self.known(schema).map(drop).map_err(|error| error.of(topic))
    }

    async fn encoder(&self, topic: &str, schema: Option<&Arc<Schema>>, by: Option<Duration>) -> Result<Arc<dyn Encoder>, Failure> {
        let refuse = |error: SchemaError| error.of(topic);
        let format = match self.format.language() {
            Language::Avro => "Avro",
            Language::JsonSchema => "JSON Schema",
        };
        let schema = schema.ok_or_else(|| refuse(SchemaError::Schemaless { format }))?;
        let known = self.known(schema).map_err(refuse)?;
        let candidate = Candidate {
            topic: topic.to_owned(),
            part: self.part,
            record: known.description.record.clone(),
            language: self.format.language(),
            text: known.description.text.clone(),
        };
        let registered = self.registry.register(&candidate, by).await?;
        let last = known.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(made) = last.filter(|made| made.registered == registered) {
            return Ok(made.encoder);
        }
        let writer = self.format.writer(schema, registered.instead.as_deref()).map_err(refuse)?;
        let encoder: Arc<dyn Encoder> = Arc::new(Framed::new(&registered, writer));
        let made = Made { registered, encoder: Arc::clone(&encoder) };
        *known.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(encoder)
    }
}

/// Data behind the header of a registry.
#[derive(Debug)]
struct Framed {
    header: Bytes,
    zlib: bool,
    writer: Box<dyn Writer>,
    /// The size of the last data: the next is much like it.
    size: AtomicUsize,
}

impl Framed {
    fn new(registered: &Registered, writer: Box<dyn Writer>) -> Self {
        Self { header: registered.header.clone(), zlib: registered.zlib, writer, size: AtomicUsize::new(256) }
    }

    fn packed(&self, value: &Value<'_>, mut out: Vec<u8>) -> Result<Vec<u8>, EncodeError> {
        let mut data = Vec::with_capacity(self.size.load(Ordering::Relaxed));
        self.writer.write(value, &mut data)?;
        self.size.store(data.len(), Ordering::Relaxed);
        out.extend_from_slice(&self.header);
        let mut zlib = ZlibEncoder::new(out, Compression::default());
        let packed = zlib.write_all(&data).and_then(|()| zlib.finish());
        packed.map_err(|error| EncodeError { detail: format!("it cannot be compressed: {error}") })
    }
}

impl Encoder for Framed {
    fn encode(&self, value: &Value<'_>) -> Result<Bytes, EncodeError> {
        if self.zlib {
            return self.packed(value, Vec::new()).map(Bytes::from);
        }
        let last = self.size.load(Ordering::Relaxed);
        let mut out = Vec::with_capacity(self.header.len() + last + last / 8);
        out.extend_from_slice(&self.header);
        self.writer.write(value, &mut out)?;
        self.size.store(out.len() - self.header.len(), Ordering::Relaxed);
        Ok(Bytes::from(out))
    }
}

#[cfg(test)]
mod tests;
