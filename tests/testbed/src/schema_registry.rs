//! Apicurio Registry: a schema registry that speaks the API of Confluent's.
//!
//! Confluent's own is not to be had from a public repository of packages. Apicurio's is another program by other people
//! for the same API, which is what the clients of our users meet as well. Its data is in memory and ends with the process.
//! It knows neither TLS nor logins as it is started here: [`Secure`] stands in front of it with the first, and a
//! [`Proxy`](crate::proxy::Proxy) sees who signs in.
//!
//! Tests that share a registry ([`shared`]) keep apart by subject, which is to say by topic.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::{OnceCell, watch};

use crate::parts::{self, PartError};
use crate::process::{Process, Scratch, runtime};
use crate::table_api::Tls;

const PART: &str = "the schema registry";
/// A start takes about four seconds of an idle machine; a machine that builds at the same time takes longer.
const START_WITHIN: Duration = Duration::from_secs(120);
const ASK_WITHIN: Duration = Duration::from_secs(30);
/// What the program says of a port that is taken.
const LOST_PORT: &str = "already in use";
/// Where the API of Confluent's registry stands.
pub const PATH: &str = "/apis/ccompat/v7";

/// The registry that all tests of this program share. It ends with the program.
pub async fn shared() -> Result<&'static Server, PartError> {
    static SHARED: OnceCell<Result<Server, PartError>> = OnceCell::const_new();
    SHARED.get_or_init(Server::start).await.as_ref().map_err(Clone::clone)
}

/// A running registry. Dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    process: Process,
    _scratch: Scratch,
}

impl Server {
    /// Starts a registry without data, and returns once it answers.
    pub async fn start() -> Result<Self, PartError> {
        // The port is chosen here, since the program does not say which one it was given. Somebody may be quicker to take it.
        let mut lost = 0;
        loop {
            match Self::start_at(parts::free_port()?).await {
                Err(error) if lost < 3 && error.to_string().contains(LOST_PORT) => lost += 1,
                started => return started,
            }
        }
    }

    async fn start_at(port: u16) -> Result<Self, PartError> {
        let folder = parts::fetched(PART, "registry")?;
        let scratch = Scratch::new(PART)?;
        let log = scratch.path().join("registry.log");
        let mut java = Command::new("java");
        java.args(["-Xms64m", "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar"])
            .arg(program(&folder)?)
            .env("QUARKUS_HTTP_HOST", "127.0.0.1")
            .env("QUARKUS_HTTP_PORT", port.to_string())
            .current_dir(scratch.path());
        let process = Process::spawn(PART, java, Some(&log)).await?;
        let server = Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), process, _scratch: scratch };
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        parts::until("an answer of the registry", START_WITHIN, async || match server.ask("GET", "/subjects", None).await {
            Ok((200, _)) => Ok(Ok(())),
            _ if !server.process.is_running() => Ok(Err(PartError::not_started(PART, read()))),
            other => Err(format!("{other:?}\n{}", read())),
        })
        .await??;
        Ok(server)
    }

    /// What `schema.registry.url` is to be set to.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Where the registry listens, for what stands in front of it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The registry's process, for faults.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Asks the API past any client; gives the status and the answer. The path begins behind [`PATH`].
    pub async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value), PartError> {
        let what = format!("{method} {path}");
        let (url, body) = (format!("{}{path}", self.url()), body.map(Value::to_string));
        let method = reqwest::Method::from_bytes(method.as_bytes()).map_err(|error| PartError::failed(PART, what.clone(), error))?;
        let asked = runtime().spawn(async move {
            let client = reqwest::Client::builder().no_proxy().timeout(ASK_WITHIN).build()?;
            let mut request = client.request(method, url);
            if let Some(body) = body {
                request = request.header("content-type", "application/json").body(body);
            }
            let answer = request.send().await?;
            Ok::<_, reqwest::Error>((answer.status().as_u16(), answer.text().await?))
        });
        let failed = |why: &dyn std::fmt::Display| PartError::failed(PART, what.clone(), why);
        let (status, text) = asked.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Registers a schema under a subject and gives its id.
    pub async fn register(&self, subject: &str, kind: &str, schema: &str) -> Result<u64, PartError> {
        let body = json!({"schema": schema, "schemaType": kind});
        let (status, answer) = self.ask("POST", &format!("/subjects/{subject}/versions"), Some(&body)).await?;
        answer["id"].as_u64().ok_or_else(|| PartError::failed(PART, format!("registering under {subject}"), format!("{status}: {answer}")))
    }

    /// The versions of a subject: none if it does not exist.
    pub async fn versions(&self, subject: &str) -> Result<Vec<u64>, PartError> {
        let (_, answer) = self.ask("GET", &format!("/subjects/{subject}/versions"), None).await?;
        Ok(answer.as_array().into_iter().flatten().filter_map(Value::as_u64).collect())
    }

    /// A version of a subject: `id`, `schema`, `version`. `latest` is a version.
    pub async fn version(&self, subject: &str, version: &str) -> Result<Value, PartError> {
        match self.ask("GET", &format!("/subjects/{subject}/versions/{version}"), None).await? {
            (200, answer) => Ok(answer),
            (status, answer) => Err(PartError::failed(PART, format!("version {version} of {subject}"), format!("{status}: {answer}"))),
        }
    }

    /// Sets how far the versions of a subject must agree.
    pub async fn set_compatibility(&self, subject: &str, compatibility: &str) -> Result<(), PartError> {
        match self.ask("PUT", &format!("/config/{subject}"), Some(&json!({"compatibility": compatibility}))).await? {
            (200, _) => Ok(()),
            (status, answer) => Err(PartError::failed(PART, format!("the compatibility of {subject}"), format!("{status}: {answer}"))),
        }
    }
}

/// The program among what was unpacked.
fn program(folder: &std::path::Path) -> Result<PathBuf, PartError> {
    let failed = |why: String| PartError::not_started(PART, format!("{}: {why}", folder.display()));
    let entries = std::fs::read_dir(folder).map_err(|error| failed(error.to_string()))?;
    let mut found = entries.filter_map(Result::ok).map(|entry| entry.path());
    found.find(|path| path.to_string_lossy().ends_with("-runner.jar")).ok_or_else(|| failed("there is no -runner.jar".to_owned()))
}

/// TLS in front of a part that speaks none. Dropping it closes the port.
#[derive(Debug)]
pub struct Secure {
    address: SocketAddr,
    _open: watch::Sender<()>,
}

impl Secure {
    /// In front of what listens at `upstream`.
    pub async fn start(tls: &Tls, upstream: SocketAddr) -> Result<Self, PartError> {
        let acceptor = tls.acceptor().map_err(|error| PartError::not_started(PART, error))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|error| PartError::not_started(PART, error))?;
        let address = listener.local_addr().map_err(|error| PartError::not_started(PART, error))?;
        let (open, mut closed) = watch::channel(());
        tokio::spawn(async move {
            loop {
                let client = tokio::select! {
                    accepted = listener.accept() => accepted,
                    _ = closed.changed() => return,
                };
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // How a handshake or a connection ends is for its two ends to judge.
                    let Ok((client, _)) = client else { return };
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let Ok(mut server) = TcpStream::connect(upstream).await else { return };
                    tokio::io::copy_bidirectional(&mut client, &mut server).await.ok();
                });
            }
        });
        Ok(Self { address, _open: open })
    }

    /// The port; the certificates are for `localhost`.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}
