//! Signing in with an identity of AWS against a real broker: tokens in time, and credentials that are late, wrong or gone.
//!
//! What stands in for Amazon MSK is a broker of Apache Kafka whose check of tokens is the testbed's: it computes the signature
//! itself, and ends a connection whose token has ended unless it is shown another (KIP-368).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, error::CredentialsError, future};
use bytes::Bytes;
use tablesweep::failure::{Failure, Retry};
use tablesweep::host::{Host, ManualClock};
use tablesweep::record::Record;
use tablesweep::sink::kafka::{KafkaOptions, KafkaSink, NewTopic, OversizePolicy, TopicMaker};
use tablesweep::sink::{Sink, TopicFound};
use tablesweep_testbed::kafka::security::{self, Verdict};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::parts::until;

const PATIENCE: Duration = Duration::from_secs(60);

/// What is answered to the first question, the second, and so on; the last for ever. `None` hangs.
#[derive(Debug)]
struct Provider {
    answers: Vec<Option<Result<Credentials, &'static str>>>,
    asked: AtomicUsize,
}

impl Provider {
    fn of(answers: impl Into<Vec<Option<Result<Credentials, &'static str>>>>) -> Arc<Self> {
        Arc::new(Self { answers: answers.into(), asked: AtomicUsize::new(0) })
    }
}

#[derive(Debug)]
struct Asked(Arc<Provider>);

impl ProvideCredentials for Asked {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(async {
            let number = self.0.asked.fetch_add(1, Ordering::SeqCst);
            match self.0.answers[number.min(self.0.answers.len() - 1)].clone() {
                Some(answer) => answer.map_err(CredentialsError::provider_error),
                None => std::future::pending().await,
            }
        })
    }
}

fn key((id, secret): (&str, &str)) -> Option<Result<Credentials, &'static str>> {
    Some(Ok(Credentials::new(id, secret, None, None, "test")))
}

fn sink(broker: &Broker, provider: &Arc<Provider>, host: Host) -> KafkaSink {
    let settings = [
        ("bootstrap.servers", &*broker.sasl_bootstrap()),
        ("security.protocol", "SASL_SSL"),
        ("sasl.mechanism", "AWS_MSK_IAM"),
        ("ssl.ca.pem", security::AUTHORITY),
        ("message.timeout.ms", "5000"),
        ("reconnect.backoff.max.ms", "300"),
    ];
    let settings: BTreeMap<String, String> = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let credentials = Some(SharedCredentialsProvider::new(Asked(provider.clone())));
    let options = KafkaOptions { credentials, region: Some(security::REGION.to_owned()), ..KafkaOptions::new("iam", host) };
    KafkaSink::new(&settings, &options, OversizePolicy::Fail).expect("the settings are right")
}

async fn deliver(sink: &KafkaSink, topic: &str, row: usize) -> Result<u64, Failure> {
    let value = Some(Bytes::from(row.to_string()));
    let record = Record { topic: topic.into(), key: Bytes::from_static(b"k"), value, timestamp_ms: None, headers: Arc::new([]) };
    Ok(sink.send(vec![record]).await?.await?.rows)
}

async fn rows(broker: &Broker, topic: &str) -> Vec<usize> {
    let records = broker.read_all(topic).await.expect("the topic can be read");
    records.iter().map(|record| record.text().expect("a value").parse().expect("a row")).collect()
}

async fn broker(topic: &str) -> &'static Broker {
    let broker = kafka::secured().await.expect("Kafka starts");
    broker.create_topic(topic, 1).await.expect("the topic is created");
    broker
}

/// A broker to read the tokens of.
async fn own_broker(topic: &str) -> Broker {
    let broker = Broker::builder().secured().start().await.expect("Kafka starts");
    broker.create_topic(topic, 1).await.expect("the topic is created");
    broker
}

