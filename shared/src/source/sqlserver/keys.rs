//! The keys of the SQL Server source, and the struct that they are read into.
//!
//! An administrator bounds how often anybody may poll by an environment variable. It reaches the checks through the
//! environment that the loader is handed, so that the same documents are judged the same way on a laptop and in a test.

use crate::config::{Env, Faults, Key, Kind, Shape, SourceKind, Values};

mod settings;

pub use settings::{Encrypt, Intent, Oversize, ReadMode, SchemaMode, SqlServer, Start, Table, TableName};

/// The variable with the smallest allowed poll interval, in seconds.
pub const MIN_INTERVAL: &str = "SP_MSSQL_POLLING_MIN_INTERVAL_SECONDS";
/// The port of a server that is not told otherwise.
const DEFAULT_PORT: u16 = 1433;
/// The smallest allowed poll interval when the variable is not set.
const DEFAULT_MIN_INTERVAL_SECONDS: u32 = 1;

/// The source's registration.
pub static SOURCE: SourceKind = SourceKind {
    name: "sqlserver",
    title: "SQL Server",
    classes: &[],
    tables_key: "mssql.tables",
    alias_prefix: "mssql.table.",
    keys: KEYS,
    check,
    oversize_key: "mssql.oversize.row.behavior",
    schema_mode_key: "mssql.schema.mode",
    cursors: super::position::RULES,
    note: "The environment variable `SP_MSSQL_POLLING_MIN_INTERVAL_SECONDS` (a whole number of seconds; 1 unless it is set) is the administrator's bound: \
           documents in which a table has a smaller `poll.interval.ms` are refused, by `tablesweep` as by the functions. In what `template.yaml` deploys it is \
           the parameter `SqlServerMinIntervalSeconds`.",
};

static TABLE: Shape = Shape {
    name: "schema.table",
    allowed: "schema.table, each part bare or in brackets ([a]]b] for a]b)",
    check: |text| match TableName::parse(text) {
        Some(_) => Ok(()),
        None => Err("is not schema.table".into()),
    },
};

/// The longest identifier of SQL Server, in UTF-16 units.
const LONGEST_IDENTIFIER: usize = 128;

static COLUMN: Shape = Shape {
    name: "column",
    allowed: "a column's name as the table spells it, without brackets",
    check: |text| {
        if text.is_empty() || text.chars().any(char::is_control) {
            Err("is no column's name".into())
        } else if text.encode_utf16().count() > LONGEST_IDENTIFIER {
            Err(format!("is longer than SQL Server's {LONGEST_IDENTIFIER} characters"))
        } else {
            Ok(())
        }
    },
};

static START: Shape = Shape {
    name: "start",
    allowed: "latest, earliest, or a whole number of up to 38 digits; rows above it are read",
    check: |text| match Start::parse(text) {
        Some(_) => Ok(()),
        None => Err("is neither latest nor earliest nor a whole number".into()),
    },
};

static ZONE: Shape = Shape {
    name: "time zone",
    allowed: "a name of the IANA time zone database, such as Europe/Berlin; empty means UTC",
    check: |text| match settings::zone(text) {
        Some(_) => Ok(()),
        None => Err("is no time zone of the IANA database".into()),
    },
};

const I32: i64 = i32::MAX as i64;

/// A packet is one TLS record, whose 16 KiB SQL Server keeps to: it cuts connections with larger packets at the first long statement.
/// No mode rules encryption out, so this holds for all.
/// https://learn.microsoft.com/sql/database-engine/configure-windows/configure-the-network-packet-size-server-configuration-option;
/// https://github.com/dotnet/SqlClient/issues/69
const LARGEST_PACKET: i64 = 16_383;

const fn millis(min: i64) -> Kind {
    Kind::Integer { min, max: I32, unit: "ms" }
}

const fn count(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max, unit: "" }
}

