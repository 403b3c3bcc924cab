//! How a sweep begins: the lease is taken and the cursor read, in one write; or it is said why not.

use super::engine::{Engine, Job, Run};
use super::lease::Held;
use super::report::{Outcome, PAUSED_BY_HAND, Reason, TableReport};
use crate::cursor::{
    Acquire, Change, CursorStore, Item, Key, Listing, Moved, Refusal, Standing, StoreError, Unreadable, Write, WriteError,
};
use crate::failure::{Failure, Retry};
use std::time::Duration;

/// Of the poll interval, the part that must have passed since the last start for a tick to be due: a schedule is never
/// exact, and a tick that comes a moment early is not to be lost.
const DUE_PERCENT: u128 = 90;

/// Tries of one write whose answer was lost or refused for now.
const WRITE_TRIES: u32 = 3;

/// The acquire found the table dead too often, and parked it.
pub(super) fn not_taken(item: &Item, report: &mut TableReport) {
    report.outcome = Outcome::Parked;
    report.phase = Some(item.progress.phase);
    report.cursor.clone_from(&item.progress.cursor);
    if let Standing::Parked(parked) = &item.standing {
        report.reason = Some(Reason { code: parked.code.clone(), message: parked.message.clone() });
    }
}

/// Why a sweep does not begin.
pub(super) enum NotBegun {
    Refused(Refusal),
    Failed(Failure),
}

impl NotBegun {
    pub(super) fn describe(self, report: &mut TableReport) {
        let table = format!("{}/{}", report.connector, report.table);
        let (outcome, code, message) = match self {
            Self::Failed(failure) if failure.retry == Retry::Never => (Outcome::Parked, failure.code.to_string(), failure.message),
            Self::Failed(failure) => (Outcome::Failed, failure.code.to_string(), failure.message),
            Self::Refused(Refusal::Parked(parked)) => (Outcome::Parked, parked.code, parked.message),
            Self::Refused(refusal @ Refusal::Paused(_)) => {
                let how = format!("{table}: {refusal}; `tablesweep cursor resume` lets it go on");
                (Outcome::Paused, PAUSED_BY_HAND.to_owned(), how)
            }
            Self::Refused(Refusal::Leased { until_ms: i64::MAX }) => {
                (Outcome::Skipped, "Cursor.Leased".to_owned(), format!("{table}: another process sweeps it now"))
            }
            Self::Refused(refusal @ Refusal::Leased { .. }) => {
                (Outcome::Skipped, "Cursor.Leased".to_owned(), format!("{table}: {refusal}"))
            }
            Self::Refused(refusal @ Refusal::NotDue { .. }) => (Outcome::Skipped, "Sweep.NotDue".to_owned(), format!("{table}: {refusal}")),
            Self::Refused(refusal) => (Outcome::Failed, "Cursor.Conflict".to_owned(), format!("{table}: {refusal}")),
        };
        report.outcome = outcome;
        report.reason = Some(Reason { code, message });
    }
}

impl From<WriteError> for NotBegun {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(refusal) => Self::Refused(refusal),
            WriteError::Store(error) => Self::Failed(error.into()),
        }
    }
}

/// Takes the lease and reads the cursor, in one write; creates the item when there is none, and says so if the table had
/// another cursor before.
pub(super) async fn acquire(engine: &Engine, job: &Job, run: &Run, key: &Key, owner: &str) -> Result<(Item, Option<Reason>), NotBegun> {
    let due = job.table.poll_interval().as_millis() * DUE_PERCENT / 100;
    let wish = || {
        let now_ms = engine.host.now_ms();
        Change::Acquire(Acquire {
            owner: owner.to_owned(),
            until_ms: run.lease.until_ms(now_ms),
            now_ms,
            scheduled: run.scheduled.then(|| u64::try_from(due).unwrap_or(u64::MAX)),
        })
    };
    engine.left.settle(engine, key).await;
    let mut remark = None;
    let item = match write(engine, key, wish()).await {
        Err(WriteError::Refused(Refusal::Missing)) => {
            remark = refuse_moved(&*engine.store, job).await?;
            match write(engine, key, Change::Create(job.table.identity().clone())).await {
                Ok(_) | Err(WriteError::Refused(Refusal::Exists)) => {}
                Err(error) => return Err(error.into()),
            }
            write(engine, key, wish()).await?
        }
        other => other?,
    };
    let identity = job.table.identity();
    let held = Held::from_item(&item, owner);
    if let Some(moved) = identity.moved(&item.identity) {
        // The id field is not in the key. Give the lease back as it was found.
        if let Some(held) = held {
            write(engine, key, Change::Release(held.hold(), item.progress.clone(), item.standing.clone())).await?;
        }
        return Err(NotBegun::Failed(moved_failure(job, &moved)));
    }
    match held {
        Some(held) if item.identity.alias != identity.alias => {
            let (connector, table, former) = (&identity.connector, &identity.alias, &item.identity.alias);
            tracing::info!(connector, table, former, "the table has another alias now; its cursor goes on");
            Ok((write(engine, key, Change::Rename(held.hold(), identity.alias.clone())).await?, remark))
        }
        _ => Ok((item, remark)),
    }
}

