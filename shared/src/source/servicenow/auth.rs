//! Signing in: what a request carries, and what happens when it is refused.
//!
//! A refused login is never repeated as it was: that is how accounts get locked. Three rules follow.
//!
//! * A credential is renewed once: after a 401 a token is fetched anew and secrets are read again, in case they were
//!   rotated. If that changes nothing, or the second try is refused too, the login counts as refused for every table of
//!   the run, and nothing more is sent. When an invocation may try again is kept in the cursor store, for the instance.
//! * A password that the instance has not just accepted is tried by one request at a time. Without this rule twenty
//!   tables that start together would be as many wrong logins before the first answer.
//! * A token is fetched once for all tables of the process, and whoever waited for a fetch that failed shares its failure.
//!
//! ```text
//! auth        Login: the state of the above      token      the token endpoint
//! assertion   the JWT of the grant jwt_bearer
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::error::Error;
use super::keys::{Auth, Grant};
use super::transport::Transport;
use crate::failure::Failure;
use crate::host::Host;

mod assertion;
mod token;

pub use assertion::SigningKey;
pub(super) use token::NoToken;

/// A token is not used any more this long before it expires.
const EARLY: Duration = Duration::from_secs(30);

/// A token is used at least this long. The instance hands out its current token with what is left of its life, which
/// may be nothing: without a floor every request would fetch one of its own.
const FLOOR: Duration = Duration::from_secs(1);

/// A refused login counts for all tables of a run and no longer: when an invocation may try again is kept in the cursor
/// store, and a warm process must then really try.
const REFUSED_FOR: Duration = Duration::from_secs(30);

/// For this long an accepted password is used side by side; after that the next request tries it alone.
const ACCEPTED_FOR: Duration = Duration::from_secs(30);

/// How long requests wait for the one that tries the password. A refusal comes at once; what takes longer is a query
/// that runs, and a slow table must not hold up the others.
const TRIAL: Duration = Duration::from_secs(3);

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
    Basic {
        username: String,
        password: SecretString,
    },
    ApiKey {
        key: SecretString,
    },
    /// Nothing: the connection itself shows a certificate.
    Certificate,
    Bearer {
        token: SecretString,
    },
}

impl Credential {
    /// Adds it to a request. A header's value is marked as sensitive, so that nothing prints it.
    pub(super) fn apply(&self, request: reqwest::RequestBuilder) -> Result<reqwest::RequestBuilder, InvalidHeaderValue> {
        Ok(match self {
            Self::Basic { username, password } => request.basic_auth(username, Some(password.expose_secret())),
            Self::Bearer { token } => request.bearer_auth(token.expose_secret()),
            Self::ApiKey { key } => {
                let mut value = HeaderValue::from_str(key.expose_secret())?;
                value.set_sensitive(true);
                request.header("x-sn-apikey", value)
            }
            Self::Certificate => request,
        })
    }

    /// What to check when the instance refuses it.
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::Basic { .. } => {
                "Check snow.auth.username and snow.auth.password and their placeholders; an account that is locked, or that must use SSO or MFA, is \
                 refused in the same way"
            }
            Self::ApiKey { .. } => {
                "Check snow.auth.api.key and its placeholder, that the key is active and has a user, and that a REST API access policy admits API \
                 keys to the Table API"
            }
            Self::Certificate => {
                "Check that mutual authentication is on at the instance's address, and that the certificate in snow.tls.keystore.path is mapped to an \
                 active user there"
            }
            Self::Bearer { .. } => {
                "The token was given and is not accepted: check that its user is active and that the OAuth application's scope includes the Table API"
            }
        }
    }

    /// The text without the credential, should the instance repeat it.
    pub(super) fn redacted(&self, text: &str) -> String {
        match self {
            Self::Basic { password: secret, .. } | Self::ApiKey { key: secret } | Self::Bearer { token: secret }
                if !secret.expose_secret().is_empty() =>
            {
                text.replace(secret.expose_secret(), "[secret]")
            }
            _ => text.to_owned(),
        }
    }
}

/// A credential on its way, as one request has it.
pub(super) struct SignIn {
    pub(super) credential: Credential,
    generation: u64,
    /// Held while nobody else may try the same password.
    trial: Option<OwnedMutexGuard<()>>,
}

