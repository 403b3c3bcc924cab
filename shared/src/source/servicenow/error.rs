//! What can go wrong between here and an instance.
//!
//! Whoever reads these has no access to the instance's logs, so each says what was asked, what came, and what to do. The
//! texts never hold credentials: requests are named by table and query, and bodies are quoted only as far as the
//! instance's own error message goes.

use std::time::Duration;

use url::Url;

use super::auth::NoToken;
use crate::failure::{Failure, Retry};

/// A failure of one request, or of what it answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("the instance refused the login (401: {detail}). {advice}")]
    Unauthorized { detail: String, advice: &'static str },

    #[error("no OAuth token from {url}: {reason}")]
    NoToken { url: String, reason: NoToken },

    #[error(transparent)]
    Store(#[from] crate::tls::Error),

    #[error("no trusted connection: {detail}")]
    Tls { detail: String },

    #[error("the proxy refused the connection (407: {detail}). Check snow.http.proxy.username and snow.http.proxy.password")]
    ProxyDenied { detail: String },

    #[error("access denied (403: {detail}). {}", denied(detail))]
    Forbidden { detail: String },

    #[error("no such table or view ({status}: {detail}). Check the alias's name key, and that the user may read it")]
    TableMissing { status: u16, detail: String },

    #[error("the request was refused ({status}: {detail}). Check query and fields of the alias")]
    Refused { status: u16, detail: String },

    #[error("the request's address of {length} characters is too long for {whom}. Shorten the alias's query or fields")]
    UrlTooLong { whom: String, length: usize },

    #[error("the instance limits the rate of requests (429{rule}) for longer than this sweep may wait")]
    RateLimited { rule: String, wait_seconds: Option<u64> },

    #[error("the instance answered {status} ({detail}) again and again. The next tick tries again")]
    Unable { status: u16, detail: String, wait_seconds: Option<u64> },

    #[error("no answer from the instance: {detail}. The next tick tries again")]
    NoAnswer { detail: String },

    #[error("the instance queued or dropped the request (202). The next tick tries again")]
    Queued,

    #[error(
        "the instance answered with a page for people ({content_type}: {title}): it hibernates, is in maintenance, or asks for a login. Nothing was read"
    )]
    NotData { status: u16, content_type: String, title: String },

    #[error("the instance redirects to {to}, which is not followed. {advice}")]
    Redirected { to: String, advice: &'static str, may_pass: bool },

    #[error("the answer is not complete JSON ({detail}). Nothing of it was used")]
    Malformed { detail: String },

    #[error("the instance gave up on a page of {limit} rows ({detail}). Narrow the alias's fields, or add an index for its query")]
    Cancelled { limit: u32, detail: String },

    #[error("a page of {limit} rows is larger than {most} bytes. Narrow the alias's fields, or raise snow.http.max.response.bytes")]
    TooLarge { limit: u32, most: u64 },

    #[error("no answer to a page of {limit} rows within {} ms. Narrow the alias's fields, or raise snow.http.request.timeout.ms", after.as_millis())]
    TimedOut { limit: u32, after: Duration },

    #[error(
        "there is no memory for a page of {limit} rows beside the other tables' pages. Give the function more memory, or lower batch.size"
    )]
    Squeezed { limit: u32 },

    #[error(
        "no answer from {} within {} s, all that the invocation had left. The next tick tries again",
        token_url.as_deref().unwrap_or("the instance"), waited.as_secs()
    )]
    Cut { waited: Duration, token_url: Option<String> },

    #[error("the time for this sweep is over")]
    BudgetSpent,

    #[error("the instance takes no more requests for now")]
    RequestsSpent,

    #[error(
        "the instance ignored a part of the query ({predicate}): {detail}. It drops what the user may not filter or sort by (query_range ACL), or \
         reads the literals in another time zone: the integration user's must be UTC"
    )]
    PredicateIgnored { predicate: String, detail: String },

    #[error(
        "rows came out of order: {before} before {after}. The instance did not honour ORDERBY (query_range ACL), or the integration user's time zone is not UTC"
    )]
    OutOfOrder { before: String, after: String },

    #[error(
        "row {id}: {field} cannot be read as a cursor ({value}). Give the user access to the field, choose another, or set snow.source.bad.row.behavior=skip"
    )]
    BadRow { id: String, field: String, value: String },

    #[error("the instance did not count the rows that match ({detail}). Add an index for the query, or raise snow.http.request.timeout.ms")]
    Uncounted { detail: String },

    #[error(
        "{limit} rows that follow one another in second {second} are hidden from the user and cannot be stepped over. Raise batch.size, give the \
         user access to them, or exclude them with the alias's query"
    )]
    HiddenBlock { limit: u32, second: String },
}

