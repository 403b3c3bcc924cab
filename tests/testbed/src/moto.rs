//! moto: DynamoDB, Secrets Manager and Parameter Store (and more of AWS) as one local server.
//!
//! The cursor protocol lives on conditional writes, so its tests want a server that evaluates conditions and was not
//! written by whoever wrote the protocol. moto is that, with known limits: it answers 500 where DynamoDB would say
//! that a condition of mixed types is false, it carries a request out again whose client token it has seen, and an
//! unknown secret is a 404 there. A test that needs a lost or late answer puts a [`Proxy`](crate::proxy::Proxy) in between.
//!
//! All data is in memory and of one account, so tests that share a server ([`shared`]) keep apart by table and
//! secret names.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::parts::{self, PartError};
use crate::process::{Process, Scratch, runtime};

const PART: &str = "moto";
const START_WITHIN: Duration = Duration::from_secs(60);
const ASK_WITHIN: Duration = Duration::from_secs(30);

/// The server that all tests of this program share. It ends with the program. Never [`Server::reset`] it.
pub async fn shared() -> Result<&'static Server, PartError> {
    static SHARED: OnceCell<Result<Server, PartError>> = OnceCell::const_new();
    SHARED.get_or_init(Server::start).await.as_ref().map_err(Clone::clone)
}

/// A running server. Dropping it kills the process.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    process: Process,
    log: PathBuf,
    _scratch: Scratch,
}

impl Server {
    /// Starts a server without data, and returns once it answers.
    pub async fn start() -> Result<Self, PartError> {
        Self::serve(include_str!("moto/serve.py"), None).await
    }

    /// As [`Server::start`], an account that stacks can be deployed into with the SAM CLI: `moto/account.py` says what it does
    /// beyond moto.
    pub async fn start_account() -> Result<Self, PartError> {
        // Not through the link `python`: an environment is known by the path that its Python was called by.
        let folder = parts::directory().join("template/bin").canonicalize();
        let folder = folder.map_err(|_| PartError::not_started(PART, "the SAM CLI is not there: run .ci/template test"))?;
        Self::serve(concat!(include_str!("moto/account.py"), include_str!("moto/serve.py")), Some(folder.join("python"))).await
    }

    async fn serve(program: &str, sam: Option<PathBuf>) -> Result<Self, PartError> {
        let python = parts::fetched(PART, "venv/bin")?.join("python");
        let scratch = Scratch::new(PART)?;
        let log = scratch.path().join("moto.log");
        let mut command = Command::new(python);
        // Port 0: the system chooses, and the server says which it was.
        command
            .args(["-c", program, "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONUNBUFFERED", "1")
            .env("NO_COLOR", "1")
            .envs(sam.map(|python| ("TESTBED_SAM_PYTHON", python)))
            .current_dir(scratch.path());
        let process = Process::spawn(PART, command, Some(&log)).await?;
        let read = || std::fs::read_to_string(&log).unwrap_or_default();
        let address = parts::until("moto's address in its log", START_WITHIN, async || match address_in(&read()) {
            Some(address) => Ok(Ok(address)),
            None if !process.is_running() => Ok(Err(PartError::not_started(PART, read()))),
            None => Err(read()),
        })
        .await??;
        let server = Self { address, process, log, _scratch: scratch };
        parts::until("an answer of moto", START_WITHIN, async || {
            server.post("/moto-api/reset", None, String::new()).await.map_err(|error| error.to_string())
        })
        .await?;
        Ok(server)
    }

    /// What `AWS_ENDPOINT_URL` is to be set to.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// [`Server::endpoint`] by name. A template that the SAM CLI has put into a bucket is found only under an address with this name.
    pub fn named_endpoint(&self) -> String {
        format!("http://localhost:{}", self.address.port())
    }

    /// Where the server listens, for a proxy in front of it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The server's process, for faults.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The server's log: one line per request.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Forgets all data of all services.
    pub async fn reset(&self) -> Result<(), PartError> {
        let (status, answer) = self.post("/moto-api/reset", None, String::new()).await?;
        match status {
            200 => Ok(()),
            status => Err(PartError::failed(PART, "a reset", format!("{status}: {answer}"))),
        }
    }

    /// Calls an operation of a JSON service by its target, such as `DynamoDB_20120810.GetItem` or
    /// `secretsmanager.CreateSecret`, past any SDK; gives the status and the answer, which is null if
    /// there is none.
    pub async fn call(&self, target: &str, request: &Value) -> Result<(u16, Value), PartError> {
        let (status, answer) = self.post("/", Some(target), request.to_string()).await?;
        if answer.is_empty() {
            return Ok((status, Value::Null));
        }
        let value =
            serde_json::from_str(&answer).map_err(|error| PartError::failed(PART, target, format!("{status}, {error}: {answer}")))?;
        Ok((status, value))
    }

    async fn post(&self, path: &str, target: Option<&str>, body: String) -> Result<(u16, String), PartError> {
        let what = target.unwrap_or(path).to_owned();
        let url = format!("{}{path}", self.endpoint());
        let target = target.map(str::to_owned);
        // On the testbed's runtime: a shared server is asked from the runtimes of many tests.
        let asked = runtime().spawn(async move {
            let client = reqwest::Client::builder().no_proxy().timeout(ASK_WITHIN).build()?;
            let mut request = client.post(url).body(body);
            if let Some(target) = target {
                request = request.headers(aws_headers(&target)?);
            }
            let answer = request.send().await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((answer.status().as_u16(), answer.text().await?))
        });
        let failed = |why: &dyn std::fmt::Display| PartError::failed(PART, what.clone(), why);
        asked.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

/// moto finds the service by the target and the scope of the signature; it never checks the signature itself.
fn aws_headers(target: &str) -> Result<reqwest::header::HeaderMap, reqwest::header::InvalidHeaderValue> {
    let service = match target.split('.').next().unwrap_or_default() {
        "AWSGlue" => "glue",
        "AmazonSSM" => "ssm",
        "AmazonSQS" => "sqs",
        "AWSStepFunctions" => "states",
        "Logs_20140328" => "logs",
        "TrentService" => "kms",
        other if other.starts_with("DynamoDB") => "dynamodb",
        _ => "secretsmanager",
    };
    let scope = format!(
        "AWS4-HMAC-SHA256 Credential=testbed/20260101/us-east-1/{service}/aws4_request, \
         SignedHeaders=host;x-amz-target, Signature=0"
    );
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("content-type", "application/x-amz-json-1.0".try_into()?);
    headers.insert("x-amz-target", target.try_into()?);
    headers.insert("authorization", scope.as_str().try_into()?);
    Ok(headers)
}

/// The address in the line `* Running on http://127.0.0.1:40000`, which may be coloured.
fn address_in(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("Running on http://")?;
    // Only a whole line tells the whole port.
    let (line, _) = rest.split_once('\n')?;
    let address: String = line.chars().take_while(|char| char.is_ascii_digit() || matches!(char, '.' | ':')).collect();
    address.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_of_the_log_is_no_address_yet() {
        assert_eq!(address_in(" * Running on http://127.0.0.1:40"), None);
        let whole = " * Running on http://127.0.0.1:4012\n";
        assert_eq!(address_in(whole), Some(SocketAddr::from(([127, 0, 0, 1], 4012))));
    }
}
