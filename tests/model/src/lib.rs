//! The protocol under a model checker: lease, pipeline, commit and dedup window, in every order of events.
//!
//! Tests try the orders that somebody thought of. Here a [`World`] of two workers, one cursor item, one topic and one
//! table takes every step that its [`Scenario`] allows, and stateright visits each world that can be reached and
//! asks whether the promises of docs/semantics.md still hold. What decides is not modelled but run: the item changes
//! by `cursor::apply`, a worker asks `Pipeline`, `Held` and `Window`. What is modelled stands around them: the source
//! ([`source`]), the sink, the clock, and the loop of `sweep/table.rs` ([`worker`]).
//!
//! docs/model.md says what is covered, what is not, and what was found.

pub mod check;
pub mod ghost;
pub mod scenario;
pub mod source;
pub mod worker;
pub mod world;

pub use check::{Found, check};
pub use scenario::{Scenario, short};
pub use world::World;
