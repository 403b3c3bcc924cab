//! The keys of HTTP, retries and the proxy: each has its effect, to the number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tablesweep::host::Host;
use tablesweep::sweep::Outcome;
use tablesweep_testbed::table_api::{Effect, Fault};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::laptop::Laptop;

fn status(status: u16, headers: &[(&str, &str)]) -> Effect {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Effect::Status { status, body: None, content_type: None, headers }
}

fn laptop() -> Laptop {
    let laptop = Laptop::new();
    laptop.generate(5, 1);
    laptop
}

#[tokio::test]
async fn a_request_is_tried_as_often_as_the_key_says_and_no_more() {
    for attempts in [1, 2, 5] {
        let laptop = laptop().with("snow.retry.max.attempts", attempts);
        laptop.api.fault(Fault::new(status(503, &[])).always());
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.requests), (Outcome::Failed, attempts), "{report:?}");
        laptop.api.clear_faults();
        laptop.api.clear_log();
        laptop.api.fault(Fault::new(status(503, &[])).times(attempts - 1));
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "the last attempt counts: {report:?}");
    }
}

#[tokio::test]
async fn the_wait_that_the_instance_asks_for_is_kept_though_the_backoff_would_be_shorter() {
    let host = Host::system();
    // The laptop's own backoff is at most 5 ms. With a 429 a longer wait than the longest backoff is a spent allowance.
    for (refusal, backoff) in [(429, 2_000), (503, 5)] {
        let laptop = laptop().with("snow.retry.max.backoff.ms", backoff);
        laptop.api.fault(Fault::new(status(refusal, &[("Retry-After", "1")])).times(1));
        let begun = host.monotonic();
        let report = laptop.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
        assert!(host.monotonic() - begun >= Duration::from_secs(1), "after {refusal}");
    }
}

#[tokio::test]
async fn no_wait_goes_beyond_the_invocation_or_the_time_for_all_attempts() {
    let host = Host::system();
    for (elapsed, time) in [("300000", Some(Duration::from_secs(20))), ("1000", None), ("0", None)] {
        for (refusal, outcome) in [(429, Outcome::Skipped), (503, Outcome::Failed)] {
            let mut laptop = laptop().with("snow.retry.max.elapsed.ms", elapsed);
            laptop.max_time = time;
            laptop.api.fault(Fault::new(status(refusal, &[("Retry-After", "3400")])).always());
            let begun = host.monotonic();
            let report = laptop.sweep().await;
            assert_eq!((report.outcome, report.requests), (outcome, 1), "{report:?}");
            assert!(host.monotonic() - begun < Duration::from_secs(10), "it did not sleep");
        }
    }
}

#[tokio::test]
async fn the_user_agent_is_the_documents_or_names_this_program() {
    let laptop = laptop();
    laptop.sweep().await;
    let agents = |laptop: &Laptop| laptop.api.reads("incident").pop().and_then(|entry| entry.user_agent).expect("a user agent");
    assert!(agents(&laptop).starts_with("tablesweep/"), "{}", agents(&laptop));
    let laptop = laptop.with("snow.http.user.agent", "acme platform 7");
    laptop.sweep().await;
    assert_eq!(agents(&laptop), "acme platform 7");
}

/// A proxy that answers every request and every CONNECT with this, and counts them.
async fn proxy(answer: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
                let mut buffer = [0; 1024];
                let read = stream.read(&mut buffer).await.expect("a request");
                assert!(read > 0, "the request ended early");
                bytes.extend_from_slice(&buffer[..read]);
            }
            counter.fetch_add(1, Ordering::SeqCst);
            stream.write_all(answer.as_bytes()).await.expect("somebody reads");
        }
    });
    (format!("http://{address}"), asked)
}

#[tokio::test]
async fn a_proxy_that_wants_a_login_is_named_and_asked_once() {
    const WANTED: &str =
        "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm=x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    for over_tls in [false, true] {
        let (url, asked) = proxy(WANTED).await;
        let mut laptop = laptop().with("snow.http.proxy.url", url);
        laptop.set("snow.http.proxy.username", "me");
        laptop.set("snow.http.proxy.password", "proxy-horse-7");
        if over_tls {
            laptop.set("snow.url", "https://acme.service-now.com");
        }
        let report = laptop.sweep().await;
        let reason = report.reason.expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Source.ProxyDenied"), "{}", reason.message);
        assert!(reason.message.contains("snow.http.proxy.username") && !reason.message.contains("proxy-horse-7"), "{}", reason.message);
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert_eq!(laptop.api.log().len(), 0, "nothing goes past the proxy");
    }
}
