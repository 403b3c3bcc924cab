//! The definition of a key: everything that is known about it, once.
//!
//! Parsing, validation, the suggestion for a misspelt key and the reference page all read the same static tables of [`Key`]. A key
//! that is not in a table does not exist; a key that is in a table is documented. That is why a definition is data and not code,
//! and why a source registers a [`SourceKind`] and no more.

use super::{Env, Faults, Values};
use crate::cursor::Position;

/// One key of a document.
#[derive(Debug)]
pub struct Key {
    /// The name; for [`Scope::Table`] and [`Scope::Group`] the part after the alias or group.
    pub name: &'static str,
    /// Where the key stands.
    pub scope: Scope,
    /// The type, with its limits.
    pub kind: Kind,
    /// The value when the document does not give one.
    pub default: Fallback,
    /// What the key does, for the reference.
    pub doc: &'static str,
    /// Whether the value decides the shape of the document, so that it cannot come from a placeholder.
    pub structural: bool,
    /// Whether the value must stay out of logs, errors and `Debug` although it is no plain password.
    pub sensitive: bool,
}

/// Where a key stands in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In `worker.json`.
    Worker,
    /// In a connector's document, by its own name.
    Connector,
    /// In a connector's document, below the alias of a table.
    Table,
    /// A setting of the Kafka producer, below `producer.` or `producer.override.`.
    Producer,
    /// A setting of a converter, below `key.converter.` or `value.converter.`.
    Converter,
    /// Below `topic.creation.<group>.`.
    Group,
}

