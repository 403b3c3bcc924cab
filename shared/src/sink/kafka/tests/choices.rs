//! What may be set, what is set when nobody does, and what is refused.

use super::*;
use crate::failure::Retry;

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter().chain(&[("bootstrap.servers", "b-1.example:9096")]);
    pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn within(seconds: u64) -> KafkaOptions {
    KafkaOptions { function_timeout: Some(Duration::from_secs(seconds)), ..options() }
}

fn build(pairs: &[(&str, &str)], options: &KafkaOptions) -> Result<KafkaSink, Failure> {
    KafkaSink::new(&given(pairs), options, OversizePolicy::Fail)
}

fn value(sink: &KafkaSink, key: &str) -> String {
    sink.connection.settings().client_config().get(key).unwrap_or_default().to_owned()
}

fn refusal(pairs: &[(&str, &str)], options: &KafkaOptions) -> String {
    let failure = build(pairs, options).unwrap_err();
    assert_eq!((&*failure.code, failure.retry), ("Config.Invalid", Retry::Never), "{failure}");
    failure.message
}

#[test]
fn the_timeouts_nest_for_every_function_timeout() {
    for seconds in [6, 9, 30, 60, 300, 900] {
        let sink = build(&[], &within(seconds)).unwrap();
        let ms = |key: &str| Duration::from_millis(value(&sink, key).parse().unwrap());
        assert_eq!(ms("message.timeout.ms"), Duration::from_secs(20).min(Duration::from_secs(seconds) / 3));
        assert!(ms("request.timeout.ms") < ms("message.timeout.ms"));
        assert!(ms("socket.timeout.ms") < ms("message.timeout.ms"));
        assert!(ms("message.timeout.ms") < sink.message_timeout());
        assert!(sink.message_timeout() < Duration::from_secs(seconds));
    }
}

#[test]
fn a_smaller_message_timeout_is_kept_and_its_inner_timeouts_shrink_with_it() {
    let sink = build(&[("message.timeout.ms", "4000")], &within(60)).unwrap();
    assert_eq!((&*value(&sink, "message.timeout.ms"), &*value(&sink, "socket.timeout.ms")), ("4000", "2000"));
}

#[test]
fn timeouts_that_do_not_nest_are_refused_with_both_numbers() {
    let outer = refusal(&[("message.timeout.ms", "20001")], &within(60));
    assert!(outer.contains("20001") && outer.contains("20000") && outer.contains("message.timeout.ms"), "{outer}");
    let inner = refusal(&[("message.timeout.ms", "5000"), ("socket.timeout.ms", "5000")], &within(60));
    assert!(inner.contains("socket.timeout.ms") && inner.contains("message.timeout.ms (5000)"), "{inner}");
    let request = refusal(&[("request.timeout.ms", "30000")], &within(60));
    assert!(request.contains("request.timeout.ms"), "{request}");
    let function = refusal(&[], &within(3));
    assert!(function.contains("raise the function's timeout"), "{function}");
    assert!(refusal(&[("message.timeout.ms", "0")], &options()).contains("message.timeout.ms"));
}

#[test]
fn what_nobody_sets_is_set_for_safety_and_what_somebody_sets_is_kept() {
    let ours = build(&[], &within(60)).unwrap();
    let expected = [
        ("acks", "all"),
        ("enable.idempotence", "true"),
        ("partitioner", "murmur2_random"),
        ("compression.type", "zstd"),
        ("allow.auto.create.topics", "false"),
        ("client.id", "test"),
    ];
    for (key, expected) in expected {
        assert_eq!(value(&ours, key), expected, "{key}");
    }
    let theirs = build(&[("compression.codec", "lz4"), ("linger.ms", "5"), ("client.id", "me")], &within(60)).unwrap();
    assert_eq!((&*value(&theirs, "compression.type"), &*value(&theirs, "linger.ms")), ("lz4", "5"));
    assert_eq!(value(&theirs, "client.id"), "me");
}

