//! `make bench`: what a sweep costs, as ratios and counts of one run.
//!
//! A rate in rows per second says more about the machine, and about who else is busy on it, than about the program. So
//! nothing here is compared with an earlier run. What is compared was measured side by side, in turn, on the same
//! machine with the same data: a sweep, and the least that anybody could do to get the same bytes into the same
//! topic (the floor, see [`role::floor`]). Everything else is a count.
//!
//! ```text
//! conductor: this program without a role       sweep   the real engine           simulator    the instance
//!   starts the others, counts, compares        floor   download, produce         mock-broker  or Apache Kafka
//!                                              driver  read SQL Server, no more  tds-server   the SQL Server
//! ```
//!
//! Every role is a process of its own, this executable started again, so that the processor time and the memory of the
//! sweep are its own, and not those of the instance, the broker or the proxy that counts requests. A run that was measured is also
//! checked: as many records in the topic as rows in the table, and the floor's records equal to the sweep's. A
//! benchmark that does not look at the result measures how fast something else can be done.

mod args;
mod broker;
mod child;
mod documents;
mod failed;
mod figure;
mod instance;
mod job;
mod measure;
mod plan;
mod registry;
mod role;
mod usage;

use std::process::ExitCode;

use clap::Parser as _;

use args::Arguments;

/// A bar was missed.
const MISSED: u8 = 1;
/// There are no figures.
const BROKEN: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("bench: the runtime cannot start: {error}");
            return ExitCode::from(BROKEN);
        }
    };
    let ended = match arguments.role {
        Some(role) => runtime.block_on(role::run(role)).map(|()| true),
        None => runtime.block_on(measure::run(&arguments.options)),
    };
    runtime.shutdown_background();
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(MISSED),
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::from(BROKEN)
        }
    }
}
