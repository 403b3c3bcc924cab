//! What can go wrong between a page and the brokers, what it is called, and what a person can do about it.

use rdkafka::error::RDKafkaErrorCode as Code;

use super::barrier::Barrier;
use super::context::{Refused, Trouble};
use super::creation::NewTopic;
use super::page::Outcome;
use super::settings::Settings;
use crate::failure::{Failure, Retry};

/// Errors of the Kafka sink.
#[derive(Debug, thiserror::Error)]
pub(super) enum KafkaError {
    #[error("the producer setting {key} {message}")]
    Setting { key: String, message: String },

    #[error(
        "{what} because the brokers at {brokers} (bootstrap.servers) are out of reach{said}. Check the address, the port and its security.protocol, and that the network lets this process through"
    )]
    Unreachable { what: String, brokers: String, said: String },

    #[error(
        "{what} within {ms} ms by the brokers at {brokers} (bootstrap.servers){said}. Check the load and the in-sync replicas of the topic; the page is sent again by the next sweep"
    )]
    Timeout { what: String, ms: u128, brokers: String, said: String },

    #[error(
        "the topic {topic} does not exist on the brokers at {brokers}, and none is created by producing to it. Create it (`kafka-topics.sh --create --topic {topic} …`), have it created by topic.creation.default.*, or correct the topic's name in the document"
    )]
    TopicMissing { topic: String, brokers: String },

    #[error("the topic {topic} does not exist on the brokers at {brokers} and could not be created with {how}: {code}. {remedy}")]
    TopicRefused { topic: String, brokers: String, how: String, code: Code, remedy: &'static str, retry: Retry },

    #[error("{what}: the brokers at {brokers} refuse the login{said}. {}", login_remedy(*renewed))]
    Unauthorized { what: String, brokers: String, said: String, renewed: bool },

    #[error(
        "no AWS credentials to sign in to the brokers with (sasl.mechanism=AWS_MSK_IAM): {reason}. A function signs in with its role; elsewhere set AWS_PROFILE or the like, and look whether its session is still open"
    )]
    Credentials { reason: String },

    #[error(
        "{what} because the certificates of the brokers at {brokers} and of this client do not suit each other{said}. {}", certificate_remedy(*renewed)
    )]
    Certificate { what: String, brokers: String, said: String, renewed: bool },

    #[error(
        "{what} because the port of the brokers at {brokers} (bootstrap.servers) does not seem to speak {protocol} (security.protocol){said}. Let the two suit each other; the ports of Amazon MSK are 9098 for IAM, 9096 for SCRAM, 9094 for TLS and 9092 without"
    )]
    Protocol { what: String, brokers: String, protocol: String, said: String },

    #[error("{what}: the brokers at {brokers} refuse it ({reason}){said}. {remedy}")]
    Denied { what: String, brokers: String, reason: String, said: String, remedy: &'static str },

    #[error(
        "the record with key {key} for topic {topic} takes {size} bytes, more than message.max.bytes ({limit}). Raise the topic's max.message.bytes and then the producer's message.max.bytes, leave large fields out of the query, or set `snow.source.oversize.row.behavior` or `mssql.oversize.row.behavior` to `skip`"
    )]
    TooLarge { topic: String, key: String, size: usize, limit: usize },

    #[error(
        "the brokers at {brokers} take no batch as large as the one with key {key} for topic {topic}, although the producer's message.max.bytes is {limit}. Set the topic's max.message.bytes to at least that, or message.max.bytes to the topic's limit"
    )]
    BatchTooLarge { topic: String, key: String, brokers: String, limit: usize },

    #[error("the producer for the brokers at {brokers} has failed for good: {reason} ({code}). The next page gets a new producer")]
    Fatal { brokers: String, code: Code, reason: String },

    #[error("{what}: {code}, from the brokers at {brokers}{said}. {remedy}")]
    Rejected { what: String, code: Code, brokers: String, said: String, remedy: &'static str, retry: Retry },

    #[error("a task of the Kafka sink was broken off: {reason}")]
    Broken { reason: String },
}

