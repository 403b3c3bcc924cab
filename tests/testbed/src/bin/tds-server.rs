//! The TDS test server as a program: for a shell, for other clients, and for benchmarks that must not share a process with
//! what they measure.
//!
//! `tds-server [ADDRESS [SCRIPT]]` listens at `ADDRESS` (127.0.0.1 on a free port when absent), runs the statements of the
//! file `SCRIPT`, prints its address as the first line, and serves until its standard input ends or it is killed. Login and
//! database are those of the module `tds`: `sa`, `Sweep-the-tables-1`, `shop`.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use tablesweep_testbed::tds::{Server, Settings};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("tds-server: {why}");
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
    let script = arguments.next();
    if let Some(extra) = arguments.next() {
        return Err(format!("`{extra}` is one argument too many").into());
    }
    let server = Server::start_with(address, Settings::default())?;
    if let Some(path) = script {
        let statements = std::fs::read_to_string(&path).map_err(|why| format!("{path}: {why}"))?;
        server.execute(&statements).map_err(|why| format!("{path}: {why}"))?;
    }
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.address())?;
    out.flush()?;
    // The parent holds the other end: when it is gone, so is the reason to serve.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    for refusal in server.refusals() {
        eprintln!("tds-server: refused: {refusal}");
    }
    Ok(())
}
