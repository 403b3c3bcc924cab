//! The change envelope: `before`, `after`, `source`, `op`, `ts_ms`, as a map or as a struct.
//!
//! As a map the row's bytes are spliced in as they are; they are not parsed for this. `before` is always null, because
//! the source has no history, and `op` is always `u`, because it does not tell a creation from an update.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::converter::PerSchema;
use super::schema::{Field, Schema, Type};
use super::value::Value;

/// Everything of the envelope but the row and its time.
#[derive(Debug)]
pub(super) struct Envelope {
    between: String,
    table: String,
    instance: String,
    name: String,
    source: Arc<Schema>,
    schemas: PerSchema<Arc<Schema>>,
}

const OPEN: &str = r#"{"before":null,"after":"#;

impl Envelope {
    /// `namespace`: what the schemas' names begin with.
    pub(super) fn new(namespace: &str, table: &str, instance: &str) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let text = || Schema::of(Type::String);
        let fields = vec![Field::new("table", text()), Field::new("instance", text())];
        Self {
            between: format!(r#","source":{{"table":{},"instance":{}}},"op":"u","ts_ms":"#, quoted(table), quoted(instance)),
            table: table.to_owned(),
            instance: instance.to_owned(),
            name: format!("{namespace}.{table}.Envelope"),
            source: Arc::new(Schema::structure(format!("{namespace}.Source"), fields)),
            schemas: PerSchema::default(),
        }
    }

    /// `timestamp_ms`: the row's cursor timestamp; null where the source has none.
    pub(super) fn splice(&self, row: &[u8], timestamp_ms: Option<i64>) -> Bytes {
        let time = timestamp_ms.map_or_else(|| "null".to_owned(), |ms| ms.to_string());
        let mut value = BytesMut::with_capacity(OPEN.len() + row.len() + self.between.len() + time.len() + 1);
        value.put_slice(OPEN.as_bytes());
        value.put_slice(row);
        value.put_slice(self.between.as_bytes());
        value.put_slice(time.as_bytes());
        value.put_u8(b'}');
        value.freeze()
    }

    /// The schema of the envelope around rows of `row`, under the row's version.
    pub(super) fn schema(&self, row: &Arc<Schema>) -> Arc<Schema> {
        self.schemas.get_or_make(row, || {
            let field = |name: &str, schema: &Arc<Schema>| Field { name: name.to_owned(), schema: Arc::clone(schema) };
            let before = Schema { optional: true, ..(**row).clone() };
            let fields = vec![
                Field::new("before", before),
                field("after", row),
                field("source", &self.source),
                Field::new("op", Schema::of(Type::String)),
                Field::new("ts_ms", Schema::of(Type::Int64).optional()),
            ];
            Arc::new(Schema { version: row.version, ..Schema::structure(&self.name, fields) })
        })
    }

    /// The envelope around `row`.
    pub(super) fn wrap<'a>(&'a self, row: Value<'a>, timestamp_ms: Option<i64>) -> Value<'a> {
        let source = Value::Struct(vec![Value::from(self.table.as_str()), Value::from(self.instance.as_str())]);
        Value::Struct(vec![Value::Null, row, source, Value::from("u"), timestamp_ms.map_or(Value::Null, Value::Int)])
    }

    /// The row that [`Envelope::wrap`] went around.
    pub(super) fn unwrap(envelope: Value<'_>) -> Value<'_> {
        match envelope {
            Value::Struct(mut fields) if fields.len() > 1 => fields.swap_remove(1),
            other => other,
        }
    }
}
