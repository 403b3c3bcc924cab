//! The keys of the ServiceNow source, and the struct that they are read into.
//!
//! Names and defaults are those of the ServiceNow source connector for Kafka Connect, so that its documents run here as
//! they are. The checks below are the ones that need more than one key, or that know what an encoded query is.

use super::http::LONGEST_ADDRESS;
use crate::config::{Env, Faults, Key, Kind, Shape, SourceKind, Values};
use url::form_urlencoded::byte_serialize;

mod connection;
mod query;
mod settings;

pub use connection::{Assertion, Auth, Grant, Http, Oauth, Proxy, Retry, Tls};
pub(super) use query::fields as query_fields;
pub use query::normalised_query;
pub use settings::{BadRow, DisplayValue, SchemaMode, ServiceNow, Table};

/// The source's registration.
pub static SOURCE: SourceKind = SourceKind {
    name: "servicenow",
    title: "ServiceNow",
    classes: &["sh.oso.servicenow.source.ServiceNowSourceConnector"],
    tables_key: "snow.tables",
    alias_prefix: "snow.table.",
    keys: KEYS,
    check,
    oversize_key: "snow.source.oversize.row.behavior",
    schema_mode_key: "snow.source.schema.mode",
    note: "",
    cursors: super::position::RULES,
};

/// A field's name. Views prefix it, scopes prefix it, and a dot walks to a field of a referenced row.
static FIELD: Shape = Shape {
    name: "field",
    allowed: "a field's name: letters, digits, _, $ and . for fields of referenced rows",
    check: |text| {
        if is_field(text) { Ok(()) } else { Err("is no field's name".into()) }
    },
};

static FIELDS: Shape = Shape {
    name: "list of fields",
    allowed: "fields' names separated by commas",
    check: |text| {
        if text.is_empty() || text.split(',').map(str::trim).all(is_field) {
            Ok(())
        } else {
            Err("has an entry that is no field's name".into())
        }
    },
};

static TABLE: Shape = Shape {
    name: "table",
    allowed: "the name (not the label) of a table or view: letters, digits and _",
    check: |text| {
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            Ok(())
        } else {
            Err("is no table's name; the name is what stands in the URL, such as incident".into())
        }
    },
};

static QUERY: Shape =
    Shape { name: "encoded query", allowed: "an encoded query without ORDERBY, as the list's filter copies it", check: query::check };

/// May be empty, unlike other texts: that is the connector's own default for it.
static CATEGORY: Shape = Shape { name: "text", allowed: "the name of a query category", check: |_| Ok(()) };

static TYPED_FIELDS: Shape = Shape {
    name: "list of field:type",
    allowed: "field:type separated by commas; types: string, int8, int16, int32, int64, float32, float64, boolean, bytes, \
              timestamp, date, time, decimal(scale) with a scale of up to 38",
    check: |text| settings::typed_fields(text).map(drop),
};

const I32: i64 = i32::MAX as i64;

const fn millis(min: i64) -> Kind {
    Kind::Integer { min, max: I32, unit: "ms" }
}

const fn seconds(max: i64) -> Kind {
    Kind::Integer { min: 0, max, unit: "s" }
}

const fn count(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max, unit: "" }
}

const STORES: Kind = Kind::Choice(&["JKS", "PKCS12", "PEM"]);
const BAD_ROW: Kind = Kind::Choice(&["fail", "skip"]);

