//! The broker of the demo: librdkafka's own mock cluster, inside this process, and a consumer that reads it back.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Header, Headers as _, Message as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tablesweep::config::{Resolver, Worker};
use tablesweep::delivery::ToKafka;
use tablesweep::host::Host;
use tablesweep::sink::kafka::KafkaOptions;

use crate::exit::Stop;

/// Partitions of each topic.
const PARTITIONS: i32 = 3;

/// The most that the consumer waits for an answer of the broker.
const PATIENCE: Duration = Duration::from_secs(10);

/// A broker of one node.
pub struct Broker {
    cluster: MockCluster<'static, DefaultProducerContext>,
}

/// What the consumer found in a topic.
pub struct Topic {
    /// The topic.
    pub name: String,
    /// Its records.
    pub records: u64,
    /// The last one that was read: partition, key, and a header.
    pub last: String,
}

impl Broker {
    /// Starts it with these topics.
    pub fn start(topics: &[String]) -> Result<Self, Stop> {
        let cluster = MockCluster::new(1).map_err(refused)?;
        for topic in topics {
            cluster.create_topic(topic, PARTITIONS, 1).map_err(refused)?;
        }
        Ok(Self { cluster })
    }

    /// What stands in worker.json.
    pub fn bootstrap_servers(&self) -> String {
        self.cluster.bootstrap_servers()
    }

    /// Sinks into it, as for any other broker.
    pub fn sinks(&self, worker: Worker, resolver: &Arc<Resolver>, host: &Host) -> ToKafka {
        ToKafka::new(worker, Arc::clone(resolver), KafkaOptions::new("tablesweep-demo", host.clone()))
    }

    /// Reads a topic from its beginning to its end, as a consumer of another program would.
    pub fn read_back(&self, topic: &str) -> Result<Topic, Stop> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", self.bootstrap_servers())
            .set("group.id", "tablesweep-demo-reader")
            .set("enable.auto.commit", "false")
            .create()
            .map_err(refused)?;
        let mut wanted = 0;
        let mut assignment = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            let (low, high) = consumer.fetch_watermarks(topic, partition, PATIENCE).map_err(refused)?;
            wanted += u64::try_from(high - low).unwrap_or(0);
            assignment.add_partition_offset(topic, partition, Offset::Beginning).map_err(refused)?;
        }
        consumer.assign(&assignment).map_err(refused)?;
        let mut found = Topic { name: topic.to_owned(), records: 0, last: String::new() };
        while found.records < wanted {
            let message = consumer.poll(PATIENCE).ok_or_else(|| Stop::failed("the broker of the demo went silent"))?.map_err(refused)?;
            found.records += 1;
            if found.records == wanted {
                let key = String::from_utf8_lossy(message.key().unwrap_or_default()).into_owned();
                let is_table = |header: &Header<'_, &[u8]>| ["snow.table", "mssql.table"].contains(&header.key);
                let table = message.headers().and_then(|headers| headers.iter().find(is_table));
                let table = table.map(|header| format!("{}={}", header.key, String::from_utf8_lossy(header.value.unwrap_or_default())));
                found.last = format!("partition {}, key {key}, {}", message.partition(), table.unwrap_or_default());
            }
        }
        Ok(found)
    }
}

fn refused(error: rdkafka::error::KafkaError) -> Stop {
    Stop::failed(format!("the broker of the demo: {error}"))
}
