//! What may be typed, with help that teaches: every subcommand shows one example.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tablesweep::sweep::Mode;

use crate::sinks::SinkSpec;
use crate::stores::StoreSpec;

/// Sweep ServiceNow and SQL Server tables into Kafka, without a Kafka Connect cluster.
#[derive(Debug, Parser)]
#[command(name = "tablesweep", version, max_term_width = 100, after_help = HELP)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const HELP: &str = "\
Begin with `tablesweep demo`, then `tablesweep check` on your documents and
`tablesweep sweep --cursors memory --sink -` for a look at rows that moves nothing.

Exit codes:
  0    done; of a sweep: every table is caught up, has more, or was skipped
  1    a store or broker is out of reach; of a sweep: a table failed, is parked or paused; of check --probe: a finding is bad
  2    documents or arguments are wrong
  130  interrupted; what was acknowledged is committed

Environment: TABLESWEEP_CONFIG, TABLESWEEP_CURSORS, TABLESWEEP_SINK, TABLESWEEP_LOG, and the AWS SDK's own.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sweep a simulated instance and show what happens. Needs nothing and leaves nothing behind.
    #[cfg(feature = "demo")]
    #[command(after_help = "Example:\n  tablesweep demo")]
    Demo,
    /// Say everything that is wrong with the documents. Contacts no source and no broker, unless with --probe.
    #[command(
        after_help = "Examples:\n  tablesweep check --config ./config --output json | jq .faults\n  tablesweep check --probe --cursors dynamodb:tablesweep-cursors"
    )]
    Check(CheckArgs),
    /// Show which task would sweep which tables.
    #[command(after_help = "Example:\n  tablesweep plan --output json")]
    Plan(ReadArgs),
    /// Sweep tables until they are caught up.
    #[command(after_help = "Example:\n  tablesweep sweep --table incident --sink ndjson:rows.ndjson --max-rows 1000")]
    Sweep(SweepArgs),
    /// Show how every table stands: is it up to date?
    #[command(after_help = "Example:\n  tablesweep status --cursors dynamodb:tablesweep-cursors")]
    Status(ReadArgs),
    /// Look at cursors and set them.
    #[command(subcommand)]
    Cursor(CursorCommand),
    /// Print the configuration reference as Markdown.
    #[command(after_help = "Example:\n  tablesweep reference > docs/configuration.md")]
    Reference,
    /// Turn a document of Confluent's ServiceNow source (platform, cloud, cloud V2) into one of ours.
    ///
    /// The document goes to standard output; what needs a hand goes to standard error, and then the exit code is 1.
    #[command(after_help = "Example:\n  tablesweep migrate confluent.json > config/connectors/servicenow.json")]
    Migrate(MigrateArgs),
    /// Print what completes commands in a shell.
    #[command(after_help = "Example:\n  tablesweep completions bash > /etc/bash_completion.d/tablesweep")]
    Completions(CompletionsArgs),
}

/// `migrate`.
#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// The document, as JSON in either of Connect's forms or as properties; - is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `completions`.
#[derive(Debug, Clone, Copy, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Where the documents are.
#[derive(Debug, Clone, Args)]
pub struct ConfigArg {
    /// The folder with worker.json and connectors/.
    #[arg(long, value_name = "DIR", env = "TABLESWEEP_CONFIG", default_value = "./config")]
    pub config: PathBuf,
}

/// Where the cursors are.
#[derive(Debug, Clone, Args)]
pub struct CursorsArg {
    /// The cursor store: sqlite:PATH, dynamodb:TABLE or memory [default: sqlite:tablesweep.db].
    #[arg(long, value_name = "STORE", env = "TABLESWEEP_CURSORS")]
    pub cursors: Option<StoreSpec>,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// How results are written.
#[derive(Debug, Clone, Args)]
pub struct OutputArg {
    /// How results are written.
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// `plan`, `status`.
#[derive(Debug, Clone, Args)]
pub struct ReadArgs {
    #[command(flatten)]
    pub config: ConfigArg,
    #[command(flatten)]
    pub cursors: CursorsArg,
    #[command(flatten)]
    pub output: OutputArg,
}

/// `check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// Also ask everything that a sweep leans on: secrets, sources, topics and the cursor store.
    ///
    /// Signs in, reads single rows, and changes nothing. Every finding is a line; a bad one makes the exit code 1.
    #[arg(long)]
    pub probe: bool,
}

/// Which tables are meant.
#[derive(Debug, Clone, Args)]
pub struct SelectionArgs {
    /// Only this connector; may be repeated.
    #[arg(long = "connector", value_name = "NAME")]
    pub connectors: Vec<String>,
    /// Only this table, as alias or connector/alias; may be repeated.
    #[arg(long = "table", value_name = "ALIAS")]
    pub tables: Vec<String>,
}

/// `sweep`.
#[derive(Debug, Clone, Args)]
pub struct SweepArgs {
    #[command(flatten)]
    pub config: ConfigArg,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// stream sweeps once, until caught up; catch-up also waits for leases and repeats until every table is final.
    #[arg(long, value_parser = mode, default_value = "stream")]
    pub mode: Mode,
    #[command(flatten)]
    pub cursors: CursorsArg,
    /// Where records go: kafka, ndjson:PATH, or - for standard output.
    #[arg(long, value_name = "SINK", env = "TABLESWEEP_SINK", default_value = "kafka")]
    pub sink: SinkSpec,
    /// Deliver at most this many rows of each table.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_rows: Option<u64>,
    /// End within this many seconds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub max_seconds: Option<u64>,
    #[command(flatten)]
    pub output: OutputArg,
}

fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "stream" => Ok(Mode::Stream),
        "catch-up" => Ok(Mode::CatchUp),
        _ => Err("there are the modes stream and catch-up".to_owned()),
    }
}

