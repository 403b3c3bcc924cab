//! Requests and answers on their way: just enough HTTP/1.1 to know where each of them ends.
//!
//! Everything is passed on as the bytes that came, never written anew, so that the two sides see each other's real
//! traffic. What is not understood ends the connection and is said on standard error: a proxy that guessed would
//! make a test pass or fail for the wrong reason.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;

use super::rule::{Action, Rule};
use super::traffic::{Gate, Over, Towards};
use super::{Carried, Shared};
use crate::process::lock;

const MAX_HEAD: usize = 64 * 1024;

/// Carries one request after the other until a side ends the connection, or a rule does.
pub(super) async fn carry(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let mut connection = Connection {
        requests: Messages::new(from_client),
        answers: Messages::new(from_server),
        to_client: Gate::new(to_client, shared, Towards::Client),
        to_server: Gate::new(to_server, shared, Towards::Server),
        shared,
    };
    while connection.exchange().await.is_ok() {}
}

struct Connection<'a, R, W> {
    requests: Messages<R>,
    answers: Messages<R>,
    to_client: Gate<W>,
    to_server: Gate<W>,
    shared: &'a Shared,
}

impl<R, W> Connection<'_, R, W>
where
    R: AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Unpin,
{
    /// One request and its answer.
    async fn exchange(&mut self) -> Result<(), Over> {
        let Some(request) = self.next_request().await? else {
            return Err(Over);
        };
        let entry = self.record(&request);
        let rule = self.shared.rules.choose(&request.bytes);
        if let Some(rule) = &rule {
            self.before(rule, entry).await?;
        }
        self.to_server.pass(&request.bytes).await?;
        let answer = match self.answers.next(Kind::AnswerTo { head: request.is_head }).await {
            Ok(Some(answer)) => answer,
            Ok(None) => return Err(Over),
            Err(why) => return Err(self.give_up("the answer", &why)),
        };
        self.update(entry, |carried| carried.status = answer.status);
        if let Some(rule) = &rule {
            after(rule).await?;
        }
        self.to_client.pass(&answer.bytes).await?;
        self.update(entry, |carried| carried.delivered = true);
        if answer.until_close { Err(Over) } else { Ok(()) }
    }

    /// The next request, or the end. A server that ends an idle connection ends the client's as well: a client that
    /// is told so late sends a request into it, which is one of the real ways of losing one.
    async fn next_request(&mut self) -> Result<Option<Message>, Over> {
        let read = tokio::select! {
            read = self.requests.next(Kind::Request) => read,
            () = self.answers.closed() => return Ok(None),
        };
        read.map_err(|why| self.give_up("the request", &why))
    }

    /// What a rule does before the part sees the request.
    async fn before(&mut self, rule: &Rule, entry: usize) -> Result<(), Over> {
        match &rule.action {
            Action::DropRequest => {
                rule.fire();
                Err(Over)
            }
            Action::HoldRequest => {
                rule.fire();
                rule.hold().await;
                Ok(())
            }
            Action::Answer { status, headers, body } => {
                let mut answer = format!("HTTP/1.1 {status} by the proxy\r\n");
                for (name, value) in headers {
                    answer.push_str(&format!("{name}: {value}\r\n"));
                }
                answer.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()));
                self.update(entry, |carried| carried.status = Some(*status));
                rule.fire();
                self.to_client.pass(answer.as_bytes()).await?;
                self.update(entry, |carried| carried.delivered = true);
                self.to_client.finish().await?;
                Err(Over)
            }
            Action::DropResponse | Action::Delay(_) | Action::HoldResponse => Ok(()),
        }
    }

    fn record(&self, request: &Message) -> usize {
        let mut carried = lock(&self.shared.carried);
        carried.push(Carried { request: request.bytes.clone(), status: None, delivered: false });
        carried.len() - 1
    }

    /// The list may have been forgotten meanwhile.
    fn update(&self, entry: usize, change: impl FnOnce(&mut Carried)) {
        if let Some(carried) = lock(&self.shared.carried).get_mut(entry) {
            change(carried);
        }
    }

    fn give_up(&self, on: &str, why: &str) -> Over {
        eprintln!("testbed: the proxy for {} gave up on {on}: {why}", self.shared.upstream);
        Over
    }
}

/// What a rule does once the part has answered.
async fn after(rule: &Arc<Rule>) -> Result<(), Over> {
    match &rule.action {
        Action::DropResponse => {
            rule.fire();
            Err(Over)
        }
        Action::Delay(by) => {
            rule.fire();
            tokio::time::sleep(*by).await;
            Ok(())
        }
        Action::HoldResponse => {
            rule.fire();
            rule.hold().await;
            Ok(())
        }
        Action::DropRequest | Action::HoldRequest | Action::Answer { .. } => Ok(()),
    }
}

/// One whole request or answer.
struct Message {
    bytes: Bytes,
    status: Option<u16>,
    is_head: bool,
    /// An answer that ends with its connection.
    until_close: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Request,
    AnswerTo { head: bool },
}