static KEYS: &[Key] = &[
    Key::new("mssql.host", Kind::Host, "The server.").required(),
    Key::new("mssql.port", count(1, 65_535), "Its port.").or("1433"),
    Key::new("mssql.database", Kind::Text, "The database.").required(),
    Key::new("mssql.user", Kind::Text, "The login.").required(),
    Key::new("mssql.password", Kind::Password, "The login's password.").required(),
    Key::new(
        "mssql.encrypt",
        Kind::Choice(&["mandatory", "optional", "strict"]),
        "Whether everything is encrypted, or only if the server can (then with a warning), or from the first byte on (TDS 8.0).",
    )
    .or("mandatory"),
    Key::new("mssql.trust.server.certificate", Kind::Boolean, "Whether any certificate of the server is good enough.").or("false"),
    Key::new("mssql.tls.ca.path", Kind::Path, "Certificates (PEM) to trust beside those of the system."),
    Key::new("mssql.timezone", Kind::Shaped(&ZONE), "The zone of dates and times that carry none.").or("UTC"),
    Key::new(
        "mssql.login.timeout.ms",
        millis(1),
        "The longest wait for a connection that is signed in, name look-up and redirect included.",
    )
    .or("15000"),
    Key::new("mssql.query.timeout.ms", millis(1), "The longest wait for the whole answer to a statement.").or("30000"),
    Key::new("mssql.emit.envelope", Kind::Boolean, "Whether values are wrapped in before, after, source, op and ts_ms.").or("false"),
    Key::new("mssql.schema.mode", Kind::Choice(&["schemaless", "typed"]), "The shape of record values.").or("schemaless"),
    Key::new("mssql.decimal.as.string", Kind::Boolean, "Whether decimals and money are texts, for readers that would round numbers.")
        .or("false"),
    Key::new(
        "mssql.read.mode",
        Kind::Choice(&["plain", "locking"]),
        "Whether a read waits for rows that are being written (READCOMMITTEDLOCK), so that none that becomes visible late is passed over.",
    )
    .or("plain"),
    Key::new("mssql.application.intent", Kind::Choice(&["readwrite", "readonly"]), "What an availability group routes by.").or("readwrite"),
    Key::new(
        "mssql.packet.size",
        Kind::Integer { min: 512, max: LARGEST_PACKET, unit: "bytes" },
        "The size of network packets to ask for; the server may settle for less. In an encrypted connection it takes no more than 16383.",
    )
    .or("8000"),
    Key::new(
        "mssql.audit.interval.ms",
        millis(1000),
        "How often rows behind the cursor are counted, to find ones that became visible late; never when absent.",
    ),
    Key::new(
        "mssql.oversize.row.behavior",
        Kind::Choice(&["fail", "skip"]),
        "What a row does that is larger than Kafka takes: fail the table, or be skipped, counted and logged.",
    )
    .or("fail"),
    Key::new("mssql.tables", Kind::Aliases, "The aliases of the tables, each with its own keys below.").required().structural(),
    Key::of_table("name", Kind::Shaped(&TABLE), "The table.").required(),
    Key::of_table("topic", Kind::Topic, "The topic.").required(),
    Key::of_table("sequence.column", Kind::Shaped(&COLUMN), "The unique, ever growing whole number that rows are read by.").required(),
    Key::of_table(
        "start",
        Kind::Shaped(&START),
        "Where to begin while there is no cursor: after the rows of now, with the first row, or above a number.",
    )
    .or("latest"),
    Key::of_table("batch.size", count(1, 100_000), "Rows per statement.").or("500"),
    Key::of_table(
        "max.rows.per.poll",
        count(1, I32),
        "Rows per connection; at least one batch. A sweep goes on with another connection until it is caught up.",
    )
    .or("10000"),
    Key::of_table("poll.interval.ms", millis(1), "How often a table that is caught up is looked at.").or("5000"),
];

