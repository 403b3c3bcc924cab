//! Running the clients.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tablesweep_testbed::parts;
use tablesweep_testbed::tds::{DATABASE, PASSWORD, Server, USER};

/// The clients in Python.
pub const PYTHON: [&str; 2] = ["pytds", "pymssql"];

/// Who logs in, and how.
pub struct Settings(Value);

impl Settings {
    pub fn of(server: &Server) -> Self {
        Self(json!({"port": server.port(), "user": USER, "password": PASSWORD, "database": DATABASE}))
    }

    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0[key] = value.into();
        self
    }
}

/// Runs statements through a client in Python and gives what it printed, line by line.
pub fn python(client: &str, settings: &Settings, statements: &Value) -> Vec<Value> {
    let python = parts::directory().join("venv/bin/python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/parts/tds/clients.py");
    let mut command = Command::new(&python);
    command.args([script, client, &settings.0.to_string()]);
    let printed = run(command, &statements.to_string(), "run tests/testbed/parts/fetch.sh");
    printed.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{client}: {why}: {line}"))).collect()
}

/// The rows of one statement.
pub fn rows(client: &str, server: &Server, statement: &str, parameters: Value) -> Value {
    let mut lines = python(client, &Settings::of(server), &json!([[statement, parameters]]));
    let mut line = lines.pop().unwrap_or_else(|| panic!("{client} printed nothing"));
    assert!(line["rows"].is_array(), "{client}: {statement}: {line}");
    line["rows"].take()
}

/// A configuration of FreeTDS for one server, in a directory that goes with it.
pub struct Tsql {
    directory: tempfile::TempDir,
}

impl Tsql {
    /// `lines` are added to the server's section: `encryption = require`.
    pub fn of(server: &Server, lines: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let section = format!("[test]\nhost = 127.0.0.1\nport = {}\ntds version = 7.4\n{}\n", server.port(), lines.join("\n"));
        std::fs::write(directory.path().join("freetds.conf"), section).expect("a configuration");
        Self { directory }
    }

    /// Runs batches and gives what `tsql` printed, on either output.
    pub fn run(&self, user: &str, password: &str, batches: &[&str]) -> String {
        let mut command = Command::new("tsql");
        command
            .env("FREETDSCONF", self.path())
            .env("LC_ALL", "C.UTF-8")
            .args(["-S", "test", "-U", user, "-P", password, "-D", DATABASE, "-o", "q", "-t", "|"]);
        let input: String = batches.iter().map(|batch| format!("{batch}\ngo\n")).collect();
        run(command, &input, "FreeTDS is missing (Debian: apt-get install freetds-bin)")
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("freetds.conf")
    }
}

/// Runs a program, gives it its input, and gives back both of its outputs, one after the other.
fn run(mut command: Command, input: &str, missing: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|why| panic!("{:?} does not start: {why}: {missing}", command.get_program()));
    let mut stdin = child.stdin.take().expect("a pipe");
    // A client whose login was refused has gone before it reads; what it printed says why.
    stdin.write_all(input.as_bytes()).ok();
    drop(stdin);
    let output = child.wait_with_output().expect("its output");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