#[test]
fn what_would_break_a_promise_is_refused() {
    for (key, value) in [
        ("acks", "1"),
        ("request.required.acks", "0"),
        ("enable.idempotence", "false"),
        ("transactional.id", "t"),
        ("delivery.report.only.error", "true"),
    ] {
        let message = refusal(&[(key, value)], &within(60));
        assert!(message.contains(&format!("`{value}`")), "{message}");
    }
}

#[test]
fn an_unknown_setting_and_a_wrong_value_are_refused_by_name() {
    assert!(refusal(&[("lingr.ms", "5")], &within(60)).contains("lingr.ms"));
    assert!(refusal(&[("linger.ms", "soon")], &within(60)).contains("linger.ms"));
    assert!(refusal(&[("message.max.bytes", "x")], &within(60)).contains("message.max.bytes"));
    let queue = refusal(&[("message.max.bytes", "8000000"), ("queue.buffering.max.kbytes", "1000")], &within(60));
    assert!(queue.contains("queue.buffering.max.kbytes") && queue.contains("8000000"), "{queue}");
}

#[test]
fn our_pauses_and_lingering_give_way_to_what_was_chosen() {
    let of = |pairs: &[(&str, &str)], keys: [&str; 2]| keys.map(|key| value(&build(pairs, &options()).unwrap(), key));
    let pauses = ["reconnect.backoff.ms", "reconnect.backoff.max.ms"];
    assert_eq!(of(&[], pauses), ["250", "2000"]);
    assert_eq!(of(&[("reconnect.backoff.ms", "5000")], pauses), ["5000", "5000"]);
    assert_eq!(of(&[("reconnect.backoff.max.ms", "100")], pauses), ["100", "100"]);
    let iam = |pause| [("sasl.mechanism", "AWS_MSK_IAM"), ("security.protocol", "SASL_SSL"), pause];
    let elsewhere = KafkaOptions { region: Some("eu-west-1".to_owned()), ..options() };
    for (pause, expected) in [
        (("client.id", "c"), ["1000", "2000"]),
        (("reconnect.backoff.ms", "50"), ["50", "2000"]),
        (("reconnect.backoff.max.ms", "300"), ["300", "300"]),
    ] {
        let sink = build(&iam(pause), &elsewhere).unwrap();
        assert_eq!(pauses.map(|key| value(&sink, key)), expected, "{pause:?}");
    }
    assert_eq!(
        of(&[("message.timeout.ms", "15"), ("socket.timeout.ms", "10"), ("request.timeout.ms", "5")], ["linger.ms", "acks"])[0],
        "14"
    );
}

#[test]
fn settings_that_do_not_suit_each_other_are_refused_by_name_before_a_producer_is_made() {
    for (pairs, named) in [
        (&[("linger.ms", "20000")][..], &["linger.ms", "20000", "message.timeout.ms (20000)"][..]),
        (&[("queue.buffering.max.ms", "4000"), ("delivery.timeout.ms", "4000")], &["linger.ms", "message.timeout.ms (4000)"]),
        (
            &[("reconnect.backoff.ms", "3000"), ("reconnect.backoff.max.ms", "2999")],
            &["reconnect.backoff.max.ms", "2999", "reconnect.backoff.ms (3000)"],
        ),
        (&[("ssl.keystore.location", "/k.p12")], &["ssl.keystore.password", "required"]),
        // What only librdkafka itself knows.
        (&[("retries", "0")], &["the producer setting retries", "enable.idempotence"]),
        (&[("max.in.flight", "6")], &["max.in.flight"]),
        (&[("queue.buffering.backpressure.threshold", "2")], &["queue.buffering.backpressure"]),
        (
            &[("security.protocol", "SASL_SSL"), ("sasl.mechanism", "SCRAM-SHA-512"), ("sasl.username", "u")],
            &["the producer setting sasl.username", "sasl.password"],
        ),
        (&[("security.protocol", "SASL_SSL"), ("sasl.mechanism", "GSSAPI")], &["No provider for SASL mechanism GSSAPI"]),
    ] {
        let message = refusal(pairs, &options());
        for word in named {
            assert!(message.contains(word), "{word} is missing in: {message}");
        }
    }
}

