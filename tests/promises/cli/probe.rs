//! `check --probe`: each thing that a sweep leans on is a line, good or bad, and nothing is left behind.

use serde_json::{Value, json};
use tablesweep::cursor::dynamodb::{create_table, local_client};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::moto;
use tablesweep_testbed::proxy::Proxy;
use tablesweep_testbed::schema_registry::{self, PATH};
use tablesweep_testbed::table_api::{Credentials, Fields};
use tablesweep_testbed::tds;

use super::bed::{Bed, Ended, PASSWORD, ended};

/// `check --probe` with these variables of the environment.
fn probe(bed: &Bed, env: &[(&str, &str)], more: &[&str]) -> Ended {
    let mut command = bed.command(&[&["check", "--probe"], more].concat());
    command.env("AWS_REGION", "us-east-1").env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command.envs(env.iter().copied());
    ended(command.spawn().expect("started"))
}

/// The findings, as JSON.
fn findings(bed: &Bed, env: &[(&str, &str)], code: i32) -> Vec<Value> {
    let ended = probe(bed, env, &["--output", "json"]).expect(code);
    let checked = ended.json();
    super::schemas::keeps("check", &checked);
    checked["probe"].as_array().unwrap_or_else(|| panic!("{checked}")).clone()
}

/// The finding about `name`: its verdict, its code, and what was found.
#[track_caller]
fn of<'f>(findings: &'f [Value], part: &str, name: &str) -> (&'f str, Option<&'f str>, &'f str) {
    let found: Vec<&Value> = findings.iter().filter(|finding| finding["part"] == part && finding["name"] == name).collect();
    assert_eq!(found.len(), 1, "{part} {name}: {findings:#?}");
    let text = |field: &str| found[0][field].as_str();
    (text("verdict").expect("a verdict"), text("code"), text("found").expect("a text"))
}

fn brokers(bed: &Bed, servers: &str) {
    let worker = json!({"bootstrap.servers": servers, "producer.message.timeout.ms": "3000"});
    std::fs::write(bed.path("config/worker.json"), worker.to_string()).expect("written");
}