static KEYS: &[Key] = &[
    Key::new("snow.url", Kind::Url, "The instance. Its host, in lower case, is the instance's identity in cursors and headers.").required(),
    Key::new("snow.tables", Kind::Aliases, "The aliases of the tables, each with its own keys below.").required().structural(),
    // Authentication
    Key::new(
        "snow.auth.type",
        Kind::Choice(&["basic", "oauth2", "api_key", "certificate"]),
        "How to sign in. A client certificate (snow.tls.keystore.*) may go with each of them; `certificate` is that alone.",
    )
    .or("basic"),
    Key::new("snow.auth.username", Kind::Text, "The user, for `basic` and for the grant `password`."),
    Key::new("snow.auth.password", Kind::Password, "The user's password."),
    Key::new("snow.auth.api.key", Kind::Shaped(&connection::API_KEY), "The key for `api_key`, sent as x-sn-apikey.").sensitive(),
    Key::new(
        "snow.oauth.grant.type",
        Kind::Choice(&["client_credentials", "password", "refresh_token", "jwt_bearer"]),
        "The grant, for `oauth2`.",
    )
    .or("client_credentials"),
    Key::new("snow.oauth.client.id", Kind::Text, "The OAuth client."),
    Key::new("snow.oauth.client.secret", Kind::Password, "The OAuth client's secret; `jwt_bearer` may do without."),
    Key::new("snow.oauth.scope", Kind::Text, "The scope to ask for."),
    Key::new("snow.oauth.token.url", Kind::Endpoint, "Where tokens are issued; by default /oauth_token.do of the instance."),
    Key::new(
        "snow.oauth.refresh.token",
        Kind::Password,
        "The refresh token, for `refresh_token`. One that the instance gives in exchange is used from then on, by this process only.",
    ),
    Key::new(
        "snow.oauth.jwt.private.key",
        Kind::Shaped(&connection::SIGNING_KEY),
        "The key that signs (RS256), for `jwt_bearer`; the text itself, so from a placeholder.",
    )
    .sensitive(),
    Key::new("snow.oauth.jwt.key.id", Kind::Text, "The `kid` under which the instance knows the key's certificate."),
    Key::new(
        "snow.oauth.jwt.subject",
        Kind::Text,
        "`sub`: the user, by the field that the instance maps it to, such as the e-mail address.",
    ),
    Key::new("snow.oauth.jwt.issuer", Kind::Text, "`iss`; by default the client's id."),
    Key::new("snow.oauth.jwt.audience", Kind::Text, "`aud`; by default the client's id, as instances expect it."),
    Key::new("snow.oauth.jwt.lifetime.seconds", Kind::Integer { min: 30, max: 3600, unit: "s" }, "How long an assertion is valid.")
        .or("300"),
    // Connection
    Key::new("snow.http.max.concurrent.requests", count(1, 1000), "The most requests at a time, over all tables of a process.").or("8"),
    Key::new("snow.http.connect.timeout.ms", millis(1), "The longest wait for a connection.").or("10000"),
    Key::new("snow.http.request.timeout.ms", millis(1), "The longest wait for an answer, body included.").or("60000"),
    Key::new(
        "snow.http.proxy.url",
        Kind::Url,
        "The proxy to go through, for tokens too. Without it requests go straight: variables such as HTTPS_PROXY are not looked at.",
    ),
    Key::new("snow.http.proxy.username", Kind::Text, "The user at the proxy."),
    Key::new("snow.http.proxy.password", Kind::Password, "The password at the proxy."),
    Key::new(
        "snow.http.max.response.bytes",
        count(1024, I32),
        "The largest answer, after decompression; a larger page is asked again smaller.",
    )
    .or("67108864"),
    Key::new(
        "snow.http.user.agent",
        Kind::Shaped(&connection::USER_AGENT),
        "The User-Agent header; by default this program and its version.",
    ),
    Key::new("snow.http.adaptive.throttling", Kind::Boolean, "Whether a 429 halves the number of concurrent requests for a while.")
        .or("true"),
    Key::new("snow.retry.max.attempts", count(1, 100), "The most attempts at one request.").or("5"),
    Key::new("snow.retry.max.elapsed.ms", millis(0), "The longest time for all attempts at one request.").or("300000"),
    Key::new("snow.retry.initial.backoff.ms", millis(1), "The first wait; each further one may be twice as long, and all are jittered.")
        .or("500"),
    Key::new("snow.retry.max.backoff.ms", millis(1), "The longest wait that is not the instance's own Retry-After.").or("30000"),
    Key::new(
        "snow.tls.truststore.path",
        Kind::Path,
        "Certificates of the authorities to trust, instead of the system's. PEM or PKCS12; JKS is refused with the command that converts it.",
    ),
    Key::new("snow.tls.truststore.password", Kind::Password, "The trust store's password."),
    Key::new(
        "snow.tls.truststore.type",
        STORES,
        "Accepted for compatibility: the file's content says what it is. A type that contradicts it (PEM or not) is an error.",
    )
    .or("JKS"),
    Key::new(
        "snow.tls.keystore.path",
        Kind::Path,
        "The client certificate with its chain and its key. PEM or PKCS12; JKS is refused with the command that converts it.",
    ),
    Key::new("snow.tls.keystore.password", Kind::Password, "The key store's password, or that of an encrypted key in PEM."),
    Key::new("snow.tls.keystore.type", STORES, "As the trust store's.").or("JKS"),
    // The sweep
    Key::new("snow.source.schema.mode", Kind::Choice(&["schemaless", "strings", "typed"]), "The shape of record values.")
        .or("schemaless"),
    Key::new("snow.source.poll.interval.ms", millis(1), "How often a table that is caught up is looked at.").or("5000"),
    Key::new("snow.source.batch.size", count(1, 50_000), "Rows per request.").or("5000"),
    Key::new(
        "snow.source.overlap.seconds",
        seconds(86_400),
        "How far behind the cursor rows are read again, for those that were committed late.",
    )
    .or("2"),
    Key::new("snow.source.safety.lag.seconds", seconds(86_400), "How far behind the instance's clock a sweep ends.").or("1"),
    Key::new("snow.source.dedup.window.records", count(0, 10_000_000), "How many delivered row versions are remembered per table.")
        .or("50000"),
    Key::new("snow.source.emit.envelope", Kind::Boolean, "Whether values are wrapped in before, after, source, op and ts_ms.").or("false"),
    Key::new(
        "snow.source.schema.evolution",
        Kind::Choice(&["fail", "backward", "permissive"]),
        "What a field without a type does in mode `typed`, and a value that does not fit its type: fail the table; `backward` appends \
         the field as an optional string; `permissive` leaves the field out and sends null for the value.",
    )
    .or("fail"),
    Key::new("snow.source.typed.fields", Kind::Shaped(&TYPED_FIELDS), "The fields and their types, for mode `typed`.").or(""),
    Key::new(
        "snow.source.bad.row.behavior",
        BAD_ROW,
        "What a row without a readable cursor does: fail the table, or be skipped, counted and logged.",
    )
    .or("fail"),
    Key::new(
        "snow.source.oversize.row.behavior",
        BAD_ROW,
        "What a row does that is larger than Kafka takes: fail the table, or be skipped, counted and logged.",
    )
    .or("fail"),
    Key::new("snow.source.startup.probe", Kind::Boolean, "Whether access and cursor of each table are tried before its first sweep.")
        .or("true"),
    // Tables
    Key::of_table("name", Kind::Shaped(&TABLE), "The table or view.").required(),
    Key::of_table("topic", Kind::Topic, "The topic.").required(),
    Key::of_table("start.timestamp", Kind::Timestamp, "Where to begin while there is no cursor.").or("1970-01-01 00:00:00"),
    Key::of_table(
        "timestamp.field",
        Kind::Shaped(&FIELD),
        "The cursor's time: sys_created_on for tables that only grow; prefixed in views.",
    )
    .or("sys_updated_on"),
    Key::of_table("sys.id.field", Kind::Shaped(&FIELD), "The cursor's identity and the record's key; prefixed in views.").or("sys_id"),
    Key::of_table("query", Kind::Shaped(&QUERY), "Which rows. A changed query is a new cursor.").or(""),
    Key::of_table(
        "fields",
        Kind::Shaped(&FIELDS),
        "Which fields; all when empty. Must hold the cursor's fields; sys_mod_count is added, in views with their prefix, and is in the records.",
    )
    .or(""),
    Key::of_table("display.value", Kind::Choice(&["false", "true", "all"]), "Raw values, display values, or both.").or("false"),
    Key::of_table("exclude.reference.link", Kind::Boolean, "Whether the links of references are left out.").or("true"),
    Key::of_table("query.domain", Kind::Boolean, "Whether rows are limited to the user's domain. A change is a new cursor.").or("true"),
    Key::of_table("query.category", Kind::Shaped(&CATEGORY), "The query category, by which an instance may choose a read replica.").or(""),
    Key::of_table("batch.size", count(1, 50_000), "Rows per request of this table.").or_of("snow.source.batch.size"),
    Key::of_table("poll.interval.ms", millis(1), "How often this table is looked at when it is caught up.")
        .or_of("snow.source.poll.interval.ms"),
];