/// What is done with cursors.
#[derive(Debug, Subcommand)]
pub enum CursorCommand {
    /// Print cursors as they are stored.
    #[command(after_help = "Example:\n  tablesweep cursor show --table incident --output json")]
    Show(LookArgs),
    /// Set the cursor of a table to a position; rows from there on are delivered again.
    #[command(after_help = "Example:\n  tablesweep cursor rewind --table incident --to \"2026-01-01 00:00:00\"")]
    Rewind(RewindArgs),
    /// Forget the cursor of a table; the next sweep starts where the document says.
    #[command(after_help = "Example:\n  tablesweep cursor reset --table incident --yes")]
    Reset(ChangeArgs),
    /// Take a changed schema as the new baseline and keep the cursor.
    #[command(after_help = "Example:\n  tablesweep cursor accept-schema --table orders")]
    AcceptSchema(ChangeArgs),
    /// Sweep a table no more until it is resumed.
    #[command(after_help = "Example:\n  tablesweep cursor pause --table incident --reason \"upgrade of the instance\"")]
    Pause(PauseArgs),
    /// Sweep a paused or parked table again.
    #[command(after_help = "Example:\n  tablesweep cursor resume --table incident")]
    Resume(ChangeArgs),
    /// Remove a cursor that no table goes on from, such as `status` lists.
    #[command(
        after_help = "Example:\n  tablesweep cursor remove --connector servicenow --place servicenow/acme.service-now.com/incident/d3b2071c6bbd57ae/sys_updated_on"
    )]
    Remove(RemoveArgs),
    /// Print cursors as lines of JSON that `import` takes.
    #[command(after_help = "Example:\n  tablesweep cursor export > cursors.ndjson")]
    Export(LookArgs),
    /// Put exported cursors in.
    #[command(after_help = "Example:\n  tablesweep cursor import cursors.ndjson --cursors dynamodb:tablesweep-cursors --yes")]
    Import(ImportArgs),
}

/// `cursor show`, `cursor export`.
#[derive(Debug, Clone, Args)]
pub struct LookArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    #[command(flatten)]
    pub selection: SelectionArgs,
}

/// Commands that change cursors.
#[derive(Debug, Clone, Args)]
pub struct ChangeArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// The table's connector, where two have the alias.
    #[arg(long = "connector", value_name = "NAME")]
    pub connectors: Vec<String>,
    /// The table, as alias or connector/alias; may be repeated.
    #[arg(long = "table", value_name = "ALIAS", required = true)]
    pub tables: Vec<String>,
    /// Do it without asking; needed where there is no terminal to ask on.
    #[arg(long)]
    pub yes: bool,
}

/// `cursor rewind`.
#[derive(Debug, Clone, Args)]
pub struct RewindArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
    /// The position: "YYYY-MM-DD hh:mm:ss" (UTC); for SQL Server the digits of a sequence, or `earliest`.
    #[arg(long, value_name = "POSITION", allow_hyphen_values = true)]
    pub to: String,
    /// Allow a position after the cursor; the rows between are never delivered.
    #[arg(long)]
    pub forward: bool,
}

/// `cursor remove`.
#[derive(Debug, Clone, Args)]
pub struct RemoveArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// The connector under which it lies, whether a document has it or not.
    #[arg(long, value_name = "NAME")]
    pub connector: String,
    /// Where it lies, as `status` writes it.
    #[arg(long, value_name = "PLACE")]
    pub place: String,
    /// Do it without asking; needed where there is no terminal to ask on.
    #[arg(long)]
    pub yes: bool,
}

/// `cursor pause`.
#[derive(Debug, Clone, Args)]
pub struct PauseArgs {
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Why; `status` shows it.
    #[arg(long, value_name = "TEXT", default_value = "paused by an operator")]
    pub reason: String,
}

/// `cursor import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub read: ReadArgs,
    /// The file of lines; - is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Allow positions after the cursors that are there; the rows between are never delivered.
    #[arg(long)]
    pub forward: bool,
    /// Do it without asking; needed where there is no terminal to ask on.
    #[arg(long)]
    pub yes: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_defined_without_contradiction() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_subcommand_shows_an_example() {
        fn walk(command: &clap::Command) {
            for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
                if sub.has_subcommands() {
                    walk(sub);
                } else {
                    let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                    let shows = ["Example:\n  tablesweep ", "Examples:\n  tablesweep "].iter().any(|begin| help.starts_with(begin));
                    assert!(shows, "{}", sub.get_name());
                }
            }
        }
        walk(&Arguments::command());
    }
}
