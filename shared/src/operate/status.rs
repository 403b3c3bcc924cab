//! How every table stands: what the documents want, beside what the store holds.

use serde::Serialize;

use super::place::{Finding, Place, found};
use super::rfc3339;
use crate::cursor::{Counters, CursorStore, Item, LeaseTerm, Phase, Position, Standing, StoreError};
use crate::sweep::Reason;

/// The answer to "is it up to date?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusReport {
    /// The store that was asked.
    pub store: String,
    /// When, in RFC 3339.
    pub at: String,
    /// The tables of the documents, in the order of connector and alias.
    pub tables: Vec<TableStatus>,
    /// Cursors that no sweep goes on from, those of connectors without a document included.
    pub orphans: Vec<Orphan>,
}

/// Whether a table is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// It has no cursor yet.
    NeverSwept,
    /// It is swept.
    Active,
    /// An operator or a changed schema holds it.
    Paused,
    /// It waits for its next try after a failure that a person has to mend.
    Parked,
    /// Its stored cursor belongs to another place, so it is not swept.
    Moved,
}

/// How one table stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// The connector's name.
    pub connector: String,
    /// The alias.
    pub table: String,
    /// Whether it is swept.
    pub state: Activity,
    /// Why not, unless it is.
    pub reason: Option<Reason>,
    /// The code of what a person should know though the table is swept; a heading of docs/operations.md.
    pub remark: Option<String>,
    /// Since when it is paused or parked, in RFC 3339.
    pub since: Option<String>,
    /// When the next scheduled tick tries a parked table, in RFC 3339.
    pub next_try: Option<String>,
    /// Whether another query has a cursor under this alias: this one began, or begins, anew.
    pub changed_query: bool,
    /// Backfill or stream.
    pub phase: Option<Phase>,
    /// The cursor.
    pub cursor: Option<Position>,
    /// Up to when everything was seen, in RFC 3339.
    pub swept_to: Option<String>,
    /// Seconds behind the source, by the local clock and the known difference to the source's.
    pub lag_seconds: Option<i64>,
    /// Rows delivered over the life of the cursor.
    pub rows: u64,
    /// Rows read again and not sent again.
    pub suppressed: u64,
    /// Rows that the source counts and does not show.
    pub hidden: u64,
    /// Rows that became visible behind the cursor and were not delivered.
    pub late: u64,
    /// Rows left out by policy.
    pub skipped: u64,
    /// Rows of the last sweep that delivered any.
    pub last_rows: u64,
    /// When that was, in RFC 3339.
    pub last_rows_at: Option<String>,
    /// When the last sweep started, in RFC 3339.
    pub started_at: Option<String>,
    /// The page size, where it had to be lowered.
    pub page_size: Option<u32>,
    /// Whether a sweep is under way.
    pub leased: bool,
    /// When its lease ends by itself, in RFC 3339; `None` where it lives as long as its process.
    pub leased_until: Option<String>,
}

/// A cursor that no sweep goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// The connector's name.
    pub connector: String,
    /// The alias under which it was made.
    pub table: String,
    /// Where it lies.
    pub place: String,
    /// Why it is one.
    pub why: Why,
    /// The cursor.
    pub cursor: Option<Position>,
    /// Rows delivered over its life.
    pub rows: u64,
}

/// Why a cursor is an orphan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// No document has its alias, or its connector.
    NoDocument,
    /// Its table is swept under another query now.
    ChangedQuery,
    /// Its alias means another place now.
    Moved,
}

/// Looks at the tables of `places` in `store`; `None` is a store that does not exist yet. `now_ms` is the local clock.
///
/// # Errors
/// The store does not answer, or holds what this program cannot read.
pub async fn status(store: Option<&dyn CursorStore>, name: &str, places: &[Place], now_ms: i64) -> Result<StatusReport, StoreError> {
    let mut report = StatusReport { store: name.to_owned(), at: rfc3339(now_ms), tables: Vec::new(), orphans: Vec::new() };
    let mut connectors: Vec<&str> = places.iter().map(|place| place.connector.as_str()).collect();
    connectors.dedup();
    for connector in connectors {
        let items = match store {
            Some(store) => store.list(connector).await?,
            None => Vec::new(),
        };
        let term = store.map_or(LeaseTerm::Clock, |store| store.lease_term());
        let own: Vec<&Place> = places.iter().filter(|place| place.connector == connector).collect();
        report.tables.extend(own.iter().map(|place| of_table(place, &items, term, now_ms)));
        report.orphans.extend(items.iter().filter_map(|item| orphan(item, &own)));
    }
    if let Some(store) = store {
        for connector in undocumented(store, places).await? {
            report.orphans.extend(store.list(&connector).await?.iter().filter_map(|item| orphan(item, &[])));
        }
    }
    Ok(report)
}

