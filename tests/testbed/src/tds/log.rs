//! What the server saw.

use super::login::LoginRequest;

/// A statement, or several in one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The connection, counted from 1.
    pub connection: u64,
    /// The login.
    pub user: String,
    /// The database of the connection at that time.
    pub database: String,
    /// The text.
    pub text: String,
    /// The parameters: name, type as declared, value as a reader would write it.
    pub parameters: Vec<(String, String, String)>,
    /// Did it come as a call of `sp_executesql`?
    pub called: bool,
    /// In how many packets it came.
    pub packets: usize,
    /// Rows that were sent.
    pub rows: usize,
    /// Bytes of the answer that were sent.
    pub bytes: usize,
    /// The number of the error that ended it.
    pub error: Option<i32>,
    /// Was it cancelled by an attention?
    pub cancelled: bool,
}

/// An attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The connection, counted from 1.
    pub connection: u64,
    /// What the client said of itself.
    pub request: LoginRequest,
    /// Was the login encrypted?
    pub encrypted: bool,
    /// Is everything after it?
    pub encrypted_after: bool,
    /// The size of packets that was agreed.
    pub packet_size: u32,
    /// The number of the error that refused it.
    pub error: Option<i32>,
    /// Was it sent elsewhere?
    pub routed: bool,
}

/// Connections: how many are open, were opened, and were open at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// Open now.
    pub open: u64,
    /// Opened since the start.
    pub opened: u64,
    /// The most that were open at once.
    pub most: u64,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub entries: Vec<Entry>,
    pub attempts: Vec<Attempt>,
    pub refusals: Vec<String>,
    pub connections: Connections,
}

impl Log {
    pub fn connected(&mut self) -> u64 {
        let counts = &mut self.connections;
        counts.open += 1;
        counts.opened += 1;
        counts.most = counts.most.max(counts.open);
        counts.opened
    }

    pub fn disconnected(&mut self) {
        self.connections.open -= 1;
    }
}
