use std::sync::Arc;

use super::*;
use crate::cursor::memory::MemoryStore;
use crate::cursor::{Change, Rewind, Write};
use crate::operate::shown;

fn place(alias: &str, source: &str) -> Place {
    Place {
        connector: "c".into(),
        alias: alias.into(),
        source: source.into(),
        instance: Some("acme".into()),
        table: Some(alias.into()),
        field: Some("sys_updated_on".into()),
        id_field: Some("sys_id".into()),
        fingerprint: Some("f".into()),
        start: None,
    }
}

fn wish() -> RewindOrder {
    RewindOrder { from: "2026-01-01 00:00:00".into(), request_id: "r".into() }
}

#[tokio::test]
async fn a_table_whose_cursor_is_a_number_is_refused_by_name() {
    let store = Arc::new(MemoryStore::new());
    let places = vec![place("inc", "servicenow"), place("orders", "sqlserver")];
    let failure = rewind(&*store, &Host::system(), &places, places.clone(), &wish()).await.expect_err("refused");
    assert_eq!(failure.code, "Event.Invalid");
    assert!(failure.message.contains("c/orders") && !failure.message.contains("c/inc"), "{failure}");
}

#[tokio::test]
async fn a_table_that_was_never_swept_has_nothing_to_go_back_from() {
    let places = vec![place("inc", "servicenow")];
    let failure = rewind(&MemoryStore::new(), &Host::system(), &places, places.clone(), &wish()).await.expect_err("refused");
    assert!(failure.code == "Cursor.Missing" && failure.message.contains("c/inc"), "{failure}");
}

async fn swept(store: &MemoryStore, place: &Place, stamp: &str) {
    let identity = place.identity().expect("all is known");
    let key = identity.key();
    let to = read_position("servicenow", stamp).expect("a time");
    for (n, change) in
        [Change::Create(identity), Change::Rewind(Rewind { to, now_ms: 0, revision: None, request_id: None })].into_iter().enumerate()
    {
        store.write(&key, &Write { id: format!("{}-{n}", place.alias), change }).await.expect("written");
    }
}

async fn cursor(store: &MemoryStore, place: &Place) -> String {
    let item = store.read(&place.identity().expect("all is known").key()).await.expect("read");
    shown(item.expect("there").progress.cursor.as_ref())
}

#[tokio::test]
async fn a_table_that_stands_before_the_time_or_has_not_begun_is_passed_over_and_the_others_are_set_back() {
    let (store, host) = (MemoryStore::new(), Host::system());
    let places = ["late", "quiet", "new"].map(|alias| place(alias, "servicenow"));
    swept(&store, &places[0], "2026-03-01 00:00:00").await;
    swept(&store, &places[1], "2025-12-01 00:00:00").await;
    // Repeated, it does the same again.
    for _ in 0..2 {
        let not_rewound = rewind(&store, &host, &places, places.to_vec(), &wish()).await.expect("rewound");
        assert_eq!(not_rewound, ["c/quiet", "c/new"]);
        assert_eq!(cursor(&store, &places[0]).await, "2026-01-01 00:00:00");
        assert_eq!(cursor(&store, &places[1]).await, "2025-12-01 00:00:00", "no row is left out");
    }
    let none = places[1..].to_vec();
    let wish = RewindOrder { request_id: "another".into(), ..wish() };
    let failure = rewind(&store, &host, &places, none, &wish).await.expect_err("nothing to do");
    assert_eq!((&*failure.code, failure.retry), ("Cursor.Forward", Retry::Never));
    assert!(failure.message.contains("c/quiet") && failure.message.contains("c/new"), "{failure}");
}
