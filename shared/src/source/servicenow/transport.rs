//! The connections to an instance: whom to trust, who we are, by which proxy; and what it means when there is none.
//!
//! A client keeps no cookies (they would bind all requests to one session, which the instance serves one after the
//! other) and follows no redirects (the credentials are for the address in the document).

use reqwest::redirect::Policy;
use secrecy::ExposeSecret as _;
use url::Url;

use super::error::Error;
use super::keys::{Proxy, ServiceNow, Tls};
use crate::http::{POOL_IDLE, cause, describe};
use crate::tls::{self, store};

/// The keys that messages name.
const KEYS: tls::Keys<'static> =
    tls::Keys { address: "snow.url", truststore: "snow.tls.truststore.path", keystore: "snow.tls.keystore.path" };

/// The connection pool of an instance, with what its failures need to be understood.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) client: reqwest::Client,
    means: tls::Means,
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
        let means = tls::Means { has_identity: settings.tls.keystore.is_some(), has_trust: settings.tls.truststore.is_some() };
        Ok(Self { client, means })
    }

    /// Without stores and proxy, for tests of what goes over it.
    #[cfg(test)]
    pub(super) fn plain() -> Self {
        let client = reqwest::Client::builder().redirect(Policy::none()).no_proxy().build().expect("a client");
        Self { client, means: tls::Means::default() }
    }

    /// Why a request to `url` got no answer.
    pub(super) fn failure(&self, error: &reqwest::Error, url: &Url) -> Error {
        if let Some(untrusted) = cause::<rustls::Error>(error) {
            return Error::Tls { detail: tls::explain(untrusted, url.host_str().unwrap_or_default(), self.means, &KEYS) };
        }
        let detail = describe(error);
        // The connector's own type of error is not public; its words are all that there is.
        if detail.contains("proxy authorization required") {
            return Error::ProxyDenied { detail: "it asks for a login".to_owned() };
        }
        Error::NoAnswer { detail }
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
        Some(store) => store::refused(store, format!("cannot be used: {problem}")).into(),
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
