//! What a command will do, in the words that a person is asked to confirm: where the cursor stands, where it goes, and which rows
//! come again or never come.

use super::{CommandError, InTheWay, Operator, Order, Rewinding};
use crate::assembly;
use crate::cursor::{BASELINE_NOTE, Item, Parked, Position, Standing};
use crate::operate::place::{Finding, Place, whose};
use crate::operate::position::to_come;
use crate::operate::{is_forward, rfc3339, shown};
use crate::source::SCHEMA_CHANGED;

/// What is known of a table when it is ordered something.
pub(super) struct Known<'k> {
    pub(super) place: &'k Place,
    /// What lies where the order goes.
    pub(super) own: Option<&'k Item>,
    /// What goes away with it.
    pub(super) in_the_way: &'k InTheWay,
    /// Why an operator holds what is replaced, and so what takes its place.
    pub(super) held: Option<&'k str>,
    /// The login that the table's instance has refused.
    pub(super) login: Option<&'k Parked>,
}

impl Known<'_> {
    fn cursor(&self) -> Option<&Position> {
        self.own.and_then(|item| item.progress.cursor.as_ref())
    }
}

/// What `order` will do, and whether that is anything at all.
pub(super) fn announce(operator: &Operator<'_>, known: &Known<'_>, order: &Order) -> Result<(String, bool), CommandError> {
    let table = known.place.name();
    let store = operator.store.name();
    let missing = || operator.missing(known.place);
    Ok(match order {
        Order::Rewind(rewinding) => {
            let item = known.own.ok_or_else(missing)?;
            (rewind(known.place, item, rewinding)? + &in_future(operator, item, Some(&rewinding.to)), true)
        }
        Order::Reset => reset(known, store),
        Order::Pause { reason } => {
            if known.own.is_none() && known.place.identity().is_none() {
                return Err(missing());
            }
            (format!("pauses {table} ({reason}): it is not swept until `tablesweep cursor resume`"), true)
        }
        Order::Resume => resume(known, store),
        Order::AcceptSchema => accept_schema(&table, known.own.ok_or_else(missing)?, known.place)?,
        Order::Import { item, forward, .. } => {
            (import(operator, known, item, *forward)? + &in_future(operator, item, item.progress.cursor.as_ref()), true)
        }
    })
}

/// What to say of a cursor that is set to a time that has not come yet.
fn in_future(operator: &Operator<'_>, item: &Item, to: Option<&Position>) -> String {
    let rules = assembly::source(&item.identity.source).map(|kind| &kind.cursors);
    let said = rules.zip(to).and_then(|(rules, to)| (rules.in_future)(to, operator.host.now_ms()));
    said.map_or_else(String::new, |said| format!("; it {said}"))
}

fn rewind(place: &Place, item: &Item, rewinding: &Rewinding) -> Result<String, CommandError> {
    let (table, to, is_meant) = (place.name(), &rewinding.to, rewinding.forward);
    match &item.progress.cursor {
        Some(from) if is_forward(&item.identity.source, from, to) => forward(&table, from, to, is_meant),
        Some(from) => Ok(back(&table, from, to)),
        None => begin(place, to, is_meant),
    }
}

/// A table that has no cursor yet would begin where its document says.
fn begin(place: &Place, to: &Position, is_meant: bool) -> Result<String, CommandError> {
    let table = place.name();
    let begins = place.start.as_ref().map(|start| shown(Some(start)));
    let is_forward = place.start.as_ref().is_none_or(|start| is_forward(&place.source, start, to));
    let set = format!("sets {table}, which has no cursor yet, to {}", shown(Some(to)));
    match (begins, is_forward, is_meant) {
        (None, _, false) => Err(CommandError::Untold { table, to: shown(Some(to)) }),
        (None, _, true) => Ok(format!("{set}: rows before that are never delivered")),
        (Some(from), true, false) => {
            Err(CommandError::Forward { table, from: format!("{from}, where its document begins"), to: shown(Some(to)) })
        }
        (Some(from), true, true) => Ok(format!("{set}: rows from {from} on, where its document begins, to there are never delivered")),
        (Some(from), false, _) => Ok(format!("{set}: rows {} are delivered, and its document would begin at {from}", to_come(to))),
    }
}

fn back(table: &str, from: &Position, to: &Position) -> String {
    format!("moves {table} from {} to {}: rows {} are delivered again", shown(Some(from)), shown(Some(to)), to_come(to))
}

fn forward(table: &str, from: &Position, to: &Position, is_meant: bool) -> Result<String, CommandError> {
    let (from, to) = (shown(Some(from)), shown(Some(to)));
    if !is_meant {
        return Err(CommandError::Forward { table: table.to_owned(), from: format!("the cursor at {from}"), to });
    }
    Ok(format!("moves {table} forward from {from} to {to}: rows between them are never delivered"))
}

