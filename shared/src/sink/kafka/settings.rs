//! librdkafka's settings: ours where nobody chose, and the rules that no choice may break.
//!
//! The timeouts nest, from the inside out:
//!
//! ```text
//! request.timeout.ms, socket.timeout.ms < message.timeout.ms < page timeout < message_timeout() < function timeout
//! ```
//!
//! `message.timeout.ms` is at most a third of the function's timeout, so that a page which times out leaves time to say
//! so. librdkafka looks for overdue records once a second; the page timeout allows for that, and
//! `message_timeout()` for the purge that follows when it passes all the same.
//!
//! librdkafka checks a setting when it is given, and what settings say of each other only when a producer is made. A fault
//! of the documents would then be found by each table's first page. So the rules are held here, where both numbers can be named,
//! our own values give way to what was chosen, and a client without brokers is made of the whole to see whether librdkafka has
//! another rule (`trial`).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rdkafka::client::{Client, DefaultClientContext};
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError as ClientError;
use rdkafka::types::RDKafkaType;

use super::KafkaOptions;
use super::error::KafkaError;
use super::iam;
use super::session::PURGE;
use crate::record::Record;

/// `message.timeout.ms` when neither the documents nor a short function ask for less.
const MESSAGE_TIMEOUT_MS: u64 = 20_000;

/// How late librdkafka may find a record overdue.
const LATE: Duration = Duration::from_secs(2);

/// The longest check of the topics at the start.
const CHECK: Duration = Duration::from_secs(5);

/// What a record adds to key, value and headers on the wire, at its largest: the batch's header and the record's own.
const RECORD_OVERHEAD: usize = 61 + 36;

/// What a header adds to its name and value: two lengths.
const HEADER_OVERHEAD: usize = 10;

