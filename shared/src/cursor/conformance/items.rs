//! Promises about cursors as they lie in the store.

use super::super::{
    Change, Counters, Import, Item, Lease, Parked, Phase, Position, Progress, Refusal, Standing, StoreError, StoredWindow, WriteError,
};
use super::{Bed, START, TERM, Table, format_error, hold_of, identity, position, progress, refusal, write};

pub(super) async fn a_cursor_is_created_once(bed: &dyn Bed) {
    let table = Table::of(bed).await;
    assert_eq!(table.store.read(&table.key).await.expect("a read"), None);
    let identity = identity("servicenow-prod", "incident");
    let first = write(Change::Create(identity.clone()));
    let item = table.send(&first).await.expect("the first create");
    assert_eq!(item, Item { revision: 1, write_id: first.id, ..Item::new(identity.clone()) });
    assert_eq!(table.item().await, item);
    assert_eq!(refusal(table.write(Change::Create(identity)).await), Refusal::Exists);
    assert_eq!(table.item().await, item, "the refused create changed nothing");
}

pub(super) async fn a_missing_cursor_takes_no_write_but_create_and_import(bed: &dyn Bed) {
    let table = Table::of(bed).await;
    let hold = super::Hold { owner: "a".to_owned(), revision: 1 };
    let rewind = super::super::Rewind { to: position(1), now_ms: START, revision: None, request_id: None };
    let identity = identity("servicenow-prod", "incident");
    for change in [
        super::acquire("a", START, None),
        super::acquire("a", START, Some(60_000)),
        Change::Commit(hold.clone(), progress(1)),
        Change::Renew(hold.clone(), START + TERM),
        Change::Release(hold, progress(1), Standing::Active),
        Change::Rewind(rewind),
        Change::Reset { identity: identity.clone(), now_ms: START },
        Change::Pause { reason: "why".to_owned(), now_ms: START },
        Change::Resume { now_ms: START },
    ] {
        assert_eq!(refusal(table.write(change.clone()).await), Refusal::Missing, "{change:?}");
        assert_eq!(table.store.read(&table.key).await.expect("a read"), None, "{change:?} left an item");
    }
    let import = Import { item: Item { progress: progress(7), ..Item::new(identity) }, now_ms: START };
    let item = table.write(Change::Import(import)).await.expect("an import needs no item");
    assert_eq!((item.revision, item.progress.cursor), (1, Some(position(7))));
}

/// An item with something in every field.
fn full(item: &Item) -> (Progress, Standing) {
    let progress = Progress {
        cursor: Some(Position::new([("timestamp", Some("2026-01-01 00:00:00".to_owned())), ("sys_id", None)])),
        swept_to_ms: Some(START - 1),
        phase: Phase::Stream,
        page_size: Some(250),
        clock_difference_ms: Some(-1_234),
        window: StoredWindow::Inline("AAECAwQFBgcICQoLDA0ODw==".to_owned()),
        counters: Counters {
            rows: u64::from(u32::MAX) * 1_000,
            suppressed: 1,
            hidden: 2,
            late: 5,
            skipped: 3,
            last_rows: 4,
            last_rows_ms: START,
        },
        notes: [("größe".to_owned(), "\"quoted\"\n\u{0}\u{1f600}".to_owned())].into(),
    };
    (progress, Standing::Parked(Parked::after(&item.standing, "Source.Forbidden", "ünable: \"x\"".to_owned(), START)))
}

pub(super) async fn what_is_read_is_what_was_written(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    let other = Table::of(bed).await;
    let item = table.acquire("a", START).await.expect("free");
    assert_eq!(item.lease, Some(Lease { owner: "a".to_owned(), until_ms: START + TERM }));
    assert_eq!(other.item().await, item, "the other handle sees the lease");
    let (progress, standing) = full(&item);
    let item = table.write(Change::Commit(hold_of(&item), progress.clone())).await.expect("the holder commits");
    assert_eq!(item.progress, progress);
    assert_eq!(other.item().await, item);
    let item = table.write(Change::Release(hold_of(&item), progress.clone(), standing.clone())).await.expect("the holder releases");
    assert_eq!((&item.progress, &item.standing, &item.lease), (&progress, &standing, &None));
    assert_eq!(other.item().await, item);
    assert_eq!(other.store.list(&table.key.connector).await.expect("a list"), vec![item]);
}

pub(super) async fn cursors_are_listed_in_the_order_of_their_places(bed: &dyn Bed) {
    let store = bed.open().await;
    // The last two stand the other way round when they are compared as UTF-16.
    let mut tables = ["u_b", "incident", "Z", "a#x", "a/x", "a", "a b", "é", "\u{1f600}", "\u{fffd}"];
    for table in tables {
        let identity = identity("c", table);
        store.write(&identity.key(), &write(Change::Create(identity))).await.expect("a create");
    }
    tables.sort_by_key(|table| identity("c", table).key().place);
    let listed: Vec<_> = store.list("c").await.expect("a list").into_iter().map(|item| item.identity.table).collect();
    assert_eq!(listed, tables);
    assert_eq!(store.list("nobody").await.expect("a list"), vec![]);
}

pub(super) async fn connectors_with_odd_names_are_kept_apart(bed: &dyn Bed) {
    let store = bed.open().await;
    let long = "n".repeat(200);
    let longer = format!("{long}n");
    let wide = "\u{1f600}".repeat(200);
    let names = ["c", "c#window", "c/d", "c d", " c", "c ", "@host", "C", "ç", "%", "c%", "'\"\\", &long, &longer, &wide];
    for name in names {
        let identity = identity(name, "incident");
        store.write(&identity.key(), &write(Change::Create(identity))).await.unwrap_or_else(|error| panic!("{name:?}: {error}"));
    }
    for name in names {
        let listed: Vec<_> = store.list(name).await.expect("a list").into_iter().map(|item| item.identity.connector).collect();
        assert_eq!(listed, [name]);
        assert!(store.read(&identity(name, "incident").key()).await.expect("a read").is_some(), "{name:?}");
    }
}

