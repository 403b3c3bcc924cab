//! The connections to an instance: whom to trust, who we are, by which proxy; and what it means when there is none.
//!
//! A client keeps no cookies (they would bind all requests to one session, which the instance serves one after the
//! other) and follows no redirects (the credentials are for the address in the document).

use std::error::Error as StdError;

use reqwest::redirect::Policy;
use rustls::{AlertDescription, CertificateError};
use secrecy::ExposeSecret as _;
use url::Url;

use super::error::Error;
use super::keys::{Proxy, ServiceNow, Tls};
use crate::http::{POOL_IDLE, describe};

mod store;

/// The connection pool of an instance, with what its failures need to be understood.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) client: reqwest::Client,
    /// Whether a client certificate is shown to those who ask for one.
    has_identity: bool,
    /// Whether a trust store takes the place of the system's authorities.
    has_trust: bool,
}

impl Transport {
    /// Reads the stores; contacts nothing.
    ///
    /// # Errors
    /// A store cannot be used, a proxy's address is wrong, or the system has no certificates to trust.
    pub(super) fn new(settings: &ServiceNow) -> Result<Self, Error> {
        let http = &settings.http;
        let agent = http.user_agent.clone().unwrap_or_else(|| concat!("tablesweep/", env!("CARGO_PKG_VERSION")).to_owned());
        let mut builder = reqwest::Client::builder()
            .user_agent(agent)
            .redirect(Policy::none())
            .connect_timeout(http.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            // A proxy comes from the document or not at all: what a request passes must not depend on the environment.
            .no_proxy();
        if let Some(settings) = &http.proxy {
            builder = builder.proxy(proxy(settings)?);
        }
        let client = with_stores(builder, &settings.tls)?.build().map_err(|error| unusable(&error, &settings.tls))?;
        Ok(Self { client, has_identity: settings.tls.keystore.is_some(), has_trust: settings.tls.truststore.is_some() })
    }

    /// Without stores and proxy, for tests of what goes over it.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        let client = reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().expect("a client");
        Self { client, has_identity: false, has_trust: false }
    }

    /// Why a request to `url` got no answer.
    pub(super) fn failure(&self, error: &reqwest::Error, url: &Url) -> Error {
        if let Some(tls) = cause::<rustls::Error>(error) {
            return Error::Tls { detail: self.tls(tls, url.host_str().unwrap_or_default()) };
        }
        let detail = describe(error);
        // The connector's own type of error is not public; its words are all that there is.
        if detail.contains("proxy authorization required") {
            return Error::ProxyDenied { detail: "it asks for a login".to_owned() };
        }
        Error::NoAnswer { detail }
    }

    /// What is wrong with a handshake with `host`, and what to do.
    fn tls(&self, error: &rustls::Error, host: &str) -> String {
        match error {
            rustls::Error::InvalidCertificate(problem) => self.distrust(problem, host),
            rustls::Error::AlertReceived(alert) => self.alert(*alert, host),
            rustls::Error::InvalidMessage(_) => {
                format!("{host} does not speak TLS at this port. Check scheme and port of snow.url, and what is between here and there")
            }
            other => format!("{host}: {other}"),
        }
    }

    fn distrust(&self, problem: &CertificateError, host: &str) -> String {
        match problem {
            CertificateError::UnknownIssuer if self.has_trust => format!(
                "the certificate of {host} is of an authority that is not in snow.tls.truststore.path, which takes the place of the system's. Add \
                 the authority to that store, or leave the key out"
            ),
            CertificateError::UnknownIssuer => format!(
                "the certificate of {host} is of an authority that is not trusted here. If a proxy inspects the connection or the authority is your \
                 own, give its certificate in snow.tls.truststore.path"
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => format!(
                "the certificate of {host} has expired: {problem}. Whoever runs that host has to renew it; check this machine's clock as well"
            ),
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                format!("the certificate of {host} is not valid yet: {problem}. Check this machine's clock")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("the certificate is not for {host}: {problem}. Set snow.url to a name that the certificate holds")
            }
            other => format!("the certificate of {host} cannot be trusted: {other}"),
        }
    }

    fn alert(&self, alert: AlertDescription, host: &str) -> String {
        use AlertDescription as Alert;
        let name = format!("{alert:?}");
        match alert {
            Alert::CertificateRequired | Alert::HandshakeFailure if !self.has_identity => {
                format!("{host} ended the handshake ({name}): it seems to ask for a client certificate. Give one in snow.tls.keystore.path")
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
                if self.has_identity =>
            {
                format!(
                    "{host} refused the client certificate ({name}). Check that the one in snow.tls.keystore.path has not expired and comes with \
                     its chain, and that the instance trusts its authority"
                )
            }
            _ => format!("{host} ended the handshake ({name})"),
        }
    }
}

fn with_stores(mut builder: reqwest::ClientBuilder, tls: &Tls) -> Result<reqwest::ClientBuilder, Error> {
    if let Some(settings) = &tls.truststore {
        builder = builder.tls_certs_only(store::trust(settings)?);
    }
    if let Some(settings) = &tls.keystore {
        builder = builder.identity(store::identity(settings)?);
    }
    Ok(builder)
}

/// Why there is no client: what is read of the stores is only put together here.
fn unusable(error: &reqwest::Error, tls: &Tls) -> Error {
    let problem = describe(error);
    match [&tls.keystore, &tls.truststore].into_iter().flatten().next() {
        Some(store) => store::refused(store, format!("cannot be used: {problem}")),
        None => {
            Error::Tls { detail: format!("no connection can be made from here: {problem}. Are there root certificates on this system?") }
        }
    }
}

/// The proxy for all requests.
fn proxy(settings: &Proxy) -> Result<reqwest::Proxy, Error> {
    let proxy = reqwest::Proxy::all(settings.url.clone()).map_err(|error| Error::NoAnswer { detail: describe(&error) })?;
    Ok(match (&settings.username, &settings.password) {
        (Some(user), password) => proxy.basic_auth(user, password.as_ref().map_or("", |password| password.expose_secret())),
        (None, _) => proxy,
    })
}

/// The first cause of this type. An `io::Error` hides what it wraps from `source`, so it is opened.
fn cause<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(this) = next {
        if let Some(found) = this.downcast_ref::<E>() {
            return Some(found);
        }
        let wrapped = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner as &(dyn StdError + 'static)),
            None => this.source(),
        };
    }
    None
}
