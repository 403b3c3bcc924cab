//! What each type of value accepts, and the one place where a text becomes a typed value.
//!
//! A check says what is wrong with a text and never repeats it: the caller decides whether the text may be shown.

use jiff::Timestamp;
use jiff::civil::DateTime;
use url::Url;

use super::key::Kind;

/// The longest name that Kafka gives a topic.
const LONGEST_TOPIC: usize = 249;
/// How documents write a point in time; always UTC.
const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S";

impl Kind {
    /// What the loader keeps of a text: passwords as they are, anything else without surrounding blanks, as Kafka does.
    pub(super) fn tidy(self, text: &str) -> &str {
        match self {
            Kind::Password => text,
            _ => text.trim(),
        }
    }

    /// Says what is wrong with a (tidied) text, without repeating it.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Kind::Password | Kind::Text | Kind::Path if text.is_empty() => Err("is empty; give a value or leave the key out".into()),
            Kind::Password | Kind::Text | Kind::Path => Ok(()),
            Kind::Integer { min, max, .. } => integer(text, min, max),
            Kind::Boolean => boolean(text).map(drop).ok_or_else(|| "is neither true nor false".into()),
            Kind::Choice(choices) => choice(text, choices).map(drop).ok_or_else(|| "is none of the values that this key knows".into()),
            Kind::Aliases => aliases(text).map(drop),
            Kind::Url => url(text).map(drop),
            Kind::Endpoint => endpoint(text).map(drop),
            Kind::Timestamp => timestamp(text).map(drop),
            Kind::Host => host(text),
            Kind::Topic => topic(text),
            Kind::Shaped(shape) => (shape.check)(text),
        }
    }

    /// The accepted values, in words; `None` where the type says it all.
    pub(super) fn allowed(self) -> Option<String> {
        Some(match self {
            Kind::Text | Kind::Password | Kind::Path => return None,
            Kind::Integer { min, max, unit } => match (max, unit) {
                (i64::MAX, "") => format!("a whole number from {min}"),
                (i64::MAX, unit) => format!("a whole number of {unit} from {min}"),
                (_, "") => format!("a whole number from {min} to {max}"),
                (_, unit) => format!("a whole number of {unit} from {min} to {max}"),
            },
            Kind::Boolean => "true or false".into(),
            Kind::Choice(choices) => choices.join(", "),
            Kind::Aliases => "aliases of letters, digits, _ and -, separated by commas".into(),
            Kind::Url => "http(s)://host or http(s)://host:port".into(),
            Kind::Endpoint => "an http(s) address without credentials".into(),
            Kind::Timestamp => "yyyy-MM-dd HH:mm:ss, UTC".into(),
            Kind::Host => "a host name or an IP address, without scheme and port".into(),
            Kind::Topic => {
                format!("1 to {LONGEST_TOPIC} letters, digits, ., _ and -, not . or .. alone")
            }
            Kind::Shaped(shape) => shape.allowed.into(),
        })
    }

    /// The type's name in the reference.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Password => "password",
            Kind::Integer { .. } => "integer",
            Kind::Boolean => "boolean",
            Kind::Choice(_) => "choice",
            Kind::Aliases => "list of aliases",
            Kind::Url | Kind::Endpoint => "url",
            Kind::Timestamp => "timestamp",
            Kind::Host => "host",
            Kind::Path => "path",
            Kind::Topic => "topic",
            Kind::Shaped(shape) => shape.name,
        }
    }
}

fn integer(text: &str, min: i64, max: i64) -> Result<(), String> {
    match text.parse::<i64>() {
        Err(_) => Err("is not a whole number".into()),
        Ok(number) if number < min => Err(format!("is below the smallest value, {min}")),
        Ok(number) if number > max => Err(format!("is above the largest value, {max}")),
        Ok(_) => Ok(()),
    }
}

/// Reads a boolean in any case, as Kafka does.
pub(super) fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// The choice that a text means, in the spelling of the key's definition.
pub(super) fn choice(text: &str, choices: &[&'static str]) -> Option<&'static str> {
    choices.iter().find(|choice| choice.eq_ignore_ascii_case(text)).copied()
}

/// Reads a list of aliases; the order is kept, blanks around names go.
pub(super) fn aliases(text: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim) {
        if name.is_empty() {
            return Err("has an empty alias; name at least one table and no comma too many".into());
        }
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(format!("has the alias {name:?}, which no key can name"));
        }
        if names.iter().any(|known| known == name) {
            return Err(format!("names the alias {name:?} twice"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Reads an address.
pub(super) fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => "is no URL: it must begin with https://".to_owned(),
        other => format!("is no URL: {other}"),
    })?;
    if url.scheme() != "https" && url.scheme() != "http" {
        return Err("is neither an https nor an http address".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("carries credentials; put them into the keys made for them".into());
    }
    Ok(url)
}

/// Reads the address of a host. The path must be empty: requests are built from the host, and a path would be lost.
pub(super) fn url(text: &str) -> Result<Url, String> {
    let url = endpoint(text)?;
    if url.query().is_some() || url.fragment().is_some() || url.path() != "/" {
        return Err("has a path, a query or a fragment; give the host alone".into());
    }
    Ok(url)
}

/// An address for a reader to go on with after a fault; it reaches nobody, since the reader then fails.
pub(super) fn neutral_url() -> Url {
    Url::parse("http://invalid./").expect("a literal address is one")
}

/// Reads a point in time in UTC, to the second.
pub(super) fn timestamp(text: &str) -> Result<Timestamp, String> {
    // The parser would take "2026-1-1 0:0:0"; a cursor compares as text on the server, so only the padded form is one.
    let padded = text.len() == "yyyy-MM-dd HH:mm:ss".len();
    DateTime::strptime(TIMESTAMP, text)
        .ok()
        .filter(|_| padded)
        .and_then(|civil| jiff::tz::TimeZone::UTC.to_timestamp(civil).ok())
        .ok_or_else(|| "is not a date and time".into())
}

fn host(text: &str) -> Result<(), String> {
    if text.contains("://") {
        return Err("has a scheme; give the host alone".into());
    }
    match url::Host::parse(text) {
        Ok(_) => Ok(()),
        Err(_) if text.parse::<std::net::Ipv6Addr>().is_ok() => Ok(()),
        Err(error) => Err(format!("is no host: {error}")),
    }
}

fn topic(text: &str) -> Result<(), String> {
    if text.is_empty() || text == "." || text == ".." {
        return Err("is no topic name".into());
    }
    if text.len() > LONGEST_TOPIC {
        return Err(format!("has {} characters, more than Kafka's {LONGEST_TOPIC}", text.len()));
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        Some(odd) => Err(format!("contains {odd:?}, which Kafka allows in no topic")),
        None => Ok(()),
    }
}
