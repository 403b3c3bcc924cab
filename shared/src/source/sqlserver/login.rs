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
use tokio::time::timeout;

use super::error::{Error, Stage};
use super::limit::Limit;
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
    pub(super) fn accepted(&self, turn: Turn<'_>) {
        // Whoever has it now is finding out by itself, and is not waited for.
        let Some(mut state) = turn.alone.or_else(|| self.state.try_lock().ok()) else { return };
        if state.generation == turn.generation {
            state.verdict = Verdict::Accepted { at: self.host.monotonic() };
        }
    }

    /// The login was refused with `error`. The turn of the credential that is to be tried instead, if there is one within `limit`.
    ///
    /// # Errors
    /// There is none: `error`. Or others had the login for so long that nothing was found out.
    pub(super) async fn refused<'a>(&'a self, turn: Turn<'a>, error: Error, limit: Limit) -> Result<Turn<'a>, Error> {
        let mut state = match turn.alone {
            Some(state) => state,
            None => limit.bound(&self.host, Stage::Login, self.state.lock()).await?,
        };
        if state.generation != turn.generation {
            // Somebody has read it again meanwhile.
            drop(state);
            return limit.bound(&self.host, Stage::Login, self.turn()).await?;
        }
        let reason = match timeout(limit.left(&self.host), self.rotation.renew()).await {
            Ok(Ok(Some(renewed))) if !renewed.is(&state.credential) => {
                state.credential = renewed;
                state.generation += 1;
                state.verdict = Verdict::Unknown;
                return Ok(Turn { credential: state.credential.clone(), generation: state.generation, alone: Some(state) });
            }
            Ok(Ok(_)) => None,
            Ok(Err(failure)) => Some(format!("{}: {}", failure.code, failure.message)),
            Err(_) => Some("no answer in the time of a login".to_owned()),
        };
        if let Some(reason) = reason {
            tracing::warn!(reason, "the refused login could not be read again");
        }
        // Kept whatever the reason, or the next table would send it again.
        state.verdict = Verdict::Refused { at: self.host.monotonic(), error: error.clone() };
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::Said;
    use super::*;
    use crate::sweep::{Allowance, ByteBudget};

    /// Secrets that nobody answers with.
    struct Silent;

    #[async_trait]
    impl Rotation for Silent {
        async fn renew(&self) -> Result<Option<Credential>, Failure> {
            std::future::pending().await
        }
    }

    fn login() -> Login {
        let credential = Credential { user: "sweep".to_owned(), password: SecretString::from("pw") };
        Login::new(Host::system(), credential, Arc::new(Silent))
    }

    fn refused() -> Error {
        let said = Said { number: 18456, state: 1, class: 14, message: "Login failed".to_owned() };
        Error::LoginRefused { stage: Stage::Login, said }
    }

    fn limit(login: &Login, own: Duration) -> Limit {
        Limit::new(&Allowance::new(login.host.clone(), None, ByteBudget::of_memory(1 << 20)), own)
    }

    #[tokio::test]
    async fn a_secret_that_does_not_come_holds_a_refused_login_no_longer_than_the_login_may_take() {
        let login = login();
        let turn = login.turn().await.expect("nothing is known yet");
        let told = login.refused(turn, refused(), limit(&login, Duration::from_millis(50)));
        let told = timeout(Duration::from_secs(5), told).await.expect("in time");
        assert_eq!(told.err(), Some(refused()), "it is the refusal that counts");
        let next = timeout(Duration::from_secs(5), login.turn()).await.expect("nobody holds it");
        assert_eq!(next.err(), Some(refused()), "and it is not sent again");
    }

    #[tokio::test]
    async fn a_login_that_another_table_is_trying_is_waited_for_no_longer_than_a_login_may_take() {
        let login = login();
        login.accepted(login.turn().await.expect("nothing is known yet"));
        let (refused_turn, accepted_turn) = (login.turn().await.expect("good"), login.turn().await.expect("good"));
        let held = login.state.lock().await;
        login.accepted(accepted_turn);
        let told = login.refused(refused_turn, refused(), limit(&login, Duration::from_millis(50)));
        let told = timeout(Duration::from_secs(5), told).await.expect("in time");
        assert!(matches!(told.err(), Some(Error::TimedOut { stage: Stage::Login, .. })), "nothing was found out");
        drop(held);
    }
}
