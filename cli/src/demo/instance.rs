//! The simulated ServiceNow instance of the demo: what it holds, and what happens to it.

use std::io;
use std::path::Path;

use serde_json::json;
use tablesweep_testbed::table_api::{Fields, Generate, SimulatorError, TableApi};

use crate::exit::Stop;

/// Rows of the generated incidents that share a second: a hundred seconds of history.
const PER_SECOND: u64 = 200;

/// The tables by their aliases.
const TABLES: [(&str, &str); 3] = [("incident", "incident"), ("change", "change_request"), ("problem", "problem")];

/// The topics of the tables.
pub fn topics() -> Vec<String> {
    TABLES.iter().map(|(_, table)| format!("snow.{table}")).collect()
}

/// A simulated instance with three tables.
pub struct Instance {
    api: TableApi,
    updated: String,
}

impl Instance {
    /// Starts it and fills its tables.
    pub fn start() -> Result<Self, Stop> {
        let api = TableApi::start().map_err(refused)?;
        let first = Fields::from([("number", "INC0000042"), ("state", "1"), ("sys_updated_on", "2025-12-31 23:59:00")]);
        let updated = api.insert("incident", first).map_err(refused)?;
        let history = |table: &str, rows, per_second| Generate {
            per_second,
            start: Some("2026-01-01 00:00:00".to_owned()),
            ..Generate::rows(table, rows)
        };
        api.generate(history("incident", 20_000, PER_SECOND)).map_err(refused)?;
        api.generate(history("change_request", 3_000, 3_000)).map_err(refused)?;
        api.generate(history("problem", 500, 25)).map_err(refused)?;
        api.hide_when("problem", |field| field("number").is_some_and(|number| number.ends_with('7'))).map_err(refused)?;
        Ok(Self { api, updated })
    }

    /// Writes the connector's and the worker's document below `folder`.
    pub fn write_documents(&self, folder: &Path, bootstrap_servers: &str) -> io::Result<()> {
        let mut config = json!({
            "connector.class": "servicenow",
            "snow.url": self.api.url(),
            "snow.auth.type": "basic",
            "snow.auth.username": "demo",
            "snow.auth.password": "demo",
            "snow.tables": "incident,change,problem",
        });
        for (alias, table) in TABLES {
            config[format!("snow.table.{alias}.name")] = table.into();
            config[format!("snow.table.{alias}.topic")] = format!("snow.{table}").into();
            config[format!("snow.table.{alias}.start.timestamp")] = "2025-01-01 00:00:00".into();
        }
        std::fs::write(folder.join("worker.json"), json!({"bootstrap.servers": bootstrap_servers}).to_string())?;
        std::fs::create_dir(folder.join("connectors"))?;
        std::fs::write(folder.join("connectors/demo.json"), json!({"name": "demo", "config": config}).to_string())
    }

    /// An update of an hour later, which is still long ago: nobody has to wait for the safety lag to pass.
    pub fn update(&self) -> Result<(), Stop> {
        let resolved = Fields::from([("state", "6"), ("sys_updated_on", "2026-01-01 01:00:00")]);
        self.api.update("incident", &self.updated, resolved).map_err(refused)
    }

    /// A row that a slow transaction wrote: its timestamp lies before rows that were delivered already.
    pub fn add_late_row(&self) -> Result<(), Stop> {
        let late = Fields::from([("number", "INC0000099"), ("state", "1"), ("sys_updated_on", "2026-01-01 00:01:37")]);
        self.api.insert("incident", late).map(drop).map_err(refused)
    }
}

fn refused(error: SimulatorError) -> Stop {
    Stop::failed(format!("the simulated instance of the demo: {error}"))
}
