//! A sink that keeps what arrives, in order, and can end the process that sends.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tablesweep::failure::Failure;
use tablesweep::record::Record;
use tablesweep::sink::{Acks, Delivered, Sink};
use tablesweep_testbed::table_api::Random;
use tokio::sync::watch;

use super::data::TABLES;

/// A record that arrived: the alias of its table, and the row's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrived {
    pub alias: &'static str,
    pub id: String,
    pub at: String,
    pub mod_count: u64,
}

/// The moment at which a process is killed.
#[derive(Debug, Clone, Copy)]
pub enum Kill {
    /// When this many pages were handed over, counted from 0: none of it is acknowledged.
    OnSend(usize),
    /// Once this many pages were acknowledged: some are not committed.
    OnAck(usize),
}

impl Kill {
    pub fn any(random: &mut Random) -> Self {
        let pages = random.below(5) / 2;
        if random.below(2) == 0 { Self::OnSend(pages) } else { Self::OnAck(pages) }
    }
}

#[derive(Debug, Default)]
struct State {
    arrived: Vec<Arrived>,
    kill: Option<Kill>,
    sent: usize,
    acknowledged: usize,
    killer: Option<watch::Sender<bool>>,
}

impl State {
    fn is_dead(&self) -> bool {
        self.killer.as_ref().is_some_and(|killer| *killer.borrow())
    }

    fn die(&mut self) {
        if let Some(killer) = &self.killer {
            killer.send_replace(true);
        }
    }
}

/// The sink.
#[derive(Debug, Default)]
pub struct Recorder {
    state: std::sync::Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Begins an invocation; the future resolves when it is to be killed.
    pub fn arm(&self, kill: Option<Kill>) -> impl Future<Output = ()> + use<> {
        let (killer, mut killed) = watch::channel(false);
        let mut state = lock(&self.state);
        (state.kill, state.sent, state.acknowledged, state.killer) = (kill, 0, 0, Some(killer));
        async move {
            if killed.wait_for(|killed| *killed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Everything that arrived.
    pub fn log(&self) -> Vec<Arrived> {
        lock(&self.state).arrived.clone()
    }
}

#[async_trait]
impl Sink for Recorder {
    async fn check(&self, _topics: &[&str]) -> Result<(), Failure> {
        Ok(())
    }

    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure> {
        let rows = records.len() as u64;
        let shared = std::sync::Arc::clone(&self.state);
        {
            let mut state = lock(&self.state);
            if state.is_dead() {
                // A dead process sends nothing; its tasks have not noticed yet.
                return Ok(Box::pin(std::future::pending()));
            }
            state.arrived.extend(records.iter().map(arrived));
            if matches!(state.kill, Some(Kill::OnSend(pages)) if state.sent == pages) {
                state.die();
            }
            state.sent += 1;
        }
        Ok(Box::pin(async move {
            tokio::task::yield_now().await;
            let is_dead = {
                let mut state = lock(&shared);
                let was_dead = state.is_dead();
                if !was_dead && matches!(state.kill, Some(Kill::OnAck(pages)) if state.acknowledged == pages) {
                    state.die();
                }
                state.acknowledged += 1;
                was_dead
            };
            if is_dead {
                std::future::pending::<()>().await;
            }
            Ok(Delivered { rows, skipped: 0 })
        }))
    }

    fn message_timeout(&self) -> Duration {
        Duration::from_secs(5)
    }
}

fn arrived(record: &Record) -> Arrived {
    let table = TABLES.iter().find(|table| table.alias == &*record.topic).expect("a known topic");
    let row: Value = serde_json::from_slice(record.value.as_ref().expect("a value")).expect("JSON");
    let text = |name: &str| row[format!("{}{name}", table.prefix)].as_str().unwrap_or_else(|| panic!("{name} in {row}")).to_owned();
    let mod_count = text("sys_mod_count").parse().expect("a number");
    Arrived { alias: table.alias, id: text("sys_id"), at: text("sys_updated_on"), mod_count }
}
