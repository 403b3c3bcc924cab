//! The sink against librdkafka's own mock brokers. What they are not (a size limit, rights, idempotence) is injected.

mod choices;
mod faults;
mod logins;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::{Offset, TopicPartitionList};

use super::*;
use crate::host::ManualClock;

const TOPIC: &str = "incidents";
const PARTITIONS: i32 = 3;

/// Brokers with one topic.
struct Brokers {
    cluster: MockCluster<'static, DefaultProducerContext>,
}

/// A record as a consumer sees it.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    partition: i32,
    key: String,
    value: Option<String>,
    headers: Vec<(String, String)>,
}

impl Brokers {
    fn start() -> Self {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic(TOPIC, PARTITIONS, 1).unwrap();
        Self { cluster }
    }

    /// Settings under which faults show within a test's patience.
    fn settings(&self) -> BTreeMap<String, String> {
        [
            ("bootstrap.servers", &*self.cluster.bootstrap_servers()),
            ("message.timeout.ms", "3000"),
            ("reconnect.backoff.max.ms", "300"),
            ("linger.ms", "1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn sink(&self) -> KafkaSink {
        KafkaSink::new(&self.settings(), &options(), OversizePolicy::Fail).unwrap()
    }

    fn sink_with(&self, name: &str, value: &str, oversize: OversizePolicy) -> KafkaSink {
        let mut settings = self.settings();
        settings.insert(name.to_owned(), value.to_owned());
        KafkaSink::new(&settings, &options(), oversize).unwrap()
    }

    /// Everything in the topic, per partition in the order of its offsets.
    async fn read(&self) -> Vec<Read> {
        let servers = self.cluster.bootstrap_servers();
        tokio::task::spawn_blocking(move || read(&servers)).await.unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.read().await.into_iter().map(|read| read.key).collect();
        keys.sort();
        keys
    }
}

fn read(servers: &str) -> Vec<Read> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers).set("group.id", "reader").set("enable.auto.commit", "false");
    config.set("enable.partition.eof", "false");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut all = Vec::new();
    for partition in 0..PARTITIONS {
        let (low, high) = consumer.fetch_watermarks(TOPIC, partition, Duration::from_secs(10)).unwrap();
        if low == high {
            continue;
        }
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
        consumer.assign(&list).unwrap();
        loop {
            let message = consumer.poll(Duration::from_secs(10)).expect("what lies below the high watermark can be read");
            let message = message.unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
            all.push(Read {
                partition,
                key: text(message.key().unwrap()),
                value: message.payload().map(text),
                headers: headers.map(|header| (header.key.to_owned(), text(header.value.unwrap()))).collect(),
            });
            if message.offset() == high - 1 {
                break;
            }
        }
    }
    all
}

fn options() -> KafkaOptions {
    KafkaOptions::new("test", Host::system())
}

fn record(key: &str, value: &str) -> Record {
    Record {
        topic: TOPIC.into(),
        key: Bytes::copy_from_slice(key.as_bytes()),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        timestamp_ms: Some(1_700_000_000_000),
        headers: Arc::new([]),
    }
}

fn rows(prefix: &str, count: usize) -> Vec<Record> {
    (0..count).map(|row| record(&format!("{prefix}{row:05}"), &row.to_string())).collect()
}

fn keys(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| String::from_utf8(record.key.to_vec()).unwrap()).collect()
}

async fn deliver(sink: &KafkaSink, records: Vec<Record>) -> Result<Delivered, Failure> {
    sink.send(records).await?.await
}

