//! What needs no DynamoDB: the layout, and how large it is. The promises are kept over a socket, in
//! `tests/promises/dynamodb_store.rs`.

use aws_sdk_dynamodb::types::AttributeValue;

use super::super::{
    Counters, FORMAT, Identity, Item, Lease, Parked, Paused, Phase, Position, Progress, Standing, StoreError, StoredWindow, Waiting,
};
use super::{Attributes, layout};

/// A table of ServiceNow in the middle of its life, while it is swept.
fn usual() -> Item {
    Item {
        revision: 1_234_567,
        write_id: "0123456789abcdef".repeat(2),
        lease: Some(Lease { owner: "0123456789abcdef".repeat(2), until_ms: 1_800_000_000_000 }),
        tries: 1,
        started_ms: Some(1_800_000_000_000),
        progress: Progress {
            cursor: Some(Position::new([
                ("timestamp", Some("2026-11-30 04:20:42".to_owned())),
                ("sys_id", Some("0123456789abcdef".repeat(2))),
            ])),
            swept_to_ms: Some(1_800_000_000_000),
            phase: Phase::Stream,
            page_size: None,
            clock_difference_ms: Some(-1_234),
            window: StoredWindow::None,
            counters: Counters {
                rows: 12_345_678,
                suppressed: 123_456,
                hidden: 12,
                late: 0,
                skipped: 0,
                last_rows: 17,
                last_rows_ms: 1_800_000_000_000,
            },
            notes: [].into(),
        },
        ..Item::new(Identity {
            connector: "servicenow-production".to_owned(),
            alias: "change_request".to_owned(),
            source: "servicenow".to_owned(),
            instance: "examplecorporation.service-now.com".to_owned(),
            table: "change_request".to_owned(),
            field: "sys_updated_on".to_owned(),
            id_field: "sys_id".to_owned(),
            fingerprint: Identity::fingerprint_of(&["change_request"]),
        })
    }
}

/// What DynamoDB counts an item as: names and text in UTF-8, a byte for two digits of a number and one more.
fn size(item: &Attributes) -> usize {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.trim_start_matches('-').len().div_ceil(2) + 1 + usize::from(digits.starts_with('-')),
        other => panic!("{other:?}"),
    };
    item.iter().map(|(name, is)| name.len() + value(is)).sum()
}

#[test]
fn a_usual_cursor_is_one_write_unit_with_room_for_a_window() {
    let item = usual();
    let bytes = size(&layout::item(&item.identity.key(), &item));
    println!("a usual cursor takes {bytes} bytes");
    assert!(bytes + 160 <= 1_024, "{bytes} bytes leave no room for ten rows of a window");
}

#[test]
fn an_item_survives_its_attributes_however_it_stands() {
    let paused = Paused { reason: "größe \"x\"".to_owned(), since_ms: -1 };
    for standing in [
        Standing::Active,
        Standing::Paused(paused),
        Standing::Waiting(Waiting::after(&Standing::Active, "Source.SchemaChanged", "ä".to_owned(), 7)),
        Standing::Parked(Parked::after(&Standing::Active, "Source.Forbidden", "no".to_owned(), 7)),
    ] {
        for lease in [None, Some(Lease { owner: "a".to_owned(), until_ms: i64::MIN })] {
            let item = Item { standing: standing.clone(), lease, revision: u64::MAX, rewound_by: Some("r".to_owned()), ..usual() };
            let key = item.identity.key();
            assert_eq!(layout::decode_item(&key, &layout::item(&key, &item)).expect("its own"), item);
            let bare = Item { started_ms: None, rewound_by: None, write_id: String::new(), ..item };
            assert_eq!(layout::decode_item(&key, &layout::item(&key, &bare)).expect("its own"), bare);
        }
    }
}

#[test]
fn an_item_without_a_part_or_with_a_damaged_one_is_refused_naming_its_partition() {
    let item = Item { standing: Standing::Paused(Paused { reason: "why".to_owned(), since_ms: 0 }), ..usual() };
    let key = item.identity.key();
    let whole = layout::item(&key, &item);
    let refused = |attributes: &Attributes, what: &str| match layout::decode_item(&key, attributes) {
        Err(error @ StoreError::Format { .. }) => assert!(error.to_string().contains(&key.connector), "{what}: {error}"),
        other => panic!("{what}: {other:?}"),
    };
    for name in [layout::FORMAT, layout::REVISION, layout::WRITE_ID, layout::TRIES, layout::IDENTITY, layout::PROGRESS, layout::UNTIL] {
        let mut without = whole.clone();
        without.remove(name).expect("it is there");
        refused(&without, name);
    }
    for (name, value) in [
        (layout::FORMAT, layout::number(FORMAT + 1)),
        (layout::FORMAT, layout::text("1")),
        (layout::REVISION, layout::number("1.5")),
        (layout::PAUSED, layout::text("{")),
        (layout::PROGRESS, layout::text("[]")),
        (layout::IDENTITY, layout::text("[]")),
    ] {
        let mut damaged = whole.clone();
        damaged.insert(name.to_owned(), value);
        refused(&damaged, name);
    }
}
