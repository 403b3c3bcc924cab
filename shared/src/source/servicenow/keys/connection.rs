//! How an instance is reached: signing in, HTTP, certificates, and how often to try. The settings and their checks.

use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use super::super::auth::SigningKey;
use crate::config::{Faults, Reader, Shape, Values};
use crate::tls::{Place, Store};

/// A key that is sent as a header's value.
pub(super) static API_KEY: Shape = Shape {
    name: "password",
    allowed: "the key's token as the instance shows it once: visible ASCII characters without blanks",
    check: |text| {
        let is_token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_token { Ok(()) } else { Err("cannot be sent as a header: it is empty or holds a blank or a character outside ASCII".into()) }
    },
};

/// A private key, as a text.
pub(super) static SIGNING_KEY: Shape = Shape {
    name: "password",
    allowed: "an unencrypted RSA private key of 2048 bits or more in PEM (PRIVATE KEY or RSA PRIVATE KEY)",
    check: |text| SigningKey::parse(text).map(drop),
};

/// A header's value that everybody may see.
pub(super) static USER_AGENT: Shape = Shape {
    name: "text",
    allowed: "visible ASCII characters and blanks",
    check: |text| {
        let is_header = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if is_header { Ok(()) } else { Err("cannot be sent as a header: it is empty or holds a character outside ASCII".into()) }
    },
};

/// How to sign in.
#[derive(Clone, Debug)]
pub enum Auth {
    /// A user and a password with every request.
    Basic {
        /// The user.
        username: String,
        /// The password.
        password: SecretString,
    },
    /// A key in the header `x-sn-apikey`.
    ApiKey {
        /// The key's token.
        key: SecretString,
    },
    /// The client certificate alone: the instance maps it to a user.
    Certificate,
    /// A token from the instance's token endpoint.
    Oauth(Box<Oauth>),
}

/// An OAuth client, where it gets tokens, and by which grant.
#[derive(Clone, Debug)]
pub struct Oauth {
    /// The client's id.
    pub client_id: String,
    /// The client's secret; only a signed assertion goes without one.
    pub client_secret: Option<SecretString>,
    /// The scope to ask for.
    pub scope: Option<String>,
    /// Where tokens are issued.
    pub token_url: Url,
    /// What is given for a token.
    pub grant: Grant,
}

/// What is given for a token.
#[derive(Clone, Debug)]
pub enum Grant {
    /// Nothing: the token is for the client itself.
    ClientCredentials,
    /// A user's password.
    Password {
        /// The user.
        username: String,
        /// The password.
        password: SecretString,
    },
    /// A refresh token that somebody obtained before.
    RefreshToken {
        /// The refresh token.
        token: SecretString,
    },
    /// An assertion that the client signs.
    JwtBearer(Assertion),
}

/// What an assertion says, and the key that signs it.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// The RSA key.
    pub key: SigningKey,
    /// `kid`: which of the client's keys signed.
    pub key_id: Option<String>,
    /// `iss`: who signed.
    pub issuer: String,
    /// `sub`: the user that the token is for.
    pub subject: String,
    /// `aud`: whom it is meant for.
    pub audience: String,
    /// From `iat` to `exp`.
    pub lifetime: Duration,
}

/// How to talk HTTP.
#[derive(Clone, Debug)]
pub struct Http {
    /// The most requests at a time.
    pub max_concurrent_requests: usize,
    /// The longest wait for a connection.
    pub connect_timeout: Duration,
    /// The longest wait for an answer.
    pub request_timeout: Duration,
    /// The proxy to go through.
    pub proxy: Option<Proxy>,
    /// The largest answer in bytes, after decompression.
    pub max_response_bytes: usize,
    /// The User-Agent header, unless it is this program's own.
    pub user_agent: Option<String>,
    /// Whether a 429 lowers the number of concurrent requests.
    pub adaptive_throttling: bool,
}

/// A proxy, and who signs in there.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// Its address.
    pub url: Url,
    /// The user.
    pub username: Option<String>,
    /// The password.
    pub password: Option<SecretString>,
}

/// How often to try again, and how long to wait in between.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// The most attempts at one request.
    pub max_attempts: u32,
    /// The longest time for all of them.
    pub max_elapsed: Duration,
    /// The first wait.
    pub initial_backoff: Duration,
    /// The longest wait.
    pub max_backoff: Duration,
}

/// Certificates beyond the public ones.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Whom to trust.
    pub truststore: Option<Store>,
    /// Who we are.
    pub keystore: Option<Store>,
}

