//! What can go wrong between here and a server, and what may be done about it.
//!
//! Whoever reads these has no access to the server's log, so each says at which stage it happened and, where the server
//! spoke, with which number, state and class: `Login failed` hides its reason in the state. No text of this module holds
//! a password; the driver is never asked to print its settings.

use std::fmt;
use std::time::Duration;

use super::catalog;
use super::keys::TableName;
use super::sequence::Sequence;
use super::validate::Refusal;
use super::value;
use crate::failure::{Failure, Retry};
use crate::source::{SCHEMA_CHANGED, UNANSWERED};

/// How far a connection had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The name is looked up and the socket opened.
    Connect,
    /// Encryption is agreed on and established. With `mssql.encrypt=strict` the login looks the same from here.
    Handshake,
    /// The server decides about the login.
    Login,
    /// A statement is carried out.
    Statement,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Handshake => "handshake",
            Self::Login => "login",
            Self::Statement => "statement",
        })
    }
}

/// An error that the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) number: u32,
    pub(super) state: u8,
    pub(super) class: u8,
    pub(super) message: String,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}, state {}, class {}: {}", self.number, self.state, self.class, self.message.trim_end())
    }
}

/// A failure of a poll.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("no connection at stage {stage}: {detail}. The next tick tries again")]
    Unreachable { stage: Stage, detail: String },

    #[error("no answer at stage {stage} within {} ms. The next tick tries again", limit.as_millis())]
    TimedOut { stage: Stage, limit: Duration },

    /// The end of the invocation ended a wait. `said`: the server gave up on a lock for it.
    #[error("{}", cut(*stage, *waited, said.as_ref()))]
    Cut { stage: Stage, waited: Duration, said: Option<Said> },

    #[error("{arrived} of up to {rows} rows of a batch had come at stage statement within {} ms. The next tick tries again with fewer", limit.as_millis())]
    Slow { rows: u32, arrived: u32, limit: Duration, is_cut: bool },

    #[error(
        "the encrypted connection was refused at stage handshake: {detail}. Name the authority's certificate in mssql.tls.ca.path, check that \
         mssql.host is a name in the server's certificate, or trust any certificate with mssql.trust.server.certificate"
    )]
    Tls { detail: String },

    #[error(
        "the server offers no encryption (stage handshake). Install a certificate there, or accept rows and login in clear with mssql.encrypt=optional"
    )]
    NoTls,

    #[error("{detail}")]
    NoBundle { detail: String },

    #[error("the server refused the login at stage {stage} ({said}). Check mssql.user and mssql.password and their placeholders")]
    LoginRefused { stage: Stage, said: Said },

    #[error(
        "the database cannot be opened at stage {stage} ({said}). Check mssql.database and its case, that it is online, and that the login is a user in it"
    )]
    NoDatabase { stage: Stage, said: Said },

    #[error(
        "the database cannot be opened for now at stage {stage} ({said}), as while it fails over or is restored. The next tick tries again. If this \
         lasts, check mssql.database, that it is online, and that the login is a user in it"
    )]
    DatabaseAway { stage: Stage, said: Said },

    #[error("access denied at stage {stage} ({said}). Grant the login SELECT on the table")]
    Forbidden { stage: Stage, said: Said },

    /// Who signs in does not matter: nobody may from here, or in this way.
    #[error(
        "nobody is let in at stage {stage} ({said}). Let the address or the subnet that this comes from through the server's firewall, its rules for \
         virtual networks and its logon triggers; and mssql.host has to be the server's own name, or mssql.user end in @ and that name"
    )]
    NotLetIn { stage: Stage, said: Said },

    #[error("the server redirects in a circle: {first} sends on to {second}, and that one to {third}")]
    RedirectLoop { first: String, second: String, third: String },

    #[error("the server could not do it for now at stage {stage} ({said}). The next tick tries again")]
    Transient { stage: Stage, said: Said },

    #[error("{LOCK} was waited for in vain at stage statement ({said}). The next tick tries again")]
    Blocked { said: Said },

    #[error("the table was altered while it was read ({detail}). The next poll looks at it anew")]
    Altered { detail: String },

    #[error("the server refused a statement of this program at stage {stage} ({said}); please report it")]
    Refused { stage: Stage, said: Said },

    #[error("the answer cannot be read at stage {stage}: {detail}")]
    Malformed { stage: Stage, detail: String },

    #[error("the answer to {statement} has no result; it must not pass for no rows")]
    NoResult { statement: &'static str },

    #[error(
        "rows came out of order: {after} after {before}. Two rows share a sequence, or the server does not order as it compares. Nothing of this batch was sent"
    )]
    OutOfOrder { before: Sequence, after: Sequence },

    /// `rows` had room, and with one more the batch would take `bytes`.
    #[error(
        "a batch of more than {rows} rows takes {bytes} bytes, which is more than a batch may, or than other tables leave. The next tick tries again"
    )]
    Squeezed { rows: u32, bytes: u64 },

    #[error("{}", .0.message)]
    Store(Failure),

    #[error(transparent)]
    Unfit(#[from] Refusal),

    #[error("the table could be polled until now: {0}. It goes on from its cursor once that is mended")]
    NoLongerFit(Refusal),

    #[error(
        "the table is not as it was when it was activated: {difference}. Nothing is read until it is again; `tablesweep cursor accept-schema` goes on with it as it is, from the same cursor"
    )]
    SchemaChanged { difference: String },

    #[error(
        "the highest sequence of the table lies below the cursor at {cursor}: the table was truncated, its sequence began anew, or its last rows \
         were deleted. After a truncation or a new beginning, rows up to the cursor would never be delivered: set the cursor below the first of them \
         with `tablesweep cursor rewind`. If rows were merely deleted, the sweep goes on by itself with the next row above the cursor"
    )]
    // Not how high it is: that grows with every row, and what is told once would be told at every tick.
    Regressed { cursor: Sequence },
}

