//! The reader of a page: what they have in place of its examples, in files and as documents, and what they answer when a program asks.

use serde_json::json;
use tablesweep_testbed::kafka::{Broker, security};
use tablesweep_testbed::tds;

/// The instance of the examples.
const INSTANCE: &str = "https://example.service-now.com";
/// What the client of OAuth is known by.
pub const CLIENT_SECRET: &str = "s3cret-of-the-walk";

/// Every example of an address, and what stands in its place.
pub fn places(instance: &str, broker: &Broker) -> [(&'static str, String); 4] {
    [
        (INSTANCE, instance.to_owned()),
        // The simulator of the first steps.
        ("http://127.0.0.1:8931", instance.to_owned()),
        ("localhost:9092", broker.bootstrap()),
        ("HOST:PORT", broker.tls_bootstrap()),
    ]
}

/// The cluster that the reader has already; its ARN is `$CLUSTER`.
pub const CREATE_CLUSTER: &str = "aws kafka create-cluster-v2 --cluster-name main --query ClusterArn --output text --provisioned \
    '{\"BrokerNodeGroupInfo\":{\"InstanceType\":\"kafka.m7g.large\",\"ClientSubnets\":[\"subnet-1\",\"subnet-2\"]},\
    \"KafkaVersion\":\"3.8.x\",\"NumberOfBrokerNodes\":2}'";

/// The files that docs/deploy.md tells its reader to write.
pub fn files() -> [(&'static str, String); 5] {
    let (user, password) = security::SCRAM;
    [
        ("secret.json", json!({"client_id": "client", "client_secret": CLIENT_SECRET}).to_string()),
        ("scram.json", json!({"username": user, "password": password}).to_string()),
        ("password.txt", "whatever-it-is".to_owned()),
        ("chain.pem", security::pem(security::CLIENT, "CERTIFICATE")),
        ("key.pem", security::pem(security::CLIENT, "PRIVATE KEY")),
    ]
}

/// What `sam deploy --guided` asks, in its order, and the answers: its own suggestion, but for these parameters.
pub fn guided(template: &str, given: &[(&str, &str)]) -> String {
    let fixed = [("SubnetIds", "subnet-1,subnet-2"), ("SecurityGroupIds", "sg-1"), ("ScheduleState", "DISABLED")];
    let (_, parameters) = template.split_once("\nParameters:\n").expect("parameters");
    let parameters = parameters.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
    let names = parameters.filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':')).filter(|name| !name.starts_with(' '));
    let answer = |name: &str| fixed.iter().chain(given).find(|(known, _)| *known == name).map_or("", |(_, answer)| answer).to_owned();
    let mut answers = vec![String::new(), "us-east-1".to_owned()];
    answers.extend(names.map(answer));
    // Confirm changes, create roles, disable rollback, keep the answers, in which file, under which name; and then: deploy this?
    answers.extend(["y", "y", "n", "y", "", "", "y"].map(str::to_owned));
    answers.join("\n") + "\n"
}

/// A change of a cursor is asked about at a terminal, and here is none.
pub fn confirmed(command: &str) -> String {
    let changes = ["rewind", "reset", "accept-schema", "pause", "resume", "import"];
    let asks = changes.iter().any(|change| command.contains(&format!("cursor {change} "))) && !command.contains("--yes");
    if asks { format!("{command} --yes") } else { command.to_owned() }
}

/// A document of another connector, to be migrated.
pub fn confluent() -> String {
    json!({"name": "servicenow", "config": {
        "connector.class": "io.confluent.connect.servicenow.ServiceNowSourceConnector", "servicenow.url": INSTANCE,
        "servicenow.table": "incident", "servicenow.user": "me", "servicenow.password": "${env:SNOW_PASSWORD}",
        "servicenow.since": "2026-01-01", "kafka.topic": "snow.incident", "tasks.max": "1",
    }})
    .to_string()
}

/// The document of the runbook's table `incident`.
pub fn servicenow() -> String {
    json!({"name": "servicenow", "config": {
        "connector.class": "servicenow", "snow.url": INSTANCE, "snow.auth.username": "me", "snow.auth.password": "whatever-it-is",
        "snow.tables": "incident", "snow.table.incident.name": "incident", "snow.table.incident.topic": "snow.incident",
        "snow.table.incident.start.timestamp": "2026-01-01 00:00:00",
    }})
    .to_string()
}

/// The document of the runbook's table `orders`.
pub fn shop(port: u16) -> String {
    json!({"name": "shop", "config": {
        "connector.class": "sqlserver", "mssql.host": "127.0.0.1", "mssql.port": port.to_string(),
        "mssql.database": tds::DATABASE, "mssql.user": tds::USER, "mssql.password": tds::PASSWORD, "mssql.encrypt": "optional",
        "mssql.tables": "orders", "mssql.table.orders.name": "dbo.orders", "mssql.table.orders.topic": "orders",
        "mssql.table.orders.sequence.column": "id", "mssql.table.orders.start": "earliest",
    }})
    .to_string()
}
