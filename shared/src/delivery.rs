//! Which sink the records of a connector go to: into Kafka with the connector's own producer settings, or all of them
//! into one place.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::assembly::Sinks;
use crate::config::{Connector, TopicSettings, Worker};
use crate::failure::{Failure, Retry};
use crate::sink::Sink;
use crate::sink::kafka::{KafkaOptions, KafkaSinks, NewTopic, OversizePolicy, TopicMaker};

/// Every connector into one sink.
#[derive(Debug)]
pub struct ToOne(pub Arc<dyn Sink>);

impl Sinks for ToOne {
    fn of(&self, _connector: &Connector) -> Result<Arc<dyn Sink>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Every connector into Kafka, by the worker's settings and its own.
pub struct ToKafka {
    worker: Worker,
    sinks: KafkaSinks,
}

impl fmt::Debug for ToKafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToKafka").finish_non_exhaustive()
    }
}

impl ToKafka {
    /// By the settings of `worker`, whose placeholders are resolved.
    pub fn new(worker: Worker, options: KafkaOptions) -> Self {
        Self { worker, sinks: KafkaSinks::new(options) }
    }
}

#[async_trait]
impl Sinks for ToKafka {
    fn of(&self, connector: &Connector) -> Result<Arc<dyn Sink>, Failure> {
        let refuse = |code: &'static str, message: String| Failure::new(code, Retry::Never, format!("{}: {message}", connector.name));
        let producer = connector.producer(&self.worker).map_err(|faults| refuse("Config.Invalid", faults.to_string()))?;
        if producer.msk_iam {
            return Err(refuse(
                "Config.NotBuilt",
                "signing in to Amazon MSK with IAM (sasl.mechanism=AWS_MSK_IAM) is not built yet; use SCRAM-SHA-512".to_owned(),
            ));
        }
        if producer.get("bootstrap.servers").is_none() {
            return Err(refuse("Config.Invalid", "bootstrap.servers is missing in worker.json; a sweep into Kafka needs it".to_owned()));
        }
        let settings: BTreeMap<String, String> = producer.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let sink = self.sinks.sink(&settings, &BTreeMap::new(), oversize(connector))?.creating(self.topics(connector));
        Ok(Arc::new(sink))
    }

    async fn close(&self) {
        self.sinks.close().await;
    }
}

impl ToKafka {
    /// How topics of the connector are made that do not exist.
    fn topics(&self, connector: &Connector) -> TopicMaker {
        let Some(creation) = connector.topic_creation(&self.worker) else { return TopicMaker::none() };
        TopicMaker::new(move |topic| {
            let TopicSettings { replication_factor, partitions, config } = creation.of(topic)?.clone();
            Some(NewTopic { partitions, replication_factor, config })
        })
    }
}

/// What a row does that is larger than Kafka takes.
fn oversize(connector: &Connector) -> OversizePolicy {
    let policy = connector.values.choice(connector.kind.oversize_key);
    if policy == Some("skip") { OversizePolicy::Skip } else { OversizePolicy::Fail }
}
