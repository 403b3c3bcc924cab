//! Writing results. A reader that went away (`tablesweep status | head -1`) is no error: the result was there for it.

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;

use crate::exit::Stop;

/// Writes text to standard output.
pub fn text(text: &str) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    settled(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Writes a value as indented JSON to standard output.
pub fn json(value: &impl Serialize) -> Result<(), Stop> {
    text(&json_text(value)?)
}

/// The indented JSON of a value, with a line end.
pub fn json_text(value: &impl Serialize) -> Result<String, Stop> {
    let mut text =
        serde_json::to_string_pretty(value).map_err(|error| Stop::failed(format!("the result cannot be written as JSON: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Writes a line to standard error. There is nobody left to tell if that fails.
pub fn note(line: &str) {
    let _unheard = writeln!(io::stderr().lock(), "{line}");
}

/// Whether a person can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn settled(written: io::Result<()>) -> Result<(), Stop> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Stop::failed(format!("standard output cannot be written: {error}"))),
        _ => Ok(()),
    }
}
