//! The commands: decided on a reading, told in words, then carried out if nothing changed since.
//!
//! [`Operator::prepare`] reads and refuses; its [`Prepared::announcement`] is what a person is asked to confirm.
//! [`Operator::carry_out`] then does it by a conditional write on the revision that was read, so that what was confirmed
//! is what happens.
//!
//! A table's cursor is the one that lies in its place ([`Found`]). What keeps a table from being swept, a cursor of another place
//! under its alias or something that cannot be read, is in the way of every command but the two that replace it: `reset`
//! and `import`.

mod announce;
mod remove;

use std::time::Duration;

use self::announce::Known;
use super::audit::{self, Audit};
use super::place::{Finding, Found, Place, whose};
use super::rfc3339;
use crate::assembly;
use crate::cursor::{
    Change, CursorStore, Expect, Import, Item, Key, Moved, Parked, Position, Refusal, Rewind, Standing, StoreError, Unreadable, Write,
    WriteError, baseline_digest,
};
use crate::host::Host;
use crate::source::{BASELINE, FOUND_SCHEMA};
use crate::sweep::{forget_logins, forget_siblings, forget_window, refused_logins};

pub use remove::Removal;

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
    Import {
        /// What was exported.
        item: Box<Item>,
        /// Whether it may lie after the cursor that is there, so that rows are never delivered.
        forward: bool,
    },
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
    /// An exported cursor belongs to another place.
    #[error(
        "{table}: the exported cursor has {} {:?} and the document says {:?}, so no sweep would go on from it; correct the line or the document",
        moved.what, moved.was, moved.is
    )]
    Elsewhere {
        /// Connector and alias.
        table: String,
        /// What differs.
        moved: Moved,
    },
    /// The table has no schema to compare with.
    #[error("{table}: no schema baseline is kept, so there is none to accept: {why}")]
    NoBaseline {
        /// Connector and alias.
        table: String,
        /// Why there is none.
        why: &'static str,
    },
    /// A table of the documents goes on from the cursor.
    #[error("{place}: {table} goes on from this cursor; `tablesweep cursor reset` starts that table anew")]
    InUse {
        /// Where it lies.
        place: String,
        /// Connector and alias.
        table: String,
    },
    /// Nothing lies there.
    #[error("{connector} has no cursor at {place} in {store}; `tablesweep status` lists those that no sweep goes on from")]
    NoOrphan {
        /// The connector's name.
        connector: String,
        /// The place that was named.
        place: String,
        /// The store.
        store: String,
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
            Self::Missing { .. } | Self::NoOrphan { .. } => "Cursor.Missing",
            Self::Leased { .. } => "Cursor.Leased",
            Self::Forward { .. } => "Cursor.Forward",
            Self::Moved { .. } | Self::Elsewhere { .. } => "Cursor.Moved",
            Self::NoBaseline { .. } => "Cursor.NoBaseline",
            Self::InUse { .. } => "Cursor.InUse",
            Self::Changed { .. } => "Cursor.Conflict",
            Self::Store(StoreError::Unreachable { .. }) => "Cursor.Unreachable",
            Self::Store(StoreError::Busy { .. }) => "Cursor.Busy",
            Self::Store(StoreError::Denied { .. }) => "Cursor.Denied",
            Self::Store(StoreError::Format { .. }) => "Cursor.Format",
        }
    }

    /// Why the schema of `place` cannot be accepted: its source keeps none, or has not begun to.
    pub fn no_baseline(place: &Place) -> Self {
        let keeps = assembly::source(&place.source).is_some_and(|kind| kind.cursors.has_baseline);
        let why = if keeps {
            "the table is not activated yet, and its first sweep takes the schema as it is then"
        } else {
            "its source takes columns as they come"
        };
        Self::NoBaseline { table: place.name(), why }
    }
}

/// Whether a table waits for an operator or its next try.
fn is_held(standing: &Standing) -> bool {
    matches!(standing, Standing::Paused(_) | Standing::Parked(_))
}