#[test]
fn what_settings_have_against_each_other_is_found_all_at_once_without_the_secrets_that_are_pending() {
    let settings = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let found = |pairs: &[(&str, &str)], pending: &[&str]| -> Vec<String> {
        conflicts(&settings(pairs), &pending.iter().copied().collect()).into_iter().map(|conflict| conflict.setting).collect()
    };
    let bad = [("linger.ms", "20000"), ("socket.timeout.ms", "30000"), ("reconnect.backoff.ms", "9"), ("reconnect.backoff.max.ms", "8")];
    let three = ["socket.timeout.ms", "linger.ms", "reconnect.backoff.max.ms"];
    assert_eq!(found(&bad, &["bootstrap.servers", "ssl.ca.pem", "sasl.password"]), three);
    let iam = [("security.protocol", "SASL_SSL"), ("sasl.mechanism", "AWS_MSK_IAM")];
    assert_eq!(found(&iam, &["bootstrap.servers"]), [""; 0], "the region may be in what is pending");
    let scram = [("security.protocol", "SASL_SSL"), ("sasl.mechanism", "SCRAM-SHA-512"), ("bootstrap.servers", "b:1")];
    assert_eq!(found(&scram, &["sasl.username", "sasl.password", "ssl.keystore.location", "ssl.keystore.password"]), [""; 0]);
    assert_eq!(found(&bad, &["bootstrap.servers", "message.timeout.ms"]), [""; 0], "with another timeout they may be right");
}

#[test]
fn missing_brokers_are_refused() {
    let failure = KafkaSink::new(&BTreeMap::new(), &options(), OversizePolicy::Fail).unwrap_err();
    assert!(failure.message.contains("bootstrap.servers"), "{failure}");
}

#[test]
fn with_tls_the_systems_authorities_are_looked_for_unless_others_are_named() {
    let scram = [("security.protocol", "SASL_SSL"), ("sasl.mechanism", "SCRAM-SHA-512"), ("sasl.username", "u"), ("sasl.password", "p")];
    let probing = build(&scram, &within(60)).unwrap();
    assert_eq!(value(&probing, "ssl.ca.location"), "probe");
    let named = build(&[("security.protocol", "ssl"), ("ssl.ca.location", "/etc/ssl/own.pem")], &within(60)).unwrap();
    assert_eq!(value(&named, "ssl.ca.location"), "/etc/ssl/own.pem");
    assert_eq!(value(&build(&[], &within(60)).unwrap(), "ssl.ca.location"), "");
}

#[test]
fn no_secret_is_shown_by_debug_or_by_a_refusal() {
    let secret = "p4ss-w0rd";
    let pairs = [("sasl.password", secret), ("ssl.key.password", secret), ("sasl.username", "user")];
    let sinks = KafkaSinks::new(within(60));
    let sink = sinks.sink(&given(&pairs), None, OversizePolicy::Fail).unwrap();
    let shown = format!("{sinks:?} {sink:?}");
    assert!(shown.contains("sasl.password") && !shown.contains(secret), "{shown}");
    for name in ["sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password"] {
        let refused = refusal(&[(name, secret), ("security.protocol", secret)], &within(60));
        assert!(refused.contains("***") && !refused.contains(secret), "{name}: {refused}");
    }
}

#[test]
fn a_log_line_of_librdkafka_is_told_without_secrets() {
    use rdkafka::client::ClientContext as _;
    let context = context::Context::new(Host::system(), vec!["p4ss-w0rd".to_owned()], None);
    context.log(rdkafka::config::RDKafkaLogLevel::Error, "FAIL", "b-1: login with p4ss-w0rd failed");
    let said = context.trouble().said.unwrap();
    assert!(said.starts_with("b-1: login with *** failed"), "{said}");
}

const MSK: &str = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com:9098";

