//! One connection, from the first byte to the last.

mod answering;
mod greeting;

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::engine::Session;
use super::faults::{Effect, Stage};
use super::packet::{Kind, Message, Packets, message};
use super::server::Shared;
use super::token;
use answering::{Answering, Ended};
use greeting::Greeted;

/// Both ways of a connection, with TLS or without.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What a connection does about the effects of a stage before it goes on.
async fn suffer(effects: &[Effect], stream: &mut (impl Stream + ?Sized)) -> io::Result<()> {
    for effect in effects {
        match effect {
            Effect::Silence(_) => {
                // Open until the client has had enough of it: what it still sends is read and dropped.
                tokio::io::copy(stream, &mut tokio::io::sink()).await?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Effect::Close(_) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Effect::Garbage(_, bytes) => {
                stream.write_all(bytes).await?;
                stream.shutdown().await?;
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) async fn run(mut stream: TcpStream, number: u64, shared: &Arc<Shared>) -> io::Result<()> {
    let effects = shared.state().faults.at(Stage::Accept);
    suffer(&effects, &mut stream).await?;
    let Some(greeted) = greeting::greet(stream, number, shared).await? else { return Ok(()) };
    let mut guard = Abandon { shared: Arc::clone(shared), session: greeted.session.clone() };
    converse(greeted, number, shared, &mut guard).await
}

/// Rolls a session's transaction back when its connection ends, however that happens.
struct Abandon {
    shared: Arc<Shared>,
    session: Session,
}

impl Abandon {
    /// The session as it was after its login, for a client that takes a connection out of a pool.
    fn renew(&mut self) {
        self.shared.state().world.abandon(&mut self.session);
        self.shared.wake();
        let first = Session::new(self.session.id, self.session.login.clone(), self.session.database);
        let old = std::mem::replace(&mut self.session, first);
        self.session.application = old.application;
        self.session.host = old.host;
        self.session.encrypted = old.encrypted;
    }
}

impl Drop for Abandon {
    fn drop(&mut self) {
        self.shared.state().world.abandon(&mut self.session);
        self.shared.wake();
    }
}

/// Requests and answers, until the client goes.
///
/// Reading and writing have tasks of their own: an attention has to be seen while an answer is under way, and an answer
/// that is given up must not leave half a packet on the wire.
async fn converse(greeted: Greeted, number: u64, shared: &Arc<Shared>, guard: &mut Abandon) -> io::Result<()> {
    let (mut reading, mut writing) = tokio::io::split(greeted.stream);
    let (asked, mut requests) = mpsc::channel::<Message>(4);
    let reader = tokio::spawn(async move {
        while let Ok(Some(message)) = message(&mut reading).await {
            if asked.send(message).await.is_err() {
                return;
            }
        }
    });
    let (answers, mut sent) = mpsc::channel::<BytesMut>(4);
    let writer = tokio::spawn(async move {
        while let Some(bytes) = sent.recv().await {
            if writing.write_all(&bytes).await.is_err() || writing.flush().await.is_err() {
                return;
            }
        }
        // All that there was has been sent; the client may have gone before.
        writing.shutdown().await.ok();
    });
    let mut answering = Answering::new(Arc::clone(shared), number, greeted.packet_size, greeted.bitmaps, answers);
    let mut next = None;
    loop {
        let message = match next.take() {
            Some(message) => message,
            None => match requests.recv().await {
                Some(message) => message,
                None => break,
            },
        };
        if message.kind == Kind::Attention {
            answering.acknowledge_attention().await?;
            continue;
        }
        if message.reset {
            guard.renew();
        }
        let ended = tokio::select! {
            biased;
            other = requests.recv() => match other {
                Some(other) if other.kind == Kind::Attention => Ended::Cancelled,
                // A client that asks before it has its answer will be heard after it; one that has gone will not.
                Some(_) => break,
                None => break,
            },
            ended = answering.answer(message, &mut guard.session) => ended?,
        };
        match ended {
            Ended::Answered => {}
            Ended::Cancelled => {
                answering.cancelled(&guard.session).await?;
                next = None;
            }
            Ended::Closed => break,
        }
    }
    drop(answering);
    writer.await.ok();
    reader.abort();
    Ok(())
}

/// The answer to an attention.
fn attention_done(packet_size: usize) -> BytesMut {
    let mut packets = Packets::new(packet_size);
    let mut out = BytesMut::new();
    token::done(&mut out, token::Done::Statement, token::ATTENTION, 0, 0);
    packets.put(&out);
    packets.last()
}
