//! Apache Kafka: one JVM, KRaft, broker and controller in one.
//!
//! librdkafka's mock broker keeps 5 MiB of a partition, accepts every sequence number and knows no size limit, so a
//! test against it can neither count a topic nor be refused. The promises of this project end in a topic, hence the
//! real broker, with auto-creation of topics off, as on MSK.
//!
//! [`shared`] is one broker for all tests of a program, since a start takes seconds: tests keep apart by topic.
//! A test that stops, kills, freezes or cuts off the broker takes one of its own from [`Broker::start`] or
//! [`Broker::builder`]. What was written is read back with [`Broker::read_all`], which shares no code with the sink.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::parts::{self, PartError};
use crate::process::{Process, Scratch, lock, runtime};
use crate::proxy::Proxy;

mod properties;
mod reader;
mod ready;
pub mod security;

use properties::Ports;
pub use reader::{Record, read_all};

const PART: &str = "Apache Kafka";
/// A start takes about three seconds of an idle machine; a machine that builds at the same time takes longer.
const START_WITHIN: Duration = Duration::from_secs(90);
const STOP_WITHIN: Duration = Duration::from_secs(30);
/// What the JVM says of a port that is taken.
const LOST_PORT: &str = "Address already in use";
const ASK_WITHIN: Duration = Duration::from_secs(30);

/// The broker that all tests of this program share. It ends with the program.
///
/// A start that failed is not tried again: every test that needs the broker fails at once and says why.
pub async fn shared() -> Result<&'static Broker, PartError> {
    static SHARED: OnceCell<Result<Broker, PartError>> = OnceCell::const_new();
    SHARED.get_or_init(Broker::start).await.as_ref().map_err(Clone::clone)
}

/// As [`shared`], a broker that asks who is there: see [`security`]. Tests that use it do nothing to it that another would notice.
pub async fn secured() -> Result<&'static Broker, PartError> {
    static SECURED: OnceCell<Result<Broker, PartError>> = OnceCell::const_new();
    SECURED.get_or_init(|| Broker::builder().secured().start()).await.as_ref().map_err(Clone::clone)
}

/// How a broker is to be started.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    proxied: bool,
    secured: bool,
    properties: Vec<(String, String)>,
}

