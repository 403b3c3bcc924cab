//! From a row to a record: key, value, timestamp, headers.

use std::sync::Arc;

use super::Record;
use super::envelope::Envelope;
use crate::source::{Content, Row};

/// What the records of one table look like.
#[derive(Debug, Clone)]
pub struct Shape {
    topic: Arc<str>,
    headers: Vec<(String, String)>,
    extracted_at: &'static str,
    schema_mode: (&'static str, &'static str),
    envelope: Option<Envelope>,
}

impl Shape {
    /// Records of `topic` whose value is the row as it is, with these headers and, after them, when the row was
    /// read and the schema mode, under the names that the source gives.
    pub fn schemaless(topic: &str, headers: &[(&str, &str)], extracted_at: &'static str, schema_mode: &'static str) -> Self {
        Self {
            topic: topic.into(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            extracted_at,
            schema_mode: (schema_mode, "schemaless"),
            envelope: None,
        }
    }

    /// The same with each value wrapped in the change envelope of `table` on `instance`.
    #[must_use]
    pub fn enveloped(self, table: &str, instance: &str) -> Self {
        Self { envelope: Some(Envelope::new(table, instance)), ..self }
    }

    /// The headers of rows that were read at `extracted_at_ms`, in epoch milliseconds; shared by a page.
    pub fn headers(&self, extracted_at_ms: i64) -> Arc<[(String, String)]> {
        let own =
            [(self.extracted_at.to_owned(), extracted_at_ms.to_string()), (self.schema_mode.0.to_owned(), self.schema_mode.1.to_owned())];
        self.headers.iter().cloned().chain(own).collect()
    }

    /// The record of `row`. The value is the row's own bytes unless an envelope goes around it.
    pub fn record(&self, row: &Row, headers: &Arc<[(String, String)]>) -> Record {
        let value = match (&row.content, &self.envelope) {
            (Content::Json(json), None) => Some(json.clone()),
            (Content::Json(json), Some(envelope)) => Some(envelope.wrap(json, row.timestamp_ms)),
            // No source sends fields to a shape without a schema.
            (Content::Fields(_), _) => None,
        };
        Record { topic: Arc::clone(&self.topic), key: row.key.clone(), value, timestamp_ms: row.timestamp_ms, headers: Arc::clone(headers) }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn json() -> Bytes {
        Bytes::from_static(b"{\"sys_id\":\"8f4b\", \"n\":\"\xc3\xa4\"}")
    }

    fn row() -> Row {
        Row { key: Bytes::from_static(b"8f4b"), content: Content::Json(json()), timestamp_ms: Some(1_790_667_042_000) }
    }

    fn shape() -> Shape {
        Shape::schemaless("snow.incident", &[("snow.table", "incident")], "snow.extracted_at", "snow.schema.mode")
    }

    #[test]
    fn a_schemaless_value_is_the_servers_bytes() {
        let record = shape().record(&row(), &shape().headers(17));
        assert_eq!(record.value.expect("a value").as_ptr(), json().as_ptr(), "not even copied");
        assert_eq!((&*record.key, record.timestamp_ms), (b"8f4b".as_slice(), Some(1_790_667_042_000)));
        let headers: Vec<_> = record.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, [("snow.table", "incident"), ("snow.extracted_at", "17"), ("snow.schema.mode", "schemaless")]);
    }

    #[test]
    fn an_envelope_holds_the_servers_bytes_and_names_table_and_instance() {
        let record = shape().enveloped("incident", "acme.service-now.com").record(&row(), &shape().headers(17));
        assert_eq!(
            record.value.expect("a value"),
            "{\"before\":null,\"after\":{\"sys_id\":\"8f4b\", \"n\":\"\u{e4}\"},\"source\":{\"table\":\"incident\",\
             \"instance\":\"acme.service-now.com\"},\"op\":\"u\",\"ts_ms\":1790667042000}"
        );
    }
}
