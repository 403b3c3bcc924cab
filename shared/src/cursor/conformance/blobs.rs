//! Promises about what lies beside the cursors.

use super::super::{Blob, Change, Expect};
use super::{Bed, START, identity, write};

pub(super) async fn a_blob_is_written_only_if_what_is_expected_holds(bed: &dyn Bed) {
    let (one, two) = (bed.open().await, bed.open().await);
    let put = |bytes: &'static [u8], expect| one.put_blob("@acme.service-now.com", "authentication", bytes, expect, None);
    assert_eq!(put(b"x", Expect::Revision(1)).await.expect("an answer"), None, "there is none yet");
    assert_eq!(two.get_blob("@acme.service-now.com", "authentication").await.expect("an answer"), None);
    assert_eq!(put(b"a", Expect::Absent).await.expect("an answer"), Some(1));
    assert_eq!(put(b"b", Expect::Absent).await.expect("an answer"), None, "there is one");
    assert_eq!(put(b"c", Expect::Revision(2)).await.expect("an answer"), None, "it is not there yet");
    assert_eq!(put(b"d", Expect::Revision(1)).await.expect("an answer"), Some(2));
    assert_eq!(put(b"e", Expect::Revision(1)).await.expect("an answer"), None, "it has moved on");
    assert_eq!(put(b"f", Expect::Any).await.expect("an answer"), Some(3));
    let found = two.get_blob("@acme.service-now.com", "authentication").await.expect("an answer");
    assert_eq!(found, Some(Blob { bytes: b"f".to_vec(), revision: 3 }));
    assert_eq!(put(b"", Expect::Revision(3)).await.expect("an answer"), Some(4), "no bytes are a content too");
    let found = two.get_blob("@acme.service-now.com", "authentication").await.expect("an answer");
    assert_eq!(found, Some(Blob { bytes: vec![], revision: 4 }));
    assert_eq!(one.put_blob("other", "authentication", b"g", Expect::Any, None).await.expect("an answer"), Some(1));
}

pub(super) async fn a_blob_of_a_later_writer_is_not_written_over(bed: &dyn Bed) {
    let (one, two) = (bed.open().await, bed.open().await);
    let put = async |store: &std::sync::Arc<dyn super::CursorStore>, bytes: &'static [u8], revision| {
        store.put_blob("c#window", "place", bytes, Expect::UpTo(revision), None).await.expect("an answer")
    };
    assert_eq!(put(&one, b"a", 7).await, Some(7), "there was none");
    assert_eq!(put(&one, b"b", 7).await, Some(7), "the same writer once more");
    assert_eq!(put(&two, b"c", 9).await, Some(9), "a later one");
    assert_eq!(put(&one, b"d", 8).await, None, "the earlier one has lost the right to write");
    let found = two.get_blob("c#window", "place").await.expect("an answer");
    assert_eq!(found, Some(Blob { bytes: b"c".to_vec(), revision: 9 }));
    one.remove_blob("c#window", "place").await.expect("removed");
    assert_eq!(put(&one, b"e", 3).await, Some(3), "there is none");
    // Every clock is past this time.
    assert!(one.put_blob("c#window", "place", b"f", Expect::UpTo(5), Some(1_000)).await.expect("an answer").is_some());
    assert_eq!(put(&two, b"g", 4).await, Some(4), "what is past counts as absent");
}

pub(super) async fn a_blob_of_256_kilobytes_comes_back_as_it_was(bed: &dyn Bed) {
    let store = bed.open().await;
    let bytes: Vec<u8> = (0..256 * 1_024_u32).map(|n| u8::try_from(n.wrapping_mul(2_654_435_761) >> 24).unwrap_or(0)).collect();
    assert_eq!(store.put_blob("c#window", "place#0", &bytes, Expect::Absent, None).await.expect("an answer"), Some(1));
    let found = store.get_blob("c#window", "place#0").await.expect("an answer").expect("the blob");
    assert!(found.bytes == bytes, "{} bytes came back", found.bytes.len());
}

pub(super) async fn blobs_are_listed_in_order_and_apart_from_cursors(bed: &dyn Bed) {
    let store = bed.open().await;
    let item = identity("c", "incident");
    let cursor = store.write(&item.key(), &write(Change::Create(item.clone()))).await.expect("a create");
    let place = item.key().place;
    let mut places: Vec<String> = ["#schema", "#baseline", "#\u{1f600}", "#\u{fffd}", " ", "/"].map(|end| format!("{place}{end}")).into();
    places.push("a".to_owned());
    for place in &places {
        store.put_blob("c", place, place.as_bytes(), Expect::Absent, None).await.expect("an answer");
    }
    store.put_blob("c#window", &place, b"elsewhere", Expect::Absent, None).await.expect("an answer");
    // Together they are more than the megabyte that one answer of a database may carry.
    let large = vec![7_u8; 256 * 1_024];
    for number in 0..6 {
        let place = format!("large/{number}");
        store.put_blob("c", &place, &large, Expect::Absent, None).await.expect("an answer");
        places.push(place);
    }
    places.sort();
    let listed = store.list_blobs("c").await.expect("a list");
    assert_eq!(listed.iter().map(|(place, _)| place).collect::<Vec<_>>(), places.iter().collect::<Vec<_>>());
    for (place, blob) in &listed {
        let whole = if place.starts_with("large/") { blob.bytes == large } else { blob.bytes == place.as_bytes() };
        assert!(whole && blob.revision == 1, "{place}");
    }
    assert_eq!(store.list("c").await.expect("a list"), vec![cursor]);
    assert_eq!(store.list_blobs("nobody").await.expect("a list"), vec![]);
}