fn reset(known: &Known<'_>, store: &str) -> (String, bool) {
    let table = known.place.name();
    let anew = format!("the next sweep starts anew where the document says{}", anew(&known.place.source));
    let unreadable = unreadable(known.in_the_way);
    let mut gone = known.own.into_iter().chain(&known.in_the_way.former);
    match gone.next() {
        Some(item) => {
            let at = shown(item.progress.cursor.as_ref());
            let others: String = gone.map(|item| and(&lies_at(item))).collect();
            (format!("drops the cursor of {table} at {at}{others}{}: {anew}{}", and(&unreadable), stays(known)), true)
        }
        None if unreadable.is_empty() => (format!("{table} has no cursor in {store}: there is nothing to reset"), false),
        None => (format!("removes for {table} {unreadable}: {anew}"), true),
    }
}

/// What cannot be read and goes, with what is wrong with it; nothing if all can be read.
fn unreadable(in_the_way: &InTheWay) -> String {
    let told = in_the_way.unreadable.iter().map(|lies| format!("what lies at {} and cannot be read ({})", lies.key.place, lies.detail));
    told.collect::<Vec<_>>().join(", and ")
}

fn lies_at(item: &Item) -> String {
    format!("the cursor at {}", item.identity.key().place)
}

/// That a table which an operator holds is not swept when its cursor is replaced.
fn stays(known: &Known<'_>) -> String {
    known.held.map_or_else(String::new, |reason| format!("; it stays paused: {reason}"))
}

fn and(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!(", and {what}") }
}

/// How the tables of a source start anew.
pub(super) fn anew(source: &str) -> &'static str {
    assembly::source(source).map_or("", |kind| kind.cursors.after_reset)
}

fn resume(known: &Known<'_>, store: &str) -> (String, bool) {
    let table = known.place.name();
    let (own, changes) = match known.own.map(|item| &item.standing) {
        None => (format!("{table} has no cursor in {store}: it is swept at the next tick as it is"), false),
        Some(Standing::Active) => (format!("{table} is neither paused nor parked: there is nothing to resume"), false),
        Some(Standing::Paused(paused)) => (format!("resumes {table}, which was paused: {}", paused.reason), true),
        Some(Standing::Waiting(waiting)) => {
            let accept =
                if waiting.code == SCHEMA_CHANGED { "; `tablesweep cursor accept-schema` takes the schema as it is now" } else { "" };
            let text = format!(
                "{table} waits by itself for {}, looks at every tick and goes on once its source is as it was: there is nothing to resume{accept}. \
                 What it waits for: {}",
                waiting.code, waiting.message
            );
            (text, false)
        }
        Some(Standing::Parked(parked)) => (format!("tries {table} again, which was parked by {}: {}", parked.code, parked.message), true),
    };
    let Some(login) = known.login else { return (own, changes) };
    let said = format!(
        "lets the next sweep sign in again to the instance of {table}, which no sweep would have tried before {}: {}: {}",
        rfc3339(login.next_try_ms),
        login.code,
        login.message
    );
    (if changes { format!("{own}; and {said}") } else { said }, true)
}

fn accept_schema(table: &str, item: &Item, place: &Place) -> Result<(String, bool), CommandError> {
    if !item.progress.notes.contains_key(BASELINE_NOTE) {
        return Err(CommandError::no_baseline(place));
    }
    let at = shown(item.progress.cursor.as_ref());
    Ok(match &item.standing {
        Standing::Waiting(waiting) if waiting.code == SCHEMA_CHANGED => (
            format!(
                "takes the schema that {table} was found with as its baseline and goes on after {at}. What it waited for: {}",
                waiting.message
            ),
            true,
        ),
        _ => (format!("{table} waits for no schema: there is nothing to accept"), false),
    })
}

/// An import is a rewind by another name where there is a cursor: it says the same of the rows, and asks the same.
fn import(operator: &Operator<'_>, known: &Known<'_>, item: &Item, is_meant: bool) -> Result<String, CommandError> {
    let table = known.place.name();
    let to = item.progress.cursor.as_ref();
    let from = known.cursor();
    let moves = match (from, to) {
        (None, _) => format!("sets {table}, which has no cursor in {}, to {}, as it was exported", operator.store.name(), shown(to)),
        (Some(from), None) => format!(
            "drops the cursor of {table} at {}, since the exported one has not begun: the next sweep starts where the document says{}",
            shown(Some(from)),
            anew(&item.identity.source)
        ),
        (Some(from), Some(to)) if from == to => {
            format!("{table} stands at {} already; all else is set as it was exported", shown(Some(to)))
        }
        (Some(from), Some(to)) if is_forward(&item.identity.source, from, to) => forward(&table, from, to, is_meant)?,
        (Some(from), Some(to)) => back(&table, from, to),
    };
    let former = known.in_the_way.former.iter().map(lies_at);
    let gone: Vec<String> = former.chain(Some(unreadable(known.in_the_way)).filter(|told| !told.is_empty())).collect();
    let replaced = if gone.is_empty() { String::new() } else { format!("; it takes the place of {}", gone.join(", and of ")) };
    let unused = match whose(operator.places, &item.identity) {
        Some((_, Finding::ChangedQuery)) => "; it belongs to another query than the document's, and no sweep goes on from it",
        _ => "",
    };
    let held = match &item.standing {
        Standing::Paused(paused) if known.held.is_none() => format!("; it is paused, as it was exported: {}", paused.reason),
        _ => stays(known),
    };
    Ok(format!("{moves}{replaced}{unused}{held}"))
}
