use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret;

use super::{Dir, KINDS};
use crate::config::{Format, Resolver, load};
use crate::source::servicenow::keys::{Auth, DisplayValue, Grant, SchemaMode, ServiceNow};

/// The example of the connector that this source stands in for, as its users have it.
const EXAMPLE: &str = r#"{
  "name": "servicenow-source",
  "config": {
    "connector.class": "sh.oso.servicenow.source.ServiceNowSourceConnector",
    "tasks.max": "2",
    "snow.url": "https://acme.service-now.com",
    "snow.auth.type": "oauth2",
    "snow.oauth.grant.type": "client_credentials",
    "snow.oauth.client.id": "${file:/secrets/snow.properties:client.id}",
    "snow.oauth.client.secret": "${file:/secrets/snow.properties:client.secret}",
    "snow.tables": "inc,chg",
    "snow.table.inc.name": "incident",
    "snow.table.inc.topic": "snow.incident",
    "snow.table.inc.start.timestamp": "2026-01-01 00:00:00",
    "snow.table.inc.query": "active=true",
    "snow.table.inc.fields": "sys_id,sys_updated_on,number,short_description,priority,state,assignment_group",
    "snow.table.chg.name": "change_request",
    "snow.table.chg.topic": "snow.change_request",
    "snow.table.chg.display.value": "all",
    "snow.source.schema.mode": "strings",
    "snow.source.batch.size": "5000",
    "snow.source.poll.interval.ms": "5000",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "true"
  }
}"#;

fn resolver() -> Resolver {
    Resolver::new(|name| Some(format!("value of {name}")), || std::time::SystemTime::UNIX_EPOCH)
}

#[test]
fn the_connectors_own_example_is_accepted_as_it_is() {
    let documents = Dir::new().with("connectors/snow.json", EXAMPLE).load().unwrap();
    assert!(documents.warnings.is_empty(), "{}", documents.warnings);
    let connector = documents.connector("servicenow-source").unwrap();
    assert_eq!(connector.tables(), ["chg", "inc"]);
    assert_eq!(connector.tasks_max, 2);
    assert_eq!(connector.key_converter.format, Format::String);
    assert_eq!(connector.value_converter.format, Format::JsonWithSchema);
}

