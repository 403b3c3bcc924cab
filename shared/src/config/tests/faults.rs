use super::Dir;

/// One ServiceNow connector with one change, and what the only fault must name.
#[track_caller]
fn refused(changes: &[(&str, &str)], key: &str, parts: &[&str]) {
    let (found, _, message) = Dir::new().servicenow("snow", changes).fault();
    assert_eq!(found, key);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[track_caller]
fn accepted(changes: &[(&str, &str)]) {
    if let Err(faults) = Dir::new().servicenow("snow", changes).load() {
        panic!("{faults}");
    }
}

#[test]
fn twenty_faults_in_three_documents_are_one_report_that_names_them_all() {
    let dir = Dir::new()
        .with("worker.json", r#"{"bootstrap.servers": "kafka", "producer.linger.ms": "soon", "producer.acks": "1", "grup.id": "x"}"#)
        .servicenow(
            "one",
            &[
                ("tasks.max", "0"),
                ("snow.url", "ftp://acme"),
                ("snow.auth.type", "digest"),
                ("snow.source.batch.size", "50001"),
                ("snow.source.pol.interval.ms", "5"),
                ("snow.source.emit.envelope", "yes"),
                ("snow.table.inc.start.timestamp", "2026-01-01"),
                ("snow.table.inc.topic", "a b"),
                ("snow.table.inc.query", "a=1^ORDERBYb"),
                ("snow.table.chg.name", "change_request"),
                ("transforms", "unwrap"),
            ],
        )
        .sqlserver(
            "two",
            &[
                ("mssql.host", ""),
                ("mssql.port", "70000"),
                ("mssql.table.orders.name", "orders"),
                ("mssql.table.orders.start", "newest"),
                ("errors.tolerance", "all"),
            ],
        );
    let faults = dir.load().unwrap_err();
    let found: Vec<(&str, &str)> =
        faults.faults.iter().map(|fault| (fault.file.as_str(), fault.key.as_deref().unwrap_or_default())).collect();
    let expected = [
        ("worker.json", "bootstrap.servers"),
        ("worker.json", "producer.linger.ms"),
        ("worker.json", "producer.acks"),
        ("worker.json", "grup.id"),
        ("connectors/one.json", "tasks.max"),
        ("connectors/one.json", "snow.url"),
        ("connectors/one.json", "snow.auth.type"),
        ("connectors/one.json", "snow.source.batch.size"),
        ("connectors/one.json", "snow.source.pol.interval.ms"),
        ("connectors/one.json", "snow.source.emit.envelope"),
        ("connectors/one.json", "snow.table.inc.start.timestamp"),
        ("connectors/one.json", "snow.table.inc.topic"),
        ("connectors/one.json", "snow.table.inc.query"),
        ("connectors/one.json", "snow.table.chg.name"),
        ("connectors/one.json", "transforms"),
        ("connectors/two.json", "mssql.host"),
        ("connectors/two.json", "mssql.port"),
        ("connectors/two.json", "mssql.table.orders.name"),
        ("connectors/two.json", "mssql.table.orders.start"),
        ("connectors/two.json", "errors.tolerance"),
    ];
    assert_eq!(expected.len(), 20);
    for place in expected {
        assert!(found.contains(&place), "{place:?} is missing of {found:?}");
    }
    assert_eq!(found.len(), expected.len(), "and nothing is reported twice: {found:?}");

    let report = faults.to_string();
    assert!(report.starts_with("20 faults in 3 documents\n"), "{report}");
    for (file, key) in expected {
        assert!(report.contains(file) && report.contains(key), "{key} is missing of {report}");
    }
    assert!(report.contains("connectors/one.json (connector \"one\")"), "{report}");
    assert!(report.contains("snow.source.batch.size = \"50001\"\n      is above the largest value, 50000"), "{report}");
}

#[test]
fn faults_are_json_with_every_part_apart() {
    let faults = Dir::new().servicenow("snow", &[("snow.source.batch.size", "0")]).load().unwrap_err();
    let json = serde_json::to_value(&faults).unwrap();
    assert_eq!(
        json,
        serde_json::json!([{
            "file": "connectors/snow.json",
            "connector": "snow",
            "key": "snow.source.batch.size",
            "value": "0",
            "message": "is below the smallest value, 1",
            "allowed": "a whole number from 1 to 50000",
        }])
    );
}

#[test]
fn a_missing_or_unknown_source_is_named_and_its_keys_are_not_blamed() {
    refused(&[("connector.class", "")], "connector.class", &["is required"]);
    refused(&[("connector.class", "${env:SOURCE}")], "connector.class", &["cannot come from a placeholder"]);
    refused(&[("connector.class", "servicenw")], "connector.class", &["did you mean servicenow?", "sqlserver"]);
}

#[test]
fn what_is_required_is_named_alone() {
    for key in ["snow.url", "snow.table.inc.name", "snow.table.inc.topic", "snow.tables"] {
        refused(&[(key, "")], key, &["is required"]);
    }
    refused(&[("snow.auth.password", "")], "snow.auth.password", &["required by snow.auth.type=basic"]);
    let oauth = [("snow.auth.type", "oauth2"), ("snow.oauth.client.secret", "${env:S}")];
    refused(&oauth, "snow.oauth.client.id", &["required by snow.auth.type=oauth2"]);
    refused(&[("snow.http.proxy.username", "u")], "snow.http.proxy.url", &["required by snow.http.proxy.username"]);
}

#[test]
fn a_connector_has_a_name_that_a_cursor_can_carry() {
    let dir = Dir::new().servicenow("x", &[("name", "")]);
    assert!(dir.fault().2.contains("is required"));
    for name in ["${env:STAGE}", "a#b", "a/b", "@a", " a", "a\n"] {
        assert_eq!(Dir::new().servicenow("x", &[("name", name)]).fault().0, "name", "{name:?}");
    }
    assert!(Dir::new().servicenow("x", &[("name", "My connector-1.a")]).load().is_ok());
}

#[test]
fn two_connectors_of_one_name_are_refused_naming_both_documents() {
    let (key, _, message) = Dir::new().servicenow("a", &[]).servicenow("b", &[("name", "a")]).fault();
    assert_eq!(key, "name");
    assert!(message.contains("connectors/a.json"), "{message}");
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one() {
    refused(&[("snow.source.batchsize", "1")], "snow.source.batchsize", &["did you mean snow.source.batch.size?"]);
    refused(&[("task.max", "1")], "task.max", &["did you mean tasks.max?"]);
    refused(&[("snow.auth.user", "x")], "snow.auth.user", &["did you mean snow.auth.username?"]);
    refused(&[("snow.table.inc.topik", "1")], "snow.table.inc.topik", &["did you mean snow.table.inc.topic?"]);
    refused(&[("producer.override.linger", "1")], "producer.override.linger", &["did you mean producer.override.linger.ms?"]);
    let (_, value, message) = Dir::new().servicenow("snow", &[("frobnicate", "hunter2")]).fault();
    assert_eq!(value, None, "it may be a secret");
    assert!(!message.contains("did you mean"), "{message}");
}

#[test]
fn a_key_of_an_alias_that_is_not_listed_says_so() {
    refused(
        &[("snow.table.inv.query", "a=1")],
        "snow.table.inv.query",
        &["the alias inv, which snow.tables does not list", "did you mean inc?"],
    );
}

#[test]
fn a_list_of_aliases_has_no_doubles_no_gaps_and_no_odd_names() {
    refused(&[("snow.tables", "inc,inc")], "snow.tables", &["twice"]);
    refused(&[("snow.tables", "inc,")], "snow.tables", &["empty alias"]);
    refused(&[("snow.tables", "inc.x")], "snow.tables", &["\"inc.x\""]);
    refused(&[("snow.tables", "${env:TABLES}")], "snow.tables", &["cannot come from a placeholder"]);
}

#[test]
fn every_type_names_what_it_allows() {
    refused(&[("snow.source.batch.size", "many")], "snow.source.batch.size", &["not a whole number", "1 to 50000"]);
    refused(&[("snow.source.overlap.seconds", "-1")], "snow.source.overlap.seconds", &["below", "s from 0"]);
    refused(&[("snow.source.startup.probe", "1")], "snow.source.startup.probe", &["true or false"]);
    refused(&[("snow.source.bad.row.behavior", "ignore")], "snow.source.bad.row.behavior", &["fail, skip"]);
    refused(&[("snow.table.inc.start.timestamp", "2026-02-30 00:00:00")], "snow.table.inc.start.timestamp", &["yyyy-MM-dd HH:mm:ss"]);
    refused(&[("snow.table.inc.start.timestamp", "2026-2-3 00:00:00")], "snow.table.inc.start.timestamp", &["yyyy-MM-dd"]);
    refused(&[("snow.table.inc.name", "Incident table")], "snow.table.inc.name", &["is no table's name"]);
    refused(&[("snow.table.inc.fields", "sys_id,,sys_updated_on")], "snow.table.inc.fields", &["is no field's name"]);
    refused(&[("snow.url", "https://acme.service-now.com/now")], "snow.url", &["give the host alone"]);
    refused(&[("snow.url", "acme.service-now.com")], "snow.url", &["is no URL", "begin with https://"]);
    accepted(&[
        ("snow.table.inc.fields", "sys_id, sys_updated_on, caller_id.name, u_a$b"),
        ("snow.url", "https://ACME.service-now.com:8443/"),
    ]);
    accepted(&[("snow.source.schema.mode", " Schemaless "), ("snow.source.batch.size", " 10 ")]);
}

#[test]
fn a_topic_is_one_that_kafka_takes() {
    for topic in [".", "..", "a b", "a/b", "tópico", &"x".repeat(250)] {
        refused(&[("snow.table.inc.topic", topic)], "snow.table.inc.topic", &["letters, digits"]);
    }
    accepted(&[("snow.table.inc.topic", &"x".repeat(249))]);
}

#[test]
fn a_projection_without_the_cursors_fields_is_refused_naming_the_field() {
    refused(&[("snow.table.inc.fields", "sys_id,number")], "snow.table.inc.fields", &["table inc", "sys_updated_on"]);
    refused(&[("snow.table.inc.fields", "sys_updated_on")], "snow.table.inc.fields", &["sys_id"]);
    refused(&[("snow.table.inc.timestamp.field", "sys_id")], "snow.table.inc.timestamp.field", &["same field"]);
}

#[test]
fn typed_fields_are_needed_and_read_in_mode_typed() {
    refused(&[("snow.source.schema.mode", "typed")], "snow.source.typed.fields", &["required when"]);
    refused(&[("snow.source.typed.fields", "a:int128")], "snow.source.typed.fields", &["field:type"]);
    accepted(&[("snow.source.schema.mode", "typed"), ("snow.source.typed.fields", "a:int64, b:decimal(2),c:timestamp")]);
}

#[test]
fn two_aliases_with_one_cursor_are_refused_and_any_difference_of_the_cursor_is_enough() {
    let twin = |change: (&'static str, &'static str)| {
        [
            ("snow.tables", "inc,two"),
            ("snow.table.two.name", "incident"),
            ("snow.table.two.topic", "elsewhere"),
            ("snow.table.inc.query", "active=true"),
            ("snow.table.two.query", " active=true^EQ"),
            change,
        ]
    };
    for cosmetic in [("snow.table.two.batch.size", "7"), ("snow.table.two.display.value", "all")] {
        refused(&twin(cosmetic), "snow.table.two.name", &["table two the same cursor as table inc"]);
    }
    for different in [
        ("snow.table.two.query", "active=false"),
        ("snow.table.two.query.domain", "false"),
        ("snow.table.two.timestamp.field", "sys_created_on"),
        ("snow.table.two.name", "problem"),
    ] {
        accepted(&twin(different));
    }
}

#[test]
fn an_http_address_is_accepted_with_a_warning() {
    let documents = Dir::new().servicenow("snow", &[("snow.url", "http://localhost:8080")]).load().unwrap();
    let warnings = documents.warnings.0;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].key.as_deref(), Some("snow.url"));
}

#[test]
fn the_first_wait_is_not_longer_than_the_longest() {
    refused(&[("snow.retry.max.backoff.ms", "100")], "snow.retry.initial.backoff.ms", &["500", "100"]);
}
