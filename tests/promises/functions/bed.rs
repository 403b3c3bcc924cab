//! A deployment: documents, an instance, topics, a cursor table, and both functions under a Lambda.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tablesweep::cursor::dynamodb::{DynamoStore, create_table, local_client};
use tablesweep::cursor::{Acquire, Change, CursorStore, Identity, Item, Write};
use tablesweep::host::Host;
use tablesweep::operate::{Operator, Order, Place};
use tablesweep_testbed::kafka::{Broker, read_all};
use tablesweep_testbed::lambda::{Function, Invocation, Runtime};
use tablesweep_testbed::moto;
use tablesweep_testbed::program::program;
use tablesweep_testbed::proxy::Proxy;
use tablesweep_testbed::said;
use tablesweep_testbed::table_api::{Fields, Generate, TableApi, Version};
use tempfile::TempDir;

/// The user's password in every document; no log and no error may show it.
const PASSWORD: &str = "battery-staple-7";

/// The longest that one step of a test may take; reaching it is a failure.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The timeout of both functions, unless a test shortens it.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Aliases with their tables. Rendezvous hashing gives them to different ones of two tasks.
const TABLES: [(&str, &str); 2] = [("inc", "incident"), ("chg", "change_request")];

/// How the deployment differs from the usual one.
pub struct Setup {
    pub tables: usize,
    pub bootstrap: String,
    pub timeout: Duration,
    pub message_timeout_ms: u64,
    pub batch_size: u32,
    /// The topics of these aliases are not created.
    pub without_topic: &'static [&'static str],
}

impl Setup {
    /// One table of `broker`'s cluster.
    pub fn of(broker: &Broker) -> Self {
        Self { tables: 1, bootstrap: broker.bootstrap(), timeout: TIMEOUT, message_timeout_ms: 5_000, batch_size: 500, without_topic: &[] }
    }
}

pub struct Bed {
    pub api: TableApi,
    pub lambda: Runtime,
    /// In front of DynamoDB and Secrets Manager.
    pub cursors: Proxy,
    /// In front of the Invoke API, for fan-out.
    pub invokes: Proxy,
    bootstrap: String,
    table: String,
    prefix: String,
    dir: TempDir,
}

impl Bed {
    pub async fn new(broker: &Broker, setup: Setup) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("functions-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let api = TableApi::start().expect("the simulator starts");
        api.set_clock("2026-03-01 12:00:00").expect("a time");
        api.freeze_clock();
        let server = moto::shared().await.expect("moto starts");
        create_table(&local_client(&server.endpoint()).await, &prefix).await.expect("the table is created");
        let lambda = Runtime::start().await.expect("Lambda starts");
        let bed = Self {
            cursors: Proxy::http(server.address()).await.expect("the proxy starts"),
            invokes: Proxy::http(lambda.address()).await.expect("the proxy starts"),
            api,
            lambda,
            bootstrap: setup.bootstrap.clone(),
            table: prefix.clone(),
            prefix,
            dir: TempDir::new().expect("a folder"),
        };
        bed.write_documents(&setup);
        for (alias, _) in TABLES.iter().take(setup.tables).filter(|(alias, _)| !setup.without_topic.contains(alias)) {
            // A record bears the time of its row. The broker would soon delete what is older than a week.
            broker.create_topic_with(&bed.topic(alias), 3, &[("retention.ms", "-1")]).await.expect("the topic is created");
        }
        bed.deploy(setup.timeout);
        bed
    }

    fn write_documents(&self, setup: &Setup) {
        let tables = &TABLES[..setup.tables];
        let mut config = json!({
            "connector.class": "servicenow",
            "tasks.max": "2",
            "snow.url": self.api.url(),
            "snow.auth.username": "sweep",
            "snow.auth.password": PASSWORD,
            "snow.tables": tables.iter().map(|(alias, _)| *alias).collect::<Vec<_>>().join(","),
            // A tick of a test comes when the test wants it.
            "snow.source.poll.interval.ms": "1",
            "snow.source.batch.size": setup.batch_size.to_string(),
            "snow.retry.initial.backoff.ms": "1",
            "snow.retry.max.backoff.ms": "5",
        });
        for (alias, table) in tables {
            config[format!("snow.table.{alias}.name")] = json!(table);
            config[format!("snow.table.{alias}.topic")] = json!(self.topic(alias));
        }
        let worker = json!({
            "bootstrap.servers": setup.bootstrap,
            "producer.message.timeout.ms": setup.message_timeout_ms.to_string(),
            "producer.reconnect.backoff.max.ms": "300",
        });
        self.document("connectors/snow.json", &json!({"name": "snow", "config": config}));
        self.document("worker.json", &worker);
    }

