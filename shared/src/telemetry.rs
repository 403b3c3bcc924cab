//! Logs: to stderr, as text for a person or as JSON lines for a log store. Metrics: to stdout, and in functions only.

pub mod metrics;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::host::env;

/// Libraries whose most detailed lines hold what a request is signed with: a session token in the text that is signed, an
/// `Authorization` header in a request that is shown whole. They are not heard below this, whatever is asked for.
const CAPPED: [&str; 5] = ["aws_sigv4=info", "aws_smithy_runtime=info", "aws_runtime=info", "aws_config=info", "hyper=info"];

/// Starts logging. `TABLESWEEP_LOG` chooses what is logged, in the syntax of tracing's `EnvFilter` (`info`,
/// `tablesweep=debug`); otherwise `default` does.
pub fn init(json: bool, default: &str) {
    let filter = env("TABLESWEEP_LOG").and_then(|text| EnvFilter::try_new(text).ok()).unwrap_or_else(|| {
        // The SQL Server driver logs every error that a server sends, as an error; ours say the same with table, code and remedy.
        EnvFilter::new(format!("{default},tiberius=off"))
    });
    let filter = CAPPED.iter().filter_map(|cap| cap.parse().ok()).fold(filter, EnvFilter::add_directive);
    // Colours are for eyes: a file or a log store would keep their escape sequences.
    let colours = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    // A second call finds the first one's subscriber in place, which is as good.
    let started = if json { builder.json().flatten_event(true).try_init() } else { builder.with_target(false).try_init() };
    drop(started);
}
