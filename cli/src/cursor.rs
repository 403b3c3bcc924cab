//! `tablesweep cursor`: looking at cursors and setting them.

mod change;
mod left_out;
mod look;
mod transfer;

use tablesweep::assembly;
use tablesweep::operate::{Order, Rewinding, read_position};

use crate::args::{ChangeArgs, CursorCommand};
use crate::documents;
use crate::exit::{Exit, Stop};

/// Runs a command.
pub async fn run(command: CursorCommand) -> Result<Exit, Stop> {
    match command {
        CursorCommand::Show(arguments) => look::show(arguments).await,
        CursorCommand::Export(arguments) => transfer::export(arguments).await,
        CursorCommand::Import(arguments) => transfer::import(arguments).await,
        CursorCommand::Rewind(arguments) => {
            let (to, forward) = (arguments.to, arguments.forward);
            change::run(arguments.change, |place| {
                let to = read_position(&place.source, &to).map_err(|fault| Stop::wrong(format!("--to: {fault}")))?;
                Ok(Order::Rewind(Rewinding { to, forward, request_id: None }))
            })
            .await
        }
        CursorCommand::Reset(arguments) => {
            left_out::tell(&arguments).await?;
            change::run(arguments, |_| Ok(Order::Reset)).await
        }
        CursorCommand::Pause(arguments) => {
            let reason = arguments.reason;
            change::run(arguments.change, |_| Ok(Order::Pause { reason: reason.clone() })).await
        }
        CursorCommand::Resume(arguments) => change::run(arguments, |_| Ok(Order::Resume)).await,
        CursorCommand::AcceptSchema(arguments) => accept_schema(arguments).await,
    }
}

/// Only a source that compares schemas keeps a baseline; a table of any other makes the command a wrong one.
async fn accept_schema(arguments: ChangeArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let without: Vec<String> = change::named(&documents, &arguments)?
        .iter()
        .filter(|place| !assembly::source(&place.source).is_some_and(|kind| kind.cursors.has_baseline))
        .map(|place| format!("{}/{} ({})", place.connector, place.alias, place.source))
        .collect();
    if !without.is_empty() {
        return Err(Stop::wrong(format!(
            "Cursor.NoBaseline: {} keeps no schema baseline, so there is none to accept: its source takes columns as they come",
            without.join(", ")
        )));
    }
    change::run(arguments, |_| Ok(Order::AcceptSchema)).await
}