impl KafkaError {
    /// Whether this stays as it is until somebody does something, so that the producer is not worth keeping.
    pub(super) fn bars_the_way(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Credentials { .. } | Self::Certificate { .. } | Self::Protocol { .. })
    }

    /// The same error, after a refusal for which there is another login to try. It was the refusal that ended the page, whatever
    /// other brokers have answered since.
    pub(super) fn with_another_login(self, refused: Option<Refused>) -> Self {
        match (self, refused) {
            (Self::Unauthorized { what, brokers, said, .. }, Some(_)) => Self::Unauthorized { what, brokers, said, renewed: true },
            (Self::Certificate { what, brokers, said, .. }, Some(_)) => Self::Certificate { what, brokers, said, renewed: true },
            (Self::Timeout { what, brokers, said, .. } | Self::Unreachable { what, brokers, said }, Some(refused)) => match refused {
                Refused::Login => Self::Unauthorized { what, brokers, said, renewed: true },
                Refused::Certificate => Self::Certificate { what, brokers, said, renewed: true },
            },
            (other, _) => other,
        }
    }
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        let (code, retry) = match &error {
            KafkaError::Setting { .. } => ("Config.Invalid", Retry::Never),
            KafkaError::Unreachable { .. } => ("Sink.Unreachable", Retry::NextTick),
            KafkaError::Timeout { .. } => ("Sink.Timeout", Retry::NextTick),
            KafkaError::TopicMissing { .. } => ("Sink.TopicMissing", Retry::Never),
            KafkaError::TopicRefused { retry, .. } => ("Sink.TopicRefused", *retry),
            // With other secrets the next sweep signs in; that is nobody's business.
            KafkaError::Unauthorized { renewed: true, .. } => ("Sink.Unauthorized", Retry::NextTick),
            KafkaError::Unauthorized { renewed: false, .. } => ("Sink.Unauthorized", Retry::Never),
            KafkaError::Credentials { .. } => ("Sink.Credentials", Retry::NextTick),
            KafkaError::Certificate { renewed: true, .. } => ("Sink.Certificate", Retry::NextTick),
            KafkaError::Certificate { renewed: false, .. } => ("Sink.Certificate", Retry::Never),
            // Read off the moment at which the connection was closed, which is no proof.
            KafkaError::Protocol { .. } => ("Sink.Protocol", Retry::NextTick),
            KafkaError::Denied { .. } => ("Sink.Denied", Retry::Never),
            KafkaError::TooLarge { .. } | KafkaError::BatchTooLarge { .. } => ("Sink.TooLarge", Retry::Never),
            KafkaError::Fatal { .. } | KafkaError::Broken { .. } => ("Sink.Fatal", Retry::NextTick),
            KafkaError::Rejected { retry, .. } => ("Sink.Rejected", *retry),
        };
        Failure::new(code, retry, error.to_string())
    }
}

const TOPIC_RIGHTS: &str = "Give the producer's user the rights Write and Describe on the topic";
const CREATE_RIGHTS: &str = "Give the producer's user the right Create on the topic or the cluster, or create the topic by hand";
const CLUSTER_RIGHTS: &str = "Give the producer's user the right IdempotentWrite on the cluster";

fn login_remedy(renewed: bool) -> &'static str {
    if renewed {
        "The secrets of the documents have changed since; the next sweep signs in with the new ones"
    } else {
        "Check sasl.mechanism, sasl.username and sasl.password; with AWS_MSK_IAM the role's right to kafka-cluster:Connect"
    }
}

fn certificate_remedy(renewed: bool) -> &'static str {
    if renewed {
        "The certificates of the documents have changed since; the next sweep goes by the new ones"
    } else {
        "Name the authority that signed the brokers' in ssl.ca.location or ssl.ca.pem (without either, the system's are trusted), and give \
         the client's own in ssl.certificate.pem and ssl.key.pem if the port asks for one"
    }
}

/// A key as it may be shown in a message: short, and text.
pub(super) fn shown_key(key: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&key[..key.len().min(SHOWN)]);
    if key.len() > SHOWN { format!("{text}…") } else { text.into_owned() }
}

