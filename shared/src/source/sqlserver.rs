//! The SQL Server source. Its documents are read and checked, and its parts are here; sweeping is not built yet and is
//! refused by name.
//!
//! ```text
//! catalog    what a name stands for: object, columns, indexes, in one question
//! validate   whether the table can be polled, or why not
//! schema     the baseline, and how a table differs from it
//! column     what is selected, and what of it arrives
//! value      values and rows as JSON
//! sequence   the numbers that rows are read by
//! ```

pub mod catalog;
pub mod column;
pub mod keys;
mod position;
pub mod schema;
pub mod sequence;
pub mod validate;
pub mod value;
