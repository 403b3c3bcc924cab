//! Child processes that outlive no test run.
//!
//! A part is a process of its own, so a test can do to it what happens in the field: ask it to end, kill it, freeze
//! it. Three things make that harder than it looks, and are settled here once:
//!
//! * **A static is never dropped.** A broker shared by all tests of a program lives in a static, so nothing runs
//!   when the program ends, least of all when it is killed. Every child is therefore also known to a watchdog: a
//!   small shell whose standard input is a pipe that only this program holds. When the program is gone, however it
//!   went, the pipe closes, and the shell kills the children and removes their folders.
//! * **A part may have children.** Each part leads a process group of its own, and signals go to the group.
//! * **A test's runtime ends with the test**, and a child waited for by a runtime that ended is waited for by
//!   nobody. All waiting and pumping happens on one runtime of the testbed's own, which is never dropped.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use crate::parts::PartError;

mod watchdog;

pub(crate) use watchdog::Scratch;

/// The runtime on which everything of the testbed runs that must not end with one test.
pub(crate) fn runtime() -> &'static Handle {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME
        .get_or_init(|| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("testbed")
                .enable_all()
                .build()
                .expect("the testbed needs two threads and an epoll handle")
        })
        .handle()
}

/// A poisoned lock means that a test panicked elsewhere; what it guards here is still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a process wrote to its standard output and error, line by line, in the order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    lines: Arc<LogLines>,
}

#[derive(Debug)]
struct LogLines {
    /// Under which kind the lines go to what the programs under test said.
    kept_as: Option<&'static str>,
    lines: Mutex<Vec<String>>,
    count: watch::Sender<usize>,
}

impl Default for LogLines {
    fn default() -> Self {
        Self { kept_as: None, lines: Mutex::default(), count: watch::Sender::new(0) }
    }
}

impl Logs {
    fn kept_as(kind: Option<&'static str>) -> Self {
        Self { lines: Arc::new(LogLines { kept_as: kind, ..LogLines::default() }) }
    }

    fn push(&self, line: String) {
        if let Some(kind) = self.lines.kept_as {
            crate::said::keep(kind, &line);
        }
        let mut lines = lock(&self.lines.lines);
        lines.push(line);
        self.lines.count.send_replace(lines.len());
    }

    /// All lines so far.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.lines.lines).clone()
    }

    /// All lines so far as one text.
    pub fn text(&self) -> String {
        lock(&self.lines.lines).join("\n")
    }

    /// The first line that contains `needle`, waiting for it if need be.
    pub async fn wait_for(&self, needle: &str, within: Duration) -> Result<String, PartError> {
        self.wait_from(0, needle, within).await
    }

    /// As [`Logs::wait_for`], but the first so many lines do not count: a process that is used again repeats itself.
    pub async fn wait_from(&self, line: usize, needle: &str, within: Duration) -> Result<String, PartError> {
        let mut count = self.lines.count.subscribe();
        let mut seen = line;
        let search = async {
            loop {
                count.borrow_and_update();
                {
                    let lines = lock(&self.lines.lines);
                    if let Some(found) = lines.iter().skip(seen).find(|line| line.contains(needle)) {
                        return Some(found.clone());
                    }
                    seen = seen.max(lines.len());
                }
                if count.changed().await.is_err() {
                    return None;
                }
            }
        };
        let found = tokio::time::timeout(within, search).await;
        found.ok().flatten().ok_or_else(|| PartError::Timeout { what: format!("a log line with {needle:?}"), within, last: self.text() })
    }

    /// Follows a stream to its end. Bytes that are not text are kept as replacement characters.
    async fn follow(self, stream: impl AsyncRead + Unpin) {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match reader.read_until(b'\n', &mut line).await {
                Ok(0) => return,
                Ok(_) => self.push(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => {
                    return self.push(format!("(the testbed could not read on: {error})"));
                }
            }
        }
    }
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// User and system time of the process, all threads, in milliseconds (the kernel tells ticks of 10 ms).
    pub cpu_ms: u64,
    /// The highest resident set so far, in KiB.
    pub peak_rss_kib: u64,
}

/// A running child that leads its own process group. Dropping it kills the group.
#[derive(Debug)]
pub struct Process {
    part: &'static str,
    pid: Pid,
    logs: Logs,
    exit: watch::Receiver<Option<Exit>>,
}

/// How a process ended; `None` inside means that the system would not tell.
type Exit = Option<ExitStatus>;

