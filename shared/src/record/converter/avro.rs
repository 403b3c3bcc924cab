//! Avro as Confluent's `AvroConverter` and AWS's `AWSKafkaAvroConverter` write it.
//!
//! A consumer that used one of them must find the same `Struct`, so the schema is made as their `AvroData` makes it from
//! Connect's (`confluentinc/schema-registry`, `io.confluent.connect.avro.AvroData`; the other is a fork of it):
//!
//! ```text
//! struct            record, its name split at the last point        int8, int16   int with connect.type
//! optional          ["null", type] with default null                decimal       bytes, precision 64
//! name, version,    connect.name, connect.version,                  date, time    int,  date and time-millis
//!   parameters        connect.parameters                            timestamp     long, timestamp-millis
//! ```
//!
//! Fields are written straight from the row's values; there is no value of Avro in between. [`schema`] makes the text of a
//! schema, [`plan`] is what writes values of one, and [`resolve`] makes such a plan for a schema of somebody else.

mod names;
mod plan;
mod resolve;
mod schema;

use super::framed::{Description, Format, SchemaError, Writer};
use super::registration::Language;
use crate::record::schema::Schema;
use names::Names;

/// The settings of `AvroData` that say something about a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvroSettings {
    /// `scrub.invalid.names`: whether names that Avro does not take are made ones that it does; else they are refused.
    pub scrub_invalid_names: bool,
    /// `connect.meta.data`: whether the properties `connect.…` go along.
    pub connect_meta_data: bool,
}

impl Default for AvroSettings {
    /// As `AvroData` has them.
    fn default() -> Self {
        Self { scrub_invalid_names: false, connect_meta_data: true }
    }
}

/// Avro.
#[derive(Debug, Clone, Copy, Default)]
pub struct Avro {
    settings: AvroSettings,
}

impl Avro {
    /// With these settings.
    pub fn new(settings: AvroSettings) -> Self {
        Self { settings }
    }

    fn names(&self) -> Names {
        Names { scrub: self.settings.scrub_invalid_names }
    }
}

impl Format for Avro {
    fn language(&self) -> Language {
        Language::Avro
    }

    fn describe(&self, schema: &Schema) -> Result<Description, SchemaError> {
        schema::describe(schema, self.names(), self.settings.connect_meta_data)
    }

    fn writer(&self, schema: &Schema, instead: Option<&str>) -> Result<Box<dyn Writer>, SchemaError> {
        let plan = match instead {
            None => plan::Plan::of(schema),
            Some(text) => resolve::resolve(schema, text, self.names())?,
        };
        Ok(Box::new(plan))
    }
}

#[cfg(test)]
mod tests;
