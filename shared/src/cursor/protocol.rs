//! What a write means: a pure function from the item and the write to the item afterwards, or a refusal.
//!
//! The rules that everything trusts stand here once. A lease is taken only when nobody holds one; only its holder, who
//! names the revision it knows, moves the cursor; whoever lost the lease is refused; operators' changes wait for the
//! holder to finish. Every accepted write adds one to the revision, so a write that was decided on an old reading
//! cannot take effect.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::model::{FORMAT, Identity, Item, Lease, Parked, Paused, Position, Progress, Standing, StoredWindow, Waiting};
use super::notes::{BASELINE_KEPT_NOTE, BASELINE_NOTE};

/// A lease outlives the deadline of the invocation that holds it by this much, to cover clocks that differ.
pub const LEASE_SKEW_MS: i64 = 10_000;

/// Holders that may die in a row before the table is parked.
pub(super) const DEATHS: u32 = 4;

/// The first pause of a parked table; it doubles each time, up to [`LONGEST_PARK_MS`].
const FIRST_PARK_MS: i64 = 60_000;

/// The longest pause of a parked table.
const LONGEST_PARK_MS: i64 = 3_600_000;

/// One conditional write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// Unique to this write; an item that carries it has taken it.
    pub id: String,
    /// What is to change.
    pub change: Change,
}

/// What a write changes.
#[expect(clippy::large_enum_variant, reason = "a handful of writes per sweep, none of them kept")]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// The item comes into being.
    Create(Identity),
    /// A sweep begins.
    Acquire(Acquire),
    /// The cursor moves on. Needs the lease.
    Commit(Hold, Progress),
    /// The lease is held for longer. Needs the lease.
    Renew(Hold, i64),
    /// The sweep ends: the cursor moves on, and the lease is given back. Needs the lease.
    Release(Hold, Progress, Standing),
    /// The documents call the table by another alias. Needs the lease.
    Rename(Hold, String),
    /// The cursor is set by hand.
    Rewind(Rewind),
    /// The table starts anew, as if it had never been swept. The identity may differ in what is not in the key.
    Reset {
        /// The identity that the documents give.
        identity: Identity,
        /// Epoch milliseconds.
        now_ms: i64,
    },
    /// The table is not swept until it is resumed.
    Pause {
        /// Why, in words.
        reason: String,
        /// Epoch milliseconds.
        now_ms: i64,
    },
    /// A paused or parked table is swept again.
    Resume {
        /// Epoch milliseconds.
        now_ms: i64,
    },
    /// What a waiting table was found with is its baseline, and it goes on.
    Accept {
        /// The digest of the baseline.
        baseline: String,
        /// What was told of the table when the wish was decided. Sweeps that find it so again change nothing about the wish.
        told: Waiting,
        /// Epoch milliseconds.
        now_ms: i64,
    },
    /// An exported cursor is put in.
    Import(Import),
}

/// A sweep begins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acquire {
    /// The nonce of the new holder.
    pub owner: String,
    /// When the lease is to end by itself, in epoch milliseconds.
    pub until_ms: i64,
    /// Epoch milliseconds.
    pub now_ms: i64,
    /// On a scheduled tick: the least time since the last start, in milliseconds, and a parked table's next try count.
    pub scheduled: Option<u64>,
}

/// What the holder of a lease knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Its nonce.
    pub owner: String,
    /// The revision that it saw last.
    pub revision: u64,
}

/// The cursor is set by hand.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rewind {
    /// Where to.
    pub to: Position,
    /// Epoch milliseconds.
    pub now_ms: i64,
    /// The revision on which the wish was decided; `None` takes any.
    pub revision: Option<u64>,
    /// The request that was carried out last is not carried out again.
    pub request_id: Option<String>,
}

/// An exported cursor is put in. Lease, revision and window do not travel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Import {
    /// The exported item.
    pub item: Item,
    /// Epoch milliseconds.
    pub now_ms: i64,
}

