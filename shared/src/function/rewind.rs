//! The rewind before a catch-up: every selected table, once per request.
//!
//! A state machine calls again when it got no answer, or when it was told that a lease is held. So a table that the
//! request has already rewound is passed over, and the others are all looked at before the first is touched: what will
//! never work is told before what only has to wait.
//!
//! A table that stands before the time, or has not begun, has nothing to be set back: it is passed over, and said in the answer. An order
//! that would set back none at all is refused, since whoever gave it meant something by it.

use std::collections::BTreeMap;

use super::event::{RewindOrder, invalid};
use crate::cursor::{CursorStore, Listing, Position};
use crate::failure::{Failure, Retry};
use crate::host::Host;
use crate::operate::{CommandError, Found, Operator, Order, Place, Rewinding, read_position};

/// How often a rewind is decided anew because a sweep came and went in between.
const DECISIONS: usize = 3;

/// Sets the cursors of `places` back, which are some of `all` tables of the documents; answers those that were passed over.
///
/// # Errors
/// `Event.Invalid` if a table has no times to go back to, `Cursor.Leased` while a sweep holds one of them, `Cursor.Forward` or
/// `Cursor.Missing` if no table has anything to be set back, `Cursor.…` for what will not work later either. Tables that were rewound before the failure stay so, and are passed over the next time.
pub(super) async fn rewind(
    store: &dyn CursorStore,
    host: &Host,
    all: &[Place],
    places: Vec<Place>,
    wish: &RewindOrder,
) -> Result<Vec<String>, Failure> {
    let places = with_positions(places, &wish.from)?;
    let operator = Operator { store, host, places: all, who: format!("catch-up {}", wish.request_id) };
    let count = places.len();
    let open = not_yet_rewound(store, all, places, wish).await?;
    let was_begun = open.len() < count;
    let (mut back, mut behind, mut refusals) = (Vec::new(), Vec::new(), Vec::new());
    for (place, to) in open {
        match operator.prepare(&place, order(&to, wish)).await {
            Ok(_) => back.push((place, to)),
            Err(refusal) if is_behind(&refusal) => behind.push((place.name(), refusal)),
            Err(refusal) => refusals.push(refusal),
        }
    }
    refuse(refusals)?;
    if back.is_empty() && !was_begun {
        return refuse(behind.into_iter().map(|(_, refusal)| refusal).collect()).map(|()| Vec::new());
    }
    for (place, to) in &back {
        match rewind_one(&operator, place, to, wish).await {
            Err(refusal) if is_behind(&refusal) => behind.push((place.name(), refusal)),
            settled => settled.map_err(|error| failure(&error, error.to_string()))?,
        }
    }
    for (table, why) in &behind {
        tracing::info!(table, tick = wish.request_id, %why, "not rewound: there is nothing to set back");
    }
    Ok(behind.into_iter().map(|(table, _)| table).collect())
}

/// Whether a table has nothing to be set back: its cursor lies before the time, or it has none.
fn is_behind(refusal: &CommandError) -> bool {
    matches!(refusal, CommandError::Forward { .. } | CommandError::Untold { .. } | CommandError::Missing { .. })
}

/// Where each cursor is to be set. A source whose positions are no times has none for `from`.
fn with_positions(places: Vec<Place>, from: &str) -> Result<Vec<(Place, Position)>, Failure> {
    let (mut positions, mut others) = (Vec::new(), Vec::new());
    for place in places {
        match read_position(&place.source, from) {
            Ok(to) => positions.push((place, to)),
            Err(why) => others.push(format!("{}/{}: {why}", place.connector, place.alias)),
        }
    }
    if others.is_empty() {
        return Ok(positions);
    }
    Err(invalid(&format!(
        "`from` is a time, to which the cursors of these tables cannot be set; leave them out by `connectors` or `tables`, or use \
         `tablesweep cursor rewind`: {}",
        others.join("; ")
    )))
}

async fn not_yet_rewound(
    store: &dyn CursorStore,
    all: &[Place],
    places: Vec<(Place, Position)>,
    wish: &RewindOrder,
) -> Result<Vec<(Place, Position)>, Failure> {
    let mut listings: BTreeMap<String, Listing> = BTreeMap::new();
    let mut open = Vec::new();
    for (place, to) in places {
        if !listings.contains_key(&place.connector) {
            listings.insert(place.connector.clone(), store.survey(&place.connector).await?);
        }
        let current = listings.get(&place.connector).and_then(|listing| Found::of(&place, all, listing).current());
        let is_done = current.is_some_and(|item| item.rewound_by.as_ref() == Some(&wish.request_id));
        if is_done {
            tracing::info!(connector = place.connector, table = place.alias, tick = wish.request_id, "already rewound by this request");
        } else {
            open.push((place, to));
        }
    }
    Ok(open)
}

async fn rewind_one(operator: &Operator<'_>, place: &Place, to: &Position, wish: &RewindOrder) -> Result<(), CommandError> {
    let mut decisions = 1;
    loop {
        let prepared = operator.prepare(place, order(to, wish)).await?;
        tracing::info!(connector = place.connector, table = place.alias, tick = wish.request_id, "{}", prepared.announcement);
        match operator.carry_out(prepared).await {
            Err(CommandError::Changed { .. }) if decisions < DECISIONS => decisions += 1,
            settled => return settled.map(drop),
        }
    }
}

fn order(to: &Position, wish: &RewindOrder) -> Order {
    Order::Rewind(Rewinding { to: to.clone(), forward: false, request_id: Some(wish.request_id.clone()) })
}

/// One failure of all refusals. Its code is that of a lease only if waiting would help.
fn refuse(mut refusals: Vec<CommandError>) -> Result<(), Failure> {
    refusals.sort_by_key(|refusal| matches!(refusal, CommandError::Leased { .. }));
    let said: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    match refusals.first() {
        None => Ok(()),
        Some(first) => Err(failure(first, format!("nothing was rewound: {}", said.join("; ")))),
    }
}

fn failure(error: &CommandError, message: String) -> Failure {
    let retry = match error {
        CommandError::Leased { .. } | CommandError::Changed { .. } | CommandError::Store(_) => Retry::NextTick,
        CommandError::Missing { .. }
        | CommandError::Forward { .. }
        | CommandError::Untold { .. }
        | CommandError::Moved { .. }
        | CommandError::Elsewhere { .. }
        | CommandError::NoBaseline { .. }
        | CommandError::InUse { .. }
        | CommandError::NoOrphan { .. } => Retry::Never,
    };
    Failure::new(error.code(), retry, message)
}

#[cfg(test)]
mod tests;
