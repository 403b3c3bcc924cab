//! Promises about what the holder of a lease writes.

use super::super::{Change, Hold, Paused, Refusal, Rewind, Standing, Write};
use super::{Bed, START, TERM, Table, hold_of, identity, position, progress, refusal, write};

pub(super) async fn a_commit_moves_the_cursor_and_counts_the_revision(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let mut item = table.acquire("a", START).await.expect("free");
    for number in 1..=3 {
        let before = item.clone();
        item = table.write(Change::Commit(hold_of(&item), progress(number))).await.expect("the holder commits");
        assert_eq!((item.revision, &item.progress), (before.revision + 1, &progress(number)));
        assert_eq!((&item.lease, item.started_ms, &item.identity), (&before.lease, before.started_ms, &before.identity));
        assert_eq!(table.item().await, item);
    }
}

pub(super) async fn a_commit_on_an_old_revision_is_lost(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let first = table.acquire("a", START).await.expect("free");
    let second = table.write(Change::Commit(hold_of(&first), progress(1))).await.expect("the holder commits");
    let early = Hold { revision: second.revision + 1, ..hold_of(&second) };
    for hold in [hold_of(&first), early] {
        for change in [
            Change::Commit(hold.clone(), progress(9)),
            Change::Renew(hold.clone(), START + 9 * TERM),
            Change::Release(hold, progress(9), Standing::Active),
        ] {
            assert_eq!(refusal(table.write(change).await), Refusal::Lost { revision: second.revision });
        }
    }
    assert_eq!(table.item().await, second);
}

pub(super) async fn a_commit_by_another_than_the_holder_is_lost(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let nobody = Hold { owner: "a".to_owned(), revision: 1 };
    assert_eq!(refusal(table.write(Change::Commit(nobody, progress(1))).await), Refusal::Lost { revision: 1 });
    let item = table.acquire("a", START).await.expect("free");
    let other = Hold { owner: "b".to_owned(), ..hold_of(&item) };
    assert_eq!(refusal(table.write(Change::Commit(other, progress(1))).await), Refusal::Lost { revision: 2 });
    let released = table.release(&item, Standing::Active).await;
    let late = Hold { revision: released.revision, ..hold_of(&item) };
    assert_eq!(refusal(table.write(Change::Commit(late, progress(1))).await), Refusal::Lost { revision: 3 });
    assert_eq!(table.item().await, released);
}

pub(super) async fn a_release_gives_the_lease_back_and_says_how_the_table_stands(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let item = one.acquire("a", START).await.expect("free");
    let item = one.write(Change::Release(hold_of(&item), progress(5), Standing::Active)).await.expect("the holder releases");
    assert_eq!((&item.lease, &item.progress, item.started_ms, item.revision), (&None, &progress(5), Some(START), 3));
    let item = two.acquire("b", START + 1).await.expect("at once free for others");
    let paused = Paused { reason: "the schema changed".to_owned(), since_ms: START + 2 };
    let item = two.release(&item, Standing::Paused(paused.clone())).await;
    assert_eq!(item.standing, Standing::Paused(paused.clone()));
    assert_eq!(refusal(one.acquire("c", START + 3).await), Refusal::Paused(paused));
}

pub(super) async fn a_renamed_table_keeps_its_cursor(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let item = one.acquire("a", START).await.expect("free");
    let item = one.write(Change::Commit(hold_of(&item), progress(5))).await.expect("the holder commits");
    let stranger = Hold { owner: "b".to_owned(), ..hold_of(&item) };
    let lost = refusal(two.write(Change::Rename(stranger, "theirs".to_owned())).await);
    assert_eq!(lost, Refusal::Lost { revision: item.revision });
    let renamed = one.write(Change::Rename(hold_of(&item), "another".to_owned())).await.expect("the holder renames");
    assert_eq!((renamed.identity.alias.as_str(), renamed.revision), ("another", item.revision + 1));
    assert_eq!((&renamed.progress, &renamed.lease, renamed.identity.key()), (&item.progress, &item.lease, one.key.clone()));
    assert_eq!(two.item().await, renamed);
    one.release(&renamed, Standing::Active).await;
}

/// Sends `write` again; it must change nothing and be answered as done.
async fn again(table: &Table, write: &Write, done: &super::Item) {
    let second = table.send(write).await.unwrap_or_else(|error| panic!("the second {write:?}: {error}"));
    assert_eq!(&second, done, "{write:?}");
    assert_eq!(&table.item().await, done, "{write:?}");
}

pub(super) async fn a_write_that_is_sent_twice_counts_once(bed: &dyn Bed) {
    let table = Table::of(bed).await;
    let twice = async |change: Change| {
        let write = write(change);
        let item = table.send(&write).await.unwrap_or_else(|error| panic!("{write:?}: {error}"));
        again(&table, &write, &item).await;
        item
    };
    let identity = identity("servicenow-prod", "incident");
    let item = twice(Change::Create(identity.clone())).await;
    assert_eq!(item.revision, 1);
    let item = twice(super::acquire("a", START, Some(60_000))).await;
    assert_eq!(item.tries, 1);
    let item = twice(Change::Renew(hold_of(&item), START + 2 * TERM)).await;
    let item = twice(Change::Commit(hold_of(&item), progress(1))).await;
    let item = twice(Change::Release(hold_of(&item), progress(2), Standing::Active)).await;
    assert_eq!(item.revision, 5);
    let now_ms = START + 3 * TERM;
    twice(Change::Rewind(Rewind { to: position(1), now_ms, revision: Some(5), request_id: None })).await;
    twice(Change::Pause { reason: "why".to_owned(), now_ms }).await;
    twice(Change::Resume { now_ms }).await;
    twice(Change::Reset { identity, now_ms }).await;
    let item = table.item().await;
    let item = twice(Change::Import(super::super::Import { item, now_ms })).await;
    assert_eq!(item.revision, 10);
}
