//! Signing in to Amazon MSK with an identity of AWS: the role of the function, or whoever runs the command line.
//!
//! librdkafka knows the mechanism as OAUTHBEARER. It asks for a token when a producer is made and when four fifths of a token's
//! life have passed, by a callback on the producer's own thread. A token is signed here without asking anybody
//! ([`token`]), but the credentials to sign with may have to be fetched over the network, by code that is asynchronous. A
//! callback that waited for that code could wait for ever, as the thread that runs it may be waiting for the callback.
//! So the two never meet:
//!
//! ```text
//! before a producer is made and before each page     ready()  --fetches-->  held  <--reads--  token()     on librdkafka's thread
//! ```
//!
//! [`Signer::ready`] sees to it that what is held outlives the next minutes, with a limit on how long that may take, and it is the
//! only one that can fail for want of credentials, where an error has a table to belong to. [`Signer::token`] signs with what is
//! held, or says why it cannot. No thread runs beside them: a frozen environment needs no fresh credentials, and one that is
//! thawed asks for them before its first page.
//!
//! A token is valid for 15 minutes, but never longer than the credentials that signed it, and librdkafka is told the lesser of
//! the two. It would otherwise go on using a token that the brokers refuse.

mod grant;
mod token;

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use rdkafka::client::{Client, ClientContext, OAuthToken};
use tokio::sync::OnceCell;

use super::error::KafkaError;
use crate::host::Host;

/// Credentials that end within this time are fetched anew. A token made of them would be good for less than a page and its
/// retries need, and whoever issues credentials has new ones by then (an instance's role: five minutes before).
const AHEAD: Duration = Duration::from_secs(5 * 60);

/// After a fetch that brought nothing that lasts, the next one, as long as what is held is still good.
const PAUSE: Duration = Duration::from_secs(30);

/// How long a fetch may take. The SDK alone would wait longer for an endpoint that does not answer than a sweep has time for.
const FETCH: Duration = Duration::from_secs(5);

/// What makes tokens.
pub(super) struct Signer {
    region: String,
    host: Host,
    provider: Option<SharedCredentialsProvider>,
    /// The process's own way to credentials, once it was asked for.
    own: OnceCell<SdkConfig>,
    held: Mutex<Held>,
    /// One fetch at a time.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Held {
    credentials: Option<Credentials>,
    /// When they were last fetched, or that was tried; by the wall clock, in milliseconds.
    tried_at_ms: Option<i64>,
    /// Why the last fetch brought none.
    reason: String,
    /// When they were last fetched because the brokers refused what they had signed.
    renewed_at_ms: Option<i64>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("region", &self.region).finish_non_exhaustive()
    }
}

impl Signer {
    /// Signs for clusters in `region`, with credentials of `provider` or else of the process's own surroundings.
    pub(super) fn new(region: String, provider: Option<SharedCredentialsProvider>, host: Host) -> Self {
        let (own, held, fetching) = (OnceCell::new(), Mutex::default(), tokio::sync::Mutex::default());
        Self { region, host, provider, own, held, fetching }
    }

    /// Returns when credentials are held that last for a while.
    ///
    /// # Errors
    /// `Sink.Credentials`: there are none, and none could be had in time.
    pub(super) async fn ready(&self) -> Result<(), KafkaError> {
        if self.lasts() {
            return Ok(());
        }
        let asked_at_ms = self.host.now_ms();
        let _one = self.fetching.lock().await;
        if self.lasts() {
            return Ok(());
        }
        // Twenty tables that start together wait for one source of credentials that does not answer, and not for twenty in turn.
        if let Some(reason) = self.failed_since(asked_at_ms) {
            return Err(KafkaError::Credentials { reason });
        }
        let fetched = self.fetch().await;
        let now_ms = self.host.now_ms();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.tried_at_ms = Some(now_ms);
        let reason = match fetched {
            Ok(fetched) if ends_at_ms(&fetched).is_none_or(|end| end > now_ms) => {
                held.credentials = Some(fetched);
                return Ok(());
            }
            Ok(_) => "the ones that are there have expired".to_owned(),
            Err(reason) => reason,
        };
        if held.credentials.as_ref().and_then(ends_at_ms).is_some_and(|end| end > now_ms) {
            tracing::warn!(reason, "the AWS credentials that sign in to the brokers end soon and could not be fetched anew");
            return Ok(());
        }
        held.credentials = None;
        held.reason.clone_from(&reason);
        Err(KafkaError::Credentials { reason })
    }

