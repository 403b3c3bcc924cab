//! The SQL Server source: tables by an ever growing unique number, over one connection per poll.
//!
//! ```text
//! keys       what documents say              session    polls and batches: what happens in a sweep
//! connect    a connection, bounded, closed   activate   where a table begins
//! reach      from a name to a socket         drift      the baseline in the store
//! login      one try at a time               batch      one statement and its rows
//! wire       the socket below the driver     size       how many rows a batch asks for
//! error      what went wrong, what to do     audit      rows that came late
//! limit      how long a step may take
//!
//! catalog    what a name stands for: object, columns, indexes, in one question
//! validate   whether the table can be polled, or why not
//! schema     the baseline, and how a table differs from it
//! column     what is selected, and what of it arrives
//! value      values and rows as JSON
//! sequence   the numbers that rows are read by
//! position   those numbers as cursors
//! ```
//!
//! [`Connection`] is a server as this process talks to it: one login, shared by the tables of a connector.

mod activate;
mod audit;
mod batch;
pub mod catalog;
pub mod column;
mod connect;
mod drift;
mod error;
pub mod keys;
mod limit;
mod login;
mod position;
mod reach;
pub mod schema;
pub mod sequence;
mod session;
mod size;
pub mod validate;
pub mod value;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use activate::Place;
use batch::Plan;
use connect::{Open, Server};
use error::Error;
use keys::{SchemaMode, SqlServer};
pub use login::{Credential, Rotation};
use sequence::Sequence;
use session::{Names, Session};

use crate::cursor::{Identity, Position};
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::record::{self, Shape};
use crate::source::{LeftOut, Probed, Resume, Spent, Table, TableSweep};
use crate::sweep::Allowance;

/// What the names of schemas begin with.
const NAMESPACE: &str = "tablesweep.sqlserver";

/// A server with the tables that one document takes from it.
pub struct Connection {
    connector: String,
    server: Arc<Server>,
}

impl Connection {
    /// Contacts nothing yet.
    pub fn new(connector: &str, settings: SqlServer, host: Host, rotation: Arc<dyn Rotation>) -> Self {
        Self { connector: connector.to_owned(), server: Arc::new(Server::new(settings, host, rotation)) }
    }

    /// The tables with the shape of their records, in the order of their aliases.
    pub fn tables(&self) -> Vec<(Arc<dyn Table>, Shape)> {
        let settings = &self.server.settings;
        settings.tables.iter().map(|table| (Arc::new(self.table(table)) as Arc<dyn Table>, self.shape(table))).collect()
    }

    fn table(&self, table: &keys::Table) -> SqlTable {
        let settings = &self.server.settings;
        let identity = Identity {
            connector: self.connector.clone(),
            alias: table.alias.clone(),
            source: keys::SOURCE.name.to_owned(),
            instance: keys::instance(&settings.host, settings.port, &settings.database),
            table: table.name.to_string(),
            field: table.sequence_column.clone(),
            id_field: String::new(),
            fingerprint: position::fingerprint(&table.name, &table.sequence_column),
        };
        SqlTable { identity, table: table.clone(), server: Arc::clone(&self.server) }
    }

    fn shape(&self, table: &keys::Table) -> Shape {
        let name = table.name.to_string();
        let headers = [("mssql.table", name.as_str()), ("mssql.server", self.server.settings.host.as_str())];
        let names = record::Names {
            connector: self.connector.clone(),
            alias: table.alias.clone(),
            table: name.clone(),
            namespace: NAMESPACE.to_owned(),
        };
        let shape = Shape::schemaless(names, &table.topic, &headers, "mssql.extracted_at", "mssql.schema.mode");
        let settings = &self.server.settings;
        let shape = match settings.schema_mode {
            SchemaMode::Schemaless => shape,
            SchemaMode::Typed => shape.of_source(),
        };
        if settings.emit_envelope { shape.enveloped(&settings.host) } else { shape }
    }
}

