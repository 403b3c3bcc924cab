use std::sync::atomic::AtomicUsize;

use super::super::keys::Oauth;
use super::*;
use crate::host::ManualClock;
use endpoint::{Endpoint, Reply, json, token};

mod endpoint;

const SECOND: Duration = Duration::from_secs(1);

fn secret(text: &str) -> SecretString {
    SecretString::from(text)
}

fn oauth(endpoint: &Endpoint, grant: Grant) -> Auth {
    Auth::Oauth(Box::new(Oauth {
        client_id: "cid".to_owned(),
        client_secret: Some(secret("c-secret")),
        scope: None,
        token_url: endpoint.url.clone(),
        grant,
    }))
}

fn basic() -> Auth {
    Auth::Basic { username: "u".to_owned(), password: secret("p") }
}

/// A login with a clock that stands still.
fn login(auth: Auth, rotation: impl Rotation + 'static) -> (Arc<Login>, Arc<ManualClock>) {
    let clock = ManualClock::at(1_700_000_000_000);
    (Arc::new(Login::new(Host::with_clock(clock.clone()), Transport::plain(), auth, Arc::new(rotation))), clock)
}

async fn ask(login: &Login) -> Result<SignIn, Error> {
    login.credential(|| 20 * SECOND).await
}

/// The bearer token that a request would carry.
async fn bearer(login: &Login) -> String {
    match ask(login).await.unwrap_or_else(|error| panic!("{error}")).credential {
        Credential::Bearer { token } => token.expose_secret().to_owned(),
        other => panic!("{other:?}"),
    }
}

/// Gives these credentials in turn, and counts how often it is asked.
struct Turns(StdMutex<Vec<Auth>>, Arc<AtomicUsize>);

#[async_trait]
impl Rotation for Turns {
    async fn renew(&self) -> Result<Option<Auth>, Failure> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Ok(self.0.lock().expect("no panic").pop())
    }
}

fn unauthorized() -> Error {
    Error::Unauthorized { detail: "no".to_owned(), advice: "" }
}

#[tokio::test]
async fn a_refused_login_is_not_repeated_in_a_run_and_tried_again_by_a_later_one_of_a_warm_process() {
    let (login, clock) = login(basic(), NoRotation);
    let sign_in = ask(&login).await.expect("not refused yet");
    assert_eq!(login.refused(sign_in, unauthorized()).await, Err(unauthorized()), "the same password is not tried twice");
    assert_eq!(ask(&login).await.err(), Some(unauthorized()));
    // A frozen process notices by the wall clock only.
    clock.step_to(1_700_000_000_000 + i64::try_from(REFUSED_FOR.as_millis()).expect("a number"));
    assert!(ask(&login).await.is_ok());
}

