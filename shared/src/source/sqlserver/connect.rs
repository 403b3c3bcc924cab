//! Connections: made for one poll, bounded at every step, closed on every path.
//!
//! `mssql.login.timeout.ms` covers everything up to the accepted login, name look-up and redirect included, and
//! `mssql.query.timeout.ms` a whole statement with all of its rows; both end earlier when the invocation does. The driver's own
//! time-outs are off: they bound the gap between two pieces of an answer, and a server that sends a byte a
//! second would never meet one.
//!
//! A connection is never used again after anything went wrong on it: it is dropped, which closes the socket, and the
//! server ends what it was doing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tiberius::{AuthMethod, Config, EncryptionLevel, Query, Row};
use tokio::time::timeout;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

use super::NAMESPACE;
use super::batch::Plan;
use super::error::{Error, Stage};
use super::keys::{Encrypt, Intent, ReadMode, SchemaMode, SqlServer};
use super::limit::{Limit, Locks};
use super::login::{Credential, Login, Rotation, Turn};
use super::reach::reach;
use super::schema::Baseline;
use super::validate::Pollable;
use super::value;
use super::wire::{Seen, Wire};
use crate::host::Host;
use crate::record::schema::Schema;
use crate::sweep::Allowance;
use crate::tls::{Place, Store, store};

/// What the server shows beside the session.
const PROGRAM: &str = "tablesweep";

/// The longest wait for a polite end of a connection whose work is done.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long a server counts as one without encryption. Whoever installs a certificate is answered in clear for no longer.
const CLEAR_FOR: Duration = Duration::from_secs(3600);

/// A server as this process talks to it; shared by the tables of a connector.
pub(super) struct Server {
    pub(super) settings: SqlServer,
    host: Host,
    login: Login,
    clear: Clear,
    /// The aliases of tables of which it was said that locking reads protect nothing. Once per process is enough.
    told_unlocked: Mutex<BTreeSet<String>>,
}

/// Where to dial, and which name the certificate must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    host: String,
    port: u16,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why a dial did not end in a connection.
enum Missed {
    Redirected(Target),
    Failed(Error),
}

impl From<Error> for Missed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Servers that said that they have no encryption, and when. To ask them again costs a connection, so each is asked once in a while.
#[derive(Debug, Default)]
struct Clear {
    since: Mutex<BTreeMap<Target, Duration>>,
    /// Whether it was said that nothing is encrypted. Once per process is enough.
    has_told: AtomicBool,
}

impl Clear {
    /// Whether `target` said so lately.
    fn is_known(&self, target: &Target, now: Duration) -> bool {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).get(target).copied();
        since.is_some_and(|since| now.saturating_sub(since) < CLEAR_FOR)
    }

    /// `target` says so.
    fn learn(&self, target: &Target, now: Duration) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).insert(target.clone(), now);
        if !self.has_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(server = %target, "the server offers no encryption: login and rows cross the network in clear");
        }
    }

    /// Something went wrong in clear: perhaps `target` wants encryption now.
    fn forget(&self, target: &Target) {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(target);
    }
}

impl Server {
    /// Contacts nothing yet.
    pub(super) fn new(settings: SqlServer, host: Host, rotation: Arc<dyn Rotation>) -> Self {
        let credential = Credential { user: settings.user.clone(), password: settings.password.clone() };
        let login = Login::new(host.clone(), credential, rotation);
        Self { login, settings, host, clear: Clear::default(), told_unlocked: Mutex::default() }
    }

    /// The statements of a table, as the document wants them. `baseline` is what the table looked like at its activation: whether a
    /// field may be null is its to say.
    pub(super) fn plan(&self, table: Pollable, baseline: &Baseline) -> Plan {
        let settings = &self.settings;
        let values = value::Settings { zone: settings.timezone.clone(), decimal_as_string: settings.decimal_as_string };
        let schema = (settings.schema_mode == SchemaMode::Typed).then(|| {
            let fields = baseline.fields(&table.columns, settings.decimal_as_string);
            Arc::new(Schema::structure(format!("{NAMESPACE}.{}.{}.Value", table.schema, table.table), fields))
        });
        Plan::new(table, values, settings.read_mode, schema)
    }

