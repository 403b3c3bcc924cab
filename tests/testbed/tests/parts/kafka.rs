//! The broker is a real one, and faults do to it what they do in the field.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::proxy::Fault;

const LONG: Duration = Duration::from_secs(60);

fn producer(bootstrap: &str, message_timeout: Duration) -> FutureProducer {
    ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("message.timeout.ms", message_timeout.as_millis().to_string())
        .set("reconnect.backoff.max.ms", "200")
        // How long an unknown topic may be one that was only just created; 30 s by default.
        .set("topic.metadata.propagation.max.ms", "500")
        .create()
        .unwrap()
}

async fn send(producer: &FutureProducer, topic: &str, value: &str) -> Result<(i32, i64), KafkaError> {
    let record = FutureRecord::<str, str>::to(topic).payload(value);
    match producer.send(record, LONG).await {
        Ok(delivery) => Ok((delivery.partition, delivery.offset)),
        Err((error, _)) => Err(error),
    }
}

async fn values(broker: &Broker, topic: &str) -> Vec<String> {
    let records = broker.read_all(topic).await.unwrap();
    records.iter().map(|record| record.text().unwrap_or("(none)").to_owned()).collect()
}

#[tokio::test]
async fn a_topic_is_read_back_record_for_record_with_all_that_they_carry() {
    let broker = kafka::shared().await.unwrap();
    broker.create_topic("read-back", 3).await.unwrap();
    let producer = producer(&broker.bootstrap(), LONG);
    let headers =
        OwnedHeaders::new().insert(Header { key: "text", value: Some("yes") }).insert(Header::<&str> { key: "bare", value: None });
    let full = FutureRecord::to("read-back").partition(2).key("k").payload("v").timestamp(1_700_000_000_123);
    producer.send(full.headers(headers), LONG).await.unwrap();
    let tombstone = FutureRecord::<str, str>::to("read-back").partition(0).key("gone");
    producer.send(tombstone, LONG).await.unwrap();
    for number in 0..1000 {
        let value = number.to_string();
        let record = FutureRecord::<str, str>::to("read-back").partition(1).payload(&value);
        // Queued, not awaited one by one; the reader below would miss what is not acknowledged.
        let queued = producer.send_result(record);
        if number == 999 {
            queued.map_err(|(error, _)| error).unwrap().await.unwrap().map_err(|(error, _)| error).unwrap();
        } else {
            queued.map_err(|(error, _)| error).unwrap();
        }
    }

    let records = broker.read_all("read-back").await.unwrap();
    assert_eq!(records.len(), 1002);
    let (tombstone, full) = (&records[0], &records[1001]);
    assert_eq!((tombstone.partition, tombstone.key_text(), &tombstone.value), (0, Some("gone"), &None));
    assert_eq!((full.partition, full.offset, full.key_text(), full.text()), (2, 0, Some("k"), Some("v")));
    assert_eq!(full.timestamp, Some(1_700_000_000_123));
    assert_eq!(full.header("text"), Some("yes"));
    assert_eq!(full.headers[1], ("bare".to_owned(), None));
    for (number, record) in records[1..1001].iter().enumerate() {
        assert_eq!((record.partition, record.offset), (1, i64::try_from(number).unwrap()));
        assert_eq!(record.text(), Some(number.to_string().as_str()));
    }
}

#[tokio::test]
async fn a_topic_that_nobody_created_is_refused_and_not_made_up() {
    let broker = kafka::shared().await.unwrap();
    let refused = send(&producer(&broker.bootstrap(), LONG), "never-created", "lost").await.unwrap_err();
    assert_eq!(refused.rdkafka_error_code(), Some(RDKafkaErrorCode::UnknownTopicOrPartition), "{refused}");
    let error = broker.read_all("never-created").await.expect_err("it was not made up");
    assert!(error.to_string().contains("never-created"), "{error}");
    let twice = broker.create_topic("twice", 1).await.and(broker.create_topic("twice", 1).await);
    assert!(twice.expect_err("it is there already").to_string().contains("TopicAlreadyExists"));
}

