//! Topics that are made when they are missing.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use serde_json::{Value, json};
use tablesweep_testbed::table_api::Generate;

use super::Stand;

const ASK_WITHIN: Duration = Duration::from_secs(20);

fn keys(topics: [&str; 2]) -> Value {
    let mut keys = json!({"snow.tables": "one,two"});
    for (alias, topic) in ["one", "two"].into_iter().zip(topics) {
        keys[format!("snow.table.{alias}.name")] = format!("u_{alias}").into();
        keys[format!("snow.table.{alias}.topic")] = topic.into();
        keys[format!("snow.table.{alias}.start.timestamp")] = "2026-01-01 00:00:00".into();
    }
    keys
}

async fn stand() -> Stand {
    let stand = Stand::new().await;
    for table in ["u_one", "u_two"] {
        let start = Some("2026-01-01 00:00:00".to_owned());
        stand.api.generate(Generate { start, ..Generate::rows(table, 10) }).expect("rows");
    }
    stand
}

/// The partitions of a topic and one of its settings, as the broker says.
async fn asked(stand: &Stand, topic: &str, setting: &str) -> (usize, Option<String>) {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", stand.broker.bootstrap());
    let admin: AdminClient<DefaultClientContext> = config.create().expect("a client");
    let metadata = admin.inner().fetch_metadata(Some(topic), ASK_WITHIN).expect("metadata");
    let partitions = metadata.topics().first().expect("the topic").partitions().len();
    let described = admin.describe_configs([&ResourceSpecifier::Topic(topic)], &AdminOptions::new()).await.expect("an answer");
    let described = described.into_iter().next().expect("one").expect("described");
    (partitions, described.get(setting).and_then(|entry| entry.value.clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_topic_is_made_by_its_group_and_one_that_exists_is_left_alone() {
    let stand = stand().await;
    let mut config = keys(["made-hot", "made-cold"]);
    config["topic.creation.default.partitions"] = "2".into();
    config["topic.creation.default.replication.factor"] = "-1".into();
    config["topic.creation.default.cleanup.policy"] = "compact".into();
    config["topic.creation.groups"] = "hot".into();
    config["topic.creation.hot.include"] = "made-h.*".into();
    config["topic.creation.hot.partitions"] = "5".into();
    config["topic.creation.hot.retention.ms"] = "86400000".into();
    stand.connector(&config);
    assert!(stand.sweep("made", 0).iter().all(|table| table["rows"] == 10));
    assert_eq!(asked(&stand, "made-hot", "retention.ms").await, (5, Some("86400000".to_owned())));
    assert_eq!(asked(&stand, "made-cold", "cleanup.policy").await, (2, Some("compact".to_owned())));

    config["topic.creation.hot.partitions"] = "9".into();
    stand.connector(&config);
    stand.sweep("again", 0);
    assert_eq!(asked(&stand, "made-hot", "retention.ms").await.0, 5);
}

#[tokio::test]
async fn a_topic_that_the_brokers_refuse_to_make_parks_its_table_and_says_why() {
    let stand = stand().await;
    stand.broker.create_topic("made-before", 1).await.expect("a topic");
    for (setting, value, part) in [
        ("replication.factor", "3", "topic.creation.default.replication.factor"),
        ("no.such.setting", "1", "topic.creation."),
        ("retention.ms", "soon", "topic.creation."),
    ] {
        let mut config = keys(["made-before", "made-never"]);
        config["topic.creation.default.partitions"] = "1".into();
        config["topic.creation.default.replication.factor"] = "1".into();
        config[format!("topic.creation.default.{setting}")] = value.into();
        stand.connector(&config);
        let tables = stand.sweep(&format!("refused-{setting}"), 1);
        assert_eq!(tables[0]["outcome"], "caught_up", "the other table is swept: {tables:?}");
        let reason = &tables[1]["reason"];
        assert_eq!((&tables[1]["outcome"], &reason["code"]), (&"parked".into(), &"Sink.TopicRefused".into()), "{tables:?}");
        let message = reason["message"].as_str().expect("words");
        assert!(["made-never", part, value].iter().all(|part| message.contains(part)), "{message}");
    }
}

#[tokio::test]
async fn without_being_asked_for_no_topic_is_made() {
    let stand = stand().await;
    stand.worker(&json!({"topic.creation.enable": "false"}));
    let mut config = keys(["made-unasked-1", "made-unasked-2"]);
    config["topic.creation.default.partitions"] = "1".into();
    config["topic.creation.default.replication.factor"] = "1".into();
    stand.connector(&config);
    for table in stand.sweep("unasked", 1) {
        assert_eq!(table["reason"]["code"], "Sink.TopicMissing", "{table}");
    }
}
