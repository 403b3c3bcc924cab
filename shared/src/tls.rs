//! Certificates: whom to trust, who we are, and what it means when a connection is not trusted.
//!
//! Whoever talks TLS over HTTP reads its stores here, under its own keys. Errors name those keys and the place that
//! was read, and never what stands there.

use rustls::{AlertDescription, CertificateError};
use secrecy::{ExposeSecret as _, SecretString};

pub(crate) mod pem;
pub(crate) mod store;

/// Certificates, or a certificate with its key.
#[derive(Clone, Debug)]
pub struct Store {
    /// The key of the document that names the place.
    pub key: String,
    /// Where they stand.
    pub place: Place,
    /// What opens it.
    pub password: Option<SecretString>,
    /// The type that the document gives: JKS, PKCS12 or PEM; `None` if it gives none.
    pub format: Option<String>,
}

/// Where certificates stand.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the file of this path.
    File(String),
    /// In the document itself, as PEM.
    Text(SecretString),
}

impl Place {
    fn shown(&self) -> String {
        match self {
            Place::File(path) => path.clone(),
            Place::Text(_) => String::new(),
        }
    }
}

impl Store {
    /// Whether this is the same place with the same text, opened alike. What a file holds is not looked at.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_place = match (&self.place, &other.place) {
            (Place::File(path), Place::File(other)) => path == other,
            (Place::Text(text), Place::Text(other)) => text.expose_secret() == other.expose_secret(),
            _ => false,
        };
        let password = |store: &Self| store.password.as_ref().map(|password| password.expose_secret().to_owned());
        same_place && self.key == other.key && self.format == other.format && password(self) == password(other)
    }

    /// The key beside this one that ends in `name`.
    fn beside(&self, name: &str) -> String {
        let prefix = self.key.rsplit_once('.').map_or("", |(prefix, _)| prefix);
        format!("{prefix}.{name}")
    }
}

/// A store that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The key of the document.
    key: String,
    /// The file; empty for a text.
    place: String,
    /// What is wrong, as what follows "the file" or "the text".
    problem: String,
}

impl std::error::Error for Error {}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, place, problem } = self;
        if place.is_empty() { write!(f, "{key}: the text {problem}") } else { write!(f, "{key} ({place}): the file {problem}") }
    }
}

/// The keys of a document that a message about a handshake names.
pub(crate) struct Keys<'k> {
    /// Whom to connect to.
    pub(crate) address: &'k str,
    /// Whom to trust.
    pub(crate) truststore: &'k str,
    /// Who we are.
    pub(crate) keystore: &'k str,
}

/// What a client has for its handshakes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Means {
    /// Whether a client certificate is shown to those who ask for one.
    pub(crate) has_identity: bool,
    /// Whether a trust store takes the place of the system's authorities.
    pub(crate) has_trust: bool,
}

/// What is wrong with a handshake with `host`, and what to do about it with these keys.
pub(crate) fn explain(error: &rustls::Error, host: &str, means: Means, keys: &Keys<'_>) -> String {
    let address = keys.address;
    match error {
        rustls::Error::InvalidCertificate(problem) => distrust(problem, host, means, keys),
        rustls::Error::AlertReceived(alert) => refused(*alert, host, means, keys),
        rustls::Error::InvalidMessage(_) => {
            format!("{host} does not speak TLS at this port. Check scheme and port of {address}, and what is between here and there")
        }
        other => format!("{host}: {other}"),
    }
}

fn distrust(problem: &CertificateError, host: &str, means: Means, keys: &Keys<'_>) -> String {
    let Keys { address, truststore, .. } = keys;
    match problem {
        CertificateError::UnknownIssuer if means.has_trust => format!(
            "the certificate of {host} is of an authority that is not in {truststore}, which takes the place of the system's. Add \
                 the authority to that store, or leave the key out"
        ),
        CertificateError::UnknownIssuer => format!(
            "the certificate of {host} is of an authority that is not trusted here. If a proxy inspects the connection or the authority is your \
                 own, give its certificate in {truststore}"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!(
            "the certificate of {host} has expired: {problem}. Whoever runs that host has to renew it; check this machine's clock as well"
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of {host} is not valid yet: {problem}. Check this machine's clock")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate is not for {host}: {problem}. Set {address} to a name that the certificate holds")
        }
        other => format!("the certificate of {host} cannot be trusted: {other}"),
    }
}

fn refused(alert: AlertDescription, host: &str, means: Means, keys: &Keys<'_>) -> String {
    use AlertDescription as Alert;
    let keystore = keys.keystore;
    let name = format!("{alert:?}");
    match alert {
        Alert::CertificateRequired | Alert::HandshakeFailure if !means.has_identity => {
            format!("{host} ended the handshake ({name}): it seems to ask for a client certificate. Give one in {keystore}")
        }
        Alert::CertificateRequired
        | Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied
        | Alert::DecryptError
            if means.has_identity =>
        {
            format!(
                "{host} refused the client certificate ({name}). Check that the one in {keystore} has not expired and comes with \
                     its chain, and that {host} trusts its authority"
            )
        }
        _ => format!("{host} ended the handshake ({name})"),
    }
}
