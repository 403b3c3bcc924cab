//! The one door through which time, randomness, the environment and what names of hosts stand for enter.
//!
//! Everything that decides something from "now" receives a [`Host`] (or a reading taken from one), so that the same
//! code runs under a test's clock, under the model checker and in production. Nothing else in this workspace calls
//! `SystemTime::now`, `Instant::now` or a random source; `clippy.toml` holds that line. Names are looked up here for the
//! connections that we open ourselves; HTTP and Kafka clients look up their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

/// A source of time: the wall clock, which may step, and a monotonic reading, which may not.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Wall-clock time in milliseconds since the Unix epoch. It may step in either direction.
    fn now_ms(&self) -> i64;
    /// Time since an arbitrary fixed moment. It never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic reading starts at zero now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now_ms(&self) -> i64 {
        // A clock before 1970 reads as a negative number rather than as an error.
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        }
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock {
    now_ms: AtomicI64,
    elapsed_ms: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now_ms` (milliseconds since the epoch).
    pub fn at(now_ms: i64) -> Arc<Self> {
        Arc::new(Self { now_ms: AtomicI64::new(now_ms), elapsed_ms: AtomicI64::new(0) })
    }

    /// Time passes: both readings move on.
    pub fn advance(&self, by: Duration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
        self.elapsed_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The wall clock is set; no time passes.
    pub fn step_to(&self, now_ms: i64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.elapsed_ms.load(Ordering::SeqCst).unsigned_abs())
    }
}

/// What names of hosts stand for.
#[async_trait]
pub trait Names: Send + Sync + std::fmt::Debug {
    /// The addresses of `name`, which may be an address itself, with `port`: the one to try first in front.
    ///
    /// # Errors
    /// The name is not known, or nobody answers.
    async fn addresses(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

/// The look-up of the machine.
#[derive(Debug)]
struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn addresses(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, port)).await?.collect())
    }
}

/// What a part of the program may know of the machine it runs on.
#[derive(Clone, Debug)]
pub struct Host {
    clock: Arc<dyn Clock>,
    names: Arc<dyn Names>,
}

impl Host {
    /// The real machine.
    pub fn system() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// A machine with the given clock.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, names: Arc::new(SystemNames) }
    }

    /// The same machine with other answers to look-ups.
    pub fn with_names(self, names: Arc<dyn Names>) -> Self {
        Self { names, ..self }
    }

    /// What [`Names::addresses`] says.
    ///
    /// # Errors
    /// As there.
    pub async fn addresses(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        self.names.addresses(name, port).await
    }

    /// Wall-clock time in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Monotonic time since an arbitrary moment.
    pub fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// 128 random bits as 32 hexadecimal digits: a lease owner, a write id.
    pub fn nonce(&self) -> String {
        let mut bytes = [0_u8; 16];
        // The kernel's generator fails only where there is none; going on without randomness could give two
        // invocations one lease, so stopping is the only safe answer.
        getrandom::fill(&mut bytes).expect("the operating system has a random source");
        hex(&bytes)
    }

    /// A number in `0..=upper`, for jitter. Not for secrets.
    pub fn jitter(&self, upper: u64) -> u64 {
        let value = getrandom::u64().expect("the operating system has a random source");
        if upper == u64::MAX { value } else { value % (upper + 1) }
    }
}

/// A variable of the environment of this process; empty counts as unset.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Lower-case hexadecimal digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// Stops the process at a named point for good, so that a test can kill it exactly there.
///
/// `TABLESWEEP_FAILPOINT=name:n` names the point and the visit (from 1) at which to stop; the point says
/// `failpoint name` on stderr when it is reached. Without the feature `failpoints` this compiles to nothing.
#[cfg(feature = "failpoints")]
pub fn failpoint(name: &str) {
    use std::sync::Mutex;
    static VISITS: Mutex<u64> = Mutex::new(0);
    let Some(spec) = env("TABLESWEEP_FAILPOINT") else { return };
    let (wanted, visit) = spec.split_once(':').unwrap_or((&spec, "1"));
    if wanted != name {
        return;
    }
    let mut visits = VISITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    *visits += 1;
    if visit.parse() == Ok(*visits) {
        eprintln!("failpoint {name}");
        loop {
            std::thread::park();
        }
    }
}

/// Without the feature `failpoints` a failpoint is nothing.
#[cfg(not(feature = "failpoints"))]
pub fn failpoint(_name: &str) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_nonces_differ_and_are_32_hex_digits() {
        let host = Host::system();
        let (a, b) = (host.nonce(), host.nonce());
        assert_ne!(a, b);
        assert!(a.len() == 32 && a.bytes().all(|c| c.is_ascii_hexdigit()));
    }

    #[test]
    fn stepping_the_wall_clock_does_not_move_the_monotonic_one() {
        let clock = ManualClock::at(1_000);
        let host = Host::with_clock(clock.clone());
        clock.step_to(5);
        clock.advance(Duration::from_millis(7));
        assert_eq!((host.now_ms(), host.monotonic()), (12, Duration::from_millis(7)));
    }
}
