//! The testbed.
pub mod program;
pub mod table_api;

#[cfg(feature = "parts")]
pub mod kafka;
#[cfg(feature = "parts")]
pub mod lambda;
#[cfg(feature = "parts")]
pub mod moto;
#[cfg(feature = "parts")]
pub mod parts;
#[cfg(feature = "parts")]
pub mod process;
#[cfg(feature = "parts")]
pub mod proxy;
#[cfg(feature = "parts")]
pub mod state_machine;
