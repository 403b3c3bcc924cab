//! A server that speaks TDS 7.4, the protocol of SQL Server, with its databases in memory.
//!
//! # Why it exists
//!
//! What makes polling a SQL Server table hard happens between a driver and a server: a value that does not decode, an
//! error after the third row, a row that another transaction has not committed yet, a table that changed since the last
//! poll. A server that replays canned answers shows none of it, and one that answers an unknown statement with success
//! makes every test pass. This one **evaluates** the statements that it is sent: it has a grammar of T-SQL, binds names and
//! types, joins `sys.*` as computed from the definitions, converts between code pages and types as SQL Server does, and
//! knows transactions, locks and row versions. What it does not understand is an error that shows the statement, and is
//! kept in [`Server::refusals`], which tests assert to be empty.
//!
//! # How it is known to be right
//!
//! It was written by the published protocol, not by what our driver accepts. FreeTDS and a client in Python log in, select
//! every type, send parameters and are refused in its tests; neither shares a line with the driver of the product.
//!
//! # Use in a test
//!
//! Tables are made in the language of the database, so that the same words make the same table on a real server.
//!
//! ```
//! use tablesweep_testbed::tds::{Effect, Fault, Server, ServerError};
//!
//! let server = Server::start()?;
//! server.execute("CREATE TABLE dbo.orders (id bigint IDENTITY PRIMARY KEY, note nvarchar(40))")?;
//! server.execute("INSERT INTO dbo.orders (note) VALUES (N'first'), (NULL)")?;
//! // A row that is not committed while this session keeps its transaction open.
//! let mut writer = server.session();
//! writer.execute("BEGIN TRAN; INSERT INTO dbo.orders (note) VALUES (N'in flight')")?;
//! // A deadlock after one row of the next statement that reads the table.
//! server.fault(Fault::new(Effect::ErrorAfterRows(1, ServerError::new(1205, "deadlock"))).containing("dbo.orders"));
//! assert_eq!(server.rows("dbo.orders")?.len(), 2, "what is committed");
//! assert!(server.refusals().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does not do
//!
//! Kerberos, tokens and MARS; cursors, procedures, bulk inserts and table-valued parameters; `RIGHT` and `FULL JOIN`,
//! windows, `GROUPING SETS`. Each is refused by name. Collations compare by Unicode and case, not by the rules of a
//! language. A lock is a row's: there is no escalation, and a deadlock happens only as a fault.

mod collation;
mod connection;
mod engine;
mod faults;
mod log;
mod login;
mod packet;
mod prelogin;
mod reader;
mod request;
mod server;
mod settings;
mod sql;
mod tls;
mod token;
mod types;
mod value;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

pub use collation::Collation;
pub use engine::{Login, SqlError};
pub use faults::{Effect, Fault, ServerError, Stage};
pub use log::{Attempt, Connections, Entry};
pub use login::LoginRequest;
pub use prelogin::Encryption;
pub use settings::{Redirect, Settings};
pub use tls::Identity;
pub use types::{Length, Type};
pub use value::Value;

use engine::{Session, Step, World};
use server::Shared;

/// The login that every server has: an administrator.
pub const USER: &str = "sa";
/// Its password.
pub const PASSWORD: &str = "Sweep-the-tables-1";
/// The database that every server has beside those of its own.
pub const DATABASE: &str = "shop";

/// A running server. It has threads of its own, so that it serves whatever the test's runtime does; dropping it ends it
/// and its connections.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A session beside those of the clients: for what somebody else does to a table.
pub struct Elsewhere {
    shared: Arc<Shared>,
    session: Session,
}

fn now() -> (i32, u64) {
    let now = jiff::Timestamp::now().as_nanosecond() / 100;
    let day = i128::from(864_000_000_000_u64);
    // 719,162 days lie between 0001-01-01 and 1970-01-01.
    let days = i32::try_from(now.div_euclid(day)).unwrap_or(0) + 719_162;
    (days, u64::try_from(now.rem_euclid(day)).unwrap_or(0))
}

impl Server {
    /// Starts with default settings on a free port of the loopback interface: no TLS, [`USER`], [`DATABASE`].
    ///
    /// # Errors
    /// The port or the threads are not to be had.
    pub fn start() -> std::io::Result<Self> {
        Self::start_with(SocketAddr::from(([127, 0, 0, 1], 0)), Settings::default())
    }