#[test]
fn an_identity_of_aws_is_oauthbearer_for_librdkafka_and_needs_tls() {
    let iam = [("sasl.mechanism", "AWS_MSK_IAM"), ("bootstrap.servers", MSK)];
    let pairs = |protocol| {
        BTreeMap::from([iam[0], iam[1], ("security.protocol", protocol)].map(|(name, value)| (name.to_owned(), String::from(value))))
    };
    let sink = KafkaSink::new(&pairs("SASL_SSL"), &within(60), OversizePolicy::Fail).unwrap();
    assert_eq!((&*value(&sink, "sasl.mechanism"), &*value(&sink, "ssl.ca.location")), ("OAUTHBEARER", "probe"));
    assert_eq!(sink.connection.settings().iam_region.as_deref(), Some("eu-west-1"));
    let elsewhere = KafkaOptions { region: Some("us-east-1".to_owned()), ..within(60) };
    let of_the_names = KafkaSink::new(&pairs("SASL_SSL"), &elsewhere, OversizePolicy::Fail).unwrap();
    assert_eq!(of_the_names.connection.settings().iam_region.as_deref(), Some("eu-west-1"), "the cluster's and not the process's");
    let mut unnamed = pairs("sasl_ssl");
    unnamed.insert("bootstrap.servers".to_owned(), "b-1.example:9098".to_owned());
    assert!(KafkaSink::new(&unnamed, &elsewhere, OversizePolicy::Fail).is_ok());
    let nowhere = KafkaOptions { region: None, ..within(60) };
    let failure = KafkaSink::new(&unnamed, &nowhere, OversizePolicy::Fail).unwrap_err();
    assert!(failure.code == "Config.Invalid" && failure.message.contains("AWS_REGION"), "{failure}");
    let failure = KafkaSink::new(&pairs("SASL_PLAINTEXT"), &within(60), OversizePolicy::Fail).unwrap_err();
    assert!(failure.code == "Config.Invalid" && failure.message.contains("security.protocol"), "{failure}");
}

#[test]
fn what_librdkafka_says_of_a_connection_is_told_apart_by_what_a_person_must_change() {
    use barrier::Barrier;
    use rdkafka::error::RDKafkaErrorCode as Code;
    let (sasl, ssl, transport) = (Code::Authentication, Code::SSL, Code::BrokerTransportFailure);
    for (code, reason, expected) in [
        (
            sasl,
            "b-1: SASL authentication error: Authentication failed during authentication due to invalid credentials",
            Some(Barrier::Login),
        ),
        (sasl, "Failed to acquire SASL OAUTHBEARER token: the AWS credentials ended 5 s ago", Some(Barrier::Token)),
        (
            ssl,
            "b-1: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker certificate could not be verified",
            Some(Barrier::Certificate),
        ),
        (ssl, "b-1: SSL handshake failed: error:0A00010B:SSL routines::wrong version number", Some(Barrier::Protocol)),
        (transport, "b-1: SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener?", Some(Barrier::Protocol)),
        (
            transport,
            "b-1: Disconnected: requesting ApiVersion: might be caused by incorrect security.protocol configuration (connecting to a SSL listener?)",
            Some(Barrier::Protocol),
        ),
        (
            transport,
            "b-1: SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required: SSL alert number 116",
            Some(Barrier::Certificate),
        ),
        (transport, "b-1: Connect to ipv4#127.0.0.1:9092 failed: Connection refused", None),
        (transport, "b-1: Disconnected: connection closed by peer", None),
        (transport, "b-1: Connection setup timed out in state APIVERSION_QUERY (after 30021ms in state)", None),
        (transport, "b-1: Timed out ApiVersionRequest in state APIVERSION_QUERY", None),
        (Code::Resolve, "b-1: Failed to resolve: Name or service not known", None),
        (
            Code::UnsupportedSASLMechanism,
            "b-1: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism",
            Some(Barrier::Login),
        ),
        (Code::IllegalSASLState, "b-1: Broker: Request not valid in current SASL state", Some(Barrier::Login)),
        // Where the end of a handshake is noticed first, by OpenSSL or by the poll of the socket, is a matter of chance.
        (transport, "b-1: Disconnected: connection reset by peer (after 0ms in state SSL_HANDSHAKE)", Some(Barrier::Protocol)),
        (transport, "b-1: Timed out ApiVersionRequest in flight (after 8000ms, in state APIVERSION_QUERY)", None),
        (transport, "b-1: Connection setup timed out in state APIVERSION_QUERY (after 8000ms in state APIVERSION_QUERY)", None),
        (transport, "b-1: Connection setup timed out in state SSL_HANDSHAKE (after 8000ms in state SSL_HANDSHAKE)", None),
    ] {
        assert_eq!(Barrier::of(Some(code), reason), expected, "{reason}");
    }
}

