//! An account to deploy into: moto, and a Lambda that runs the real programs as the deployed stack describes them.
//!
//! The stack is the one of template.yaml, put there by the SAM CLI. What a function is called, how long it may run and what it
//! finds in its environment is read off the stack; what Lambda does beside running it (logs into the log group, failures into the queue)
//! is done here.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep::host::Host;
use tablesweep_testbed::lambda::{Function, Runtime};
use tablesweep_testbed::program::program;
use tablesweep_testbed::{moto, said};
use tokio::runtime::Handle;

/// The stack of samconfig.toml.
pub const STACK: &str = "tablesweep";
/// The longest that a sweep may take here.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Account {
    pub server: moto::Server,
    pub lambda: Runtime,
}

impl Account {
    pub async fn open() -> Self {
        Self { server: moto::Server::start_account().await.expect("moto starts"), lambda: Runtime::start().await.expect("Lambda starts") }
    }

    /// Calls an operation of a JSON service, which has to succeed.
    pub fn call(&self, target: &str, request: &Value) -> Value {
        let (status, answer) = self.try_call(target, request);
        assert_eq!(status, 200, "{target}: {answer}");
        answer
    }

    /// Calls an operation of a JSON service; gives the status too.
    pub fn try_call(&self, target: &str, request: &Value) -> (u16, Value) {
        Handle::current().block_on(self.server.call(target, request)).expect("moto answers")
    }

    /// Puts the functions of the stack into Lambda. `listed`: what `aws lambda list-functions` says of them; `layer`: what lies at
    /// /opt.
    pub fn deploy(&self, listed: &Value, layer: &Path) {
        let functions = listed["Functions"].as_array().expect("functions");
        assert_eq!(functions.len(), 3, "{listed}");
        for function in functions {
            let name = function["FunctionName"].as_str().expect("a name");
            // Two of the three are the same program.
            let bootstrap = if name == format!("{STACK}-fan-out") { "fan-out" } else { "sweep" };
            let number = |field: &str| function[field].as_u64().expect("a number");
            let mut deployed = Function::new(name, program(bootstrap))
                .timeout(Duration::from_secs(number("Timeout")))
                .memory_mb(u32::try_from(number("MemorySize")).expect("megabytes"))
                .event_retries(0)
                .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
                .env("AWS_ENDPOINT_URL", self.server.endpoint())
                .env("AWS_ENDPOINT_URL_LAMBDA", self.lambda.endpoint());
            for (key, value) in function["Environment"]["Variables"].as_object().expect("variables") {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let value = value.strip_prefix("/opt").map_or(value.clone(), |rest| format!("{}{rest}", layer.display()));
                deployed = deployed.env(key, value);
            }
            self.lambda.register(deployed).expect("the function is deployed");
        }
    }

    /// Waits for the sweeps that were started; what they wrote is in the log group of their function from then on.
    pub fn settle(&self) {
        Handle::current().block_on(self.lambda.idle(PATIENCE)).expect("all sweeps end");
        for function in ["fan-out", "sweep", "catch-up"].map(|name| format!("{STACK}-{name}")) {
            let text = self.lambda.logs(&function);
            said::keep("function", &text);
            let stamp = Host::system().now_ms();
            let event = |line: &str| json!({"timestamp": stamp, "message": line});
            let events: Vec<Value> = text.lines().filter(|line| !line.trim().is_empty()).map(event).collect();
            if events.is_empty() {
                continue;
            }
            let place = json!({"logGroupName": format!("/aws/lambda/{function}"), "logStreamName": stamp.to_string()});
            self.call("Logs_20140328.CreateLogStream", &place);
            let mut put = place;
            put["logEvents"] = json!(events);
            self.call("Logs_20140328.PutLogEvents", &put);
        }
    }

    /// Sends what failed to the queue of the stack, in the form in which Lambda does.
    pub fn report_failures(&self, queue: &str) {
        for event in self.lambda.dropped_events() {
            let failed = self.lambda.invocations().into_iter().find(|one| one.request_id == event.request_id);
            let failure = failed.expect("it was carried out").outcome.expect_err("and failed");
            let body = json!({
                "version": "1.0",
                "requestContext": {"requestId": event.request_id, "condition": event.condition, "approximateInvokeCount": 1},
                "requestPayload": serde_json::from_slice::<Value>(&event.event).expect("JSON"),
                "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
                "responsePayload": serde_json::from_slice::<Value>(&failure.payload).expect("JSON"),
            });
            self.call("AmazonSQS.SendMessage", &json!({"QueueUrl": queue, "MessageBody": body.to_string()}));
        }
        self.lambda.forget_invocations();
    }

    /// What is known of a table of DynamoDB; `None` if there is none.
    pub fn table(&self, name: &str) -> Option<Value> {
        let (status, mut answer) = self.try_call("DynamoDB_20120810.DescribeTable", &json!({"TableName": name}));
        (status == 200).then(|| answer["Table"].take())
    }

    /// The items of a table.
    pub fn items(&self, table: &str) -> Vec<Value> {
        let answer = self.call("DynamoDB_20120810.Scan", &json!({"TableName": table}));
        answer["Items"].as_array().expect("items").clone()
    }

    /// The value of a secret.
    pub fn secret(&self, name: &str) -> Value {
        let answer = self.call("secretsmanager.GetSecretValue", &json!({"SecretId": name}));
        serde_json::from_str(answer["SecretString"].as_str().expect("a text")).expect("a secret is JSON")
    }
}
