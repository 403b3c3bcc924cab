//! Documents: what the worker and the connectors are told.
//!
//! A configuration directory holds `worker.json` and `connectors/*.json` or `*.properties`, in Kafka Connect's forms and
//! with Kafka Connect's words, so that a document that runs there can be brought along. [`load`] reads them all and
//! reports everything that is wrong with any of them at once. It contacts nothing: secrets stay placeholders until a
//! [`Resolver`] looks them up, which only a sweep does.
//!
//! The way of a value:
//!
//! 1. `document` reads a file into names and texts.
//! 2. `check` finds the [`Key`] of each name, checks each text against it, adds the defaults and asks the source's own
//!    checks. What comes out is [`Values`].
//! 3. [`Connector::resolve`] fills in the placeholders and checks what could only be checked now.
//! 4. A source reads its own typed struct out of the values, by way of a [`Reader`].
//!
//! The module is handed the sources as [`SourceKind`]s and knows none by name. A fault refuses the documents, a warning
//! deserves a look. A key or a value that means something elsewhere and nothing here is a fault: nothing is done in its place.

use std::path::Path;

mod check;
mod connect;
mod converter;
mod document;
mod fault;
mod key;
mod kind;
pub mod parameterstore;
pub mod placeholder;
mod producer;
mod reference;
pub mod secretsmanager;
mod suggest;
mod topics;
mod values;

#[cfg(test)]
mod tests;

pub use converter::{Converter, Format, Role, Settings};
pub use fault::{Fault, Faults, Warnings};
pub use key::{CursorRules, Fallback, Key, Kind, KnownIdentity, Lookup, Scope, Shape, SourceKind};
pub use placeholder::{Resolver, Unresolved};
pub use producer::ProducerSettings;
pub use reference::reference;
pub use topics::{TopicCreation, TopicSettings};
pub use values::{Reader, Values};

/// The pairs of a text in the format of `java.util.Properties`, in their order, doubles included.
///
/// # Errors
/// An escape of the format that is none, with its line.
pub fn properties(text: &str) -> Result<Vec<(String, String)>, String> {
    document::properties(text).map_err(|error| error.to_string())
}

/// The environment, as a look-up: the process reads it in one place and hands it in.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything that the configuration directory says.
#[derive(Clone, Debug)]
pub struct Documents {
    /// What holds for all connectors.
    pub worker: Worker,
    /// The connectors in the order of their names.
    pub connectors: Vec<Connector>,
    /// What deserves a look.
    pub warnings: Warnings,
}

/// The worker's document, or its absence.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its values.
    pub values: Values,
}

/// One connector's document.
#[derive(Clone, Debug)]
pub struct Connector {
    /// The name; it is the partition key of the connector's cursors.
    pub name: String,
    /// The document, relative to the configuration directory.
    pub file: String,
    /// The source.
    pub kind: &'static SourceKind,
    /// The greatest number of tasks.
    pub tasks_max: u32,
    /// Its values.
    pub values: Values,
    /// What record keys are written as.
    pub key_converter: Converter,
    /// What record values are written as.
    pub value_converter: Converter,
}

/// Why a document cannot be used although it is in order.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Placeholders have no value.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// A value that came out of a placeholder is not what its key asks for.
    #[error(transparent)]
    Invalid(#[from] Faults),
}

impl ResolveError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            ResolveError::Unresolved(_) => Unresolved::CODE,
            ResolveError::Invalid(_) => Faults::CODE,
        }
    }

    /// Whether a later look may succeed without anybody's doing.
    pub fn is_transient(&self) -> bool {
        matches!(self, ResolveError::Unresolved(unresolved) if unresolved.is_transient())
    }
}

