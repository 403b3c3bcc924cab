//! The real parts that the tests talk to, and what to say when one of them is not there.
//!
//! A simulator proves that the code agrees with whoever wrote the simulator. Where the real thing can be run on a
//! laptop it is run instead: Apache Kafka in one JVM ([`kafka`](crate::kafka)), moto for DynamoDB and Secrets
//! Manager ([`moto`](crate::moto)), the real bootstraps as real processes under a Lambda of our own
//! ([`lambda`](crate::lambda)). `tests/testbed/parts/fetch.sh` fetches the first two.
//!
//! A test that needs a part fails when the part cannot start, and the error says what is missing: a test that
//! quietly skips itself protects nobody.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a real part could not be started, or did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PartError {
    /// The part was never fetched.
    #[error("{part} is not at {path}: run tests/testbed/parts/fetch.sh (or set TABLESWEEP_PARTS to where it put the parts)")]
    NotFetched {
        /// The part's name.
        part: &'static str,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A program did not start, or ended before it was ready.
    #[error("{part} did not start: {why}")]
    NotStarted {
        /// The part's name.
        part: &'static str,
        /// What happened, with the end of its log.
        why: String,
    },
    /// The part runs and refused or failed a request.
    #[error("{part}: {what} failed: {why}")]
    Failed {
        /// The part's name.
        part: &'static str,
        /// What it was asked.
        what: String,
        /// What it answered.
        why: String,
    },
    /// A condition did not come true in time.
    #[error("{what} did not happen within {within:?}; last seen: {last}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        within: Duration,
        /// The last observation, for whoever reads the failure.
        last: String,
    },
}

impl PartError {
    pub(crate) fn failed(part: &'static str, what: impl Into<String>, why: impl ToString) -> Self {
        Self::Failed { part, what: what.into(), why: why.to_string() }
    }

    pub(crate) fn not_started(part: &'static str, why: impl ToString) -> Self {
        Self::NotStarted { part, why: why.to_string() }
    }
}

/// Where `fetch.sh` puts the parts: `target/parts` of this workspace, or `TABLESWEEP_PARTS`.
pub fn directory() -> PathBuf {
    match std::env::var_os("TABLESWEEP_PARTS") {
        Some(set) => PathBuf::from(set),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/parts"),
    }
}

/// The path of a fetched part, or what to do about its absence.
pub(crate) fn fetched(part: &'static str, relative: &str) -> Result<PathBuf, PartError> {
    let path = directory().join(relative);
    match path.canonicalize() {
        Ok(path) => Ok(path),
        Err(_) => Err(PartError::NotFetched { part, path }),
    }
}

/// Asks `probe` again and again until it says yes; what it says instead ends up in the error.
///
/// The pause between two looks is short and grows a little: it bounds the cost of looking, it never stands for the
/// condition itself.
pub async fn until<T, F, Fut>(what: &str, within: Duration, mut probe: F) -> Result<T, PartError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let end = tokio::time::Instant::now() + within;
    let mut pause = Duration::from_millis(2);
    loop {
        let last = match probe().await {
            Ok(found) => return Ok(found),
            Err(seen) => seen,
        };
        if tokio::time::Instant::now() >= end {
            return Err(PartError::Timeout { what: what.to_owned(), within, last });
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// A port of 127.0.0.1 that nobody listens on now.
///
/// It lies below the range from which the kernel takes the ports of outgoing connections. A port from inside that
/// range may be taken by a client while its server restarts, and a client that keeps dialling a dead port of that
/// range ends up connected to itself. Somebody may still be quicker; callers try again with another port.
pub(crate) fn free_port() -> Result<u16, PartError> {
    const FIRST: u16 = 12_000;
    const PORTS: u16 = 18_000;
    for _ in 0..200 {
        let port = FIRST + u16::from_be_bytes(random()?) % PORTS;
        if TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok() {
            return Ok(port);
        }
    }
    Err(PartError::failed("the testbed", "finding a free port", "200 random ports of 127.0.0.1 are all taken"))
}

/// Random bytes from the system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], PartError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| PartError::failed("the testbed", "asking for random bytes", error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_part_names_the_script_that_fetches_it() {
        let error = fetched("Apache Kafka", "no-such-part").expect_err("nothing lies there");
        let text = error.to_string();
        assert!(text.contains("Apache Kafka") && text.contains("fetch.sh"), "{text}");
    }

    #[test]
    fn a_free_port_can_be_bound_and_is_no_port_of_outgoing_connections() {
        let port = free_port().expect("a port");
        assert!(port < 32_768, "{port}");
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
    }

    #[tokio::test]
    async fn a_condition_that_never_comes_true_says_what_was_seen_last() {
        let mut looks = 0;
        let error = until("the impossible", Duration::from_millis(20), || {
            looks += 1;
            let seen = format!("look {looks}");
            async { Err::<(), _>(seen) }
        })
        .await
        .expect_err("it never comes true");
        let text = error.to_string();
        assert!(text.contains("the impossible") && text.contains(&format!("look {looks}")), "{text}");
    }
}
