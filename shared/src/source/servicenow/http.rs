//! One request and its answer: sending, reading a bounded body, telling what an answer means, and trying again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, LINK, LOCATION};
use std::io::Write as _;
use url::Url;

use super::answer::{ErrorBody, Fields, Reading, Rows, listed};
use super::auth::{Login, NoToken, Rotation, SignIn};
use super::error::{Error, Remedy};
use super::keys::{Retry, ServiceNow};
use super::limiter::{Limiter, Limiters};
use super::rate::{self, epoch_seconds, retry_after};
use super::transport::Transport;
use crate::host::Host;
use crate::http::describe;
use crate::source::Spent;
use crate::sweep::{Admission, Allowance, Ticket};

/// The longest address that a request can have here: the limit of the `http` crate's `Uri`, which takes no length that 16 bits do not hold.
pub(super) const LONGEST_ADDRESS: usize = u16::MAX as usize - 1;

/// An instance as this process talks to it.
#[derive(Debug)]
pub(super) struct Instance {
    host: Host,
    url: Url,
    transport: Transport,
    login: Login,
    limiter: Limiter,
    retry: Retry,
    request_timeout: Duration,
    max_response_bytes: u64,
}

/// A good answer.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) rows: Rows,
    /// The rows field by field, if they were asked for so.
    pub(super) fields: Vec<Fields>,
    /// Bytes of the body, inflated.
    pub(super) size: u64,
    pub(super) total: Option<u64>,
    pub(super) next_link: bool,
    /// The `Date` header in epoch seconds.
    pub(super) date: Option<i64>,
    /// Local epoch milliseconds when the request was sent.
    pub(super) sent_ms: i64,
    /// Milliseconds from sending to the answer's head.
    pub(super) elapsed_ms: i64,
    /// From sending to the end of the body.
    pub(super) took: Duration,
}

/// What is wanted of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// Its head: how many rows there are.
    Count,
    /// Rows to deliver, with their cursors.
    Rows(&'a Reading),
    /// Rows to look at.
    Fields,
}

/// What one call may use, and what it used.
pub(super) struct Call<'a> {
    pub(super) allowance: &'a Allowance,
    pub(super) admission: &'a Admission,
    pub(super) limit: u32,
    /// The size to expect, in bytes; 0 if that is not known.
    pub(super) expected: u64,
    pub(super) wanted: Wanted<'a>,
    pub(super) spent: &'a mut Spent,
}

impl Instance {
    pub(super) fn new(host: Host, settings: &ServiceNow, rotation: Arc<dyn Rotation>, limiters: &Limiters) -> Result<Self, Error> {
        let transport = Transport::new(settings)?;
        Ok(Self {
            login: Login::new(host.clone(), transport.clone(), settings.auth.clone(), rotation),
            host,
            url: settings.url.clone(),
            transport,
            limiter: limiters.share(&settings.host, settings.http.max_concurrent_requests, settings.http.adaptive_throttling),
            retry: settings.retry,
            request_timeout: settings.http.request_timeout,
            max_response_bytes: settings.http.max_response_bytes as u64,
        })
    }

    /// Gets `table` with these parameters, trying again as the retry keys and the allowance let it.
    ///
    /// # Errors
    /// The last failure. [`Error::Cut`] if the end of the invocation cut the wait for an answer, [`Error::BudgetSpent`] if there
    /// was no time to ask at all.
    pub(super) async fn get(&self, table: &str, parameters: &[(&str, String)], call: &mut Call<'_>) -> Result<Fetched, Error> {
        let mut url = self.url.clone();
        url.set_path(&format!("/api/now/table/{table}"));
        url.query_pairs_mut().extend_pairs(parameters);
        if url.as_str().len() > LONGEST_ADDRESS {
            return Err(Error::UrlTooLong { whom: "any request".to_owned(), length: url.as_str().len() });
        }
        let begun = self.host.monotonic();
        let (mut attempt, mut asked, mut last) = (1, Duration::ZERO, None);
        loop {
            let error = match self.attempt(&url, call, &mut asked).await {
                Ok(fetched) => return Ok(fetched),
                // Nothing was heard in all attempts together.
                Err(Error::Cut { token_url, .. }) => return Err(Error::Cut { waited: asked, token_url }),
                Err(Error::BudgetSpent) => return Err(last.unwrap_or(Error::BudgetSpent)),
                Err(error) => error,
            };
            let elapsed = self.host.monotonic().saturating_sub(begun);
            if error.remedy() != Remedy::Again || attempt >= self.retry.max_attempts || elapsed >= self.retry.max_elapsed {
                return Err(error);
            }
            let wait = self.wait(&error, attempt);
            if !call.allowance.covers(wait) || elapsed + wait > self.retry.max_elapsed {
                return Err(error);
            }
            tracing::warn!(table, attempt, wait_ms = wait.as_millis(), error = error.cause(), "request failed, trying again");
            tokio::time::sleep(wait).await;
            (attempt, last) = (attempt + 1, Some(error));
        }
    }