/// Second names of librdkafka; the first one is kept.
const ALIASES: &[(&str, &str)] = &[
    ("compression.codec", "compression.type"),
    ("delivery.timeout.ms", "message.timeout.ms"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("message.send.max.retries", "retries"),
    ("metadata.broker.list", "bootstrap.servers"),
    ("queue.buffering.max.ms", "linger.ms"),
    ("request.required.acks", "acks"),
    ("sasl.mechanisms", "sasl.mechanism"),
];

/// Full batches, but a page's last one must not wait long.
const LINGER_MS: u64 = 20;

/// An invocation has no time for long pauses between attempts to connect.
const BACKOFF_MS: u64 = 250;

/// Brokers of Amazon MSK admit few new connections a second with an identity of AWS, and advise this pause for it.
const IAM_BACKOFF_MS: u64 = 1_000;

/// The longest such pause.
const BACKOFF_MAX_MS: u64 = 2_000;

/// Our values for what nobody chose. Those that follow from others are added by [`Settings::new`].
const DEFAULTS: &[(&str, &str)] = &[
    // Delivered means held by all in-sync replicas, once, in order.
    ("acks", "all"),
    ("enable.idempotence", "true"),
    // The partition that a Java producer would choose for the key.
    ("partitioner", "murmur2_random"),
    // A misspelt topic is a fault, not a new topic. One that has just vanished is found out within a page's time.
    ("allow.auto.create.topics", "false"),
    ("topic.metadata.propagation.max.ms", "5000"),
    ("compression.type", "zstd"),
    ("message.max.bytes", "1000000"),
    // librdkafka's own bound, 1 GiB, is more than most functions have.
    ("queue.buffering.max.kbytes", "65536"),
    ("queue.buffering.max.messages", "100000"),
    // Before the broker (10 min) or a NAT gateway (350 s) drops the connection without a word.
    ("connections.max.idle.ms", "240000"),
    ("socket.keepalive.enable", "true"),
];

/// What would break a promise, with the values that do not.
const PROMISES: &[(&str, &[&str], &str)] = &[
    ("acks", &["all", "-1"], "only a row that all in-sync replicas hold counts as delivered"),
    ("enable.idempotence", &["true"], "without it a retry can reorder rows of one key"),
    ("delivery.report.only.error", &["false"], "every acknowledgement is counted before the cursor moves"),
    ("queuing.strategy", &["fifo"], "rows keep their order"),
    ("transactional.id", &[], "there are no transactions, since the cursor lives outside Kafka"),
];

/// Settings that were checked and completed.
pub(super) struct Settings {
    entries: BTreeMap<String, String>,
    message_timeout: Duration,
    /// `message.max.bytes`.
    pub(super) max_bytes: usize,
    /// The region to sign in to with an identity of AWS, if that is how.
    pub(super) iam_region: Option<String>,
}

impl fmt::Debug for Settings {
    /// Names only: a password is a setting like any other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("brokers", &self.brokers())
            .field("names", &self.entries.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

fn first_names(given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let first = |name: &str| ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name.to_owned(), |(_, to)| (*to).to_owned());
    given.iter().map(|(name, value)| (first(name), value.clone())).collect()
}

/// An upper bound of what a record takes in a batch of its own, before compression.
pub(super) fn size_on_the_wire(record: &Record) -> usize {
    record.size() + RECORD_OVERHEAD + record.headers.len() * HEADER_OVERHEAD
}

impl Settings {
    /// # Errors
    /// The first of the [`Settings::faults`].
    pub(super) fn new(given: &BTreeMap<String, String>, options: &KafkaOptions) -> Result<Self, KafkaError> {
        Self::read(given, options).map_err(|mut faults| faults.remove(0))
    }

    /// Everything that is wrong with these settings.
    pub(super) fn faults(given: &BTreeMap<String, String>, options: &KafkaOptions) -> Vec<KafkaError> {
        Self::read(given, options).err().unwrap_or_default()
    }

    /// The settings, or all that is wrong with them, which is something.
    fn read(given: &BTreeMap<String, String>, options: &KafkaOptions) -> Result<Self, Vec<KafkaError>> {
        let mut entries = first_names(given);
        let mut faults = Vec::new();
        check_promises(&entries, &mut faults);
        if entries.get("bootstrap.servers").is_none_or(|brokers| brokers.trim().is_empty()) {
            faults.push(invalid("bootstrap.servers", "is missing; name at least one broker as host:port in worker.json"));
        }
        let iam_region = noted(sign_in(&mut entries, options.region.as_deref()), &mut faults).flatten();
        for (name, value) in DEFAULTS {
            entries.entry((*name).to_owned()).or_insert_with(|| (*value).to_owned());
        }
        entries.entry("client.id".to_owned()).or_insert_with(|| options.client_id.clone());
        let message_timeout = nest(&mut entries, options.function_timeout, &mut faults);
        noted(back_off(&mut entries, if iam_region.is_some() { IAM_BACKOFF_MS } else { BACKOFF_MS }), &mut faults);
        let max_bytes = noted(fit_the_queue(&entries), &mut faults);
        noted(open_the_store(&entries), &mut faults);
        trust_the_system(&mut entries);
        let (Some(message_timeout), Some(max_bytes), true) = (message_timeout, max_bytes, faults.is_empty()) else {
            return Err(faults);
        };
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let settings = Self { entries, message_timeout, max_bytes, iam_region };
        settings.trial().map_err(|error| vec![settings.refused(&error)])?;
        Ok(settings)
    }

    /// Lets librdkafka check everything that it checks when a producer is made, but for what it reads from files and certificates: a
    /// machine that checks the documents need not have them.
    fn trial(&self) -> Result<(), ClientError> {
        let mut config = self.client_config();
        // Without brokers it connects to nothing.
        config.remove("bootstrap.servers");
        let signs_in = self.protocol().to_ascii_lowercase().starts_with("sasl");
        // Before the protocol is replaced, so that a wrong one is refused.
        config.create_native_config()?;
        config.set("security.protocol", if signs_in { "SASL_PLAINTEXT" } else { "PLAINTEXT" });
        let native = config.create_native_config()?;
        Client::new(&config, native, RDKafkaType::RD_KAFKA_PRODUCER, DefaultClientContext).map(drop)
    }

    pub(super) fn brokers(&self) -> &str {
        self.entries.get("bootstrap.servers").map_or("", String::as_str)
    }

    /// `security.protocol`.
    pub(super) fn protocol(&self) -> &str {
        self.entries.get("security.protocol").map_or("PLAINTEXT", String::as_str)
    }

    /// `message.timeout.ms`.
    pub(super) fn record_timeout(&self) -> Duration {
        self.message_timeout
    }

    /// The time in which all reports of a page should be in.
    pub(super) fn page_timeout(&self) -> Duration {
        self.message_timeout + LATE
    }

    /// The time in which all reports of a page are in, if need be by a purge.
    pub(super) fn message_timeout(&self) -> Duration {
        page_end(self.message_timeout)
    }

    /// How long the topics may be asked about.
    pub(super) fn check_timeout(&self) -> Duration {
        CHECK.min(self.message_timeout)
    }

    pub(super) fn client_config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (name, value) in &self.entries {
            config.set(name, value);
        }
        let level = match self.entries.get("log_level").map(String::as_str) {
            _ if self.entries.contains_key("debug") => RDKafkaLogLevel::Debug,
            Some("0" | "1" | "2" | "3") => RDKafkaLogLevel::Error,
            Some("4") => RDKafkaLogLevel::Warning,
            Some("5") => RDKafkaLogLevel::Notice,
            Some("7") => RDKafkaLogLevel::Debug,
            _ => RDKafkaLogLevel::Info,
        };
        config.set_log_level(level);
        config
    }

    /// The same with other values, past the rules: for a producer that delivers nothing.
    pub(super) fn with(&self, values: &[(&str, &str)]) -> Self {
        let mut entries = self.entries.clone();
        entries.extend(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Self { entries, message_timeout: self.message_timeout, max_bytes: self.max_bytes, iam_region: self.iam_region.clone() }
    }

    /// Values that may appear nowhere.
    pub(super) fn secrets(&self) -> Vec<String> {
        let secret = self.entries.iter().filter(|(name, value)| is_secret(name) && !value.is_empty());
        secret.map(|(_, value)| value.clone()).collect()
    }

    /// librdkafka's refusal of a setting, without the value of a secret.
    pub(super) fn refused(&self, error: &ClientError) -> KafkaError {
        let (key, reason) = match error {
            ClientError::ClientConfig(_, reason, key, _) => (key.clone(), reason.clone()),
            // A text, in which the settings are named that do not suit each other.
            ClientError::ClientCreation(reason) => (setting_in(reason).unwrap_or("producer").to_owned(), reason.clone()),
            other => ("producer".to_owned(), other.to_string()),
        };
        let reason = self.secrets().iter().fold(reason, |reason, secret| reason.replace(secret.as_str(), "***"));
        invalid(&key, format!("is refused by librdkafka: {}", reason.trim()))
    }
}

/// The first setting that a text of librdkafka's names: in backquotes, or as a word with dots in it.
fn setting_in(text: &str) -> Option<&str> {
    if let Some(quoted) = text.split('`').nth(1) {
        return Some(quoted);
    }
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').map(|word| word.trim_matches('.'));
    words.filter(|word| word.contains('.')).find(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// What was found, or its fault among the others.
fn noted<T>(found: Result<T, KafkaError>, faults: &mut Vec<KafkaError>) -> Option<T> {
    found.map_err(|fault| faults.push(fault)).ok()
}

/// The latest end of a page whose records live for `message_timeout`.
fn page_end(message_timeout: Duration) -> Duration {
    message_timeout + LATE + PURGE
}

fn is_secret(name: &str) -> bool {
    name.contains("password") || name.contains("secret") || name.contains("key.pem") || name == "sasl.oauthbearer.config"
}

fn invalid(key: &str, message: impl Into<String>) -> KafkaError {
    KafkaError::Setting { key: key.to_owned(), message: message.into() }
}

fn number(entries: &BTreeMap<String, String>, key: &str) -> Result<u64, KafkaError> {
    let text = entries.get(key).map_or("", String::as_str);
    text.trim().parse().map_err(|_| invalid(key, format!("must be a whole number, not `{text}`")))
}

fn check_promises(entries: &BTreeMap<String, String>, faults: &mut Vec<KafkaError>) {
    for (key, harmless, why) in PROMISES {
        if let Some(value) = entries.get(*key).filter(|value| !harmless.contains(&value.as_str())) {
            faults.push(invalid(key, format!("cannot be `{value}`: {why}; leave the key out")));
        }
    }
}

/// Gives `message.max.bytes`, for which the queue must have room.
fn fit_the_queue(entries: &BTreeMap<String, String>) -> Result<u64, KafkaError> {
    let max_bytes = number(entries, "message.max.bytes")?;
    let queue_kbytes = number(entries, "queue.buffering.max.kbytes")?;
    if queue_kbytes.saturating_mul(1024) < max_bytes {
        let least = max_bytes.div_ceil(1024);
        let message = format!("is {queue_kbytes}, too small for one record of message.max.bytes ({max_bytes}); set it to at least {least}");
        return Err(invalid("queue.buffering.max.kbytes", message));
    }
    Ok(max_bytes)
}

/// A key store has a password, be it an empty one.
fn open_the_store(entries: &BTreeMap<String, String>) -> Result<(), KafkaError> {
    if entries.contains_key("ssl.keystore.location") && !entries.contains_key("ssl.keystore.password") {
        return Err(invalid("ssl.keystore.password", "is required by ssl.keystore.location"));
    }
    Ok(())
}

/// Completes and checks the pauses between attempts to connect: where one was chosen, ours gives way.
fn back_off(entries: &mut BTreeMap<String, String>, ours: u64) -> Result<(), KafkaError> {
    const FIRST: &str = "reconnect.backoff.ms";
    const LONGEST: &str = "reconnect.backoff.max.ms";
    let given = |key: &str| if entries.contains_key(key) { number(entries, key).map(Some) } else { Ok(None) };
    let (first, longest) = match (given(FIRST)?, given(LONGEST)?) {
        (Some(first), Some(longest)) if longest < first => {
            return Err(invalid(LONGEST, format!("is {longest}, but must be at least {FIRST} ({first})")));
        }
        (Some(first), Some(longest)) => (first, longest),
        (Some(first), None) => (first, first.max(BACKOFF_MAX_MS)),
        (None, Some(longest)) => (ours.min(longest), longest),
        (None, None) => (ours, BACKOFF_MAX_MS),
    };
    entries.insert(FIRST.to_owned(), first.to_string());
    entries.insert(LONGEST.to_owned(), longest.to_string());
    Ok(())
}

/// Says how to sign in in librdkafka's words. Gives the region to sign for, if it is with an identity of AWS.
fn sign_in(entries: &mut BTreeMap<String, String>, own_region: Option<&str>) -> Result<Option<String>, KafkaError> {
    if !entries.get("sasl.mechanism").is_some_and(|mechanism| mechanism.eq_ignore_ascii_case("AWS_MSK_IAM")) {
        return Ok(None);
    }
    let protocol = entries.get("security.protocol").map_or("", String::as_str);
    if !protocol.eq_ignore_ascii_case("SASL_SSL") {
        return Err(invalid("security.protocol", "must be SASL_SSL for AWS_MSK_IAM: whoever reads a token can use it"));
    }
    let brokers = entries.get("bootstrap.servers").map_or("", String::as_str);
    // A cluster may be in another region than the process.
    let Some(region) = iam::region(brokers).or_else(|| own_region.map(str::to_owned)) else {
        let remedy = "AWS_MSK_IAM signs for a region, and the brokers' names say none; set the environment variable AWS_REGION";
        return Err(invalid("sasl.mechanism", remedy));
    };
    entries.insert("sasl.mechanism".to_owned(), "OAUTHBEARER".to_owned());
    Ok(Some(region))
}

/// Completes and checks the timeouts; gives `message.timeout.ms`.
fn nest(entries: &mut BTreeMap<String, String>, function: Option<Duration>, faults: &mut Vec<KafkaError>) -> Option<Duration> {
    let third = function.map_or(u64::MAX, |timeout| u64::try_from(timeout.as_millis() / 3).unwrap_or(u64::MAX));
    entries.entry("message.timeout.ms".to_owned()).or_insert_with(|| MESSAGE_TIMEOUT_MS.min(third).to_string());
    let message_ms = noted(number(entries, "message.timeout.ms"), faults)?;
    // 0 means for ever in librdkafka.
    if message_ms == 0 || message_ms > third {
        faults.push(invalid("message.timeout.ms", out_of_bounds(message_ms, function.map(|_| third))));
        return None;
    }
    let message_timeout = Duration::from_millis(message_ms);
    let end = page_end(message_timeout);
    if let Some(function) = function.filter(|function| end >= *function) {
        let (end, function) = (end.as_millis(), function.as_millis());
        let message = format!(
            "is {message_ms}, so a page takes up to {end} ms, but the function's timeout is {function} ms; raise the function's timeout"
        );
        faults.push(invalid("message.timeout.ms", message));
    }
    let inner = [
        ("request.timeout.ms", 8_000.min(message_ms / 2).max(10)),
        ("socket.timeout.ms", 10_000.min(message_ms / 2).max(10)),
        ("linger.ms", LINGER_MS.min(message_ms - 1)),
    ];
    for (key, ours) in inner {
        entries.entry(key.to_owned()).or_insert_with(|| ours.to_string());
        if let Some(inner) = noted(number(entries, key), faults).filter(|inner| *inner >= message_ms) {
            faults.push(invalid(key, format!("is {inner}, but must be less than message.timeout.ms ({message_ms})")));
        }
    }
    let setup = 8_000.min(message_ms).max(1_000).to_string();
    entries.entry("socket.connection.setup.timeout.ms".to_owned()).or_insert(setup);
    Some(message_timeout)
}

fn out_of_bounds(message_ms: u64, third: Option<u64>) -> String {
    match third {
        Some(third) => format!("is {message_ms}, but must be between 1 and {third}, a third of the function's timeout"),
        None => format!("is {message_ms}, but must be at least 1"),
    }
}

/// The OpenSSL inside librdkafka knows no certificate authority; told to probe, it looks where Linux distributions,
/// Amazon Linux among them, keep theirs.
fn trust_the_system(entries: &mut BTreeMap<String, String>) {
    let tls = entries.get("security.protocol").is_some_and(|protocol| protocol.to_ascii_lowercase().contains("ssl"));
    let chosen = ["ssl.ca.location", "ssl.ca.pem"].iter().any(|key| entries.contains_key(*key));
    if tls && !chosen {
        entries.insert("ssl.ca.location".to_owned(), "probe".to_owned());
    }
}
