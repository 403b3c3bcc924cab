//! The Kafka sink against a real broker: what the mock brokers of librdkafka cannot show.
//!
//! A real broker checks the sequence numbers of an idempotent producer, knows a size limit, does not create topics, and
//! can be killed or frozen with records on their way. The promise is the same in every case: what was acknowledged is in
//! the topic, and what failed is not on its way any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tablesweep::failure::{Failure, Retry};
use tablesweep::host::Host;
use tablesweep::record::Record;
use tablesweep::sink::kafka::{KafkaOptions, KafkaSink, OversizePolicy};
use tablesweep::sink::{Delivered, Sink, TopicFound};
use tablesweep_testbed::kafka::{self, Broker};

/// Settings under which faults show within a test's patience.
const QUICK: &[(&str, &str)] = &[("message.timeout.ms", "3000"), ("reconnect.backoff.max.ms", "300")];

fn sink(bootstrap: &str, more: &[(&str, &str)]) -> KafkaSink {
    let mut settings = BTreeMap::from([("bootstrap.servers".to_owned(), bootstrap.to_owned())]);
    settings.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let options = KafkaOptions::new("promises", Host::system());
    KafkaSink::new(&settings, &options, OversizePolicy::Fail).expect("the settings are right")
}

/// A topic of its own in `broker`.
async fn topic(broker: &Broker, settings: &[(&str, &str)]) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("sink-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    broker.create_topic_with(&name, 3, settings).await.expect("the topic is created");
    name
}

fn record(topic: &str, key: &str, value: String) -> Record {
    Record {
        topic: topic.into(),
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Some(Bytes::from(value)),
        timestamp_ms: None,
        headers: Arc::new([]),
    }
}

/// A page of versions of 50 keys. `from` is the first version.
fn page(topic: &str, from: usize, count: usize) -> Vec<Record> {
    (from..from + count).map(|version| record(topic, &format!("key{}", version % 50), version.to_string())).collect()
}

async fn deliver(sink: &KafkaSink, records: Vec<Record>) -> Result<Delivered, Failure> {
    sink.send(records).await?.await
}

/// The versions in the topic, per key in the order in which they lie there.
async fn versions(broker: &Broker, topic: &str) -> BTreeMap<String, Vec<usize>> {
    let mut versions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for record in broker.read_all(topic).await.expect("the topic can be read") {
        let key = record.key_text().expect("a key").to_owned();
        versions.entry(key).or_default().push(record.text().expect("a value").parse().expect("a version"));
    }
    versions
}

