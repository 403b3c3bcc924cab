//! The documents that are swept by, and what floor and sweep must have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failed::Failed;

/// Partitions of every topic.
pub const PARTITIONS: i32 = 6;

/// The producer's settings of sweep and floor. The sink would choose the same; they stand here so that a new default of
/// the sink's cannot part the two.
const PRODUCER: &[(&str, &str)] = &[
    ("acks", "all"),
    ("enable.idempotence", "true"),
    ("partitioner", "murmur2_random"),
    ("linger.ms", "20"),
    ("compression.type", "zstd"),
    ("message.max.bytes", "1000000"),
    // A broker that shares a busy machine with everything else may be slow, and a retry would be counted as work.
    ("message.timeout.ms", "120000"),
    ("request.timeout.ms", "60000"),
    ("socket.timeout.ms", "60000"),
    ("queue.buffering.max.kbytes", "65536"),
    ("queue.buffering.max.messages", "100000"),
];

/// The user that the instance lets in.
pub fn user() -> (String, String) {
    ("sweep".to_owned(), "bench-only".to_owned())
}

/// The producer's settings by librdkafka's names, for the floor.
pub fn producer(bootstrap: &str) -> BTreeMap<String, String> {
    let own = [("bootstrap.servers", bootstrap), ("client.id", "tablesweep-bench")];
    PRODUCER.iter().chain(&own).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What is swept, and into what.
#[derive(Debug, Clone, Copy)]
pub struct Swept<'a> {
    /// The instance's URL.
    pub url: &'a str,
    /// The table, which is its own alias.
    pub table: &'a str,
    /// The brokers.
    pub bootstrap: &'a str,
    /// The topic.
    pub topic: &'a str,
    /// Rows per page.
    pub page: u32,
    /// Further keys of the connector's document.
    pub keys: &'a [(&'a str, &'a str)],
}

/// Writes the documents into `folder` and gives the folder.
pub fn write(folder: PathBuf, swept: &Swept<'_>) -> Result<PathBuf, Failed> {
    let failed = |error: std::io::Error| Failed::at("writing the documents", error);
    std::fs::create_dir_all(folder.join("connectors")).map_err(failed)?;
    let put = |path: &Path, document: Value| std::fs::write(path, document.to_string()).map_err(failed);
    put(&folder.join("worker.json"), worker(swept.bootstrap))?;
    put(&folder.join("connectors/bench.json"), json!({"name": "bench", "config": connector(swept)}))?;
    Ok(folder)
}

fn worker(bootstrap: &str) -> Value {
    let mut worker = json!({
        "bootstrap.servers": bootstrap,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
    });
    for (name, value) in PRODUCER {
        worker[format!("producer.{name}")] = (*value).into();
    }
    worker
}

fn connector(swept: &Swept<'_>) -> Value {
    let (user, password) = user();
    let mut connector = json!({
        "connector.class": "servicenow",
        "tasks.max": "1",
        "snow.url": swept.url,
        "snow.auth.type": "basic",
        "snow.auth.username": user,
        "snow.auth.password": password,
        "snow.tables": swept.table,
    });
    let mut of_table = |key: &str, value: &str| connector[format!("snow.table.{}.{key}", swept.table)] = value.into();
    of_table("name", swept.table);
    of_table("topic", swept.topic);
    of_table("batch.size", &swept.page.to_string());
    of_table("start.timestamp", "2026-01-01 00:00:00");
    for (key, value) in swept.keys {
        connector[*key] = (*value).into();
    }
    connector
}
