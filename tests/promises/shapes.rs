//! What consumers of a Connect pipeline find in the topics: read back by Connect's own converters, from a real broker.

mod example;
mod modes;
mod registered;
mod schemas;
mod topics;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::program::program;
use tablesweep_testbed::said;
use tablesweep_testbed::table_api::TableApi;
use tempfile::TempDir;

/// An instance, a folder with documents, and the broker that all tests share.
pub struct Stand {
    pub api: TableApi,
    pub broker: &'static Broker,
    dir: TempDir,
}

impl Stand {
    pub async fn new() -> Self {
        let broker = kafka::shared().await.expect("Kafka starts");
        let stand = Self { api: TableApi::start().expect("the simulator starts"), broker, dir: TempDir::new().expect("a folder") };
        std::fs::create_dir_all(stand.path("config/connectors")).expect("a folder");
        stand.worker(&json!({}));
        stand
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The worker's document: the broker, and these keys.
    pub fn worker(&self, more: &Value) {
        let mut worker = json!({"bootstrap.servers": self.broker.bootstrap(), "producer.linger.ms": "5"});
        for (key, value) in more.as_object().expect("keys") {
            worker[key] = value.clone();
        }
        std::fs::write(self.path("config/worker.json"), worker.to_string()).expect("written");
    }

    /// The only connector's document: one that signs in, with these keys.
    pub fn connector(&self, keys: &Value) {
        let mut config = json!({
            "connector.class": "servicenow",
            "snow.url": self.api.url(),
            "snow.auth.type": "basic",
            "snow.auth.username": "sweep",
            "snow.auth.password": "tr0ub4dor-and-3",
        });
        for (key, value) in keys.as_object().expect("keys") {
            config[key] = value.clone();
        }
        self.document(&json!({"name": "snow", "config": config}));
    }

    pub fn document(&self, document: &Value) {
        std::fs::write(self.path("config/connectors/snow.json"), document.to_string()).expect("written");
    }

    pub fn command(&self, cursors: &str, more: &[&str]) -> Command {
        let mut command = Command::new(program("tablesweep"));
        command.args(["sweep", "--output", "json", "--cursors", &format!("sqlite:{cursors}.db")]).args(more).current_dir(self.dir.path());
        for name in ["TABLESWEEP_CONFIG", "TABLESWEEP_CURSORS", "TABLESWEEP_SINK", "TABLESWEEP_LOG"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn start(&self, cursors: &str, more: &[&str]) -> Child {
        self.command(cursors, more).spawn().expect("the program starts")
    }

    /// Sweeps with these cursors, which must end with this exit code, and gives the tables of the result.
    pub fn sweep(&self, cursors: &str, code: i32) -> Vec<Value> {
        tables(&self.start(cursors, &[]).wait_with_output().expect("it ends"), code)
    }

    /// The values of a topic.
    pub async fn values(&self, topic: &str) -> Vec<Vec<u8>> {
        let records = self.broker.read_all(topic).await.expect("the topic can be read");
        records.into_iter().map(|record| record.value.expect("no tombstone")).collect()
    }
}

/// The tables of a result.
pub fn tables(output: &Output, code: i32) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let told = || format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    said::keep("cli", &told());
    assert_eq!(output.status.code(), Some(code), "{}", told());
    let result: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", told()));
    result["tables"].as_array().cloned().unwrap_or_else(|| panic!("{}", told()))
}
