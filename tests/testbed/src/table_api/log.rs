//! What the simulator saw: every request with its outcome, sums, and everything that it refused.

use std::collections::BTreeMap;

use serde::Serialize;

/// One request and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Counts requests from 1.
    pub number: u64,
    /// The connection it came on, counted from 1.
    pub connection: u64,
    /// When, by the instance's clock.
    pub at: String,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The table; empty for a token request.
    pub table: String,
    /// The identity, when a single record was asked for.
    pub sys_id: Option<String>,
    /// The decoded parameters, in order. Token requests show their grant type only.
    pub params: Vec<(String, String)>,
    /// `sysparm_query`, decoded.
    pub query: String,
    /// The limit that was applied.
    pub limit: usize,
    /// The kind of credentials: basic, bearer, api_key, certificate, none, other.
    pub auth: String,
    /// The cookies that came with the request.
    pub cookie: Option<String>,
    /// The user agent.
    pub user_agent: Option<String>,
    /// The status of the answer.
    pub status: u16,
    /// Rows in the answer.
    pub rows: usize,
    /// Rows of the page that were hidden.
    pub hidden: usize,
    /// Rows that the evaluation looked at: what the page cost the simulator.
    pub examined: usize,
    /// `X-Total-Count`, when it was sent.
    pub total: Option<u64>,
    /// Bytes of the body before compression.
    pub bytes: usize,
    /// Bytes of the body as announced on the wire.
    pub wire_bytes: usize,
    /// Was the body compressed?
    pub gzip: bool,
    /// Parts of the query that the instance dropped without a word.
    pub dropped: Vec<String>,
    /// Faults that struck.
    pub faults: Vec<String>,
}

impl Entry {
    /// The value of a parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Sums over the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Requests of every kind.
    pub requests: u64,
    /// Reads per table.
    pub tables: BTreeMap<String, u64>,
    /// Requests for a token.
    pub token_requests: u64,
    /// Tokens that were made.
    pub tokens_issued: u64,
    /// Answers per status.
    pub statuses: BTreeMap<u16, u64>,
    /// Rows sent.
    pub rows: u64,
    /// Bytes of bodies before compression.
    pub bytes: u64,
    /// Bytes of bodies on the wire.
    pub wire_bytes: u64,
    /// Requests that brought a cookie.
    pub with_cookie: u64,
    /// Connections accepted.
    pub connections: u64,
}

/// The log, its sums and the refusals.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub entries: Vec<Entry>,
    pub refusals: Vec<String>,
    pub counters: Counters,
    numbered: u64,
}

impl Log {
    /// Adds an entry and gives its number.
    pub fn add(&mut self, mut entry: Entry) -> u64 {
        self.numbered += 1;
        entry.number = self.numbered;
        let sums = &mut self.counters;
        sums.requests += 1;
        if entry.table.is_empty() {
            sums.token_requests += u64::from(entry.path == "/oauth_token.do");
        } else {
            *sums.tables.entry(entry.table.clone()).or_default() += 1;
        }
        *sums.statuses.entry(entry.status).or_default() += 1;
        sums.rows += entry.rows as u64;
        sums.bytes += entry.bytes as u64;
        sums.with_cookie += u64::from(entry.cookie.is_some());
        self.entries.push(entry);
        self.numbered
    }

    /// Notes what was sent for an entry, once it is compressed.
    pub fn sent(&mut self, number: u64, wire_bytes: usize, gzip: bool) {
        self.counters.wire_bytes += wire_bytes as u64;
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.number == number) {
            entry.wire_bytes = wire_bytes;
            entry.gzip = gzip;
        }
    }

    /// Forgets requests and sums; refusals stay, for they are faults of the client or gaps of the simulator.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.counters = Counters { connections: self.counters.connections, ..Counters::default() };
    }
}
