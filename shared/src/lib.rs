//! Polling sources for Kafka without a Kafka Connect cluster: the library behind the functions and the command line.
//!
//! ```text
//! config     documents: keys, placeholders, faults      source   where rows come from: servicenow, sqlserver
//! sweep      the engine: lease, pages, commits          record   what is produced: key, value, headers, envelope
//! cursor     where each table stands, and its stores    sink     where records go: kafka, ndjson
//! plan       which task owns which table                host     clock, randomness, environment: the one door
//! probe      can all of it be reached and used?         aws      a signed call without an SDK
//! ```
//!
//! `sweep` sees the traits of `source`, `sink` and `cursor` and none of their implementations, and these never see each
//! other; `assembly` puts them together.

pub mod assembly;
pub mod aws;
pub mod config;
pub mod conversion;
pub mod cursor;
pub mod delivery;
pub mod failure;
pub mod function;
pub mod host;
mod http;
pub mod operate;
pub mod plan;
pub mod probe;
pub mod record;
pub mod registry;
pub mod secrets;
pub mod sink;
pub mod source;
pub mod sweep;
pub mod telemetry;
mod tls;
