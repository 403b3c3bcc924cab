//! The struct that the source works with, read from checked values.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use secrecy::SecretString;

use super::{LONGEST_IDENTIFIER, of};
use crate::config::{Faults, Reader, Values};

/// Everything that a connector's document says about its server and tables.
#[derive(Clone, Debug)]
pub struct SqlServer {
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The login.
    pub user: String,
    /// The login's password.
    pub password: SecretString,
    /// How much is encrypted.
    pub encrypt: Encrypt,
    /// Whether any certificate is good enough.
    pub trust_server_certificate: bool,
    /// Certificates (PEM) to trust beside those of the system.
    pub tls_ca_path: Option<String>,
    /// The zone of dates and times that carry none.
    pub timezone: TimeZone,
    /// The longest wait for connection and login.
    pub login_timeout: Duration,
    /// The longest wait for an answer to a statement.
    pub query_timeout: Duration,
    /// Whether values are wrapped in the envelope.
    pub emit_envelope: bool,
    /// The shape of record values.
    pub schema_mode: SchemaMode,
    /// Whether decimals and money are texts.
    pub decimal_as_string: bool,
    /// Whether reads wait for writers.
    pub read_mode: ReadMode,
    /// What an availability group routes by.
    pub application_intent: Intent,
    /// The size of network packets.
    pub packet_size: u16,
    /// How often rows behind the cursor are counted, if ever.
    pub audit_interval: Option<Duration>,
    /// What a row does that is larger than Kafka takes.
    pub oversize_row: Oversize,
    /// The tables in the order of their aliases.
    pub tables: Vec<Table>,
}

/// How much of the conversation is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encrypt {
    /// Everything after the first exchange.
    #[default]
    Mandatory,
    /// Everything, unless the server cannot.
    Optional,
    /// Everything, as TDS 8.0 does.
    Strict,
}

/// The shape of record values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// Plain JSON.
    #[default]
    Schemaless,
    /// With the columns' types.
    Typed,
}

impl SchemaMode {
    /// The mode's name, as keys and headers write it.
    pub fn name(self) -> &'static str {
        match self {
            SchemaMode::Schemaless => "schemaless",
            SchemaMode::Typed => "typed",
        }
    }
}

/// Whether reads wait for writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadMode {
    /// As the database is set up.
    #[default]
    Plain,
    /// They wait at rows that are being written.
    Locking,
}

/// What an availability group routes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Intent {
    /// The primary.
    #[default]
    ReadWrite,
    /// A readable secondary.
    ReadOnly,
}

/// What a row does that is larger than Kafka takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// It fails the table.
    #[default]
    Fail,
    /// It is skipped, counted and logged.
    Skip,
}

/// One table of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The alias.
    pub alias: String,
    /// The table.
    pub name: TableName,
    /// The topic.
    pub topic: String,
    /// The column that rows are read by.
    pub sequence_column: String,
    /// Where to begin while there is no cursor.
    pub start: Start,
    /// Rows per statement.
    pub batch_size: u32,
    /// Rows per connection.
    pub max_rows_per_poll: u32,
    /// How often the table is looked at when it is caught up.
    pub poll_interval: Duration,
}

/// A schema and a table, unquoted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
}

impl TableName {
    /// Reads `schema.table`; a part in brackets may hold anything, with `]]` for `]`.
    pub fn parse(text: &str) -> Option<TableName> {
        let (schema, rest) = part(text)?;
        let (table, rest) = part(rest.strip_prefix('.')?)?;
        rest.is_empty().then_some(TableName { schema, table })
    }
}

/// The unquoted form, for messages, headers and cursor keys.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.table)
    }
}

/// Takes one identifier off the front.
fn part(text: &str) -> Option<(String, &str)> {
    let (name, rest) = match text.strip_prefix('[') {
        None => {
            let end = text.find('.').unwrap_or(text.len());
            (text[..end].to_owned(), &text[end..])
        }
        Some(inner) => {
            let mut name = String::new();
            let mut rest = inner;
            loop {
                let end = rest.find(']')?;
                name.push_str(&rest[..end]);
                rest = &rest[end + 1..];
                match rest.strip_prefix(']') {
                    Some(after) => {
                        name.push(']');
                        rest = after;
                    }
                    None => break (name, rest),
                }
            }
        }
    };
    let bare = !text.starts_with('[');
    let fits = !name.is_empty() && name.encode_utf16().count() <= LONGEST_IDENTIFIER;
    let odd = |c: char| c.is_control() || (bare && (c.is_whitespace() || matches!(c, '[' | ']' | '"' | '\'' | ';')));
    (fits && !name.chars().any(odd)).then_some((name, rest))
}

/// Where a table begins that has no cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// After the rows that are there when the table is activated.
    #[default]
    Latest,
    /// With the first row.
    Earliest,
    /// Above this number, as digits without a sign or zeros in front, but for a minus.
    After(String),
}

