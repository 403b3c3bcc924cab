//! Tests of the promises that documents make: what is accepted, what is refused, and what is never shown.

// A test that cannot go on fails by the panic.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::{Documents, Faults, SourceKind, load};
use crate::source::{servicenow, sqlserver};

mod accepted;
mod connect;
mod faults;
mod forms;
mod parameters;
mod placeholders;
mod producer;
mod properties;
mod reference;
mod registries;
mod resolver;
mod secrets;
mod sign_in;
mod sqlserver_keys;

/// The sources that the tests load documents of.
pub(super) static KINDS: [&SourceKind; 2] = [&servicenow::keys::SOURCE, &sqlserver::keys::SOURCE];

/// A configuration directory that lasts as long as the test.
pub(super) struct Dir(tempfile::TempDir);

impl Dir {
    pub(super) fn new() -> Dir {
        let dir = Dir(tempfile::tempdir().unwrap());
        std::fs::create_dir(dir.path().join("connectors")).unwrap();
        dir
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn with(self, file: &str, content: impl AsRef<[u8]>) -> Dir {
        std::fs::write(self.path().join(file), content).unwrap();
        self
    }

    /// Adds a connector document of these pairs, over those of a valid ServiceNow connector; an empty text takes a key out.
    pub(super) fn servicenow(self, name: &str, changes: &[(&str, &str)]) -> Dir {
        self.connector(name, &SERVICENOW, changes)
    }

    /// The same for SQL Server.
    pub(super) fn sqlserver(self, name: &str, changes: &[(&str, &str)]) -> Dir {
        self.connector(name, &SQLSERVER, changes)
    }

    fn connector(self, name: &str, base: &[(&str, &str)], changes: &[(&str, &str)]) -> Dir {
        let mut map = serde_json::Map::new();
        map.insert("name".into(), name.into());
        for (key, value) in base.iter().chain(changes) {
            if value.is_empty() && changes.contains(&(key, value)) {
                map.remove(*key);
            } else {
                map.insert((*key).into(), (*value).into());
            }
        }
        self.with(&format!("connectors/{name}.json"), serde_json::to_vec(&map).unwrap())
    }

    pub(super) fn load(&self) -> Result<Documents, Faults> {
        self.load_with(&|_| None)
    }

    pub(super) fn load_with(&self, env: super::Env<'_>) -> Result<Documents, Faults> {
        load(self.path(), &KINDS, env)
    }

    /// The only fault, as (key, value, message with what is allowed).
    pub(super) fn fault(&self) -> (String, Option<String>, String) {
        let faults = self.load().expect_err("the documents are at fault").faults;
        assert_eq!(faults.len(), 1, "{faults:#?}");
        let fault = faults[0].clone();
        (fault.key.unwrap_or_default(), fault.value, format!("{} | {}", fault.message, fault.allowed.unwrap_or_default()))
    }
}

/// A valid connector of one table.
const SERVICENOW: [(&str, &str); 7] = [
    ("connector.class", "servicenow"),
    ("snow.url", "https://acme.service-now.com"),
    ("snow.auth.username", "${env:SNOW_USER}"),
    ("snow.auth.password", "${env:SNOW_PASSWORD}"),
    ("snow.tables", "inc"),
    ("snow.table.inc.name", "incident"),
    ("snow.table.inc.topic", "snow.incident"),
];

/// A valid connector of one table.
const SQLSERVER: [(&str, &str); 9] = [
    ("connector.class", "sqlserver"),
    ("mssql.host", "db.example.com"),
    ("mssql.database", "shop"),
    ("mssql.user", "reader"),
    ("mssql.password", "${env:MSSQL_PASSWORD}"),
    ("mssql.tables", "orders"),
    ("mssql.table.orders.name", "dbo.orders"),
    ("mssql.table.orders.topic", "mssql.orders"),
    ("mssql.table.orders.sequence.column", "id"),
];
