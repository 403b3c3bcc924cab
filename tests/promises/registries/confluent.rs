//! What is asked of a registry, and how often.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tablesweep::failure::Failure;
use tablesweep::host::Host;
use tablesweep::record::converter::registration::{Candidate, Language, Part, Registry as _};
use tablesweep::registry::confluent::{self, Strategy};
use tablesweep::registry::{Answers, Confluent, Rotation};
use tablesweep::sweep::Outcome;
use tablesweep_testbed::schema_registry::PATH;
use tablesweep_testbed::table_api::Fields;

use super::{Stand, id};

#[tokio::test]
async fn a_schema_is_registered_under_the_topics_subject_and_each_record_begins_with_its_id() {
    let mut stand = Stand::new("subject").await;
    stand.laptop.set("key.converter", "avro");
    stand.laptop.set("key.converter.schema.registry.url", stand.registry.url());
    let report = stand.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
    let registered = stand.registry.version(&stand.subject(), "latest").await.expect("a version");
    assert!(stand.values().iter().all(|value| id(value) == registered["id"].as_u64().expect("an id")));
    let schema: Value = serde_json::from_str(registered["schema"].as_str().expect("a schema")).expect("JSON");
    assert_eq!((&schema["type"], &schema["name"]), (&"record".into(), &"Value".into()), "{schema}");
    let key = stand.registry.version(&format!("{}-key", stand.topic), "latest").await.expect("a version");
    assert_eq!(key["schema"], "\"string\"");
    for record in stand.heap.0.lock().expect("whole").iter() {
        // A string of Avro: its length, zigzag, and its bytes.
        assert_eq!((id(&record.key), record.key[5]), (key["id"].as_u64().expect("an id"), 64));
    }
    assert_eq!(stand.asked(), [format!("POST {PATH}/subjects/{}/versions", stand.subject())]);
}

#[tokio::test]
async fn a_warm_process_asks_once_for_a_schema_and_once_more_for_the_next() {
    let stand = Stand::new("warm").await;
    let process = stand.laptop.assembly(&stand.laptop.host);
    assert_eq!(stand.warm(&process).await.rows, 5);
    let insert = |at: &str| stand.laptop.api.insert("incident", Fields::from([("sys_updated_on", at)])).expect("a row");
    insert("2026-02-02 00:00:00");
    assert_eq!(stand.warm(&process).await.rows, 1);
    assert_eq!(stand.asked().len(), 1, "{:?}", stand.asked());

    let row = Fields::from([("sys_updated_on", "2026-02-03 00:00:00"), ("u_new", "x")]);
    stand.laptop.api.insert("incident", row).expect("a row");
    assert_eq!(stand.warm(&process).await.rows, 1);
    assert_eq!(stand.asked().len(), 2, "{:?}", stand.asked());
    assert_eq!(stand.registry.versions(&stand.subject()).await.expect("versions"), [1, 2]);
    let ids: Vec<u64> = stand.values().iter().map(|value| id(value)).collect();
    assert!(ids[..6].iter().all(|id| *id == ids[0]) && ids[6] != ids[0], "{ids:?}");

    // A process that begins anew asks for what it needs, and is told the same.
    insert("2026-02-04 00:00:00");
    assert_eq!(stand.sweep().await.rows, 1);
    assert_eq!((stand.asked().len(), id(&stand.values()[7])), (3, ids[6]));
    assert_eq!(stand.registry.versions(&stand.subject()).await.expect("versions"), [1, 2]);
}

#[tokio::test]
async fn subjects_are_named_after_the_record_where_the_settings_say_so() {
    let record = "sh.oso.servicenow.incident.Value";
    for (strategy, subject) in [
        ("RecordNameStrategy", record.to_owned()),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", format!("registries.strategy-{record}")),
    ] {
        let stand = Stand::new("strategy").await.with("value.subject.name.strategy", strategy);
        assert_eq!(stand.sweep().await.rows, 5);
        let registered = stand.registry.version(&subject, "latest").await.expect("a version");
        assert!(stand.values().iter().all(|value| id(value) == registered["id"].as_u64().expect("an id")));
        stand.assert_complete();
    }
}