    /// Starts with these settings at this address.
    ///
    /// # Errors
    /// The port or the threads are not to be had.
    pub fn start_with(address: SocketAddr, settings: Settings) -> std::io::Result<Self> {
        let listener = server::bind(address)?;
        let address = listener.local_addr()?;
        let mut world = World::new(now);
        world.babelfish = settings.babelfish;
        world.add_database(DATABASE);
        world.logins.push(Login { name: USER.to_owned(), password: PASSWORD.to_owned(), administrator: true, databases: Vec::new() });
        let shared = Arc::new(Shared::new(world, settings));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_name("tds-server").enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("tds-server".to_owned()).spawn(move || {
            if let Err(why) = runtime.block_on(server::serve(listener, Arc::clone(&served), stopped)) {
                served.state().log.refusals.push(format!("the server ended: {why}"));
            }
            runtime.shutdown_background();
        })?;
        Ok(Self { shared, address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Runs statements in [`DATABASE`] as an administrator.
    ///
    /// # Errors
    /// The first error of the statements. A statement that would have to wait for a lock fails with 1222.
    pub fn execute(&self, statements: &str) -> Result<(), SqlError> {
        self.shared.execute(statements)
    }

    /// A session of an administrator in [`DATABASE`], which keeps its transaction from call to call. Dropping it rolls back.
    pub fn session(&self) -> Elsewhere {
        let session = self.shared.state().world.administrator();
        Elsewhere { shared: Arc::clone(&self.shared), session }
    }

    /// The committed rows of a table of [`DATABASE`], in the order in which they were inserted, read off the data: no line
    /// of the evaluation of statements takes part in it.
    ///
    /// # Errors
    /// There is no such table.
    pub fn rows(&self, table: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        self.shared.state().world.committed(DATABASE, table)
    }

    /// Adds a database, or does nothing if there is one of that name. Its collation is that of the server.
    pub fn add_database(&self, name: &str) {
        self.shared.state().world.add_database(name);
    }

    /// Adds or replaces a login.
    pub fn add_login(&self, login: Login) {
        let logins = &mut self.shared.state().world.logins;
        logins.retain(|known| !known.name.eq_ignore_ascii_case(&login.name));
        logins.push(login);
    }

    /// Takes a database off line, or back: a login that wants it fails with 4060.
    pub fn set_offline(&self, database: &str, offline: bool) {
        let world = &mut self.shared.state().world;
        if let Some(found) = world.database(database) {
            world.databases[found].offline = offline;
        }
    }

    /// Adds a fault.
    pub fn fault(&self, fault: Fault) {
        self.shared.state().faults.add(fault);
    }

    /// Removes every fault.
    pub fn clear_faults(&self) {
        self.shared.state().faults.clear();
    }

    /// Faults that may still strike: a test that ends with some has not tested what it meant to.
    pub fn pending_faults(&self) -> usize {
        self.shared.state().faults.pending()
    }

    /// Changes the settings.
    pub fn configure(&self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.shared.state().settings);
    }

    /// Every statement so far.
    pub fn log(&self) -> Vec<Entry> {
        self.shared.state().log.entries.clone()
    }

    /// Every attempt to log in so far.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.shared.state().log.attempts.clone()
    }

    /// Forgets statements and attempts, but not the refusals.
    pub fn clear_log(&self) {
        let log = &mut self.shared.state().log;
        log.entries.clear();
        log.attempts.clear();
    }

    /// Connections of clients.
    pub fn connections(&self) -> Connections {
        self.shared.state().log.connections
    }

    /// What was not understood. Empty in every good test.
    pub fn refusals(&self) -> Vec<String> {
        self.shared.state().log.refusals.clone()
    }
}

impl Drop for Server {
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

impl Elsewhere {
    /// Runs statements.
    ///
    /// # Errors
    /// The first error of the statements. A statement that would have to wait for a lock fails with 1222.
    pub fn execute(&mut self, statements: &str) -> Result<(), SqlError> {
        self.shared.execute_in(statements, &mut self.session)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.shared.state().world.abandon(&mut self.session);
        self.shared.wake();
    }
}

impl Shared {
    fn execute(&self, statements: &str) -> Result<(), SqlError> {
        let mut session = self.state().world.administrator();
        let ran = self.execute_in(statements, &mut session);
        self.state().world.abandon(&mut session);
        self.wake();
        ran
    }

    fn execute_in(&self, statements: &str, session: &mut Session) -> Result<(), SqlError> {
        let mut statements = std::collections::VecDeque::from(engine::parse(statements)?);
        while let Some(statement) = statements.pop_front() {
            let step = self.state().world.run(session, &statement)?;
            match step {
                Step::Blocked => return Err(SqlError::lock_timeout()),
                Step::Done(engine::Answer::Statements(inner)) => inner.into_iter().rev().for_each(|one| statements.push_front(one)),
                Step::Done(_) => {}
            }
        }
        self.wake();
        Ok(())
    }
}

impl World {
    fn add_database(&mut self, name: &str) {
        if self.database(name).is_none() {
            let collation = self.collation;
            self.databases.push(engine::Database::new(name, collation));
        }
    }

    /// A session of nobody in particular, who may do everything.
    fn administrator(&self) -> Session {
        let login = Login { name: "elsewhere".to_owned(), password: String::new(), administrator: true, databases: Vec::new() };
        Session::new(1, login, self.database(DATABASE).unwrap_or(0))
    }

    fn committed(&self, database: &str, table: &str) -> Result<Vec<Vec<Value>>, SqlError> {
        let missing = || SqlError::invalid_object(table);
        let database = &self.databases[self.database(database).ok_or_else(missing)?];
        let found = engine::find(table, database).map(|at| &database.objects[at]).and_then(engine::Object::table).ok_or_else(missing)?;
        Ok(found.committed().map(|row| row.to_vec()).collect())
    }
}
