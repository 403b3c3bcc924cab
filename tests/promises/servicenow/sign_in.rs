//! Signing in and the connection below it: every way in works against an instance that checks it, a refusal is said once
//! and in words that help, and no account is locked by it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tablesweep::assembly::Sinks;
use tablesweep::config::Connector;
use tablesweep::delivery::ToOne;
use tablesweep::failure::Failure;
use tablesweep::host::Host;
use tablesweep::sink::Sink;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::sweep::{Outcome, Reason, TableReport};
use tablesweep_testbed::table_api::{
    ClientCertificate, Credentials, Effect, Entry, Fault, Fields, HtmlPage, JwtSigner, Settings, TableApi, Tls,
};
use tokio::sync::watch;

use crate::laptop::{Laptop, PASSWORD};

const CLIENT: (&str, &str) = ("cid", "client-secret-7");
const API_KEY: &str = "now_key_42";

/// A file of the test's certificates.
fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testbed/data/certificates").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Everything that an instance may know; a test gives its client one of them.
fn everything() -> Credentials {
    let pair = |(a, b): (&str, &str)| Some((a.to_owned(), b.to_owned()));
    Credentials {
        basic: pair(("sweep", PASSWORD)),
        oauth: pair(CLIENT),
        api_key: Some(API_KEY.to_owned()),
        jwt: Some(JwtSigner {
            public_key: text("signing-public.pem"),
            key_id: Some("kid-1".to_owned()),
            user: "sweep@example.com".to_owned(),
        }),
        certificate: Some(text("client.pem")),
    }
}

fn tls(server: &str, clients: ClientCertificate) -> Tls {
    Tls { server: text(server), authority: text("authority.pem"), clients }
}

/// A laptop before this instance, with these keys of the document and 30 rows. The base document's user is taken out.
fn before(api: TableApi, keys: &[(&str, &str)]) -> Laptop {
    let mut laptop = Laptop::new().with("snow.source.batch.size", 10);
    laptop.api = api;
    laptop.unset("snow.auth.username");
    laptop.unset("snow.auth.password");
    let url = laptop.api.url();
    laptop.set("snow.url", url);
    for (key, value) in keys {
        laptop.set(key, value);
    }
    laptop.api.set_clock("2026-03-01 12:00:00").expect("a time");
    laptop.generate(30, 3);
    laptop
}

fn guarded(settings: Settings) -> TableApi {
    TableApi::start_with(([127, 0, 0, 1], 0).into(), settings, everything()).expect("the simulator")
}

fn guarded_by_tls(server: &str, clients: ClientCertificate) -> TableApi {
    TableApi::start_tls(Settings::default(), everything(), &tls(server, clients)).expect("the simulator")
}

fn oauth<'a>(grant: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let client = [
        ("snow.auth.type", "oauth2"),
        ("snow.oauth.grant.type", grant),
        ("snow.oauth.client.id", CLIENT.0),
        ("snow.oauth.client.secret", CLIENT.1),
    ];
    client.iter().chain(more).copied().collect()
}

const USER: [(&str, &str); 2] = [("snow.auth.username", "sweep"), ("snow.auth.password", PASSWORD)];

/// The keys of the grant `jwt_bearer`; the instance's clock has to be the machine's.
fn jwt(key: &str) -> Vec<(&str, &str)> {
    let claims = [("snow.oauth.jwt.private.key", key), ("snow.oauth.jwt.key.id", "kid-1"), ("snow.oauth.jwt.subject", "sweep@example.com")];
    oauth("jwt_bearer", &claims)
}

/// Everything arrived, and the requests carried this kind of credential.
async fn arrives(laptop: &Laptop, kind: &str) {
    let report = laptop.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 30), "{report:?}");
    assert_eq!(laptop.versions(), laptop.expected());
    let kinds: BTreeSet<String> = laptop.api.reads("incident").into_iter().map(|entry| entry.auth).collect();
    assert_eq!(kinds, BTreeSet::from([kind.to_owned()]));
}

/// The reason of a table that is parked, which holds no secret.
fn parked(report: TableReport) -> Reason {
    let reason = report.reason.clone().unwrap_or_else(|| panic!("no reason: {report:?}"));
    assert_eq!((report.outcome, report.rows), (Outcome::Parked, 0), "{}", reason.message);
    for secret in [PASSWORD, CLIENT.1, API_KEY, "PRIVATE KEY"] {
        assert!(!reason.message.contains(secret), "{}", reason.message);
    }
    reason
}

