//! Topics: one line for each that the documents name.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;

use super::{Finding, Part, within};
use crate::assembly::Sinks as _;
use crate::config::{Connector, Documents, ResolveError, Resolver};
use crate::delivery::ToKafka;
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::sink::TopicFound;
use crate::sink::kafka::KafkaOptions;

/// The worker's key without which nothing goes to Kafka.
const BROKERS: &str = "bootstrap.servers";

/// One finding per connector and topic.
pub(super) async fn ask(documents: &Documents, resolver: &Arc<Resolver>, host: &Host) -> Vec<Finding> {
    if !documents.worker.values.is_set(BROKERS) {
        let found = "no brokers are named by bootstrap.servers in worker.json, so a sweep needs --sink ndjson:PATH or --sink -";
        return vec![Finding::note(Part::Topic, "Kafka", found)];
    }
    let worker = match documents.worker.resolve(resolver).await {
        Ok(worker) => worker,
        Err(error) => return documents.connectors.iter().flat_map(|connector| not_asked(connector, "worker.json", &error)).collect(),
    };
    let options = KafkaOptions::new("tablesweep-probe", host.clone());
    let sinks = ToKafka::new(worker, Arc::clone(resolver), options);
    let asked = join_all(documents.connectors.iter().map(|connector| of_connector(connector, resolver, &sinks))).await;
    sinks.close().await;
    asked.concat()
}

async fn of_connector(connector: &Connector, resolver: &Resolver, sinks: &ToKafka) -> Vec<Finding> {
    let connector = match connector.resolve(resolver).await {
        Ok(connector) => connector,
        // The producer may need nothing of what is missing; but its settings stand in the same document.
        Err(error) => return not_asked(connector, &connector.name, &error),
    };
    let topics = topics(&connector);
    let sink = match sinks.of(&connector) {
        Ok(sink) => sink,
        Err(failure) => return topics.iter().map(|topic| Finding::bad(Part::Topic, *topic, &failure)).collect(),
    };
    match within(sink.probe(&topics)).await {
        None => topics.iter().map(|topic| Finding::silent(Part::Topic, *topic)).collect(),
        Some(probed) => probed.into_iter().map(|(topic, found)| told(topic, found)).collect(),
    }
}

/// Placeholders without a value are told by themselves. A value that is not what its key asks for is told here only.
fn not_asked(connector: &Connector, document: &str, error: &ResolveError) -> Vec<Finding> {
    let note = |topic: &&str| match error {
        ResolveError::Unresolved(_) => {
            let found = format!("not asked: {document} has a placeholder without a value");
            Finding { code: Some(error.code().to_owned()), ..Finding::note(Part::Topic, *topic, found) }
        }
        _ => Finding::bad(Part::Topic, *topic, &Failure::new(error.code(), Retry::Never, error.to_string())),
    };
    topics(connector).iter().map(note).collect()
}

/// The topics that a connector writes to, each once.
pub(super) fn topics(connector: &Connector) -> Vec<&str> {
    let of = |alias: &String| connector.values.text(&format!("{}{alias}.topic", connector.kind.alias_prefix));
    connector.tables().iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect()
}

fn told(topic: String, found: Result<TopicFound, Failure>) -> Finding {
    let by_default = |number: i32| if number == -1 { "the brokers' default number of".to_owned() } else { number.to_string() };
    match found {
        Ok(TopicFound::Ready { partitions }) => {
            let s = if partitions == 1 { "" } else { "s" };
            Finding::good(Part::Topic, topic, format!("it is there with {partitions} partition{s}, and takes our records"))
        }
        Ok(TopicFound::Creatable { partitions, replication_factor }) => {
            let (partitions, copies) = (by_default(partitions), by_default(replication_factor));
            let found = format!("it is missing, and the first sweep may create it with {partitions} partitions and {copies} copies");
            Finding::note(Part::Topic, topic, found)
        }
        Ok(TopicFound::Anything) => Finding::good(Part::Topic, topic, "this sink takes records for any topic"),
        Err(failure) => Finding::bad(Part::Topic, topic, &failure),
    }
}
