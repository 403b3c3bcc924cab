//! The simulator, over real sockets and through a client that knows nothing of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod auth;
mod client;
mod faults;
mod paging;
mod queries;
mod shapes;
mod state;