/// Every version up to `count`, in order, each once.
fn complete(count: usize) -> BTreeMap<String, Vec<usize>> {
    let mut versions: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for version in 0..count {
        versions.entry(format!("key{}", version % 50)).or_default().push(version);
    }
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_arrives_with_its_key_value_headers_and_timestamp() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let topic = topic(broker, &[]).await;
    let sink = sink(&broker.bootstrap(), &[]);
    let mut stamped = record(&topic, "k", "{\"n\":1}".to_owned());
    stamped.timestamp_ms = Some(1_700_000_000_123);
    stamped.headers = Arc::new([("servicenow.table".to_owned(), "incident".to_owned())]);
    let mut tombstone = record(&topic, "k", String::new());
    tombstone.value = None;
    let before = Host::system().now_ms();
    assert_eq!(deliver(&sink, vec![stamped, tombstone]).await.expect("delivered").rows, 2);
    let read = broker.read_all(&topic).await.expect("the topic can be read");
    assert_eq!((read[0].key_text(), read[0].text(), read[0].timestamp), (Some("k"), Some("{\"n\":1}"), Some(1_700_000_000_123)));
    assert_eq!(read[0].header("servicenow.table"), Some("incident"));
    assert_eq!((&read[1].value, read[1].headers.len()), (&None, 0));
    assert!(read[1].timestamp.is_some_and(|stamp| stamp >= before - 1_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_broker_loses_doubles_and_reorders_nothing_when_it_is_back_in_time() {
    let broker = Broker::start().await.expect("Kafka starts");
    let topic = topic(&broker, &[]).await;
    let sink = sink(&broker.bootstrap(), &[("message.timeout.ms", "60000"), ("reconnect.backoff.max.ms", "300")]);
    let mut waiting = Vec::new();
    for (number, from) in (0..10_000).step_by(1_000).enumerate() {
        waiting.push(sink.send(page(&topic, from, 1_000)).await.expect("queued"));
        if number == 4 {
            broker.kill().await;
        }
    }
    broker.restart().await.expect("Kafka starts again");
    for acks in waiting {
        assert_eq!(acks.await.expect("delivered").rows, 1_000);
    }
    assert_eq!(versions(&broker, &topic).await, complete(10_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_fails_the_page_in_time_and_later_pages_are_delivered_when_it_thaws() {
    let broker = Broker::start().await.expect("Kafka starts");
    let topic = topic(&broker, &[]).await;
    let sink = sink(&broker.bootstrap(), QUICK);
    deliver(&sink, page(&topic, 0, 100)).await.expect("delivered");
    broker.freeze().await.expect("Kafka freezes");
    let clock = Host::system();
    let failure = deliver(&sink, page(&topic, 100, 100)).await.expect_err("nothing answers");
    assert!(clock.monotonic() <= sink.message_timeout(), "{:?}", clock.monotonic());
    assert!(["Sink.Timeout", "Sink.Unreachable"].contains(&&*failure.code), "{failure}");
    assert_eq!(failure.retry, Retry::NextTick);
    broker.thaw();
    // The failed page is sent again, as the next sweep would. Its first copy may have been in the broker's socket.
    assert_eq!(deliver(&sink, page(&topic, 100, 100)).await.expect("delivered").rows, 100);
    assert_eq!(deliver(&sink, page(&topic, 200, 100)).await.expect("delivered").rows, 100);
    for (key, mut versions) in versions(&broker, &topic).await {
        let newest = versions.last().copied();
        versions.sort_unstable();
        versions.dedup();
        let expected = &complete(300)[&key];
        assert_eq!((&versions, newest), (expected, expected.last().copied()), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_beyond_the_topics_limit_is_too_large_and_names_the_setting() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let topic = topic(broker, &[("max.message.bytes", "2000")]).await;
    let sink = sink(&broker.bootstrap(), &[("compression.type", "none")]);
    let failure = deliver(&sink, vec![record(&topic, "large", "x".repeat(5_000))]).await.expect_err("too large");
    assert_eq!((&*failure.code, failure.retry), ("Sink.TooLarge", Retry::Never));
    for word in [&*topic, "large", "max.message.bytes"] {
        assert!(failure.message.contains(word), "`{word}` is missing in: {failure}");
    }
    assert_eq!(deliver(&sink, page(&topic, 0, 10)).await.expect("delivered").rows, 10);
    assert_eq!(versions(broker, &topic).await, complete(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_is_found_at_the_start_and_is_not_created() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let sink = sink(&broker.bootstrap(), QUICK);
    for _ in 0..2 {
        let failure = sink.check(&["sink-missing"]).await.expect_err("missing");
        assert_eq!((&*failure.code, failure.retry), ("Sink.TopicMissing", Retry::Never));
        assert!(failure.message.contains("sink-missing") && failure.message.contains(&broker.bootstrap()), "{failure}");
    }
    broker.create_topic("sink-missing", 1).await.expect("the topic is created");
    sink.check(&["sink-missing"]).await.expect("the topic is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_are_down_are_named_within_seconds_with_what_the_client_saw() {
    let broker = Broker::start().await.expect("Kafka starts");
    let bootstrap = broker.bootstrap();
    broker.kill().await;
    let clock = Host::system();
    let failure = sink(&bootstrap, &[]).check(&["any"]).await.expect_err("nobody listens");
    assert!(clock.monotonic() < Duration::from_secs(7), "{:?}", clock.monotonic());
    assert_eq!((&*failure.code, failure.retry), ("Sink.Unreachable", Retry::NextTick));
    assert!(failure.message.contains(&bootstrap) && failure.message.contains("Connection refused"), "{failure}");
}

/// A broker whose proxied listener wants a password, and that gives rights to `boss` only.
async fn guarded() -> Broker {
    let users = "org.apache.kafka.common.security.plain.PlainLoginModule required user_boss=\"b0ss-secret\" user_guest=\"gu3st-secret\";";
    Broker::builder()
        .proxied()
        .property("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:SASL_PLAINTEXT")
        .property("listener.name.proxied.sasl.enabled.mechanisms", "PLAIN")
        .property("listener.name.proxied.plain.sasl.jaas.config", users)
        .property("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
        .property("super.users", "User:ANONYMOUS;User:boss")
        .start()
        .await
        .expect("Kafka starts")
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_sign_in_or_write_is_denied_with_the_remedy_and_without_the_password() {
    let broker = guarded().await;
    let topic = topic(&broker, &[]).await;
    let bootstrap = broker.proxied_bootstrap().expect("the proxied listener");
    let sign_in = |user: &str, password: &str| {
        let user = [("sasl.username", user), ("sasl.password", password)];
        sink(&bootstrap, &[&user[..], &[("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "PLAIN")], QUICK].concat())
    };
    let boss = sign_in("boss", "b0ss-secret");
    boss.check(&[&topic]).await.expect("the boss may write");
    assert_eq!(deliver(&boss, page(&topic, 0, 10)).await.expect("delivered").rows, 10);
    let stranger = sign_in("boss", "wr0ng-secret");
    let guest = sign_in("guest", "gu3st-secret");
    for (sink, code, word) in [(&stranger, "Sink.Unauthorized", "sasl.password"), (&guest, "Sink.Denied", "Write")] {
        let checked = sink.check(&[&topic]).await.expect_err("not allowed");
        let sent = deliver(sink, page(&topic, 10, 10)).await.expect_err("not allowed");
        for failure in [checked, sent] {
            assert_eq!((&*failure.code, failure.retry), (code, Retry::Never), "{failure}");
            assert!(failure.message.contains(word) && failure.message.contains(&bootstrap), "{failure}");
            assert!(!failure.message.contains("-secret"), "{failure}");
        }
    }
    assert_eq!(versions(&broker, &topic).await, complete(10));

    // A probe asks for the right to write, which seeing the topic does not prove, and writes nothing for it.
    let probed = async |sink: &KafkaSink| sink.probe(&[&topic]).await.remove(0).1;
    assert_eq!(probed(&boss).await, Ok(TopicFound::Ready { partitions: 3 }));
    broker.grant("guest", &topic, &["Describe"]).await.expect("allowed");
    let guest = sign_in("guest", "gu3st-secret");
    guest.check(&[&topic]).await.expect("the guest sees the topic");
    let failure = probed(&guest).await.expect_err("and may not write");
    // The producer itself is refused for a right of its own, IdempotentWrite: that is not what was asked.
    assert!(failure.code == "Sink.Denied" && failure.message.contains("the rights Write and Describe on the topic"), "{failure}");
    broker.grant("guest", &topic, &["Write"]).await.expect("allowed");
    assert_eq!(probed(&guest).await, Ok(TopicFound::Ready { partitions: 3 }));
    let failure = probed(&stranger).await.expect_err("who is not let in");
    assert!(failure.code == "Sink.Unauthorized" && failure.message.contains("sasl.password"), "{failure}");
    assert_eq!(versions(&broker, &topic).await, complete(10), "no probe wrote a record");
}