/// The texts are those that librdkafka 2.12.1 and the OpenSSL inside it write, and those of Amazon MSK that its users report.
#[test]
fn trouble_of_a_login_or_a_handshake_that_passes_is_no_refusal() {
    use barrier::Barrier;
    use rdkafka::error::RDKafkaErrorCode as Code;
    let (sasl, ssl, transport) = (Code::Authentication, Code::SSL, Code::BrokerTransportFailure);
    for (code, reason, expected) in [
        (
            sasl,
            "b-1: SASL authentication error: [c4c1210b-9221-40ac-9fde-03daf7b747dc]: Too many connects (after 5ms in state AUTH_REQ)",
            None,
        ),
        (sasl, "b-1: SASL authentication error: Cannot change principals during re-authentication from IAM.arn:a: IAM.arn:b", None),
        (sasl, "b-1: SASL authentication error: [fe6e184c-87f2-4837-b41a-7a044a16ae5e]: Session too short", Some(Barrier::Token)),
        (sasl, "b-1: SASL authentication error: [7d0ab893-9b16-4371-a8b2-1ae9b5ce73a5]: Access denied", Some(Barrier::Login)),
        (
            sasl,
            "b-1: SASL SCRAM-SHA-512 mechanism handshake failed: Local: Broker transport failure: broker's supported mechanisms: (n/a)",
            None,
        ),
        (sasl, "b-1: SASL OAUTHBEARER mechanism handshake failed: Local: Timed out: broker's supported mechanisms: (n/a)", None),
        (
            sasl,
            "b-1: SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: SCRAM-SHA-512",
            Some(Barrier::Login),
        ),
        (sasl, "b-1: SASL authentication error: SaslAuthenticateResponse parsing failed: Local: Bad message format", None),
        (transport, "b-1: SASL authentication error: SaslAuthenticateRequest failed: Local: Broker transport failure", None),
        (sasl, "b-1: Disconnected: hung up from peer in state AUTH_LEGACY", None),
        (sasl, "b-1: SASL authentication failure: Disconnected: check client SCRAM-SHA-512 credentials and broker logs", None),
        (
            sasl,
            "b-1: SASL authentication error: SASL SCRAM authentication failed: broker responded with invalid-proof",
            Some(Barrier::Login),
        ),
        (
            sasl,
            "b-1: Failed to initialize SASL authentication: OAUTHBEARER cannot log in because there is no token available; last error: (not available)",
            Some(Barrier::Token),
        ),
        (ssl, "b-1: SSL handshake failed: error:0A000438:SSL routines::tlsv1 alert internal error: SSL alert number 80", None),
        (ssl, "b-1: SSL handshake failed: SSL transport error: Connection timed out", None),
        (ssl, "b-1: SSL handshake failed: error:0A000119:SSL routines::decryption failed or bad record mac", None),
        (ssl, "b-1: SSL handshake failed: kafka: No further error information available", None),
        (
            ssl,
            "b-1: SSL handshake failed: error:0A000418:SSL routines::tlsv1 alert unknown ca: SSL alert number 48",
            Some(Barrier::Certificate),
        ),
        (
            ssl,
            "b-1: SSL handshake failed: error:0A000410:SSL routines::ssl/tls alert handshake failure: SSL alert number 40",
            Some(Barrier::Certificate),
        ),
        (
            ssl,
            "b-1: SSL handshake failed: error:0A00042E:SSL routines::tlsv1 alert protocol version: SSL alert number 70",
            Some(Barrier::Protocol),
        ),
        (ssl, "b-1: Broker did not provide a certificate", Some(Barrier::Certificate)),
        (ssl, "b-1: Failed to verify broker certificate: certificate has expired", Some(Barrier::Certificate)),
        (transport, "b-1: Receive failed: error:0A000438:SSL routines::tlsv1 alert internal error: SSL alert number 80", None),
    ] {
        assert_eq!(Barrier::of(Some(code), reason), expected, "{reason}");
        // The log has the same line, before the report.
        let logged = Barrier::of_a_closed_connection(reason);
        assert!(logged.is_none() || logged == expected, "{logged:?} {reason}");
    }
}