fn token_requests(api: &TableApi) -> Vec<Entry> {
    api.log().into_iter().filter(|entry| entry.path == "/oauth_token.do").collect()
}

/// Sets the instance's clock to the machine's.
fn synchronise(api: &TableApi) {
    let now = Timestamp::from_millisecond(Host::system().now_ms()).expect("a time");
    api.set_clock(&now.strftime("%Y-%m-%d %H:%M:%S").to_string()).expect("a time");
}

#[tokio::test]
async fn a_user_an_api_key_and_each_grant_let_a_sweep_in() {
    for (keys, kind) in [
        (USER.to_vec(), "basic"),
        (vec![("snow.auth.type", "api_key"), ("snow.auth.api.key", API_KEY)], "api_key"),
        (oauth("client_credentials", &[]), "bearer"),
        (oauth("password", &USER), "bearer"),
    ] {
        let laptop = before(guarded(Settings::default()), &keys);
        arrives(&laptop, kind).await;
        assert!(token_requests(&laptop.api).len() <= 1, "one token for all pages");
    }
}

#[tokio::test]
async fn a_signed_assertion_lets_a_sweep_in_with_and_without_the_clients_secret() {
    for (key, has_secret) in [("signing.key", true), ("signing-pkcs1.key", false)] {
        let key = text(key);
        let mut laptop = before(guarded(Settings::default()), &jwt(&key));
        if !has_secret {
            laptop.unset("snow.oauth.client.secret");
        }
        synchronise(&laptop.api);
        arrives(&laptop, "bearer").await;
        laptop.api.revoke_tokens();
        laptop.api.insert("incident", Fields::from([("sys_updated_on", "2026-02-20 00:00:00")])).expect("a row");
        let report = laptop.sweep().await;
        assert_eq!(report.rows, 1, "a second assertion has an id of its own: {report:?}");
    }
}

#[tokio::test]
async fn an_assertion_by_another_key_or_about_somebody_else_is_refused_with_what_to_check() {
    let (good, other) = (text("signing.key"), text("signing-other.key"));
    for (keys, change) in [
        (jwt(&other), None),
        (jwt(&good), Some(("snow.oauth.jwt.key.id", "kid-2"))),
        (jwt(&good), Some(("snow.oauth.jwt.subject", "nobody@example.com"))),
        (jwt(&good), Some(("snow.oauth.jwt.audience", "https://elsewhere"))),
        (jwt(&good), Some(("snow.oauth.jwt.issuer", "somebody"))),
    ] {
        let mut laptop = before(guarded(Settings::default()), &keys);
        if let Some((key, value)) = change {
            laptop.set(key, value);
        }
        synchronise(&laptop.api);
        let reason = parked(laptop.sweep().await);
        assert_eq!(reason.code, "Source.Unauthorized");
        assert!(reason.message.contains("snow.oauth.jwt.key.id"), "{change:?}: {}", reason.message);
        assert_eq!(token_requests(&laptop.api).len(), 1, "it is not sent again");
    }
}

#[tokio::test]
async fn an_assertion_that_the_instances_clock_refuses_says_by_how_much_the_clocks_differ() {
    let key = text("signing.key");
    let laptop = before(guarded(Settings::default()), &jwt(&key));
    synchronise(&laptop.api);
    laptop.api.step_clock(-600);
    let reason = parked(laptop.sweep().await);
    assert!(reason.message.contains("s ahead of the instance's"), "{}", reason.message);
}

#[tokio::test]
async fn a_refresh_token_lets_a_sweep_in_and_its_successors_keep_it_in() {
    let settings = Settings { refresh_tokens_rotate: true, token_uses: Some(2), ..Settings::default() };
    let api = guarded(settings);
    let form =
        [("grant_type", "password"), ("username", "sweep"), ("password", PASSWORD), ("client_id", CLIENT.0), ("client_secret", CLIENT.1)];
    let answer = reqwest::Client::new().post(format!("{}/oauth_token.do", api.url())).form(&form).send().await.expect("an answer");
    let given: serde_json::Value = serde_json::from_slice(&answer.bytes().await.expect("a body")).expect("JSON");
    let first = given["refresh_token"].as_str().expect("a refresh token").to_owned();
    let laptop = before(api, &oauth("refresh_token", &[("snow.oauth.refresh.token", &first)]));
    // Four requests at two uses a token: the token is renewed in the middle, with the second refresh token.
    arrives(&laptop, "bearer").await;
    assert!(token_requests(&laptop.api).len() >= 3);
    // A new process starts with the first one again, which the instance has ended.
    let reason = parked(laptop.sweep().await);
    assert!(reason.message.contains("obtain another for snow.oauth.refresh.token"), "{}", reason.message);
    assert!(!reason.message.contains(&first));
}

