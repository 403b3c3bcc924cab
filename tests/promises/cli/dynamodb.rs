//! Cursors in DynamoDB, from the command line.

use std::process::Command;

use tablesweep::cursor::dynamodb::{create_table, local_client};
use tablesweep_testbed::moto;
use tablesweep_testbed::proxy::{Action, Proxy};

use super::bed::{Bed, Ended, ended};

const STORE: &str = "dynamodb:cursors-of-the-command-line";

fn at(endpoint: &str, mut command: Command) -> Ended {
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", "us-east-1");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test").env("TABLESWEEP_CURSORS", STORE);
    ended(command.spawn().expect("started"))
}

#[tokio::test]
async fn cursors_in_dynamodb_are_swept_shown_and_set_like_those_in_a_file() {
    let endpoint = moto::shared().await.expect("moto starts").endpoint();
    create_table(&local_client(&endpoint).await, "cursors-of-the-command-line").await.expect("the table is created");
    let bed = Bed::new(100);
    let run = |arguments: &[&str]| at(&endpoint, bed.command(arguments));
    let sweep = ["sweep", "--sink", "ndjson:rows.ndjson", "--output", "json"];
    let status = ["status", "--output", "json"];
    assert_eq!(run(&status).expect(0).table()["state"], "never_swept");
    assert_eq!(run(&[&sweep[..], &["--max-rows", "60"]].concat()).expect(0).table()["rows"], 60);
    assert_eq!(run(&sweep).expect(0).table()["rows"], 40);
    let table = run(&status).expect(0).table();
    assert_eq!((&table["rows"], &table["leased"]), (&100.into(), &false.into()));
    run(&["cursor", "rewind", "--table", "inc", "--to", "2026-01-01 00:00:04", "--yes"]).expect(0);
    let shown = run(&["cursor", "show", "--output", "json"]).expect(0).json();
    assert_eq!(shown["cursors"][0]["audit"][0]["what"], "rewind");
    assert_eq!(run(&sweep).expect(0).table()["rows"], 20);
    run(&["cursor", "reset", "--table", "inc", "--yes"]).expect(0);
    assert_eq!(run(&status).expect(0).table()["rows"], 0);
    assert_eq!(bed.keys().len(), 120);
    assert!(!bed.path("tablesweep.db").exists());
}

#[tokio::test]
async fn not_even_the_most_detailed_log_shows_what_requests_to_aws_are_signed_with() {
    let endpoint = moto::shared().await.expect("moto starts").endpoint();
    create_table(&local_client(&endpoint).await, "cursors-of-the-traced").await.expect("the table is created");
    let mut bed = Bed::new(10);
    bed.set("snow.auth.username", "${ssm:/traced/none}");
    let mut command = bed.command(&["check", "--probe", "--cursors", "dynamodb:cursors-of-the-traced"]);
    command.env("TABLESWEEP_LOG", "trace").env("AWS_ENDPOINT_URL", &endpoint).env("AWS_REGION", "us-east-1");
    command
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "key-of-the-traced")
        .env("AWS_SESSION_TOKEN", "token-of-the-traced");
    let said = ended(command.spawn().expect("started")).expect(1);
    assert!(said.stdout.contains("ok    cursors"), "{}", said.stdout);
    assert!(said.stderr.contains("DEBUG"), "trace is on: {}", said.stderr);
    for secret in ["key-of-the-traced", "token-of-the-traced"] {
        assert!(!said.stderr.contains(secret) && !said.stdout.contains(secret), "{secret} is shown");
    }
}

/// What DynamoDB answers to who lacks a right.
pub fn denied(operation: &str) -> Action {
    let message = format!("User: arn:aws:iam::1:user/u is not authorized to perform: dynamodb:{operation}");
    let body = serde_json::json!({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": message});
    let headers = vec![("content-type".to_owned(), "application/x-amz-json-1.0".to_owned())];
    Action::Answer { status: 400, headers, body: body.to_string() }
}

#[tokio::test]
async fn a_status_is_shown_without_the_right_to_look_through_the_whole_table() {
    let server = moto::shared().await.expect("moto starts");
    create_table(&local_client(&server.endpoint()).await, "cursors-of-the-command-line-2").await.expect("the table is created");
    let proxy = Proxy::http(server.address()).await.expect("the proxy starts");
    let scans = proxy.on("DynamoDB_20120810.Scan", 1.., denied("Scan"));
    let bed = Bed::new(10);
    let run = |arguments: &[&str]| {
        let mut command = bed.command(arguments);
        command.args(["--cursors", "dynamodb:cursors-of-the-command-line-2", "--output", "json"]);
        at(&format!("http://{}", proxy.address()), command)
    };
    run(&["sweep", "--sink", "ndjson:rows.ndjson"]).expect(0);
    let shown = run(&["status"]).expect(0);
    assert_eq!(shown.table()["rows"], 10);
    assert_eq!(scans.fired(), 1);
    let said = "cursors of connectors without a document are not listed";
    assert!(shown.stderr.contains(said) && shown.stderr.contains("dynamodb:Scan"), "{}", shown.stderr);
}

#[test]
fn a_dynamodb_out_of_reach_is_exit_code_1_and_names_the_store() {
    let bed = Bed::new(1);
    let ended = at("http://127.0.0.1:1", bed.command(&["status"])).expect(1);
    assert!(ended.stderr.contains(STORE), "{}", ended.stderr);
    let ended = at("http://127.0.0.1:1", bed.command(&["sweep", "--sink", "-"])).expect(1);
    assert!(ended.stderr.contains("Cursor.Unreachable") && ended.stdout.is_empty(), "{ended:?}");
}

#[test]
fn documents_are_checked_and_planned_though_the_store_cannot_be_asked() {
    let bed = Bed::new(1);
    let (text, json): (&[&str], &[&str]) = (&["check"], &["check", "--output", "json"]);
    for (arguments, told) in [(text, "the documents are in order: 1 connector, 1 table"), (json, "\"table\": \"inc\""), (&["plan"], "inc")]
    {
        let ended = at("http://127.0.0.1:1", bed.command(arguments)).expect(1);
        assert!(ended.stdout.contains(told), "{ended:?}");
        assert!(ended.stderr.contains("Cursor.Unreachable") && ended.stderr.contains(STORE), "{}", ended.stderr);
    }
}