/// The value of a key that a document leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// There is none: the document must give it.
    Required,
    /// Absent means absent.
    None,
    /// This text, as if it had been given.
    Text(&'static str),
    /// What the connector's key of this name says.
    Inherits(&'static str),
}

/// A type of value that one source needs and the others do not.
#[derive(Debug)]
pub struct Shape {
    /// The type's name in the reference.
    pub name: &'static str,
    /// The accepted values, in words.
    pub allowed: &'static str,
    /// Says what is wrong with a text, without repeating it.
    pub check: fn(&str) -> Result<(), String>,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text that is not blank.
    Text,
    /// A text that is never shown.
    Password,
    /// A whole number within limits, with its unit for the reference.
    Integer {
        /// The smallest value.
        min: i64,
        /// The largest value.
        max: i64,
        /// The unit, such as `ms`; empty for a bare number.
        unit: &'static str,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these, in any case.
    Choice(&'static [&'static str]),
    /// Aliases, separated by commas.
    Aliases,
    /// An `http` or `https` address of a host, without path, query or credentials.
    Url,
    /// An `http` or `https` address without credentials.
    Endpoint,
    /// `yyyy-MM-dd HH:mm:ss`, UTC.
    Timestamp,
    /// A host name or address.
    Host,
    /// The path of a local file.
    Path,
    /// The name of a Kafka topic.
    Topic,
    /// A type of one source.
    Shaped(&'static Shape),
}

/// How a source registers itself: its names, its keys, and the checks that need several keys at once.
///
/// The loader is handed a list of these and knows no source by name.
#[derive(Debug)]
pub struct SourceKind {
    /// The short name, itself a valid `connector.class`.
    pub name: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Further accepted values of `connector.class`.
    pub classes: &'static [&'static str],
    /// The key that lists the aliases.
    pub tables_key: &'static str,
    /// What stands before an alias, such as `snow.table.`.
    pub alias_prefix: &'static str,
    /// The source's keys, of scope connector and table.
    pub keys: &'static [Key],
    /// Checks that need several values; a value that is still a placeholder is absent from them.
    pub check: fn(&Values, Env<'_>, &mut Faults),
    /// The key that says what a row does that is larger than the sink takes: `fail` or `skip`.
    pub oversize_key: &'static str,
    /// The key that says what shape record values have; `schemaless` is the one without a schema.
    pub schema_mode_key: &'static str,
    /// Its cursors, as far as they can be told without contacting anything.
    pub cursors: CursorRules,
    /// What the reference says of the source beside its keys, in Markdown: what counts and is no key. Empty for nothing.
    pub note: &'static str,
}

/// What a source tells of its cursors without contacting anything: for operators' commands, which may run where no
/// secret may be read.
#[derive(Debug)]
pub struct CursorRules {
    /// What the documents say of the identity of an alias's cursor. The look-up gives a key's value, if no unread
    /// placeholder hides it.
    pub identity: fn(&Values, alias: &str, known: Lookup<'_>) -> KnownIdentity,
    /// Reads a position that a person typed, or says what would be one.
    pub read: fn(&str) -> Result<Position, String>,
    /// Whether a stored position is one of this source's.
    pub is_position: fn(&Position) -> bool,
    /// Whether the second position lies after the first, or that cannot be told: then the caller must be as careful as
    /// if it did.
    pub is_forward: fn(&Position, &Position) -> bool,
    /// Where a table begins that has no cursor, and the key that says so, if the documents tell it as a position.
    pub start: fn(&Values, alias: &str) -> Option<(String, Position)>,
    /// What a person should know of a cursor that is set to this position at a time in epoch milliseconds, after "it": that it
    /// lies in the future.
    pub in_future: fn(&Position, now_ms: i64) -> Option<String>,
    /// What a table does after its cursor was reset, after the words "starts anew".
    pub after_reset: &'static str,
    /// Whether a table's schema is compared with a baseline beside its cursor.
    pub has_baseline: bool,
}

/// A look-up of the value of a key.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What is known of a cursor's identity beyond connector, alias, source and table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownIdentity {
    /// The instance.
    pub instance: Option<String>,
    /// The table, where it is written in another form than in the documents.
    pub table: Option<String>,
    /// The field that orders the rows.
    pub field: Option<String>,
    /// The field that breaks ties.
    pub id_field: Option<String>,
    /// What chooses the rows.
    pub fingerprint: Option<String>,
}

impl SourceKind {
    /// Whether a `connector.class` means this source.
    pub fn answers_to(&self, class: &str) -> bool {
        class == self.name || self.classes.contains(&class)
    }

    /// The source's key of this scope and name.
    pub fn key(&self, scope: Scope, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.scope == scope && key.name == name)
    }
}

impl Key {
    /// A key of a connector that may be left out.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Key {
        Key { name, scope: Scope::Connector, kind, default: Fallback::None, doc, structural: false, sensitive: false }
    }

    /// A key below the alias of a table.
    pub const fn of_table(name: &'static str, kind: Kind, doc: &'static str) -> Key {
        Key::new(name, kind, doc).scope(Scope::Table)
    }

    /// Moves the key elsewhere.
    #[must_use]
    pub const fn scope(mut self, scope: Scope) -> Key {
        self.scope = scope;
        self
    }

    /// The document must give it.
    #[must_use]
    pub const fn required(mut self) -> Key {
        self.default = Fallback::Required;
        self
    }

    /// Sets the default.
    #[must_use]
    pub const fn or(mut self, default: &'static str) -> Key {
        self.default = Fallback::Text(default);
        self
    }

    /// The default is what the connector's key of this name says.
    #[must_use]
    pub const fn or_of(mut self, key: &'static str) -> Key {
        self.default = Fallback::Inherits(key);
        self
    }

    /// The value decides the document's shape: a placeholder is refused.
    #[must_use]
    pub const fn structural(mut self) -> Key {
        self.structural = true;
        self
    }

    /// The value is kept out of every output.
    #[must_use]
    pub const fn sensitive(mut self) -> Key {
        self.sensitive = true;
        self
    }

    /// Whether the value must never be shown.
    pub fn is_secret(&self) -> bool {
        self.sensitive || matches!(self.kind, Kind::Password)
    }
}
