//! Which converters the keys and values of a connector go through, made from what its documents say.

use std::sync::Arc;

use crate::config::{self, Connector, Format, NotBuilt, Worker};
use crate::failure::{Failure, Retry};
use crate::record::converter::Converter;
use crate::record::converter::json::{DecimalFormat, JsonConverter};
use crate::record::converter::string::StringConverter;

/// The converters of a connector.
#[derive(Debug, Clone)]
pub struct Converters {
    /// Of record keys.
    pub keys: Arc<dyn Converter>,
    /// Of record values.
    pub values: Arc<dyn Converter>,
}

impl Converters {
    /// By the documents of `connector` and `worker`, whose placeholders are resolved.
    ///
    /// # Errors
    /// `Config.NotBuilt` for a format that does not exist yet.
    pub fn of(connector: &Connector, worker: &Worker) -> Result<Self, Failure> {
        let make = |converter| one(converter, connector, worker);
        Ok(Self { keys: make(&connector.key_converter)?, values: make(&connector.value_converter)? })
    }
}

fn one(converter: &config::Converter, connector: &Connector, worker: &Worker) -> Result<Arc<dyn Converter>, Failure> {
    let settings = converter.settings(&connector.values, &worker.values);
    let numeric = settings.iter().any(|(name, value)| *name == "decimal.format" && value.eq_ignore_ascii_case("NUMERIC"));
    let decimals = if numeric { DecimalFormat::Numeric } else { DecimalFormat::Base64 };
    match converter.format {
        Format::String => Ok(Arc::new(StringConverter)),
        Format::RawJson => Ok(Arc::new(JsonConverter::new(false, decimals))),
        Format::JsonWithSchema => Ok(Arc::new(JsonConverter::new(true, decimals))),
        Format::Avro | Format::JsonSchema | Format::GlueAvro | Format::GlueJsonSchema => Err(Failure::new(
            NotBuilt::CODE,
            Retry::Never,
            format!("{}: the {} is not built yet", connector.name, converter.role.class_key()),
        )),
    }
}
