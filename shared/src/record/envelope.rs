//! The change envelope in map form: `before`, `after`, `source`, `op`, `ts_ms`.
//!
//! The row's bytes are spliced in as they are; they are not parsed for this. `before` is always null, because the
//! source has no history, and `op` is always `u`, because it does not tell a creation from an update.

use bytes::{BufMut, Bytes, BytesMut};

/// Everything of the envelope but the row and its time.
#[derive(Debug, Clone)]
pub(super) struct Envelope {
    between: String,
}

const OPEN: &str = r#"{"before":null,"after":"#;

impl Envelope {
    pub(super) fn new(table: &str, instance: &str) -> Self {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        Self { between: format!(r#","source":{{"table":{},"instance":{}}},"op":"u","ts_ms":"#, quoted(table), quoted(instance)) }
    }

    /// `timestamp_ms`: the row's cursor timestamp; null where the source has none.
    pub(super) fn wrap(&self, row: &[u8], timestamp_ms: Option<i64>) -> Bytes {
        let time = timestamp_ms.map_or_else(|| "null".to_owned(), |ms| ms.to_string());
        let mut value = BytesMut::with_capacity(OPEN.len() + row.len() + self.between.len() + time.len() + 1);
        value.put_slice(OPEN.as_bytes());
        value.put_slice(row);
        value.put_slice(self.between.as_bytes());
        value.put_slice(time.as_bytes());
        value.put_u8(b'}');
        value.freeze()
    }
}
