//! What the server saw.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
    /// Was it cancelled by an attention, or did the client go before it had all of the answer?
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
    /// Of the open connections.
    sockets: BTreeMap<u64, OwnedFd>,
}

impl Log {
    /// Counts a connection, and says which it is.
    pub fn connected(&mut self, socket: OwnedFd) -> u64 {
        let counts = &mut self.connections;
        counts.open += 1;
        counts.opened += 1;
        self.sockets.insert(counts.opened, socket);
        // A client that closed one before it opened the next had one at a time, whenever the task of the first hears of it.
        let held = self.sockets.values().filter(|socket| !has_hung_up(socket)).count();
        counts.most = counts.most.max(held as u64);
        counts.opened
    }

    pub fn disconnected(&mut self, number: u64) {
        self.connections.open -= 1;
        self.sockets.remove(&number);
    }
}

/// Whether the client will send nothing any more, as the kernel knows it, whatever of it is still to be read. Systems other than Linux
/// cannot be asked.
fn has_hung_up(socket: &OwnedFd) -> bool {
    #[cfg(target_os = "linux")]
    const ENDED: PollFlags = PollFlags::RDHUP;
    #[cfg(not(target_os = "linux"))]
    const ENDED: PollFlags = PollFlags::HUP;
    let mut asked = [PollFd::new(socket, ENDED)];
    let answered = poll(&mut asked, Some(&Timespec::default()));
    answered.is_ok() && asked[0].revents().intersects(ENDED)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::Log;

    #[test]
    fn a_connection_that_its_client_has_closed_is_not_held_beside_the_next() {
        let mut log = Log::default();
        let mut connect = || {
            let (client, server) = UnixStream::pair().expect("a pair of sockets");
            log.connected(server.into());
            (client, log.connections)
        };
        let (first, _) = connect();
        drop(first);
        let (_second, counts) = connect();
        assert_eq!((counts.open, counts.most), (2, 1), "nobody has told the server's own count yet");
        let (_third, counts) = connect();
        assert_eq!((counts.open, counts.most), (3, 2));
    }
}
