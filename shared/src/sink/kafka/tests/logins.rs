//! Logins that fail, against a listener that speaks as much of Kafka's protocol as a login needs.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::failure::Retry;

/// What becomes of a login.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// It is answered with error 58, `SASL_AUTHENTICATION_FAILED`, and this text.
    Says(&'static str),
    /// The connection is closed when a mechanism is asked for, as by a broker that goes down.
    HangsUp,
}

const API_VERSIONS: i16 = 18;
const SASL_HANDSHAKE: i16 = 17;
const SASL_AUTHENTICATE: i16 = 36;

/// Starts the listener, and gives its address.
async fn listen(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, manner));
        }
    });
    address
}

/// Answers until the connection ends, on whichever side.
async fn serve(mut stream: TcpStream, manner: Manner) -> std::io::Result<()> {
    loop {
        let mut request = vec![0; usize::try_from(stream.read_i32().await?).unwrap()];
        stream.read_exact(&mut request).await?;
        let number = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
        // After key and version, the number by which the client knows the answer.
        let mut answer = request[4..8].to_vec();
        match (number(0), number(2), manner) {
            (API_VERSIONS, version, _) => api_versions(&mut answer, version),
            (SASL_HANDSHAKE, _, Manner::HangsUp) => return Ok(()),
            (SASL_HANDSHAKE, _, Manner::Says(_)) => {
                // No error, and one mechanism.
                answer.extend([0, 0, 0, 0, 0, 1]);
                text(&mut answer, "PLAIN");
            }
            (SASL_AUTHENTICATE, _, Manner::Says(said)) => {
                answer.extend(58_i16.to_be_bytes());
                text(&mut answer, said);
                // No bytes for the mechanism.
                answer.extend(0_i32.to_be_bytes());
            }
            other => panic!("nothing else is asked before the login: {other:?}"),
        }
        stream.write_i32(i32::try_from(answer.len()).unwrap()).await?;
        stream.write_all(&answer).await?;
    }
}

/// The answer in the form of version 0, to which the client is sent back (35, `UNSUPPORTED_VERSION`) from any other.
fn api_versions(answer: &mut Vec<u8>, version: i16) {
    let known = [(API_VERSIONS, 0), (SASL_HANDSHAKE, 1), (SASL_AUTHENTICATE, 0)];
    answer.extend(if version == 0 { 0_i16 } else { 35 }.to_be_bytes());
    answer.extend(3_i32.to_be_bytes());
    for (key, newest) in known {
        answer.extend([key, 0, newest].into_iter().flat_map(i16::to_be_bytes));
    }
}

fn text(answer: &mut Vec<u8>, text: &str) {
    answer.extend(i16::try_from(text.len()).unwrap().to_be_bytes());
    answer.extend(text.as_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_refused_parks_and_one_that_fails_in_passing_is_left_to_the_next_tick() {
    for (manner, code, retry, said) in [
        (Manner::Says("Authentication failed: Invalid username or password"), "Sink.Unauthorized", Retry::Never, "Invalid username"),
        (
            Manner::Says("[c4c1210b-9221-40ac-9fde-03daf7b747dc]: Too many connects"),
            "Sink.Unreachable",
            Retry::NextTick,
            "Too many connects",
        ),
        (Manner::HangsUp, "Sink.Unreachable", Retry::NextTick, "handshake failed: Local: Broker transport failure"),
    ] {
        let servers = listen(manner).await;
        let settings = [
            ("bootstrap.servers", &*servers),
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.username", "sweep"),
            ("sasl.password", "p4ss-w0rd"),
            ("message.timeout.ms", "2000"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let sink = KafkaSink::new(&settings, &options(), OversizePolicy::Fail).unwrap();
        let of_the_check = sink.check(&[TOPIC]).await.unwrap_err();
        let of_the_page = deliver(&sink, rows("a", 3)).await.unwrap_err();
        for failure in [of_the_check, of_the_page] {
            assert_eq!((&*failure.code, failure.retry), (code, retry), "{manner:?}: {failure}");
            assert!(failure.message.contains(said) && failure.message.contains(&*servers), "{manner:?}: {failure}");
        }
    }
}
