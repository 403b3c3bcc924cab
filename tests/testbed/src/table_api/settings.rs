//! How the instance behaves: what an administrator, a database or a plug-in decides on a real one.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::collation::Collation;

/// An hourly allowance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Requests in a window.
    pub limit: u64,
    /// Seconds of a window; an hour on an instance.
    #[serde(default = "hour")]
    pub window_seconds: i64,
    /// Is the allowance told in headers (`X-RateLimit-*`, and `Retry-After` once it is spent)?
    #[serde(default = "yes")]
    pub headers: bool,
}

fn hour() -> i64 {
    3600
}

fn yes() -> bool {
    true
}

/// What a URL that is too long is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TooLong {
    /// 400 with a page: `Request header is too large`.
    #[default]
    BadRequest,
    /// 414.
    UriTooLong,
}

/// The identity in `sys_user` of whoever is signed in.
pub const USER_ID: &str = "6816f79cc0a8016401c5a33be04be441";

/// The behaviour of the instance; the default is that of a well-meant one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How the database compares text.
    pub collation: Collation,
    /// The user's zone as seconds east of UTC, taken off date literals in queries; 0 reads them as UTC.
    pub literal_offset_seconds: i64,
    /// The user's zone as seconds east of UTC, added to dates in display values.
    pub display_offset_seconds: i64,
    /// `glide.invalid_query.returns_no_rows`: an invalid part of a query leaves no row, instead of being dropped.
    pub invalid_query_returns_no_rows: bool,
    /// What the scripts of `javascript:` values return; one that is not here is refused. The signed-in user's id is.
    pub scripts: BTreeMap<String, String>,
    /// May the user see other domains with `sysparm_query_no_domain`?
    pub no_domain_allowed: bool,
    /// Is there ever an `X-Total-Count`?
    pub counts: bool,
    /// Is there ever a `Link` header?
    pub links: bool,
    /// Is there a `Link` header when no count was asked for? Sources do not agree.
    pub links_without_count: bool,
    /// The most rows of a page, whatever limit is asked for.
    pub limit_clamp: Option<usize>,
    /// The longest URL.
    pub url_limit: Option<usize>,
    /// What a longer one is answered with.
    pub url_too_long: TooLong,
    /// The hourly allowance.
    pub rate_limit: Option<RateLimit>,
    /// Does the instance set session cookies?
    pub cookies: bool,
    /// Does the instance compress for clients that accept it?
    pub gzip: bool,
    /// Seconds for which an access token lives, by the instance's clock.
    pub token_lifetime_seconds: i64,
    /// Requests for which an access token is good, whatever its lifetime.
    pub token_uses: Option<u64>,
    /// The grant types that the instance's administrator has switched on.
    pub grants: Vec<String>,
    /// Does the use of a refresh token end it and give another?
    pub refresh_tokens_rotate: bool,
    /// May each assertion be used once only?
    pub jti_check: bool,
    /// Wrong passwords in a row after which the user is locked out, for ever and with the right one too.
    pub lock_after: Option<u32>,
    /// Form views for `sysparm_view`: table, view, fields.
    pub forms: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            collation: Collation::Binary,
            literal_offset_seconds: 0,
            display_offset_seconds: 0,
            invalid_query_returns_no_rows: false,
            scripts: BTreeMap::from([("gs.getUserID()".to_owned(), USER_ID.to_owned())]),
            no_domain_allowed: true,
            counts: true,
            links: true,
            links_without_count: true,
            limit_clamp: None,
            url_limit: None,
            url_too_long: TooLong::BadRequest,
            rate_limit: None,
            cookies: true,
            gzip: true,
            token_lifetime_seconds: 1800,
            token_uses: None,
            grants: ["client_credentials", "password", "refresh_token", super::jwt::GRANT].map(str::to_owned).into(),
            refresh_tokens_rotate: false,
            jti_check: true,
            lock_after: None,
            forms: BTreeMap::new(),
        }
    }
}

/// The credentials that the instance accepts. With none at all it is open.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// User and password, for Basic authentication and the password grant.
    pub basic: Option<(String, String)>,
    /// Client id and secret of the OAuth application.
    pub oauth: Option<(String, String)>,
    /// The key of `x-sn-apikey`.
    pub api_key: Option<String>,
    /// Who may sign assertions, as the client of `oauth`.
    pub jwt: Option<JwtSigner>,
    /// The client certificate (PEM) that is mapped to a user. Over TLS only, and checked against its authority there.
    pub certificate: Option<String>,
}

/// What the instance knows of a client that signs assertions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JwtSigner {
    /// The public key, in PEM.
    pub public_key: String,
    /// The `kid` under which it is kept.
    pub key_id: Option<String>,
    /// The user, by the field that `sub` is looked up in.
    pub user: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("basic", &self.basic.is_some())
            .field("oauth", &self.oauth.is_some())
            .field("api_key", &self.api_key.is_some())
            .field("jwt", &self.jwt.is_some())
            .field("certificate", &self.certificate.is_some())
            .finish()
    }
}
