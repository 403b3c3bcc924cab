//! A state machine of Step Functions, run against the [Lambda emulator](crate::lambda).
//!
//! The definition that is deployed is the program that is run: by an interpreter of its own (`state_machine/run.py`), which
//! knows the states and fields that it carries out and refuses every other, and which works out JSONata with a port of the
//! library that Step Functions uses. Time is virtual: a wait of twenty seconds takes as long as the test says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::parts::{self, PartError};
use crate::process::runtime;

const PART: &str = "the state machine";
/// Whatever is entered more often than this goes round in circles.
const MOST_STATES: u32 = 2_000;

/// A definition, ready to be run.
#[derive(Debug, Clone, Default)]
pub struct StateMachine {
    definition: String,
    most_events: Option<u32>,
    start_faults: Vec<String>,
}

/// One execution, from its start to its end.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execution {
    /// Its name.
    pub name: String,
    /// What it was started with.
    pub input: Value,
    /// `SUCCEEDED` or `FAILED`.
    pub status: String,
    /// What it answered.
    #[serde(default)]
    pub output: Value,
    /// The error that it failed with.
    #[serde(default)]
    pub error: Option<String>,
    /// What is said of that error.
    #[serde(default)]
    pub cause: Option<String>,
    /// The states in the order in which they were entered, those within a Map included.
    pub history: Vec<Entered>,
    /// How many events AWS would have in its history, which ends an execution at 25,000.
    pub events: u32,
    /// The names of the executions that it started.
    pub started: Vec<String>,
}

/// A state that was entered.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entered {
    /// Its name.
    pub state: String,
    /// When, in virtual seconds of waits and retries since the start.
    pub at: f64,
    /// What it was given.
    pub input: Value,
}

impl Execution {
    /// How often a state was entered.
    pub fn entered(&self, state: &str) -> usize {
        self.history.iter().filter(|one| one.state == state).count()
    }
}

impl StateMachine {
    /// Reads a definition and fills in the names that the template would.
    pub fn read(path: &Path, names: &BTreeMap<&str, &str>) -> Result<Self, PartError> {
        let text = std::fs::read_to_string(path).map_err(|error| PartError::failed(PART, path.display().to_string(), error))?;
        let filled = names.iter().fold(text, |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
        if let Some((_, rest)) = filled.split_once("${") {
            let name = rest.split('}').next().unwrap_or_default().to_owned();
            return Err(PartError::failed(PART, path.display().to_string(), format!("nothing was given for {name}")));
        }
        Ok(Self { definition: filled, ..Self::default() })
    }

    /// A definition given as a text.
    pub fn from_text(definition: &str) -> Self {
        Self { definition: definition.to_owned(), ..Self::default() }
    }

    /// The same with one passage replaced, which has to be there: a test cannot run two thousand sweeps to see what
    /// comes after them.
    pub fn changed(&self, passage: &str, by: &str) -> Result<Self, PartError> {
        if !self.definition.contains(passage) {
            return Err(PartError::failed(PART, "changing the definition", format!("`{passage}` does not stand in it")));
        }
        Ok(Self { definition: self.definition.replace(passage, by), ..self.clone() })
    }

    /// The same with a history that is full after so many events.
    #[must_use]
    pub fn with_history_of(self, events: u32) -> Self {
        Self { most_events: Some(events), ..self }
    }

    /// The same, where starting another execution fails with these errors, one after the other, before it succeeds.
    #[must_use]
    pub fn not_started_by(self, errors: &[&str]) -> Self {
        Self { start_faults: errors.iter().map(|&error| error.to_owned()).collect(), ..self }
    }

    /// Runs an execution, and after it those that it started. `lambda` is the address of the Invoke API, `second` how long
    /// one virtual second of waiting takes.
    pub async fn run(&self, lambda: &str, name: &str, input: &Value, second: Duration) -> Result<Vec<Execution>, PartError> {
        let python = parts::fetched(PART, "venv/bin")?.join("python");
        let mut order = json!({
            "definition": self.definition, "name": name, "input": input, "lambda": lambda,
            "second": second.as_secs_f64(), "most_states": MOST_STATES, "start_faults": self.start_faults,
        });
        if let Some(most) = self.most_events {
            order["most_events"] = json!(most);
        }
        let mut command = Command::new(python);
        command.args(["-c", include_str!("state_machine/run.py")]).arg(order.to_string()).kill_on_drop(true);
        let ran = runtime().spawn(async move { command.output().await }).await;
        let ran = ran.map_err(|error| PartError::not_started(PART, error))?.map_err(|error| PartError::not_started(PART, error))?;
        if !ran.status.success() {
            return Err(PartError::failed(PART, name, String::from_utf8_lossy(&ran.stderr)));
        }
        serde_json::from_slice(&ran.stdout).map_err(|error| PartError::failed(PART, name, error))
    }
}
