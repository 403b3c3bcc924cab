//! The listener and what all connections share.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::connection;
use super::engine::World;
use super::faults::Faults;
use super::log::Log;
use super::settings::Settings;

/// What the connections, the listener and the handle share.
pub(super) struct Shared {
    state: Mutex<State>,
    /// Counts transactions that ended: who waits for a lock looks again.
    pub ended: watch::Sender<u64>,
}

pub(super) struct State {
    pub world: World,
    pub settings: Settings,
    pub faults: Faults,
    pub log: Log,
}

impl Shared {
    pub fn new(world: World, settings: Settings) -> Self {
        let state = State { world, settings, faults: Faults::default(), log: Log::default() };
        Self { state: Mutex::new(state), ended: watch::Sender::new(0) }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who wait for a lock.
    pub fn wake(&self) {
        self.ended.send_modify(|ended| *ended += 1);
    }
}

/// A listening socket that can be handed to a runtime.
pub(super) fn bind(address: std::net::SocketAddr) -> io::Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves until it is told to stop; its connections end with it.
pub(super) async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return Ok(()),
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let socket = stream.as_fd().try_clone_to_owned()?;
                connections.spawn(serve_one(stream, socket, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Counts the connection for as long as it lives, however it ends.
struct Counted(Arc<Shared>, u64);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.state().log.disconnected(self.1);
    }
}

async fn serve_one(stream: TcpStream, socket: OwnedFd, shared: Arc<Shared>) {
    let number = shared.state().log.connected(socket);
    let _counted = Counted(Arc::clone(&shared), number);
    // A small answer must not wait for the acknowledgement of the one before; it is no loss if it does.
    stream.set_nodelay(true).ok();
    // A connection that breaks is the client's business; what it asked is in the log.
    connection::run(stream, number, &shared).await.ok();
}
