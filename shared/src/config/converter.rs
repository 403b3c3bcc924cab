//! Which converter turns keys and values into bytes, chosen as Connect chooses.
//!
//! A connector that names a converter brings that converter's settings along; one that names none uses the worker's
//! converter with the worker's settings. The two are never mixed, so settings of a connector that names no converter
//! have no effect, there and here.

use super::fault::Faults;
use super::key::{Key, Kind, NotBuilt, Scope};
use super::values::Values;

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

/// The settings of the converters that need no registry.
pub(super) static SETTINGS: &[Key] = &[
    Key::new("schemas.enable", Kind::Boolean, "JsonConverter: whether the schema goes along. As in Connect, true unless set to false.")
        .scope(Scope::Converter)
        .structural(),
    Key::new("schemas.cache.size", Kind::Integer { min: 0, max: i64::MAX, unit: "" }, "JsonConverter: accepted for compatibility.")
        .scope(Scope::Converter),
    Key::new(
        "decimal.format",
        Kind::Choice(&["BASE64", "NUMERIC"]),
        "JsonConverter: how the decimals of a schema are written, as the bytes of the unscaled value or as a number. As in Connect, \
         BASE64 unless set.",
    )
    .scope(Scope::Converter),
    Key::new("replace.null.with.default", Kind::Boolean, "JsonConverter: accepted for compatibility; no schema here has defaults.")
        .scope(Scope::Converter),
    Key::new("converter.encoding", Kind::Choice(&["UTF-8", "UTF8"]), "StringConverter: text is always UTF-8.").scope(Scope::Converter),
];

/// A setting of a converter that talks to a registry. What it may hold is the registry's business, secrets included.
pub(super) static REGISTRY_SETTING: Key =
    Key::new("*", Kind::Text, "Settings of a converter that uses a schema registry are passed to it.").scope(Scope::Converter).sensitive();

/// The class of this name.
fn class(name: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|class| class.names.contains(&name))
}

/// Every accepted name of a converter.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().filter(|class| class.format.is_ok()).flat_map(|class| class.names.iter().copied())
}

/// Whether settings below this converter are ours to know.
pub(super) fn needs_registry(name: &str) -> bool {
    matches!(
        class(name).map(|class| &class.format),
        Some(Ok(Format::Avro | Format::JsonSchema | Format::GlueAvro | Format::GlueJsonSchema))
    )
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
            Some(Ok(Format::Avro | Format::JsonSchema)) => {
                let url = format!("{}.schema.registry.url", role.class_key());
                if !values.is_set(&url) {
                    faults.push(values.fault(&url, format!("is required by the converter {name}")));
                }
            }
            Some(Ok(_)) => {}
        }
    }
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

    /// The refusal of a format that is not built yet.
    pub(super) fn not_built(&self, connector: &str) -> Option<NotBuilt> {
        let what = match self.format {
            Format::String | Format::RawJson | Format::JsonWithSchema => return None,
            Format::Avro => "AvroConverter",
            Format::JsonSchema => "JsonSchemaConverter",
            Format::GlueAvro => "the Glue Avro converter",
            Format::GlueJsonSchema => "the Glue JSON Schema converter",
        };
        let key = self.role.class_key();
        let instead = "use org.apache.kafka.connect.json.JsonConverter";
        Some(NotBuilt {
            code: NotBuilt::CODE,
            connector: connector.to_owned(),
            key: key.to_owned(),
            message: format!("{what} is not built yet; {instead}"),
        })
    }
}
