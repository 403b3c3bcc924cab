use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::assembly::SOURCES;
use crate::config::load;
use crate::host::{Host, ManualClock};
use crate::secrets;

#[tokio::test]
async fn producers_are_kept_until_a_placeholder_of_the_worker_stands_for_something_else() {
    let dir = TempDir::new().expect("a folder");
    let file = dir.path().join("brokers.json");
    let write = |brokers: &str| std::fs::write(&file, json!({ "brokers": brokers }).to_string()).expect("written");
    write("one:9092");
    std::fs::create_dir(dir.path().join("connectors")).expect("a folder");
    let config = json!({
        "connector.class": "servicenow",
        "snow.url": "https://acme.service-now.com",
        "snow.auth.username": "sweep",
        "snow.auth.password": "a-password",
        "snow.tables": "inc",
        "snow.table.inc.name": "incident",
        "snow.table.inc.topic": "snow.incident",
    });
    std::fs::write(dir.path().join("connectors/snow.json"), json!({"name": "snow", "config": config}).to_string()).expect("written");
    let worker = json!({"bootstrap.servers": format!("${{file:{}:brokers}}", file.display())});
    std::fs::write(dir.path().join("worker.json"), worker.to_string()).expect("written");
    let documents = load(dir.path(), SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    let clock = ManualClock::at(1_700_000_000_000);
    let host = Host::with_clock(clock.clone());
    let resolver = Arc::new(secrets::resolver(&documents, &host));
    let producers = Producers::default();
    let get = async || producers.get(&documents.worker, &resolver, KafkaOptions::new("test", host.clone())).await;

    let first = get().await.expect("producers");
    write("two:9092");
    clock.advance(Duration::from_secs(299));
    assert!(Arc::ptr_eq(&first, &get().await.expect("producers")), "nothing is looked up before its time");
    clock.advance(Duration::from_secs(1));
    let second = get().await.expect("producers");
    assert!(!Arc::ptr_eq(&first, &second));
    for content in [r#"{"brokers": "two:9092"}"#, "{", r#"{"brokers": "no broker"}"#] {
        std::fs::write(&file, content).expect("written");
        clock.advance(Duration::from_secs(300));
        assert!(Arc::ptr_eq(&second, &get().await.expect("producers")), "{content}");
    }
}
