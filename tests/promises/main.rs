//! Tests named after the promise they hold: real engines, real processes, real sockets.

mod cli;
mod commands;
mod documentation;
mod dynamodb_store;
mod engine;
mod fenced;
mod functions;
mod kafka_iam;
mod kafka_sink;
mod kills;
mod laptop;
mod registries;
mod servicenow;
mod shapes;
mod sqlserver;
