//! The Lambda emulator: what callers and functions see when all goes well, and the Invoke API's own answers.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tablesweep_testbed::lambda::{Function, InvocationType, InvokeError, Limits, Runtime};

pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn function(name: &str) -> Function {
    Function::new(name, Path::new(env!("CARGO_BIN_EXE_echo-bootstrap"))).timeout(SOON)
}

pub(crate) async fn runtime(function: Function) -> Runtime {
    let runtime = Runtime::start().await.unwrap();
    runtime.register(function).unwrap();
    runtime
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(SOON).build().unwrap()
}

fn post(runtime: &Runtime, name: &str, kind: &str, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
    let url = format!("{}/2015-03-31/functions/{name}/invocations", runtime.endpoint());
    client().post(url).header("X-Amz-Invocation-Type", kind).body(body)
}

fn header<'a>(answer: &'a reqwest::Response, name: &str) -> Option<&'a str> {
    answer.headers().get(name).and_then(|value| value.to_str().ok())
}

#[tokio::test]
async fn a_function_gets_its_event_its_deadline_and_the_environment_of_lambda() {
    let env = function("f").memory_mb(256).env("TABLESWEEP_CONFIG", "/opt/config");
    let runtime = runtime(env).await;
    let before = SystemTime::now();
    let invocation = runtime.invoke("f", &json!({"do": "echo", "n": 1})).await.unwrap();
    let answer = invocation.response().expect("an answer");

    assert_eq!(answer["event"], json!({"do": "echo", "n": 1}));
    assert_eq!(answer["arn"], "arn:aws:lambda:us-east-1:123456789012:function:f");
    let deadline: u64 = answer["deadline_ms"].as_str().unwrap().parse().unwrap();
    let started = invocation.started.duration_since(UNIX_EPOCH).unwrap();
    assert_eq!(u128::from(deadline), (started + SOON).as_millis());
    assert!(invocation.started >= before && invocation.started <= SystemTime::now());
    assert_eq!(answer["env"]["AWS_LAMBDA_FUNCTION_NAME"], "f");
    assert_eq!(answer["env"]["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"], "256");
    assert_eq!(answer["env"]["AWS_LAMBDA_LOG_STREAM_NAME"], invocation.environment);
    assert_eq!(answer["env"]["TABLESWEEP_CONFIG"], "/opt/config");
    assert_eq!(answer["env"]["HOME"], Value::Null, "the testbed's own environment leaked");
    assert!(invocation.cold && invocation.peak_rss_kib.unwrap() > 500);
    assert_eq!((invocation.kind, invocation.attempt), (InvocationType::RequestResponse, 1));
    assert!(runtime.logs("f").contains(&format!("echo-bootstrap {} starts", answer["pid"])));
}

#[tokio::test]
async fn an_environment_is_reused_and_stopped_between_invocations() {
    let runtime = runtime(function("f").env("ECHO_TICKS", "1")).await;
    let first = runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    let environments = runtime.environments("f");
    let process = environments[0].process();
    assert!(process.is_frozen());
    // Lines written before the freeze may still be in the pipe; after the first pause it is empty.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ticks = process.logs().lines().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(process.logs().lines().len(), ticks, "a frozen function went on");

    let second = runtime.invoke("f", &json!({"do": "sleep", "ms": 100})).await.unwrap();
    assert_eq!((first.cold, second.cold), (true, false));
    assert_eq!(first.environment, second.environment);
    assert_eq!(first.response().unwrap()["pid"], second.response().unwrap()["pid"]);
    assert_eq!(runtime.environments("f").len(), 1);
    assert!(process.logs().lines().len() > ticks + 3, "a thawed function goes on");
}

