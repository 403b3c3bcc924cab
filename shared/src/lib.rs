//! Polling sources for Kafka without a Kafka Connect cluster: the library behind the functions and the command line.
//!
//! ```text
//! what a user says     config      documents: keys, placeholders, faults
//!                      secrets     what placeholders stand for
//! what moves rows      sweep       the engine: lease, pages, commits
//!                      source      where rows come from: servicenow, sqlserver
//!                      record      what is produced: key, value, headers, envelope, converters
//!                      sink        where records go: kafka, ndjson
//!                      cursor      where each table stands, and its stores
//!                      registry    schema registries: confluent, glue
//! what puts it         plan        which task owns which table
//! together             assembly    documents into jobs; conversion makes their converters, delivery their sinks
//! who runs it          function    the two functions, without Lambda
//!                      operate     an operator's commands about cursors
//!                      probe       can all of it be reached and used?
//! what all of it       host        clock, randomness, environment: the one door
//! stands on            failure     code, retry decision, words
//!                      telemetry   logs and metrics
//!                      http, tls, aws   answers, certificates, a signed call without an SDK
//! ```
//!
//! `sweep` sees the traits of `source`, `sink` and `cursor` and none of their implementations. A source, a sink and a store never see
//! each other's: what a source takes from `sweep` and `cursor` are plain values, such as the allowance, the window and the baseline's
//! digest. `assembly` puts them together.

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
