//! Promises about who sweeps.

use super::super::{Change, Failed, Item, LeaseTerm, Parked, Phase, Refusal, Standing, Waiting};
use super::{Bed, START, TERM, Table, hold_of, progress, refusal};

pub(super) async fn of_two_who_acquire_at_once_one_holds(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let (first, second) = tokio::join!(one.acquire("a", START), two.acquire("b", START));
    let (winner, loser) = match (first, second) {
        (Ok(item), other) | (other, Ok(item)) => (item, other),
        (first, second) => panic!("nobody holds: {first:?}, {second:?}"),
    };
    assert_eq!(refusal(loser), Refusal::Leased { until_ms: START + TERM });
    assert_eq!((winner.revision, winner.tries), (2, 1));
    assert_eq!(one.item().await, winner);
}

pub(super) async fn a_held_lease_refuses_naming_its_end(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let held = one.acquire("a", START).await.expect("free");
    for now_ms in [START, START + TERM - 1] {
        assert_eq!(refusal(two.acquire("b", now_ms).await), Refusal::Leased { until_ms: START + TERM });
        // A second delivery of the same event draws another nonce; one that did not would still be another write.
        assert_eq!(refusal(one.acquire("a", now_ms).await), Refusal::Leased { until_ms: START + TERM });
    }
    assert_eq!(one.item().await, held, "the refused changed nothing");
}

pub(super) async fn an_ended_lease_is_taken_over_and_its_holder_has_lost(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let old = one.acquire("a", START).await.expect("free");
    let known = one.die(&old);
    let new = two.acquire("b", known).await.expect("the lease has ended");
    assert_eq!((new.revision, new.tries, hold_of(&new).owner.as_str()), (3, 2, "b"));
    for change in [
        Change::Commit(hold_of(&old), progress(1)),
        Change::Renew(hold_of(&old), known + TERM),
        Change::Release(hold_of(&old), progress(1), Standing::Active),
    ] {
        assert_eq!(refusal(two.write(change).await), Refusal::Lost { revision: 3 });
    }
    assert_eq!(two.item().await, new);
}

pub(super) async fn a_lease_ends_by_the_clock_or_with_its_process_as_the_store_says(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let held = one.acquire("a", START).await.expect("free");
    let long_after = START + 1_000 * TERM;
    match one.store.lease_term() {
        LeaseTerm::Clock => {
            // Nobody took it, so the holder goes on as if nothing had been.
            let committed = one.write(Change::Commit(hold_of(&held), progress(1))).await.expect("still its own");
            two.acquire("b", START + TERM).await.expect("ended by the clock");
            assert_eq!(refusal(one.write(Change::Commit(hold_of(&committed), progress(2))).await), Refusal::Lost { revision: 4 });
        }
        LeaseTerm::Process => {
            assert!(matches!(refusal(two.acquire("b", long_after).await), Refusal::Leased { .. }), "the holder lives");
            assert!(matches!(refusal(one.acquire("b", long_after).await), Refusal::Leased { .. }), "also through its own handle");
            assert!(matches!(
                refusal(two.write(Change::Pause { reason: "why".to_owned(), now_ms: long_after }).await),
                Refusal::Leased { .. }
            ));
            let committed = one.write(Change::Commit(hold_of(&held), progress(1))).await.expect("still its own");
            assert_eq!(committed.lease, held.lease);
            drop(one);
            assert_eq!(two.item().await.lease, None, "a dead holder's lease is not shown");
            assert_eq!(two.store.list(&two.key.connector).await.expect("a list")[0].lease, None);
            let taken = two.acquire("b", START + 1).await.expect("the holder is dead, long before its lease's time");
            assert_eq!((taken.revision, taken.progress.cursor), (4, progress(1).cursor));
        }
    }
}

