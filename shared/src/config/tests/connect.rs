use super::Dir;
use crate::config::{Documents, Format, TopicSettings};

#[test]
fn what_connect_has_and_this_has_not_is_refused_by_name_with_the_reason() {
    for (key, value, reason) in [
        ("transforms", "unwrap", "no transforms"),
        ("transforms.unwrap.type", "x", "no transforms"),
        ("predicates", "p", "no transforms"),
        ("predicates.p.type", "x", "no transforms"),
        ("header.converter", "org.apache.kafka.connect.json.JsonConverter", "written as text"),
        ("errors.tolerance", "all", "skipped in silence"),
        ("errors.retry.timeout", "-1", "repeated from the cursor"),
        ("errors.log.include.messages", "true", "never logged"),
        ("errors.deadletterqueue.topic.name", "dlq", "belongs to sinks"),
        ("exactly.once.support", "required", "at least once"),
        ("transaction.boundary", "connector", "no transactions"),
        ("transaction.boundary.interval.ms", "5", "no transactions"),
        ("offsets.storage.topic", "t", "cursor store"),
        ("topics", "t", "key of sinks"),
        ("consumer.override.max.poll.records", "5", "consumes nothing"),
        ("admin.override.retries", "5", "no separate admin client"),
    ] {
        let (found, _, message) = Dir::new().servicenow("snow", &[(key, value)]).fault();
        assert_eq!(found, key);
        assert!(message.contains(reason), "{key}: {message}");
    }
}