#[tokio::test]
async fn a_client_certificate_lets_a_sweep_in_alone_and_beside_other_credentials() {
    let authority = file("authority.pem");
    let trust = ("snow.tls.truststore.path", authority.to_str().expect("UTF-8"));
    for (store, password) in [
        ("client.pem", None),
        ("client-encrypted.pem", Some("changeit")),
        ("client.p12", Some("changeit")),
        ("client-legacy.p12", Some("changeit")),
        ("client-java.p12", Some("changeit")),
    ] {
        let path = file(store);
        let mut keys = vec![trust, ("snow.auth.type", "certificate"), ("snow.tls.keystore.path", path.to_str().expect("UTF-8"))];
        keys.extend(password.map(|password| ("snow.tls.keystore.password", password)));
        arrives(&before(guarded_by_tls("server.pem", ClientCertificate::Optional), &keys), "certificate").await;
    }
    let path = file("client.pem");
    let both = [&[trust, ("snow.tls.keystore.path", path.to_str().expect("UTF-8"))], &USER[..]].concat();
    arrives(&before(guarded_by_tls("server.pem", ClientCertificate::Required), &both), "basic").await;
}

#[tokio::test]
async fn an_instance_of_a_private_authority_is_trusted_by_each_form_of_trust_store() {
    for (store, password) in [("authority.pem", None), ("trust.p12", Some("changeit")), ("trust-openssl.p12", Some("changeit"))] {
        let path = file(store);
        let mut keys = USER.to_vec();
        keys.push(("snow.tls.truststore.path", path.to_str().expect("UTF-8")));
        keys.extend(password.map(|password| ("snow.tls.truststore.password", password)));
        arrives(&before(guarded_by_tls("server.pem", ClientCertificate::None), &keys), "basic").await;
    }
}

#[tokio::test]
async fn a_connection_that_cannot_be_trusted_says_why_and_what_to_do_and_sends_nothing() {
    let stores =
        ["authority.pem", "other-authority.pem", "client.pem", "stranger.pem"].map(|name| file(name).to_str().expect("UTF-8").to_owned());
    let [authority, other, client, stranger] = stores.each_ref().map(String::as_str);
    let trusting = |store| vec![("snow.tls.truststore.path", store)];
    let showing = |store| vec![("snow.tls.truststore.path", authority), ("snow.tls.keystore.path", store)];
    for (server, clients, keys, words) in [
        ("server.pem", ClientCertificate::None, vec![], "give its certificate in snow.tls.truststore.path"),
        ("server.pem", ClientCertificate::None, trusting(other), "takes the place of the system's"),
        ("expired-server.pem", ClientCertificate::None, trusting(authority), "has expired"),
        ("elsewhere-server.pem", ClientCertificate::None, trusting(authority), "elsewhere.example"),
        ("server.pem", ClientCertificate::Required, trusting(authority), "Give one in snow.tls.keystore.path"),
        ("server.pem", ClientCertificate::Required, showing(stranger), "refused the client certificate"),
        ("expired-server.pem", ClientCertificate::None, showing(client), "has expired"),
    ] {
        let laptop = before(guarded_by_tls(server, clients), &[&keys[..], &USER].concat());
        let reason = parked(laptop.sweep().await);
        assert_eq!(reason.code, "Source.Tls", "{}", reason.message);
        assert!(reason.message.contains(words), "{server}: {}", reason.message);
        assert_eq!(laptop.api.log().len(), 0, "{server}");
    }
}

#[tokio::test]
async fn the_token_endpoint_is_trusted_by_the_same_stores() {
    let authority = file("authority.pem");
    let trust = [("snow.tls.truststore.path", authority.to_str().expect("UTF-8"))];
    arrives(&before(guarded_by_tls("server.pem", ClientCertificate::None), &oauth("client_credentials", &trust)), "bearer").await;
    let laptop = before(guarded_by_tls("expired-server.pem", ClientCertificate::None), &oauth("client_credentials", &trust));
    assert_eq!(parked(laptop.sweep().await).code, "Source.Tls");
}