impl Process {
    /// Starts `command` as the leader of its own process group and follows its output.
    ///
    /// Standard input is empty. Output goes to [`Process::logs`], unless `log_file` is given: a part that writes much
    /// and is read seldom needs no reader.
    pub async fn spawn(part: &'static str, mut command: Command, log_file: Option<&Path>) -> Result<Self, PartError> {
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(false);
        match log_file {
            Some(path) => {
                let open = || std::fs::OpenOptions::new().create(true).append(true).open(path);
                let file = open()
                    .map_err(|error| PartError::not_started(part, format!("its log {} cannot be opened: {error}", path.display())))?;
                let twin = file.try_clone().map_err(|error| PartError::not_started(part, error))?;
                command.stdout(file).stderr(twin);
            }
            None => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
        }
        let program = command.as_std().get_program().to_owned();
        let spawned = runtime().spawn(async move { Self::start(part, command, &program) });
        spawned.await.map_err(|error| PartError::not_started(part, error))?
    }

    /// Runs on the testbed's own runtime, to which the child's exit will be reported.
    fn start(part: &'static str, mut command: Command, program: &OsStr) -> Result<Self, PartError> {
        let mut child = command
            .spawn()
            .map_err(|error| PartError::not_started(part, format!("{} cannot be run: {error}", program.to_string_lossy())))?;
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| PartError::not_started(part, "it ended before it had a process id"))?;
        watchdog::guard_process(pid)?;
        // The real parts' output is theirs; a function's is ours.
        let logs = Logs::kept_as((part == crate::lambda::PART).then_some("function"));
        let mut readers = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            readers.push(tokio::spawn(logs.clone().follow(stdout)));
        }
        if let Some(stderr) = child.stderr.take() {
            readers.push(tokio::spawn(logs.clone().follow(stderr)));
        }
        let (report, exit) = watch::channel(None);
        tokio::spawn(async move {
            let status = child.wait().await.ok();
            // What was written before the end is part of the record of the end. A grandchild may hold the pipe
            // open for longer than that, so the group goes first; ids are given out in turn, so it is still ours.
            signal_group(pid, Signal::KILL);
            for reader in readers {
                // A reader that panicked has already said so on standard error.
                drop(reader.await);
            }
            watchdog::release_process(pid);
            report.send_replace(Some(status));
        });
        Ok(Self { part, pid, logs, exit })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// The process's output so far.
    pub fn logs(&self) -> &Logs {
        &self.logs
    }

    /// Has the process not ended yet? A frozen one has not.
    pub fn is_running(&self) -> bool {
        self.exit.borrow().is_none()
    }

    /// Asks the process to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the process and its children at once (SIGKILL).
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Stops the process and its children in their tracks (SIGSTOP), and returns once the kernel says so.
    pub async fn freeze(&self) -> Result<(), PartError> {
        self.signal(Signal::STOP);
        crate::parts::until("the process to be stopped", Duration::from_secs(5), async || {
            if !self.is_running() {
                return Ok(());
            }
            match process_state(self.pid()) {
                Some('T') => Ok(()),
                other => Err(format!("state {other:?} of {}", self.part)),
            }
        })
        .await
    }

    /// Lets a frozen process go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Is the process stopped by a signal?
    pub fn is_frozen(&self) -> bool {
        self.is_running() && process_state(self.pid()) == Some('T')
    }

    /// Waits for the end of the process and all its output. `None` if the system would not tell how it ended.
    pub async fn wait(&self) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(ended) => ended.flatten(),
            // The waiter is gone: only when the whole program ends.
            Err(_) => None,
        }
    }

    /// What the process has used so far; `None` once it has ended.
    pub fn usage(&self) -> Option<Usage> {
        if !self.is_running() {
            return None;
        }
        usage(self.pid())
    }

    /// The group is only signalled while its leader has not been waited for: its id cannot be anybody else's.
    fn signal(&self, signal: Signal) {
        if self.is_running() {
            signal_group(self.pid, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A group that has just ended cannot be signalled any more, and that is what its sender wanted to know anyway.
fn signal_group(pid: Pid, signal: Signal) {
    if let Err(error) = rustix::process::kill_process_group(pid, signal)
        && error != rustix::io::Errno::SRCH
    {
        eprintln!("testbed: signal {signal:?} to process group {pid:?}: {error}");
    }
}

/// The state letter of `/proc/<pid>/stat`.
fn process_state(pid: u32) -> Option<char> {
    stat_fields(pid)?.first()?.chars().next()
}

/// The fields of `/proc/<pid>/stat` after the command, which may itself contain blanks and brackets.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_command) = stat.rsplit_once(')')?;
    Some(after_command.split_whitespace().map(str::to_owned).collect())
}

fn usage(pid: u32) -> Option<Usage> {
    // Counted from the state letter, which is field 3 of proc(5): utime is field 14, stime field 15.
    let fields = stat_fields(pid)?;
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(Usage {
        cpu_ms: ticks * 1000 / rustix::param::clock_ticks_per_second(),
        peak_rss_kib: peak.split_whitespace().next()?.parse().ok()?,
    })
}