#[test]
fn standard_keys_that_change_nothing_are_accepted() {
    let keys = [
        ("tasks.max.enforce", "true"),
        ("config.action.reload", "restart"),
        ("predicates", " "),
        ("header.converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
        ("errors.tolerance", "none"),
        ("errors.retry.timeout", "0"),
        ("errors.retry.delay.max.ms", "60000"),
        ("errors.log.enable", "false"),
        ("errors.log.include.messages", "false"),
        ("exactly.once.support", "requested"),
        ("transaction.boundary", "poll"),
        ("topic.creation.default.replication.factor", "3"),
        ("topic.creation.default.partitions", "6"),
        ("topic.creation.default.cleanup.policy", "compact"),
    ];
    let documents = Dir::new().servicenow("snow", &keys).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert!(documents.warnings.is_empty());
    let topics = made(&documents, "any").unwrap();
    assert_eq!((topics.replication_factor, topics.partitions), (3, 6));
    assert_eq!(topics.config.get("cleanup.policy").map(String::as_str), Some("compact"));
}

/// How the only connector's topic of this name is made.
fn made(documents: &Documents, topic: &str) -> Option<TopicSettings> {
    documents.connectors[0].topic_creation(&documents.worker)?.of(topic).cloned()
}

#[test]
fn topics_are_made_as_the_connector_says_else_as_the_worker_says_unless_it_forbids() {
    let worker = r#"{"topic.creation.default.replication.factor": 2, "topic.creation.default.partitions": -1}"#;
    let dir = Dir::new().with("worker.json", worker).servicenow("snow", &[]);
    let documents = dir.load().unwrap();
    let topics = made(&documents, "any").unwrap();
    assert_eq!((topics.replication_factor, topics.partitions), (2, -1));

    let forbidden = worker.replace('{', r#"{"topic.creation.enable": false, "#);
    let documents = dir.with("worker.json", forbidden).load().unwrap();
    assert_eq!(made(&documents, "any"), None);
    let documents = Dir::new().servicenow("snow", &[]).load().unwrap();
    assert_eq!(made(&documents, "any"), None, "nobody says how");
}

#[test]
fn groups_of_topics_are_whole_and_listed() {
    let counts = [("topic.creation.hot.partitions", "9"), ("topic.creation.hot.replication.factor", "1")];
    let group = [("topic.creation.groups", "hot"), counts[0], counts[1]];
    let (key, _, message) = Dir::new().servicenow("snow", &group).fault();
    assert_eq!((key.as_str(), message.contains("is required")), ("topic.creation.hot.include", true));
    let lonely = [group[0], counts[0], ("topic.creation.hot.include", "a.*")];
    assert_eq!(Dir::new().servicenow("snow", &lonely).fault().0, "topic.creation.hot.replication.factor", "nobody says how many");
    let (key, _, message) = Dir::new().servicenow("snow", &[("topic.creation.hot.include", "a.*")]).fault();
    assert_eq!(key, "topic.creation.hot.include");
    assert!(message.contains("does not list"), "{message}");
    let (key, _, _) = Dir::new().servicenow("snow", &[("topic.creation.default.partitions", "3")]).fault();
    assert_eq!(key, "topic.creation.default.replication.factor");
    let none = [("topic.creation.default.partitions", "0"), ("topic.creation.default.replication.factor", "1")];
    assert!(Dir::new().servicenow("snow", &none).fault().2.contains("is 0"));
    for broken in ["snow.(", "a,b(?=c)", "(a,b)", ""] {
        let whole = [group[0], counts[0], counts[1], ("topic.creation.hot.include", broken)];
        assert_eq!(Dir::new().servicenow("snow", &whole).fault().0, "topic.creation.hot.include", "{broken}");
    }
}

#[test]
fn the_first_group_that_claims_a_topic_makes_it_and_the_default_group_what_is_left() {
    let keys = [
        ("topic.creation.default.replication.factor", "3"),
        ("topic.creation.default.partitions", "6"),
        ("topic.creation.default.retention.ms", "1000"),
        ("topic.creation.groups", "hot, archive"),
        ("topic.creation.hot.include", "snow\\.incident, snow\\.p.*"),
        ("topic.creation.hot.exclude", "snow\\.private.*"),
        ("topic.creation.hot.partitions", "24"),
        ("topic.creation.archive.include", "snow\\.(incident|private)"),
        ("topic.creation.archive.replication.factor", "2"),
        ("topic.creation.archive.cleanup.policy", "compact"),
    ];
    let documents = Dir::new().servicenow("snow", &keys).load().unwrap_or_else(|faults| panic!("{faults}"));
    let counts = |topic| made(&documents, topic).map(|made| (made.replication_factor, made.partitions));
    assert_eq!(counts("snow.incident"), Some((3, 24)), "the first that is listed, its count and the default's");
    assert_eq!(counts("snow.private"), Some((2, 6)), "what one group excludes another may claim");
    assert_eq!(counts("snow.problem"), Some((3, 24)));
    assert_eq!(counts("my.snow.incident"), Some((3, 6)), "a pattern is for the whole name");
    let config = |topic| made(&documents, topic).unwrap().config.into_keys().collect::<Vec<_>>();
    assert_eq!((config("snow.private"), config("other")), (vec!["cleanup.policy".to_owned()], vec!["retention.ms".to_owned()]));

    let only: Vec<_> = keys.iter().copied().filter(|(key, _)| !key.contains("default")).collect();
    let more = [("topic.creation.hot.replication.factor", "1"), ("topic.creation.archive.partitions", "1")];
    let documents = Dir::new().servicenow("snow", &[&only[..], &more].concat()).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!((made(&documents, "other"), made(&documents, "snow.incident").is_some()), (None, true));
}

#[test]
fn a_connectors_converter_comes_with_its_own_settings_and_else_the_workers_holds_whole() {
    let worker = r#"{"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": false}"#;
    let load = |keys: &[(&str, &str)]| Dir::new().with("worker.json", worker).servicenow("snow", keys).load().unwrap();
    let format = |keys: &[(&str, &str)]| load(keys).connectors[0].value_converter.format;
    assert_eq!(format(&[]), Format::RawJson);
    assert_eq!(format(&[("value.converter", "json")]), Format::JsonWithSchema, "true is Connect's default");
    assert_eq!(format(&[("value.converter", "json"), ("value.converter.schemas.enable", "false")]), Format::RawJson);
    assert_eq!(format(&[("value.converter", "raw")]), Format::RawJson);

    let ignored = load(&[("value.converter.schemas.enable", "true")]);
    assert_eq!(ignored.connectors[0].value_converter.format, Format::RawJson);
    assert!(ignored.warnings.0[0].message.contains("names no value.converter"), "{:?}", ignored.warnings);
}

#[test]
fn without_any_converter_keys_are_texts_and_values_are_json_without_a_schema() {
    let documents = Dir::new().servicenow("snow", &[]).load().unwrap();
    let connector = &documents.connectors[0];
    assert_eq!((connector.key_converter.format, connector.value_converter.format), (Format::String, Format::RawJson));
}

#[test]
fn a_registry_converter_is_accepted_with_its_address() {
    let avro = ("value.converter", "io.confluent.connect.avro.AvroConverter");
    let strings = ("snow.source.schema.mode", "strings");
    let (key, _, message) = Dir::new().servicenow("snow", &[avro, strings]).fault();
    assert_eq!(key, "value.converter.schema.registry.url");
    assert!(message.contains("is required"), "{message}");

    let settings = [
        avro,
        strings,
        ("value.converter.schema.registry.url", "https://registry"),
        ("value.converter.basic.auth.user.info", "me:hunter2"),
    ];
    let documents = Dir::new().servicenow("snow", &settings).load().unwrap();
    let connector = &documents.connectors[0];
    assert_eq!(connector.value_converter.format, Format::Avro);
    let settings = connector.value_converter.settings(&connector.values, &documents.worker.values);
    assert_eq!(settings, [("basic.auth.user.info", "me:hunter2"), ("schema.registry.url", "https://registry")]);
    assert!(!format!("{documents:?}").contains("hunter2"));
}

#[test]
fn a_format_of_a_registry_is_refused_for_rows_without_a_schema_whichever_document_names_it() {
    let url = ("value.converter.schema.registry.url", "https://registry");
    for converter in [&[("value.converter", "json-schema"), url][..], &[("value.converter", "glue-avro")]] {
        let (key, _, message) = Dir::new().servicenow("snow", converter).fault();
        assert_eq!(key, "snow.source.schema.mode");
        assert!(message.contains("value.converter"), "{message}");
    }
    let worker = r#"{"value.converter": "avro", "value.converter.schema.registry.url": "https://registry"}"#;
    let (key, _, message) = Dir::new().with("worker.json", worker).servicenow("snow", &[]).fault();
    assert_eq!(key, "snow.source.schema.mode");
    assert!(message.contains("worker's document"), "{message}");
    let keys = [("key.converter", "avro"), ("key.converter.schema.registry.url", "https://registry")];
    Dir::new().servicenow("snow", &keys).load().unwrap_or_else(|faults| panic!("a key is a text: {faults}"));
}

#[test]
fn converters_that_would_change_the_data_or_are_unknown_are_refused() {
    for (key, class, reason) in [
        ("value.converter", "org.apache.kafka.connect.converters.ByteArrayConverter", "no byte array"),
        ("value.converter", "io.confluent.connect.protobuf.ProtobufConverter", "Protobuf is not supported"),
        ("value.converter", "org.apache.kafka.connect.json.JsonConvertor", "did you mean org.apache.kafka.connect.json.JsonConverter?"),
        ("key.converter", "strng", "did you mean string?"),
    ] {
        let (found, _, message) = Dir::new().servicenow("snow", &[(key, class)]).fault();
        assert_eq!(found, key);
        assert!(message.contains(reason), "{message}");
    }
    let (key, _, message) =
        Dir::new().servicenow("snow", &[("value.converter", "json"), ("value.converter.schema.enable", "false")]).fault();
    assert_eq!(key, "value.converter.schema.enable");
    assert!(message.contains("did you mean value.converter.schemas.enable?"), "{message}");
}

#[test]
fn values_in_javas_notation_are_written_with_a_warning() {
    let string = [("value.converter", "org.apache.kafka.connect.storage.StringConverter")];
    let documents = Dir::new().servicenow("snow", &string).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(documents.connectors[0].value_converter.format, Format::String);
    assert!(documents.warnings.0[0].message.contains("toString"), "{:?}", documents.warnings);
}

#[test]
fn every_converter_that_a_document_may_name_is_built() {
    for name in crate::config::converter::names() {
        let url = [("value.converter.schema.registry.url", "https://registry")];
        let needs_url = matches!(crate::config::converter::format(name), Some(Format::Avro | Format::JsonSchema));
        let named = [("value.converter", name), ("snow.source.schema.mode", "strings")];
        let documents = Dir::new().servicenow("snow", &[&named, &url[..usize::from(needs_url)]].concat()).load();
        documents.unwrap_or_else(|faults| panic!("{name}: {faults}"));
    }
}

#[test]
fn the_keys_of_a_connect_cluster_are_warned_about_and_other_clients_keys_are_placed() {
    let worker = r#"{"group.id": "g", "offset.storage.topic": "o", "rest.port": 8083, "plugin.path": "/p", "config.providers": "file"}"#;
    let documents = Dir::new().with("worker.json", worker).servicenow("snow", &[]).load().unwrap();
    assert_eq!(documents.warnings.0.len(), 5, "{}", documents.warnings);
    let (_, _, message) = Dir::new().with("worker.json", r#"{"linger.ms": 5}"#).servicenow("snow", &[]).fault();
    assert!(message.contains("write producer.linger.ms"), "{message}");
    let exactly = r#"{"exactly.once.source.support": "enabled"}"#;
    assert!(Dir::new().with("worker.json", exactly).servicenow("snow", &[]).fault().2.contains("at least once"));
}
