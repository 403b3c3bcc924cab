//! What the template tells the functions by way of their environment, and the documents beside it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::assembly::SOURCES;
use crate::config::{self, Documents, Env, Faults};
use crate::cursor::CursorStore;
use crate::cursor::dynamodb::DynamoStore;
use crate::failure::{Failure, Retry};
use crate::telemetry::metrics::Metrics;

/// Where the layer with the documents lies.
const CONFIG: &str = "/opt/config";

/// Lambda's smallest memory; only a program outside of Lambda is told nothing.
const SMALLEST_MB: u64 = 128;

/// The settings of a function.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The configuration directory (`TABLESWEEP_CONFIG`).
    pub config: PathBuf,
    /// The DynamoDB table with the cursors (`TABLESWEEP_CURSORS=dynamodb:TABLE`).
    pub cursors: Result<String, String>,
    /// The sweep function's name or ARN (`SWEEP_FUNCTION`); fan-out only.
    pub sweep_function: Option<String>,
    /// The function's memory in bytes.
    pub memory: u64,
    /// The function's timeout (`TABLESWEEP_TIMEOUT_SECONDS`), or `None` to read it off the first deadline.
    pub timeout: Result<Option<Duration>, String>,
    /// The function's name.
    pub name: String,
    /// What is written of metrics; table by table unless `TABLESWEEP_TABLE_METRICS` is `off`.
    pub metrics: Metrics,
}

impl Settings {
    /// Reads the settings. What is wrong with them is told by [`Settings::load`].
    pub fn read(env: Env<'_>) -> Self {
        let megabytes = env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE").and_then(|text| text.parse().ok()).unwrap_or(SMALLEST_MB);
        Self {
            config: env("TABLESWEEP_CONFIG").unwrap_or_else(|| CONFIG.to_owned()).into(),
            cursors: cursors(env("TABLESWEEP_CURSORS")),
            sweep_function: env("SWEEP_FUNCTION"),
            memory: megabytes.saturating_mul(1024 * 1024),
            timeout: timeout(env("TABLESWEEP_TIMEOUT_SECONDS")),
            name: env("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_else(|| "tablesweep".to_owned()),
            metrics: Metrics {
                function: env("AWS_LAMBDA_FUNCTION_NAME"),
                by_table: env("TABLESWEEP_TABLE_METRICS").as_deref() != Some("off"),
            },
        }
    }

    /// The documents.
    ///
    /// # Errors
    /// `Config.Invalid` with everything that is wrong with the documents and with these settings.
    pub fn load(&self, env: Env<'_>) -> Result<Documents, Failure> {
        let loaded = config::load(&self.config, SOURCES, env);
        let faults = [self.cursors.as_ref().err(), self.timeout.as_ref().err()];
        let mut report: Vec<String> = faults.into_iter().flatten().cloned().collect();
        match loaded {
            Ok(documents) if report.is_empty() => {
                for warning in &documents.warnings.0 {
                    tracing::warn!(file = warning.file, key = warning.key, "{}", warning.message);
                }
                Ok(documents)
            }
            Ok(_) => Err(invalid(report.join("\n"))),
            Err(faults) => {
                report.push(format!("{}: {}", self.config.display(), faults.to_string().trim_end()));
                Err(invalid(report.join("\n")))
            }
        }
    }

    /// The store of cursors; nothing is asked of it yet.
    ///
    /// # Errors
    /// `Config.Invalid` if its name makes no sense.
    pub(super) async fn open_store(&self) -> Result<Arc<dyn CursorStore>, Failure> {
        let table = self.cursors.as_ref().map_err(|why| invalid(why.clone()))?;
        Ok(Arc::new(Box::pin(DynamoStore::from_env(table)).await))
    }
}

fn invalid(report: String) -> Failure {
    Failure::new(Faults::CODE, Retry::Never, report)
}

fn cursors(given: Option<String>) -> Result<String, String> {
    match given.as_deref().map(|text| text.split_once(':')) {
        Some(Some(("dynamodb", table))) if !table.is_empty() => Ok(table.to_owned()),
        None => Err("TABLESWEEP_CURSORS is not set; a function keeps its cursors in dynamodb:TABLE".to_owned()),
        Some(_) => Err(format!(
            "TABLESWEEP_CURSORS is {:?}; a function keeps its cursors in dynamodb:TABLE, since nothing else outlives it",
            given.unwrap_or_default()
        )),
    }
}

fn timeout(given: Option<String>) -> Result<Option<Duration>, String> {
    let Some(text) = given else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if (1..=900).contains(&seconds) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(format!("TABLESWEEP_TIMEOUT_SECONDS is {text:?}; it is the function's timeout, from 1 to 900")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::read(&|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_documents_lie_in_the_layer_unless_told_otherwise() {
        assert_eq!(settings(&[]).config, PathBuf::from("/opt/config"));
        let told = settings(&[
            ("TABLESWEEP_CONFIG", "/var/task/config"),
            ("TABLESWEEP_CURSORS", "dynamodb:cursors"),
            ("TABLESWEEP_TIMEOUT_SECONDS", "45"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512"),
        ]);
        assert_eq!(told.config, PathBuf::from("/var/task/config"));
        assert_eq!(told.cursors.as_deref(), Ok("cursors"));
        assert_eq!((told.timeout, told.memory), (Ok(Some(Duration::from_secs(45))), 512 << 20));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let wrong =
            settings(&[("TABLESWEEP_CURSORS", "sqlite:x.db"), ("TABLESWEEP_TIMEOUT_SECONDS", "0"), ("TABLESWEEP_CONFIG", "/nowhere")]);
        let failure = wrong.load(&|_| None).expect_err("wrong");
        assert_eq!(failure.code, "Config.Invalid");
        for part in ["sqlite:x.db", "TABLESWEEP_TIMEOUT_SECONDS", "/nowhere"] {
            assert!(failure.message.contains(part), "`{part}` is missing in: {failure}");
        }
        assert!(settings(&[]).load(&|_| None).expect_err("nothing is set").message.contains("TABLESWEEP_CURSORS is not set"));
    }
}
