//! The tablesweep program: the same engine as the functions, on a laptop.
//!
//! Arguments become typed values in `args`; each subcommand has a file and gives an [`Exit`]. Results go to standard
//! output and everything else to standard error, so that `tablesweep … --output json | jq` works whatever happens.

mod args;
mod check;
mod cursor;
#[cfg(feature = "demo")]
mod demo;
mod documents;
mod exit;
mod interrupt;
mod migrate;
mod notices;
mod output;
mod plan;
mod sinks;
mod status;
mod stores;
mod sweep;
mod text;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use tablesweep::{assembly, config, telemetry};

use args::{Arguments, Command};
use exit::{Exit, Stop};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    telemetry::init(false, "warn");
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::code(Err(Stop::failed(format!("the runtime cannot start: {error}")))),
    };
    let ended = runtime.block_on(dispatch(arguments.command));
    // A read of standard input or a slow look-up must not hold the end up.
    runtime.shutdown_background();
    exit::code(ended)
}

fn completions(shell: clap_complete::Shell) -> Result<Exit, Stop> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "tablesweep", &mut script);
    output::text(&String::from_utf8_lossy(&script)).map(|()| Exit::Good)
}

async fn dispatch(command: Command) -> Result<Exit, Stop> {
    match command {
        #[cfg(feature = "demo")]
        Command::Demo => demo::run().await,
        Command::Check(arguments) => check::run(arguments).await,
        Command::Plan(arguments) => plan::run(arguments).await,
        Command::Sweep(arguments) => sweep::run(arguments).await,
        Command::Status(arguments) => status::run(arguments).await,
        Command::Cursor(command) => cursor::run(command).await,
        Command::Migrate(arguments) => migrate::run(&arguments),
        Command::Completions(arguments) => completions(arguments.shell),
        Command::Reference => output::text(&config::reference(assembly::SOURCES)).map(|()| Exit::Good),
    }
}
