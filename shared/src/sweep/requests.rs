//! How many requests an instance still takes from us: its hourly allowance, counted here.
//!
//! An instance that limits requests says how many it takes and when its hour ends, and never how many are left. Whoever
//! wants to end before it is spent has to count, and what counts is spread over tables, tasks and invocations. So the
//! count is kept once per instance in the cursor store, read once per invocation and written at its end, when something
//! was counted. What two invocations count at the same time is added up.
//!
//! Near the end of an allowance no more requests are made: the sweeps end as `skipped`, and time that is paid for is not slept
//! away. A twentieth is left to other programs of the same account, and to requests that a killed invocation made and
//! could not write down.
//!
//! Nothing that an instance says, and no clock, blocks a table for longer than an hour: a window that ends later
//! than that is none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An allowance is renewed every hour, so no window is longer.
const HOUR_MS: i64 = 3_600_000;

/// One part in this many of an allowance is left unused.
const LEFT_UNUSED: u64 = 20;

/// The stable code of a sweep that ended for want of requests.
pub(super) const CODE: &str = "Source.Allowance";

/// What an answer says about the allowance. Nonsense is left out by whoever reads the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The requests of an hour.
    pub limit: Option<u64>,
    /// The time until the hour is over.
    pub ends_in: Option<Duration>,
    /// The rule that counts; an account may come under several.
    pub rule: String,
    /// The request was refused, and others will be for this long.
    pub refused_for: Option<Duration>,
}

/// A request that was counted, or could not be counted yet because no answer has named a rule.
#[derive(Debug, Default)]
pub struct Ticket {
    counted: bool,
}

/// An allowance that is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    limit: u64,
    used: u64,
    rule: String,
    until_ms: i64,
}

impl Spent {
    /// In words, without the table.
    pub(super) fn text(&self, now_ms: i64) -> String {
        let rule = if self.rule.is_empty() { String::new() } else { format!(", rule {}", self.rule) };
        let minutes = self.until_ms.saturating_sub(now_ms).max(0).unsigned_abs().div_ceil(60_000);
        let known = match self.limit {
            0 => "the instance takes no more requests for now".to_owned(),
            limit => format!("{} of the instance's {limit} requests per hour were made", self.used),
        };
        format!(
            "{known}{rule}; the rest is left to others, and sweeps go on in {minutes} min. Raise the rate limit of the integration user, \
             sweep less often (poll.interval.ms), or raise batch.size"
        )
    }
}

/// The window of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Window {
    /// Requests that it takes; 0 if the instance only said that it takes no more.
    limit: u64,
    /// When it ends, in epoch milliseconds of the local clock.
    until_ms: i64,
    used: u64,
    /// Of `used`, what is not in the store yet.
    #[serde(skip)]
    added: u64,
    /// Whether the instance has refused a request of this window since it was read.
    #[serde(skip)]
    refused: bool,
}

impl Window {
    fn is_open(&self, now_ms: i64) -> bool {
        now_ms < self.until_ms && self.until_ms <= now_ms.saturating_add(HOUR_MS)
    }

    fn is_spent(&self) -> bool {
        self.used >= self.limit - self.limit / LEFT_UNUSED
    }
}

/// What is stored of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Windows {
    rules: BTreeMap<String, Window>,
    /// The rule under which each connector's account came last.
    connectors: BTreeMap<String, String>,
}

/// The allowance of one instance, shared by its tables in an invocation.
#[derive(Debug, Default)]
pub(super) struct Hourly {
    windows: Mutex<Windows>,
}

