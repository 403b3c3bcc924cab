//! The token endpoint: what is posted, what comes back, and the many ways in which no token does.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, LOCATION};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use super::super::answer::ErrorBody;
use super::super::error::Error;
use super::super::http::{header, title, without_query};
use super::super::keys::{Grant, Oauth};
use super::super::rate::{epoch_seconds, retry_after};
use super::super::transport::Transport;
use super::assertion::assertion;
use crate::host::Host;
use crate::http::describe;

/// The lifetime of a token whose answer names none: the instance's own default.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(1800);

/// The longest answer that is read: a token takes a few hundred bytes.
const LONGEST_ANSWER: usize = 1 << 20;

/// A difference of the clocks that is worth a word, in seconds.
const CLOCK_DIFFERENCE: i64 = 5;

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in super::super) enum NoToken {
    #[error("it was refused ({status}: {detail}). {advice}")]
    Denied { status: u16, detail: String, advice: String },

    #[error("there is no token endpoint there ({status}: {detail}). Check snow.url and snow.oauth.token.url")]
    NoEndpoint { status: u16, detail: String },

    #[error("the instance limits requests for tokens (429) for longer than this sweep may wait. The next tick tries again")]
    Limited { wait_seconds: Option<u64> },

    #[error("the instance answered {status} ({detail}) again and again. The next tick tries again")]
    Unable { status: u16, detail: String, wait_seconds: Option<u64> },

    #[error(
        "the answer is a page for people ({title}): the instance hibernates, is in maintenance, or something in front of it asks for a login"
    )]
    Page { title: String },

    #[error("the answer is not that of a token endpoint ({detail}). Check snow.oauth.token.url")]
    NotAToken { detail: String },

    #[error("the address redirects to {to}, which is not followed. {advice}")]
    Redirected { to: String, advice: &'static str, may_pass: bool },

    #[error("no answer: {detail}. The next tick tries again")]
    NoAnswer { detail: String },

    #[error("{detail}")]
    Unsigned { detail: String },
}

impl NoToken {
    /// What happened, without what becomes of it.
    pub(in super::super) fn cause(&self) -> String {
        match self {
            Self::Limited { .. } => "the instance limits requests for tokens (429)".to_owned(),
            Self::Unable { status, detail, .. } => format!("the instance answered {status} ({detail})"),
            Self::NoAnswer { detail } => format!("no answer: {detail}"),
            Self::Redirected { to, .. } => format!("the address redirects to {to}, which is not followed"),
            other => other.to_string(),
        }
    }

    /// Whether the same request may succeed a little later.
    pub(in super::super) fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Limited { .. }
                | Self::Unable { .. }
                | Self::Page { .. }
                | Self::NoAnswer { .. }
                | Self::Redirected { may_pass: true, .. }
        )
    }
}

/// What the endpoint gave.
pub(super) struct Given {
    pub(super) token: SecretString,
    pub(super) life: Duration,
    /// A refresh token other than the one that was sent.
    pub(super) refresh: Option<SecretString>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(deserialize_with = "secret")]
    access_token: SecretString,
    #[serde(default, deserialize_with = "seconds")]
    expires_in: Option<u64>,
    #[serde(default, deserialize_with = "optional_secret")]
    refresh_token: Option<SecretString>,
}

fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

fn optional_secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()).map(SecretString::from))
}

