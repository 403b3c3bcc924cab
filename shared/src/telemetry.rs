//! Logs: to stderr, as text for a person or as JSON lines for a log store. Metrics: to stdout, and in functions only.

pub mod metrics;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::host::env;

/// The variable that chooses what is logged.
const FILTER: &str = "TABLESWEEP_LOG";

/// Starts logging. `TABLESWEEP_LOG` chooses what is logged, in the syntax of tracing's `EnvFilter` (`info`,
/// `tablesweep=debug`); otherwise `default` does, also if it cannot be read, which is then logged first.
pub fn init(json: bool, default: &str) {
    let given = env(FILTER);
    let (filter, fault) = match given.as_deref().map(EnvFilter::try_new) {
        Some(Ok(filter)) => (Some(filter), None),
        Some(Err(fault)) => (None, Some(fault)),
        None => (None, None),
    };
    // The SQL Server driver logs every error that a server sends, as an error; ours say the same with table, code and remedy.
    let filter = filter.unwrap_or_else(|| EnvFilter::new(format!("{default},tiberius=off")));
    // Colours are for eyes: a file or a log store would keep their escape sequences.
    let colours = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    // A second call finds the first one's subscriber in place, which is as good.
    let started = if json { builder.json().flatten_event(true).try_init() } else { builder.with_target(false).try_init() };
    drop(started);
    if let (Some(given), Some(fault)) = (given, fault) {
        tracing::warn!(
            "{FILTER}={given:?} cannot be read ({fault}); {default} is logged instead. It takes a level (info), or target=level pairs with commas between"
        );
    }
}