/// One table.
struct SqlTable {
    identity: Identity,
    table: keys::Table,
    server: Arc<Server>,
}

#[async_trait]
impl Table for SqlTable {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn account(&self) -> &str {
        &self.server.settings.user
    }

    fn topic(&self) -> &str {
        &self.table.topic
    }

    fn poll_interval(&self) -> Duration {
        self.table.poll_interval
    }

    fn page_size(&self) -> u32 {
        self.table.batch_size
    }

    async fn open(&self, from: Resume) -> Result<Box<dyn TableSweep>, Failure> {
        let place = match &from.progress.cursor {
            None => Place::NotActivated,
            Some(stored) => Place::After(position::read(stored).ok_or_else(|| self.unreadable(stored))?),
        };
        let names = Names { connector: self.identity.connector.clone(), alias: self.identity.alias.clone() };
        Ok(Box::new(Session::new(Arc::clone(&self.server), names, self.table.clone(), place, from)))
    }

    async fn probe(&self, allowance: &Allowance) -> Result<Probed, Failure> {
        let looked = Box::pin(self.look(allowance)).await;
        let (mut open, plan) = looked.map_err(|error| self.failure(&error))?;
        // The catalog says what the table is, and not whether its rows may be read. A statement for no rows does.
        open.ask(|locks| plan.none(locks), allowance).await.map_err(|error| self.failure(&error))?;
        let bytes_in = open.take_bytes_in();
        open.close().await;
        let remarks = self.server.unprotected(&plan.table).into_iter().collect();
        Ok(Probed { is_proven: true, remarks, spent: Spent { requests: 2, bytes_in, ..Spent::default() } })
    }

    async fn left_out_by_reset(&self, from: &Position, allowance: &Allowance) -> Result<Option<LeftOut>, Failure> {
        if self.table.start != keys::Start::Latest {
            return Ok(None);
        }
        let from = position::read(from).ok_or_else(|| self.unreadable(from))?;
        let counted = Box::pin(self.left_out(from, allowance)).await;
        counted.map(Some).map_err(|error| self.failure(&error))
    }
}

impl SqlTable {
    /// Connects, and finds out whether the table can be polled.
    async fn look(&self, allowance: &Allowance) -> Result<(Open, Plan), Error> {
        let mut open = self.server.open(allowance).await?;
        let results = open.ask(|locks| catalog::question(&self.table, locks), allowance).await?;
        let table = validate::check(catalog::read(&results)?, &self.table.name, &self.table.sequence_column)?;
        let baseline = table.baseline.clone();
        Ok((open, self.server.plan(table, &baseline)))
    }

    /// The rows after `from`, which a table that begins after all its rows would pass over. Where there are rows and none of them is
    /// after `from`, the sequence has begun anew and what is there may not have been delivered.
    async fn left_out(&self, from: Option<Sequence>, allowance: &Allowance) -> Result<LeftOut, Error> {
        let (mut open, plan) = self.look(allowance).await?;
        let mut rows = session::count(&open.ask(|locks| plan.count(from, None, locks), allowance).await?)?;
        let highest = session::highest(&open.ask(|locks| plan.highest(locks), allowance).await?)?;
        let began_anew = highest.is_some_and(|highest| Some(highest) < from);
        if began_anew {
            rows = session::count(&open.ask(|locks| plan.count(None, None, locks), allowance).await?)?;
        }
        open.close().await;
        Ok(LeftOut { rows, began_anew })
    }

    fn failure(&self, error: &Error) -> Failure {
        error.of(&self.identity.connector, &self.identity.alias, &self.table.name)
    }

    fn unreadable(&self, position: &Position) -> Failure {
        let shown = serde_json::to_string(position).unwrap_or_default();
        Failure::new(
            "Cursor.Format",
            Retry::Never,
            format!(
                "{}/{}: the stored position {shown} is not one of this source; `tablesweep cursor rewind` sets another",
                self.identity.connector, self.identity.alias
            ),
        )
    }
}