#[tokio::test]
async fn an_address_that_does_not_speak_tls_is_named_as_such() {
    let api = guarded(Settings::default());
    let url = api.url().replace("http:", "https:");
    let mut laptop = before(api, &USER);
    laptop.set("snow.url", url);
    let reason = parked(laptop.sweep().await);
    assert!(reason.code == "Source.Tls" && reason.message.contains("does not speak TLS"), "{}", reason.message);
}

/// Twenty tables of one instance, with a wrong password.
fn twenty_tables() -> Laptop {
    let mut laptop = before(guarded(Settings { lock_after: Some(3), ..Settings::default() }), &USER);
    laptop.set("snow.auth.password", "wrong-horse-8");
    let aliases: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    laptop.set("snow.tables", aliases.join(","));
    for key in ["name", "topic"] {
        laptop.unset(&format!("snow.table.inc.{key}"));
    }
    for (n, alias) in aliases.iter().enumerate() {
        laptop.set(&format!("snow.table.{alias}.name"), "incident");
        laptop.set(&format!("snow.table.{alias}.query"), format!("active=true^priority={n}"));
        laptop.set(&format!("snow.table.{alias}.topic"), format!("snow.{alias}"));
    }
    laptop
}

/// An answer that came before anybody looked at the password says nothing of it: the next request tries it alone, like the first.
#[tokio::test]
async fn an_answer_that_did_not_look_at_the_password_lets_nobody_send_it_side_by_side() {
    let status = |status, content_type: Option<&str>| Effect::Status {
        status,
        body: None,
        content_type: content_type.map(str::to_owned),
        headers: Default::default(),
    };
    for effect in [
        status(503, None),
        status(429, None),
        status(504, Some("text/html")),
        status(404, Some("text/html")),
        Effect::Accepted { body: "{}".to_owned() },
        Effect::Html { page: HtmlPage::Maintenance },
        Effect::Redirect { location: "/maintenance.do".to_owned(), status: None },
    ] {
        let name = format!("{effect:?}");
        let laptop = twenty_tables().with("snow.http.max.concurrent.requests", 20);
        // Long enough for all tables to be waiting when the first answer comes.
        laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 200 }).always());
        laptop.api.fault(Fault::new(effect));
        laptop.sweep_all().await;
        let refused = laptop.api.log().into_iter().filter(|entry| entry.status == 401).count();
        assert_eq!(refused, 1, "{name}: one wrong login in all");
    }
}

#[tokio::test]
async fn twenty_tables_with_a_wrong_password_lock_no_account() {
    let mut laptop = twenty_tables();
    laptop.scheduled = true;
    for tick in 0..3 {
        let reports = laptop.sweep_all().await;
        for report in &reports {
            assert_eq!((report.outcome, report.rows), (Outcome::Parked, 0), "tick {tick}: {report:?}");
        }
        assert_eq!(laptop.api.log().len(), 1, "one wrong login in all, after tick {tick}");
    }
    // The right password still works: the account is not locked. By hand, the pause is not waited for.
    laptop.set("snow.auth.password", PASSWORD);
    laptop.scheduled = false;
    for report in laptop.sweep_all().await {
        assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    }
}

#[tokio::test]
async fn a_login_that_is_refused_for_ever_costs_one_request_and_says_what_to_check() {
    for (keys, requests, words) in [
        (vec![("snow.auth.username", "sweep"), ("snow.auth.password", "wrong-horse-8")], 1, "SSO or MFA"),
        (vec![("snow.auth.type", "api_key"), ("snow.auth.api.key", "now_key_43")], 1, "REST API access policy"),
        (oauth("password", &[("snow.auth.username", "sweep"), ("snow.auth.password", "wrong-horse-8")]), 1, "allows the password grant"),
        (oauth("client_credentials", &[("snow.oauth.client.secret", "wrong-secret-8")]), 1, "Check client id and secret"),
        (oauth("refresh_token", &[("snow.oauth.refresh.token", "wrong-token-8")]), 1, "obtain another"),
    ] {
        let laptop = before(guarded(Settings::default()), &keys);
        let reason = parked(laptop.sweep().await);
        assert_eq!(reason.code, "Source.Unauthorized");
        assert!(reason.message.contains(words) && !reason.message.contains("wrong-"), "{}", reason.message);
        assert_eq!(laptop.api.log().len(), requests, "{words}");
    }
}

