//! What the sweep talks to, when that is ours.

use std::io::{BufRead as _, Read as _};
use std::net::{Ipv4Addr, SocketAddr};

use rdkafka::mocking::MockCluster;
use tablesweep_testbed::table_api::{Credentials, Settings, TableApi};

use super::said;
use crate::documents::{PARTITIONS, user};
use crate::failed::Failed;

/// The simulated instance. What it is to hold is loaded over its control address.
pub fn simulator() -> Result<(), Failed> {
    let credentials = Credentials { basic: Some(user()), ..Credentials::default() };
    let api = TableApi::start_with(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Settings::default(), credentials)
        .map_err(|error| Failed::at("starting the simulator", error))?;
    said(&api.url())?;
    until_the_end()
}

/// librdkafka's mock cluster with the topics that the first line names.
pub fn mock_broker() -> Result<(), Failed> {
    let mut topics = String::new();
    std::io::stdin().lock().read_line(&mut topics).map_err(|error| Failed::at("reading the names of the topics", error))?;
    let failed = |error: rdkafka::error::KafkaError| Failed::at("starting the mock cluster", error);
    let cluster = MockCluster::new(1).map_err(failed)?;
    for topic in topics.split_whitespace() {
        cluster.create_topic(topic, PARTITIONS, 1).map_err(failed)?;
    }
    said(&cluster.bootstrap_servers())?;
    until_the_end()
}

/// Serves as long as the conductor holds the other end of standard input.
fn until_the_end() -> Result<(), Failed> {
    std::io::stdin().lock().read_to_end(&mut Vec::new()).map(drop).map_err(|error| Failed::at("waiting for the end", error))
}
