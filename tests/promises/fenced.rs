//! A producer that is fenced off in the middle of a sweep: librdkafka's own mock cluster injects the error.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::Message as _;
use rdkafka::mocking::MockCluster;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tablesweep::delivery::ToOne;
use tablesweep::host::Host;
use tablesweep::sink::kafka::{KafkaOptions, KafkaSink, OversizePolicy};
use tablesweep::sweep::Outcome;
use tokio::sync::watch;

use crate::laptop::Laptop;

const TOPIC: &str = "snow.incident";

/// The keys in the topic's only partition, in order.
fn keys(bootstrap: &str) -> Vec<String> {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", bootstrap).set("group.id", "reader").create().expect("a consumer");
    let wait = Duration::from_secs(10);
    let (low, high) = consumer.fetch_watermarks(TOPIC, 0, wait).expect("the ends of the partition");
    let mut assignment = TopicPartitionList::new();
    assignment.add_partition_offset(TOPIC, 0, Offset::Beginning).expect("an offset");
    consumer.assign(&assignment).expect("assigned");
    (low..high)
        .map(|_| {
            let message = consumer.poll(wait).expect("a record").expect("no error");
            String::from_utf8(message.key().expect("a key").to_vec()).expect("text")
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_is_fenced_off_leaves_the_cursor_right_and_the_next_run_recovers() {
    let cluster = MockCluster::new(1).expect("a cluster");
    cluster.create_topic(TOPIC, 1, 1).expect("a topic");
    let settings = BTreeMap::from([("bootstrap.servers".to_owned(), cluster.bootstrap_servers())]);
    let options = KafkaOptions::new("fenced", Host::system());
    let sinks = ToOne(Arc::new(KafkaSink::new(&settings, &options, OversizePolicy::Fail).expect("a sink")));
    let mut laptop = Laptop::new().with("snow.source.batch.size", 50);
    laptop.generate(400, 3);
    let (_stop, stopped) = watch::channel(false);
    let sweep = async |laptop: &Laptop| laptop.sweep_into(&sinks, stopped.clone()).await.remove(0);

    laptop.max_rows = Some(100);
    assert_eq!(sweep(&laptop).await.rows, 100);
    let before = laptop.item().await.progress;
    cluster.request_errors(RDKafkaApiKey::Produce, &[RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER]);
    laptop.max_rows = None;
    let fenced = sweep(&laptop).await;
    let code = fenced.reason.as_ref().map(|reason| reason.code.as_str());
    assert_eq!((fenced.outcome, code), (Outcome::Failed, Some("Sink.Fatal")), "{fenced:?}");
    let after = laptop.item().await.progress;
    assert_eq!((after.cursor, after.counters.rows), (before.cursor, before.counters.rows), "nothing was acknowledged, so nothing moved");

    let recovered = sweep(&laptop).await;
    assert_eq!((recovered.outcome, recovered.rows), (Outcome::CaughtUp, 300), "{recovered:?}");
    let found = keys(&cluster.bootstrap_servers());
    let expected: BTreeSet<String> = laptop.expected().into_iter().map(|(_, id, _)| id).collect();
    assert_eq!(found.iter().cloned().collect::<BTreeSet<_>>(), expected, "nothing lost");
    assert!(found.len() - expected.len() <= 100, "at most two pages twice");
}
