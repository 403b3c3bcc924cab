//! What a page presumes, made here: its documents, and behind their addresses an instance, a server, brokers and a cursor table.

use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};
use tablesweep::cursor::dynamodb::{create_table, local_client};
use tablesweep_testbed::kafka::Broker;
use tablesweep_testbed::table_api::{Credentials, Generate, TableApi};
use tablesweep_testbed::{moto, program, said, tds};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::pages::Page;

/// The instance of the examples.
const INSTANCE: &str = "https://example.service-now.com";
/// The simulator of the first steps.
const SIMULATOR: &str = "http://127.0.0.1:8931";

/// The broker of the pages. Their documents have names of topics that other tests use too, so it is not the one that all share.
async fn broker() -> &'static Broker {
    static BROKER: OnceCell<Broker> = OnceCell::const_new();
    let start = async || {
        let broker = Broker::start().await.expect("Kafka starts");
        // The topic that README tells its reader to create.
        broker.create_topic("snow.incident", 3).await.expect("the topic is created");
        broker
    };
    BROKER.get_or_init(start).await
}

/// A folder in which the commands of a page are run.
pub struct Stage {
    page: String,
    dir: TempDir,
    api: TableApi,
    /// For documents with a table `orders`.
    server: tds::Server,
    env: Mutex<Vec<(String, String)>>,
    bootstrap: String,
    endpoint: String,
}

impl Stage {
    /// The stage of `page`. Nothing of it is shared with another page's but the broker and the emulated account.
    pub async fn of(page: &Page) -> Self {
        let api = TableApi::start().expect("the simulator starts");
        let stage = Self {
            page: page.name.clone(),
            dir: TempDir::new().expect("a folder"),
            api,
            server: tds::Server::start().expect("the server starts"),
            env: Mutex::default(),
            bootstrap: broker().await.bootstrap(),
            endpoint: moto::shared().await.expect("moto starts").endpoint(),
        };
        match page.name.as_str() {
            "getting-started.md" => {
                stage.write("mine/connectors/servicenow.json", &page.documents[0]);
            }
            "README.md" => {
                stage.incidents(1000);
                stage.write("mine/connectors/servicenow.json", &page.documents[0]);
                stage.write("mine/worker.json", &page.documents[1]);
                stage.set(&[("SNOW_USER", "me"), ("SNOW_PASSWORD", "whatever-it-is")]);
            }
            "deploy.md" => stage.deployed(page).await,
            "migrating.md" => {
                let given = json!({"name": "servicenow", "config": {
                    "connector.class": "io.confluent.connect.servicenow.ServiceNowSourceConnector", "servicenow.url": INSTANCE,
                    "servicenow.table": "incident", "servicenow.user": "me", "servicenow.password": "${env:SNOW_PASSWORD}",
                    "servicenow.since": "2026-01-01", "kafka.topic": "snow.incident", "tasks.max": "1",
                }});
                stage.write("confluent.json", &given.to_string());
                std::fs::create_dir_all(stage.dir.path().join("config/connectors")).expect("a folder");
            }
            "runbook.md" => stage.in_trouble().await,
            _ => {}
        }
        stage
    }

    /// A DynamoDB table, secrets, and cursors in it: what a stack has after its first tick.
    async fn deployed(&self, page: &Page) {
        self.incidents(100);
        self.write("config/worker.json", &page.documents[0]);
        self.write("config/connectors/servicenow.json", &page.documents[1]);
        let client = local_client(&self.endpoint).await;
        for table in ["tablesweep-cursors", "another-cursors"] {
            create_table(&client, table).await.expect("the table is created");
        }
        let server = moto::shared().await.expect("moto runs");
        let known = ("client".to_owned(), "s3cret-of-the-walk".to_owned());
        self.api.set_credentials(Credentials { oauth: Some(known), ..Credentials::default() });
        let oauth = json!({"client_id": "client", "client_secret": "s3cret-of-the-walk"});
        for (name, secret) in
            [("tablesweep/servicenow", oauth), ("AmazonMSK_tablesweep", json!({"username": "me", "password": "whatever-it-is"}))]
        {
            let request = json!({"Name": name, "SecretString": secret.to_string()});
            server.call("secretsmanager.CreateSecret", &request).await.expect("a secret");
        }
        let cursors = "dynamodb:tablesweep-cursors";
        self.set(&[("TABLESWEEP_BOOTSTRAP_SERVERS", &self.bootstrap)]);
        self.run(&format!("tablesweep sweep --config config --cursors {cursors} --sink ndjson:rows.ndjson")).await;
    }

