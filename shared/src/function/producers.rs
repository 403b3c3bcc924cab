//! The producers of an execution environment: made by the first invocation that needs them, and kept.
//!
//! They are kept for as long as the worker's placeholders stand for the same. When one stands for something else, other producers
//! take their place, and only after those of before have ended: of two producers nobody could say whose record comes first.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::assembly::{Sinks as _, tell_kept, unresolved};
use crate::config::{Resolver, Worker};
use crate::delivery::ToKafka;
use crate::failure::Failure;
use crate::sink::kafka::KafkaOptions;

/// Producers, once they were asked for.
#[derive(Debug, Default)]
pub(super) struct Producers {
    kept: Mutex<Option<Kept>>,
}

/// Producers, and the worker that they were made by.
#[derive(Debug)]
struct Kept {
    worker: Worker,
    sinks: Arc<ToKafka>,
}

impl Producers {
    /// The producers by the settings of `worker`. A failure is not kept, and after the first time there is none: a look at
    /// placeholders that fails leaves the producers as they are.
    pub(super) async fn get(&self, worker: &Worker, resolver: &Arc<Resolver>, options: KafkaOptions) -> Result<Arc<ToKafka>, Failure> {
        let mut kept = self.kept.lock().await;
        let made = |worker: Worker| Kept { sinks: Arc::new(ToKafka::new(worker.clone(), Arc::clone(resolver), options)), worker };
        let Some(known) = kept.as_mut() else {
            let worker = worker.resolve(resolver).await.map_err(|error| unresolved(WORKER, &error))?;
            return Ok(Arc::clone(&kept.insert(made(worker)).sinks));
        };
        match known.worker.renew(resolver).await {
            Ok(None) => {}
            Ok(Some((worker, false))) => known.worker = worker,
            Ok(Some((worker, true))) => {
                tracing::info!("what stands behind placeholders of {WORKER} has changed, and other producers are made");
                known.sinks.close().await;
                *known = made(worker);
            }
            Err(error) => tell_kept(None, &unresolved(WORKER, &error)),
        }
        Ok(Arc::clone(&known.sinks))
    }
}

/// How messages name the document.
const WORKER: &str = "worker.json";

#[cfg(test)]
mod tests;
