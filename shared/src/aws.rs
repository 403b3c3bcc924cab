//! One signed call to an AWS service that speaks JSON 1.1, without that service's SDK.
//!
//! Parameter Store and Glue are asked two or three kinds of question, and their SDKs are the largest that there are: half
//! a million lines for Glue alone (docs/decisions/0018). What such a question takes is little and stands in the
//! protocol's description: a POST of a JSON object whose operation is named by the header `X-Amz-Target`, signed with
//! version 4 of AWS's signatures. Configuration, credentials and the signature are the SDK's own crates, so that region,
//! profile, role and endpoint (`AWS_ENDPOINT_URL`, `AWS_ENDPOINT_URL_<SERVICE>`) are found as for every other client in
//! the process.
//!
//! A call ends within its time: an attempt gets five seconds, throttling and the service's own faults are tried again
//! after a jittered pause, and all of it together takes no longer than the caller allows. So a request may be carried out
//! twice; what changes something must be safe to repeat.
//!
//! Bodies of requests and answers reach no error and no log. An error carries the service's message, which names
//! principals and resources.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_config::SdkConfig;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host::Host;
use crate::http::{POOL_IDLE, describe, with_causes};

mod endpoint;
mod error;
#[cfg(test)]
pub(crate) mod tests;

pub use error::Error;

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(3);
/// How long one attempt may take.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How often a call is attempted.
const ATTEMPTS: u32 = 3;
/// The longest pause before the second attempt; it doubles for the next one. The pause itself is random below it.
const PAUSE: Duration = Duration::from_millis(400);
/// How much of an answer is read. The largest that anybody here asks for, a schema of Glue, has 170,000 bytes.
const LARGEST: usize = 4 << 20;

/// A service that speaks AWS's JSON protocol in version 1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// The name in its host and in the scope of signatures, such as `ssm`.
    pub name: &'static str,
    /// The name in `AWS_ENDPOINT_URL_…` and in profiles, as the SDK spells it, such as `SSM`.
    pub id: &'static str,
    /// What stands before the operation in `X-Amz-Target`, such as `AmazonSSM`.
    pub target: &'static str,
}

/// Systems Manager, of which Parameter Store is a part.
pub const SSM: Service = Service { name: "ssm", id: "SSM", target: "AmazonSSM" };
/// Glue, of which the schema registry is a part.
pub const GLUE: Service = Service { name: "glue", id: "Glue", target: "AWSGlue" };

/// Calls operations of one service.
#[derive(Clone)]
pub struct Client {
    service: Service,
    http: reqwest::Client,
    endpoint: url::Url,
    region: String,
    credentials: SharedCredentialsProvider,
    host: Host,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("service", &self.service.name).field("region", &self.region).finish_non_exhaustive()
    }
}

