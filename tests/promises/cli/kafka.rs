//! The command line into a real broker.

use std::collections::BTreeSet;

use serde_json::json;
use tablesweep::cursor::dynamodb::{create_table, local_client};
use tablesweep_testbed::{kafka, moto};

use super::bed::{Bed, ended};

#[tokio::test]
async fn rows_reach_the_topic_that_the_document_names_and_a_missing_topic_is_exit_code_1() {
    let broker = kafka::shared().await.expect("the broker starts");
    broker.create_topic("cli-incident", 3).await.expect("the topic is created");
    let mut bed = Bed::new(100);
    bed.set("snow.table.inc.topic", "cli-incident");
    let worker = json!({"bootstrap.servers": broker.bootstrap(), "producer.linger.ms": "5"});
    std::fs::write(bed.path("config/worker.json"), worker.to_string()).expect("written");
    let table = bed.run(&["sweep", "--output", "json"]).expect(0).table();
    assert_eq!((&table["outcome"], &table["rows"]), (&"caught_up".into(), &100.into()));
    let records = broker.read_all("cli-incident").await.expect("the topic can be read");
    let keys: BTreeSet<_> = records.iter().map(|record| record.key_text().expect("a key").to_owned()).collect();
    assert_eq!((records.len(), keys.len()), (100, 100));
    let expected: BTreeSet<_> = bed.api.visible_versions("incident").expect("rows").into_iter().map(|(_, id, _)| id).collect();
    assert_eq!(keys, expected);

    bed.set("snow.table.inc.topic", "cli-no-such-topic");
    bed.insert("2026-01-01 00:00:05");
    let table = bed.run(&["sweep", "--output", "json"]).expect(1).table();
    let reason = table["reason"].clone();
    assert!(reason["code"].as_str().is_some_and(|code| code.starts_with("Sink.")), "{table}");
    assert!(reason["message"].as_str().is_some_and(|message| message.contains("cli-no-such-topic")), "{table}");
    assert_eq!(bed.status()["rows"], 100, "the cursor stands");
}

#[tokio::test]
async fn with_cursors_in_dynamodb_rows_are_delivered_however_long_the_producer_may_take_for_a_message() {
    let broker = kafka::shared().await.expect("the broker starts");
    let endpoint = moto::shared().await.expect("moto starts").endpoint();
    create_table(&local_client(&endpoint).await, "cursors-of-the-patient").await.expect("the table is created");
    broker.create_topic("cli-patient", 1).await.expect("the topic is created");
    let mut bed = Bed::new(50);
    bed.set("snow.table.inc.topic", "cli-patient");
    // Kafka's own default is two minutes.
    let worker = json!({"bootstrap.servers": broker.bootstrap(), "producer.delivery.timeout.ms": "120000", "producer.linger.ms": "5"});
    std::fs::write(bed.path("config/worker.json"), worker.to_string()).expect("written");
    let mut command = bed.command(&["sweep", "--output", "json", "--cursors", "dynamodb:cursors-of-the-patient"]);
    command.env("AWS_ENDPOINT_URL", &endpoint).env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    let table = ended(command.spawn().expect("started")).expect(0).table();
    assert_eq!((&table["outcome"], &table["rows"]), (&"caught_up".into(), &50.into()));
}
