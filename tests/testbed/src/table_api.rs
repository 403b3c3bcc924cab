//! A simulator of the ServiceNow Table API.
//!
//! # Why it exists
//!
//! What makes sweeping a ServiceNow table hard is not in any schema: the limit is applied before row ACLs, so a short
//! page is not the end; a part of a query that is not understood is dropped and the rest runs; rows of one second come in
//! any order; an answer of 200 may be a login page. A test against a friendly stub proves nothing about that. This
//! simulator filters, orders, limits, hides and misbehaves as instances are documented and reported to do, over real
//! sockets. It was written from those facts and not from what our client needs, and it **refuses what it does not
//! understand**: an unknown parameter or operator is answered with 501 and kept in [`TableApi::refusals`], which tests
//! assert to be empty.
//!
//! # What is true
//!
//! [`TableApi::visible_versions`] reads the expected rows off the data itself. No line of the query evaluation takes part
//! in it, so a fault of the evaluation cannot hide a fault of the client.
//!
//! # Use in a test
//!
//! ```
//! use tablesweep_testbed::table_api::{Effect, Fault, Fields, TableApi};
//!
//! let api = TableApi::start()?;
//! api.set_clock("2026-03-01 12:00:00")?;
//! let id = api.insert("incident", Fields::from([("number", "INC0010001"), ("active", "true")]))?;
//! api.update("incident", &id, [("active", "false")].into())?;
//! api.fault(Fault::new(Effect::MalformedJson).table("incident").skip(1));
//! assert_eq!(api.visible_versions("incident")?.len(), 1);
//! assert!(api.refusals().is_empty());
//! # Ok::<(), tablesweep_testbed::table_api::SimulatorError>(())
//! ```
//!
//! # Use from a shell
//!
//! The program `table-api-simulator` serves the same on a port of its own. Under `/control/` it takes commands and shows
//! what it saw; everything is JSON, and every [`Command`] can be given:
//!
//! | request | what it does |
//! |---|---|
//! | `POST /control/apply` | does one command, or a list of them in turn |
//! | `GET /control/log` | every request: path, decoded parameters, limit, status, rows, total, bytes, faults |
//! | `GET /control/counters` | sums, per table and per status |
//! | `GET /control/refusals` | what was not understood |
//! | `GET /control/versions/<table>` | the rows that a complete sweep must deliver |
//! | `GET /control/settings`, `/control/clock`, `/control/faults` | the settings, the time, how many faults wait |
//!
//! ```text
//! {"op":"generate","table":"incident","rows":1000000,"per_second":100,"start":"2026-01-01 00:00:00"}
//! {"op":"load","table":"sys_user","rows":[{"user_name":"sweep","time_zone":"GMT"}]}
//! {"op":"update","table":"incident","sys_id":"…","fields":{"state":"2"}}
//! {"op":"hide","table":"incident","sys_ids":["…"]}
//! {"op":"step_clock","seconds":60}
//! {"op":"settings","settings":{"collation":"case_insensitive","rate_limit":{"limit":500}}}
//! {"op":"fault","effect":{"kind":"cut_body","after":100},"table":"incident","skip":2,"times":1}
//! {"op":"fault","effect":{"kind":"then","commands":[{"op":"step_clock","seconds":1}]},"times":null}
//! ```
//!
//! # Choices where sources disagree
//!
//! Each is a field of [`Settings`]: whether a `Link` header comes without a count, whether literals follow the user's
//! zone, whether invalid parts are dropped or empty the answer, what the script of a `javascript:` value returns. What
//! stands behind a trailing `^EQ` is ignored.

mod acl;
mod allowance;
mod answer;
mod auth;
mod change_requests;
mod clock;
mod collation;
mod control;
mod data;
mod database;
mod effects;
mod evaluate;
mod faults;
mod generate;
mod grammar;
mod jwt;
mod log;
mod net;
mod params;
mod plan;
mod random;
mod read;
mod row;
mod select;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod view;
mod wire;
mod world;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

pub use acl::{Denied, Forbidden, Rules};
pub use collation::Collation;
pub use control::Command;
pub use data::{ColumnSpec, Version};
pub use faults::{Effect, Fault, HtmlPage, Target};
pub use generate::{Generate, Ids};
pub use log::{Counters, Entry};
pub use random::Random;
pub use row::{Cell, Column, Fields, Kind};
pub use settings::{Credentials, JwtSigner, RateLimit, Settings, TooLong, USER_ID};
pub use tls::{ClientCertificate, Tls};
pub use view::{ViewPart, ViewSpec};

use server::Shared;
use world::World;

