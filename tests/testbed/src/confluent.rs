//! Confluent's own client for Python, as a consumer of what went through a schema registry.
//!
//! It asks the registry for the schema that a record's header names, and reads the data with a library of its own. The program
//! is `confluent/read.py`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::parts::{PartError, fetched};

const PART: &str = "Confluent's client for Python";

/// What the client reads from each of `values`, whose schemas are in the registry at `url`. `language` is `avro` or
/// `json-schema`; of Avro, what JSON has no type for is a text that names it (see `confluent/read.py`).
///
/// # Errors
/// The client was not fetched or does not run, or refuses a value; the error has its words.
pub fn read(url: &str, language: &str, values: &[Vec<u8>]) -> Result<Vec<Value>, PartError> {
    let failed = |why: String| PartError::failed(PART, "reading records", why);
    let mut child = Command::new(fetched(PART, "venv/bin")?.join("python"))
        .args(["-c", include_str!("confluent/read.py"), url, language])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let stdin = child.stdin.take();
    let lines: String = values.iter().map(|value| STANDARD.encode(value) + "\n").collect();
    // The program answers while it reads, so neither side may wait for the other with a full pipe.
    let writer = std::thread::spawn(move || stdin?.write_all(lines.as_bytes()).err());
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let unwritten = writer.join().map_err(|_| failed("the writer panicked".to_owned()))?;
    if !output.status.success() || unwritten.is_some() {
        return Err(failed(format!("{} {unwritten:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr))));
    }
    let read: Result<Vec<Value>, _> = String::from_utf8_lossy(&output.stdout).lines().map(serde_json::from_str).collect();
    let read = read.map_err(|error| failed(error.to_string()))?;
    if read.len() == values.len() { Ok(read) } else { Err(failed(format!("{} values were read of {}", read.len(), values.len()))) }
}
