//! The cursor store of a laptop or a single machine: one SQLite file.
//!
//! A write is a transaction that holds the database's write lock from its first read (`BEGIN IMMEDIATE`): read the
//! item, ask [`apply`], store the answer. The file runs in WAL mode with `synchronous=FULL`: a cursor whose commit was
//! answered survives a power cut.
//!
//! **A lease lives as long as its holder, not as long as the clock says.** The program runs for seconds or for days
//! and may be suspended with the lid of the laptop; no length of time is right for all of that. Each store that takes a
//! lease keeps an operating-system lock on a file of its own beside the database, and the row names that file
//! ([`holders`]). The lock ends with the process, however it ends. So whoever comes next can tell:
//!
//! * the holder is alive: its lease is held, whatever the time written in it;
//! * the holder is dead: [`apply`] is shown the item without its lease, and the next sweep begins at once.
//!
//! This works among the processes of one machine. On a network drive neither SQLite's locks nor these can be trusted;
//! several machines need DynamoDB.

mod file;
mod holders;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use self::file::Place;
use self::holders::Holders;
use super::listing::part;
use super::{
    Blob, Change, CursorStore, Expect, Item, Key, LeaseTerm, Listing, PROBE, Refusal, StoreError, Write, WriteError, apply, decode, encode,
};
use crate::host::Host;

/// A store in an SQLite file. Leases that were taken through it end when it is dropped.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: Place,
    host: Host,
    /// The lock makes the calls of this process wait for each other here rather than in SQLite's busy handler.
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    holders: Holders,
}

impl SqliteStore {
    /// Opens the database at `path`, and creates it if it is not there.
    ///
    /// # Errors
    /// [`StoreError::Denied`] if the folder is missing or closed to us, or the file belongs to another program or to
    /// a newer version of this one.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, Host::system()).await
    }

    /// The same, forgetting blobs by the clock of `host`.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_with(path: impl AsRef<Path>, host: Host) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        blocking(move || {
            let (place, connection) = file::open(&path)?;
            let holders = Holders::new(place.file(), host.nonce());
            Ok(Self { shared: Arc::new(Shared { place, host, open: Mutex::new(Open { connection, holders }) }) })
        })
        .await
    }

    /// Opens the database at `path` for a look; `None` if there is none yet. Nothing is written, whatever is asked of it, and what it
    /// tells may be as it was when it was opened.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn look(path: impl AsRef<Path>) -> Result<Option<Self>, StoreError> {
        let path = path.as_ref().to_owned();
        blocking(move || {
            let Some((place, connection)) = file::look_at(&path)? else { return Ok(None) };
            let holders = Holders::looked_at(place.file());
            Ok(Some(Self { shared: Arc::new(Shared { place, host: Host::system(), open: Mutex::new(Open { connection, holders }) }) }))
        })
        .await
    }

    /// Runs `work` where it may block.
    async fn run<T, E>(&self, work: impl FnOnce(&Shared, &mut Open) -> Result<T, E> + Send + 'static) -> Result<T, E>
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            // A panic in here left no transaction open: it is rolled back when it is dropped.
            let mut open = shared.open.lock().unwrap_or_else(PoisonError::into_inner);
            work(&shared, &mut open)
        })
        .await
    }
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        // Nobody cancels the task, so this is a panic of `work`, and it goes on as one.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A stored row: the item, and the lock file of the store that took its lease.
struct Row {
    item: Item,
    holder: Option<String>,
}

fn row(shared: &Shared, connection: &Connection, key: &Key) -> Result<Option<Row>, StoreError> {
    let found = raw(shared, connection, key)?;
    found.map(|(body, holder)| Ok(Row { item: decode(key, &body)?, holder })).transpose()
}

/// The columns of a stored row: the text of the item, and its holder.
fn raw(shared: &Shared, connection: &Connection, key: &Key) -> Result<Option<(String, Option<String>)>, StoreError> {
    connection
        .prepare_cached("SELECT body, holder FROM item WHERE connector = ?1 AND place = ?2")
        .and_then(|mut query| query.query_row(params![key.connector, key.place], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(|error| shared.place.error("read a cursor", &error))
}

/// Begins a transaction that nobody else writes beside.
fn begin<'c>(shared: &Shared, connection: &'c mut Connection) -> Result<Transaction<'c>, StoreError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| shared.place.error("begin a write", &error))
}

fn commit(shared: &Shared, transaction: Transaction<'_>) -> Result<(), StoreError> {
    transaction.commit().map_err(|error| shared.place.error("commit a write", &error))
}

impl Row {
    /// The item as it is to be judged at `now_ms`: without the lease of a dead holder, and with that of a living one
    /// not yet at its end.
    fn judged(&self, holders: &Holders, now_ms: i64) -> Result<Item, StoreError> {
        let mut item = self.alive(holders)?;
        if let Some(lease) = &mut item.lease
            && lease.until_ms <= now_ms
        {
            lease.until_ms = now_ms.saturating_add(1);
        }
        Ok(item)
    }

