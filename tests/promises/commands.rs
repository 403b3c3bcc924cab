//! Every command of the documentation, run.
//!
//! A command is a line of a block of README.md or docs/*.md that begins with a program. Those of `tablesweep` are run by a shell,
//! page by page and in their order, in a folder that holds what the page presumes ([`stage`]): the page's own documents, with the
//! addresses of a simulated instance, a real broker and a DynamoDB in place of its examples. Those of the AWS CLI are looked up in the
//! descriptions that the CLI is made of, and what they name in the template and in `events/`. For every other one, [`OTHERS`]
//! says what runs it, or why nothing does. A command that is not there any more is a fault of that list.
//!
//! What stands in running text (`tablesweep …` between backticks) is held against `--help`.

mod pages;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use tablesweep_testbed::program::program;
use tablesweep_testbed::said;

use pages::root;
use stage::Stage;

/// What becomes of a command that is neither of `tablesweep` nor of the AWS CLI.
enum How {
    /// By this test, as told.
    Run(fn(&Stage, &str)),
    /// Not by this one, and why.
    Not(&'static str),
}

/// By how a command begins.
const OTHERS: &[(&str, How)] = &[
    ("make demo", How::Run(demo)),
    ("make layer", How::Run(layer)),
    ("cargo run -p tablesweep-bench -- --help", How::Run(|_, _| helps("bench"))),
    ("cargo run --package tablesweep-testbed --bin table-api-simulator", How::Run(simulator)),
    ("curl --json", How::Run(Stage::curl)),
    ("export SNOW_USER=", How::Run(Stage::export)),
    ("export PATH=", How::Not("the test finds the program where cargo put it, which is what this line does for a person")),
    ("git clone", How::Not("it would fetch what is here already")),
    ("make test", How::Not("it is what runs this test")),
    ("make bootstraps", How::Not("a release build takes minutes; a step of .ci/run of its own")),
    ("make bench", How::Not("it takes minutes on a machine of its own; tests/bench/tests runs it in little")),
    ("make model", How::Not("the long run; tests/model runs the short one")),
    ("make mutations", How::Not("a quarter of an hour; `make test` runs one of them")),
    (
        "sam deploy",
        How::Not("it needs an account; tests/template reads the template as SAM translates it, and `make template-lint` lints it"),
    ),
    ("sam delete", How::Not("it needs an account")),
    ("sed -i.bak -E 's/(ScheduleState=", How::Not("tests/template runs it on what `sam deploy --guided` writes")),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_documentation_is_run_or_told_why_not() {
    let mut begun: BTreeSet<&str> = BTreeSet::new();
    let mut aws = Vec::new();
    let mut ran = 0;
    for page in pages::all() {
        if page.commands.is_empty() {
            continue;
        }
        let stage = Stage::of(&page).await;
        for command in &page.commands {
            match command.split_whitespace().next().unwrap_or_default() {
                "tablesweep" => {
                    stage.run(command).await;
                    ran += 1;
                }
                "aws" => aws.push(command.clone()),
                _ => {
                    let Some((begins, how)) = OTHERS.iter().find(|(begins, _)| command.starts_with(begins)) else {
                        panic!("{}: nothing says what becomes of {command:?}", page.name);
                    };
                    begun.insert(begins);
                    match how {
                        How::Run(run) => tokio::task::block_in_place(|| run(&stage, command)),
                        How::Not(why) => assert!(why.len() > 10),
                    }
                }
            }
        }
    }
    let stale: Vec<&str> =
        OTHERS.iter().map(|(begins, _)| *begins).filter(|begins| !begun.contains(begins) && *begins != "sam delete").collect();
    assert!(stale.is_empty(), "no page has these commands any more: {stale:?}");
    assert!(ran > 20 && aws.len() > 6, "{ran} and {} commands were found; are the pages still read?", aws.len());
    assert_eq!(faults_of_aws(&aws), "", "the AWS CLI would refuse these");
}

#[test]
fn what_running_text_says_of_the_program_is_what_its_help_says() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut faults = Vec::new();
    for page in pages::all() {
        for quoted in &page.quoted {
            let words: Vec<&str> = quoted.split_whitespace().skip(1).collect();
            let path: Vec<String> = words.iter().take_while(|word| is_subcommand(word)).map(|word| (*word).to_owned()).collect();
            let help = helps.entry(path.clone()).or_insert_with(|| help(&path));
            if help.is_empty() {
                faults.push(format!("{}: there is no `tablesweep {}`, as in `{quoted}`", page.name, path.join(" ")));
            }
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split(['=', '…', ',']).next().unwrap_or_default();
                if !help.contains(option) {
                    faults.push(format!("{}: `tablesweep {}` has no {option}", page.name, path.join(" ")));
                }
            }
        }
    }
    assert!(helps.len() > 8, "{:?}", helps.keys());
    assert!(faults.is_empty(), "{faults:#?}");
}

fn is_subcommand(word: &str) -> bool {
    let known = ["demo", "check", "plan", "sweep", "status", "cursor", "reference", "migrate", "completions"];
    let below = ["show", "rewind", "reset", "accept-schema", "pause", "resume", "export", "import"];
    known.contains(&word) || below.contains(&word)
}

/// The help of a subcommand; empty where there is none.
fn help(path: &[String]) -> String {
    let asked = Command::new(program("tablesweep")).args(path).arg("--help").output().expect("the program runs");
    if asked.status.success() { String::from_utf8(asked.stdout).expect("text") } else { String::new() }
}

/// What is wrong with commands of the AWS CLI, a line each.
fn faults_of_aws(commands: &[String]) -> String {
    let python = tablesweep_testbed::parts::directory().join("venv/bin/python");
    let script = root().join("tests/promises/commands/aws.py");
    let mut child =
        Command::new(python).arg(script).arg(root()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Python starts");
    child.stdin.take().expect("a pipe").write_all(commands.join("\n").as_bytes()).expect("written");
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{:?}", ended.status);
    String::from_utf8(ended.stdout).expect("text")
}

/// What the rule of the Makefile runs. The same program is run to its end by `cli::exits`.
fn demo(_: &Stage, _: &str) {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    assert!(makefile.contains("\t@cargo run --package tablesweep-cli -- demo\n"), "`make demo` runs something else now");
    helps("tablesweep");
}

/// Stages `config/`, which is then what the functions get.
fn layer(_: &Stage, _: &str) {
    let made = Command::new("make").args(["--silent", "layer"]).current_dir(root()).output().expect("make runs");
    assert!(made.status.success(), "{made:?}");
    let staged = root().join("target/layer/config/connectors/servicenow.json");
    let given = std::fs::read(root().join("config/connectors/servicenow.json")).expect("the example");
    assert_eq!(std::fs::read(staged).expect("staged"), given);
}

fn helps(name: &str) {
    let asked = Command::new(program(name)).arg("--help").output().expect("the program runs");
    said::keep("cli", &String::from_utf8_lossy(&asked.stdout));
    assert!(asked.status.success(), "{name}: {asked:?}");
}

/// The simulator as a program: it says where it listens, and ends with its standard input.
fn simulator(_: &Stage, command: &str) {
    assert!(command.ends_with("-- 127.0.0.1:8931"), "{command}");
    let started = Command::new(program("table-api-simulator")).stdin(Stdio::null()).output().expect("the program runs");
    assert!(String::from_utf8_lossy(&started.stdout).starts_with("http://127.0.0.1:"), "{started:?}");
}