pub(super) async fn a_renewed_lease_ends_later(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let held = one.acquire("a", START).await.expect("free");
    let renewed = one.write(Change::Renew(hold_of(&held), START + 5 * TERM)).await.expect("the holder renews");
    assert_eq!((renewed.revision, renewed.tries), (3, 1), "holding on is no progress");
    assert_eq!(refusal(two.acquire("b", START + 4 * TERM).await), Refusal::Leased { until_ms: START + 5 * TERM });
    one.write(Change::Commit(hold_of(&renewed), progress(1))).await.expect("the revision of the renewal counts");
}

pub(super) async fn a_tick_before_the_interval_is_not_due(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let item = table.tick("a", START).await.expect("never swept");
    table.release(&item, Standing::Active).await;
    let mut item = table.tick("a", START + 1).await.expect("a backfill goes on at once");
    item.progress.phase = Phase::Stream;
    table.release(&item, Standing::Active).await;
    assert_eq!(refusal(table.tick("b", START + 60_000).await), Refusal::NotDue { due_ms: START + 60_001 });
    let by_hand = table.acquire("b", START + 2).await.expect("by hand no interval counts");
    table.release(&by_hand, Standing::Active).await;
    assert_eq!(refusal(table.tick("c", START + 60_001).await), Refusal::NotDue { due_ms: START + 60_002 });
    table.tick("c", START + 60_002).await.expect("due");
}

pub(super) async fn a_sweep_that_did_not_come_to_the_end_goes_on_before_the_interval_is_over(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let mut item = table.tick("a", START).await.expect("never swept");
    let failed = Failed::after(None, "Source.Unavailable", START);
    item.progress.phase = Phase::Stream;
    let swept = item.progress.clone();
    for (at, progress) in [(1, swept.clone().with_failed(Some(&failed))), (2, swept.clone().with_cut(true))] {
        table.release(&Item { progress, ..item }, Standing::Active).await;
        item = table.tick("b", START + at).await.expect("the next tick goes on");
    }
    table.release(&Item { progress: swept.with_failed(None).with_cut(false), ..item }, Standing::Active).await;
    assert_eq!(refusal(table.tick("c", START + 3).await), Refusal::NotDue { due_ms: START + 60_002 });
}

pub(super) async fn a_sweep_that_died_is_taken_over_before_the_interval_is_over(bed: &dyn Bed) {
    let every_hour = |owner, now_ms| super::acquire(owner, now_ms, Some(3_600_000));
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let mut item = one.tick("a", START).await.expect("never swept");
    item.progress.phase = Phase::Stream;
    one.release(&item, Standing::Active).await;
    let item = one.write(every_hour("b", START + 3_600_000)).await.expect("due");
    let known = one.die(&item);
    two.write(every_hour("c", known + 1)).await.expect("it died without a word");
}

pub(super) async fn a_table_that_waits_for_a_mend_is_looked_at_before_its_interval_is_over(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let item = table.tick("a", START).await.expect("never swept");
    let waiting = Waiting::after(&item.standing, "Source.SchemaChanged", "column extra is new".to_owned(), START);
    table.release(&item, Standing::Waiting(waiting.clone())).await;
    let item = table.tick("b", START + 1).await.expect("each tick looks");
    assert_eq!(item.standing, Standing::Waiting(waiting), "looking alone mends nothing");
    let parked = Parked::after(&item.standing, "Source.Forbidden", "no read access to incident".to_owned(), START + 1);
    let next_try_ms = parked.next_try_ms;
    table.release(&item, Standing::Parked(parked)).await;
    let every_hour = |owner, now_ms| table.write(super::acquire(owner, now_ms, Some(3_600_000)));
    let mut item = every_hour("c", next_try_ms).await.expect("its next try is due, whatever the interval");
    item.progress.phase = Phase::Stream;
    table.release(&item, Standing::Active).await;
    assert!(matches!(refusal(every_hour("d", next_try_ms + 1).await), Refusal::NotDue { .. }), "active again, it keeps its interval");
}

