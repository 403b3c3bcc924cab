//! Reading a topic back, as a stranger would: no consumer group, no code of the sink, every record with all it carries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, Message};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::{ASK_WITHIN, PART, blocking, client};
use crate::parts::PartError;

/// A record as it lies in the topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The partition that it lies in.
    pub partition: i32,
    /// Its place in the partition.
    pub offset: i64,
    /// The key; `None` is a record without one, which is not an empty key.
    pub key: Option<Vec<u8>>,
    /// The value; `None` is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Milliseconds since 1970, the producer's or the broker's, as the topic is set.
    pub timestamp: Option<i64>,
    /// The headers in their order; a header may be there without a value.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// The first header of this name as text; `None` if there is none, or it has no value or is no text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(header, _)| header == name)?;
        std::str::from_utf8(value.as_deref()?).ok()
    }

    /// The value as text; `None` if it is a tombstone or no text.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.value.as_deref()?).ok()
    }

    /// The key as text; `None` if there is none or it is no text.
    pub fn key_text(&self) -> Option<&str> {
        std::str::from_utf8(self.key.as_deref()?).ok()
    }
}

/// Every record of a topic from the beginning to the end at the time of the call, by partition and offset.
///
/// Gaps in the offsets (transaction markers, compaction) are no records and are passed over. Records of transactions
/// that are open or aborted are not seen.
pub async fn read_all(bootstrap: &str, topic: &str) -> Result<Vec<Record>, PartError> {
    let (bootstrap, topic) = (bootstrap.to_owned(), topic.to_owned());
    blocking(move || read(&bootstrap, &topic)).await
}

fn read(bootstrap: &str, topic: &str) -> Result<Vec<Record>, PartError> {
    let failed = |why: &dyn std::fmt::Display| PartError::failed(PART, format!("reading the topic {topic}"), why);
    let consumer: BaseConsumer = client(bootstrap)
        .set("enable.partition.eof", "true")
        .set("enable.auto.commit", "false")
        .set("check.crcs", "true")
        // A read position that the log no longer has is a lost record to whoever counts, not a place to jump from.
        .set("auto.offset.reset", "error")
        // Asked for by the client library, used by nobody: partitions are assigned, not shared out.
        .set("group.id", "testbed-reader")
        .create()
        .map_err(|error| failed(&error))?;
    let mut open = ends(&consumer, topic).map_err(|why| failed(&why))?;
    let mut assignment = TopicPartitionList::new();
    for (partition, (low, _)) in &open {
        assignment.add_partition_offset(topic, *partition, Offset::Offset(*low)).map_err(|error| failed(&error))?;
    }
    consumer.assign(&assignment).map_err(|error| failed(&error))?;

    let mut records = Vec::new();
    let mut last_progress = Instant::now();
    while !open.is_empty() {
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                last_progress = Instant::now();
                let (partition, offset) = (message.partition(), message.offset());
                let Some((_, high)) = open.get(&partition) else {
                    continue;
                };
                if offset < *high {
                    records.push(record(&message));
                }
                if offset + 1 >= *high {
                    open.remove(&partition);
                }
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => {
                open.remove(&partition);
            }
            Some(Err(error)) => return Err(failed(&error)),
            None if last_progress.elapsed() > ASK_WITHIN => {
                return Err(failed(&format!("no record for {ASK_WITHIN:?}, partitions not read to their end: {open:?}")));
            }
            None => {}
        }
    }
    records.sort_by_key(|record| (record.partition, record.offset));
    Ok(records)
}

/// The first and the one-past-last offset of every partition that is not empty.
fn ends(consumer: &BaseConsumer, topic: &str) -> Result<BTreeMap<i32, (i64, i64)>, String> {
    let metadata = consumer.fetch_metadata(Some(topic), ASK_WITHIN).map_err(|error| error.to_string())?;
    let found = metadata.topics().iter().find(|found| found.name() == topic);
    let found = found.ok_or("the broker does not list it")?;
    if let Some(code) = found.error() {
        return Err(format!("the broker says {code:?}"));
    }
    let mut ends = BTreeMap::new();
    for partition in found.partitions() {
        let id = partition.id();
        let watermarks = consumer.fetch_watermarks(topic, id, ASK_WITHIN);
        let (low, high) = watermarks.map_err(|error| format!("the ends of partition {id}: {error}"))?;
        if low < high {
            ends.insert(id, (low, high));
        }
    }
    Ok(ends)
}

fn record(message: &impl Message<Headers: Headers>) -> Record {
    let headers = message.headers().map(|headers| {
        let headers = headers.iter();
        headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect()
    });
    Record {
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        timestamp: message.timestamp().to_millis(),
        headers: headers.unwrap_or_default(),
    }
}
