//! A table that an operator holds stays held, whatever is done to its cursor.

use super::*;

async fn paused(bed: &Bed, identity: Identity) {
    let item = bed.swept(identity, "2026-06-01 00:00:00", false).await;
    bed.write(&item.identity.key(), Change::Pause { reason: "an upgrade".into(), now_ms: NOW }).await;
}

#[tokio::test]
async fn a_reset_and_an_import_of_a_paused_table_say_that_it_stays_paused_and_it_does() {
    // The cursor lies in its place, or in the one that the alias was moved away from.
    for instance in [own().instance, "dev.service-now.com".into()] {
        for order in [Order::Reset, import(&Item::new(own()))] {
            let bed = Bed::new();
            paused(&bed, Identity { instance: instance.clone(), ..own() }).await;
            let prepared = bed.operator().prepare(&place(), order).await.expect("allowed");
            assert!(prepared.announcement.contains("; it stays paused: an upgrade"), "{}", prepared.announcement);
            bed.operator().carry_out(prepared).await.expect("done");
            let items = bed.store.list("c").await.expect("listed");
            assert_eq!(items.iter().map(|item| &item.identity).collect::<Vec<_>>(), [&own()]);
            assert!(matches!(&items[0].standing, Standing::Paused(paused) if paused.reason == "an upgrade"), "{:?}", items[0]);
            assert_eq!(items[0].progress, Progress::default());
        }
    }
}

#[tokio::test]
async fn a_table_that_nobody_holds_is_held_by_no_reset() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let prepared = bed.operator().prepare(&place(), Order::Reset).await.expect("allowed");
    assert!(!prepared.announcement.contains("paused"), "{}", prepared.announcement);
    bed.operator().carry_out(prepared).await.expect("reset");
    let item = bed.store.read(&own().key()).await.expect("read").expect("there");
    assert_eq!(item.standing, Standing::Active);
}

#[tokio::test]
async fn a_reset_that_was_cut_off_is_ended_by_the_next_one() {
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    // All of it but its last write.
    bed.write(&own().key(), Change::Pause { reason: RESETTING.to_owned(), now_ms: NOW }).await;
    bed.write(&own().key(), Change::Reset { identity: own(), now_ms: NOW }).await;
    let item = bed.store.read(&own().key()).await.expect("read").expect("there");
    assert!(matches!(&item.standing, Standing::Paused(paused) if paused.reason.contains("give it again")), "{item:?}");
    bed.order(Order::Reset).await.expect("reset");
    let item = bed.store.read(&own().key()).await.expect("read").expect("there");
    assert_eq!((item.standing, item.progress), (Standing::Active, Progress::default()));
}

#[tokio::test]
async fn an_import_of_a_cursor_that_was_paused_when_it_was_exported_says_so() {
    let bed = Bed::new();
    let standing = Standing::Paused(Paused { reason: "moving".into(), since_ms: NOW });
    let item = Item { standing: standing.clone(), ..Item::new(own()) };
    let prepared = bed.operator().prepare(&place(), import(&item)).await.expect("allowed");
    assert!(prepared.announcement.contains("it is paused, as it was exported: moving"), "{}", prepared.announcement);
    bed.operator().carry_out(prepared).await.expect("imported");
    assert_eq!(bed.store.read(&own().key()).await.expect("read").expect("there").standing, standing);
}