/// Refuses a table whose alias meant another place before; tells of one whose query was another.
///
/// A cursor that lies in the place of any table of the documents is that table's, and says nothing about this one: its alias
/// is the one under which it was swept last, and was given to this table since.
async fn refuse_moved(store: &dyn CursorStore, job: &Job) -> Result<Option<Reason>, NotBegun> {
    let identity = job.table.identity();
    let Listing { items, unreadable } = store.survey(&identity.connector).await.map_err(|error| NotBegun::Failed(error.into()))?;
    let is_former = |key: &Key, alias: Option<&str>| !job.cursors.contains(key) && alias.is_none_or(|alias| alias == identity.alias);
    // Of what cannot be read it is not known whose it is, unless it says so.
    let name = |unreadable: &Unreadable| unreadable.identity.as_ref().map(|identity| identity.alias.clone());
    if let Some(unreadable) = unreadable.iter().find(|unreadable| is_former(&unreadable.key, name(unreadable).as_deref())) {
        return Err(NotBegun::Failed(unreadable.error().into()));
    }
    let former: Vec<&Item> = items.iter().filter(|item| is_former(&item.identity.key(), Some(&item.identity.alias))).collect();
    match former.iter().find_map(|item| identity.moved(&item.identity)) {
        Some(moved) => Err(NotBegun::Failed(moved_failure(job, &moved))),
        None => Ok(former.first().map(|former| changed_query(job, former))),
    }
}

fn changed_query(job: &Job, former: &Item) -> Reason {
    let identity = job.table.identity();
    let message = format!(
        "{}/{} (table {}): the query changed, and a changed query has a cursor of its own: this sweep starts where the document says. The former \
         cursor is kept at {}; `tablesweep status` lists it, and `tablesweep cursor rewind --forward` skips what it has delivered",
        identity.connector,
        identity.alias,
        identity.table,
        former.identity.key().place
    );
    Reason { code: "Cursor.ChangedQuery".to_owned(), message }
}

fn moved_failure(job: &Job, moved: &Moved) -> Failure {
    let identity = job.table.identity();
    Failure::new(
        "Cursor.Moved",
        Retry::NextTick,
        format!(
            "{}/{}: the stored cursor has {} {:?} and the document says {:?}. Rows could be skipped or sent again, so nothing is swept. \
             Put the document back, or start anew with `tablesweep cursor reset --connector {} --table {}`, or carry the cursor over with \
             `tablesweep cursor import`",
            identity.connector, identity.alias, moved.what, moved.was, moved.is, identity.connector, identity.alias
        ),
    )
}

/// One write, sent again under the same id when its answer was lost or the store was busy.
pub(super) async fn write(engine: &Engine, key: &Key, change: Change) -> Result<Item, WriteError> {
    let write = Write { id: engine.host.nonce(), change };
    let mut tries = 1;
    loop {
        match engine.store.write(key, &write).await {
            Err(WriteError::Store(StoreError::Unreachable { .. } | StoreError::Busy { .. })) if tries < WRITE_TRIES => {
                let pause = engine.host.jitter(200 << tries);
                tokio::time::sleep(Duration::from_millis(pause)).await;
                tries += 1;
            }
            settled => return settled,
        }
    }
}
