//! The producer that is in use, and when to replace it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::sync::Mutex;

use super::error::KafkaError;
use super::session::Session;
use super::settings::Settings;
use crate::host::Host;

/// After so long without use a producer is replaced, in milliseconds. A thawed environment's sockets are gone by then,
/// and its producer would find that out one timeout after the other.
pub(super) const IDLE_MS: i64 = 10 * 60 * 1000;

/// The settings, with the producer that was made from them.
#[derive(Debug)]
pub(super) struct Connection {
    settings: Settings,
    host: Host,
    current: Mutex<Option<Arc<Session>>>,
    /// By the wall clock: a monotonic one may stand still while the environment is frozen.
    used_at_ms: AtomicI64,
}

impl Connection {
    pub(super) fn new(settings: Settings, host: Host) -> Self {
        Self { settings, host, current: Mutex::default(), used_at_ms: AtomicI64::new(0) }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// The producer to use now: the last one, unless it has failed for good or slept too long.
    ///
    /// Before there is a new one, the old one must hold no record any more: of two producers nobody could say whose record with
    /// a key comes first.
    pub(super) async fn session(&self) -> Result<Arc<Session>, KafkaError> {
        let mut current = self.current.lock().await;
        if let Some(session) = &*current {
            let idle_ms = self.host.now_ms().saturating_sub(self.used_at_ms.load(Ordering::Acquire));
            let slept = idle_ms > IDLE_MS && session.idle();
            if session.usable() && !slept {
                self.touch();
                return Ok(session.clone());
            }
            tracing::info!(slept, "the Kafka producer is replaced");
            session.give_up().await;
        }
        let session = Arc::new(Session::open(&self.settings, &self.host)?);
        *current = Some(session.clone());
        self.touch();
        Ok(session)
    }

    /// Ends the producer, and returns when its threads have ended, unless a page is still with it.
    pub(super) async fn close(&self) {
        let Some(session) = self.current.lock().await.take() else { return };
        session.give_up().await;
        if let Some(session) = Arc::into_inner(session) {
            session.end().await;
        }
    }

    /// The producer is in use.
    pub(super) fn touch(&self) {
        self.used_at_ms.store(self.host.now_ms(), Ordering::Release);
    }
}