/// What may be tried at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The same again with a new connection, after a pause.
    Again,
    /// The same with fewer rows.
    Smaller,
    /// Nothing.
    None,
}

impl Error {
    /// What an error of the driver means.
    pub(super) fn of_driver(stage: Stage, error: tiberius::error::Error) -> Self {
        use tiberius::error::Error as Driver;
        match error {
            Driver::Server(token) => Self::said(
                stage,
                Said { number: token.code(), state: token.state(), class: token.class(), message: token.message().to_owned() },
            ),
            Driver::Tls(detail) => Self::Tls { detail: brief(&detail) },
            Driver::Io { kind: std::io::ErrorKind::InvalidData, message } if stage == Stage::Handshake => Self::Tls { detail: message },
            Driver::Io { message, .. } => Self::Unreachable { stage, detail: message },
            // There is no other sign of it.
            Driver::Protocol(text) if text.contains("encryption level") => Self::NoTls,
            other => Self::Malformed { stage, detail: other.to_string() },
        }
    }

    /// What it means with `mssql.encrypt=strict`. A server that does not know it takes the first bytes for no TDS and hangs up, or answers
    /// what is no TLS: it looks like a fault of the network or of the certificate, and is none.
    pub(super) fn under_strict(self) -> Self {
        match self {
            Self::Unreachable { stage: Stage::Handshake, detail } => {
                Self::Unreachable { stage: Stage::Handshake, detail: format!("{detail} ({NOT_STRICT})") }
            }
            Self::Tls { detail } => Self::Tls { detail: format!("{detail} ({NOT_STRICT})") },
            other => other,
        }
    }