/// What the simulator cannot do for its user.
#[derive(Debug, Error)]
pub enum SimulatorError {
    /// The port or the runtime is not to be had, or not any more.
    #[error("the simulator cannot use its port: {0}")]
    Start(#[from] std::io::Error),
    /// A command that makes no sense, such as a second row of one identity.
    #[error("the simulator cannot do that: {0}")]
    Command(String),
}

type Done<T> = Result<T, SimulatorError>;

/// A running simulator. It has threads of its own, so that it serves whatever the test's runtime does; dropping it ends it.
pub struct TableApi {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TableApi {
    /// Starts with default settings, open to everybody, on a free port of the loopback interface.
    pub fn start() -> Done<Self> {
        Self::start_with(SocketAddr::from(([127, 0, 0, 1], 0)), Settings::default(), Credentials::default())
    }

    /// Starts with these settings and credentials at this address.
    pub fn start_with(address: SocketAddr, settings: Settings, credentials: Credentials) -> Done<Self> {
        Self::start_over(address, settings, credentials, None)
    }

    /// Starts over TLS on a free port of the loopback interface.
    pub fn start_tls(settings: Settings, credentials: Credentials, tls: &Tls) -> Done<Self> {
        let acceptor = tls.acceptor().map_err(SimulatorError::Command)?;
        Self::start_over(SocketAddr::from(([127, 0, 0, 1], 0)), settings, credentials, Some(acceptor))
    }

