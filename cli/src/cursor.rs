//! `tablesweep cursor`: looking at cursors and setting them.

mod change;
mod look;
mod transfer;

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
        CursorCommand::Reset(arguments) => change::run(arguments, |_| Ok(Order::Reset)).await,
        CursorCommand::Pause(arguments) => {
            let reason = arguments.reason;
            change::run(arguments.change, |_| Ok(Order::Pause { reason: reason.clone() })).await
        }
        CursorCommand::Resume(arguments) => change::run(arguments, |_| Ok(Order::Resume)).await,
        CursorCommand::AcceptSchema(arguments) => accept_schema(&arguments),
    }
}

/// A baseline exists only where a source compares one; of the sources that are built none does.
fn accept_schema(arguments: &ChangeArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let tables: Vec<String> = change::named(&documents, arguments)?
        .iter()
        .map(|place| format!("{}/{} ({})", place.connector, place.alias, place.source))
        .collect();
    Err(Stop::wrong(format!(
        "Cursor.NoBaseline: {} keeps no schema baseline, so there is none to accept: its source takes columns as they come",
        tables.join(", ")
    )))
}
