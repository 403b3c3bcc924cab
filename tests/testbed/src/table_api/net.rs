//! Connections that a test can break: refused at the door, or reset in the middle of a request.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::server::Shared;
use super::tls::Channel;

/// A listener that closes its door on demand, so that a connect is really refused, and opens it on the same port again.
///
/// While the door is closed the port stays bound by a socket that does not listen. Left free, it would be an ephemeral
/// port like any other: somebody's outgoing connection could take it, or a client's connect could meet itself there.
pub(super) struct Door {
    address: SocketAddr,
    listener: Option<TcpListener>,
    closed: watch::Receiver<bool>,
    /// What the door is now, for those who wait until it is what they asked for.
    state: Arc<DoorState>,
    connections: Arc<AtomicU64>,
    tls: Option<TlsAcceptor>,
}

/// Whether the door is closed at this moment.
#[derive(Debug, Default)]
pub(super) struct DoorState {
    closed: Mutex<bool>,
    changed: Condvar,
}

impl DoorState {
    fn set(&self, closed: bool) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.changed.notify_all();
    }

    /// Waits until the door is closed, or open.
    pub fn wait_for(&self, wanted: bool, patience: Duration) -> io::Result<()> {
        let state = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, patience, |closed| *closed != wanted);
        let waited = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.1.timed_out() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

impl Door {
    pub fn new(listener: TcpListener, shared: &Shared) -> io::Result<Self> {
        Ok(Self {
            address: listener.local_addr()?,
            listener: Some(listener),
            closed: shared.closed.subscribe(),
            state: Arc::clone(&shared.door),
            connections: Arc::clone(&shared.connections),
            tls: shared.tls.clone(),
        })
    }

    /// Closes the door and waits until it may open; nothing when the simulator is going down.
    async fn reopened(&mut self) -> Option<TcpListener> {
        self.listener = None;
        let socket = self.bound().await;
        self.state.set(true);
        self.closed.wait_for(|closed| !*closed).await.ok()?;
        socket.listen(1024).ok()
    }

    async fn bound(&self) -> TcpSocket {
        loop {
            let bound = TcpSocket::new_v4().and_then(|socket| {
                socket.set_reuseaddr(true)?;
                socket.bind(self.address)?;
                Ok(socket)
            });
            match bound {
                Ok(socket) => return socket,
                // Somebody took the port in the instant in which it was free: there is no event to wait for but time.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }
}

impl Listener for Door {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        loop {
            let closed = *self.closed.borrow_and_update();
            let Some(listener) = self.listener.as_ref().filter(|_| !closed) else {
                match self.reopened().await {
                    Some(listener) => self.listener = Some(listener),
                    None => std::future::pending().await,
                }
                self.state.set(false);
                continue;
            };
            tokio::select! {
                changed = self.closed.changed() => if changed.is_err() { std::future::pending().await },
                accepted = listener.accept() => if let Ok((stream, address)) = accepted {
                    // Small answers must not wait for an acknowledgement of the one before; it is no loss if they do.
                    stream.set_nodelay(true).ok();
                    let number = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
                    let peer = Peer { cut: Arc::default(), certificate: Arc::default(), number };
                    let stream = Channel::new(stream, self.tls.as_ref(), Arc::clone(&peer.certificate));
                    return (Line { stream, peer, closed: self.closed.clone() }, address);
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// The simulator's side of a connection, as a request handler sees it.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    cut: Arc<AtomicBool>,
    certificate: Arc<OnceLock<Vec<u8>>>,
    pub number: u64,
}

impl Peer {
    /// The next byte that is written resets the connection instead.
    pub fn reset(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// The client's certificate in DER, if it showed one.
    pub fn certificate(&self) -> Option<Vec<u8>> {
        self.certificate.get().cloned()
    }
}

impl Connected<IncomingStream<'_, Door>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Door>) -> Self {
        stream.io().peer.clone()
    }
}

/// A connection that can be reset.
pub(super) struct Line {
    stream: Channel,
    peer: Peer,
    closed: watch::Receiver<bool>,
}

impl Line {
    fn check(&self) -> io::Result<()> {
        if self.peer.cut.load(Ordering::SeqCst) || *self.closed.borrow() {
            self.stream.set_zero_linger()?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}

impl AsyncRead for Line {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        // Looked at after the read: a request that arrives at a closed door must not be answered.
        match polled {
            Poll::Ready(Ok(())) => Poll::Ready(self.check()),
            other => other,
        }
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
