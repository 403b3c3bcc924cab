//! The progress line: rows, rows per second, how far behind, how long to go.
//!
//! It is read off the records as the sink acknowledges them, so that the engine needs no hook and the line counts only
//! what is safe. A record's timestamp says how far its table has come; the pace at which that moves gives the estimate.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tablesweep::assembly::Sinks;
use tablesweep::config::Connector;
use tablesweep::failure::Failure;
use tablesweep::host::Host;
use tablesweep::record::Record;
use tablesweep::sink::{Acks, Sink};
use tokio::task::AbortHandle;

use crate::text;

/// How often the line is written.
const EVERY: Duration = Duration::from_millis(500);

/// Below this nobody needs an estimate, in milliseconds.
const NEAR_MS: i64 = 60_000;

/// What was acknowledged so far.
#[derive(Debug, Clone)]
pub struct Progress {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    host: Host,
    began: Duration,
    topics: Mutex<BTreeMap<Arc<str>, Topic>>,
}

/// One topic: in nearly every document that is one table.
#[derive(Debug, Default, Clone, Copy)]
struct Topic {
    rows: u64,
    /// The timestamp of the first and of the last record with one, in epoch milliseconds.
    first_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl Progress {
    /// Nothing yet.
    pub fn new(host: Host) -> Self {
        let began = host.monotonic();
        Self { shared: Arc::new(Shared { host, began, topics: Mutex::default() }) }
    }

    /// The sinks, watched.
    pub fn watching(&self, sinks: Arc<dyn Sinks>) -> Watching {
        Watching { sinks, progress: self.clone() }
    }

    /// Writes the line to standard error until the result is dropped.
    pub fn show(&self) -> Shown {
        let progress = self.clone();
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                write(&format!("\r{}\x1b[K", progress.line()));
            }
        });
        Shown(task.abort_handle())
    }

    fn line(&self) -> String {
        let topics = self.shared.topics();
        let elapsed = self.shared.host.monotonic().saturating_sub(self.shared.began);
        line(topics.values(), elapsed, self.shared.host.now_ms())
    }
}

impl Shared {
    fn topics(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Topic>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn line<'t>(topics: impl Iterator<Item = &'t Topic>, elapsed: Duration, now_ms: i64) -> String {
    let elapsed_ms = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX).max(1);
    let (mut rows, mut lag_ms, mut left_ms) = (0_u64, None::<i64>, None::<i64>);
    for topic in topics {
        rows += topic.rows;
        let (Some(first), Some(last)) = (topic.first_ms, topic.last_ms) else { continue };
        let behind = now_ms.saturating_sub(last).max(0);
        lag_ms = lag_ms.max(Some(behind));
        let covered = last.saturating_sub(first);
        if behind > NEAR_MS && covered > 0 {
            let left = i128::from(behind) * i128::from(elapsed_ms) / i128::from(covered);
            left_ms = left_ms.max(i64::try_from(left).ok());
        }
    }
    let pace = u128::from(rows) * 1000 / u128::from(elapsed_ms.unsigned_abs());
    let mut line = format!("{rows} rows, {pace}/s");
    if let Some(lag) = lag_ms {
        line.push_str(&format!(", {} behind", text::duration(lag / 1000)));
    }
    if let Some(left) = left_ms {
        line.push_str(&format!(", about {} to go", text::duration(left / 1000)));
    }
    line
}

/// Ends the line when it is dropped.
#[derive(Debug)]
pub struct Shown(AbortHandle);

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.abort();
        write("\r\x1b[K");
    }
}

/// The line is a courtesy: when standard error is gone, so is whoever would have read it.
fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _unheard = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Sinks whose acknowledgements are counted.
pub struct Watching {
    sinks: Arc<dyn Sinks>,
    progress: Progress,
}

#[async_trait]
impl Sinks for Watching {
    fn of(&self, connector: &Connector) -> Result<Arc<dyn Sink>, Failure> {
        Ok(Arc::new(Watched { sink: self.sinks.of(connector)?, progress: self.progress.clone() }))
    }

    async fn close(&self) {
        self.sinks.close().await;
    }
}

#[derive(Debug)]
struct Watched {
    sink: Arc<dyn Sink>,
    progress: Progress,
}

#[async_trait]
impl Sink for Watched {
    async fn check(&self, topics: &[&str]) -> Result<(), Failure> {
        self.sink.check(topics).await
    }

    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure> {
        let topic = records.first().map(|record| Arc::clone(&record.topic));
        let first = records.iter().find_map(|record| record.timestamp_ms);
        let last = records.iter().rev().find_map(|record| record.timestamp_ms);
        let acks = self.sink.send(records).await?;
        let progress = self.progress.clone();
        Ok(Box::pin(async move {
            let delivered = acks.await?;
            if let Some(topic) = topic {
                let mut topics = progress.shared.topics();
                let seen = topics.entry(topic).or_default();
                seen.rows += delivered.rows;
                seen.first_ms = seen.first_ms.or(first);
                seen.last_ms = last.or(seen.last_ms);
            }
            Ok(delivered)
        }))
    }

    fn message_timeout(&self) -> Duration {
        self.sink.message_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_the_slowest_table_and_all_rows() {
        let day = 86_400_000;
        let near = Topic { rows: 100, first_ms: Some(0), last_ms: Some(10 * day) };
        let far = Topic { rows: 900, first_ms: Some(0), last_ms: Some(2 * day) };
        let text = line([near, far].iter(), Duration::from_secs(10), 10 * day + 1_000);
        assert_eq!(text, "1000 rows, 100/s, 8d0h behind, about 40s to go");
        assert_eq!(line([Topic { rows: 7, ..Topic::default() }].iter(), Duration::from_secs(7), 0), "7 rows, 1/s");
    }
}
