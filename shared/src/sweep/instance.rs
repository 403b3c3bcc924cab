//! What is known about a whole instance: which accounts it refuses, and how many requests it still takes.
//!
//! Both lie beside each other in the cursor store and are read together, once per invocation. They are the server's, whatever database
//! on it a table is in: somebody who signs in to five databases of one server has one account, which five refused logins could lock.
//! (A user of a contained database who has a namesake in another counts as the same one. The one waits for the other's next try, at
//! worst, and no longer.)
//!
//! An account can be locked by failed logins. Twenty tables in four functions, each trying on its own twice a minute,
//! would do that. So a refused login is kept once per account in the cursor store, read once per invocation, and a new
//! try is claimed by a conditional write: of all invocations that find the pause over, one goes ahead. Connectors that sign in as
//! somebody else know nothing of it: they are neither kept from trying by it, nor do they show that the login is good again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::engine::{Engine, Job, Run};
use super::requests::{self, Hourly, Requests};
use crate::cursor::{Blob, CursorStore, Expect, Identity, Parked, Standing, StoreError, server_of};
use crate::failure::{Failure, Retry};
use crate::source::Table;

/// The names of the blobs in the instance's partition; that of a login is followed by its account.
const LOGIN: &str = "login";
const REQUESTS: &str = "requests";

/// How often the count of requests is merged anew because another invocation wrote its own in between.
const MERGES: u32 = 8;

/// For this long after a claim others wait for the outcome of the claimed try, in milliseconds.
const CLAIM_MS: i64 = 60_000;

/// The state of the instances of one invocation.
#[derive(Debug, Default)]
pub(super) struct Instances {
    known: BTreeMap<Account, Known>,
    /// By server.
    hourly: BTreeMap<String, Arc<Hourly>>,
}

/// Somebody who signs in at a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Account {
    server: String,
    /// See [`Table::account`].
    name: String,
}

impl Account {
    pub(super) fn of(table: &dyn Table) -> Self {
        Self { server: table.identity().server().to_owned(), name: table.account().to_owned() }
    }

    /// Where the store keeps that it was refused.
    fn place(&self) -> String {
        format!("{LOGIN}#{}", self.name)
    }
}

#[derive(Debug)]
struct Known {
    refused: Refused,
    blocks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refused {
    parked: Parked,
}

/// What one table found out about its instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered as to a known user.
    Accepted,
    /// It refused the login.
    Refused(Failure),
}

impl Instances {
    /// Reads what the store knows about the instances of `jobs`, and claims the tries that are due.
    pub(super) async fn load(engine: &Engine, jobs: &[Job], run: &Run) -> Self {
        let accounts: BTreeSet<Account> = jobs.iter().map(|job| Account::of(&*job.table)).collect();
        let mut loaded = Self::default();
        // Accounts of one server follow each other.
        let (mut server, mut blobs) = (None, BTreeMap::new());
        for account in accounts {
            if server.as_ref() != Some(&account.server) {
                // A store that does not answer now will not answer the acquire either, and says so there.
                let listed = engine.store.list_blobs(&partition(&account.server)).await.unwrap_or_default();
                blobs = listed.into_iter().collect::<BTreeMap<String, Blob>>();
                let hourly = blobs.get(REQUESTS).map_or_else(Hourly::default, |blob| Hourly::read(&blob.bytes));
                loaded.hourly.insert(account.server.clone(), Arc::new(hourly));
                server = Some(account.server.clone());
            }
            if let Some(blob) = blobs.get(&account.place())
                && let Ok(Some(found)) = read(engine, &account, blob, run).await
            {
                loaded.known.insert(account, found);
            }
        }
        loaded
    }

    /// The requests that a table may make.
    pub(super) fn requests(&self, table: &Identity) -> Requests {
        Requests::new(self.hourly.get(table.server()).cloned().unwrap_or_default(), &table.connector)
    }

    /// Why no request can be made for this table now: the hourly allowance of its account is spent.
    pub(super) fn has_spent(&self, engine: &Engine, table: &Identity) -> Option<super::Reason> {
        let now_ms = engine.host.now_ms();
        let spent = self.hourly.get(table.server())?.spent(&table.connector, now_ms)?;
        let message = format!("{}/{} (table {}): {}", table.connector, table.alias, table.table, spent.text(now_ms));
        Some(super::Reason { code: requests::CODE.to_owned(), message })
    }

    /// Why this account may ask nothing of its instance now.
    pub(super) fn refuses(&self, account: &Account) -> Option<Failure> {
        let known = self.known.get(account).filter(|known| known.blocks)?;
        let parked = &known.refused.parked;
        Some(Failure {
            code: parked.code.clone().into(),
            message: format!("{} (not tried again yet, so that the account is not locked)", parked.message),
            retry: Retry::Never,
            scope: crate::failure::Scope::Instance,
        })
    }

