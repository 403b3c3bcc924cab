//! What a page presumes, made here: its documents, and behind their addresses an instance, a server, brokers and a cursor table; for
//! pages that deploy, a copy of what is deployed and an account.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};
use tablesweep::cursor::dynamodb::{create_table, local_client};
use tablesweep_testbed::kafka::{Broker, security};
use tablesweep_testbed::table_api::{Credentials, Generate, TableApi};
use tablesweep_testbed::{moto, parts, program, said, tds};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::account::{Account, STACK};
use super::pages::{Page, root};
use super::reader;

/// Rows of the table of a page that sweeps in the cloud.
pub const ROWS: usize = 100;
const TOPIC: &str = "snow.incident";

/// The broker of the pages, which also asks who is there. Their documents have names of topics that other tests use too, so it is not the
/// one that all share.
async fn broker() -> &'static Broker {
    static BROKER: OnceCell<Broker> = OnceCell::const_new();
    let start = async || {
        let broker = Broker::builder().secured().start().await.expect("Kafka starts");
        // The topic that README tells its reader to create. A record bears the time of its row, which is long ago.
        broker.create_topic_with(TOPIC, 3, &[("retention.ms", "-1")]).await.expect("the topic is created");
        broker
    };
    BROKER.get_or_init(start).await
}

/// A folder in which the commands of a page are run.
pub struct Stage {
    page: String,
    dir: TempDir,
    /// The instance of the documents.
    pub api: TableApi,
    /// For documents with a table `orders`.
    server: tds::Server,
    broker: &'static Broker,
    account: Option<Account>,
    env: Mutex<Vec<(String, String)>>,
    endpoint: String,
}

/// How a command ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
}

impl Stage {
    /// The stage of `page`. Nothing of it is shared with another page's but the broker, and the emulated account unless it deploys.
    pub async fn of(page: &Page) -> Self {
        let deploys = page.commands.iter().any(|command| command.starts_with("sam deploy"));
        let account = if deploys { Some(Account::open().await) } else { None };
        let endpoint = match &account {
            Some(account) => account.server.named_endpoint(),
            None => moto::shared().await.expect("moto starts").endpoint(),
        };
        let stage = Self {
            page: page.name.clone(),
            dir: TempDir::new().expect("a folder"),
            api: TableApi::start().expect("the simulator starts"),
            server: tds::Server::start().expect("the server starts"),
            broker: broker().await,
            account,
            env: Mutex::default(),
            endpoint,
        };
        tokio::task::block_in_place(|| stage.presume(page));
        stage
    }

    fn presume(&self, page: &Page) {
        self.programs();
        if self.account.is_some() {
            self.copy_what_is_deployed();
        }
        match page.name.as_str() {
            "getting-started.md" => self.write("mine/connectors/servicenow.json", &page.documents[0]),
            "README.md" => {
                self.incidents(1000);
                self.write("mine/connectors/servicenow.json", &page.documents[0]);
                self.write("mine/worker.json", &page.documents[1]);
                self.set(&[("SNOW_USER", "me"), ("SNOW_PASSWORD", "whatever-it-is")]);
            }
            "deploy.md" => self.before_it_is_deployed(page),
            "migrating.md" => {
                self.write("confluent.json", &reader::confluent());
                self.must("sam deploy --guided");
                self.must("rm -r config && mkdir -p config/connectors");
            }
            "runbook.md" => self.in_trouble(),
            _ => {}
        }
    }

    /// The programs that a page may name beside the system's own.
    fn programs(&self) {
        let parts = parts::directory();
        let mut links = vec![("aws", parts.join("aws/bin/aws")), ("sam", parts.join("template/bin/sam"))];
        // Getting started has its reader build it, and says where it is.
        if self.page != "getting-started.md" {
            links.push(("tablesweep", program::program("tablesweep")));
        }
        std::fs::create_dir(self.path("bin")).expect("a folder");
        for (name, target) in links {
            let target = target.canonicalize().unwrap_or_else(|error| panic!("{}: {error}; run `make test`", target.display()));
            std::os::unix::fs::symlink(target, self.path("bin").join(name)).expect("linked");
        }
    }

    /// What `sam deploy` reads, with stand-ins for the bootstraps: `make bootstraps` takes minutes.
    fn copy_what_is_deployed(&self) {
        let copied = ["template.yaml", "samconfig.toml", "Makefile", "functions/catch-up.asl.yaml", "events", "config"];
        for name in copied {
            self.must(&format!("mkdir -p $(dirname {name}) && cp -R {root}/{name} {name}", root = root().display()));
        }
        for program in ["fan-out", "sweep"] {
            let file = format!("target/lambda/{program}/bootstrap");
            self.write(&file, &format!("stands in for {program}"));
            self.must(&format!("chmod +x {file}"));
        }
        self.must("make --silent layer");
    }

