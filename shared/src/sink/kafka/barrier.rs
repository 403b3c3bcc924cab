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

/// What OpenSSL, or librdkafka, has against a certificate or its key; and what librdkafka takes for the want of one.
const CERTIFICATE: &[&str] =
    &["certificate", "bad signature", "wrong signature type", "key too small", "md too weak", "unexpected message"];

/// What OpenSSL writes before the number of an alert of TLS, which is how one side tells the other why it ends the connection.
const ALERT: &str = "SSL alert number ";

/// There is nothing to sign in with, or nothing that lasts: the last is what Amazon MSK says of credentials that are about to end.
const NO_TOKEN: &[&str] = &["Failed to acquire SASL OAUTHBEARER token", "there is no token available", "Session too short"];

/// A login that ended without an answer. librdkafka reports it by the code of a refused one, followed by the error that ended it,
/// which is of its own and hence `Local`. Brokers before Kafka 1.0 end a connection to refuse a login, too; but a younger one that
/// restarts can look to librdkafka like one of those, so that proves nothing.
const NO_ANSWER: &[&str] = &["Local: ", "Disconnected"];

/// An answer that is about this connection and not about who we are. Amazon MSK admits so many new connections a second with an
/// identity of AWS (4 on the smallest brokers), and refuses the others as if their login were wrong (aws-msk-iam-auth, issue 28).
/// A connection that stands cannot be signed in to again as somebody else, and the next one can.
const NEXT_TIME: &[&str] = &["Too many connects", "Cannot change principals"];

/// A connection is closed at a moment at which brokers do not close it, or librdkafka says what that may mean.
const GUESSES: &[&str] = &[
    "connecting to a PLAINTEXT broker listener?",
    "connecting to a SSL listener?",
    "broker might require SASL",
    "in state APIVERSION_QUERY",
    "in state SSL_HANDSHAKE",
];

impl Barrier {
    /// What a report of librdkafka is about; `None` if it is about the connection as such, and the next one may fare better.
    pub(super) fn of(code: Option<Code>, reason: &str) -> Option<Self> {
        match code? {
            Code::Authentication | Code::SaslAuthenticationFailed => Self::of_a_login(reason),
            Code::UnsupportedSASLMechanism | Code::IllegalSASLState => Some(Self::Login),
            Code::SSL => Self::of_a_handshake(reason),
            Code::BrokerTransportFailure => Self::of_a_closed_connection(reason),
            _ => None,
        }
    }

    fn of_a_login(reason: &str) -> Option<Self> {
        if says(reason, NO_TOKEN) {
            Some(Self::Token)
        } else if says(reason, NO_ANSWER) || says(reason, NEXT_TIME) {
            None
        } else {
            Some(Self::Login)
        }
    }

    /// Of a handshake of TLS only what names a cause that stays is one: the rest is trouble of the way, or of the other side.
    fn of_a_handshake(reason: &str) -> Option<Self> {
        if let Some(number) = alert(reason) {
            Self::of_an_alert(number)
        } else if says(reason, NO_TLS) {
            Some(Self::Protocol)
        } else if says(reason, CERTIFICATE) {
            Some(Self::Certificate)
        } else {
            None
        }
    }

    /// What an alert of TLS is about, by its number (RFC 8446 §6, and RFC 5246 §7.2 for the older ones).
    fn of_an_alert(number: u8) -> Option<Self> {
        match number {
            // unexpected_message and handshake_failure, which is how some servers miss a certificate; no_certificate to
            // certificate_unknown; unknown_ca; access_denied; decrypt_error (the signature does not fit the certificate);
            // unrecognized_name; certificate_required.
            10 | 40..=46 | 48 | 49 | 51 | 112 | 116 => Some(Self::Certificate),
            // protocol_version, insufficient_security, inappropriate_fallback.
            70 | 71 | 86 => Some(Self::Protocol),
            // internal_error (80) is the other side's own trouble, by definition; a record that was damaged comes whole next time.
            _ => None,
        }
    }

    /// What a closed connection is about. librdkafka reports most of those by a line of its log alone.
    pub(super) fn of_a_closed_connection(reason: &str) -> Option<Self> {
        // Who says nothing at all is not there, or busy: nothing is known of what it speaks.
        if says(reason, &["Timed out", "timed out"]) {
            return None;
        }
        // By TLS 1.3 a broker that misses a certificate says so only after the client believes the handshake to be over.
        match alert(reason) {
            Some(number) => Self::of_an_alert(number),
            None if says(reason, GUESSES) => Some(Self::Protocol),
            None => None,
        }
    }
}

fn says(reason: &str, words: &[&str]) -> bool {
    words.iter().any(|word| reason.contains(word))
}

/// The number of the alert of TLS that a text tells of.
fn alert(reason: &str) -> Option<u8> {
    let (_, rest) = reason.split_once(ALERT)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}