    /// What a person should know who asks for reads that wait for writers of `table`, if they do not.
    pub(super) fn unprotected(&self, table: &Pollable) -> Option<String> {
        let why = table.unlocked.filter(|_| self.settings.read_mode == ReadMode::Locking)?;
        Some(format!(
            "mssql.read.mode=locking protects nothing here: {why}, where a read waits for no row that is being written. A row that becomes visible late is \
             passed over; mssql.audit.interval.ms finds it"
        ))
    }

    /// Says the same, once.
    pub(super) fn tell_unprotected(&self, connector: &str, alias: &str, table: &Pollable) {
        let Some(told) = self.unprotected(table) else { return };
        if self.told_unlocked.lock().unwrap_or_else(PoisonError::into_inner).insert(alias.to_owned()) {
            tracing::warn!(connector, table = alias, "{told}");
        }
    }

    /// Connects and signs in.
    ///
    /// # Errors
    /// Each says how far it had come.
    pub(super) async fn open(&self, allowance: &Allowance) -> Result<Open, Error> {
        let limit = Limit::new(allowance, self.settings.login_timeout);
        let mut turn = limit.bound(&self.host, Stage::Connect, self.login.turn()).await??;
        match self.dial_in(&turn, limit).await {
            Err(error @ Error::LoginRefused { .. }) => turn = self.login.refused(turn, error, limit).await?,
            settled => return self.settle(turn, settled),
        }
        match self.dial_in(&turn, limit).await {
            Err(error @ Error::LoginRefused { .. }) => {
                // What was read again is refused too. Reading it once more finds it unchanged, and that is kept.
                self.login.refused(turn, error.clone(), limit).await?;
                Err(error)
            }
            settled => self.settle(turn, settled),
        }
    }

    fn settle(&self, turn: Turn<'_>, settled: Result<Open, Error>) -> Result<Open, Error> {
        if settled.is_ok() {
            self.login.accepted(turn);
        }
        settled
    }

    /// Follows one redirect. A gateway of Azure SQL sends on to the node that has the database.
    async fn dial_in(&self, turn: &Turn<'_>, limit: Limit) -> Result<Open, Error> {
        let first = Target { host: self.settings.host.clone(), port: self.settings.port };
        let second = match self.negotiate(&first, turn, limit).await {
            Ok(open) => return Ok(open),
            Err(Missed::Failed(error)) => return Err(error),
            Err(Missed::Redirected(target)) => target,
        };
        match self.negotiate(&second, turn, limit).await {
            Ok(open) => Ok(open),
            Err(Missed::Failed(error)) => Err(error),
            Err(Missed::Redirected(third)) => {
                Err(Error::RedirectLoop { first: first.to_string(), second: second.to_string(), third: third.to_string() })
            }
        }
    }

    /// With `mssql.encrypt=optional` a server that cannot encrypt is taken as it is, and that it cannot is remembered. Asked for encryption of the login alone,
    /// which is what the level `Off` of the protocol means, the driver would wait for ever for such a server.
    async fn negotiate(&self, target: &Target, turn: &Turn<'_>, limit: Limit) -> Result<Open, Missed> {
        let level = match self.settings.encrypt {
            Encrypt::Mandatory | Encrypt::Optional => EncryptionLevel::On,
            Encrypt::Strict => EncryptionLevel::Strict,
        };
        if !self.clear.is_known(target, self.host.monotonic()) {
            match self.dial(target, turn, level, limit).await {
                Err(Missed::Failed(Error::NoTls)) if self.settings.encrypt == Encrypt::Optional => {
                    self.clear.learn(target, self.host.monotonic());
                }
                settled => return settled,
            }
        }
        let dialled = self.dial(target, turn, EncryptionLevel::NotSupported, limit).await;
        if matches!(dialled, Err(Missed::Failed(_))) {
            self.clear.forget(target);
        }
        dialled
    }

