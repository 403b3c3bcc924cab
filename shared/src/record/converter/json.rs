//! Connect's `JsonConverter`: the value as JSON, alone or beside its schema.
//!
//! ```text
//! schemas.enable=true     {"schema":{"type":"struct","fields":[…],"optional":false,"name":…},"payload":{…}}
//! schemas.enable=false    {…}
//! ```
//!
//! Data without a schema has `"schema":null`, or stays the bytes that it is. The text of a schema is made once per
//! schema, and so are the names in front of a struct's values; per row only the values are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};

use super::{Converter, EncodeError, Encoder, PerSchema};
use crate::failure::Failure;
use crate::record::schema::{Logical, Schema, Type};
use crate::record::value::{Value, decimal_bytes, decimal_text, quote};

/// How decimals are written: `decimal.format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecimalFormat {
    /// The unscaled value's bytes in base64.
    #[default]
    Base64,
    /// A JSON number.
    Numeric,
}

/// Writes JSON as Connect does.
#[derive(Debug)]
pub struct JsonConverter {
    schemas: bool,
    decimals: DecimalFormat,
    encoders: PerSchema<Arc<dyn Encoder>>,
}

impl JsonConverter {
    /// `schemas`: whether the schema goes along, as `schemas.enable` says.
    pub fn new(schemas: bool, decimals: DecimalFormat) -> Self {
        Self { schemas, decimals, encoders: PerSchema::default() }
    }
}

#[async_trait]
impl Converter for JsonConverter {
    async fn encoder(&self, _topic: &str, schema: Option<&Arc<Schema>>, _by: Option<Duration>) -> Result<Arc<dyn Encoder>, Failure> {
        let Some(schema) = schema else { return Ok(Arc::new(Schemaless { schemas: self.schemas })) };
        Ok(self.encoders.get_or_make(schema, || {
            let (before, after) = if self.schemas { (schema_in_front(schema), &b"}"[..]) } else { (Vec::new(), &b""[..]) };
            Arc::new(JsonEncoder { before, form: Form::of(schema, self.decimals), after, size: AtomicUsize::new(256) })
        }))
    }
}

fn schema_in_front(schema: &Schema) -> Vec<u8> {
    let mut text = b"{\"schema\":".to_vec();
    write_schema(schema, None, &mut text);
    text.extend_from_slice(b",\"payload\":");
    text
}

/// Writes a schema, of a struct's field with its name; members in the order in which Connect writes them.
fn write_schema(schema: &Schema, field: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":");
    quote(schema.kind.name(), out);
    if let Type::Struct(fields) = &schema.kind {
        out.extend_from_slice(b",\"fields\":[");
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_schema(&field.schema, Some(&field.name), out);
        }
        out.push(b']');
    }
    let optional = if schema.optional { &b",\"optional\":true"[..] } else { b",\"optional\":false" };
    out.extend_from_slice(optional);
    if let Some(name) = &schema.name {
        member("name", name, out);
    }
    if let Some(version) = schema.version {
        out.extend_from_slice(format!(",\"version\":{version}").as_bytes());
    }
    if let Some(doc) = &schema.doc {
        member("doc", doc, out);
    }
    if !schema.parameters.is_empty() {
        out.extend_from_slice(b",\"parameters\":{");
        for (at, (name, value)) in schema.parameters.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            quote(name, out);
            out.push(b':');
            quote(value, out);
        }
        out.push(b'}');
    }
    if let Some(field) = field {
        member("field", field, out);
    }
    out.push(b'}');
}

/// Writes a further member of an object, a text.
fn member(name: &str, text: &str, out: &mut Vec<u8>) {
    out.push(b',');
    quote(name, out);
    out.push(b':');
    quote(text, out);
}

/// Data without a schema.
#[derive(Debug)]
struct Schemaless {
    schemas: bool,
}

