//! When a broker, or a topic of it, can be used: questions that are asked until the answer is yes.

use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::{ASK_WITHIN, LOST_PORT, PART, START_WITHIN};
use crate::parts::PartError;
use crate::process::Process;

/// Waits until the port answers as this cluster, and gives up when the JVM has.
pub(super) fn wait_for_cluster(config: &ClientConfig, cluster: &str, process: &Process) -> Result<(), PartError> {
    let consumer: BaseConsumer = config.create().map_err(|error| PartError::not_started(PART, error))?;
    let end = Instant::now() + START_WITHIN;
    while Instant::now() < end {
        if !process.is_running() {
            return Err(PartError::not_started(PART, "the JVM ended before the broker answered"));
        }
        match consumer.client().fetch_cluster_id(Duration::from_millis(200)) {
            Some(answer) if answer == cluster => return wait_for_broker(&consumer),
            Some(other) => {
                let why = format!("{LOST_PORT}: the port answers as the cluster {other}");
                return Err(PartError::not_started(PART, why));
            }
            None => {}
        }
    }
    Err(PartError::not_started(PART, format!("no answer within {START_WITHIN:?}")))
}

/// The controller knows the broker before clients may use it; it can be used once the metadata lists it.
fn wait_for_broker(consumer: &BaseConsumer) -> Result<(), PartError> {
    let end = Instant::now() + ASK_WITHIN;
    let mut last = "no answer".to_owned();
    while Instant::now() < end {
        match consumer.fetch_metadata(None, Duration::from_secs(1)) {
            Ok(metadata) if metadata.brokers().len() == 1 => return Ok(()),
            Ok(metadata) => last = format!("{} brokers", metadata.brokers().len()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(PartError::not_started(PART, format!("it never lists itself: {last}")))
}

/// Waits until every partition of a topic can be written.
pub(super) fn wait_for_leaders(config: &ClientConfig, topic: &str, partitions: i32) -> Result<(), PartError> {
    let what = format!("a leader for each of the {partitions} partitions of {topic}");
    let consumer: BaseConsumer = config.create().map_err(|error| PartError::failed(PART, what.clone(), error))?;
    let end = Instant::now() + ASK_WITHIN;
    let mut last = "no answer".to_owned();
    while Instant::now() < end {
        let metadata = match consumer.fetch_metadata(Some(topic), Duration::from_secs(1)) {
            Ok(metadata) => metadata,
            Err(error) => {
                last = error.to_string();
                continue;
            }
        };
        let led = metadata.topics().iter().flat_map(|topic| topic.partitions());
        let led = led.filter(|partition| partition.leader() >= 0 && partition.error().is_none()).count();
        if i32::try_from(led).is_ok_and(|led| led == partitions) {
            return Ok(());
        }
        last = format!("{led} have one");
    }
    Err(PartError::Timeout { what, within: ASK_WITHIN, last })
}