fn is_field(text: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    text.split('.').all(part)
}

/// The key of a table's setting.
pub(super) fn of(alias: &str, setting: &str) -> String {
    format!("{}{alias}.{setting}", SOURCE.alias_prefix)
}

fn check(values: &Values, _env: Env<'_>, faults: &mut Faults) {
    connection::check(values, faults);
    if values.choice("snow.source.schema.mode") == Some("typed") && values.text("snow.source.typed.fields") == Some("") {
        faults.push(values.fault("snow.source.typed.fields", "is required when snow.source.schema.mode is typed"));
    }
    for alias in values.aliases() {
        check_fields(values, alias, faults);
        check_address(values, alias, faults);
    }
    check_doubles(values, faults);
}

/// A projection without the cursor's fields would yield rows that nothing can resume from.
fn check_fields(values: &Values, alias: &str, faults: &mut Faults) {
    let (time, id) = (of(alias, "timestamp.field"), of(alias, "sys.id.field"));
    if values.text(&time).is_some() && values.text(&time) == values.text(&id) {
        faults.push(values.fault(&time, format!("is the same field as {id}; the cursor needs a time and an identity")));
    }
    let key = of(alias, "fields");
    let Some(fields) = values.text(&key).filter(|fields| !fields.is_empty()) else {
        return;
    };
    let listed: Vec<&str> = fields.split(',').map(str::trim).collect();
    for cursor in [&id, &time] {
        if values.text(cursor).is_some_and(|field| !listed.contains(&field)) {
            let field = values.shown(cursor).unwrap_or_default();
            let message = format!("of table {alias} lacks {field}, which the cursor needs ({cursor}); add it");
            faults.push(values.fault(&key, message));
        }
    }
}

