//! The commands: decided on a reading, told in words, then carried out if nothing changed since.
//!
//! [`Operator::prepare`] reads and refuses; its [`Prepared::announcement`] is what a person is asked to confirm.
//! [`Operator::carry_out`] then does it by a conditional write on the revision that was read, so that what was confirmed
//! is what happens.

use std::time::Duration;

use super::audit::{self, Audit};
use super::place::{Finding, Place, found};
use super::{is_forward, rfc3339, shown};
use crate::cursor::{
    BASELINE_NOTE, Change, CursorStore, Expect, Import, Item, Key, Moved, Position, Refusal, Rewind, Standing, StoreError, Write,
    WriteError, baseline_digest,
};
use crate::host::Host;
use crate::source::{BASELINE, FOUND_SCHEMA, SCHEMA_CHANGED};
use crate::sweep::{forget_siblings, forget_window};

/// Tries of one write whose answer was lost or refused for now.
const WRITE_TRIES: u32 = 3;

/// What is to be done with a table's cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Set the cursor to a position.
    Rewind(Rewinding),
    /// Forget the cursor; the next sweep starts as if it were the first.
    Reset,
    /// Sweep the table no more until it is resumed.
    Pause {
        /// Why, in words.
        reason: String,
    },
    /// Sweep a paused or parked table again.
    Resume,
    /// Take the schema that a waiting table was found with as its baseline; the cursor stays.
    AcceptSchema,
    /// Put an exported cursor in.
    Import(Box<Item>),
}

/// Where the cursor is to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewinding {
    /// The position.
    pub to: Position,
    /// Whether it may lie after the cursor, so that rows are never delivered.
    pub forward: bool,
    /// A request that was carried out once is not carried out again.
    pub request_id: Option<String>,
}

/// Why a command is not carried out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no cursor yet.
    #[error("{table}: there is no cursor in {store} yet: the table was never swept, and its first sweep starts where its document says")]
    Missing {
        /// Connector and alias.
        table: String,
        /// The store.
        store: String,
    },
    /// A sweep is under way.
    #[error("{table}: a sweep holds the lease {}; wait for its end, or stop it, and try again", until(*until_ms))]
    Leased {
        /// Connector and alias.
        table: String,
        /// When the lease ends by itself, in epoch milliseconds.
        until_ms: i64,
    },
    /// The position lies after the cursor.
    #[error(
        "{table}: {to} lies after the cursor at {from}, so the rows between them would never be delivered; `--forward` says that this is meant"
    )]
    Forward {
        /// Connector and alias.
        table: String,
        /// The cursor.
        from: String,
        /// Where it was to be set.
        to: String,
    },
    /// The stored cursor belongs to another place.
    #[error(
        "{table}: the stored cursor has {} {:?} and the document says {:?}; `tablesweep cursor reset` starts anew, \
         or put the document back",
        moved.what, moved.was, moved.is
    )]
    Moved {
        /// Connector and alias.
        table: String,
        /// What differs.
        moved: Moved,
    },
    /// The table's source compares no schema.
    #[error("{table}: no schema baseline is kept, so there is none to accept: its source takes columns as they come")]
    NoBaseline {
        /// Connector and alias.
        table: String,
    },
    /// The item changed after it was read.
    #[error("{table}: {refusal}; look at `tablesweep cursor show` and try again")]
    Changed {
        /// Connector and alias.
        table: String,
        /// What the store said.
        refusal: Refusal,
    },
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CommandError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "Cursor.Missing",
            Self::Leased { .. } => "Cursor.Leased",
            Self::Forward { .. } => "Cursor.Forward",
            Self::Moved { .. } => "Cursor.Moved",
            Self::NoBaseline { .. } => "Cursor.NoBaseline",
            Self::Changed { .. } => "Cursor.Conflict",
            Self::Store(StoreError::Unreachable { .. }) => "Cursor.Unreachable",
            Self::Store(StoreError::Busy { .. }) => "Cursor.Busy",
            Self::Store(StoreError::Denied { .. }) => "Cursor.Denied",
            Self::Store(StoreError::Format { .. }) => "Cursor.Format",
        }
    }
}