impl Auth {
    pub(super) fn read(reader: &mut Reader<'_>, url: &Url) -> Auth {
        match reader.choice("snow.auth.type", |text| Some(text.to_owned())).as_str() {
            "api_key" => Auth::ApiKey { key: reader.secret("snow.auth.api.key") },
            "certificate" => Auth::Certificate,
            "oauth2" => Auth::Oauth(Box::new(Oauth::read(reader, url))),
            _ => Auth::Basic { username: reader.text("snow.auth.username"), password: reader.secret("snow.auth.password") },
        }
    }
}

impl Oauth {
    fn read(reader: &mut Reader<'_>, url: &Url) -> Oauth {
        let client_id = reader.text("snow.oauth.client.id");
        let grant = Grant::read(reader, &client_id);
        Oauth {
            client_secret: match grant {
                Grant::JwtBearer(_) => reader.optional_secret("snow.oauth.client.secret"),
                _ => Some(reader.secret("snow.oauth.client.secret")),
            },
            scope: reader.optional("snow.oauth.scope"),
            token_url: reader.optional_endpoint("snow.oauth.token.url").unwrap_or_else(|| {
                let mut own = url.clone();
                own.set_path("/oauth_token.do");
                own
            }),
            client_id,
            grant,
        }
    }
}

impl Grant {
    fn read(reader: &mut Reader<'_>, client_id: &str) -> Grant {
        match reader.choice("snow.oauth.grant.type", |text| Some(text.to_owned())).as_str() {
            "password" => Grant::Password { username: reader.text("snow.auth.username"), password: reader.secret("snow.auth.password") },
            "refresh_token" => Grant::RefreshToken { token: reader.secret("snow.oauth.refresh.token") },
            "jwt_bearer" => {
                let key = reader.required("snow.oauth.jwt.private.key", |text| SigningKey::parse(text).ok());
                let claim = |reader: &mut Reader<'_>, key: &str| reader.optional(key).unwrap_or_else(|| client_id.to_owned());
                let assertion = key.map(|key| Assertion {
                    key,
                    key_id: reader.optional("snow.oauth.jwt.key.id"),
                    issuer: claim(reader, "snow.oauth.jwt.issuer"),
                    subject: reader.text("snow.oauth.jwt.subject"),
                    audience: claim(reader, "snow.oauth.jwt.audience"),
                    lifetime: reader.seconds("snow.oauth.jwt.lifetime.seconds"),
                });
                // Without a key the reader holds a fault, and nobody sees what it gives.
                assertion.map_or(Grant::ClientCredentials, Grant::JwtBearer)
            }
            _ => Grant::ClientCredentials,
        }
    }
}

impl Http {
    pub(super) fn read(reader: &mut Reader<'_>) -> Http {
        let proxy = reader.optional_url("snow.http.proxy.url").map(|url| Proxy {
            url,
            username: reader.optional("snow.http.proxy.username"),
            password: reader.optional_secret("snow.http.proxy.password"),
        });
        Http {
            max_concurrent_requests: reader.integer("snow.http.max.concurrent.requests"),
            connect_timeout: reader.millis("snow.http.connect.timeout.ms"),
            request_timeout: reader.millis("snow.http.request.timeout.ms"),
            proxy,
            max_response_bytes: reader.integer("snow.http.max.response.bytes"),
            user_agent: reader.optional("snow.http.user.agent"),
            adaptive_throttling: reader.boolean("snow.http.adaptive.throttling"),
        }
    }
}

impl Retry {
    pub(super) fn read(reader: &mut Reader<'_>) -> Retry {
        Retry {
            max_attempts: reader.integer("snow.retry.max.attempts"),
            max_elapsed: reader.millis("snow.retry.max.elapsed.ms"),
            initial_backoff: reader.millis("snow.retry.initial.backoff.ms"),
            max_backoff: reader.millis("snow.retry.max.backoff.ms"),
        }
    }
}

impl Tls {
    pub(super) fn read(reader: &mut Reader<'_>) -> Tls {
        Tls { truststore: store(reader, "snow.tls.truststore"), keystore: store(reader, "snow.tls.keystore") }
    }
}

fn store(reader: &mut Reader<'_>, prefix: &str) -> Option<Store> {
    let key = format!("{prefix}.path");
    let path = reader.optional(&key)?;
    Some(Store {
        key,
        place: Place::File(path),
        password: reader.optional_secret(&format!("{prefix}.password")),
        format: reader.given(&format!("{prefix}.type")).map(|format| format.to_ascii_uppercase()),
    })
}

