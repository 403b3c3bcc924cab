//! Checking a connector's document.

use super::draft::{Draft, converter_role, raw_text};
use crate::config::connect::{self, CLASS, CONNECTOR_KEYS, PRODUCER_OVERRIDE, REFUSED_IN_CONNECTOR, TASKS_MAX, TOPIC_CREATION};
use crate::config::converter::{self, CLASS_KEYS, Converter, Format, Role};
use crate::config::document::Raw;
use crate::config::fault::Faults;
use crate::config::key::{Key, Scope};
use crate::config::suggest::nearest;
use crate::config::values::Values;
use crate::config::{Connector, Env, SourceKind, Worker, kind, producer, topics};

/// The longest name of a connector; it is part of a cursor's key.
const LONGEST_NAME: usize = 200;

/// Checks a document. What comes out is only used when there was no fault in any document.
pub(super) fn check(raw: Raw, worker: &Worker, kinds: &[&'static SourceKind], env: Env<'_>, faults: &mut Faults) -> Option<Connector> {
    let mut draft = Draft::new(&raw, raw.name.as_deref(), faults);
    check_name(&mut draft, raw.name.as_deref());
    let kind = source(&mut draft, raw_text(&raw, CLASS), kinds);
    let aliases = kind.map(|kind| aliases(&raw, kind)).unwrap_or_default();
    let place = Place { raw: &raw, kind, aliases: &aliases };
    for (name, text) in &raw.entries {
        place.take(&mut draft, name, text);
    }
    for key in CONNECTOR_KEYS {
        draft.fill(key.name, key);
    }
    if let Some(kind) = kind {
        fill(&mut draft, kind, &aliases);
    }
    let Draft { mut values, .. } = draft;
    values.aliases = aliases;
    converter::check(&values, faults);
    topics::check(&values, faults);
    if values.entries.keys().any(|name| name.starts_with(PRODUCER_OVERRIDE)) {
        producer::merge(&worker.values, Some(&values), faults);
    }
    let kind = kind?;
    (kind.check)(&values, env, faults);
    let value_converter = converter::choose(Role::Value, &values, &worker.values);
    check_schema_mode(kind, &value_converter, &values, faults);
    Some(Connector {
        name: raw.name?,
        file: raw.file,
        kind,
        tasks_max: values.integer(TASKS_MAX).and_then(|tasks| u32::try_from(tasks).ok())?,
        key_converter: converter::choose(Role::Key, &values, &worker.values),
        value_converter,
        values,
    })
}

/// A format with a schema registry has nothing to register for rows without a schema. The converter may be the worker's.
fn check_schema_mode(kind: &SourceKind, converter: &Converter, values: &Values, faults: &mut Faults) {
    let needs_schema = match converter.format {
        Format::String | Format::RawJson | Format::JsonWithSchema => false,
        Format::Avro | Format::JsonSchema | Format::GlueAvro | Format::GlueJsonSchema => true,
    };
    if needs_schema && values.choice(kind.schema_mode_key) == Some("schemaless") {
        let key = Role::Value.class_key();
        let whose = if converter.of_worker { " of the worker's document" } else { "" };
        let message = format!("gives rows no schema, and the {key}{whose} writes data of a schema; with schemaless use json or raw");
        let allowed = kind.key(Scope::Connector, kind.schema_mode_key).and_then(|key| key.kind.allowed()).unwrap_or_default();
        let others: Vec<&str> = allowed.split(", ").filter(|mode| *mode != "schemaless").collect();
        faults.push(values.fault(kind.schema_mode_key, message).allowing(others.join(", ")));
    }
}

/// Names a connector must not have, because the cursor store and events use their characters for something else.
fn check_name(draft: &mut Draft<'_>, name: Option<&str>) {
    let message = match name {
        None => "is required",
        Some(name) if name.contains("${") => "is an identity, so it cannot come from a placeholder; write the name",
        Some(name) if name.is_empty() || name.len() > LONGEST_NAME => "is empty or longer than 200 bytes",
        Some(name) if name.starts_with('@') || name.contains(['#', '/']) || name.chars().any(char::is_control) => {
            "contains a character that names of cursors use (#, /, a leading @) or that cannot be printed"
        }
        Some(name) if name.trim() != name => "has blanks around it",
        Some(_) => return,
    };
    let fault = draft.values.fault_of_file(message).at("name").given(name.map(str::to_owned));
    draft.faults.push(fault);
}

/// The source that a document chooses. That none is given is told with the other required keys.
fn source(draft: &mut Draft<'_>, class: Option<&str>, kinds: &[&'static SourceKind]) -> Option<&'static SourceKind> {
    // A placeholder is refused where the key is taken.
    let class = class.filter(|class| !class.contains("${"))?;
    let kind = kinds.iter().find(|kind| kind.answers_to(class)).copied();
    if kind.is_none() {
        let names: Vec<&str> = kinds.iter().flat_map(|kind| [kind.name].into_iter().chain(kind.classes.iter().copied())).collect();
        let hint = nearest(class, names.iter().copied()).map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let fault = draft.values.fault_of_file(format!("is no source that is known here{hint}"));
        draft.faults.push(fault.at(CLASS).given(Some(class.to_owned())).allowing(names.join(", ")));
    }
    kind
}

