//! TLS, inside of TDS packets for the handshake (TDS 7.4) or in front of everything (TDS 8).
//!
//! In the first case the records of the handshake travel as the content of PRELOGIN packets, both ways; once it is done
//! the records are on the wire themselves and carry the packets. If the login alone is to be encrypted, TLS is left after it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs, version};
use tokio_rustls::server::TlsStream;

use super::connection::Stream;
use super::packet::{HEADER, Packets};

/// A certificate with those that lead to it, and its key, in PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificates, the server's own first.
    pub chain: String,
    /// The key.
    pub key: String,
}

impl Identity {
    /// Out of one text that holds all of it.
    pub fn of_pem(pem: &str) -> Self {
        Self { chain: pem.to_owned(), key: pem.to_owned() }
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn broken(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the identity of the server: {why}"))
}

fn acceptor(identity: &Identity, strict: bool) -> io::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_slice_iter(identity.chain.as_bytes()).collect::<Result<Vec<_>, _>>().map_err(broken)?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).map_err(broken)?;
    // TLS 1.3 came with TDS 8. Inside of packets it would not work either: the server speaks on after the handshake.
    let versions: &[_] = if strict { &[&version::TLS13, &version::TLS12] } else { &[&version::TLS12] };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions).map_err(broken)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(broken)?;
    if strict {
        config.alpn_protocols = vec![b"tds/8.0".to_vec()];
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// TLS first.
pub(super) async fn accept_first(stream: TcpStream, identity: &Identity) -> io::Result<Box<dyn Stream>> {
    Ok(Box::new(acceptor(identity, true)?.accept(stream).await?))
}

/// TLS inside of packets.
pub(super) async fn accept_inside(stream: TcpStream, identity: &Identity) -> io::Result<TlsStream<Wrapped>> {
    let mut stream = acceptor(identity, false)?.accept(Wrapped::new(stream)).await?;
    stream.get_mut().0.wrapping = false;
    Ok(stream)
}

/// The stream without TLS again. The client waits for the answer to its login, so nothing of it is lost in between.
pub(super) fn leave(stream: TlsStream<Wrapped>) -> TcpStream {
    stream.into_inner().0.stream
}

/// A stream that puts what is written into PRELOGIN packets and takes what is read out of them, for the handshake.
pub(super) struct Wrapped {
    stream: TcpStream,
    wrapping: bool,
    /// The header of the packet that is being read, as far as it has come.
    header: Vec<u8>,
    /// Bytes of its content that are still to be read.
    left: usize,
    /// Packets that are still to be written.
    out: BytesMut,
}

impl Wrapped {
    fn new(stream: TcpStream) -> Self {
        Self { stream, wrapping: true, header: Vec::new(), left: 0, out: BytesMut::new() }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.out) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.out.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wrapped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.wrapping {
            return Pin::new(&mut this.stream).poll_read(cx, buf);
        }
        while this.left == 0 {
            let mut byte = [0];
            let mut one = ReadBuf::new(&mut byte);
            match Pin::new(&mut this.stream).poll_read(cx, &mut one) {
                Poll::Ready(Ok(())) if one.filled().is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) => this.header.push(byte[0]),
                other => return other,
            }
            if this.header.len() == HEADER {
                this.left = usize::from(u16::from_be_bytes([this.header[2], this.header[3]])).saturating_sub(HEADER);
                this.header.clear();
            }
        }
        let mut limited = vec![0; this.left.min(buf.remaining())];
        let mut limited = ReadBuf::new(&mut limited);
        match Pin::new(&mut this.stream).poll_read(cx, &mut limited) {
            Poll::Ready(Ok(())) => {
                buf.put_slice(limited.filled());
                this.left -= limited.filled().len();
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Wrapped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if !this.wrapping {
            return Pin::new(&mut this.stream).poll_write(cx, bytes);
        }
        match this.poll_drain(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        let mut packets = Packets::of_kind(0x12, 4096);
        packets.put(bytes);
        this.out = packets.last();
        // What does not go now goes with the flush.
        match this.poll_drain(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(bytes.len())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.poll_drain(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.stream).poll_flush(cx),
            other => other,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