impl Start {
    /// Reads the key's text.
    pub fn parse(text: &str) -> Option<Start> {
        match text.to_ascii_lowercase().as_str() {
            "latest" => return Some(Start::Latest),
            "earliest" => return Some(Start::Earliest),
            _ => {}
        }
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = digits.trim_start_matches('0');
        match digits.len() {
            0 => Some(Start::After("0".to_owned())),
            1..=38 => Some(Start::After(format!("{sign}{digits}"))),
            _ => None,
        }
    }
}

/// Reads a time zone; blank means UTC.
pub(super) fn zone(text: &str) -> Option<TimeZone> {
    if text.is_empty() { Some(TimeZone::UTC) } else { TimeZone::get(text).ok() }
}

impl SqlServer {
    /// Reads resolved values. A value that is still a placeholder is a fault.
    pub fn read(values: &Values) -> Result<SqlServer, Faults> {
        let mut reader = Reader::new(values);
        let audit = reader.optional_integer("mssql.audit.interval.ms");
        let settings = SqlServer {
            host: reader.text("mssql.host"),
            port: reader.integer("mssql.port"),
            database: reader.text("mssql.database"),
            user: reader.text("mssql.user"),
            password: reader.secret("mssql.password"),
            encrypt: reader.choice("mssql.encrypt", |text| match text {
                "mandatory" => Some(Encrypt::Mandatory),
                "optional" => Some(Encrypt::Optional),
                "strict" => Some(Encrypt::Strict),
                _ => None,
            }),
            trust_server_certificate: reader.boolean("mssql.trust.server.certificate"),
            tls_ca_path: reader.optional("mssql.tls.ca.path"),
            timezone: reader.required("mssql.timezone", zone).unwrap_or(TimeZone::UTC),
            login_timeout: reader.millis("mssql.login.timeout.ms"),
            query_timeout: reader.millis("mssql.query.timeout.ms"),
            emit_envelope: reader.boolean("mssql.emit.envelope"),
            schema_mode: reader.choice("mssql.schema.mode", |text| match text {
                "schemaless" => Some(SchemaMode::Schemaless),
                "typed" => Some(SchemaMode::Typed),
                _ => None,
            }),
            decimal_as_string: reader.boolean("mssql.decimal.as.string"),
            read_mode: reader.choice("mssql.read.mode", |text| match text {
                "plain" => Some(ReadMode::Plain),
                "locking" => Some(ReadMode::Locking),
                _ => None,
            }),
            application_intent: reader.choice("mssql.application.intent", |text| match text {
                "readwrite" => Some(Intent::ReadWrite),
                "readonly" => Some(Intent::ReadOnly),
                _ => None,
            }),
            packet_size: reader.integer("mssql.packet.size"),
            audit_interval: audit.map(Duration::from_millis),
            oversize_row: reader.choice("mssql.oversize.row.behavior", |text| match text {
                "fail" => Some(Oversize::Fail),
                "skip" => Some(Oversize::Skip),
                _ => None,
            }),
            tables: values.aliases().iter().map(|alias| table(&mut reader, alias)).collect(),
        };
        reader.finish(settings)
    }
}

fn table(reader: &mut Reader<'_>, alias: &str) -> Table {
    let key = |setting| of(alias, setting);
    Table {
        alias: alias.to_owned(),
        name: reader.required(&key("name"), TableName::parse).unwrap_or_default(),
        topic: reader.text(&key("topic")),
        sequence_column: reader.text(&key("sequence.column")),
        start: reader.required(&key("start"), Start::parse).unwrap_or_default(),
        batch_size: reader.integer(&key("batch.size")),
        max_rows_per_poll: reader.integer(&key("max.rows.per.poll")),
        poll_interval: reader.millis(&key("poll.interval.ms")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(schema: &str, table: &str) -> Option<TableName> {
        Some(TableName { schema: schema.into(), table: table.into() })
    }

    #[test]
    fn a_table_is_named_with_its_schema_bare_or_in_brackets() {
        assert_eq!(TableName::parse("dbo.orders"), name("dbo", "orders"));
        assert_eq!(TableName::parse("[dbo].[orders]"), name("dbo", "orders"));
        assert_eq!(TableName::parse("[a.b].[x ]] y]"), name("a.b", "x ] y"));
        for odd in ["orders", "a.b.c", "[dbo.orders", ".orders", "dbo.", "[].x", "dbo.or ders", "dbo.x;drop", "[dbo]orders"] {
            assert_eq!(TableName::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_start_beyond_64_bits_keeps_its_digits() {
        assert_eq!(Start::parse("9223372036854775809"), Some(Start::After("9223372036854775809".into())));
        assert_eq!(Start::parse("007"), Some(Start::After("7".into())));
        assert_eq!(Start::parse("-0"), Some(Start::After("0".into())));
        assert_eq!(Start::parse("-12"), Some(Start::After("-12".into())));
        assert_eq!(Start::parse("LATEST"), Some(Start::Latest));
        for odd in ["", "-", "1.5", "+1", "1e3", &"9".repeat(39)] {
            assert_eq!(Start::parse(odd), None, "{odd}");
        }
    }
}
