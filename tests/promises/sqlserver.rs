//! SQL Server tables, over the wire of a server that evaluates the statements it is sent.

mod bed;
mod connections;
mod drift;
mod kills;
mod late;
mod polls;
mod start;
