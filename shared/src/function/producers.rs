//! The producers of an execution environment: made by the first invocation that needs them, and kept.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::assembly::unresolved;
use crate::config::{Resolver, Worker};
use crate::delivery::ToKafka;
use crate::failure::Failure;
use crate::sink::kafka::KafkaOptions;

/// Producers, once they were asked for.
#[derive(Debug, Default)]
pub(super) struct Producers {
    kept: OnceCell<Arc<ToKafka>>,
}

impl Producers {
    /// The producers by the settings of `worker`. A failure is not kept.
    pub(super) async fn get(&self, worker: &Worker, resolver: &Arc<Resolver>, options: KafkaOptions) -> Result<Arc<ToKafka>, Failure> {
        let made = async {
            let worker = worker.resolve(resolver).await.map_err(|error| unresolved("worker.json", &error))?;
            Ok(Arc::new(ToKafka::new(worker, Arc::clone(resolver), options)))
        };
        self.kept.get_or_try_init(|| made).await.cloned()
    }
}
