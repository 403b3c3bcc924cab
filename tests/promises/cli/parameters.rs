//! Placeholders of Parameter Store: a login that lies there, asked for by the program.

use serde_json::json;
use tablesweep_testbed::moto;
use tablesweep_testbed::table_api::Credentials;

use super::bed::{Bed, Ended, PASSWORD, ended};

/// The program with an account whose region is `region`.
fn run(bed: &Bed, endpoint: &str, region: &str, arguments: &[&str]) -> Ended {
    let mut command = bed.command(arguments);
    command.env("AWS_ENDPOINT_URL_SSM", endpoint).env("AWS_REGION", region);
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    ended(command.spawn().expect("started"))
}

const SWEEP: [&str; 5] = ["sweep", "--sink", "ndjson:rows.ndjson", "--output", "json"];

#[tokio::test]
async fn a_login_in_an_encrypted_parameter_signs_in_and_is_never_shown() {
    let server = moto::shared().await.expect("moto starts");
    let put = async |name: &str, kind: &str, value: String| {
        let (status, answer) = server.call("AmazonSSM.PutParameter", &json!({"Name": name, "Type": kind, "Value": value})).await.unwrap();
        assert_eq!(status, 200, "{answer}");
    };
    put("/tablesweep/walk/user", "String", "sweep".to_owned()).await;
    put("/tablesweep/walk/login", "SecureString", json!({"password": PASSWORD}).to_string()).await;

    let mut bed = Bed::new(20);
    bed.api.set_credentials(Credentials { basic: Some(("sweep".into(), PASSWORD.into())), ..Credentials::default() });
    bed.set("snow.auth.username", "${ssm:/tablesweep/walk/user}");
    bed.set("snow.auth.password", "${ssm:/tablesweep/walk/login:password}");
    let swept = run(&bed, &server.endpoint(), "us-east-1", &SWEEP).expect(0).table();
    assert_eq!((&swept["outcome"], &swept["rows"]), (&json!("caught_up"), &json!(20)), "{swept}");

    // Documents are checked without it: nothing is looked up, and nobody is asked.
    run(&bed, "http://127.0.0.1:1", "us-east-1", &["check"]).expect(0);
}

#[tokio::test]
async fn parameters_that_are_not_there_are_told_together_and_no_instance_is_asked() {
    let server = moto::shared().await.expect("moto starts");
    let mut bed = Bed::new(1);
    bed.set("snow.auth.username", "${ssm:/tablesweep/nowhere/user}");
    bed.set("snow.auth.password", "${ssm:/tablesweep/nowhere/password}");
    let table = run(&bed, &server.endpoint(), "us-east-1", &SWEEP).expect(1).table();
    let message = table["reason"]["message"].as_str().expect("a reason").to_owned();
    assert_eq!(table["reason"]["code"], "Config.Unresolved", "{table}");
    for name in ["nowhere/user", "nowhere/password", "no such parameter in this account and region"] {
        assert!(message.contains(name), "{name}: {message}");
    }
    assert_eq!(bed.api.log().len(), 0);
}

#[tokio::test]
async fn a_parameter_store_out_of_reach_is_told_with_the_way_to_it() {
    let mut bed = Bed::new(1);
    bed.set("snow.auth.password", "${ssm:/tablesweep/x}");
    let table = run(&bed, "http://127.0.0.1:1", "us-east-1", &SWEEP).expect(1).table();
    assert_eq!(table["outcome"], "failed", "the next tick may find it: {table}");
    let message = table["reason"]["message"].as_str().expect("a reason").to_owned();
    assert!(message.contains("cannot connect") && message.contains("interface endpoint"), "{message}");
}
