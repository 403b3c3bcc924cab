use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use secrecy::SecretString;

use super::Dir;
use crate::config::Resolver;
use crate::config::placeholder::{FetchError, SecretFetch, TTL};

/// A store of secrets that counts how often it is asked.
#[derive(Default)]
struct Store {
    secrets: Mutex<BTreeMap<String, String>>,
    asked: Mutex<Vec<String>>,
}

impl Store {
    fn with(secrets: &[(&str, &str)]) -> Arc<Store> {
        let store = Store::default();
        secrets.iter().for_each(|(id, text)| store.set(id, text));
        Arc::new(store)
    }

    fn set(&self, id: &str, text: &str) {
        self.secrets.lock().unwrap().insert(id.to_owned(), text.to_owned());
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl SecretFetch for Store {
    async fn fetch(&self, id: &str) -> Result<SecretString, FetchError> {
        self.asked.lock().unwrap().push(id.to_owned());
        let found = self.secrets.lock().unwrap().get(id).cloned();
        found.map(SecretString::from).ok_or(FetchError { message: "there is no such secret".into(), transient: false })
    }
}

/// A resolver over a store and a clock of seconds that the test moves.
fn resolver(store: &Arc<Store>) -> (Resolver, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let clock = Arc::clone(&seconds);
    let env = |name: &str| match name {
        "SNOW_USER" => Some("user".to_owned()),
        "NESTED" => Some("${env:SNOW_USER}".to_owned()),
        _ => None,
    };
    let now = move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst));
    (Resolver::new(env, now).with_secrets(store.clone()), seconds)
}

