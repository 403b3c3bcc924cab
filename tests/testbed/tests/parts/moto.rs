//! moto evaluates conditions as DynamoDB does where the cursor protocol depends on it.

use std::time::Duration;

use serde_json::{Value, json};
use tablesweep_testbed::moto::{self, Server};
use tablesweep_testbed::proxy::{Action, Proxy};

async fn dynamodb(server: &Server, operation: &str, request: Value) -> (u16, Value) {
    server.call(&format!("DynamoDB_20120810.{operation}"), &request).await.unwrap()
}

async fn create_table(server: &Server, name: &str) {
    let request = json!({
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    let (status, answer) = dynamodb(server, "CreateTable", request).await;
    assert_eq!(status, 200, "{answer}");
}

/// A write that takes revision `from` to the next.
fn advance(table: &str, from: u32) -> Value {
    json!({
        "TableName": table,
        "Key": {"pk": {"S": "cursor"}},
        "UpdateExpression": "SET rev = :next",
        "ConditionExpression": "rev = :from OR attribute_not_exists(rev)",
        "ExpressionAttributeValues": {":from": {"N": from.to_string()}, ":next": {"N": (from + 1).to_string()}},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    })
}

async fn revision(server: &Server, table: &str) -> Value {
    let request = json!({"TableName": table, "Key": {"pk": {"S": "cursor"}}, "ConsistentRead": true});
    dynamodb(server, "GetItem", request).await.1["Item"]["rev"]["N"].clone()
}

#[tokio::test]
async fn a_condition_that_fails_changes_nothing_and_shows_the_item() {
    let server = moto::shared().await.unwrap();
    create_table(server, "conditions").await;
    let (status, answer) = dynamodb(server, "UpdateItem", advance("conditions", 0)).await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = dynamodb(server, "UpdateItem", advance("conditions", 5)).await;
    assert_eq!(status, 400);
    assert!(answer["__type"].as_str().unwrap().ends_with("ConditionalCheckFailedException"), "{answer}");
    assert_eq!(answer["Item"]["rev"]["N"], "1", "{answer}");
    assert_eq!(revision(server, "conditions").await, "1");
}

#[tokio::test]
async fn a_secret_is_given_back_and_an_unknown_one_is_named_unknown() {
    let server = moto::shared().await.unwrap();
    let call = async |operation: &str, request: Value| server.call(&format!("secretsmanager.{operation}"), &request).await.unwrap();
    call("CreateSecret", json!({"Name": "parts/secret", "SecretString": "{\"user\":\"u\"}"})).await;
    let (_, answer) = call("GetSecretValue", json!({"SecretId": "parts/secret"})).await;
    assert_eq!(answer["SecretString"], "{\"user\":\"u\"}");
    // The status is moto's own (404, where AWS says 400); clients go by the type.
    let (_, answer) = call("GetSecretValue", json!({"SecretId": "parts/unknown"})).await;
    assert_eq!(answer["__type"], "ResourceNotFoundException", "{answer}");
}

#[tokio::test]
async fn a_reset_forgets_everything_and_a_dropped_server_is_gone() {
    let server = Server::start().await.unwrap();
    create_table(&server, "forgotten").await;
    server.reset().await.unwrap();
    let (_, answer) = dynamodb(&server, "ListTables", json!({})).await;
    assert_eq!(answer["TableNames"], json!([]));
    let address = server.address();
    server.process().terminate();
    tokio::time::timeout(Duration::from_secs(30), server.process().wait()).await.expect("moto ends on SIGTERM");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_has_been_applied() {
    let server = moto::shared().await.unwrap();
    create_table(server, "lost").await;
    let proxy = Proxy::http(server.address()).await.unwrap();
    let trigger = proxy.on("DynamoDB_20120810.UpdateItem", 1..=1, Action::DropResponse);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let write = client
        .post(proxy.url())
        .header("x-amz-target", "DynamoDB_20120810.UpdateItem")
        .header("content-type", "application/x-amz-json-1.0")
        .header("authorization", "AWS4-HMAC-SHA256 Credential=t/20260101/us-east-1/dynamodb/aws4_request")
        .body(advance("lost", 0).to_string());
    assert!(write.send().await.is_err(), "the answer was to be lost");
    assert_eq!(trigger.fired(), 1);
    assert_eq!(revision(server, "lost").await, "1");
}
