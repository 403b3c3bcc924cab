//! A session's statements, one after another.

use super::super::sql::{self, Statement, TypeName};
use super::super::types::Type;
use super::super::value::Value;
use super::bind::Binder;
use super::database::{Login, World};
use super::define::{define, resolve_type};
use super::error::{SqlError, Stop};
use super::eval::{Context, local};
use super::plan::{Line, Node};
use super::select::OutputColumn;
use super::{convert, write};

/// What a connection has of its own.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: u32,
    pub login: Login,
    /// The place of the database in the world.
    pub database: usize,
    pub application: String,
    pub host: String,
    pub encrypted: bool,
    pub isolation: String,
    /// Milliseconds; -1 waits for ever.
    pub lock_timeout: i64,
    pub transaction: Option<u64>,
    /// `@@TRANCOUNT`.
    pub nesting: u32,
    pub implicit_transactions: bool,
    pub identity_insert: Option<String>,
    pub row_count: i64,
    pub last_error: i32,
    pub variables: Vec<(String, Type, Value)>,
}

impl Session {
    pub fn new(id: u32, login: Login, database: usize) -> Self {
        Self {
            id,
            login,
            database,
            application: String::new(),
            host: String::new(),
            encrypted: false,
            isolation: "read committed".to_owned(),
            lock_timeout: -1,
            transaction: None,
            nesting: 0,
            implicit_transactions: false,
            identity_insert: None,
            row_count: 0,
            last_error: 0,
            variables: Vec::new(),
        }
    }
}

/// The rows of a `SELECT`, each to be finished when it is sent.
pub struct ResultSet {
    pub columns: Vec<OutputColumn>,
    pub lines: Vec<Line>,
    project: Option<Vec<Node>>,
}

impl ResultSet {
    /// One row as it is sent.
    pub fn row(&self, at: usize) -> Result<Vec<Value>, SqlError> {
        let line = &self.lines[at];
        match &self.project {
            None => Ok(line.to_vec()),
            Some(project) => project.iter().map(|node| local(node, line)).collect(),
        }
    }
}

/// What a statement gives.
pub enum Answer {
    Rows(ResultSet),
    /// So many rows were written; `None` for a statement that counts none.
    Done(Option<usize>),
    /// The database of the session is another one.
    Database {
        old: String,
        new: String,
    },
    /// A message, such as that of `PRINT`.
    Message(String),
    /// Statements that take this one's place.
    Statements(Vec<Statement>),
}

/// Where a statement has got to.
pub enum Step {
    Done(Answer),
    /// It waits for a transaction of somebody else.
    Blocked,
}

/// The statements of a batch, or the error that keeps all of them from running.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    sql::script(text).map_err(|error| SqlError::syntax(&error.near, text))
}

impl World {
    /// Runs one statement. Blocked, it has changed nothing and is to be tried again.
    pub fn run(&mut self, session: &mut Session, statement: &Statement) -> Result<Step, SqlError> {
        let ran = match self.statement(session, statement) {
            Ok(answer) => Ok(Step::Done(answer)),
            Err(Stop::Blocked) => Ok(Step::Blocked),
            Err(Stop::Error(error)) => Err(error),
        };
        session.last_error = ran.as_ref().err().map_or(0, |error| error.number);
        ran
    }