/// Reads and checks all documents below `dir`. An error carries every fault of every document.
pub fn load(dir: &Path, kinds: &[&'static SourceKind], env: Env<'_>) -> Result<Documents, Faults> {
    check::documents(dir, kinds, env)
}

impl Documents {
    /// The connector of this name.
    pub fn connector(&self, name: &str) -> Option<&Connector> {
        self.connectors.iter().find(|connector| connector.name == name)
    }
}

impl Worker {
    /// The worker with its placeholders looked up.
    pub async fn resolve(&self, resolver: &Resolver) -> Result<Worker, ResolveError> {
        let worker = Worker { values: resolver.resolve(&self.values).await? };
        worker.check_resolved()?;
        Ok(worker)
    }

    /// The worker as it is by now, and whether anything changed; `None` where no placeholder is due; see [`Resolver::renew`].
    pub async fn renew(&self, resolver: &Resolver) -> Result<Option<(Worker, bool)>, ResolveError> {
        let Some(renewed) = resolver.renew(&self.values).await? else { return Ok(None) };
        let worker = Worker { values: renewed.values };
        worker.check_resolved()?;
        Ok(Some((worker, renewed.changed)))
    }

    /// The worker as it is after a look at rotated secrets, and whether anything changed; see [`Resolver::refresh`].
    pub async fn refresh(&self, resolver: &Resolver) -> Result<(Worker, bool), ResolveError> {
        let refreshed = resolver.refresh(&self.values).await?;
        let worker = Worker { values: refreshed.values };
        worker.check_resolved()?;
        Ok((worker, refreshed.changed))
    }

    fn check_resolved(&self) -> Result<(), Faults> {
        let mut faults = Faults::default();
        self.values.check_resolved(&mut faults);
        if faults.is_empty() {
            producer::merge(&self.values, None, &mut faults);
        }
        faults.into_result(())
    }
}

impl Connector {
    /// The aliases of the tables, sorted.
    pub fn tables(&self) -> &[String] {
        self.values.aliases()
    }

    /// The connector with its placeholders looked up and everything checked.
    pub async fn resolve(&self, resolver: &Resolver) -> Result<Connector, ResolveError> {
        let values = resolver.resolve(&self.values).await?;
        Ok(self.with_values(values, resolver)?)
    }

    /// The connector as it is by now, and whether anything changed; `None` where no placeholder is due; see [`Resolver::renew`].
    pub async fn renew(&self, resolver: &Resolver) -> Result<Option<(Connector, bool)>, ResolveError> {
        let Some(renewed) = resolver.renew(&self.values).await? else { return Ok(None) };
        Ok(Some((self.with_values(renewed.values, resolver)?, renewed.changed)))
    }

    /// The connector as it is after a look at rotated secrets, and whether anything changed; see [`Resolver::refresh`].
    pub async fn refresh(&self, resolver: &Resolver) -> Result<(Connector, bool), ResolveError> {
        let refreshed = resolver.refresh(&self.values).await?;
        Ok((self.with_values(refreshed.values, resolver)?, refreshed.changed))
    }

    fn with_values(&self, values: Values, resolver: &Resolver) -> Result<Connector, Faults> {
        let mut faults = Faults::default();
        values.check_resolved(&mut faults);
        if faults.is_empty() {
            (self.kind.check)(&values, &resolver.env(), &mut faults);
        }
        // What deserves a look and could not be seen before; the rest was told when the documents were loaded.
        for warning in std::mem::take(&mut faults.warnings.0) {
            if let Some(key) = warning.key.filter(|key| self.values.is_pending(key)) {
                tracing::warn!(connector = %self.name, %key, "{}", warning.message);
            }
        }
        faults.into_result(Connector { values, ..self.clone() })
    }

    /// The producer's settings for this connector; both documents must be resolved for it to be whole.
    pub fn producer(&self, worker: &Worker) -> Result<ProducerSettings, Faults> {
        let mut faults = Faults::default();
        let settings = producer::merge(&worker.values, Some(&self.values), &mut faults);
        faults.into_result(settings)
    }

    /// A fault of the producer's `setting`, by librdkafka's name, at the key that gives it in one of the two documents.
    pub fn producer_fault(&self, worker: &Worker, setting: &str, message: &str) -> Fault {
        producer::fault(&worker.values, &self.values, setting, message)
    }

    /// How topics are made that do not exist; `None` when they must exist. Both documents must be resolved.
    pub fn topic_creation(&self, worker: &Worker) -> Option<TopicCreation> {
        topics::creation(&self.values, &worker.values)
    }
}
