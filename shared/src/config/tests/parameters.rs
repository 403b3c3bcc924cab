//! Placeholders of Parameter Store, asked for over a socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use aws_config::retry::RetryConfig;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::Dir;
use crate::aws::tests::{Answer, Endpoint, config};
use crate::aws::{Client, SSM};
use crate::config::parameterstore::ParameterStore;
use crate::config::placeholder::{ParameterFetch, SecretFetch as _};
use crate::config::secretsmanager::SecretsManager;
use crate::config::{Connector, Resolver};
use crate::host::Host;

const SECRET: &str = "hunter2";

fn store(endpoint: &Endpoint) -> ParameterStore {
    ParameterStore::new(Client::new(&config(&endpoint.address), SSM, Host::system()).unwrap())
}

fn names(request: &Value) -> Vec<String> {
    request["Names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Answers with `value` for every name.
fn every(request: &Value, value: &str) -> Answer {
    let of = |name: &String| json!({"Name": name, "ARN": format!("arn:aws:ssm:eu-west-1:1:parameter{name}"), "Value": value});
    Answer::Say(200, json!({"Parameters": names(request).iter().map(of).collect::<Vec<_>>(), "InvalidParameters": []}).to_string())
}

fn refused(kind: &str, message: &str) -> Answer {
    Answer::Say(400, json!({"__type": kind, "message": message}).to_string())
}

#[tokio::test]
async fn names_are_asked_for_ten_at_a_time_and_decrypted() {
    let endpoint = Endpoint::answering(|request| {
        assert_eq!(request["WithDecryption"], true);
        assert!(names(&request).len() <= 10);
        every(&request, "v")
    })
    .await;
    let wanted: Vec<String> = (0..25).map(|number| format!("/p/{number}")).collect();
    let found = store(&endpoint).fetch(&wanted).await;
    assert_eq!((found.len(), found.iter().filter(|one| one.is_ok()).count(), endpoint.asked().len()), (25, 25, 3));
}

#[tokio::test]
async fn what_is_refused_for_the_sake_of_one_is_told_of_that_one_with_the_right_that_is_missing() {
    let endpoint = Endpoint::answering(|request| {
        let names = names(&request);
        let has = |name: &str| names.iter().any(|one| one == name);
        match () {
            () if has("/denied") => {
                refused("AccessDeniedException", "User: u is not authorized to perform: ssm:GetParameters on resource: r")
            }
            () if has("/key") => refused("AccessDeniedException", "The ciphertext refers to a customer master key that does not exist"),
            () if has("/disabled") => refused("InvalidKeyId", "is disabled"),
            () => every(&request, SECRET),
        }
    })
    .await;
    let wanted = ["/good", "/denied", "/key", "/disabled"].map(str::to_owned);
    let found = store(&endpoint).fetch(&wanted).await;
    assert!(found[0].is_ok());
    let told: Vec<String> = found[1..].iter().map(|one| one.as_ref().unwrap_err().to_string()).collect();
    assert!(told[0].contains("allow ssm:GetParameters on the parameter"), "{told:?}");
    assert!(told[1].contains("allow kms:Decrypt on its key"), "{told:?}");
    assert!(told[2].contains("its key is disabled"), "{told:?}");
    assert!(!format!("{found:?}").contains(SECRET));
}

#[tokio::test]
async fn a_parameter_is_found_by_its_arn_which_is_answered_under_its_name() {
    let arn = "arn:aws:ssm:eu-west-1:1:parameter/snow/login";
    let endpoint = Endpoint::answering(move |_| {
        Answer::Say(200, json!({"Parameters": [{"Name": "/snow/login", "ARN": arn, "Value": SECRET}]}).to_string())
    })
    .await;
    let found = store(&endpoint).fetch(&[arn.to_owned()]).await;
    assert_eq!(found[0].as_ref().unwrap().expose_secret(), SECRET);
}

#[tokio::test]
async fn a_refused_decryption_is_told_as_such_whether_or_not_the_right_is_named() {
    for said in ["User: u is not authorized to perform: kms:Decrypt on resource: k", "The ciphertext refers to a key that does not exist"] {
        let endpoint = Endpoint::answering(move |_| refused("AccessDeniedException", said)).await;
        let found = store(&endpoint).fetch(&["/a".to_owned()]).await;
        let told = found[0].as_ref().unwrap_err();
        assert!(told.message.contains("allow kms:Decrypt on its key") && !told.transient, "{told}");
    }
}

#[tokio::test]
async fn what_secrets_manager_refuses_is_told_with_the_right_that_is_missing_and_only_what_may_pass_is_tried_later() {
    for (kind, message, words, transient) in [
        (
            "AccessDeniedException",
            "User: u is not authorized to perform: secretsmanager:GetSecretValue",
            "allow secretsmanager:GetSecretValue",
            false,
        ),
        ("AccessDeniedException", "Access to KMS is not allowed", "allow kms:Decrypt on its key", false),
        ("DecryptionFailure", "the key is disabled", "allow kms:Decrypt on its key", false),
        (
            "ResourceNotFoundException",
            "Secrets Manager can't find the specified secret.",
            "no such secret in this account and region",
            false,
        ),
        ("InvalidRequestException", "it was marked for deletion", "marked for deletion", false),
        ("ThrottlingException", "Rate exceeded", "Rate exceeded", true),
        ("InternalServiceError", "oops", "oops", true),
    ] {
        let endpoint = Endpoint::answering(move |_| refused(kind, message)).await;
        let once = config(&endpoint.address).to_builder().retry_config(RetryConfig::disabled()).build();
        let told = SecretsManager::new(&once).fetch("snow/login").await.unwrap_err();
        assert!(told.message.contains(words), "{kind}: {told}");
        assert_eq!(told.transient, transient, "{kind}: {told}");
        assert!(!told.message.contains("hunter2"), "{told}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_in_a_line_without_the_secret_in_it() {
    let whole = json!({"Name": "snow/login", "VersionId": "v", "SecretString": SECRET, "Parameters": [{"Name": "/a", "Value": SECRET}]});
    let cut = whole.to_string().replace("]}", "");
    let misshapen = json!({"SecretString": [SECRET], "Parameters": [{"Name": [SECRET], "Value": [SECRET]}]}).to_string();
    let html = format!("<html>{SECRET}</html>");
    for (status, body) in [(200, cut.clone()), (200, misshapen), (200, html.clone()), (500, html), (503, cut)] {
        let answer = body.clone();
        let endpoint = Endpoint::answering(move |_| Answer::Say(status, answer.clone())).await;
        let once = config(&endpoint.address).to_builder().retry_config(RetryConfig::disabled()).build();
        let of_a_secret = SecretsManager::new(&once).fetch("snow/login").await.unwrap_err();
        let of_a_parameter = store(&endpoint).fetch(&["/a".to_owned()]).await.remove(0).unwrap_err();
        for told in [of_a_secret, of_a_parameter] {
            let shown = format!("{told} {told:?}");
            assert!(!shown.contains(SECRET), "{status} {body}: {shown}");
            // One line for people, not a page of what the SDK holds.
            assert!(told.message.contains("cannot be read") && told.message.len() < 250, "{status} {body}: {told}");
        }
    }
}

#[tokio::test]
async fn a_store_that_is_throttled_is_a_failure_of_now() {
    let endpoint = Endpoint::answering(|_| refused("ThrottlingException", "Rate exceeded")).await;
    let found = store(&endpoint).fetch(&["/a".to_owned(), "/b".to_owned()]).await;
    assert!(found.iter().all(|one| one.as_ref().unwrap_err().transient));
    assert_eq!(endpoint.asked().len(), 3, "ten that are throttled are not asked for one by one");
}

/// A connector whose login is one parameter, an object.
fn connector() -> Connector {
    let keys = [("snow.auth.username", "${ssm:/snow/login:user}"), ("snow.auth.password", "${ssm:/snow/login:password}")];
    Dir::new().servicenow("snow", &keys).load().unwrap().connectors.remove(0)
}

#[tokio::test]
async fn a_parameter_is_read_once_again_when_it_is_old_and_when_a_login_is_refused() {
    let version = Arc::new(AtomicU64::new(1));
    let now = Arc::new(AtomicU64::new(1_000_000));
    let (served, clock) = (version.clone(), now.clone());
    let endpoint = Endpoint::answering(move |request| {
        let value = json!({"user": "u", "password": format!("p{}", served.load(Ordering::SeqCst))});
        every(&request, &value.to_string())
    })
    .await;
    let resolver = Resolver::new(|_| None, move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst)))
        .with_parameters(Arc::new(store(&endpoint)));
    let password = |connector: &Connector| connector.values.text("snow.auth.password").map(str::to_owned);

    let first = connector().resolve(&resolver).await.unwrap();
    assert_eq!((password(&first).as_deref(), endpoint.asked().len()), (Some("p1"), 1), "both entries of one read");
    version.store(2, Ordering::SeqCst);
    assert_eq!(password(&connector().resolve(&resolver).await.unwrap()).as_deref(), Some("p1"), "kept for five minutes");
    let (renewed, changed) = first.refresh(&resolver).await.unwrap();
    assert_eq!((password(&renewed).as_deref(), changed, endpoint.asked().len()), (Some("p2"), true, 2));
    version.store(3, Ordering::SeqCst);
    now.fetch_add(300, Ordering::SeqCst);
    assert_eq!(password(&connector().resolve(&resolver).await.unwrap()).as_deref(), Some("p3"), "and no longer");
}

#[tokio::test]
async fn parameters_that_are_missing_are_listed_together() {
    let endpoint = Endpoint::answering(|_| Answer::Say(200, r#"{"Parameters": [], "InvalidParameters": ["x"]}"#.to_owned())).await;
    let keys = [("snow.auth.username", "${ssm:/user}"), ("snow.auth.password", "${ssm:/password}")];
    let connector = Dir::new().servicenow("snow", &keys).load().unwrap().connectors.remove(0);
    let resolver = Resolver::new(|_| None, || SystemTime::UNIX_EPOCH).with_parameters(Arc::new(store(&endpoint)));
    let report = connector.resolve(&resolver).await.unwrap_err().to_string();
    assert!(report.contains("2 placeholders without a value"), "{report}");
    for name in ["/user", "/password"] {
        assert!(report.contains(&format!("${{ssm:{name}}}")) && report.contains("no such parameter"), "{report}");
    }
}
