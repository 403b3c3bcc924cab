//! What librdkafka tells us, on its own thread: delivery reports, errors, log lines.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::ProducerContext;

use tokio::sync::watch;

use super::barrier::Barrier;
use super::error::shown_key;
use super::iam::Signer;
use super::page::{Failed, Page};
use crate::host::Host;

/// Lines of one kind are logged once in this time. A broker that is down is reported by each connection, for each try.
const QUIET: Duration = Duration::from_secs(10);

/// The receiver of librdkafka's callbacks.
pub(super) struct Context {
    host: Host,
    /// Values that must not appear in a log line, whoever writes it.
    secrets: Vec<String>,
    /// Makes the tokens of a producer that signs in with an identity of AWS.
    signer: Option<Arc<Signer>>,
    /// Records whose report has not been counted. librdkafka's own count also holds log lines, and reports whose callback has returned.
    in_flight: AtomicU64,
    trouble: Mutex<Trouble>,
    /// Whether there was trouble since the last acknowledgement; kept apart so that an acknowledgement takes no lock.
    troubled: AtomicBool,
    /// The last refusal of who we say we are, with its number.
    refused: watch::Sender<(u64, Option<Refused>)>,
    /// Refusals up to this number were overcome: an acknowledgement has come since. One that still holds is met again by the next
    /// connection that is made.
    overcome: AtomicU64,
    /// librdkafka was given no token when it last asked. It asks again only ten seconds later.
    starved: AtomicBool,
    quiet: Mutex<BTreeMap<String, Quiet>>,
}

/// The last thing that went wrong between this process and the brokers.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble {
    /// What the client said, with its age.
    pub(super) said: Option<String>,
    /// What kind of thing it is, if it is one that stays until somebody does something.
    pub(super) barrier: Option<Barrier>,
    /// Whether it happened after the last acknowledgement.
    pub(super) current: bool,
    at: Duration,
}

/// A moment in a producer's life: what was refused and overcome before it is of no account.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since(u64);

/// What may be another one by now, where it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A user's name, a password, a token.
    Login,
    /// A certificate, of ours or of the brokers.
    Certificate,
}

#[derive(Debug, Default)]
struct Quiet {
    until: Duration,
    suppressed: u64,
}

impl Context {
    pub(super) fn new(host: Host, secrets: Vec<String>, signer: Option<Arc<Signer>>) -> Self {
        let (in_flight, overcome) = (AtomicU64::new(0), AtomicU64::new(0));
        let (troubled, starved) = (AtomicBool::new(false), AtomicBool::new(false));
        let (trouble, refused, quiet) = (Mutex::default(), watch::Sender::new((0, None)), Mutex::default());
        Self { host, secrets, signer, in_flight, trouble, troubled, refused, overcome, starved, quiet }
    }

    /// This moment. A refusal that has not been overcome yet counts as one after it.
    pub(super) fn now(&self) -> Since {
        Since(self.overcome.load(Ordering::Acquire))
    }

    /// Returns once the brokers have refused who we say we are, or one side the other's certificate. An acknowledgement of
    /// another broker in the same instant takes nothing back: who waits since before the refusal hears of it.
    pub(super) async fn refused(&self, since: Since) -> Refused {
        let mut refused = self.refused.subscribe();
        loop {
            if let (number, Some(refused)) = *refused.borrow_and_update()
                && number > since.0
            {
                return refused;
            }
            // The sender lives as long as this does.
            drop(refused.changed().await);
        }
    }

    /// Records are about to be handed over.
    pub(super) fn expect(&self, records: usize) {
        self.in_flight.fetch_add(records as u64, Ordering::AcqRel);
    }

    /// So many of the expected records will have no report, because they were not taken.
    pub(super) fn unexpect(&self, records: usize) {
        self.in_flight.fetch_sub(records as u64, Ordering::AcqRel);
    }

