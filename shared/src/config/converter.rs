//! Which converter turns keys and values into bytes, chosen as Connect chooses.
//!
//! A connector that names a converter brings that converter's settings along; one that names none uses the worker's
//! converter with the worker's settings. The two are never mixed, so settings of a connector that names no converter
//! have no effect, there and here.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use super::fault::Faults;
use super::key::{Fallback, Key, Kind};
use super::values::Values;

mod registry;
pub(super) mod settings;

/// Whose bytes a converter makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The record's key.
    Key,
    /// The record's value.
    Value,
}

impl Role {
    /// The key that names the converter.
    pub fn class_key(self) -> &'static str {
        match self {
            Role::Key => "key.converter",
            Role::Value => "value.converter",
        }
    }
}

/// What a converter writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text itself.
    String,
    /// JSON without a schema: the row as the source gave it.
    RawJson,
    /// JSON in Connect's envelope of schema and payload.
    JsonWithSchema,
    /// Avro by way of the Confluent schema registry.
    Avro,
    /// JSON Schema by way of the Confluent schema registry.
    JsonSchema,
    /// Avro by way of the AWS Glue schema registry.
    GlueAvro,
    /// JSON Schema by way of the AWS Glue schema registry.
    GlueJsonSchema,
}

impl Format {
    /// Whether a registry keeps its schemas.
    pub fn has_registry(self) -> bool {
        matches!(self, Format::Avro | Format::JsonSchema | Format::GlueAvro | Format::GlueJsonSchema)
    }
}

/// The converter of a connector's keys or values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converter {
    /// What it writes.
    pub format: Format,
    /// Whether the worker's document names it.
    pub of_worker: bool,
    /// Whose bytes it makes.
    pub role: Role,
}

/// A class that `key.converter` and `value.converter` know, in its names.
struct Class {
    names: &'static [&'static str],
    format: Result<Format, &'static str>,
}

static CLASSES: &[Class] = &[
    Class { names: &["string", "org.apache.kafka.connect.storage.StringConverter"], format: Ok(Format::String) },
    Class { names: &["raw"], format: Ok(Format::RawJson) },
    Class { names: &["json", "org.apache.kafka.connect.json.JsonConverter"], format: Ok(Format::JsonWithSchema) },
    Class { names: &["avro", "io.confluent.connect.avro.AvroConverter"], format: Ok(Format::Avro) },
    Class { names: &["json-schema", "io.confluent.connect.json.JsonSchemaConverter"], format: Ok(Format::JsonSchema) },
    Class {
        names: &["glue-avro", "com.amazonaws.services.schemaregistry.kafkaconnect.AWSKafkaAvroConverter"],
        format: Ok(Format::GlueAvro),
    },
    Class {
        names: &["glue-json-schema", "com.amazonaws.services.schemaregistry.kafkaconnect.jsonschema.JsonSchemaConverter"],
        format: Ok(Format::GlueJsonSchema),
    },
    Class {
        names: &["io.confluent.connect.protobuf.ProtobufConverter"],
        format: Err("Protobuf is not supported; use JSON, Avro or JSON Schema"),
    },
    Class {
        names: &["org.apache.kafka.connect.converters.ByteArrayConverter"],
        format: Err("a row is no byte array; for the row's JSON as the source gave it write `raw`"),
    },
];

/// The keys that name converters.
pub(super) static CLASS_KEYS: &[Key] = &[
    Key::new(
        "key.converter",
        Kind::Text,
        "What record keys are written as, by the names of value.converter. Absent in connector and worker: the text itself, as by \
         Connect's StringConverter.",
    )
    .structural(),
    Key::new(
        "value.converter",
        Kind::Text,
        "What record values are written as: `string`, `json`, `raw`, `avro`, `json-schema`, `glue-avro`, `glue-json-schema` or the \
         class names of Connect, Confluent and AWS. Absent in connector and worker: JSON without a schema.",
    )
    .structural(),
];

/// The class of this name.
fn class(name: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|class| class.names.contains(&name))
}

/// Every accepted name of a converter.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().filter(|class| class.format.is_ok()).flat_map(|class| class.names.iter().copied())
}

/// What the converter of this name writes; `None` if there is none.
pub(super) fn format(name: &str) -> Option<Format> {
    class(name)?.format.ok()
}