    /// The documents of the page, an instance that lets a client of OAuth in, a cluster, and what the reader has in files.
    fn before_it_is_deployed(&self, page: &Page) {
        self.incidents(ROWS as u64);
        self.write("authority.pem", security::AUTHORITY);
        let mut worker: Value = serde_json::from_str(&page.documents[0]).expect("JSON");
        // Nobody has the authority of the test's broker in the system's list.
        worker["ssl.ca.location"] = json!(self.path("authority.pem"));
        self.write("config/worker.json", &worker.to_string());
        self.write("config/connectors/servicenow.json", &page.documents[1]);
        for (file, text) in reader::files() {
            self.write(file, &text);
        }
        let oauth = Some(("client".to_owned(), reader::CLIENT_SECRET.to_owned()));
        self.api.set_credentials(Credentials { oauth, ..Credentials::default() });
        let cluster = self.must(reader::CREATE_CLUSTER);
        self.set(&[("CLUSTER", cluster.trim()), ("TABLESWEEP_BOOTSTRAP_SERVERS", &self.broker.sasl_bootstrap())]);
        Handle::current().block_on(async {
            create_table(&local_client(&self.endpoint).await, "another-cursors").await.expect("the table is created");
        });
    }

    /// A stack with a table that is parked, and one whose schema changed.
    fn in_trouble(&self) {
        self.must("sam deploy --guided");
        self.incidents(100);
        self.must("rm -r config");
        self.write("config/connectors/servicenow.json", &reader::servicenow());
        self.server
            .execute("CREATE TABLE dbo.orders (id bigint IDENTITY CONSTRAINT orders_id PRIMARY KEY, note nvarchar(40))")
            .expect("made");
        self.server.execute("INSERT INTO dbo.orders (note) VALUES (N'first')").expect("inserted");
        self.write("config/connectors/shop.json", &reader::shop(self.server.port()));
        self.set(&[("TABLESWEEP_CONFIG", "config"), ("TABLESWEEP_CURSORS", "dynamodb:tablesweep-cursors")]);
        self.must("tablesweep sweep --sink ndjson:rows.ndjson");
        self.server.execute("ALTER TABLE dbo.orders ADD extra int").expect("altered");
        // Orders are paused by it, which is what the page is about.
        assert_eq!(self.shell("tablesweep sweep --sink ndjson:rows.ndjson").code, Some(1), "{}", self.page);
    }

    fn incidents(&self, rows: u64) {
        let start = Some("2026-01-01 00:00:00".to_owned());
        self.api.generate(Generate { per_second: 5, start, ..Generate::rows("incident", rows) }).expect("rows");
    }

    /// The account of a page that deploys.
    pub fn account(&self) -> &Account {
        self.account.as_ref().unwrap_or_else(|| panic!("{} deploys nothing, and has no account of its own", self.page))
    }

    /// How many records the topic of the documents has.
    pub fn records(&self) -> usize {
        Handle::current().block_on(self.broker.read_all(TOPIC)).expect("the topic can be read").len()
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap_or_else(|error| panic!("{}: {file}: {error}", self.page))
    }

