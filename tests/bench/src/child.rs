//! Roles as processes: this executable, started again.
//!
//! A role that works is given its job as JSON on its standard input and answers in JSON on its standard output. A role
//! that serves says where in its first line, and ends with its standard input: when this process is gone, however it
//! went, so are they.

use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::args::Role;
use crate::failed::Failed;

/// The longest that one role may work; longer is a hang.
const WORK_WITHIN: Duration = Duration::from_secs(60 * 60);

/// The longest that a role may take to say where it serves.
const SERVE_WITHIN: Duration = Duration::from_secs(60);

fn command(role: Role) -> Result<Command, Failed> {
    let own = std::env::current_exe().map_err(|error| Failed::at("finding this executable", error))?;
    let mut command = Command::new(own);
    command.arg(role.name()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    Ok(command)
}

fn start(role: Role) -> Result<Child, Failed> {
    command(role)?.spawn().map_err(|error| Failed::at(format!("starting the role {}", role.name()), error))
}

/// Has `role` do `job`, and gives its answer.
pub async fn work<J: Serialize, D: DeserializeOwned>(role: Role, job: &J) -> Result<D, Failed> {
    let failed = |why: &dyn std::fmt::Display| Failed::at(format!("the role {}", role.name()), why);
    let job = serde_json::to_vec(job).map_err(|error| failed(&error))?;
    let mut child = start(role)?;
    let mut stdin = child.stdin.take().ok_or_else(|| failed(&"its standard input is no pipe"))?;
    stdin.write_all(&job).await.map_err(|error| failed(&error))?;
    drop(stdin);
    let ended = tokio::time::timeout(WORK_WITHIN, child.wait_with_output()).await;
    let output = ended.map_err(|_| failed(&format!("it did not end within {WORK_WITHIN:?}")))?.map_err(|error| failed(&error))?;
    if !output.status.success() {
        return Err(failed(&format!("it ended with {}; what it said stands above", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| failed(&format!("its answer cannot be read: {error}")))
}

/// A role that serves; dropping it ends it.
#[derive(Debug)]
pub struct Serving {
    /// Where, as it said itself.
    pub address: String,
    _child: Child,
}

/// Starts a role that serves, with one line for it to read.
pub async fn serve(role: Role, told: &str) -> Result<Serving, Failed> {
    let failed = |why: &dyn std::fmt::Display| Failed::at(format!("the role {}", role.name()), why);
    let mut child = start(role)?;
    if let Some(stdin) = &mut child.stdin {
        stdin.write_all(format!("{told}\n").as_bytes()).await.map_err(|error| failed(&error))?;
    }
    let stdout = child.stdout.take().ok_or_else(|| failed(&"its standard output is no pipe"))?;
    let mut line = String::new();
    let mut reader = BufReader::new(stdout);
    let read = tokio::time::timeout(SERVE_WITHIN, reader.read_line(&mut line)).await;
    read.map_err(|_| failed(&format!("it did not say where it serves within {SERVE_WITHIN:?}")))?.map_err(|error| failed(&error))?;
    match line.trim() {
        "" => Err(failed(&"it ended before it served; what it said stands above")),
        address => Ok(Serving { address: address.to_owned(), _child: child }),
    }
}
