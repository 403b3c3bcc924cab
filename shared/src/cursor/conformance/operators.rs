//! Promises about what is written by hand.

use super::super::{
    BASELINE_KEPT_NOTE, BASELINE_NOTE, Change, Import, Item, Lease, Paused, Phase, Progress, Refusal, Rewind, Standing, StoredWindow,
    Waiting, WriteError,
};
use super::{Bed, START, TERM, Table, hold_of, identity, position, progress, refusal};

pub(super) async fn a_paused_table_is_not_swept_until_it_is_resumed(bed: &dyn Bed) {
    let (one, two) = (Table::created(bed).await, Table::of(bed).await);
    let paused = Paused { reason: "maintenance".to_owned(), since_ms: START };
    let item = one.write(Change::Pause { reason: "maintenance".to_owned(), now_ms: START }).await.expect("nobody holds it");
    assert_eq!(item.standing, Standing::Paused(paused.clone()));
    assert_eq!(refusal(two.acquire("a", START + 1).await), Refusal::Paused(paused.clone()));
    assert_eq!(refusal(two.tick("a", START + 1).await), Refusal::Paused(paused));
    let item = one.write(Change::Resume { now_ms: START + 2 }).await.expect("nobody holds it");
    assert_eq!((item.standing, item.revision), (Standing::Active, 3));
    two.tick("a", START + 3).await.expect("resumed");
}

pub(super) async fn a_probe_leaves_nothing_behind(bed: &dyn Bed) {
    let store = bed.open().await;
    store.probe().await.expect("an empty store is in order");
    assert_eq!(store.connectors().await.expect("asked"), Vec::<String>::new());
    let table = Table::created(bed).await;
    let before = table.item().await;
    store.probe().await.expect("so is one with a cursor");
    assert_eq!((table.item().await, store.connectors().await.expect("asked").len()), (before, 1));
}

pub(super) async fn operators_wait_for_the_holder(bed: &dyn Bed) {
    let (holder, operator) = (Table::created(bed).await, Table::of(bed).await);
    let held = holder.acquire("a", START).await.expect("free");
    let identity = identity("servicenow-prod", "incident");
    let now_ms = START + TERM - 1;
    let changes = |now_ms| {
        [
            Change::Rewind(Rewind { to: position(1), now_ms, revision: None, request_id: Some("r".to_owned()) }),
            Change::Reset { identity: identity.clone(), now_ms },
            Change::Pause { reason: "why".to_owned(), now_ms },
            Change::Resume { now_ms },
            Change::Import(Import { item: Item::new(identity.clone()), now_ms }),
        ]
    };
    for change in changes(now_ms) {
        assert_eq!(refusal(operator.write(change).await), Refusal::Leased { until_ms: START + TERM });
        assert_eq!(operator.item().await, held);
    }
    let known = holder.die(&held);
    for change in changes(known) {
        operator.write(change.clone()).await.unwrap_or_else(|error| panic!("{change:?} after the holder's end: {error}"));
    }
}

pub(super) async fn a_rewind_starts_a_backfill_without_a_window(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let item = table.acquire("a", START).await.expect("free");
    let swept = Progress {
        swept_to_ms: Some(START),
        phase: Phase::Stream,
        page_size: Some(100),
        window: StoredWindow::Beside(2),
        notes: [("k".to_owned(), "v".to_owned())].into(),
        ..progress(9)
    };
    table.write(Change::Release(hold_of(&item), swept.clone(), Standing::Active)).await.expect("the holder releases");
    let rewind = Rewind { to: position(4), now_ms: START + 1, revision: Some(3), request_id: None };
    let item = table.write(Change::Rewind(rewind)).await.expect("nobody holds it");
    let expected = Progress {
        cursor: Some(position(4)),
        swept_to_ms: None,
        phase: Phase::Backfill,
        window: StoredWindow::None,
        notes: [].into(),
        ..swept
    };
    assert_eq!((&item.progress, item.revision), (&expected, 4));
    assert_eq!(table.item().await, item);
}

pub(super) async fn the_same_request_rewinds_once(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let rewind = |number, request: &str| {
        Change::Rewind(Rewind { to: position(number), now_ms: START, revision: None, request_id: Some(request.to_owned()) })
    };
    table.write(rewind(4, "execution-1")).await.expect("nobody holds it");
    let item = table.acquire("a", START).await.expect("free");
    let item = table.write(Change::Commit(hold_of(&item), progress(8))).await.expect("the holder commits");
    // Not even a lease stands in the way of what is already done.
    let same = table.write(rewind(4, "execution-1")).await.expect("done before");
    assert_eq!(same, item);
    let item = table.release(&item, Standing::Active).await;
    assert_eq!(table.write(rewind(4, "execution-1")).await.expect("done before"), item);
    assert_eq!(table.item().await.progress.cursor, Some(position(8)), "the progress since then is kept");
    let item = table.write(rewind(5, "execution-2")).await.expect("another request");
    assert_eq!(item.progress.cursor, Some(position(5)));
}

pub(super) async fn a_rewind_decided_on_an_old_revision_is_lost(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let rewind = |revision| Change::Rewind(Rewind { to: position(1), now_ms: START, revision: Some(revision), request_id: None });
    let item = table.write(rewind(1)).await.expect("as read");
    assert_eq!(refusal(table.write(rewind(1)).await), Refusal::Lost { revision: 2 });
    assert_eq!(refusal(table.write(rewind(3)).await), Refusal::Lost { revision: 2 });
    assert_eq!(table.item().await, item);
}

