//! The documents that are swept by, and what floor and sweep must have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tablesweep_testbed::tds;

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

/// A SQL Server table, and into what it is swept.
#[derive(Debug, Clone, Copy)]
pub struct Polled<'a> {
    /// The server's port on this machine.
    pub port: u16,
    /// The table in the schema `dbo`, which is its own alias.
    pub table: &'a str,
    /// The brokers.
    pub bootstrap: &'a str,
    /// The topic.
    pub topic: &'a str,
    /// Rows per batch.
    pub rows: u32,
}

/// Writes the documents into `folder` and gives the folder.
pub fn write(folder: PathBuf, swept: &Swept<'_>) -> Result<PathBuf, Failed> {
    put(folder, swept.bootstrap, &connector(swept))
}

/// The same for a SQL Server table.
pub fn write_polled(folder: PathBuf, polled: &Polled<'_>) -> Result<PathBuf, Failed> {
    put(folder, polled.bootstrap, &poller(polled))
}

fn put(folder: PathBuf, bootstrap: &str, connector: &Value) -> Result<PathBuf, Failed> {
    let failed = |error: std::io::Error| Failed::at("writing the documents", error);
    std::fs::create_dir_all(folder.join("connectors")).map_err(failed)?;
    let put = |path: &Path, document: Value| std::fs::write(path, document.to_string()).map_err(failed);
    put(&folder.join("worker.json"), worker(bootstrap))?;
    put(&folder.join("connectors/bench.json"), json!({"name": "bench", "config": connector}))?;
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
        // Pages are measured. The instance of the benchmark knows nothing but them, and a probe is asked once in a table's life.
        "snow.source.startup.probe": "false",
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

fn poller(polled: &Polled<'_>) -> Value {
    let mut connector = json!({
        "connector.class": "sqlserver",
        "tasks.max": "1",
        "mssql.host": "127.0.0.1",
        "mssql.port": polled.port.to_string(),
        "mssql.database": tds::DATABASE,
        "mssql.user": tds::USER,
        "mssql.password": tds::PASSWORD,
        // The server of the benchmark has no TLS, as the other parts have none.
        "mssql.encrypt": "optional",
        "mssql.tables": polled.table,
    });
    let mut of_table = |key: &str, value: String| connector[format!("mssql.table.{}.{key}", polled.table)] = value.into();
    of_table("name", format!("dbo.{}", polled.table));
    of_table("topic", polled.topic.to_owned());
    of_table("sequence.column", "id".to_owned());
    of_table("start", "earliest".to_owned());
    of_table("batch.size", polled.rows.to_string());
    of_table("max.rows.per.poll", (polled.rows.saturating_mul(20)).to_string());
    connector
}
