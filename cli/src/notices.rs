//! What changed between the documents and the cursors that are stored, for `check` and `plan`.

use tablesweep::host::Host;
use tablesweep::operate::{Activity, Place, StatusReport, status};

use crate::args::CursorsArg;
use crate::exit::Stop;
use crate::output::note;
use crate::stores::StoreSpec;

/// How the tables stand, if a store was named or the usual one exists. Looking makes no database file.
pub async fn look(cursors: &CursorsArg, places: &[Place]) -> Result<Option<StatusReport>, Stop> {
    let spec = cursors.cursors.clone().unwrap_or_default();
    if spec == StoreSpec::Memory {
        return Ok(None);
    }
    match spec.look().await? {
        None => Ok(None),
        Some(store) => Ok(Some(status(Some(&*store), &spec.name(), places, Host::system().now_ms()).await?)),
    }
}

/// Says on standard error what a sweep would meet: a moved cursor, one that cannot be read, or a query that begins anew.
pub fn tell(report: &StatusReport) {
    for table in &report.tables {
        let name = format!("{}/{}", table.connector, table.table);
        if matches!(table.state, Activity::Moved | Activity::Unreadable)
            && let Some(reason) = &table.reason
        {
            note(&format!("note: {name}: {}: {}", reason.code, reason.message));
        }
        if table.changed_query && table.state == Activity::NeverSwept {
            note(&format!(
                "note: {name}: its query changed since it was last swept, and a changed query has a cursor of its own: the next sweep \
                 starts at start.timestamp. `tablesweep status` lists the old cursor"
            ));
        }
    }
}