/// Why an item does not take a write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no item.
    #[error("there is no cursor yet")]
    Missing,
    /// There is one already.
    #[error("there is a cursor already")]
    Exists,
    /// Somebody sweeps the table.
    #[error("another sweep holds the lease until {until_ms}")]
    Leased {
        /// When it ends by itself, in epoch milliseconds.
        until_ms: i64,
    },
    /// The last start is too recent.
    #[error("the last sweep started too recently; the next is due at {due_ms}")]
    NotDue {
        /// When it is due, in epoch milliseconds.
        due_ms: i64,
    },
    /// An operator holds the table.
    #[error("the table is paused: {}", .0.reason)]
    Paused(Paused),
    /// The table failed for good and waits for its next try.
    #[error("the table is parked: {}: {}", .0.code, .0.message)]
    Parked(Parked),
    /// The table does not wait for what was told.
    #[error("the table does not wait any more for what was told")]
    Untold,
    /// The writer does not hold the lease, or the item changed under it.
    #[error("the lease was lost: the item has revision {revision}")]
    Lost {
        /// The item's revision.
        revision: u64,
    },
}

/// The item after `write`.
///
/// # Errors
/// A [`Refusal`]; the item stays as it is.
pub fn apply(item: Option<&Item>, write: &Write) -> Result<Item, Refusal> {
    if let (None, Change::Create(identity)) = (item, &write.change) {
        return Ok(written(Item::new(identity.clone()), write));
    }
    if let (None, Change::Import(import)) = (item, &write.change) {
        return Ok(written(imported(import), write));
    }
    let item = item.ok_or(Refusal::Missing)?;
    if item.write_id == write.id {
        return Ok(item.clone());
    }
    let mut next = item.clone();
    match &write.change {
        Change::Create(_) => return Err(Refusal::Exists),
        Change::Acquire(wish) => acquire(&mut next, wish)?,
        Change::Commit(hold, progress) => {
            held(item, hold)?;
            next.progress = progress.clone();
            next.tries = 0;
        }
        Change::Renew(hold, until_ms) => {
            held(item, hold)?;
            next.lease = Some(Lease { owner: hold.owner.clone(), until_ms: *until_ms });
        }
        Change::Release(hold, progress, standing) => {
            held(item, hold)?;
            next.progress = progress.clone();
            next.standing = standing.clone();
            next.lease = None;
            next.tries = 0;
        }
        Change::Rename(hold, alias) => {
            held(item, hold)?;
            next.identity.alias.clone_from(alias);
        }
        Change::Rewind(rewind) => {
            if rewind.request_id.is_some() && rewind.request_id == item.rewound_by {
                return Ok(item.clone());
            }
            free(item, rewind.now_ms)?;
            if rewind.revision.is_some_and(|revision| revision != item.revision) {
                return Err(Refusal::Lost { revision: item.revision });
            }
            next.progress.cursor = Some(rewind.to.clone());
            next.progress.swept_to_ms = None;
            next.progress.phase = super::Phase::Backfill;
            next.progress.window = StoredWindow::None;
            next.progress.notes.retain(|name, _| name == BASELINE_NOTE);
            next.rewound_by.clone_from(&rewind.request_id);
        }
        Change::Reset { identity, now_ms } => {
            free(item, *now_ms)?;
            let anew = Item { rewound_by: item.rewound_by.clone(), ..Item::new(identity.clone()) };
            next = replaced(item, anew);
        }
        Change::Pause { reason, now_ms } => {
            free(item, *now_ms)?;
            next.standing = Standing::Paused(Paused { reason: reason.clone(), since_ms: *now_ms });
        }
        Change::Resume { now_ms } => {
            free(item, *now_ms)?;
            next.standing = Standing::Active;
            next.tries = 0;
        }
        Change::Accept { baseline, told, now_ms } => {
            free(item, *now_ms)?;
            if !matches!(&item.standing, Standing::Waiting(waiting) if waiting.code == told.code && waiting.message == told.message) {
                return Err(Refusal::Untold);
            }
            next.progress.notes.insert(BASELINE_NOTE.to_owned(), baseline.clone());
            next.progress.notes.remove(BASELINE_KEPT_NOTE);
            next.standing = Standing::Active;
        }
        Change::Import(import) => {
            free(item, import.now_ms)?;
            next = replaced(item, imported(import));
        }
    }
    Ok(written(next, write))
}

/// What every accepted write does to the item.
fn written(item: Item, write: &Write) -> Item {
    Item { format: FORMAT, revision: item.revision.saturating_add(1), write_id: write.id.clone(), ..item }
}

