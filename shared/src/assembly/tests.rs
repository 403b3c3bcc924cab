//! What happens to a connector that is connected when what its placeholders stand for changes.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::config::load;
use crate::host::ManualClock;
use crate::secrets;

/// A process with a connector of SQL Server, whose host is looked up in a file.
struct Process {
    dir: TempDir,
    clock: Arc<ManualClock>,
    assembly: Assembly,
}

impl Process {
    fn new(host: &str) -> Self {
        let dir = TempDir::new().expect("a folder");
        let file = dir.path().join("host.json");
        std::fs::write(&file, json!({ "host": host }).to_string()).expect("written");
        std::fs::create_dir(dir.path().join("connectors")).expect("a folder");
        let config = json!({
            "connector.class": "sqlserver",
            "tasks.max": "1",
            "mssql.host": format!("${{file:{}:host}}", file.display()),
            "mssql.database": "shop",
            "mssql.user": "sweep",
            "mssql.password": "a-password",
            "mssql.tables": "orders",
            "mssql.table.orders.name": "dbo.Orders",
            "mssql.table.orders.topic": "shop.orders",
            "mssql.table.orders.sequence.column": "Id",
        });
        let document = json!({"name": "shop", "config": config});
        std::fs::write(dir.path().join("connectors/shop.json"), document.to_string()).expect("written");
        let clock = ManualClock::at(1_700_000_000_000);
        let machine = Host::with_clock(clock.clone());
        let documents = load(dir.path(), SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
        let resolver = Arc::new(secrets::resolver(&documents, &machine));
        Self { dir, clock, assembly: Assembly::new(documents, resolver, machine) }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("host.json")
    }

    fn change(&self, content: &str) {
        std::fs::write(self.file(), content).expect("written");
    }

    async fn table(&self) -> Arc<dyn Table> {
        self.assembly.table("shop", "orders").await.expect("a table")
    }

    /// The same five minutes later.
    async fn later(&self) -> Arc<dyn Table> {
        self.clock.advance(Duration::from_secs(300));
        self.table().await
    }
}

fn is_same(one: &Arc<dyn Table>, other: &Arc<dyn Table>) -> bool {
    Arc::ptr_eq(one, other)
}

#[tokio::test]
async fn a_connector_is_connected_anew_once_a_look_at_its_placeholders_finds_something_else() {
    let process = Process::new("one.example");
    let first = process.table().await;
    assert!(first.identity().instance.contains("one.example"), "{:?}", first.identity());
    process.change(r#"{"host": "two.example"}"#);
    process.clock.advance(Duration::from_secs(299));
    assert!(is_same(&first, &process.table().await), "nothing is looked up before its time");
    process.clock.advance(Duration::from_secs(1));
    let second = process.table().await;
    assert!(second.identity().instance.contains("two.example"), "{:?}", second.identity());
    assert!(is_same(&second, &process.later().await), "a look that finds the same keeps the connections");
}

#[tokio::test]
async fn a_look_that_fails_or_finds_what_is_of_no_use_leaves_a_connector_as_it_is() {
    let process = Process::new("one.example");
    let first = process.table().await;
    std::fs::remove_file(process.file()).expect("removed");
    assert!(is_same(&first, &process.later().await), "it cannot be read");
    for useless in ["{", "{}", r#"{"host": "no host at all"}"#] {
        process.change(useless);
        assert!(is_same(&first, &process.later().await), "{useless}");
    }
    process.change(r#"{"host": "two.example"}"#);
    assert!(!is_same(&first, &process.later().await), "and the next good one is taken");
}

#[tokio::test]
async fn a_connector_that_was_never_connected_fails_with_what_is_missing() {
    let process = Process::new("one.example");
    std::fs::remove_file(process.file()).expect("removed");
    let failure = process.assembly.table("shop", "orders").await.err().expect("there is nothing to go on with");
    assert_eq!(failure.code, "Config.Unresolved");
}
