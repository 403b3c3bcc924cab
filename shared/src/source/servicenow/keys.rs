//! The keys of the ServiceNow source, and the struct that they are read into.
//!
//! Names and defaults are those of the ServiceNow source connector for Kafka Connect, so that its documents run here as
//! they are. The checks below are the ones that need more than one key, or that know what an encoded query is.

use crate::config::{Env, Faults, Key, Kind, NotYet, Shape, SourceKind, Values};

mod query;
mod settings;

pub use query::normalised_query;
pub use settings::{
    Auth, BadRow, DisplayValue, Http, OauthClient, Proxy, Retry, SchemaEvolution, SchemaMode, ServiceNow, Store, Table, Tls,
};

/// The source's registration.
pub static SOURCE: SourceKind = SourceKind {
    name: "servicenow",
    title: "ServiceNow",
    classes: &["sh.oso.servicenow.source.ServiceNowSourceConnector"],
    tables_key: "snow.tables",
    alias_prefix: "snow.table.",
    keys: KEYS,
    check,
    not_yet: None,
    oversize_key: "snow.source.oversize.row.behavior",
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
              timestamp, date, time, decimal(scale)",
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
    Key::new("snow.auth.type", Kind::Choice(&["basic", "oauth2"]), "How to sign in.").or("basic"),
    Key::new("snow.auth.username", Kind::Text, "The user, for `basic` and for the grant `password`."),
    Key::new("snow.auth.password", Kind::Password, "The user's password."),
    Key::new("snow.oauth.grant.type", Kind::Choice(&["client_credentials", "password"]), "The grant, for `oauth2`.")
        .or("client_credentials")
        .not_yet(&[NotYet { values: Some(&["password"]), what: "the grant `password`" }]),
    Key::new("snow.oauth.client.id", Kind::Text, "The OAuth client."),
    Key::new("snow.oauth.client.secret", Kind::Password, "The OAuth client's secret."),
    Key::new("snow.oauth.scope", Kind::Text, "The scope to ask for."),
    Key::new("snow.oauth.token.url", Kind::Endpoint, "Where tokens are issued; by default /oauth_token.do of the instance."),
    // Connection
    Key::new("snow.http.max.concurrent.requests", count(1, 1000), "The most requests at a time, over all tables of a process.").or("8"),
    Key::new("snow.http.connect.timeout.ms", millis(1), "The longest wait for a connection.").or("10000"),
    Key::new("snow.http.request.timeout.ms", millis(1), "The longest wait for an answer, body included.").or("60000"),
    Key::new("snow.http.proxy.url", Kind::Url, "The proxy to go through."),
    Key::new("snow.http.proxy.username", Kind::Text, "The user at the proxy."),
    Key::new("snow.http.proxy.password", Kind::Password, "The password at the proxy."),
    Key::new(
        "snow.http.max.response.bytes",
        count(1024, I32),
        "The largest answer, after decompression; a larger page is asked again smaller.",
    )
    .or("67108864"),
    Key::new("snow.http.user.agent", Kind::Text, "The User-Agent header; by default this program and its version."),
    Key::new("snow.http.adaptive.throttling", Kind::Boolean, "Whether a 429 halves the number of concurrent requests for a while.")
        .or("true"),
    Key::new("snow.retry.max.attempts", count(1, 100), "The most attempts at one request.").or("5"),
    Key::new("snow.retry.max.elapsed.ms", millis(0), "The longest time for all attempts at one request.").or("300000"),
    Key::new("snow.retry.initial.backoff.ms", millis(1), "The first wait; each further one may be twice as long, and all are jittered.")
        .or("500"),
    Key::new("snow.retry.max.backoff.ms", millis(1), "The longest wait that is not the instance's own Retry-After.").or("30000"),
    Key::new("snow.tls.truststore.path", Kind::Path, "Certificates to trust besides the public ones.")
        .not_yet(&[NotYet { values: None, what: "a trust store of its own" }]),
    Key::new("snow.tls.truststore.password", Kind::Password, "The trust store's password."),
    Key::new("snow.tls.truststore.type", STORES, "The trust store's type.").or("JKS"),
    Key::new("snow.tls.keystore.path", Kind::Path, "The client certificate with its key.")
        .not_yet(&[NotYet { values: None, what: "a client certificate" }]),
    Key::new("snow.tls.keystore.password", Kind::Password, "The key store's password."),
    Key::new("snow.tls.keystore.type", STORES, "The key store's type.").or("JKS"),
    // The sweep
    Key::new("snow.source.schema.mode", Kind::Choice(&["schemaless", "strings", "typed"]), "The shape of record values.")
        .or("schemaless")
        .not_yet(&[NotYet { values: Some(&["strings", "typed"]), what: "a schema mode other than schemaless" }]),
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
        "What an unmapped field does in mode `typed`.",
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
fn of(alias: &str, setting: &str) -> String {
    format!("{}{alias}.{setting}", SOURCE.alias_prefix)
}

fn check(values: &Values, _env: Env<'_>, faults: &mut Faults) {
    check_connection(values, faults);
    if values.choice("snow.source.schema.mode") == Some("typed") && values.text("snow.source.typed.fields") == Some("") {
        faults.push(values.fault("snow.source.typed.fields", "is required when snow.source.schema.mode is typed"));
    }
    for alias in values.aliases() {
        check_fields(values, alias, faults);
    }
    check_doubles(values, faults);
}

fn check_connection(values: &Values, faults: &mut Faults) {
    if values.text("snow.url").is_some_and(|url| url.starts_with("http:")) {
        let message = "is http: rows and credentials cross the network in clear; use https unless this is a test";
        faults.warn(values.fault("snow.url", message));
    }
    let mut require = |keys: &[&str], by: &str| {
        for key in keys.iter().filter(|key| !values.is_set(key)) {
            faults.push(values.fault(key, format!("is required by {by}")));
        }
    };
    match (values.choice("snow.auth.type"), values.choice("snow.oauth.grant.type")) {
        (Some("basic"), _) => require(&["snow.auth.username", "snow.auth.password"], "snow.auth.type=basic"),
        (Some("oauth2"), grant) => {
            require(&["snow.oauth.client.id", "snow.oauth.client.secret"], "snow.auth.type=oauth2");
            if grant == Some("password") {
                require(&["snow.auth.username", "snow.auth.password"], "snow.oauth.grant.type=password");
            }
        }
        _ => {}
    }
    for (given, needed) in [
        ("snow.http.proxy.username", "snow.http.proxy.url"),
        ("snow.http.proxy.password", "snow.http.proxy.username"),
        ("snow.tls.truststore.password", "snow.tls.truststore.path"),
        ("snow.tls.keystore.password", "snow.tls.keystore.path"),
    ] {
        if values.is_set(given) {
            require(&[needed], given);
        }
    }
    let (first, longest) = ("snow.retry.initial.backoff.ms", "snow.retry.max.backoff.ms");
    if let (Some(low), Some(high)) = (values.integer(first), values.integer(longest))
        && low > high
    {
        faults.push(values.fault(first, format!("is {low} and so above {longest}, which is {high}")));
    }
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