/// The listed aliases, sorted. Without a usable list, those that keys mention, so that these keys are checked too.
fn aliases(raw: &Raw, kind: &SourceKind) -> Vec<String> {
    let listed = raw_text(raw, kind.tables_key).and_then(|text| kind::aliases(text).ok());
    let mut aliases = listed.unwrap_or_else(|| {
        let mentioned = raw.entries.iter().filter_map(|(name, _)| name.strip_prefix(kind.alias_prefix)?.split_once('.'));
        mentioned.map(|(alias, _)| alias.to_owned()).collect()
    });
    aliases.sort();
    aliases.dedup();
    aliases
}

fn fill(draft: &mut Draft<'_>, kind: &'static SourceKind, aliases: &[String]) {
    for key in kind.keys.iter().filter(|key| key.scope == Scope::Connector) {
        draft.fill(key.name, key);
    }
    for alias in aliases {
        for key in kind.keys.iter().filter(|key| key.scope == Scope::Table) {
            draft.fill(&format!("{}{alias}.{}", kind.alias_prefix, key.name), key);
        }
    }
}

/// What decides the place of a key.
struct Place<'a> {
    raw: &'a Raw,
    kind: Option<&'static SourceKind>,
    aliases: &'a [String],
}

impl Place<'_> {
    fn take(&self, draft: &mut Draft<'_>, name: &str, text: &str) {
        let refused = connect::refused(REFUSED_IN_CONNECTOR, name);
        if let Some(key) = framework_keys().find(|key| key.name == name) {
            draft.accept(name, key, text, refused);
        } else if let Some(key) = self.kind.and_then(|kind| kind.key(Scope::Connector, name)) {
            draft.accept(name, key, text, None);
        } else if let Some(setting) = name.strip_prefix(PRODUCER_OVERRIDE) {
            draft.producer_setting(PRODUCER_OVERRIDE, setting, text);
        } else if let Some((role, setting)) = converter_role(name) {
            draft.converter_setting(role, setting, text, raw_text(self.raw, role.class_key()));
        } else if let Some(rest) = name.strip_prefix(TOPIC_CREATION) {
            draft.topic_setting(rest, text);
        } else if let Some(refused) = refused {
            draft.refuse(name, refused, text);
        } else if let Some(kind) = self.kind {
            // Without a source, what is unknown may well be one of its keys: then only the class is at fault.
            match name.strip_prefix(kind.alias_prefix).and_then(|rest| rest.split_once('.')) {
                Some((alias, setting)) => self.take_table_key(draft, kind, name, (alias, setting), text),
                None => draft.unknown(name, self.candidates(kind).iter().map(String::as_str)),
            }
        }
    }

    fn take_table_key(&self, draft: &mut Draft<'_>, kind: &'static SourceKind, name: &str, (alias, setting): (&str, &str), text: &str) {
        if !self.aliases.iter().any(|known| known == alias) {
            let hint =
                nearest(alias, self.aliases.iter().map(String::as_str)).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let message = format!("is of the alias {alias}, which {} does not list{hint}", kind.tables_key);
            let fault = draft.values.fault_of_file(message).at(name).allowing(self.aliases.join(", "));
            return draft.faults.push(fault);
        }
        match kind.key(Scope::Table, setting) {
            Some(key) => draft.accept(name, key, text, None),
            None => draft.unknown(name, self.candidates(kind).iter().map(String::as_str)),
        }
    }

    /// Every key that the document could have meant.
    fn candidates(&self, kind: &SourceKind) -> Vec<String> {
        let of_kind = |scope| kind.keys.iter().filter(move |key| key.scope == scope);
        let of_tables = self
            .aliases
            .iter()
            .flat_map(|alias| of_kind(Scope::Table).map(move |key| format!("{}{alias}.{}", kind.alias_prefix, key.name)));
        let of_producer = producer::names().map(|name| format!("{PRODUCER_OVERRIDE}{name}"));
        framework_keys()
            .chain(of_kind(Scope::Connector))
            .map(|key| key.name.to_owned())
            .chain(["name".to_owned()])
            .chain(of_tables)
            .chain(of_producer)
            .collect()
    }
}

/// The keys that a connector of any source has.
fn framework_keys() -> impl Iterator<Item = &'static Key> {
    CONNECTOR_KEYS.iter().chain(CLASS_KEYS).chain([&topics::GROUPS_KEY])
}
