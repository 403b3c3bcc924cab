//! The tables: which settings librdkafka knows, and which of the Java client's have an equivalent.

use crate::config::connect::WORKER_KEYS;
use crate::config::key::{Key, Kind, Scope};

const fn text(name: &'static str) -> Key {
    Key::new(name, Kind::Text, "").scope(Scope::Producer)
}

const fn path(name: &'static str) -> Key {
    Key::new(name, Kind::Path, "").scope(Scope::Producer)
}

const fn secret(name: &'static str) -> Key {
    Key::new(name, Kind::Password, "").scope(Scope::Producer)
}

const fn flag(name: &'static str) -> Key {
    Key::new(name, Kind::Boolean, "").scope(Scope::Producer)
}

const fn choice(name: &'static str, choices: &'static [&'static str]) -> Key {
    Key::new(name, Kind::Choice(choices), "").scope(Scope::Producer)
}

const fn number(name: &'static str, min: i64, max: i64) -> Key {
    Key::new(name, Kind::Integer { min, max, unit: "" }, "").scope(Scope::Producer)
}

const I32: i64 = i32::MAX as i64;
const CODECS: &[&str] = &["none", "gzip", "snappy", "lz4", "zstd"];
const PARTITIONERS: &[&str] = &["murmur2_random", "murmur2", "consistent_random", "consistent", "random", "fnv1a_random", "fnv1a"];

/// librdkafka's settings for producers, with its own limits. Callbacks and consumer settings are left out.
pub(in crate::config) static KNOWN: &[Key] = &[
    choice("acks", &["all", "-1"]),
    flag("allow.auto.create.topics"),
    number("api.version.request.timeout.ms", 1, 300_000),
    number("batch.num.messages", 1, 1_000_000),
    number("batch.size", 1, I32),
    choice("broker.address.family", &["any", "v4", "v6"]),
    number("broker.address.ttl", 0, 86_400_000),
    choice("client.dns.lookup", &["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]),
    text("client.rack"),
    number("compression.level", -1, 12),
    choice("compression.type", CODECS),
    number("connections.max.idle.ms", 0, I32),
    text("debug"),
    choice("enable.idempotence", &["true"]),
    flag("enable.metrics.push"),
    flag("enable.ssl.certificate.verification"),
    path("https.ca.location"),
    text("https.ca.pem"),
    number("linger.ms", 0, 900_000),
    flag("log.connection.close"),
    number("log_level", 0, 7),
    // Idempotence needs at most five.
    number("max.in.flight.requests.per.connection", 1, 5),
    number("message.copy.max.bytes", 0, 1_000_000_000),
    number("message.max.bytes", 1000, 1_000_000_000),
    number("message.timeout.ms", 1, I32),
    number("metadata.max.age.ms", 1, 86_400_000),
    number("metadata.recovery.rebootstrap.trigger.ms", 0, I32),
    choice("metadata.recovery.strategy", &["none", "rebootstrap"]),
    choice("partitioner", PARTITIONERS),
    number("queue.buffering.backpressure.threshold", 1, 1_000_000),
    number("queue.buffering.max.kbytes", 1, I32),
    number("queue.buffering.max.messages", 1, I32),
    number("receive.message.max.bytes", 1000, I32),
    number("reconnect.backoff.max.ms", 0, 3_600_000),
    number("reconnect.backoff.ms", 0, 3_600_000),
    number("request.timeout.ms", 1, 900_000),
    number("retries", 1, I32),
    number("retry.backoff.max.ms", 1, 300_000),
    number("retry.backoff.ms", 1, 300_000),
    secret("sasl.password"),
    text("sasl.username"),
    number("socket.connection.setup.timeout.ms", 1000, I32),
    flag("socket.keepalive.enable"),
    number("socket.max.fails", 0, 1_000_000),
    flag("socket.nagle.disable"),
    number("socket.receive.buffer.bytes", 0, 100_000_000),
    number("socket.send.buffer.bytes", 0, 100_000_000),
    number("socket.timeout.ms", 10, 300_000),
    path("ssl.ca.location"),
    text("ssl.ca.pem"),
    path("ssl.certificate.location"),
    text("ssl.certificate.pem"),
    text("ssl.cipher.suites"),
    path("ssl.crl.location"),
    text("ssl.curves.list"),
    choice("ssl.endpoint.identification.algorithm", &["https", "none"]),
    path("ssl.key.location"),
    secret("ssl.key.password"),
    secret("ssl.key.pem"),
    path("ssl.keystore.location"),
    secret("ssl.keystore.password"),
    text("ssl.providers"),
    text("ssl.sigalgs.list"),
    number("statistics.interval.ms", 0, 86_400_000),
    number("sticky.partitioning.linger.ms", 0, 900_000),
    number("topic.metadata.propagation.max.ms", 0, 3_600_000),
    number("topic.metadata.refresh.fast.interval.ms", 1, 60_000),
    number("topic.metadata.refresh.interval.ms", -1, 3_600_000),
    flag("topic.metadata.refresh.sparse"),
];

/// A name that librdkafka spells otherwise, with the conversion of its value.
#[derive(Debug)]
pub(in crate::config) struct Translation {
    /// The definition under the foreign name.
    pub(in crate::config) key: Key,
    /// librdkafka's name.
    pub(in crate::config) to: &'static str,
    convert: Convert,
}

#[derive(Debug)]
enum Convert {
    /// The value is the same.
    Same,
    /// Bytes become kibibytes, rounded up.
    Kibibytes,
    /// -1 means the system's default, which librdkafka writes as 0.
    MinusOneIsZero,
    /// A Java class becomes the partitioner of the same results.
    Partitioner,
}

const fn java(key: Key, to: &'static str, convert: Convert) -> Translation {
    Translation { key, to, convert }
}

/// The Java client's own names, and librdkafka's second names, so that one setting has one name when documents meet.
pub(in crate::config) static JAVA: &[Translation] = &[
    java(number("buffer.memory", 1024, I32 * 1024), "queue.buffering.max.kbytes", Convert::Kibibytes),
    java(choice("compression.codec", CODECS), "compression.type", Convert::Same),
    java(number("delivery.timeout.ms", 1, I32), "message.timeout.ms", Convert::Same),
    java(number("max.in.flight", 1, 5), "max.in.flight.requests.per.connection", Convert::Same),
    java(number("max.request.size", 1000, 1_000_000_000), "message.max.bytes", Convert::Same),
    java(number("message.send.max.retries", 1, I32), "retries", Convert::Same),
    java(
        choice(
            "partitioner.class",
            &[
                "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
                "org.apache.kafka.clients.producer.internals.BuiltInPartitioner",
            ],
        ),
        "partitioner",
        Convert::Partitioner,
    ),
    java(number("queue.buffering.max.ms", 0, 900_000), "linger.ms", Convert::Same),
    java(number("receive.buffer.bytes", -1, 100_000_000), "socket.receive.buffer.bytes", Convert::MinusOneIsZero),
    java(choice("request.required.acks", &["all", "-1"]), "acks", Convert::Same),
    java(number("send.buffer.bytes", -1, 100_000_000), "socket.send.buffer.bytes", Convert::MinusOneIsZero),
    java(text("ssl.keystore.certificate.chain"), "ssl.certificate.pem", Convert::Same),
    java(secret("ssl.keystore.key"), "ssl.key.pem", Convert::Same),
    java(text("ssl.truststore.certificates"), "ssl.ca.pem", Convert::Same),
];

/// The way of a setting to librdkafka.
pub(super) enum Route {
    /// The value goes as it is.
    Direct,
    /// The value is translated.
    Translated(&'static Translation),
}

impl Route {
    /// The value for librdkafka.
    pub(super) fn apply(&self, text: &str) -> Result<String, String> {
        let translation = match self {
            Route::Direct => return Ok(text.to_owned()),
            Route::Translated(translation) => translation,
        };
        let number = || text.parse::<i64>().map_err(|_| "is not a whole number".to_owned());
        Ok(match translation.convert {
            Convert::Same => text.to_owned(),
            Convert::Kibibytes => number()?.max(0).unsigned_abs().div_ceil(1024).to_string(),
            Convert::MinusOneIsZero => number()?.max(0).to_string(),
            Convert::Partitioner => "murmur2_random".to_owned(),
        })
    }
}

/// The name and the way of a setting, by whatever name the document gives it.
pub(super) fn route(name: &str) -> Option<(&'static str, Route)> {
    if let Some(translation) = JAVA.iter().find(|translation| translation.key.name == name) {
        return Some((translation.to, Route::Translated(translation)));
    }
    definition(name).map(|key| (key.name, Route::Direct))
}

/// Every name by which a setting can be given.
pub(in crate::config) fn names() -> impl Iterator<Item = &'static str> {
    let shared_with_worker = WORKER_KEYS.iter().filter(|key| !key.name.starts_with("topic.creation."));
    let keys = KNOWN.iter().chain(shared_with_worker).chain(JAVA.iter().map(|translation| &translation.key));
    keys.map(|key| key.name)
}

/// The definition of a setting, by whatever name.
pub(in crate::config) fn definition(name: &str) -> Option<&'static Key> {
    let shared_with_worker = WORKER_KEYS.iter().filter(|key| !key.name.starts_with("topic.creation."));
    KNOWN.iter().chain(shared_with_worker).chain(JAVA.iter().map(|translation| &translation.key)).find(|key| key.name == name)
}