#[tokio::test]
async fn a_key_has_no_subject_after_a_record_and_is_told_so() {
    let mut stand = Stand::new("no-record").await;
    stand.laptop.set("key.converter", "avro");
    stand.laptop.set("key.converter.schema.registry.url", stand.registry.url());
    stand.laptop.set("key.converter.key.subject.name.strategy", "RecordNameStrategy");
    let report = stand.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Registry.NoSubject"), "{}", reason.message);
    assert!(reason.message.contains("snow/inc") && reason.message.contains("TopicNameStrategy"), "{}", reason.message);
    stand.assert_untouched().await;
}

#[tokio::test]
async fn without_auto_register_a_schema_must_be_there_and_is_used_as_soon_as_it_is() {
    let first = Stand::new("registered-by-hand").await;
    assert_eq!(first.sweep().await.rows, 5);
    let schema = first.registry.version(&first.subject(), "latest").await.expect("a version");
    let stand = Stand::new("found").await.with("auto.register.schemas", "false");
    let report = stand.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Registry.SchemaMissing"), "{}", reason.message);
    let words = [&stand.subject(), "snow/inc", "auto.register.schemas"].map(|word| reason.message.contains(word));
    assert_eq!(words, [true; 3], "{}", reason.message);
    stand.assert_untouched().await;
    assert_eq!(stand.registry.versions(&stand.subject()).await.expect("versions"), [0; 0], "nothing was registered");

    let text = schema["schema"].as_str().expect("a text");
    let registered = stand.registry.register(&stand.subject(), "AVRO", text).await.expect("registered");
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    assert!(stand.values().iter().all(|value| id(value) == registered));
    stand.assert_complete();
    assert!(stand.asked().iter().all(|line| *line == format!("POST {PATH}/subjects/{}", stand.subject())), "{:?}", stand.asked());
}

#[tokio::test]
async fn the_latest_version_is_written_with_where_the_settings_say_so() {
    let first = Stand::new("own-schema").await;
    assert_eq!(first.sweep().await.rows, 5);
    let own = first.registry.version(&first.subject(), "latest").await.expect("a version");
    let mut wider: Value = serde_json::from_str(own["schema"].as_str().expect("a text")).expect("JSON");
    let fields = wider["fields"].as_array_mut().expect("fields");
    fields.insert(0, serde_json::json!({"name": "u_of_another", "type": ["null", "string"], "default": null}));

    let stand = Stand::new("latest").await.with("auto.register.schemas", "false").with("use.latest.version", "true");
    let registered = stand.registry.register(&stand.subject(), "AVRO", &wider.to_string()).await.expect("registered");
    let report = stand.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    stand.assert_complete();
    for value in stand.values() {
        // The field that the rows do not have comes first: null, the first branch of its union.
        assert_eq!((id(&value), value[5]), (registered, 0));
    }
    assert_eq!(stand.asked(), [format!("GET {PATH}/subjects/{}/versions/latest", stand.subject())]);
    // auto.register.schemas comes first, as in Confluent's serialisers.
    let both = Stand::new("both").await.with("use.latest.version", "true");
    assert_eq!(both.sweep().await.rows, 5);
    assert_eq!(both.asked(), [format!("POST {PATH}/subjects/{}/versions", both.subject())]);
}

#[tokio::test]
async fn a_latest_version_is_asked_for_again_when_its_time_is_over() {
    for (ttl, asked) in [("-1", 1), ("0", 2)] {
        let first = Stand::new("ttl-own").await;
        assert_eq!(first.sweep().await.rows, 5);
        let own = first.registry.version(&first.subject(), "latest").await.expect("a version");
        let stand = Stand::new(&format!("ttl{ttl}"))
            .await
            .with("auto.register.schemas", "false")
            .with("use.latest.version", "true")
            .with("latest.cache.ttl.sec", ttl);
        stand.registry.register(&stand.subject(), "AVRO", own["schema"].as_str().expect("a text")).await.expect("registered");
        let process = stand.laptop.assembly(&stand.laptop.host);
        stand.warm(&process).await;
        stand.laptop.api.insert("incident", Fields::from([("sys_updated_on", "2026-02-02 00:00:00")])).expect("a row");
        stand.warm(&process).await;
        assert_eq!((stand.values().len(), stand.asked().len()), (6, asked), "ttl {ttl}");
    }
}

