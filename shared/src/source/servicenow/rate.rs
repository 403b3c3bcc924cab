//! What an answer's headers say about how often to ask: `X-RateLimit-*` and `Retry-After`.
//!
//! An instance with a rate limit rule tells limit, end of the hour and rule with each answer that the rule counts, and
//! `Retry-After` only with a refusal; how many requests are left it never tells. The end is a moment by the instance's
//! own clock, so it is read as a distance from the `Date` of the same answer.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

use super::http::header;
use crate::sweep::Told;

/// What the headers say about the hourly allowance. A refusal that asks for a longer wait than `longest_wait` is the end of
/// an allowance; a shorter one is a pause within a sweep.
pub(super) fn told(status: StatusCode, headers: &HeaderMap, longest_wait: Duration) -> Told {
    let limit = whole(headers, "x-ratelimit-limit").filter(|limit| *limit > 0);
    let ends_in = ends_in(headers);
    let asked = retry_after(headers).map(Duration::from_secs).or(ends_in.filter(|_| limit.is_some()));
    Told {
        limit,
        ends_in,
        rule: header(headers, "x-ratelimit-rule").unwrap_or_default().trim().to_owned(),
        refused_for: asked.filter(|wait| status == StatusCode::TOO_MANY_REQUESTS && *wait > longest_wait),
    }
}

/// The wait that an answer asks for, in seconds: given as such, or as a date by the clock of whoever answered.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = header(headers, RETRY_AFTER.as_str())?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    u64::try_from(epoch_seconds(text)?.saturating_sub(date(headers)?)).ok()
}

/// The time to the end of the hour; `None` if it is past, or not to be told.
fn ends_in(headers: &HeaderMap) -> Option<Duration> {
    let reset = i64::try_from(whole(headers, "x-ratelimit-reset")?).ok()?;
    let seconds = u64::try_from(reset.saturating_sub(date(headers)?)).ok()?;
    Some(Duration::from_secs(seconds)).filter(|length| !length.is_zero())
}

fn whole(headers: &HeaderMap, name: &str) -> Option<u64> {
    header(headers, name)?.trim().parse().ok()
}

fn date(headers: &HeaderMap) -> Option<i64> {
    header(headers, DATE.as_str()).and_then(epoch_seconds)
}

/// A date of HTTP in epoch seconds.
pub(super) fn epoch_seconds(date: &str) -> Option<i64> {
    let time = httpdate::parse_http_date(date).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_772_366_400;
    const LONGEST: Duration = Duration::from_secs(30);

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let date = ("date", "Sun, 01 Mar 2026 12:00:00 GMT");
        pairs.iter().chain([&date]).map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn the_wait_that_is_asked_for_comes_in_seconds_or_as_a_date() {
        for (text, wait) in [
            (" 17 ", Some(17)),
            ("Sun, 01 Mar 2026 12:00:30 GMT", Some(30)),
            ("Sun, 01 Mar 2026 11:00:00 GMT", None),
            ("soon", None),
            ("-3", None),
        ] {
            assert_eq!(retry_after(&headers(&[("retry-after", text)])), wait, "{text}");
        }
    }

    #[test]
    fn an_allowance_is_told_by_limit_end_and_rule() {
        let reset = (NOON + 600).to_string();
        let found = told(
            StatusCode::OK,
            &headers(&[("x-ratelimit-limit", "500"), ("x-ratelimit-reset", &reset), ("x-ratelimit-rule", "abc")]),
            LONGEST,
        );
        let ends_in = Some(Duration::from_secs(600));
        assert_eq!(found, Told { limit: Some(500), ends_in, rule: "abc".to_owned(), refused_for: None });
    }

    #[test]
    fn nonsense_tells_nothing() {
        for limit in ["0", "-5", "many", "", "99999999999999999999"] {
            assert_eq!(told(StatusCode::OK, &headers(&[("x-ratelimit-limit", limit)]), LONGEST).limit, None, "{limit}");
        }
        for reset in ["0", "-1", "x", "1772366400", "99999999999999999999"] {
            assert_eq!(ends_in(&headers(&[("x-ratelimit-reset", reset)])), None, "{reset}");
        }
    }

    #[test]
    fn only_a_refusal_with_a_long_wait_ends_the_allowance() {
        let refused = |status, pairs: &[(&'static str, &str)]| told(status, &headers(pairs), LONGEST).refused_for;
        let (limited, fine) = (StatusCode::TOO_MANY_REQUESTS, StatusCode::OK);
        let reset = (NOON + 600).to_string();
        assert_eq!(refused(limited, &[("retry-after", "3400")]), Some(Duration::from_secs(3400)));
        assert_eq!(refused(limited, &[("x-ratelimit-limit", "5"), ("x-ratelimit-reset", &reset)]), Some(Duration::from_secs(600)));
        assert_eq!(refused(limited, &[("retry-after", "2"), ("x-ratelimit-limit", "5"), ("x-ratelimit-reset", &reset)]), None);
        assert_eq!(refused(limited, &[]), None, "a queue that is full");
        assert_eq!(refused(fine, &[("retry-after", "3400")]), None);
    }
}
