//! An answer on its way: compression, slowness, and connections that end too early.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;

/// How an answer travels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Transport {
    pub delay_millis: u64,
    /// Bytes of the body after which the connection ends.
    pub cut_after: Option<usize>,
    /// One stop: after so many bytes, for so many milliseconds.
    pub pause: Option<(usize, u64)>,
    /// Pieces of so many bytes, with so many milliseconds between them.
    pub trickle: Option<(usize, u64)>,
    pub reset: bool,
    /// Blanks behind the body.
    pub padding: usize,
    pub gzip_always: bool,
}

/// An answer before it is compressed.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub transport: Transport,
    /// May it be compressed for a client that accepts that?
    pub gzip: bool,
}

impl Answer {
    pub fn json(status: u16, body: String) -> Self {
        let kind = ("content-type".to_owned(), "application/json;charset=UTF-8".to_owned());
        Self { status, headers: vec![kind], body, transport: Transport::default(), gzip: true }
    }

    pub fn html(status: u16, body: &str) -> Self {
        let mut answer = Self::json(status, body.to_owned());
        answer.content_type("text/html;charset=UTF-8");
        answer
    }

    pub fn header(&mut self, name: &str, value: String) {
        self.headers.push((name.to_ascii_lowercase(), value));
    }

    pub fn replace(&mut self, name: &str, value: String) {
        self.headers.retain(|(known, _)| known != name);
        self.header(name, value);
    }

    pub fn content_type(&mut self, value: &str) {
        self.replace("content-type", value.to_owned());
    }

    pub fn total(&self) -> Option<u64> {
        self.headers.iter().find(|(name, _)| name == "x-total-count").and_then(|(_, value)| value.parse().ok())
    }
}

/// An answer ready to be sent.
pub(super) struct Packed {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub transport: Transport,
    pub gzip: bool,
}

/// Compresses an answer if the client and the answer allow it.
pub(super) fn pack(answer: Answer, accepts_gzip: bool) -> io::Result<Packed> {
    let Answer { status, headers, body, transport, gzip } = answer;
    let gzip = transport.gzip_always || (gzip && accepts_gzip && !body.is_empty());
    let body = if gzip { compressed(&body, transport.padding)? } else { padded(body, transport.padding) };
    Ok(Packed { status, headers, body: body.into(), transport, gzip })
}

fn padded(body: String, padding: usize) -> Vec<u8> {
    let mut bytes = body.into_bytes();
    bytes.resize(bytes.len() + padding, b' ');
    bytes
}

/// The blanks are fed in pieces: a body that inflates to a gigabyte never exists as one.
fn compressed(body: &str, padding: usize) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body.as_bytes())?;
    let blanks = [b' '; 1 << 16];
    let mut left = padding;
    while left > 0 {
        let piece = left.min(blanks.len());
        encoder.write_all(&blanks[..piece])?;
        left -= piece;
    }
    encoder.finish()
}

enum Piece {
    Data(Bytes),
    Wait(Duration),
    End,
}

impl Packed {
    /// The response; its length is always announced in full, whatever becomes of the body.
    pub fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        for (name, value) in &self.headers {
            append(headers, name, value);
        }
        if self.gzip {
            append(headers, "content-encoding", "gzip");
        }
        if self.status != 204 && self.status != 304 {
            append(headers, "content-length", &self.body.len().to_string());
        }
        *response.body_mut() = self.body();
        response
    }

    fn body(self) -> Body {
        let Transport { cut_after, pause, trickle, .. } = self.transport;
        if cut_after.is_none() && pause.is_none() && trickle.is_none() {
            return Body::from(self.body);
        }
        let pieces = pieces(self.body, cut_after, pause, trickle);
        Body::from_stream(stream::unfold(pieces, |mut pieces| async move {
            loop {
                match pieces.pop_front()? {
                    Piece::Data(bytes) => return Some((Ok(bytes), pieces)),
                    Piece::Wait(span) => tokio::time::sleep(span).await,
                    Piece::End => {
                        // Pending once, so that what was written before is flushed to the socket.
                        tokio::task::yield_now().await;
                        pieces.clear();
                        return Some((Err(io::Error::from(io::ErrorKind::ConnectionAborted)), pieces));
                    }
                }
            }
        }))
    }
}

fn pieces(body: Bytes, cut_after: Option<usize>, pause: Option<(usize, u64)>, trickle: Option<(usize, u64)>) -> VecDeque<Piece> {
    let end = cut_after.map_or(body.len(), |after| after.min(body.len()));
    let mut left = body.slice(..end);
    let mut pieces = VecDeque::new();
    if let Some((after, millis)) = pause {
        pieces.push_back(Piece::Data(left.split_to(after.min(left.len()))));
        pieces.push_back(Piece::Wait(Duration::from_millis(millis)));
    }
    let (chunk, millis) = trickle.unwrap_or((usize::MAX, 0));
    while !left.is_empty() {
        pieces.push_back(Piece::Data(left.split_to(chunk.max(1).min(left.len()))));
        if trickle.is_some() {
            pieces.push_back(Piece::Wait(Duration::from_millis(millis)));
        }
    }
    if cut_after.is_some() {
        pieces.push_back(Piece::End);
    }
    pieces
}

/// A header that cannot be sent is left out; tests see it missing.
fn append(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.append(name, value);
    }
}