    /// The wait before the next try: what the instance asks for, else a random part of a doubling bound.
    fn wait(&self, error: &Error, attempt: u32) -> Duration {
        if let Some(seconds) = error.asked_wait() {
            return Duration::from_secs(seconds);
        }
        let bound = self.retry.initial_backoff.saturating_mul(1 << (attempt - 1).min(20)).min(self.retry.max_backoff);
        Duration::from_millis(self.host.jitter(u64::try_from(bound.as_millis()).unwrap_or(u64::MAX)))
    }

    /// One try, and a second one with a renewed login if the first is refused. `asked`: grows by how long the instance was asked,
    /// the wait for a turn not counted.
    async fn attempt(&self, url: &Url, call: &mut Call<'_>, asked: &mut Duration) -> Result<Fetched, Error> {
        let _turn = self.limiter.turn().await;
        let since = self.host.monotonic();
        let done = self.signed_in(url, call).await;
        *asked += self.host.monotonic().saturating_sub(since);
        done
    }

    async fn signed_in(&self, url: &Url, call: &mut Call<'_>) -> Result<Fetched, Error> {
        let mut sign_in = self.sign_in(call.allowance).await?;
        match self.send(url, &mut sign_in, call).await {
            Err(refusal @ Error::Unauthorized { .. }) => {
                self.login.refused(sign_in, refusal).await?;
                let mut renewed = self.sign_in(call.allowance).await?;
                let again = self.send(url, &mut renewed, call).await;
                if let Err(refusal @ Error::Unauthorized { .. }) = &again {
                    self.login.refused_again(renewed, refusal).await;
                }
                again
            }
            other => other,
        }
    }

    /// The credential for a request. A token's fetch has a request's time, and no more than is left.
    async fn sign_in(&self, allowance: &Allowance) -> Result<SignIn, Error> {
        let sign_in = self.login.credential(|| allowance.timeout(self.request_timeout)).await;
        sign_in.map_err(|error| match error {
            Error::NoToken { url, reason: NoToken::NoAnswer { .. } } if allowance.timeout(self.request_timeout).is_zero() => {
                Error::Cut { waited: Duration::ZERO, token_url: Some(url) }
            }
            error => error,
        })
    }

    async fn send(&self, url: &Url, sign_in: &mut SignIn, call: &mut Call<'_>) -> Result<Fetched, Error> {
        let timeout = call.allowance.timeout(self.request_timeout);
        if timeout.is_zero() {
            return Err(Error::BudgetSpent);
        }
        let cut_by_budget = timeout < self.request_timeout;
        let ticket = call.allowance.request().map_err(|_| Error::RequestsSpent)?;
        call.spent.requests += 1;
        let work = self.exchange(url, sign_in, call, &ticket);
        match tokio::time::timeout(timeout, work).await {
            Ok(done) => done,
            Err(_) if cut_by_budget => Err(Error::Cut { waited: timeout, token_url: None }),
            Err(_) => Err(Error::TimedOut { limit: call.limit, after: timeout }),
        }
    }

