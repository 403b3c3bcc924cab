//! Signing in: what a request carries, and what happens when it is refused.
//!
//! A refused login is never repeated as it was: that is how accounts get locked. On a 401 the credential is renewed once: a
//! token is fetched anew, a secret is read again in case it was rotated. If that changes nothing, or the second try is
//! refused too, the login counts as refused for every table of the run, and nothing more is sent.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::answer::ErrorBody;
use super::error::Error;
use super::keys::{Auth, OauthClient};
use crate::failure::Failure;
use crate::host::Host;

/// A token is not used any more this long before it expires.
const EARLY: Duration = Duration::from_secs(30);

/// A refused login counts for all tables of a run and no longer: when an invocation may try again is kept in the cursor
/// store, and a warm process must then really try.
const REFUSED_FOR: Duration = Duration::from_secs(30);

/// The lifetime of a token whose answer names none: the instance's own default.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(1800);

/// Reads credentials again, in case they were rotated.
#[async_trait]
pub trait Rotation: Send + Sync {
    /// The credentials as they are now; `None` if they are the same as before.
    ///
    /// # Errors
    /// A failure if they cannot be read.
    async fn renew(&self) -> Result<Option<Auth>, Failure>;
}

/// Credentials that never change.
#[derive(Debug)]
pub struct NoRotation;

#[async_trait]
impl Rotation for NoRotation {
    async fn renew(&self) -> Result<Option<Auth>, Failure> {
        Ok(None)
    }
}

/// What a request carries.
#[derive(Debug, Clone)]
pub(super) enum Credential {
    Basic { username: String, password: SecretString },
    Bearer { token: SecretString },
}

impl Credential {
    pub(super) fn apply(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        match self {
            Self::Basic { username, password } => request.basic_auth(username, Some(password.expose_secret())),
            Self::Bearer { token } => request.bearer_auth(token.expose_secret()),
        }
    }
}

/// The login of one instance, shared by its tables.
pub(super) struct Login {
    host: Host,
    http: reqwest::Client,
    rotation: Arc<dyn Rotation>,
    // Held across the fetch of a token, so that tables that start together fetch one.
    state: Mutex<State>,
}

struct State {
    auth: Auth,
    /// Counts the credentials handed out; tells a refused one from its successor.
    generation: u64,
    token: Option<Token>,
    /// Why the login is refused, and the monotonic moment until which that counts.
    refused: Option<(Error, Duration)>,
}

struct Token {
    text: SecretString,
    /// The monotonic moment from which on a new one is fetched.
    until: Duration,
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(deserialize_with = "secret")]
    access_token: SecretString,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
}

fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

/// Lifetimes come as numbers and as texts.
fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(u64),
        Text(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Option::<Either>::deserialize(deserializer)? {
        Some(Either::Number(seconds)) => Some(seconds),
        Some(Either::Text(text)) => text.trim().parse().ok(),
        Some(Either::Other(_)) | None => None,
    })
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

impl Login {
    pub(super) fn new(host: Host, http: reqwest::Client, auth: Auth, rotation: Arc<dyn Rotation>) -> Self {
        Self { host, http, rotation, state: Mutex::new(State { auth, generation: 1, token: None, refused: None }) }
    }

    /// The credential to use now, and its generation. `timeout`: the most that fetching a token may take.
    ///
    /// # Errors
    /// The login was refused before, or no token is to be had.
    pub(super) async fn credential(&self, timeout: Duration) -> Result<(Credential, u64), Error> {
        let mut state = self.state.lock().await;
        if let Some((refused, until)) = &state.refused {
            if self.host.monotonic() < *until {
                return Err(refused.clone());
            }
            state.refused = None;
        }
        let client = match &state.auth {
            Auth::Basic { username, password } => {
                return Ok((Credential::Basic { username: username.clone(), password: password.clone() }, state.generation));
            }
            Auth::ClientCredentials { client } => client.clone(),
            Auth::PasswordGrant { client, .. } => {
                let detail = "the grant `password` is not built yet".to_owned();
                return Err(Error::NoToken { url: client.token_url.to_string(), detail, transient: false });
            }
        };
        if let Some(token) = &state.token
            && self.host.monotonic() < token.until
        {
            return Ok((Credential::Bearer { token: token.text.clone() }, state.generation));
        }
        let fetched = self.fetch_token(&client, timeout).await;
        if let Err(error @ Error::NoToken { transient: false, .. }) = &fetched {
            state.refused = Some(self.refusal(error));
        }
        let token = fetched?;
        let credential = Credential::Bearer { token: token.text.clone() };
        state.token = Some(token);
        state.generation += 1;
        Ok((credential, state.generation))
    }

