//! The real parts do what the tests of the project rely on. One program, so that the shared parts start once.

// A test that panics has failed, in its helpers as well.
#![allow(clippy::unwrap_used)]

mod kafka;
mod lambda;
mod lambda_faults;
mod moto;
mod process;
mod proxy;
mod state_machine;
mod tds;