/// The connectors of `store` that no document has.
async fn undocumented(store: &dyn CursorStore, places: &[Place]) -> Result<Vec<String>, StoreError> {
    let connectors = match store.connectors().await {
        // Looking through the whole table is a right of its own, and the tables of the documents can be shown without it.
        Err(error @ StoreError::Denied { .. }) => {
            tracing::warn!(%error, "cursors of connectors without a document are not listed");
            Vec::new()
        }
        connectors => connectors?,
    };
    Ok(connectors.into_iter().filter(|connector| places.iter().all(|place| place.connector != *connector)).collect())
}

fn of_table(place: &Place, items: &[Item], term: LeaseTerm, now_ms: i64) -> TableStatus {
    let found = found(place, items);
    let changed_query = found.iter().any(|(_, finding)| *finding == Finding::ChangedQuery);
    match found.iter().find(|(_, finding)| *finding != Finding::ChangedQuery) {
        None => TableStatus { changed_query, ..blank(place) },
        Some((item, Finding::Moved(moved))) => {
            let message = format!(
                "the stored cursor has {} {:?} and the document says {:?}; put the document back, or `tablesweep cursor reset`",
                moved.what, moved.was, moved.is
            );
            let reason = Some(Reason { code: "Cursor.Moved".to_owned(), message });
            TableStatus { state: Activity::Moved, reason, changed_query, ..of_item(place, item, term, now_ms) }
        }
        Some((item, _)) => TableStatus { changed_query, ..of_item(place, item, term, now_ms) },
    }
}

fn blank(place: &Place) -> TableStatus {
    TableStatus {
        connector: place.connector.clone(),
        table: place.alias.clone(),
        state: Activity::NeverSwept,
        reason: None,
        remark: None,
        since: None,
        next_try: None,
        changed_query: false,
        phase: None,
        cursor: None,
        swept_to: None,
        lag_seconds: None,
        rows: 0,
        suppressed: 0,
        hidden: 0,
        late: 0,
        skipped: 0,
        last_rows: 0,
        last_rows_at: None,
        started_at: None,
        page_size: None,
        leased: false,
        leased_until: None,
    }
}

fn of_item(place: &Place, item: &Item, term: LeaseTerm, now_ms: i64) -> TableStatus {
    let (state, reason, since, next_try) = standing(&item.standing);
    let Counters { rows, suppressed, hidden, late, skipped, last_rows, last_rows_ms } = item.progress.counters;
    let lease = item.lease.as_ref().filter(|lease| term == LeaseTerm::Process || lease.until_ms > now_ms);
    TableStatus {
        state,
        reason,
        since,
        next_try,
        remark: item.progress.notes.get("remark").cloned(),
        phase: Some(item.progress.phase),
        cursor: item.progress.cursor.clone(),
        swept_to: item.progress.swept_to_ms.map(rfc3339),
        lag_seconds: item.lag_seconds(now_ms),
        rows,
        suppressed,
        hidden,
        late,
        skipped,
        last_rows,
        last_rows_at: (last_rows_ms != 0).then(|| rfc3339(last_rows_ms)),
        started_at: item.started_ms.map(rfc3339),
        page_size: item.progress.page_size,
        leased: lease.is_some(),
        leased_until: lease.filter(|lease| lease.until_ms != i64::MAX).map(|lease| rfc3339(lease.until_ms)),
        ..blank(place)
    }
}

type Stands = (Activity, Option<Reason>, Option<String>, Option<String>);

fn standing(standing: &Standing) -> Stands {
    match standing {
        Standing::Active => (Activity::Active, None, None, None),
        Standing::Paused(paused) => {
            let reason = Reason { code: "Cursor.Paused".to_owned(), message: paused.reason.clone() };
            (Activity::Paused, Some(reason), Some(rfc3339(paused.since_ms)), None)
        }
        Standing::Waiting(waiting) => {
            let reason = Reason { code: waiting.code.clone(), message: waiting.message.clone() };
            (Activity::Paused, Some(reason), Some(rfc3339(waiting.since_ms)), None)
        }
        Standing::Parked(parked) => {
            let reason = Reason { code: parked.code.clone(), message: parked.message.clone() };
            (Activity::Parked, Some(reason), Some(rfc3339(parked.since_ms)), Some(rfc3339(parked.next_try_ms)))
        }
    }
}

fn orphan(item: &Item, places: &[&Place]) -> Option<Orphan> {
    let why = match places.iter().find_map(|place| place.compare(&item.identity)) {
        None => Why::NoDocument,
        Some(Finding::ChangedQuery) => Why::ChangedQuery,
        Some(Finding::Moved(_)) => Why::Moved,
        Some(Finding::Current) => return None,
    };
    Some(Orphan {
        connector: item.identity.connector.clone(),
        table: item.identity.alias.clone(),
        place: item.identity.key().place,
        why,
        cursor: item.progress.cursor.clone(),
        rows: item.progress.counters.rows,
    })
}

#[cfg(test)]
mod tests;