    fn statement(&mut self, session: &mut Session, statement: &Statement) -> Result<Answer, Stop> {
        match statement {
            Statement::Select(query) => {
                let plan = Binder::new(self, session).query(query)?;
                let mut cx = Context { world: self, session, transaction: session.transaction, outer: Vec::new() };
                let selected = plan.run(&mut cx)?;
                session.row_count = i64::try_from(selected.lines.len()).unwrap_or(i64::MAX);
                Ok(Answer::Rows(ResultSet { columns: plan.columns, lines: selected.lines, project: selected.project }))
            }
            Statement::Insert { .. } | Statement::Update { .. } | Statement::Delete { .. } | Statement::Truncate(_) => {
                let count = self.writing(session, statement)?;
                if let Some(count) = count {
                    session.row_count = i64::try_from(count).unwrap_or(i64::MAX);
                }
                Ok(Answer::Done(count))
            }
            Statement::Begin => {
                session.nesting += 1;
                if session.transaction.is_none() {
                    session.transaction = Some(self.begin());
                }
                Ok(Answer::Done(None))
            }
            Statement::Commit => self.end(session, true).map_err(Stop::from),
            Statement::Rollback => self.end(session, false).map_err(Stop::from),
            Statement::Use(name) => {
                let old = self.databases[session.database].name.clone();
                self.open_database(session, name)?;
                Ok(Answer::Database { old, new: self.databases[session.database].name.clone() })
            }
            Statement::Set(option, value) => set(session, option, value).map_err(Stop::from),
            Statement::Declare(name, ty, value) => {
                let declared = self.declare(session, name, ty)?;
                let value = match value {
                    Some(expr) => self.value_of(session, expr, declared)?,
                    None => Value::Null,
                };
                session.variables.push((name.clone(), declared, value));
                Ok(Answer::Done(None))
            }
            Statement::SetVariable(name, expr) => {
                let at = session.variables.iter().rposition(|(known, _, _)| known.eq_ignore_ascii_case(name));
                let at = at.ok_or_else(|| SqlError::new(137, 1, format!("Must declare the scalar variable \"{name}\".")).class(15))?;
                let value = self.value_of(session, expr, session.variables[at].1)?;
                session.variables[at].2 = value;
                Ok(Answer::Done(None))
            }
            Statement::If { condition, then, otherwise } => {
                let node = Binder::new(self, session).predicate(condition)?;
                let mut cx = Context { world: self, session, transaction: session.transaction, outer: Vec::new() };
                let chosen = if cx.test(&node, &[])? { then } else { otherwise };
                Ok(Answer::Statements(chosen.clone()))
            }
            Statement::Print(expr) => {
                let typed = Binder::new(self, session).scalar(expr)?;
                let to = Type::sysname(self.databases[session.database].collation);
                Ok(Answer::Message(self.evaluated(session, &typed.node, typed.ty, to)?.to_string()))
            }
            Statement::Raise { number, message, severity, state } => {
                let text = Type::NVarChar(super::super::types::Length::Limited(2048), self.databases[session.database].collation);
                let message = self.value_of(session, message, text)?.to_string();
                let severity = self.value_of(session, severity, Type::Int)?.integer().unwrap_or(16);
                let state = self.value_of(session, state, Type::Int)?.integer().unwrap_or(1);
                if severity <= 10 {
                    return Ok(Answer::Message(message));
                }
                let error = SqlError::new(*number, u8::try_from(state).unwrap_or(1), message);
                Err(error.class(u8::try_from(severity).unwrap_or(16)).into())
            }
            definition => {
                define(self, session, definition)?;
                Ok(Answer::Done(None))
            }
        }
    }

    fn declare(&self, session: &Session, name: &str, ty: &TypeName) -> Result<Type, SqlError> {
        if session.variables.iter().any(|(known, _, _)| known.eq_ignore_ascii_case(name)) {
            return Err(SqlError::new(134, 1, format!("The variable name '{name}' has already been declared.")).class(15));
        }
        resolve_type(self, session.database, ty, false)
    }

    fn value_of(&self, session: &Session, expr: &sql::Expr, to: Type) -> Result<Value, Stop> {
        let typed = Binder::new(self, session).scalar(expr)?;
        self.evaluated(session, &typed.node, typed.ty, to)
    }

    fn evaluated(&self, session: &Session, node: &Node, from: Type, to: Type) -> Result<Value, Stop> {
        let mut cx = Context { world: self, session, transaction: session.transaction, outer: Vec::new() };
        let value = cx.eval(node, &[])?;
        convert(&value, &from, &to, 0).map_err(Stop::from)
    }

    /// A statement that writes is whole or not at all.
    fn writing(&mut self, session: &mut Session, statement: &Statement) -> Result<Option<usize>, Stop> {
        if session.implicit_transactions && session.transaction.is_none() {
            session.nesting = 1;
            session.transaction = Some(self.begin());
        }
        let own = session.transaction;
        let transaction = own.unwrap_or_else(|| self.begin());
        let before = self.marks(transaction);
        let ran = match statement {
            Statement::Insert { table, columns, source } => write::insert(self, session, transaction, table, columns, source).map(Some),
            Statement::Update { table, set, filter } => write::update(self, session, transaction, table, set, filter.as_ref()).map(Some),
            Statement::Delete { table, filter } => write::delete(self, session, transaction, table, filter.as_ref()).map(Some),
            Statement::Truncate(table) => write::truncate(self, session, transaction, table).map(|()| None),
            _ => Ok(None),
        };
        match own {
            None => self.finish(transaction, ran.is_ok()),
            // What a failed statement has written goes; what came before it in the transaction stays.
            Some(_) if ran.is_err() => self.undo(transaction, &before),
            Some(_) => {}
        }
        ran
    }