fn said(trouble: &Trouble) -> String {
    trouble.said.as_ref().map_or_else(String::new, |said| format!("; the client's last report: {said}"))
}

/// The error of a page whose records were not all delivered.
pub(super) fn undelivered(outcome: &Outcome, trouble: &Trouble, settings: &Settings) -> KafkaError {
    let brokers = settings.brokers().to_owned();
    let Some(failed) = &outcome.failed else {
        let what = format!("{} records of the page were not reported", outcome.in_flight);
        return too_late(what, trouble, settings);
    };
    let (topic, key, code) = (failed.topic.clone(), failed.key.clone(), failed.code);
    let all = outcome.acked + outcome.refused;
    let what = format!("{} of {all} records of the page were not delivered to topic {topic} (first key {key})", outcome.refused);
    if let Some(remedy) = denial(code) {
        return denied(what, code, trouble, settings, remedy);
    }
    match code {
        Code::Authentication | Code::SaslAuthenticationFailed => signed_out(what, trouble, settings),
        Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition => KafkaError::TopicMissing { topic, brokers },
        Code::MessageSizeTooLarge | Code::InvalidMessageSize => {
            KafkaError::BatchTooLarge { topic, key, brokers, limit: settings.max_bytes }
        }
        Code::MessageTimedOut
        | Code::QueueFull
        | Code::PurgeQueue
        | Code::PurgeInflight
        | Code::OperationTimedOut
        | Code::RequestTimedOut
        | Code::BrokerTransportFailure
        | Code::AllBrokersDown
        | Code::Resolve => too_late(what, trouble, settings),
        Code::InvalidRecord | Code::InvalidTimestamp | Code::PolicyViolation | Code::InvalidArgument | Code::InvalidTopic => {
            let remedy = "The records do not suit the topic's settings; compare them with the converter's";
            KafkaError::Rejected { what, code, brokers, said: said(trouble), remedy, retry: Retry::Never }
        }
        _ => {
            let remedy = "The page is sent again by the next sweep";
            KafkaError::Rejected { what, code, brokers, said: said(trouble), remedy, retry: Retry::NextTick }
        }
    }
}

/// The error of a producer that takes nothing any more.
pub(super) fn fatal(code: Code, reason: String, settings: &Settings) -> KafkaError {
    match denial(code) {
        Some(remedy) => denied(format!("the producer has failed for good: {reason}"), code, &Trouble::default(), settings, remedy),
        None => KafkaError::Fatal { brokers: settings.brokers().to_owned(), code, reason },
    }
}

/// The error of a topic that the brokers answered for.
pub(super) fn topic(topic: &str, code: Code, settings: &Settings) -> KafkaError {
    let (what, brokers) = (format!("the topic {topic} cannot be used"), settings.brokers().to_owned());
    match (code, denial(code)) {
        (_, Some(remedy)) => denied(what, code, &Trouble::default(), settings, remedy),
        (Code::UnknownTopicOrPartition | Code::UnknownTopic, _) => KafkaError::TopicMissing { topic: topic.to_owned(), brokers },
        _ => {
            let (remedy, retry) = match code {
                Code::InvalidTopic => ("Correct the topic's name in the document", Retry::Never),
                Code::LeaderNotAvailable => ("Wait until its partitions have leaders", Retry::NextTick),
                _ => ("The next sweep asks again", Retry::NextTick),
            };
            KafkaError::Rejected { what, code, brokers, said: String::new(), remedy, retry }
        }
    }
}