#[test]
fn records_on_a_connection_that_was_not_signed_in_again_are_told_by_what_was_said_of_that() {
    use barrier::Barrier;
    let settings = settings::Settings::new(&given(&[]), &within(60)).unwrap();
    let failed = page::Failed { code: rdkafka::error::RDKafkaErrorCode::Authentication, topic: "t".to_owned(), key: "k".to_owned() };
    let outcome = Outcome { acked: 0, refused: 1, failed: Some(failed), in_flight: 0 };
    for (said, barrier, code, retry) in [
        (Some("[id]: Too many connects"), None, "Sink.Unreachable", Retry::NextTick),
        (Some("[id]: Access denied"), Some(Barrier::Login), "Sink.Unauthorized", Retry::Never),
        (Some("[id]: Session too short"), Some(Barrier::Token), "Sink.Credentials", Retry::NextTick),
        (None, None, "Sink.Unauthorized", Retry::Never),
    ] {
        let mut trouble = context::Trouble::default();
        trouble.said = said.map(str::to_owned);
        trouble.barrier = barrier;
        trouble.current = true;
        let failure = Failure::from(error::undelivered(&outcome, &trouble, &settings));
        assert_eq!((&*failure.code, failure.retry), (code, retry), "{failure}");
        assert!(failure.message.contains(said.unwrap_or_default()), "{failure}");
    }
}

#[test]
fn what_a_person_need_not_do_anything_about_parks_no_table() {
    use context::Refused;
    let of = |renewed: bool| {
        let (what, brokers, said) = ("w".to_owned(), "b:9096".to_owned(), "; s".to_owned());
        let login = KafkaError::Unauthorized { what: what.clone(), brokers: brokers.clone(), said: said.clone(), renewed: false };
        let certificate = KafkaError::Certificate { what, brokers, said, renewed: false };
        [(login, Refused::Login), (certificate, Refused::Certificate)]
            .map(|(error, refused)| Failure::from(error.with_another_login(renewed.then_some(refused))))
    };
    for (failure, remedy) in of(false).into_iter().zip(["sasl.password", "ssl.ca.pem"]) {
        assert!(failure.retry == Retry::Never && failure.message.contains(remedy), "{failure}");
    }
    for failure in of(true) {
        assert!(failure.retry == Retry::NextTick && failure.message.contains("have changed since"), "{failure}");
    }
    // Another broker has acknowledged something in between, so that no trouble is known any more.
    let late = || KafkaError::Timeout { what: "w".to_owned(), ms: 1, brokers: "b:9096".to_owned(), said: String::new() };
    for (refused, code) in [(Refused::Login, "Sink.Unauthorized"), (Refused::Certificate, "Sink.Certificate")] {
        let failure = Failure::from(late().with_another_login(Some(refused)));
        assert_eq!((&*failure.code, failure.retry), (code, Retry::NextTick), "{failure}");
    }
    assert_eq!(&*Failure::from(late().with_another_login(None)).code, "Sink.Timeout");
}

#[test]
fn a_timeout_is_told_by_what_was_said_since_the_last_acknowledgement() {
    let settings = settings::Settings::new(&given(&[]), &within(60)).unwrap();
    let failed = page::Failed { code: rdkafka::error::RDKafkaErrorCode::MessageTimedOut, topic: "t".to_owned(), key: "k".to_owned() };
    let outcome = Outcome { acked: 0, refused: 1, failed: Some(failed), in_flight: 0 };
    let mut trouble = context::Trouble::default();
    trouble.said = Some("SASL authentication error".to_owned());
    trouble.barrier = Some(barrier::Barrier::Login);
    for (current, code) in [(true, "Sink.Unauthorized"), (false, "Sink.Timeout")] {
        trouble.current = current;
        assert_eq!(&*Failure::from(error::undelivered(&outcome, &trouble, &settings)).code, code);
    }
}

