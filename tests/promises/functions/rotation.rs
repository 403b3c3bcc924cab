//! Passwords of the brokers that are changed while an environment is warm.
//!
//! Brokers ask for the password when a connection is made and never again, so a rotation shows only when one is lost. It is then
//! read again, once, and what was refused is tried with what came of it.

use serde_json::{Value, json};
use tablesweep_testbed::kafka::security::{self, SCRAM, pem};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::moto;
use tablesweep_testbed::proxy::Action;

use super::bed::{Bed, PATIENCE, Setup, TIMEOUT, swept};

const NEW: &str = "scram-after-the-rotation";
const READ: &str = "secretsmanager.GetSecretValue";

/// A broker behind a proxy, a table that was swept once by a user of it, and the secret with that user's password.
struct Rotating {
    broker: Broker,
    bed: Bed,
    secret: &'static str,
}

impl Rotating {
    /// `overridden`: whether the connector's document says how to sign in, and not the worker's.
    async fn new(secret: &'static str, overridden: bool) -> Self {
        let broker = Broker::builder().proxied().secured().start().await.expect("Kafka starts");
        let bed = Bed::new(&broker, Setup::of(&broker)).await;
        bed.generate("inc", 300);
        let rotating = Self { broker, bed, secret };
        rotating.keep("CreateSecret", "Name", SCRAM.1).await;
        rotating.write(overridden);
        let first = rotating.bed.sweep("inc", "one", "stream").await;
        assert!(first.cold);
        let first = swept(&first);
        assert_eq!((&first["outcome"], &first["rows"]), (&json!("caught_up"), &json!(300)), "{first}");
        rotating
    }

    fn write(&self, overridden: bool) {
        let login = json!({
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": format!("${{secretsmanager:{}:username}}", self.secret),
            "sasl.password": format!("${{secretsmanager:{}:password}}", self.secret),
            "ssl.ca.pem": security::AUTHORITY,
        });
        let mut worker = json!({
            "bootstrap.servers": self.broker.proxied_bootstrap().expect("the proxied listener"),
            "producer.message.timeout.ms": "5000",
            "producer.reconnect.backoff.max.ms": "300",
        });
        let mut connector = self.bed.connector();
        for (name, value) in login.as_object().expect("an object") {
            if overridden {
                connector["config"][format!("producer.override.{name}")] = value.clone();
            } else {
                worker[name] = value.clone();
            }
        }
        self.bed.document("worker.json", &worker);
        self.bed.document("connectors/snow.json", &connector);
    }

    async fn keep(&self, operation: &str, id: &str, password: &str) {
        keep(operation, &json!({id: self.secret}), &json!({"username": SCRAM.0, "password": password})).await;
    }

    /// The password is another one, and the connections are lost.
    async fn rotate(&self, told: bool) {
        self.broker.set_password(SCRAM.0, NEW).await.expect("changed");
        if told {
            self.keep("PutSecretValue", "SecretId", NEW).await;
        }
        self.broker.proxy().expect("the proxied listener").cut_all();
    }

    fn reads(&self) -> usize {
        self.bed.cursors.carried().iter().filter(|carried| carried.contains(READ)).count()
    }

    /// Sweeps in the same environment until the rows are there; answers what the sweeps before that said.
    async fn sweep_until_caught_up(&self) -> Vec<Value> {
        let mut before = Vec::new();
        for tick in ["two", "three", "four"] {
            let sweep = self.bed.sweep("inc", tick, "catch-up").await;
            assert!(!sweep.cold, "the same environment");
            let table = swept(&sweep);
            if table["outcome"] == "caught_up" {
                return before;
            }
            before.push(table);
        }
        panic!("the rows do not come: {before:?}");
    }
}