    async fn exchange(&self, url: &Url, sign_in: &mut SignIn, call: &mut Call<'_>, ticket: &Ticket) -> Result<Fetched, Error> {
        let request = self.transport.client.get(url.clone()).header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "gzip");
        let request = sign_in.credential.apply(request).map_err(|_| Error::Unauthorized {
            detail: "the key was not sent: it holds a character that no header may hold".to_owned(),
            advice: sign_in.credential.advice(),
        })?;
        let (sent_ms, begun) = (self.host.now_ms(), self.host.monotonic());
        let answer = request.send().await.map_err(|error| self.transport.failure(&error, url))?;
        let elapsed = self.host.monotonic().saturating_sub(begun);
        let (status, headers) = (answer.status(), answer.headers().clone());
        let told = rate::told(status, &headers, self.retry.max_backoff);
        let is_spent = told.refused_for.is_some();
        call.allowance.told(ticket, told);
        if status == StatusCode::TOO_MANY_REQUESTS {
            self.limiter.throttled();
        } else {
            self.limiter.answered();
        }
        if has_taken_login(status, &headers) {
            self.login.accepted(sign_in);
        }
        if is_spent {
            return Err(Error::RequestsSpent);
        }
        let body = self.body(answer, &headers, call).await?;
        let took = self.host.monotonic().saturating_sub(begun);
        refuse(status, &headers, &body, url).map_err(|error| signed(error, sign_in))?;
        // Read here, so that a body that cannot be read is asked for again like one that did not come.
        let (rows, fields) = match call.wanted {
            Wanted::Count => {
                // An instance that gives up says so in a body that comes with 200, and then does not count. That is no count, and not an
                // instance that never counts.
                listed(&body, call.limit)?;
                (Rows::default(), Vec::new())
            }
            Wanted::Rows(reading) => (reading.rows(&body, call.limit)?, Vec::new()),
            Wanted::Fields => (Rows::default(), Fields::of(&body, call.limit)?),
        };
        let size = body.len() as u64;
        call.admission.settle(size);
        Ok(Fetched {
            rows,
            fields,
            size,
            total: header(&headers, "x-total-count").and_then(|text| text.trim().parse().ok()),
            next_link: headers.get_all(LINK).iter().any(|link| link.to_str().is_ok_and(|link| link.contains("rel=\"next\""))),
            date: headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(epoch_seconds),
            sent_ms,
            elapsed_ms: i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX),
            took,
        })
    }

    /// Reads the body, inflated, within its bounds.
    async fn body(&self, mut answer: reqwest::Response, headers: &HeaderMap, call: &mut Call<'_>) -> Result<Bytes, Error> {
        let gzip = header(headers, CONTENT_ENCODING.as_str()).is_some_and(|encoding| encoding.trim().eq_ignore_ascii_case("gzip"));
        let cut = |error: &reqwest::Error| Error::Malformed { detail: format!("the body was cut: {}", describe(error)) };
        // As large as the last page was, so that the bytes are not copied as the buffer grows.
        let expected = usize::try_from(call.expected.min(self.max_response_bytes)).unwrap_or_default();
        let (mut inflate, mut plain) = if gzip {
            (MultiGzDecoder::new(Vec::with_capacity(expected)), Vec::new())
        } else {
            (MultiGzDecoder::new(Vec::new()), Vec::with_capacity(expected))
        };
        while let Some(chunk) = answer.chunk().await.map_err(|error| cut(&error))? {
            call.spent.bytes_in += chunk.len() as u64;
            let length = if gzip {
                inflate.write_all(&chunk).map_err(|error| Error::Malformed { detail: format!("the body is not gzip: {error}") })?;
                inflate.get_ref().len() as u64
            } else {
                plain.extend_from_slice(&chunk);
                plain.len() as u64
            };
            if length > self.max_response_bytes {
                return Err(Error::TooLarge { limit: call.limit, most: self.max_response_bytes });
            }
            if !call.admission.grow_to(length) {
                return Err(Error::Squeezed { limit: call.limit });
            }
        }
        if gzip {
            plain = inflate.finish().map_err(|error| Error::Malformed { detail: format!("the gzip body was cut: {error}") })?;
        }
        Ok(Bytes::from(plain))
    }
}

/// Whether an answer shows that the instance took the login. It has looked at the table for that: something that limits, queues or breaks
/// may have come first, and a page for people may be of something in front of the instance.
fn has_taken_login(status: StatusCode, headers: &HeaderMap) -> bool {
    let is_data = header(headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.contains("json"));
    let has_looked = match status.as_u16() {
        202 => false,
        200..=299 | 400 | 403 | 404 => true,
        _ => false,
    };
    is_data && has_looked
}

/// A refused login, with what to check for the credential that was sent.
fn signed(error: Error, sign_in: &SignIn) -> Error {
    match error {
        Error::Unauthorized { detail, .. } => {
            Error::Unauthorized { detail: sign_in.credential.redacted(&detail), advice: sign_in.credential.advice() }
        }
        other => other,
    }
}