/// A moment by both clocks. The monotonic one stands still while a function is frozen, and the wall clock may be set:
/// what has passed by either has passed.
#[derive(Debug, Clone, Copy)]
struct Moment {
    monotonic: Duration,
    wall_ms: i64,
}

impl Moment {
    fn now(host: &Host) -> Self {
        Self { monotonic: host.monotonic(), wall_ms: host.now_ms() }
    }

    fn passed(self, host: &Host) -> Duration {
        let wall = u64::try_from(host.now_ms().saturating_sub(self.wall_ms)).map_or(Duration::ZERO, Duration::from_millis);
        host.monotonic().saturating_sub(self.monotonic).max(wall)
    }
}

/// The login of one instance, shared by its tables.
pub(super) struct Login {
    host: Host,
    transport: Transport,
    rotation: Arc<dyn Rotation>,
    // Held across the fetch of a token, so that tables that start together fetch one.
    state: Mutex<State>,
    /// Fetches of tokens that have ended.
    fetches: AtomicU64,
    trial: Arc<Mutex<()>>,
    /// The last generation that was accepted, and when last.
    accepted: StdMutex<Option<(u64, Moment)>>,
}

struct State {
    auth: Auth,
    /// Counts the credentials handed out; tells a refused one from its successor.
    generation: u64,
    token: Option<Token>,
    /// The refresh token that the instance gave in exchange for the configured one.
    refresh: Option<SecretString>,
    /// The failure of the last fetch of a token.
    failed: Option<Error>,
    /// Why the login is refused, and since when.
    refused: Option<(Error, Moment)>,
}

struct Token {
    text: SecretString,
    since: Moment,
    /// For how long it is used.
    usable: Duration,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

impl Login {
    pub(super) fn new(host: Host, transport: Transport, auth: Auth, rotation: Arc<dyn Rotation>) -> Self {
        let state = State { auth, generation: 1, token: None, refresh: None, failed: None, refused: None };
        Self {
            host,
            transport,
            rotation,
            state: Mutex::new(state),
            fetches: AtomicU64::new(0),
            trial: Arc::default(),
            accepted: StdMutex::default(),
        }
    }

    /// The credential to use now. `timeout` tells the most that fetching a token may take, when it is known that one
    /// must be fetched.
    ///
    /// # Errors
    /// The login was refused before, or no token is to be had. [`Error::BudgetSpent`] if there is no time to fetch one.
    pub(super) async fn credential(&self, timeout: impl Fn() -> Duration) -> Result<SignIn, Error> {
        let sign_in = self.current(&timeout).await?;
        if self.is_accepted(&sign_in) {
            return Ok(sign_in);
        }
        let Ok(trial) = tokio::time::timeout(TRIAL, Arc::clone(&self.trial).lock_owned()).await else {
            // Asked for anew: the one that tries may have been refused and be reading the secrets again.
            return self.current(&timeout).await;
        };
        // Whoever tried meanwhile may have learnt something.
        let sign_in = self.current(&timeout).await?;
        let trial = (!self.is_accepted(&sign_in)).then_some(trial);
        Ok(SignIn { trial, ..sign_in })
    }

    /// The instance took the credential.
    pub(super) fn accepted(&self, sign_in: &mut SignIn) {
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some((sign_in.generation, Moment::now(&self.host)));
        sign_in.trial = None;
    }

    /// Whether the credential may be used side by side. Only passwords get accounts locked.
    fn is_accepted(&self, sign_in: &SignIn) -> bool {
        let accepted = *self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let recently = |(generation, since): (u64, Moment)| generation == sign_in.generation && since.passed(&self.host) < ACCEPTED_FOR;
        !matches!(sign_in.credential, Credential::Basic { .. }) || accepted.is_some_and(recently)
    }

