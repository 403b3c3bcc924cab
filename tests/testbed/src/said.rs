//! What the programs under test said, kept for one look at all of it when the tests are over.
//!
//! A test that looks for its own password in its own output finds what it thought of. So whatever a program under test
//! writes goes to `target/said` as well, one file per kind and process of the tests, and `.ci/said`, the last step of
//! `make test`, searches all of it for every secret that the tests use (`tests/secrets.txt`).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, Once};

use tracing_subscriber::EnvFilter;

use crate::process::lock;

/// Everything of ours; of libraries, all but single packets.
const FILTER: &str = "debug,tablesweep=trace";

/// Keeps what a program wrote. `kind` says which: `cli`, `function`, `in-process`.
pub fn keep(kind: &str, text: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = lock(&WRITING);
    let written = file(kind).and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
    written.unwrap_or_else(|error| panic!("what the programs under test say cannot be kept in {}: {error}", folder().display()));
}

/// From here on, keeps what the library says when a test runs it in its own process.
pub fn listen() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let file = file("in-process").unwrap_or_else(|error| panic!("{}: {error}", folder().display()));
        let started = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_env_filter(EnvFilter::new(FILTER))
            .with_writer(Mutex::new(file))
            .try_init();
        // A test that listens by itself was first; what it hears is its own affair.
        drop(started);
    });
}

fn file(kind: &str) -> std::io::Result<File> {
    let folder = folder();
    std::fs::create_dir_all(&folder)?;
    OpenOptions::new().create(true).append(true).open(folder.join(format!("{kind}-{}.log", std::process::id())))
}

/// `said` in the target folder. Executables lie in the folder of their profile there, and those of tests in `deps` below that.
fn folder() -> PathBuf {
    let own = std::env::current_exe().expect("a running program knows its own executable");
    let mut profile = own.parent().expect("an executable lies in a folder");
    if profile.ends_with("deps") {
        profile = profile.parent().expect("deps lies in the folder of a profile");
    }
    profile.parent().expect("that lies in the target folder").join("said")
}