    fn said(stage: Stage, said: Said) -> Self {
        // https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
        match said.number {
            18456 | 18452 | 18470 | 18486 | 18487 | 18488 => Self::LoginRefused { stage: Stage::Login, said },
            976 | 978 | 979 | 4060 | 4063 | 4064 => Self::NoDatabase { stage: Stage::Login, said },
            229 | 230 | 300 | 916 => Self::Forbidden { stage, said },
            17892 | 40531 | 40532 | 40615 | 40914 | 42101 | 47073 => Self::NotLetIn { stage, said },
            // The statement names what the catalog named a moment before.
            207 | 208 | 4104 if stage == Stage::Statement => Self::Altered { detail: said.to_string() },
            1222 => Self::Blocked { said },
            number if TRANSIENT.contains(&number) || said.class >= RESOURCES => Self::Transient { stage, said },
            _ => Self::Refused { stage, said },
        }
    }

    /// What it means for a table that could be read before: the document names the right database, and a server that fails over or is
    /// restored says the same as one that has none of that name.
    pub(super) fn of_activated(self) -> Self {
        match self {
            Self::NoDatabase { stage, said } => Self::DatabaseAway { stage, said },
            Self::Unfit(refusal) => Self::NoLongerFit(refusal),
            other => other,
        }
    }

    /// The stable code.
    fn code(&self) -> &'static str {
        match self {
            Self::Cut { waited, .. } if *waited < UNANSWERED => "Source.BudgetSpent",
            Self::Slow { is_cut: true, .. } => "Source.BudgetSpent",
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Transient { .. } | Self::Blocked { .. } => "Source.Unavailable",
            Self::Cut { .. } | Self::Slow { .. } => "Source.Unavailable",
            Self::Tls { .. } | Self::NoTls => "Source.Tls",
            Self::NoBundle { .. } => "Source.CertificateStore",
            Self::LoginRefused { .. } => "Source.Unauthorized",
            Self::NoDatabase { .. } | Self::DatabaseAway { .. } => "Source.NoDatabase",
            Self::Forbidden { .. } | Self::NotLetIn { .. } => "Source.Forbidden",
            Self::RedirectLoop { .. } => "Source.Redirected",
            Self::Altered { .. } => "Source.Altered",
            Self::Refused { .. } => "Source.Refused",
            Self::Malformed { .. } | Self::NoResult { .. } => "Source.Malformed",
            Self::OutOfOrder { .. } => "Source.OutOfOrder",
            Self::Squeezed { .. } => "Source.NoMemory",
            Self::Unfit(refusal) | Self::NoLongerFit(refusal) => refusal.code(),
            Self::SchemaChanged { .. } => SCHEMA_CHANGED,
            Self::Regressed { .. } => "Source.SequenceRegressed",
            // It brings its own.
            Self::Store(_) => "Cursor.Unreachable",
        }
    }

    /// What may be tried at once. A time-out has cost its time already and is not repeated as it was; a batch of which rows had come is
    /// asked for with fewer of them. A server that said nothing at all would not say more to a smaller question.
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Self::Unreachable { .. } | Self::Transient { .. } | Self::DatabaseAway { .. } | Self::Altered { .. } => Remedy::Again,
            Self::Slow { .. } | Self::Squeezed { .. } => Remedy::Smaller,
            _ => Remedy::None,
        }
    }

    /// What happened, without what becomes of it: for the log of what is tried again at once.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Unreachable { stage, detail } => format!("no connection at stage {stage}: {detail}"),
            Self::Transient { stage, said } => format!("the server could not do it for now at stage {stage} ({said})"),
            Self::Altered { detail } => format!("the table was altered while it was read ({detail})"),
            other => other.to_string(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } | Self::Transient { .. } | Self::Blocked { .. } => Retry::NextTick,
            Self::Cut { .. }
            | Self::Slow { .. }
            | Self::DatabaseAway { .. }
            | Self::Altered { .. }
            | Self::Malformed { .. }
            | Self::NoResult { .. }
            | Self::Squeezed { .. } => Retry::NextTick,
            Self::SchemaChanged { .. } | Self::Regressed { .. } | Self::NoLongerFit(_) => Retry::Wait,
            _ => Retry::Never,
        }
    }

    /// Whether the end of the invocation is what ended it.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. } | Self::Slow { is_cut: true, .. })
    }

    /// Whether the server had its time and did not answer.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Cut { waited, .. } if *waited >= UNANSWERED)
    }

    /// Whether it is a wait that came to nothing, of a connection that was good.
    pub(super) fn is_wait(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Blocked { .. } | Self::Cut { .. })
    }

    /// The failure of the table `alias` (`table` on the server) of `connector`.
    pub(super) fn of(&self, connector: &str, alias: &str, table: &TableName) -> Failure {
        let failure = Failure::new(self.code(), self.retry(), format!("{connector}/{alias} (table {table}): {self}"));
        match self {
            Self::Store(own) => Failure { message: failure.message, ..own.clone() },
            Self::LoginRefused { .. } => failure.of_instance(),
            _ => failure,
        }
    }
}