fn accepted(broker: &Broker) -> BTreeSet<String> {
    let verdicts = broker.tokens();
    assert!(verdicts.iter().all(|verdict| verdict.refused.is_none()), "{verdicts:?}");
    verdicts.into_iter().map(|Verdict { token, .. }| token).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_replaced_before_it_ends_and_the_connection_with_it_lives_on() {
    let broker = own_broker("iam-refresh").await;
    let clock = ManualClock::at(Host::system().now_ms() - 890_000);
    // By this clock every token was signed a while ago: it is good for ten seconds more, and replaced after eight.
    let provider = Provider::of([key(security::ACCESS_KEY)]);
    let sink = sink(&broker, &provider, Host::with_clock(clock.clone()));
    sink.check(&["iam-refresh"]).await.expect("signed in");
    let count = AtomicUsize::new(0);
    let replaced = until("a third token", PATIENCE, async || {
        deliver(&sink, "iam-refresh", count.load(Ordering::SeqCst)).await.map_err(|failure| failure.to_string())?;
        count.fetch_add(1, Ordering::SeqCst);
        clock.step_to(Host::system().now_ms() - 890_000);
        let tokens = accepted(&broker).len();
        if tokens >= 3 { Ok(()) } else { Err(format!("{tokens} tokens")) }
    });
    replaced.await.expect("tokens are replaced");
    // None of the pages failed, and none had to be sent twice.
    assert_eq!(rows(&broker, "iam-refresh").await, (0..count.into_inner()).collect::<Vec<_>>());
    assert_eq!(provider.asked.load(Ordering::SeqCst), 1, "credentials without an end are fetched once");
}

#[tokio::test]
async fn a_provider_that_hangs_keeps_nobody_waiting_for_ever_and_rows_come_once_it_answers() {
    // On one thread: whoever waited for a callback here would wait for ever.
    let broker = broker("iam-hang").await;
    let provider = Provider::of([None, Some(Err("no role today")), key(security::ACCESS_KEY)]);
    let sink = sink(broker, &provider, Host::system());
    let clock = Host::system();
    for word in ["no answer came within 5 s", "no role today"] {
        let failure = sink.check(&["iam-hang"]).await.expect_err("no credentials");
        assert_eq!((&*failure.code, failure.retry), ("Sink.Credentials", Retry::NextTick), "{failure}");
        assert!(failure.message.contains(word) && failure.message.contains("AWS_MSK_IAM"), "{failure}");
    }
    assert!(clock.monotonic() < Duration::from_secs(8), "{:?}", clock.monotonic());
    sink.check(&["iam-hang"]).await.expect("signed in");
    assert_eq!(deliver(&sink, "iam-hang", 7).await.expect("delivered"), 1);
    assert_eq!(rows(broker, "iam-hang").await, [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_end_fail_the_page_by_their_name_and_new_ones_deliver_the_next() {
    let broker = broker("iam-end").await;
    let host = Host::system();
    let ends = std::time::UNIX_EPOCH + Duration::from_millis(host.now_ms().unsigned_abs()) + Duration::from_secs(6);
    let (id, secret) = security::ACCESS_KEY;
    let short = Credentials::new(id, secret, None, Some(ends), "test");
    let provider = Provider::of([Some(Ok(short.clone())), Some(Ok(short.clone())), Some(Ok(short)), key(security::OTHER_ACCESS_KEY)]);
    let sink = sink(broker, &provider, Host::system());
    sink.check(&["iam-end"]).await.expect("signed in");
    let count = AtomicUsize::new(0);
    let failed =
        until("the end of the credentials", PATIENCE, async || match deliver(&sink, "iam-end", count.load(Ordering::SeqCst)).await {
            Ok(_) => {
                count.fetch_add(1, Ordering::SeqCst);
                Err("they are good".to_owned())
            }
            Err(failure) => Ok(failure),
        });
    let failure = failed.await.expect("they end");
    let delivered = count.into_inner();
    assert_eq!((&*failure.code, failure.retry), ("Sink.Credentials", Retry::NextTick), "{failure}");
    assert!(failure.message.contains("expired"), "{failure}");
    let renewed = until("credentials that are good", PATIENCE, async || match deliver(&sink, "iam-end", delivered).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.code == "Sink.Credentials" => Err(failure.to_string()),
        Err(failure) => panic!("{failure}"),
    });
    renewed.await.expect("they come");
    assert_eq!(rows(broker, "iam-end").await, (0..=delivered).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_clock_that_is_wrong_is_refused_and_told_as_a_refused_login() {
    let broker = broker("iam-clock").await;
    let clock = ManualClock::at(Host::system().now_ms() + 3_600_000);
    let sink = sink(broker, &Provider::of([key(security::ACCESS_KEY)]), Host::with_clock(clock));
    let failure = sink.check(&["iam-clock"]).await.expect_err("signed in an hour's time");
    assert_eq!((&*failure.code, failure.retry), ("Sink.Unauthorized", Retry::Never), "{failure}");
    assert!(!failure.message.contains(security::ACCESS_KEY.1), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_tried_again_with_other_credentials_if_there_are_some_by_now() {
    let broker = broker("iam-other").await;
    let provider = Provider::of([key((security::ACCESS_KEY.0, "former-secret")), key(security::OTHER_ACCESS_KEY)]);
    let sink = sink(broker, &provider, Host::system());
    sink.check(&["iam-other"]).await.expect("signed in by the other key");
    assert_eq!(deliver(&sink, "iam-other", 1).await.expect("delivered"), 1);
    assert_eq!(provider.asked.load(Ordering::SeqCst), 2);
}

fn creating(broker: &Broker, access_key: (&str, &str), partitions: i32) -> KafkaSink {
    let asked = NewTopic { partitions, replication_factor: 1, config: BTreeMap::new() };
    sink(broker, &Provider::of([key(access_key)]), Host::system()).creating(TopicMaker::new(move |_| Some(asked.clone())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_is_created_by_an_identity_of_aws_and_a_probe_only_asks() {
    let broker = kafka::secured().await.expect("Kafka starts");
    let sink = creating(broker, security::ACCESS_KEY, 2);
    let probed = async || sink.probe(&["iam-missing"]).await.remove(0).1;
    for _ in 0..2 {
        assert_eq!(probed().await, Ok(TopicFound::Creatable { partitions: 2, replication_factor: 1 }));
    }
    sink.check(&["iam-missing"]).await.expect("created");
    assert_eq!(probed().await, Ok(TopicFound::Ready { partitions: 2 }));
    assert_eq!(deliver(&sink, "iam-missing", 7).await.expect("delivered"), 1);
    assert_eq!(rows(broker, "iam-missing").await, [7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_of_aws_that_may_not_create_a_topic_is_told_which_right_it_lacks() {
    let broker = kafka::secured().await.expect("Kafka starts");
    let (guest, topic) = (security::GUEST_ACCESS_KEY, "iam-forbidden");
    broker.grant(guest.0, topic, &["Describe", "Write"]).await.expect("granted");
    let failure = creating(broker, guest, 1).check(&[topic]).await.expect_err("it may not");
    assert_eq!((&*failure.code, failure.retry), ("Sink.Denied", Retry::Never), "{failure}");
    assert!(failure.message.contains(topic) && failure.message.contains("the right Create"), "{failure}");
}
