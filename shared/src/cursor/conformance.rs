//! The promises that every store keeps, as tests that any store can be put to.
//!
//! What a write means is said once, by [`apply`](super::apply); a store could still get it wrong in its transaction, in
//! its condition expressions, or in what it does with an answer that never came. So there is one list of promises, and
//! each store runs all of it. A store that keeps them may stand in for any other: what is shown with the store in
//! memory holds in production.
//!
//! [`cursor_store_promises!`](crate::cursor_store_promises) makes one test of each promise. A test brings a [`Bed`]: a
//! place of its own, that can be opened more than once, since much of what is promised is between two processes. All
//! times are given; nothing waits for a clock.
//!
//! Leases end in two ways, [by the clock or with the process](super::LeaseTerm). The promises name both: where a lease
//! has to end, [`Bed`]'s handle is dropped or the time given is that of its end, whichever the store says counts.

mod blobs;
mod items;
mod leases;
mod operators;
mod sweeps;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use super::{
    Acquire, Change, CursorStore, Hold, Identity, Item, Key, LeaseTerm, Position, Progress, Refusal, Standing, StoreError, Write,
    WriteError,
};

/// A place for cursors that nobody else uses, for one promise.
#[async_trait]
pub trait Bed: Send + Sync {
    /// Another handle on the place, as another process would open it. Dropping it is that process's death.
    async fn open(&self) -> Arc<dyn CursorStore>;

    /// Changes the format number of the stored item at `key`, past the store.
    async fn set_format(&self, key: &Key, format: u32);
}

/// One promise.
#[derive(Clone, Copy)]
pub struct Promise {
    /// What is promised.
    pub name: &'static str,
    run: for<'a> fn(&'a dyn Bed) -> BoxFuture<'a, ()>,
}

impl std::fmt::Debug for Promise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Promise {
    /// Puts the store of a fresh bed to the promise.
    ///
    /// # Panics
    /// If it does not keep it, saying in what.
    pub async fn hold(&self, bed: &dyn Bed) {
        (self.run)(bed).await;
    }
}

/// All that a store promises. For a test per promise, see [`cursor_store_promises!`](crate::cursor_store_promises).
pub const PROMISES: &[Promise] = crate::cursor_store_promises!(@list);

/// Puts a store to the promise of this name.
///
/// # Panics
/// If there is no such promise, or the store does not keep it.
pub async fn hold(name: &str, bed: &dyn Bed) {
    let promise = PROMISES.iter().find(|promise| promise.name == name).expect("a promise of this name");
    promise.hold(bed).await;
}

/// Makes a `#[tokio::test]` of each promise, named after it. The argument is an expression that gives a fresh
/// [`Bed`](crate::cursor::conformance::Bed); it may await.
#[macro_export]
macro_rules! cursor_store_promises {
    (@list) => { $crate::cursor_store_promises! { @names list () } };
    (@list () $($part:ident: $($name:ident)+;)+) => {
        &[$($(Promise { name: stringify!($name), run: |bed| Box::pin($part::$name(bed)) }),+),+]
    };
    (@tests ($bed:expr) $($part:ident: $($name:ident)+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let bed = $bed;
                $crate::cursor::conformance::hold(stringify!($name), &bed).await;
            }
        )+)+
    };
    (@names $what:ident $with:tt) => {
        $crate::cursor_store_promises! { @$what $with
            items:
                a_cursor_is_created_once
                a_missing_cursor_takes_no_write_but_create_and_import
                what_is_read_is_what_was_written
                cursors_are_listed_in_the_order_of_their_places
                connectors_with_odd_names_are_kept_apart
                a_cursor_of_a_newer_format_is_refused_naming_its_partition
                a_cursor_of_an_older_format_is_read_and_replaced
                a_cursor_that_cannot_be_read_is_listed_beside_the_others_and_can_be_discarded
                a_removed_cursor_is_gone_and_removing_nothing_is_no_error
                a_cursor_is_not_removed_under_its_holder;
            leases:
                of_two_who_acquire_at_once_one_holds
                a_held_lease_refuses_naming_its_end
                an_ended_lease_is_taken_over_and_its_holder_has_lost
                a_lease_ends_by_the_clock_or_with_its_process_as_the_store_says
                a_renewed_lease_ends_later
                a_tick_before_the_interval_is_not_due
                a_sweep_that_did_not_come_to_the_end_goes_on_before_the_interval_is_over
                a_sweep_that_died_is_taken_over_before_the_interval_is_over
                a_table_that_waits_for_a_mend_is_looked_at_before_its_interval_is_over
                a_start_written_under_a_clock_ahead_delays_nothing
                the_next_try_of_a_parked_table_counts_on_ticks_only
                the_fourth_death_without_progress_parks_in_the_write_that_acquires
                progress_ends_the_count_of_deaths;
            sweeps:
                a_commit_moves_the_cursor_and_counts_the_revision
                a_commit_on_an_old_revision_is_lost
                a_commit_by_another_than_the_holder_is_lost
                a_release_gives_the_lease_back_and_says_how_the_table_stands
                a_renamed_table_keeps_its_cursor
                a_write_that_is_sent_twice_counts_once;
            operators:
                a_paused_table_is_not_swept_until_it_is_resumed
                operators_wait_for_the_holder
                a_rewind_starts_a_backfill_without_a_window
                the_same_request_rewinds_once
                a_rewind_decided_on_an_old_revision_is_lost
                a_reset_starts_anew_and_keeps_counting_revisions
                an_import_creates_or_replaces
                a_schema_is_accepted_while_the_table_waits_for_what_was_told_whatever_ticks_come_between
                a_probe_leaves_nothing_behind
                sixteen_writers_lose_no_update;
            blobs:
                a_blob_is_written_only_if_what_is_expected_holds
                connectors_are_listed_once_each_and_those_of_blobs_alone_are_not
                a_blob_of_a_later_writer_is_not_written_over
                a_blob_of_256_kilobytes_comes_back_as_it_was
                blobs_are_listed_in_order_and_apart_from_cursors
                a_blob_whose_time_is_past_is_not_there
                a_removed_blob_is_gone
                sixteen_writers_of_a_blob_lose_no_update;
        }
    };
    ($bed:expr) => { $crate::cursor_store_promises! { @names tests ($bed) } };
}