impl From<catalog::Unreadable> for Error {
    fn from(error: catalog::Unreadable) -> Self {
        Self::Malformed { stage: Stage::Statement, detail: error.to_string() }
    }
}

impl From<value::Error> for Error {
    fn from(error: value::Error) -> Self {
        match error {
            value::Error::Altered { .. } => Self::Altered { detail: error.to_string() },
            other => Self::Malformed { stage: Stage::Statement, detail: other.to_string() },
        }
    }
}

/// What error 1222 says of who is in the way.
const LOCK: &str = "a lock that another session holds (a row being written, or the table being altered)";

/// Why the first step towards an encrypted connection may have failed with `mssql.encrypt=strict`.
const NOT_STRICT: &str =
    "a server older than SQL Server 2022 does not speak what mssql.encrypt=strict asks for; mandatory is the other choice";

/// Errors of this class and above are of the server and not of the statement: it is out of something, has a fault, or ends the
/// connection. https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-error-severities
const RESOURCES: u8 = 17;

/// Errors that pass by themselves: Microsoft.Data.SqlClient's list for its configurable retry, the login-time numbers
/// of Azure beside it, 3947 of readable secondaries, 41301 and its kin of memory-optimised tables, and those of a server that is starting,
/// recovering, failing over or in single-user mode.
/// https://learn.microsoft.com/dotnet/api/microsoft.data.sqlclient.sqlconfigurableretryfactory
const TRANSIENT: &[u32] = &[
    233, 596, 601, 701, 921, 922, 926, 952, 983, 997, 1203, 1204, 1205, 3947, 3960, 4221, 6005, 8628, 8645, 8651, 9001, 10053, 10054,
    10060, 10928, 10929, 17142, 17187, 17197, 17809, 18401, 18451, 18461, 20041, 40020, 40143, 40166, 40197, 40501, 40540, 40613, 41301,
    41302, 41305, 41325, 41839, 42108, 42109, 49918, 49919, 49920,
];

fn cut(stage: Stage, waited: Duration, said: Option<&Said>) -> String {
    let waited = waited.as_millis();
    match said {
        None => format!("no answer at stage {stage} within {waited} ms, all that the invocation had left. The next tick tries again"),
        Some(said) => format!(
            "{LOCK} was waited for in vain at stage {stage} for {waited} ms, about what the invocation had left ({said}). \
             The next tick tries again"
        ),
    }
}

