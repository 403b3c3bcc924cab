//! A token endpoint that says what it was told to say, over a real socket.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// Status line and headers, each line ended, and the body.
pub(super) type Reply = (String, String);

/// The fields of a form.
type Form = Vec<(String, String)>;

/// A running endpoint. The last reply is given again and again.
pub(super) struct Endpoint {
    pub(super) url: Url,
    forms: Arc<Mutex<Vec<Form>>>,
}

/// A JSON answer.
pub(super) fn json(status: u16, body: &str) -> Reply {
    (format!("{status} X\r\ncontent-type: application/json\r\n"), body.to_owned())
}

/// A token with this lifetime, as JSON.
pub(super) fn token(text: &str, expires_in: &str) -> Reply {
    json(200, &format!(r#"{{"access_token":"{text}","scope":"useraccount","token_type":"Bearer"{expires_in}}}"#))
}

impl Endpoint {
    pub(super) async fn saying(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/oauth_token.do", listener.local_addr().expect("an address")).parse().expect("a URL");
        let forms = Arc::new(Mutex::new(Vec::new()));
        let (seen, mut replies) = (Arc::clone(&forms), VecDeque::from_iter(replies));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
                let form = answer(stream, reply.expect("a reply")).await;
                seen.lock().expect("no panic").push(form);
            }
        });
        Self { url, forms }
    }

    /// An address at which nobody listens.
    pub(super) fn absent() -> Self {
        Self { url: "http://127.0.0.1:1/oauth_token.do".parse().expect("a URL"), forms: Arc::default() }
    }

    /// Every form so far.
    pub(super) fn forms(&self) -> Vec<Form> {
        self.forms.lock().expect("no panic").clone()
    }

    /// One field of every form.
    pub(super) fn field(&self, name: &str) -> Vec<String> {
        self.forms().iter().flatten().filter(|(known, _)| known == name).map(|(_, value)| value.clone()).collect()
    }
}

async fn answer(mut stream: TcpStream, (head, body): Reply) -> Form {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let form = loop {
        let read = stream.read(&mut buffer).await.expect("a request");
        assert!(read > 0, "the request ended early");
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((request, sent)) = text.split_once("\r\n\r\n") else { continue };
        let length = request.to_ascii_lowercase().split_once("content-length: ").and_then(|(_, rest)| rest.lines().next()?.parse().ok());
        if sent.len() >= length.unwrap_or(0) {
            assert!(request.to_ascii_lowercase().contains("content-type: application/x-www-form-urlencoded"), "{request}");
            break url::form_urlencoded::parse(sent.as_bytes()).into_owned().collect();
        }
    };
    let reply = format!("HTTP/1.1 {head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
    stream.write_all(reply.as_bytes()).await.expect("somebody reads");
    form
}