#[tokio::test]
async fn an_empty_topic_is_read_as_empty_at_once() {
    let broker = kafka::shared().await.unwrap();
    broker.create_topic("empty", 2).await.unwrap();
    assert_eq!(broker.read_all("empty").await.unwrap(), []);
}

#[tokio::test]
async fn a_record_over_the_limit_of_the_topic_is_refused_by_the_broker() {
    let broker = kafka::shared().await.unwrap();
    broker.create_topic_with("small", 1, &[("max.message.bytes", "1000")]).await.unwrap();
    let producer = producer(&broker.bootstrap(), LONG);
    send(&producer, "small", "fits").await.unwrap();
    let refused = send(&producer, "small", &"x".repeat(2000)).await.unwrap_err();
    assert_eq!(refused.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageSizeTooLarge), "{refused}");
    assert_eq!(values(broker, "small").await, ["fits"]);
}

#[tokio::test]
async fn acknowledged_records_survive_a_stop_and_a_kill_on_the_same_port() {
    let broker = Broker::start().await.unwrap();
    let bootstrap = broker.bootstrap();
    broker.create_topic("kept", 1).await.unwrap();
    let producer = producer(&bootstrap, LONG);
    send(&producer, "kept", "before the stop").await.unwrap();

    let first = broker.pid();
    broker.restart().await.unwrap();
    assert_ne!(broker.pid(), first);
    assert_eq!(broker.bootstrap(), bootstrap);
    // The same producer, which has to find its way back.
    send(&producer, "kept", "before the kill").await.unwrap();

    broker.kill().await;
    broker.restart().await.unwrap();
    send(&producer, "kept", "after both").await.unwrap();
    assert_eq!(values(&broker, "kept").await, ["before the stop", "before the kill", "after both"]);
}

#[tokio::test]
async fn a_broker_that_is_frozen_or_cut_off_acknowledges_nothing_until_it_is_back() {
    let broker = Broker::builder().proxied().property("message.max.bytes", "5000").start().await.unwrap();
    broker.create_topic("faults", 1).await.unwrap();
    let proxied = broker.proxied_bootstrap().unwrap();
    let proxy = broker.proxy().unwrap();
    let patient = producer(&proxied, LONG);
    send(&patient, "faults", "through the proxy").await.unwrap();
    assert!(proxy.connections() > 0, "the client went past the proxy");
    let too_large = send(&patient, "faults", &"x".repeat(6000)).await.unwrap_err();
    assert_eq!(too_large.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageSizeTooLarge), "{too_large}");

    proxy.set(Fault::Blackhole);
    let hasty = producer(&proxied, Duration::from_secs(1));
    let lost = send(&hasty, "faults", "into the hole").await.unwrap_err();
    assert_eq!(lost.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageTimedOut), "{lost}");
    let (sent, ()) = tokio::join!(send(&patient, "faults", "after the hole"), async {
        // Nothing is acknowledged while the hole is open, however long that is.
        assert_eq!(values(&broker, "faults").await, ["through the proxy"]);
        proxy.set(Fault::None);
    });
    sent.unwrap();

    broker.freeze().await.unwrap();
    let hasty = producer(&broker.bootstrap(), Duration::from_secs(1));
    let lost = send(&hasty, "faults", "into the ice").await.unwrap_err();
    assert_eq!(lost.rdkafka_error_code(), Some(RDKafkaErrorCode::MessageTimedOut), "{lost}");
    broker.thaw();
    send(&patient, "faults", "after the ice").await.unwrap();
    assert_eq!(values(&broker, "faults").await, ["through the proxy", "after the hole", "after the ice"]);
}

#[tokio::test]
async fn a_broker_that_cannot_start_says_why() {
    let broker = Broker::start().await.unwrap();
    broker.stop().await.unwrap();
    let _taken = tokio::net::TcpListener::bind(broker.bootstrap()).await.unwrap();
    let error = broker.restart().await.expect_err("its port is taken");
    let text = error.to_string();
    assert!(text.starts_with("Apache Kafka did not start: "), "{text}");
    assert!(text.contains("Address already in use"), "{text}");
}