    /// The instance refused the credential of `generation`. Says whether there is another one to try.
    ///
    /// # Errors
    /// There is none: the refusal is final for this process until the credential changes.
    pub(super) async fn refused(&self, generation: u64, refusal: Error) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        if state.generation != generation {
            // Somebody has renewed it meanwhile.
            return Ok(());
        }
        let had_token = state.token.take().is_some();
        let renewed = match self.rotation.renew().await {
            Ok(renewed) => renewed,
            Err(failure) => {
                tracing::warn!(%failure, "the credentials could not be read again after a 401");
                None
            }
        };
        if renewed.is_none() && !had_token {
            state.refused = Some(self.refusal(&refusal));
            return Err(refusal);
        }
        if let Some(auth) = renewed {
            state.auth = auth;
        }
        state.generation += 1;
        Ok(())
    }

    /// The renewed credential was refused too.
    pub(super) async fn refused_again(&self, refusal: &Error) {
        self.state.lock().await.refused = Some(self.refusal(refusal));
    }

    fn refusal(&self, error: &Error) -> (Error, Duration) {
        (error.clone(), self.host.monotonic().saturating_add(REFUSED_FOR))
    }

    async fn fetch_token(&self, client: &OauthClient, timeout: Duration) -> Result<Token, Error> {
        let url = client.token_url.to_string();
        let failed = |detail: String, transient: bool| Error::NoToken { url: url.clone(), detail, transient };
        let mut form =
            vec![("grant_type", "client_credentials"), ("client_id", client.id.as_str()), ("client_secret", client.secret.expose_secret())];
        if let Some(scope) = &client.scope {
            form.push(("scope", scope));
        }
        let sent = self.http.post(client.token_url.clone()).form(&form).timeout(timeout).send().await;
        let answer = sent.map_err(|error| failed(super::http::describe(&error), true))?;
        let status = answer.status();
        let body = answer.bytes().await.map_err(|error| failed(super::http::describe(&error), true))?;
        if !status.is_success() {
            let detail = format!("{}: {}", status.as_u16(), ErrorBody::find(&body).text());
            let transient = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
            return Err(failed(detail, transient));
        }
        let token: TokenAnswer = serde_json::from_slice(&body).map_err(|_| failed("the answer holds no access_token".to_owned(), true))?;
        // The instance hands out its current token, so what is left of its life may be short; half of it is used at the least.
        let life = token.expires_in.map_or(DEFAULT_LIFETIME, Duration::from_secs);
        Ok(Token { text: token.access_token, until: self.host.monotonic() + life.saturating_sub(EARLY.min(life / 2)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ManualClock;

    #[tokio::test]
    async fn a_refused_login_is_not_repeated_in_a_run_and_tried_again_by_a_later_one_of_a_warm_process() {
        let clock = ManualClock::at(0);
        let auth = Auth::Basic { username: "u".to_owned(), password: SecretString::from("p") };
        let login = Login::new(Host::with_clock(clock.clone()), reqwest::Client::new(), auth, Arc::new(NoRotation));
        let second = Duration::from_secs(1);
        let (_, generation) = login.credential(second).await.expect("not refused yet");
        let refusal = Error::Unauthorized { detail: "no".to_owned() };
        assert_eq!(login.refused(generation, refusal.clone()).await, Err(refusal.clone()), "the same password is not tried twice");
        assert_eq!(login.credential(second).await.err(), Some(refusal));
        clock.advance(REFUSED_FOR);
        assert!(login.credential(second).await.is_ok());
    }
}
