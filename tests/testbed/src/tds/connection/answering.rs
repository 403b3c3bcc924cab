//! Answers to requests.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::sync::mpsc;

use super::super::engine::{Answer, ResultSet, Session, SqlError, Step, convert, parse, resolve_type};
use super::super::faults::Effect;
use super::super::log::Entry;
use super::super::packet::{Kind, Message, Packets};
use super::super::request::{self, Act, Request};
use super::super::server::Shared;
use super::super::sql::{Statement, declarations};
use super::super::token::{self, Done};
use super::super::wire::Parameter;
use super::attention_done;

/// How an answer ended.
pub enum Ended {
    Answered,
    /// The client has changed its mind.
    Cancelled,
    /// The connection is to end.
    Closed,
}

/// Writes answers into packets, and packets into the queue of the writer.
pub struct Answering {
    shared: Arc<Shared>,
    connection: u64,
    packet_size: usize,
    bitmaps: bool,
    out: mpsc::Sender<BytesMut>,
    packets: Packets,
    /// Has something of the answer at hand been sent?
    begun: bool,
    sent: usize,
    rows: usize,
    cut: Option<usize>,
    error: Option<i32>,
    fatal: bool,
    entry: Option<Entry>,
}

/// The effects that strike in the middle of rows.
#[derive(Default)]
struct Interruptions {
    error: Option<(usize, SqlError)>,
    delays: Vec<(usize, Duration)>,
    silence: Option<usize>,
}

/// A client that goes in the middle of an answer has asked all the same.
impl Drop for Answering {
    fn drop(&mut self) {
        self.note(true);
    }
}

impl Answering {
    pub fn new(shared: Arc<Shared>, connection: u64, packet_size: usize, bitmaps: bool, out: mpsc::Sender<BytesMut>) -> Self {
        let packets = Packets::new(packet_size);
        Self {
            shared,
            connection,
            packet_size,
            bitmaps,
            out,
            packets,
            begun: false,
            sent: 0,
            rows: 0,
            cut: None,
            error: None,
            fatal: false,
            entry: None,
        }
    }