/// The name of a server and its database: what a cursor belongs to. Two ports are two servers.
pub(super) fn instance(host: &str, port: u16, database: &str) -> String {
    let host = host.to_ascii_lowercase();
    if port == DEFAULT_PORT { format!("{host}/{database}") } else { format!("{host}:{port}/{database}") }
}

/// The key of a table's setting.
fn of(alias: &str, setting: &str) -> String {
    format!("{}{alias}.{setting}", SOURCE.alias_prefix)
}

fn check(values: &Values, env: Env<'_>, faults: &mut Faults) {
    check_connection(values, faults);
    let smallest = min_interval_seconds(values, env, faults);
    for alias in values.aliases() {
        let (batch, most) = (of(alias, "batch.size"), of(alias, "max.rows.per.poll"));
        if let (Some(rows), Some(limit)) = (values.integer(&batch), values.integer(&most))
            && limit < rows
        {
            faults.push(values.fault(&most, format!("is {limit} and so below {batch}, which is {rows}")));
        }
        let interval = of(alias, "poll.interval.ms");
        if let Some(millis) = values.integer(&interval).filter(|millis| *millis < i64::from(smallest) * 1000) {
            let message = format!(
                "is {millis} ms, below the smallest allowed interval of {} ms ({MIN_INTERVAL}={smallest})",
                i64::from(smallest) * 1000
            );
            faults.push(values.fault(&interval, message));
        }
    }
    check_doubles(values, faults);
}

fn check_connection(values: &Values, faults: &mut Faults) {
    let trust = "mssql.trust.server.certificate";
    if values.boolean(trust) == Some(true) {
        if values.is_set("mssql.tls.ca.path") {
            faults.push(values.fault(trust, "contradicts mssql.tls.ca.path: either any certificate is trusted or those are"));
        } else if values.choice("mssql.encrypt") == Some("strict") {
            faults.push(values.fault(trust, "contradicts mssql.encrypt=strict, which always verifies the certificate"));
        } else {
            faults.warn(values.fault(trust, "is true: nobody verifies who answers; give the certificate with mssql.tls.ca.path"));
        }
    }
    if values.choice("mssql.read.mode") == Some("locking") && values.choice("mssql.application.intent") == Some("readonly") {
        let message = "is locking, which protects nothing on a secondary, and mssql.application.intent=readonly asks for one: its readers wait for nobody";
        faults.warn(values.fault("mssql.read.mode", message));
    }
    if values.choice("mssql.encrypt") == Some("optional") {
        faults.warn(values.fault("mssql.encrypt", "is optional: rows may cross the network in clear"));
    }
}

/// The administrator's bound. A value that cannot be read is a fault: to guess would lift the bound.
fn min_interval_seconds(values: &Values, env: Env<'_>, faults: &mut Faults) -> u32 {
    let Some(text) = env(MIN_INTERVAL) else {
        return DEFAULT_MIN_INTERVAL_SECONDS;
    };
    text.trim().parse().unwrap_or_else(|_| {
        let message = format!("the environment variable {MIN_INTERVAL} is no whole number of seconds");
        faults.push(values.fault_of_file(message).given(Some(text.clone())));
        DEFAULT_MIN_INTERVAL_SECONDS
    })
}

/// Two aliases with one cursor would overwrite each other's position.
fn check_doubles(values: &Values, faults: &mut Faults) {
    let cursor = |alias: &str| {
        let table = TableName::parse(values.text(&of(alias, "name"))?)?;
        Some((table, values.text(&of(alias, "sequence.column"))?.to_owned()))
    };
    let aliases = values.aliases();
    for (at, alias) in aliases.iter().enumerate() {
        let Some(own) = cursor(alias) else { continue };
        if let Some(first) = aliases[..at].iter().find(|other| cursor(other).as_ref() == Some(&own)) {
            let message = format!(
                "makes table {alias} the same cursor as table {first} (same name and sequence.column); \
                 leave one out, or move it to a connector of its own"
            );
            faults.push(values.fault(&of(alias, "name"), message));
        }
    }
}
