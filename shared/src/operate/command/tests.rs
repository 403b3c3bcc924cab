mod held;
mod hidden;
mod meddling;
mod schemas;

use std::sync::Arc;

use super::super::audits;
use super::*;
use crate::cursor::memory::MemoryStore;
use crate::cursor::{Acquire, Expect, Hold, Progress, StoredWindow};
use crate::host::ManualClock;
use crate::operate::place::place;
use crate::source::BASELINE;

const NOW: i64 = 1_800_000_000_000;

fn at(stamp: &str) -> Position {
    Position::new([("timestamp", Some(stamp.to_owned())), ("sys_id", Some(String::new()))])
}

fn rewind(to: &str) -> Order {
    Order::Rewind(Rewinding { to: at(to), forward: false, request_id: None })
}

#[derive(Debug)]
struct Bed {
    store: MemoryStore,
    host: Host,
    clock: Arc<ManualClock>,
    places: Vec<Place>,
}

impl Bed {
    fn new() -> Self {
        let clock = ManualClock::at(NOW);
        let host = Host::with_clock(clock.clone());
        Self { store: MemoryStore::with_host(host.clone()), host, clock, places: vec![place()] }
    }

    fn operator(&self) -> Operator<'_> {
        self.operator_of(&self.places)
    }

    fn operator_of<'o>(&'o self, places: &'o [Place]) -> Operator<'o> {
        Operator { store: &self.store, host: &self.host, places, who: "ada".to_owned() }
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

    /// What lies at `key` was written by a newer program.
    fn renew(&self, key: &Key) {
        self.store.set_format(key, 99);
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
    assert!(prepared.announcement.contains("rows from 2026-05-01 00:00:00 on are delivered again"), "{}", prepared.announcement);
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
}

#[tokio::test]
async fn a_rewind_of_a_table_that_has_not_begun_is_judged_by_where_its_document_begins() {
    let bed = Bed::new();
    bed.order(Order::Pause { reason: "not yet".into() }).await.expect("paused");
    let untold = bed.order(rewind("2026-05-01 00:00:00")).await.expect_err("no document says where it begins");
    assert!(untold.code() == "Cursor.Forward" && untold.to_string().contains("has no cursor yet"), "{untold}");
    let place = Place { start: Some(at("2026-03-01 00:00:00")), ..place() };
    let prepared = async |to: &str, forward| {
        let order = Order::Rewind(Rewinding { to: at(to), forward, request_id: None });
        bed.operator_of(std::slice::from_ref(&place)).prepare(&place, order).await
    };
    for to in ["2026-03-01 00:00:00", "2026-02-01 00:00:00"] {
        let prepared = prepared(to, false).await.expect("nothing is left out");
        assert!(prepared.announcement.contains(&format!("rows from {to} on are delivered")), "{}", prepared.announcement);
    }
    let later = prepared("2026-04-01 00:00:00", false).await.expect_err("rows would be left out");
    assert!(later.code() == "Cursor.Forward" && later.to_string().contains("2026-03-01 00:00:00, where its document begins"), "{later}");
    let meant = prepared("2026-04-01 00:00:00", true).await.expect("meant");
    assert!(meant.announcement.contains("are never delivered"), "{}", meant.announcement);
    assert_eq!(bed.operator().carry_out(meant).await.expect("done").after, Some(at("2026-04-01 00:00:00")));
}

#[tokio::test]
async fn the_trail_of_a_command_that_makes_the_cursor_is_filed_where_it_lies() {
    for order in [Order::Pause { reason: "r".into() }, import(&Item::new(own()))] {
        let bed = Bed::new();
        let name = order.name();
        bed.order(order).await.expect("done");
        let audits = audits(&bed.store, "c").await.expect("listed");
        let places: Vec<_> = audits.iter().map(|audit| (audit.what.as_str(), audit.place.clone())).collect();
        assert_eq!(places, [(name, Some(own().key().place))]);
    }
}

#[tokio::test]
async fn an_import_is_refused_where_the_document_names_another_instance() {
    let bed = Bed::new();
    let mut item = Item::new(own());
    item.progress.cursor = Some(at("2026-05-01 00:00:00"));
    let outcome = bed.order(import(&item)).await.expect("imported");
    assert_eq!(outcome.after, item.progress.cursor);
    item.identity.instance = "dev.service-now.com".into();
    let refusal = bed.order(import(&item)).await.expect_err("elsewhere");
    assert_eq!(refusal.code(), "Cursor.Moved");
    assert!(refusal.to_string().contains("the exported cursor has instance \"dev.service-now.com\""), "{refusal}");
}

fn import(item: &Item) -> Order {
    Order::Import { item: Box::new(item.clone()), forward: false, baseline: None }
}

#[tokio::test]
async fn an_import_says_of_the_rows_what_a_rewind_says_and_asks_the_same() {
    let bed = Bed::new();
    let item = bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let exported = |stamp: &str| {
        let mut exported = item.clone();
        exported.progress.cursor = Some(at(stamp));
        exported
    };
    let said = async |order: Order| bed.operator().prepare(&place(), order).await.map(|prepared| prepared.announcement);
    let back = said(import(&exported("2026-05-01 00:00:00"))).await.expect("back");
    assert!(back.contains("rows from 2026-05-01 00:00:00 on are delivered again"), "{back}");
    let same = said(import(&exported("2026-06-01 00:00:00"))).await.expect("the same");
    assert!(same.contains("stands at 2026-06-01 00:00:00 already"), "{same}");
    let later = exported("2026-07-01 00:00:00");
    assert_eq!(bed.order(import(&later)).await.expect_err("forward").code(), "Cursor.Forward");
    let meant = Order::Import { item: Box::new(later), forward: true, baseline: None };
    assert!(said(meant.clone()).await.expect("meant").contains("are never delivered"));
    assert_eq!(bed.order(meant).await.expect("meant").after, Some(at("2026-07-01 00:00:00")));
}

/// Another table of the documents.
fn problem() -> Place {
    let fingerprint = Some(Identity::fingerprint_of(&["problem", "", "true"]));
    Place { alias: "prb".into(), table: Some("problem".into()), fingerprint, ..place() }
}

#[tokio::test]
async fn a_table_under_a_new_alias_takes_every_command_and_the_one_that_has_the_old_alias_touches_nothing_of_it() {
    // Swept as `prb`; the documents call it `inc` now, and another table `prb`.
    let bed = Bed::new();
    let item = bed.swept(Identity { alias: "prb".into(), ..own() }, "2026-06-01 00:00:00", false).await;
    let places = [problem(), place()];
    let order = async |place: &Place, order: Order| {
        let operator = bed.operator_of(&places);
        operator.carry_out(operator.prepare(place, order).await?).await
    };
    order(&place(), Order::Pause { reason: "r".into() }).await.expect("paused");
    assert!(order(&place(), Order::Resume).await.expect("resumed").changed, "what pauses a table resumes it");
    order(&place(), rewind("2026-05-01 00:00:00")).await.expect("rewound");
    assert!(!order(&problem(), Order::Reset).await.expect("nothing is its own").changed);
    let after = bed.store.read(&item.identity.key()).await.expect("read").expect("it stays");
    assert_eq!(after.progress.cursor, Some(at("2026-05-01 00:00:00")));
    // An import goes to its table, whatever the alias was when it was exported.
    order(&place(), import(&Item { identity: item.identity.clone(), ..after })).await.expect("imported");
    let after = bed.store.read(&item.identity.key()).await.expect("read").expect("there");
    assert_eq!(after.identity.alias, "inc");
    assert!(order(&place(), Order::Reset).await.expect("its own").changed);
}

#[tokio::test]
async fn a_cursor_that_cannot_be_read_is_replaced_by_a_reset_or_an_import_that_names_it_and_by_nothing_else() {
    for replaces in [Order::Reset, import(&Item::new(own()))] {
        let bed = Bed::new();
        let item = bed.swept(own(), "2026-06-01 00:00:00", false).await;
        let key = item.identity.key();
        bed.store.put_blob(&key.connector, &key.sibling(BASELINE), b"old", Expect::Any, None).await.expect("kept");
        bed.renew(&key);
        for order in [rewind("2026-05-01 00:00:00"), Order::Pause { reason: "r".into() }, Order::Resume] {
            assert_eq!(bed.order(order).await.expect_err("it cannot be read").code(), "Cursor.Format");
        }
        let prepared = bed.operator().prepare(&place(), replaces).await.expect("allowed");
        assert!(prepared.announcement.contains(&key.place) && prepared.announcement.contains("format 99"), "{}", prepared.announcement);
        bed.operator().carry_out(prepared).await.expect("replaced");
        assert_eq!(bed.store.list_blobs(&key.connector).await.expect("listed"), []);
        let listing = bed.store.survey("c").await.expect("listed");
        assert_eq!(listing.unreadable, []);
    }
}

#[tokio::test]
async fn a_cursor_that_cannot_be_read_is_in_no_other_tables_way() {
    let bed = Bed::new();
    let other = bed.swept(problem().identity().expect("all is known"), "2026-06-01 00:00:00", false).await;
    bed.renew(&other.identity.key());
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let places = [problem(), place()];
    let operator = bed.operator_of(&places);
    let prepared = operator.prepare(&place(), rewind("2026-05-01 00:00:00")).await.expect("its own can be read");
    operator.carry_out(prepared).await.expect("rewound");
}

#[tokio::test]
async fn an_orphan_is_removed_with_all_that_lies_beside_it_and_a_cursor_in_use_is_not() {
    let bed = Bed::new();
    let used = bed.swept(own(), "2026-06-01 00:00:00", false).await.identity.key();
    let former = bed.swept(Identity { fingerprint: "f".into(), ..own() }, "2026-06-01 00:00:00", false).await;
    let key = former.identity.key();
    bed.store.put_blob(&key.connector, &key.sibling(BASELINE), b"old", Expect::Any, None).await.expect("kept");
    let operator = bed.operator();
    assert_eq!(operator.prepare_removal("c", &used.place).await.expect_err("in use").code(), "Cursor.InUse");
    assert_eq!(operator.prepare_removal("c", "nowhere").await.expect_err("none").code(), "Cursor.Missing");
    let removal = operator.prepare_removal("c", &key.place).await.expect("allowed");
    assert!(
        removal.announcement.contains("2026-06-01 00:00:00") && removal.announcement.contains("starts anew"),
        "{}",
        removal.announcement
    );
    operator.remove(removal).await.expect("removed");
    assert_eq!(bed.store.read(&key).await.expect("read"), None);
    assert_eq!(bed.store.list_blobs("c").await.expect("listed"), []);
    assert!(bed.store.read(&used).await.expect("read").is_some());
    let audits = audits(&bed.store, "c").await.expect("listed");
    assert!(audits.iter().any(|audit| audit.what == "remove" && audit.is_of(&key.place, "inc")), "{audits:?}");
    // What cannot be read and is nobody's goes the same way.
    let gone = bed.swept(Identity { alias: "gone".into(), table: "gone".into(), ..own() }, "2026-06-01 00:00:00", false).await;
    bed.renew(&gone.identity.key());
    let removal = operator.prepare_removal("c", &gone.identity.key().place).await.expect("allowed");
    operator.remove(removal).await.expect("removed");
    assert_eq!(bed.store.survey("c").await.expect("listed").unreadable, []);
}

#[tokio::test]
async fn commands_of_one_second_are_told_in_their_order() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    for n in 0..8 {
        bed.order(rewind(&format!("2026-05-{:02} 00:00:00", 20 - n))).await.expect("rewound");
        bed.clock.advance(Duration::from_millis(1));
    }
    let after: Vec<_> = audits(&bed.store, "c").await.expect("listed").into_iter().map(|audit| audit.after).collect();
    let expected: Vec<_> = (0..8).map(|n| Some(at(&format!("2026-05-{:02} 00:00:00", 20 - n)))).collect();
    assert_eq!(after, expected);
}

#[tokio::test]
async fn a_refused_login_is_forgotten_by_a_resume_which_says_so() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let parked = crate::cursor::Parked::after(&Standing::Active, "Source.Unauthorized", "the login was refused".into(), NOW);
    let refused = serde_json::json!({ "parked": parked }).to_string();
    let instance = own().instance;
    bed.store.put_blob(&format!("@{instance}"), "login", refused.as_bytes(), Expect::Any, None).await.expect("kept");
    bed.store.put_blob(&format!("@{instance}"), "requests", b"{}", Expect::Any, None).await.expect("kept");
    let prepared = bed.operator().prepare(&place(), Order::Resume).await.expect("allowed");
    assert!(prepared.changes && prepared.announcement.contains("Source.Unauthorized"), "{}", prepared.announcement);
    bed.operator().carry_out(prepared).await.expect("resumed");
    let left = bed.store.list_blobs(&format!("@{instance}")).await.expect("listed");
    assert_eq!(left.iter().map(|(place, _)| place.as_str()).collect::<Vec<_>>(), ["requests"], "the count of requests is no login");
    assert!(!bed.order(Order::Resume).await.expect("nothing to do").changed);
}