    /// The item without the lease of a dead holder.
    fn alive(&self, holders: &Holders) -> Result<Item, StoreError> {
        let mut item = self.item.clone();
        if item.lease.is_some() && !holders.is_alive(self.holder.as_deref())? {
            item.lease = None;
        }
        Ok(item)
    }
}

/// The time at which `change` looks whether a lease is held. A holder's own change does not look.
fn looks_at(change: &Change) -> Option<i64> {
    match change {
        Change::Acquire(wish) => Some(wish.now_ms),
        Change::Rewind(rewind) => Some(rewind.now_ms),
        Change::Import(import) => Some(import.now_ms),
        Change::Reset { now_ms, .. } | Change::Pause { now_ms, .. } | Change::Resume { now_ms } | Change::Accept { now_ms, .. } => {
            Some(*now_ms)
        }
        Change::Create(_) | Change::Commit(..) | Change::Renew(..) | Change::Release(..) | Change::Rename(..) => None,
    }
}

fn write_item(shared: &Shared, open: &mut Open, key: &Key, write: &Write) -> Result<Item, WriteError> {
    let Open { connection, holders } = open;
    let transaction = begin(shared, connection)?;
    let before = row(shared, &transaction, key)?;
    let judged = match (&before, looks_at(&write.change)) {
        (Some(row), Some(now_ms)) => Some(row.judged(holders, now_ms)?),
        (Some(row), None) => Some(row.alive(holders)?),
        (None, _) => None,
    };
    let after = apply(judged.as_ref(), write)?;
    if let Some(row) = before.as_ref().filter(|row| row.item.revision == after.revision) {
        // It was done before: nothing is to be written.
        return Ok(row.alive(holders)?);
    }
    let holder = match (&after.lease, &write.change) {
        (None, _) => None,
        (Some(_), Change::Acquire(_)) => Some(holders.own()?.to_owned()),
        (Some(_), _) => before.and_then(|row| row.holder),
    };
    transaction
        .prepare_cached("INSERT OR REPLACE INTO item (connector, place, body, holder) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute(params![key.connector, key.place, encode(&after), holder]))
        .map_err(|error| shared.place.error("write a cursor", &error))?;
    commit(shared, transaction)?;
    Ok(after)
}

fn remove_item(shared: &Shared, open: &mut Open, key: &Key, now_ms: i64) -> Result<(), WriteError> {
    let Open { connection, holders } = open;
    let transaction = begin(shared, connection)?;
    let Some(row) = row(shared, &transaction, key)? else { return Ok(()) };
    if let Some(lease) = row.judged(holders, now_ms)?.lease {
        return Err(Refusal::Leased { until_ms: lease.until_ms }.into());
    }
    delete(shared, &transaction, key)?;
    Ok(commit(shared, transaction)?)
}

fn discard_item(shared: &Shared, open: &mut Open, key: &Key) -> Result<(), WriteError> {
    let Open { connection, holders } = open;
    let transaction = begin(shared, connection)?;
    let Some((body, holder)) = raw(shared, &transaction, key)? else { return Ok(()) };
    if decode(key, &body).is_ok() {
        return Err(Refusal::Exists.into());
    }
    // Whatever the text is, the column says who holds it.
    if holder.is_some() && holders.is_alive(holder.as_deref())? {
        return Err(Refusal::Leased { until_ms: i64::MAX }.into());
    }
    delete(shared, &transaction, key)?;
    Ok(commit(shared, transaction)?)
}

fn delete(shared: &Shared, transaction: &Transaction<'_>, key: &Key) -> Result<(), StoreError> {
    let deleted = transaction.execute("DELETE FROM item WHERE connector = ?1 AND place = ?2", params![key.connector, key.place]);
    deleted.map(drop).map_err(|error| shared.place.error("remove a cursor", &error))
}

fn survey(shared: &Shared, open: &Open, connector: &str) -> Result<Listing, StoreError> {
    let failed = |error| shared.place.error("list cursors", &error);
    let mut query =
        open.connection.prepare_cached("SELECT place, body, holder FROM item WHERE connector = ?1 ORDER BY place").map_err(failed)?;
    let rows = query
        .query_map(params![connector], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?)))
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed)?;
    let mut listing = Listing::default();
    for (place, body, holder) in rows {
        let key = Key { connector: connector.to_owned(), place };
        let read = decode(&key, &body).and_then(|item| Row { item, holder }.alive(&open.holders));
        listing.take(key, read, || part(&body, "identity"))?;
    }
    Ok(listing)
}

fn list_connectors(shared: &Shared, connection: &Connection) -> Result<Vec<String>, StoreError> {
    connection
        .prepare_cached("SELECT DISTINCT connector FROM item ORDER BY connector")
        .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
        .map_err(|error| shared.place.error("list connectors", &error))
}

/// The revision in a column. SQLite counts in `i64`, and only this program writes it.
fn revision(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}