    /// Sends what there is to send. The place in the queue is taken first: given up while it waits for that, it has
    /// lost nothing, and the packets can still be ended as they should.
    async fn send(&mut self, take: impl FnOnce(&mut Packets) -> BytesMut) -> io::Result<()> {
        let place = self.out.reserve().await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let mut bytes = take(&mut self.packets);
        self.begun |= !bytes.is_empty();
        let cut = self.cut.filter(|cut| self.sent + bytes.len() >= *cut);
        if let Some(cut) = cut {
            bytes.truncate(cut.saturating_sub(self.sent));
        }
        self.sent += bytes.len();
        if !bytes.is_empty() {
            place.send(bytes);
        }
        if cut.is_some() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    async fn put(&mut self, tokens: &[u8]) -> io::Result<()> {
        self.packets.put(tokens);
        if self.packets.has_full() { self.send(Packets::full).await } else { Ok(()) }
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.send(Packets::last).await
    }

    pub async fn acknowledge_attention(&mut self) -> io::Result<()> {
        self.begin();
        let done = attention_done(self.packet_size);
        self.send(|_| done).await
    }

    fn begin(&mut self) {
        self.packets = Packets::new(self.packet_size);
        self.begun = false;
        self.sent = 0;
        self.rows = 0;
        self.cut = None;
        self.error = None;
    }

    /// The end of an answer that was given up: the tokens that are not sent yet, and one more that ends the message.
    pub async fn cancelled(&mut self, session: &Session) -> io::Result<()> {
        let mut out = BytesMut::new();
        let transaction = if session.transaction.is_some() { token::IN_TRANSACTION } else { 0 };
        token::done(&mut out, Done::Statement, token::ATTENTION | transaction, 0, 0);
        self.put(&out).await?;
        self.finish().await?;
        self.note(true);
        Ok(())
    }

    fn note(&mut self, cancelled: bool) {
        if let Some(mut entry) = self.entry.take() {
            entry.rows = self.rows;
            entry.bytes = self.sent;
            entry.error = self.error;
            entry.cancelled = cancelled;
            self.shared.state().log.entries.push(entry);
        }
    }

    pub async fn answer(&mut self, message: Message, session: &mut Session) -> io::Result<Ended> {
        self.begin();
        let request = match message.kind {
            Kind::Batch => request::batch(&message.content),
            Kind::Rpc => request::call(&message.content),
            Kind::TransactionManager => request::transaction(&message.content),
            other => Ok(Request::OtherCall(format!("a message of kind {other:?}"))),
        };
        let ended = match request {
            Ok(request) => self.serve(request, message.packets, session).await,
            Err(unreadable) => {
                self.refuse(&SqlError::refused(unreadable), Done::Statement).await?;
                self.finish().await.map(|()| Ended::Answered)
            }
        };
        self.note(false);
        match ended {
            // The end that a fault wanted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(Ended::Closed),
            other => other,
        }
    }

    async fn serve(&mut self, request: Request, packets: usize, session: &mut Session) -> io::Result<Ended> {
        let (text, called) = match &request {
            Request::Batch(text) => (text.clone(), false),
            Request::Execute { text, .. } => (text.clone(), true),
            Request::OtherCall(name) => (format!("EXEC {name}"), true),
            Request::Transaction(act) => (format!("{act:?} TRANSACTION"), false),
        };
        let database = self.shared.state().world.databases[session.database].name.clone();
        self.entry = Some(Entry {
            connection: self.connection,
            user: session.login.name.clone(),
            database,
            text: text.clone(),
            parameters: Vec::new(),
            called,
            packets,
            rows: 0,
            bytes: 0,
            error: None,
            cancelled: false,
        });
        let effects = self.shared.state().faults.of_statement(&text);
        let Some((interruptions, after)) = self.suffer(effects).await? else { return Ok(Ended::Closed) };
        match request {
            Request::Batch(text) => self.batch(&text, session, interruptions, Done::Statement).await?,
            Request::Execute { text, declarations, parameters } => {
                let before = std::mem::take(&mut session.variables);
                let isolation = session.isolation.clone();
                let lock_timeout = session.lock_timeout;
                match self.bind(&declarations, parameters, session) {
                    Ok(()) => self.batch(&text, session, interruptions, Done::InProcedure).await?,
                    Err(error) => self.refuse(&error, Done::InProcedure).await?,
                }
                // What a procedure sets is as before when it returns.
                session.variables = before;
                session.isolation = isolation;
                session.lock_timeout = lock_timeout;
                let mut out = BytesMut::new();
                token::return_status(&mut out, i32::from(self.error.is_some()));
                let failed = if self.error.is_some() { token::ERROR } else { 0 };
                token::done(&mut out, Done::Procedure, failed, 0, 0);
                self.put(&out).await?;
            }
            Request::OtherCall(name) => self.refuse(&SqlError::refused(format!("the call of {name}")), Done::Procedure).await?,
            Request::Transaction(act) => self.transaction(act, session).await?,
        }
        self.finish().await?;
        for text in after {
            self.elsewhere(&text);
        }
        Ok(if self.fatal { Ended::Closed } else { Ended::Answered })
    }

    /// Does what the effects want before the statement runs; `None` when the connection is to end.
    async fn suffer(&mut self, effects: Vec<Effect>) -> io::Result<Option<(Interruptions, Vec<String>)>> {
        let mut interruptions = Interruptions::default();
        let mut after = Vec::new();
        for effect in effects {
            match effect {
                Effect::Silence(_) => std::future::pending().await,
                Effect::Close(_) => return Ok(None),
                Effect::Garbage(_, bytes) => {
                    self.send(|_| BytesMut::from(&bytes[..])).await?;
                    return Ok(None);
                }
                Effect::Error(error) => interruptions.error = Some((usize::MAX, (&error).into())),
                Effect::ErrorAfterRows(rows, error) => interruptions.error = Some((rows, (&error).into())),
                Effect::DelayAfterRows(rows, delay) => interruptions.delays.push((rows, delay)),
                Effect::SilenceAfterRows(rows) => interruptions.silence = Some(rows),
                Effect::Delay(delay) => tokio::time::sleep(delay).await,
                Effect::Cut(bytes) => self.cut = Some(bytes),
                Effect::Before(text) => self.elsewhere(&text),
                Effect::After(text) => after.push(text),
                Effect::LoginError(_) => {}
            }
        }
        Ok(Some((interruptions, after)))
    }

    /// Runs statements as somebody else would.
    fn elsewhere(&self, text: &str) {
        let ran = self.shared.execute(text);
        if let Err(error) = ran {
            self.shared.state().log.refusals.push(format!("a fault's own statements failed: {error}: {text}"));
        }
    }

    /// Gives the parameters their declared types.
    fn bind(&self, declared: &str, parameters: Vec<Parameter>, session: &mut Session) -> Result<(), SqlError> {
        let declared = declarations(declared).map_err(|error| SqlError::syntax(&error.near, declared))?;
        let state = self.shared.state();
        let mut given = parameters.into_iter().collect::<VecDeque<_>>();
        let mut bound = Vec::new();
        for (name, ty) in &declared {
            let ty = resolve_type(&state.world, session.database, ty, false)?;
            let by_name = given.iter().position(|parameter| parameter.name.eq_ignore_ascii_case(name));
            let place = by_name.or(given.iter().position(|parameter| parameter.name.is_empty()));
            let parameter = place.and_then(|place| given.remove(place)).ok_or_else(|| {
                SqlError::new(8178, 1, format!("The parameterized query expects the parameter '{name}', which was not supplied."))
            })?;
            let value = convert(&parameter.value, &parameter.ty, &ty, 0)?;
            bound.push((name.clone(), ty, value));
        }
        if let Some(extra) = given.front() {
            return Err(SqlError::new(8145, 1, format!("{} is not a parameter.", extra.name)));
        }
        drop(state);
        session.variables = bound;
        Ok(())
    }

    async fn batch(&mut self, text: &str, session: &mut Session, interruptions: Interruptions, kind: Done) -> io::Result<()> {
        if let Some(entry) = &mut self.entry {
            entry.parameters =
                session.variables.iter().map(|(name, ty, value)| (name.clone(), ty.to_string(), value.to_string())).collect();
        }
        let mut statements = match parse(text) {
            Ok(statements) => VecDeque::from(statements),
            Err(error) => return self.refuse(&error, kind).await,
        };
        if let Some((usize::MAX, error)) = &interruptions.error {
            return self.refuse(error, kind).await;
        }
        // The variables of a batch end with it.
        let outside = session.variables.len();
        while let Some(statement) = statements.pop_front() {
            let answer = match self.step(&statement, session).await {
                Ok(answer) => answer,
                Err(error) => {
                    self.refuse(&error, kind).await?;
                    // A statement that failed ends its batch when it is about what a name means or a transaction.
                    break;
                }
            };
            match answer {
                Answer::Statements(inner) => inner.into_iter().rev().for_each(|statement| statements.push_front(statement)),
                Answer::Rows(set) => {
                    if !self.rows(&set, session, &interruptions, kind, !statements.is_empty()).await? {
                        break;
                    }
                }
                Answer::Done(count) => self.counted(count, session, kind, !statements.is_empty()).await?,
                Answer::Database { old, new } => {
                    let mut out = BytesMut::new();
                    token::changed(&mut out, 1, &new, &old);
                    self.put(&out).await?;
                    self.counted(None, session, kind, !statements.is_empty()).await?;
                }
                Answer::Message(message) => {
                    let mut out = BytesMut::new();
                    let server = self.shared.state().world.server_name.clone();
                    token::message(&mut out, &SqlError::new(0, 1, message).class(0), &server);
                    self.put(&out).await?;
                    self.counted(None, session, kind, !statements.is_empty()).await?;
                }
            }
        }
        session.variables.truncate(outside);
        if self.packets_are_empty() {
            // A batch of nothing has an end too.
            self.counted(None, session, kind, false).await?;
        }
        Ok(())
    }

    fn packets_are_empty(&self) -> bool {
        !self.begun && self.packets.is_empty()
    }

    /// Runs a statement, and waits for its locks as long as the session wants to.
    async fn step(&self, statement: &Statement, session: &mut Session) -> Result<Answer, SqlError> {
        let mut ended = self.shared.ended.subscribe();
        let patience = u64::try_from(session.lock_timeout).ok().map(Duration::from_millis);
        let wait = async {
            loop {
                let before = session.transaction;
                let step = self.shared.state().world.run(session, statement);
                match step? {
                    Step::Done(answer) => {
                        // Rows that were written at once, and transactions that ended, may be what others wait for.
                        if before.is_none() || session.transaction.is_none() {
                            self.shared.wake();
                        }
                        return Ok(answer);
                    }
                    Step::Blocked => {}
                }
                if ended.changed().await.is_err() {
                    return Err(SqlError::lock_timeout());
                }
            }
        };
        match patience {
            None => wait.await,
            Some(patience) => tokio::time::timeout(patience, wait).await.unwrap_or_else(|_| Err(SqlError::lock_timeout())),
        }
    }

    async fn counted(&mut self, count: Option<usize>, session: &Session, kind: Done, more: bool) -> io::Result<()> {
        let mut out = BytesMut::new();
        let status = self.status(session, kind, more) | if count.is_some() { token::COUNT } else { 0 };
        token::done(&mut out, kind, status, 0, count.unwrap_or(0) as u64);
        self.put(&out).await
    }

    /// A procedure always goes on to its own end.
    fn status(&self, session: &Session, kind: Done, more: bool) -> u16 {
        let more = if more || kind == Done::InProcedure { token::MORE } else { 0 };
        more | if session.transaction.is_some() { token::IN_TRANSACTION } else { 0 }
    }

    /// Sends rows; whether the batch goes on.
    async fn rows(
        &mut self,
        set: &ResultSet,
        session: &Session,
        interruptions: &Interruptions,
        kind: Done,
        more: bool,
    ) -> io::Result<bool> {
        let (database, utf8) = {
            let state = self.shared.state();
            (state.world.databases[session.database].name.clone(), state.settings.utf8_as_it_is)
        };
        let mut out = BytesMut::new();
        token::columns(&mut out, &set.columns, &database, utf8);
        self.put(&out).await?;
        for at in 0..=set.lines.len() {
            for (_, delay) in interruptions.delays.iter().filter(|(rows, _)| *rows == at) {
                self.flush().await?;
                tokio::time::sleep(*delay).await;
            }
            if interruptions.silence == Some(at) {
                self.flush().await?;
                std::future::pending::<()>().await;
            }
            if let Some((_, error)) = interruptions.error.as_ref().filter(|(rows, _)| *rows == at) {
                self.refuse(error, kind).await?;
                return Ok(false);
            }
            if at == set.lines.len() {
                break;
            }
            // A value that cannot be converted is found when its row is sent, in the middle of the answer.
            let row = match set.row(at) {
                Ok(row) => row,
                Err(error) => {
                    self.refuse(&error, kind).await?;
                    return Ok(false);
                }
            };
            out.clear();
            token::row(&mut out, &row, &set.columns, self.bitmaps, utf8);
            self.put(&out).await?;
            self.rows += 1;
        }
        out.clear();
        let status = self.status(session, kind, more) | token::COUNT;
        token::done(&mut out, kind, status, 0xc1, set.lines.len() as u64);
        self.put(&out).await?;
        Ok(true)
    }

    /// Sends what has been put, although its packet is not full: what follows waits.
    async fn flush(&mut self) -> io::Result<()> {
        self.send(Packets::part).await
    }

    async fn refuse(&mut self, error: &SqlError, kind: Done) -> io::Result<()> {
        let server = {
            let mut state = self.shared.state();
            if error.refusal {
                let text = self.entry.as_ref().map_or("", |entry| &entry.text);
                state.log.refusals.push(format!("{error}: {text}"));
            }
            state.world.server_name.clone()
        };
        self.error = Some(error.number);
        // An error of this class ends the connection.
        self.fatal |= error.class >= 20;
        let mut out = BytesMut::new();
        token::message(&mut out, error, &server);
        let more = if kind == Done::InProcedure { token::MORE } else { 0 };
        token::done(&mut out, kind, token::ERROR | more, 0, 0);
        self.put(&out).await
    }

    async fn transaction(&mut self, act: Act, session: &mut Session) -> io::Result<()> {
        let before = session.transaction;
        let statement = match act {
            Act::Begin => Statement::Begin,
            Act::Commit => Statement::Commit,
            Act::Rollback => Statement::Rollback,
        };
        match self.step(&statement, session).await {
            Ok(_) => {
                let mut out = BytesMut::new();
                let (what, transaction) = match act {
                    Act::Begin => (8, session.transaction),
                    Act::Commit => (9, before),
                    Act::Rollback => (10, before),
                };
                token::transaction_changed(&mut out, what, transaction.unwrap_or(0));
                self.put(&out).await?;
                self.counted(None, session, Done::Statement, false).await
            }
            Err(error) => self.refuse(&error, Done::Statement).await,
        }
    }
}
