//! The baseline in the store: kept at the activation, compared at every poll.
//!
//! The cursor's notes name the digest of the baseline, and the baseline itself lies beside the cursor. While the digests
//! agree nothing is read. When they differ, the stored text says what differs; a difference that does not count
//! ([`super::schema`]) lets the poll go on. What a table was found with is kept too, so that an operator can accept exactly what
//! was told.

use std::collections::BTreeMap;

use super::error::Error;
use super::schema::Baseline;
use super::session::Names;
use crate::cursor::{BASELINE_NOTE, baseline_digest};
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
    Ok(())
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
        return Ok(now.clone());
    }
    let stored = siblings.get(BASELINE).await.map_err(store)?;
    let stored = stored.filter(|bytes| named.as_ref().is_none_or(|named| *named == baseline_digest(bytes)));
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
