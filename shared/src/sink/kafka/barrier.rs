//! What stands between this process and the brokers, read off what librdkafka says about a connection.
//!
//! librdkafka reports a connection that failed by a code and a line of text, and tries again. A page that times out then says
//! only that it timed out; why is in the last of those lines. Some reasons pass by themselves and some never do, and what a person
//! has to change differs from one to the next, so they are told apart here. The words are those of librdkafka 2.12.1
//! (`rdkafka_broker.c`, `rdkafka_ssl.c`, `rdkafka_sasl_oauthbearer.c`) and of the OpenSSL inside it.

use rdkafka::error::RDKafkaErrorCode as Code;

/// Why the brokers cannot be talked to, though they are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Barrier {
    /// They refuse who we say we are.
    Login,
    /// There is no token to say it with.
    Token,
    /// They have another certificate than is trusted, or want another than they are shown.
    Certificate,
    /// The port speaks another protocol than `security.protocol` says.
    Protocol,
}

/// How a listener without TLS answers a greeting of TLS, in OpenSSL's words.
const NO_TLS: &[&str] = &["wrong version number", "packet length too long", "unexpected eof", "record layer failure", "http request"];

/// How OpenSSL tells that the other side has ended a connection for a certificate's sake.
const ALERTS: &[&str] =
    &["alert certificate", "alert bad certificate", "alert unknown ca", "alert unsupported certificate", "SSL alert number"];

/// A connection is closed at a moment at which brokers do not close it, or librdkafka says what that may mean.
const GUESSES: &[&str] = &[
    "connecting to a PLAINTEXT broker listener?",
    "connecting to a SSL listener?",
    "broker might require SASL",
    "in state APIVERSION_QUERY",
    "in state SSL_HANDSHAKE",
];

impl Barrier {
    /// What a report of librdkafka is about; `None` if it is about the connection as such.
    pub(super) fn of(code: Option<Code>, reason: &str) -> Option<Self> {
        let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
        match code? {
            Code::Authentication | Code::SaslAuthenticationFailed if says(&["Failed to acquire SASL OAUTHBEARER token"]) => {
                Some(Self::Token)
            }
            Code::Authentication | Code::SaslAuthenticationFailed => Some(Self::Login),
            Code::UnsupportedSASLMechanism | Code::IllegalSASLState => Some(Self::Login),
            Code::SSL if says(NO_TLS) => Some(Self::Protocol),
            Code::SSL => Some(Self::Certificate),
            Code::BrokerTransportFailure => Self::of_a_closed_connection(reason),
            _ => None,
        }
    }

    /// What a closed connection is about. librdkafka reports most of those by a line of its log alone.
    pub(super) fn of_a_closed_connection(reason: &str) -> Option<Self> {
        let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
        // Who says nothing at all is not there, or busy: nothing is known of what it speaks.
        if says(&["Timed out", "timed out"]) {
            return None;
        }
        // By TLS 1.3 a broker that misses a certificate says so only after the client believes the handshake to be over.
        if says(ALERTS) {
            Some(Self::Certificate)
        } else if says(GUESSES) {
            Some(Self::Protocol)
        } else {
            None
        }
    }
}
