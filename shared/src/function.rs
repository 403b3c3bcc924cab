//! The two functions, without Lambda: an event and a deadline in, an answer or a [`Failure`] out.
//!
//! ```text
//! schedule, operator or state machine -> fan-out: documents -> tasks -> one invocation of sweep per task
//!                                        sweep:   the tables of one task, side by side, until the deadline
//! ```
//!
//! The programs below `functions/` only translate between Lambda's protocol and these handlers; a failure's code becomes
//! the type of the error that Lambda reports.
//!
//! # What an execution environment keeps
//!
//! Documents are read when the environment starts. They cannot change below it, so what is wrong with them is kept
//! too: the start itself always succeeds, and every invocation fails with `Config.Invalid` and the whole report. A start that
//! failed instead would be tried again and again by Lambda, at a person's cost and with the report in no answer. What
//! needs the network (secrets, the producer, the cursor store's client) is made by the first invocation that asks for it;
//! success is kept, a failure is not, so that the next tick tries again.

pub mod event;
pub mod fan_out;
mod producers;
pub mod reports;
mod rewind;
pub mod settings;
pub mod sweep;

pub use event::{Dispatch, SweepTask};
pub use fan_out::{FanOut, Invoke};
pub use settings::Settings;
pub use sweep::Sweep;

use crate::failure::Failure;
use crate::host::env;
use crate::sweep::SWEPT;
use crate::telemetry;

/// Starts logging as the function's logging configuration says (`AWS_LAMBDA_LOG_FORMAT`, `AWS_LAMBDA_LOG_LEVEL`).
///
/// The line that the engine writes for each table is left out, since the function writes one that also knows the tick.
pub fn start_logging() {
    let is_json = env("AWS_LAMBDA_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json"));
    let level = env("AWS_LAMBDA_LOG_LEVEL").map_or_else(|| "info".to_owned(), |level| level.to_ascii_lowercase());
    telemetry::init(is_json, &filter(&level));
}

fn filter(level: &str) -> String {
    match level {
        "trace" | "debug" | "warn" | "error" => level.to_owned(),
        "fatal" => "error".to_owned(),
        _ => format!("info,{SWEPT}=warn"),
    }
}

/// Tells the log why an invocation fails, since whoever invoked asynchronously never sees the answer, and gives the failure back.
pub fn logged(failure: Failure) -> Failure {
    tracing::error!(code = &*failure.code, "{}", failure.message);
    failure
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::EnvFilter;

    use super::{SWEPT, filter};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test panics while it writes").write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_what_the_engine_says_only_the_line_that_the_function_writes_itself_is_left_out() {
        let written = Written::default();
        let writer = written.clone();
        let subscriber =
            tracing_subscriber::fmt().with_env_filter(EnvFilter::new(filter("info"))).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: SWEPT, "swept");
            tracing::info!(target: "tablesweep::sweep::table", "the table goes on");
        });
        let text = String::from_utf8(written.0.lock().expect("written").clone()).expect("text");
        assert!(text.contains("the table goes on") && !text.contains("swept"), "{text}");
    }

    #[test]
    fn the_level_is_lambdas_and_an_unknown_one_does_not_silence_the_log() {
        assert_eq!([filter("debug"), filter("fatal")], ["debug", "error"]);
        assert!(filter("info").starts_with("info") && filter("loud").starts_with("info"));
    }
}
