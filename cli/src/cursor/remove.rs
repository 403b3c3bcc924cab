//! `tablesweep cursor remove`: a cursor that no table goes on from.

use tablesweep::host::Host;
use tablesweep::operate::Operator;

use super::{change, who};
use crate::args::RemoveArgs;
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output::note;

/// Runs the command.
pub async fn run(arguments: RemoveArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    change::refuse_unheard(&spec, arguments.yes)?;
    let store = spec.existing().await?.ok_or_else(|| change::no_store(&spec))?;
    let (host, places) = (Host::system(), documents::places(&documents));
    let operator = Operator { store: &*store, host: &host, places: &places, who: who::commands() };
    let removal = operator.prepare_removal(&arguments.connector, &arguments.place).await?;
    note(&removal.announcement);
    change::confirm(arguments.yes)?;
    let outcome = operator.remove(removal).await?;
    change::tell(&[outcome], arguments.read.output.output)?;
    Ok(Exit::Good)
}
