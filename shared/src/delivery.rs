//! Which sink the records of a connector go to: into Kafka with the connector's own producer settings, or all of them
//! into one place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::assembly::{Sinks, unresolved};
use crate::config::{Connector, Documents, Faults, ResolveError, Resolver, TopicSettings, Worker};
use crate::failure::{Failure, Retry};
use crate::sink::Sink;
use crate::sink::kafka::{Conflict, KafkaOptions, KafkaSinks, NewTopic, OversizePolicy, Rotation, TopicMaker, conflicts};

/// The setting that a producer cannot do without.
const BROKERS: &str = "bootstrap.servers";

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
    resolver: Arc<Resolver>,
    sinks: KafkaSinks,
}

impl fmt::Debug for ToKafka {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToKafka").finish_non_exhaustive()
    }
}

impl ToKafka {
    /// By the settings of `worker`, whose placeholders are resolved; `resolver` looks them up again after a rotation.
    pub fn new(worker: Worker, resolver: Arc<Resolver>, options: KafkaOptions) -> Self {
        Self { worker, resolver, sinks: KafkaSinks::new(options) }
    }
}

#[async_trait]
impl Sinks for ToKafka {
    fn of(&self, connector: &Connector) -> Result<Arc<dyn Sink>, Failure> {
        let refuse = |code: &'static str, message: String| Failure::new(code, Retry::Never, format!("{}: {message}", connector.name));
        let producer = connector.producer(&self.worker).map_err(|faults| refuse("Config.Invalid", faults.to_string()))?;
        if producer.get(BROKERS).is_none() {
            return Err(refuse("Config.Invalid", format!("{BROKERS} is missing in worker.json; a sweep into Kafka needs it")));
        }
        let rotation = ReadAgain {
            places: owned(producer.placeholders()),
            worker: self.worker.clone(),
            connector: connector.clone(),
            resolver: Arc::clone(&self.resolver),
        };
        let sink = self.sinks.sink(&owned(producer.iter()), Some(Arc::new(rotation)), oversize(connector))?;
        Ok(Arc::new(sink.creating(self.topics(connector))))
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

fn owned<'t>(texts: impl Iterator<Item = (&'static str, &'t str)>) -> BTreeMap<String, String> {
    texts.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// Looks the placeholders of a producer's settings up again.
struct ReadAgain {
    places: BTreeMap<String, String>,
    worker: Worker,
    connector: Connector,
    resolver: Arc<Resolver>,
}

#[async_trait]
impl Rotation for ReadAgain {
    fn places(&self) -> BTreeMap<String, String> {
        self.places.clone()
    }

    async fn renew(&self) -> Result<BTreeMap<String, String>, Failure> {
        let told = |error: &ResolveError| unresolved(&self.connector.name, error);
        // The resolver knows what was read since these were, and reads nothing more than once in its time.
        let (worker, _) = self.worker.refresh(&self.resolver).await.map_err(|error| told(&error))?;
        let (connector, _) = self.connector.refresh(&self.resolver).await.map_err(|error| told(&error))?;
        let producer = connector.producer(&worker).map_err(|faults| told(&ResolveError::from(faults)))?;
        Ok(owned(producer.iter()))
    }
}

/// Which settings of the producers make no producer together, as far as the documents say: a sweep would refuse the connector for
/// them. Of documents that name no brokers nothing is said.
pub fn faults(documents: &Documents) -> Faults {
    let mut faults = Faults::default();
    for connector in &documents.connectors {
        let producer = match connector.producer(&documents.worker) {
            Ok(producer) => producer,
            Err(of_some) => {
                faults.faults.extend(of_some.faults);
                continue;
            }
        };
        let pending: BTreeSet<&str> = producer.placeholders().map(|(name, _)| name).filter(|name| producer.get(name).is_none()).collect();
        if producer.get(BROKERS).is_none() && !pending.contains(BROKERS) {
            continue;
        }
        for Conflict { setting, message } in conflicts(&owned(producer.iter()), &pending) {
            let fault = connector.producer_fault(&documents.worker, &setting, &message);
            // What is wrong in the worker's document is wrong for every connector, and told once.
            if !faults.faults.contains(&fault) {
                faults.push(fault);
            }
        }
    }
    faults
}

/// What a row does that is larger than Kafka takes.
fn oversize(connector: &Connector) -> OversizePolicy {
    let policy = connector.values.choice(connector.kind.oversize_key);
    if policy == Some("skip") { OversizePolicy::Skip } else { OversizePolicy::Fail }
}