/// What must stand together, and what stands there in vain.
pub(super) fn check(values: &Values, faults: &mut Faults) {
    if values.text("snow.url").is_some_and(|url| url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http:"))) {
        let message = "is http: rows and credentials cross the network in clear; use https unless this is a test";
        faults.warn(values.fault("snow.url", message));
        if values.is_given("snow.tls.keystore.path") {
            faults.push(values.fault("snow.tls.keystore.path", "needs an https snow.url: over http no certificate is shown"));
        }
    }
    check_sign_in(values, faults);
    for (given, needed) in [
        ("snow.http.proxy.username", "snow.http.proxy.url"),
        ("snow.http.proxy.password", "snow.http.proxy.username"),
        ("snow.tls.truststore.password", "snow.tls.truststore.path"),
        ("snow.tls.truststore.type", "snow.tls.truststore.path"),
        ("snow.tls.keystore.password", "snow.tls.keystore.path"),
        ("snow.tls.keystore.type", "snow.tls.keystore.path"),
    ] {
        if values.is_given(given) && !values.is_set(needed) {
            faults.push(values.fault(needed, format!("is required by {given}")));
        }
    }
    let (first, longest) = ("snow.retry.initial.backoff.ms", "snow.retry.max.backoff.ms");
    if let (Some(low), Some(high)) = (values.integer(first), values.integer(longest))
        && low > high
    {
        faults.push(values.fault(first, format!("is {low} and so above {longest}, which is {high}")));
    }
}

const USER: &[&str] = &["snow.auth.username", "snow.auth.password"];
const CLIENT: &[&str] = &["snow.oauth.client.id", "snow.oauth.client.secret"];

/// What each way of signing in needs, by the key and value that ask for it, and what it takes beside that.
type Needs = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The needs of what the document chooses; `None` if the choice is not known, because it is at fault or a placeholder.
fn needs(values: &Values) -> Option<Vec<Needs>> {
    const BY_TYPE: &str = "snow.auth.type=oauth2";
    const OPTIONAL: &[&str] = &["snow.oauth.scope", "snow.oauth.token.url", "snow.oauth.grant.type"];
    const ASSERTED: &[&str] = &["snow.oauth.jwt.private.key", "snow.oauth.jwt.subject"];
    const CLAIMED: &[&str] = &[
        "snow.oauth.client.secret",
        "snow.oauth.jwt.key.id",
        "snow.oauth.jwt.issuer",
        "snow.oauth.jwt.audience",
        "snow.oauth.jwt.lifetime.seconds",
    ];
    let client: Needs = (BY_TYPE, CLIENT, OPTIONAL);
    Some(match values.choice("snow.auth.type")? {
        "basic" => vec![("snow.auth.type=basic", USER, &[])],
        "api_key" => vec![("snow.auth.type=api_key", &["snow.auth.api.key"], &[])],
        "certificate" => vec![("snow.auth.type=certificate", &["snow.tls.keystore.path"], &[])],
        _ => match values.choice("snow.oauth.grant.type")? {
            "password" => vec![client, ("snow.oauth.grant.type=password", USER, &[])],
            "refresh_token" => vec![client, ("snow.oauth.grant.type=refresh_token", &["snow.oauth.refresh.token"], &[])],
            "jwt_bearer" => vec![(BY_TYPE, &CLIENT[..1], OPTIONAL), ("snow.oauth.grant.type=jwt_bearer", ASSERTED, CLAIMED)],
            _ => vec![client],
        },
    })
}

fn check_sign_in(values: &Values, faults: &mut Faults) {
    let Some(needs) = needs(values) else { return };
    for (by, required, _) in &needs {
        for key in required.iter().filter(|key| !values.is_set(key)) {
            faults.push(values.fault(key, format!("is required by {by}")));
        }
    }
    let in_vain = super::KEYS.iter().map(|key| key.name).filter(|name| {
        let of_sign_in = name.starts_with("snow.auth.") || name.starts_with("snow.oauth.");
        let is_used = *name == "snow.auth.type" || needs.iter().any(|(_, required, taken)| required.contains(name) || taken.contains(name));
        of_sign_in && !is_used && values.is_given(name)
    });
    for name in in_vain {
        let by = needs.last().map_or("snow.auth.type", |(by, ..)| by);
        faults.warn(values.fault(name, format!("has no effect with {by}")));
    }
    let user = "snow.auth.username";
    if values.choice("snow.auth.type") == Some("basic") && values.text(user).is_some_and(|name| name.contains(':')) {
        faults.push(values.fault(user, "contains a colon, which ends the user's name in Basic authentication; use another type"));
    }
}