/// What to have changed on the instance after a 403 with these words. The start-up probe finds out more.
fn denied(detail: &str) -> &'static str {
    match detail {
        api if api.contains("API level ACL") => {
            "The Table API itself is closed to the integration user: have the user given the role that the API's ACL asks for"
        }
        field if field.contains("present in the query") => {
            "The table can be read, and not searched by one of the fields in the query: have the user given read, query_match and query_range \
             access to the cursor fields and to those of the alias's query"
        }
        _ => "Have the integration user given read access to the table and its cursor fields: table, field and query_range ACLs",
    }
}

/// What may be tried with the same request at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The same again, after a pause.
    Again,
    /// The same with fewer rows.
    Smaller,
    /// Nothing.
    None,
}

impl Error {
    /// A redirect of a request to `asked`.
    pub(super) fn redirected(asked: &Url, location: &str) -> Self {
        let target = asked.join(location).ok().filter(|_| !location.is_empty());
        let may_pass = target.as_ref().is_some_and(|target| target.origin() == asked.origin());
        let advice = match &target {
            None => "The answer does not say where to",
            Some(target) if target.host_str() != asked.host_str() => {
                "snow.url is not the address of the instance, or the instance asks for a login: credentials are sent to no other host"
            }
            Some(target) if target.scheme() != asked.scheme() => "Give snow.url with https",
            Some(_) if !may_pass => "snow.url is not the address of the instance",
            Some(_) => {
                "The instance is in maintenance or asks API users for a login, or something in front of it does. The next tick tries again"
            }
        };
        let shown = target.map(|mut target| {
            // Credentials in an address have no place in a message.
            let cleared = target.set_username("").and_then(|()| target.set_password(None));
            cleared.map_or_else(|()| "another address".to_owned(), |()| super::http::without_query(target.as_str()))
        });
        Self::Redirected { to: shown.unwrap_or_else(|| "nowhere".to_owned()), advice, may_pass }
    }

