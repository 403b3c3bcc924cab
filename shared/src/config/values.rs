//! The values of one document, after validation.
//!
//! A value is one of three things: a plain text that may be shown, a secret, or a template with placeholders that nothing
//! has looked up yet. The difference is a type here and not a flag, so that no `Debug`, fault or JSON can show what it
//! must not. Whatever came out of a placeholder is treated like a secret: nobody puts a public value behind one.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::fault::{Fault, Faults};
use super::key::{Key, Kind};
use super::kind;
use super::placeholder::{Reference, Template};

/// The values of one document: what it gives, and the defaults of what it leaves out.
#[derive(Clone)]
pub struct Values {
    pub(super) file: String,
    pub(super) connector: Option<String>,
    pub(super) aliases: Vec<String>,
    pub(super) entries: BTreeMap<String, Entry>,
    /// When the placeholders were last looked up, and why; `None` before that.
    pub(super) lookup: Option<super::placeholder::Lookup>,
}

/// One value with the definition of its key.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: &'static Key,
    pub(super) content: Content,
    /// Whether the document gives it; otherwise it is the default.
    pub(super) given: bool,
}

/// The forms of a value.
#[derive(Clone)]
pub(super) enum Content {
    Plain(String),
    Secret(SecretString),
    Pending(Template),
    /// Looked up; the template stays, to be shown in faults and looked up again after a rotation.
    Resolved(SecretString, Template),
    /// Given and at fault, or required and absent: there, so that nothing else complains of its absence.
    Invalid,
}

impl Entry {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Plain(text) => Some(text),
            Content::Secret(text) | Content::Resolved(text, _) => Some(text.expose_secret()),
            Content::Pending(_) | Content::Invalid => None,
        }
    }

    pub(super) fn template(&self) -> Option<&Template> {
        match &self.content {
            Content::Pending(template) | Content::Resolved(_, template) => Some(template),
            Content::Plain(_) | Content::Secret(_) | Content::Invalid => None,
        }
    }

    /// The value as it may be shown: a placeholder instead of what it stands for, nothing for a secret.
    pub(super) fn shown(&self) -> Option<String> {
        if self.key.is_secret() {
            return None;
        }
        match &self.content {
            Content::Plain(text) => shown_text(self.key.kind, text),
            Content::Secret(_) | Content::Invalid => None,
            // What stands around a placeholder is as much a part of the value as any text is.
            Content::Pending(template) | Content::Resolved(_, template) => shown_text(self.key.kind, template.source()),
        }
    }
}

/// A text of this type as it may be shown. An address can carry credentials where none belong, and somebody may give
/// an address where something else is asked for.
pub(super) fn shown_text(kind: Kind, text: &str) -> Option<String> {
    match kind {
        Kind::Password => None,
        Kind::Url | Kind::Endpoint | Kind::Host if text.contains('@') => None,
        _ if text.contains("://") && text.contains('@') => None,
        _ => Some(text.to_owned()),
    }
}

impl Values {
    /// The document that they stand in.
    pub fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn new(file: &str, connector: Option<&str>) -> Values {
        Values {
            file: file.to_owned(),
            connector: connector.map(str::to_owned),
            aliases: Vec::new(),
            entries: BTreeMap::new(),
            lookup: None,
        }
    }

    /// The aliases of the document's tables, sorted.
    pub fn aliases(&self) -> &[String] {
        &self.aliases
    }

    /// The text of a key, given or by default. `None` when there is neither, and while it is a placeholder.
    ///
    /// It is the secret itself where the key is one: [`Values::shown`] is what may go into a message.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key).and_then(Entry::text)
    }

    /// The value of an integer key.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.text(key)?.parse().ok()
    }

    /// The value of a boolean key.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        kind::boolean(self.text(key)?)
    }

    /// The value of a choice, in the spelling of the key's definition.
    pub fn choice(&self, key: &str) -> Option<&'static str> {
        match self.entries.get(key)?.key.kind {
            Kind::Choice(choices) => kind::choice(self.text(key)?, choices),
            _ => None,
        }
    }

    /// Whether the document itself gives the key.
    pub fn is_given(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.given)
    }

    /// Whether the key has a value, be it a placeholder.
    pub fn is_set(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether the value still waits for a placeholder to be looked up.
    pub fn is_pending(&self, key: &str) -> bool {
        self.entries.get(key).is_some_and(|entry| matches!(entry.content, Content::Pending(_)))
    }

    /// The value as it may be shown in a message; `None` for a secret and for an absent key.
    pub fn shown(&self, key: &str) -> Option<String> {
        self.entries.get(key).and_then(Entry::shown)
    }

    /// Whether every key has the same text as in `other`, which is of the same document.
    pub(super) fn says_the_same(&self, other: &Values) -> bool {
        self.entries.iter().all(|(name, entry)| entry.text() == other.text(name))
    }

    /// A fault at a key of this document.
    pub fn fault(&self, key: &str, message: impl Into<String>) -> Fault {
        let given = self.is_given(key).then(|| self.shown(key)).flatten();
        self.fault_of_file(message).at(key).given(given)
    }

    /// A fault of this document that no key of it is to blame for.
    pub fn fault_of_file(&self, message: impl Into<String>) -> Fault {
        Fault { connector: self.connector.clone(), ..Fault::of_file(self.file.clone(), message) }
    }

    /// Every placeholder of the document with the key that uses it.
    pub fn references(&self) -> impl Iterator<Item = (&str, &Reference)> {
        self.entries
            .iter()
            .filter_map(|(name, entry)| Some((name.as_str(), entry.template()?)))
            .flat_map(|(name, template)| template.references().map(move |reference| (name, reference)))
    }

    /// Checks again what could only be checked now that the placeholders are looked up.
    pub(super) fn check_resolved(&self, faults: &mut Faults) {
        for (name, entry) in &self.entries {
            let (Content::Resolved(text, _), true) = (&entry.content, entry.given) else {
                continue;
            };
            if let Err(message) = entry.key.kind.check(entry.key.kind.tidy(text.expose_secret())) {
                let mut fault = self.fault(name, message);
                fault.allowed = entry.key.kind.allowed();
                faults.push(fault);
            }
        }
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, entry) in &self.entries {
            map.entry(name, &entry.shown().unwrap_or_else(|| "[secret]".to_owned()));
        }
        map.finish()
    }
}