#[tokio::test]
async fn the_typed_settings_hold_what_the_example_says_and_the_defaults_of_the_rest() {
    let secrets = tempfile::tempdir().unwrap();
    let file = secrets.path().join("snow.properties");
    std::fs::write(&file, "client.id = me\nclient.secret = s3cret\n").unwrap();
    let example = EXAMPLE.replace("/secrets/snow.properties", file.to_str().unwrap());
    let documents = Dir::new().with("connectors/snow.json", example).load().unwrap();
    let connector = documents.connectors[0].resolve(&resolver()).await.unwrap();
    let settings = ServiceNow::read(&connector.values).unwrap();

    assert_eq!(settings.host, "acme.service-now.com");
    let Auth::Oauth(client) = &settings.auth else { panic!("{:?}", settings.auth) };
    assert!(matches!(client.grant, Grant::ClientCredentials));
    assert_eq!(client.client_id, "me");
    assert_eq!(client.client_secret.as_ref().unwrap().expose_secret(), "s3cret");
    assert_eq!(client.token_url.as_str(), "https://acme.service-now.com/oauth_token.do");
    assert_eq!(settings.schema_mode, SchemaMode::Strings);
    assert_eq!(settings.overlap, Duration::from_secs(2));
    assert_eq!(settings.safety_lag, Duration::from_secs(1));
    assert_eq!(settings.dedup_window_records, 50_000);
    assert_eq!(settings.http.max_concurrent_requests, 8);
    assert_eq!(settings.http.max_response_bytes, 67_108_864);
    assert_eq!(settings.retry.max_attempts, 5);
    assert!(settings.startup_probe && settings.tls.keystore.is_none() && settings.http.proxy.is_none());

    let [chg, inc] = &settings.tables[..] else { panic!("{:?}", settings.tables) };
    assert_eq!((chg.alias.as_str(), chg.name.as_str(), chg.topic.as_str()), ("chg", "change_request", "snow.change_request"));
    assert_eq!((chg.display_value, inc.display_value), (DisplayValue::All, DisplayValue::False));
    assert_eq!(chg.fields, None);
    assert_eq!(chg.start.as_second(), 0);
    assert_eq!(inc.start.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!((inc.query.as_str(), chg.query.as_str()), ("active=true", ""));
    assert_eq!(inc.fields.as_ref().unwrap().last().unwrap(), "sys_mod_count", "the version counter is added");
    assert_eq!((inc.timestamp_field.as_str(), inc.sys_id_field.as_str()), ("sys_updated_on", "sys_id"));
    assert_eq!((inc.batch_size, inc.poll_interval), (5000, Duration::from_secs(5)));
    assert!(inc.query_domain && inc.exclude_reference_link && inc.query_category.is_none());
}

#[tokio::test]
async fn a_table_inherits_what_it_does_not_say_and_a_view_has_prefixed_fields() {
    let documents = Dir::new()
        .servicenow(
            "snow",
            &[
                ("snow.source.batch.size", "1000"),
                ("snow.source.poll.interval.ms", "60000"),
                ("snow.tables", "inc, own"),
                ("snow.table.own.name", "u_view"),
                ("snow.table.own.topic", "view"),
                ("snow.table.own.batch.size", "10"),
                ("snow.table.own.sys.id.field", "inc_sys_id"),
                ("snow.table.own.timestamp.field", "inc_sys_updated_on"),
                ("snow.table.own.fields", "inc_sys_id, inc_sys_updated_on"),
                ("snow.table.own.query", " a=1^EQ "),
            ],
        )
        .load()
        .unwrap();
    let connector = documents.connectors[0].resolve(&resolver()).await.unwrap();
    let settings = ServiceNow::read(&connector.values).unwrap();
    let [inc, own] = &settings.tables[..] else { panic!("{:?}", settings.tables) };
    assert_eq!((inc.batch_size, own.batch_size), (1000, 10));
    assert_eq!(own.poll_interval, Duration::from_secs(60));
    assert_eq!(own.mod_count_field(), "inc_sys_mod_count");
    assert_eq!(own.fields.as_deref().unwrap(), ["inc_sys_id", "inc_sys_updated_on", "inc_sys_mod_count"]);
    assert_eq!(own.query, "a=1");
}

#[test]
fn settings_cannot_be_read_while_a_placeholder_is_not_looked_up() {
    let documents = Dir::new().servicenow("snow", &[]).load().unwrap();
    let faults = ServiceNow::read(&documents.connectors[0].values).unwrap_err().faults;
    let keys: Vec<_> = faults.iter().filter_map(|fault| fault.key.as_deref()).collect();
    assert!(keys.contains(&"snow.auth.username") && keys.contains(&"snow.auth.password"), "{keys:?}");
}

#[test]
fn the_example_documents_are_in_order() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../config"));
    let documents = load(dir, &KINDS, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(documents.warnings.is_empty(), "{}", documents.warnings);
    let names: Vec<&str> = documents.connectors.iter().map(|connector| connector.name.as_str()).collect();
    assert_eq!(names, ["servicenow"]);
    let worker = documents.connectors[0].producer(&documents.worker).unwrap();
    assert_eq!(worker.get("sasl.mechanism"), Some("SCRAM-SHA-512"));
}

#[test]
fn the_example_of_sql_server_is_in_order() {
    let example = include_str!("../../../../config/examples/sqlserver.json");
    let documents = Dir::new().with("connectors/sqlserver.json", example).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert!(documents.warnings.is_empty(), "{}", documents.warnings);
}

#[test]
fn the_example_with_avro_is_in_order() {
    let example = include_str!("../../../../config/examples/avro.json");
    let documents = Dir::new().with("connectors/avro.json", example).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert!(documents.warnings.is_empty(), "{}", documents.warnings);
}

#[test]
fn a_worker_is_not_needed_and_connectors_come_in_the_order_of_their_names() {
    let documents = Dir::new().servicenow("b", &[]).servicenow("a", &[]).load().unwrap();
    let names: Vec<&str> = documents.connectors.iter().map(|connector| connector.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(documents.connectors[0].producer(&documents.worker).unwrap().iter().count(), 0);
}
