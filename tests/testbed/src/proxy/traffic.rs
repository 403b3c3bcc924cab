//! Bytes on their way: the faults that need no knowledge of what the bytes mean.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{Fault, Shared, Weather};

/// The connection is over for both sides.
#[derive(Debug)]
pub(super) struct Over;

impl From<std::io::Error> for Over {
    fn from(_: std::io::Error) -> Self {
        Self
    }
}

/// Carries bytes both ways until both sides have said their last, or one of them or a fault ends it.
pub(super) async fn carry(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let up = pump(from_client, Gate::new(to_server, shared, Towards::Server));
    let down = pump(from_server, Gate::new(to_client, shared, Towards::Client));
    // Either way it is over, and the two ends see it as a close.
    drop(tokio::try_join!(up, down));
}

async fn pump(mut from: impl AsyncRead + Unpin, mut to: Gate<impl AsyncWrite + Unpin>) -> Result<(), Over> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 {
            return to.finish().await;
        }
        to.pass(&buffer[..read]).await?;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    Client,
    Server,
}

/// One direction of one connection, where the fault in force is applied.
pub(super) struct Gate<W> {
    to: W,
    towards: Towards,
    weather: watch::Receiver<Weather>,
    /// The order that `left` belongs to.
    order: u64,
    /// How many more bytes may go to the client under [`Fault::CutAfter`].
    left: u64,
}

impl<W: AsyncWrite + Unpin> Gate<W> {
    pub(super) fn new(to: W, shared: &Shared, towards: Towards) -> Self {
        Self { to, towards, weather: shared.weather.subscribe(), order: 0, left: 0 }
    }

    /// Passes these bytes on, when and as far as the fault allows.
    pub(super) async fn pass(&mut self, bytes: &[u8]) -> Result<(), Over> {
        if let Fault::Latency(latency) = self.fault() {
            tokio::time::sleep(latency).await;
        }
        self.wait_while_dark().await?;
        let whole = match self.fault() {
            Fault::CutAfter(_) if self.towards == Towards::Client => bytes.len() as u64 <= self.left,
            _ => {
                self.to.write_all(bytes).await?;
                return Ok(());
            }
        };
        let passed = if whole { bytes } else { &bytes[..usize::try_from(self.left).map_err(|_| Over)?] };
        self.to.write_all(passed).await?;
        self.left -= passed.len() as u64;
        if self.left == 0 {
            self.to.shutdown().await?;
            return Err(Over);
        }
        Ok(())
    }

    /// Passes on that there is no more to come.
    pub(super) async fn finish(&mut self) -> Result<(), Over> {
        self.wait_while_dark().await?;
        self.to.shutdown().await?;
        Ok(())
    }

    /// The fault in force; a new order of [`Fault::CutAfter`] counts from here.
    fn fault(&mut self) -> Fault {
        let now = *self.weather.borrow_and_update();
        if now.order != self.order {
            self.order = now.order;
            if let Fault::CutAfter(bytes) = now.fault {
                self.left = bytes;
            }
        }
        now.fault
    }

    async fn wait_while_dark(&mut self) -> Result<(), Over> {
        match self.weather.wait_for(|now| now.fault != Fault::Blackhole).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Over),
        }
    }
}
