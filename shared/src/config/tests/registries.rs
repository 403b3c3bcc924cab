//! The settings of schema registries.

use super::Dir;
use crate::config::converter::settings;
use crate::config::{Documents, Fallback, Format};
use crate::registry::confluent;

const STRINGS: (&str, &str) = ("snow.source.schema.mode", "strings");
const AVRO: [(&str, &str); 3] = [STRINGS, ("value.converter", "avro"), ("value.converter.schema.registry.url", "https://registry")];
const GLUE: [(&str, &str); 2] = [STRINGS, ("value.converter", "glue-avro")];

fn with<'k>(base: &[(&'k str, &'k str)], more: &[(&'k str, &'k str)]) -> Dir {
    Dir::new().servicenow("snow", &[base, more].concat())
}

fn loaded(dir: &Dir) -> Documents {
    dir.load().unwrap_or_else(|faults| panic!("{faults}"))
}

#[test]
fn every_default_of_a_setting_is_a_value_that_it_accepts_and_every_setting_has_a_sentence() {
    for format in [Format::Avro, Format::JsonSchema, Format::GlueAvro, Format::GlueJsonSchema, Format::JsonWithSchema] {
        let mut names = std::collections::BTreeSet::new();
        for key in settings::of(format) {
            assert!(names.insert(key.name), "{format:?} has {} twice", key.name);
            assert!(key.doc.ends_with('.'), "{}", key.name);
            if let Fallback::Text(text) = key.default {
                assert_eq!(key.kind.check(key.kind.tidy(text)), Ok(()), "{}", key.name);
            }
        }
    }
}

#[test]
fn a_converters_settings_are_read_with_their_defaults() {
    let given = [
        ("value.converter.auto.register.schemas", "false"),
        ("value.converter.schema.registry.url", "https://one:8081/, https://two/apis/ccompat/v7"),
        ("value.converter.http.read.timeout.ms", "700"),
    ];
    let documents = loaded(&with(&AVRO, &given));
    let connector = &documents.connectors[0];
    let read = connector.value_converter.read(&connector.values, &documents.worker.values);
    let urls: Vec<String> = read.addresses("schema.registry.url").iter().map(ToString::to_string).collect();
    assert_eq!(urls, ["https://one:8081/", "https://two/apis/ccompat/v7"]);
    assert!(!read.boolean("auto.register.schemas") && read.boolean("connect.meta.data") && !read.boolean("use.latest.version"));
    assert_eq!((read.millis("http.read.timeout.ms").as_millis(), read.millis("http.connect.timeout.ms").as_millis()), (700, 5000));
    assert_eq!((read.integer::<u64>("latest.cache.ttl.sec"), read.integer::<u32>("max.retries")), (None, Some(3)));
    assert_eq!(read.text("no.such.setting"), None);
}

