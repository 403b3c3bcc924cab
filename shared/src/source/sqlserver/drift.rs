//! The baseline in the store: kept at the activation, compared at every poll.
//!
//! The cursor's notes name the digest of the baseline, and the baseline itself lies beside the cursor. While the digests
//! agree nothing is read. When they differ, the stored text says what differs; a difference that does not count
//! ([`super::schema`]) lets the poll go on. What a table was found with is kept too, so that an operator can accept exactly what
//! was told.
//!
//! Accepting is one write, which names the digest of what was found: there is nothing that a process which dies in the middle could
//! leave half done. So the baseline is whichever of the two texts has the digest. The first sweep after it puts the
//! text in its place, and notes that it lies there. A cursor that came from another store has no such note either, and is
//! treated alike.

use std::collections::BTreeMap;

use super::error::Error;
use super::schema::Baseline;
use super::session::Names;
use crate::cursor::{BASELINE_KEPT_NOTE, BASELINE_NOTE, baseline_digest};
use crate::failure::Failure;
use crate::source::{BASELINE, FOUND_SCHEMA, Siblings};

type Notes = BTreeMap<String, String>;

/// Makes `now` the baseline. The note takes effect with the next commit.
///
/// # Errors
/// The store does not answer.
pub(super) async fn keep(siblings: &dyn Siblings, notes: &mut Notes, now: &Baseline) -> Result<(), Error> {
    let text = now.text();
    siblings.put(BASELINE, text.as_bytes()).await.map_err(store)?;
    notes.insert(BASELINE_NOTE.to_owned(), baseline_digest(text.as_bytes()));
    notes.insert(BASELINE_KEPT_NOTE.to_owned(), String::new());
    Ok(())
}

/// Sees to it that the baseline, which the cursor names and `now` is, lies in its place: for the day on which the table is another.
async fn settle(siblings: &dyn Siblings, notes: &mut Notes, now: &Baseline) -> Result<(), Error> {
    if notes.contains_key(BASELINE_KEPT_NOTE) {
        return Ok(());
    }
    if siblings.get(BASELINE).await.map_err(store)?.as_deref() == Some(now.text().as_bytes()) {
        notes.insert(BASELINE_KEPT_NOTE.to_owned(), String::new());
        return Ok(());
    }
    keep(siblings, notes, now).await?;
    siblings.remove(FOUND_SCHEMA).await.map_err(store)
}

/// The baseline whose digest is `named`, or any if the cursor names none. One that was accepted, and was not put in its place yet, is
/// put there: what the table is found with next takes the place in which it lies.
async fn stored(siblings: &dyn Siblings, named: Option<&str>) -> Result<Option<Vec<u8>>, Error> {
    let is_named = |bytes: &Vec<u8>| named.is_none_or(|named| named == baseline_digest(bytes));
    if let Some(bytes) = siblings.get(BASELINE).await.map_err(store)?.filter(is_named) {
        return Ok(Some(bytes));
    }
    let accepted = match named {
        Some(_) => siblings.get(FOUND_SCHEMA).await.map_err(store)?.filter(is_named),
        None => None,
    };
    if let Some(bytes) = &accepted {
        siblings.put(BASELINE, bytes).await.map_err(store)?;
    }
    Ok(accepted)
}

/// Compares the table as it is now with its baseline, and answers the baseline.
///
/// # Errors
/// [`Error::SchemaChanged`] with what differs; or the store does not answer.
pub(super) async fn compare(siblings: &dyn Siblings, notes: &mut Notes, now: &Baseline, names: &Names) -> Result<Baseline, Error> {
    let text = now.text();
    let digest = baseline_digest(text.as_bytes());
    let named = notes.get(BASELINE_NOTE).cloned();
    if named.as_deref() == Some(digest.as_str()) {
        settle(siblings, notes, now).await?;
        return Ok(now.clone());
    }
    let stored = stored(siblings, named.as_deref()).await?;
    let difference = match (&stored, named) {
        (None, None) => {
            tracing::info!(
                connector = names.connector,
                table = names.alias,
                "the cursor came without a baseline; the table as it is now is the baseline"
            );
            keep(siblings, notes, now).await?;
            return Ok(now.clone());
        }
        (Some(bytes), _) => match read(bytes) {
            Ok(baseline) if baseline.difference(now).is_empty() => {
                notes.insert(BASELINE_NOTE.to_owned(), baseline_digest(bytes));
                return Ok(baseline);
            }
            Ok(baseline) => baseline.difference(now).join("; "),
            Err(error) => error,
        },
        (None, Some(_)) => "what it was like is not in this store, so that cannot be told".to_owned(),
    };
    if siblings.get(FOUND_SCHEMA).await.map_err(store)?.as_deref() != Some(text.as_bytes()) {
        siblings.put(FOUND_SCHEMA, text.as_bytes()).await.map_err(store)?;
    }
    Err(Error::SchemaChanged { difference })
}

fn read(stored: &[u8]) -> Result<Baseline, String> {
    let text = str::from_utf8(stored).map_err(|error| error.to_string())?;
    Baseline::parse(text).map_err(|error| error.to_string())
}

fn store(failure: Failure) -> Error {
    Error::Store(failure)
}
