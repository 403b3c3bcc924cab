//! `check --probe`: asks for everything that a sweep leans on, in one run, and moves nothing.
//!
//! Each thing that was asked is a [`Finding`] of its own, good or bad, so that a first run shows all that is wrong with an
//! account, an instance and a cluster instead of one fault per run. Nobody is left out for another's fault, but for what
//! cannot be asked without it: a table without its password.
//!
//! What it leaves behind is nothing at the sources, in the topics and among the cursors: rows and catalogs are read;
//! topics are asked about with a request that brokers refuse to carry out (see `sink/kafka/probe.rs`); a cursor table is
//! written to under a condition that cannot hold (`cursor/dynamodb/probe.rs`), a database file in a transaction that is
//! rolled back. Sign-ins are real ones, and a wrong password counts as one failed attempt: the tables of a connector are asked
//! one after the other, and the others are not tried when the first is refused for who we are.
//!
//! It ends: each part has its time, and says so when the time is over.

mod schemas;
mod secrets;
mod sources;
mod topics;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join3;
use serde::Serialize;

use crate::assembly::Assembly;
use crate::config::{Documents, Resolver};
use crate::cursor::CursorStore;
use crate::failure::{Failure, Scope};
use crate::host::Host;

/// How long the sources of one connector, or the topics of one, may take to answer.
pub const WITHIN: Duration = Duration::from_secs(60);

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A placeholder: has it a value?
    Secret,
    /// A table: can it be swept as its document says?
    Source,
    /// A topic: would it take records?
    Topic,
    /// The schemas of a topic: does the registry that keeps them answer?
    Schemas,
    /// The cursor store: can cursors be read and written?
    Cursors,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is as a sweep needs it.
    Good,
    /// A sweep can go on with it, and a person should know.
    Note,
    /// A sweep would fail.
    Bad,
}

/// One thing that was asked, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of thing.
    pub part: Part,
    /// Which one.
    pub name: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// The stable code of what a sweep would fail with; a heading of docs/operations.md.
    pub code: Option<String>,
    /// What was found, and what to do if it is bad.
    pub found: String,
}

impl Finding {
    /// All is well.
    pub fn good(part: Part, name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { part, name: name.into(), verdict: Verdict::Good, code: None, found: found.into() }
    }

    /// Nothing fails, and still.
    pub fn note(part: Part, name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, ..Self::good(part, name, found) }
    }

    /// A sweep would fail with `failure`.
    pub fn bad(part: Part, name: impl Into<String>, failure: &Failure) -> Self {
        Self { verdict: Verdict::Bad, code: Some(failure.code.to_string()), ..Self::good(part, name, failure.message.clone()) }
    }

    /// Nothing came within the time.
    fn silent(part: Part, name: impl Into<String>) -> Self {
        let found = format!("no answer came within {} s; is there a way from here to it?", WITHIN.as_secs());
        Self { verdict: Verdict::Bad, ..Self::good(part, name, found) }
    }
}

/// Asks about secrets, sources, topics and schemas of all documents. A registry is asked for what it has: a schema that it were
/// asked to keep could not be taken back.
pub async fn documents(documents: &Documents, resolver: &Arc<Resolver>, host: &Host) -> Vec<Finding> {
    // First, so that the others find what is there in the resolver's cache.
    let mut findings = secrets::ask(documents, resolver).await;
    let assembly = Assembly::new(documents.clone(), Arc::clone(resolver), host.clone());
    let topics = topics::ask(documents, resolver, host);
    let (sources, topics, schemas) = join3(sources::ask(documents, &assembly, host), topics, schemas::ask(documents, resolver, host)).await;
    findings.extend([sources, topics, schemas].concat());
    findings
}

/// Asks a cursor store.
pub async fn cursors(store: &dyn CursorStore) -> Finding {
    let name = store.name();
    match within(store.probe()).await {
        None => Finding::silent(Part::Cursors, name),
        Some(Ok(())) => Finding::good(Part::Cursors, name, "cursors can be read here, and written under conditions"),
        Some(Err(error)) => Finding::bad(Part::Cursors, name, &error.into()),
    }
}

/// What `asked` gives, if it does in time.
async fn within<T>(asked: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(WITHIN, asked).await.ok()
}

/// Whether a failure is about the connector as a whole, so that its other tables would meet it too.
fn is_everywhere(failure: &Failure) -> bool {
    failure.scope == Scope::Instance
}