#[tokio::test]
async fn a_token_that_is_given_and_never_accepted_ends_after_the_second_try() {
    let laptop = before(guarded(Settings { token_uses: Some(0), ..Settings::default() }), &oauth("client_credentials", &[]));
    let reason = parked(laptop.sweep().await);
    assert!(reason.code == "Source.Unauthorized" && reason.message.contains("scope"), "{}", reason.message);
    assert_eq!((laptop.api.reads("incident").len(), token_requests(&laptop.api).len()), (2, 2));
}

#[tokio::test]
async fn a_second_factor_is_named_when_the_instance_asks_for_one() {
    let laptop = before(guarded(Settings::default()), &USER);
    let headers = [("X-MFA_TOKEN".to_owned(), "required".to_owned())].into();
    laptop.api.fault(Fault::new(Effect::Status { status: 401, body: None, content_type: None, headers }).always());
    let reason = parked(laptop.sweep().await);
    assert!(reason.message.contains("second factor (MFA)"), "{}", reason.message);
}

#[tokio::test]
async fn a_password_that_was_rotated_is_read_again_and_no_row_waits_for_it() {
    let mut laptop = before(guarded(Settings::default()), &USER);
    let file = laptop.path("secrets.properties");
    laptop.set("snow.auth.password", format!("${{file:{}:password}}", file.display()));
    std::fs::write(&file, "password = old-horse-8\n").expect("a file");
    let inner = ToOne(Arc::new(NdjsonSink::open(laptop.path("out.ndjson")).expect("a file")));
    let (_stop, stopped) = watch::channel(false);
    let report = laptop.sweep_into(&Rotating { file, inner }, stopped).await.remove(0);
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 30), "{report:?}");
    assert_eq!(laptop.versions(), laptop.expected());
    let refused = laptop.api.reads("incident").into_iter().filter(|entry| entry.status == 401).count();
    assert_eq!(refused, 1);
}

/// Puts the right password into the file once the documents are resolved: the sweep begins with the old one.
struct Rotating {
    file: PathBuf,
    inner: ToOne,
}

#[async_trait]
impl Sinks for Rotating {
    fn of(&self, connector: &Connector) -> Result<Arc<dyn Sink>, Failure> {
        std::fs::write(&self.file, format!("password = {PASSWORD}\n")).expect("a file");
        self.inner.of(connector)
    }
}

#[tokio::test]
async fn a_passing_fault_of_the_token_endpoint_is_not_even_noticed() {
    for effect in [
        Effect::Status { status: 503, body: None, content_type: None, headers: Default::default() },
        Effect::Status { status: 429, body: None, content_type: None, headers: [("Retry-After".to_owned(), "0".to_owned())].into() },
        Effect::Html { page: HtmlPage::Hibernating },
        Effect::Reset,
    ] {
        let name = format!("{effect:?}");
        let laptop = before(guarded(Settings::default()), &oauth("client_credentials", &[]));
        laptop.api.fault(Fault::new(effect).on_token().times(2));
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 30), "{name}: {report:?}");
        assert_eq!(laptop.api.pending_faults(), 0, "{name} struck");
    }
}

#[tokio::test]
async fn a_fault_of_the_token_endpoint_that_stays_is_no_refused_login() {
    let status = |status| Effect::Status { status, body: None, content_type: None, headers: Default::default() };
    let elsewhere = Effect::Redirect { location: "https://login.example/saml?s=1".to_owned(), status: None };
    for (effect, outcome, code) in [
        (status(503), Outcome::Failed, "Source.Unavailable"),
        (status(429), Outcome::Failed, "Source.RateLimited"),
        (Effect::Html { page: HtmlPage::Login }, Outcome::Failed, "Source.NotData"),
        (Effect::Reset, Outcome::Failed, "Source.Unavailable"),
        (elsewhere, Outcome::Parked, "Source.Redirected"),
        (status(404), Outcome::Parked, "Source.NoTokenEndpoint"),
    ] {
        let name = format!("{effect:?}");
        let laptop = before(guarded(Settings::default()), &oauth("client_credentials", &[("snow.retry.max.attempts", "3")]));
        laptop.api.fault(Fault::new(effect).on_token().always());
        let report = laptop.sweep().await;
        let reason = report.reason.unwrap_or_else(|| panic!("{name} has no reason"));
        assert_eq!((report.outcome, reason.code.as_str()), (outcome, code), "{name}: {}", reason.message);
        assert!(reason.message.contains("/oauth_token.do") && !reason.message.contains("s=1"), "{}", reason.message);
        let expected = if outcome == Outcome::Failed { 3 } else { 1 };
        assert_eq!(token_requests(&laptop.api).len(), expected, "{name}");
        laptop.api.clear_faults();
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 30), "{name}: {report:?}");
    }
}

