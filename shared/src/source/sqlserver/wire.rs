//! The socket below the driver: it counts what comes in, and sees how far the conversation has come.
//!
//! The driver makes a connection in one step. Which part of it failed is worth knowing (a firewall, a certificate and a
//! password are mended by different people), and the first byte of what it writes tells: a packet before the login has
//! type 0x12, a login 0x10, and encrypted data 0x17 (MS-TDS 2.2.3.1.1; RFC 8446 5.1). A wrong guess would put a wrong word
//! into a message and nothing else.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::error::Stage;

const LOGIN: u8 = 0x10;
const ENCRYPTED: u8 = 0x17;

/// What was seen on a socket.
#[derive(Debug, Default)]
pub(super) struct Seen {
    bytes_in: AtomicU64,
    login_sent: AtomicBool,
    is_strict: bool,
}

impl Seen {
    /// `is_strict`: encrypted from the first byte on, so that a login looks like everything else.
    pub(super) fn new(is_strict: bool) -> Arc<Self> {
        Arc::new(Self { is_strict, ..Self::default() })
    }

    /// How far the connection had come.
    pub(super) fn stage(&self) -> Stage {
        if self.login_sent.load(Ordering::Relaxed) { Stage::Login } else { Stage::Handshake }
    }

    /// The bytes that came since the last call.
    pub(super) fn take_bytes_in(&self) -> u64 {
        self.bytes_in.swap(0, Ordering::Relaxed)
    }

    fn wrote(&self, first: Option<&u8>) {
        if first == Some(&LOGIN) || (first == Some(&ENCRYPTED) && !self.is_strict) {
            self.login_sent.store(true, Ordering::Relaxed);
        }
    }
}

/// A socket that is watched. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Wire {
    socket: TcpStream,
    seen: Arc<Seen>,
}

impl Wire {
    pub(super) fn new(socket: TcpStream, seen: Arc<Seen>) -> Self {
        Self { socket, seen }
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.socket).poll_read(cx, buffer);
        this.seen.bytes_in.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.seen.wrote(bytes.first());
        Pin::new(&mut this.socket).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