/// Says what is wrong with the converters that a document names.
pub(super) fn check(values: &Values, faults: &mut Faults) {
    for role in [Role::Key, Role::Value] {
        let Some(name) = values.text(role.class_key()) else {
            continue;
        };
        match class(name).map(|class| class.format) {
            None => {
                let near = super::suggest::nearest(name, names());
                let hint = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                faults.push(
                    values
                        .fault(role.class_key(), format!("is no converter that is known here{hint}"))
                        .allowing(names().collect::<Vec<_>>().join(", ")),
                );
            }
            Some(Err(why)) => faults.push(values.fault(role.class_key(), why)),
            Some(Ok(Format::String)) if role == Role::Value => faults.warn(values.fault(
                role.class_key(),
                "writes rows in the notation of Java's toString, as Connect does, and nothing can read that back; use `json` or `raw`",
            )),
            Some(Ok(Format::Avro | Format::JsonSchema)) => registry::check_confluent(role, name, values, faults),
            Some(Ok(_)) => {}
        }
    }
    registry::check_glue_names(values, faults);
}

/// The converter of a connector, by Connect's rule.
pub(super) fn choose(role: Role, connector: &Values, worker: &Values) -> Converter {
    let key = role.class_key();
    let of_worker = !connector.is_set(key) && worker.is_set(key);
    let owner = if of_worker { worker } else { connector };
    let format = match owner.text(key).and_then(class).map(|class| class.format) {
        Some(Ok(Format::JsonWithSchema)) if owner.boolean(&format!("{key}.schemas.enable")) == Some(false) => Format::RawJson,
        Some(Ok(format)) => format,
        // None is named; or one that is a fault, and the document goes no further.
        Some(Err(_)) | None => match role {
            Role::Key => Format::String,
            Role::Value => Format::RawJson,
        },
    };
    Converter { format, of_worker, role }
}

impl Converter {
    /// The settings of this converter, without their prefix. They can hold secrets.
    pub fn settings<'v>(&self, connector: &'v Values, worker: &'v Values) -> Vec<(&'v str, &'v str)> {
        let owner = if self.of_worker { worker } else { connector };
        let prefix = format!("{}.", self.role.class_key());
        owner.entries.iter().filter_map(|(name, entry)| Some((name.strip_prefix(&prefix)?, entry.text()?))).collect()
    }

    /// The settings of this converter, read one by one.
    pub fn read<'v>(&self, connector: &'v Values, worker: &'v Values) -> Settings<'v> {
        let values = if self.of_worker { worker } else { connector };
        Settings { values, prefix: self.role.class_key(), keys: settings::of(self.format) }
    }
}

/// The settings of one converter, in documents that were checked and whose placeholders are looked up: each has the type
/// that its definition says.
#[derive(Debug)]
pub struct Settings<'v> {
    values: &'v Values,
    prefix: &'static str,
    keys: Vec<&'static Key>,
}

impl<'v> Settings<'v> {
    /// The key of the document that holds a setting.
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.prefix)
    }

    /// A text, given or by default.
    pub fn text(&self, name: &str) -> Option<&'v str> {
        self.values.text(&self.key(name)).or_else(|| match self.keys.iter().find(|key| key.name == name)?.default {
            Fallback::Text(text) => Some(text),
            _ => None,
        })
    }

    /// A secret.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        self.text(name).map(SecretString::from)
    }

    /// A boolean; false without a value.
    pub fn boolean(&self, name: &str) -> bool {
        self.text(name).and_then(super::kind::boolean).unwrap_or_default()
    }

    /// A number.
    pub fn integer<T: TryFrom<i64>>(&self, name: &str) -> Option<T> {
        T::try_from(self.text(name)?.parse().ok()?).ok()
    }

    /// A time in milliseconds; none without a value.
    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.integer(name).unwrap_or_default())
    }

    /// Addresses, separated by commas.
    pub fn addresses(&self, name: &str) -> Vec<Url> {
        self.text(name).and_then(|text| settings::addresses(text).ok()).unwrap_or_default()
    }

    /// An address.
    pub fn address(&self, name: &str) -> Option<Url> {
        super::kind::endpoint(self.text(name)?).ok()
    }

    /// Names with values, separated by commas.
    pub fn tags(&self, name: &str) -> Vec<(String, String)> {
        self.text(name).and_then(|text| settings::tags(text).ok()).unwrap_or_default()
    }
}
