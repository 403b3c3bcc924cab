//! The proxy does to the traffic what it was told, and nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use tablesweep_testbed::parts::until;
use tablesweep_testbed::proxy::{Action, Fault, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const SOON: Duration = Duration::from_secs(10);

/// A part that answers with the bytes that it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                let _ended = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    address
}

/// A part that counts the requests that it carries out, and answers with their bodies: in one piece, or in chunks
/// if the path says so.
async fn counter() -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    async fn answer(State(count): State<Arc<AtomicUsize>>, uri: axum::http::Uri, body: String) -> Body {
        count.fetch_add(1, Ordering::SeqCst);
        if uri.path() == "/chunks" {
            let pieces = body.split_inclusive(' ').map(|piece| Ok::<_, std::io::Error>(piece.to_owned()));
            return Body::from_stream(futures_util::stream::iter(pieces.collect::<Vec<_>>()));
        }
        Body::from(body)
    }
    let app = Router::new().fallback(answer).with_state(Arc::clone(&count));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, count)
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(SOON).build().unwrap()
}

async fn round_trip(stream: &mut TcpStream, text: &str) -> std::io::Result<String> {
    stream.write_all(text.as_bytes()).await?;
    let mut answer = vec![0; text.len()];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn without_a_fault_bytes_pass_both_ways_and_a_half_close_is_passed_on() {
    let proxy = Proxy::tcp(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let sent = vec![7; 1_000_000];
    let (mut from, mut to) = stream.split();
    let (written, read) = tokio::join!(
        async {
            to.write_all(&sent).await?;
            to.shutdown().await
        },
        async {
            let mut all = Vec::new();
            from.read_to_end(&mut all).await.map(|_| all)
        }
    );
    written.unwrap();
    assert!(read.unwrap() == sent, "the bytes differ");
}

#[tokio::test]
async fn latency_delays_each_direction() {
    let proxy = Proxy::tcp(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.set(Fault::Latency(Duration::from_millis(60)));
    let begun = Instant::now();
    assert_eq!(round_trip(&mut stream, "hello").await.unwrap(), "hello");
    assert!(begun.elapsed() >= Duration::from_millis(120), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_connection_is_cut_after_exactly_the_bytes_that_were_asked_for() {
    let proxy = Proxy::tcp(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    round_trip(&mut stream, "before the fault").await.unwrap();
    proxy.set(Fault::CutAfter(10));
    stream.write_all(b"0123456789abcdef").await.unwrap();
    let mut all = Vec::new();
    // A reset instead of a close is a cut as well; what came before it has been read.
    let _end = stream.read_to_end(&mut all).await;
    assert_eq!(all, b"0123456789");
}

#[tokio::test]
async fn a_black_hole_swallows_nothing_for_good() {
    let proxy = Proxy::tcp(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    round_trip(&mut stream, "open").await.unwrap();
    proxy.set(Fault::Blackhole);
    let lost = tokio::time::timeout(Duration::from_millis(300), round_trip(&mut stream, "late")).await;
    assert!(lost.is_err(), "something came through: {lost:?}");
    proxy.set(Fault::None);
    let mut answer = [0; 4];
    tokio::time::timeout(SOON, stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"late");
}

#[tokio::test]
async fn refusing_ends_open_connections_and_new_ones_and_cutting_only_open_ones() {
    let proxy = Proxy::tcp(echo().await).await.unwrap();
    let mut open = TcpStream::connect(proxy.address()).await.unwrap();
    round_trip(&mut open, "open").await.unwrap();
    assert_eq!(proxy.connections(), 1);
    proxy.cut_all();
    assert!(matches!(open.read(&mut [0; 1]).await, Ok(0) | Err(_)));
    let mut again = TcpStream::connect(proxy.address()).await.unwrap();
    round_trip(&mut again, "again").await.unwrap();
    proxy.set(Fault::Refuse);
    assert!(matches!(again.read(&mut [0; 1]).await, Ok(0) | Err(_)));
    let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
    assert!(round_trip(&mut refused, "refused").await.is_err());
    until("no connection", SOON, async || match proxy.connections() {
        0 => Ok(()),
        open => Err(format!("{open} open")),
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_dropped_answer_belongs_to_a_request_that_was_carried_out() {
    let (part, carried_out) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    let trigger = proxy.on(": Update", 2..=2, Action::DropResponse);
    let client = client();
    // A new request each time, so that the client has no reason to send one again by itself.
    let update = || client.post(proxy.url()).header("X-Target", "Update").body("row");
    assert_eq!(update().send().await.unwrap().text().await.unwrap(), "row");
    // Does not match, and is neither counted nor touched.
    client.post(proxy.url()).header("X-Target", "Get").body("row").send().await.unwrap();
    assert!(update().send().await.is_err(), "the answer of the second update came through");
    assert_eq!(update().send().await.unwrap().text().await.unwrap(), "row");

    assert_eq!((trigger.matched(), trigger.fired()), (3, 1));
    assert_eq!(carried_out.load(Ordering::SeqCst), 4);
    let carried = proxy.carried();
    let seen: Vec<_> = carried.iter().map(|one| (one.contains("Update"), one.status, one.delivered)).collect();
    let expected = [(true, Some(200), true), (false, Some(200), true), (true, Some(200), false), (true, Some(200), true)];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_dropped_request_never_reaches_the_part() {
    let (part, carried_out) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    proxy.on("row", .., Action::DropRequest);
    assert!(client().post(proxy.url()).body("a row").send().await.is_err());
    assert_eq!(carried_out.load(Ordering::SeqCst), 0);
    proxy.clear();
    assert_eq!(client().post(proxy.url()).body("a row").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_held_request_reaches_the_part_when_it_is_released() {
    let (part, carried_out) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    let held = proxy.on("row", 1..=1, Action::HoldRequest);
    let request = tokio::spawn(client().post(proxy.url()).body("a row").send());
    held.wait_fired(1, SOON).await.unwrap();
    assert_eq!(carried_out.load(Ordering::SeqCst), 0);
    held.release();
    assert_eq!(request.await.unwrap().unwrap().text().await.unwrap(), "a row");
    assert_eq!(carried_out.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_held_answer_belongs_to_a_request_that_was_carried_out() {
    let (part, carried_out) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    let held = proxy.on("row", 1..=1, Action::HoldResponse);
    let request = tokio::spawn(client().post(proxy.url()).body("a row").send());
    held.wait_fired(1, SOON).await.unwrap();
    assert_eq!(carried_out.load(Ordering::SeqCst), 1);
    assert!(!request.is_finished());
    held.release();
    assert_eq!(request.await.unwrap().unwrap().text().await.unwrap(), "a row");
}

#[tokio::test]
async fn an_answer_of_the_proxys_own_never_reaches_the_part() {
    let (part, carried_out) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    let answer = Action::Answer { status: 429, headers: vec![("retry-after".to_owned(), "7".to_owned())], body: "slow down".to_owned() };
    proxy.on("GET /limited", .., answer);
    let answer = client().get(format!("{}/limited", proxy.url())).send().await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "7");
    assert_eq!(answer.text().await.unwrap(), "slow down");
    assert_eq!(carried_out.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn chunks_heads_and_many_requests_of_one_connection_are_told_apart() {
    let (part, carried_out) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    let client = client();
    for round in 0..3 {
        let body = format!("some words of round {round}");
        let chunks = client.post(format!("{}/chunks", proxy.url())).body(body.clone()).send().await.unwrap();
        assert_eq!(chunks.text().await.unwrap(), body);
        assert_eq!(client.head(proxy.url()).send().await.unwrap().status(), 200);
    }
    assert_eq!(carried_out.load(Ordering::SeqCst), 6);
    assert_eq!(proxy.carried().len(), 6);
    assert_eq!(proxy.connections(), 1, "the client kept its connection");

    // A request in chunks, and another right behind it in the same write.
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let chunked = "POST /one HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n\
                   5;extension\r\nhello\r\n6\r\n world\r\n0\r\ntrailer: t\r\n\r\n";
    let second = "POST /two HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 3\r\n\r\nend";
    stream.write_all(format!("{chunked}{second}").as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert!(answers.contains("hello world") && answers.ends_with("end"), "{answers}");
    let carried = proxy.carried();
    assert_eq!((&carried[6].request[..], &carried[7].request[..]), (chunked.as_bytes(), second.as_bytes()));
}

#[tokio::test]
async fn an_answer_can_be_cut_in_the_middle_of_its_body() {
    let (part, _) = counter().await;
    let proxy = Proxy::http(part).await.unwrap();
    proxy.set(Fault::CutAfter(500));
    let answer = client().post(proxy.url()).body("x".repeat(10_000)).send().await.unwrap();
    assert_eq!(answer.content_length(), Some(10_000));
    assert!(answer.bytes().await.is_err(), "the body came through whole");
}

#[tokio::test]
async fn a_part_that_is_down_looks_down() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::http(nobody).await.unwrap();
    assert!(client().get(proxy.url()).send().await.is_err());
}
