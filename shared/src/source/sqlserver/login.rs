//! The login of a server, shared by the tables of a connector.
//!
//! A refused login is never sent again as it was: a few dozen of them lock an account. So one login at a time is sent until
//! one was accepted; the tables that start together wait for it. A refusal reads the secret again, in case it was rotated,
//! and that one is tried once. If it is refused too, every table is told so without asking the server.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{Mutex, MutexGuard};

use super::error::Error;
use crate::failure::Failure;
use crate::host::Host;

/// An accepted login vouches for others this long. A tick later the first one goes alone again.
const ACCEPTED_FOR: Duration = Duration::from_secs(10);

/// A refused login counts for the tables of a run and no longer: when an invocation may try again is kept in the cursor
/// store, and a warm process must then really try.
const REFUSED_FOR: Duration = Duration::from_secs(30);

/// Who signs in.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The login.
    pub user: String,
    /// Its password.
    pub password: SecretString,
}

impl Credential {
    fn is(&self, other: &Self) -> bool {
        self.user == other.user && self.password.expose_secret() == other.password.expose_secret()
    }
}

/// Reads credentials again, in case they were rotated.
#[async_trait]
pub trait Rotation: Send + Sync {
    /// The credential as it is now; `None` if it is the same as before.
    ///
    /// # Errors
    /// A failure if it cannot be read.
    async fn renew(&self) -> Result<Option<Credential>, Failure>;
}

/// What is known of a login.
pub(super) struct Login {
    host: Host,
    rotation: Arc<dyn Rotation>,
    state: Mutex<State>,
}

struct State {
    credential: Credential,
    /// Counts the credentials; tells a refused one from its successor.
    generation: u64,
    verdict: Verdict,
}

#[derive(Clone)]
enum Verdict {
    Unknown,
    Accepted { at: Duration },
    Refused { at: Duration, error: Error },
}

/// The right to send a login now.
pub(super) struct Turn<'a> {
    pub(super) credential: Credential,
    generation: u64,
    /// Held while nobody knows whether the login is good.
    alone: Option<MutexGuard<'a, State>>,
}

impl Login {
    pub(super) fn new(host: Host, credential: Credential, rotation: Arc<dyn Rotation>) -> Self {
        Self { host, rotation, state: Mutex::new(State { credential, generation: 0, verdict: Verdict::Unknown }) }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// The login was refused a moment ago.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Error> {
        let state = self.state.lock().await;
        let since = |at: Duration| self.host.monotonic().saturating_sub(at);
        let is_known = match &state.verdict {
            Verdict::Refused { at, error } if since(*at) < REFUSED_FOR => return Err(error.clone()),
            Verdict::Accepted { at } => since(*at) < ACCEPTED_FOR,
            Verdict::Refused { .. } | Verdict::Unknown => false,
        };
        let (credential, generation) = (state.credential.clone(), state.generation);
        Ok(Turn { credential, generation, alone: (!is_known).then_some(state) })
    }

    /// The login was accepted.
    pub(super) async fn accepted(&self, turn: Turn<'_>) {
        let verdict = Verdict::Accepted { at: self.host.monotonic() };
        let mut state = match turn.alone {
            Some(state) => state,
            None => self.state.lock().await,
        };
        if state.generation == turn.generation {
            state.verdict = verdict;
        }
    }

    /// The login was refused with `error`. The turn of the credential that is to be tried instead, if there is one.
    ///
    /// # Errors
    /// There is none: `error`.
    pub(super) async fn refused<'a>(&'a self, turn: Turn<'a>, error: Error) -> Result<Turn<'a>, Error> {
        let mut state = match turn.alone {
            Some(state) => state,
            None => self.state.lock().await,
        };
        if state.generation != turn.generation {
            // Somebody has read it again meanwhile.
            drop(state);
            return Box::pin(self.turn()).await;
        }
        match self.rotation.renew().await {
            Ok(Some(renewed)) if !renewed.is(&state.credential) => {
                state.credential = renewed;
                state.generation += 1;
                state.verdict = Verdict::Unknown;
                Ok(Turn { credential: state.credential.clone(), generation: state.generation, alone: Some(state) })
            }
            Ok(_) => Err(state.refuse(self.host.monotonic(), error)),
            Err(failure) => {
                tracing::warn!(code = &*failure.code, reason = failure.message, "the refused login could not be read again");
                Err(state.refuse(self.host.monotonic(), error))
            }
        }
    }
}

impl State {
    fn refuse(&mut self, at: Duration, error: Error) -> Error {
        self.verdict = Verdict::Refused { at, error: error.clone() };
        error
    }
}
