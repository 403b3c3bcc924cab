//! The connections to a registry.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use secrecy::ExposeSecret as _;
use url::Url;

use super::{Credential, Error, Settings, shown};
use crate::http::{POOL_IDLE, cause, describe};
use crate::tls::{self, store};

/// The type of requests and answers (the API's own, in its first version, which all of them speak).
const TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// What is asked for: some registries know the plain type only.
const ACCEPTED: &str = "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json";
/// The largest answer that is read; no registry keeps a schema of that size.
const LARGEST: usize = 4 << 20;

/// A pool of connections.
pub(super) struct Transport {
    client: reqwest::Client,
    read_timeout: Duration,
    means: tls::Means,
    prefix: String,
}

impl Transport {
    /// Reads the stores; contacts nothing.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("tablesweep/", env!("CARGO_PKG_VERSION")))
            // The credential is for the address in the document.
            .redirect(Policy::none())
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            // A proxy comes from the document or not at all.
            .no_proxy();
        let unusable = |error: &reqwest::Error| Error::Settings(format!("the registry's client cannot be made: {}", describe(error)));
        if let Some(proxy) = &settings.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(|error| unusable(&error))?);
        }
        if let Some(trusted) = &settings.truststore {
            builder = builder.tls_certs_only(store::trust(trusted)?);
        }
        if let Some(own) = &settings.keystore {
            builder = builder.identity(store::identity(own)?);
        }
        let means = tls::Means { has_identity: settings.keystore.is_some(), has_trust: settings.truststore.is_some() };
        let client = builder.build().map_err(|error| match settings.keystore.as_ref().or(settings.truststore.as_ref()) {
            Some(given) => Error::Store(store::refused(given, format!("cannot be used: {}", describe(&error)))),
            None => unusable(&error),
        })?;
        Ok(Self { client, read_timeout: settings.read_timeout, means, prefix: settings.prefix.clone() })
    }

    /// Status and body of the answer to one request, within the time for one and `left`.
    pub(super) async fn send(
        &self,
        method: Method,
        url: Url,
        credential: Option<&Credential>,
        body: Option<String>,
        left: Duration,
    ) -> Result<(StatusCode, Bytes), Error> {
        let mut address = url.clone();
        address.set_path("");
        address.set_query(None);
        let mut request = self.client.request(method, url).header(ACCEPT, ACCEPTED).timeout(self.read_timeout.min(left));
        request = match credential {
            Some(Credential::Basic(user, password)) => request.basic_auth(user, Some(password.expose_secret())),
            Some(Credential::Bearer(token)) => request.bearer_auth(token.expose_secret()),
            None => request,
        };
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, TYPE).body(body);
        }
        let failed = |error: &reqwest::Error| self.failure(error, &address);
        let mut answer = request.send().await.map_err(|error| failed(&error))?;
        let mut read = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
            if read.len() + chunk.len() > LARGEST {
                let detail = format!("the answer is larger than {LARGEST} bytes");
                return Err(Error::NotARegistry { address: shown(&address), detail });
            }
            read.extend_from_slice(&chunk);
        }
        Ok((answer.status(), read.freeze()))
    }

    fn failure(&self, error: &reqwest::Error, address: &Url) -> Error {
        let Some(untrusted) = cause::<rustls::Error>(error) else {
            return Error::NoAnswer { address: shown(address), detail: describe(error) };
        };
        let key = |name: &str| format!("{}schema.registry.{name}", self.prefix);
        let keys = [key("url"), key("ssl.truststore.location"), key("ssl.keystore.location")];
        let keys = tls::Keys { address: &keys[0], truststore: &keys[1], keystore: &keys[2] };
        Error::Tls(tls::explain(untrusted, address.host_str().unwrap_or_default(), self.means, &keys))
    }
}
