//! A secret hides the instance from whoever commands, and the instance moved.

use super::*;
use crate::operate::status;

fn hidden() -> Place {
    Place { instance: None, ..place() }
}

fn old() -> Identity {
    Identity { instance: "old.service-now.com".into(), ..own() }
}

async fn instances(bed: &Bed) -> Vec<String> {
    bed.store.list("c").await.expect("listed").into_iter().map(|item| item.identity.instance).collect()
}

/// A cursor of the old instance, and one of the present instance that was started later.
async fn both(bed: &Bed) {
    for identity in [old(), own()] {
        bed.swept(identity, "2026-06-01 00:00:00", false).await;
        bed.clock.advance(Duration::from_secs(60));
    }
    let acquire = Acquire { owner: "later".into(), until_ms: NOW + 60_001, now_ms: NOW + 60_000, scheduled: None };
    let item = bed.write(&own().key(), Change::Acquire(acquire)).await;
    let hold = Hold { owner: "later".into(), revision: item.revision };
    bed.write(&own().key(), Change::Release(hold, item.progress, Standing::Active)).await;
}

async fn order(bed: &Bed, order: Order) -> Result<Outcome, CommandError> {
    let places = [hidden()];
    let operator = bed.operator_of(&places);
    operator.carry_out(operator.prepare(&hidden(), order).await?).await
}

#[tokio::test]
async fn a_reset_leaves_no_cursor_that_would_be_of_another_place_for_ever() {
    let bed = Bed::new();
    bed.swept(old(), "2026-06-01 00:00:00", false).await;
    let outcome = order(&bed, Order::Reset).await.expect("reset");
    assert_eq!((outcome.changed, outcome.before), (true, Some(at("2026-06-01 00:00:00"))));
    assert_eq!(instances(&bed).await, [""; 0]);
    let bed = Bed::new();
    both(&bed).await;
    let places = [hidden()];
    let prepared = bed.operator_of(&places).prepare(&hidden(), Order::Reset).await.expect("allowed");
    assert!(prepared.announcement.contains(&old().key().place), "{}", prepared.announcement);
    bed.operator_of(&places).carry_out(prepared).await.expect("reset");
    assert_eq!(instances(&bed).await, [""; 0]);
}

#[tokio::test]
async fn a_reset_of_a_paused_table_stays_paused_and_one_that_follows_its_resume_goes_through() {
    let bed = Bed::new();
    bed.swept(old(), "2026-06-01 00:00:00", false).await;
    order(&bed, Order::Pause { reason: "moving".into() }).await.expect("paused");
    order(&bed, Order::Reset).await.expect("reset");
    let item = bed.store.read(&old().key()).await.expect("read").expect("it holds the table");
    assert_eq!((matches!(item.standing, Standing::Paused(_)), item.progress.cursor), (true, None));
    order(&bed, Order::Resume).await.expect("resumed");
    order(&bed, Order::Reset).await.expect("reset");
    assert_eq!(instances(&bed).await, [""; 0]);
}

#[tokio::test]
async fn an_import_leaves_the_imported_cursor_alone_and_of_another_query_what_there_is() {
    let bed = Bed::new();
    bed.swept(old(), "2026-06-01 00:00:00", false).await;
    bed.swept(Identity { fingerprint: "f".into(), ..old() }, "2026-06-01 00:00:00", false).await;
    let item = Item { progress: Progress { cursor: Some(at("2026-06-01 00:00:00")), ..Progress::default() }, ..Item::new(own()) };
    order(&bed, import(&item)).await.expect("imported");
    let left = bed.store.list("c").await.expect("listed");
    let left: Vec<_> = left.iter().map(|item| (item.identity.instance.as_str(), item.identity.fingerprint == "f")).collect();
    assert_eq!(left, [("acme.service-now.com", false), ("old.service-now.com", true)]);
}

#[tokio::test]
async fn commands_and_status_are_about_the_cursor_that_was_started_last_and_the_other_may_be_removed() {
    let bed = Bed::new();
    both(&bed).await;
    let outcome = order(&bed, rewind("2026-05-01 00:00:00")).await.expect("rewound");
    assert_eq!(outcome.after, Some(at("2026-05-01 00:00:00")));
    let cursor = async |identity: Identity| bed.store.read(&identity.key()).await.expect("read").and_then(|item| item.progress.cursor);
    assert_eq!((cursor(old()).await, cursor(own()).await), (Some(at("2026-06-01 00:00:00")), outcome.after.clone()));
    let places = [hidden()];
    let report = status(Some(&bed.store), "memory", &places, NOW).await.expect("an answer");
    let orphans: Vec<_> = report.orphans.iter().map(|orphan| orphan.place.as_str()).collect();
    assert_eq!((&report.tables[0].cursor, orphans), (&outcome.after, vec![old().key().place.as_str()]));
    let operator = bed.operator_of(&places);
    assert_eq!(operator.prepare_removal("c", &own().key().place).await.expect_err("in use").code(), "Cursor.InUse");
    operator.remove(operator.prepare_removal("c", &old().key().place).await.expect("allowed")).await.expect("removed");
    assert_eq!(instances(&bed).await, ["acme.service-now.com"]);
}