    fn end(&mut self, session: &mut Session, commit: bool) -> Result<Answer, SqlError> {
        let Some(transaction) = session.transaction else {
            let (number, word) = if commit { (3902, "COMMIT") } else { (3903, "ROLLBACK") };
            return Err(SqlError::new(number, 1, format!("The {word} TRANSACTION request has no corresponding BEGIN TRANSACTION.")));
        };
        session.nesting = if commit { session.nesting - 1 } else { 0 };
        if session.nesting == 0 {
            self.finish(transaction, commit);
            session.transaction = None;
        }
        Ok(Answer::Done(None))
    }

    /// What happens to a session's transaction when its connection ends.
    pub fn abandon(&mut self, session: &mut Session) {
        if let Some(transaction) = session.transaction.take() {
            self.finish(transaction, false);
        }
        session.nesting = 0;
    }

    /// Makes a database the session's, if there is one of that name that may be opened.
    pub fn open_database(&self, session: &mut Session, name: &str) -> Result<(), SqlError> {
        let found = self.database(name).ok_or_else(|| {
            SqlError::new(911, 1, format!("Database '{name}' does not exist. Make sure that the name is entered correctly."))
        })?;
        let allowed = session.login.administrator
            || session.login.databases.is_empty()
            || session.login.databases.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        if !allowed {
            return Err(SqlError::new(
                916,
                1,
                format!(
                    "The server principal \"{}\" is not able to access the database \"{name}\" under the current security context.",
                    session.login.name
                ),
            )
            .class(14));
        }
        if self.databases[found].offline {
            return Err(SqlError::new(942, 4, format!("Database '{name}' cannot be opened because it is offline.")).class(14));
        }
        session.database = found;
        Ok(())
    }
}

/// The options that clients set. Those that change what a statement means are done or refused; the others are taken.
fn set(session: &mut Session, option: &str, value: &str) -> Result<Answer, SqlError> {
    /// Options that change no answer that this server gives, at either value or at the one that is named.
    const TAKEN: &[(&str, &str)] = &[
        ("ansi_nulls", "on"),
        ("ansi_padding", "on"),
        ("ansi_warnings", "on"),
        ("ansi_defaults", "on"),
        ("ansi_null_dflt_on", "on"),
        ("arithabort", ""),
        ("concat_null_yields_null", "on"),
        ("cursor_close_on_commit", ""),
        ("quoted_identifier", "on"),
        ("numeric_roundabort", "off"),
        ("nocount", "off"),
        ("xact_abort", ""),
        ("textsize", ""),
        ("dateformat", "ymd"),
        ("dateformat", "mdy"),
        ("language", "us_english"),
        ("datefirst", ""),
        ("deadlock_priority", ""),
        ("rowcount", "0"),
        ("fmtonly", "off"),
        ("context_info", ""),
        ("query_governor_cost_limit", ""),
    ];
    match option {
        "lock_timeout" => session.lock_timeout = value.parse().map_err(|_| SqlError::refused(format!("SET LOCK_TIMEOUT {value}")))?,
        "transaction isolation level" => {
            const LEVELS: &[&str] = &["read uncommitted", "read committed", "repeatable read", "serializable", "snapshot"];
            if !LEVELS.contains(&value) {
                return Err(SqlError::refused(format!("SET TRANSACTION ISOLATION LEVEL {value}")));
            }
            value.clone_into(&mut session.isolation);
        }
        "implicit_transactions" => session.implicit_transactions = value == "on",
        _ => {
            if let Some(table) = option.strip_prefix("identity_insert ") {
                session.identity_insert = (value == "on").then(|| table.to_owned());
            } else {
                for one in option.split(',') {
                    if !TAKEN.iter().any(|(known, only)| *known == one && (only.is_empty() || *only == value)) {
                        return Err(SqlError::refused(format!("SET {one} {value}")));
                    }
                }
            }
        }
    }
    Ok(Answer::Done(None))
}
