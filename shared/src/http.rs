//! What the parts that speak HTTP without the AWS SDK have in common.

use std::error::Error as StdError;
use std::time::Duration;

/// An idle connection is not used again after this long: a frozen process does not notice that it was closed.
pub(crate) const POOL_IDLE: Duration = Duration::from_secs(40);

/// A transport error and its causes, without the address: that may hold what nobody should read.
pub(crate) fn describe(error: &reqwest::Error) -> String {
    let kind = match error {
        error if error.is_timeout() => "timed out",
        error if error.is_connect() => "cannot connect",
        error if error.is_body() || error.is_decode() => "the connection ended early",
        _ => "the connection failed",
    };
    with_causes(kind.to_owned(), error)
}

/// `text`, and behind it what caused `error`, the last cause last.
pub(crate) fn with_causes(mut text: String, error: &(dyn StdError + 'static)) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// The first cause of this type. An `io::Error` hides what it wraps from `source`, so it is opened.
pub(crate) fn cause<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
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
