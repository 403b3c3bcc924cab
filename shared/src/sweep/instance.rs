//! What is known about a whole instance: that it refuses our credentials.
//!
//! An account can be locked by failed logins. Twenty tables in four functions, each trying on its own twice a minute,
//! would do that. So a refused login is kept once per instance in the cursor store, read once per invocation, and a new
//! try is claimed by a conditional write: of all invocations that find the pause over, one goes ahead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::engine::{Engine, Job, Run};
use crate::cursor::{CursorStore, Expect, Parked, Standing};
use crate::failure::{Failure, Retry};

/// The name of the blob in the instance's partition.
const PLACE: &str = "login";

/// For this long after a claim others wait for the outcome of the claimed try, in milliseconds.
const CLAIM_MS: i64 = 60_000;

/// The login state of the instances of one invocation.
#[derive(Debug, Default)]
pub(super) struct Instances {
    known: BTreeMap<String, Known>,
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
        let mut known = BTreeMap::new();
        for job in jobs {
            let instance = job.table.identity().instance.clone();
            if known.contains_key(&instance) {
                continue;
            }
            // A store that does not answer now will not answer the acquire either, and says so there.
            if let Ok(Some(found)) = find(engine, &instance, run).await {
                known.insert(instance, found);
            }
        }
        Self { known }
    }

    /// Why nothing may be asked of the instance now.
    pub(super) fn refuses(&self, instance: &str) -> Option<Failure> {
        let known = self.known.get(instance).filter(|known| known.blocks)?;
        let parked = &known.refused.parked;
        Some(Failure {
            code: parked.code.clone().into(),
            message: format!("{} (not tried again yet, so that the account is not locked)", parked.message),
            retry: Retry::Never,
            scope: crate::failure::Scope::Instance,
        })
    }

    /// Gathers what a table found out. A refusal outweighs an acceptance by another table.
    pub(super) fn note(&self, verdicts: &mut BTreeMap<String, Verdict>, instance: String, verdict: Option<Verdict>) {
        match verdict {
            Some(refused @ Verdict::Refused(_)) => {
                verdicts.insert(instance, refused);
            }
            Some(Verdict::Accepted) => {
                verdicts.entry(instance).or_insert(Verdict::Accepted);
            }
            None => {}
        }
    }

    /// Keeps what changed.
    pub(super) async fn store(&self, engine: &Engine, verdicts: BTreeMap<String, Verdict>) {
        for (instance, verdict) in verdicts {
            let known = self.known.get(&instance);
            let stored = match (&verdict, known) {
                (Verdict::Accepted, None) => Ok(()),
                (Verdict::Accepted, Some(_)) => engine.store.remove_blob(&partition(&instance), PLACE).await,
                (Verdict::Refused(failure), _) => {
                    let before = known.map_or(Standing::Active, |known| Standing::Parked(known.refused.parked.clone()));
                    let parked = Parked::after(&before, &failure.code, failure.message.clone(), engine.host.now_ms());
                    put(&*engine.store, &instance, &Refused { parked }, Expect::Any).await.map(|_| ())
                }
            };
            if let Err(error) = stored {
                tracing::warn!(instance, %error, "the login state of the instance could not be stored; the next tick may try again too early");
            }
        }
    }
}

async fn find(engine: &Engine, instance: &str, run: &Run) -> Result<Option<Known>, crate::cursor::StoreError> {
    let Some(blob) = engine.store.get_blob(&partition(instance), PLACE).await? else { return Ok(None) };
    // What cannot be read was written by another version and says nothing that a fresh try would not.
    let Ok(refused) = serde_json::from_slice::<Refused>(&blob.bytes) else { return Ok(None) };
    let now_ms = engine.host.now_ms();
    if run.scheduled && refused.parked.next_try_ms > now_ms {
        return Ok(Some(Known { refused, blocks: true }));
    }
    let mut claimed = refused.clone();
    claimed.parked.next_try_ms = now_ms.saturating_add(CLAIM_MS);
    let is_ours = put(&*engine.store, instance, &claimed, Expect::Revision(blob.revision)).await?.is_some();
    let blocks = run.scheduled && !is_ours;
    Ok(Some(Known { refused, blocks }))
}

async fn put(store: &dyn CursorStore, instance: &str, refused: &Refused, expect: Expect) -> Result<Option<u64>, crate::cursor::StoreError> {
    let bytes = serde_json::to_vec(refused).expect("strings and numbers are representable in JSON");
    store.put_blob(&partition(instance), PLACE, &bytes, expect, None).await
}

fn partition(instance: &str) -> String {
    format!("@{instance}")
}
