//! SQL Server tables, over the wire of a server that evaluates the statements it is sent.

mod activation;
mod addresses;
mod bed;
mod connections;
mod drift;
mod encryption;
mod handover;
mod kafka;
mod kills;
mod late;
mod polls;
mod real;
mod reports;
mod start;
mod typed;
mod types;