impl Client {
    /// A client of `service` with region, credentials and endpoint of `config`; contacts nothing.
    ///
    /// # Errors
    /// There is no region, no credentials can be had in any way, or the endpoint is not an address.
    pub fn new(config: &SdkConfig, service: Service, host: Host) -> Result<Self, Error> {
        let region = config.region().ok_or(Error::NoRegion { service: service.id })?.to_string();
        let no_credentials = || Error::NoCredentials { service: service.id, detail: "there is no way to get any".to_owned() };
        let credentials = config.credentials_provider().ok_or_else(no_credentials)?;
        let endpoint = endpoint::of(config, service, &region)?;
        let http = reqwest::Client::builder()
            .user_agent(concat!("tablesweep/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .pool_idle_timeout(POOL_IDLE)
            // As the SDK's own clients: what a request passes does not depend on the environment.
            .no_proxy()
            .build()
            .map_err(|error| Error::NoAnswer { service: service.id, detail: describe(&error) })?;
        Ok(Self { service, http, endpoint, region, credentials, host })
    }

    /// The same at this address, whatever the configuration says.
    #[must_use]
    pub fn at(self, endpoint: url::Url) -> Self {
        Self { endpoint, ..self }
    }

    /// Where requests go, for messages.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Calls `operation` with `request`, a JSON object, and gives its answer; ends within `within`.
    ///
    /// # Errors
    /// The service refuses, it does not answer in time, or its answer is none.
    pub async fn call<A: DeserializeOwned>(&self, operation: &str, request: &impl Serialize, within: Duration) -> Result<A, Error> {
        let started = self.host.monotonic();
        let body =
            serde_json::to_vec(request).map(Bytes::from).map_err(|_| self.garbled(operation, "the request cannot be written as JSON"))?;
        let mut attempt = 1;
        loop {
            let left = within.saturating_sub(self.host.monotonic().saturating_sub(started));
            let error = match self.attempt(operation, &body, left.min(ATTEMPT)).await {
                Ok(answer) => {
                    return serde_json::from_slice(&answer).map_err(|_| self.garbled(operation, "the answer is not what it should be"));
                }
                Err(error) => error,
            };
            let pause = self.pause_after(attempt);
            let left = within.saturating_sub(self.host.monotonic().saturating_sub(started));
            if !error.is_transient() || attempt == ATTEMPTS || left <= pause {
                return Err(error);
            }
            tracing::debug!(service = self.service.id, operation, attempt, %error, "a call is tried again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn pause_after(&self, attempt: u32) -> Duration {
        let longest = PAUSE * 2_u32.pow(attempt - 1);
        Duration::from_millis(self.host.jitter(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)))
    }

    fn garbled(&self, operation: &str, what: &'static str) -> Error {
        Error::Garbled { service: self.service.id, operation: operation.to_owned(), what }
    }

    async fn attempt(&self, operation: &str, body: &Bytes, within: Duration) -> Result<Bytes, Error> {
        let silent = || Error::NoAnswer { service: self.service.id, detail: format!("no answer came within {within:?}") };
        tokio::time::timeout(within, self.send(operation, body)).await.map_err(|_| silent())?
    }

    async fn send(&self, operation: &str, body: &Bytes) -> Result<Bytes, Error> {
        let request = self.signed(operation, body).await?;
        let lost = |error: &reqwest::Error| Error::NoAnswer { service: self.service.id, detail: describe(error) };
        let mut answer = self.http.execute(request).await.map_err(|error| lost(&error))?;
        let status = answer.status().as_u16();
        let kind = header(&answer, "x-amzn-errortype");
        let request_id = header(&answer, "x-amzn-requestid");
        let mut read = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| lost(&error))? {
            if read.len() + chunk.len() > LARGEST {
                return Err(self.garbled(operation, "the answer is too large"));
            }
            read.extend_from_slice(&chunk);
        }
        match status {
            200 => Ok(Bytes::from(read)),
            status => Err(error::refusal(self.service.id, operation, status, kind, request_id, &read)),
        }
    }

    /// The request with its signature, made for this attempt: a signature is good for five minutes, credentials may have
    /// been renewed.
    async fn signed(&self, operation: &str, body: &Bytes) -> Result<reqwest::Request, Error> {
        let service = self.service;
        let no_credentials = |detail: String| Error::NoCredentials { service: service.id, detail };
        let credentials = self.credentials.provide_credentials().await.map_err(|error| no_credentials(causes(&error)))?;
        let target = format!("{}.{operation}", service.target);
        let headers = [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target.as_str())];

        let identity = credentials.into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(service.name)
            .time(moment(self.host.now_ms()))
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| Error::Unsigned { service: service.id, detail: error.to_string() })?
            .into();
        let unsigned = |error| Error::Unsigned { service: service.id, detail: causes(&error) };
        let signable =
            SignableRequest::new("POST", self.endpoint.as_str(), headers.iter().copied(), SignableBody::Bytes(body)).map_err(unsigned)?;
        let (signature, _) = sign(signable, &parameters).map_err(unsigned)?.into_parts();

        let request = self.http.post(self.endpoint.clone()).body(body.clone());
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = signature.headers().fold(request, |request, (name, value)| request.header(name, value));
        request.build().map_err(|error| Error::Unsigned { service: service.id, detail: describe(&error) })
    }
}

fn header(answer: &reqwest::Response, name: &str) -> Option<String> {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn moment(now_ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(now_ms).unwrap_or(0))
}

/// An error with its causes, of which the SDK's crates tell the interesting one last.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    with_causes(error.to_string(), error)
}
