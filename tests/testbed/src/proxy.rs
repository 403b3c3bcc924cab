//! A proxy in front of any part, that does to the traffic what networks do.
//!
//! Most faults that lose data in the field are not outages: they are answers that do not arrive, requests that
//! arrive late, and connections that end in the middle of a body. None of them can be had from a healthy part, and a
//! part that is told to misbehave is no longer the real one. So the part stays healthy and the network in
//! front of it lies.
//!
//! [`Proxy::tcp`] knows bytes only and obeys a [`Fault`] for all of its connections: that is enough for Kafka.
//! [`Proxy::http`] also knows where a request and its answer begin and end. It keeps a list of all that it
//! carried, and applies [`Action`]s to chosen requests: the second `UpdateItem` is carried out and its answer is
//! lost, the third waits until the test lets it go.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::parts::PartError;
use crate::process::{lock, runtime};

mod http;
mod rule;
mod traffic;

pub use rule::{Action, Trigger};

/// What happens to all connections of a proxy, those that are open and those to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Bytes pass as they come.
    #[default]
    None,
    /// Every piece of traffic waits this long before it goes on, in both directions.
    Latency(Duration),
    /// A connection ends, without a word to either side, once this many more bytes went to the client.
    CutAfter(u64),
    /// Nothing goes through and nothing is closed. What was sent meanwhile goes through when the fault is lifted,
    /// as after a network partition: late requests are carried out, whether or not their sender still waits.
    Blackhole,
    /// Open connections end, new ones are closed as soon as they are made.
    Refuse,
}

/// One request that a proxy for HTTP has carried, or has been asked to carry.
#[derive(Debug, Clone)]
pub struct Carried {
    /// The request as it came: line, headers, body.
    pub request: Bytes,
    /// The status of the part's answer, once there was one (delivered or not).
    pub status: Option<u16>,
    /// Did the client get the whole answer?
    pub delivered: bool,
}

impl Carried {
    /// Does the request contain these bytes, in line, headers or body?
    pub fn contains(&self, needle: &str) -> bool {
        rule::contains(&self.request, needle.as_bytes())
    }
}

/// A proxy on a port of its own. Dropping it closes the port and all connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropped with the proxy, which ends the accept loop and with it every connection.
    _open: watch::Sender<()>,
}

/// The fault in force, with what a connection needs to tell an old order from a new one.
#[derive(Debug, Clone, Copy, Default)]
struct Weather {
    fault: Fault,
    /// Counts the calls of [`Proxy::set`]: the bytes of a new [`Fault::CutAfter`] are counted afresh.
    order: u64,
    /// Counts the calls of [`Proxy::cut_all`]: a connection ends when it is no longer the count of its start.
    cuts: u64,
}

#[derive(Debug, Clone, Copy)]
enum Speaks {
    Anything,
    Http,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    weather: watch::Sender<Weather>,
    rules: rule::Rules,
    carried: Mutex<Vec<Carried>>,
    connections: watch::Sender<usize>,
}

impl Proxy {
    /// A proxy that knows bytes only.
    pub async fn tcp(upstream: SocketAddr) -> Result<Self, PartError> {
        Self::start(upstream, Speaks::Anything).await
    }

    /// A proxy that knows HTTP/1.1 (without TLS) and obeys [`Proxy::on`].
    pub async fn http(upstream: SocketAddr) -> Result<Self, PartError> {
        Self::start(upstream, Speaks::Http).await
    }

    async fn start(upstream: SocketAddr, speaks: Speaks) -> Result<Self, PartError> {
        let (open, closed) = watch::channel(());
        let shared = Arc::new(Shared {
            upstream,
            weather: watch::Sender::default(),
            rules: rule::Rules::default(),
            carried: Mutex::default(),
            connections: watch::Sender::new(0),
        });
        let accepting = Arc::clone(&shared);
        let started = runtime().spawn(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            tokio::spawn(accept(listener, accepting, speaks, closed));
            Ok::<_, std::io::Error>(address)
        });
        let address = started
            .await
            .map_err(|error| PartError::not_started("the proxy", error))?
            .map_err(|error| PartError::not_started("the proxy", error))?;
        Ok(Self { address, shared, _open: open })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients of HTTP connect.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this happens to all connections, open ones included.
    pub fn set(&self, fault: Fault) {
        self.shared.weather.send_modify(|weather| {
            weather.fault = fault;
            weather.order += 1;
        });
    }

    /// Ends all connections that are open now; new ones are as [`Proxy::set`] says.
    pub fn cut_all(&self) {
        self.shared.weather.send_modify(|weather| weather.cuts += 1);
    }

    /// The number of connections that are open now.
    pub fn connections(&self) -> usize {
        *self.shared.connections.borrow()
    }

    /// Applies `action` to requests that contain `needle` (a piece of the line, of a header or of the body): to those
    /// whose number, counted from 1 and from now, lies in `which`. Only a proxy for HTTP sees requests.
    pub fn on(&self, needle: &str, which: impl RangeBounds<u64>, action: Action) -> Trigger {
        self.shared.rules.add(needle, which, action)
    }

    /// Forgets all rules, lets go what they held, and lifts the fault.
    pub fn clear(&self) {
        self.shared.rules.clear();
        self.set(Fault::None);
    }

    /// All requests so far, in the order of arrival.
    pub fn carried(&self) -> Vec<Carried> {
        lock(&self.shared.carried).clone()
    }

    /// Forgets the requests so far.
    pub fn forget_carried(&self) {
        lock(&self.shared.carried).clear();
    }
}

/// Takes connections until the proxy is dropped.
async fn accept(listener: TcpListener, shared: Arc<Shared>, speaks: Speaks, mut closed: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(carry(client, Arc::clone(&shared), speaks));
                }
                Err(error) => eprintln!("testbed: the proxy for {} cannot accept: {error}", shared.upstream),
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    eprintln!("testbed: a connection of the proxy for {} panicked: {error}", shared.upstream);
                }
            }
            _ = closed.changed() => return,
        }
    }
}

/// Carries one connection to its end. That it ends, and with which error, is for its two ends to judge.
async fn carry(client: TcpStream, shared: Arc<Shared>, speaks: Speaks) {
    let _counted = Counted::new(&shared.connections);
    let mut weather = shared.weather.subscribe();
    let cuts = weather.borrow().cuts;
    let doom = weather.wait_for(|now| now.cuts != cuts || now.fault == Fault::Refuse);
    let carried = async {
        // A part that is down takes no connection, so the client's ends too.
        let Ok(server) = TcpStream::connect(shared.upstream).await else {
            return;
        };
        // Small pieces are passed on as they come: the latency of a test is the one it asks for.
        if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
            return;
        }
        match speaks {
            Speaks::Anything => traffic::carry(client, server, &shared).await,
            Speaks::Http => http::carry(client, server, &shared).await,
        }
    };
    tokio::select! {
        biased;
        _ = doom => {}
        () = carried => {}
    }
}

/// Counts a connection for as long as it lives, however it ends.
struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|open| *open += 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}
