//! The command line: exit codes, the shape of every JSON, what an operator may do to cursors, and how it is interrupted.
//!
//! Each test runs the real program in a folder of its own, against a simulated instance.

pub mod bed;
mod check;
mod cursors;
mod dynamodb;
mod exits;
mod interrupts;
mod kafka;
mod migrate;
mod parameters;
mod probe;
mod schemas;
mod secured;
mod status;
