//! The instance's own clock.
//!
//! A client that sweeps up to "the server's now less a lag" is only as right as its idea of the server's time, so the
//! simulator's clock is a part of the data: it stamps rows, it is the `Date` header, and a test sets, steps, stops
//! and starts it. It counts in microseconds so that a running clock does not lose the fractions between two readings.

use std::time::{Duration, Instant, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

const STAMP: &str = "%Y-%m-%d %H:%M:%S";

/// A clock that can be set, stepped, stopped and started.
#[derive(Debug)]
pub(super) struct Clock {
    at: i64,
    since: Instant,
    running: bool,
}

impl Clock {
    /// Starts at the machine's time.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { at: micros(now), since: Instant::now(), running: true }
    }

    /// Microseconds since 1970.
    pub fn micros(&self) -> i64 {
        if self.running { self.at + micros(self.since.elapsed()) } else { self.at }
    }

    /// Whole seconds since 1970.
    pub fn seconds(&self) -> i64 {
        self.micros().div_euclid(1_000_000)
    }

    /// Now as a raw date-time value.
    pub fn stamp(&self) -> String {
        format_stamp(self.seconds())
    }

    /// Sets the time; whether the clock runs is left as it is.
    pub fn set(&mut self, seconds: i64) {
        self.at = seconds.saturating_mul(1_000_000);
        self.since = Instant::now();
    }

    /// Moves the time, backwards too.
    pub fn step(&mut self, seconds: i64) {
        self.at = self.micros().saturating_add(seconds.saturating_mul(1_000_000));
        self.since = Instant::now();
    }

    /// Stops or starts the clock.
    pub fn run(&mut self, running: bool) {
        self.at = self.micros();
        self.since = Instant::now();
        self.running = running;
    }

    /// Now in the form of an HTTP `Date` header.
    pub fn http_date(&self) -> String {
        let seconds = u64::try_from(self.seconds()).unwrap_or(0);
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// A raw date-time value; a time outside the calendar becomes its nearest end.
pub(super) fn format_stamp(seconds: i64) -> String {
    let limit = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let moment = Timestamp::from_second(seconds).unwrap_or(limit);
    TimeZone::UTC.to_datetime(moment).strftime(STAMP).to_string()
}

/// Reads `yyyy-MM-dd HH:mm:ss` as UTC; anything else is nothing.
pub(super) fn parse_stamp(text: &str) -> Option<i64> {
    let moment = civil(text)?;
    let seconds = TimeZone::UTC.to_timestamp(moment).ok()?.as_second();
    Some(seconds)
}

/// A literal of a query as the instance reads it: a date alone is its midnight, and the user's zone is taken off.
pub(super) fn literal_to_utc(text: &str, offset_seconds: i64) -> Option<String> {
    let midnight;
    let text = if text.len() == 10 {
        midnight = format!("{text} 00:00:00");
        &midnight
    } else {
        text
    };
    let moment = civil(text)?;
    let utc = moment.checked_sub(offset_seconds.seconds()).ok()?;
    Some(utc.strftime(STAMP).to_string())
}

fn civil(text: &str) -> Option<DateTime> {
    let shaped = text.len() == 19 && text.as_bytes()[10] == b' ';
    if !shaped {
        return None;
    }
    DateTime::strptime(STAMP, text).ok()
}
