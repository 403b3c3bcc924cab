//! Once with a real broker at the other end.

use std::collections::BTreeMap;
use std::sync::Arc;

use tablesweep::delivery::ToOne;
use tablesweep::host::Host;
use tablesweep::sink::kafka::{KafkaOptions, KafkaSink, OversizePolicy};
use tablesweep::sweep::Outcome;
use tablesweep_testbed::kafka;

use super::bed::Bed;

#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_in_kafka_once_each_under_their_sequence_and_in_its_order() {
    let broker = kafka::shared().await.expect("Kafka starts");
    broker.create_topic_with("sql-orders", 3, &[]).await.expect("the topic is created");
    let bed = Bed::new().with("mssql.table.orders.topic", "sql-orders").with("mssql.table.orders.batch.size", 100);
    bed.insert(1_050);
    let settings = BTreeMap::from([("bootstrap.servers".to_owned(), broker.bootstrap())]);
    let options = KafkaOptions::new("promises", Host::system());
    let sink = KafkaSink::new(&settings, &options, OversizePolicy::Fail).expect("the settings are right");
    let reports = bed.sweep_into(&bed.assembly(), &ToOne(Arc::new(sink))).await;
    assert_eq!((reports[0].outcome, reports[0].rows), (Outcome::CaughtUp, 1_050), "{reports:?}");
    let mut keys: Vec<i64> = Vec::new();
    let mut last: BTreeMap<i32, i64> = BTreeMap::new();
    for record in broker.read_all("sql-orders").await.expect("the topic can be read") {
        let key: i64 = record.key_text().and_then(|key| key.parse().ok()).expect("digits");
        assert!(record.text().is_some_and(|value| value.starts_with(&format!("{{\"id\":{key},"))), "{record:?}");
        let before = last.insert(record.partition, key);
        assert!(before.is_none_or(|before| before < key), "the order of the sequence within a partition");
        keys.push(key);
    }
    keys.sort_unstable();
    assert_eq!(keys.iter().map(i64::to_string).collect::<Vec<_>>(), bed.expected());
}
