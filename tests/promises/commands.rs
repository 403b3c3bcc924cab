//! Every command of the documentation, run.
//!
//! A command is a line of a block of README.md or docs/*.md that begins with a program. They are run by a shell, page by page and in
//! their order, in a folder that holds what the page presumes ([`stage`]): the page's own documents, with the addresses of a simulated
//! instance, a real broker and a DynamoDB in place of its examples. Pages that deploy have an account of their own ([`account`]):
//! the real SAM CLI puts the template there, the real AWS CLI talks to it, and the real programs run as the stack says.
//!
//! [`HOW`] says of every command that is not of `tablesweep` how it is run and what it has to show ([`shown`]), or why nothing runs it. A
//! command that is not there any more is a fault of that list.
//!
//! What stands in running text is held against `--help` (`tablesweep …` between backticks), or has to be one of these commands.

mod account;
mod pages;
mod reader;
mod shown;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use tablesweep_testbed::program::program;
use tablesweep_testbed::said;

use pages::root;
use stage::Stage;

/// What becomes of a command that is not of `tablesweep`.
enum How {
    /// It is run, and then looked at.
    Run(fn(&Stage, &str)),
    /// It would take too long: its shape is looked at.
    Little(fn(&Stage, &str), &'static str),
    /// It is not run, and why.
    Not(&'static str),
}

/// By how a command begins; the first that fits.
const HOW: &[(&str, How)] = &[
    ("git clone", How::Run(shown::clone)),
    ("make demo", How::Little(demo, "cli::exits runs the same program to its end")),
    ("make layer", How::Run(shown::layer)),
    ("make test", How::Little(target, "it is what runs this test")),
    ("make bootstraps", How::Little(target, "a release build takes minutes; a step of .ci/run of its own, and of a release")),
    ("make bench", How::Little(bench, "it takes minutes on a machine of its own; tests/bench/tests runs it in little")),
    ("make model", How::Little(target, "the long run; tests/model runs the short one")),
    ("make mutations", How::Little(target, "a quarter of an hour; `make test` runs one of them")),
    ("make histories", How::Little(target, "minutes; tests/histories runs some of them")),
    ("make reference", How::Little(target, "documentation::the_reference_is_fresh compares what it would write")),
    ("cargo run -p tablesweep-bench -- --help", How::Run(|_, _| helps("bench", &["--help"]))),
    ("cargo run --package tablesweep-testbed --bin table-api-simulator", How::Run(simulator)),
    ("cargo build --release -p tablesweep-cli", How::Not("minutes; the same package without --release is what runs here")),
    ("cargo test -p tablesweep-model", How::Not("a part of `make test`")),
    ("curl -d", How::Run(shown::curl)),
    ("python3 -c", How::Run(shown::certificate)),
    ("rm -rf target/layer && ", How::Run(shown::layer)),
    ("openssl s_client", How::Run(shown::presented)),
    ("export SNOW_USER=", How::Run(Stage::export)),
    ("export PATH=", How::Run(shown::path)),
    ("export KEY=", How::Run(shown::key)),
    ("export SECRET=", How::Run(shown::secret_of_the_cluster)),
    ("aws secretsmanager create-secret --name tablesweep/servicenow", How::Run(shown::secret_of_the_source)),
    ("aws secretsmanager create-secret --name tablesweep/kafka", How::Run(shown::secret_of_a_certificate)),
    ("aws kafka batch-associate-scram-secret", How::Run(shown::association)),
    ("aws ssm put-parameter", How::Run(shown::parameter)),
    ("aws lambda invoke --function-name tablesweep-fan-out", How::Run(shown::first_tick)),
    ("aws lambda invoke --function-name tablesweep-catch-up", How::Run(shown::lap)),
    ("aws logs tail", How::Run(shown::logs)),
    ("aws stepfunctions start-execution", How::Run(shown::catch_up)),
    ("aws sqs receive-message", How::Run(shown::queue)),
    ("aws sqs purge-queue", How::Run(shown::purge)),
    ("aws dynamodb update-table", How::Run(shown::unprotect)),
    ("aws dynamodb delete-table", How::Run(shown::drop_table)),
    ("aws dynamodb restore-table-to-point-in-time", How::Run(shown::restore)),
    ("aws dynamodb delete-item", How::Run(shown::forget)),
    ("aws dynamodb wait", How::Run(shown::wait)),
    ("aws sts get-caller-identity", How::Run(shown::caller)),
    ("aws sso login", How::Not("it opens a browser for a person")),
    ("sam deploy", How::Run(shown::deploy)),
    ("sam delete", How::Run(shown::delete)),
    ("sed -i.bak -E 's/(ScheduleState=", How::Run(shown::schedule)),
    ("sam build", How::Not("the page says that there is none")),
];

fn how(command: &str) -> Option<(&'static str, &'static How)> {
    HOW.iter().find(|(begins, _)| command.starts_with(begins)).map(|(begins, how)| (*begins, how))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_documentation_is_run_or_told_why_not() {
    let mut begun: BTreeSet<&str> = BTreeSet::new();
    let mut ran = BTreeMap::from([("tablesweep", 0), ("aws", 0), ("sam", 0)]);
    for page in pages::all() {
        if page.commands.is_empty() {
            continue;
        }
        let stage = Stage::of(&page).await;
        for command in &page.commands {
            let begins = command.split_whitespace().next().unwrap_or_default();
            if let Some(count) = ran.get_mut(begins) {
                *count += 1;
            }
            tokio::task::block_in_place(|| match (begins, how(command)) {
                ("tablesweep", _) => stage.run(command),
                (_, Some((known, how))) => {
                    begun.insert(known);
                    carry_out(how, &stage, command);
                }
                _ => panic!("{}: nothing says what becomes of {command:?}", page.name),
            });
        }
    }
    let said: BTreeSet<&str> =
        pages::all().iter().flat_map(|page| &page.quoted).filter_map(|quoted| how(quoted)).map(|(known, _)| known).collect();
    let stale: Vec<&str> = HOW.iter().map(|(known, _)| *known).filter(|known| !begun.contains(known) && !said.contains(known)).collect();
    assert!(stale.is_empty(), "no page has these commands any more: {stale:?}");
    assert!(ran["tablesweep"] > 20 && ran["aws"] > 12 && ran["sam"] > 4, "{ran:?} commands were found; are the pages still read?");
}

fn carry_out(how: &How, stage: &Stage, command: &str) {
    match how {
        How::Run(run) => run(stage, command),
        How::Little(run, why) => {
            println!("{command}: in little, since {why}");
            run(stage, command);
        }
        How::Not(why) => println!("{command}: not run, since {why}"),
    }
}

#[test]
fn what_running_text_says_of_the_program_is_what_its_help_says() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut faults = Vec::new();
    for page in pages::all() {
        for quoted in page.quoted.iter().filter(|quoted| quoted.starts_with("tablesweep ")) {
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

/// What running text says of other programs stands in a block too, where it is run, or is on the list by itself; `make` has it.
#[test]
fn what_running_text_says_of_other_programs_is_a_command_of_a_page_or_on_the_list() {
    let pages = pages::all();
    let commands: Vec<&String> = pages.iter().flat_map(|page| &page.commands).collect();
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let mut faults = Vec::new();
    for page in &pages {
        for quoted in page.quoted.iter().filter(|quoted| !quoted.starts_with("tablesweep ")) {
            let is_made = quoted.strip_prefix("make ").is_some_and(|targets| {
                targets.split_whitespace().all(|target| target.contains('=') || makefile.contains(&format!("\n{target}: ")))
            });
            if !is_made && how(quoted).is_none() && !commands.iter().any(|command| command.starts_with(&**quoted)) {
                faults.push(format!("{}: `{quoted}`", page.name));
            }
        }
    }
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

/// What the rule of the Makefile runs. The same program is run to its end by `cli::exits`.
fn demo(_: &Stage, _: &str) {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    assert!(makefile.contains("\t@cargo run --package tablesweep-cli -- demo\n"), "`make demo` runs something else now");
    helps("tablesweep", &["demo", "--help"]);
}

/// What `make` would do, in the checkout.
fn target(_: &Stage, command: &str) {
    let (program, rest) = command.split_once(' ').expect("a target");
    let would = Command::new(program).arg("--dry-run").args(rest.split_whitespace()).current_dir(root()).output().expect("make runs");
    assert!(would.status.success() && !would.stdout.is_empty(), "{command}: {would:?}");
}

/// The options that `make bench` hands on are ones that the program has.
fn bench(stage: &Stage, command: &str) {
    target(stage, command.split(" OPTIONS").next().unwrap_or(command));
    let options = command.split('"').nth(1).unwrap_or_default();
    helps("bench", &[&options.split_whitespace().collect::<Vec<_>>()[..], &["--help"]].concat());
}

fn helps(name: &str, arguments: &[&str]) {
    let asked = Command::new(program(name)).args(arguments).output().expect("the program runs");
    said::keep("cli", &String::from_utf8_lossy(&asked.stdout));
    assert!(asked.status.success(), "{name} {arguments:?}: {asked:?}");
}

/// The simulator as a program: it says where it listens, and ends with its standard input.
fn simulator(_: &Stage, command: &str) {
    assert!(command.ends_with("-- 127.0.0.1:8931"), "{command}");
    let started = Command::new(program("table-api-simulator")).stdin(Stdio::null()).output().expect("the program runs");
    assert!(String::from_utf8_lossy(&started.stdout).starts_with("http://127.0.0.1:"), "{started:?}");
}
