//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures the sweep of tables into Kafka against bars that are ratios and counts of one run.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
pub struct Arguments {
    /// What to measure, and how much of it.
    #[command(flatten)]
    pub options: Options,
    /// A part of the benchmark in a process of its own; used by the benchmark itself.
    #[command(subcommand)]
    pub role: Option<Role>,
}

/// What to measure, and how much of it.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Rows of the backfill.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: u64,
    /// Bytes of a row's JSON, about.
    #[arg(long, default_value_t = 500)]
    pub row_bytes: usize,
    /// Rows of the table whose pages are to fit into little memory; they are of 2 KB.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub wide_rows: u64,
    /// Rows of the table that is swept in every shape.
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub shape_rows: u64,
    /// Rows per page.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub page: u32,
    /// How often sweep and floor are run in turn; medians count.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// The memory, in MiB, that the sweep is told it has.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..))]
    pub memory: u64,
    /// Measure only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Part>,
    /// Produce to librdkafka's mock cluster instead of Apache Kafka. It keeps little, so records are counted and not compared.
    #[arg(long)]
    pub mock: bool,
    /// Where the cursors of the backfill and of the wide table are kept.
    #[arg(long, value_enum, default_value_t = Store::Dynamodb)]
    pub cursors: Store,
    /// The sweep function's program, as `make bootstraps` stages it.
    #[arg(long, default_value = "target/lambda/sweep/bootstrap")]
    pub bootstrap: PathBuf,
    /// Report only: a bar that is missed is no failure.
    #[arg(long)]
    pub no_bars: bool,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
}

impl Options {
    /// Whether `part` is to be measured.
    pub fn measures(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// A group of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Rows per processor second against the floor, requests per page.
    Backfill,
    /// What a shape of records costs, against rows as they are.
    Shapes,
    /// What a sweep that finds nothing new costs.
    Idle,
    /// The peak of memory at wide rows.
    Memory,
    /// A cold start of the sweep function.
    Cold,
    /// A SQL Server table against a bare loop of the driver.
    SqlServer,
}

/// A cursor store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Store {
    /// DynamoDB, played by moto.
    Dynamodb,
    /// A file.
    Sqlite,
}

/// A part of the benchmark in a process of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
#[command(hide = true)]
pub enum Role {
    /// Sweeps, as a function would.
    Sweep,
    /// Downloads and produces, and nothing else.
    Floor,
    /// The simulated instance.
    Simulator,
    /// librdkafka's mock cluster.
    MockBroker,
    /// The SQL Server.
    TdsServer,
    /// Reads a SQL Server table, and nothing else.
    Driver,
}

impl Role {
    /// The subcommand's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Floor => "floor",
            Self::Simulator => "simulator",
            Self::MockBroker => "mock-broker",
            Self::TdsServer => "tds-server",
            Self::Driver => "driver",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_is_started_under_its_own_name() {
        for role in [Role::Sweep, Role::Floor, Role::Simulator, Role::MockBroker, Role::TdsServer, Role::Driver] {
            let arguments = Arguments::try_parse_from(["bench", role.name()]).expect("a role");
            assert_eq!(arguments.role, Some(role));
        }
    }

    #[test]
    fn without_only_everything_is_measured() {
        let all = Arguments::try_parse_from(["bench"]).expect("no arguments are needed").options;
        assert!(all.measures(Part::Idle) && all.measures(Part::Backfill));
        let some = Arguments::try_parse_from(["bench", "--only", "backfill,memory"]).expect("parts").options;
        assert!(some.measures(Part::Memory) && !some.measures(Part::Idle));
    }
}