/// Whether an answer holds rows; what it means if not.
fn refuse(status: StatusCode, headers: &HeaderMap, body: &[u8], url: &Url) -> Result<(), Error> {
    let content_type = header(headers, CONTENT_TYPE.as_str()).unwrap_or_default().to_owned();
    let is_html = content_type.contains("html") || body.trim_ascii_start().starts_with(b"<");
    let code = status.as_u16();
    if code == 200 && !is_html {
        return Ok(());
    }
    let said = ErrorBody::find(body).text();
    let wait_seconds = retry_after(headers);
    Err(match code {
        200 => Error::NotData { status: code, content_type, title: title(body) },
        202 => Error::Queued,
        300..=399 => Error::redirected(url, header(headers, LOCATION.as_str()).unwrap_or_default()),
        401 if headers.contains_key("x-mfa_token") => {
            Error::Unauthorized { detail: format!("{said}; the instance asks for a second factor (MFA)"), advice: "" }
        }
        401 => Error::Unauthorized { detail: said, advice: "" },
        407 => Error::ProxyDenied { detail: title_or(is_html, body, &said) },
        403 => Error::Forbidden { detail: said },
        400 if said.contains("Invalid table") => Error::TableMissing { status: code, detail: said },
        404 => Error::TableMissing { status: code, detail: said },
        400 | 414 | 431 if code != 400 || (is_html && mentions_length(body)) => {
            Error::UrlTooLong { whom: format!("the instance ({code})"), length: url.as_str().len() }
        }
        408 | 425 | 499 => Error::Unable { status: code, detail: said, wait_seconds },
        429 => Error::RateLimited {
            rule: header(headers, "x-ratelimit-rule").map(|rule| format!(", rule {rule}")).unwrap_or_default(),
            wait_seconds,
        },
        500..=599 if is_html => Error::NotData { status: code, content_type, title: format!("{code} {}", title(body)) },
        500..=599 => Error::Unable { status: code, detail: said, wait_seconds },
        _ => Error::Refused { status: code, detail: title_or(is_html, body, &said) },
    })
}

/// What an answer says: a page by its title, anything else in the instance's own words.
fn title_or(is_html: bool, body: &[u8], said: &str) -> String {
    if is_html { title(body) } else { said.to_owned() }
}

fn mentions_length(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    text.contains("too large") || text.contains("too long")
}

pub(super) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// An address without what may hold a secret.
pub(super) fn without_query(address: &str) -> String {
    address.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// What a page for people calls itself.
pub(super) fn title(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]);
    let lower = text.to_ascii_lowercase();
    let found = lower.find("<title>").and_then(|start| lower[start..].find("</title>").map(|end| &text[start + 7..start + end]));
    found.map_or_else(|| "no title".to_owned(), |title| title.trim().chars().take(80).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16, headers: &[(&'static str, &str)], body: &str) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header value"));
        }
        let url = Url::parse("https://acme.service-now.com/api/now/table/incident?x=y").expect("a URL");
        refuse(StatusCode::from_u16(status).expect("a status"), &map, body.as_bytes(), &url).err().map(|error| error.code())
    }

    #[test]
    fn every_answer_of_an_instance_has_a_meaning() {
        const HTML: &[(&str, &str)] = &[("content-type", "text/html;charset=UTF-8")];
        for (status, headers, body, code) in [
            (200, [].as_slice(), r#"{"result":[]}"#, None),
            (200, HTML, "<html><title>Your instance is hibernating</title>", Some("Source.NotData")),
            (200, &[], "  <!DOCTYPE html>", Some("Source.NotData")),
            (202, &[], "{}", Some("Source.Unavailable")),
            (302, &[("location", "https://login.example/x?secret=1")], "", Some("Source.Redirected")),
            (302, &[("location", "/maintenance.do")], "", Some("Source.Redirected")),
            (400, &[], r#"{"error":{"message":"Invalid table nope","detail":null},"status":"failure"}"#, Some("Source.TableMissing")),
            (400, &[], r#"{"error":{"message":"odd"}}"#, Some("Source.Refused")),
            (400, HTML, "<h1>Request header is too large</h1>", Some("Source.UrlTooLong")),
            (401, &[], "", Some("Source.Unauthorized")),
            (403, &[], "", Some("Source.Forbidden")),
            (404, &[], "", Some("Source.TableMissing")),
            (406, &[], "", Some("Source.Refused")),
            (414, &[], "", Some("Source.UrlTooLong")),
            (425, &[], "", Some("Source.Unavailable")),
            (429, &[], "", Some("Source.RateLimited")),
            (503, &[], "", Some("Source.Unavailable")),
            (503, HTML, "<title>Maintenance</title>", Some("Source.NotData")),
        ] {
            assert_eq!(verdict(status, headers, body), code, "{status} {body}");
        }
    }

    #[test]
    fn an_address_in_a_message_has_no_query() {
        assert_eq!(without_query("https://login.example/x?token=1#a"), "https://login.example/x");
    }
}
