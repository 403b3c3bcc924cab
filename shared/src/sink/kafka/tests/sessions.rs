//! Which producer is kept, which is replaced, and by what.

use std::time::UNIX_EPOCH;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};

use super::*;

/// Noon of some day, in milliseconds.
const NOON: i64 = 1_700_000_000_000;

fn with_clock(clock: &Arc<ManualClock>) -> KafkaOptions {
    KafkaOptions { host: Host::with_clock(clock.clone()), ..options() }
}

/// Settings that are read again, or cannot be.
struct Again(Result<BTreeMap<String, String>, Failure>);

#[async_trait]
impl Rotation for Again {
    fn places(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    async fn renew(&self) -> Result<BTreeMap<String, String>, Failure> {
        self.0.clone()
    }
}

/// Whether there is another login for a producer of `settings`, and the settings of the next one.
async fn renewed(settings: &BTreeMap<String, String>, again: Result<BTreeMap<String, String>, Failure>) -> (bool, String) {
    let connection = Connection::new(settings, &options(), Some(Arc::new(Again(again)))).unwrap();
    let session = connection.session().await.unwrap();
    let is_another = connection.renew(&session, context::Refused::Certificate).await;
    let client_id = connection.settings().client_config().get("client.id").unwrap().to_owned();
    (is_another, client_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn another_login_is_one_that_can_be_read_that_differs_and_that_makes_a_producer() {
    let of = |client_id: &str| {
        BTreeMap::from([("bootstrap.servers", "127.0.0.1:1"), ("client.id", client_id)].map(|(n, v)| (n.to_owned(), v.to_owned())))
    };
    let first = of("first");
    let unread = Failure::new("Config.Unresolved", crate::failure::Retry::NextTick, "no answer");
    let mut broken = of("second");
    broken.insert("security.protocol".to_owned(), "none such".to_owned());
    for (again, expected) in [
        (Err(unread), (false, "first")),
        (Ok(first.clone()), (false, "first")),
        (Ok(broken), (false, "first")),
        (Ok(of("second")), (true, "second")),
    ] {
        let (is_another, client_id) = renewed(&first, again.clone()).await;
        assert_eq!((is_another, &*client_id), expected, "{again:?}");
    }
}

/// The credentials that are there at one time after the other; the last for ever.
#[derive(Debug)]
struct Keys(Mutex<Vec<Credentials>>);

impl ProvideCredentials for Keys {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let mut keys = self.0.lock().unwrap();
        let next = if keys.len() > 1 { keys.remove(0) } else { keys[0].clone() };
        future::ProvideCredentials::ready(Ok(next))
    }
}

/// A sink that signs in with these keys of AWS, each with its end in seconds after noon.
fn signing(clock: &Arc<ManualClock>, keys: &[(&str, u64)]) -> KafkaSink {
    let key = |(id, end): &(&str, u64)| {
        let end = UNIX_EPOCH + Duration::from_millis(NOON.unsigned_abs()) + Duration::from_secs(*end);
        Credentials::new(*id, "secret", None, Some(end), "test")
    };
    let provider = SharedCredentialsProvider::new(Keys(Mutex::new(keys.iter().map(key).collect())));
    let options = KafkaOptions { credentials: Some(provider), region: Some("eu-west-1".to_owned()), ..with_clock(clock) };
    let settings = [("bootstrap.servers", "127.0.0.1:1"), ("security.protocol", "SASL_SSL"), ("sasl.mechanism", "AWS_MSK_IAM")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    KafkaSink::new(&settings, &options, OversizePolicy::Fail).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_knows_the_key_that_signs_for_it_and_that_no_key_mends_a_certificate() {
    let clock = ManualClock::at(NOON);
    let sink = signing(&clock, &[("AKID0", 3_600), ("AKID0", 3_600), ("AKID1", 3_600)]);
    let session = sink.connection.session().await.unwrap();
    assert_eq!(session.access_key(), Some("AKID0"));
    assert!(!sink.connection.renew(&session, context::Refused::Login).await, "the key is the same");
    clock.advance(Duration::from_secs(60));
    assert!(!sink.connection.renew(&session, context::Refused::Certificate).await, "and there is nothing else to read again");
    assert_eq!(sink.connection.signer().unwrap().access_key().as_deref(), Some("AKID0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_was_refused_a_token_is_replaced_once_there_are_credentials_again() {
    use rdkafka::client::ClientContext as _;
    let clock = ManualClock::at(NOON);
    let sink = signing(&clock, &[("AKID0", 100), ("AKID1", 150), ("AKID2", 3_600)]);
    let first = sink.connection.session().await.unwrap();
    clock.advance(Duration::from_secs(200));
    assert!(first.context().generate_oauth_token(None).is_err(), "the client asks when the credentials have ended");
    // Those that come next have ended, too.
    let failure = Failure::from(sink.connection.session().await.unwrap_err());
    assert_eq!(&*failure.code, "Sink.Credentials", "{failure}");
    // It asks again only ten seconds later, and a page waits no longer than its time-out.
    let second = sink.connection.session().await.unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    assert!(Arc::ptr_eq(&second, &sink.connection.session().await.unwrap()), "and the new one has a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_has_its_token_after_all_is_not_replaced() {
    use rdkafka::client::ClientContext as _;
    let clock = ManualClock::at(NOON);
    let sink = signing(&clock, &[("AKID0", 100), ("AKID1", 3_600)]);
    let first = sink.connection.session().await.unwrap();
    clock.advance(Duration::from_secs(200));
    assert!(first.context().generate_oauth_token(None).is_err());
    sink.connection.signer().unwrap().ready().await.unwrap();
    assert!(first.context().generate_oauth_token(None).is_ok(), "ten seconds later");
    assert!(Arc::ptr_eq(&first, &sink.connection.session().await.unwrap()));
}

/// Settings that are another day's from the second reading on.
struct Rotating(BTreeMap<String, String>, std::sync::atomic::AtomicUsize);

#[async_trait]
impl Rotation for Rotating {
    fn places(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    async fn renew(&self) -> Result<BTreeMap<String, String>, Failure> {
        let mut settings = self.0.clone();
        if self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) > 0 {
            settings.insert("client.id".to_owned(), "another".to_owned());
        }
        Ok(settings)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_was_overcome_costs_no_page_hours_later_when_the_secret_has_changed() {
    use rdkafka::client::ClientContext as _;
    use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};
    let brokers = Brokers::start();
    let rotation = Arc::new(Rotating(brokers.settings(), std::sync::atomic::AtomicUsize::new(0)));
    let sinks = KafkaSinks::new(options());
    let sink = sinks.sink(&brokers.settings(), Some(rotation.clone()), OversizePolicy::Fail).unwrap();
    deliver(&sink, rows("a", 1)).await.unwrap();
    let session = sink.connection.session().await.unwrap();
    let asked = || rotation.1.load(std::sync::atomic::Ordering::SeqCst);
    session.context().error(ClientError::Global(Code::Authentication), "b-1: SASL authentication error: no");
    // Long enough for the settings to be read again.
    brokers.cluster.broker_round_trip_time(-1, Duration::from_millis(500)).unwrap();
    deliver(&sink, rows("b", 1)).await.unwrap();
    assert_eq!(asked(), 1, "the page asked for another login, and there was none");
    deliver(&sink, rows("c", 1)).await.unwrap();
    assert_eq!(asked(), 1, "what was acknowledged since shows that the login is good");
    assert!(Arc::ptr_eq(&session, &sink.connection.session().await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_with_records_in_flight_is_not_replaced_however_long_that_takes() {
    let (brokers, clock) = (Brokers::start(), ManualClock::at(NOON));
    let sink = KafkaSink::new(&brokers.settings(), &with_clock(&clock), OversizePolicy::Fail).unwrap();
    deliver(&sink, rows("a", 1)).await.unwrap();
    let first = sink.connection.session().await.unwrap();
    brokers.cluster.broker_round_trip_time(-1, Duration::from_millis(700)).unwrap();
    let acks = sink.send(rows("b", 10)).await.unwrap();
    clock.step_to(NOON + connection::IDLE_MS + 1);
    assert!(Arc::ptr_eq(&first, &sink.connection.session().await.unwrap()));
    assert_eq!(acks.await.unwrap().rows, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_was_just_handed_out_has_not_slept() {
    let clock = ManualClock::at(NOON);
    let sink = KafkaSink::new(
        &BTreeMap::from([("bootstrap.servers".to_owned(), "127.0.0.1:1".to_owned())]),
        &with_clock(&clock),
        OversizePolicy::Fail,
    )
    .unwrap();
    let first = sink.connection.session().await.unwrap();
    for step in 1..=3 {
        clock.step_to(NOON + step * connection::IDLE_MS);
        assert!(Arc::ptr_eq(&first, &sink.connection.session().await.unwrap()), "step {step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_whose_page_was_not_delivered_is_asked_about_again() {
    let brokers = Brokers::start();
    let sink = brokers.sink_with("message.timeout.ms", "1500", OversizePolicy::Fail);
    sink.check(&[TOPIC]).await.unwrap();
    brokers.cluster.broker_down(1).unwrap();
    sink.check(&[TOPIC]).await.unwrap();
    deliver(&sink, rows("a", 1)).await.unwrap_err();
    let failure = sink.check(&[TOPIC]).await.unwrap_err();
    assert_eq!(&*failure.code, "Sink.Unreachable", "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_producer_that_is_barred_from_its_brokers_does_not_go_on_trying() {
    let brokers = Brokers::start();
    for is_checked in [true, false] {
        let sink = brokers.sink_with("security.protocol", "ssl", OversizePolicy::Fail);
        let session = sink.connection.session().await.unwrap();
        let failure = if is_checked { sink.check(&[TOPIC]).await.unwrap_err() } else { deliver(&sink, rows("a", 1)).await.unwrap_err() };
        assert_eq!(&*failure.code, "Sink.Protocol", "{failure}");
        assert!(!session.usable());
        assert!(!Arc::ptr_eq(&session, &sink.connection.session().await.unwrap()));
    }
}
