//! Kafka Connect's own converters, as readers of what tablesweep wrote.
//!
//! What a test expects of a record is only half of it; that the consumers of a Connect pipeline find the same is the other
//! half, and they read with these classes. The programs behind this are `parts/connect/ConnectReader.java` and
//! `AvroReader.java`, compiled by `fetch.sh` next to the jars of the broker's own release and of Confluent's `AvroData`.

use std::io::{BufWriter, Write as _};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::parts::{PartError, fetched};

const PART: &str = "the converters of Kafka Connect";

/// How the `JsonConverter` is configured.
#[derive(Debug, Clone, Copy)]
pub struct JsonSettings {
    /// `schemas.enable`.
    pub schemas: bool,
    /// `decimal.format`.
    pub decimals: &'static str,
    /// Whether keys are read.
    pub keys: bool,
}

impl Default for JsonSettings {
    fn default() -> Self {
        Self { schemas: true, decimals: "BASE64", keys: false }
    }
}

/// What Connect's `JsonConverter` makes of bytes.
#[derive(Debug, Clone)]
pub struct Found {
    /// The schema: `type`, `optional`, `name`, `version`, `parameters`, and the `fields` of a struct, each `{field, schema}`.
    pub schema: Value,
    /// The value. Numbers, bytes, decimals and dates say their class: `Byte 7`, `bytes 00ff`, `decimal 150 scale 2`, `date 0`.
    pub value: Value,
    /// The same data as Connect's `JsonConverter` writes it.
    pub again: Vec<u8>,
    /// The same data as Connect's `StringConverter` writes it.
    pub text: String,
}

/// Reads each of `values`.
///
/// # Errors
/// The reader was not fetched or does not run, or Connect refuses a value; the error has its words.
pub fn read(settings: JsonSettings, values: &[Vec<u8>]) -> Result<Vec<Found>, PartError> {
    let arguments = [settings.schemas.to_string(), settings.decimals.to_owned(), settings.keys.to_string()];
    run("ConnectReader", &arguments, values.iter().map(|value| STANDARD.encode(value)).collect())
}

/// Reads each of `values`, an Avro schema with the bytes of a value, by Confluent's `AvroData`. `again` is what that and Avro
/// write for the same data, and `text` the schema that it makes for it. `meta`: `connect.meta.data`.
///
/// # Errors
/// The reader was not fetched or does not run, or Avro or Connect refuse a value; the error has their words.
pub fn read_avro(meta: bool, values: &[(String, Vec<u8>)]) -> Result<Vec<Found>, PartError> {
    let line = |(schema, value): &(String, Vec<u8>)| format!("{} {}", STANDARD.encode(schema), STANDARD.encode(value));
    run("AvroReader", &[meta.to_string()], values.iter().map(line).collect())
}

/// What a reader finds in each of `lines`.
fn run(reader: &str, arguments: &[String], lines: Vec<String>) -> Result<Vec<Found>, PartError> {
    let folder = fetched(PART, "connect")?;
    let failed = |why: String| PartError::Failed { part: PART, what: "reading records".to_owned(), why };
    let mut child = Command::new("java")
        .arg("-cp")
        .arg(format!("{0}/classes:{0}/*", folder.display()))
        .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", reader])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("java cannot be run: {error}")))?;
    let stdin = child.stdin.take();
    let given = lines.len();
    // The program answers while it reads, so neither side may wait for the other with a full pipe.
    let writer = std::thread::spawn(move || {
        let mut stdin = BufWriter::new(stdin?);
        lines.iter().try_for_each(|line| writeln!(stdin, "{line}")).and_then(|()| stdin.flush()).err()
    });
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let unwritten = writer.join().map_err(|_| failed("the writer panicked".to_owned()))?;
    if let (false, _) | (_, Some(_)) = (output.status.success(), &unwritten) {
        return Err(failed(format!("{} {unwritten:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr))));
    }
    let found: Result<Vec<Found>, String> = String::from_utf8_lossy(&output.stdout).lines().map(found).collect();
    let found = found.map_err(failed)?;
    if found.len() != given {
        return Err(failed(format!("{given} values were given and {} were read", found.len())));
    }
    Ok(found)
}

fn found(line: &str) -> Result<Found, String> {
    let mut found: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
    if let Some(refused) = found["error"].as_str() {
        return Err(refused.to_owned());
    }
    let again = found["again"].as_str().map_or(Ok(Vec::new()), |text| STANDARD.decode(text)).map_err(|error| error.to_string())?;
    let text = found["text"].as_str().unwrap_or_default().to_owned();
    Ok(Found { schema: found["schema"].take(), value: found["value"].take(), again, text })
}
