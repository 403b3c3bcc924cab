//! From a name to a socket.
//!
//! A name may stand for several addresses of which one answers. The listener of an availability group across subnets
//! stands for one per subnet, and only that of the primary replica is in use; what is sent to another is often dropped without
//! a word, and the system waits for an answer longer than a login may take. So the addresses are not tried one after the other: an
//! attempt begins at each of them, in the order of the look-up, once the one before has failed or has had [`APART`] (RFC 8305).
//! The first socket is taken, and the other attempts are given up.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::host::Host;

/// How long an address is waited for before the next one is tried beside it; what RFC 8305 recommends.
const APART: Duration = Duration::from_millis(250);

/// A socket to `name`. The caller bounds how long that may take.
///
/// # Errors
/// The look-up failed, or no address answers; then it is the error of the one that failed last.
pub(super) async fn reach(host: &Host, name: &str, port: u16) -> io::Result<TcpStream> {
    let addresses = host.addresses(name, port).await?;
    let several = addresses.len() > 1;
    let mut ahead = addresses.into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name stands for no address");
    loop {
        let next = ahead.next();
        let all_begun = next.is_none();
        attempts.extend(next.map(|address| connect(address, several)));
        tokio::select! {
            settled = attempts.next() => match settled {
                Some(Ok(socket)) => return Ok(socket),
                Some(Err(error)) => last = error,
                None => return Err(last),
            },
            () = sleep(APART), if !all_begun => {}
        }
    }
}

/// One attempt. `is_told`: the address belongs into the error, since the name does not say which one it was.
async fn connect(address: SocketAddr, is_told: bool) -> io::Result<TcpStream> {
    let connected = async {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    };
    connected.await.map_err(|error: io::Error| if is_told { io::Error::new(error.kind(), format!("{address}: {error}")) } else { error })
}
