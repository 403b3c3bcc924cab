//! How every table stands: what the documents want, beside what the store holds.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::place::{Finding, Found, Place, whose, whose_unreadable};
use super::rfc3339;
use crate::cursor::{Counters, CursorStore, Failed, Item, LeaseTerm, Listing, Parked, Phase, Position, REMARK_NOTE, Standing, StoreError};
use crate::sweep::{Hindrance, Reason, hindrance, refused_logins};

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
    /// It is swept, and the last sweep failed.
    Failing,
    /// An operator or a changed schema holds it.
    Paused,
    /// It waits for its next try after a failure that a person has to mend.
    Parked,
    /// Its stored cursor belongs to another place, so it is not swept.
    Moved,
    /// Its stored cursor cannot be read, so it is not swept.
    Unreadable,
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
    /// Since when it is paused or parked, or fails, in RFC 3339.
    pub since: Option<String>,
    /// When the next scheduled tick tries a parked table, in RFC 3339.
    pub next_try: Option<String>,
    /// Sweeps in a row that failed.
    pub failures: u32,
    /// When the last of them ended, in RFC 3339.
    pub failed_at: Option<String>,
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
    /// Seconds since then, by the local clock.
    pub started_seconds: Option<i64>,
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
    /// It cannot be read.
    Unreadable,
}

