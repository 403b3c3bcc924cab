//! The roles: what is measured, and what it is measured with.

mod driver;
pub mod floor;
mod serving;
mod sweep;

use std::io::{Read as _, Write as _};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tablesweep::telemetry;

use crate::args::Role;
use crate::failed::Failed;

/// Plays `role` to its end.
pub async fn run(role: Role) -> Result<(), Failed> {
    telemetry::init(false, "warn");
    match role {
        Role::Sweep => answer(&sweep::run(job()?).await?),
        Role::Floor => answer(&floor::run(job()?).await?),
        Role::Simulator => serving::simulator(),
        Role::MockBroker => serving::mock_broker(),
        Role::TdsServer => serving::tds_server(),
        Role::Driver => answer(&driver::run(job()?).await?),
    }
}

/// The job on standard input.
fn job<J: DeserializeOwned>() -> Result<J, Failed> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| Failed::at("reading the job", error))?;
    serde_json::from_str(&text).map_err(|error| Failed::at("reading the job", error))
}

fn answer<D: Serialize>(done: &D) -> Result<(), Failed> {
    let text = serde_json::to_string(done).map_err(|error| Failed::at("writing the answer", error))?;
    said(&text)
}

/// One line on standard output, at once.
fn said(line: &str) -> Result<(), Failed> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| Failed::at("writing to standard output", error))
}