    /// Writes a document of the page, with our addresses in place of its examples.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, self.ours(text)).expect("written");
    }

    /// The files below a folder, by their names from there on.
    pub fn files(&self, folder: &str) -> Vec<String> {
        let listed = self.must(&format!("cd {folder} && find . -type f | sed 's#^./##' | LC_ALL=C sort"));
        listed.lines().map(str::to_owned).collect()
    }

    fn ours(&self, text: &str) -> String {
        let places = reader::places(&self.api.url(), self.broker);
        places.iter().fold(text.to_owned(), |text, (example, ours)| text.replace(example, ours))
    }

    pub fn set(&self, variables: &[(&str, &str)]) {
        let mut env = self.env.lock().expect("nobody panicked");
        env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }

    /// A variable of the page's shell; empty if it was not set.
    pub fn variable(&self, name: &str) -> String {
        let env = self.env.lock().expect("nobody panicked");
        env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }

    /// `export A=b C=d`, for the commands after it.
    pub fn export(&self, command: &str) {
        let names = command.split_whitespace().filter_map(|word| word.split_once('=')).map(|(name, _)| name);
        for name in names.filter(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')) {
            // Through a file: what is said is kept, and a value may be a secret.
            self.must(&format!("{command}; printf %s \"${name}\" >.exported"));
            let value = self.read(".exported");
            assert!(!value.is_empty(), "{}: {command}: {name} is empty", self.page);
            self.set(&[(name, &value)]);
        }
    }

    /// A parameter of the stack, as it is now.
    pub fn stack_parameter(&self, name: &str) -> String {
        let query = format!("Stacks[0].Parameters[?ParameterKey=='{name}'].ParameterValue");
        let said = self.must(&format!("aws cloudformation describe-stacks --stack-name {STACK} --query \"{query}\" --output text"));
        said.trim().to_owned()
    }

    /// Has Lambda run what the stack has now.
    pub fn deploy_functions(&self) {
        let listed = self.must(&format!("aws lambda list-functions --endpoint-url {}", self.endpoint));
        let listed = serde_json::from_str(&listed).expect("JSON");
        self.account().deploy(&listed, &self.path("target/layer"));
    }

    /// Runs a command, which has to succeed; gives what it said on standard output.
    pub fn must(&self, command: &str) -> String {
        let ended = self.shell(command);
        if let (Some(account), true) = (&self.account, ended.code != Some(0)) {
            println!("{}", account.server.log());
        }
        assert_eq!(ended.code, Some(0), "{}: {command}: see the output above", self.page);
        ended.stdout
    }

    /// Runs a command of the page, which has to succeed.
    pub fn run(&self, command: &str) {
        self.before(command);
        self.must(command);
    }

    /// What has to be so before a command makes sense.
    fn before(&self, command: &str) {
        let is_first_sweep_into_kafka = command == "tablesweep sweep --config mine" && self.page == "getting-started.md";
        if command.ends_with("--probe") && self.path("rows.ndjson").exists() || is_first_sweep_into_kafka {
            let worker = super::pages::all().into_iter().find(|page| page.name == self.page).expect("the page").documents.remove(1);
            self.write("mine/worker.json", &worker);
        }
    }

    /// Runs a command by a shell, with the answers that a person would give at a terminal.
    pub fn shell(&self, command: &str) -> Ended {
        let command = reader::confirmed(&self.ours(command));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([self.path("bin")].into_iter().chain(std::env::split_paths(&path))).expect("a path");
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(self.dir.path()).stdin(self.answers(&command)).stderr(Stdio::piped());
        for name in ["TABLESWEEP_CONFIG", "TABLESWEEP_CURSORS", "TABLESWEEP_SINK", "TABLESWEEP_LOG", "MAKEFLAGS", "AWS_PROFILE"] {
            shell.env_remove(name);
        }
        shell.env("PATH", path).env("HOME", self.dir.path()).env("SAM_CLI_TELEMETRY", "0").env("SAM_CLI_POLL_DELAY", "0.2");
        shell.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", "us-east-1").env("AWS_DEFAULT_REGION", "us-east-1");
        shell.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test").env("AWS_EC2_METADATA_DISABLED", "true");
        if let Some(account) = &self.account {
            shell.env("AWS_ENDPOINT_URL_LAMBDA", account.lambda.endpoint());
        }
        shell.envs(self.env.lock().expect("nobody panicked").iter().map(|(name, value)| (name.clone(), value.clone())));
        let ended = shell.output().expect("a shell runs");
        let (stdout, stderr) = (String::from_utf8_lossy(&ended.stdout).into_owned(), String::from_utf8_lossy(&ended.stderr));
        said::keep("cli", &format!("{stdout}\n{stderr}"));
        println!("{}: {command}\n{stdout}{stderr}", self.page);
        Ended { code: ended.status.code(), stdout }
    }

    /// Standard input of a command: what it asks, and what the reader answers.
    fn answers(&self, command: &str) -> Stdio {
        let answers = match command {
            "sam delete" => "y\ny\n".to_owned(),
            guided if guided.starts_with("sam deploy --guided") => {
                let arns = if self.variable("SECRET").is_empty() { String::new() } else { self.secrets() };
                let brokers = if arns.is_empty() { String::new() } else { self.broker.sasl_bootstrap() };
                reader::guided(&self.read("template.yaml"), &[("SecretArns", &arns), ("BootstrapServers", &brokers)])
            }
            deploy if deploy.starts_with("sam deploy") => "y\n".to_owned(),
            _ => return Stdio::null(),
        };
        let file = self.path("answers");
        std::fs::write(&file, answers).expect("written");
        open(&file)
    }

    /// The ARNs of all secrets.
    fn secrets(&self) -> String {
        let listed = self.account().call("secretsmanager.ListSecrets", &json!({}));
        let arns = listed["SecretList"].as_array().expect("secrets").iter().map(|secret| secret["ARN"].as_str().expect("an ARN"));
        arns.collect::<Vec<_>>().join(",")
    }
}

fn open(file: &Path) -> Stdio {
    std::fs::File::open(file).expect("a file").into()
}
