use std::sync::Arc;

use super::*;
use crate::cursor::memory::MemoryStore;

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