/// Lifetimes come as numbers and as texts. One that cannot be read counts as absent.
fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(deserializer)?;
    let number = match value {
        Some(serde_json::Value::Number(number)) => number.as_f64(),
        Some(serde_json::Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    // A negative one is that of a token that is dead already. The conversion saturates.
    Ok(number.filter(|seconds: &f64| seconds.is_finite()).map(|seconds| seconds.max(0.0) as u64))
}

/// Asks for a token. `refresh` is the refresh token that took the place of the configured one.
///
/// # Errors
/// [`Error::NoToken`], [`Error::Tls`] or [`Error::ProxyDenied`]. None of them holds a secret, whatever the endpoint says.
pub(super) async fn exchange(
    transport: &Transport,
    oauth: &Oauth,
    refresh: Option<&SecretString>,
    host: &Host,
    timeout: Duration,
) -> Result<Given, Error> {
    let failed = |reason: NoToken| Error::NoToken { url: without_query(oauth.token_url.as_str()), reason };
    let form = Form::new(oauth, refresh, host).map_err(|detail| failed(NoToken::Unsigned { detail }))?;
    let lost = |error: &reqwest::Error| match transport.failure(error, &oauth.token_url) {
        Error::NoAnswer { detail } => failed(NoToken::NoAnswer { detail }),
        other => other,
    };
    let request = transport.client.post(oauth.token_url.clone()).header("accept", "application/json").form(&form.pairs());
    let mut answer = request.timeout(timeout).send().await.map_err(|error| lost(&error))?;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| failed(NoToken::NoAnswer { detail: describe(&error) }))? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err(failed(NoToken::NotAToken { detail: format!("it is longer than {LONGEST_ANSWER} bytes") }));
        }
        body.extend_from_slice(&chunk);
    }
    if let Some(reason) = refusal(status, &headers, &body, oauth, &form, host) {
        return Err(failed(reason));
    }
    // The parser's own words could quote the token.
    let given: TokenAnswer = serde_json::from_slice(&body)
        .map_err(|_| failed(NoToken::NotAToken { detail: "it is no JSON object with an access_token".to_owned() }))?;
    if reqwest::header::HeaderValue::from_str(given.access_token.expose_secret()).is_err() || given.access_token.expose_secret().is_empty()
    {
        return Err(failed(NoToken::NotAToken { detail: "its access_token is empty or cannot be sent as a header".to_owned() }));
    }
    let is_new = |token: &SecretString| form.refresh.is_none_or(|sent| sent.expose_secret() != token.expose_secret());
    Ok(Given {
        token: given.access_token,
        life: given.expires_in.map_or(DEFAULT_LIFETIME, Duration::from_secs),
        refresh: given.refresh_token.filter(is_new),
    })
}

/// What is posted.
struct Form<'a> {
    oauth: &'a Oauth,
    assertion: Option<SecretString>,
    /// The refresh token that is sent.
    refresh: Option<&'a SecretString>,
}

impl<'a> Form<'a> {
    fn new(oauth: &'a Oauth, refresh: Option<&'a SecretString>, host: &Host) -> Result<Self, String> {
        let (assertion, refresh) = match &oauth.grant {
            Grant::JwtBearer(settings) => (Some(assertion(settings, host)?), None),
            Grant::RefreshToken { token } => (None, Some(refresh.unwrap_or(token))),
            Grant::ClientCredentials | Grant::Password { .. } => (None, None),
        };
        Ok(Self { oauth, assertion, refresh })
    }

    fn pairs(&self) -> Vec<(&'static str, &str)> {
        let mut pairs = vec![("grant_type", grant_type(&self.oauth.grant)), ("client_id", self.oauth.client_id.as_str())];
        if let Some(secret) = &self.oauth.client_secret {
            pairs.push(("client_secret", secret.expose_secret()));
        }
        if let Grant::Password { username, password } = &self.oauth.grant {
            pairs.extend([("username", username.as_str()), ("password", password.expose_secret())]);
        }
        pairs.extend(self.refresh.map(|token| ("refresh_token", token.expose_secret())));
        pairs.extend(self.assertion.as_ref().map(|assertion| ("assertion", assertion.expose_secret())));
        pairs.extend(self.oauth.scope.as_deref().map(|scope| ("scope", scope)));
        pairs
    }

    /// The text without what was posted in secret, should the endpoint repeat it.
    fn redacted(&self, mut text: String) -> String {
        let posted = self.pairs();
        let secrets = posted.iter().filter(|(name, _)| !matches!(*name, "grant_type" | "client_id" | "username" | "scope"));
        for (_, secret) in secrets.filter(|(_, secret)| !secret.is_empty()) {
            text = text.replace(secret, "[secret]");
        }
        text
    }
}

fn grant_type(grant: &Grant) -> &'static str {
    match grant {
        Grant::ClientCredentials => "client_credentials",
        Grant::Password { .. } => "password",
        Grant::RefreshToken { .. } => "refresh_token",
        Grant::JwtBearer(_) => "urn:ietf:params:oauth:grant-type:jwt-bearer",
    }
}