pub(super) async fn a_reset_starts_anew_and_keeps_counting_revisions(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let item = table.acquire("a", START).await.expect("free");
    let item = table.write(Change::Release(hold_of(&item), progress(9), Standing::Active)).await.expect("the holder releases");
    table
        .write(Change::Rewind(Rewind { to: position(1), now_ms: START, revision: None, request_id: Some("r".to_owned()) }))
        .await
        .expect("nobody holds it");
    table.write(Change::Pause { reason: "why".to_owned(), now_ms: START }).await.expect("nobody holds it");
    // What is not in the key may differ.
    let identity = super::Identity { id_field: "u_id".to_owned(), ..item.identity };
    let reset = super::write(Change::Reset { identity: identity.clone(), now_ms: START });
    let item = table.send(&reset).await.expect("nobody holds it");
    // The same request rewinds it no second time, and whoever holds it has not let go of it.
    let rewound_by = Some("r".to_owned());
    let standing = Standing::Paused(Paused { reason: "why".to_owned(), since_ms: START });
    assert_eq!(item, Item { revision: 6, write_id: reset.id, rewound_by, standing, ..Item::new(identity) });
    assert_eq!(table.item().await, item);
    table.write(Change::Resume { now_ms: START }).await.expect("nobody holds it");
    table.tick("a", START).await.expect("as if never swept");
}

pub(super) async fn an_import_creates_or_replaces(bed: &dyn Bed) {
    let table = Table::of(bed).await;
    let identity = identity("servicenow-prod", "incident");
    let exported = Item {
        revision: 77,
        write_id: "elsewhere".to_owned(),
        lease: Some(Lease { owner: "elsewhere".to_owned(), until_ms: i64::MAX }),
        tries: 3,
        started_ms: Some(START),
        standing: Standing::Paused(Paused { reason: "moved".to_owned(), since_ms: START }),
        rewound_by: Some("execution-1".to_owned()),
        progress: Progress { window: StoredWindow::Inline("AAAA".to_owned()), ..progress(9) },
        ..Item::new(identity)
    };
    for revision in 1..=2 {
        let import = super::write(Change::Import(Import { item: exported.clone(), now_ms: START }));
        let item = table.send(&import).await.expect("nobody holds it");
        let expected =
            Item { revision, write_id: import.id, lease: None, tries: 0, started_ms: None, progress: progress(9), ..exported.clone() };
        assert_eq!(item, expected);
        assert_eq!(table.item().await, item);
    }
    let active = Change::Import(Import { item: Item { standing: Standing::Active, ..exported.clone() }, now_ms: START });
    let item = table.write(active).await.expect("nobody holds it");
    assert_eq!(item.standing, exported.standing, "a table that is held here stays held");
}

pub(super) async fn a_schema_is_accepted_while_the_table_waits_for_what_was_told_whatever_ticks_come_between(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let waiting = |message: &str| Waiting::after(&Standing::Active, "Source.SchemaChanged", message.to_owned(), START);
    let accept = |message: &str| Change::Accept { baseline: "new".to_owned(), told: waiting(message), now_ms: START };
    let mut item = table.acquire("a", START).await.expect("free");
    item.progress.notes.insert(BASELINE_KEPT_NOTE.to_owned(), String::new());
    table.release(&item, Standing::Waiting(waiting("one"))).await;
    // A tick finds it as it was.
    let item = table.tick("b", START).await.expect("it is looked at");
    assert_eq!(refusal(table.write(accept("one")).await), Refusal::Leased { until_ms: START + TERM });
    let item = table.release(&item, Standing::Waiting(waiting("one"))).await;
    assert_eq!(refusal(table.write(accept("another")).await), Refusal::Untold);
    assert_eq!(table.item().await, item);
    let item = table.write(accept("one")).await.expect("as it was told");
    let notes = [(BASELINE_NOTE.to_owned(), "new".to_owned())].into();
    let expected = Progress { notes, ..item.progress.clone() };
    assert_eq!((item.standing, item.progress), (Standing::Active, expected));
    assert_eq!(refusal(table.write(accept("one")).await), Refusal::Untold, "it waits no more");
}

pub(super) async fn sixteen_writers_lose_no_update(bed: &dyn Bed) {
    const WRITERS: u64 = 16;
    const EACH: u64 = 2;
    drop(Table::created(bed).await);
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let table = Table::of(bed).await;
        writers.spawn(async move {
            for _ in 0..EACH {
                loop {
                    let item = table.item().await;
                    let number: u64 = item.progress.cursor.as_ref().and_then(|at| at.get("sequence")?.parse().ok()).unwrap_or(0);
                    let rewind = Rewind { to: position(number + 1), now_ms: START, revision: Some(item.revision), request_id: None };
                    match table.write(Change::Rewind(rewind)).await {
                        Ok(_) => break,
                        Err(WriteError::Refused(Refusal::Lost { .. })) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.expect("a writer finishes");
    }
    let item = Table::of(bed).await.item().await;
    assert_eq!((item.progress.cursor, item.revision), (Some(position(WRITERS * EACH)), WRITERS * EACH + 1));
}
