use std::sync::Arc;

use super::super::audits;
use super::*;
use crate::cursor::memory::MemoryStore;
use crate::cursor::{Acquire, Expect, Hold, Identity, Progress, StoredWindow};
use crate::host::ManualClock;
use crate::operate::place::place;

const NOW: i64 = 1_800_000_000_000;

fn at(stamp: &str) -> Position {
    Position::new([("timestamp", Some(stamp.to_owned())), ("sys_id", Some(String::new()))])
}

fn rewind(to: &str) -> Order {
    Order::Rewind(Rewinding { to: at(to), forward: false, request_id: None })
}

struct Bed {
    store: MemoryStore,
    host: Host,
    clock: Arc<ManualClock>,
}

impl Bed {
    fn new() -> Self {
        let clock = ManualClock::at(NOW);
        let host = Host::with_clock(clock.clone());
        Self { store: MemoryStore::with_host(host.clone()), host, clock }
    }

    fn operator(&self) -> Operator<'_> {
        Operator { store: &self.store, host: &self.host, who: "ada".to_owned() }
    }

    async fn write(&self, key: &Key, change: Change) -> Item {
        self.store.write(key, &Write { id: self.host.nonce(), change }).await.expect("written")
    }

    /// A table that a sweep has brought to `stamp`; its lease is left where `held`.
    async fn swept(&self, identity: Identity, stamp: &str, held: bool) -> Item {
        let key = identity.key();
        self.write(&key, Change::Create(identity)).await;
        let acquire = Acquire { owner: "o".into(), until_ms: NOW + 60_000, now_ms: NOW, scheduled: None };
        let item = self.write(&key, Change::Acquire(acquire)).await;
        let hold = Hold { owner: "o".into(), revision: item.revision };
        let progress = Progress { cursor: Some(at(stamp)), window: StoredWindow::Beside(1), ..Progress::default() };
        match held {
            true => self.write(&key, Change::Commit(hold, progress)).await,
            false => self.write(&key, Change::Release(hold, progress, Standing::Active)).await,
        }
    }

    async fn order(&self, order: Order) -> Result<Outcome, CommandError> {
        let operator = self.operator();
        let prepared = operator.prepare(&place(), order).await?;
        operator.carry_out(prepared).await
    }
}

fn own() -> Identity {
    place().identity().expect("all is known")
}

#[tokio::test]
async fn a_rewind_moves_the_cursor_back_drops_the_window_and_leaves_an_audit_entry() {
    let bed = Bed::new();
    let item = bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let prepared = bed.operator().prepare(&place(), rewind("2026-05-01 00:00:00")).await.expect("allowed");
    assert!(prepared.announcement.contains("rows after 2026-05-01 00:00:00 are delivered again"), "{}", prepared.announcement);
    let outcome = bed.operator().carry_out(prepared).await.expect("done");
    assert_eq!(outcome.before, Some(at("2026-06-01 00:00:00")));
    let after = bed.store.read(&item.identity.key()).await.expect("read").expect("there");
    assert_eq!((after.progress.cursor, after.progress.window), (Some(at("2026-05-01 00:00:00")), StoredWindow::None));
    let audits = audits(&bed.store, "c").await.expect("listed");
    assert_eq!(audits.len(), 1);
    assert_eq!((audits[0].who.as_str(), audits[0].what.as_str(), &audits[0].after), ("ada", "rewind", &outcome.after));
    bed.clock.advance(Duration::from_secs(31 * 24 * 3600));
    assert_eq!(super::super::audits(&bed.store, "c").await.expect("listed"), [], "kept for thirty days");
}

#[tokio::test]
async fn a_move_forward_needs_to_be_meant() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let error = bed.order(rewind("2026-07-01 00:00:00")).await.expect_err("forward");
    assert_eq!(error.code(), "Cursor.Forward");
    let meant = Order::Rewind(Rewinding { to: at("2026-07-01 00:00:00"), forward: true, request_id: None });
    assert_eq!(bed.order(meant).await.expect("meant").after, Some(at("2026-07-01 00:00:00")));
}

#[tokio::test]
async fn nothing_is_done_while_a_sweep_holds_the_lease_and_the_refusal_says_until_when() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", true).await;
    for order in [rewind("2026-05-01 00:00:00"), Order::Reset, Order::Pause { reason: "r".into() }, Order::Resume] {
        let error = bed.order(order).await.expect_err("leased");
        assert_eq!(error.code(), "Cursor.Leased");
        assert!(error.to_string().contains(&rfc3339(NOW + 60_000)), "{error}");
    }
    bed.clock.advance(Duration::from_secs(61));
    bed.order(rewind("2026-05-01 00:00:00")).await.expect("the lease has ended");
}

#[tokio::test]
async fn what_changed_after_the_confirmation_is_not_overwritten() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let prepared = bed.operator().prepare(&place(), rewind("2026-05-01 00:00:00")).await.expect("allowed");
    bed.write(&own().key(), Change::Pause { reason: "another".into(), now_ms: NOW }).await;
    assert_eq!(bed.operator().carry_out(prepared).await.expect_err("changed").code(), "Cursor.Conflict");
}

#[tokio::test]
async fn a_reset_retires_the_cursor_of_the_instance_that_the_alias_was_moved_away_from() {
    let bed = Bed::new();
    let old = bed.swept(Identity { instance: "dev.service-now.com".into(), ..own() }, "2026-06-01 00:00:00", false).await;
    let requeried = bed.swept(Identity { fingerprint: "f".into(), ..own() }, "2026-06-01 00:00:00", false).await;
    assert_eq!(bed.order(rewind("2026-05-01 00:00:00")).await.expect_err("moved").code(), "Cursor.Moved");
    assert!(bed.order(Order::Reset).await.expect("reset").changed);
    assert_eq!(bed.store.read(&old.identity.key()).await.expect("read"), None);
    assert!(bed.store.read(&requeried.identity.key()).await.expect("read").is_some(), "another query is no move");
    assert!(!bed.order(Order::Reset).await.expect("reset").changed, "nothing is left to reset");
}