/// Reads the values of a document into a typed struct, and collects what cannot be read.
///
/// Every method returns something: a neutral value after a fault, so that one pass finds them all. [`Reader::finish`]
/// then gives the struct only if there was none.
pub struct Reader<'a> {
    values: &'a Values,
    faults: Faults,
}

impl<'a> Reader<'a> {
    /// A reader of these values.
    pub fn new(values: &'a Values) -> Reader<'a> {
        Reader { values, faults: Faults::default() }
    }

    /// The struct, unless something could not be read.
    pub fn finish<T>(self, value: T) -> Result<T, Faults> {
        self.faults.into_result(value)
    }

    /// A text that may be absent.
    pub fn optional(&mut self, key: &str) -> Option<String> {
        if self.values.is_pending(key) {
            self.faults.push(self.values.fault(key, "is a placeholder that has not been looked up"));
        }
        self.values.text(key).map(str::to_owned)
    }

    /// A text that the document itself gives, a default apart.
    pub fn given(&mut self, key: &str) -> Option<String> {
        if self.values.is_given(key) { self.optional(key) } else { None }
    }

    /// A secret that may be absent.
    pub fn optional_secret(&mut self, key: &str) -> Option<SecretString> {
        self.optional(key).map(SecretString::from)
    }

    /// A text that must be there.
    pub fn text(&mut self, key: &str) -> String {
        self.required(key, |text| Some(text.to_owned())).unwrap_or_default()
    }

    /// A secret that must be there.
    pub fn secret(&mut self, key: &str) -> SecretString {
        SecretString::from(self.text(key))
    }

    /// A whole number.
    pub fn integer<T: TryFrom<i64> + Default>(&mut self, key: &str) -> T {
        self.required(key, |text| T::try_from(text.parse::<i64>().ok()?).ok()).unwrap_or_default()
    }

    /// A whole number that may be absent.
    pub fn optional_integer<T: TryFrom<i64> + Default>(&mut self, key: &str) -> Option<T> {
        self.values.is_set(key).then(|| self.integer(key))
    }

    /// A duration that the document gives in milliseconds.
    pub fn millis(&mut self, key: &str) -> Duration {
        Duration::from_millis(self.integer(key))
    }

    /// A duration that the document gives in seconds.
    pub fn seconds(&mut self, key: &str) -> Duration {
        Duration::from_secs(self.integer(key))
    }

    /// A boolean.
    pub fn boolean(&mut self, key: &str) -> bool {
        self.required(key, kind::boolean).unwrap_or_default()
    }

    /// One of a key's choices, given to `read` in the spelling of its definition.
    pub fn choice<T: Default>(&mut self, key: &str, read: impl Fn(&str) -> Option<T>) -> T {
        let choice = self.values.choice(key);
        self.required(key, |_| read(choice?)).unwrap_or_default()
    }

    /// A point in time; the epoch after a fault.
    pub fn timestamp(&mut self, key: &str) -> Timestamp {
        self.required(key, |text| kind::timestamp(text).ok()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// An address; a neutral one after a fault.
    pub fn url(&mut self, key: &str) -> Url {
        self.required(key, |text| kind::url(text).ok()).unwrap_or_else(kind::neutral_url)
    }

    /// An address that may be absent.
    pub fn optional_url(&mut self, key: &str) -> Option<Url> {
        self.values.is_set(key).then(|| self.required(key, |text| kind::url(text).ok())).flatten()
    }

    /// An endpoint that may be absent.
    pub fn optional_endpoint(&mut self, key: &str) -> Option<Url> {
        self.values.is_set(key).then(|| self.required(key, |text| kind::endpoint(text).ok())).flatten()
    }

    /// A value of a source's own type; `None` after a fault.
    pub fn required<T>(&mut self, key: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        if !self.values.is_set(key) {
            self.faults.push(self.values.fault(key, "is required"));
            return None;
        }
        if self.values.is_pending(key) {
            self.optional(key);
            return None;
        }
        let value = self.values.text(key).and_then(read);
        if value.is_none() {
            self.faults.push(self.values.fault(key, "cannot be read as what its key asks for"));
        }
        value
    }
}
