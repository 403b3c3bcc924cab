//! PRELOGIN, TLS and LOGIN7.

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::super::engine::{Session, SqlError};
use super::super::faults::Stage;
use super::super::log::Attempt;
use super::super::login::{self, LoginRequest};
use super::super::packet::{Kind, Packets, message};
use super::super::prelogin::{self, Encryption};
use super::super::server::{Shared, State};
use super::super::{tls, token};
use super::{Stream, suffer};

/// A connection that is logged in.
pub struct Greeted {
    pub stream: Box<dyn Stream>,
    pub session: Session,
    pub packet_size: usize,
    /// Does the client know rows with a bitmap of their `NULL`s (TDS 7.3B)?
    pub bitmaps: bool,
}

/// The oldest protocol that is spoken, 7.3A: it has the types of SQL Server 2008.
const OLDEST: u32 = 0x730a_0003;
const BITMAPS_SINCE: u32 = 0x730b_0003;
/// A login whose database cannot be opened.
const NO_DATABASE: i32 = 4060;
/// The size of packets before anything is agreed.
const FIRST_SIZE: usize = 4096;

fn broken(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

/// Brings a connection to the point where statements may come. `None`: it was refused, and told so.
pub async fn greet(stream: TcpStream, number: u64, shared: &Arc<Shared>) -> io::Result<Option<Greeted>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 0 {
        return Ok(None);
    }
    // A record of TLS begins with 22: who begins with that wants TDS 8.
    if first[0] == 0x16 {
        let (strict, identity) = {
            let state = shared.state();
            (state.settings.strict, state.settings.identity.clone())
        };
        let Some(identity) = identity.filter(|_| strict) else { return Err(broken("this server does not speak TDS 8")) };
        let effects = shared.state().faults.at(Stage::Handshake);
        let mut stream = stream;
        suffer(&effects, &mut stream).await?;
        let mut stream: Box<dyn Stream> = tls::accept_first(stream, &identity).await?;
        answer_prelogin(&mut stream, shared, true).await?;
        return log_in(stream, number, shared, true, true).await;
    }
    let mut stream = stream;
    let encryption = answer_prelogin(&mut stream, shared, false).await?;
    if matches!(encryption, Encryption::NotSupported) {
        return log_in(Box::new(stream), number, shared, false, false).await;
    }
    let effects = shared.state().faults.at(Stage::Handshake);
    if !effects.is_empty() {
        stream.peek(&mut first).await?;
    }
    suffer(&effects, &mut stream).await?;
    let identity = shared.state().settings.identity.clone().ok_or_else(|| broken("this server has no certificate"))?;
    let mut encrypted = tls::accept_inside(stream, &identity).await?;
    if encryption != Encryption::Off {
        return log_in(Box::new(encrypted), number, shared, true, true).await;
    }
    // The login alone is encrypted: it is read through TLS, and what follows is plain.
    let content = read_login(&mut encrypted, shared).await?;
    let plain = tls::leave(encrypted);
    decide(Box::new(plain), number, shared, content, true, false).await
}