fn until(until_ms: i64) -> String {
    if until_ms == i64::MAX { "as long as its process lives".to_owned() } else { format!("until {}", rfc3339(until_ms)) }
}

/// A command that may be carried out.
#[derive(Debug, Clone)]
pub struct Prepared {
    place: Place,
    order: Order,
    own: Option<Item>,
    in_the_way: InTheWay,
    /// The instance whose refused login is forgotten.
    login: Option<String>,
    /// What will happen, in words.
    pub announcement: String,
    /// Whether there is anything to do.
    pub changes: bool,
}

/// What keeps a table from being swept, and goes when it starts anew.
#[derive(Debug, Clone, Default)]
struct InTheWay {
    /// Cursors of other places under the alias.
    former: Vec<Item>,
    /// What cannot be read.
    unreadable: Vec<Unreadable>,
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
    /// All tables of the documents: whose a stored cursor is cannot be told from one alone.
    pub places: &'a [Place],
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
            Self::Import { .. } => "import",
        }
    }
}

impl Operator<'_> {
    /// Reads where the table stands and says what `order` would do.
    ///
    /// # Errors
    /// It cannot be done; nothing was changed.
    pub async fn prepare(&self, place: &Place, order: Order) -> Result<Prepared, CommandError> {
        let listing = self.store.survey(&place.connector).await?;
        let found = Found::of(place, self.places, &listing);
        let order = self.at_its_place(place, order)?;
        let own = match &order {
            // A cursor of another query goes to that query's place, where no sweep looks.
            Order::Import { item, .. } => listing.items.iter().find(|lies| lies.identity.key() == item.identity.key()),
            _ => found.own(),
        };
        for item in own.into_iter().chain(found.former()) {
            self.refuse_leased(&place.name(), item)?;
        }
        let in_the_way = self.in_the_way(place, &order, &found)?;
        let login = match order {
            Order::Resume => self.refused_login(place, own).await?,
            _ => None,
        };
        let known = Known { place, own, in_the_way: &in_the_way, login: login.as_ref().map(|(_, parked)| parked) };
        let (announcement, changes) = announce::announce(self, &known, &order)?;
        let login = login.map(|(instance, _)| instance);
        Ok(Prepared { place: place.clone(), own: own.cloned(), order, in_the_way, login, announcement, changes })
    }

    /// The instance of a table, if it has refused a login, and the refusal that lasts longest.
    async fn refused_login(&self, place: &Place, own: Option<&Item>) -> Result<Option<(String, Parked)>, CommandError> {
        let Some(instance) = place.instance.clone().or_else(|| own.map(|item| item.identity.instance.clone())) else { return Ok(None) };
        let refused = refused_logins(self.store, &instance).await?;
        Ok(refused.into_iter().max_by_key(|refused| refused.next_try_ms).map(|refused| (instance, refused)))
    }

    /// The order, with an exported cursor under the alias that its table has now.
    fn at_its_place(&self, place: &Place, order: Order) -> Result<Order, CommandError> {
        let Order::Import { mut item, forward } = order else { return Ok(order) };
        if let Some((_, Finding::Moved(moved))) = whose(self.places, &item.identity) {
            return Err(CommandError::Elsewhere { table: place.name(), moved });
        }
        item.identity.alias.clone_from(&place.alias);
        Ok(Order::Import { item, forward })
    }

    /// What has to go for `order`, if it is one that replaces what is there.
    fn in_the_way(&self, place: &Place, order: &Order, found: &Found<'_>) -> Result<InTheWay, CommandError> {
        let starts_anew = match order {
            Order::Reset => true,
            Order::Import { item, .. } => matches!(whose(self.places, &item.identity), Some((_, Finding::Current))),
            _ => false,
        };
        if starts_anew {
            let unreadable = if found.own().is_none() { found.unreadable.as_slice() } else { &[] };
            return Ok(InTheWay {
                former: found.former().cloned().collect(),
                unreadable: unreadable.iter().map(|lies| (*lies).clone()).collect(),
            });
        }
        if matches!(order, Order::Import { .. }) {
            return Ok(InTheWay::default());
        }
        if let Some((_, moved)) = found.moved() {
            return Err(CommandError::Moved { table: place.name(), moved: moved.clone() });
        }
        match found.unreadable.first() {
            Some(unreadable) if found.own().is_none() => Err(unreadable.error().into()),
            _ => Ok(InTheWay::default()),
        }
    }

    fn refuse_leased(&self, table: &str, item: &Item) -> Result<(), CommandError> {
        // Where leases live as long as their process, the store has already left out those of the dead.
        let now_ms = match self.store.lease_term() {
            crate::cursor::LeaseTerm::Process => i64::MIN,
            crate::cursor::LeaseTerm::Clock => self.host.now_ms(),
        };
        match &item.lease {
            Some(lease) if lease.until_ms > now_ms => Err(CommandError::Leased { table: table.to_owned(), until_ms: lease.until_ms }),
            _ => Ok(()),
        }
    }

    /// Does what was prepared, unless the item changed meanwhile, and keeps an audit entry.
    ///
    /// # Errors
    /// It was not done. An audit entry that could not be kept is logged and undoes nothing.
    pub async fn carry_out(&self, prepared: Prepared) -> Result<Outcome, CommandError> {
        let Prepared { place, order, own, in_the_way, login, changes, .. } = prepared;
        let before = own.as_ref().or(in_the_way.former.first()).and_then(|item| item.progress.cursor.clone());
        let command = order.name();
        let mut outcome =
            Outcome { connector: place.connector.clone(), table: place.alias.clone(), command, changed: changes, before, after: None };
        if !changes {
            outcome.after.clone_from(&outcome.before);
            return Ok(outcome);
        }
        let table = place.name();
        // What cannot be read leaves before anything takes its place. If a sweep comes in between, it starts anew, and an
        // import that is refused for that can be given again.
        for unreadable in &in_the_way.unreadable {
            self.discard(&table, &unreadable.key).await?;
        }
        if let Some(instance) = &login {
            forget_logins(self.store, instance).await?;
        }
        let own_key = own.as_ref().map(|item| item.identity.key());
        outcome.after = match order {
            Order::AcceptSchema => match &own {
                Some(item) => self.accept(&table, item).await?.progress.cursor,
                None => return Err(self.missing(&place)),
            },
            Order::Reset => {
                if let Some(item) = &own {
                    let identity = place.identity_like(&item.identity);
                    self.write(&table, &item.identity.key(), Change::Reset { identity, now_ms: self.host.now_ms() }).await?;
                    forget_siblings(self.store, &item.identity.key()).await?;
                }
                None
            }
            // The login was all there was to resume.
            Order::Resume if !own.as_ref().is_some_and(|item| is_held(&item.standing)) => outcome.before.clone(),
            order => self.change(&place, order, own.as_ref()).await?.progress.cursor,
        };
        for item in &in_the_way.former {
            self.take_away(&table, &item.identity.key()).await?;
        }
        self.keep_audit(&outcome, own_key).await;
        Ok(outcome)
    }

    /// Keeps who did what. `key`: where it was done, if something lay there.
    async fn keep_audit(&self, outcome: &Outcome, key: Option<Key>) {
        let audit = Audit {
            who: self.who.clone(),
            what: outcome.command.to_owned(),
            table: outcome.table.clone(),
            place: key.map(|key| key.place),
            before: outcome.before.clone(),
            after: outcome.after.clone(),
            at: rfc3339(self.host.now_ms()),
        };
        if let Err(error) = audit::keep(self.store, self.host, &outcome.connector, &audit).await {
            let Outcome { connector, table, command, .. } = outcome;
            tracing::warn!(connector, table, command, %error, "the audit entry of this command could not be kept");
        }
    }

    async fn change(&self, place: &Place, order: Order, own: Option<&Item>) -> Result<Item, CommandError> {
        let now_ms = self.host.now_ms();
        let table = place.name();
        let key = match (&order, own) {
            (Order::Import { item, .. }, _) => item.identity.key(),
            (_, Some(item)) => item.identity.key(),
            (_, None) => {
                let identity = place.identity().ok_or_else(|| self.missing(place))?;
                let key = identity.key();
                match self.write(&table, &key, Change::Create(identity)).await {
                    Ok(_) | Err(CommandError::Changed { refusal: Refusal::Exists, .. }) => key,
                    Err(error) => return Err(error),
                }
            }
        };
        let change = match order {
            Order::Rewind(Rewinding { to, request_id, .. }) => {
                Change::Rewind(Rewind { to, now_ms, revision: own.map(|item| item.revision), request_id })
            }
            Order::Pause { reason } => Change::Pause { reason, now_ms },
            Order::Resume | Order::Reset | Order::AcceptSchema => Change::Resume { now_ms },
            Order::Import { item, .. } => Change::Import(Import { item: *item, now_ms }),
        };
        // The dedup window is gone with the write, whatever lies beside the item: the item names none.
        self.write(&table, &key, change).await
    }

    /// Makes the schema that was found the baseline. If this is cut off in between, the cursor still names the old one, and
    /// the command can be given again.
    async fn accept(&self, table: &str, item: &Item) -> Result<Item, CommandError> {
        let key = item.identity.key();
        let Some(found) = self.store.get_blob(&key.connector, &key.sibling(FOUND_SCHEMA)).await? else {
            return Err(CommandError::NoBaseline { table: table.to_owned(), why: "the schema that was found is not there any more" });
        };
        self.store.put_blob(&key.connector, &key.sibling(BASELINE), &found.bytes, Expect::Any, None).await?;
        let baseline = baseline_digest(&found.bytes);
        let accept = Change::Accept { baseline, revision: item.revision, now_ms: self.host.now_ms() };
        let after = self.write(table, &key, accept).await?;
        self.store.remove_blob(&key.connector, &key.sibling(FOUND_SCHEMA)).await?;
        Ok(after)
    }

    /// Removes a cursor and what lies beside it.
    async fn take_away(&self, table: &str, key: &Key) -> Result<(), CommandError> {
        self.store.remove(key, self.host.now_ms()).await.map_err(|error| explained(table, error))?;
        self.forget_beside(key).await
    }

    /// Removes what cannot be read, and what lies beside it.
    async fn discard(&self, table: &str, key: &Key) -> Result<(), CommandError> {
        self.store.discard(key, self.host.now_ms()).await.map_err(|error| explained(table, error))?;
        self.forget_beside(key).await
    }

    async fn forget_beside(&self, key: &Key) -> Result<(), CommandError> {
        forget_window(self.store, key).await?;
        Ok(forget_siblings(self.store, key).await?)
    }

    /// One write, sent again under the same id when its answer was lost or the store was busy.
    async fn write(&self, table: &str, key: &Key, change: Change) -> Result<Item, CommandError> {
        let write = Write { id: self.host.nonce(), change };
        let mut tries = 1;
        loop {
            match self.store.write(key, &write).await {
                Err(WriteError::Store(StoreError::Unreachable { .. } | StoreError::Busy { .. })) if tries < WRITE_TRIES => {
                    tokio::time::sleep(Duration::from_millis(self.host.jitter(200 << tries))).await;
                    tries += 1;
                }
                settled => return settled.map_err(|error| explained(table, error)),
            }
        }
    }

    fn missing(&self, place: &Place) -> CommandError {
        CommandError::Missing { table: place.name(), store: self.store.name().to_owned() }
    }
}

fn explained(table: &str, error: WriteError) -> CommandError {
    match error {
        WriteError::Store(error) => error.into(),
        WriteError::Refused(Refusal::Leased { until_ms }) => CommandError::Leased { table: table.to_owned(), until_ms },
        WriteError::Refused(refusal) => CommandError::Changed { table: table.to_owned(), refusal },
    }
}

#[cfg(test)]
mod tests;
