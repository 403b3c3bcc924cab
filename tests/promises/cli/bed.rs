//! A folder with documents, a simulated instance, and the program.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tablesweep_testbed::program::program;
use tablesweep_testbed::said;
use tablesweep_testbed::table_api::{Fields, Generate, TableApi};
use tempfile::TempDir;

/// The user's password in every document; no output may show it.
pub const PASSWORD: &str = "tr0ub4dor-and-3";

/// The longest that anything in these tests may take; reaching it is a failure.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub struct Bed {
    pub api: TableApi,
    pub dir: TempDir,
    pub config: Value,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The only table of a sweep's result.
    pub fn table(&self) -> Value {
        let tables = self.json()["tables"].take();
        assert_eq!(tables.as_array().map(Vec::len), Some(1), "{tables}");
        tables[0].clone()
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        assert!(!self.stdout.contains(PASSWORD) && !self.stderr.contains(PASSWORD), "a secret was shown: {self:#?}");
        self
    }
}

impl Bed {
    /// One connector `snow` with the alias `inc` of an instance's table `incident`, which holds `rows` rows.
    pub fn new(rows: u64) -> Self {
        let api = TableApi::start().expect("the simulator starts");
        let start = Some("2026-01-01 00:00:00".to_owned());
        api.generate(Generate { per_second: 20, start, bytes_per_row: 400, ..Generate::rows("incident", rows) }).expect("rows");
        let config = json!({
            "connector.class": "servicenow",
            "snow.url": api.url(),
            "snow.auth.type": "basic",
            "snow.auth.username": "sweep",
            "snow.auth.password": PASSWORD,
            "snow.tables": "inc",
            "snow.table.inc.name": "incident",
            "snow.table.inc.topic": "snow.incident",
            "snow.table.inc.start.timestamp": "2026-01-01 00:00:00",
            "snow.retry.initial.backoff.ms": "1",
            "snow.retry.max.backoff.ms": "5",
            "snow.retry.max.attempts": "2",
        });
        let bed = Self { api, dir: TempDir::new().expect("a folder"), config };
        bed.write();
        bed
    }

    /// Sets a key of the document.
    pub fn set(&mut self, key: &str, value: impl ToString) {
        self.config[key] = value.to_string().into();
        self.write();
    }

    fn write(&self) {
        self.document("snow", &self.config);
    }

    /// Writes `worker.json` of these pairs.
    pub fn worker(&self, pairs: &[(&str, &str)]) {
        let worker: serde_json::Map<_, _> = pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
        std::fs::write(self.dir.path().join("config/worker.json"), Value::from(worker).to_string()).expect("written");
    }

    /// Writes the document of a connector.
    pub fn document(&self, name: &str, config: &Value) {
        let folder = self.dir.path().join("config/connectors");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(format!("{name}.json")), json!({"name": name, "config": config}).to_string()).expect("written");
    }

    /// A row whose cursor is this second.
    pub fn insert(&self, stamp: &str) -> String {
        self.api.insert("incident", Fields::from([("number", "INC1"), ("sys_updated_on", stamp)])).expect("inserted")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("tablesweep"));
        command.args(arguments).current_dir(self.dir.path());
        for name in ["TABLESWEEP_CONFIG", "TABLESWEEP_CURSORS", "TABLESWEEP_SINK", "TABLESWEEP_LOG"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).spawn().expect("the program starts"))
    }

    /// Sweeps into `rows.ndjson`, and gives the result as JSON.
    pub fn sweep(&self, more: &[&str]) -> Ended {
        self.run(&[&["sweep", "--sink", "ndjson:rows.ndjson", "--output", "json"], more].concat())
    }

    /// The keys of the records in `rows.ndjson`.
    pub fn keys(&self) -> Vec<String> {
        lines(&self.path("rows.ndjson")).iter().map(|line| line["key"].as_str().expect("a key").to_owned()).collect()
    }

    /// The only table of `status`.
    pub fn status(&self) -> Value {
        self.run(&["status", "--output", "json"]).expect(0).table()
    }
}

/// The whole lines of a file as JSON.
pub fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Waits for the end of a child, and reads what it said.
pub fn ended(mut child: Child) -> Ended {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stream) = stream {
                stream.read_to_string(&mut text).expect("text");
            }
            text
        })
    };
    let stdout = read(out.map(|out| Box::new(out) as _));
    let stderr = read(err.map(|err| Box::new(err) as _));
    let code = wait(&mut child);
    let ended = Ended { code, stdout: stdout.join().expect("read"), stderr: stderr.join().expect("read") };
    said::keep("cli", &ended.stdout);
    said::keep("cli", &ended.stderr);
    ended
}

/// Waits for the end of a child; one that does not come is killed and fails the test.
pub fn wait(child: &mut Child) -> Option<i32> {
    let mut status = None;
    let is_over = soon(|| {
        status = child.try_wait().expect("a child");
        status.is_some()
    });
    if !is_over {
        child.kill().expect("killed");
        child.wait().expect("gone");
        panic!("the program did not end");
    }
    status.and_then(|status| status.code())
}

/// Whether the condition holds within the patience.
#[expect(clippy::disallowed_methods, reason = "a test waits by the machine's clock")]
pub fn soon(mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// Sends a signal by name.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success());
}