#[tokio::test]
async fn twenty_tables_that_start_together_try_a_wrong_password_once() {
    let (login, _clock) = login(basic(), NoRotation);
    let tries = Arc::new(AtomicUsize::new(0));
    let tables: Vec<_> = (0..20)
        .map(|_| {
            let (login, tries) = (Arc::clone(&login), Arc::clone(&tries));
            tokio::spawn(async move {
                let sign_in = ask(&login).await?;
                tries.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                login.refused(sign_in, unauthorized()).await
            })
        })
        .collect();
    for table in tables {
        assert_eq!(table.await.expect("no panic"), Err(unauthorized()));
    }
    assert_eq!(tries.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_accepted_password_is_used_side_by_side_until_it_was_idle_for_a_while() {
    let (login, clock) = login(basic(), NoRotation);
    let mut first = ask(&login).await.expect("a credential");
    assert!(first.trial.is_some());
    login.accepted(&mut first);
    let side_by_side = [ask(&login).await, ask(&login).await];
    assert!(side_by_side.iter().all(|sign_in| sign_in.as_ref().is_ok_and(|sign_in| sign_in.trial.is_none())));
    clock.advance(ACCEPTED_FOR);
    assert!(ask(&login).await.is_ok_and(|sign_in| sign_in.trial.is_some()));
}

#[tokio::test]
async fn a_request_that_takes_long_holds_up_the_others_for_three_seconds_at_most() {
    let (login, _clock) = login(basic(), NoRotation);
    let slow = ask(&login).await.expect("a credential");
    let begun = Host::system();
    let started = begun.monotonic();
    assert!(ask(&login).await.is_ok());
    assert!(begun.monotonic() - started >= TRIAL);
    drop(slow);
}

#[tokio::test]
async fn a_token_is_fetched_once_by_all_tables_and_before_it_expires() {
    let endpoint = Endpoint::saying([token("t1", r#","expires_in":1800"#), token("t2", r#","expires_in":1800"#)]).await;
    let (login, clock) = login(oauth(&endpoint, Grant::ClientCredentials), NoRotation);
    let tables: Vec<_> = (0..20)
        .map(|_| {
            let login = Arc::clone(&login);
            tokio::spawn(async move { bearer(&login).await })
        })
        .collect();
    for table in tables {
        assert_eq!(table.await.expect("no panic"), "t1");
    }
    clock.advance(1769 * SECOND);
    assert_eq!(bearer(&login).await, "t1");
    clock.advance(SECOND);
    assert_eq!(bearer(&login).await, "t2", "30 s before the end");
    assert_eq!(endpoint.forms().len(), 2);
}

#[tokio::test]
async fn a_lifetime_of_seconds_or_none_or_a_text_makes_no_request_fetch_a_token_of_its_own() {
    for (expires_in, usable) in [
        (r#","expires_in":0"#, 1),
        (r#","expires_in":-5"#, 1),
        (r#","expires_in":1"#, 1),
        (r#","expires_in":7"#, 3),
        (r#","expires_in":"7""#, 3),
        (r#","expires_in":59.9"#, 29),
        (r#","expires_in":1800"#, 1770),
        (r#","expires_in":"soon""#, 1770),
        (r#","expires_in":null"#, 1770),
        ("", 1770),
    ] {
        let endpoint = Endpoint::saying([token("t1", expires_in), token("t2", expires_in)]).await;
        let (login, clock) = login(oauth(&endpoint, Grant::ClientCredentials), NoRotation);
        for _ in 0..10 {
            assert_eq!(bearer(&login).await, "t1", "{expires_in}");
        }
        clock.advance(usable * SECOND - Duration::from_millis(1));
        assert_eq!(bearer(&login).await, "t1", "{expires_in} after {usable} s");
        clock.advance(SECOND);
        assert_eq!(bearer(&login).await, "t2", "{expires_in} after {usable} s");
    }
}

#[tokio::test]
async fn tables_that_wait_for_one_fetch_share_its_failure() {
    let endpoint = Endpoint::saying([json(503, "{}")]).await;
    let (login, _clock) = login(oauth(&endpoint, Grant::ClientCredentials), NoRotation);
    let held = login.state.lock().await;
    let tables: Vec<_> = (0..20)
        .map(|_| {
            let login = Arc::clone(&login);
            tokio::spawn(async move { ask(&login).await.err() })
        })
        .collect();
    // All of them wait now; the runtime has one thread.
    tokio::task::yield_now().await;
    drop(held);
    for table in tables {
        assert!(table.await.expect("no panic").is_some_and(|error| error.remedy() == super::super::error::Remedy::Again));
    }
    assert_eq!(endpoint.forms().len(), 1);
    assert!(ask(&login).await.is_err(), "a later one asks again");
    assert_eq!(endpoint.forms().len(), 2);
}

#[tokio::test]
async fn a_refused_client_is_tried_again_once_and_only_with_other_secrets() {
    let denied = || json(401, r#"{"error_description":"access_denied","error":"server_error"}"#);
    for (others, requests) in [(0, 1), (1, 2), (5, 2)] {
        let endpoint = Endpoint::saying([denied()]).await;
        let again = (0..others).map(|_| oauth(&endpoint, Grant::ClientCredentials)).collect();
        let (login, _clock) = login(oauth(&endpoint, Grant::ClientCredentials), Turns(StdMutex::new(again), Arc::default()));
        for _ in 0..3 {
            assert_eq!(ask(&login).await.err().expect("refused").code(), "Source.Unauthorized");
        }
        assert_eq!(endpoint.forms().len(), requests, "{others} others");
    }
    let endpoint = Endpoint::saying([denied(), token("t1", "")]).await;
    let again = vec![oauth(&endpoint, Grant::ClientCredentials)];
    let (login, _clock) = login(oauth(&endpoint, Grant::ClientCredentials), Turns(StdMutex::new(again), Arc::default()));
    assert_eq!(bearer(&login).await, "t1", "a rotated client secret is not even noticed");
}

#[tokio::test]
async fn a_refresh_token_given_in_exchange_is_used_from_then_on_and_the_configured_one_is_the_way_back() {
    let given =
        |token: &str, refresh: &str| json(200, &format!(r#"{{"access_token":"{token}","refresh_token":"{refresh}","expires_in":60}}"#));
    let endpoint = Endpoint::saying([
        given("t1", "r2"),
        given("t2", "r3"),
        json(400, r#"{"error":"invalid_grant"}"#),
        given("t3", "r1"),
        given("t4", "r1"),
    ])
    .await;
    let (login, clock) = login(oauth(&endpoint, Grant::RefreshToken { token: secret("r1") }), NoRotation);
    for expected in ["t1", "t2", "t3", "t4"] {
        assert_eq!(bearer(&login).await, expected);
        clock.advance(60 * SECOND);
    }
    assert_eq!(endpoint.field("refresh_token"), ["r1", "r2", "r3", "r1", "r1"]);
    assert_eq!(endpoint.field("grant_type"), ["refresh_token"; 5]);
}

#[tokio::test]
async fn a_dead_token_does_not_cost_the_refresh_token_that_gave_it() {
    let given = |token: &str| json(200, &format!(r#"{{"access_token":"{token}","refresh_token":"r2"}}"#));
    let endpoint = Endpoint::saying([given("t1"), given("t2")]).await;
    let (login, _clock) = login(oauth(&endpoint, Grant::RefreshToken { token: secret("r1") }), NoRotation);
    let sign_in = ask(&login).await.expect("a token");
    assert_eq!(login.refused(sign_in, unauthorized()).await, Ok(()));
    assert_eq!(bearer(&login).await, "t2");
    assert_eq!(endpoint.field("refresh_token"), ["r1", "r2"]);
}

#[tokio::test]
async fn each_failure_of_the_token_endpoint_is_told_apart() {
    let html = |status: u16| (format!("{status} X\r\ncontent-type: text/html\r\n"), "<html><title>Log in</title></html>".to_owned());
    let elsewhere = ("302 X\r\nlocation: https://login.example/x?secret=1\r\n".to_owned(), String::new());
    let limited = ("429 X\r\nretry-after: 17\r\n".to_owned(), String::new());
    for (reply, code, wait, words) in [
        (
            json(401, r#"{"error_description":"access_denied","error":"server_error"}"#),
            "Source.Unauthorized",
            None,
            "client.credential.grant_type.enabled",
        ),
        (json(400, r#"{"error":"invalid_grant"}"#), "Source.Unauthorized", None, "invalid_grant"),
        (json(400, r#"{"error":"invalid_client"}"#), "Source.Unauthorized", None, "snow.oauth.client.id"),
        (json(400, r#"{"error":"unsupported_grant_type"}"#), "Source.Unauthorized", None, "does not allow the grant client_credentials"),
        (json(400, r#"{"error":"invalid_scope"}"#), "Source.Unauthorized", None, "snow.oauth.scope"),
        (json(404, ""), "Source.NoTokenEndpoint", None, "snow.oauth.token.url"),
        (json(429, ""), "Source.RateLimited", None, "429"),
        (limited, "Source.RateLimited", Some(17), "429"),
        (json(500, r#"{"error":"server_error"}"#), "Source.Unavailable", None, "500"),
        (json(503, ""), "Source.Unavailable", None, "503"),
        (html(200), "Source.NotData", None, "Log in"),
        (html(503), "Source.NotData", None, "503 Log in"),
        (json(200, "{}"), "Source.NoTokenEndpoint", None, "access_token"),
        (json(200, r#"{"access_token":""}"#), "Source.NoTokenEndpoint", None, "access_token"),
        (json(200, r#"{"access_token":"a\nb"}"#), "Source.NoTokenEndpoint", None, "header"),
        (elsewhere, "Source.Redirected", None, "https://login.example/x,"),
    ] {
        let endpoint = Endpoint::saying([reply]).await;
        let (login, _clock) = login(oauth(&endpoint, Grant::ClientCredentials), NoRotation);
        let error = ask(&login).await.err().expect("no token");
        let text = error.to_string();
        assert_eq!((error.code(), error.asked_wait()), (code, wait), "{text}");
        assert!(text.contains(words) && text.contains(endpoint.url.as_str()), "{text}");
    }
    let endpoint = Endpoint::absent();
    let (login, _clock) = login(oauth(&endpoint, Grant::ClientCredentials), NoRotation);
    let error = ask(&login).await.err().expect("nobody listens");
    assert!(error.code() == "Source.Unavailable" && error.to_string().contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn what_to_check_depends_on_the_grant() {
    let key = SigningKey::parse(include_str!("../../../../../tests/testbed/data/certificates/signing.key")).expect("a key");
    let assertion = super::super::keys::Assertion {
        key,
        key_id: None,
        issuer: "cid".to_owned(),
        subject: "u".to_owned(),
        audience: "cid".to_owned(),
        lifetime: 300 * SECOND,
    };
    // The clock of the tests shows 22:13:20.
    let behind: Reply = (
        "401 X\r\ncontent-type: application/json\r\ndate: Tue, 14 Nov 2023 22:12:20 GMT\r\n".to_owned(),
        r#"{"error":"server_error"}"#.to_owned(),
    );
    for (grant, words) in [
        (Grant::Password { username: "u".to_owned(), password: secret("p") }, "SSO or MFA"),
        (Grant::RefreshToken { token: secret("r") }, "obtain another for snow.oauth.refresh.token"),
        (Grant::JwtBearer(assertion), "This machine's clock is 60 s ahead of the instance's"),
    ] {
        let endpoint = Endpoint::saying([behind.clone()]).await;
        let (login, _clock) = login(oauth(&endpoint, grant), NoRotation);
        let text = ask(&login).await.err().expect("refused").to_string();
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn no_secret_stands_in_a_message_even_if_the_endpoint_repeats_it() {
    let grants = [
        Grant::Password { username: "u".to_owned(), password: secret("p-secret") },
        Grant::RefreshToken { token: secret("r-secret") },
        Grant::ClientCredentials,
    ];
    for (status, grant) in [400, 500, 404].into_iter().flat_map(|status| grants.clone().map(|grant| (status, grant))) {
        let body = r#"{"error":"invalid_grant","error_description":"c-secret p-secret r-secret are wrong"}"#;
        let endpoint = Endpoint::saying([json(status, body)]).await;
        let posted = match &grant {
            Grant::Password { .. } => "p-secret",
            Grant::RefreshToken { .. } => "r-secret",
            _ => "c-secret",
        };
        let (login, _clock) = login(oauth(&endpoint, grant), NoRotation);
        let error = ask(&login).await.err().expect("refused");
        let text = format!("{error} {error:?} {login:?}");
        assert!(text.contains("[secret]") && !text.contains(posted) && !text.contains("c-secret"), "{text}");
    }
    let redacted = Credential::Basic { username: "u".to_owned(), password: secret("p-secret") }.redacted("p-secret is wrong");
    assert_eq!(redacted, "[secret] is wrong");
}
