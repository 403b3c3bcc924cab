//! Which converters the keys and values of a connector go through, made from what its documents say.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::config::{self, Connector, Format, ResolveError, Resolver, Worker};
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::record::converter::avro::{Avro, AvroSettings};
use crate::record::converter::json::{DecimalFormat, JsonConverter};
use crate::record::converter::json_schema::{Dialect, JsonSchema};
use crate::record::converter::registration::{Part, Registry};
use crate::record::converter::string::StringConverter;
use crate::record::converter::{Converter, RegistryConverter};
use crate::registry::confluent::{self, Confluent};
use crate::registry::glue::{self, Glue};
use crate::registry::{Answers, Rotation};

/// The converters of a connector.
#[derive(Debug, Clone)]
pub struct Converters {
    /// Of record keys.
    pub keys: Arc<dyn Converter>,
    /// Of record values.
    pub values: Arc<dyn Converter>,
}

/// What the converters of all connectors of a process share.
#[derive(Clone)]
pub struct Registries {
    answers: Answers,
    resolver: Arc<Resolver>,
    host: Host,
}

impl Registries {
    /// With nothing answered yet.
    pub fn new(resolver: Arc<Resolver>, host: Host) -> Self {
        Self { answers: Answers::default(), resolver, host }
    }
}

impl fmt::Debug for Registries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registries").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl Converters {
    /// By the documents of `connector` and `worker`, whose placeholders are resolved. Contacts nothing.
    ///
    /// # Errors
    /// `Registry.CertificateStore` for a store that cannot be used.
    pub fn of(connector: &Connector, worker: &Worker, registries: &Registries) -> Result<Self, Failure> {
        let make = |converter| One { converter, connector, worker, registries }.make();
        Ok(Self { keys: make(&connector.key_converter)?, values: make(&connector.value_converter)? })
    }
}

/// One converter in the making.
struct One<'d> {
    converter: &'d config::Converter,
    connector: &'d Connector,
    worker: &'d Worker,
    registries: &'d Registries,
}

impl One<'_> {
    fn make(&self) -> Result<Arc<dyn Converter>, Failure> {
        let settings = self.converter.read(&self.connector.values, &self.worker.values);
        let part = match self.converter.role {
            config::Role::Key => Part::Key,
            config::Role::Value => Part::Value,
        };
        let numeric = settings.text("decimal.format").is_some_and(|format| format.eq_ignore_ascii_case("NUMERIC"));
        let decimals = if numeric { DecimalFormat::Numeric } else { DecimalFormat::Base64 };
        let avro = || {
            Avro::new(AvroSettings {
                scrub_invalid_names: settings.boolean("scrub.invalid.names"),
                connect_meta_data: settings.boolean("connect.meta.data"),
            })
        };
        let json_schema =
            |dialect| JsonSchema { dialect, decimals, additional_properties: settings.boolean("object.additional.properties") };
        match self.converter.format {
            Format::String => Ok(Arc::new(StringConverter)),
            Format::RawJson => Ok(Arc::new(JsonConverter::new(false, decimals))),
            Format::JsonWithSchema => Ok(Arc::new(JsonConverter::new(true, decimals))),
            Format::Avro => Ok(Arc::new(RegistryConverter::new(avro(), part, self.confluent(&settings)?))),
            Format::GlueAvro => Ok(Arc::new(RegistryConverter::new(avro(), part, self.glue(&settings)))),
            Format::JsonSchema => {
                let format = json_schema(Dialect::Confluent);
                Ok(Arc::new(RegistryConverter::new(format, part, self.confluent(&settings)?)))
            }
            Format::GlueJsonSchema => Ok(Arc::new(RegistryConverter::new(json_schema(Dialect::Glue), part, self.glue(&settings)))),
        }
    }

    fn confluent(&self, settings: &config::Settings<'_>) -> Result<Arc<dyn Registry>, Failure> {
        let Registries { answers, resolver, host } = self.registries.clone();
        let rotation =
            ReadAgain { converter: self.converter.clone(), connector: self.connector.clone(), worker: self.worker.clone(), resolver };
        let registry = Confluent::new(confluent::Settings::read(settings), Arc::new(rotation), answers, host);
        Ok(Arc::new(registry.map_err(|error| error.of("connector", &self.connector.name))?))
    }

    fn glue(&self, settings: &config::Settings<'_>) -> Arc<dyn Registry> {
        let Registries { answers, host, .. } = self.registries.clone();
        Arc::new(Glue::new(glue::Settings::read(settings), answers, host))
    }
}

/// Reads the placeholders of the document that names a converter again, after its registry refused the login or a certificate was.
struct ReadAgain {
    converter: config::Converter,
    connector: Connector,
    worker: Worker,
    resolver: Arc<Resolver>,
}

#[async_trait]
impl Rotation for ReadAgain {
    async fn renew(&self) -> Result<Option<confluent::Settings>, Failure> {
        let unresolved = |error: ResolveError| {
            let retry = if error.is_transient() { Retry::NextTick } else { Retry::Never };
            Failure::new(error.code(), retry, format!("{}: {error}", self.connector.name))
        };
        let (connector, worker, changed) = if self.converter.of_worker {
            let (worker, changed) = self.worker.refresh(&self.resolver).await.map_err(unresolved)?;
            (self.connector.clone(), worker, changed)
        } else {
            let (connector, changed) = self.connector.refresh(&self.resolver).await.map_err(unresolved)?;
            (connector, self.worker.clone(), changed)
        };
        if !changed {
            return Ok(None);
        }
        Ok(Some(confluent::Settings::read(&self.converter.read(&connector.values, &worker.values))))
    }
}