#[tokio::test]
async fn what_is_in_order_is_told_line_by_line_and_nothing_is_left_behind() {
    let broker = kafka::shared().await.expect("Kafka starts");
    broker.create_topic("probed", 3).await.expect("the topic is created");
    let server = moto::shared().await.expect("moto starts");
    create_table(&local_client(&server.endpoint()).await, "probed-cursors").await.expect("the table is created");
    let mut bed = Bed::new(100);
    bed.set("snow.table.inc.topic", "probed");
    bed.set("snow.auth.password", "${env:PROBED_PASSWORD}");
    bed.api.set_credentials(Credentials { basic: Some(("sweep".into(), PASSWORD.into())), ..Credentials::default() });
    brokers(&bed, &broker.bootstrap());
    let endpoint = server.endpoint();
    let env = [("PROBED_PASSWORD", PASSWORD), ("AWS_ENDPOINT_URL", &*endpoint), ("TABLESWEEP_CURSORS", "dynamodb:probed-cursors")];

    let found = findings(&bed, &env, 0);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert_eq!(of(&found, "secret", "${env:PROBED_PASSWORD}").0, "good");
    assert_eq!(of(&found, "source", "snow/inc").0, "good");
    let (verdict, _, text) = of(&found, "topic", "probed");
    assert!(verdict == "good" && text.contains("3 partitions"), "{text}");
    assert_eq!(of(&found, "cursors", "dynamodb:probed-cursors").0, "good");

    let text = probe(&bed, &env, &[]).expect(0).stdout;
    for line in [
        "ok    secret   ${env:PROBED_PASSWORD}",
        "ok    source   snow/inc",
        "ok    topic    probed",
        "ok    cursors  dynamodb:probed-cursors",
    ] {
        assert!(text.lines().any(|told| told == line), "{line:?} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    assert!(broker.read_all("probed").await.expect("read").is_empty(), "nothing was produced");
    let (_, items) = server.call("DynamoDB_20120810.Scan", &json!({"TableName": "probed-cursors"})).await.expect("scanned");
    assert_eq!(items["Count"], 0, "nothing was stored: {items}");
    assert!(bed.api.log().iter().all(|entry| entry.method == "GET"), "nothing was written to the source");
    assert!(!bed.path("tablesweep.db").exists());
}

#[tokio::test]
async fn a_wrong_password_is_tried_once_and_everything_else_is_told_all_the_same() {
    let mut bed = Bed::new(20);
    bed.set("snow.tables", "chg,inc");
    for (key, value) in [("snow.table.chg.name", "change_request"), ("snow.table.chg.topic", "t")] {
        bed.set(key, value);
    }
    bed.api.set_credentials(Credentials { basic: Some(("sweep".into(), "another".into())), ..Credentials::default() });
    let found = findings(&bed, &[], 1);
    let (verdict, code, text) = of(&found, "source", "snow/chg");
    assert!(verdict == "bad" && code == Some("Source.Unauthorized"), "{code:?}: {text}");
    let (verdict, _, text) = of(&found, "source", "snow/inc");
    assert!(verdict == "note" && text.contains("not asked"), "{text}");
    assert_eq!(bed.api.log().len(), 1, "twenty tables do not lock the account");
    let (verdict, _, text) = of(&found, "topic", "Kafka");
    assert!(verdict == "note" && text.contains("--sink"), "{text}");
    let (verdict, _, text) = of(&found, "cursors", "sqlite:tablesweep.db");
    assert!(verdict == "note" && text.contains("the first sweep makes it"), "{text}");
    assert!(!bed.path("tablesweep.db").exists());
}

#[tokio::test]
async fn a_missing_table_and_a_hidden_one_are_told_and_the_others_are_asked() {
    let mut bed = Bed::new(20);
    bed.set("snow.tables", "inc,none,empty");
    for (alias, name) in [("none", "no_such_table"), ("empty", "change_request")] {
        bed.set(&format!("snow.table.{alias}.name"), name);
        bed.set(&format!("snow.table.{alias}.topic"), "t");
    }
    let id = bed.api.insert("change_request", Fields::from([("number", "CHG1")])).expect("inserted");
    bed.api.delete("change_request", &id).expect("deleted");
    let found = findings(&bed, &[], 1);
    let (verdict, code, text) = of(&found, "source", "snow/none");
    assert!(verdict == "bad" && code.is_some_and(|code| code.starts_with("Source.")) && text.contains("no_such_table"), "{code:?}: {text}");
    assert_eq!(of(&found, "source", "snow/inc").0, "good");
    let (verdict, _, text) = of(&found, "source", "snow/empty");
    assert!(verdict == "note" && text.contains("shows no row"), "{text}");
}

#[tokio::test]
async fn a_missing_topic_is_told_and_one_that_would_be_created_is_not_created() {
    let broker = kafka::shared().await.expect("Kafka starts");
    let mut bed = Bed::new(5);
    brokers(&bed, &broker.bootstrap());
    bed.set("snow.table.inc.topic", "probe-missing");
    let found = findings(&bed, &[], 1);
    let (verdict, code, text) = of(&found, "topic", "probe-missing");
    assert!(verdict == "bad" && code == Some("Sink.TopicMissing") && text.contains("Create it"), "{text}");

    bed.set("topic.creation.default.partitions", "4");
    bed.set("topic.creation.default.replication.factor", "1");
    for _ in 0..2 {
        let found = findings(&bed, &[], 0);
        let (verdict, _, text) = of(&found, "topic", "probe-missing");
        assert!(verdict == "note" && text.contains("4 partitions and 1 copies"), "it is still missing: {text}");
    }
    bed.set("topic.creation.default.replication.factor", "3");
    let found = findings(&bed, &[], 1);
    let (_, code, text) = of(&found, "topic", "probe-missing");
    assert!(code == Some("Sink.TopicRefused") && text.contains("replication.factor"), "one broker cannot keep three copies: {text}");
}

#[tokio::test]
async fn brokers_that_are_down_are_told_in_time() {
    let broker = Broker::start().await.expect("Kafka starts");
    let bed = Bed::new(5);
    brokers(&bed, &broker.bootstrap());
    broker.kill().await;
    let found = findings(&bed, &[], 1);
    let (verdict, code, text) = of(&found, "topic", "snow.incident");
    assert!(verdict == "bad" && code == Some("Sink.Unreachable") && text.contains(&broker.bootstrap()), "{text}");
    assert_eq!(of(&found, "source", "snow/inc").0, "good");
}

#[tokio::test]
async fn a_cursor_table_that_is_missing_of_another_region_or_of_another_shape_is_told() {
    let server = moto::shared().await.expect("moto starts");
    create_table(&local_client(&server.endpoint()).await, "probed-region").await.expect("the table is created");
    let other = json!({
        "TableName": "probed-shape",
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    let (status, answer) = server.call("DynamoDB_20120810.CreateTable", &other).await.expect("asked");
    assert_eq!(status, 200, "{answer}");
    let bed = Bed::new(5);
    let endpoint = server.endpoint();
    for (store, region, word) in [
        ("dynamodb:probed-nowhere", "us-east-1", "there is no table probed-nowhere"),
        ("dynamodb:probed-region", "eu-west-1", "AWS_REGION"),
        ("dynamodb:probed-shape", "us-east-1", "must have the keys connector and place"),
    ] {
        let found = findings(&bed, &[("AWS_ENDPOINT_URL", &endpoint), ("AWS_REGION", region), ("TABLESWEEP_CURSORS", store)], 1);
        let (verdict, code, text) = of(&found, "cursors", store);
        assert!(verdict == "bad" && code == Some("Cursor.Denied") && text.contains(word), "{store}: {code:?}: {text}");
        assert_eq!(of(&found, "source", "snow/inc").0, "good");
    }
    let found = findings(&bed, &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("TABLESWEEP_CURSORS", "dynamodb:x")], 1);
    assert_eq!(of(&found, "cursors", "dynamodb:x").1, Some("Cursor.Unreachable"));
    let found = findings(&bed, &[("TABLESWEEP_CURSORS", "sqlite:nowhere/x.db")], 1);
    assert!(of(&found, "cursors", "sqlite:nowhere/x.db").2.contains("no folder nowhere"));
    bed.sweep(&[]).expect(0);
    assert_eq!(of(&findings(&bed, &[], 0), "cursors", "sqlite:tablesweep.db").0, "good");
    assert_eq!(bed.status()["rows"], 5, "a probe changes no cursor");
}

#[tokio::test]
async fn each_right_that_a_sweep_needs_to_its_cursor_table_is_asked_for_by_name() {
    let server = moto::shared().await.expect("moto starts");
    create_table(&local_client(&server.endpoint()).await, "probed-rights").await.expect("the table is created");
    let proxy = Proxy::http(server.address()).await.expect("the proxy starts");
    let (bed, endpoint) = (Bed::new(5), format!("http://{}", proxy.address()));
    let env = [("AWS_ENDPOINT_URL", &*endpoint), ("TABLESWEEP_CURSORS", "dynamodb:probed-rights")];
    for operation in ["GetItem", "Query", "UpdateItem", "PutItem", "DeleteItem"] {
        proxy.on(&format!("DynamoDB_20120810.{operation}"), 1.., super::dynamodb::denied(operation));
        let (verdict, code, text) = owned(of(&findings(&bed, &env, 1), "cursors", "dynamodb:probed-rights"));
        assert!(verdict == "bad" && code.as_deref() == Some("Cursor.Denied"), "{code:?}: {text}");
        assert!(text.contains(&format!("allow dynamodb:{operation} on the table probed-rights")), "{text}");
        proxy.clear();
    }
    assert_eq!(of(&findings(&bed, &env, 0), "cursors", "dynamodb:probed-rights").0, "good");
}

#[tokio::test]
async fn every_missing_secret_is_told_and_what_needs_it_is_not_asked() {
    let server = moto::shared().await.expect("moto starts");
    let mut bed = Bed::new(5);
    bed.set("snow.auth.username", "${env:PROBED_NOBODY}");
    bed.set("snow.auth.password", "${secretsmanager:probed/none:password}");
    bed.set("snow.table.inc.query", "${ssm:/probed/none}");
    let endpoint = server.endpoint();
    let found = findings(&bed, &[("AWS_ENDPOINT_URL", &endpoint)], 1);
    for (name, word) in [
        ("${env:PROBED_NOBODY}", "no variable PROBED_NOBODY"),
        ("${secretsmanager:probed/none:password}", "no such secret"),
        ("${ssm:/probed/none}", "no such parameter"),
    ] {
        let (verdict, code, text) = of(&found, "secret", name);
        assert!(verdict == "bad" && code == Some("Config.Unresolved") && text.contains(word), "{name}: {text}");
    }
    let (verdict, _, text) = of(&found, "source", "snow");
    assert!(verdict == "note" && text.contains("not asked"), "{text}");
    assert_eq!(bed.api.log().len(), 0);
}

#[test]
fn a_table_of_sql_server_is_asked_for_its_shape_and_the_right_to_read_it() {
    let server = tds::Server::start().expect("the server starts");
    server.execute("CREATE TABLE dbo.orders (id bigint IDENTITY CONSTRAINT orders_id PRIMARY KEY, note nvarchar(40))").expect("created");
    let bed = Bed::new(5);
    let mut shop = json!({
        "connector.class": "sqlserver", "mssql.host": "127.0.0.1", "mssql.port": server.port().to_string(),
        "mssql.database": tds::DATABASE, "mssql.user": tds::USER, "mssql.password": tds::PASSWORD, "mssql.encrypt": "optional",
        "mssql.tables": "lines,orders",
        "mssql.table.orders.name": "dbo.orders", "mssql.table.orders.topic": "o", "mssql.table.orders.sequence.column": "id",
        "mssql.table.lines.name": "dbo.lines", "mssql.table.lines.topic": "l", "mssql.table.lines.sequence.column": "id",
    });
    bed.document("shop", &shop);
    let found = findings(&bed, &[], 1);
    assert_eq!(of(&found, "source", "shop/orders").0, "good");
    let (verdict, code, text) = of(&found, "source", "shop/lines");
    assert!(verdict == "bad" && code.is_some_and(|code| code.starts_with("Source.")) && text.contains("dbo.lines"), "{code:?}: {text}");

    shop["mssql.password"] = "wr0ng-secret".into();
    bed.document("shop", &shop);
    let found = findings(&bed, &[], 1);
    let (verdict, code, text) = of(&found, "source", "shop/lines");
    assert!(verdict == "bad" && code == Some("Source.Unauthorized"), "{code:?}: {text}");
    assert!(of(&found, "source", "shop/orders").2.contains("not asked"));
    assert!(server.refusals().is_empty(), "{:?}", server.refusals());
}

#[test]
fn faults_of_the_documents_come_first_and_nobody_is_asked() {
    let mut bed = Bed::new(5);
    bed.set("snow.misspelt", "x");
    let ended = probe(&bed, &[], &["--output", "json"]).expect(2);
    assert_eq!(ended.json()["probe"], Value::Null);
    assert_eq!(bed.api.log().len(), 0);
}

#[tokio::test]
async fn a_registry_of_schemas_is_asked_for_what_it_has_and_keeps_nothing_of_it() {
    let registry = schema_registry::shared().await.expect("the registry starts");
    let mut bed = Bed::new(20);
    for (key, value) in [
        ("snow.table.inc.topic", "probed.schemas"),
        ("snow.source.schema.mode", "strings"),
        ("value.converter", "io.confluent.connect.avro.AvroConverter"),
        ("value.converter.schema.registry.url", &*format!("http://{}{PATH}", registry.address())),
    ] {
        bed.set(key, value);
    }
    let name = "probed.schemas (value)";
    for _ in 0..2 {
        let found = findings(&bed, &[], 0);
        let (verdict, _, text) = of(&found, "schemas", name);
        assert!(verdict == "good" && text.contains("no version of probed.schemas-value yet"), "{text}");
    }
    bed.set("value.converter.auto.register.schemas", "false");
    let (verdict, code, text) = owned(of(&findings(&bed, &[], 1), "schemas", name));
    assert!(verdict == "bad" && code.as_deref() == Some("Registry.SchemaMissing"), "{code:?}: {text}");
    // Nobody listens there.
    bed.set("value.converter.schema.registry.url", "http://127.0.0.1:9");
    let (verdict, code, text) = owned(of(&findings(&bed, &[], 1), "schemas", name));
    assert!(verdict == "bad" && code.as_deref() == Some("Registry.Unavailable") && text.contains("127.0.0.1:9"), "{code:?}: {text}");
}

/// A finding that outlives its list.
fn owned((verdict, code, text): (&str, Option<&str>, &str)) -> (String, Option<String>, String) {
    (verdict.to_owned(), code.map(str::to_owned), text.to_owned())
}