impl Encoder for Schemaless {
    fn encode(&self, value: &Value<'_>) -> Result<Bytes, EncodeError> {
        const FRONT: &[u8] = b"{\"schema\":null,\"payload\":";
        let Value::Json(json) = value else { return Err(EncodeError::unlike("JSON without a schema")) };
        if !self.schemas {
            return Ok(json.clone());
        }
        let mut bytes = BytesMut::with_capacity(FRONT.len() + json.len() + 1);
        bytes.put_slice(FRONT);
        bytes.put_slice(json);
        bytes.put_u8(b'}');
        Ok(bytes.freeze())
    }
}

/// Values of one schema.
#[derive(Debug)]
struct JsonEncoder {
    before: Vec<u8>,
    form: Form,
    after: &'static [u8],
    /// The size of the last value: the next one is much like it.
    size: AtomicUsize,
}

impl Encoder for JsonEncoder {
    fn encode(&self, value: &Value<'_>) -> Result<Bytes, EncodeError> {
        let last = self.size.load(Ordering::Relaxed);
        let mut out = Vec::with_capacity(last + last / 8);
        out.extend_from_slice(&self.before);
        self.form.write(value, &mut out)?;
        out.extend_from_slice(self.after);
        self.size.store(out.len(), Ordering::Relaxed);
        Ok(Bytes::from(out))
    }
}

/// How values of a schema are written.
#[derive(Debug)]
pub(super) enum Form {
    Plain,
    Numeric {
        scale: u8,
    },
    /// Each field with the text in front of its value: `{"name":` or `,"name":`.
    Struct(Vec<(Vec<u8>, Form)>),
}

impl Form {
    pub(super) fn of(schema: &Schema, decimals: DecimalFormat) -> Self {
        match (&schema.kind, schema.as_logical()) {
            (Type::Struct(fields), _) => Self::Struct(
                fields
                    .iter()
                    .enumerate()
                    .map(|(at, field)| {
                        let mut front = vec![if at == 0 { b'{' } else { b',' }];
                        quote(&field.name, &mut front);
                        front.push(b':');
                        (front, Self::of(&field.schema, decimals))
                    })
                    .collect(),
            ),
            (_, Some(Logical::Decimal(scale))) if decimals == DecimalFormat::Numeric => Self::Numeric { scale },
            _ => Self::Plain,
        }
    }

    pub(super) fn write(&self, value: &Value<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match (self, value) {
            (_, Value::Null) => out.extend_from_slice(b"null"),
            (Self::Struct(fields), Value::Struct(values)) => return write_struct(fields, values, out),
            (Self::Numeric { scale }, Value::Decimal(unscaled)) => out.extend_from_slice(decimal_text(*unscaled, *scale).as_bytes()),
            (Self::Plain, Value::Text(text)) => text.write_json(out),
            (Self::Plain, Value::Int(number)) => out.extend_from_slice(number.to_string().as_bytes()),
            (Self::Plain, Value::Boolean(true)) => out.extend_from_slice(b"true"),
            (Self::Plain, Value::Boolean(false)) => out.extend_from_slice(b"false"),
            (Self::Plain, Value::Float32(number)) => number_text(number, out)?,
            (Self::Plain, Value::Float64(number)) => number_text(number, out)?,
            (Self::Plain, Value::Bytes(bytes)) => base64(bytes, out),
            (Self::Plain, Value::Decimal(unscaled)) => base64(&decimal_bytes(*unscaled), out),
            _ => return Err(EncodeError::unlike("its schema")),
        }
        Ok(())
    }
}

fn write_struct(fields: &[(Vec<u8>, Form)], values: &[Value<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if fields.len() != values.len() {
        return Err(EncodeError::unlike("its schema"));
    }
    if fields.is_empty() {
        out.push(b'{');
    }
    for ((front, form), value) in fields.iter().zip(values) {
        out.extend_from_slice(front);
        form.write(value, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn number_text(number: &impl serde::Serialize, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    serde_json::to_writer(out, number).map_err(|error| EncodeError { detail: error.to_string() })
}

fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}
