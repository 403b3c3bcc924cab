//! The producer that is in use, and when to replace it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use tokio::sync::Mutex;

use super::KafkaOptions;
use super::context::Refused;
use super::error::KafkaError;
use super::iam::Signer;
use super::rotation::Rotation;
use super::session::Session;
use super::settings::Settings;
use crate::host::Host;

/// After so long without use a producer is replaced, in milliseconds. A thawed environment's sockets are gone by then,
/// and its producer would find that out one timeout after the other.
pub(super) const IDLE_MS: i64 = 10 * 60 * 1000;

/// The settings, with the producer that was made from them.
pub(super) struct Connection {
    options: KafkaOptions,
    /// As they were last read.
    settings: SyncMutex<Read>,
    signer: Option<Arc<Signer>>,
    rotation: Option<Arc<dyn Rotation>>,
    current: Mutex<Option<Arc<Session>>>,
    /// Those whose place it takes. Their producers end before it has one.
    before: SyncMutex<Vec<Arc<Connection>>>,
    /// By the wall clock: a monotonic one may stand still while the environment is frozen.
    used_at_ms: AtomicI64,
}

/// Settings as they were given, and what was made of them.
struct Read {
    given: BTreeMap<String, String>,
    settings: Arc<Settings>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("settings", &self.settings()).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(
        given: &BTreeMap<String, String>,
        options: &KafkaOptions,
        rotation: Option<Arc<dyn Rotation>>,
    ) -> Result<Self, KafkaError> {
        let settings = Arc::new(Settings::new(given, options)?);
        let signer = settings.iam_region.clone().map(|region| {
            let provider = options.credentials.clone();
            Arc::new(Signer::new(region, provider, options.host.clone()))
        });
        let settings = SyncMutex::new(Read { given: given.clone(), settings });
        Ok(Self {
            options: options.clone(),
            settings,
            signer,
            rotation,
            current: Mutex::default(),
            before: SyncMutex::default(),
            used_at_ms: AtomicI64::new(0),
        })
    }

    /// The same in the place of others, and of those whose place they took.
    pub(super) fn after(self, others: Vec<Arc<Connection>>) -> Self {
        let all = others.into_iter().flat_map(|other| {
            let mut all = other.take_before();
            all.push(other);
            all
        });
        Self { before: SyncMutex::new(all.collect()), ..self }
    }

    fn take_before(&self) -> Vec<Arc<Connection>> {
        std::mem::take(&mut self.before.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The settings for the next producer.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock().unwrap_or_else(PoisonError::into_inner).settings)
    }

    pub(super) fn host(&self) -> &Host {
        &self.options.host
    }

    /// What makes tokens, of a connection that signs in with an identity of AWS.
    pub(super) fn signer(&self) -> Option<&Signer> {
        self.signer.as_deref()
    }

    /// The producer to use now: the last one, unless it has failed for good or slept too long.
    ///
    /// Before there is a new one, the old one must hold no record any more: of two producers nobody could say whose record with
    /// a key comes first.
    pub(super) async fn session(&self) -> Result<Arc<Session>, KafkaError> {
        if let Some(signer) = &self.signer {
            signer.ready().await?;
        }
        let mut current = self.current.lock().await;
        if let Some(session) = &*current {
            let idle_ms = self.host().now_ms().saturating_sub(self.used_at_ms.load(Ordering::Acquire));
            let slept = (idle_ms > IDLE_MS || session.starved()) && session.idle();
            if session.usable() && !slept {
                self.touch();
                return Ok(session.clone());
            }
            tracing::info!(slept, "the Kafka producer is replaced");
            session.give_up().await;
        }
        for before in self.take_before() {
            before.end().await;
        }
        let session = Arc::new(Session::open(self.settings(), self.host(), self.signer.clone())?);
        *current = Some(session.clone());
        self.touch();
        Ok(session)
    }

    /// A producer beside the one in use, with other settings and the same identity.
    pub(super) fn beside(&self, settings: Arc<Settings>) -> Result<Session, KafkaError> {
        Session::open(settings, self.host(), self.signer.clone())
    }

    /// This producer is refused for who it is, so that the next one is made of what is read now. Says whether that is something
    /// else. The producer itself is left alone.
    pub(super) async fn renew(&self, session: &Session, refused: Refused) -> bool {
        // What signs tokens is no certificate.
        if let Some(signer) = self.signer.as_ref().filter(|_| refused == Refused::Login) {
            return signer.renew(session.access_key()).await;
        }
        let Some(rotation) = &self.rotation else { return false };
        let given = match rotation.renew().await {
            Ok(given) => given,
            Err(failure) => {
                tracing::warn!(
                    code = &*failure.code,
                    ?refused,
                    "the brokers cannot be signed in to, and the secrets cannot be read again: {}",
                    failure.message
                );
                return false;
            }
        };
        let made = Settings::new(&given, &self.options);
        let mut read = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        if given != read.given {
            match made {
                Ok(settings) => *read = Read { given, settings: Arc::new(settings) },
                Err(error) => {
                    tracing::warn!(?refused, "the brokers cannot be signed in to, and what was read again makes no producer: {error}");
                    return false;
                }
            }
        }
        // Another page may have been the first to ask.
        !session.was_made_of(&read.settings)
    }

    /// Ends the producer, and returns when its threads have ended, unless a page is still with it.
    pub(super) async fn close(&self) {
        for before in self.take_before() {
            before.end().await;
        }
        self.end().await;
    }

    async fn end(&self) {
        let Some(session) = self.current.lock().await.take() else { return };
        session.give_up().await;
        if let Some(session) = Arc::into_inner(session) {
            session.end().await;
        }
    }

    /// The producer is in use.
    pub(super) fn touch(&self) {
        self.used_at_ms.store(self.host().now_ms(), Ordering::Release);
    }
}
