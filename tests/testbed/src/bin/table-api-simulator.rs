//! The Table API simulator as a program: for the demo, for a shell, and for benchmarks that must not share a process
//! with what they measure.
//!
//! `table-api-simulator [ADDRESS]` listens at `ADDRESS` (127.0.0.1 on a free port when absent), prints its URL as the
//! first line, and serves until its standard input ends or it is killed. What it is to hold is loaded over `/control/`,
//! see the page of the module `table_api`.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use tablesweep_testbed::table_api::{Credentials, Settings, TableApi};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("table-api-simulator: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = match arguments.next() {
        Some(text) => text.parse().map_err(|why| format!("`{text}` is not an address with a port: {why}"))?,
        None => SocketAddr::from(([127, 0, 0, 1], 0)),
    };
    if let Some(extra) = arguments.next() {
        return Err(format!("`{extra}` is one argument too many").into());
    }
    let api = TableApi::start_with(address, Settings::default(), Credentials::default())?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", api.url())?;
    out.flush()?;
    // The parent holds the other end: when it is gone, so is the reason to serve.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