#[tokio::test]
async fn a_reset_starts_the_table_anew_in_its_place() {
    let bed = Bed::new();
    let item = bed.swept(own(), "2026-06-01 00:00:00", false).await;
    bed.order(Order::Reset).await.expect("reset");
    let after = bed.store.read(&own().key()).await.expect("read").expect("there");
    assert_eq!(after.progress, Progress::default());
    assert!(after.revision > item.revision, "an old holder's write cannot take effect");
}

#[tokio::test]
async fn a_table_may_be_paused_before_its_first_sweep_and_resumed() {
    let bed = Bed::new();
    bed.order(Order::Pause { reason: "not yet".into() }).await.expect("paused");
    let item = bed.store.read(&own().key()).await.expect("read").expect("made");
    assert!(matches!(item.standing, Standing::Paused(paused) if paused.reason == "not yet"));
    assert!(bed.order(Order::Resume).await.expect("resumed").changed);
    assert!(!bed.order(Order::Resume).await.expect("nothing to do").changed);
    assert_eq!(bed.order(rewind("2026-05-01 00:00:00")).await.expect_err("no cursor: cannot tell").code(), "Cursor.Forward");
}

#[tokio::test]
async fn an_import_is_refused_where_the_document_names_another_instance() {
    let bed = Bed::new();
    let mut item = Item::new(own());
    item.progress.cursor = Some(at("2026-05-01 00:00:00"));
    let outcome = bed.order(Order::Import(Box::new(item.clone()))).await.expect("imported");
    assert_eq!(outcome.after, item.progress.cursor);
    item.identity.instance = "dev.service-now.com".into();
    assert_eq!(bed.order(Order::Import(Box::new(item))).await.expect_err("elsewhere").code(), "Cursor.Moved");
}

/// A table that waits, found with `found` in place of its baseline.
async fn drifted(bed: &Bed, code: &str) -> Item {
    let key = own().key();
    bed.write(&key, Change::Create(own())).await;
    let acquire = Acquire { owner: "o".into(), until_ms: NOW + 60_000, now_ms: NOW, scheduled: None };
    let item = bed.write(&key, Change::Acquire(acquire)).await;
    let notes = [(BASELINE_NOTE.to_owned(), baseline_digest(b"old")), ("place".to_owned(), "x".to_owned())].into();
    let progress = Progress { cursor: Some(at("2026-06-01 00:00:00")), notes, ..Progress::default() };
    let waiting = crate::cursor::Waiting::after(&Standing::Active, code, "a column is gone".to_owned(), NOW);
    let hold = Hold { owner: "o".into(), revision: item.revision };
    for (name, bytes) in [(BASELINE, b"old"), (FOUND_SCHEMA, b"new")] {
        bed.store.put_blob(&key.connector, &key.sibling(name), bytes, Expect::Any, None).await.expect("kept");
    }
    bed.write(&key, Change::Release(hold, progress, Standing::Waiting(waiting))).await
}

#[tokio::test]
async fn an_accepted_schema_is_the_baseline_that_the_cursor_names_and_the_cursor_stays() {
    let bed = Bed::new();
    let before = drifted(&bed, SCHEMA_CHANGED).await;
    let key = own().key();
    let outcome = bed.order(Order::AcceptSchema).await.expect("accepted");
    assert_eq!((outcome.changed, outcome.after), (true, before.progress.cursor.clone()));
    let after = bed.store.read(&key).await.expect("read").expect("there");
    assert_eq!((after.standing, after.progress.cursor), (Standing::Active, before.progress.cursor));
    assert_eq!(after.progress.notes.get(BASELINE_NOTE), Some(&baseline_digest(b"new")));
    assert_eq!(after.progress.notes.get("place").map(String::as_str), Some("x"), "other notes stay");
    let siblings = bed.store.list_blobs(&key.connector).await.expect("listed");
    let siblings: Vec<_> = siblings.into_iter().map(|(place, blob)| (place, blob.bytes)).collect();
    assert_eq!(siblings, [(key.sibling(BASELINE), b"new".to_vec())]);
    assert!(!bed.order(Order::AcceptSchema).await.expect("nothing to do").changed);
}

#[tokio::test]
async fn no_schema_is_accepted_for_a_table_that_waits_for_something_else_or_has_no_baseline() {
    let bed = Bed::new();
    drifted(&bed, "Source.SequenceRegressed").await;
    assert!(!bed.order(Order::AcceptSchema).await.expect("nothing to do").changed);
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    assert_eq!(bed.order(Order::AcceptSchema).await.expect_err("none").code(), "Cursor.NoBaseline");
}

#[tokio::test]
async fn a_rewind_keeps_the_baseline_and_a_reset_drops_it_with_all_siblings() {
    let bed = Bed::new();
    drifted(&bed, SCHEMA_CHANGED).await;
    let key = own().key();
    bed.order(rewind("2026-05-01 00:00:00")).await.expect("rewound");
    let item = bed.store.read(&key).await.expect("read").expect("there");
    assert_eq!(item.progress.notes, [(BASELINE_NOTE.to_owned(), baseline_digest(b"old"))].into());
    bed.order(Order::Reset).await.expect("reset");
    assert_eq!(bed.store.list_blobs(&key.connector).await.expect("listed"), []);
}