fn until(until_ms: i64) -> String {
    if until_ms == i64::MAX { "as long as its process lives".to_owned() } else { format!("until {}", rfc3339(until_ms)) }
}

/// A command that may be carried out.
#[derive(Debug, Clone)]
pub struct Prepared {
    place: Place,
    order: Order,
    current: Option<Item>,
    retired: Vec<Item>,
    /// What will happen, in words.
    pub announcement: String,
    /// Whether there is anything to do.
    pub changes: bool,
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Outcome {
    /// The connector's name.
    pub connector: String,
    /// The alias.
    pub table: String,
    /// The command.
    pub command: &'static str,
    /// Whether anything was changed.
    pub changed: bool,
    /// The cursor before.
    pub before: Option<Position>,
    /// The cursor after.
    pub after: Option<Position>,
}

/// Somebody who commands.
#[derive(Debug)]
pub struct Operator<'a> {
    /// The store.
    pub store: &'a dyn CursorStore,
    /// The machine.
    pub host: &'a Host,
    /// Who, for the audit entries.
    pub who: String,
}

impl Order {
    fn name(&self) -> &'static str {
        match self {
            Self::Rewind(_) => "rewind",
            Self::Reset => "reset",
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::AcceptSchema => "accept-schema",
            Self::Import(_) => "import",
        }
    }
}