/// Keeps a secret with this content; `named` names it as `operation` wants.
async fn keep(operation: &str, named: &Value, content: &Value) {
    let mut request = named.clone();
    request["SecretString"] = json!(content.to_string());
    let server = moto::shared().await.expect("moto runs");
    let (status, answer) = server.call(&format!("secretsmanager.{operation}"), &request).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_that_was_replaced_since_it_was_read_is_read_again_and_shown_in_the_same_sweep() {
    let broker = kafka::secured().await.expect("Kafka starts");
    let bed = Bed::new(broker, Setup::of(broker)).await;
    bed.generate("inc", 300);
    let of = |text: &str| json!({"certificate": pem(text, "CERTIFICATE"), "key": pem(text, "PRIVATE KEY")});
    keep("CreateSecret", &json!({"Name": "rotation-certificate"}), &of(security::STRANGER)).await;
    bed.document(
        "worker.json",
        &json!({
            "bootstrap.servers": broker.mutual_bootstrap(),
            "security.protocol": "SSL",
            "ssl.ca.pem": security::AUTHORITY,
            "ssl.certificate.pem": "${secretsmanager:rotation-certificate:certificate}",
            "ssl.key.pem": "${secretsmanager:rotation-certificate:key}",
            "producer.message.timeout.ms": "5000",
            "producer.reconnect.backoff.max.ms": "300",
        }),
    );
    // What is answered first is the certificate that the brokers refuse. By the time that they do, there is another.
    let first = bed.cursors.on(READ, 1..=1, Action::HoldResponse);
    let replaced = async {
        first.wait_fired(1, PATIENCE).await.expect("the secret is read");
        keep("PutSecretValue", &json!({"SecretId": "rotation-certificate"}), &of(security::CLIENT)).await;
        first.release();
    };
    let (sweep, ()) = tokio::join!(bed.sweep("inc", "one", "stream"), replaced);
    let table = swept(&sweep);
    assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(300)), "{table}");
    let reads = bed.cursors.carried().iter().filter(|carried| carried.contains(READ)).count();
    assert_eq!((reads, bed.extra_records("inc").await), (2, 0));
    assert!(!bed.logs().contains("PRIVATE KEY"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_password_of_the_worker_is_read_again_and_the_next_sweep_at_the_latest_delivers() {
    let rotating = Rotating::new("rotation-worker", false).await;
    let reads = rotating.reads();
    rotating.rotate(true).await;
    rotating.bed.insert("inc");
    let before = rotating.sweep_until_caught_up().await;
    assert!(before.len() <= 1, "{before:?}");
    for table in before {
        // Nobody has to do anything, so it is no reason to park the table.
        assert_eq!((&table["outcome"], &table["reason"]["code"]), (&json!("failed"), &json!("Sink.Unauthorized")), "{table}");
        assert!(table["reason"]["message"].as_str().is_some_and(|message| message.contains("have changed")), "{table}");
    }
    assert_eq!(rotating.reads(), reads + 1, "it is read once");
    assert_eq!(rotating.bed.extra_records("inc").await, 0);
    let logs = rotating.bed.logs();
    assert!(!logs.contains(SCRAM.1) && !logs.contains(NEW), "{logs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_password_of_a_connector_is_read_again_too() {
    let rotating = Rotating::new("rotation-override", true).await;
    rotating.rotate(true).await;
    rotating.bed.insert("inc");
    assert!(rotating.sweep_until_caught_up().await.len() <= 1);
    assert_eq!(rotating.bed.extra_records("inc").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_simply_wrong_parks_the_table_and_is_not_looked_up_at_every_sweep() {
    let rotating = Rotating::new("rotation-untold", false).await;
    let reads = rotating.reads();
    rotating.rotate(false).await;
    rotating.bed.insert("inc");
    for tick in ["two", "three", "four"] {
        let table = swept(&rotating.bed.sweep("inc", tick, "catch-up").await);
        assert_eq!((&table["outcome"], &table["reason"]["code"]), (&json!("parked"), &json!("Sink.Unauthorized")), "{table}");
    }
    assert_eq!(rotating.reads(), reads + 1, "one look for all of them");
    // What was not told before is found when the look is old enough, and a new environment looks at once.
    rotating.keep("PutSecretValue", "SecretId", NEW).await;
    rotating.bed.deploy(TIMEOUT);
    let table = swept(&rotating.bed.sweep("inc", "five", "catch-up").await);
    assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(1)), "{table}");
}