pub(super) async fn a_start_written_under_a_clock_ahead_delays_nothing(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let item = table.tick("a", START).await.expect("never swept");
    table.release(&item, Standing::Active).await;
    table.tick("b", START - 1).await.expect("that start lies in the future");
}

pub(super) async fn the_next_try_of_a_parked_table_counts_on_ticks_only(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let item = table.acquire("a", START).await.expect("free");
    let parked = Parked::after(&item.standing, "Source.Forbidden", "no read access to incident".to_owned(), START);
    let next_try_ms = parked.next_try_ms;
    table.release(&item, Standing::Parked(parked.clone())).await;
    // The interval of the ticks is over long before.
    let tick = |now_ms| table.write(super::acquire("b", now_ms, Some(1)));
    assert_eq!(refusal(tick(next_try_ms - 1).await), Refusal::Parked(parked.clone()));
    let by_hand = table.acquire("b", START + 1).await.expect("by hand it is tried at once");
    assert_eq!(by_hand.standing, Standing::Parked(parked.clone()), "acquiring alone mends nothing");
    table.release(&by_hand, by_hand.standing.clone()).await;
    let tried = tick(next_try_ms).await.expect("the next try");
    let freed = table.release(&tried, Standing::Active).await;
    assert_eq!(freed.standing, Standing::Active);
    let item = tick(next_try_ms + 2).await.expect("active");
    // Parked again and mended by hand before the next try: the ticks go on at once.
    let parked = Parked::after(&item.standing, "Source.Forbidden", "no read access to incident".to_owned(), next_try_ms + 2);
    table.release(&item, Standing::Parked(parked)).await;
    let by_hand = table.acquire("c", next_try_ms + 3).await.expect("by hand it is tried at once");
    table.release(&by_hand, Standing::Active).await;
    tick(next_try_ms + 5).await.expect("no next try is left over from the parking");
}

pub(super) async fn the_fourth_death_without_progress_parks_in_the_write_that_acquires(bed: &dyn Bed) {
    drop(Table::created(bed).await);
    let mut now_ms = START;
    for tries in 1..=3 {
        let table = Table::of(bed).await;
        let item = table.acquire(&format!("owner-{tries}"), now_ms).await.expect("the last holder is dead");
        assert_eq!((item.tries, item.revision), (tries, u64::from(tries) + 1));
        now_ms = table.die(&item) + 1;
    }
    let table = Table::of(bed).await;
    let item = table.acquire("owner-4", now_ms).await.expect("an answer, though not the lease");
    let Standing::Parked(parked) = &item.standing else { panic!("{item:?}") };
    assert_eq!((parked.code.as_str(), parked.times, parked.since_ms), ("Sweep.Died", 1, now_ms));
    assert_eq!((item.lease.clone(), item.tries, item.revision), (None, 0, 5));
    assert_eq!(table.item().await, item);
    assert_eq!(refusal(table.tick("owner-5", now_ms).await), Refusal::Parked(parked.clone()));
    let again = table.acquire("owner-6", now_ms).await.expect("by hand it is tried at once");
    assert_eq!(again.tries, 1);
}

pub(super) async fn progress_ends_the_count_of_deaths(bed: &dyn Bed) {
    drop(Table::created(bed).await);
    let table = Table::of(bed).await;
    let item = table.acquire("a", START).await.expect("free");
    let now_ms = table.die(&item) + 1;
    let table = Table::of(bed).await;
    let item = table.acquire("b", now_ms).await.expect("a died");
    assert_eq!(item.tries, 2);
    let item = table.write(Change::Commit(hold_of(&item), progress(1))).await.expect("the holder commits");
    assert_eq!(item.tries, 0, "after a commit");
    let now_ms = table.die(&item) + 1;
    let table = Table::of(bed).await;
    let item = table.acquire("c", now_ms).await.expect("b died");
    assert_eq!(item.tries, 1);
    assert_eq!(table.release(&item, Standing::Active).await.tries, 0, "after a release");
}
