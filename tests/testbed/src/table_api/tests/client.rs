//! A client that shows an answer as it came: status, every header, the bytes, and whether all of them arrived.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::table_api::{Fields, TableApi};

/// An answer, or as much of it as came.
#[derive(Debug)]
pub(super) struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub complete: bool,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        let inflated = if self.header("content-encoding") == Some("gzip") {
            let mut bytes = Vec::new();
            GzDecoder::new(&self.body[..]).read_to_end(&mut bytes).unwrap();
            bytes
        } else {
            self.body.clone()
        };
        String::from_utf8(inflated).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    pub fn rows(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()["result"].as_array().unwrap().clone()
    }

    /// One field of every row.
    pub fn column(&self, field: &str) -> Vec<String> {
        self.rows().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
    }

    pub fn total(&self) -> Option<u64> {
        self.header("x-total-count").map(|text| text.parse().unwrap())
    }
}

/// Sends one request on a connection of its own and reads until the other side has nothing more to say.
pub(super) fn send(api: &TableApi, request: &str, body: &str) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(api.address())?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    write!(stream, "{request}\r\nhost: {}\r\nconnection: close\r\n{length}\r\n{body}", api.address())?;
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes);
    let Some(head_end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Err(ended.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let split = |line: &str| line.split_once(": ").map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned())).unwrap();
    let headers: Vec<(String, String)> = lines.map(split).collect();
    let body = bytes[head_end + 4..].to_vec();
    let announced = headers.iter().find(|(name, _)| name == "content-length").map(|(_, v)| v.parse().unwrap());
    Ok(Reply { status, headers, complete: announced == Some(body.len()), body })
}

/// A GET with these parameters.
pub(super) fn get(api: &TableApi, path: &str, params: &[(&str, &str)]) -> Reply {
    get_with(api, path, params, "").unwrap()
}

/// A GET with more header lines, each ending in a line break.
pub(super) fn get_with(api: &TableApi, path: &str, params: &[(&str, &str)], headers: &str) -> io::Result<Reply> {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
    let lines: String = headers.lines().map(|line| format!("\r\n{line}")).collect();
    send(api, &format!("GET {path}?{query} HTTP/1.1{lines}"), "")
}

/// A list of `incident`.
pub(super) fn incidents(api: &TableApi, params: &[(&str, &str)]) -> Reply {
    get(api, "/api/now/table/incident", params)
}

/// The numbers of the incidents that a query selects, sorted.
pub(super) fn selected(api: &TableApi, query: &str) -> Vec<String> {
    let mut numbers = incidents(api, &[("sysparm_query", query)]).column("number");
    numbers.sort();
    numbers
}

/// `incident` with rows 1 to `rows`, number and identity after the row, one a second from midnight.
pub(super) fn numbered(rows: usize) -> TableApi {
    let api = TableApi::start().unwrap();
    let row = |n: usize| {
        Fields::from([
            ("sys_id", id(n)),
            ("number", n.to_string()),
            ("sys_updated_on", format!("2026-01-01 {:02}:{:02}:{:02}", n / 3600, n / 60 % 60, n % 60)),
        ])
    };
    api.load("incident", (1..=rows).map(row).collect()).unwrap();
    api
}

/// The identity of a numbered row.
pub(super) fn id(n: usize) -> String {
    format!("{n:032x}")
}

pub(super) const IN_ORDER: &str = "ORDERBYsys_updated_on^ORDERBYsys_id";