impl Builder {
    /// Adds a listener whose advertised address is a proxy's: see [`Broker::proxied_bootstrap`].
    pub fn proxied(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Adds listeners that ask who is there, and users with and without rights: see [`security`]. A proxied listener asks too.
    pub fn secured(mut self) -> Self {
        self.secured = true;
        self
    }

    /// Sets a key of `server.properties`; it replaces what the testbed would have set.
    pub fn property(mut self, key: &str, value: &str) -> Self {
        self.properties.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Starts the broker, and returns once it answers.
    pub async fn start(self) -> Result<Broker, PartError> {
        // A free port may be gone by the time the JVM asks for it, a second or two later.
        const TRIES: usize = 5;
        let mut last = None;
        for _ in 0..TRIES {
            let broker = Broker::prepare(&self).await?;
            match broker.launch().await {
                Ok(()) => return Ok(broker),
                Err(error) if broker.lost_its_port(&error) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| PartError::not_started(PART, "it was never tried")))
    }
}

/// A running broker. Dropping it kills the JVM and removes its data.
#[derive(Debug)]
pub struct Broker {
    ports: Ports,
    cluster: String,
    proxy: Option<Proxy>,
    /// Replaced by a restart.
    process: Mutex<Option<Arc<Process>>>,
    // Last: the folder goes after the process that writes to it.
    scratch: Scratch,
}

impl Broker {
    /// A broker with an empty log and no options.
    pub async fn start() -> Result<Self, PartError> {
        Self::builder().start().await
    }

    /// A broker with options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `bootstrap.servers` of this broker, past any proxy.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.ports.plain)
    }

    /// `bootstrap.servers` of the listener behind the proxy, if the broker was started with one. Whoever starts
    /// there is told the proxy's address by the broker, and so never meets the broker itself.
    pub fn proxied_bootstrap(&self) -> Option<String> {
        self.proxy.as_ref().map(|proxy| proxy.address().to_string())
    }

    /// The proxy in front of the proxied listener.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// The process id of the JVM that runs now.
    pub fn pid(&self) -> Option<u32> {
        self.process().map(|process| process.pid())
    }

    /// The broker's own log, warnings and worse.
    pub fn log(&self) -> String {
        // No log yet is an empty log.
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Asks the broker to end (SIGTERM) and waits until it has.
    pub async fn stop(&self) -> Result<(), PartError> {
        let Some(process) = self.process() else {
            return Ok(());
        };
        process.terminate();
        match tokio::time::timeout(STOP_WITHIN, process.wait()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(PartError::Timeout { what: "the broker's end after SIGTERM".to_owned(), within: STOP_WITHIN, last: self.log() }),
        }
    }

    /// Kills the broker (SIGKILL) and waits until it is gone.
    pub async fn kill(&self) {
        if let Some(process) = self.process() {
            process.kill();
            process.wait().await;
        }
    }

    /// Starts the broker again, on the same ports and the same data; one that still runs is stopped first.
    pub async fn restart(&self) -> Result<(), PartError> {
        self.stop().await?;
        self.launch().await
    }

    /// Stops the JVM in its tracks (SIGSTOP): connections stay open, nothing is answered.
    pub async fn freeze(&self) -> Result<(), PartError> {
        match self.process() {
            Some(process) => process.freeze().await,
            None => Err(PartError::failed(PART, "freezing the broker", "it does not run")),
        }
    }

    /// Lets a frozen JVM go on (SIGCONT).
    pub fn thaw(&self) {
        if let Some(process) = self.process() {
            process.thaw();
        }
    }

    /// Creates a topic and returns once each of its partitions has a leader.
    pub async fn create_topic(&self, name: &str, partitions: i32) -> Result<(), PartError> {
        self.create_topic_with(name, partitions, &[]).await
    }

    /// As [`Broker::create_topic`], with settings of the topic such as `max.message.bytes`.
    pub async fn create_topic_with(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) -> Result<(), PartError> {
        let what = format!("creating the topic {name}");
        let failed = |why: &dyn std::fmt::Display| PartError::failed(PART, what.clone(), why);
        let admin: AdminClient<DefaultClientContext> = self.client().create().map_err(|error| failed(&error))?;
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let options = AdminOptions::new().operation_timeout(Some(ASK_WITHIN));
        let results = admin.create_topics([&topic], &options).await.map_err(|error| failed(&error))?;
        for result in results {
            result.map_err(|(topic, code)| failed(&format!("{topic}: {code}")))?;
        }
        let client = self.client();
        let name = name.to_owned();
        blocking(move || ready::wait_for_leaders(&client, &name, partitions)).await
    }

    /// Every record of a topic, from the beginning to the end at the time of the call, by partition and offset.
    pub async fn read_all(&self, topic: &str) -> Result<Vec<Record>, PartError> {
        read_all(&self.bootstrap(), topic).await
    }

    fn client(&self) -> ClientConfig {
        client(&self.bootstrap())
    }

    fn process(&self) -> Option<Arc<Process>> {
        lock(&self.process).clone()
    }

    /// Chooses the ports, writes the settings and formats the storage.
    async fn prepare(builder: &Builder) -> Result<Self, PartError> {
        let scratch = Scratch::new(PART)?;
        let ports = Ports::choose(builder.proxied, builder.secured)?;
        let proxy = match ports.proxied {
            Some(port) => Some(Proxy::tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?),
            None => None,
        };
        // A cluster of its own: a client that meets a broker of another test on a port it knew notices the change,
        // and so does the wait for readiness.
        // An id that begins with a hyphen would be taken for an option by the storage tool.
        let mut cluster = URL_SAFE_NO_PAD.encode(parts::random::<16>()?);
        while cluster.starts_with('-') {
            cluster = URL_SAFE_NO_PAD.encode(parts::random::<16>()?);
        }
        let settings = properties::server(&ports, proxy.as_ref().map(Proxy::address), scratch.path(), &builder.properties);
        let broker = Self { ports, cluster, proxy, process: Mutex::default(), scratch };
        let write = |path: PathBuf, text: String| {
            std::fs::write(&path, text).map_err(|error| PartError::not_started(PART, format!("{}: {error}", path.display())))
        };
        write(broker.settings_path(), settings)?;
        write(broker.scratch.path().join("log4j2.properties"), properties::log4j2(&broker.log_path()))?;
        broker.format().await?;
        Ok(broker)
    }

    /// A KRaft broker refuses storage that was not formatted for its cluster.
    async fn format(&self) -> Result<(), PartError> {
        let mut java = self.java()?;
        java.args(["kafka.tools.StorageTool", "format", "-t", &self.cluster, "-c"]).arg(self.settings_path());
        if self.ports.secure.is_some() {
            let (user, password) = security::SCRAM;
            java.args(["--add-scram", &format!("SCRAM-SHA-512=[name={user},password={password}]")]);
        }
        let tool = Process::spawn(PART, java, None).await?;
        match tokio::time::timeout(START_WITHIN, tool.wait()).await {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(status) => {
                Err(PartError::not_started(PART, format!("formatting its storage ended with {status:?}: {}", tool.logs().text())))
            }
            Err(_) => Err(PartError::not_started(PART, "formatting its storage takes too long")),
        }
    }

    /// Starts the JVM and waits until it answers as the cluster it should be.
    async fn launch(&self) -> Result<(), PartError> {
        let mut java = self.java()?;
        java.arg("kafka.Kafka").arg(self.settings_path());
        let process = Arc::new(Process::spawn(PART, java, Some(&self.output_path())).await?);
        *lock(&self.process) = Some(Arc::clone(&process));
        let (client, cluster) = (self.client(), self.cluster.clone());
        let started = blocking(move || ready::wait_for_cluster(&client, &cluster, &process)).await;
        started.map_err(|error| {
            let why = match error {
                PartError::NotStarted { why, .. } => why,
                other => other.to_string(),
            };
            // A JVM that dies says why last, in one of the two places.
            let (output, log) = (self.output(), self.log());
            PartError::not_started(PART, format!("{why}\n{}\n{}", tail(&output), tail(&log)))
        })
    }

    fn java(&self) -> Result<Command, PartError> {
        let folder = parts::fetched(PART, "kafka")?;
        let mut class_path = class_path(&folder).map_err(|error| PartError::not_started(PART, format!("{}: {error}", folder.display())))?;
        // Behind the others: the archive of classes is good for a class path that begins as its own.
        class_path.push(":");
        class_path.push(security::jar()?);
        let mut java = Command::new("java");
        java.args(["-Xms64m", "-Xmx400m", "-XX:+UseSerialGC"])
            // The second compiler never earns back its time within a test run.
            .arg("-XX:TieredStopAtLevel=1")
            // Halves the time of a start. A JVM that cannot use it goes on without.
            .arg(format!("-XX:SharedArchiveFile={}", folder.join("classes.jsa").display()))
            .arg(format!("-Dlog4j2.configurationFile={}", self.scratch.path().join("log4j2.properties").display()))
            .arg("-cp")
            .arg(class_path)
            .current_dir(self.scratch.path());
        Ok(java)
    }

    /// Did the start fail because somebody else was quicker to take a port?
    fn lost_its_port(&self, error: &PartError) -> bool {
        [error.to_string(), self.log(), self.output()].iter().any(|text| text.contains(LOST_PORT))
    }

    /// What the JVM wrote itself; nothing is an empty text.
    fn output(&self) -> String {
        std::fs::read_to_string(self.output_path()).unwrap_or_default()
    }

    fn output_path(&self) -> PathBuf {
        self.scratch.path().join("output.log")
    }

    fn settings_path(&self) -> PathBuf {
        self.scratch.path().join("server.properties")
    }

    fn log_path(&self) -> PathBuf {
        self.scratch.path().join("broker.log")
    }
}

/// All jars in the order of their names: the archive of classes is good for the class path that it was made with.
fn class_path(folder: &Path) -> std::io::Result<OsString> {
    let mut jars = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            jars.push(path);
        }
    }
    jars.sort();
    std::env::join_paths(jars).map_err(std::io::Error::other)
}

fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", bootstrap)
        .set("client.id", "testbed")
        // The default grows to ten seconds, which every wait for a restarted broker would then take.
        .set("reconnect.backoff.ms", "20")
        .set("reconnect.backoff.max.ms", "200");
    config
}

/// librdkafka's questions block their thread.
async fn blocking<T: Send + 'static>(ask: impl FnOnce() -> Result<T, PartError> + Send + 'static) -> Result<T, PartError> {
    let asked = runtime().spawn_blocking(ask).await;
    asked.map_err(|error| PartError::failed(PART, "asking the broker", error))?
}

fn tail(log: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