    /// Whether a credential was refused. Sent again as it is, it may lock an account: of the user, or at the proxy.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::ProxyDenied { .. } | Self::NoToken { reason: NoToken::Denied { .. }, .. })
    }

    /// The wait in seconds that the instance asks for.
    pub(super) fn asked_wait(&self) -> Option<u64> {
        match self {
            Self::RateLimited { wait_seconds, .. } | Self::Unable { wait_seconds, .. } => *wait_seconds,
            Self::NoToken { reason: NoToken::Limited { wait_seconds } | NoToken::Unable { wait_seconds, .. }, .. } => *wait_seconds,
            _ => None,
        }
    }

    /// The stable code.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Unauthorized { .. } => "Source.Unauthorized",
            Self::NoToken { reason, .. } => match reason {
                NoToken::Denied { .. } | NoToken::Unsigned { .. } => "Source.Unauthorized",
                NoToken::Limited { .. } => "Source.RateLimited",
                NoToken::Unable { .. } | NoToken::NoAnswer { .. } => "Source.Unavailable",
                NoToken::Page { .. } => "Source.NotData",
                NoToken::Redirected { .. } => "Source.Redirected",
                NoToken::NoEndpoint { .. } | NoToken::NotAToken { .. } => "Source.NoTokenEndpoint",
            },
            Self::Store(_) => "Source.CertificateStore",
            Self::Tls { .. } => "Source.Tls",
            Self::ProxyDenied { .. } => "Source.ProxyDenied",
            Self::Forbidden { .. } => "Source.Forbidden",
            Self::TableMissing { .. } => "Source.TableMissing",
            Self::Refused { .. } => "Source.Refused",
            Self::UrlTooLong { .. } => "Source.UrlTooLong",
            Self::RateLimited { .. } => "Source.RateLimited",
            Self::Unable { .. }
            | Self::NoAnswer { .. }
            | Self::Queued
            | Self::TimedOut { .. }
            | Self::Cut { .. }
            | Self::Uncounted { .. } => "Source.Unavailable",
            Self::Squeezed { .. } => "Source.NoMemory",
            Self::BudgetSpent => "Source.BudgetSpent",
            Self::RequestsSpent => "Source.Allowance",
            Self::NotData { .. } => "Source.NotData",
            Self::Redirected { .. } => "Source.Redirected",
            Self::Malformed { .. } => "Source.Malformed",
            Self::Cancelled { .. } => "Source.Cancelled",
            Self::TooLarge { .. } => "Source.TooLarge",
            Self::PredicateIgnored { .. } => "Source.PredicateIgnored",
            Self::OutOfOrder { .. } => "Source.OutOfOrder",
            Self::BadRow { .. } => "Source.BadRow",
            Self::HiddenBlock { .. } => "Source.HiddenBlock",
        }
    }

    /// What may be tried at once.
    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Self::Unable { .. } | Self::NoAnswer { .. } | Self::Queued | Self::NotData { .. } | Self::Malformed { .. } => Remedy::Again,
            Self::RateLimited { .. } | Self::Redirected { may_pass: true, .. } => Remedy::Again,
            Self::NoToken { reason, .. } if reason.is_transient() => Remedy::Again,
            Self::Cancelled { .. } | Self::TooLarge { .. } | Self::TimedOut { .. } | Self::Squeezed { .. } => Remedy::Smaller,
            _ => Remedy::None,
        }
    }

    /// What happened, without what becomes of it: for the log of a request that is tried again at once.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::RateLimited { rule, .. } => format!("the instance limits the rate of requests (429{rule})"),
            Self::Unable { status, detail, .. } => format!("the instance answered {status} ({detail})"),
            Self::NoAnswer { detail } => format!("no answer from the instance: {detail}"),
            Self::Queued => "the instance queued or dropped the request (202)".to_owned(),
            Self::Redirected { to, .. } => format!("the instance redirects to {to}, which is not followed"),
            Self::NoToken { url, reason } => format!("no OAuth token from {url}: {}", reason.cause()),
            other => other.to_string(),
        }
    }

    /// Whether a page of fewer rows may come where this one did not, whatever was tried: something in front of the instance has gaps for
    /// answers that take too long, and breaks off those that are too large. It may as well be out of order, whatever the size.
    pub(super) fn may_be_for_size(&self) -> bool {
        match self {
            Self::Unable { status, .. } | Self::NotData { status, .. } => matches!(status, 408 | 499 | 504),
            Self::Malformed { .. } => true,
            _ => false,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            // One row that is larger than what may be read stays so.
            Self::TooLarge { .. } => Retry::Never,
            Self::BudgetSpent | Self::RequestsSpent | Self::Cut { .. } | Self::Uncounted { .. } => Retry::NextTick,
            other if other.remedy() == Remedy::Smaller => Retry::NextTick,
            other if other.remedy() == Remedy::Again => Retry::NextTick,
            _ => Retry::Never,
        }
    }

    /// The failure of the table `alias` (`table` on the instance) of `connector`.
    pub(super) fn of(&self, connector: &str, alias: &str, table: &str) -> Failure {
        let failure = Failure::new(self.code(), self.retry(), format!("{connector}/{alias} (table {table}): {self}"));
        match self {
            error if error.is_refusal() => failure.of_instance(),
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_what_is_tried_again_says_what_happened_and_not_what_becomes_of_it() {
        let asked = Url::parse("https://acme.service-now.com/api/now/table/incident").expect("an address");
        let (status, detail, wait_seconds) = (503, "busy".to_owned(), None);
        let token = |reason| Error::NoToken { url: "https://acme.service-now.com/oauth_token.do".to_owned(), reason };
        let errors = [
            Error::RateLimited { rule: String::new(), wait_seconds },
            Error::Unable { status, detail: detail.clone(), wait_seconds },
            Error::NoAnswer { detail: "Connection refused".to_owned() },
            Error::Queued,
            Error::redirected(&asked, "/maintenance"),
            token(NoToken::Limited { wait_seconds }),
            token(NoToken::Unable { status, detail, wait_seconds }),
            token(NoToken::NoAnswer { detail: "Connection refused".to_owned() }),
        ];
        for error in errors {
            let (cause, whole) = (error.cause(), error.to_string());
            assert_eq!(error.remedy(), Remedy::Again, "{whole}");
            assert!(!["next tick", "again", "this sweep"].iter().any(|words| cause.contains(words)), "{cause}");
            assert!(whole.starts_with(&cause) && whole.len() > cause.len(), "{cause} / {whole}");
        }
    }
}