async fn in_flight(sink: &KafkaSink) -> bool {
    !sink.connection.session().await.unwrap().idle()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_record_is_in_the_topic_and_none_twice() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    let page = rows("a", 5_000);
    let expected = keys(&page);
    assert_eq!(deliver(&sink, page).await.unwrap(), Delivered { rows: 5_000, skipped: 0 });
    assert_eq!(brokers.keys().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_value_headers_and_tombstones_arrive_as_they_were() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    let shared: Arc<[(String, String)]> = Arc::new([("b".to_owned(), "2".to_owned()), ("a".to_owned(), "über".to_owned())]);
    let mut first = record("k1", "{\"n\":1}");
    let mut second = record("k2", "");
    let mut third = record("k3", "");
    (first.headers, second.headers) = (shared.clone(), shared.clone());
    second.value = None;
    third.timestamp_ms = None;
    deliver(&sink, vec![first, second, third]).await.unwrap();
    let mut read: Vec<_> = brokers.read().await.into_iter().map(|read| (read.key, read.value, read.headers)).collect();
    read.sort();
    let shared = shared.to_vec();
    assert_eq!(
        read,
        [
            ("k1".to_owned(), Some("{\"n\":1}".to_owned()), shared.clone()),
            ("k2".to_owned(), None, shared),
            ("k3".to_owned(), Some(String::new()), vec![]),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_one_key_keep_their_order_across_pages() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    // Errors that make librdkafka send again are where order is lost.
    use rdkafka::types::RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION as MOVED, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT as LATE,
    };
    brokers.cluster.request_errors(rdkafka::types::RDKafkaApiKey::Produce, &[MOVED, LATE, MOVED]);
    let mut waiting = Vec::new();
    for page in 0..4 {
        let records = (0..500).map(|row| record(&format!("key{}", row % 7), &(page * 500 + row).to_string())).collect();
        waiting.push(sink.send(records).await.unwrap());
    }
    for acks in waiting {
        assert_eq!(acks.await.unwrap().rows, 500);
    }
    let mut last: BTreeMap<String, i32> = BTreeMap::new();
    let read = brokers.read().await;
    assert_eq!(read.len(), 2_000);
    for read in read {
        let version: i32 = read.value.unwrap().parse().unwrap();
        let before = last.insert(read.key.clone(), version);
        assert!(before.is_none_or(|before| before < version), "{}: {before:?} before {version}", read.key);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_larger_than_the_queue_waits_for_room_and_is_delivered_whole() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("queue.buffering.max.messages", "50", OversizePolicy::Fail);
    let page = rows("a", 2_000);
    let expected = keys(&page);
    assert_eq!(deliver(&sink, page).await.unwrap().rows, 2_000);
    assert_eq!(brokers.keys().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_partition_of_a_key_is_the_one_a_java_producer_chooses() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    let names = ["21", "foobar", "a-little-bit-long-string", "abc"];
    deliver(&sink, names.iter().map(|key| record(key, "1")).collect()).await.unwrap();
    // The hashes are those that Kafka's own UtilsTest expects of murmur2.
    let hashes = [-973_932_308_i32, -790_332_482, -985_981_536, 479_470_107];
    let read: BTreeMap<String, i32> = brokers.read().await.into_iter().map(|read| (read.key, read.partition)).collect();
    for (key, hash) in names.iter().zip(hashes) {
        assert_eq!(read[*key], (hash & 0x7fff_ffff) % PARTITIONS, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversize_record_fails_its_page_before_any_of_it_is_sent() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("message.max.bytes", "2000", OversizePolicy::Fail);
    let page = vec![record("small", "1"), record("large", &"x".repeat(2_000))];
    let failure = sink.send(page).await.err().unwrap();
    assert_eq!((&*failure.code, failure.retry), ("Sink.TooLarge", crate::failure::Retry::Never));
    for word in [TOPIC, "large", "2000", "message.max.bytes"] {
        assert!(failure.message.contains(word), "{word} is missing in: {failure}");
    }
    deliver(&sink, rows("a", 1)).await.unwrap();
    assert_eq!(brokers.keys().await, ["a00000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skipped_oversize_record_is_counted_and_its_neighbours_are_delivered() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("message.max.bytes", "2000", OversizePolicy::Skip);
    let page = vec![record("a", "1"), record("large", &"x".repeat(2_000)), record("b", "1")];
    assert_eq!(deliver(&sink, page).await.unwrap(), Delivered { rows: 2, skipped: 1 });
    assert_eq!(brokers.keys().await, ["a", "b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_passes_the_size_check_is_taken_by_librdkafka() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("message.max.bytes", "2000", OversizePolicy::Fail);
    let mut largest = record("k", "");
    largest.headers = Arc::new([("h".repeat(40), "v".repeat(40))]);
    let room = 2_000 - settings::size_on_the_wire(&largest);
    largest.value = Some(Bytes::from(vec![b'x'; room]));
    assert_eq!(deliver(&sink, vec![largest.clone()]).await.unwrap().rows, 1);
    largest.value = Some(Bytes::from(vec![b'x'; room + 1]));
    assert_eq!(&*deliver(&sink, vec![largest]).await.unwrap_err().code, "Sink.TooLarge");
}

#[tokio::test(flavor = "multi_thread")]
async fn sinks_with_equal_settings_share_a_producer_and_others_do_not() {
    let brokers = Brokers::start();
    let sinks = KafkaSinks::new(options());
    let mut other = brokers.settings();
    other.insert("linger.ms".to_owned(), "7".to_owned());
    let first = sinks.sink(&brokers.settings(), None, OversizePolicy::Fail).unwrap();
    let second = sinks.sink(&brokers.settings(), None, OversizePolicy::Skip).unwrap();
    let third = sinks.sink(&other, None, OversizePolicy::Fail).unwrap();
    assert!(Arc::ptr_eq(&first.connection, &second.connection));
    assert!(!Arc::ptr_eq(&first.connection, &third.connection));
    assert_eq!((first.oversize, second.oversize), (OversizePolicy::Fail, OversizePolicy::Skip));
}

/// Settings that were read from a place.
struct Placed(&'static str);

#[async_trait]
impl Rotation for Placed {
    fn places(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("sasl.password".to_owned(), self.0.to_owned())])
    }

    async fn renew(&self) -> Result<BTreeMap<String, String>, Failure> {
        Err(Failure::new("Config.Unresolved", crate::failure::Retry::NextTick, "not asked for here"))
    }
}

#[test]
fn equal_settings_from_different_places_do_not_stay_equal_and_share_no_producer() {
    let sinks = KafkaSinks::new(options());
    let settings = BTreeMap::from([("bootstrap.servers".to_owned(), "b:9092".to_owned())]);
    let of = |place| sinks.sink(&settings, Some(Arc::new(Placed(place))), OversizePolicy::Fail).unwrap().connection;
    assert!(Arc::ptr_eq(&of("${secretsmanager:one:password}"), &of("${secretsmanager:one:password}")));
    assert!(!Arc::ptr_eq(&of("${secretsmanager:one:password}"), &of("${secretsmanager:two:password}")));
}

/// A name of the client that was read from a place.
struct PlacedName;

#[async_trait]
impl Rotation for PlacedName {
    fn places(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("client.id".to_owned(), "${ssm:/name}".to_owned())])
    }

    async fn renew(&self) -> Result<BTreeMap<String, String>, Failure> {
        Err(Failure::new("Config.Unresolved", crate::failure::Retry::NextTick, "not asked for here"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_whose_placeholders_stand_for_something_else_by_now_has_ended_when_its_successor_begins() {
    let brokers = Brokers::start();
    let sinks = KafkaSinks::new(options());
    let of = |name: &str| {
        let mut settings = brokers.settings();
        settings.insert("client.id".to_owned(), name.to_owned());
        sinks.sink(&settings, Some(Arc::new(PlacedName)), OversizePolicy::Fail).unwrap()
    };
    let count = || sinks.connections.lock().unwrap().len();
    let first = of("one");
    deliver(&first, rows("a", 10)).await.unwrap();
    let session = Arc::downgrade(&first.connection.session().await.unwrap());
    assert_eq!((of("two").connection.settings().max_bytes > 0, count()), (true, 2), "one that is in use stays");
    drop(first);
    // The third takes the place of both, of which one never had a producer.
    let third = of("three");
    assert_eq!(count(), 1);
    assert!(session.upgrade().is_some(), "nothing has begun yet");
    deliver(&third, rows("b", 10)).await.unwrap();
    assert!(session.upgrade().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_producer_has_ended_and_its_sink_gets_a_new_one() {
    let brokers = Brokers::start();
    let sinks = KafkaSinks::new(options());
    let sink = sinks.sink(&brokers.settings(), None, OversizePolicy::Fail).unwrap();
    deliver(&sink, rows("a", 10)).await.unwrap();
    let session = Arc::downgrade(&sink.connection.session().await.unwrap());
    assert!(session.upgrade().is_some());
    sinks.close().await;
    assert!(session.upgrade().is_none());
    assert_eq!(deliver(&sink, rows("b", 10)).await.unwrap().rows, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_is_reused_and_replaced_after_a_sleep_of_more_than_ten_minutes() {
    let brokers = Brokers::start();
    let clock = ManualClock::at(1_700_000_000_000);
    let options = KafkaOptions { host: Host::with_clock(clock.clone()), ..options() };
    let sink = KafkaSink::new(&brokers.settings(), &options, OversizePolicy::Fail).unwrap();
    deliver(&sink, rows("a", 1)).await.unwrap();
    let first = sink.connection.session().await.unwrap();
    clock.step_to(1_700_000_000_000 + connection::IDLE_MS);
    deliver(&sink, rows("b", 1)).await.unwrap();
    assert!(Arc::ptr_eq(&first, &sink.connection.session().await.unwrap()));
    clock.step_to(1_700_000_000_000 + 2 * connection::IDLE_MS + 1);
    deliver(&sink, rows("c", 1)).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &sink.connection.session().await.unwrap()));
    assert_eq!(brokers.keys().await, ["a00000", "b00000", "c00000"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_without_records_is_delivered_at_once() {
    let brokers = Brokers::start();
    assert_eq!(deliver(&brokers.sink(), vec![]).await.unwrap(), Delivered::default());
}

#[test]
fn the_note_of_a_skipped_record_has_its_key_sizes_and_digest_and_no_payload() {
    let written = Arc::new(Mutex::new(Vec::new()));
    let (writer, large) = (written.clone(), record("9d38", &"payload".repeat(3)));
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || Log(writer.clone())).finish();
    tracing::subscriber::with_default(subscriber, || note_left_out(&large, 1_021, 20));
    let note = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let digest = hex(&Sha256::digest("payload".repeat(3)));
    for word in ["Sink.TooLarge", TOPIC, "9d38", "1021", "20", "value_bytes=21", &digest] {
        assert!(note.contains(word), "{word} is missing in: {note}");
    }
    assert!(!note.contains("payload"), "{note}");
}

/// A place for log lines.
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_is_broken_off_leaves_no_record_that_is_waited_for() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("queue.buffering.max.messages", "50", OversizePolicy::Fail);
    brokers.cluster.broker_round_trip_time(-1, Duration::from_millis(300)).unwrap();
    let sending = tokio::time::timeout(Duration::from_millis(100), sink.send(rows("a", 5_000))).await;
    assert!(sending.is_err(), "the queue should have been full");
    brokers.cluster.broker_round_trip_time(-1, Duration::ZERO).unwrap();
    let session = sink.connection.session().await.unwrap();
    let settled = async {
        while !session.idle() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(sink.message_timeout(), settled).await.unwrap();
    assert_eq!(deliver(&sink, rows("b", 10)).await.unwrap().rows, 10);
}
