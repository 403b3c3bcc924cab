//! The settings of the Kafka producer, as librdkafka takes them.
//!
//! Connect's documents speak the Java client's language and librdkafka has its own. Most names are the same. Where a
//! Java key has an equivalent it is translated; where it has none it is refused by name, because a producer that ignores
//! `interceptor.classes` is not the producer that was asked for. What would break a promise of the sweep (fewer acks, no
//! idempotence, reports only for errors) is not a setting.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use super::connect::{MSK_IAM, PRODUCER, PRODUCER_OVERRIDE};
use super::fault::{Fault, Faults};
use super::values::{Entry, Values};

mod refused;
mod settings;

pub(super) use refused::REFUSED;
use settings::route;
pub(super) use settings::{JAVA, KNOWN, definition, names};

/// The producer's settings, by librdkafka's names, except for the mechanism `AWS_MSK_IAM`, which librdkafka does not know.
/// Their values are not shown.
#[derive(Clone, Default)]
pub struct ProducerSettings {
    settings: BTreeMap<&'static str, SecretString>,
    placeholders: BTreeMap<&'static str, String>,
}

impl ProducerSettings {
    /// All settings in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.settings.iter().map(|(name, value)| (*name, value.expose_secret()))
    }

    /// The settings that came out of placeholders, each with its text as it stands in the document.
    pub fn placeholders(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.placeholders.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// One setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(ExposeSecret::expose_secret)
    }
}

/// Two connectors may share a producer when their settings are equal.
impl PartialEq for ProducerSettings {
    fn eq(&self, other: &ProducerSettings) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Debug for ProducerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerSettings").field("names", &self.settings.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

/// The settings for a connector: the worker's, then the worker's `producer.` ones, then the connector's own.
///
/// What is still a placeholder is left out, and the checks that need it wait for it.
pub(super) fn merge(worker: &Values, connector: Option<&Values>, faults: &mut Faults) -> ProducerSettings {
    let mut merged = Merged::default();
    merged.take(worker, |name| (!name.starts_with(PRODUCER)).then_some(name), faults);
    merged.take(worker, |name| name.strip_prefix(PRODUCER), faults);
    if let Some(connector) = connector {
        merged.take(connector, |name| name.strip_prefix(PRODUCER_OVERRIDE), faults);
    }
    // Signing in is the worker's affair unless the connector overrides some of it: one mistake is told once.
    let signs_in_alone = |values: &Values| {
        let mut settings = values.entries.keys().filter_map(|name| name.strip_prefix(PRODUCER_OVERRIDE));
        settings.any(|setting| setting.starts_with("sasl.") || setting == "security.protocol")
    };
    match connector {
        None => merged.check(worker, faults),
        Some(connector) if signs_in_alone(connector) => merged.check(connector, faults),
        Some(_) => {}
    }
    ProducerSettings { settings: merged.settings, placeholders: merged.placeholders }
}

/// A fault of a setting that only the whole shows, at the key of the document that gives it. What no document gives is blamed on the
/// worker's: that is where it can be set.
pub(super) fn fault(worker: &Values, connector: &Values, setting: &str, message: &str) -> Fault {
    let own = |name: &'_ str| (!name.starts_with(PRODUCER)).then(|| name.to_owned());
    let below = |prefix: &'static str| move |name: &'_ str| name.strip_prefix(prefix).map(str::to_owned);
    if let Some(key) = given_as(connector, setting, below(PRODUCER_OVERRIDE)) {
        return connector.fault(&key, message);
    }
    // What the connector sets itself is not to be found beside the key that is blamed.
    let mut overridden = connector.entries.keys().filter_map(|name| route(name.strip_prefix(PRODUCER_OVERRIDE)?));
    let message = match &connector.connector {
        Some(name) if overridden.any(|(known, _)| message.contains(known)) => {
            format!("{message} (with the settings of the connector {name})")
        }
        _ => message.to_owned(),
    };
    match given_as(worker, setting, below(PRODUCER)).or_else(|| given_as(worker, setting, own)) {
        Some(key) => worker.fault(&key, message),
        None => worker.fault_of_file(message).at(format!("{PRODUCER}{setting}")),
    }
}

/// The key by which a document gives a setting; `inner` is the setting's name in a key, by whatever spelling.
fn given_as(values: &Values, setting: &str, inner: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_it = |name: &str| inner(name).is_some_and(|name| route(&name).is_some_and(|(known, _)| known == setting));
    values.entries.iter().find(|(name, entry)| entry.given && is_it(name)).map(|(name, _)| name.clone())
}

/// The settings on their way, with what is known to be given but not yet known.
#[derive(Default)]
struct Merged {
    settings: BTreeMap<&'static str, SecretString>,
    placeholders: BTreeMap<&'static str, String>,
    pending: Vec<&'static str>,
}

impl Merged {
    fn take<'v>(&mut self, values: &'v Values, setting: impl Fn(&'v str) -> Option<&'v str>, faults: &mut Faults) {
        for (name, entry) in &values.entries {
            let Some((known, route)) = setting(name).and_then(route) else {
                continue;
            };
            match entry.template() {
                Some(template) => drop(self.placeholders.insert(known, template.source().to_owned())),
                None => drop(self.placeholders.remove(known)),
            }
            match entry.text() {
                Some(text) => match route.apply(entry_text(entry, text)) {
                    Ok(value) => {
                        self.pending.retain(|pending| *pending != known);
                        self.settings.insert(known, SecretString::from(value));
                    }
                    Err(message) => faults.push(values.fault(name, message)),
                },
                None => self.pending.push(known),
            }
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(ExposeSecret::expose_secret)
    }

    /// Whether the final producer lacks a setting for certain.
    fn lacks(&self, name: &str) -> bool {
        !self.settings.contains_key(name) && !self.pending.contains(&name)
    }

    /// Checks what needs several settings at once.
    fn check(&self, blamed: &Values, faults: &mut Faults) {
        let mut blame = |key: &str, message: &str| faults.push(blamed.fault(key, message));
        let mechanism = self.get("sasl.mechanism");
        let protocol = self.get("security.protocol").map(str::to_ascii_uppercase);
        let signs_in = protocol.as_deref().is_some_and(|protocol| protocol.starts_with("SASL"));
        if signs_in && self.lacks("sasl.mechanism") {
            blame("sasl.mechanism", "is required when security.protocol signs in with SASL");
        }
        if mechanism.is_some() && !signs_in && !self.pending.contains(&"security.protocol") {
            blame("sasl.mechanism", "has no effect unless security.protocol is SASL_SSL or SASL_PLAINTEXT");
        }
        if mechanism == Some(MSK_IAM) && protocol.as_deref() == Some("SASL_PLAINTEXT") {
            blame("security.protocol", "must be SASL_SSL for AWS_MSK_IAM");
        }
        if mechanism.is_some_and(|name| name == "PLAIN" || name.starts_with("SCRAM-")) {
            for credential in ["sasl.username", "sasl.password"] {
                if self.lacks(credential) {
                    blame(credential, "is required by the SASL mechanism");
                }
            }
        }
    }
}

/// Choices go out in the spelling of their definition, whatever the document's.
fn entry_text<'e>(entry: &Entry, text: &'e str) -> &'e str {
    match entry.key.kind {
        super::key::Kind::Choice(choices) => super::kind::choice(text, choices).unwrap_or(text),
        _ => text,
    }
}
