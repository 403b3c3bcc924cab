//! What the conductor tells a role, and what it is told.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tablesweep::sweep::TableReport;

use crate::usage::Usage;

/// One sweep of the only table of the documents.
#[derive(Debug, Serialize, Deserialize)]
pub struct SweepJob {
    /// The folder of the documents.
    pub config: PathBuf,
    /// Where the cursor is kept.
    pub store: StoreJob,
    /// The memory that the sweep is told it has, in bytes.
    pub memory: u64,
}

/// A cursor store.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreJob {
    /// A table of a DynamoDB at this address.
    Dynamodb {
        /// Its URL.
        endpoint: String,
        /// The table.
        table: String,
    },
    /// A file.
    Sqlite(PathBuf),
}

/// What a sweep says of itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct SweepDone {
    /// The engine's report.
    pub report: TableReport,
    /// What the process used.
    pub usage: Usage,
}

/// One run of the floor.
#[derive(Debug, Serialize, Deserialize)]
pub struct FloorJob {
    /// The folder of the plan.
    pub plan: PathBuf,
    /// The user that the instance lets in.
    pub user: (String, String),
    /// The topic.
    pub topic: String,
    /// The producer's settings, by librdkafka's names.
    pub producer: BTreeMap<String, String>,
    /// The headers of every record.
    pub headers: Vec<(String, String)>,
}

/// What a run of the floor says of itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct FloorDone {
    /// Records that were acknowledged.
    pub records: u64,
    /// Bytes of bodies as they came over the wire.
    pub bytes_in: u64,
    /// Bytes of keys and values.
    pub bytes_out: u64,
    /// What the process used.
    pub usage: Usage,
}

/// One run of the bare SQL Server driver.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriverJob {
    /// The server's port on this machine.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The table in the schema `dbo`.
    pub table: String,
    /// Rows per batch.
    pub rows: u32,
    /// The size of network packets, in bytes.
    pub packet: u32,
}

/// What a run of the bare driver says of itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct DriverDone {
    /// Rows that were read.
    pub rows: u64,
    /// What the process used.
    pub usage: Usage,
}
