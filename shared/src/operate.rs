//! What an operator does with cursors: look at them, set them back, hold them, start anew.
//!
//! The command line is one caller and the functions are others, so nothing in here prints or asks. Every command is
//! decided on what the store says now, is refused while a sweep holds the lease, and leaves an [`Audit`] entry: who,
//! what, before, after, when.
//!
//! A table is known by its place and called by its alias: what a stored cursor is to the documents is decided by where it lies,
//! and by the alias in it only if no table goes on from it ([`whose`]).
//!
//! A document says where its cursor should lie ([`Place`]) and a store says where cursors do lie. Comparing the two needs
//! no secret and no source, which is why `check` and `status` can do it from a laptop.

mod audit;
mod command;
mod place;
mod position;
mod status;
mod transfer;

pub use audit::{Audit, audits};
pub use command::{CommandError, Operator, Order, Outcome, Removal, Rewinding, TopicSchema};
pub use place::{Finding, Found, Place, whose, whose_unreadable};
pub use position::{is_forward, read_position, shown};
pub use status::{Activity, Orphan, StatusReport, TableStatus, Why, status};
pub use transfer::{Beside, Line, beside, export_line, read_line};

/// A moment in RFC 3339, whole seconds, UTC; a moment outside of the calendar reads as the nearest inside.
pub fn rfc3339(ms: i64) -> String {
    const FIRST: i64 = -62_167_219_200;
    const LAST: i64 = 253_402_207_199;
    let second = ms.div_euclid(1000).clamp(FIRST, LAST);
    jiff::Timestamp::from_second(second).unwrap_or_default().to_string()
}
