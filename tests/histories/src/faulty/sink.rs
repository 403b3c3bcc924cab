//! A sink that keeps what arrives, and that refuses, gives up, delays, or sees its caller die.
//!
//! Records arrive when their page is acknowledged, in the order in which pages were handed over, as behind a producer that
//! keeps order. What is handed over and never acknowledged has not arrived unless the fault says so: then a cursor that
//! was moved too early has lost it for good.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use tablesweep::failure::{Failure, Retry};
use tablesweep::record::Record;
use tablesweep::sink::{Acks, Delivered, Sink};

use super::Death;
use crate::history::SinkFault;

/// What the message timeout of this sink is.
pub(crate) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// For whoever has pages to hand over to do so while none is acknowledged.
const LONG_ENOUGH: Duration = Duration::from_millis(15);

/// A record that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) id: String,
    pub(crate) second: i64,
    pub(crate) mod_count: u64,
}

/// What befalls the sink in one sweep.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The page, from 1, and how it fails.
    pub(crate) fault: Option<(u64, SinkFault)>,
    pub(crate) death: Arc<Death>,
}

/// The sink. The log of what arrived is kept by whoever made it.
#[derive(Debug, Default)]
pub(crate) struct Collector(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    plan: Plan,
    pages: u64,
    struck: bool,
    /// Pages that were handed over and have not arrived.
    on_their_way: VecDeque<(u64, Vec<Arrived>)>,
    arrived: Vec<Arrived>,
    unreadable: Vec<String>,
    /// Rows handed over by the holder of the lease up to and with each page.
    handed_over: Vec<u64>,
    /// Of these, the rows that a commit has covered.
    committed: u64,
    /// The most pages that were handed over and not committed, at any time.
    most_uncommitted: usize,
}

impl Collector {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new process begins under this plan; what was on its way is gone.
    pub(crate) fn follow(&self, plan: Plan) {
        let mut state = self.state();
        state.plan = plan;
        state.pages = 0;
        state.struck = false;
        state.on_their_way.clear();
    }

    /// A holder of the lease begins; it has handed nothing over.
    pub(crate) fn begins(&self) {
        let mut state = self.state();
        state.handed_over.clear();
        state.committed = 0;
    }

    /// A commit took effect that covers so many of the rows handed over by this holder.
    pub(crate) fn committed(&self, rows: u64) {
        self.state().committed = rows;
    }

    /// The most pages that were handed over and not committed, at any time.
    pub(crate) fn most_uncommitted(&self) -> usize {
        self.state().most_uncommitted
    }

    pub(crate) fn has_struck(&self) -> bool {
        self.state().struck
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.state().arrived.clone()
    }

    pub(crate) fn unreadable(&self) -> Vec<String> {
        self.state().unreadable.clone()
    }
}

impl State {
    /// Takes note of a page that is handed over.
    fn hand_over(&mut self, rows: u64) {
        let before = self.handed_over.last().copied().unwrap_or(0);
        self.handed_over.push(before + rows);
        let uncommitted = self.handed_over.iter().filter(|through| **through > self.committed).count();
        self.most_uncommitted = self.most_uncommitted.max(uncommitted);
    }

    /// Everything up to this page arrives.
    fn flush(&mut self, through: u64) {
        while self.on_their_way.front().is_some_and(|(page, _)| *page <= through) {
            if let Some((_, records)) = self.on_their_way.pop_front() {
                self.arrived.extend(records);
            }
        }
    }

    /// Of this page only the first `keep` records arrive.
    fn give_up(&mut self, page: u64, keep: usize) {
        if let Some((_, records)) = self.on_their_way.iter_mut().find(|(number, _)| *number == page) {
            records.truncate(keep);
        }
        self.flush(page);
    }
}

/// A record as a reader of the topic sees it.
fn read(record: &Record) -> Result<Arrived, String> {
    #[derive(Deserialize)]
    struct Row {
        sys_id: String,
        sys_mod_count: String,
        u_key: Option<String>,
    }
    let value = record.value.as_deref().ok_or("a tombstone")?;
    let row: Row = serde_json::from_slice(value).map_err(|error| format!("{error} in {}", String::from_utf8_lossy(value)))?;
    let id = row.u_key.filter(|key| !key.is_empty()).unwrap_or(row.sys_id);
    if id.as_bytes() != &*record.key {
        return Err(format!("the key {:?} of the row {id}", record.key));
    }
    let second = record.timestamp_ms.ok_or("no timestamp")?.div_euclid(1000);
    let mod_count = row.sys_mod_count.parse().map_err(|error| format!("{error}: {}", row.sys_mod_count))?;
    Ok(Arrived { id, second, mod_count })
}

fn given_up() -> Failure {
    Failure::new("Sink.GivenUp", Retry::NextTick, "as the history says")
}

#[async_trait]
impl Sink for Collector {
    async fn check(&self, _topics: &[&str]) -> Result<(), Failure> {
        Ok(())
    }

    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure> {
        let (page, fault, death) = {
            let mut state = self.state();
            state.pages += 1;
            state.hand_over(records.len() as u64);
            let page = state.pages;
            let fault =
                state.plan.fault.filter(|(at, how)| page == *at || (page > *at && *how == SinkFault::KilledAfter)).map(|(_, how)| how);
            state.struck |= fault.is_some();
            (page, fault, Arc::clone(&state.plan.death))
        };
        death.bar().await;
        match fault {
            Some(SinkFault::Refused) => return Err(given_up()),
            Some(SinkFault::KilledBefore) => return death.strike_and_hang().await,
            _ => {}
        }
        let mut readable = Vec::with_capacity(records.len());
        for record in &records {
            match read(record) {
                Ok(arrived) => readable.push(arrived),
                Err(why) => self.state().unreadable.push(why),
            }
        }
        self.state().on_their_way.push_back((page, readable));
        let shared = Arc::clone(&self.0);
        Ok(Box::pin(async move {
            let state = || shared.lock().unwrap_or_else(PoisonError::into_inner);
            // An acknowledgement takes a while; others get their turn.
            tokio::task::yield_now().await;
            death.bar().await;
            match fault {
                Some(SinkFault::GivenUp(keep)) => {
                    state().give_up(page, usize::from(keep));
                    return Err(given_up());
                }
                Some(SinkFault::Delayed(ms)) => {
                    tokio::time::sleep(Duration::from_millis(u64::from(ms))).await;
                    death.bar().await;
                }
                Some(SinkFault::KilledAfter) => {
                    // All that is handed over until then arrives, and nobody hears of it.
                    tokio::time::sleep(LONG_ENOUGH).await;
                    state().flush(u64::MAX);
                    return death.strike_and_hang().await;
                }
                _ => {}
            }
            state().flush(page);
            Ok(Delivered { rows: records.len() as u64, skipped: 0 })
        }))
    }

    fn message_timeout(&self) -> Duration {
        MESSAGE_TIMEOUT
    }
}