    /// Gathers what a table found out. A refusal outweighs an acceptance by another table of the account.
    pub(super) fn note(&self, verdicts: &mut BTreeMap<Account, Verdict>, account: Account, verdict: Option<Verdict>) {
        match verdict {
            Some(refused @ Verdict::Refused(_)) => {
                verdicts.insert(account, refused);
            }
            Some(Verdict::Accepted) => {
                verdicts.entry(account).or_insert(Verdict::Accepted);
            }
            None => {}
        }
    }

    /// Keeps what changed.
    pub(super) async fn store(&self, engine: &Engine, verdicts: BTreeMap<Account, Verdict>) {
        self.store_verdicts(engine, verdicts).await;
        for (server, hourly) in self.hourly.iter().filter(|(_, hourly)| hourly.is_changed()) {
            if let Err(error) = merge(engine, server, hourly).await {
                tracing::warn!(server, %error, "the count of requests could not be stored; the instance may refuse some within this hour");
            }
        }
    }

    async fn store_verdicts(&self, engine: &Engine, verdicts: BTreeMap<Account, Verdict>) {
        for (account, verdict) in verdicts {
            let known = self.known.get(&account);
            let server = &account.server;
            let stored = match (&verdict, known) {
                (Verdict::Accepted, None) => Ok(()),
                (Verdict::Accepted, Some(_)) => engine.store.remove_blob(&partition(server), &account.place()).await,
                (Verdict::Refused(failure), _) => {
                    let before = known.map_or(Standing::Active, |known| Standing::Parked(known.refused.parked.clone()));
                    let parked = Parked::after(&before, &failure.code, failure.message.clone(), engine.host.now_ms());
                    put(&*engine.store, &account, &Refused { parked }, Expect::Any).await.map(|_| ())
                }
            };
            if let Err(error) = stored {
                tracing::warn!(server, %error, "the state of the login could not be stored; the next tick may try again too early");
            }
        }
    }
}

/// Adds what was counted to what others have stored meanwhile.
async fn merge(engine: &Engine, server: &str, hourly: &Hourly) -> Result<(), StoreError> {
    for tries in 0..MERGES {
        let stored = engine.store.get_blob(&partition(server), REQUESTS).await?;
        let expect = stored.as_ref().map_or(Expect::Absent, |blob| Expect::Revision(blob.revision));
        let (bytes, ends_ms) = hourly.merged(stored.as_ref().map(|blob| blob.bytes.as_slice()), engine.host.now_ms());
        if engine.store.put_blob(&partition(server), REQUESTS, &bytes, expect, Some(ends_ms)).await?.is_some() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(engine.host.jitter(20 << tries))).await;
    }
    let detail = format!("the count of requests of {server} changes faster than it can be written");
    Err(StoreError::Busy { store: engine.store.name().to_owned(), detail })
}

async fn read(engine: &Engine, account: &Account, blob: &Blob, run: &Run) -> Result<Option<Known>, StoreError> {
    // What cannot be read was written by another version and says nothing that a fresh try would not.
    let Ok(refused) = serde_json::from_slice::<Refused>(&blob.bytes) else { return Ok(None) };
    let now_ms = engine.host.now_ms();
    if run.scheduled && refused.parked.next_try_ms > now_ms {
        return Ok(Some(Known { refused, blocks: true }));
    }
    let mut claimed = refused.clone();
    claimed.parked.next_try_ms = now_ms.saturating_add(CLAIM_MS);
    let is_ours = put(&*engine.store, account, &claimed, Expect::Revision(blob.revision)).await?.is_some();
    let blocks = run.scheduled && !is_ours;
    Ok(Some(Known { refused, blocks }))
}

async fn put(store: &dyn CursorStore, account: &Account, refused: &Refused, expect: Expect) -> Result<Option<u64>, StoreError> {
    let bytes = serde_json::to_vec(refused).expect("strings and numbers are representable in JSON");
    store.put_blob(&partition(&account.server), &account.place(), &bytes, expect, None).await
}

/// The refused logins that are kept for the server of an instance, of whatever account, for whoever wants to know why nothing is swept.
///
/// # Errors
/// The store does not answer.
pub async fn refused_logins(store: &dyn CursorStore, instance: &str) -> Result<Vec<Parked>, StoreError> {
    let blobs = store.list_blobs(&partition(instance)).await?;
    let logins = blobs.iter().filter(|(place, _)| is_login(place));
    Ok(logins.filter_map(|(_, blob)| Some(serde_json::from_slice::<Refused>(&blob.bytes).ok()?.parked)).collect())
}

/// Forgets them: the next sweep of any table of the server signs in again.
///
/// # Errors
/// The store does not answer.
pub async fn forget_logins(store: &dyn CursorStore, instance: &str) -> Result<(), StoreError> {
    let partition = partition(instance);
    for (place, _) in store.list_blobs(&partition).await?.iter().filter(|(place, _)| is_login(place)) {
        store.remove_blob(&partition, place).await?;
    }
    Ok(())
}

fn is_login(place: &str) -> bool {
    place.strip_prefix(LOGIN).is_some_and(|account| account.is_empty() || account.starts_with('#'))
}

/// Where the store keeps what is known about the server of `instance`.
fn partition(instance: &str) -> String {
    format!("@{}", server_of(instance))
}
