//! Where records go, and what is found there afterwards.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tablesweep_testbed::kafka;

use crate::args::Role;
use crate::child::{self, Serving};
use crate::documents::PARTITIONS;
use crate::failed::Failed;

/// The longest wait for an answer or a record.
const ASK_WITHIN: Duration = Duration::from_secs(30);

/// A running broker with the topics of the benchmark.
#[derive(Debug)]
pub enum Broker {
    /// Apache Kafka.
    Kafka(kafka::Broker),
    /// librdkafka's mock cluster.
    Mock(Serving),
}

/// What a topic holds, whatever the order of its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// How many.
    pub records: u64,
    /// Bytes of keys, values and headers.
    pub bytes: u64,
    /// Sum over the records of a hash of key, value, timestamp and the names of the headers.
    digest: u64,
}

impl Broker {
    /// Starts one with these topics.
    pub async fn start(mock: bool, topics: &[String]) -> Result<Self, Failed> {
        if mock {
            return Ok(Self::Mock(child::serve(Role::MockBroker, &topics.join(" ")).await?));
        }
        let broker = kafka::Broker::start().await?;
        for topic in topics {
            // Rows carry their own time, months ago: a topic that forgets by age would drop them while they are counted.
            broker.create_topic_with(topic, PARTITIONS, &[("retention.ms", "-1")]).await?;
        }
        Ok(Self::Kafka(broker))
    }

    /// What it is.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kafka(_) => "Apache Kafka",
            Self::Mock(_) => "librdkafka's mock cluster",
        }
    }

    /// `bootstrap.servers`.
    pub fn bootstrap(&self) -> String {
        match self {
            Self::Kafka(broker) => broker.bootstrap(),
            Self::Mock(serving) => serving.address.clone(),
        }
    }

    /// How many records were ever produced to `topic`.
    pub async fn count(&self, topic: &str) -> Result<u64, Failed> {
        self.ask(topic, |reader| {
            let ends = reader.ends()?;
            Ok(ends.iter().map(|(_, end)| u64::try_from(*end).unwrap_or(0)).sum())
        })
        .await
    }

    /// The headers of a record of `topic`.
    pub async fn headers(&self, topic: &str) -> Result<Vec<(String, String)>, Failed> {
        self.ask(topic, |reader| {
            let ends = reader.ends()?;
            let (partition, end) = ends.iter().find(|(_, end)| *end > 0).ok_or_else(|| reader.failed(&"it is empty"))?;
            reader.assign(&[(*partition, Offset::Offset(end - 1))])?;
            reader.next(headers)
        })
        .await
    }

    /// All that `topic` holds. The mock cluster forgets most of it, so there is nothing to be said of that.
    pub async fn contents(&self, topic: &str) -> Result<Option<Contents>, Failed> {
        if matches!(self, Self::Mock(_)) {
            return Ok(None);
        }
        self.ask(topic, |reader| {
            let ends = reader.ends()?;
            let all: u64 = ends.iter().map(|(_, end)| u64::try_from(*end).unwrap_or(0)).sum();
            reader.assign(&ends.iter().map(|(partition, _)| (*partition, Offset::Beginning)).collect::<Vec<_>>())?;
            let mut contents = Contents::default();
            while contents.records < all {
                reader.next(|message| contents.add(message))?;
            }
            Ok(Some(contents))
        })
        .await
    }

    /// librdkafka's questions block their thread.
    async fn ask<T: Send + 'static>(
        &self,
        topic: &str,
        ask: impl FnOnce(&Reader) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let (bootstrap, topic) = (self.bootstrap(), topic.to_owned());
        let asked = tokio::task::spawn_blocking(move || ask(&Reader::open(&bootstrap, &topic)?)).await;
        asked.map_err(|error| Failed::at("asking the broker", error))?
    }
}

impl Contents {
    fn add(&mut self, message: &BorrowedMessage<'_>) {
        let (key, value, headers) = (message.key().unwrap_or_default(), message.payload().unwrap_or_default(), headers(message));
        let mut hasher = DefaultHasher::new();
        (key, value, message.timestamp().to_millis()).hash(&mut hasher);
        for (name, _) in &headers {
            name.hash(&mut hasher);
        }
        self.records += 1;
        self.digest = self.digest.wrapping_add(hasher.finish());
        let in_headers: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.bytes += (key.len() + value.len() + in_headers) as u64;
    }
}

fn headers(message: &BorrowedMessage<'_>) -> Vec<(String, String)> {
    let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let all = message.headers().map(|headers| headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect());
    all.unwrap_or_default()
}

/// A consumer of one topic that belongs to no group.
struct Reader {
    consumer: BaseConsumer,
    topic: String,
}

impl Reader {
    fn open(bootstrap: &str, topic: &str) -> Result<Self, Failed> {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", bootstrap).set("group.id", "bench-reader").set("enable.auto.commit", "false");
        let consumer = config.create().map_err(|error| Failed::at("making a consumer", error))?;
        Ok(Self { consumer, topic: topic.to_owned() })
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Failed {
        Failed::at(format!("reading the topic {}", self.topic), why)
    }

    /// One past the last offset of each partition. Topics are new, so it is what was produced to it.
    fn ends(&self) -> Result<Vec<(i32, i64)>, Failed> {
        let end = |partition: i32| {
            let (_, end) = self.consumer.fetch_watermarks(&self.topic, partition, ASK_WITHIN).map_err(|error| self.failed(&error))?;
            Ok((partition, end))
        };
        (0..PARTITIONS).map(end).collect()
    }

    fn assign(&self, places: &[(i32, Offset)]) -> Result<(), Failed> {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in places {
            list.add_partition_offset(&self.topic, *partition, *offset).map_err(|error| self.failed(&error))?;
        }
        self.consumer.assign(&list).map_err(|error| self.failed(&error))
    }

    /// Shows the next record to `look`.
    #[expect(clippy::disallowed_methods, reason = "how long the broker is silent is measured by the machine's clock")]
    fn next<T>(&self, look: impl FnOnce(&BorrowedMessage<'_>) -> T) -> Result<T, Failed> {
        let begun = Instant::now();
        while begun.elapsed() < ASK_WITHIN {
            match self.consumer.poll(Duration::from_millis(100)) {
                Some(Ok(message)) => return Ok(look(&message)),
                Some(Err(error)) => return Err(self.failed(&error)),
                None => {}
            }
        }
        Err(self.failed(&format!("there is no record within {ASK_WITHIN:?}")))
    }
}
