//! Names that stand for several addresses, as that of an availability group's listener across subnets does: one of them answers,
//! and the others refuse or say nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tablesweep::host::{Host, Names};
use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::tds::Server;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use super::bed::{Bed, code};

/// A name server that knows one name, or none.
#[derive(Debug)]
struct Known(Result<Vec<SocketAddr>, &'static str>);

#[async_trait]
impl Names for Known {
    async fn addresses(&self, name: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        assert_eq!(name, "listener.example");
        self.0.clone().map_err(io::Error::other)
    }
}

/// A bed with two rows whose document names the listener, which stands for `before` and then for the server.
fn bed(before: &[SocketAddr]) -> Bed {
    let mut bed = Bed::new().with("mssql.host", "listener.example");
    bed.insert(2);
    let server = SocketAddr::from(([127, 0, 0, 1], bed.server.port()));
    known(&mut bed, Ok(before.iter().copied().chain([server]).collect()));
    bed
}

fn known(bed: &mut Bed, addresses: Result<Vec<SocketAddr>, &'static str>) {
    bed.host = Host::system().with_names(Arc::new(Known(addresses)));
}

fn message(report: &TableReport) -> String {
    report.reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default()
}

/// An address that says nothing, as one behind a firewall or of a subnet that is not in use.
struct Silent {
    address: SocketAddr,
    _held: (TcpListener, Vec<TcpStream>),
}

/// Nobody accepts, and the queue is full: from then on the system drops what comes.
async fn silent() -> Silent {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("an address");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut held = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        held.push(connected.expect("room in the queue"));
    }
    Silent { address, _held: (listener, held) }
}

/// An address where nobody listens.
fn refusing() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("an address")
}

#[tokio::test]
async fn a_name_is_reached_by_the_address_that_answers_though_those_before_it_say_nothing_or_refuse() {
    let (one, another) = (silent().await, silent().await);
    for before in [vec![one.address], vec![one.address, another.address], vec![refusing()], vec![one.address, refusing()]] {
        let bed = bed(&before).with("mssql.login.timeout.ms", 5_000);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{before:?}: {report:?}");
    }
}

#[tokio::test]
async fn an_address_that_answers_at_once_is_the_only_one_that_is_tried() {
    let another = Server::start().expect("a server");
    let mut bed = bed(&[]);
    let own = SocketAddr::from(([127, 0, 0, 1], bed.server.port()));
    known(&mut bed, Ok(vec![own, SocketAddr::from(([127, 0, 0, 1], another.port()))]));
    assert_eq!(bed.sweep().await.rows, 2);
    assert_eq!(another.connections().opened, 0);
}

#[tokio::test]
async fn a_name_without_an_address_that_answers_is_told_with_its_last_error_within_the_login_time_out() {
    let quiet = silent().await;
    let (first, last) = (refusing(), refusing());
    for (addresses, parts) in [
        (Ok(vec![first, last]), vec![last.to_string(), "refused".to_owned()]),
        (Ok(vec![quiet.address, quiet.address]), vec!["within 700 ms".to_owned()]),
        (Ok(vec![]), vec!["no address".to_owned()]),
        (Err("the name is not known"), vec!["the name is not known".to_owned()]),
    ] {
        let mut bed = bed(&[]).with("mssql.login.timeout.ms", 700);
        known(&mut bed, addresses.clone());
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::Failed, Some("Source.Unavailable"), 0), "{addresses:?}");
        for part in parts.iter().map(String::as_str).chain(["stage connect"]) {
            assert!(message(&report).contains(part), "{part} in {}", message(&report));
        }
    }
}