/// A request whose address is longer than any can be is never sent.
fn check_address(values: &Values, alias: &str, faults: &mut Faults) {
    let length = |key: &str| {
        let text = values.text(key).unwrap_or_default();
        (text.len(), byte_serialize(text.as_bytes()).map(str::len).sum::<usize>())
    };
    let (query, fields) = (of(alias, "query"), of(alias, "fields"));
    let ((typed, in_query), (_, in_fields)) = (length(&query), length(&fields));
    if in_query + in_fields > LONGEST_ADDRESS {
        let key = if in_query >= in_fields { &query } else { &fields };
        let message = format!(
            "makes the address of a request longer than any can be: query and fields alone take {} characters of the {LONGEST_ADDRESS}              (each ^, = and comma takes three; the query has {typed} as it is written). A saved filter or a database view on the instance takes              the place of a long query",
            in_query + in_fields
        );
        faults.push(values.fault_of_file(message).at(key));
    }
}

/// Two aliases with one cursor would overwrite each other's position.
fn check_doubles(values: &Values, faults: &mut Faults) {
    let cursor = |alias: &str| {
        Some((
            values.text(&of(alias, "name"))?.to_owned(),
            normalised_query(values.text(&of(alias, "query"))?).to_owned(),
            values.boolean(&of(alias, "query.domain"))?,
            values.text(&of(alias, "timestamp.field"))?.to_owned(),
        ))
    };
    let aliases = values.aliases();
    for (at, alias) in aliases.iter().enumerate() {
        let Some(own) = cursor(alias) else { continue };
        if let Some(first) = aliases[..at].iter().find(|other| cursor(other).as_ref() == Some(&own)) {
            let message = format!(
                "makes table {alias} the same cursor as table {first} (same name, query, query.domain and timestamp.field); \
                 leave one out, or move it to a connector of its own"
            );
            faults.push(values.fault(&of(alias, "name"), message));
        }
    }
}
