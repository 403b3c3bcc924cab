//! Tests named after the promise they hold: real engines, real processes, real sockets.

mod cli;
mod laptop;
mod servicenow;
