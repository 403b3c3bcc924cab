//! JSON Schema as Confluent's and AWS's `JsonSchemaConverter` write it: plain JSON behind the header of a registry.
//!
//! The data is what [`super::json`] writes without a schema beside it. The schema says with properties of its own what JSON
//! has no words for, so that the same `Struct` is found again (`confluentinc/schema-registry`,
//! `io.confluent.connect.json.JsonSchemaData`; `awslabs/aws-glue-schema-registry`, `ConnectSchemaToJsonSchemaConverter`):
//!
//! ```text
//! struct      object with properties, none of them required    int8 … int64, float32 …   connect.type
//! optional    oneOf null and the type                          name                      title; AWS: connect.name
//! order       connect.index                                    version, parameters       connect.version, connect.parameters
//! ```

mod resolve;

use serde_json::{Map, Value as Json, json};

use super::EncodeError;
use super::framed::{Description, Format, SchemaError, Writer};
use super::json::{DecimalFormat, Form};
use super::registration::Language;
use crate::record::schema::{Logical, Schema, Type};
use crate::record::value::Value;

/// Whose properties a schema has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Those of Confluent's converter.
    #[default]
    Confluent,
    /// Those of AWS's converter for Glue.
    Glue,
}

/// JSON Schema.
#[derive(Debug, Clone, Copy)]
pub struct JsonSchema {
    /// Whose properties it has.
    pub dialect: Dialect,
    /// `decimal.format`.
    pub decimals: DecimalFormat,
    /// `object.additional.properties`: whether objects may have properties that the schema does not name.
    pub additional_properties: bool,
}

impl JsonSchema {
    /// Of this dialect, with the settings' defaults.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, decimals: DecimalFormat::default(), additional_properties: true }
    }
}

impl Format for JsonSchema {
    fn language(&self) -> Language {
        Language::JsonSchema
    }

    fn describe(&self, schema: &Schema) -> Result<Description, SchemaError> {
        let record = matches!(schema.kind, Type::Struct(_)).then(|| schema.name.clone()).flatten();
        Ok(Description { record, text: self.schema(schema, None).to_string() })
    }

    fn writer(&self, schema: &Schema, instead: Option<&str>) -> Result<Box<dyn Writer>, SchemaError> {
        match instead {
            None => Ok(Box::new(Form::of(schema, self.decimals))),
            Some(text) => Ok(Box::new(resolve::resolve(schema, text, self.decimals)?)),
        }
    }
}

impl Writer for Form {
    fn write(&self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.write(value, out)
    }
}

impl JsonSchema {
    /// A schema, of a field with its place.
    fn schema(&self, schema: &Schema, index: Option<usize>) -> Json {
        if !schema.optional {
            return Json::Object(self.required(schema, index));
        }
        let is_struct = matches!(schema.kind, Type::Struct(_));
        let null = json!({"type": "null"});
        let branches = match self.dialect {
            Dialect::Glue if !is_struct => [Json::Object(self.required(schema, index)), null],
            Dialect::Glue | Dialect::Confluent => [null, Json::Object(self.required(schema, None))],
        };
        let mut union = Map::new();
        union.insert("oneOf".to_owned(), branches.into());
        place(&mut union, index);
        Json::Object(union)
    }

    /// The schema of what is not null.
    fn required(&self, schema: &Schema, index: Option<usize>) -> Map<String, Json> {
        let mut object = Map::new();
        let (json, connect) = self.types(schema);
        object.insert("type".to_owned(), json.into());
        if let (Some(name), Dialect::Confluent) = (&schema.name, self.dialect) {
            object.insert("title".to_owned(), name.as_str().into());
        }
        if let (Some(doc), Dialect::Confluent) = (&schema.doc, self.dialect) {
            object.insert("description".to_owned(), doc.as_str().into());
        }
        if let Type::Struct(fields) = &schema.kind {
            let properties = fields.iter().enumerate().map(|(at, field)| (field.name.clone(), self.schema(&field.schema, Some(at))));
            object.insert("properties".to_owned(), Json::Object(properties.collect()));
            if !self.additional_properties {
                object.insert("additionalProperties".to_owned(), false.into());
            }
        }
        if let (Some(doc), Dialect::Glue) = (&schema.doc, self.dialect) {
            object.insert("connect.doc".to_owned(), doc.as_str().into());
        }
        if let (Some(name), Dialect::Glue) = (&schema.name, self.dialect) {
            object.insert("connect.name".to_owned(), name.as_str().into());
        }
        if let Some(version) = schema.version {
            object.insert("connect.version".to_owned(), version.into());
        }
        if !schema.parameters.is_empty() {
            let parameters = schema.parameters.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
            object.insert("connect.parameters".to_owned(), Json::Object(parameters.collect()));
        }
        if let Some(connect) = connect {
            object.insert("connect.type".to_owned(), connect.into());
        }
        place(&mut object, index);
        object
    }

    /// The type in JSON Schema, and in Connect where that says more.
    fn types(&self, schema: &Schema) -> (&'static str, Option<&'static str>) {
        match &schema.kind {
            Type::Int8 => ("integer", Some("int8")),
            Type::Int16 => ("integer", Some("int16")),
            Type::Int32 => ("integer", Some("int32")),
            Type::Int64 => ("integer", Some("int64")),
            Type::Float32 => ("number", Some("float32")),
            Type::Float64 => ("number", Some("float64")),
            Type::Boolean => ("boolean", None),
            Type::String => ("string", None),
            Type::Bytes if self.is_number(schema) => ("number", Some("bytes")),
            Type::Bytes => ("string", Some("bytes")),
            Type::Struct(_) => ("object", None),
        }
    }

    fn is_number(&self, schema: &Schema) -> bool {
        self.decimals == DecimalFormat::Numeric && matches!(schema.as_logical(), Some(Logical::Decimal(_)))
    }
}

fn place(object: &mut Map<String, Json>, index: Option<usize>) {
    if let Some(index) = index {
        object.insert("connect.index".to_owned(), index.into());
    }
}

#[cfg(test)]
mod tests;
