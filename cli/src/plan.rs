//! `tablesweep plan`: which task would sweep which tables. The answer is the one that the fan-out function gives.

use tablesweep::config::Documents;
use tablesweep::plan::{self, Plan};
use tablesweep::sweep::Mode;

use crate::args::{Output, ReadArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::notices;
use crate::output;
use crate::text::Table;

/// The most characters of aliases beside a task; more go below it.
const WIDEST: usize = 60;

/// Runs the command.
pub async fn run(arguments: ReadArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.config.config)?;
    if let Some(report) = notices::look(&arguments.cursors, &documents::places(&documents)).await? {
        notices::tell(&report);
    }
    let plan = planned(&documents);
    match arguments.output.output {
        Output::Json => output::json(&plan)?,
        Output::Text => output::text(&shown(&plan))?,
    }
    Ok(Exit::Good)
}

fn planned(documents: &Documents) -> Plan {
    let tasks = documents
        .connectors
        .iter()
        .flat_map(|connector| plan::tasks(&connector.name, connector.tables(), connector.tasks_max, |_| true))
        .collect();
    Plan { tick: None, mode: Mode::Stream, tasks, invoked: 0 }
}

fn shown(plan: &Plan) -> String {
    let mut table = Table::new(&["connector", "task", "tables"], 3);
    for task in &plan.tasks {
        let number = format!("{}/{}", task.task, task.tasks);
        let aliases = task.tables.join(", ");
        if aliases.len() <= WIDEST {
            table.row(vec![task.connector.clone(), number, aliases], Vec::new());
        } else {
            table.row(vec![task.connector.clone(), number, format!("{} tables", task.tables.len())], vec![aliases]);
        }
    }
    table.render()
}
