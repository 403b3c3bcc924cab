//! The keys of Confluent's ServiceNow sources, one by one.
//!
//! Confluent documents them for the connector of its [platform], which reads one table, and for the two of its [cloud], of which
//! the second reads up to five.
//!
//! [platform]: https://docs.confluent.io/kafka-connectors/servicenow/current/source-connector/connector_config.html
//! [cloud]: https://docs.confluent.io/cloud/current/connectors/cc-servicenow-source-v2.html

use std::collections::BTreeMap;

use super::{Translation, variable};

const PLATFORM: &str = "io.confluent.connect.servicenow.ServiceNowSourceConnector";
const CLOUD: &str = "ServiceNowSource";
const CLOUD_V2: &str = "ServiceNowSourceV2";

/// What becomes of a key.
enum Rule {
    /// Another name for the same.
    To(&'static str),
    /// The same, and in milliseconds.
    Seconds(&'static str),
    /// It counts retries, and ours counts attempts.
    Retries(&'static str),
    /// There is nothing to carry over, and nothing is lost.
    Dropped(&'static str),
    /// Somebody has to look.
    Hand(&'static str),
}

use Rule::{Dropped, Hand, Retries, Seconds, To};

/// The keys that are about the whole connector.
const GLOBAL: &[(&str, Rule)] = &[
    ("proxy.url", To("snow.http.proxy.url")),
    ("connection.timeout.ms", To("snow.http.connect.timeout.ms")),
    ("request.timeout.ms", To("snow.http.request.timeout.ms")),
    ("read.timeout.ms", To("snow.http.request.timeout.ms")),
    ("write.timeout.ms", Dropped("requests have no body to write")),
    ("retry.max.times", Retries("snow.retry.max.attempts")),
    ("max.retries", Retries("snow.retry.max.attempts")),
    ("retry.backoff.ms", To("snow.retry.initial.backoff.ms")),
    ("retry.backoff.policy", Dropped("the pause doubles, with jitter, and Retry-After is honoured")),
    ("retry.on.status.codes", Dropped("which answers are asked for again is in docs/operations.md")),
    ("oauth2.token.url", To("snow.oauth.token.url")),
    ("oauth2.client.id", To("snow.oauth.client.id")),
    ("oauth2.client.auth.mode", Dropped("the credentials are in the body of the request, as an instance wants them")),
    ("oauth2.client.headers", Hand("other headers cannot be sent to the token's address")),
    ("servicenow.ssl.keystore.path", To("snow.tls.keystore.path")),
    ("servicenow.ssl.keystore.location", To("snow.tls.keystore.path")),
    ("servicenow.ssl.truststore.path", To("snow.tls.truststore.path")),
    ("servicenow.ssl.truststore.location", To("snow.tls.truststore.path")),
    (
        "servicenow.ssl.keystorefile",
        Hand("the file lies with Confluent; put it where the sweeps run and name it in snow.tls.keystore.path"),
    ),
    (
        "servicenow.ssl.truststorefile",
        Hand("the file lies with Confluent; put it where the sweeps run and name it in snow.tls.truststore.path"),
    ),
    ("servicenow.ssl.key.password", Hand("the key is opened with the password of its store; give both the same")),
    ("servicenow.ssl.enabled", Dropped("an https address is enough")),
    ("servicenow.ssl.protocol", Dropped("TLS 1.2 or 1.3, as the instance offers")),
    ("kafka.auth.mode", Hand("how the producer signs in belongs into worker.json")),
    ("kafka.api.key", Dropped("belongs into worker.json, as sasl.username")),
    ("kafka.api.secret", Dropped("belongs into worker.json, as sasl.password")),
    ("kafka.service.account.id", Dropped("an account of Confluent Cloud")),
    ("schema.context.name", Hand("contexts of a schema registry are part of its address here")),
    ("auto.restart.on.user.error", Dropped("a failed table is tried again by itself")),
    ("csfle.enabled", Hand("fields are not encrypted by the client here")),
    ("csfle.onFailure", Dropped("belongs to csfle.enabled")),
    ("reporter.error.topic.name", Dropped("a row that cannot be sent parks its table, or is skipped and counted")),
    ("tables.num", Dropped("the tables are those that are named")),
    ("transforms", Hand("there are no transforms here; shape the records in a stream processor, or choose fields with `fields`")),
    ("predicates", Hand("there are no predicates here")),
];

/// The keys of a table of the second cloud connector, after `table1.` and so on.
const TABLE: &[(&str, Rule)] = &[
    ("name", To("name")),
    ("topic", To("topic")),
    ("batch.size", To("batch.size")),
    ("start.timestamp", To("start.timestamp")),
    ("timestamp.field", To("timestamp.field")),
    ("request.interval.ms", To("poll.interval.ms")),
    ("display.value", To("display.value")),
    ("exclude.reference.link", To("exclude.reference.link")),
    ("query.category", To("query.category")),
    ("query.domain", To("query.domain")),
    ("pagination.query.field", Hand("the cursor is timestamp.field and sys.id.field; other fields cannot be")),
    ("count.records", Dropped("counts are asked for where hidden rows make them necessary")),
    ("suppress.pagination.header", Dropped("the header is needed where an instance cuts pages")),
    ("request.parameters.separator", Dropped("parameters are encoded as the Table API wants them")),
];

/// The keys of the connectors that read one table.
const SINGLE: &[(&str, Rule)] =
    &[("kafka.topic", To("topic")), ("batch.max.rows", To("batch.size")), ("poll.interval.s", Seconds("poll.interval.ms"))];

/// Translates the keys of the document `name`.
///
/// # Errors
/// It is of another connector.
pub fn translate(name: &str, mut given: BTreeMap<String, String>) -> Result<Translation, String> {
    let class = given.remove("connector.class").unwrap_or_default();
    let several = match class.as_str() {
        PLATFORM | CLOUD => false,
        CLOUD_V2 => true,
        "servicenow" | "sh.oso.servicenow.source.ServiceNowSourceConnector" => {
            return Err(format!("{name}: {class} runs here as it is; put the document into config/connectors and run `tablesweep check`"));
        }
        other => return Err(format!("{name}: connector.class is {other:?}; there are {PLATFORM}, {CLOUD} and {CLOUD_V2}")),
    };
    let mut done = Translation { name: name.to_owned(), ..Translation::default() };
    done.set("connector.class", "servicenow");
    passed_on(&mut given, &mut done);
    address_and_login(&mut given, &mut done);
    if several {
        tables(&mut given, &mut done)
    } else {
        table(&mut given, &mut done)
    }
    shape(&class, &mut given, &mut done);
    rest(given, &mut done);
    Ok(done)
}

/// Keys of Connect that mean the same here.
fn passed_on(given: &mut BTreeMap<String, String>, done: &mut Translation) {
    let same = |key: &str| {
        ["tasks.max", "key.converter", "value.converter"].contains(&key)
            || ["key.converter.", "value.converter.", "topic.creation.", "producer.override."].iter().any(|start| key.starts_with(start))
    };
    let keys: Vec<String> = given.keys().filter(|key| same(key)).cloned().collect();
    for key in keys {
        let value = given.remove(&key).unwrap_or_default();
        if is_secret(&key) {
            done.secret(&key, &variable(&key), (&key, &value));
        } else {
            done.carry(&key, (&key, &value));
        }
    }
}

/// Whether a setting of a converter or a producer is one that nobody may see.
fn is_secret(key: &str) -> bool {
    let parts = ["password", "secret", "user.info", "jaas"];
    let ends = [".auth.token", ".ssl.key.pem", ".ssl.keystore.key", ".sasl.oauthbearer.config"];
    parts.iter().any(|part| key.contains(part)) || ends.iter().any(|end| key.ends_with(end))
}

fn address_and_login(given: &mut BTreeMap<String, String>, done: &mut Translation) {
    match given.remove("servicenow.url") {
        Some(url) => done.carry("snow.url", ("servicenow.url", url.trim_end_matches('/'))),
        None => done.hand("servicenow.url", "is missing; give the instance's address as snow.url"),
    }
    let oauth = given.remove("auth.type").is_some_and(|kind| kind.eq_ignore_ascii_case("oauth2")) || given.contains_key("oauth2.client.id");
    done.set("snow.auth.type", if oauth { "oauth2" } else { "basic" });
    let mut take = |keys: &[&'static str]| keys.iter().find_map(|key| Some((*key, given.remove(*key)?)));
    let user = take(&["servicenow.username", "servicenow.user", "connection.user"]);
    let password = take(&["servicenow.password", "connection.password"]);
    let secret = take(&["oauth2.client.secret"]);
    let scope = take(&["oauth2.client.scope"]);
    let property = take(&["oauth2.token.property"]);
    let proxy = (take(&["proxy.user", "proxy.username"]), take(&["proxy.password"]));
    let keystore = take(&["servicenow.ssl.keystore.password"]);
    let truststore = take(&["servicenow.ssl.truststore.password"]);
    if oauth {
        done.set("snow.oauth.grant.type", "client_credentials");
    }
    for ((key, value), to) in
        [(user, "snow.auth.username"), (proxy.0, "snow.http.proxy.username")].into_iter().filter_map(|(one, to)| Some((one?, to)))
    {
        let unused = oauth && to == "snow.auth.username";
        if unused { done.note(key, "belongs to basic authentication and is left out") } else { done.set(to, value) }
    }
    let (password, unused) = if oauth { (None, password) } else { (password, None) };
    if let Some((key, _)) = unused {
        done.note(key, "belongs to basic authentication and is left out");
    }
    let secrets = [
        (password, "snow.auth.password", "SNOW_PASSWORD"),
        (secret, "snow.oauth.client.secret", "SNOW_CLIENT_SECRET"),
        (proxy.1, "snow.http.proxy.password", "SNOW_PROXY_PASSWORD"),
        (keystore, "snow.tls.keystore.password", "SNOW_KEYSTORE_PASSWORD"),
        (truststore, "snow.tls.truststore.password", "SNOW_TRUSTSTORE_PASSWORD"),
    ];
    for (given, to, variable) in secrets {
        if let Some((key, value)) = given {
            done.secret(to, variable, (key, &value));
        }
    }
    match scope {
        // Confluent's default for a scope that nobody set.
        Some((key, scope)) if scope == "any" => done.note(key, "is left out: `any` is none"),
        Some((_, scope)) => done.set("snow.oauth.scope", scope),
        None => {}
    }
    match property {
        Some((key, property)) if property == "access_token" => done.note(key, "is left out: the token is always read from there"),
        Some((key, _)) => done.hand(key, "the token is read from access_token, as an instance answers it"),
        None => {}
    }
}

/// The one table of the older connectors.
fn table(given: &mut BTreeMap<String, String>, done: &mut Translation) {
    let Some(name) = given.remove("servicenow.table") else {
        done.hand("servicenow.table", "is missing; name the table in snow.tables and snow.table.ALIAS.name");
        return;
    };
    let start = format!("snow.table.{}.", alias(&name, &[]));
    done.set("snow.tables", alias(&name, &[]));
    done.set(format!("{start}name"), name);
    apply(SINGLE, "", &start, given, done);
    match given.remove("servicenow.since") {
        Some(since) if since.len() == "2026-01-01".len() => done.set(format!("{start}start.timestamp"), format!("{since} 00:00:00")),
        Some(since) => done.set(format!("{start}start.timestamp"), since),
        None => done.hand(
            "servicenow.since",
            format!(
                "is missing, and meant the day on which that connector was started; set {start}start.timestamp, or all of history is read"
            ),
        ),
    }
    if let Some(prefix) = given.remove("servicenow.view.variable.prefix").filter(|prefix| !prefix.is_empty()) {
        let prefix = format!("{}_", prefix.trim_end_matches('_'));
        done.set(format!("{start}timestamp.field"), format!("{prefix}sys_updated_on"));
        done.set(format!("{start}sys.id.field"), format!("{prefix}sys_id"));
    }
}

/// The tables of the second cloud connector: `table1.`, `table2.` and so on, as far as `tables.num` says.
fn tables(given: &mut BTreeMap<String, String>, done: &mut Translation) {
    let number = given.get("tables.num").and_then(|text| text.parse::<usize>().ok()).unwrap_or(usize::MAX);
    let mut aliases: Vec<String> = Vec::new();
    let mut place = 1;
    while let Some(name) = given.get(&format!("table{place}.name")).cloned() {
        let from = format!("table{place}.");
        if place > number {
            given.retain(|key, _| !key.starts_with(&from));
            done.note(&from, "is beyond tables.num and left out");
            place += 1;
            continue;
        }
        let alias = alias(&name, &aliases);
        let to = format!("snow.table.{alias}.");
        aliases.push(alias);
        apply(TABLE, &from, &to, given, done);
        base_query(&from, &to, given, done);
        fields(&from, &to, given, done);
        place += 1;
    }
    if aliases.is_empty() {
        done.hand("table1.name", "is missing; name the tables in snow.tables and snow.table.ALIAS.name");
    }
    done.set("snow.tables", aliases.join(","));
}

fn base_query(from: &str, to: &str, given: &mut BTreeMap<String, String>, done: &mut Translation) {
    let key = format!("{from}pagination.query");
    let Some(query) = given.remove(&key).filter(|query| !query.is_empty()) else { return };
    if query.contains("${") || query.to_ascii_uppercase().contains("ORDERBY") {
        done.hand(
            &key,
            format!("pages by itself; write only which rows are meant into {to}query, without offsets, bounds of time and ORDERBY"),
        );
    } else {
        done.set(format!("{to}query"), query);
    }
}

/// The cursor's fields have to be among those that are asked for.
fn fields(from: &str, to: &str, given: &mut BTreeMap<String, String>, done: &mut Translation) {
    let Some(listed) = given.remove(&format!("{from}allowlisted.fields")).filter(|listed| !listed.is_empty()) else { return };
    let timestamp =
        done.config.get(&format!("{to}timestamp.field")).and_then(|value| value.as_str()).unwrap_or("sys_updated_on").to_owned();
    let mut fields: Vec<&str> = listed.split(',').map(str::trim).filter(|field| !field.is_empty()).collect();
    for needed in ["sys_id", &timestamp] {
        if !fields.contains(&needed) {
            fields.push(needed);
        }
    }
    done.set(format!("{to}fields"), fields.join(","));
}

/// What records look like.
fn shape(class: &str, given: &mut BTreeMap<String, String>, done: &mut Translation) {
    match given.remove("output.data.format").as_deref() {
        Some("JSON") => {
            done.set("key.converter", "org.apache.kafka.connect.storage.StringConverter");
            done.set("value.converter", "org.apache.kafka.connect.json.JsonConverter");
            done.set("value.converter.schemas.enable", "false");
        }
        Some(format) => {
            done.set("snow.source.schema.mode", "strings");
            done.hand("output.data.format", format!("is {format}; choose value.converter and value.converter.schema.registry.url for it"));
        }
        None if class == PLATFORM => done.set("snow.source.schema.mode", "strings"),
        None => {}
    }
    match given.remove("behavior.on.error").as_deref() {
        Some("IGNORE" | "ignore") => {
            done.set("snow.source.bad.row.behavior", "skip");
            done.note("behavior.on.error", "skips rows without a readable cursor only; everything else parks the table and says why");
        }
        Some(_) => done.set("snow.source.bad.row.behavior", "fail"),
        None => {}
    }
}

/// Why a key of which there are many says nothing here.
fn unneeded(key: &str, value: &str) -> Option<&'static str> {
    if key.starts_with("confluent.") {
        Some("is left out: there is no licence here, and no topic for one")
    } else if key.starts_with("csfle") && value == "false" {
        Some("is left out: it is off")
    } else {
        None
    }
}

fn rest(mut given: BTreeMap<String, String>, done: &mut Translation) {
    given.retain(|key, value| {
        let why = unneeded(key, value);
        why.iter().for_each(|why| done.note(key, *why));
        why.is_none()
    });
    apply(GLOBAL, "", "", &mut given, done);
    for key in given.keys() {
        done.hand(key, "is no key that is known here, and was left out");
    }
}

fn apply(rules: &[(&str, Rule)], from: &str, to: &str, given: &mut BTreeMap<String, String>, done: &mut Translation) {
    for (key, rule) in rules {
        let key = format!("{from}{key}");
        let Some(value) = given.remove(&key) else { continue };
        match rule {
            To(name) => done.carry(&format!("{to}{name}"), (&key, &value)),
            Seconds(name) => scaled(&key, &format!("{to}{name}"), &value, |number| number.checked_mul(1000), done),
            Retries(name) => scaled(&key, &format!("{to}{name}"), &value, |number| number.checked_add(1), done),
            Dropped(why) => done.note(&key, format!("is left out: {why}")),
            Hand(why) => done.hand(&key, *why),
        }
    }
}

fn scaled(key: &str, to: &str, value: &str, scale: impl Fn(u64) -> Option<u64>, done: &mut Translation) {
    match value.parse().ok().and_then(scale) {
        Some(number) => done.set(to, number.to_string()),
        None => done.hand(key, format!("{value:?} is no number; set {to}")),
    }
}

/// An alias for a table: its own name, as far as keys may have it, and none that is taken.
fn alias(table: &str, taken: &[String]) -> String {
    let plain: String = table.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    let plain = if plain.is_empty() { "table".to_owned() } else { plain };
    let free = |name: &String| !taken.contains(name);
    Some(plain.clone()).filter(free).unwrap_or_else(|| (2..).map(|number| format!("{plain}_{number}")).find(free).unwrap_or(plain))
}
