//! Whether topics would take our records, found out without writing one.
//!
//! Metadata says whether a topic is there and not whether we may write to it. Only a produce request is asked for that
//! right. So one is sent that no broker carries out: it wants two acknowledgements, where Kafka knows none, one and all.
//! A broker checks the right to write first and the number of acknowledgements next, before it touches the log
//! (`ReplicaManager.appendRecords`; the test beside this counts the topic's records). `INVALID_REQUIRED_ACKS` is the good
//! answer. A server that takes the record all the same is not Kafka's own; what it was given is a tombstone with a key that
//! no source has, and the answer says so.
//!
//! A topic that is to be created is asked for in the same way: `CreateTopics` with `validate_only`.

use std::sync::Arc;

use bytes::Bytes;
use rdkafka::error::RDKafkaErrorCode as Code;

use super::creation::{self, Purpose};
use super::error::{self, KafkaError};
use super::page::Page;
use super::{KafkaSink, Outcome};
use crate::failure::Failure;
use crate::record::Record;
use crate::sink::{TopicFound, TopicProbe};

/// A number of acknowledgements that the protocol does not have.
const UNHEARD_OF: &[(&str, &str)] = &[("acks", "2"), ("enable.idempotence", "false"), ("linger.ms", "0")];

/// The key of the record that is not written.
const KEY: &str = "tablesweep check --probe";

/// What is found of each topic.
pub(super) async fn topics(sink: &KafkaSink, topics: &[&str]) -> Vec<TopicProbe> {
    let mut found = Vec::new();
    for topic in topics {
        let probed = one(sink, topic).await;
        // What no broker answers for one topic none will answer for the next, after another time-out.
        let is_silent = matches!(probed, Err(KafkaError::Unreachable { .. } | KafkaError::Setting { .. }))
            || probed.as_ref().is_err_and(KafkaError::bars_the_way);
        let failed = probed.map_err(Failure::from);
        if is_silent && let Err(failure) = failed {
            found.extend(topics[found.len()..].iter().map(|topic| ((*topic).to_owned(), Err(failure.clone()))));
            break;
        }
        found.push(((*topic).to_owned(), failed));
    }
    found
}

async fn one(sink: &KafkaSink, topic: &str) -> Result<TopicFound, KafkaError> {
    let settings = sink.connection.settings();
    let session = sink.connection.session().await?;
    match session.check(&[topic]).await {
        Ok(()) => {}
        Err(KafkaError::TopicMissing { topic, brokers }) => {
            let Some(new) = sink.topics.of(&topic) else { return Err(KafkaError::TopicMissing { topic, brokers }) };
            creation::create(&topic, &new, &sink.connection, Purpose::Ask).await?;
            return Ok(TopicFound::Creatable { partitions: new.partitions, replication_factor: new.replication_factor });
        }
        Err(other) => return Err(other),
    }
    let (asked, limit, name) = (Arc::clone(&session), settings.check_timeout(), topic.to_owned());
    let counted = tokio::task::spawn_blocking(move || asked.partitions(&name, limit)).await;
    let partitions = match counted.map_err(|ended| KafkaError::Broken { reason: ended.to_string() })? {
        Ok(partitions) => partitions,
        Err(_) => return Err(error::unanswered(&[topic.to_owned()], &session.trouble(), &settings)),
    };
    may_write(sink, topic).await?;
    // The producer that records will go through has asked for its id by now, which is a right of its own.
    match session.fatal_error() {
        Some((code, reason)) => Err(error::fatal(code, reason, &settings)),
        None => Ok(TopicFound::Ready { partitions }),
    }
}

/// Sends what no broker carries out, and reads the answer.
async fn may_write(sink: &KafkaSink, topic: &str) -> Result<(), KafkaError> {
    let settings = Arc::new(sink.connection.settings().with(UNHEARD_OF));
    let session = Arc::new(sink.connection.beside(Arc::clone(&settings))?);
    let record =
        Record { topic: topic.into(), key: Bytes::from_static(KEY.as_bytes()), value: None, timestamp_ms: None, headers: Arc::default() };
    let page = Page::expecting(1);
    let mut timer = Box::pin(tokio::time::sleep(settings.check_timeout()));
    let queued = session.queue(&[record], &page, &mut timer).await;
    let is_overdue = tokio::select! {
        biased;
        () = page.settled() => false,
        () = timer => true,
    };
    if is_overdue {
        session.give_up().await;
    }
    let outcome = match queued {
        Ok(()) => page.outcome(),
        Err(refused) => Outcome { failed: Some(refused), refused: 1, ..page.outcome() },
    };
    let trouble = session.trouble();
    if let Some(session) = Arc::into_inner(session) {
        session.end().await;
    }
    match &outcome.failed {
        Some(failed) if failed.code == Code::InvalidRequiredAcks => Ok(()),
        None if outcome.acked == 1 => {
            tracing::warn!(topic, key = KEY, "these brokers took a record that Apache Kafka refuses: it is a tombstone with this key");
            Ok(())
        }
        _ => Err(error::undelivered(&outcome, &trouble, &settings)),
    }
}
