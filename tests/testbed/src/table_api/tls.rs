//! TLS in front of the instance, with or without client certificates.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{FallibleAccept, TlsAcceptor};

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientCertificate {
    /// They are not asked for one.
    #[default]
    None,
    /// They may; one of another authority is refused.
    Optional,
    /// They must.
    Required,
}

/// The certificates of the instance, all in PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The server's certificate, its chain, and its key.
    pub server: String,
    /// Who vouches for clients.
    pub authority: String,
    /// What is asked of clients.
    pub clients: ClientCertificate,
}

impl Tls {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let provider = Arc::new(default_provider());
        let chain = certificates(&self.server)?;
        let key = PrivateKeyDer::from_pem_slice(self.server.as_bytes()).map_err(|error| format!("the server's key: {error}"))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match self.clients {
            ClientCertificate::None => builder.with_no_client_auth(),
            asked => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates(&self.authority)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if asked == ClientCertificate::Optional { verifier.allow_unauthenticated() } else { verifier };
                builder.with_client_cert_verifier(verifier.build().map_err(|error| error.to_string())?)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| format!("the server's certificate: {error}"))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// The first certificate of a text, in DER.
pub(super) fn first_certificate(text: &str) -> Option<Vec<u8>> {
    certificates(text).ok()?.first().map(|certificate| certificate.to_vec())
}

/// A connection, in clear or not. The handshake is part of the first read, so that a client that dawdles holds up
/// nobody.
pub(super) enum Channel {
    Clear(TcpStream),
    Greeting(Box<FallibleAccept<TcpStream>>, Arc<OnceLock<Vec<u8>>>),
    Secure(Box<TlsStream<TcpStream>>),
    /// The handshake failed and the client was told. The connection is read to its end, as a reset would overtake that.
    Refused(TcpStream),
}

impl Channel {
    pub fn new(stream: TcpStream, tls: Option<&TlsAcceptor>, certificate: Arc<OnceLock<Vec<u8>>>) -> Self {
        match tls {
            None => Self::Clear(stream),
            Some(acceptor) => Self::Greeting(Box::new(acceptor.accept(stream).into_fallible()), certificate),
        }
    }

    /// Has the operating system reset the connection when it is closed.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        match self {
            Self::Clear(stream) | Self::Refused(stream) => stream.set_zero_linger(),
            Self::Secure(stream) => stream.get_ref().0.set_zero_linger(),
            Self::Greeting(..) => Ok(()),
        }
    }

    fn poll_greeting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Greeting(accept, certificate) = self {
            let greeted = ready!(Pin::new(&mut **accept).poll(cx));
            *self = match greeted {
                Ok(stream) => {
                    if let Some([first, ..]) = stream.get_ref().1.peer_certificates() {
                        certificate.set(first.to_vec()).ok();
                    }
                    Self::Secure(Box::new(stream))
                }
                Err((_, stream)) => Self::Refused(stream),
            };
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Channel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_greeting(cx));
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Secure(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
            Self::Refused(stream) => {
                let mut rest = [0; 1024];
                loop {
                    let mut rest = ReadBuf::new(&mut rest);
                    ready!(Pin::new(&mut *stream).poll_read(cx, &mut rest))?;
                    if rest.filled().is_empty() {
                        return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                    }
                }
            }
            Self::Greeting(..) => Poll::Pending,
        }
    }
}

impl AsyncWrite for Channel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_greeting(cx));
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secure(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
            Self::Refused(_) | Self::Greeting(..) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        ready!(self.poll_greeting(cx));
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Secure(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, bytes),
            Self::Refused(_) | Self::Greeting(..) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Clear(stream) => stream.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
            Self::Greeting(..) | Self::Refused(_) => false,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) | Self::Refused(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secure(stream) => Pin::new(&mut **stream).poll_flush(cx),
            Self::Greeting(..) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) | Self::Refused(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secure(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Self::Greeting(..) => Poll::Ready(Ok(())),
        }
    }
}
