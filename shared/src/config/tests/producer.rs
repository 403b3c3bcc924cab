use super::Dir;
use crate::config::ProducerSettings;

#[track_caller]
fn settings(worker: &str, overrides: &[(&str, &str)]) -> ProducerSettings {
    let documents = Dir::new().with("worker.json", worker).servicenow("snow", overrides).load().unwrap_or_else(|faults| panic!("{faults}"));
    documents.connectors[0].producer(&documents.worker).unwrap()
}

#[test]
fn a_connectors_override_beats_the_workers_producer_which_beats_the_workers_own() {
    let worker = r#"{"bootstrap.servers": "a:9092", "client.id": "worker", "producer.client.id": "producer", "producer.linger.ms": 1}"#;
    let settings = settings(worker, &[("producer.override.linger.ms", "2")]);
    let found: Vec<_> = settings.iter().collect();
    assert_eq!(found, [("bootstrap.servers", "a:9092"), ("client.id", "producer"), ("linger.ms", "2")]);
}

#[test]
fn one_setting_by_two_names_is_one_setting() {
    let settings = settings(r#"{"producer.linger.ms": 1}"#, &[("producer.override.queue.buffering.max.ms", "2")]);
    assert_eq!(settings.iter().collect::<Vec<_>>(), [("linger.ms", "2")]);
}

#[test]
fn java_settings_with_an_equivalent_are_translated() {
    let worker = r#"{
        "producer.buffer.memory": 33554433, "producer.max.request.size": 2000000, "producer.delivery.timeout.ms": 20000,
        "producer.send.buffer.bytes": -1, "producer.receive.buffer.bytes": 65536,
        "producer.partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
        "producer.compression.type": "ZSTD", "producer.acks": "all"
    }"#;
    assert_eq!(
        settings(worker, &[]).iter().collect::<Vec<_>>(),
        [
            ("acks", "all"),
            ("compression.type", "zstd"),
            ("message.max.bytes", "2000000"),
            ("message.timeout.ms", "20000"),
            ("partitioner", "murmur2_random"),
            ("queue.buffering.max.kbytes", "32769"),
            ("socket.receive.buffer.bytes", "65536"),
            ("socket.send.buffer.bytes", "0"),
        ]
    );
}

#[test]
fn what_has_no_equivalent_or_breaks_a_promise_is_refused_with_the_reason() {
    for (setting, value, reason) in [
        ("acks", "1", "all in-sync replicas"),
        ("enable.idempotence", "false", "always on"),
        ("max.in.flight.requests.per.connection", "6", "above the largest value, 5"),
        ("key.serializer", "x", "key converter"),
        ("interceptor.classes", "x", "Java class"),
        ("max.block.ms", "5", "sweep's budget"),
        ("transactional.id", "x", "no transactions"),
        ("delivery.report.only.error", "true", "acknowledgement is counted"),
        ("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required password=\"hunter2\";", "sasl.username"),
        ("ssl.truststore.location", "/t.jks", "ssl.ca.location"),
        ("partitioner.class", "com.acme.Mine", "`partitioner`"),
        ("sasl.oauthbearer.method", "oidc", "AWS_MSK_IAM"),
        ("linger.m", "5", "did you mean producer.override.linger.ms?"),
        ("auto.offset.reset", "latest", "no producer setting"),
    ] {
        let key = format!("producer.override.{setting}");
        let (found, shown, message) = Dir::new().servicenow("snow", &[(&key, value)]).fault();
        assert_eq!(found, key);
        assert!(message.contains(reason), "{message}");
        assert!(!format!("{shown:?}{message}").contains("hunter2"));
    }
}

#[test]
fn msk_iam_goes_out_by_its_name_and_the_java_way_to_ask_for_it_is_understood() {
    let worker = r#"{
        "security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "producer.sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    }"#;
    let found = settings(worker, &[]);
    assert_eq!(found.iter().collect::<Vec<_>>(), [("sasl.mechanism", "AWS_MSK_IAM"), ("security.protocol", "SASL_SSL")]);
}

#[test]
fn how_to_sign_in_is_whole() {
    let fault = |worker: &str| Dir::new().with("worker.json", worker).servicenow("snow", &[]).fault();
    assert_eq!(fault(r#"{"security.protocol": "SASL_SSL"}"#).0, "sasl.mechanism");
    assert_eq!(fault(r#"{"sasl.mechanism": "AWS_MSK_IAM"}"#).0, "sasl.mechanism");
    assert_eq!(fault(r#"{"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "AWS_MSK_IAM"}"#).0, "security.protocol");
    let (key, _, message) = fault(r#"{"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}"#);
    assert!(key == "sasl.mechanism" && message.contains("AWS_MSK_IAM"), "tokens of another issuer: {key} {message}");
    let scram = r#"{"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u"}"#;
    assert_eq!(fault(scram).0, "sasl.password");
    // A placeholder is there, whatever it will yield.
    let half = Dir::new().with("worker.json", scram).servicenow("snow", &[("producer.override.linger.ms", "5")]);
    assert_eq!(half.load().unwrap_err().faults.len(), 1, "the worker's mistake is not the connector's too");
    let overridden = [("producer.override.security.protocol", "SASL_PLAINTEXT"), ("producer.override.sasl.mechanism", "AWS_MSK_IAM")];
    assert_eq!(Dir::new().servicenow("snow", &overridden).fault().0, "security.protocol");
    settings(&scram.replace('}', r#", "sasl.password": "${env:P}"}"#), &[]);
}

#[test]
fn equal_settings_can_share_a_producer_and_none_are_shown() {
    let worker = r#"{"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "hunter2"}"#;
    let (one, two) = (settings(worker, &[]), settings(worker, &[]));
    assert_eq!(one, two);
    assert_ne!(one, settings(worker, &[("producer.override.linger.ms", "9")]));
    assert!(!format!("{one:?}").contains("hunter2"));
}
