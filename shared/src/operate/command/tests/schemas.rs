//! A schema that is accepted.

use super::*;
use crate::cursor::BASELINE_NOTE;

/// The baseline, and what the table was found with.
async fn siblings(bed: &Bed) -> Vec<String> {
    let mut texts = Vec::new();
    for name in [BASELINE, FOUND_SCHEMA] {
        let blob = bed.store.get_blob("c", &own().key().sibling(name)).await.expect("read");
        texts.extend(blob.map(|blob| String::from_utf8(blob.bytes).expect("text")));
    }
    texts
}

/// A tick finds the table so.
async fn tick(bed: &Bed, told: &str, found: &[u8]) {
    let key = own().key();
    let acquire = Acquire { owner: "t".into(), until_ms: NOW + 60_000, now_ms: NOW, scheduled: Some(1) };
    let item = bed.write(&key, Change::Acquire(acquire)).await;
    bed.store.put_blob("c", &key.sibling(FOUND_SCHEMA), found, Expect::Any, None).await.expect("kept");
    let waiting = Waiting::after(&item.standing, SCHEMA_CHANGED, told.to_owned(), NOW);
    let hold = Hold { owner: "t".into(), revision: item.revision };
    bed.write(&key, Change::Release(hold, item.progress, Standing::Waiting(waiting))).await;
}

/// A table that waits, found with `found` in place of its baseline.
async fn drifted(bed: &Bed, code: &str) -> Item {
    let key = own().key();
    bed.write(&key, Change::Create(own())).await;
    let acquire = Acquire { owner: "o".into(), until_ms: NOW + 60_000, now_ms: NOW, scheduled: None };
    let item = bed.write(&key, Change::Acquire(acquire)).await;
    let notes = [(BASELINE_NOTE.to_owned(), baseline_digest(b"old")), ("place".to_owned(), "x".to_owned())].into();
    let progress = Progress { cursor: Some(at("2026-06-01 00:00:00")), notes, ..Progress::default() };
    let waiting = Waiting::after(&Standing::Active, code, "a column is gone".to_owned(), NOW);
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
    assert_eq!(siblings(&bed).await, ["old", "new"], "the next sweep finds what is named");
    assert!(!bed.order(Order::AcceptSchema).await.expect("nothing to do").changed);
}

#[tokio::test]
async fn no_schema_is_accepted_for_a_table_that_waits_for_something_else_or_has_no_baseline() {
    let bed = Bed::new();
    drifted(&bed, "Source.SequenceRegressed").await;
    assert!(!bed.order(Order::AcceptSchema).await.expect("nothing to do").changed);
    let bed = Bed::new();
    bed.swept(own(), "2026-06-01 00:00:00", false).await;
    let refusal = bed.order(Order::AcceptSchema).await.expect_err("none");
    assert!(refusal.code() == "Cursor.NoBaseline" && refusal.to_string().contains("columns as they come"), "{refusal}");
    let refusal = CommandError::no_baseline(&Place { source: "sqlserver".into(), ..place() }).to_string();
    assert!(refusal.contains("not activated yet") && !refusal.contains("as they come"), "{refusal}");
}

#[tokio::test]
async fn a_resume_of_a_table_that_waits_for_its_schema_names_the_command_that_takes_it() {
    let bed = Bed::new();
    drifted(&bed, SCHEMA_CHANGED).await;
    let prepared = bed.operator().prepare(&place(), Order::Resume).await.expect("allowed");
    assert!(!prepared.changes && prepared.announcement.contains("cursor accept-schema"), "{}", prepared.announcement);
    assert!(prepared.announcement.contains("a column is gone"), "{}", prepared.announcement);
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

#[tokio::test]
async fn a_tick_that_finds_the_table_as_it_was_told_refuses_no_acceptance() {
    let bed = Bed::new();
    drifted(&bed, SCHEMA_CHANGED).await;
    let prepared = bed.operator().prepare(&place(), Order::AcceptSchema).await.expect("allowed");
    tick(&bed, "a column is gone", b"new").await;
    bed.operator().carry_out(prepared).await.expect("accepted");
    let item = bed.store.read(&own().key()).await.expect("read").expect("there");
    assert_eq!((item.standing, item.progress.notes.get(BASELINE_NOTE)), (Standing::Active, Some(&baseline_digest(b"new"))));
}

#[tokio::test]
async fn an_acceptance_of_what_is_not_so_any_more_is_refused_and_destroys_nothing() {
    for (told, found) in [("another column is gone", b"new"), ("a column is gone", b"odd")] {
        let bed = Bed::new();
        drifted(&bed, SCHEMA_CHANGED).await;
        let prepared = bed.operator().prepare(&place(), Order::AcceptSchema).await.expect("allowed");
        tick(&bed, told, found).await;
        let before = bed.store.read(&own().key()).await.expect("read");
        assert_eq!(bed.operator().carry_out(prepared).await.expect_err("refused").code(), "Cursor.Conflict");
        assert_eq!(bed.store.read(&own().key()).await.expect("read"), before);
        assert_eq!(siblings(&bed).await, ["old", std::str::from_utf8(found).expect("text")]);
    }
}

#[tokio::test]
async fn an_imported_cursor_brings_the_baseline_that_it_names_and_one_that_is_refused_brings_nothing() {
    let mut item = Item::new(own());
    item.progress.notes.insert(BASELINE_NOTE.to_owned(), baseline_digest(b"exported"));
    let order = || Order::Import { item: Box::new(item.clone()), forward: false, baseline: Some("exported".into()) };
    let bed = Bed::new();
    drifted(&bed, SCHEMA_CHANGED).await;
    let prepared = bed.operator().prepare(&place(), order()).await.expect("allowed");
    bed.write(&own().key(), Change::Acquire(Acquire { owner: "t".into(), until_ms: NOW + 60_000, now_ms: NOW, scheduled: None })).await;
    assert_eq!(bed.operator().carry_out(prepared).await.expect_err("a sweep came first").code(), "Cursor.Leased");
    assert_eq!(siblings(&bed).await, ["old", "new"]);
    bed.clock.advance(Duration::from_secs(61));
    bed.order(order()).await.expect("imported");
    assert_eq!(siblings(&bed).await, ["exported", "new"]);
}

#[tokio::test]
async fn an_exported_schema_of_a_topic_is_put_in_or_joined_with_the_one_that_is_there() {
    let bed = Bed::new();
    let schema = |version: u32, fields: &str| TopicSchema {
        connector: "c".into(),
        place: "topic/t/strings#schema".into(),
        text: format!(r#"{{"format":2,"name":"n","version":{version},"fields":[{fields}]}}"#),
    };
    let stored = async || {
        let blob = bed.store.get_blob("c", "topic/t/strings#schema").await.expect("read").expect("there");
        String::from_utf8(blob.bytes).expect("text")
    };
    let operator = bed.operator();
    for (brought, says, expected) in [
        (schema(2, r#""a","b""#), Some("puts"), schema(2, r#""a","b""#)),
        (schema(1, r#""a""#), None, schema(2, r#""a","b""#)),
        (schema(2, r#""a","x""#), Some("joins"), schema(3, r#""a","b","x""#)),
    ] {
        let announcement = operator.prepare_schema(&brought).await.expect("read");
        assert_eq!(announcement.is_some(), says.is_some(), "{announcement:?}");
        assert!(announcement.iter().zip(says).all(|(announcement, says)| announcement.contains(says)), "{announcement:?}");
        operator.put_schema(&brought).await.expect("put");
        assert_eq!(stored().await, expected.text);
    }
}
