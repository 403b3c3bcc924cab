use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use aws_credential_types::provider::{self, ProvideCredentials, error::CredentialsError, future};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use url::Url;

use super::*;
use crate::failure::{Failure, Retry};
use crate::host::ManualClock;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// 2026-03-01 12:00:00 UTC, in milliseconds.
const NOON: i64 = 1_772_366_400_000;

fn credentials(id: &str, session: Option<&str>, expiry: Option<SystemTime>) -> Credentials {
    Credentials::new(id, SECRET, session.map(str::to_owned), expiry, "test")
}

fn at(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.unsigned_abs())
}

/// What a provider does when it is asked for the first time, the second, and so on; the last for ever.
#[derive(Debug, Clone)]
enum Answer {
    Ends(i64),
    Fails,
    Hangs,
}

/// A provider that counts how often it is asked.
#[derive(Debug)]
struct Provider {
    answers: Vec<Answer>,
    asked: AtomicUsize,
}

impl Provider {
    fn of(answers: &[Answer]) -> Arc<Self> {
        Arc::new(Self { answers: answers.to_vec(), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn answer(&self) -> provider::Result {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        match self.answers[number.min(self.answers.len() - 1)] {
            Answer::Ends(end) => Ok(credentials(&format!("AKID{number}"), None, Some(at(end)))),
            Answer::Fails => Err(CredentialsError::provider_error("the role cannot be assumed")),
            Answer::Hangs => std::future::pending().await,
        }
    }
}

#[derive(Debug)]
struct Shared(Arc<Provider>);

impl ProvideCredentials for Shared {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.0.answer())
    }
}

fn signer(provider: &Arc<Provider>, clock: &Arc<ManualClock>) -> Signer {
    let provider = SharedCredentialsProvider::new(Shared(Arc::clone(provider)));
    Signer::new("eu-west-1".to_owned(), Some(provider), Host::with_clock(clock.clone()))
}

fn url(token: &OAuthToken) -> Url {
    let bytes = URL_SAFE_NO_PAD.decode(&token.token).expect("base64 without padding");
    Url::parse(std::str::from_utf8(&bytes).expect("text")).expect("an address")
}

fn signed_by(token: &OAuthToken) -> String {
    let url = url(token);
    let (_, credential) = url.query_pairs().find(|(name, _)| name == "X-Amz-Credential").expect("a credential");
    credential.split('/').next().expect("an id").to_owned()
}

/// The addresses are of botocore 1.44.8: `SigV4QueryAuth(credentials, "kafka-cluster", region, expires=900)` of a GET with the
/// parameter `Action`, at these seconds.
#[test]
fn a_token_is_what_aws_s_own_python_library_signs() {
    let session = "IQoJb3JpZ2luX2VjE/+x=&y z";
    let usual = (credentials("AKIDEXAMPLE", None, None), "eu-west-1", NOON + 999);
    let of_a_role = (credentials("ASIAEXAMPLE", Some(session), None), "us-gov-east-1", 1_767_225_599_000);
    let theirs = [
        "https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260301%2Feu-west-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20260301T120000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=3bdf39b5ae22e00c64989b5fef2d88bae252c7717742c0ebf94d0933d0dd1097",
        "https://kafka.us-gov-east-1.amazonaws.com/?Action=kafka-cluster%3AConnect&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=ASIAEXAMPLE%2F20251231%2Fus-gov-east-1%2Fkafka-cluster%2Faws4_request&X-Amz-Date=20251231T235959Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Security-Token=IQoJb3JpZ2luX2VjE%2F%2Bx%3D%26y%20z&X-Amz-Signature=98688721f344ad7960be403b1967183ab3627d1dbe20ff3a82f34cc818f305bf",
    ];
    for ((credentials, region, now_ms), theirs) in [usual, of_a_role].into_iter().zip(theirs) {
        let ours = url(&token::sign(credentials, region, now_ms, None).unwrap());
        let theirs = Url::parse(theirs).unwrap();
        let pairs = |url: &Url| url.query_pairs().into_owned().collect::<BTreeMap<_, _>>();
        let mut signed = pairs(&ours);
        let agent = signed.remove("User-Agent").expect("who asks is told");
        assert!(agent.starts_with("tablesweep/"), "{agent}");
        assert_eq!((ours.host_str(), ours.path(), signed), (theirs.host_str(), theirs.path(), pairs(&theirs)));
    }
}

#[tokio::test]
async fn a_token_lives_a_quarter_of_an_hour_and_never_longer_than_its_credentials() {
    for (end, lifetime) in [(NOON + 3_600_000, NOON + 900_000), (NOON + 400_000, NOON + 400_000)] {
        let clock = ManualClock::at(NOON + 17);
        let signer = signer(&Provider::of(&[Answer::Ends(end)]), &clock);
        signer.ready().await.unwrap();
        assert_eq!(signer.token().unwrap().lifetime_ms, lifetime);
    }
    let lasting = token::sign(credentials("AKID", None, None), "eu-west-1", NOON + 17, None).unwrap();
    assert_eq!(lasting.lifetime_ms, NOON + 900_000, "of the second that was signed");
}

#[tokio::test]
async fn credentials_are_fetched_once_and_again_before_they_end_and_the_callback_fetches_nothing() {
    let clock = ManualClock::at(NOON);
    let hour = 3_600_000;
    let provider = Provider::of(&[Answer::Ends(NOON + hour), Answer::Ends(NOON + 2 * hour)]);
    let signer = signer(&provider, &clock);
    assert!(signer.token().is_err(), "nothing was fetched yet");
    for _ in 0..3 {
        signer.ready().await.unwrap();
        assert_eq!(signed_by(&signer.token().unwrap()), "AKID0");
    }
    clock.advance(Duration::from_secs(54 * 60));
    signer.ready().await.unwrap();
    assert_eq!(provider.asked(), 1);
    clock.advance(Duration::from_secs(2 * 60));
    assert_eq!(signed_by(&signer.token().unwrap()), "AKID0", "the callback takes what is there");
    signer.ready().await.unwrap();
    assert_eq!((provider.asked(), &*signed_by(&signer.token().unwrap())), (2, "AKID1"));
}

#[tokio::test]
async fn credentials_that_cannot_be_fetched_anew_are_used_to_their_end_and_asked_for_every_half_minute() {
    let clock = ManualClock::at(NOON);
    let provider = Provider::of(&[Answer::Ends(NOON + 120_000), Answer::Fails]);
    let signer = signer(&provider, &clock);
    for (second, asked) in [(0, 1), (10, 1), (29, 1), (31, 2), (45, 2), (62, 3), (119, 4)] {
        clock.step_to(NOON + second * 1000);
        signer.ready().await.unwrap();
        assert_eq!((second, provider.asked()), (second, asked));
        assert_eq!(signer.token().unwrap().lifetime_ms, NOON + 120_000);
    }
    clock.step_to(NOON + 121_000);
    let refused = signer.token().err().unwrap();
    assert!(refused.contains("ended 1 s ago"), "{refused}");
    let failure = Failure::from(signer.ready().await.unwrap_err());
    assert_eq!((&*failure.code, failure.retry), ("Sink.Credentials", Retry::NextTick));
    assert!(failure.message.contains("the role cannot be assumed"), "{failure}");
    assert!(signer.token().is_err());
}

#[tokio::test]
async fn credentials_that_have_ended_when_they_come_are_none() {
    let clock = ManualClock::at(NOON);
    let signer = signer(&Provider::of(&[Answer::Ends(NOON)]), &clock);
    let failure = Failure::from(signer.ready().await.unwrap_err());
    assert!(&*failure.code == "Sink.Credentials" && failure.message.contains("expired"), "{failure}");
    assert!(signer.token().is_err());
}

#[tokio::test]
async fn twenty_tables_wait_for_a_provider_that_hangs_as_long_as_one_whether_nothing_or_something_expired_is_held() {
    let host = Host::system();
    let started = host.monotonic();
    let expired = credentials("AKID", None, Some(at(host.now_ms() - 1)));
    let each = [None, Some(expired)].map(async |held| {
        let provider = Provider::of(&[Answer::Hangs]);
        let given = SharedCredentialsProvider::new(Shared(provider.clone()));
        let signer = Signer::new("eu-west-1".to_owned(), Some(given), host.clone());
        signer.held.lock().unwrap().credentials = held;
        let all = futures_util::future::join_all((0..20).map(|_| signer.ready())).await;
        for ready in all {
            let failure = Failure::from(ready.unwrap_err());
            assert!(failure.message.contains("no answer came within 5 s"), "{failure}");
        }
        assert_eq!(provider.asked(), 1);
    });
    futures_util::future::join_all(each).await;
    let took = host.monotonic().saturating_sub(started);
    assert!(took >= FETCH && took < FETCH + Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn a_refused_login_is_not_worth_another_try_when_no_credentials_can_be_fetched() {
    let clock = ManualClock::at(NOON);
    let provider = Provider::of(&[Answer::Ends(NOON + 3_600_000), Answer::Fails]);
    let signer = signer(&provider, &clock);
    signer.ready().await.unwrap();
    assert!(!signer.renew(Some("AKID0")).await, "there are no others");
    assert_eq!((provider.asked(), signer.access_key().as_deref()), (2, Some("AKID0")), "and these may be good elsewhere");
}

#[tokio::test]
async fn after_a_refused_login_only_other_credentials_are_worth_another_try_and_twenty_tables_ask_once() {
    let clock = ManualClock::at(NOON);
    let provider = Provider::of(&[Answer::Ends(NOON + 3_600_000)]);
    let signer = signer(&provider, &clock);
    signer.ready().await.unwrap();
    for _ in 0..20 {
        assert!(signer.renew(Some("AKID0")).await, "there is another key by now");
        assert!(!signer.renew(Some("AKID1")).await, "and that is it");
    }
    assert_eq!(provider.asked(), 2);
    clock.advance(Duration::from_secs(31));
    assert!(signer.renew(Some("AKID1")).await);
    assert_eq!(provider.asked(), 3);
}

#[test]
fn the_region_is_in_the_brokers_names() {
    for (brokers, expected) in [
        ("b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098,b-2.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("boot-xyz.c1.kafka-serverless.us-east-1.amazonaws.com:9098", "us-east-1"),
        ("b-1.demo.abc123.c2.kafka.cn-north-1.amazonaws.com.cn:9098", "cn-north-1"),
        ("b-1.kafka.abc123.c2.kafka.eu-west-1.amazonaws.com:9098", "eu-west-1"),
        ("kafka.example.org:9098, b-1.demo.abc123.c2.kafka.sa-east-1.amazonaws.com:9098", "sa-east-1"),
    ] {
        assert_eq!(region(brokers).as_deref(), Some(expected), "{brokers}");
    }
    for brokers in ["localhost:9098", "kafka.example.org:9098", "b-1.kafka.eu-west-1.example.org:9098", ""] {
        assert_eq!(region(brokers), None, "{brokers}");
    }
}

#[test]
fn nothing_that_is_secret_is_shown() {
    let provider = SharedCredentialsProvider::new(credentials("AKID", Some("session-token"), None));
    let signer = Signer::new("eu-west-1".to_owned(), Some(provider), Host::system());
    *signer.held.lock().unwrap() = Held { credentials: Some(credentials("AKID", Some("session-token"), None)), ..Held::default() };
    let shown = format!("{signer:?}");
    assert!(shown.contains("eu-west-1") && !shown.contains("session-token") && !shown.contains(SECRET), "{shown}");
}
