//! A document while it is being checked.

use crate::config::connect::{self, Refused, TOPIC_CREATION};
use crate::config::converter::{self, Format, Role};
use crate::config::document::Raw;
use crate::config::fault::{Fault, Faults};
use crate::config::key::{Fallback, Key, Kind};
use crate::config::placeholder::Template;
use crate::config::producer;
use crate::config::suggest::nearest;
use crate::config::topics;
use crate::config::values::{Content, Entry, Values, shown_text};

/// The values found so far, and where faults go.
pub(super) struct Draft<'f> {
    pub(super) values: Values,
    pub(super) faults: &'f mut Faults,
}

impl<'f> Draft<'f> {
    pub(super) fn new(raw: &Raw, connector: Option<&str>, faults: &'f mut Faults) -> Draft<'f> {
        Draft { values: Values::new(&raw.file, connector), faults }
    }

    /// Takes a value of a known key: a placeholder as it is, anything else if its type allows it. Where the key also
    /// stands among the refused ones, that reason says more than the type does.
    pub(super) fn accept(&mut self, name: &str, key: &'static Key, text: &str, refused: Option<&Refused>) {
        let text = key.kind.tidy(text);
        let content = match self.content(key, text) {
            Ok(Content::Plain(_)) if refused.is_some_and(|refused| refused.tolerates(text)) => Content::Plain(text.into()),
            Ok(content) => content,
            Err(message) => {
                let shown = if key.is_secret() { None } else { shown_text(key.kind, text) };
                let message = refused.map_or(message, |refused| refused.why.to_owned());
                let mut fault = self.values.fault_of_file(message).at(name).given(shown);
                fault.allowed = key.kind.allowed();
                self.faults.push(fault);
                Content::Invalid
            }
        };
        if matches!((&content, key.kind), (Content::Secret(_), Kind::Password | Kind::Shaped(_))) {
            let advice = "is written in the document; a placeholder such as ${secretsmanager:name:key} keeps it out";
            self.faults.warn(self.values.fault_of_file(advice).at(name));
        }
        self.values.entries.insert(name.to_owned(), Entry { key, content, given: true });
    }

    fn content(&self, key: &'static Key, text: &str) -> Result<Content, String> {
        if let Some(template) = Template::parse(text)? {
            if key.structural {
                return Err("decides the shape of the document, so it cannot come from a placeholder; write the value".into());
            }
            return Ok(Content::Pending(template));
        }
        key.kind.check(text)?;
        Ok(if key.is_secret() { Content::Secret(text.into()) } else { Content::Plain(text.to_owned()) })
    }

    /// Adds the default of a key that the document leaves out, or the fault that it must not.
    pub(super) fn fill(&mut self, name: &str, key: &'static Key) {
        if self.values.is_set(name) {
            return;
        }
        let content = match key.default {
            Fallback::None => return,
            Fallback::Text(text) => Content::Plain(text.to_owned()),
            Fallback::Inherits(other) => match self.values.entries.get(other) {
                Some(entry) => entry.content.clone(),
                None => return,
            },
            Fallback::Required => {
                let mut fault = self.values.fault_of_file("is required").at(name);
                fault.allowed = key.kind.allowed();
                self.faults.push(fault);
                Content::Invalid
            }
        };
        self.values.entries.insert(name.to_owned(), Entry { key, content, given: false });
    }

    /// Refuses a key by its reason, unless the value changes nothing.
    pub(super) fn refuse(&mut self, name: &str, refused: &Refused, text: &str) {
        if refused.tolerates(text) {
            return;
        }
        let mut fault = self.values.fault_of_file(format!("is refused: {}", refused.why)).at(name);
        if !refused.harmless.is_empty() {
            let shown = refused.harmless.iter().map(|value| if value.is_empty() { "(empty)" } else { value });
            fault.allowed = Some(shown.collect::<Vec<_>>().join(", "));
        }
        self.faults.push(fault);
    }

    /// Refuses a key that nobody knows. Its value is not shown: a misspelt password is a password.
    pub(super) fn unknown<'c>(&mut self, name: &str, candidates: impl IntoIterator<Item = &'c str>) {
        let message = match nearest(name, candidates) {
            Some(near) => format!("is no key that is known here; did you mean {near}?"),
            None => "is no key that is known here".to_owned(),
        };
        self.faults.push(self.values.fault_of_file(message).at(name));
    }

    /// A warning about a key.
    pub(super) fn warn(&mut self, name: &str, message: impl Into<String>) {
        let warning: Fault = self.values.fault_of_file(message).at(name);
        self.faults.warn(warning);
    }

    /// Takes a producer setting, given below `prefix`.
    pub(super) fn producer_setting(&mut self, prefix: &str, setting: &str, text: &str) {
        let name = format!("{prefix}{setting}");
        let refused = producer::REFUSED.iter().find(|refused| refused.matches(setting));
        match (producer::definition(setting), refused) {
            (Some(key), refused) => self.accept(&name, key, text, refused),
            (None, Some(refused)) => self.refuse(&name, refused, text),
            (None, None) => {
                let near = nearest(setting, producer::names()).map(|near| format!("{prefix}{near}"));
                let message = match near {
                    Some(near) => {
                        format!("is no producer setting of librdkafka; did you mean {near}?")
                    }
                    None => "is no producer setting of librdkafka".to_owned(),
                };
                self.faults.push(self.values.fault_of_file(message).at(name));
            }
        }
    }

    /// Takes a setting below `key.converter.` or `value.converter.`; `class` is the converter that the document names.
    pub(super) fn converter_setting(&mut self, role: Role, setting: &str, text: &str, class: Option<&str>) {
        let name = format!("{}.{setting}", role.class_key());
        let Some(class) = class else {
            return self.warn(&name, format!("has no effect: this document names no {}", role.class_key()));
        };
        // A class that nobody knows is a fault of its own.
        let format = converter::format(class).unwrap_or(Format::JsonWithSchema);
        let known = converter::settings::of(format);
        let refused = connect::refused(converter::settings::refused(format), setting);
        match (known.iter().find(|key| key.name == setting), refused) {
            (Some(key), refused) => self.accept(&name, key, text, refused),
            (None, Some(refused)) => self.refuse(&name, refused, text),
            (None, None) => {
                let prefix = role.class_key();
                let candidates: Vec<String> = known.iter().map(|key| format!("{prefix}.{}", key.name)).collect();
                self.unknown(&name, candidates.iter().map(String::as_str));
            }
        }
    }

    /// Takes a key below `topic.creation.`.
    pub(super) fn topic_setting(&mut self, rest: &str, text: &str) {
        let name = format!("{TOPIC_CREATION}{rest}");
        match topics::split(rest) {
            Some((_, setting)) => self.accept(&name, topics::definition(setting), text, None),
            None => self.unknown(&name, [topics::GROUPS, "topic.creation.default.partitions"]),
        }
    }
}

/// The role whose settings a key belongs to, with the setting's own name.
pub(super) fn converter_role(name: &str) -> Option<(Role, &str)> {
    let setting = |role: Role| Some((role, name.strip_prefix(role.class_key())?.strip_prefix('.')?));
    setting(Role::Key).or_else(|| setting(Role::Value))
}

/// The text that a raw document gives for a key.
pub(super) fn raw_text<'r>(raw: &'r Raw, key: &str) -> Option<&'r str> {
    raw.entries.iter().find(|(name, _)| name == key).map(|(_, text)| text.trim())
}