    async fn current(&self, timeout: &impl Fn() -> Duration) -> Result<SignIn, Error> {
        let fetches = self.fetches.load(Ordering::SeqCst);
        let mut state = self.state.lock().await;
        if let Some((refused, since)) = &state.refused {
            if since.passed(&self.host) < REFUSED_FOR {
                return Err(refused.clone());
            }
            state.refused = None;
        }
        let credential = match &state.auth {
            Auth::Basic { username, password } => Credential::Basic { username: username.clone(), password: password.clone() },
            Auth::ApiKey { key } => Credential::ApiKey { key: key.clone() },
            Auth::Certificate => Credential::Certificate,
            Auth::Oauth(_) => {
                let shared = state.failed.clone().filter(|_| self.fetches.load(Ordering::SeqCst) > fetches);
                let token = match (state.token.as_ref().filter(|token| token.since.passed(&self.host) < token.usable), shared) {
                    (Some(token), _) => token.text.clone(),
                    (None, Some(failed)) => return Err(failed),
                    (None, None) => self.fetch(&mut state, timeout).await?,
                };
                Credential::Bearer { token }
            }
        };
        Ok(SignIn { credential, generation: state.generation, trial: None })
    }

    /// Fetches a token; once more with renewed secrets if the first ones are refused.
    async fn fetch(&self, state: &mut State, timeout: &impl Fn() -> Duration) -> Result<SecretString, Error> {
        let mut fetched = self.exchange(state, timeout).await;
        if fetched.as_ref().is_err_and(Error::is_refusal) && self.renew(state).await {
            fetched = self.exchange(state, timeout).await;
        }
        if let Err(refusal) = &fetched
            && refusal.is_refusal()
        {
            state.refused = Some((refusal.clone(), Moment::now(&self.host)));
        }
        state.failed = fetched.as_ref().err().cloned();
        self.fetches.fetch_add(1, Ordering::SeqCst);
        fetched
    }

    async fn exchange(&self, state: &mut State, timeout: &impl Fn() -> Duration) -> Result<SecretString, Error> {
        let Auth::Oauth(oauth) = &state.auth else {
            let detail = "a placeholder changed how to sign in while this process ran".to_owned();
            return Err(Error::Unauthorized { detail, advice: "The next sweep takes it" });
        };
        let timeout = timeout();
        if timeout.is_zero() {
            return Err(Error::BudgetSpent);
        }
        let since = Moment::now(&self.host);
        let given = token::exchange(&self.transport, oauth, state.refresh.as_ref(), &self.host, timeout).await?;
        if matches!(oauth.grant, Grant::RefreshToken { .. })
            && let Some(successor) = given.refresh
        {
            if state.refresh.is_none() {
                tracing::warn!(
                    "the instance gave another refresh token in exchange; this process uses it from now on, and the next one starts with \
                     snow.oauth.refresh.token again. If the instance ends the old one, choose the grant client_credentials or jwt_bearer"
                );
            }
            state.refresh = Some(successor);
        }
        let usable = given.life.saturating_sub(EARLY.min(given.life / 2)).max(FLOOR);
        state.token = Some(Token { text: given.token.clone(), since, usable });
        state.generation += 1;
        Ok(given.token)
    }

    /// Reads the secrets again, and gives up a refresh token that took the configured one's place. Says whether there
    /// is anything else to try now.
    async fn renew(&self, state: &mut State) -> bool {
        let had_successor = state.refresh.take().is_some();
        match self.rotation.renew().await {
            Ok(Some(auth)) => {
                state.auth = auth;
                state.generation += 1;
                true
            }
            Ok(None) => had_successor,
            Err(failure) => {
                tracing::warn!(%failure, "the credentials could not be read again after they were refused");
                had_successor
            }
        }
    }

    /// The instance refused a credential: renews it, if there is another one to try.
    ///
    /// # Errors
    /// There is none: the refusal is final for this run.
    pub(super) async fn refused(&self, sign_in: SignIn, refusal: Error) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        if state.generation != sign_in.generation {
            // Somebody has renewed it meanwhile.
            return Ok(());
        }
        // A refresh token is not to blame for the access token that it gave, so its successor stays.
        let successor = state.refresh.take();
        let had_token = state.token.take().is_some();
        let is_renewed = self.renew(&mut state).await;
        if !is_renewed {
            state.refresh = successor;
        }
        if is_renewed || had_token {
            return Ok(());
        }
        state.refused = Some((refusal.clone(), Moment::now(&self.host)));
        Err(refusal)
    }

    /// The renewed credential was refused too.
    pub(super) async fn refused_again(&self, sign_in: SignIn, refusal: &Error) {
        let mut state = self.state.lock().await;
        if state.generation == sign_in.generation {
            state.refused = Some((refusal.clone(), Moment::now(&self.host)));
        }
    }
}

#[cfg(test)]
mod tests;
