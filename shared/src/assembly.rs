//! Where the parts are put together: documents become tables to sweep.
//!
//! Sources are registered here and nowhere else: a third one is a folder under `source`, a line in [`SOURCES`] and one in
//! [`Assembly::connect`]. An [`Assembly`] is built once per process and keeps what is dear to make anew, connections and
//! secrets; a connector whose secrets cannot be had keeps no other from being swept.
//!
//! What stands behind placeholders may change while a process lives: the host of a database that failed over, a rotated password. So
//! whoever asks for a connector's tables has them looked up again when they are old (see [`Resolver::renew`]), and only a text
//! that is another one by then makes connections anew. A look that fails changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::config::{Connector, Documents, ResolveError, Resolver, SourceKind, Worker};
use crate::conversion::{Converters, Registries};
use crate::cursor::Key;
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::record::Shape;
use crate::sink::Sink;
use crate::source::servicenow::{self, Connection};
use crate::source::{Table, sqlserver};
use crate::sweep::{Job, Outcome, Reason, TableReport};

/// The sources that documents may name.
pub static SOURCES: &[&SourceKind] = &[&servicenow::keys::SOURCE, &sqlserver::keys::SOURCE];

/// The source of this short name.
pub fn source(name: &str) -> Option<&'static SourceKind> {
    SOURCES.iter().copied().find(|kind| kind.name == name)
}

/// Which tables are meant. Empty lists mean all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Names of connectors.
    pub connectors: Vec<String>,
    /// Aliases, alone or as `connector/alias`.
    pub tables: Vec<String>,
}

impl Selection {
    /// Whether the table `alias` of `connector` is meant.
    pub fn includes(&self, connector: &str, alias: &str) -> bool {
        let by_connector = self.connectors.is_empty() || self.connectors.iter().any(|name| name == connector);
        let by_table = self.tables.is_empty() || self.tables.iter().any(|wanted| names(wanted, connector, alias));
        by_connector && by_table
    }

    /// What is named here and stands in no document: connectors, and tables that none of the connectors has that are meant.
    pub fn unknown(&self, documents: &Documents) -> Vec<String> {
        let unknown = || self.connectors.iter().filter(|name| documents.connector(name).is_none());
        // With no connector that there is, a table is not to be blamed for that.
        let any = self.connectors.is_empty() || unknown().count() == self.connectors.len();
        let meant = || documents.connectors.iter().filter(|connector| any || self.connectors.contains(&connector.name));
        let is_known =
            |wanted: &String| meant().any(|connector| connector.tables().iter().any(|alias| names(wanted, &connector.name, alias)));
        let tables = self.tables.iter().filter(|wanted| !is_known(wanted)).map(|wanted| self.named(wanted));
        unknown().cloned().chain(tables).collect()
    }

    /// A table as it is not known: with the connectors among which it was looked for, if only some were meant.
    fn named(&self, table: &str) -> String {
        if self.connectors.is_empty() { table.to_owned() } else { format!("{table} in {}", self.connectors.join(", ")) }
    }
}

fn names(wanted: &str, connector: &str, alias: &str) -> bool {
    wanted == alias || wanted.strip_prefix(connector).and_then(|rest| rest.strip_prefix('/')) == Some(alias)
}

/// Gives the sink for the records of a connector.
#[async_trait]
pub trait Sinks: Send + Sync {
    /// The sink of `connector`, whose placeholders are resolved.
    ///
    /// # Errors
    /// Its settings do not make a sink.
    fn of(&self, connector: &Connector) -> Result<Arc<dyn Sink>, Failure>;

    /// Ends what the sinks keep running, for a process that is about to end.
    async fn close(&self) {}
}

/// A connector that cannot be swept, and why.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The connector's name.
    pub connector: String,
    /// The aliases that were meant, sorted.
    pub tables: Vec<String>,
    /// Why.
    pub failure: Failure,
}

impl Refused {
    /// What a sweep says of these tables.
    pub fn reports(&self) -> Vec<TableReport> {
        let outcome = if self.failure.retry == Retry::Never { Outcome::Parked } else { Outcome::Failed };
        let report = |alias: &String| TableReport {
            outcome,
            reason: Some(Reason::from(&self.failure)),
            tried: true,
            ..TableReport::new(&self.connector, alias)
        };
        self.tables.iter().map(report).collect()
    }
}

/// The tables of a connector with the shape of their records, as sources connect them.
type Connected = Vec<(Arc<dyn Table>, Shape)>;

