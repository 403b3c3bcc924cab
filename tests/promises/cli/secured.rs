//! Sweeps into a broker that asks who is there: every way to sign in, and everything that can stand in its way.
//!
//! The documents are those of `config/examples`, with secrets in Secrets Manager. Where a test breaks something, the error has its
//! code and its remedy and no secret, the cursor stays, and the rows come when it is mended.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tablesweep_testbed::kafka::security::{self, pem};
use tablesweep_testbed::kafka::{self, Broker};
use tablesweep_testbed::moto;
use url::Url;

use super::bed::{Bed, Ended, ended};

const ROWS: u64 = 40;

/// A folder with documents, a topic, and secrets of its own.
struct Secured {
    broker: &'static Broker,
    bed: Bed,
    topic: String,
    endpoint: String,
    /// What the program is told by its environment.
    environment: Vec<(&'static str, String)>,
    secrets: BTreeSet<String>,
}

impl Secured {
    /// `example`: a file of `config/examples`; `bootstrap`: the listener.
    async fn new(example: &str, bootstrap: impl Fn(&Broker) -> String) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let broker = kafka::secured().await.expect("the broker starts");
        let topic = format!("secured-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        broker.create_topic(&topic, 1).await.expect("the topic is created");
        let mut bed = Bed::new(ROWS);
        bed.set("snow.table.inc.topic", &topic);
        let endpoint = moto::shared().await.expect("moto starts").endpoint();
        let environment = vec![("TABLESWEEP_BOOTSTRAP_SERVERS", bootstrap(broker))];
        let mut secured = Self { broker, bed, topic, endpoint, environment, secrets: BTreeSet::new() };
        let (plain, scram) = (security::PLAIN, security::SCRAM);
        secured.secret("AmazonMSK_tablesweep", &json!({"username": scram.0, "password": scram.1})).await;
        secured
            .secret(
                "tablesweep/kafka",
                &json!({
                    "username": plain.0, "password": plain.1, "authority": security::AUTHORITY,
                    "certificate": pem(security::CLIENT, "CERTIFICATE"), "key": pem(security::CLIENT, "PRIVATE KEY"),
                }),
            )
            .await;
        secured.key(security::ACCESS_KEY);
        // Nobody has the authority of the test's broker in the system's list.
        secured.write(example, &[("ssl.ca.pem", "${secretsmanager:tablesweep/kafka:authority}")]);
        secured
    }

    /// Writes `worker.json` as the example has it, but for these keys; an empty value takes one out.
    fn write(&self, example: &str, changes: &[(&str, &str)]) {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../config/examples").join(format!("{example}.json"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut worker: serde_json::Map<String, Value> = serde_json::from_str(&text).expect("JSON");
        for (name, value) in changes {
            if value.is_empty() {
                worker.remove(*name);
            } else {
                worker.insert((*name).to_owned(), json!(value));
            }
        }
        worker.insert("producer.message.timeout.ms".to_owned(), json!("5000"));
        let text = Value::Object(worker).to_string().replace("${secretsmanager:", &format!("${{secretsmanager:{}/", self.topic));
        std::fs::write(self.bed.path("config/worker.json"), text).expect("written");
    }

    /// Keeps a secret, or another version of it.
    async fn secret(&mut self, name: &str, content: &Value) {
        let server = moto::shared().await.expect("moto runs");
        let name = format!("{}/{name}", self.topic);
        let (status, _) = server
            .call("secretsmanager.CreateSecret", &json!({"Name": name, "SecretString": content.to_string()}))
            .await
            .expect("an answer");
        if status != 200 {
            let put = json!({"SecretId": name, "SecretString": content.to_string()});
            let (status, answer) = server.call("secretsmanager.PutSecretValue", &put).await.expect("an answer");
            assert_eq!(status, 200, "{answer}");
        }
        let object = content.as_object().expect("an object").iter();
        // A user's name and a certificate are no secrets, even if they lie among some.
        let secret = object.filter(|(name, _)| ["password", "key"].contains(&name.as_str()));
        self.secrets.extend(secret.map(|(_, value)| value.as_str().expect("text").trim().to_owned()));
    }

    /// The program signs with this access key.
    fn key(&mut self, (id, secret): (&str, &str)) {
        self.secrets.insert(secret.to_owned());
        self.environment.retain(|(name, _)| !name.starts_with("AWS_"));
        self.environment.extend([
            ("AWS_ACCESS_KEY_ID", id.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", secret.to_owned()),
            ("AWS_REGION", security::REGION.to_owned()),
        ]);
    }

    fn sweep(&self) -> Ended {
        let mut command = self.bed.command(&["sweep", "--output", "json"]);
        for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            command.env_remove(name);
        }
        command.env("AWS_ENDPOINT_URL_SECRETS_MANAGER", &self.endpoint).env("AWS_EC2_METADATA_DISABLED", "true");
        command.env("HOME", self.bed.dir.path()).envs(self.environment.iter().map(|(name, value)| (name, value)));
        let ended = ended(command.spawn().expect("the program starts"));
        for secret in &self.secrets {
            assert!(!ended.stdout.contains(secret) && !ended.stderr.contains(secret), "a secret was shown: {ended:#?}");
        }
        ended
    }