#[tokio::test]
async fn several_placeholders_and_text_make_one_value_and_nothing_is_read_twice() {
    let store = Store::with(&[("s", r#"{"a": "1", "n": 7, "b": true}"#), ("whole", "all of it")]);
    let (resolver, _) = resolver(&store);
    let keys = [
        ("snow.auth.username", "x-${env:SNOW_USER}-${secretsmanager:s:a}${secretsmanager:s:n}-${secretsmanager:s:b}"),
        ("snow.auth.password", "${secretsmanager:whole}"),
        ("snow.http.user.agent", "${env:NESTED}"),
    ];
    let documents = Dir::new().servicenow("snow", &keys).load().unwrap();
    let values = documents.connectors[0].resolve(&resolver).await.unwrap().values;
    assert_eq!(values.text("snow.auth.username"), Some("x-user-17-true"));
    assert_eq!(values.text("snow.auth.password"), Some("all of it"));
    assert_eq!(values.text("snow.http.user.agent"), Some("${env:SNOW_USER}"), "no recursion");
    assert_eq!(store.asked(), 2, "each secret once");
}

#[tokio::test]
async fn files_are_properties_or_json() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.properties"), "user = Z\\u00fcrich\n").unwrap();
    std::fs::write(dir.path().join("a.json"), r#"{"password": "p", "list": []}"#).unwrap();
    let user = format!("${{file:{}/a.properties:user}}", dir.path().display());
    let password = format!("${{file:{}/a.json:password}}", dir.path().display());
    let (resolver, _) = resolver(&Store::with(&[]));
    let documents = Dir::new().servicenow("snow", &[("snow.auth.username", &user), ("snow.auth.password", &password)]).load().unwrap();
    let values = documents.connectors[0].resolve(&resolver).await.unwrap().values;
    assert_eq!((values.text("snow.auth.username"), values.text("snow.auth.password")), (Some("Zürich"), Some("p")));
}

#[tokio::test]
async fn everything_that_is_missing_is_one_error_that_quotes_no_secret() {
    let store = Store::with(&[("text", "hunter2"), ("list", r#"["hunter2"]"#), ("s", r#"{"other": "hunter2", "deep": {"x": "hunter2"}}"#)]);
    let (resolver, _) = resolver(&store);
    let placeholders = [
        ("snow.url", "https://${env:NO_HOST}"),
        ("snow.auth.username", "${file:/nowhere/x.properties:user}"),
        ("snow.auth.password", "${secretsmanager:none:password}${secretsmanager:s:password}"),
        ("snow.http.user.agent", "${secretsmanager:text:key}"),
        ("snow.oauth.scope", "${secretsmanager:list:key}"),
        ("snow.oauth.client.id", "${secretsmanager:s:deep}"),
        ("snow.oauth.client.secret", "${ssm:/x}"),
    ];
    // Checking looks nothing up, so nothing is missing yet.
    let documents = Dir::new().servicenow("snow", &placeholders).load().unwrap();
    let error = documents.connectors[0].resolve(&resolver).await.unwrap_err();
    assert_eq!(error.code(), "Config.Unresolved");
    let report = error.to_string();
    assert!(report.starts_with("connectors/snow.json: 8 placeholders without a value:"), "{report}");
    for part in [
        "${env:NO_HOST} of snow.url: the environment has no variable NO_HOST, or it is empty",
        "${file:/nowhere/x.properties:user} of snow.auth.username: the file cannot be read",
        "${secretsmanager:none:password} of snow.auth.password: there is no such secret",
        "${secretsmanager:s:password} of snow.auth.password: the secret has no entry \"password\"",
        "${secretsmanager:text:key} of snow.http.user.agent: the secret is not a JSON object",
        "${secretsmanager:list:key} of snow.oauth.scope: the secret is not a JSON object",
        "${secretsmanager:s:deep} of snow.oauth.client.id: the secret has no entry \"deep\" that is text",
        "${ssm:/x} of snow.oauth.client.secret: no parameter store is available here",
    ] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    assert!(!report.contains("hunter2") && !format!("{error:?}").contains("hunter2"), "{report}");
}

#[tokio::test]
async fn a_value_is_checked_once_it_is_known() {
    let store = Store::with(&[("s", r#"{"size": "0", "url": "https://me:hunter2@x", "query": "a=1^ORDERBYb"}"#)]);
    let (resolver, _) = resolver(&store);
    let keys = [
        ("snow.source.batch.size", "${secretsmanager:s:size}"),
        ("snow.url", "${secretsmanager:s:url}"),
        ("snow.table.inc.query", "${secretsmanager:s:query}"),
        ("snow.auth.password", "${env:SNOW_USER}"),
    ];
    let documents = Dir::new().servicenow("snow", &keys).load().unwrap();
    let report = documents.connectors[0].resolve(&resolver).await.unwrap_err().to_string();
    assert!(report.starts_with("3 faults"), "{report}");
    for part in ["${secretsmanager:s:size}", "below the smallest", "carries credentials", "contains ORDERBY"] {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    assert!(!report.contains("hunter2"), "{report}");
}

#[tokio::test]
async fn two_aliases_may_turn_out_to_have_one_cursor_only_when_placeholders_are_known() {
    let keys = [
        ("snow.tables", "inc,two"),
        ("snow.table.two.name", "incident"),
        ("snow.table.two.topic", "t"),
        ("snow.table.inc.query", "user"),
        ("snow.table.two.query", "${env:SNOW_USER}"),
        ("snow.auth.password", "${env:SNOW_USER}"),
    ];
    let documents = Dir::new().servicenow("snow", &keys).load().unwrap();
    let (resolver, _) = resolver(&Store::with(&[]));
    let report = documents.connectors[0].resolve(&resolver).await.unwrap_err().to_string();
    assert!(report.contains("the same cursor as table inc"), "{report}");
}

/// A connector whose password is a secret.
fn with_secret() -> crate::config::Connector {
    let keys = [("snow.auth.password", "${secretsmanager:s:p}")];
    Dir::new().servicenow("snow", &keys).load().unwrap().connectors.remove(0)
}

#[tokio::test]
async fn a_secret_is_read_again_after_five_minutes_and_not_before() {
    let store = Store::with(&[("s", r#"{"p": "old"}"#)]);
    let (resolver, clock) = resolver(&store);
    let connector = with_secret();
    let password = async || connector.resolve(&resolver).await.unwrap().values.text("snow.auth.password").map(str::to_owned);
    assert_eq!(password().await.as_deref(), Some("old"));
    store.set("s", r#"{"p": "new"}"#);
    clock.fetch_add(299, Ordering::SeqCst);
    assert_eq!((password().await.as_deref(), store.asked()), (Some("old"), 1));
    clock.fetch_add(1, Ordering::SeqCst);
    assert_eq!((password().await.as_deref(), store.asked()), (Some("new"), 2));
    clock.fetch_sub(3600, Ordering::SeqCst);
    password().await;
    assert_eq!(store.asked(), 3, "a clock that went back proves no age");
}

#[tokio::test]
async fn a_refused_credential_is_read_once_more_however_many_ask() {
    let store = Store::with(&[("s", r#"{"p": "old"}"#)]);
    let (resolver, clock) = resolver(&store);
    let stale = with_secret().resolve(&resolver).await.unwrap();
    store.set("s", r#"{"p": "new"}"#);

    let (fresh, changed) = stale.refresh(&resolver).await.unwrap();
    assert_eq!((fresh.values.text("snow.auth.password"), changed), (Some("new"), true));
    let (other, changed) = stale.refresh(&resolver).await.unwrap();
    assert_eq!((other.values.text("snow.auth.password"), changed), (Some("new"), true), "another table gets it as well");
    assert_eq!(store.asked(), 2, "but without another read");

    let (_, changed) = fresh.refresh(&resolver).await.unwrap();
    assert_eq!((changed, store.asked()), (false, 2), "what was just read again is not read once more");
    clock.fetch_add(300, Ordering::SeqCst);
    let (_, changed) = fresh.refresh(&resolver).await.unwrap();
    assert_eq!((changed, store.asked()), (false, 3), "later it may have been rotated again");
}

#[test]
fn the_pages_on_cost_and_on_keys_say_after_how_many_minutes_a_secret_is_read_again() {
    let minutes = TTL.as_secs() / 60;
    let row = format!("| minutes between two looks at a secret | {minutes} |");
    assert!(include_str!("../../../../docs/cost.md").contains(&row), "{row}");
    assert_eq!(minutes, 5, "and in words in docs/configuration.md and docs/deploy.md");
}

#[tokio::test]
async fn a_refused_credential_is_read_again_though_somebody_read_it_a_moment_ago_for_another_reason() {
    let store = Store::with(&[("s", r#"{"p": "old"}"#)]);
    let (resolver, clock) = resolver(&store);
    let stale = with_secret().resolve(&resolver).await.unwrap();
    clock.fetch_add(300, Ordering::SeqCst);
    let (_, changed) = stale.renew(&resolver).await.unwrap().expect("it is due");
    assert_eq!((changed, store.asked()), (false, 2));
    store.set("s", r#"{"p": "new"}"#);
    clock.fetch_add(1, Ordering::SeqCst);
    let (fresh, changed) = stale.refresh(&resolver).await.unwrap();
    assert_eq!((fresh.values.text("snow.auth.password"), changed, store.asked()), (Some("new"), true, 3));
}

#[tokio::test]
async fn values_are_looked_up_again_when_they_are_old_or_somebody_read_their_places_again() {
    let store = Store::with(&[("s", r#"{"p": "old"}"#)]);
    let (resolver, clock) = resolver(&store);
    let [one, two] = [with_secret(), with_secret()];
    let (one, two) = (one.resolve(&resolver).await.unwrap(), two.resolve(&resolver).await.unwrap());
    clock.fetch_add(299, Ordering::SeqCst);
    assert!(one.renew(&resolver).await.unwrap().is_none(), "not yet");
    clock.fetch_add(1, Ordering::SeqCst);
    let (same, changed) = one.renew(&resolver).await.unwrap().expect("it is due");
    assert_eq!((changed, store.asked()), (false, 2));
    assert!(same.renew(&resolver).await.unwrap().is_none(), "it is as young as can be");
    store.set("s", r#"{"p": "new"}"#);
    clock.fetch_add(300, Ordering::SeqCst);
    let (_, changed) = same.renew(&resolver).await.unwrap().expect("it is due");
    assert_eq!((changed, store.asked()), (true, 3));
    let (two, changed) = two.renew(&resolver).await.unwrap().expect("its place was read again");
    assert_eq!((two.values.text("snow.auth.password"), changed), (Some("new"), true));
    assert_eq!(store.asked(), 3, "one look in five minutes serves all");
    let literal = Dir::new().servicenow("snow", &[("snow.auth.password", "${env:SNOW_USER}")]).load().unwrap();
    let literal = literal.connectors[0].resolve(&resolver).await.unwrap();
    clock.fetch_add(3_000, Ordering::SeqCst);
    assert!(literal.renew(&resolver).await.unwrap().is_none(), "the environment of a process does not change");
}

#[tokio::test]
async fn what_cannot_be_read_again_stays_what_it_was_and_is_tried_again_a_minute_later_but_a_refused_value_does_not_stand_in() {
    let store = Store::with(&[("s", r#"{"p": "old"}"#)]);
    let (resolver, clock) = resolver(&store);
    let known = with_secret().resolve(&resolver).await.unwrap();
    store.secrets.lock().unwrap().clear();
    clock.fetch_add(300, Ordering::SeqCst);
    let (known, changed) = known.renew(&resolver).await.unwrap().expect("it is due");
    assert_eq!((known.values.text("snow.auth.password"), changed, store.asked()), (Some("old"), false, 2));
    clock.fetch_add(59, Ordering::SeqCst);
    assert!(known.renew(&resolver).await.unwrap().is_none(), "a store that is out of reach is not waited for at each tick");
    assert_eq!(with_secret().resolve(&resolver).await.unwrap().values.text("snow.auth.password"), Some("old"));
    assert_eq!(store.asked(), 2);
    assert!(known.refresh(&resolver).await.is_err(), "the value was refused");
    assert_eq!(store.asked(), 3);
    store.set("s", r#"{"p": "new"}"#);
    clock.fetch_add(60, Ordering::SeqCst);
    let (known, changed) = known.renew(&resolver).await.unwrap().expect("it is due");
    assert_eq!((known.values.text("snow.auth.password"), changed, store.asked()), (Some("new"), true, 4));
}

#[tokio::test]
async fn a_refresh_that_finds_the_same_secret_says_so() {
    let (resolver, _) = resolver(&Store::with(&[("s", r#"{"p": "old"}"#)]));
    let connector = with_secret().resolve(&resolver).await.unwrap();
    assert!(!connector.refresh(&resolver).await.unwrap().1);
    let literal = Dir::new().servicenow("snow", &[("snow.auth.username", "u"), ("snow.auth.password", "p")]).load().unwrap();
    assert!(!literal.connectors[0].refresh(&resolver).await.unwrap().1, "there is nothing to look up");
}

#[tokio::test]
async fn a_failed_read_is_not_remembered() {
    let store = Store::with(&[]);
    let (resolver, _) = resolver(&store);
    let connector = with_secret();
    assert!(connector.resolve(&resolver).await.is_err());
    store.set("s", r#"{"p": "here"}"#);
    assert!(connector.resolve(&resolver).await.is_ok());
}

#[test]
fn resolving_can_run_on_any_thread() {
    fn is_send<T: Send>(_: &T) {}
    let (resolver, _) = resolver(&Store::with(&[]));
    let connector = with_secret();
    is_send(&connector.resolve(&resolver));
    is_send(&connector.refresh(&resolver));
    is_send(&connector);
}

/// A store that takes the question and says nothing.
struct Silent;

#[async_trait]
impl SecretFetch for Silent {
    async fn fetch(&self, _id: &str) -> Result<SecretString, FetchError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_secrets_manager_that_does_not_answer_is_given_up_and_may_be_tried_later() {
    let resolver = Resolver::new(|_| Some("u".to_owned()), || SystemTime::UNIX_EPOCH)
        .with_secrets(Arc::new(Silent))
        .with_timeout(Duration::from_millis(5));
    let error =
        tokio::time::timeout(Duration::from_secs(5), with_secret().resolve(&resolver)).await.expect("the look is given up").unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("no answer came within 5ms"), "{error}");
}