/// Looks at the tables of `places` in `store`; `None` is a store that does not exist yet. `now_ms` is the local clock.
///
/// # Errors
/// The store does not answer. What cannot be read in it is a line of the answer.
pub async fn status(store: Option<&dyn CursorStore>, name: &str, places: &[Place], now_ms: i64) -> Result<StatusReport, StoreError> {
    let mut report = StatusReport { store: name.to_owned(), at: rfc3339(now_ms), tables: Vec::new(), orphans: Vec::new() };
    let mut connectors: Vec<&str> = places.iter().map(|place| place.connector.as_str()).collect();
    connectors.dedup();
    for connector in connectors {
        let own: Vec<Place> = places.iter().filter(|place| place.connector == connector).cloned().collect();
        let known = match store {
            Some(store) => Known::read(store, connector, &own).await?,
            None => Known::default(),
        };
        report.tables.extend(own.iter().map(|place| known.of_table(place, &own, now_ms)));
        report.orphans.extend(orphans(&known.listing, &own));
    }
    if let Some(store) = store {
        for connector in undocumented(store, places).await? {
            report.orphans.extend(orphans(&store.survey(&connector).await?, &[]));
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

/// What a store has of a connector.
#[derive(Debug)]
struct Known {
    listing: Listing,
    term: LeaseTerm,
    /// What keeps the whole connector from being swept.
    hindrance: Option<Hindrance>,
    /// The logins that its instances have refused; of one instance, what is tried last.
    logins: BTreeMap<String, Parked>,
}

impl Default for Known {
    fn default() -> Self {
        Self { listing: Listing::default(), term: LeaseTerm::Clock, hindrance: None, logins: BTreeMap::new() }
    }
}

impl Known {
    async fn read(store: &dyn CursorStore, connector: &str, places: &[Place]) -> Result<Self, StoreError> {
        let listing = store.survey(connector).await?;
        let started_ms = listing.items.iter().filter_map(|item| item.started_ms).max();
        // A table of the connector that was started since shows that it is over.
        let hindrance = hindrance(store, connector).await?.filter(|met| started_ms.is_none_or(|started| started < met.at_ms));
        let mut logins = BTreeMap::new();
        let stored = listing.items.iter().map(|item| item.identity.instance.as_str());
        let instances: BTreeSet<&str> = places.iter().filter_map(|place| place.instance.as_deref()).chain(stored).collect();
        for instance in instances {
            let refused = refused_logins(store, instance).await?;
            if let Some(last) = refused.into_iter().max_by_key(|refused| refused.next_try_ms) {
                logins.insert(instance.to_owned(), last);
            }
        }
        Ok(Self { listing, term: store.lease_term(), hindrance, logins })
    }

    fn of_table(&self, place: &Place, places: &[Place], now_ms: i64) -> TableStatus {
        let found = Found::of(place, places, &self.listing);
        let stored = found.own().or(found.moved().map(|(item, _)| item));
        let mut row = stored.map_or_else(|| blank(place), |item| of_item(place, item, self.term, now_ms));
        row.changed_query = found.changed_query;
        if let Some((_, moved)) = found.moved() {
            let message = format!(
                "the stored cursor has {} {:?} and the document says {:?}; put the document back, or `tablesweep cursor reset`",
                moved.what, moved.was, moved.is
            );
            return TableStatus { state: Activity::Moved, reason: reason("Cursor.Moved", message), ..row };
        }
        if let (Some(unreadable), None) = (found.unreadable.first(), stored) {
            let message = format!("what lies at {} cannot be read: {}", unreadable.key.place, unreadable.detail);
            return TableStatus { state: Activity::Unreadable, reason: reason("Cursor.Format", message), ..row };
        }
        // What was said of the table itself stands, since it is what a person has to mend for this table.
        if matches!(row.state, Activity::NeverSwept | Activity::Active | Activity::Failing) {
            self.above(place, stored, &mut row);
        }
        row
    }

    /// What is known of the table's connector and instance, and keeps it from being swept.
    fn above(&self, place: &Place, stored: Option<&Item>, row: &mut TableStatus) {
        let instance = place.instance.as_ref().or(stored.map(|item| &item.identity.instance));
        if let Some(login) = instance.and_then(|instance| self.logins.get(instance)) {
            (row.state, row.reason, row.since, row.next_try) = parked(login);
        }
        if let Some(met) = &self.hindrance {
            row.state = if met.is_lasting { Activity::Parked } else { Activity::Failing };
            row.reason = reason(&met.code, met.message.clone());
            (row.since, row.next_try, row.failed_at) = (None, None, Some(rfc3339(met.at_ms)));
        }
    }
}

fn reason(code: &str, message: String) -> Option<Reason> {
    Some(Reason { code: code.to_owned(), message })
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
        failures: 0,
        failed_at: None,
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
        started_seconds: None,
        page_size: None,
        leased: false,
        leased_until: None,
    }
}

fn of_item(place: &Place, item: &Item, term: LeaseTerm, now_ms: i64) -> TableStatus {
    let failed = item.progress.failed();
    let (state, reason, since, next_try) = standing(&item.standing, failed.as_ref());
    let Counters { rows, suppressed, hidden, late, skipped, last_rows, last_rows_ms } = item.progress.counters;
    let lease = item.lease.as_ref().filter(|lease| term == LeaseTerm::Process || lease.until_ms > now_ms);
    TableStatus {
        state,
        reason,
        since,
        next_try,
        failures: failed.as_ref().map_or(0, |failed| failed.times),
        failed_at: failed.map(|failed| rfc3339(failed.at_ms)),
        remark: item.progress.notes.get(REMARK_NOTE).cloned(),
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
        started_seconds: item.started_ms.map(|started_ms| now_ms.saturating_sub(started_ms).max(0) / 1000),
        page_size: item.progress.page_size,
        leased: lease.is_some(),
        leased_until: lease.filter(|lease| lease.until_ms != i64::MAX).map(|lease| rfc3339(lease.until_ms)),
        ..blank(place)
    }
}

type Stands = (Activity, Option<Reason>, Option<String>, Option<String>);

fn standing(standing: &Standing, failed: Option<&Failed>) -> Stands {
    match (standing, failed) {
        (Standing::Active, None) => (Activity::Active, None, None, None),
        (Standing::Active, Some(failed)) => {
            let message = match failed.times {
                1 => "the last sweep failed; the log says more".to_owned(),
                times => format!("the last {times} sweeps failed, the last one of them so; the log says more"),
            };
            (Activity::Failing, reason(&failed.code, message), Some(rfc3339(failed.since_ms)), None)
        }
        (Standing::Paused(paused), _) => {
            (Activity::Paused, reason("Cursor.Paused", paused.reason.clone()), Some(rfc3339(paused.since_ms)), None)
        }
        (Standing::Waiting(waiting), _) => {
            (Activity::Paused, reason(&waiting.code, waiting.message.clone()), Some(rfc3339(waiting.since_ms)), None)
        }
        (Standing::Parked(stop), _) => parked(stop),
    }
}

fn parked(stop: &Parked) -> Stands {
    let reason = reason(&stop.code, stop.message.clone());
    (Activity::Parked, reason, Some(rfc3339(stop.since_ms)), Some(rfc3339(stop.next_try_ms)))
}

/// What lies in the store that no table of `places` goes on from.
fn orphans(listing: &Listing, places: &[Place]) -> Vec<Orphan> {
    let used = |owner: &Place, item: &Item| Found::of(owner, places, listing).others().all(|other| !std::ptr::eq(other, item));
    let items = listing.items.iter().filter_map(|item| orphan(item, places, used));
    let unreadable = listing.unreadable.iter().filter(|lies| whose_unreadable(places, lies).is_none()).map(|lies| Orphan {
        connector: lies.key.connector.clone(),
        table: lies.identity.as_ref().map_or_else(|| "?".to_owned(), |identity| identity.alias.clone()),
        place: lies.key.place.clone(),
        why: Why::Unreadable,
        cursor: None,
        rows: 0,
    });
    items.chain(unreadable).collect()
}

/// `is_used`: whether it is the one of those that fit a table's place.
fn orphan(item: &Item, places: &[Place], is_used: impl Fn(&Place, &Item) -> bool) -> Option<Orphan> {
    let why = match whose(places, &item.identity) {
        None => Why::NoDocument,
        Some((_, Finding::ChangedQuery)) => Why::ChangedQuery,
        Some((_, Finding::Moved(_))) => Why::Moved,
        Some((owner, Finding::Current)) if is_used(owner, item) => return None,
        // A secret hides where the table is now; the one of its cursors that was started last is there.
        Some((_, Finding::Current)) => Why::Moved,
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
