//! The engine: one bounded sweep per table.
//!
//! ```text
//! acquire lease + read cursor -> for each page: convert -> send -> all acks -> commit cursor -> ... -> release
//! ```
//!
//! Whatever must be right whatever happens is a plain value with events in and effects out, and does no I/O: the
//! [`Pipeline`] decides when a page is fetched, sent and committed, the [`Hand`] holds the pages until then, the [`Fold`] adds
//! up what they brought, the [`Window`] knows what was delivered, the [`Held`] lease what its holder may still do. [`Engine`] carries their effects out over the traits of source, sink and
//! cursor store. It knows none of their implementations.
//!
//! Tables run side by side and share a byte budget and nothing else: a slow, broken or huge one delays no other.

mod acquire;
mod allowance;
mod bytes;
mod engine;
mod fold;
mod hand;
mod hindrance;
mod instance;
mod kept;
mod lease;
mod left;
mod owed;
mod pipeline;
mod report;
mod requests;
mod say;
mod schemas;
mod siblings;
mod table;
mod window;
mod window_store;

pub use allowance::Allowance;
pub use bytes::{Admission, ByteBudget};
pub use engine::{Engine, Job, Run};
pub use fold::{Beside, Counted, Fold, Saying, Step};
pub use hand::{Hand, Wish};
pub use hindrance::{Hindrance, hindrance};
pub use instance::{forget_logins, refused_logins};
pub use kept::Kept;
pub use lease::{Ending, Held, LAST_COMMIT, LeasePlan, Reading, given_back};
pub use left::Left;
pub use owed::{Owed, Stretch};
pub use pipeline::{Effect, Event, Pipeline, UNCOMMITTED};
pub use report::{Mode, Outcome, Reason, SweepReport, TableReport};
pub use requests::{Spent, Ticket, Told};
pub use schemas::is_topic_schema;
pub use siblings::remove as forget_siblings;
pub use table::SWEPT;
pub use window::{Version, Window, WindowChange};
pub use window_store::{WindowCache, remove as forget_window};
