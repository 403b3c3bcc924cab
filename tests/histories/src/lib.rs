//! Generated histories of whole sweeps.
//!
//! A hand-written test knows the case that its author thought of. What breaks a sweep is the case between two others: a
//! late row while a large overlap is read in turn, a store that took a write and lost the answer, a clock that stepped, and
//! all that with a page of one row. So histories are generated: rows come, change, hide and come late, clocks step, sweeps are
//! budgeted, struck, killed and started anew. The engine is the real one, the source is the real one over HTTP to
//! the simulator, the store is a real one; only what strikes them is made here.
//!
//! ```text
//! history   what happens: plain values that proptest makes and shrinks, and that one line of JSON holds
//! world     the reference set: which rows there are, and which changes keep within the documented limits
//! faulty    clock, store and sink that fail, delay, hang or kill as a history says
//! bed       one simulator and one runtime, used for one history after the other
//! run       carries a history out
//! oracle    what must have come of it, computed from the data and from the faults that happened
//! ```
//!
//! Changes outside the documented limits (a row before the overlap, a row shown after the cursor passed it) are left out by
//! `world` when they are made. The oracle knows no exceptions.

mod bed;
mod faulty;
pub mod history;
mod oracle;
mod run;
mod world;

pub use bed::Bed;
pub use run::{Tally, Verdict};
