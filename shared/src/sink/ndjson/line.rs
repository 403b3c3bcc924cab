//! A record as one line of JSON.
//!
//! The value is what the converter wrote, byte for byte where that is possible: JSON of one line is embedded as it is,
//! so that numbers keep their digits and objects their order. Only white space between tokens may go, and only when there is a line
//! break in it. A value that is text but no JSON becomes a JSON string, and bytes that are no text travel as base64
//! under another name, so that a reader can tell the two apart.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::record::Record;

/// Room for what surrounds key, value and headers in a line.
const FRAME: usize = 96;

/// The lines of a page in one buffer.
pub(super) fn page(records: &[Record]) -> Vec<u8> {
    let size = records.iter().map(|record| record.size() + record.topic.len() + FRAME).sum();
    let mut lines = Lines { out: Vec::with_capacity(size), headers: Vec::new(), headers_of: None };
    for record in records {
        lines.push(record);
    }
    lines.out
}

struct Lines<'a> {
    out: Vec<u8>,
    /// The headers of the last record, as JSON. The records of a page share theirs.
    headers: Vec<u8>,
    headers_of: Option<&'a Arc<[(String, String)]>>,
}

impl<'a> Lines<'a> {
    fn push(&mut self, record: &'a Record) {
        self.out.extend_from_slice(b"{\"topic\":");
        string(&mut self.out, &record.topic);
        match text(&record.key) {
            Some(key) => {
                self.out.extend_from_slice(b",\"key\":");
                string(&mut self.out, key);
            }
            None => base64(&mut self.out, b",\"key_base64\":", &record.key),
        }
        self.out.extend_from_slice(b",\"timestamp\":");
        match record.timestamp_ms {
            Some(ms) => self.out.extend_from_slice(ms.to_string().as_bytes()),
            None => self.out.extend_from_slice(b"null"),
        }
        self.out.extend_from_slice(b",\"headers\":");
        self.push_headers(&record.headers);
        match &record.value {
            Some(value) => push_value(&mut self.out, value),
            None => self.out.extend_from_slice(b",\"value\":null"),
        }
        self.out.extend_from_slice(b"}\n");
    }

    fn push_headers(&mut self, headers: &'a Arc<[(String, String)]>) {
        if !self.headers_of.is_some_and(|known| Arc::ptr_eq(known, headers)) {
            self.headers.clear();
            self.headers.push(b'{');
            for (index, (name, value)) in headers.iter().enumerate() {
                if index > 0 {
                    self.headers.push(b',');
                }
                string(&mut self.headers, name);
                self.headers.push(b':');
                string(&mut self.headers, value);
            }
            self.headers.push(b'}');
            self.headers_of = Some(headers);
        }
        self.out.extend_from_slice(&self.headers);
    }
}

fn push_value(out: &mut Vec<u8>, value: &[u8]) {
    let Some(value) = text(value) else {
        return base64(out, b",\"value_base64\":", value);
    };
    out.extend_from_slice(b",\"value\":");
    match serde_json::from_str::<&RawValue>(value) {
        Ok(json) if json.get().contains('\n') || json.get().contains('\r') => compact(out, json.get()),
        Ok(json) => out.extend_from_slice(json.get().as_bytes()),
        Err(_) => string(out, value),
    }
}

/// Valid JSON without the white space between its tokens. A line break inside a string is always escaped.
fn compact(out: &mut Vec<u8>, json: &str) {
    let (mut in_string, mut escaped) = (false, false);
    for byte in json.bytes() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = byte == b'\\' && !escaped;
        } else if byte == b'"' {
            in_string = true;
        } else if byte.is_ascii_whitespace() {
            continue;
        }
        out.push(byte);
    }
}

/// The bytes as text. What holds a NUL is taken for binary: a framed Avro body starts with one, and whether the rest
/// happens to be valid UTF-8 must not change how it is shown.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string can always be written to memory as JSON");
}

fn base64(out: &mut Vec<u8>, name: &[u8], bytes: &[u8]) {
    out.extend_from_slice(name);
    out.push(b'"');
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}