    async fn dial(&self, target: &Target, turn: &Turn<'_>, level: EncryptionLevel, limit: Limit) -> Result<Open, Missed> {
        let config = self.config(target, turn, level)?;
        let seen = Seen::new(level == EncryptionLevel::Strict);
        let reached = limit.bound(&self.host, Stage::Connect, reach(&self.host, &target.host, target.port)).await?;
        let socket = reached.map_err(|error| Error::Unreachable { stage: Stage::Connect, detail: format!("{target}: {error}") })?;
        let wire = Wire::new(socket, Arc::clone(&seen)).compat_write();
        // Boxed: the driver's future is large.
        let signing_in = Box::pin(tiberius::Client::connect(config, wire));
        match timeout(limit.left(&self.host), signing_in).await {
            Err(_) => Err(limit.passed(seen.stage()).into()),
            Ok(Err(tiberius::error::Error::Routing { host, port })) => Err(Missed::Redirected(Target { host, port })),
            Ok(Err(error)) => {
                let error = Error::of_driver(seen.stage(), error);
                Err(if level == EncryptionLevel::Strict { error.under_strict() } else { error }.into())
            }
            Ok(Ok(client)) => Ok(Open { client, seen, host: self.host.clone(), query_timeout: self.settings.query_timeout }),
        }
    }

    fn config(&self, target: &Target, turn: &Turn<'_>, level: EncryptionLevel) -> Result<Config, Error> {
        let settings = &self.settings;
        let mut config = Config::new();
        // The login names the server that was asked for; the certificate is that of the one that answers.
        config.host(&settings.host);
        config.port(settings.port);
        config.hostname_in_certificate(&target.host);
        config.database(&settings.database);
        config.application_name(PROGRAM);
        config.authentication(AuthMethod::sql_server(&turn.credential.user, turn.credential.password.expose_secret()));
        config.readonly(settings.application_intent == Intent::ReadOnly);
        config.packet_size(settings.packet_size.into());
        config.encryption(level);
        config.handshake_timeout(None);
        config.command_timeout(None);
        // A lone surrogate would end the batch, and every batch after it.
        config.lossy_utf16_decoding(true);
        if settings.trust_server_certificate {
            config.trust_cert();
        } else if let Some(path) = &settings.tls_ca_path {
            let store = Store { key: "mssql.tls.ca.path".to_owned(), place: Place::File(path.clone()), password: None, format: None };
            config.trust_cert_ca_bundle(store::bundle(&store).map_err(|error| Error::NoBundle { detail: error.to_string() })?.into_bytes());
        }
        Ok(config)
    }
}

/// A connection that is signed in.
pub(super) struct Open {
    pub(super) client: tiberius::Client<Compat<Wire>>,
    seen: Arc<Seen>,
    host: Host,
    query_timeout: Duration,
}

impl Open {
    /// The limit of a statement that begins now.
    pub(super) fn limit(&self, allowance: &Allowance) -> Limit {
        Limit::new(allowance, self.query_timeout)
    }

    /// Carries out a statement with few rows, which is told how long it may wait for locks; the rows of each of its results.
    ///
    /// # Errors
    /// The connection must not be used any more.
    pub(super) async fn ask<'q>(
        &mut self,
        statement: impl FnOnce(Locks) -> Query<'q>,
        allowance: &Allowance,
    ) -> Result<Vec<Vec<Row>>, Error> {
        let limit = self.limit(allowance);
        let locks = limit.locks(&self.host);
        let query = statement(locks);
        let asked = async { query.query(&mut self.client).await?.into_results().await };
        let answer = limit.bound(&self.host, Stage::Statement, asked).await?;
        answer.map_err(|error| limit.explain(locks, Error::of_driver(Stage::Statement, error)))
    }

    /// The bytes that came since the last call.
    pub(super) fn take_bytes_in(&self) -> u64 {
        self.seen.take_bytes_in()
    }

    /// Ends a connection whose work is done.
    pub(super) async fn close(self) {
        // Dropped or closed, the socket ends; with TLS this says so first.
        let _ = timeout(FAREWELL, self.client.close()).await;
    }
}