/// The writer holds the lease and knows the item's revision. Whether the lease has run out by the clock does not
/// matter as long as nobody else took it.
fn held(item: &Item, hold: &Hold) -> Result<(), Refusal> {
    let owner = item.lease.as_ref().map(|lease| lease.owner.as_str());
    if owner == Some(hold.owner.as_str()) && item.revision == hold.revision {
        Ok(())
    } else {
        Err(Refusal::Lost { revision: item.revision })
    }
}

/// Nobody holds the lease.
fn free(item: &Item, now_ms: i64) -> Result<(), Refusal> {
    match &item.lease {
        Some(lease) if lease.until_ms > now_ms => Err(Refusal::Leased { until_ms: lease.until_ms }),
        _ => Ok(()),
    }
}

fn acquire(item: &mut Item, wish: &Acquire) -> Result<(), Refusal> {
    if let Standing::Paused(paused) = &item.standing {
        return Err(Refusal::Paused(paused.clone()));
    }
    free(item, wish.now_ms)?;
    if let (Standing::Parked(parked), Some(_)) = (&item.standing, wish.scheduled)
        && parked.next_try_ms > wish.now_ms
    {
        return Err(Refusal::Parked(parked.clone()));
    }
    // A table that waits for a mend has a pace of its own: it is not to be out of sight for an interval of hours. And what was not swept
    // to the end waits for nothing; nor does a sweep that never ended, which left its lease.
    let is_swept = item.progress.is_swept() && item.lease.is_none() && item.tries == 0;
    if let (Standing::Active, true, Some(started), Some(interval)) = (&item.standing, is_swept, item.started_ms, wish.scheduled) {
        let due_ms = started.saturating_add_unsigned(interval);
        // A start that lies in the future was written under another clock; it delays nothing.
        if due_ms > wish.now_ms && started <= wish.now_ms {
            return Err(Refusal::NotDue { due_ms });
        }
    }
    item.tries = item.tries.saturating_add(1);
    if item.tries >= DEATHS {
        let message = format!("{DEATHS} sweeps in a row ended without any progress: they were killed, or ran out of memory or time");
        item.standing = Standing::Parked(Parked::after(&item.standing, "Sweep.Died", message, wish.now_ms));
        item.lease = None;
        item.tries = 0;
    } else {
        item.lease = Some(Lease { owner: wish.owner.clone(), until_ms: wish.until_ms });
        item.started_ms = Some(wish.now_ms);
    }
    Ok(())
}

/// What takes the place of `item`. A table that an operator holds stays held until it is resumed, wherever its cursor is set.
fn replaced(item: &Item, by: Item) -> Item {
    let standing = if matches!(item.standing, Standing::Paused(_)) { item.standing.clone() } else { by.standing };
    Item { revision: item.revision, standing, ..by }
}

/// The item that an import leaves: what was exported, without what belongs to the place it came from.
fn imported(import: &Import) -> Item {
    let mut item = Item { lease: None, tries: 0, started_ms: None, revision: 0, ..import.item.clone() };
    item.progress.window = StoredWindow::None;
    item.progress.notes.remove(BASELINE_KEPT_NOTE);
    item
}

impl Waiting {
    /// How a table stands that waits, and stood as `before`: since when it has waited, if it waits for the same.
    pub fn after(before: &Standing, code: &str, message: String, now_ms: i64) -> Self {
        let since_ms = match before {
            Standing::Waiting(waiting) if waiting.code == code => waiting.since_ms,
            _ => now_ms,
        };
        Self { code: code.to_owned(), message, since_ms }
    }
}

impl Parked {
    /// The next parking of a table that stands as `before`: the pause doubles with each in a row.
    pub fn after(before: &Standing, code: &str, message: String, now_ms: i64) -> Self {
        let (since_ms, times) = match before {
            Standing::Parked(parked) => (parked.since_ms, parked.times.saturating_add(1)),
            _ => (now_ms, 1),
        };
        let pause = FIRST_PARK_MS.saturating_mul(1_i64 << (times - 1).min(10)).min(LONGEST_PARK_MS);
        Self { code: code.to_owned(), message, since_ms, next_try_ms: now_ms.saturating_add(pause), times }
    }
}