/// A stored blob and whether its time is past.
fn blob(shared: &Shared, connection: &Connection, partition: &str, place: &str) -> Result<Option<(Blob, bool)>, StoreError> {
    let now_ms = shared.host.now_ms();
    connection
        .prepare_cached("SELECT bytes, revision, expires_ms FROM blob WHERE partition = ?1 AND place = ?2")
        .and_then(|mut query| {
            query
                .query_row(params![partition, place], |row| {
                    let expires_ms: Option<i64> = row.get(2)?;
                    Ok((Blob { bytes: row.get(0)?, revision: revision(row, 1)? }, expires_ms.is_some_and(|end| end <= now_ms)))
                })
                .optional()
        })
        .map_err(|error| shared.place.error("read a blob", &error))
}

fn write_blob(
    shared: &Shared,
    connection: &mut Connection,
    (partition, place): (&str, &str),
    bytes: &[u8],
    expect: Expect,
    expires_at_ms: Option<i64>,
) -> Result<Option<u64>, StoreError> {
    let failed = |error| shared.place.error("write a blob", &error);
    let transaction = begin(shared, connection)?;
    let before = blob(shared, &transaction, partition, place)?;
    if !expect.holds(before.as_ref().filter(|(_, past)| !past).map(|(blob, _)| blob.revision)) {
        return Ok(None);
    }
    // A blob whose time is past hands on its count: an old reading of it must not fit the new one.
    let revision = expect.next(before.map_or(0, |(blob, _)| blob.revision));
    transaction
        .prepare_cached("INSERT OR REPLACE INTO blob (partition, place, bytes, revision, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5)")
        .and_then(|mut insert| insert.execute(params![partition, place, bytes, revision.cast_signed(), expires_at_ms]))
        .map_err(failed)?;
    // Others that may be forgotten are, so that the file does not grow for ever.
    transaction
        .prepare_cached("DELETE FROM blob WHERE expires_ms <= ?1 AND NOT (partition = ?2 AND place = ?3)")
        .and_then(|mut delete| delete.execute(params![shared.host.now_ms(), partition, place]))
        .map_err(failed)?;
    commit(shared, transaction)?;
    Ok(Some(revision))
}

fn list_blobs(shared: &Shared, connection: &Connection, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
    connection
        .prepare_cached(
            "SELECT place, bytes, revision FROM blob
             WHERE partition = ?1 AND (expires_ms IS NULL OR expires_ms > ?2) ORDER BY place",
        )
        .and_then(|mut query| {
            query
                .query_map(params![partition, shared.host.now_ms()], |row| {
                    Ok((row.get(0)?, Blob { bytes: row.get(1)?, revision: revision(row, 2)? }))
                })?
                .collect()
        })
        .map_err(|error| shared.place.error("list blobs", &error))
}

#[async_trait]
impl CursorStore for SqliteStore {
    fn name(&self) -> &str {
        self.shared.place.name()
    }

    fn lease_term(&self) -> LeaseTerm {
        LeaseTerm::Process
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        let (key, write) = (key.clone(), write.clone());
        self.run(move |shared, open| write_item(shared, open, &key, &write)).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        let key = key.clone();
        self.run(move |shared, open| row(shared, &open.connection, &key)?.map(|row| row.alive(&open.holders)).transpose()).await
    }

    async fn survey(&self, connector: &str) -> Result<Listing, StoreError> {
        let connector = connector.to_owned();
        self.run(move |shared, open| survey(shared, open, &connector)).await
    }

    async fn connectors(&self) -> Result<Vec<String>, StoreError> {
        self.run(move |shared, open| list_connectors(shared, &open.connection)).await
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        let key = key.clone();
        self.run(move |shared, open| remove_item(shared, open, &key, now_ms)).await
    }

    async fn discard(&self, key: &Key, _now_ms: i64) -> Result<(), WriteError> {
        let key = key.clone();
        self.run(move |shared, open| discard_item(shared, open, &key)).await
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        let (partition, place) = (partition.to_owned(), place.to_owned());
        self.run(move |shared, open| {
            let found = blob(shared, &open.connection, &partition, &place)?;
            Ok(found.filter(|(_, past)| !past).map(|(blob, _)| blob))
        })
        .await
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        let (partition, place, bytes) = (partition.to_owned(), place.to_owned(), bytes.to_owned());
        self.run(move |shared, open| write_blob(shared, &mut open.connection, (&partition, &place), &bytes, expect, expires_at_ms)).await
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        let partition = partition.to_owned();
        self.run(move |shared, open| list_blobs(shared, &open.connection, &partition)).await
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.run(|shared, open| {
            let transaction = begin(shared, &mut open.connection)?;
            transaction
                .execute("INSERT INTO item (connector, place, body, holder) VALUES (?1, ?1, '', NULL)", params![PROBE])
                .and_then(|_| transaction.rollback())
                .map_err(|error| shared.place.error("write a cursor", &error))
        })
        .await
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        let (partition, place) = (partition.to_owned(), place.to_owned());
        self.run(move |shared, open| {
            let done = open.connection.execute("DELETE FROM blob WHERE partition = ?1 AND place = ?2", params![partition, place]);
            done.map(drop).map_err(|error| shared.place.error("remove a blob", &error))
        })
        .await
    }
}
