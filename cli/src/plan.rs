//! `tablesweep plan`: which task would sweep which tables. The answer is the one that the fan-out function gives.

use tablesweep::assembly::Selection;
use tablesweep::plan::Plan;
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
    let looked = notices::look(&arguments.cursors, &documents::places(&documents)).await;
    if let Ok(Some(report)) = &looked {
        notices::tell(report);
    }
    let plan = Plan::of(&documents, &Selection::default(), Mode::Stream, None);
    match arguments.output.output {
        Output::Json => output::json(&plan)?,
        Output::Text => output::text(&shown(&plan))?,
    }
    // The plan does not depend on what a store says; that it cannot be looked into is said after it.
    looked.map(|_| Exit::Good)
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