/// The same, with the connector's converters.
type Tables = Vec<(Arc<dyn Table>, Arc<Shape>)>;

/// A connector, and what its placeholders stood for when its tables were made.
#[derive(Clone)]
struct Ready {
    connector: Connector,
    worker: Worker,
    tables: Tables,
}

/// Documents, and what was made of them so far in this process.
pub struct Assembly {
    documents: Documents,
    resolver: Arc<Resolver>,
    host: Host,
    connected: Mutex<BTreeMap<String, Ready>>,
    limiters: servicenow::Limiters,
    registries: Registries,
}

impl Assembly {
    /// Contacts nothing yet.
    pub fn new(documents: Documents, resolver: Arc<Resolver>, host: Host) -> Self {
        let registries = Registries::new(Arc::clone(&resolver), host.clone());
        Self { documents, resolver, host, connected: Mutex::default(), limiters: servicenow::Limiters::default(), registries }
    }

    /// The documents.
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// The selected tables, ready to be swept into `sinks`, and the connectors that cannot be.
    pub async fn jobs(&self, selection: &Selection, sinks: &dyn Sinks) -> (Vec<Job>, Vec<Refused>) {
        let (mut jobs, mut refused) = (Vec::new(), Vec::new());
        for connector in &self.documents.connectors {
            let tables: Vec<String> =
                connector.tables().iter().filter(|alias| selection.includes(&connector.name, alias)).cloned().collect();
            if tables.is_empty() {
                continue;
            }
            match self.jobs_of(connector, selection, sinks).await {
                Ok(ready) => jobs.extend(ready),
                Err(failure) => refused.push(Refused { connector: connector.name.clone(), tables, failure }),
            }
        }
        (jobs, refused)
    }

    /// The table `alias` of `connector`.
    ///
    /// # Errors
    /// The connector's documents or secrets do not make one.
    pub async fn table(&self, connector: &str, alias: &str) -> Result<Arc<dyn Table>, Failure> {
        let missing =
            || Failure::new("Config.Invalid", Retry::Never, format!("no document has a table {alias} in a connector {connector}"));
        let connector = self.documents.connector(connector).ok_or_else(missing)?;
        let Ready { tables, .. } = self.connected(connector).await?;
        tables.into_iter().map(|(table, _)| table).find(|table| table.identity().alias == alias).ok_or_else(missing)
    }

    async fn jobs_of(&self, connector: &Connector, selection: &Selection, sinks: &dyn Sinks) -> Result<Vec<Job>, Failure> {
        let Ready { connector: resolved, tables, .. } = self.connected(connector).await?;
        let sink = sinks.of(&resolved)?;
        let cursors: Arc<[Key]> = tables.iter().map(|(table, _)| table.identity().key()).collect();
        let wanted = tables.into_iter().filter(|(table, _)| selection.includes(&connector.name, &table.identity().alias));
        let job = |(table, shape)| Job { table, shape, sink: Arc::clone(&sink), cursors: Arc::clone(&cursors) };
        Ok(wanted.map(job).collect())
    }

    /// The tables of a connector; connected once, and anew when what its placeholders stand for has changed.
    ///
    /// # Errors
    /// A placeholder has no value, or what it stands for is not what its key asks for; never of a connector that was connected
    /// before.
    async fn connected(&self, connector: &Connector) -> Result<Ready, Failure> {
        let mut connected = self.connected.lock().await;
        let ready = match connected.get(&connector.name) {
            None => self.first(connector).await?,
            Some(known) => match self.renewed(known).await {
                Ok(None) => return Ok(known.clone()),
                Ok(Some(renewed)) => renewed,
                Err(failure) => {
                    tell_kept(Some(&connector.name), &failure);
                    return Ok(known.clone());
                }
            },
        };
        connected.insert(connector.name.clone(), ready.clone());
        Ok(ready)
    }

    async fn first(&self, connector: &Connector) -> Result<Ready, Failure> {
        let told = |error: ResolveError| unresolved(&connector.name, &error);
        let resolved = connector.resolve(&self.resolver).await.map_err(told)?;
        let worker = self.documents.worker.resolve(&self.resolver).await.map_err(told)?;
        self.ready(resolved, worker)
    }

