//! Where records go. A sink takes the records of a page in order and says when all of them are safe.

pub mod kafka;
pub mod ndjson;

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;

use crate::failure::Failure;
use crate::record::Record;

/// What became of the records of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Delivered {
    /// Records that the sink has acknowledged.
    pub rows: u64,
    /// Records that were left out by policy, because they are larger than the sink takes.
    pub skipped: u64,
}

/// Resolves when every record of a page is acknowledged, or when one failed and none is in flight any more.
pub type Acks = Pin<Box<dyn Future<Output = Result<Delivered, Failure>> + Send>>;

/// What was found of a topic that nothing was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicFound {
    /// It is there and takes our records.
    Ready {
        /// How many partitions it has.
        partitions: usize,
    },
    /// It is not there, and the first sweep creates it.
    Creatable {
        /// With so many partitions; -1 for the brokers' default.
        partitions: i32,
        /// And so many copies; -1 for the brokers' default.
        replication_factor: i32,
    },
    /// This sink has no topics that could be asked about.
    Anything,
}

/// What was found of one topic, or why its records would not be taken.
pub type TopicProbe = (String, Result<TopicFound, Failure>);

/// A place for records.
#[async_trait]
pub trait Sink: Send + Sync + std::fmt::Debug {
    /// Checks that records can be produced to `topics`; a missing topic is found here, not at the first record.
    ///
    /// # Errors
    /// A failure that names the topic and the remedy.
    async fn check(&self, topics: &[&str]) -> Result<(), Failure>;

    /// Finds out whether each of `topics` would take our records. Writes and creates nothing.
    async fn probe(&self, topics: &[&str]) -> Vec<TopicProbe> {
        topics.iter().map(|topic| ((*topic).to_owned(), Ok(TopicFound::Anything))).collect()
    }

    /// Hands the records over, in order, and returns what waits for their acknowledgements. A second page may be sent
    /// while the first one waits. Records with equal keys arrive in the order in which they were handed over.
    ///
    /// # Errors
    /// A failure after which nothing of this page is in flight.
    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure>;

    /// The longest time between [`Sink::send`] and the end of its [`Acks`]. Nothing is sent unless the lease and the
    /// budget last longer.
    fn message_timeout(&self) -> Duration;
}