/// The error of a topic that was to be created.
pub(super) fn not_created(topic: &str, new: &NewTopic, code: Code, settings: &Settings) -> KafkaError {
    let rights = match code {
        Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed => Some(CREATE_RIGHTS),
        _ => denial(code),
    };
    if let Some(remedy) = rights {
        return denied(format!("the topic {topic} does not exist and cannot be created"), code, &Trouble::default(), settings, remedy);
    }
    let mut how = format!("{} partitions and replication factor {}", new.partitions, new.replication_factor);
    for (name, value) in &new.config {
        how.push_str(&format!(", {name}={value}"));
    }
    let (remedy, retry) = match code {
        Code::InvalidReplicationFactor => (
            "Set topic.creation.default.replication.factor, or the group's, to at most the number of brokers, or to -1 for theirs",
            Retry::Never,
        ),
        Code::InvalidPartitions => ("Correct topic.creation.default.partitions, or the group's", Retry::Never),
        Code::InvalidConfig => ("Correct the settings of the topic below topic.creation.*", Retry::Never),
        Code::PolicyViolation => {
            ("The cluster's policy forbids such a topic; ask whoever runs it, or create the topic by hand", Retry::Never)
        }
        Code::InvalidTopic => ("Correct the topic's name in the document", Retry::Never),
        Code::InvalidRequest => ("Correct topic.creation.*; the brokers' log says what is wrong with it", Retry::Never),
        _ => ("The next sweep tries again", Retry::NextTick),
    };
    KafkaError::TopicRefused { topic: topic.to_owned(), brokers: settings.brokers().to_owned(), how, code, remedy, retry }
}

/// The error of topics that no broker answered for.
pub(super) fn unanswered(topics: &[String], trouble: &Trouble, settings: &Settings) -> KafkaError {
    let what = format!("the topics {} could not be checked", topics.join(", "));
    let (brokers, said) = (settings.brokers().to_owned(), said(trouble));
    match barred(&what, trouble, settings) {
        Some(error) => error,
        None => KafkaError::Unreachable { what, brokers, said },
    }
}

/// The error of a barrier that stands between this process and the brokers.
fn barred(what: &str, trouble: &Trouble, settings: &Settings) -> Option<KafkaError> {
    let (what, brokers) = (what.to_owned(), settings.brokers().to_owned());
    let said = said(trouble);
    Some(match trouble.barrier.filter(|_| trouble.current)? {
        Barrier::Login => KafkaError::Unauthorized { what, brokers, said, renewed: false },
        Barrier::Token => KafkaError::Credentials { reason: trouble.said.clone().unwrap_or_default() },
        Barrier::Certificate => KafkaError::Certificate { what, brokers, said, renewed: false },
        Barrier::Protocol => KafkaError::Protocol { what, brokers, protocol: settings.protocol().to_owned(), said },
    })
}

/// The error of records whose connection was ended for the sake of a login. Only what was said of that tells a refusal from trouble
/// that passes; the code is the same.
fn signed_out(what: String, trouble: &Trouble, settings: &Settings) -> KafkaError {
    let (brokers, heard) = (settings.brokers().to_owned(), trouble.said.is_some());
    match barred(&what, trouble, settings) {
        Some(error) => error,
        None if heard && trouble.barrier.is_none() => KafkaError::Unreachable { what, brokers, said: said(trouble) },
        None => KafkaError::Unauthorized { what, brokers, said: said(trouble), renewed: false },
    }
}

/// What a person must change when this is a refusal of rights.
fn denial(code: Code) -> Option<&'static str> {
    match code {
        Code::TopicAuthorizationFailed => Some(TOPIC_RIGHTS),
        Code::ClusterAuthorizationFailed => Some(CLUSTER_RIGHTS),
        _ => None,
    }
}

fn denied(what: String, code: Code, trouble: &Trouble, settings: &Settings, remedy: &'static str) -> KafkaError {
    let brokers = settings.brokers().to_owned();
    KafkaError::Denied { what, brokers, reason: code.to_string(), said: said(trouble), remedy }
}

/// No answer in time. What the client said about the connection since the last acknowledgement decides what it is called.
fn too_late(what: String, trouble: &Trouble, settings: &Settings) -> KafkaError {
    if let Some(error) = barred(&what, trouble, settings) {
        return error;
    }
    let (brokers, said) = (settings.brokers().to_owned(), said(trouble));
    if trouble.current {
        return KafkaError::Unreachable { what, brokers, said };
    }
    KafkaError::Timeout { what, ms: settings.record_timeout().as_millis(), brokers, said }
}