pub(super) async fn a_cursor_of_a_newer_format_is_refused_naming_its_partition(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    bed.set_format(&table.key, 99).await;
    let said = |text: &str| {
        assert!(text.contains("servicenow-prod") && text.contains(&table.key.place) && text.contains("99"), "{text}");
    };
    said(&format_error(table.store.read(&table.key).await));
    said(&format_error(table.store.list(&table.key.connector).await));
    let hold = super::Hold { owner: "a".to_owned(), revision: 1 };
    let identity = identity("servicenow-prod", "incident");
    for change in [
        Change::Create(identity.clone()),
        super::acquire("a", START, None),
        Change::Commit(hold.clone(), progress(1)),
        Change::Renew(hold.clone(), START + TERM),
        Change::Release(hold, progress(1), Standing::Active),
        Change::Pause { reason: "why".to_owned(), now_ms: START },
        Change::Import(Import { item: Item::new(identity), now_ms: START }),
    ] {
        match table.write(change.clone()).await {
            Err(WriteError::Store(error @ StoreError::Format { .. })) => said(&error.to_string()),
            other => panic!("{change:?} on a newer format: {other:?}"),
        }
    }
    match table.store.remove(&table.key, START).await {
        Err(WriteError::Store(error @ StoreError::Format { .. })) => said(&error.to_string()),
        other => panic!("remove of a newer format: {other:?}"),
    }
    bed.set_format(&table.key, super::super::FORMAT).await;
    assert_eq!(table.item().await.revision, 1, "nothing was written");
}

pub(super) async fn a_cursor_of_an_older_format_is_read_and_replaced(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    bed.set_format(&table.key, 1).await;
    assert_eq!((table.item().await.format, table.item().await.revision), (1, 1));
    assert_eq!(table.store.list(&table.key.connector).await.expect("a list"), vec![table.item().await]);
    let item = table.tick("a", START).await.expect("an older format is no reason to refuse");
    assert_eq!((item.format, item.revision), (super::super::FORMAT, 2), "the first write replaces it");
    assert_eq!(table.item().await, item);
    table.release(&item, Standing::Active).await;
    bed.set_format(&table.key, 1).await;
    table.store.remove(&table.key, START).await.expect("nobody holds it");
    assert_eq!(table.store.read(&table.key).await.expect("a read"), None);
}

pub(super) async fn a_cursor_that_cannot_be_read_is_listed_beside_the_others_and_can_be_discarded(bed: &dyn Bed) {
    let (table, other) = (Table::created(bed).await, Table::of(bed).await);
    let own = identity("servicenow-prod", "incident");
    let sound = identity("servicenow-prod", "problem");
    let sound = table.store.write(&sound.key(), &write(Change::Create(sound))).await.expect("a create");
    match table.store.discard(&table.key, START).await {
        Err(WriteError::Refused(Refusal::Exists)) => {}
        read => panic!("a cursor that can be read was discarded: {read:?}"),
    }
    let held = table.acquire("a", START).await.expect("free");
    bed.set_format(&table.key, 99).await;
    let listing = other.store.survey("servicenow-prod").await.expect("one that cannot be read takes none away");
    assert_eq!((listing.items, listing.unreadable.len()), (vec![sound.clone()], 1));
    let unreadable = &listing.unreadable[0];
    assert_eq!((&unreadable.key, &unreadable.identity), (&table.key, &Some(own)));
    assert!(unreadable.detail.contains("99"), "{}", unreadable.detail);
    match other.store.discard(&table.key, START + TERM - 1).await {
        Err(WriteError::Refused(Refusal::Leased { .. })) => {}
        left => panic!("its holder was not asked: {left:?}"),
    }
    let known = table.die(&held);
    for _ in 0..2 {
        other.store.discard(&other.key, known).await.expect("nobody holds it");
        assert_eq!(other.store.read(&other.key).await.expect("a read"), None);
    }
    assert_eq!(other.store.list("servicenow-prod").await.expect("a list"), vec![sound]);
}

pub(super) async fn a_removed_cursor_is_gone_and_removing_nothing_is_no_error(bed: &dyn Bed) {
    let table = Table::created(bed).await;
    for _ in 0..2 {
        table.store.remove(&table.key, START).await.expect("nobody holds it");
        assert_eq!(table.store.read(&table.key).await.expect("a read"), None);
        assert_eq!(table.store.list(&table.key.connector).await.expect("a list"), vec![]);
    }
}

pub(super) async fn a_cursor_is_not_removed_under_its_holder(bed: &dyn Bed) {
    let holder = Table::created(bed).await;
    let operator = Table::of(bed).await;
    let item = holder.acquire("a", START).await.expect("free");
    match operator.store.remove(&operator.key, START + TERM - 1).await {
        Err(WriteError::Refused(Refusal::Leased { until_ms })) => assert_eq!(until_ms, START + TERM),
        other => panic!("{other:?}"),
    }
    assert_eq!(operator.item().await, item);
    let known = holder.die(&item);
    operator.store.remove(&operator.key, known).await.expect("the holder is gone");
    assert_eq!(operator.store.read(&operator.key).await.expect("a read"), None);
}