#[tokio::test]
async fn credentials_follow_no_redirect() {
    let elsewhere = guarded(Settings::default());
    for (location, words) in [
        (format!("{}/api/now/table/incident", elsewhere.url().replace("127.0.0.1", "localhost")), "credentials are sent to no other host"),
        (format!("{}/api/now/table/incident", elsewhere.url()), "is not the address of the instance"),
        ("https://user:hunter2@127.0.0.1/x".to_owned(), "Give snow.url with https"),
    ] {
        let laptop = before(guarded(Settings::default()), &USER);
        laptop.api.fault(Fault::new(Effect::Redirect { location, status: None }).always());
        let reason = parked(laptop.sweep().await);
        assert_eq!(reason.code, "Source.Redirected");
        assert!(reason.message.contains(words) && !reason.message.contains("hunter2"), "{}", reason.message);
        assert_eq!(laptop.api.reads("incident").len(), 1);
    }
    assert_eq!(elsewhere.log().len(), 0);
}

#[tokio::test]
async fn a_redirect_within_the_instance_is_its_maintenance_and_passes() {
    const CLIENT_CREDENTIALS: &str = "client_credentials";
    for (on_token, location) in [(false, "/maintenance.do"), (false, "/login_redirect.do?u=1"), (true, "/maintenance.do")] {
        let keys = oauth(CLIENT_CREDENTIALS, &[("snow.retry.max.attempts", "3")]);
        let laptop = before(guarded(Settings::default()), &keys);
        let redirect = || {
            let fault = Fault::new(Effect::Redirect { location: location.to_owned(), status: None });
            if on_token { fault.on_token() } else { fault.table("incident") }
        };
        laptop.api.fault(redirect().always());
        let report = laptop.sweep().await;
        let reason = report.reason.expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Failed, "Source.Redirected"), "{}", reason.message);
        assert!(reason.message.contains("maintenance") && !reason.message.contains("u=1"), "{}", reason.message);
        assert_eq!(
            laptop.api.log().iter().filter(|entry| !entry.faults.is_empty()).count(),
            3,
            "asked again, as often as other faults that pass"
        );
        laptop.api.clear_faults();
        laptop.api.fault(redirect().times(2));
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 30), "a short one is not noticed: {report:?}");
        assert_eq!(laptop.api.pending_faults(), 0, "it struck");
    }
}

#[tokio::test]
async fn a_token_endpoint_that_hangs_fails_the_table_and_names_itself() {
    let mut laptop = before(guarded(Settings::default()), &oauth("client_credentials", &[]));
    laptop.max_time = Some(std::time::Duration::from_millis(19_500));
    laptop.api.fault(Fault::new(Effect::DelayHeaders { millis: 20_000 }).on_token().always());
    let report = laptop.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Failed, "Source.Unavailable"), "{}", reason.message);
    assert!(reason.message.contains("/oauth_token.do within 1"), "{}", reason.message);
    assert_eq!(laptop.item().await.progress.page_size, None, "the page is not to blame");
    laptop.api.clear_faults();
    assert_eq!(laptop.sweep().await.rows, 30);
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_named_and_nothing_is_sent() {
    let jks = file("client.jks");
    let laptop = before(guarded_by_tls("server.pem", ClientCertificate::None), &USER);
    let laptop = laptop.with("snow.tls.keystore.path", jks.display());
    let refused = laptop.refused().await.remove(0);
    assert_eq!(refused.failure.code, "Source.CertificateStore");
    assert!(refused.failure.message.contains("keytool -importkeystore"), "{}", refused.failure.message);
    assert_eq!(laptop.api.log().len(), 0);
}
