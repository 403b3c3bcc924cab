//! How items and blobs lie in the table.
//!
//! A write costs one unit per started kilobyte of the item, names included. A usual cursor without a window takes about
//! 840 bytes (the tests measure it), so names are short words, and what the key says already is not said again.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob as Bytes;
use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Attributes;
use crate::cursor::{Blob, Identity, Item, Key, Standing, StoreError, decode};

pub(super) const CONNECTOR: &str = "connector";
pub(super) const PLACE: &str = "place";
pub(super) const FORMAT: &str = "format";
pub(super) const REVISION: &str = "revision";
pub(super) const WRITE_ID: &str = "write_id";
pub(super) const OWNER: &str = "owner";
pub(super) const UNTIL: &str = "until";
pub(super) const TRIES: &str = "tries";
pub(super) const STARTED: &str = "started";
pub(super) const PAUSED: &str = "paused";
pub(super) const PARKED: &str = "parked";
pub(super) const WAITING: &str = "waiting";
pub(super) const NEXT_TRY: &str = "next_try";
pub(super) const REWOUND_BY: &str = "rewound_by";
pub(super) const IDENTITY: &str = "identity";
pub(super) const PROGRESS: &str = "progress";
pub(super) const BYTES: &str = "bytes";
pub(super) const EXPIRES: &str = "expires";

