//! The text of an Avro schema, member for member as `AvroData` and Avro's own library write it.
//!
//! Member for member, because a registry tells schemas apart by their text: a topic that Connect wrote before goes on under
//! the id that it has.

use std::borrow::Cow;

use super::names::Names;
use crate::record::converter::framed::{Description, SchemaError};
use crate::record::schema::{DECIMAL_PRECISION, Field, Logical, Schema, Type};
use crate::record::value::quote;

/// The name of a struct without one.
const UNNAMED: &str = "io.confluent.connect.avro.ConnectDefault";

/// The digits of a decimal whose schema does not say how many: `AvroData` writes this for all of them.
const PRECISION: &str = "64";

/// Describes `schema`, with the properties `connect.…` if `meta` says so.
pub(super) fn describe(schema: &Schema, names: Names, meta: bool) -> Result<Description, SchemaError> {
    let mut text = Text { out: Vec::with_capacity(1024), names, meta, defined: Vec::new(), unnamed: 0 };
    text.schema(schema, None)?;
    let record = match &schema.kind {
        Type::Struct(_) => text.defined.first().map(|(name, _)| name.clone()),
        _ => None,
    };
    Ok(Description { record, text: String::from_utf8_lossy(&text.out).into_owned() })
}

struct Text<'s> {
    out: Vec<u8>,
    names: Names,
    meta: bool,
    /// The records that were written so far, by their full names: a name is written out once and named from then on.
    defined: Vec<(String, &'s Schema)>,
    unnamed: usize,
}

impl<'s> Text<'s> {
    /// Writes a schema that stands in a record of this namespace.
    fn schema(&mut self, schema: &'s Schema, namespace: Option<&str>) -> Result<(), SchemaError> {
        if !schema.optional {
            return self.required(schema, namespace);
        }
        self.raw("[\"null\",");
        self.required(schema, namespace)?;
        self.raw("]");
        Ok(())
    }

    fn required(&mut self, schema: &'s Schema, namespace: Option<&str>) -> Result<(), SchemaError> {
        match &schema.kind {
            Type::Struct(fields) => self.record(schema, fields, namespace),
            kind => {
                self.plain(schema, kind);
                Ok(())
            }
        }
    }

    fn record(&mut self, schema: &'s Schema, fields: &'s [Field], enclosing: Option<&str>) -> Result<(), SchemaError> {
        let full: Cow<'_, str> = match &schema.name {
            Some(name) => Cow::Borrowed(name),
            None => {
                self.unnamed += 1;
                Cow::Owned(if self.unnamed > 1 { format!("{UNNAMED}{}", self.unnamed) } else { UNNAMED.to_owned() })
            }
        };
        let (namespace, name) = self.names.record(&full)?;
        let full = namespace.as_ref().map_or_else(|| name.clone(), |namespace| format!("{namespace}.{name}"));
        let is_here = namespace.as_deref() == enclosing;
        if let Some((_, known)) = self.defined.iter().find(|(known, _)| *known == full) {
            if !is_same(known, schema) {
                return Err(SchemaError::Name(format!("two different structs are both named {full}")));
            }
            self.text(if is_here { &name } else { &full });
            return Ok(());
        }
        self.defined.push((full, schema));
        self.raw("{\"type\":\"record\"");
        self.member("name", &name);
        if !is_here {
            self.member("namespace", namespace.as_deref().unwrap_or_default());
        }
        self.fields(fields, namespace.as_deref())?;
        self.connect_properties(schema, None);
        self.raw("}");
        Ok(())
    }

    fn fields(&mut self, fields: &'s [Field], namespace: Option<&str>) -> Result<(), SchemaError> {
        self.raw(",\"fields\":[");
        let mut seen: Vec<(Cow<'_, str>, &str)> = Vec::with_capacity(fields.len());
        for (at, field) in fields.iter().enumerate() {
            let name = self.names.field(&field.name)?;
            if self.names.scrub
                && let Some((_, other)) = seen.iter().find(|(known, _)| *known == name)
            {
                let both =
                    format!("the fields {other:?} and {:?} are both {name} in Avro; leave one out with the table's `fields`", field.name);
                return Err(SchemaError::Name(both));
            }
            self.raw(if at > 0 { ",{\"name\":" } else { "{\"name\":" });
            self.text(&name);
            self.raw(",\"type\":");
            self.schema(&field.schema, namespace)?;
            self.raw(if field.schema.optional { ",\"default\":null}" } else { "}" });
            seen.push((name, &field.name));
        }
        self.raw("]");
        Ok(())
    }

    /// Writes a type that has no name: alone, or with its properties.
    fn plain(&mut self, schema: &Schema, kind: &Type) {
        let (avro, connect) = match kind {
            Type::Int8 => ("int", Some("int8")),
            Type::Int16 => ("int", Some("int16")),
            Type::Int32 => ("int", None),
            Type::Int64 => ("long", None),
            Type::Float32 => ("float", None),
            Type::Float64 => ("double", None),
            Type::Boolean => ("boolean", None),
            Type::String => ("string", None),
            // A struct is a record; it does not come here.
            Type::Bytes | Type::Struct(_) => ("bytes", None),
        };
        let start = self.out.len();
        self.raw("{\"type\":");
        self.text(avro);
        let bare = self.out.len();
        if let Some(Logical::Decimal(scale)) = schema.as_logical() {
            let precision = parameter(schema, DECIMAL_PRECISION).unwrap_or(PRECISION).to_owned();
            self.raw(&format!(",\"scale\":{scale},\"precision\":{precision}"));
        }
        self.connect_properties(schema, connect);
        if let Some(logical) = schema.as_logical() {
            self.member("logicalType", logical_name(logical));
        }
        if self.out.len() == bare {
            self.out.truncate(start);
            self.text(avro);
        } else {
            self.raw("}");
        }
    }

    fn connect_properties(&mut self, schema: &Schema, connect_type: Option<&str>) {
        if !self.meta {
            return;
        }
        if let Some(doc) = &schema.doc {
            self.member("connect.doc", doc);
        }
        if let Some(version) = schema.version {
            self.raw(&format!(",\"connect.version\":{version}"));
        }
        for (at, (name, value)) in schema.parameters.iter().enumerate() {
            self.raw(if at > 0 { "," } else { ",\"connect.parameters\":{" });
            self.text(name);
            self.raw(":");
            self.text(value);
        }
        if !schema.parameters.is_empty() {
            self.raw("}");
        }
        if let Some(name) = &schema.name {
            self.member("connect.name", name);
        }
        if let Some(connect_type) = connect_type {
            self.member("connect.type", connect_type);
        }
    }

    /// Writes a further member of an object, a text.
    fn member(&mut self, name: &str, value: &str) {
        self.raw(",");
        self.text(name);
        self.raw(":");
        self.text(value);
    }

    fn text(&mut self, text: &str) {
        quote(text, &mut self.out);
    }

    fn raw(&mut self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
    }
}

/// What Avro calls a logical type of Connect.
pub(super) fn logical_name(logical: Logical) -> &'static str {
    match logical {
        Logical::Decimal(_) => "decimal",
        Logical::Date => "date",
        Logical::Time => "time-millis",
        Logical::Timestamp => "timestamp-millis",
    }
}

fn parameter<'s>(schema: &'s Schema, name: &str) -> Option<&'s str> {
    schema.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// Whether two structs are the same but for null, which is said where they stand.
fn is_same(one: &Schema, other: &Schema) -> bool {
    let of = |schema: &Schema| (schema.version, schema.doc.clone());
    one.kind == other.kind && one.parameters == other.parameters && of(one) == of(other)
}