pub(super) async fn connectors_are_listed_once_each_and_those_of_blobs_alone_are_not(bed: &dyn Bed) {
    let store = bed.open().await;
    assert_eq!(store.connectors().await.expect("a list"), Vec::<String>::new());
    for (connector, table) in [("c", "incident"), ("b", "task"), ("c", "problem"), ("ä", "incident")] {
        let item = identity(connector, table);
        store.write(&item.key(), &write(Change::Create(item.clone()))).await.expect("a create");
    }
    store.put_blob("@acme.service-now.com", "requests", b"x", Expect::Absent, None).await.expect("an answer");
    store.put_blob("c#audit", "a", b"x", Expect::Absent, None).await.expect("an answer");
    assert_eq!(store.connectors().await.expect("a list"), ["b", "c", "ä"]);
}

pub(super) async fn a_blob_whose_time_is_past_is_not_there(bed: &dyn Bed) {
    let store = bed.open().await;
    // Every clock is past the first and before the second.
    let (past, future) = (Some(1_000), Some(START * 2));
    let put = |place: &'static str, expect, expires| store.put_blob("c#audit", place, b"x", expect, expires);
    put("kept", Expect::Absent, future).await.expect("an answer").expect("there was none");
    put("past", Expect::Absent, past).await.expect("an answer").expect("there was none");
    assert!(store.get_blob("c#audit", "kept").await.expect("an answer").is_some());
    assert_eq!(store.get_blob("c#audit", "past").await.expect("an answer"), None);
    let listed: Vec<_> = store.list_blobs("c#audit").await.expect("a list").into_iter().map(|(place, _)| place).collect();
    assert_eq!(listed, ["kept"]);
    assert_eq!(put("past", Expect::Revision(1), future).await.expect("an answer"), None, "what is past cannot be replaced");
    let revision = put("past", Expect::Absent, future).await.expect("an answer").expect("what is past counts as absent");
    let found = store.get_blob("c#audit", "past").await.expect("an answer").expect("written again");
    assert_eq!(found.revision, revision);
    assert_eq!(put("past", Expect::Absent, future).await.expect("an answer"), None, "it is there again");
    put("past", Expect::Any, past).await.expect("an answer").expect("anything goes");
    assert_eq!(store.get_blob("c#audit", "past").await.expect("an answer"), None, "its new time is past");
    put("past", Expect::Any, None).await.expect("an answer").expect("anything goes");
    assert!(store.get_blob("c#audit", "past").await.expect("an answer").is_some(), "without a time it stays");
}

pub(super) async fn a_removed_blob_is_gone(bed: &dyn Bed) {
    let store = bed.open().await;
    store.put_blob("c", "a", b"x", Expect::Any, None).await.expect("an answer");
    store.put_blob("c", "b", b"y", Expect::Any, None).await.expect("an answer");
    for _ in 0..2 {
        store.remove_blob("c", "a").await.expect("an answer");
        assert_eq!(store.get_blob("c", "a").await.expect("an answer"), None);
        assert_eq!(store.list_blobs("c").await.expect("a list").len(), 1);
    }
    assert!(store.put_blob("c", "a", b"z", Expect::Absent, None).await.expect("an answer").is_some());
}

pub(super) async fn sixteen_writers_of_a_blob_lose_no_update(bed: &dyn Bed) {
    const WRITERS: u64 = 16;
    const EACH: u64 = 2;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let store = bed.open().await;
        writers.spawn(async move {
            for _ in 0..EACH {
                loop {
                    let found = store.get_blob("@host", "allowance").await.expect("an answer");
                    let number: u64 =
                        found.as_ref().map_or(0, |blob| std::str::from_utf8(&blob.bytes).expect("digits").parse().expect("digits"));
                    let expect = found.map_or(Expect::Absent, |blob| Expect::Revision(blob.revision));
                    let next = (number + 1).to_string();
                    if store.put_blob("@host", "allowance", next.as_bytes(), expect, None).await.expect("an answer").is_some() {
                        break;
                    }
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.expect("a writer finishes");
    }
    let found = bed.open().await.get_blob("@host", "allowance").await.expect("an answer").expect("the blob");
    assert_eq!(found, Blob { bytes: (WRITERS * EACH).to_string().into_bytes(), revision: WRITERS * EACH });
}