#[test]
fn a_broker_that_is_down_is_logged_once_in_ten_seconds_with_what_was_left_out() {
    use rdkafka::client::ClientContext as _;
    let (clock, written) = (ManualClock::at(0), Arc::new(Mutex::new(Vec::new())));
    let context = context::Context::new(Host::with_clock(clock.clone()), Vec::new(), None);
    let writer = written.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || Log(writer.clone())).finish();
    tracing::subscriber::with_default(subscriber, || {
        let say = |kind: &str| context.log(rdkafka::config::RDKafkaLogLevel::Error, kind, "b-1: Connection refused");
        for _ in 0..3 {
            say("FAIL");
        }
        say("ERROR");
        clock.advance(Duration::from_secs(10));
        say("FAIL");
    });
    let lines = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let said: Vec<bool> = lines.lines().map(|line| line.contains("Connection refused")).collect();
    assert_eq!(said, [true; 3], "{lines}");
    assert!(lines.lines().last().is_some_and(|line| line.contains("suppressed=2")), "{lines}");
}

#[test]
fn the_reason_of_a_refusal_is_not_covered_by_the_lines_after_it() {
    use barrier::Barrier;
    use rdkafka::client::ClientContext as _;
    use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};
    let context = context::Context::new(Host::system(), Vec::new(), None);
    context.error(ClientError::Global(Code::Authentication), "b-1: SASL authentication error: no");
    context.error(ClientError::Global(Code::BrokerTransportFailure), "b-1: Connection refused");
    let trouble = context.trouble();
    assert!(trouble.barrier == Some(Barrier::Login) && trouble.current, "{trouble:?}");
    assert!(trouble.said.unwrap().contains("SASL authentication error"));
}

#[test]
fn a_refusal_is_overcome_by_an_acknowledgement_but_who_waited_for_it_hears_of_it() {
    use context::Refused;
    use futures_util::FutureExt as _;
    use rdkafka::client::ClientContext as _;
    use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode as Code};
    let context = context::Context::new(Host::system(), Vec::new(), None);
    let refuse = |code| context.error(ClientError::Global(code), "b-1: SSL handshake failed: certificate verify failed");
    let heard = |since| context.refused(since).now_or_never();
    let before = context.now();
    assert_eq!(heard(before), None);
    refuse(Code::Authentication);
    assert_eq!((heard(before), heard(context.now())), (Some(Refused::Login), Some(Refused::Login)), "it was not overcome");
    // What another broker acknowledges in the same instant.
    context.answered();
    assert_eq!((heard(before), heard(context.now())), (Some(Refused::Login), None));
    let later = context.now();
    context.answered();
    refuse(Code::SSL);
    assert_eq!((heard(later), heard(context.now())), (Some(Refused::Certificate), Some(Refused::Certificate)));
    // Trouble of another kind is no refusal, and what overcomes it overcomes all.
    context.error(ClientError::Global(Code::BrokerTransportFailure), "b-1: Connection refused");
    context.answered();
    assert_eq!(heard(context.now()), None);
}

#[test]
fn a_connection_that_is_closed_at_the_greeting_is_told_of_by_the_log_alone() {
    use barrier::Barrier;
    use rdkafka::client::ClientContext as _;
    let context = context::Context::new(Host::system(), Vec::new(), None);
    let line = "[thrd:b-1]: b-1: Disconnected: connection reset by peer (after 2ms in state APIVERSION_QUERY)";
    context.log(rdkafka::config::RDKafkaLogLevel::Info, "FAIL", line);
    assert!(context.trouble().barrier == Some(Barrier::Protocol) && context.trouble().current);
}
