//! Before a reset: how many rows it leaves out for good.
//!
//! Where a document says to begin after the rows that are there, dropping a cursor skips those that were not delivered yet. Their
//! number is the source's to say, so this one command about cursors asks it; it goes on if the source is silent.

use std::sync::Arc;

use tablesweep::assembly::{self, Assembly};
use tablesweep::config::Documents;
use tablesweep::cursor::Position;
use tablesweep::host::Host;
use tablesweep::operate::{Found, Place};
use tablesweep::secrets;
use tablesweep::source::LeftOut;
use tablesweep::sweep::{Allowance, ByteBudget};

use super::change;
use crate::args::ChangeArgs;
use crate::documents;
use crate::exit::Stop;
use crate::output::note;

/// Says it for each table that was named and has a cursor.
pub async fn tell(arguments: &ChangeArgs) -> Result<(), Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let (all, places) = (documents::places(&documents), change::named(&documents, arguments)?);
    let asked: Vec<Place> =
        places.into_iter().filter(|place| assembly::source(&place.source).is_some_and(|kind| kind.cursors.has_baseline)).collect();
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    let Some(store) = (if asked.is_empty() { None } else { spec.look().await? }) else { return Ok(()) };
    let host = Host::system();
    let assembly = assembled(documents, &host);
    for place in asked {
        let listing = store.survey(&place.connector).await?;
        let current = Found::of(&place, &all, &listing).current();
        if let Some(cursor) = current.and_then(|item| item.progress.cursor.clone()) {
            tell_one(&assembly, &place, &cursor, &host).await;
        }
    }
    Ok(())
}

fn assembled(documents: Documents, host: &Host) -> Assembly {
    let resolver = Arc::new(secrets::resolver(&documents, host));
    Assembly::new(documents, resolver, host.clone())
}

async fn tell_one(assembly: &Assembly, place: &Place, cursor: &Position, host: &Host) {
    // One question for a number: the room for pages does not matter.
    let allowance = Allowance::new(host.clone(), None, ByteBudget::new(0));
    let counted = match assembly.table(&place.connector, &place.alias).await {
        Ok(table) => table.left_out_by_reset(cursor, &allowance).await,
        Err(failure) => Err(failure),
    };
    let name = format!("{}/{}", place.connector, place.alias);
    match counted {
        Ok(None) => {}
        Ok(Some(LeftOut { rows, began_anew: false })) => {
            note(&format!("{name}: {rows} rows lie after the cursor now and are not delivered if it begins anew"));
        }
        Ok(Some(LeftOut { rows, began_anew: true })) => note(&format!(
            "{name}: the table was truncated, its sequence began anew, or it lost its last rows: none of its {rows} rows lies after the cursor, and \
             none of them is delivered if it begins anew. To have them delivered, `tablesweep cursor rewind --to` a number below the first"
        )),
        Err(failure) => note(&format!("{name}: how many rows after the cursor are left out cannot be told: {failure}")),
    }
}
