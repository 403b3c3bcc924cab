//! What the sweep talks to, when that is ours.

use std::io::{BufRead as _, Read as _};
use std::net::{Ipv4Addr, SocketAddr};

use rdkafka::mocking::MockCluster;
use tablesweep_testbed::table_api::{Credentials, Settings, TableApi};
use tablesweep_testbed::tds::{Server, SqlError};

use super::said;
use crate::documents::{PARTITIONS, user};
use crate::failed::Failed;
use crate::measure::SQL_TABLE as TABLE;

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

/// A SQL Server with a table of as many rows as the first line says.
pub fn tds_server() -> Result<(), Failed> {
    let mut rows = String::new();
    std::io::stdin().lock().read_line(&mut rows).map_err(|error| Failed::at("reading the number of rows", error))?;
    let rows: u64 = rows.trim().parse().map_err(|error| Failed::at("reading the number of rows", error))?;
    let server = Server::start().map_err(|error| Failed::at("starting the SQL Server", error))?;
    fill(&server, rows).map_err(|error| Failed::at("filling the table", error))?;
    said(&server.address().to_string())?;
    until_the_end()
}

/// Rows of about 500 bytes of JSON: a few hundred by their values, and those again and again.
fn fill(server: &Server, rows: u64) -> Result<(), SqlError> {
    const COLUMNS: &str = "customer, note, total, placed_at, state, paid, reference";
    const SEED: u64 = 500;
    server.execute(&format!(
        "CREATE TABLE dbo.{TABLE} (id bigint IDENTITY CONSTRAINT {TABLE}_id PRIMARY KEY, customer nvarchar(60) NOT NULL, note nvarchar(400), \
         total decimal(12, 2) NOT NULL, placed_at datetime2(3) NOT NULL, state int NOT NULL, paid bit NOT NULL, reference uniqueidentifier)"
    ))?;
    let row = |n: u64| {
        let note = format!("order {n}, by telephone; ").repeat(11);
        let (cents, minute, paid) = (n % 100, n % 60, n % 2);
        format!(
            "(N'customer number {n}', N'{note}', {}.{cents:02}, '2026-01-01T00:{minute:02}:07.123', {}, {paid}, \
             '6F9619FF-8B86-D011-B42D-00C04FC{n:05X}')",
            n * 37 % 10_000,
            n % 9
        )
    };
    let seed: Vec<String> = (0..rows.min(SEED)).map(row).collect();
    server.execute(&format!("INSERT INTO dbo.{TABLE} ({COLUMNS}) VALUES {}", seed.join(", ")))?;
    let mut filled = rows.min(SEED);
    while filled < rows {
        let more = filled.min(rows - filled);
        server.execute(&format!("INSERT INTO dbo.{TABLE} ({COLUMNS}) SELECT TOP ({more}) {COLUMNS} FROM dbo.{TABLE} ORDER BY id"))?;
        filled += more;
    }
    Ok(())
}

/// Serves as long as the conductor holds the other end of standard input.
fn until_the_end() -> Result<(), Failed> {
    std::io::stdin().lock().read_to_end(&mut Vec::new()).map(drop).map_err(|error| Failed::at("waiting for the end", error))
}