    /// What takes the place of `known` where placeholders were due for another look: the same tables, unless one says something else.
    async fn renewed(&self, known: &Ready) -> Result<Option<Ready>, Failure> {
        let told = |error: ResolveError| unresolved(&known.connector.name, &error);
        let connector = known.connector.renew(&self.resolver).await.map_err(told)?;
        let worker = known.worker.renew(&self.resolver).await.map_err(told)?;
        if connector.is_none() && worker.is_none() {
            return Ok(None);
        }
        let (connector, of_connector) = connector.unwrap_or_else(|| (known.connector.clone(), false));
        let (worker, of_worker) = worker.unwrap_or_else(|| (known.worker.clone(), false));
        if !of_connector && !of_worker {
            return Ok(Some(Ready { connector, worker, tables: known.tables.clone() }));
        }
        tracing::info!(connector = connector.name, "what stands behind placeholders has changed, and the connector is connected anew");
        self.ready(connector, worker).map(Some)
    }

    /// Makes the tables of a connector; both documents are resolved.
    fn ready(&self, connector: Connector, worker: Worker) -> Result<Ready, Failure> {
        let Converters { keys, values } = Converters::of(&connector, &worker, &self.registries)?;
        let through = |(table, shape): (Arc<dyn Table>, Shape)| (table, Arc::new(shape.through(Arc::clone(&keys), Arc::clone(&values))));
        let tables = self.connect(&connector)?.into_iter().map(through).collect();
        Ok(Ready { connector, worker, tables })
    }

    fn connect(&self, connector: &Connector) -> Result<Connected, Failure> {
        match connector.kind.name {
            "servicenow" => {
                let settings = servicenow::keys::ServiceNow::read(&connector.values)
                    .map_err(|faults| Failure::new("Config.Invalid", Retry::Never, format!("{}: {faults}", connector.name)))?;
                let rotation = Arc::new(ReadAgain { connector: connector.clone(), resolver: Arc::clone(&self.resolver) });
                Ok(Connection::new(&connector.name, settings, self.host.clone(), rotation, &self.limiters)?.tables())
            }
            "sqlserver" => {
                let settings = sqlserver::keys::SqlServer::read(&connector.values)
                    .map_err(|faults| Failure::new("Config.Invalid", Retry::Never, format!("{}: {faults}", connector.name)))?;
                let rotation = Arc::new(ReadAgain { connector: connector.clone(), resolver: Arc::clone(&self.resolver) });
                Ok(sqlserver::Connection::new(&connector.name, settings, self.host.clone(), rotation).tables())
            }
            // Every kind in SOURCES has its arm above.
            other => Err(Failure::new("Config.Invalid", Retry::Never, format!("{}: there is no source {other}", connector.name))),
        }
    }
}

/// The failure of a document whose placeholders have no usable values. `whose`: a connector's name or a file.
pub(crate) fn unresolved(whose: &str, error: &ResolveError) -> Failure {
    let retry = if error.is_transient() { Retry::NextTick } else { Retry::Never };
    Failure::new(error.code(), retry, format!("{whose}: {error}"))
}

/// Says that another look at placeholders came to nothing, and that what was known before is used. `connector`: none for the worker's own.
pub(crate) fn tell_kept(connector: Option<&str>, failure: &Failure) {
    let (code, message) = (&*failure.code, &failure.message);
    tracing::warn!(connector, code, "what stands behind placeholders is of no use by now, and what was known before is used: {message}");
}

/// Reads a connector's placeholders again after its login was refused.
struct ReadAgain {
    connector: Connector,
    resolver: Arc<Resolver>,
}

#[async_trait]
impl servicenow::Rotation for ReadAgain {
    async fn renew(&self) -> Result<Option<servicenow::keys::Auth>, Failure> {
        let (renewed, changed) = self.connector.refresh(&self.resolver).await.map_err(|error| unresolved(&self.connector.name, &error))?;
        if !changed {
            return Ok(None);
        }
        let settings = servicenow::keys::ServiceNow::read(&renewed.values)
            .map_err(|faults| Failure::new("Config.Invalid", Retry::Never, format!("{}: {faults}", self.connector.name)))?;
        Ok(Some(settings.auth))
    }
}

#[async_trait]
impl sqlserver::Rotation for ReadAgain {
    async fn renew(&self) -> Result<Option<sqlserver::Credential>, Failure> {
        let (renewed, changed) = self.connector.refresh(&self.resolver).await.map_err(|error| unresolved(&self.connector.name, &error))?;
        if !changed {
            return Ok(None);
        }
        let settings = sqlserver::keys::SqlServer::read(&renewed.values)
            .map_err(|faults| Failure::new("Config.Invalid", Retry::Never, format!("{}: {faults}", self.connector.name)))?;
        Ok(Some(sqlserver::Credential { user: settings.user, password: settings.password }))
    }
}

#[cfg(test)]
mod tests;