    fn start_over(address: SocketAddr, settings: Settings, credentials: Credentials, tls: Option<TlsAcceptor>) -> Done<Self> {
        let listener = server::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(World::new(settings, credentials, 0x7ab1_e5ee), tls));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("table-api-simulator").enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("table-api-simulator".to_owned()).spawn(move || {
            if let Err(why) = runtime.block_on(server::serve(listener, Arc::clone(&served), stopped)) {
                served.world().refuse(&format!("the server ended: {why}"));
            }
            runtime.shutdown_background();
        })?;
        Ok(Self { shared, address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The instance's URL.
    pub fn url(&self) -> String {
        format!("{}://{}", self.shared.scheme(), self.address)
    }

    /// Does one command and answers what the control endpoint would.
    pub fn apply(&self, command: Command) -> Done<Value> {
        self.shared.world().apply(command).map_err(SimulatorError::Command)
    }

    /// Creates a table with these columns beside the reserved ones.
    pub fn create(&self, table: &str, columns: &[ColumnSpec]) -> Done<()> {
        self.create_without(table, columns, &[])
    }

    /// Creates a table that lacks some of the reserved columns.
    pub fn create_without(&self, table: &str, columns: &[ColumnSpec], without: &[&str]) -> Done<()> {
        let without = without.iter().map(|name| (*name).to_owned()).collect();
        self.apply(Command::Create { table: table.to_owned(), columns: columns.to_vec(), without }).map(drop)
    }

    /// Inserts rows and gives their identities; what the instance writes itself is filled in unless given.
    pub fn load(&self, table: &str, rows: Vec<Fields>) -> Done<Vec<String>> {
        self.shared.world().load(table, rows).map_err(SimulatorError::Command)
    }

    /// Inserts a row and gives its identity. With an old `sys_updated_on` it is a late one.
    pub fn insert(&self, table: &str, fields: Fields) -> Done<String> {
        Ok(self.load(table, vec![fields])?.pop().unwrap_or_default())
    }

    /// Makes rows up.
    pub fn generate(&self, spec: Generate) -> Done<u64> {
        self.apply(Command::Generate(spec)).map(|done| done["rows"].as_u64().unwrap_or(0))
    }

    /// Loads the three recorded rows as `change_request`.
    pub fn load_change_requests(&self) -> Done<()> {
        self.apply(Command::ChangeRequests).map(drop)
    }

    /// Changes a row; `sys_updated_on` becomes now and `sys_mod_count` one more, unless given.
    pub fn update(&self, table: &str, sys_id: &str, fields: Fields) -> Done<()> {
        self.apply(Command::Update { table: table.to_owned(), sys_id: sys_id.to_owned(), fields }).map(drop)
    }

    /// Deletes a row.
    pub fn delete(&self, table: &str, sys_id: &str) -> Done<()> {
        self.apply(Command::Delete { table: table.to_owned(), sys_id: sys_id.to_owned() }).map(drop)
    }

    /// Hides rows by a row ACL, applied after the limit.
    pub fn hide<I: Into<String>>(&self, table: &str, sys_ids: impl IntoIterator<Item = I>) -> Done<()> {
        let sys_ids = sys_ids.into_iter().map(Into::into).collect();
        self.apply(Command::Hide { table: table.to_owned(), sys_ids }).map(drop)
    }

    /// Shows rows again.
    pub fn unhide<I: Into<String>>(&self, table: &str, sys_ids: impl IntoIterator<Item = I>) -> Done<()> {
        let sys_ids = sys_ids.into_iter().map(Into::into).collect();
        self.apply(Command::Unhide { table: table.to_owned(), sys_ids }).map(drop)
    }

    /// Hides every row for which this holds, now and later; the predicate is given a reader of the row's raw fields.
    pub fn hide_when(&self, table: &str, predicate: impl Fn(&dyn Fn(&str) -> Option<String>) -> bool + Send + Sync + 'static) -> Done<()> {
        let mut world = self.shared.world();
        let table = world.db.existing(table).map_err(SimulatorError::Command)?;
        table.access.hide_when(predicate);
        Ok(())
    }

    /// Hides nothing any more.
    pub fn unhide_all(&self, table: &str) -> Done<()> {
        self.apply(Command::UnhideAll { table: table.to_owned() }).map(drop)
    }

    /// Sets the access rules of a table other than those that hide rows.
    pub fn access(&self, table: &str, rules: Rules) -> Done<()> {
        self.apply(Command::Access { table: table.to_owned(), rules }).map(drop)
    }

    /// Defines a view.
    pub fn view(&self, name: &str, view: ViewSpec) -> Done<()> {
        self.apply(Command::View { name: name.to_owned(), view }).map(drop)
    }

    /// Sets the instance's clock: `yyyy-MM-dd HH:mm:ss`, UTC. It keeps running, or standing.
    pub fn set_clock(&self, at: &str) -> Done<()> {
        self.apply(Command::SetClock { at: at.to_owned() }).map(drop)
    }

    /// Moves the instance's clock.
    pub fn step_clock(&self, seconds: i64) {
        self.shared.world().clock.step(seconds);
    }

    /// Stops the instance's clock.
    pub fn freeze_clock(&self) {
        self.shared.world().clock.run(false);
    }

    /// Starts it again.
    pub fn run_clock(&self) {
        self.shared.world().clock.run(true);
    }

    /// The instance's time as a raw date-time value.
    pub fn now(&self) -> String {
        self.shared.world().clock.stamp()
    }

    /// Adds a fault.
    pub fn fault(&self, fault: Fault) {
        self.shared.world().faults.add(fault);
    }

    /// Removes every fault.
    pub fn clear_faults(&self) {
        self.shared.world().faults.clear();
    }

    /// Faults that may still strike: a test that ends with some has not tested what it meant to.
    pub fn pending_faults(&self) -> usize {
        self.shared.world().faults.pending()
    }

    /// Refuses connections, and resets those that are open, until it is called with `false`. When it returns, it is so.
    /// The address has to be one of IP version 4.
    pub fn refuse_connections(&self, refuse: bool) -> Done<()> {
        self.shared.closed.send_replace(refuse);
        Ok(self.shared.door.wait_for(refuse, Duration::from_secs(10))?)
    }

    /// Changes the settings.
    pub fn configure(&self, change: impl FnOnce(&mut Settings)) -> Done<()> {
        let mut world = self.shared.world();
        let mut settings = world.settings.clone();
        change(&mut settings);
        world.configure(settings).map_err(SimulatorError::Command)
    }

    /// Replaces the accepted credentials.
    pub fn set_credentials(&self, credentials: Credentials) {
        self.shared.world().credentials = credentials;
    }

    /// Ends the current access token before its time.
    pub fn revoke_tokens(&self) {
        self.shared.world().tokens.revoke();
    }

    /// Every request so far.
    pub fn log(&self) -> Vec<Entry> {
        self.shared.world().log.entries.clone()
    }

    /// The reads of one table so far.
    pub fn reads(&self, table: &str) -> Vec<Entry> {
        self.shared.world().log.entries.iter().filter(|entry| entry.table == table).cloned().collect()
    }

    /// Sums over the log.
    pub fn counters(&self) -> Counters {
        self.shared.world().log.counters.clone()
    }

    /// What was not understood. Empty in every good test.
    pub fn refusals(&self) -> Vec<String> {
        self.shared.world().log.refusals.clone()
    }

    /// Forgets the log and its sums, but not the refusals.
    pub fn clear_log(&self) {
        self.shared.world().log.clear();
    }

    /// The rows that a complete sweep of a table or view must deliver, read off the data and sorted by bytes.
    pub fn visible_versions(&self, table: &str) -> Done<Vec<Version>> {
        self.shared.world().visible_versions(table).map_err(SimulatorError::Command)
    }
}

impl Drop for TableApi {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread has ended by itself when nobody listens any more.
            stop.send(()).ok();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