pub(super) fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(super) fn number(value: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(super) fn bytes(value: &[u8]) -> AttributeValue {
    AttributeValue::B(Bytes::new(value))
}

pub(super) fn json(value: &impl Serialize) -> AttributeValue {
    // As in `encode`: string keys and finite numbers are representable.
    AttributeValue::S(serde_json::to_string(value).expect("a part of an item is representable in JSON"))
}

/// The primary key.
pub(super) fn key(partition: &str, place: &str) -> Attributes {
    HashMap::from([(CONNECTOR.to_owned(), text(partition)), (PLACE.to_owned(), text(place))])
}

/// The key that an item of an answer lies at.
pub(super) fn key_of(item: &Attributes) -> Key {
    // The table's key schema makes both strings.
    Key { connector: string(item, CONNECTOR).unwrap_or_default(), place: string(item, PLACE).unwrap_or_default() }
}

/// The attributes of a cursor.
pub(super) fn item(key: &Key, item: &Item) -> Attributes {
    let mut attributes = self::key(&key.connector, &key.place);
    let mut set = |name: &str, value| attributes.insert(name.to_owned(), value);
    set(FORMAT, number(item.format));
    set(REVISION, number(item.revision));
    set(WRITE_ID, text(&item.write_id));
    set(TRIES, number(item.tries));
    set(IDENTITY, identity(&item.identity));
    set(PROGRESS, json(&item.progress));
    if let Some(lease) = &item.lease {
        set(OWNER, text(&lease.owner));
        set(UNTIL, number(lease.until_ms));
    }
    if let Some(started_ms) = item.started_ms {
        set(STARTED, number(started_ms));
    }
    if let Some(request) = &item.rewound_by {
        set(REWOUND_BY, text(request));
    }
    for (name, value) in standing(&item.standing) {
        if let Some(value) = value {
            set(name, value);
        }
    }
    attributes
}

/// The identity, without the connector: that is the partition key.
fn identity(identity: &Identity) -> AttributeValue {
    json(&json!({
        "alias": identity.alias,
        "source": identity.source,
        "instance": identity.instance,
        "table": identity.table,
        "field": identity.field,
        "id_field": identity.id_field,
        "fingerprint": identity.fingerprint,
    }))
}

/// The attributes that say how a table stands; those without a value are not to be there.
pub(super) fn standing(standing: &Standing) -> [(&'static str, Option<AttributeValue>); 4] {
    let (mut paused, mut waiting, mut parked, mut next_try) = (None, None, None, None);
    match standing {
        Standing::Active => {}
        Standing::Paused(hold) => paused = Some(json(hold)),
        Standing::Waiting(wait) => waiting = Some(json(wait)),
        Standing::Parked(stop) => (parked, next_try) = (Some(json(stop)), Some(number(stop.next_try_ms))),
    }
    [(PAUSED, paused), (WAITING, waiting), (PARKED, parked), (NEXT_TRY, next_try)]
}

/// Reads the cursor at `key`. Its attributes are put together to the text of [`crate::cursor::encode`], so that what is
/// foreign, newer or damaged is refused in the same words as everywhere.
pub(super) fn decode_item(key: &Key, item: &Attributes) -> Result<Item, StoreError> {
    let part = |name: &str| string(item, name).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let mut whole = Map::new();
    if let Some(format) = integer(item, FORMAT) {
        whole.insert("format".to_owned(), format);
    }
    let identity = identity_of(item);
    let stands = [PAUSED, PARKED, WAITING].into_iter().find(|name| item.contains_key(*name));
    let standing = match stands {
        None => json!("active"),
        // One that is there and cannot be read must not pass for a table that may be swept.
        Some(name) => part(name).map_or(Value::Null, |how| json!({ (name): how })),
    };
    let lease = string(item, OWNER).map(|owner| json!({ "owner": owner, "until_ms": integer(item, UNTIL) }));
    let rest = [
        ("identity", identity),
        ("revision", integer(item, REVISION).unwrap_or_default()),
        ("write_id", string(item, WRITE_ID).into()),
        ("lease", lease.into()),
        ("tries", integer(item, TRIES).unwrap_or_default()),
        ("started_ms", integer(item, STARTED).unwrap_or_default()),
        ("standing", standing),
        ("rewound_by", string(item, REWOUND_BY).into()),
        ("progress", part(PROGRESS).unwrap_or_default()),
    ];
    whole.extend(rest.map(|(name, value)| (name.to_owned(), value)));
    decode(key, &Value::Object(whole).to_string())
}

/// The identity of an item, as JSON; null if it has none.
pub(super) fn identity_of(item: &Attributes) -> Value {
    let mut identity = string(item, IDENTITY).and_then(|text| serde_json::from_str::<Value>(&text).ok()).unwrap_or_default();
    if let Some(identity) = identity.as_object_mut() {
        identity.insert("connector".to_owned(), key_of(item).connector.into());
    }
    identity
}

/// When the lease on an item ends that cannot be read, in epoch milliseconds.
pub(super) fn lease_end(item: &Attributes) -> Option<i64> {
    item.get(OWNER)?;
    integer(item, UNTIL)?.as_i64()
}

fn string(item: &Attributes, name: &str) -> Option<String> {
    item.get(name)?.as_s().ok().cloned()
}

/// A whole number, as JSON.
fn integer(item: &Attributes, name: &str) -> Option<Value> {
    let digits = item.get(name)?.as_n().ok()?;
    digits.parse::<u64>().map(Value::from).or_else(|_| digits.parse::<i64>().map(Value::from)).ok()
}

/// Whether an item is a blob and not a cursor.
pub(super) fn is_blob(item: &Attributes) -> bool {
    item.contains_key(BYTES)
}

/// Whether the time of a blob is past: DynamoDB removes it within days of that, not at once.
pub(super) fn is_past(item: &Attributes, now_s: i64) -> bool {
    integer(item, EXPIRES).and_then(|end| end.as_i64()).is_some_and(|end| end <= now_s)
}

/// Whether the last write of an item was the one of this id.
pub(super) fn is_written_by(item: &Attributes, id: &str) -> bool {
    string(item, WRITE_ID).as_deref() == Some(id)
}

/// The revision of a blob.
pub(super) fn revision(item: &Attributes, partition: &str, place: &str) -> Result<u64, StoreError> {
    integer(item, REVISION).and_then(|revision| revision.as_u64()).ok_or_else(|| StoreError::Format {
        partition: partition.to_owned(),
        place: place.to_owned(),
        detail: "it has no revision, so another program wrote it; choose another cursor table".to_owned(),
    })
}

/// Reads a blob, with its place.
pub(super) fn decode_blob(mut item: Attributes) -> Result<(String, Blob), StoreError> {
    let Key { connector, place } = key_of(&item);
    let revision = revision(&item, &connector, &place)?;
    match item.remove(BYTES) {
        Some(AttributeValue::B(bytes)) => Ok((place, Blob { bytes: bytes.into_inner(), revision })),
        _ => {
            let detail = "its bytes are none, so another program wrote it; choose another cursor table".to_owned();
            Err(StoreError::Format { partition: connector, place, detail })
        }
    }
}