#[tokio::test]
async fn freezing_can_be_switched_off() {
    let runtime = runtime(function("f").freeze(false).env("ECHO_TICKS", "1")).await;
    runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    let environment = &runtime.environments("f")[0];
    assert!(!environment.process().is_frozen());
    let ticks = environment.logs().lines().len();
    tablesweep_testbed::parts::until("more ticks", SOON, async || {
        let now = environment.logs().lines().len();
        if now > ticks + 5 { Ok(()) } else { Err(format!("{now} lines")) }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn invocations_at_the_same_time_have_environments_of_their_own() {
    let runtime = runtime(function("f")).await;
    let slow = json!({"do": "sleep", "ms": 500});
    let (one, two, three) = tokio::join!(runtime.invoke("f", &slow), runtime.invoke("f", &slow), runtime.invoke("f", &slow));
    let mut ids: Vec<_> = [one, two, three].into_iter().map(|invocation| invocation.unwrap().environment).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    let next = runtime.invoke("f", &slow).await.unwrap();
    assert!(!next.cold && ids.contains(&next.environment));
    assert_eq!(runtime.environments("f").len(), 3);
}

#[tokio::test]
async fn the_cpu_of_an_invocation_is_its_own() {
    let runtime = runtime(function("f")).await;
    let idle = runtime.invoke("f", &json!({"do": "sleep", "ms": 400})).await.unwrap();
    let busy = runtime.invoke("f", &json!({"do": "spin", "ms": 400})).await.unwrap();
    let (idle, busy) = (idle.cpu_ms.unwrap(), busy.cpu_ms.unwrap());
    // The kernel tells CPU time in ticks of 10 ms.
    assert!(idle <= 50, "idle: {idle} ms");
    assert!((380..450).contains(&busy), "busy: {busy} ms");
}

#[tokio::test]
async fn the_invoke_api_answers_as_the_real_one() {
    let runtime = runtime(function("f")).await;
    let answer = post(&runtime, "f", "RequestResponse", r#"{"do":"echo"}"#).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "x-amz-function-error")), (200, None));
    assert_eq!(header(&answer, "x-amz-executed-version"), Some("$LATEST"));
    assert!(header(&answer, "x-amzn-requestid").is_some_and(|id| id.len() == 36));
    assert_eq!(serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap()["event"]["do"], "echo");

    let answer = post(&runtime, "f", "RequestResponse", r#"{"do":"fail"}"#).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), header(&answer, "x-amz-function-error")), (200, Some("Unhandled")));
    assert_eq!(answer.text().await.unwrap(), r#"{"errorType":"Echo.Failed","errorMessage":"as told"}"#);

    let answer = post(&runtime, "f", "DryRun", "{}").send().await.unwrap();
    assert_eq!(answer.status(), 204);
    let arn = "arn:aws:lambda:us-east-1:123456789012:function:f:$LATEST";
    assert_eq!(post(&runtime, arn, "DryRun", "").send().await.unwrap().status(), 204);
    assert_eq!(runtime.invocations().len(), 2, "a dry run runs nothing");
}

#[tokio::test]
async fn the_invoke_api_refuses_as_the_real_one() {
    let limits = Limits { request: 1000, event: 100, response: 2000 };
    let runtime = Runtime::start_with(limits).await.unwrap();
    runtime.register(function("f")).unwrap();
    let refused = async |name: &str, kind: &str, body: String| {
        let answer = post(&runtime, name, kind, body).send().await.unwrap();
        let (status, error) = (answer.status().as_u16(), header(&answer, "x-amzn-errortype").map(str::to_owned));
        (status, error.unwrap_or_default(), answer.text().await.unwrap())
    };
    let (status, error, body) = refused("unknown", "Event", "{}".to_owned()).await;
    assert_eq!((status, error.as_str()), (404, "ResourceNotFoundException"));
    assert!(body.contains("Function not found: arn:aws:lambda:us-east-1:123456789012:function:unknown"), "{body}");
    let (status, error, _) = refused("f:7", "Event", "{}".to_owned()).await;
    assert_eq!((status, error.as_str()), (404, "ResourceNotFoundException"));
    let (status, error, _) = refused("f", "Event", format!("{:?}", "x".repeat(99))).await;
    assert_eq!((status, error.as_str()), (413, "RequestTooLargeException"));
    let (status, error, _) = refused("f", "RequestResponse", format!("{:?}", "x".repeat(999))).await;
    assert_eq!((status, error.as_str()), (413, "RequestTooLargeException"));
    let (status, error, _) = refused("f", "RequestResponse", "{not json".to_owned()).await;
    assert_eq!((status, error.as_str()), (400, "InvalidRequestContentException"));
    let (status, error, _) = refused("f", "Sometimes", "{}".to_owned()).await;
    assert_eq!((status, error.as_str()), (400, "InvalidParameterValueException"));
    assert_eq!(runtime.invocations().len(), 0);

    let fits = runtime.invoke("f", &json!({"do": "big", "bytes": 2000})).await.unwrap();
    assert_eq!(fits.outcome.unwrap().len(), 2000);
    let too_large = runtime.invoke("f", &json!({"do": "big", "bytes": 2001})).await.unwrap();
    assert_eq!(too_large.error_type(), Some("Function.ResponseSizeTooLarge"));
    // The function was told so by the Runtime API.
    let next = runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    assert_eq!(next.response().unwrap_or_default()["last_status"], 413);
}

#[tokio::test]
async fn an_answer_counts_once_the_function_asks_for_its_next_event() {
    let runtime = runtime(function("f")).await;
    let invocation = runtime.invoke("f", &json!({"do": "linger", "ms": 300})).await.unwrap();
    assert!(invocation.outcome.is_ok());
    assert!(invocation.duration >= Duration::from_millis(300), "{:?}", invocation.duration);
}

#[tokio::test]
async fn a_second_answer_to_one_event_is_refused() {
    let runtime = runtime(function("f")).await;
    runtime.invoke("f", &json!({"do": "twice"})).await.unwrap().outcome.unwrap();
    let next = runtime.invoke("f", &json!({"do": "echo"})).await.unwrap();
    assert_eq!(next.response().unwrap()["last_status"], 403);
}

#[tokio::test]
async fn an_unknown_function_is_an_error_of_the_caller() {
    let runtime = Runtime::start().await.unwrap();
    let error = runtime.invoke("f", &json!({})).await.expect_err("there is no function");
    assert!(matches!(error, InvokeError::NotFound(_)), "{error}");
}