async fn answer_prelogin(stream: &mut (impl Stream + ?Sized), shared: &Arc<Shared>, strict: bool) -> io::Result<Encryption> {
    let first = message(stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if first.kind != Kind::Prelogin {
        return Err(broken("the first message is no PRELOGIN"));
    }
    let client = prelogin::client_encryption(&first.content).ok_or_else(|| broken("PRELOGIN"))?;
    let effects = shared.state().faults.at(Stage::Prelogin);
    suffer(&effects, stream).await?;
    let encryption = if strict { Encryption::Required } else { shared.state().settings.encryption.answer(client) };
    let mut packets = Packets::new(FIRST_SIZE);
    packets.put(&prelogin::answer(encryption));
    stream.write_all(&packets.last()).await?;
    stream.flush().await?;
    if !strict && encryption == Encryption::Required && matches!(client, Encryption::NotSupported) {
        return Err(broken("the client has no TLS and is told that it is required"));
    }
    Ok(encryption)
}

async fn read_login(stream: &mut (impl Stream + ?Sized), shared: &Arc<Shared>) -> io::Result<BytesMut> {
    let message = message(stream).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    if message.kind != Kind::Login {
        return Err(broken("a message that is no LOGIN7"));
    }
    let effects = shared.state().faults.at(Stage::Login);
    suffer(&effects, stream).await?;
    Ok(message.content)
}

async fn log_in(
    mut stream: Box<dyn Stream>,
    number: u64,
    shared: &Arc<Shared>,
    encrypted: bool,
    after: bool,
) -> io::Result<Option<Greeted>> {
    let content = read_login(&mut stream, shared).await?;
    decide(stream, number, shared, content, encrypted, after).await
}

async fn decide(
    mut stream: Box<dyn Stream>,
    number: u64,
    shared: &Arc<Shared>,
    content: BytesMut,
    encrypted: bool,
    after: bool,
) -> io::Result<Option<Greeted>> {
    let request = login::decode(&content).map_err(broken)?;
    let (answer, greeted) = {
        let mut state = shared.state();
        decided(&mut state, &request, number, encrypted, after)
    };
    stream.write_all(&answer).await?;
    stream.flush().await?;
    match greeted {
        Some((session, packet_size)) => {
            let bitmaps = request.version >= BITMAPS_SINCE;
            Ok(Some(Greeted { stream, session, packet_size, bitmaps }))
        }
        None => {
            stream.shutdown().await?;
            Ok(None)
        }
    }
}

/// The answer to a login, and the session if there is to be one.
fn decided(state: &mut State, request: &LoginRequest, number: u64, encrypted: bool, after: bool) -> (BytesMut, Option<(Session, usize)>) {
    let size = match request.packet_size {
        // 0 leaves it to the server.
        0 => u32::try_from(FIRST_SIZE).unwrap_or(4096),
        wanted => wanted.clamp(512, 32_767),
    }
    .min(state.settings.largest_packet);
    let mut out = BytesMut::new();
    let checked = check(state, request, number);
    let mut attempt = Attempt {
        connection: number,
        request: request.clone(),
        encrypted,
        encrypted_after: after,
        packet_size: size,
        error: checked.as_ref().err().map(|error| error.number),
        routed: false,
    };
    let mut session = match checked {
        Ok(session) => session,
        Err(error) => {
            token::message(&mut out, &error, &state.world.server_name);
            if error.number == NO_DATABASE {
                // A server says both.
                token::message(&mut out, &refused(&request.user, 1), &state.world.server_name);
            }
            token::done(&mut out, token::Done::Statement, token::ERROR, 0, 0);
            state.log.attempts.push(attempt);
            return (one_message(&out, FIRST_SIZE), None);
        }
    };
    session.encrypted = after;
    let redirect = state.settings.redirect.clone().filter(|redirect| request.read_only || !redirect.read_only);
    let database = state.world.databases[session.database].name.clone();
    token::changed(&mut out, 1, &database, "master");
    token::collation_changed(&mut out, state.world.databases[session.database].collation);
    token::changed(&mut out, 2, "us_english", "");
    token::login_acknowledged(&mut out, request.version, state.world.babelfish);
    if !request.features.is_empty() {
        token::no_features(&mut out);
    }
    if let Some(redirect) = &redirect {
        token::routed(&mut out, &redirect.host, redirect.port);
    } else {
        token::changed(&mut out, 4, &size.to_string(), &FIRST_SIZE.to_string());
    }
    token::done(&mut out, token::Done::Statement, 0, 0, 0);
    attempt.routed = redirect.is_some();
    let routed = attempt.routed;
    state.log.attempts.push(attempt);
    let size = usize::try_from(size).unwrap_or(FIRST_SIZE);
    // The answer to the login itself still comes in packets of the first size.
    (one_message(&out, FIRST_SIZE), (!routed).then_some((session, size)))
}

fn one_message(tokens: &[u8], size: usize) -> BytesMut {
    let mut packets = Packets::new(size);
    packets.put(tokens);
    packets.last()
}

fn refused(user: &str, state: u8) -> SqlError {
    // The client is told state 1, whatever the reason: it is in the server's own log only.
    SqlError::new(18_456, state, format!("Login failed for user '{user}'.")).class(14)
}

fn check(state: &mut State, request: &LoginRequest, number: u64) -> Result<Session, SqlError> {
    if let Some(error) = state.faults.of_login() {
        return Err((&error).into());
    }
    if request.version < OLDEST {
        return Err(SqlError::refused(format!("TDS version 0x{:08X}: 7.3 and 7.4 are spoken", request.version)));
    }
    if request.foreign {
        return Err(SqlError::refused("a login of Windows or of a federation"));
    }
    let login = state.world.logins.iter().find(|login| login.name.eq_ignore_ascii_case(&request.user));
    let login = login.filter(|login| login.password == request.password).cloned().ok_or_else(|| refused(&request.user, 1))?;
    let id = u32::try_from(50 + number).unwrap_or(u32::MAX);
    let mut session = Session::new(id, login, 0);
    session.application.clone_from(&request.application);
    session.host.clone_from(&request.host);
    let wanted = if request.database.is_empty() { state.default_database() } else { request.database.clone() };
    state.world.open_database(&mut session, &wanted).map_err(|_| {
        let message = format!("Cannot open database \"{wanted}\" requested by the login. The login failed.");
        SqlError::new(NO_DATABASE, 1, message).class(11)
    })?;
    Ok(session)
}

impl State {
    /// The database of a login that names none.
    fn default_database(&self) -> String {
        self.world.databases.first().map_or_else(String::new, |database| database.name.clone())
    }
}