/// The driver's advice about its own settings, which are not ours, is left out.
fn brief(detail: &str) -> String {
    detail.split(" To connect anyway").next().unwrap_or(detail).trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(number: u32) -> Error {
        Error::said(Stage::Statement, Said { number, state: 7, class: 14, message: "Because. ".to_owned() })
    }

    fn failure(error: &Error) -> Failure {
        error.of("c", "orders", &TableName { schema: "dbo".into(), table: "orders".into() })
    }

    #[test]
    fn a_refused_login_belongs_to_the_instance_and_is_never_repeated() {
        for number in [18456, 18486, 18487, 18488] {
            let failure = failure(&said(number));
            assert_eq!(
                (&*failure.code, failure.retry, failure.scope),
                ("Source.Unauthorized", Retry::Never, crate::failure::Scope::Instance)
            );
            for part in ["stage login", &number.to_string(), "state 7", "class 14", "Because", "dbo.orders", "mssql.password"] {
                assert!(failure.message.contains(part), "{part} in {}", failure.message);
            }
        }
    }

    #[test]
    fn what_passes_by_itself_is_tried_again_and_what_does_not_is_not() {
        for number in [1205, 3947, 10928, 40197, 40501, 40613, 49918, 233, 922, 952, 17187, 18461, 8628, 41301] {
            assert_eq!((said(number).remedy(), failure(&said(number)).retry), (Remedy::Again, Retry::NextTick), "{number}");
        }
        assert_eq!((said(1222).remedy(), failure(&said(1222)).retry), (Remedy::None, Retry::NextTick), "it has cost its time");
        for number in [102, 156, 229, 245, 916, 4060, 8655, 18456, 40615] {
            assert_eq!((said(number).remedy(), failure(&said(number)).retry), (Remedy::None, Retry::Never), "{number}");
        }
    }

    #[test]
    fn whom_the_server_lets_in_from_nowhere_is_told_of_its_firewall_and_its_name_and_not_of_grants() {
        // Azure SQL: no such server by that name (40531, 40532), address (40615), subnet (40914), no public network (42101, 47073).
        for number in [17892, 40531, 40532, 40615, 40914, 42101, 47073] {
            let failure = failure(&said(number));
            assert_eq!((&*failure.code, failure.retry), ("Source.Forbidden", Retry::Never), "{number}");
            for part in [&number.to_string(), "firewall", "virtual networks", "mssql.host"] {
                assert!(failure.message.contains(part), "{part} in {}", failure.message);
            }
            assert!(!failure.message.contains("SELECT") && !failure.message.contains("report it"), "{}", failure.message);
        }
        for number in [229, 230, 300, 916] {
            assert!(failure(&said(number)).message.contains("Grant the login SELECT"), "{number}");
        }
    }

    #[test]
    fn a_lock_that_was_waited_for_may_be_one_on_a_row_or_on_the_table() {
        let Error::Blocked { said } = said(1222) else { panic!("it is a lock") };
        let cut = Error::Cut { stage: Stage::Statement, waited: Duration::from_secs(2), said: Some(said.clone()) };
        for text in [Error::Blocked { said }.to_string(), cut.to_string()] {
            assert!(text.contains("a row being written") && text.contains("the table being altered"), "{text}");
        }
    }

    #[test]
    fn the_log_of_what_is_tried_again_says_what_happened_and_not_what_becomes_of_it() {
        let errors = [
            Error::Unreachable { stage: Stage::Handshake, detail: "Connection refused".to_owned() },
            said(1205),
            Error::Altered { detail: "no column note".to_owned() },
        ];
        for error in errors {
            let (cause, whole) = (error.cause(), error.to_string());
            assert_eq!(error.remedy(), Remedy::Again);
            assert!(!cause.contains("next") && whole.starts_with(&cause) && whole.contains("The next"), "{cause} / {whole}");
        }
    }

    #[test]
    fn the_drivers_advice_about_its_own_settings_is_left_out() {
        let error = tiberius::error::Error::Tls(
            "the certificate was rejected: UnknownIssuer. To connect anyway you can: (1) `Config::trust_cert()`".into(),
        );
        let text = Error::of_driver(Stage::Handshake, error).to_string();
        assert!(text.contains("UnknownIssuer. Name") && !text.contains("Config::"), "{text}");
    }
}