#[test]
fn a_setting_at_fault_is_named_with_what_it_takes() {
    for (base, setting, value, words) in [
        (&AVRO[..], "schema.registry.url", "registry:8081", "neither https nor http"),
        (&AVRO, "schema.registry.url", "https://one,", "no URL"),
        (&AVRO, "schema.registry.url", "https://one?x=1", "query"),
        (&AVRO, "auto.register.schemas", "yes", "neither true nor false"),
        (&AVRO, "basic.auth.credentials.source", "SASL_INHERIT", "URL, USER_INFO"),
        (&AVRO, "bearer.auth.credentials.source", "OAUTHBEARER", "bearer token is given as it is"),
        (&AVRO, "value.subject.name.strategy", "com.acme.MyStrategy", "RecordNameStrategy"),
        (&AVRO, "use.schema.id", "7", "use.latest.version"),
        (&AVRO, "use.latest.with.metadata", "a=b", "use.latest.version"),
        (&AVRO, "context.name.strategy", "com.acme.Contexts", "/contexts/"),
        (&AVRO, "rule.executors", "checkCel", "data contracts"),
        (&AVRO, "schema.registry.ssl.endpoint.identification.algorithm", "", "compared with the name of the host"),
        (&AVRO, "schema.registry.ssl.cipher.suites", "X", "Java's TLS"),
        (&AVRO, "bearer.auth.issuer.endpoint.url", "https://x", "bearer token is given as it is"),
        (&AVRO, "auto.register.schema", "true", "did you mean value.converter.auto.register.schemas?"),
        (&GLUE, "compression", "GZIP", "NONE, ZLIB"),
        (&GLUE, "compatibility", "SOME", "BACKWARD"),
        (&GLUE, "endpoint", "glue", "no URL"),
        (&GLUE, "tags", "a", "name=value"),
        (&GLUE, "schemaAutoRegistrationEnable", "true", "did you mean value.converter.schemaAutoRegistrationEnabled?"),
        (&GLUE, "schemaNameGenerationClass", "com.acme.Names", "schemaName"),
        (&GLUE, "auto.register.schemas", "true", "is no key"),
        (&AVRO, "schemaName", "x", "is no key"),
    ] {
        let name = format!("value.converter.{setting}");
        let changes = [base, &[(name.as_str(), if value.is_empty() { " " } else { value })]].concat();
        let (key, _, message) = Dir::new().servicenow("snow", &changes).fault();
        assert_eq!(key, name);
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn settings_of_the_originals_that_change_nothing_are_accepted() {
    let settings = [
        ("value.converter.use.schema.id", "-1"),
        ("value.converter.latest.compatibility.strict", "false"),
        ("value.converter.schemas.enable", "true"),
        ("value.converter.enhanced.avro.schema.support", "true"),
        ("value.converter.schemas.cache.config", "50"),
        ("value.converter.rule.executors", " "),
        ("value.converter.schema.registry.ssl.endpoint.identification.algorithm", "https"),
        ("value.converter.schema.registry.ssl.enabled.protocols", "TLSv1.2,TLSv1.3"),
    ];
    let documents = loaded(&with(&AVRO, &settings));
    assert!(documents.warnings.is_empty(), "{}", documents.warnings);
    let settings = [("value.converter.avroRecordType", "GENERIC_RECORD"), ("value.converter.region", "eu-west-1")];
    assert!(loaded(&with(&GLUE, &settings)).warnings.is_empty());
}

#[test]
fn what_must_stand_together_is_asked_for() {
    const INFO: (&str, &str) = ("value.converter.basic.auth.user.info", "${env:INFO}");
    const SOURCE: (&str, &str) = ("value.converter.basic.auth.credentials.source", "USER_INFO");
    const BEARER: (&str, &str) = ("value.converter.bearer.auth.credentials.source", "STATIC_TOKEN");
    const TOKEN: (&str, &str) = ("value.converter.bearer.auth.token", "${env:TOKEN}");
    const CARRIED: (&str, &str) = ("value.converter.schema.registry.url", "https://me:pw@registry");
    for (settings, at, words) in [
        (&[SOURCE][..], "value.converter.basic.auth.user.info", "is required by basic.auth.credentials.source"),
        (&[SOURCE, INFO, CARRIED], "value.converter.schema.registry.url", "carries credentials"),
        (&[BEARER], "value.converter.bearer.auth.token", "is required by"),
        (&[TOKEN], "value.converter.bearer.auth.credentials.source", "is required by"),
        (&[BEARER, TOKEN, SOURCE, INFO], "value.converter.bearer.auth.credentials.source", "sign in one way"),
        (
            &[("value.converter.schema.registry.ssl.keystore.key", "${env:K}")],
            "value.converter.schema.registry.ssl.keystore.certificate.chain",
            "is required by",
        ),
        (
            &[
                ("value.converter.schema.registry.ssl.truststore.location", "/a.pem"),
                ("value.converter.schema.registry.ssl.truststore.certificates", "${env:K}"),
            ],
            "value.converter.schema.registry.ssl.truststore.certificates",
            "give the certificates once",
        ),
        (&[("value.converter.proxy.host", "proxy")], "value.converter.proxy.port", "is required by"),
    ] {
        let (key, _, message) = with(&AVRO, settings).fault();
        assert_eq!(key, at, "{message}");
        assert!(message.contains(words), "{message}");
    }
    // The original signs nobody in then, and says nothing.
    let warnings = loaded(&with(&AVRO, &[INFO])).warnings;
    assert!(warnings.to_string().contains("has no effect"), "{warnings}");
    let (key, _, message) = with(&GLUE, &[("key.converter", "glue-avro")]).fault();
    assert!(key == "key.converter.schemaName" && message.contains("schemaName of its own"), "{message}");
    loaded(&with(&GLUE, &[("key.converter", "glue-avro"), ("key.converter.schemaName", "keys")]));
    loaded(&with(&GLUE, &[("key.converter", "glue-avro"), ("value.converter.compatibility", "NONE")]));
}

#[test]
fn credentials_in_an_address_are_warned_about_as_any_password_in_a_document_is() {
    const URL: &str = "value.converter.schema.registry.url";
    let warned = |url| {
        let warnings = loaded(&with(&AVRO, &[(URL, url)])).warnings;
        warnings.0.iter().any(|warning| warning.key.as_deref() == Some(URL) && warning.message.contains("written in the document"))
    };
    for url in ["https://me:hunter2@registry", "https://token@registry", "https://one, https://me:hunter2@two"] {
        assert!(warned(url), "{url}");
    }
    for url in ["https://registry", "https://me:${env:PASSWORD}@registry", "${env:URL}"] {
        assert!(!warned(url), "{url}");
    }
}

#[test]
fn credentials_of_a_registry_are_shown_nowhere() {
    let settings = [
        ("value.converter.schema.registry.url", "http://me:hunter2@registry"),
        ("value.converter.schema.registry.ssl.truststore.certificates", "hunter2"),
        ("key.converter", "avro"),
        ("key.converter.schema.registry.url", "https://registry"),
        ("key.converter.bearer.auth.credentials.source", "STATIC_TOKEN"),
        ("key.converter.bearer.auth.token", "hunter2"),
    ];
    let documents = loaded(&with(&AVRO, &settings));
    assert!(!format!("{documents:?} {}", documents.warnings).contains("hunter2"), "{documents:?}");
    assert!(documents.warnings.to_string().contains("cross the network in clear"), "{}", documents.warnings);
    let connector = &documents.connectors[0];
    let settings = confluent::Settings::read(&connector.value_converter.read(&connector.values, &documents.worker.values));
    assert!(settings.credential.is_some() && !format!("{settings:?}").contains("hunter2"), "{settings:?}");
    let wrong = [("value.converter.basic.auth.credentials.source", "USER_INFO"), ("value.converter.basic.auth.user.info", "hunter2")];
    let (_, value, message) = with(&AVRO, &wrong).fault();
    assert!(value.is_none() && !message.contains("hunter2"), "{message}");
}