impl Hourly {
    /// As the store has it. What cannot be read was written by another version; counting begins anew then.
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self { windows: Mutex::new(serde_json::from_slice(bytes).unwrap_or_default()) }
    }

    /// Whether the account of `connector` has spent its allowance.
    pub(super) fn spent(&self, connector: &str, now_ms: i64) -> Option<Spent> {
        let windows = self.windows();
        let rule = windows.connectors.get(connector)?;
        let window = windows.rules.get(rule)?;
        let is_spent = window.is_open(now_ms) && window.is_spent();
        is_spent.then(|| Spent { limit: window.limit, used: window.used, rule: rule.clone(), until_ms: window.until_ms })
    }

    fn take(&self, connector: &str, now_ms: i64) -> Result<Ticket, Spent> {
        if let Some(spent) = self.spent(connector, now_ms) {
            return Err(spent);
        }
        let mut windows = self.windows();
        let Windows { rules, connectors } = &mut *windows;
        let window = connectors.get(connector).and_then(|rule| rules.get_mut(rule)).filter(|window| window.is_open(now_ms));
        let counted = window.is_some();
        if let Some(window) = window {
            window.used = window.used.saturating_add(1);
            window.added = window.added.saturating_add(1);
        }
        Ok(Ticket { counted })
    }

    fn told(&self, connector: &str, ticket: &Ticket, told: Told, now_ms: i64) {
        if told.limit.is_none() && told.refused_for.is_none() {
            return;
        }
        let until = |length: Duration| {
            let ms = i64::try_from(length.as_millis()).unwrap_or(HOUR_MS);
            (1..=HOUR_MS).contains(&ms).then(|| now_ms.saturating_add(ms))
        };
        let ends_ms = told.refused_for.or(told.ends_in).and_then(until);
        let mut windows = self.windows();
        let before = windows.connectors.insert(connector.to_owned(), told.rule.clone());
        let counted = ticket.counted && before.as_ref() == Some(&told.rule);
        let fresh = Window {
            limit: told.limit.unwrap_or(0),
            until_ms: ends_ms.unwrap_or_else(|| now_ms.saturating_add(HOUR_MS)),
            used: 0,
            added: 0,
            refused: false,
        };
        let window = windows.rules.entry(told.rule).or_insert_with(|| fresh.clone());
        if !window.is_open(now_ms) {
            *window = fresh;
        }
        // An end that moves on with each answer ends no hour: the earliest one counts.
        window.until_ms = ends_ms.map_or(window.until_ms, |ends_ms| window.until_ms.min(ends_ms));
        window.limit = told.limit.unwrap_or(window.limit);
        if !counted {
            window.used = window.used.saturating_add(1);
            window.added = window.added.saturating_add(1);
        }
        if told.refused_for.is_some() {
            window.used = window.used.max(window.limit);
            window.refused = true;
        }
    }

    /// Whether anything is to be written.
    pub(super) fn is_changed(&self) -> bool {
        self.windows().rules.values().any(|window| window.added > 0 || window.refused)
    }

    /// What is to lie in the store where `stored` lies now, and when it may be forgotten.
    pub(super) fn merged(&self, stored: Option<&[u8]>, now_ms: i64) -> (Vec<u8>, i64) {
        let mut merged: Windows = stored.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
        merged.rules.retain(|_, window| window.is_open(now_ms));
        let own = self.windows();
        merged.connectors.extend(own.connectors.clone());
        for (rule, own) in own.rules.iter().filter(|(_, window)| window.is_open(now_ms)) {
            match merged.rules.get_mut(rule) {
                None => {
                    merged.rules.insert(rule.clone(), own.clone());
                }
                Some(window) => {
                    window.limit = own.limit;
                    window.until_ms = window.until_ms.min(own.until_ms);
                    window.used = window.used.saturating_add(own.added);
                    if own.refused {
                        window.used = window.used.max(own.limit);
                    }
                }
            }
        }
        let ends_ms = merged.rules.values().map(|window| window.until_ms).max().unwrap_or(now_ms);
        let bytes = serde_json::to_vec(&merged).expect("strings and numbers are representable in JSON");
        (bytes, ends_ms.saturating_add(HOUR_MS))
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The requests that one table may make.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    hourly: Arc<Hourly>,
    connector: String,
    denied: Arc<OnceLock<Spent>>,
}

impl Requests {
    pub(super) fn new(hourly: Arc<Hourly>, connector: &str) -> Self {
        Self { hourly, connector: connector.to_owned(), denied: Arc::default() }
    }

    pub(super) fn take(&self, now_ms: i64) -> Result<Ticket, Spent> {
        self.hourly.take(&self.connector, now_ms).inspect_err(|spent| {
            // Only the first reason is kept.
            self.denied.set(spent.clone()).ok();
        })
    }

    pub(super) fn told(&self, ticket: &Ticket, told: Told, now_ms: i64) {
        let is_refused = told.refused_for.is_some();
        self.hourly.told(&self.connector, ticket, told, now_ms);
        if is_refused && let Some(spent) = self.hourly.spent(&self.connector, now_ms) {
            self.denied.set(spent).ok();
        }
    }

    /// Why a request of this table was not made.
    pub(super) fn denied(&self) -> Option<&Spent> {
        self.denied.get()
    }
}

#[cfg(test)]
mod tests;