enum Body {
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

/// Cuts a stream of bytes into messages.
struct Messages<R> {
    from: R,
    /// What was read and belongs to no message yet.
    ahead: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Messages<R> {
    fn new(from: R) -> Self {
        Self { from, ahead: Vec::new() }
    }

    /// Returns when the other side closes, or says something although it was not asked (which is then kept).
    async fn closed(&mut self) {
        if self.ahead.is_empty() {
            // An error here is a close as well.
            drop(self.more().await);
        }
    }

    /// The next message; `None` if the stream ends cleanly before it begins.
    ///
    /// Cancelling this loses nothing: what was read stays in `ahead`.
    async fn next(&mut self, kind: Kind) -> Result<Option<Message>, String> {
        let head_end = loop {
            if let Some(at) = find(&self.ahead, b"\r\n\r\n") {
                break at + 4;
            }
            if self.ahead.len() > MAX_HEAD {
                return Err(format!("its headers are longer than {MAX_HEAD} bytes"));
            }
            match self.more().await {
                Ok(true) => {}
                Ok(false) if self.ahead.is_empty() => return Ok(None),
                Ok(false) => return Err("the connection ended within its headers".to_owned()),
                // A reset between two messages is the end of the connection, as a close is.
                Err(_) if self.ahead.is_empty() => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        };
        let head = String::from_utf8_lossy(&self.ahead[..head_end]).into_owned();
        let first = head.lines().next().unwrap_or_default();
        let status = match kind {
            Kind::Request => None,
            Kind::AnswerTo { .. } => Some(status_of(first)?),
        };
        let body = body_of(&head, kind, status)?;
        let until_close = matches!(body, Body::UntilClose);
        let end = self.read_body(head_end, body).await?;
        let rest = self.ahead.split_off(end);
        let bytes = Bytes::from(std::mem::replace(&mut self.ahead, rest));
        Ok(Some(Message { bytes, status, is_head: first.starts_with("HEAD "), until_close }))
    }

    /// Reads until the body is whole, and tells where it ends.
    async fn read_body(&mut self, start: usize, body: Body) -> Result<usize, String> {
        match body {
            Body::None => Ok(start),
            Body::Length(length) => self.need(start + length).await,
            Body::Chunked => self.read_chunks(start).await,
            Body::UntilClose => {
                while self.more().await.map_err(|error| error.to_string())? {}
                Ok(self.ahead.len())
            }
        }
    }

    async fn read_chunks(&mut self, mut at: usize) -> Result<usize, String> {
        loop {
            let line_end = self.line(at).await?;
            let line = String::from_utf8_lossy(&self.ahead[at..line_end - 2]).into_owned();
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| format!("{line:?} is no size of a chunk"))?;
            if size > 0 {
                at = self.need(line_end + size + 2).await?;
                continue;
            }
            at = line_end;
            loop {
                let trailer_end = self.line(at).await?;
                let empty = trailer_end - at == 2;
                at = trailer_end;
                if empty {
                    return Ok(at);
                }
            }
        }
    }

    /// Reads on until the line that starts at `at` is whole, and tells where the next one starts.
    async fn line(&mut self, at: usize) -> Result<usize, String> {
        loop {
            if let Some(found) = find(&self.ahead[at..], b"\r\n") {
                return Ok(at + found + 2);
            }
            self.need(self.ahead.len() + 1).await?;
        }
    }

    async fn need(&mut self, length: usize) -> Result<usize, String> {
        while self.ahead.len() < length {
            if !self.more().await.map_err(|error| error.to_string())? {
                return Err("the connection ended within its body".to_owned());
            }
        }
        Ok(length)
    }

    /// Reads some more; false at the end of the stream.
    async fn more(&mut self) -> std::io::Result<bool> {
        self.ahead.reserve(64 * 1024);
        Ok(self.from.read_buf(&mut self.ahead).await? > 0)
    }
}

fn status_of(line: &str) -> Result<u16, String> {
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| format!("{line:?} is no status line"))
}

/// How the body ends, by RFC 9112 section 6.3.
fn body_of(head: &str, kind: Kind, status: Option<u16>) -> Result<Body, String> {
    let mut length = None;
    let mut chunked = false;
    for line in head.lines().skip(1).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is no header"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" if length.is_some() => return Err("two content lengths".to_owned()),
            "content-length" => {
                length = Some(value.parse().map_err(|_| format!("content-length {value:?}"))?);
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => chunked = true,
            "transfer-encoding" => return Err(format!("transfer-encoding {value:?}")),
            "upgrade" | "expect" => return Err(format!("{name}: {value}")),
            _ => {}
        }
    }
    match (kind, status) {
        (Kind::AnswerTo { .. }, Some(100..=199)) => Err("an interim answer".to_owned()),
        (Kind::AnswerTo { head: true }, _) | (_, Some(204 | 304)) => Ok(Body::None),
        _ if chunked && length.is_some() => Err("both a content length and chunks".to_owned()),
        _ if chunked => Ok(Body::Chunked),
        (Kind::Request, _) => Ok(length.map_or(Body::None, Body::Length)),
        (Kind::AnswerTo { .. }, _) => Ok(length.map_or(Body::UntilClose, Body::Length)),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