    /// Why the last fetch brought nothing, if it ended after this moment and nothing is held.
    fn failed_since(&self, moment_ms: i64) -> Option<String> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = held.credentials.is_none() && held.tried_at_ms.is_some_and(|tried| tried > moment_ms);
        failed.then(|| held.reason.clone())
    }

    /// The access key that signs now.
    pub(super) fn access_key(&self) -> Option<String> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.credentials.as_ref().map(|credentials| credentials.access_key_id().to_owned())
    }

    /// The brokers refuse what this access key has signed: fetches credentials anew, and says whether they are others now. Some end
    /// without having said when. However many tables were refused, the source is asked once in half a minute.
    pub(super) async fn renew(&self, refused: Option<&str>) -> bool {
        let _one = self.fetching.lock().await;
        let now_ms = self.host.now_ms();
        let renewed_at_ms = self.held.lock().unwrap_or_else(PoisonError::into_inner).renewed_at_ms;
        if !renewed_at_ms.is_some_and(|at| (0..ms(PAUSE)).contains(&now_ms.saturating_sub(at))) {
            let fetched = self.fetch().await;
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.renewed_at_ms = Some(now_ms);
            if let Ok(fetched) = fetched {
                held.credentials = Some(fetched);
            }
        }
        self.access_key().as_deref() != refused
    }

    /// A token, for librdkafka's thread: nothing is waited for.
    pub(super) fn token(&self) -> Result<OAuthToken, String> {
        let credentials = self.held.lock().unwrap_or_else(PoisonError::into_inner).credentials.clone();
        let now_ms = self.host.now_ms();
        match credentials {
            None => Err("there are no AWS credentials to sign with yet".to_owned()),
            Some(credentials) => match ends_at_ms(&credentials) {
                Some(end) if end <= now_ms => Err(format!("the AWS credentials ended {} s ago", (now_ms - end) / 1000)),
                end => token::sign(credentials, &self.region, now_ms, end),
            },
        }
    }

    /// Signs in a client that cannot ask for a token and does not live long enough for a second.
    ///
    /// # Errors
    /// `Sink.Credentials`: there is nothing to sign with, or librdkafka does not take what was signed.
    pub(super) async fn sign_in<C: ClientContext>(&self, client: &Client<C>) -> Result<(), KafkaError> {
        self.ready().await?;
        let granted = self.token().and_then(|token| grant::grant(client, token));
        granted.map_err(|reason| KafkaError::Credentials { reason })
    }

    /// Whether nothing has to be fetched now.
    fn lasts(&self) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(credentials) = &held.credentials else { return false };
        let now_ms = self.host.now_ms();
        let left = ends_at_ms(credentials).map_or(i64::MAX, |end| end.saturating_sub(now_ms));
        let paused = held.tried_at_ms.is_some_and(|tried| (0..ms(PAUSE)).contains(&now_ms.saturating_sub(tried)));
        left > ms(AHEAD) || (left > 0 && paused)
    }

    async fn fetch(&self) -> Result<Credentials, String> {
        match tokio::time::timeout(FETCH, self.fetch_unbounded()).await {
            Ok(fetched) => fetched,
            Err(_) => Err(format!("no answer came within {} s", FETCH.as_secs())),
        }
    }

    async fn fetch_unbounded(&self) -> Result<Credentials, String> {
        let provider = match &self.provider {
            Some(provider) => provider.clone(),
            None => {
                let own = self.own.get_or_init(|| Box::pin(aws_config::load_from_env())).await;
                own.credentials_provider().ok_or("the surroundings of the process name no source of credentials")?
            }
        };
        provider.provide_credentials().await.map_err(|error| told(&error))
    }
}

/// An error with its causes: the outermost says only that something went wrong.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// When credentials end, in milliseconds since the epoch; `None` of those that do not say so. Those of a function do not: they
/// come from its environment, which Lambda ends before them.
fn ends_at_ms(credentials: &Credentials) -> Option<i64> {
    let end = credentials.expiry()?;
    Some(end.duration_since(UNIX_EPOCH).map_or(0, ms))
}

/// The region in the brokers' names, if it is there.
///
/// Names of MSK are `b-1.NAME.ID.cNN.kafka.REGION.amazonaws.com` and `boot-ID.cNN.kafka-serverless.REGION.amazonaws.com`.
pub(super) fn region(brokers: &str) -> Option<String> {
    brokers.split(',').find_map(|broker| {
        let labels: Vec<&str> = broker.trim().split(':').next().unwrap_or_default().split('.').collect();
        // The last: a cluster may be called `kafka`.
        let at = labels.iter().rposition(|label| ["kafka", "kafka-serverless"].contains(label))?;
        let region = labels.get(at + 1).filter(|region| !region.is_empty())?;
        (labels.get(at + 2) == Some(&"amazonaws")).then(|| (*region).to_owned())
    })
}

#[cfg(test)]
mod tests;
