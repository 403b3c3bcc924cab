//! Calls over a real socket, to an endpoint that answers as told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{Client, Error, SSM};
use crate::host::{Host, ManualClock};

const KEY: &str = "hunter2-secret-key";
const SOON: Duration = Duration::from_secs(20);

/// What the endpoint does with a request.
pub(crate) enum Answer {
    /// A status and a body.
    Say(u16, String),
    /// The connection stays open and nothing comes.
    Silence,
}

/// The same for whatever is asked.
fn say(status: u16, body: &str) -> Answer {
    Answer::Say(status, body.to_owned())
}

/// An endpoint that answers as told; it keeps what it was asked.
pub(crate) struct Endpoint {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    /// With a row of answers, and silence after the last.
    async fn with(answers: impl IntoIterator<Item = Answer>) -> Self {
        let mut answers = answers.into_iter().collect::<VecDeque<_>>();
        Self::answering(move |_| answers.pop_front().unwrap_or(Answer::Silence)).await
    }

    /// With an answer to each body.
    pub(crate) async fn answering(mut answer: impl FnMut(Value) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                // The requests of these tests are one packet of a few hundred bytes, ending with the body's brace.
                while !request.ends_with(b"}") && stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {}
                let request = String::from_utf8_lossy(&request).into_owned();
                let (_, body) = request.split_once("\r\n\r\n").unwrap();
                let answer = answer(serde_json::from_str(body).unwrap());
                kept.lock().unwrap().push(request);
                match answer {
                    Answer::Say(status, body) => {
                        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
                        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
                    }
                    Answer::Silence => silent.push(stream),
                }
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

pub(crate) fn config(address: &str) -> SdkConfig {
    let credentials = Credentials::new("AKID", KEY, Some("hunter2-token".into()), None, "test");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-west-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(address)
        .build()
}

async fn call(address: &str, within: Duration) -> Result<Value, Error> {
    let client = Client::new(&config(address), SSM, Host::system())?;
    client.call("GetParameters", &json!({"Names": ["/a"]}), within).await
}

#[tokio::test]
async fn a_request_names_its_operation_and_is_signed_for_service_region_and_time() {
    let endpoint = Endpoint::with([say(200, r#"{"Parameters":[]}"#)]).await;
    // 2026-01-02 03:04:05 UTC
    let client = Client::new(&config(&endpoint.address), SSM, Host::with_clock(ManualClock::at(1_767_323_045_000))).unwrap();
    let answer: Value = client.call("GetParameters", &json!({"Names": ["/a"]}), SOON).await.unwrap();
    assert_eq!(answer, json!({"Parameters": []}));
    let asked = endpoint.asked().remove(0).to_lowercase();
    for part in [
        "post / http/1.1",
        "x-amz-target: amazonssm.getparameters",
        "content-type: application/x-amz-json-1.1",
        "x-amz-date: 20260102t030405z",
        "x-amz-security-token: hunter2-token",
        "credential=akid/20260102/eu-west-1/ssm/aws4_request, signedheaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,",
        r#"{"names":["/a"]}"#,
    ] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
    assert!(!asked.contains(KEY));
}

#[tokio::test]
async fn throttling_and_faults_of_the_service_are_tried_again_within_bounds() {
    let throttled = r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#;
    let endpoint = Endpoint::with([say(400, throttled), say(500, "oops"), say(200, "{}")]).await;
    assert_eq!(call(&endpoint.address, SOON).await, Ok(json!({})));
    assert_eq!(endpoint.asked().len(), 3);

    let endpoint = Endpoint::with((0..9).map(|_| say(400, throttled))).await;
    let error = call(&endpoint.address, SOON).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient(), endpoint.asked().len()), (Some("ThrottlingException"), true, 3));
}

#[tokio::test]
async fn a_refusal_is_final_and_says_what_the_service_said() {
    let body = r#"{"__type":"AccessDeniedException","Message":"User: x is not authorized to perform: ssm:GetParameters on resource: y"}"#;
    let endpoint = Endpoint::with([say(400, body)]).await;
    let error = call(&endpoint.address, SOON).await.unwrap_err();
    assert_eq!((error.missing_right(), endpoint.asked().len()), (Some("ssm:GetParameters"), 1));
    assert!(!format!("{error:?}{error}").contains("hunter2"));
}

#[tokio::test]
async fn a_service_that_says_nothing_is_given_up_in_time() {
    let endpoint = Endpoint::with([Answer::Silence]).await;
    let asked = tokio::time::timeout(SOON, call(&endpoint.address, Duration::from_millis(300))).await;
    let error = asked.expect("the call ends").unwrap_err();
    assert!(matches!(&error, Error::NoAnswer { .. }) && error.is_transient(), "{error}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_without_a_word_of_it() {
    let endpoint = Endpoint::with([say(200, r#"{"Value": "hunter2"#)]).await;
    let error = call(&endpoint.address, SOON).await.unwrap_err();
    assert!(matches!(&error, Error::Garbled { .. }) && !error.to_string().contains("hunter2"), "{error}");
}

#[tokio::test]
async fn without_a_region_or_credentials_or_with_a_wrong_endpoint_there_is_no_client() {
    let built = |config: SdkConfig| Client::new(&config, SSM, Host::system()).unwrap_err().to_string();
    assert!(built(SdkConfig::builder().build()).contains("set AWS_REGION"));
    assert!(built(SdkConfig::builder().region(Region::new("eu-west-1")).build()).contains("no credentials"));
    assert!(built(config("localhost:4566")).contains("AWS_ENDPOINT_URL"));
    assert!(!format!("{:?}", Client::new(&config("http://localhost"), SSM, Host::system()).unwrap()).contains("hunter2"));
}