/// Why an answer gives no token; `None` if it seems to.
fn refusal(status: u16, headers: &HeaderMap, body: &[u8], oauth: &Oauth, form: &Form<'_>, host: &Host) -> Option<NoToken> {
    let is_page =
        header(headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.contains("html")) || body.trim_ascii_start().starts_with(b"<");
    let detail = || if is_page { title(body) } else { form.redacted(ErrorBody::find(body).text()) };
    let wait_seconds = retry_after(headers);
    Some(match status {
        200..=299 if is_page => NoToken::Page { title: title(body) },
        200..=299 => return None,
        300..=399 => redirected(&oauth.token_url, header(headers, LOCATION.as_str())),
        400 | 401 | 403 => NoToken::Denied { status, detail: detail(), advice: advice(body, headers, oauth, host) },
        429 => NoToken::Limited { wait_seconds },
        500..=599 if is_page => NoToken::Page { title: format!("{status} {}", title(body)) },
        408 | 425 | 499..=599 => NoToken::Unable { status, detail: detail(), wait_seconds },
        _ => NoToken::NoEndpoint { status, detail: detail() },
    })
}

/// A redirect of a request for a token: within the same host it is how an instance shows its maintenance, and passes.
fn redirected(asked: &Url, location: Option<&str>) -> NoToken {
    let target = location.and_then(|location| asked.join(location).ok());
    let may_pass = target.is_some_and(|target| target.origin() == asked.origin());
    let advice = match may_pass {
        true => "The instance is in maintenance, or asks for a login. The next tick tries again",
        false => "Set snow.url and snow.oauth.token.url to the addresses themselves",
    };
    NoToken::Redirected { to: location.map_or_else(|| "nowhere".to_owned(), without_query), advice, may_pass }
}

/// What to check after a refusal: by the code of RFC 6749 §5.2 where it says more than the grant does.
fn advice(body: &[u8], headers: &HeaderMap, oauth: &Oauth, host: &Host) -> String {
    #[derive(Deserialize)]
    struct Denial {
        error: String,
    }
    let code = serde_json::from_slice::<Denial>(body).map(|denial| denial.error).unwrap_or_default();
    match (code.as_str(), &oauth.grant) {
        ("invalid_client" | "unauthorized_client", _) => {
            "Check snow.oauth.client.id and snow.oauth.client.secret, and that the OAuth application is active".to_owned()
        }
        ("unsupported_grant_type", grant) => {
            format!("The instance does not allow the grant {}: an administrator can switch it on", grant_type(grant))
        }
        ("invalid_scope", _) => "Check snow.oauth.scope against the scopes of the OAuth application".to_owned(),
        (_, Grant::ClientCredentials) => {
            "Check client id and secret, that the OAuth application has an active user, and that the property \
             glide.oauth.inbound.client.credential.grant_type.enabled is true"
                .to_owned()
        }
        (_, Grant::Password { .. }) => {
            "Check user and password, client id and secret, and that the instance allows the password grant to the user: an \
             account that is locked, or that must use SSO or MFA, is refused in the same way"
                .to_owned()
        }
        (_, Grant::RefreshToken { .. }) => {
            "The refresh token has expired (after 100 days by default), was revoked, or was replaced by a later one: \
             obtain another for snow.oauth.refresh.token. Check client id and secret as well"
                .to_owned()
        }
        (_, Grant::JwtBearer(_)) => {
            let advice = "Check that the instance knows the key's certificate under snow.oauth.jwt.key.id, that issuer and audience are the client's \
                          id, and that subject is an active user by the field that the instance looks at";
            format!("{advice}{}", clocks(headers, host))
        }
    }
}

/// A word about the clocks, if they differ: instances allow an assertion no tolerance.
fn clocks(headers: &HeaderMap, host: &Host) -> String {
    let theirs = header(headers, DATE.as_str()).and_then(epoch_seconds);
    let ahead = theirs.map_or(0, |theirs| host.now_ms().div_euclid(1000) - theirs);
    match ahead {
        0.. if ahead > CLOCK_DIFFERENCE => format!(". This machine's clock is {ahead} s ahead of the instance's"),
        ..0 if -ahead > CLOCK_DIFFERENCE => format!(". This machine's clock is {} s behind the instance's", -ahead),
        _ => String::new(),
    }
}
