//! Children end with the program that started them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tablesweep_testbed::parts::until;
use tablesweep_testbed::process::Process;

fn shell(script: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

#[tokio::test]
async fn the_output_of_a_process_is_kept_whole_and_its_end_is_told() {
    let process = Process::spawn("a shell", shell("echo out; echo err >&2; printf last; exit 3"), None).await.unwrap();
    let status = process.wait().await.expect("the system tells how it ended");
    assert_eq!(status.code(), Some(3));
    let mut lines = process.logs().lines();
    lines.sort();
    assert_eq!(lines, ["err", "last", "out"]);
    assert!(!process.is_running());
    assert_eq!(process.usage(), None);
}

#[tokio::test]
async fn freezing_stops_the_whole_group_and_thawing_lets_it_go_on() {
    // The child of the shell counts; the shell itself only waits for it.
    let script = "(i=0; while :; do i=$((i+1)); echo line $i; sleep 0.01; done) & wait";
    let process = Process::spawn("a shell", shell(script), None).await.unwrap();
    process.logs().wait_for("line 2", Duration::from_secs(10)).await.unwrap();
    process.freeze().await.unwrap();
    assert!(process.is_frozen());
    // What was written before the freeze may still be on its way through the pipe: it is through once a reader
    // that was given time sees nothing new.
    let before = AtomicUsize::new(usize::MAX);
    until("the pipe to run dry", Duration::from_secs(10), async || {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let lines = process.logs().lines().len();
        let dry = lines == before.swap(lines, Ordering::SeqCst);
        if dry { Ok(()) } else { Err(format!("{lines} lines")) }
    })
    .await
    .expect("a frozen group writes nothing");
    process.thaw();
    let next = before.into_inner() + 5;
    process.logs().wait_for(&format!("line {next}"), Duration::from_secs(10)).await.unwrap();
    process.kill();
    assert!(process.wait().await.is_some());
}

#[tokio::test]
async fn a_dropped_process_is_gone_with_its_children() {
    let process = Process::spawn("a shell", shell("sleep 600 & echo child $!; wait"), None).await.unwrap();
    let line = process.logs().wait_for("child", Duration::from_secs(10)).await.unwrap();
    let child = line.split(' ').nth(1).expect("a process id").to_owned();
    drop(process);
    assert_gone(&child).await;
}

#[tokio::test]
async fn a_program_that_cannot_be_run_is_an_error_that_names_it() {
    let command = tokio::process::Command::new("/no/such/program");
    let error = Process::spawn("the part", command, None).await.expect_err("there is no such program");
    let text = error.to_string();
    assert!(text.contains("the part") && text.contains("/no/such/program"), "{text}");
}

#[tokio::test]
async fn a_killed_program_leaves_no_child_behind() {
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::victim", "--ignored", "--nocapture"])
        .env("TESTBED_VICTIM", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let child = lines.find_map(|line| line.unwrap().split_once("child=").map(|(_, pid)| pid.to_owned()));
    let child = child.expect("the program names its child");
    assert!(Path::new("/proc").join(&child).exists());
    program.kill().unwrap();
    program.wait().unwrap();
    assert_gone(&child).await;
}

/// Not a test: the program that the test above kills. It would wait for ever.
#[tokio::test]
#[ignore = "started by a_killed_program_leaves_no_child_behind"]
async fn victim() {
    if std::env::var_os("TESTBED_VICTIM").is_none() {
        return;
    }
    let process = Process::spawn("a shell", shell("exec sleep 600"), None).await.unwrap();
    println!("child={}", process.pid());
    process.wait().await;
}

async fn assert_gone(pid: &str) {
    let stat = Path::new("/proc").join(pid).join("stat");
    let what = format!("the end of {pid}");
    let gone = until(&what, Duration::from_secs(10), async || {
        match std::fs::read_to_string(&stat) {
            // Dead, and only waiting to be collected by the system.
            Ok(stat) if stat.contains(") Z ") => Ok(()),
            Ok(stat) => Err(stat),
            Err(_) => Ok(()),
        }
    });
    gone.await.unwrap();
}
