//! The keys that Kafka Connect itself gives a connector or a worker, and what becomes of each here.
//!
//! There are three fates. A key that works here as it does there is a [`Key`]. A key of a feature that does not exist
//! here is refused by name with the reason, unless its value is the one that changes nothing: dropping a transform in
//! silence would change the data, and calling it unknown would not help anybody. And a key that only concerns a
//! Connect cluster is accepted in the worker's document with a warning, so that a worker's file can be brought along.

use super::key::{Key, Kind, Scope, Shape};

/// A key of a feature that does not exist here.
#[derive(Debug)]
pub(super) struct Refused {
    /// The key; with a `.` at its end, every key that starts so.
    pub(super) name: &'static str,
    /// Values that change nothing and are accepted.
    pub(super) harmless: &'static [&'static str],
    /// Why it is refused, and what to do instead.
    pub(super) why: &'static str,
}

impl Refused {
    pub(super) const fn always(name: &'static str, why: &'static str) -> Refused {
        Refused { name, harmless: &[], why }
    }

    pub(super) const fn unless(name: &'static str, harmless: &'static [&'static str], why: &'static str) -> Refused {
        Refused { name, harmless, why }
    }

    /// Whether the key is meant.
    pub(super) fn matches(&self, key: &str) -> bool {
        if self.name.ends_with('.') { key.starts_with(self.name) } else { key == self.name }
    }

    /// Whether this value changes nothing.
    pub(super) fn tolerates(&self, value: &str) -> bool {
        self.harmless.iter().any(|harmless| value.trim().eq_ignore_ascii_case(harmless))
    }
}

/// The refusal that meets a key, if any does.
pub(super) fn refused(table: &'static [Refused], key: &str) -> Option<&'static Refused> {
    table.iter().find(|refused| refused.matches(key))
}

/// The key that chooses the source.
pub(super) const CLASS: &str = "connector.class";
/// The key of the greatest number of tasks.
pub(super) const TASKS_MAX: &str = "tasks.max";

/// The keys that every connector has.
pub(super) static CONNECTOR_KEYS: &[Key] = &[
    Key::new(CLASS, Kind::Text, "Chooses the source, by its short name or by the class name of the connector it stands in for.")
        .required()
        .structural(),
    Key::new(
        TASKS_MAX,
        Kind::Integer { min: 1, max: i32::MAX as i64, unit: "" },
        "The greatest number of tasks; never more than there are tables. A table belongs to one task.",
    )
    .or("1")
    .structural(),
    Key::new("tasks.max.enforce", Kind::Boolean, "Accepted for compatibility: tasks.max is always enforced."),
    Key::new(
        "config.action.reload",
        Kind::Choice(&["none", "restart"]),
        "Accepted for compatibility: placeholders are looked up again by a sweep that starts five minutes later or more, and after a refused \
         credential.",
    ),
    Key::new("exactly.once.support", Kind::Choice(&["requested"]), "Delivery is at least once; `required` is refused."),
    Key::new("transaction.boundary", Kind::Choice(&["poll"]), "Accepted for compatibility: there are no transactions."),
];

/// Below this prefix a connector overrides the worker's producer.
pub(super) const PRODUCER_OVERRIDE: &str = "producer.override.";
/// Below this prefix the worker configures the producer.
pub(super) const PRODUCER: &str = "producer.";
/// Below this prefix stand the settings of topics that the sink creates.
pub(super) const TOPIC_CREATION: &str = "topic.creation.";

/// What a connector cannot ask for.
pub(super) static REFUSED_IN_CONNECTOR: &[Refused] = &[
    Refused::unless(
        "transforms",
        &[""],
        "there are no transforms here; rows go into Kafka as they were read, so reshape them in a consumer",
    ),
    Refused::always("transforms.", "there are no transforms here; rows go into Kafka as they were read, so reshape them in a consumer"),
    Refused::unless("predicates", &[""], "there are no transforms here and so no predicates; filter with the table's query"),
    Refused::always("predicates.", "there are no transforms here and so no predicates; filter with the table's query"),
    Refused::unless(
        "header.converter",
        &["org.apache.kafka.connect.storage.SimpleHeaderConverter"],
        "headers are always written as text; leave the key out",
    ),
    Refused::always("header.converter.", "headers are always written as text; leave the key out"),
    Refused::unless("errors.tolerance", &["none"], "no failed row is skipped in silence; see the keys on bad and oversize rows"),
    Refused::unless("errors.retry.timeout", &["0"], "a failed sweep is repeated from the cursor; there is nothing to retry within it"),
    Refused::unless(
        "errors.retry.delay.max.ms",
        &["60000"],
        "a failed sweep is repeated from the cursor; there is nothing to retry within it",
    ),
    Refused::unless("errors.log.enable", &["false"], "errors are always logged"),
    Refused::unless("errors.log.include.messages", &["false"], "the contents of rows are never logged"),
    Refused::always("errors.", "this part of Connect's error handling belongs to sinks"),
    Refused::always("exactly.once.support", "delivery is at least once, with bounded duplicates; set `requested` or leave the key out"),
    Refused::always("transaction.boundary", "there are no transactions; set `poll` or leave the key out"),
    Refused::always("transaction.boundary.interval.ms", "there are no transactions; leave the key out"),
    Refused::always("offsets.storage.topic", "cursors live in the cursor store and not in a topic; leave the key out"),
    Refused::always("connector.plugin.version", "there is one version of every source, the one that is installed; leave the key out"),
    Refused::always("topics", "this is a key of sinks; a source names the topic of each table"),
    Refused::always("topics.regex", "this is a key of sinks; a source names the topic of each table"),
    Refused::always("consumer.override.", "a source consumes nothing; leave the key out"),
    Refused::always("admin.override.", "there is no separate admin client; set the producer's keys"),
];

static SERVERS: Shape = Shape {
    name: "list of host:port",
    allowed: "host:port, several separated by commas",
    check: |text| match text.split(',').map(str::trim).all(is_server) {
        true => Ok(()),
        false => Err("has an entry that is not host:port".into()),
    },
};

fn is_server(text: &str) -> bool {
    // Connect also takes a security protocol in front, as in SSL://host:9094.
    let address = text.split_once("://").map_or(text, |(_, address)| address);
    address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// The SASL mechanism that signs in to Amazon MSK with the function's role.
pub(super) const MSK_IAM: &str = "AWS_MSK_IAM";

/// The keys of the worker's document, besides `producer.`, `ssl.` and `sasl.` ones, converters and topic creation.
pub(super) static WORKER_KEYS: &[Key] = &[
    Key::new("bootstrap.servers", Kind::Shaped(&SERVERS), "The brokers. Needed by the Kafka sink and by nothing else.")
        .scope(Scope::Worker),
    Key::new("security.protocol", Kind::Choice(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]), "How to talk to the brokers.")
        .scope(Scope::Worker),
    Key::new(
        "sasl.mechanism",
        Kind::Choice(&[MSK_IAM, "SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]),
        "How to sign in. AWS_MSK_IAM uses the role that the process runs under.",
    )
    .scope(Scope::Worker),
    Key::new("client.id", Kind::Text, "The name that quotas and the brokers' logs know this client by.").scope(Scope::Worker),
    Key::new(
        "topic.creation.enable",
        Kind::Boolean,
        "Whether topics that do not exist may be created, as topic.creation.<group>.* of the connector or of the worker says.",
    )
    .scope(Scope::Worker)
    .or("true")
    .structural(),
];

/// What a worker cannot ask for.
pub(super) static REFUSED_IN_WORKER: &[Refused] = &[
    Refused::unless("exactly.once.source.support", &["disabled"], "delivery is at least once, with bounded duplicates; leave the key out"),
    Refused::unless(
        "connector.client.config.override.policy",
        &["All", "org.apache.kafka.connect.connector.policy.AllConnectorClientConfigOverridePolicy"],
        "connectors may always override producer settings; leave the key out",
    ),
    Refused::unless(
        "header.converter",
        &["org.apache.kafka.connect.storage.SimpleHeaderConverter"],
        "headers are always written as text; leave the key out",
    ),
    Refused::always("header.converter.", "headers are always written as text; leave the key out"),
];

/// Keys of a Connect worker that have no meaning without a Connect cluster; with a `.` at the end, all that start so.
pub(super) static CLUSTER_ONLY: &[&str] = &[
    "access.control.allow.",
    "admin.",
    "client.dns.lookup",
    "config.providers",
    "config.providers.",
    "config.storage.",
    "connect.protocol",
    "consumer.",
    "group.id",
    "heartbeat.interval.ms",
    "inter.worker.",
    "internal.key.converter",
    "internal.key.converter.",
    "internal.value.converter",
    "internal.value.converter.",
    "listeners",
    "listeners.",
    "metric.reporters",
    "metrics.",
    "offset.flush.",
    "offset.storage.",
    "plugin.discovery",
    "plugin.path",
    "rebalance.timeout.ms",
    "response.http.headers.config",
    "rest.",
    "scheduled.rebalance.max.delay.ms",
    "session.timeout.ms",
    "status.storage.",
    "task.shutdown.graceful.timeout.ms",
    "topic.tracking.",
    "worker.",
];

/// Whether a key only concerns a Connect cluster.
pub(super) fn is_cluster_only(key: &str) -> bool {
    CLUSTER_ONLY.iter().any(|name| if name.ends_with('.') { key.starts_with(name) } else { key == *name })
}
