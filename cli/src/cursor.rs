//! `tablesweep cursor`: looking at cursors and setting them.

mod change;
mod left_out;
mod look;
mod remove;
mod transfer;
mod who;

use tablesweep::assembly;
use tablesweep::operate::{CommandError, Order, Rewinding, read_position};

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
        CursorCommand::Remove(arguments) => remove::run(arguments).await,
    }
}

/// Only a source that compares schemas keeps a baseline; a table of any other makes the command a wrong one, whatever the store
/// holds.
async fn accept_schema(arguments: ChangeArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let places = change::named(&documents, &arguments)?;
    let keeps = |source: &str| assembly::source(source).is_some_and(|kind| kind.cursors.has_baseline);
    if let Some(place) = places.iter().find(|place| !keeps(&place.source)) {
        return Err(CommandError::no_baseline(place).into());
    }
    change::run(arguments, |_| Ok(Order::AcceptSchema)).await
}
