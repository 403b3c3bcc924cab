//! The programs under test, as they were built.
//!
//! Cargo puts a test executable into `deps/` below the folder of its profile, and programs into that folder itself. A
//! test that needs one finds it there, so that it tests what was built with the same profile and features.

use std::path::PathBuf;

/// The program `name` of this workspace.
///
/// # Panics
/// It was not built; a test without its program would prove nothing.
pub fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a running test knows its own executable");
    let folder = own.parent().and_then(std::path::Path::parent).expect("a test executable lies in deps/ below its profile's folder");
    let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.is_file(), "{} is not built: run `cargo build --workspace` first", program.display());
    program
}