    /// A table that is parked, and one whose schema changed.
    async fn in_trouble(&self) {
        self.incidents(100);
        let snow = json!({"name": "servicenow", "config": {
            "connector.class": "servicenow", "snow.url": INSTANCE, "snow.auth.username": "me", "snow.auth.password": "whatever-it-is",
            "snow.tables": "incident", "snow.table.incident.name": "incident", "snow.table.incident.topic": "snow.incident",
            "snow.table.incident.start.timestamp": "2026-01-01 00:00:00",
        }});
        self.write("config/connectors/servicenow.json", &snow.to_string());
        self.server
            .execute("CREATE TABLE dbo.orders (id bigint IDENTITY CONSTRAINT orders_id PRIMARY KEY, note nvarchar(40))")
            .expect("made");
        self.server.execute("INSERT INTO dbo.orders (note) VALUES (N'first')").expect("inserted");
        let shop = json!({"name": "shop", "config": {
            "connector.class": "sqlserver", "mssql.host": "127.0.0.1", "mssql.port": self.server.port().to_string(),
            "mssql.database": tds::DATABASE, "mssql.user": tds::USER, "mssql.password": tds::PASSWORD, "mssql.encrypt": "optional",
            "mssql.tables": "orders", "mssql.table.orders.name": "dbo.orders", "mssql.table.orders.topic": "orders",
            "mssql.table.orders.sequence.column": "id", "mssql.table.orders.start": "earliest",
        }});
        self.write("config/connectors/shop.json", &shop.to_string());
        self.set(&[("TABLESWEEP_CONFIG", "config")]);
        self.run("tablesweep sweep --sink ndjson:rows.ndjson").await;
        self.server.execute("ALTER TABLE dbo.orders ADD extra int").expect("altered");
        // Orders are paused by it, which is what the page is about.
        assert_eq!(self.shell("tablesweep sweep --sink ndjson:rows.ndjson").await, Some(1), "{}", self.page);
    }

    fn incidents(&self, rows: u64) {
        let start = Some("2026-01-01 00:00:00".to_owned());
        self.api.generate(Generate { per_second: 5, start, ..Generate::rows("incident", rows) }).expect("rows");
    }

    /// Writes a document of the page, with our addresses in place of its examples.
    fn write(&self, file: &str, text: &str) {
        let path = self.dir.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, self.ours(text)).expect("written");
    }

    fn ours(&self, text: &str) -> String {
        let url = self.api.url();
        text.replace(INSTANCE, &url).replace(SIMULATOR, &url).replace("localhost:9092", &self.bootstrap)
    }

    fn set(&self, variables: &[(&str, &str)]) {
        let mut env = self.env.lock().expect("nobody panicked");
        env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }

    /// `export A=b C=d`, for the commands after it.
    pub fn export(&self, command: &str) {
        for word in command.split_whitespace().skip(1) {
            let (name, value) = word.split_once('=').expect("NAME=value");
            self.set(&[(name, value)]);
        }
    }

    /// `curl --json BODY URL`, without curl.
    pub fn curl(&self, command: &str) {
        let mut quoted = command.split('\'');
        let (body, url) = (quoted.nth(1).expect("a body"), quoted.next().expect("an address").trim());
        let url = self.ours(url);
        let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {command}"));
        let asked = tokio::runtime::Handle::current().block_on(async {
            let client = reqwest::Client::builder().no_proxy().build().expect("a client");
            let request = client.post(url).header("content-type", "application/json").body(body.to_string());
            request.send().await.expect("an answer").status()
        });
        assert!(asked.is_success(), "{command}: {asked}");
    }

    /// Runs a command of the page, which has to succeed.
    pub async fn run(&self, command: &str) {
        self.before(command).await;
        let code = self.shell(command).await;
        assert_eq!(code, Some(0), "{}: {command}: see the output above", self.page);
    }

    /// What has to be so before a command makes sense.
    async fn before(&self, command: &str) {
        let is_first_sweep_into_kafka = command == "tablesweep sweep --config mine" && self.page == "getting-started.md";
        if command.ends_with("--probe") && self.dir.path().join("rows.ndjson").exists() || is_first_sweep_into_kafka {
            let worker = super::pages::all().into_iter().find(|page| page.name == self.page).expect("the page").documents.remove(1);
            self.write("mine/worker.json", &worker);
        }
    }

    /// Runs a command by a shell, with the answer that a person would give at a terminal; gives its exit code.
    async fn shell(&self, command: &str) -> Option<i32> {
        let changes = ["rewind", "reset", "accept-schema", "pause", "resume", "import"];
        let asks = changes.iter().any(|change| command.contains(&format!("cursor {change} "))) && !command.contains("--yes");
        let command = if asks { format!("{command} --yes") } else { command.to_owned() };
        let folder = program::program("tablesweep").parent().expect("a folder").to_owned();
        let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())));
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(self.dir.path()).stdin(Stdio::null());
        for name in ["TABLESWEEP_CONFIG", "TABLESWEEP_CURSORS", "TABLESWEEP_SINK", "TABLESWEEP_LOG"] {
            shell.env_remove(name);
        }
        shell.env("PATH", path.expect("a path")).env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", "us-east-1");
        shell.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        shell.envs(self.env.lock().expect("nobody panicked").iter().map(|(name, value)| (name.clone(), value.clone())));
        let ended = tokio::task::spawn_blocking(move || shell.output().expect("a shell runs")).await.expect("it ends");
        let (stdout, stderr) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        said::keep("cli", &format!("{stdout}\n{stderr}"));
        println!("{}: {command}\n{stdout}{stderr}", self.page);
        ended.status.code()
    }
}
