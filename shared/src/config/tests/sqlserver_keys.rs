use std::time::Duration;

use secrecy::ExposeSecret;

use super::Dir;
use crate::config::{Env, Resolver};
use crate::source::sqlserver::keys::{Encrypt, Intent, ReadMode, SqlServer, Start};

#[track_caller]
fn refused(env: Env<'_>, changes: &[(&str, &str)], key: &str, parts: &[&str]) {
    let faults = Dir::new().sqlserver("sql", changes).load_with(env).expect_err("it is at fault").faults;
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert_eq!(faults[0].key.as_deref().unwrap_or_default(), key);
    for part in parts {
        assert!(faults[0].message.contains(part), "{part:?} is not in {:?}", faults[0].message);
    }
}

#[tokio::test]
async fn the_typed_settings_hold_the_document_and_the_defaults() {
    let documents = Dir::new().sqlserver("sql", &[("mssql.table.orders.start", "earliest")]).load().unwrap();
    let resolver = Resolver::new(|name| (name == "MSSQL_PASSWORD").then(|| "pw".to_owned()), || std::time::SystemTime::UNIX_EPOCH);
    let connector = documents.connectors[0].resolve(&resolver).await.unwrap();
    let settings = SqlServer::read(&connector.values).unwrap();
    assert_eq!((settings.host.as_str(), settings.port, settings.database.as_str()), ("db.example.com", 1433, "shop"));
    assert_eq!(settings.password.expose_secret(), "pw");
    assert_eq!(
        (settings.encrypt, settings.read_mode, settings.application_intent),
        (Encrypt::Mandatory, ReadMode::Plain, Intent::ReadWrite)
    );
    assert!(!settings.trust_server_certificate && !settings.decimal_as_string && !settings.emit_envelope);
    assert_eq!((settings.login_timeout, settings.query_timeout), (Duration::from_secs(15), Duration::from_secs(30)));
    assert_eq!((settings.packet_size, settings.audit_interval), (8_000, None));
    let table = &settings.tables[0];
    assert_eq!((table.name.to_string().as_str(), table.sequence_column.as_str()), ("dbo.orders", "id"));
    assert_eq!((table.batch_size, table.max_rows_per_poll), (500, 10_000));
    assert_eq!((table.poll_interval, &table.start), (Duration::from_secs(5), &Start::Earliest));
}

#[test]
fn an_interval_below_the_administrators_bound_is_refused_naming_both_numbers() {
    let key = "mssql.table.orders.poll.interval.ms";
    refused(&|_| None, &[(key, "999")], key, &["999 ms", "1000 ms"]);
    let ten = |name: &str| (name == "SP_MSSQL_POLLING_MIN_INTERVAL_SECONDS").then(|| "10".to_owned());
    refused(&ten, &[], key, &["5000 ms", "10000 ms", "SP_MSSQL_POLLING_MIN_INTERVAL_SECONDS=10"]);
    assert!(Dir::new().sqlserver("sql", &[(key, "10000")]).load_with(&ten).is_ok());
    assert!(Dir::new().sqlserver("sql", &[(key, "1000")]).load().is_ok());
    refused(&|_| Some("soon".to_owned()), &[], "", &["SP_MSSQL_POLLING_MIN_INTERVAL_SECONDS"]);
}

#[test]
fn a_packet_that_no_encrypted_connection_takes_is_refused_with_the_largest_that_is() {
    let key = "mssql.packet.size";
    for encrypt in ["mandatory", "optional", "strict"] {
        let size = |bytes: &str| Dir::new().sqlserver("sql", &[(key, bytes), ("mssql.encrypt", encrypt)]).load_with(&|_| None).map(drop);
        assert!(size("16383").is_ok(), "{encrypt}");
        for bytes in ["16384", "32767"] {
            let told = size(bytes).expect_err("no server takes it").to_string();
            assert!(told.contains(key) && told.contains("from 512 to 16383"), "{encrypt}: {told}");
        }
    }
}

#[tokio::test]
async fn the_bound_also_holds_for_an_interval_that_comes_from_a_placeholder() {
    let key = "mssql.table.orders.poll.interval.ms";
    let documents = Dir::new().sqlserver("sql", &[(key, "${env:INTERVAL}")]).load().unwrap();
    let env = |name: &str| Some(if name == "INTERVAL" { "500" } else { "1" }.to_owned());
    let resolver = Resolver::new(env, || std::time::SystemTime::UNIX_EPOCH);
    let error = documents.connectors[0].resolve(&resolver).await.unwrap_err();
    assert_eq!(error.code(), "Config.Invalid");
    assert!(error.to_string().contains("below the smallest allowed interval"), "{error}");
}

#[test]
fn contradictions_are_refused() {
    let none: Env<'_> = &|_| None;
    let orders = |setting: &str| format!("mssql.table.orders.{setting}");
    refused(none, &[(&orders("max.rows.per.poll"), "499")], &orders("max.rows.per.poll"), &["499", "500"]);
    let one_batch = Dir::new().sqlserver("sql", &[(&orders("max.rows.per.poll"), "500")]);
    assert!(one_batch.load().is_ok());
    let trust = ("mssql.trust.server.certificate", "true");
    refused(none, &[trust, ("mssql.tls.ca.path", "/ca.pem")], trust.0, &["contradicts mssql.tls.ca.path"]);
    refused(none, &[trust, ("mssql.encrypt", "strict")], trust.0, &["contradicts mssql.encrypt=strict"]);
    refused(none, &[("mssql.timezone", "Mars/Olympus")], "mssql.timezone", &["no time zone"]);
    refused(none, &[("mssql.host", "https://db")], "mssql.host", &["has a scheme"]);
    let twin = [
        ("mssql.tables", "orders,two"),
        ("mssql.table.two.name", "[dbo].[orders]"),
        ("mssql.table.two.topic", "t"),
        ("mssql.table.two.sequence.column", "id"),
    ];
    refused(none, &twin, "mssql.table.two.name", &["the same cursor as table orders"]);
}

#[test]
fn a_connection_that_can_be_overheard_is_warned_about() {
    for change in [("mssql.trust.server.certificate", "true"), ("mssql.encrypt", "optional")] {
        let documents = Dir::new().sqlserver("sql", &[change]).load().unwrap();
        assert_eq!(documents.warnings.0[0].key.as_deref(), Some(change.0));
    }
}

#[test]
fn locking_reads_of_a_secondary_are_warned_about() {
    let warned = |changes: &[(&str, &str)]| {
        let warnings = Dir::new().sqlserver("sql", changes).load().unwrap().warnings;
        warnings.0.iter().any(|warning| warning.key.as_deref() == Some("mssql.read.mode"))
    };
    let (locking, readonly) = (("mssql.read.mode", "locking"), ("mssql.application.intent", "readonly"));
    assert!(warned(&[locking, readonly]));
    assert!(!warned(&[locking]) && !warned(&[readonly]));
}

#[test]
fn time_zones_are_those_of_the_database_and_blank_is_utc() {
    for zone in ["Europe/Berlin", "UTC", " "] {
        assert!(Dir::new().sqlserver("sql", &[("mssql.timezone", zone)]).load().is_ok(), "{zone:?}");
    }
}