    /// All rows come, each once.
    async fn delivers(&self) {
        let table = self.sweep().expect(0).table();
        assert_eq!((&table["outcome"], &table["rows"]), (&json!("caught_up"), &json!(ROWS)), "{table}");
        let records = self.broker.read_all(&self.topic).await.expect("the topic can be read");
        let keys: BTreeSet<_> = records.iter().map(|record| record.key_text().expect("a key").to_owned()).collect();
        let expected: BTreeSet<_> = self.bed.api.visible_versions("incident").expect("rows").into_iter().map(|(_, id, _)| id).collect();
        assert_eq!((records.len(), keys), (expected.len(), expected));
    }

    /// No row comes, for this reason, which names `words`; the cursor stays.
    async fn fails(&self, outcome: &str, code: &str, words: &[&str]) {
        let table = self.sweep().expect(1).table();
        let message = table["reason"]["message"].as_str().unwrap_or_default();
        assert_eq!((&table["outcome"], &table["reason"]["code"], &table["rows"]), (&json!(outcome), &json!(code), &json!(0)), "{table}");
        for word in words {
            assert!(message.contains(word), "`{word}` is missing in: {message}");
        }
        assert_eq!(table["cursor"], Value::Null, "{table}");
        assert!(self.broker.read_all(&self.topic).await.expect("the topic can be read").is_empty());
    }
}

const OWN_AUTHORITY: (&str, &str) = ("ssl.ca.pem", "${secretsmanager:tablesweep/kafka:authority}");

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_by_scram_over_tls() {
    Secured::new("worker-scram", Broker::sasl_bootstrap).await.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_by_plain_over_tls() {
    Secured::new("worker-plain", Broker::sasl_bootstrap).await.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_by_tls_alone() {
    Secured::new("worker-tls", Broker::tls_bootstrap).await.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_by_a_client_certificate_with_its_chain() {
    Secured::new("worker-mutual-tls", Broker::mutual_bootstrap).await.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_by_files_instead_of_texts() {
    let secured = Secured::new("worker-mutual-tls", Broker::mutual_bootstrap).await;
    let file = |name: &str, text: &str| {
        let path = secured.bed.path(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (authority, chain) = (file("authority.pem", security::AUTHORITY), file("chain.pem", &pem(security::CLIENT, "CERTIFICATE")));
    let key = file("key.pem", &pem(security::CLIENT, "PRIVATE KEY"));
    let texts = [("ssl.certificate.pem", ""), ("ssl.key.pem", "")];
    let files = [("ssl.ca.location", &*authority), ("ssl.certificate.location", &chain), ("ssl.key.location", &key)];
    secured.write("worker-mutual-tls", &[&texts[..], &files].concat());
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_by_an_identity_of_aws_whose_signature_botocore_makes_too() {
    let mut secured = Secured::new("worker-iam", Broker::sasl_bootstrap).await;
    // A key of its own, so that the token is this test's.
    secured.key(security::OTHER_ACCESS_KEY);
    secured.delivers().await;
    let (id, secret) = security::OTHER_ACCESS_KEY;
    let mut own = 0;
    for verdict in secured.broker.tokens().iter().filter(|verdict| verdict.refused.is_none()) {
        let (ours, theirs) = security::addresses(&verdict.token, secret).await.expect("botocore signs");
        let pairs = |address: &str| Url::parse(address).expect("an address").query_pairs().into_owned().collect::<BTreeSet<_>>();
        let (mut ours, theirs) = (pairs(&ours), pairs(&theirs));
        if ours.iter().any(|(name, value)| name == "X-Amz-Credential" && value.starts_with(id)) {
            ours.retain(|(name, _)| name != "User-Agent");
            assert_eq!(ours, theirs);
            own += 1;
        }
    }
    assert!(own > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_scram_password_parks_the_table_until_it_is_right() {
    let mut secured = Secured::new("worker-scram", Broker::sasl_bootstrap).await;
    let of = |password: &str| json!({"username": security::SCRAM.0, "password": password});
    secured.secret("AmazonMSK_tablesweep", &of("scram-wr0ng-secret")).await;
    secured.fails("parked", "Sink.Unauthorized", &["sasl.password", "localhost:", "SCRAM-SHA-512"]).await;
    secured.secret("AmazonMSK_tablesweep", &of(security::SCRAM.1)).await;
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_plain_password_parks_the_table_until_it_is_right() {
    let mut secured = Secured::new("worker-plain", Broker::sasl_bootstrap).await;
    let of = |password: &str| json!({"username": security::PLAIN.0, "password": password, "authority": security::AUTHORITY});
    secured.secret("tablesweep/kafka", &of("plain-wr0ng-secret")).await;
    secured.fails("parked", "Sink.Unauthorized", &["sasl.password", "localhost:"]).await;
    secured.secret("tablesweep/kafka", &of(security::PLAIN.1)).await;
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_brokers_refuse_parks_the_table_until_it_is_right() {
    let mut secured = Secured::new("worker-iam", Broker::sasl_bootstrap).await;
    secured.key((security::ACCESS_KEY.0, "not-the-secret-of-this-key"));
    secured.fails("parked", "Sink.Unauthorized", &["kafka-cluster:Connect", "localhost:"]).await;
    let why = secured.broker.tokens().into_iter().find_map(|verdict| verdict.refused).expect("a refusal");
    assert!(why.contains("X-Amz-Signature"), "{why}");
    secured.key(security::ACCESS_KEY);
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_credentials_of_aws_the_table_fails_and_the_next_sweep_looks_again() {
    let mut secured = Secured::new("worker-iam", Broker::sasl_bootstrap).await;
    let authority = secured.bed.path("authority.pem");
    std::fs::write(&authority, security::AUTHORITY).expect("written");
    let in_a_file = authority.display().to_string();
    // Nothing else in the documents needs AWS.
    secured.write("worker-iam", &[("ssl.ca.location", &*in_a_file)]);
    secured.environment.retain(|(name, _)| !name.starts_with("AWS_") || *name == "AWS_REGION");
    secured.fails("failed", "Sink.Credentials", &["AWS_MSK_IAM", "AWS_PROFILE"]).await;
    secured.key(security::ACCESS_KEY);
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_of_another_authority_are_not_trusted_and_nor_is_anybody_if_none_is_named() {
    let secured = Secured::new("worker-plain", Broker::sasl_bootstrap).await;
    let other = secured.bed.path("other.pem");
    std::fs::write(&other, security::OTHER_AUTHORITY).expect("written");
    let other = other.display().to_string();
    for changes in [vec![("ssl.ca.location", &*other)], vec![]] {
        secured.write("worker-plain", &changes);
        secured.fails("parked", "Sink.Certificate", &["certificate", "ssl.ca.location", "ssl.ca.pem"]).await;
    }
    secured.write("worker-plain", &[OWN_AUTHORITY]);
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_that_is_missing_or_a_strangers_is_told_as_such() {
    let mut secured = Secured::new("worker-mutual-tls", Broker::mutual_bootstrap).await;
    secured.write("worker-mutual-tls", &[OWN_AUTHORITY, ("ssl.certificate.pem", ""), ("ssl.key.pem", "")]);
    secured.fails("parked", "Sink.Certificate", &["ssl.certificate.pem", "ssl.key.pem"]).await;
    let of =
        |text: &str| json!({"authority": security::AUTHORITY, "certificate": pem(text, "CERTIFICATE"), "key": pem(text, "PRIVATE KEY")});
    secured.secret("tablesweep/kafka", &of(security::STRANGER)).await;
    secured.write("worker-mutual-tls", &[OWN_AUTHORITY]);
    secured.fails("parked", "Sink.Certificate", &["ssl.certificate.pem", "ssl.key.pem"]).await;
    secured.secret("tablesweep/kafka", &of(security::CLIENT)).await;
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plaintext_to_a_port_with_tls_is_told_as_such() {
    let secured = Secured::new("worker-tls", Broker::tls_bootstrap).await;
    secured.write("worker-tls", &[("security.protocol", "PLAINTEXT"), ("ssl.ca.pem", "")]);
    secured.fails("failed", "Sink.Protocol", &["PLAINTEXT", "security.protocol", "9094"]).await;
    secured.write("worker-tls", &[OWN_AUTHORITY]);
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_to_a_port_without_is_told_as_such() {
    let secured = Secured::new("worker-tls", Broker::bootstrap).await;
    secured.fails("failed", "Sink.Protocol", &["SSL", "security.protocol", "9092"]).await;
    secured.write("worker-tls", &[("security.protocol", "PLAINTEXT"), ("ssl.ca.pem", "")]);
    secured.delivers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_rights_to_the_topic_is_told_which_until_they_are_given() {
    let mut secured = Secured::new("worker-plain", Broker::sasl_bootstrap).await;
    let (user, password) = security::GUEST;
    secured.secret("tablesweep/kafka", &json!({"username": user, "password": password, "authority": security::AUTHORITY})).await;
    let topic = secured.topic.clone();
    secured.fails("parked", "Sink.Denied", &[&topic, "Write", "Describe"]).await;
    secured.broker.grant(user, &topic, &["Describe"]).await.expect("allowed");
    // Whoever may write to no topic may not be given the numbers of an idempotent producer either.
    secured.fails("parked", "Sink.Denied", &["IdempotentWrite"]).await;
    secured.broker.grant(user, &topic, &["Write"]).await.expect("allowed");
    secured.delivers().await;
}