    /// The connector's document, to be written with changes.
    pub fn connector(&self) -> Value {
        let text = std::fs::read_to_string(self.config().join("connectors/snow.json")).expect("the document is there");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Writes a document. The functions read it when an environment of theirs starts.
    pub fn document(&self, name: &str, content: &Value) {
        let file = self.config().join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, content.to_string()).expect("written");
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    /// Puts the functions in place, without environments.
    pub fn deploy(&self, timeout: Duration) {
        let function = |name: &str, bootstrap: &str| {
            Function::new(name, program(bootstrap))
                .timeout(timeout)
                .memory_mb(512)
                .event_retries(0)
                .env("TABLESWEEP_CONFIG", self.config().display().to_string())
                .env("TABLESWEEP_CURSORS", format!("dynamodb:{}", self.table))
                .env("TABLESWEEP_TIMEOUT_SECONDS", timeout.as_secs().to_string())
                .env("AWS_ENDPOINT_URL_DYNAMODB", self.cursors.url())
                .env("AWS_ENDPOINT_URL_SECRETS_MANAGER", self.cursors.url())
                .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
        };
        let fan_out = function("fan-out", "fan-out").env("AWS_ENDPOINT_URL_LAMBDA", self.invokes.url()).env("SWEEP_FUNCTION", "sweep");
        for function in [fan_out, function("sweep", "sweep"), function("catch-up", "sweep")] {
            self.lambda.register(function).expect("the function is deployed");
        }
    }

    /// The table of cursors.
    pub fn table(&self) -> &str {
        &self.table
    }

    pub fn topic(&self, alias: &str) -> String {
        format!("{}-{alias}", self.prefix)
    }

    /// Makes rows of the table of `alias`, all before the instance's now.
    pub fn generate(&self, alias: &str, rows: u64) {
        let spec = Generate { start: Some("2026-02-01 00:00:00".to_owned()), per_second: 20, ..Generate::rows(table(alias), rows) };
        self.api.generate(spec).expect("rows");
    }

    /// Inserts one row, newer than all that were generated and older than the instance's now, whose clock stands still.
    pub fn insert(&self, alias: &str) {
        let fields = Fields::from([("number", "N1"), ("sys_updated_on", "2026-03-01 11:00:00")]);
        self.api.insert(table(alias), fields).expect("inserted");
    }

    /// Hands `event` to fan-out, and waits for what it sets going.
    pub async fn fan_out(&self, event: &Value) -> Invocation {
        let invocation = self.lambda.invoke("fan-out", event).await.expect("an invocation");
        self.lambda.idle(PATIENCE).await.expect("all sweeps end");
        invocation
    }

    /// Sweeps the table of `alias` once, and waits for the result.
    pub async fn sweep(&self, alias: &str, tick: &str, mode: &str) -> Invocation {
        let task = json!({"connector": "snow", "task": 0, "tasks": 1, "tables": [alias], "tick": tick, "mode": mode});
        self.lambda.invoke("sweep", &task).await.expect("an invocation")
    }

    /// The versions in the topic of `alias`, each with how often it lies there.
    pub async fn delivered(&self, alias: &str) -> BTreeMap<Version, usize> {
        let mut versions = BTreeMap::new();
        for record in read_all(&self.bootstrap, &self.topic(alias)).await.expect("the topic can be read") {
            let row: Value = serde_json::from_str(record.text().expect("a value")).expect("JSON");
            let text = |name: &str| row[name].as_str().unwrap_or_else(|| panic!("{name} in {row}")).to_owned();
            assert_eq!(record.key_text(), Some(&*text("sys_id")), "the key is the row's id");
            let version = (text("sys_updated_on"), text("sys_id"), text("sys_mod_count").parse().expect("a number"));
            *versions.entry(version).or_default() += 1;
        }
        versions
    }

    /// Every row of the table is in its topic; answers how many records are there beyond one for each.
    pub async fn extra_records(&self, alias: &str) -> usize {
        let delivered = self.delivered(alias).await;
        let mut expected = self.api.visible_versions(table(alias)).expect("the table");
        expected.sort();
        let once: Vec<Version> = delivered.keys().cloned().collect();
        assert_eq!(once.len(), expected.len(), "rows of {alias} in the topic");
        assert!(once == expected, "the rows of {alias} are others than those in the topic");
        delivered.values().sum::<usize>() - expected.len()
    }

    /// The stored item of `alias`, read past the proxy.
    pub async fn item(&self, alias: &str) -> Option<Item> {
        let items = self.store().await.list("snow").await.expect("items");
        items.into_iter().find(|item| item.identity.alias == alias)
    }

    /// The cursor store, past the proxy.
    async fn store(&self) -> DynamoStore {
        let server = moto::shared().await.expect("moto runs");
        DynamoStore::new(local_client(&server.endpoint()).await, &self.table)
    }

    /// Somebody else takes the lease of `alias` and keeps it for an hour. The table has been swept before.
    pub async fn hold(&self, alias: &str) {
        let item = self.item(alias).await.expect("an item");
        let now_ms = Host::system().now_ms();
        let wish = Acquire { owner: "somebody".to_owned(), until_ms: now_ms + 3_600_000, now_ms, scheduled: None };
        let write = Write { id: "held".to_owned(), change: Change::Acquire(wish) };
        self.store().await.write(&item.identity.key(), &write).await.expect("the lease is free");
    }

    /// An operator holds the table of `alias`, which was swept before.
    pub async fn pause(&self, alias: &str) {
        let store = self.store().await;
        let Identity { connector, alias, source, instance, table, field, id_field, fingerprint } =
            self.item(alias).await.expect("an item").identity;
        let [instance, table, field, id_field, fingerprint] = [instance, table, field, id_field, fingerprint].map(Some);
        let place = Place { connector, alias, source, instance, table, field, id_field, fingerprint, start: None };
        let (host, places) = (Host::system(), std::slice::from_ref(&place));
        let operator = Operator { store: &store, host: &host, places, who: "test".to_owned() };
        let prepared = operator.prepare(&place, Order::Pause { reason: "maintenance".to_owned() }).await.expect("prepared");
        operator.carry_out(prepared).await.expect("paused");
    }

    /// The stored cursor of `alias`.
    pub async fn cursor(&self, alias: &str) -> Option<(String, String)> {
        let position = self.item(alias).await?.progress.cursor?;
        let part = |name: &str| position.get(name).unwrap_or_default().to_owned();
        Some((part("timestamp"), part("sys_id")))
    }

    /// What the instance's newest visible row of `alias` is, in the order of the cursor.
    pub fn newest(&self, alias: &str) -> (String, String) {
        let versions = self.api.visible_versions(table(alias)).expect("the table");
        let newest = versions.into_iter().map(|(stamp, id, _)| (stamp, id)).max();
        newest.expect("a row")
    }

    /// Everything that the functions wrote; checked for secrets and for what the simulator does not understand.
    pub fn logs(&self) -> String {
        let logs = ["fan-out", "sweep", "catch-up"].map(|function| self.lambda.logs(function)).join("\n");
        let told = self.lambda.invocations().into_iter().filter_map(|invocation| invocation.error_message().map(str::to_owned));
        for text in told.chain([logs.clone()]) {
            said::keep("function", &text);
            assert!(!text.contains(PASSWORD), "a secret was shown: {text}");
            assert!(!text.contains("panicked"), "{text}");
        }
        assert!(self.api.refusals().is_empty(), "the simulator does not understand: {:?}", self.api.refusals());
        logs
    }
}

fn table(alias: &str) -> &'static str {
    TABLES.iter().find(|(known, _)| *known == alias).expect("a known alias").1
}

/// The only table of a sweep's answer.
#[track_caller]
pub fn swept(invocation: &Invocation) -> Value {
    let answer = invocation.response().unwrap_or_else(|| panic!("{:?}", invocation.outcome));
    assert_eq!(answer["tables"].as_array().map(Vec::len), Some(1), "{answer}");
    answer["tables"][0].clone()
}

/// A file of `events/`.
pub fn event(name: &str) -> Value {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../events").join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A tick of a schedule.
pub fn tick(time: &str) -> Value {
    let mut tick = event("schedule");
    tick["time"] = json!(time);
    tick
}
