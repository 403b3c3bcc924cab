//! Logs: to stderr, as text for a person or as JSON lines for a log store. Metrics: to stdout, and in functions only.

pub mod metrics;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::host::env;

/// Starts logging. `TABLESWEEP_LOG` chooses what is logged, in the syntax of tracing's `EnvFilter` (`info`,
/// `tablesweep=debug`); otherwise `default` does.
pub fn init(json: bool, default: &str) {
    let filter = env("TABLESWEEP_LOG").and_then(|text| EnvFilter::try_new(text).ok()).unwrap_or_else(|| {
        // The SQL Server driver logs every error that a server sends, as an error; ours say the same with table, code and remedy.
        EnvFilter::new(format!("{default},tiberius=off"))
    });
    // Colours are for eyes: a file or a log store would keep their escape sequences.
    let colours = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    // A second call finds the first one's subscriber in place, which is as good.
    let started = if json { builder.json().flatten_event(true).try_init() } else { builder.with_target(false).try_init() };
    drop(started);
}