/// The time at which the promises begin.
const START: i64 = 1_800_000_000_000;

/// How long their leases last.
const TERM: i64 = 60_000;

/// A table of `connector` that was never swept.
fn identity(connector: &str, table: &str) -> Identity {
    Identity {
        connector: connector.to_owned(),
        alias: table.to_owned(),
        source: "servicenow".to_owned(),
        instance: "acme.service-now.com".to_owned(),
        table: table.to_owned(),
        field: "sys_updated_on".to_owned(),
        id_field: "sys_id".to_owned(),
        fingerprint: Identity::fingerprint_of(&[table, "active=true", "true"]),
    }
}

/// A write with an id of its own.
fn write(change: Change) -> Write {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    Write { id: format!("{:032x}", COUNT.fetch_add(1, Ordering::Relaxed) + 1), change }
}

fn position(number: u64) -> Position {
    Position::new([("sequence", Some(number.to_string()))])
}

fn progress(number: u64) -> Progress {
    Progress { cursor: Some(position(number)), ..Progress::default() }
}

fn hold_of(item: &Item) -> Hold {
    let lease = item.lease.as_ref().expect("a lease");
    Hold { owner: lease.owner.clone(), revision: item.revision }
}

/// One table in a store, through one handle.
struct Table {
    store: Arc<dyn CursorStore>,
    key: Key,
}

impl Table {
    /// The table `incident`, through another handle.
    async fn of(bed: &dyn Bed) -> Self {
        Self { store: bed.open().await, key: identity("servicenow-prod", "incident").key() }
    }

    /// The same, created.
    async fn created(bed: &dyn Bed) -> Self {
        let table = Self::of(bed).await;
        table.write(Change::Create(identity("servicenow-prod", "incident"))).await.expect("the first create");
        table
    }

    async fn write(&self, change: Change) -> Result<Item, WriteError> {
        self.send(&write(change)).await
    }

    async fn send(&self, write: &Write) -> Result<Item, WriteError> {
        self.store.write(&self.key, write).await
    }

    /// Acquires by hand, which no interval and no next try delays.
    async fn acquire(&self, owner: &str, now_ms: i64) -> Result<Item, WriteError> {
        self.write(acquire(owner, now_ms, None)).await
    }

    /// Acquires on a tick, with an interval of a minute.
    async fn tick(&self, owner: &str, now_ms: i64) -> Result<Item, WriteError> {
        self.write(acquire(owner, now_ms, Some(60_000))).await
    }

    async fn release(&self, item: &Item, standing: Standing) -> Item {
        self.write(Change::Release(hold_of(item), item.progress.clone(), standing)).await.expect("the holder releases")
    }

    async fn item(&self) -> Item {
        self.store.read(&self.key).await.expect("a read").expect("the item")
    }

    /// The holder of the lease dies. Returns when others can know.
    fn die(self, item: &Item) -> i64 {
        let lease = item.lease.as_ref().expect("a lease");
        match self.store.lease_term() {
            LeaseTerm::Clock => lease.until_ms,
            LeaseTerm::Process => item.started_ms.expect("a start"),
        }
    }
}

fn acquire(owner: &str, now_ms: i64, scheduled: Option<u64>) -> Change {
    Change::Acquire(Acquire { owner: owner.to_owned(), until_ms: now_ms + TERM, now_ms, scheduled })
}

/// The refusal of a write that must be refused.
fn refusal(result: Result<Item, WriteError>) -> Refusal {
    match result {
        Err(WriteError::Refused(refusal)) => refusal,
        Err(WriteError::Store(error)) => panic!("a refusal was expected, and the store failed: {error}"),
        Ok(item) => panic!("a refusal was expected, and the write was taken: {item:?}"),
    }
}

/// The store's error for a call that must fail in the store.
fn format_error<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(error @ StoreError::Format { .. }) => error.to_string(),
        other => panic!("a refusal of the format was expected: {other:?}"),
    }
}
