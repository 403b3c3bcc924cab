//! The commands: decided on a reading, told in words, then carried out if nothing changed since.
//!
//! [`Operator::prepare`] reads and refuses; its [`Prepared::announcement`] is what a person is asked to confirm.
//! [`Operator::carry_out`] then does it by conditional writes, none of which takes effect while a sweep holds the lease. Where what was
//! confirmed depends on where the table stood, the write says so: a rewind takes effect on the revision that was read and on no
//! other, and an accepted schema on the very difference that was told. The other orders mean the same wherever the table stands by then.
//!
//! A table's cursor is the one that lies in its place ([`Found`]). What keeps a table from being swept, a cursor of another place
//! under its alias or something that cannot be read, is in the way of every command but the two that replace it: `reset`
//! and `import`.

mod announce;
mod error;
mod remove;
mod topic_schema;

use std::time::Duration;

use self::announce::Known;
use super::audit::{self, Audit};
use super::place::{Finding, Found, Place, whose};
use super::rfc3339;
use crate::cursor::{
    Change, CursorStore, Expect, Identity, Import, Item, Key, Parked, Paused, Position, Refusal, Rewind, Standing, StoreError, Unreadable,
    Waiting, Write, WriteError, baseline_digest,
};
use crate::host::Host;
use crate::source::{BASELINE, FOUND_SCHEMA, SCHEMA_CHANGED};
use crate::sweep::{forget_logins, forget_siblings, forget_window, refused_logins};

pub use error::CommandError;
pub use remove::Removal;
pub use topic_schema::TopicSchema;

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
        /// The baseline that it names, if that was exported too.
        baseline: Option<String>,
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

/// Why a table is paused that is being reset. Where a reset was cut off, the next one finds it so and ends what was begun.
const RESETTING: &str = "`tablesweep cursor reset` is under way, or was cut off: then give it again";

/// Whether a table waits for an operator or its next try.
fn is_held(standing: &Standing) -> bool {
    matches!(standing, Standing::Paused(_) | Standing::Parked(_))
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
    /// The schema that is accepted.
    found: Option<Shown>,
    /// Why an operator holds what is replaced, and so what takes its place.
    held: Option<String>,
    /// What will happen, in words.
    pub announcement: String,
    /// Whether there is anything to do.
    pub changes: bool,
}

/// The schema that a waiting table was found with, as it was shown.
#[derive(Debug, Clone)]
struct Shown {
    told: Waiting,
    digest: String,
}

/// What keeps a table from being swept, and goes when it starts anew.
#[derive(Debug, Clone, Default)]
struct InTheWay {
    /// Cursors of other places under the alias.
    former: Vec<Item>,
    /// What cannot be read.
    unreadable: Vec<Unreadable>,
}

impl InTheWay {
    /// The same, and `own`, which goes too.
    fn with(mut self, own: Option<&Item>) -> Self {
        self.former.splice(0..0, own.cloned());
        self
    }

