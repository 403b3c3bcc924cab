//! `tablesweep migrate`: a Confluent document becomes one that this program takes, and nothing of it goes missing.

use std::process::Command;

use serde_json::{Value, json};
use tablesweep_testbed::program::program;
use tablesweep_testbed::said;
use tempfile::TempDir;

const PLATFORM: &str = "io.confluent.connect.servicenow.ServiceNowSourceConnector";
const SECRET: &str = "plain-and-secret-9";

struct Migrated {
    code: Option<i32>,
    document: Value,
    said: String,
}

fn run(dir: &TempDir, arguments: &[&str]) -> (Option<i32>, String, String) {
    let ended = Command::new(program("tablesweep"))
        .args(arguments)
        .current_dir(dir.path())
        .env_remove("TABLESWEEP_CONFIG")
        .output()
        .expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    said::keep("cli", &text(&ended.stdout));
    said::keep("cli", &text(&ended.stderr));
    (ended.status.code(), text(&ended.stdout), text(&ended.stderr))
}

/// Migrates `given`; what comes out is one that `check` finds nothing wrong with.
fn migrate(given: &str) -> Migrated {
    let dir = TempDir::new().expect("a folder");
    std::fs::write(dir.path().join("given"), given).expect("written");
    let (code, document, said) = run(&dir, &["migrate", "given"]);
    assert!(!document.contains(SECRET) && !said.contains(SECRET), "a secret was shown: {document} {said}");
    std::fs::create_dir_all(dir.path().join("config/connectors")).expect("a folder");
    std::fs::write(dir.path().join("config/connectors/migrated.json"), &document).expect("written");
    std::fs::write(dir.path().join("config/worker.json"), r#"{"bootstrap.servers":"localhost:9092"}"#).expect("written");
    let (checked, _, faults) = run(&dir, &["check", "--config", "config"]);
    assert_eq!(checked, Some(0), "{faults}\n{document}");
    Migrated { code, document: serde_json::from_str(&document).expect("JSON"), said }
}

#[test]
fn a_document_of_the_platforms_connector_is_carried_over_key_by_key() {
    let given = json!({
        "name": "tickets",
        "config": {
            "connector.class": PLATFORM,
            "tasks.max": 1,
            "servicenow.url": "https://acme.service-now.com/",
            "servicenow.user": "${env:SNOW_USER}",
            "servicenow.password": "${env:SNOW_PW}",
            "servicenow.table": "incident",
            "servicenow.since": "2026-01-05",
            "kafka.topic": "snow.incident",
            "batch.max.rows": "1000",
            "poll.interval.s": "30",
            "retry.max.times": "3",
            "connection.timeout.ms": "5000",
            "proxy.url": "http://proxy.example:3128",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "confluent.license": "abc",
            "confluent.topic.bootstrap.servers": "broker:9092",
        }
    });
    let migrated = migrate(&given.to_string());
    assert_eq!(migrated.code, Some(0), "{}", migrated.said);
    let wanted = json!({
        "name": "tickets",
        "config": {
            "connector.class": "servicenow",
            "tasks.max": "1",
            "snow.url": "https://acme.service-now.com",
            "snow.auth.type": "basic",
            "snow.auth.username": "${env:SNOW_USER}",
            "snow.auth.password": "${env:SNOW_PW}",
            "snow.tables": "incident",
            "snow.table.incident.name": "incident",
            "snow.table.incident.topic": "snow.incident",
            "snow.table.incident.start.timestamp": "2026-01-05 00:00:00",
            "snow.table.incident.batch.size": "1000",
            "snow.table.incident.poll.interval.ms": "30000",
            "snow.retry.max.attempts": "4",
            "snow.http.connect.timeout.ms": "5000",
            "snow.http.proxy.url": "http://proxy.example:3128",
            "snow.source.schema.mode": "strings",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        }
    });
    assert_eq!(migrated.document, wanted);
}

#[test]
fn a_document_of_the_second_cloud_connector_gives_each_table_its_alias() {
    let given = json!({
        "name": "cloud",
        "config": {
            "connector.class": "ServiceNowSourceV2",
            "servicenow.url": "https://acme.service-now.com",
            "auth.type": "OAUTH2",
            "oauth2.client.id": "client",
            "oauth2.client.secret": SECRET,
            "oauth2.client.scope": "any",
            "output.data.format": "JSON",
            "tables.num": "2",
            "table1.name": "incident",
            "table1.topic": "snow.incident",
            "table1.allowlisted.fields": "number, short_description",
            "table1.pagination.query": "active=true",
            "table1.request.interval.ms": "2000",
            "table2.name": "incident",
            "table2.topic": "snow.incident.created",
            "table2.timestamp.field": "sys_created_on",
            "table2.pagination.query": "sys_created_on>${offset}^ORDERBYsys_created_on",
            "table3.name": "left_over",
            "kafka.api.key": "k",
            "kafka.api.secret": SECRET,
            "max.retries": "5",
        }
    });
    let migrated = migrate(&given.to_string());
    assert_eq!(migrated.code, Some(1), "something needs a hand: {}", migrated.said);
    let config = &migrated.document["config"];
    assert_eq!(config["snow.tables"], "incident,incident_2");
    assert_eq!(config["snow.table.incident.fields"], "number,short_description,sys_id,sys_updated_on");
    assert_eq!(config["snow.table.incident.query"], "active=true");
    assert_eq!(config["snow.table.incident_2.timestamp.field"], "sys_created_on");
    assert_eq!(config["snow.oauth.client.secret"], "${env:SNOW_CLIENT_SECRET}");
    assert_eq!((&config["value.converter.schemas.enable"], &config["snow.oauth.scope"]), (&json!("false"), &Value::Null));
    for part in ["needs a hand: oauth2.client.secret", "needs a hand: table2.pagination.query", "note: table3."] {
        assert!(migrated.said.contains(part), "`{part}` is missing in: {}", migrated.said);
    }
}

#[test]
fn no_key_is_passed_over_in_silence() {
    let given = format!(
        "# a worker's file\nname=odd\nconnector.class={PLATFORM}\nservicenow.url=https://acme.service-now.com\nservicenow.username=u\n\
         servicenow.password={SECRET}\nservicenow.table=u_vw\nservicenow.view.variable.prefix=inc\nkafka.topic=t\nservicenow.since=2026-01-01\n\
         servicenow.custom.thing=1\ntransforms=mask\ncsfle.enabled=false\nservicenow.ssl.enabled=true\n"
    );
    let migrated = migrate(&given);
    assert_eq!(migrated.code, Some(1));
    let config = &migrated.document["config"];
    assert_eq!(
        (&config["snow.table.u_vw.sys.id.field"], &config["snow.table.u_vw.timestamp.field"]),
        (&json!("inc_sys_id"), &json!("inc_sys_updated_on"))
    );
    for key in ["servicenow.custom.thing", "transforms", "servicenow.password"] {
        assert!(migrated.said.contains(&format!("needs a hand: {key}: ")), "{key} is missing in: {}", migrated.said);
    }
    assert!(migrated.said.contains("note: servicenow.ssl.enabled: "), "{}", migrated.said);
}

/// Keys of Confluent's documentation, each with a value that changes nothing for somebody who reads the rest.
const EASILY_MISSED: &[(&str, &str)] = &[
    ("behavior.on.error", "FAIL"),
    ("confluent.license", "abc"),
    ("connection.password", "${env:SNOW_PW}"),
    ("connection.user", "u"),
    ("csfle.enabled", "false"),
    ("csfle.onFailure", "ERROR"),
    ("kafka.api.key", "k"),
    ("max.retries", "4"),
    ("oauth2.client.auth.mode", "header"),
    ("oauth2.client.scope", "any"),
    ("oauth2.client.scope", "useraccount"),
    ("oauth2.token.property", "access_token"),
    ("oauth2.token.property", "token"),
    ("output.data.format", "JSON"),
    ("proxy.password", "${env:PROXY_PW}"),
    ("proxy.username", "u"),
    ("read.timeout.ms", "30000"),
    ("reporter.error.topic.name", "errors"),
    ("retry.backoff.policy", "EXPONENTIAL_WITH_JITTER"),
    ("schema.context.name", "default"),
    ("servicenow.password", "${env:SNOW_PW}"),
    ("servicenow.ssl.enabled", "true"),
    ("servicenow.ssl.keystore.password", "${env:KEYS_PW}"),
    ("servicenow.user", "u"),
    ("table1.count.records", "true"),
    ("table1.pagination.query", "active=true"),
    ("table1.pagination.query.field", "sys_updated_on"),
    ("table1.query.domain", "true"),
    ("tables.num", "1"),
    ("transforms", "mask"),
    ("write.timeout.ms", "30000"),
];

#[test]
fn each_key_shows_in_what_comes_out_or_in_what_is_said() {
    let dir = TempDir::new().expect("a folder");
    let come_of = |key: &str, value: &str| {
        let mut given = json!({
            "name": "cloud", "connector.class": "ServiceNowSourceV2", "servicenow.url": "https://acme.service-now.com",
            "auth.type": "OAUTH2", "oauth2.client.id": "client", "oauth2.client.secret": "${env:CLIENT_SECRET}",
            "table1.name": "incident", "table1.topic": "t",
        });
        given[key] = json!(value);
        std::fs::write(dir.path().join("given"), given.to_string()).expect("written");
        let (_, document, said) = run(&dir, &["migrate", "given"]);
        (document, said)
    };
    let without = come_of("name", "cloud");
    assert_eq!(without.1, "", "nothing is said of a document that is carried over whole");
    for (key, value) in EASILY_MISSED {
        let (document, said) = come_of(key, value);
        assert!(document != without.0 || said.contains(&format!(" {key}: ")), "{key}={value} is passed over: {said}");
    }
}

#[test]
fn a_query_that_pages_by_itself_needs_a_hand_and_is_not_carried_over() {
    for query in ["active=true^sys_created_on>${offset}", "active=true^ORDERBYsys_created_on", "active=true^orderbydescnumber"] {
        let given = json!({
            "connector.class": "ServiceNowSourceV2", "servicenow.url": "https://acme.service-now.com", "servicenow.user": "u",
            "servicenow.password": "${env:SNOW_PW}", "table1.name": "incident", "table1.topic": "t", "table1.pagination.query": query,
        });
        let migrated = migrate(&given.to_string());
        assert_eq!((migrated.code, &migrated.document["config"]["snow.table.incident.query"]), (Some(1), &Value::Null), "{query}");
        assert!(migrated.said.contains("needs a hand: table1.pagination.query: "), "{}", migrated.said);
    }
}

#[test]
fn what_belongs_to_another_way_to_sign_in_is_left_out_and_told() {
    let given = json!({
        "connector.class": "ServiceNowSourceV2", "servicenow.url": "https://acme.service-now.com", "servicenow.user": "u",
        "servicenow.password": SECRET, "auth.type": "OAUTH2", "oauth2.client.id": "client",
        "oauth2.client.secret": "${env:CLIENT_SECRET}", "table1.name": "incident", "table1.topic": "t",
    });
    let migrated = migrate(&given.to_string());
    let config = &migrated.document["config"];
    assert_eq!((migrated.code, &config["snow.auth.type"]), (Some(0), &json!("oauth2")), "{}", migrated.said);
    assert_eq!((&config["snow.auth.username"], &config["snow.auth.password"]), (&Value::Null, &Value::Null));
    for key in ["servicenow.user", "servicenow.password"] {
        assert!(migrated.said.contains(&format!("note: {key}: belongs to basic authentication")), "{}", migrated.said);
    }
}

#[test]
fn no_secret_is_carried_over_wherever_it_stands() {
    let given = json!({
        "connector.class": "ServiceNowSource",
        "servicenow.url": format!("https://me:{SECRET}@acme.service-now.com"),
        "servicenow.user": "u",
        "servicenow.password": SECRET,
        "servicenow.table": "incident",
        "servicenow.since": "2026-01-01 12:30:00",
        "kafka.topic": "t",
        "proxy.url": format!("http://me:{SECRET}@proxy.example:3128"),
        "servicenow.ssl.truststore.path": "/opt/config/trust.p12",
        "servicenow.ssl.truststore.password": SECRET,
        "output.data.format": "AVRO",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "https://registry.example",
        "value.converter.bearer.auth.credentials.source": "STATIC_TOKEN",
        "value.converter.bearer.auth.token": SECRET,
        "key.converter": "io.confluent.connect.avro.AvroConverter",
        "key.converter.schema.registry.url": format!("https://me:{SECRET}@registry.example"),
        "producer.override.security.protocol": "SSL",
        "producer.override.ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----",
        "producer.override.ssl.keystore.key": format!("-----BEGIN PRIVATE KEY-----{SECRET}"),
        "producer.override.ssl.key.password": SECRET,
    });
    let migrated = migrate(&given.to_string());
    assert_eq!(migrated.code, Some(1));
    let config = &migrated.document["config"];
    for (from, to, variable) in [
        ("servicenow.url", "snow.url", "SERVICENOW_URL"),
        ("servicenow.password", "snow.auth.password", "SNOW_PASSWORD"),
        ("proxy.url", "snow.http.proxy.url", "PROXY_URL"),
        ("servicenow.ssl.truststore.password", "snow.tls.truststore.password", "SNOW_TRUSTSTORE_PASSWORD"),
        ("value.converter.bearer.auth.token", "value.converter.bearer.auth.token", "VALUE_CONVERTER_BEARER_AUTH_TOKEN"),
        ("key.converter.schema.registry.url", "key.converter.schema.registry.url", "KEY_CONVERTER_SCHEMA_REGISTRY_URL"),
        ("producer.override.ssl.keystore.key", "producer.override.ssl.keystore.key", "PRODUCER_OVERRIDE_SSL_KEYSTORE_KEY"),
        ("producer.override.ssl.key.password", "producer.override.ssl.key.password", "PRODUCER_OVERRIDE_SSL_KEY_PASSWORD"),
    ] {
        assert_eq!(config[to], format!("${{env:{variable}}}"), "{to}");
        assert!(migrated.said.contains(&format!("needs a hand: {from}: was a plain secret")), "{from} is missing in: {}", migrated.said);
    }
    // What is no secret is carried over, and a time as it is.
    assert_eq!(config["value.converter.schema.registry.url"], "https://registry.example");
    assert_eq!(config["snow.table.incident.start.timestamp"], "2026-01-01 12:30:00");
}

#[test]
fn properties_are_read_as_java_reads_them() {
    let given = format!(
        "! of a worker\nname : tick\\u00e9ts\nconnector.class={PLATFORM}\nservicenow.url = https\\://acme.service-now.com\n\
         servicenow.user:${{env:\\\n  SNOW_USER}}\nservicenow.password ${{env:SNOW_PW}}\nservicenow.table=incident\nservicenow.since=2026-01-05\n\
         kafka.topic=first\nkafka.topic=snow.incident\n"
    );
    let migrated = migrate(&given);
    assert_eq!(migrated.code, Some(0), "{}", migrated.said);
    let config = &migrated.document["config"];
    assert_eq!(migrated.document["name"], "tick\u{e9}ts");
    for (key, value) in [
        ("snow.url", "https://acme.service-now.com"),
        ("snow.auth.username", "${env:SNOW_USER}"),
        ("snow.auth.password", "${env:SNOW_PW}"),
        ("snow.table.incident.topic", "snow.incident"),
    ] {
        assert_eq!(config[key], value, "{key}");
    }
}

#[test]
fn a_document_that_needs_no_migration_and_one_of_another_connector_are_refused() {
    let dir = TempDir::new().expect("a folder");
    for (class, said) in
        [("sh.oso.servicenow.source.ServiceNowSourceConnector", "runs here as it is"), ("io.debezium.Any", "connector.class")]
    {
        std::fs::write(dir.path().join("given.json"), json!({"connector.class": class}).to_string()).expect("written");
        let (code, out, err) = run(&dir, &["migrate", "given.json"]);
        assert_eq!((code, &*out), (Some(2), ""), "{err}");
        assert!(err.contains(said), "{err}");
    }
}

#[test]
fn completions_are_scripts_of_their_shells() {
    let dir = TempDir::new().expect("a folder");
    for (shell, part) in [("bash", "complete -F _tablesweep"), ("zsh", "#compdef tablesweep"), ("fish", "complete -c tablesweep")] {
        let (code, script, err) = run(&dir, &["completions", shell]);
        assert_eq!(code, Some(0), "{err}");
        assert!(script.contains(part) && script.contains("accept-schema"), "{shell}");
    }
}