#[tokio::test]
async fn an_incompatible_schema_is_refused_with_subject_and_reason_until_it_is_not() {
    let stand = Stand::new("incompatible").await;
    stand.registry.register(&stand.subject(), "AVRO", "\"long\"").await.expect("registered");
    stand.registry.set_compatibility(&stand.subject(), "BACKWARD").await.expect("set");
    let report = stand.sweep().await;
    let reason = report.reason.expect("a reason");
    assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Registry.Incompatible"), "{}", reason.message);
    assert!(reason.message.contains(&stand.subject()) && reason.message.contains("409"), "{}", reason.message);
    assert_eq!(stand.asked().len(), 1, "a refusal is not asked for again");
    stand.assert_untouched().await;
    stand.registry.set_compatibility(&stand.subject(), "NONE").await.expect("set");
    assert_eq!(stand.sweep().await.outcome, Outcome::CaughtUp);
    stand.assert_complete();
}

#[tokio::test]
async fn json_schemas_are_registered_as_that_and_the_data_is_json_behind_the_header() {
    let mut stand = Stand::new("json-schema").await.with("normalize.schemas", "true");
    stand.laptop.set("value.converter", "io.confluent.connect.json.JsonSchemaConverter");
    assert_eq!(stand.sweep().await.rows, 5);
    stand.assert_complete();
    let registered = stand.registry.version(&stand.subject(), "latest").await.expect("a version");
    assert_eq!(registered["schemaType"], "JSON", "{registered}");
    for value in stand.values() {
        assert_eq!(id(&value), registered["id"].as_u64().expect("an id"));
        let row: Value = serde_json::from_slice(&value[5..]).expect("JSON");
        assert!(row["sys_id"].is_string(), "{row}");
    }
    assert_eq!(stand.asked(), [format!("POST {PATH}/subjects/{}/versions?normalize=true", stand.subject())]);
}

/// No placeholders, and so nothing that could have been rotated.
struct Fixed;

#[async_trait]
impl Rotation for Fixed {
    async fn renew(&self) -> Result<Option<confluent::Settings>, Failure> {
        Ok(None)
    }
}

#[tokio::test]
async fn a_subject_is_one_segment_of_the_path_whatever_it_holds() {
    let stand = Stand::new("path").await;
    let settings = confluent::Settings {
        addresses: vec![stand.registry.url().parse().expect("an address")],
        value_strategy: Strategy::Record,
        ..settings(&stand)
    };
    let registry = Confluent::new(settings, Arc::new(Fixed), Answers::default(), Host::system()).expect("a client");
    let record = "a/b ?c#d%2Fé".to_owned();
    let candidate = Candidate {
        topic: "t".to_owned(),
        part: Part::Value,
        record: Some(record.clone()),
        language: Language::Avro,
        text: "\"string\"".to_owned(),
    };
    registry.register(&candidate, None).await.expect("registered");
    let (_, subjects) = stand.registry.ask("GET", "/subjects", None).await.expect("subjects");
    assert!(subjects.as_array().expect("a list").contains(&record.into()), "{subjects}");
}

/// The settings that the stand's document stands for.
fn settings(stand: &Stand) -> confluent::Settings {
    let documents = tablesweep::config::load(&stand.laptop.documents(), tablesweep::assembly::SOURCES, &|_| None).expect("documents");
    let connector = &documents.connectors[0];
    confluent::Settings::read(&connector.value_converter.read(&connector.values, &documents.worker.values))
}