    /// An operator's hold on what is replaced: `own`, and all that is in the way.
    fn held_with(&self, own: Option<&Item>) -> Option<Paused> {
        own.into_iter().chain(&self.former).find_map(|item| match &item.standing {
            Standing::Paused(paused) if paused.reason != RESETTING => Some(paused.clone()),
            _ => None,
        })
    }
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
        for item in own.into_iter().chain(found.former()).chain(found.others()) {
            self.refuse_leased(&place.name(), item)?;
        }
        let in_the_way = self.in_the_way(place, &order, &found)?;
        let held = in_the_way.held_with(own);
        // Where a secret hides a part of the place, a sweep may look for the cursor elsewhere than where it lies: then it goes, and is not
        // emptied where it is. One that is held stays, since it is what holds the table.
        let goes = matches!(order, Order::Reset) && place.identity().is_none() && held.is_none();
        let (own, in_the_way) = if goes { (None, in_the_way.with(own)) } else { (own, in_the_way) };
        let login = match order {
            Order::Resume => self.refused_login(place, own).await?,
            _ => None,
        };
        let held = held.map(|held| held.reason);
        let known = Known { place, own, in_the_way: &in_the_way, held: held.as_deref(), login: login.as_ref().map(|(_, parked)| parked) };
        let (announcement, changes) = announce::announce(self, &known, &order)?;
        let found = match (&order, own) {
            (Order::AcceptSchema, Some(item)) => self.found_schema(&place.name(), item).await?,
            _ => None,
        };
        let login = login.map(|(instance, _)| instance);
        Ok(Prepared { place: place.clone(), own: own.cloned(), order, in_the_way, login, found, held, announcement, changes })
    }

    /// The instance of a table, if it has refused a login, and the refusal that lasts longest.
    async fn refused_login(&self, place: &Place, own: Option<&Item>) -> Result<Option<(String, Parked)>, CommandError> {
        let Some(instance) = place.instance.clone().or_else(|| own.map(|item| item.identity.instance.clone())) else { return Ok(None) };
        let refused = refused_logins(self.store, &instance).await?;
        Ok(refused.into_iter().max_by_key(|refused| refused.next_try_ms).map(|refused| (instance, refused)))
    }

    /// The order, with an exported cursor under the alias that its table has now.
    fn at_its_place(&self, place: &Place, order: Order) -> Result<Order, CommandError> {
        let Order::Import { mut item, forward, baseline } = order else { return Ok(order) };
        if let Some((_, Finding::Moved(moved))) = whose(self.places, &item.identity) {
            return Err(CommandError::Elsewhere { table: place.name(), moved });
        }
        item.identity.alias.clone_from(&place.alias);
        Ok(Order::Import { item, forward, baseline })
    }

    /// What has to go for `order`, if it is one that replaces what is there.
    ///
    /// Of several cursors that fit the place as far as it is known, all but the one that stays are of a former place.
    fn in_the_way(&self, place: &Place, order: &Order, found: &Found<'_>) -> Result<InTheWay, CommandError> {
        let starts_anew = match order {
            Order::Reset => true,
            Order::Import { item, .. } => matches!(whose(self.places, &item.identity), Some((_, Finding::Current))),
            _ => false,
        };
        if starts_anew {
            let unreadable = if found.own().is_none() { found.unreadable.as_slice() } else { &[] };
            let stays = match order {
                Order::Import { item, .. } => Some(&item.identity),
                _ => found.own().map(|item| &item.identity),
            };
            let fit = found.own().into_iter().chain(found.others());
            let moved =
                fit.filter(|item| stays.is_some_and(|stays| stays.moved(&item.identity).is_some() && stays.key() != item.identity.key()));
            return Ok(InTheWay {
                former: found.former().chain(moved).cloned().collect(),
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
        let Prepared { place, order, own, in_the_way, login, found, held, changes, .. } = prepared;
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
        let mut key = own.as_ref().map(|item| item.identity.key());
        outcome.after = match order {
            Order::AcceptSchema => match (&own, found) {
                (Some(item), Some(found)) => self.accept(&table, item, found).await?.progress.cursor,
                _ => return Err(self.missing(&place)),
            },
            Order::Reset => {
                if let Some(item) = own.as_ref().or(in_the_way.former.first().filter(|_| held.is_some())) {
                    self.reset(&place, item, own.as_ref(), held).await?;
                }
                None
            }
            // The login was all there was to resume.
            Order::Resume if !own.as_ref().is_some_and(|item| is_held(&item.standing)) => outcome.before.clone(),
            order => {
                if let (Order::Import { item, .. }, Some(reason)) = (&order, held) {
                    self.hold(&table, &item.identity, own.as_ref(), reason).await?;
                }
                let after = self.change(&place, order, own.as_ref()).await?;
                key = Some(after.identity.key());
                after.progress.cursor
            }
        };
        for item in &in_the_way.former {
            self.take_away(&table, &item.identity.key()).await?;
        }
        self.keep_audit(&outcome, key).await;
        Ok(outcome)
    }

    /// Starts the table of `like` anew in its place, where `own` lies. What lies beside it goes first, and no sweep comes in between:
    /// it could put there what it begins with. Until all is done an operator holds the table; `held` holds it on.
    async fn reset(&self, place: &Place, like: &Item, own: Option<&Item>, held: Option<String>) -> Result<(), CommandError> {
        let (table, identity, stays_held) = (place.name(), place.identity_like(&like.identity), held.is_some());
        self.hold(&table, &identity, own, held.unwrap_or_else(|| RESETTING.to_owned())).await?;
        let key = identity.key();
        forget_siblings(self.store, &key).await?;
        self.write(&table, &key, Change::Reset { identity, now_ms: self.host.now_ms() }).await?;
        if !stays_held {
            self.write(&table, &key, Change::Resume { now_ms: self.host.now_ms() }).await?;
        }
        Ok(())
    }

    /// Holds a table, of which `own` lies in the store, before its cursor is replaced.
    async fn hold(&self, table: &str, identity: &Identity, own: Option<&Item>, reason: String) -> Result<(), CommandError> {
        match own {
            Some(own) if matches!(own.standing, Standing::Paused(_)) => return Ok(()),
            Some(_) => {}
            None => self.create(table, identity.clone()).await?,
        }
        self.write(table, &identity.key(), Change::Pause { reason, now_ms: self.host.now_ms() }).await.map(drop)
    }

    /// Makes the item of a table that has none.
    async fn create(&self, table: &str, identity: Identity) -> Result<(), CommandError> {
        match self.write(table, &identity.key(), Change::Create(identity.clone())).await {
            Ok(_) | Err(CommandError::Changed { refusal: Refusal::Exists, .. }) => Ok(()),
            Err(error) => Err(error),
        }
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
                self.create(&table, identity).await?;
                key
            }
        };
        let mut baseline = None;
        let change = match order {
            Order::Rewind(Rewinding { to, request_id, .. }) => {
                Change::Rewind(Rewind { to, now_ms, revision: own.map(|item| item.revision), request_id })
            }
            Order::Pause { reason } => Change::Pause { reason, now_ms },
            Order::Resume | Order::Reset | Order::AcceptSchema => Change::Resume { now_ms },
            Order::Import { item, baseline: exported, .. } => {
                baseline = exported;
                Change::Import(Import { item: *item, now_ms })
            }
        };
        // The dedup window is gone with the write, whatever lies beside the item: the item names none.
        let after = self.write(&table, &key, change).await?;
        if let Some(baseline) = baseline {
            // After the cursor that names it: an import that is refused leaves the one that is there. If it is cut off here it can be given again.
            self.store.put_blob(&key.connector, &key.sibling(BASELINE), baseline.as_bytes(), Expect::Any, None).await?;
        }
        Ok(after)
    }

    /// The schema that a table waits with.
    async fn found_schema(&self, table: &str, item: &Item) -> Result<Option<Shown>, CommandError> {
        let Standing::Waiting(told) = &item.standing else { return Ok(None) };
        if told.code != SCHEMA_CHANGED {
            return Ok(None);
        }
        let digest = self.found_digest(table, &item.identity.key()).await?;
        Ok(Some(Shown { told: told.clone(), digest }))
    }

    async fn found_digest(&self, table: &str, key: &Key) -> Result<String, CommandError> {
        match self.store.get_blob(&key.connector, &key.sibling(FOUND_SCHEMA)).await? {
            Some(found) => Ok(baseline_digest(&found.bytes)),
            None => Err(CommandError::NoBaseline {
                table: table.to_owned(),
                why: "what the table was found with is not in this store; the next sweep puts it there",
            }),
        }
    }

    /// Makes the schema that was shown the baseline, by naming it: one write, which may be refused and destroys nothing. Sweeps that
    /// came in between, and found the table as it was shown, are no reason to refuse it.
    async fn accept(&self, table: &str, item: &Item, found: Shown) -> Result<Item, CommandError> {
        let (key, Shown { told, digest }) = (item.identity.key(), found);
        if self.found_digest(table, &key).await? != digest {
            return Err(CommandError::Changed { table: table.to_owned(), refusal: Refusal::Untold });
        }
        self.write(table, &key, Change::Accept { baseline: digest, told, now_ms: self.host.now_ms() }).await
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
