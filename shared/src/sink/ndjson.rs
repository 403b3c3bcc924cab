//! Records as lines of JSON, in a file or on standard output.
//!
//! This sink is for looking at a sweep before there is a Kafka cluster, and for piping rows into another program. It
//! keeps the same promise as the Kafka sink: a page is acknowledged when it is safe, and not before. Safe means written
//! and synced for a file, and taken by the operating system for a pipe.
//!
//! A page becomes one buffer and one write. That is what makes the rest simple:
//!
//! * A line is whole or it is the last one. A process that dies in the middle of its write leaves a torn last line; it
//!   is cut off when the file is opened, and before every write, since another process may have died meanwhile.
//! * Several processes may append to one file. The file is locked for the length of a write, not for the length of a
//!   sweep: pages of different processes alternate, their lines do not mix.
//! * A write that fails half-way is taken back, so nothing of a failed page is left in a file. A pipe cannot be taken
//!   back: after the first error nothing more is written to it.
//!
//! A pipe whose reader is slow holds the sweep back rather than failing it: that is what pipes are for.

mod error;
mod line;
mod target;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::failure::Failure;
use crate::record::Record;
use crate::sink::{Acks, Delivered, Sink};

use error::NdjsonError;
use target::{Syncer, Target};

/// The longest wait for another process that holds the file's lock.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// How often a lock that another process holds is tried. `flock` has no wait with an end, so it is asked again.
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// What a page is allowed to take: the wait for the lock, the write and the sync.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// A sink that appends one line of JSON per record.
#[derive(Debug)]
pub struct NdjsonSink {
    target: Arc<Mutex<Target>>,
    syncer: Arc<Syncer>,
    lock_wait: Duration,
}

impl NdjsonSink {
    /// Opens `path` for appending, and creates it when it is missing. A torn last line, left by a process that died
    /// while it wrote, is removed.
    ///
    /// # Errors
    /// `Sink.Io` when the file cannot be opened, or when it holds something else than records.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Failure> {
        Ok(Self::to(Target::file(path.as_ref())?))
    }

    /// Writes to standard output.
    ///
    /// # Errors
    /// `Sink.Io` when it cannot be duplicated. One that was closed before this process began cannot be told from `/dev/null`, which the
    /// standard library opens in its place.
    pub fn stdout() -> Result<Self, Failure> {
        Ok(Self::to(Target::stdout()?))
    }

    fn to(target: Target) -> Self {
        Self { syncer: target.syncer(), target: Arc::new(Mutex::new(target)), lock_wait: LOCK_WAIT }
    }

    /// Writes one page, under the lock.
    async fn append(&self, page: Vec<u8>) -> Result<(), NdjsonError> {
        let mut target = self.target.clone().lock_owned().await;
        let mut waited = Duration::ZERO;
        while !target.try_lock()? {
            if waited >= self.lock_wait {
                return Err(target.locked(waited));
            }
            tokio::time::sleep(LOCK_RETRY).await;
            waited += LOCK_RETRY;
        }
        // The guard travels with the write, so that a sweep that is dropped here cannot let another page in between.
        let name = target.name().to_owned();
        tokio::task::spawn_blocking(move || target.append_and_unlock(&page))
            .await
            .map_err(|ended| NdjsonError::Interrupted { target: name, reason: ended.to_string() })?
    }
}

#[async_trait]
impl Sink for NdjsonSink {
    /// Lines carry their topic, so every topic exists.
    async fn check(&self, _topics: &[&str]) -> Result<(), Failure> {
        Ok(())
    }

    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure> {
        let rows = records.len() as u64;
        let page = line::page(&records);
        drop(records);
        self.append(page).await?;
        let syncer = self.syncer.clone();
        let synced = tokio::task::spawn_blocking(move || syncer.sync());
        let name = self.syncer.name().to_owned();
        Ok(Box::pin(async move {
            synced.await.map_err(|ended| NdjsonError::Interrupted { target: name, reason: ended.to_string() })??;
            Ok(Delivered { rows, skipped: 0 })
        }))
    }

    fn message_timeout(&self) -> Duration {
        MESSAGE_TIMEOUT
    }
}

#[cfg(test)]
mod tests;