impl Operator<'_> {
    /// Reads where the table stands and says what `order` would do.
    ///
    /// # Errors
    /// It cannot be done; nothing was changed.
    pub async fn prepare(&self, place: &Place, order: Order) -> Result<Prepared, CommandError> {
        let items = self.store.list(&place.connector).await?;
        let (mut current, mut moved) = (None, Vec::new());
        for (item, finding) in found(place, &items) {
            match finding {
                Finding::Current => current = Some(item.clone()),
                Finding::Moved(what) => moved.push((item.clone(), what)),
                Finding::ChangedQuery => {}
            }
        }
        for item in current.iter().chain(moved.iter().map(|(item, _)| item)) {
            self.refuse_leased(place, item)?;
        }
        let starts_anew = matches!(order, Order::Reset | Order::Import(_));
        if let Some((_, what)) = moved.first().filter(|_| !starts_anew) {
            return Err(CommandError::Moved { table: name(place), moved: what.clone() });
        }
        let retired: Vec<Item> = moved.into_iter().map(|(item, _)| item).collect();
        let (announcement, changes) = self.announce(place, &order, current.as_ref(), &retired)?;
        Ok(Prepared { place: place.clone(), order, current, retired, announcement, changes })
    }

    fn refuse_leased(&self, place: &Place, item: &Item) -> Result<(), CommandError> {
        // Where leases live as long as their process, the store has already left out those of the dead.
        let now_ms = match self.store.lease_term() {
            crate::cursor::LeaseTerm::Process => i64::MIN,
            crate::cursor::LeaseTerm::Clock => self.host.now_ms(),
        };
        match &item.lease {
            Some(lease) if lease.until_ms > now_ms => Err(CommandError::Leased { table: name(place), until_ms: lease.until_ms }),
            _ => Ok(()),
        }
    }

    fn announce(&self, place: &Place, order: &Order, current: Option<&Item>, retired: &[Item]) -> Result<(String, bool), CommandError> {
        let table = name(place);
        let missing = || CommandError::Missing { table: table.clone(), store: self.store.name().to_owned() };
        Ok(match order {
            Order::Rewind(rewinding) => {
                let item = current.ok_or_else(missing)?;
                (announce_rewind(&table, item, rewinding)?, true)
            }
            Order::Reset => match current.or(retired.first()) {
                None => (format!("{table} has no cursor in {}: there is nothing to reset", self.store.name()), false),
                Some(item) => {
                    let at = shown(item.progress.cursor.as_ref());
                    (
                        format!("drops the cursor of {table} at {at}: the next sweep starts anew where the document says{}", anew(place)),
                        true,
                    )
                }
            },
            Order::Pause { reason } => {
                if current.is_none() && place.identity().is_none() {
                    return Err(missing());
                }
                (format!("pauses {table} ({reason}): it is not swept until `tablesweep cursor resume`"), true)
            }
            Order::Resume => match current.map(|item| &item.standing) {
                None => (format!("{table} has no cursor in {}: it is swept at the next tick as it is", self.store.name()), false),
                Some(Standing::Active) => (format!("{table} is neither paused nor parked: there is nothing to resume"), false),
                Some(Standing::Paused(paused)) => (format!("resumes {table}, which was paused: {}", paused.reason), true),
                Some(Standing::Waiting(waiting)) => {
                    (format!("{table} waits by itself for {} and looks at every tick: there is nothing to resume", waiting.code), false)
                }
                Some(Standing::Parked(parked)) => {
                    (format!("tries {table} again, which was parked by {}: {}", parked.code, parked.message), true)
                }
            },
            Order::AcceptSchema => {
                let item = current.ok_or_else(missing)?;
                if !item.progress.notes.contains_key(BASELINE_NOTE) {
                    return Err(CommandError::NoBaseline { table });
                }
                let at = shown(item.progress.cursor.as_ref());
                match &item.standing {
                    Standing::Waiting(waiting) if waiting.code == SCHEMA_CHANGED => (
                        format!(
                            "takes the schema that {table} was found with as its baseline and goes on after {at}. What it waited for: {}",
                            waiting.message
                        ),
                        true,
                    ),
                    _ => (format!("{table} waits for no schema: there is nothing to accept"), false),
                }
            }
            Order::Import(item) => {
                if let Some(Finding::Moved(moved)) = place.compare(&item.identity) {
                    return Err(CommandError::Moved { table, moved });
                }
                let from = current.map_or_else(|| "no cursor".to_owned(), |item| shown(item.progress.cursor.as_ref()));
                (format!("sets {table} from {from} to {}, as it was exported", shown(item.progress.cursor.as_ref())), true)
            }
        })
    }

    /// Does what was prepared, unless the item changed meanwhile, and keeps an audit entry.
    ///
    /// # Errors
    /// It was not done. An audit entry that could not be kept is logged and undoes nothing.
    pub async fn carry_out(&self, prepared: Prepared) -> Result<Outcome, CommandError> {
        let Prepared { place, order, current, retired, changes, .. } = prepared;
        let before = current.as_ref().or(retired.first()).and_then(|item| item.progress.cursor.clone());
        let command = order.name();
        let mut outcome =
            Outcome { connector: place.connector.clone(), table: place.alias.clone(), command, changed: changes, before, after: None };
        if !changes {
            outcome.after.clone_from(&outcome.before);
            return Ok(outcome);
        }
        outcome.after = match order {
            Order::AcceptSchema => match &current {
                Some(item) => self.accept(&place, item).await?.progress.cursor,
                None => return Err(self.missing(&place)),
            },
            Order::Reset => {
                self.reset(&place, current.as_ref(), &retired).await?;
                None
            }
            order => {
                let after = self.change(&place, order, current.as_ref()).await?;
                self.retire(&place, &retired).await?;
                after.progress.cursor
            }
        };
        let audit = Audit {
            who: self.who.clone(),
            what: command.to_owned(),
            table: place.alias.clone(),
            before: outcome.before.clone(),
            after: outcome.after.clone(),
            at: rfc3339(self.host.now_ms()),
        };
        if let Err(error) = audit::keep(self.store, self.host, &place.connector, &audit).await {
            tracing::warn!(connector = place.connector, table = place.alias, command, %error, "the audit entry of this command could not be kept");
        }
        Ok(outcome)
    }

    async fn change(&self, place: &Place, order: Order, current: Option<&Item>) -> Result<Item, CommandError> {
        let now_ms = self.host.now_ms();
        let key = match (&order, current) {
            (Order::Import(item), _) => item.identity.key(),
            (_, Some(item)) => item.identity.key(),
            (_, None) => {
                let identity = place.identity().ok_or_else(|| self.missing(place))?;
                let key = identity.key();
                match self.write(place, &key, Change::Create(identity)).await {
                    Ok(_) | Err(CommandError::Changed { refusal: Refusal::Exists, .. }) => key,
                    Err(error) => return Err(error),
                }
            }
        };
        let change = match order {
            Order::Rewind(Rewinding { to, request_id, .. }) => {
                Change::Rewind(Rewind { to, now_ms, revision: current.map(|item| item.revision), request_id })
            }
            Order::Pause { reason } => Change::Pause { reason, now_ms },
            Order::Resume | Order::Reset | Order::AcceptSchema => Change::Resume { now_ms },
            Order::Import(item) => Change::Import(Import { item: *item, now_ms }),
        };
        // The dedup window is gone with the write, whatever lies beside the item: the item names none.
        self.write(place, &key, change).await
    }

    /// Makes the schema that was found the baseline. If this is cut off in between, the cursor still names the old one, and
    /// the command can be given again.
    async fn accept(&self, place: &Place, item: &Item) -> Result<Item, CommandError> {
        let key = item.identity.key();
        let Some(found) = self.store.get_blob(&key.connector, &key.sibling(FOUND_SCHEMA)).await? else {
            return Err(CommandError::NoBaseline { table: name(place) });
        };
        self.store.put_blob(&key.connector, &key.sibling(BASELINE), &found.bytes, Expect::Any, None).await?;
        let baseline = baseline_digest(&found.bytes);
        let accept = Change::Accept { baseline, revision: item.revision, now_ms: self.host.now_ms() };
        let after = self.write(place, &key, accept).await?;
        self.store.remove_blob(&key.connector, &key.sibling(FOUND_SCHEMA)).await?;
        Ok(after)
    }

    async fn reset(&self, place: &Place, current: Option<&Item>, retired: &[Item]) -> Result<(), CommandError> {
        if let Some(item) = current {
            let key = item.identity.key();
            let identity = place.identity_like(&item.identity);
            self.write(place, &key, Change::Reset { identity, now_ms: self.host.now_ms() }).await?;
            forget_siblings(self.store, &key).await?;
        }
        self.retire(place, retired).await
    }

    /// Removes cursors of other places under the same alias. The next sweep finds none of them and begins.
    async fn retire(&self, place: &Place, retired: &[Item]) -> Result<(), CommandError> {
        for item in retired {
            let key = item.identity.key();
            self.store.remove(&key, self.host.now_ms()).await.map_err(|error| explained(place, error))?;
            forget_window(self.store, &key).await?;
            forget_siblings(self.store, &key).await?;
        }
        Ok(())
    }

    /// One write, sent again under the same id when its answer was lost or the store was busy.
    async fn write(&self, place: &Place, key: &Key, change: Change) -> Result<Item, CommandError> {
        let write = Write { id: self.host.nonce(), change };
        let mut tries = 1;
        loop {
            match self.store.write(key, &write).await {
                Err(WriteError::Store(StoreError::Unreachable { .. } | StoreError::Busy { .. })) if tries < WRITE_TRIES => {
                    tokio::time::sleep(Duration::from_millis(self.host.jitter(200 << tries))).await;
                    tries += 1;
                }
                settled => return settled.map_err(|error| explained(place, error)),
            }
        }
    }

    fn missing(&self, place: &Place) -> CommandError {
        CommandError::Missing { table: name(place), store: self.store.name().to_owned() }
    }
}

fn explained(place: &Place, error: WriteError) -> CommandError {
    match error {
        WriteError::Store(error) => error.into(),
        WriteError::Refused(Refusal::Leased { until_ms }) => CommandError::Leased { table: name(place), until_ms },
        WriteError::Refused(refusal) => CommandError::Changed { table: name(place), refusal },
    }
}

fn announce_rewind(table: &str, item: &Item, rewinding: &Rewinding) -> Result<String, CommandError> {
    let (from, to) = (shown(item.progress.cursor.as_ref()), shown(Some(&rewinding.to)));
    if !is_forward(&item.identity.source, item.progress.cursor.as_ref(), &rewinding.to) {
        return Ok(format!("moves {table} from {from} to {to}: rows after {to} are delivered again"));
    }
    if !rewinding.forward {
        return Err(CommandError::Forward { table: table.to_owned(), from, to });
    }
    Ok(format!("moves {table} forward from {from} to {to}: rows between them are never delivered"))
}

fn anew(place: &Place) -> &'static str {
    crate::assembly::source(&place.source).map_or("", |kind| kind.cursors.after_reset)
}

fn name(place: &Place) -> String {
    format!("{}/{}", place.connector, place.alias)
}

#[cfg(test)]
mod tests;
