//! The producers of an execution environment, and what becomes of them when a password is rotated.
//!
//! They are made once and outlive invocations, and so would the password that they were made with: an environment that is
//! kept warm by its ticks can live for days. So when the brokers refuse the login, the secrets of `worker.json` are read again,
//! and if they changed, the next invocation makes its producers anew.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::config::{ResolveError, Resolver, Worker};
use crate::delivery::ToKafka;
use crate::failure::{Failure, Retry};
use crate::sink::kafka::KafkaOptions;
use crate::sweep::TableReport;

/// The code by which the brokers refuse a login.
const REFUSED: &str = "Sink.Denied";

/// Producers, once they were asked for.
#[derive(Debug, Default)]
pub(super) struct Producers {
    kept: Mutex<Option<Kept>>,
}

/// The worker as it was resolved, and the producers of it.
#[derive(Debug)]
struct Kept {
    worker: Worker,
    options: KafkaOptions,
    sinks: Arc<ToKafka>,
}

impl Kept {
    fn new(worker: Worker, options: KafkaOptions) -> Self {
        let sinks = Arc::new(ToKafka::new(worker.clone(), options.clone()));
        Self { worker, options, sinks }
    }
}

impl Producers {
    /// The producers by the settings of `worker`. A failure is not kept.
    pub(super) async fn get(&self, worker: &Worker, resolver: &Resolver, options: KafkaOptions) -> Result<Arc<ToKafka>, Failure> {
        let mut kept = self.kept.lock().await;
        if let Some(kept) = &*kept {
            return Ok(Arc::clone(&kept.sinks));
        }
        let worker = worker.resolve(resolver).await.map_err(|error| unresolved(&error))?;
        Ok(Arc::clone(&kept.insert(Kept::new(worker, options)).sinks))
    }

    /// Reads the secrets again if one of these tables was refused by the brokers. The resolver sees to it that a password which
    /// is simply wrong is not looked up at every tick.
    pub(super) async fn learn(&self, tables: &[TableReport], resolver: &Resolver) {
        if !tables.iter().any(|table| table.reason.as_ref().is_some_and(|reason| reason.code == REFUSED)) {
            return;
        }
        let mut kept = self.kept.lock().await;
        let Some(known) = kept.as_mut() else { return };
        match known.worker.refresh(resolver).await {
            Ok((worker, true)) => {
                tracing::info!("the secrets of worker.json have changed; the next invocation signs in to the brokers with the new ones");
                *known = Kept::new(worker, known.options.clone());
            }
            // That it was looked up is remembered in it.
            Ok((worker, false)) => known.worker = worker,
            Err(error) => tracing::warn!(code = error.code(), %error, "the secrets of worker.json could not be read again"),
        }
    }
}

fn unresolved(error: &ResolveError) -> Failure {
    let retry = if error.is_transient() { Retry::NextTick } else { Retry::Never };
    Failure::new(error.code(), retry, format!("worker.json: {error}"))
}