    /// Records whose report has not been counted.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Acquire)
    }

    /// The last trouble, as it is to be told now.
    pub(super) fn trouble(&self) -> Trouble {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let age = self.host.monotonic().saturating_sub(trouble.at).as_secs();
        trouble.said = trouble.said.map(|said| format!("{said} ({age} s ago)"));
        trouble.current = self.troubled.load(Ordering::Acquire);
        trouble
    }

    /// Whether librdkafka waits for a token that it was not given, longer than a page can wait.
    pub(super) fn starved(&self) -> bool {
        self.starved.load(Ordering::Acquire)
    }

    fn note(&self, said: String, barrier: Option<Barrier>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // A refused login is followed by lines about the connection that was closed for it: it stays the reason.
        let stays = barrier.is_none() && trouble.barrier.is_some() && self.troubled.load(Ordering::Acquire);
        if !stays {
            *trouble = Trouble { said: Some(said), barrier, current: true, at: self.host.monotonic() };
        }
        let refused = match barrier {
            Some(Barrier::Login) => Some(Refused::Login),
            Some(Barrier::Certificate) => Some(Refused::Certificate),
            Some(Barrier::Token | Barrier::Protocol) | None => None,
        };
        if refused.is_some() {
            self.refused.send_modify(|last| *last = (last.0 + 1, refused));
        }
        // Last, since the acknowledgement that finds it overcomes all of the above.
        self.troubled.store(true, Ordering::Release);
    }

    pub(super) fn answered(&self) {
        if self.troubled.load(Ordering::Relaxed) {
            self.troubled.store(false, Ordering::Release);
            self.overcome.store(self.refused.borrow().0, Ordering::Release);
        }
    }

    fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.trim().to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }

    /// Whether a line of this kind may be logged now, and how many were not since the last one.
    fn may_log(&self, kind: &str) -> Option<u64> {
        let now = self.host.monotonic();
        let mut kinds = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = kinds.entry(kind.to_owned()).or_default();
        if now < quiet.until {
            quiet.suppressed += 1;
            return None;
        }
        quiet.until = now + QUIET;
        Some(std::mem::take(&mut quiet.suppressed))
    }
}

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, kind: &str, line: &str) {
        let line = self.without_secrets(line);
        // A connection that the other side closed is told of here and nowhere else.
        let failed = kind == "FAIL" && level as i32 <= RDKafkaLogLevel::Info as i32;
        if failed || level as i32 <= RDKafkaLogLevel::Error as i32 {
            let barrier = if failed { Barrier::of_a_closed_connection(&line) } else { None };
            self.note(line.clone(), barrier);
        }
        if level as i32 >= RDKafkaLogLevel::Info as i32 {
            tracing::debug!(target: "librdkafka", kind, "{line}");
            return;
        }
        let Some(suppressed) = self.may_log(kind) else { return };
        // Not an error of ours: librdkafka tries again, and the page says so if that was in vain.
        tracing::warn!(target: "librdkafka", kind, suppressed, "{line}");
    }

    fn stats_raw(&self, statistics: &[u8]) {
        tracing::debug!(target: "librdkafka", statistics = %String::from_utf8_lossy(statistics), "statistics");
    }

    fn error(&self, error: ClientError, reason: &str) {
        let code = error.rdkafka_error_code();
        let reason = self.without_secrets(reason);
        tracing::debug!(target: "librdkafka", ?code, "{reason}");
        if code == Some(RDKafkaErrorCode::AllBrokersDown) {
            // A summary of what was said of each broker; those lines have the reasons.
            self.troubled.store(true, Ordering::Release);
        } else if !reason.is_empty() {
            let barrier = Barrier::of(code, &reason);
            self.note(reason, barrier);
        }
    }

    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        let signer = self.signer.as_ref().ok_or("nothing here makes tokens for this mechanism")?;
        let token = signer.token();
        self.starved.store(token.is_err(), Ordering::Release);
        Ok(token?)
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Arc<Page>;

    fn delivery(&self, report: &DeliveryResult<'_>, page: Arc<Page>) {
        // Before the page is told: who waits for it may ask at once whether the producer is idle.
        self.unexpect(1);
        match report {
            Ok(_) => {
                self.answered();
                page.acked();
            }
            Err((error, message)) => page.failed(|| Failed {
                code: error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown),
                topic: message.topic().to_owned(),
                key: shown_key(message.key().unwrap_or_default()),
            }),
        }
    }
}
