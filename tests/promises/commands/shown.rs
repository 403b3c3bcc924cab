//! What a command of the AWS CLI, of the SAM CLI and of a shell is for: each is run, and what the page says that it does is looked
//! up afterwards, past the program.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep_testbed::kafka::security;
use tablesweep_testbed::state_machine::StateMachine;
use tablesweep_testbed::table_api::Fault;
use tokio::runtime::Handle;

use super::account::STACK;
use super::reader;
use super::stage::{ROWS, Stage};

/// The file that the reader wrote, as it went into a store.
fn written(name: &str) -> String {
    let file = reader::files().into_iter().find(|(file, _)| *file == name);
    file.unwrap_or_else(|| panic!("nobody wrote {name}")).1
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A file of `events/`.
fn event(name: &str) -> Value {
    parsed(&std::fs::read_to_string(super::pages::root().join("events").join(name)).expect("an event"))
}

pub fn secret_of_the_source(stage: &Stage, command: &str) {
    let said = parsed(&stage.must(command));
    assert_eq!(said["Name"], "tablesweep/servicenow");
    assert_eq!(stage.account().secret("tablesweep/servicenow"), parsed(&written("secret.json")));
}

pub fn key(stage: &Stage, command: &str) {
    stage.export(command);
    let described = stage.account().call("TrentService.DescribeKey", &json!({"KeyId": stage.variable("KEY")}));
    assert_eq!(described["KeyMetadata"]["KeyManager"], "CUSTOMER");
}

pub fn secret_of_the_cluster(stage: &Stage, command: &str) {
    stage.export(command);
    let described = stage.account().call("secretsmanager.DescribeSecret", &json!({"SecretId": stage.variable("SECRET")}));
    assert_eq!((&described["Name"], &described["KmsKeyId"]), (&json!("AmazonMSK_tablesweep"), &json!(stage.variable("KEY"))));
    assert_eq!(stage.account().secret("AmazonMSK_tablesweep"), parsed(&written("scram.json")));
}

pub fn association(stage: &Stage, command: &str) {
    let said = parsed(&stage.must(command));
    assert_eq!(said["UnprocessedScramSecrets"], json!([]), "{said}");
}

pub fn parameter(stage: &Stage, command: &str) {
    stage.must(command);
    let request = json!({"Name": "/tablesweep/servicenow/password", "WithDecryption": true});
    let parameter = &stage.account().call("AmazonSSM.GetParameter", &request)["Parameter"];
    assert_eq!((&parameter["Type"], &parameter["Value"]), (&json!("SecureString"), &json!(written("password.txt"))));
}

pub fn certificate(stage: &Stage, command: &str) {
    stage.must(command);
    let secret = parsed(&stage.read("certificate.json"));
    assert_eq!(secret, json!({"certificate": written("chain.pem"), "key": written("key.pem")}));
}

pub fn secret_of_a_certificate(stage: &Stage, command: &str) {
    stage.must(command);
    // The names that the example has.
    let example = std::fs::read_to_string(super::pages::root().join("config/examples/worker-mutual-tls.json")).expect("an example");
    let secret = stage.account().secret("tablesweep/kafka");
    for part in secret.as_object().expect("an object").keys() {
        assert!(example.contains(&format!("${{secretsmanager:tablesweep/kafka:{part}}}")), "{part}: {example}");
    }
    assert_eq!(secret["key"], written("key.pem"));
}

/// What the functions get is what lies in `config`, nothing more and nothing older.
pub fn layer(stage: &Stage, command: &str) {
    stage.write("target/layer/config/connectors/of-yesterday.json", "{}");
    stage.must(command);
    assert_eq!(stage.files("target/layer"), stage.files("config").into_iter().map(|file| format!("config/{file}")).collect::<Vec<_>>());
    for file in stage.files("config") {
        assert_eq!(stage.read(&format!("target/layer/config/{file}")), stage.read(&format!("config/{file}")));
    }
}

/// What the next deployment finds in `samconfig.toml`.
pub fn schedule(stage: &Stage, command: &str) {
    let wanted = if command.contains("ENABLED") { "ENABLED" } else { "DISABLED" };
    stage.must(command);
    assert!(stage.read("samconfig.toml").contains(&format!(r#"ScheduleState=\"{wanted}\""#)), "{}", stage.read("samconfig.toml"));
}

/// Stand-ins of the bootstraps are deployed, and what was deployed is read off the stack.
pub fn deploy(stage: &Stage, command: &str) {
    stage.must(command);
    // What is kept is what holds, and all that is not given stays.
    let is_enabled = stage.read("samconfig.toml").contains(r#"ScheduleState=\"ENABLED\""#);
    assert_eq!(stage.stack_parameter("ScheduleState"), if is_enabled { "ENABLED" } else { "DISABLED" });
    assert_eq!(stage.stack_parameter("SubnetIds"), "subnet-1,subnet-2");
    stage.deploy_functions();
}

pub fn delete(stage: &Stage, command: &str) {
    // The page has had its schedule enabled, and a change of a document leaves it so.
    stage.write("config/examples/of-tomorrow.json", "{}");
    stage.must("make --silent layer");
    stage.must("sam deploy");
    assert_eq!(stage.stack_parameter("ScheduleState"), "ENABLED");
    stage.must(command);
    let listed = stage.must("aws cloudformation list-stacks --stack-status-filter CREATE_COMPLETE UPDATE_COMPLETE --output text");
    assert!(!listed.contains(&format!("stack/{STACK}/")), "{listed}");
    let table = stage.account().table("tablesweep-cursors").expect("the cursors outlive the stack");
    assert_eq!(table["DeletionProtectionEnabled"], true);
    assert!(!stage.account().items("tablesweep-cursors").is_empty());
}

/// An invocation by hand starts the sweep of the table that the event names.
pub fn first_tick(stage: &Stage, command: &str) {
    let before = stage.records();
    let said = stage.must(command);
    let plan = parsed(&stage.read("answer.json"));
    assert!(said.contains(&stage.read("answer.json")), "{said}");
    assert_eq!((&plan["invoked"], &plan["tasks"][0]["tables"]), (&json!(1), &json!(["incident"])), "{plan}");
    stage.account().settle();
    let swept = stage.account().lambda.invocations_of(&format!("{STACK}-sweep"));
    let answer = swept[0].response().unwrap_or_else(|| panic!("{:?}", swept[0].outcome));
    assert_eq!((&answer["tables"][0]["outcome"], &answer["tables"][0]["rows"]), (&json!("caught_up"), &json!(ROWS)), "{answer}");
    assert_eq!(stage.records() - before, ROWS);
}

/// What became of it: the line of the sweep, with the table and its outcome.
pub fn logs(stage: &Stage, command: &str) {
    let said = stage.must(command);
    assert!(said.lines().any(|line| line.contains("incident") && line.contains("caught_up")), "{said}");
}

/// An execution, with the input of `events/`. What moto was told is then carried out by the deployed definition.
pub fn catch_up(stage: &Stage, command: &str) {
    let before = stage.records();
    let arn = parsed(&stage.must(command))["executionArn"].clone();
    let execution = stage.account().call("AWSStepFunctions.DescribeExecution", &json!({"executionArn": arn}));
    let input = parsed(execution["input"].as_str().expect("a text"));
    assert_eq!(input, event("catch-up-execution.json"));
    assert_eq!(execution["name"], "catch-up-2026-03-01");
    let machine = json!({"stateMachineArn": execution["stateMachineArn"]});
    let machine = stage.account().call("AWSStepFunctions.DescribeStateMachine", &machine);
    assert_eq!(machine["name"], format!("{STACK}-catch-up"));
    let definition = StateMachine::from_text(machine["definition"].as_str().expect("a definition"));
    let lambda = stage.account().lambda.endpoint();
    let ran = definition.run(&lambda, "catch-up-2026-03-01", &input, Duration::from_millis(2));
    let ran = Handle::current().block_on(ran).expect("the machine runs");
    assert_eq!((ran.len(), &*ran[0].status), (1, "SUCCEEDED"), "{ran:?}");
    assert_eq!(ran[0].output, json!({"caught_up": ["servicenow/incident"]}));
    // `from` took the cursor back to the first row.
    assert_eq!(stage.records() - before, ROWS);
}

pub fn lap(stage: &Stage, command: &str) {
    stage.account().lambda.forget_invocations();
    stage.must(command);
    let answer = parsed(&stage.read("answer.json"));
    assert_eq!((&answer["mode"], &answer["tables"][0]["table"]), (&json!("catch-up"), &json!("incident")), "{answer}");
    assert_eq!(answer["tables"][0]["outcome"], "caught_up", "{answer}");
    assert_eq!(stage.account().lambda.invocations_of(&format!("{STACK}-catch-up")).len(), 1);
}

/// A sweep that tried a table in vain is in the queue, with its code.
pub fn queue(stage: &Stage, command: &str) {
    stage.api.fault(Fault::status(403, "Failed API level ACL Validation").table("incident").always());
    let task = event("sweep-task.json");
    stage.account().lambda.invoke_event(&format!("{STACK}-sweep"), &task).expect("accepted");
    stage.account().settle();
    let queue = stage.account().call("AmazonSQS.GetQueueUrl", &json!({"QueueName": "tablesweep-failed-invocations"}));
    stage.account().report_failures(queue["QueueUrl"].as_str().expect("an address"));
    stage.api.clear_faults();
    let said = parsed(&stage.must(command));
    let body = parsed(said["Messages"][0]["Body"].as_str().unwrap_or_else(|| panic!("{said}")));
    assert_eq!(body["requestPayload"], task);
    assert!(body["responsePayload"].to_string().contains("Source.Forbidden"), "{body}");
}

pub fn purge(stage: &Stage, command: &str) {
    stage.must(command);
    let queue = stage.account().call("AmazonSQS.GetQueueUrl", &json!({"QueueName": "tablesweep-failed-invocations"}));
    let request = json!({"QueueUrl": queue["QueueUrl"], "AttributeNames": ["All"]});
    let counts = &stage.account().call("AmazonSQS.GetQueueAttributes", &request)["Attributes"];
    let of = |name: &str| counts[name].as_str().unwrap_or_else(|| panic!("{counts}")).to_owned();
    assert_eq!((of("ApproximateNumberOfMessages"), of("ApproximateNumberOfMessagesNotVisible")), ("0".into(), "0".into()));
}

pub fn unprotect(stage: &Stage, command: &str) {
    stage.must(command);
    assert_eq!(stage.account().table("tablesweep-cursors").expect("the table")["DeletionProtectionEnabled"], false);
}

pub fn drop_table(stage: &Stage, command: &str) {
    stage.must(command);
    assert_eq!(stage.account().table("tablesweep-cursors"), None);
}

pub fn restore(stage: &Stage, command: &str) {
    stage.must(command);
    let (given, restored) = (stage.account().items("tablesweep-cursors"), stage.account().items("tablesweep-cursors-restored"));
    assert!(!given.is_empty() && given == restored, "{given:?}\n{restored:?}");
}

pub fn wait(stage: &Stage, command: &str) {
    stage.must(command);
    assert_eq!(stage.account().table("tablesweep-cursors-restored").expect("the table")["TableStatus"], "ACTIVE");
}

/// An item that a newer version has written keeps its table from being swept, until it is removed by the place that the message names.
pub fn forget(stage: &Stage, command: &str) {
    let items = stage.account().items("tablesweep-cursors");
    let text = |item: &Value, name: &str| item[name]["S"].as_str().expect("a text").to_owned();
    let is_cursor = |item: &&Value| text(item, "connector") == "servicenow" && !item["format"].is_null();
    let place = text(items.iter().find(is_cursor).expect("the cursor of incident"), "place");
    let key = json!({"connector": {"S": "servicenow"}, "place": {"S": place}});
    let newer = json!({
        "TableName": "tablesweep-cursors", "Key": key, "UpdateExpression": "SET #format = :newer",
        "ExpressionAttributeNames": {"#format": "format"}, "ExpressionAttributeValues": {":newer": {"N": "99"}},
    });
    stage.account().call("DynamoDB_20120810.UpdateItem", &newer);
    let refused = stage.shell("tablesweep sweep --connector servicenow --sink ndjson:rows.ndjson --output json");
    assert_eq!(refused.code, Some(1), "{}", refused.stdout);
    assert!(refused.stdout.contains("Cursor.Format") && refused.stdout.contains(&place), "{}", refused.stdout);
    stage.must(&command.replace("PLACE", &place));
    let known = stage.account().call("DynamoDB_20120810.GetItem", &json!({"TableName": "tablesweep-cursors", "Key": key}));
    assert!(known["Item"].is_null(), "{known}");
}

pub fn caller(stage: &Stage, command: &str) {
    assert_eq!(parsed(&stage.must(command))["Account"], "123456789012");
}

pub fn presented(stage: &Stage, command: &str) {
    let said = stage.must(command);
    let server = security::pem(security::SERVER, "CERTIFICATE");
    assert!(said.contains(server.trim()), "{said}");
}

/// A repository with a Makefile, and nothing else of this one.
pub fn clone(stage: &Stage, command: &str) {
    let git = "git -c user.name=test -c user.email=test@localhost -c init.defaultBranch=main";
    stage.write("origin/Makefile", "demo:\n");
    stage.must(&format!("cd origin && {git} init -q && {git} add Makefile && {git} commit -q -m first"));
    stage.set(&[("REPOSITORY", &stage.path("origin").display().to_string())]);
    stage.must(&format!("{command} && make -n demo"));
}

/// The simulator of the page has what the request gave it.
pub fn curl(stage: &Stage, command: &str) {
    stage.must(command);
    let body = parsed(command.split('\'').nth(1).expect("a body"));
    let rows = stage.api.visible_versions("incident").expect("the table").len();
    assert_eq!(json!(rows), body["rows"]);
}

/// `export PATH=…` puts the program that the clone has built into reach.
pub fn path(stage: &Stage, command: &str) {
    let built = stage.path("target/debug");
    std::fs::create_dir_all(built.parent().expect("a folder")).expect("a folder");
    let folder = tablesweep_testbed::program::program("tablesweep").parent().expect("a folder").to_owned();
    std::os::unix::fs::symlink(folder, &built).expect("linked");
    stage.export(command);
    let found = PathBuf::from(stage.must("command -v tablesweep").trim());
    assert_eq!(found, built.join("tablesweep"));
}
