//! Databases in memory and what a statement does to them.
//!
//! A statement is bound before it runs: every name is looked up and every expression gets its type, so that a column that
//! does not exist is an error with no row in the table, and the columns of an answer are known before its first row.
//! `sys.*` are relations computed from the definitions, and joined and filtered as any other.
//!
//! The engine is not fast in general. What a poller asks again and again is: a range of a sequence in its order goes
//! through an index, and rows are shared with the answer and not copied.

mod access;
mod bind;
mod catalog;
mod compare;
mod convert;
mod database;
mod define;
mod error;
mod eval;
mod functions;
mod numbers;
mod plan;
mod run;
mod select;
mod temporal;
#[cfg(test)]
mod tests;
mod text;
mod write;

pub(super) use convert::convert;
pub use database::Login;
pub(super) use database::{Database, Object, World};
pub(super) use define::resolve_type;
pub use error::SqlError;
pub(super) use functions::find;
pub(super) use run::parse;
pub(super) use run::{Answer, ResultSet, Session, Step};
pub(super) use select::OutputColumn;
