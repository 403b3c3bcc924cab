//! The ServiceNow source: tables and views over the Table API, by a keyset cursor on (timestamp, id).
//!
//! ```text
//! keys      what documents say            planner   what to ask next, what an answer means; no I/O
//! http      one request and its answer    range     the two query shapes, and the check of rows against them
//! auth      signing in                    answer    the body: rows as slices, heads of rows
//! transport connections, certificates     hidden    rows that are counted and not shown
//! session   the planner driven over http  position  what is stored of a cursor
//! probe     whether a table can be swept  rate      waits that are asked for
//! ahead     a cursor where no row is any more
//! ```
//!
//! [`Connection`] is an instance as one connector talks to it: one login and one connection pool, shared by its tables.
//! Connectors of one instance share its [`Limiters`].

mod ahead;
mod answer;
mod auth;
mod error;
mod hidden;
mod http;
pub mod keys;
mod limiter;
mod planner;
mod position;
mod probe;
mod range;
mod rate;
mod session;
mod time;
mod transport;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
pub use auth::{NoRotation, Rotation, SigningKey};
use http::Instance;
use keys::{SchemaMode, ServiceNow};
pub use limiter::Limiters;
use planner::{At, Settings};
use probe::{Prober, Trouble, Verdict, Zone};
use range::CursorFields;
use session::Session;
use tokio::sync::OnceCell;

use crate::cursor::{Identity, Position};
use crate::failure::Failure;
use crate::host::Host;
use crate::record::typed::Mapping;
use crate::record::{Names, Shape};
use crate::source::{Probed, Resume, Spent, Table, TableSweep};
use crate::sweep::Allowance;

/// What the names of schemas begin with: the ones of the connector whose documents run here.
const NAMESPACE: &str = "sh.oso.servicenow";

/// An instance with the tables that one document takes from it.
#[derive(Debug)]
pub struct Connection {
    connector: String,
    settings: Arc<ServiceNow>,
    instance: Arc<Instance>,
    zone: Arc<OnceCell<Zone>>,
    /// Who signs in.
    account: String,
}

impl Connection {
    /// Contacts nothing yet.
    ///
    /// # Errors
    /// A store of certificates cannot be used, a proxy's address is wrong, or there are no root certificates.
    pub fn new(
        connector: &str,
        settings: ServiceNow,
        host: Host,
        rotation: Arc<dyn Rotation>,
        limiters: &Limiters,
    ) -> Result<Self, Failure> {
        let instance = Instance::new(host, &settings, rotation, limiters).map_err(|error| error.of(connector, "*", "all"))?;
        let account = settings.account(connector);
        let (settings, instance) = (Arc::new(settings), Arc::new(instance));
        Ok(Self { connector: connector.to_owned(), settings, instance, zone: Arc::default(), account })
    }

    /// The tables with the shape of their records, in the order of their aliases.
    pub fn tables(&self) -> Vec<(Arc<dyn Table>, Shape)> {
        self.settings.tables.iter().map(|table| (Arc::new(self.table(table)) as Arc<dyn Table>, self.shape(table))).collect()
    }

    fn table(&self, table: &keys::Table) -> SnowTable {
        let identity = Identity {
            connector: self.connector.clone(),
            alias: table.alias.clone(),
            source: keys::SOURCE.name.to_owned(),
            instance: self.settings.host.clone(),
            table: table.name.clone(),
            field: table.timestamp_field.clone(),
            id_field: table.sys_id_field.clone(),
            fingerprint: position::fingerprint(&table.name, &table.query, table.query_domain),
        };
        SnowTable {
            identity,
            asked: probe::asked(&self.settings, table),
            table: table.clone(),
            settings: Arc::clone(&self.settings),
            instance: Arc::clone(&self.instance),
            zone: Arc::clone(&self.zone),
            account: self.account.clone(),
        }
    }

    fn shape(&self, table: &keys::Table) -> Shape {
        let settings = &self.settings;
        let names = Names {
            connector: self.connector.clone(),
            alias: table.alias.clone(),
            table: table.name.clone(),
            namespace: NAMESPACE.to_owned(),
        };
        let headers = [("snow.table", table.name.as_str()), ("snow.instance", settings.host.as_str()), ("snow.source.operation", "UPSERT")];
        let shape = Shape::schemaless(names, &table.topic, &headers, "snow.extracted_at", "snow.schema.mode");
        let shape = match settings.schema_mode {
            SchemaMode::Schemaless => shape,
            SchemaMode::Strings => shape.strings(),
            SchemaMode::Typed => shape.mapped(Mapping {
                fields: settings.typed_fields.clone(),
                evolution: settings.schema_evolution,
                uninvited: table.adds_mod_count.then(|| table.mod_count_field()),
            }),
        };
        if settings.emit_envelope { shape.enveloped(&settings.host) } else { shape }
    }
}

/// One table or view.
struct SnowTable {
    identity: Identity,
    /// What a probe of it would ask.
    asked: String,
    table: keys::Table,
    settings: Arc<ServiceNow>,
    instance: Arc<Instance>,
    zone: Arc<OnceCell<Zone>>,
    account: String,
}

#[async_trait]
impl Table for SnowTable {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn account(&self) -> &str {
        &self.account
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
        let start = self.table.start.as_second();
        let cursor = match &from.progress.cursor {
            None => At { second: start, id: String::new() },
            Some(stored) => position::read(stored).ok_or_else(|| self.unreadable(stored))?,
        };
        Ok(Box::new(Session::new(self, from, cursor)))
    }

    async fn probe(&self, allowance: &Allowance) -> Result<Probed, Failure> {
        let start = At { second: self.table.start.as_second(), id: String::new() };
        let mut prober = Prober::new(self, start);
        let mut spent = Spent::default();
        match prober.run(allowance, &mut spent).await {
            Ok(verdict) => Ok(Probed { is_proven: verdict == Verdict::Proven, remarks: prober.remarks, spent }),
            Err(Trouble::Found(finding)) => Err(finding.of(&self.identity.connector, &self.identity.alias, &self.table.name)),
            Err(Trouble::Failed(error)) => Err(error.of(&self.identity.connector, &self.identity.alias, &self.table.name)),
        }
    }
}

impl SnowTable {
    fn planning(&self) -> Settings {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Settings {
            overlap: seconds(self.settings.overlap),
            lag: seconds(self.settings.safety_lag),
            poll: i64::try_from(self.table.poll_interval.as_millis().div_ceil(1000)).unwrap_or(i64::MAX),
            window_limit: self.settings.dedup_window_records,
            fields: self.fields(),
        }
    }

    fn fields(&self) -> CursorFields {
        CursorFields {
            timestamp: self.table.timestamp_field.clone(),
            id: self.table.sys_id_field.clone(),
            mod_count: self.table.mod_count_field(),
        }
    }

    fn unreadable(&self, position: &Position) -> Failure {
        let shown = serde_json::to_string(position).unwrap_or_default();
        Failure::new(
            "Cursor.Format",
            crate::failure::Retry::Never,
            format!(
                "{}/{}: the stored position {shown} is not one of this source; `tablesweep cursor rewind` sets another",
                self.identity.connector, self.identity.alias
            ),
        )
    }
}
