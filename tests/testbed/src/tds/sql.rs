//! The part of T-SQL that the server understands: text to tokens to a tree.
//!
//! It is a grammar, not a list of known texts: a product that writes its statement in another order of words is
//! understood as a server would understand it. What is outside of the grammar is an error that names the place, and is
//! kept in the server's refusals.

mod ast;
mod ddl;
mod expressions;
mod lexer;
mod parser;
mod queries;

pub(super) use ast::*;

pub(super) use parser::{Parser, declarations, script};

/// A text that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Incorrect syntax near '{near}'.")]
pub(super) struct SyntaxError {
    /// The word at which understanding ended, or the reason.
    pub near: String,
}
