//! The shell that outlives this program by just as long as it takes to clean up after it.

use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;

use super::{Mutex, PartError, Pid, Write, lock};

/// Told line by line which process groups (`+ 123`, `- 123`) and folders (`/ path`) are ours. The loop ends with its
/// input, which is when this program has ended.
const SCRIPT: &str = r#"
groups=
folders=
newline='
'
while read -r verb name; do
  case $verb in
    +) groups="$groups $name" ;;
    -) kept=
       for group in $groups; do
         [ "$group" = "$name" ] || kept="$kept $group"
       done
       groups=$kept ;;
    /) folders="$folders$newline$name" ;;
  esac
done
for group in $groups; do
  kill -s KILL -- "-$group"
done
IFS=$newline
set -f
for folder in $folders; do
  rm -rf -- "$folder"
done
"#;

struct Watchdog {
    /// Closed by the system when this program ends, and by nothing before.
    input: Mutex<ChildStdin>,
    _shell: Child,
}

fn watchdog() -> Result<&'static Watchdog, PartError> {
    static WATCHDOG: OnceLock<Result<Watchdog, PartError>> = OnceLock::new();
    WATCHDOG.get_or_init(start).as_ref().map_err(Clone::clone)
}

fn start() -> Result<Watchdog, PartError> {
    use std::os::unix::process::CommandExt;
    let failed = |error: &dyn std::fmt::Display| PartError::not_started("the testbed's watchdog", error);
    // Its own group: a Ctrl-C at the terminal ends this program, and must not end the one who cleans up after it.
    let mut shell = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| failed(&error))?;
    let input = shell.stdin.take().ok_or_else(|| failed(&"its standard input is not a pipe"))?;
    Ok(Watchdog { input: Mutex::new(input), _shell: shell })
}

fn tell(line: &str) -> Result<(), PartError> {
    let mut input = lock(&watchdog()?.input);
    input
        .write_all(line.as_bytes())
        .map_err(|error| PartError::failed("the testbed's watchdog", "being told of a process or folder", error))
}

/// From now on the group of `pid` does not outlive this program.
pub(super) fn guard_process(pid: Pid) -> Result<(), PartError> {
    tell(&format!("+ {}\n", pid.as_raw_nonzero()))
}

/// The process has been waited for: its id may soon be somebody else's.
pub(super) fn release_process(pid: Pid) {
    if let Err(error) = tell(&format!("- {}\n", pid.as_raw_nonzero())) {
        eprintln!("testbed: {error}");
    }
}

/// A folder for one part's files: removed when dropped, and by the watchdog when it never is.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new(part: &'static str) -> Result<Self, PartError> {
        let failed = |error: &dyn std::fmt::Display| PartError::not_started(part, format!("no temporary folder: {error}"));
        let folder = tempfile::Builder::new().prefix("tablesweep-testbed-").tempdir().map_err(|error| failed(&error))?;
        let path: PathBuf = folder.path().canonicalize().map_err(|error| failed(&error))?;
        match path.to_str() {
            Some(path) if !path.contains('\n') => tell(&format!("/ {path}\n"))?,
            _ => return Err(failed(&format!("{} is no plain text", path.display()))),
        }
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}
