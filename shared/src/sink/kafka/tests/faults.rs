//! What the brokers do to a page, and what the page is told.

use rdkafka::types::{RDKafkaApiKey as Api, RDKafkaRespErr as Err};

use super::*;
use crate::failure::Retry;

fn assert_names(failure: &Failure, words: &[&str]) {
    for word in words {
        assert!(failure.message.contains(word), "`{word}` is missing in: {failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_that_pass_are_retried_and_nothing_is_delivered_twice() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    let passing =
        [Err::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, Err::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, Err::RD_KAFKA_RESP_ERR__TRANSPORT];
    brokers.cluster.request_errors(Api::Produce, &passing);
    let page = rows("a", 300);
    let expected = keys(&page);
    assert_eq!(deliver(&sink, page).await.unwrap().rows, 300);
    assert_eq!(brokers.keys().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_the_broker_finds_too_large_fails_its_page_and_the_next_page_is_delivered() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    brokers.cluster.request_errors(Api::Produce, &[Err::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE]);
    let failure = deliver(&sink, rows("a", 300)).await.unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Sink.TooLarge", Retry::Never));
    assert_names(&failure, &[TOPIC, &brokers.cluster.bootstrap_servers(), "max.message.bytes", "1000000"]);
    assert!(!in_flight(&sink).await);
    assert_eq!(deliver(&sink, rows("b", 10)).await.unwrap().rows, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_may_not_be_written_is_denied_and_named_with_the_right_that_is_missing() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    brokers.cluster.request_errors(Api::Produce, &[Err::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED]);
    let failure = deliver(&sink, rows("a", 1)).await.unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Sink.Denied", Retry::Never));
    assert_names(&failure, &[TOPIC, "1 of 1 records", "Write"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fatal_error_fails_what_is_in_flight_and_the_next_page_gets_a_new_producer() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    deliver(&sink, rows("a", 1)).await.unwrap();
    let broken = sink.connection.session().await.unwrap();
    brokers.cluster.request_errors(Api::Produce, &[Err::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER]);
    let first = sink.send(rows("b", 300)).await.unwrap();
    let second = sink.send(rows("c", 300)).await;
    let failure = first.await.unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Sink.Fatal", Retry::NextTick));
    assert_names(&failure, &[&brokers.cluster.bootstrap_servers(), "new producer"]);
    assert!(broken.idle());
    // The second page met the fatal error or the new producer, but it is settled in either case.
    if let Ok(acks) = second {
        let settled = acks.await;
        assert!(settled.is_ok() || &*settled.unwrap_err().code == "Sink.Fatal");
    }
    assert_eq!(deliver(&sink, rows("d", 300)).await.unwrap().rows, 300);
    assert!(!Arc::ptr_eq(&broken, &sink.connection.session().await.unwrap()));
    let read = brokers.keys().await;
    assert!(keys(&rows("d", 300)).iter().all(|key| read.binary_search(key).is_ok()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_right_to_idempotence_is_told_which_right_it_is() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    brokers.cluster.request_errors(Api::InitProducerId, &[Err::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED]);
    let failure = deliver(&sink, rows("a", 10)).await.unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Sink.Denied", Retry::Never));
    assert_names(&failure, &["IdempotentWrite"]);
    assert_eq!(deliver(&sink, rows("b", 10)).await.unwrap().rows, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_tells_of_the_right_to_idempotence_that_only_the_producer_of_records_needs() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    brokers.cluster.request_errors(Api::InitProducerId, &[Err::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED]);
    let (topic, found) = sink.probe(&[TOPIC]).await.remove(0);
    let failure = found.unwrap_err();
    assert_eq!((&*topic, &*failure.code, failure.retry), (TOPIC, "Sink.Denied", Retry::Never));
    assert_names(&failure, &["IdempotentWrite"]);
    let (_, found) = brokers.sink().probe(&[TOPIC]).await.remove(0);
    assert_eq!(found, Ok(crate::sink::TopicFound::Ready { partitions: 3 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_broker_answers_for_one_topic_is_told_of_all_without_asking_again() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = BTreeMap::from([("bootstrap.servers".to_owned(), format!("127.0.0.1:{port}"))]);
    let sink = KafkaSink::new(&settings, &options(), OversizePolicy::Fail).unwrap();
    let (clock, topics) = (Host::system(), ["a", "b", "c"]);
    let found = sink.probe(&topics).await;
    assert!(clock.monotonic() < Duration::from_secs(8), "one wait of five seconds, and not three: {:?}", clock.monotonic());
    assert_eq!(found.iter().map(|(topic, _)| topic.as_str()).collect::<Vec<_>>(), topics);
    for (topic, found) in found {
        assert_eq!(&*found.unwrap_err().code, "Sink.Unreachable", "{topic}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_gets_no_answer_fails_within_the_message_timeout_and_nothing_stays_in_flight() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("message.timeout.ms", "1500", OversizePolicy::Fail);
    deliver(&sink, rows("a", 1)).await.unwrap();
    brokers.cluster.broker_round_trip_time(-1, Duration::from_secs(60)).unwrap();
    let clock = Host::system();
    let failure = deliver(&sink, rows("b", 100)).await.unwrap_err();
    let took = clock.monotonic();
    assert!(took > Duration::from_millis(1_000) && took <= sink.message_timeout(), "{took:?}");
    assert!(["Sink.Timeout", "Sink.Unreachable"].contains(&&*failure.code), "{failure}");
    assert_eq!(failure.retry, Retry::NextTick);
    assert_names(&failure, &[TOPIC, &brokers.cluster.bootstrap_servers(), "100 of 100"]);
    assert!(!in_flight(&sink).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_went_down_are_named_and_a_page_is_delivered_when_they_are_back() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("message.timeout.ms", "1500", OversizePolicy::Fail);
    deliver(&sink, rows("a", 1)).await.unwrap();
    brokers.cluster.broker_down(1).unwrap();
    let clock = Host::system();
    let failure = deliver(&sink, rows("b", 100)).await.unwrap_err();
    assert!(clock.monotonic() <= sink.message_timeout(), "{:?}", clock.monotonic());
    assert_eq!((&*failure.code, failure.retry), ("Sink.Unreachable", Retry::NextTick));
    assert_names(&failure, &[&brokers.cluster.bootstrap_servers(), "bootstrap.servers", "last report"]);
    assert!(!in_flight(&sink).await);
    brokers.cluster.broker_up(1).unwrap();
    assert_eq!(deliver(&sink, rows("c", 10)).await.unwrap().rows, 10);
    assert!(!sink.connection.session().await.unwrap().trouble().current, "an acknowledgement ends it");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_that_are_overdue_are_fetched_by_a_purge_and_the_next_page_gets_a_new_producer() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    deliver(&sink, rows("a", 1)).await.unwrap();
    let session = sink.connection.session().await.unwrap();
    brokers.cluster.broker_round_trip_time(-1, Duration::from_millis(2_500)).unwrap();
    let records = rows("b", 100);
    let page = Page::expecting(records.len());
    let mut timer = Box::pin(tokio::time::sleep(Duration::from_millis(200)));
    session.queue(&records, &page, &mut timer).await.unwrap();
    let clock = Host::system();
    let settled = KafkaSink::settle(sink.connection.clone(), session.clone(), page.clone(), session.now(), timer).await;
    assert!(clock.monotonic() < Duration::from_millis(200) + session::PURGE, "{:?}", clock.monotonic());
    assert_eq!(&*Failure::from(settled.unwrap_err()).code, "Sink.Timeout");
    assert!(session.idle() && page.outcome().refused == 100);
    brokers.cluster.broker_round_trip_time(-1, Duration::ZERO).unwrap();
    assert_eq!(deliver(&sink, rows("c", 10)).await.unwrap().rows, 10);
    assert!(!Arc::ptr_eq(&session, &sink.connection.session().await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_stays_full_fails_the_page_in_time_with_nothing_in_flight() {
    let brokers = Brokers::start();
    let mut settings = brokers.settings();
    settings.insert("queue.buffering.max.messages".to_owned(), "50".to_owned());
    settings.insert("message.timeout.ms".to_owned(), "1500".to_owned());
    let sink = KafkaSink::new(&settings, &options(), OversizePolicy::Fail).unwrap();
    deliver(&sink, rows("a", 1)).await.unwrap();
    brokers.cluster.broker_round_trip_time(-1, Duration::from_secs(60)).unwrap();
    let clock = Host::system();
    let failure = sink.send(rows("b", 5_000)).await.err().unwrap();
    assert!(clock.monotonic() <= sink.message_timeout(), "{:?}", clock.monotonic());
    assert!(["Sink.Timeout", "Sink.Unreachable"].contains(&&*failure.code), "{failure}");
    assert!(!in_flight(&sink).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_is_found_by_the_check_and_is_not_created() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    sink.check(&[TOPIC]).await.unwrap();
    for _ in 0..2 {
        let failure = sink.check(&[TOPIC, "incidnets"]).await.unwrap_err();
        assert_eq!((&*failure.code, failure.retry), ("Sink.TopicMissing", Retry::Never));
        assert_names(&failure, &["incidnets", "kafka-topics.sh --create", &brokers.cluster.bootstrap_servers()]);
    }
    brokers.cluster.create_topic("incidnets", 1, 1).unwrap();
    sink.check(&[TOPIC, "incidnets"]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_was_checked_is_not_asked_about_again() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    sink.check(&[TOPIC]).await.unwrap();
    brokers.cluster.broker_down(1).unwrap();
    sink.check(&[TOPIC]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_out_of_reach_are_found_by_the_check_within_seconds_with_the_reason() {
    // A port that nobody listens on any more.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let servers = format!("127.0.0.1:{port}");
    let settings = BTreeMap::from([("bootstrap.servers".to_owned(), servers.clone())]);
    let sink = KafkaSink::new(&settings, &options(), OversizePolicy::Fail).unwrap();
    let clock = Host::system();
    let failure = sink.check(&[TOPIC]).await.unwrap_err();
    assert!(clock.monotonic() < Duration::from_secs(7), "{:?}", clock.monotonic());
    assert_eq!((&*failure.code, failure.retry), ("Sink.Unreachable", Retry::NextTick));
    assert_names(&failure, &[&servers, "bootstrap.servers", TOPIC, "Connection refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_c_cannot_carry_fails_the_page_and_panics_nowhere() {
    let brokers = Brokers::start();
    let sink = brokers.sink();
    let mut header = record("k", "1");
    header.headers = Arc::new([("a\0b".to_owned(), "1".to_owned())]);
    let mut topic = record("k", "1");
    topic.topic = "a\0b".into();
    for broken in [header, topic] {
        let failure = sink.send(vec![record("good", "1"), broken]).await.err().unwrap();
        assert_eq!((&*failure.code, failure.retry), ("Sink.Rejected", Retry::Never));
        assert!(!in_flight(&sink).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_not_there_is_named_by_the_page() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("topic.metadata.propagation.max.ms", "100", OversizePolicy::Fail);
    sink.check(&[TOPIC]).await.unwrap();
    let mut lost = record("k", "1");
    lost.topic = "incidnets".into();
    let failure = deliver(&sink, vec![lost]).await.unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Sink.TopicMissing", Retry::Never));
    assert_names(&failure, &["incidnets", "kafka-topics.sh --create"]);
    assert!(!in_flight(&sink).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_security_protocol_is_told_by_the_check() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("security.protocol", "ssl", OversizePolicy::Fail);
    let failure = sink.check(&[TOPIC]).await.unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Sink.Protocol", Retry::NextTick), "{failure}");
    assert_names(&failure, &["security.protocol", "SSL_HANDSHAKE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_being_handed_over_ends_when_its_producer_is_given_up() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("queue.buffering.max.messages", "50", OversizePolicy::Fail);
    deliver(&sink, rows("a", 1)).await.unwrap();
    let session = sink.connection.session().await.unwrap();
    brokers.cluster.broker_round_trip_time(-1, Duration::from_secs(60)).unwrap();
    let (clock, blocked) = (Host::system(), sink.clone());
    let sending = tokio::spawn(async move { blocked.send(rows("b", 5_000)).await.err().unwrap() });
    while session.idle() {
        tokio::task::yield_now().await;
    }
    session.give_up().await;
    assert!(session.idle());
    assert_eq!(&*sending.await.unwrap().code, "Sink.Timeout");
    assert!(clock.monotonic() < Duration::from_millis(1_500), "{:?}", clock.monotonic());
}
