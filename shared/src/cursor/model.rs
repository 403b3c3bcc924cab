//! The cursor item: what is stored for one table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::StoreError;
use crate::host::hex;

/// The format this program writes. A lower one is read, and the next write replaces it; a higher one was written by a newer
/// program and is refused.
///
/// 2 since the dedup window beside the item lies in two slots ([`StoredWindow::Slot`]).
pub const FORMAT: u32 = 2;

/// Where an item lies: partition key and sort key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The connector's name.
    pub connector: String,
    /// `source/instance/table/fingerprint/field`.
    pub place: String,
}

impl Key {
    /// The sort key of what is kept beside the item under `name`.
    pub fn sibling(&self, name: &str) -> String {
        format!("{}#{name}", self.place)
    }
}

/// Which rows a cursor walks over, and whose cursor it is.
///
/// The fingerprint covers what chooses the rows (table, base query, domain flag), so a changed query is a new place.
/// A change of anything else in here is a cursor that was moved away from: [`Identity::moved`]. The alias is only what
/// people call the table: it is no part of the place, and a table that is given another keeps its cursor.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The connector's name.
    pub connector: String,
    /// The alias of the table in its document, as the last sweep knew it.
    pub alias: String,
    /// The kind of source, `servicenow` or `sqlserver`.
    pub source: String,
    /// The instance's host, or the server and its database.
    pub instance: String,
    /// The table or view.
    pub table: String,
    /// The field or column that orders the rows in time or sequence.
    pub field: String,
    /// The field that breaks ties; empty where the source needs none.
    pub id_field: String,
    /// SHA-256 over what chooses the rows, in hexadecimal.
    pub fingerprint: String,
}

impl Identity {
    /// The fingerprint of the parts that choose a table's rows: SHA-256 over them, each preceded by its length.
    pub fn fingerprint_of(parts: &[&str]) -> String {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        hex(&digest.finalize())
    }

    /// Where this cursor lies.
    pub fn key(&self) -> Key {
        let short = self.fingerprint.get(..16).unwrap_or(&self.fingerprint);
        let place = format!("{}/{}/{}/{}/{}", self.source, self.instance, self.table, short, self.field);
        Key { connector: self.connector.clone(), place }
    }

    /// The server of the instance, without a database on it: what an account signs in to.
    pub fn server(&self) -> &str {
        server_of(&self.instance)
    }

    /// If the rows of `stored` are those of another place than this one asks for: what differs. A changed query alone is
    /// not a move but a new cursor, and another alias is neither.
    pub fn moved(&self, stored: &Identity) -> Option<Moved> {
        let pairs = [
            ("source", &stored.source, &self.source),
            ("instance", &stored.instance, &self.instance),
            ("table", &stored.table, &self.table),
            ("timestamp or sequence field", &stored.field, &self.field),
            ("id field", &stored.id_field, &self.id_field),
        ];
        pairs.into_iter().find(|(_, was, is)| was != is).map(|(what, was, is)| Moved { what, was: was.clone(), is: is.clone() })
    }
}

/// The server of an [`Identity::instance`].
pub fn server_of(instance: &str) -> &str {
    instance.split_once('/').map_or(instance, |(server, _)| server)
}

/// How a document differs from a cursor that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Which part differs.
    pub what: &'static str,
    /// As stored.
    pub was: String,
    /// As the document says.
    pub is: String,
}

/// A position in a source's order, as the source writes it: `{"timestamp","sys_id"}`, `{"sequence"}`.
///
/// Only the source that wrote a position can read it; everybody else carries it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position(BTreeMap<String, Option<String>>);

impl Position {
    /// A position of the given fields.
    pub fn new<const N: usize>(fields: [(&str, Option<String>); N]) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// The field `name`, if it is there and not null.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_deref()
    }

    /// Whether the position has a field `name`, be it null.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// 16 hexadecimal digits that name this position, for what belongs to it and lies elsewhere.
    pub fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for (name, value) in &self.0 {
            digest.update(name.as_bytes());
            digest.update([0]);
            digest.update(value.as_deref().unwrap_or("\u{1}").as_bytes());
            digest.update([0]);
        }
        hex(&digest.finalize()[..8])
    }
}

/// Whether history is still being caught up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Behind: the next sweep starts at once.
    #[default]
    Backfill,
    /// Caught up: one sweep per tick.
    Stream,
}

/// Who sweeps the table now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lease {
    /// A random nonce of the holder; never a name that a second invocation could share.
    pub owner: String,
    /// When the lease ends by itself, in epoch milliseconds.
    pub until_ms: i64,
}

/// A table that failed in a way that only a person can mend.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parked {
    /// The failure's stable code.
    pub code: String,
    /// The failure in words.
    pub message: String,
    /// When the table was first parked, in epoch milliseconds.
    pub since_ms: i64,
    /// No scheduled tick tries before this, in epoch milliseconds.
    pub next_try_ms: i64,
    /// How often it was parked in a row; the pause between tries grows with it.
    pub times: u32,
}

/// The digest by which a cursor names its baseline.
pub fn baseline_digest(baseline: &[u8]) -> String {
    hex(&Sha256::digest(baseline)[..8])
}

/// A table whose source is not as it must be for rows to be read (a changed schema). Every sweep looks again, and goes on
/// by itself once the source is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// What it waits for, by stable code.
    pub code: String,
    /// And in words.
    pub message: String,
    /// Since when, in epoch milliseconds.
    pub since_ms: i64,
}

/// A table that an operator does not want to be swept for now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    /// Why, in words.
    pub reason: String,
    /// Since when, in epoch milliseconds.
    pub since_ms: i64,
}

/// Whether the table may be swept.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is swept.
    #[default]
    Active,
    /// An operator holds it.
    Paused(Paused),
    /// It waits for its next try after a permanent failure.
    Parked(Parked),
    /// Its source holds it; every sweep looks again.
    Waiting(Waiting),
}

/// Totals over the life of the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counters {
    /// Rows acknowledged by the sink.
    pub rows: u64,
    /// Re-read rows that were not sent again.
    pub suppressed: u64,
    /// Rows that the source counts but does not show, each counted once.
    pub hidden: u64,
    /// Rows that became visible behind the cursor and were not delivered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Rows left out by a policy: without a readable cursor, or larger than the sink takes.
    pub skipped: u64,
    /// Rows acknowledged in the last sweep that delivered any.
    pub last_rows: u64,
    /// When that was, in epoch milliseconds; 0 before the first.
    pub last_rows_ms: i64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Where the dedup window is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredWindow {
    /// There is none: nothing was delivered since the cursor was set.
    #[default]
    None,
    /// In the item itself, encoded in base64. It belongs to this item's cursor.
    Inline(String),
    /// Beside the item. It belongs to this item's cursor or to an earlier one, which it names.
    Slot(Slot),
    /// There was one, and it could not be stored.
    Lost,
    /// As format 1 had it: in this many blobs beside the item, which name the cursor that they belong to; in none if it was
    /// not stored. Read, and not written any more.
    Beside(u32),
}

/// Which of the two places beside the item a window lies in. The next one goes into the other, so that the one that the
/// item names stays whole until the item names another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// 0 or 1.
    pub number: u8,
    /// The blobs that it is cut into.
    pub parts: u32,
    /// 16 hexadecimal digits of the digest of what lies there.
    pub digest: String,
}

/// What the holder of the lease carries forward. A commit replaces it as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The last delivered or passed position; `None` before the source has set its first.
    pub cursor: Option<Position>,
    /// Up to when the last exhausted sweep has seen everything, in epoch milliseconds. For lag and phase only.
    pub swept_to_ms: Option<i64>,
    /// Backfill or stream.
    pub phase: Phase,
    /// The page size that works, where it is not the configured one.
    pub page_size: Option<u32>,
    /// The instance's clock less the local one, in milliseconds, as last seen.
    pub clock_difference_ms: Option<i64>,
    /// The dedup window.
    pub window: StoredWindow,
    /// Totals.
    pub counters: Counters,
    /// What else the source needs to remember, by names of its own. Small.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}

/// All that is stored for one table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The format of the stored item.
    pub format: u32,
    /// Which rows, and whose.
    pub identity: Identity,
    /// Counts the writes; a holder's write names the one it knows.
    pub revision: u64,
    /// The id of the last write.
    pub write_id: String,
    /// Who sweeps now.
    pub lease: Option<Lease>,
    /// Holders in a row that died without progress.
    pub tries: u32,
    /// When the last sweep was started, in epoch milliseconds.
    pub started_ms: Option<i64>,
    /// Whether it may be swept.
    pub standing: Standing,
    /// The last request id that rewound this cursor, so that the same request does not do it twice in a row. An earlier one is
    /// forgotten: repeated after another's, it rewinds once more.
    pub rewound_by: Option<String>,
    /// What the sweeps carry forward.
    pub progress: Progress,
}

impl Item {
    /// A table that was never swept.
    pub fn new(identity: Identity) -> Self {
        Self {
            format: FORMAT,
            identity,
            revision: 0,
            write_id: String::new(),
            lease: None,
            tries: 0,
            started_ms: None,
            standing: Standing::Active,
            rewound_by: None,
            progress: Progress::default(),
        }
    }

    /// Whether somebody holds the lease at `now_ms`.
    pub fn is_leased(&self, now_ms: i64) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until_ms > now_ms)
    }
}

/// The stored text of an item.
pub fn encode(item: &Item) -> String {
    // Every map in an item has string keys and every number is finite, which is all that JSON can refuse.
    serde_json::to_string(item).expect("an item is representable in JSON")
}

/// Reads the stored text of the item at `key`.
///
/// # Errors
/// [`StoreError::Format`] if it is of a newer format, not an item, or names another place than the one it lies in.
pub fn decode(key: &Key, text: &str) -> Result<Item, StoreError> {
    #[derive(Deserialize)]
    struct Versioned {
        format: Option<u64>,
    }
    let refuse = |detail: String| StoreError::Format { partition: key.connector.clone(), place: key.place.clone(), detail };
    let versioned: Versioned = serde_json::from_str(text).map_err(|error| refuse(format!("it is not JSON of this program ({error})")))?;
    match versioned.format {
        Some(1..) if versioned.format <= Some(u64::from(FORMAT)) => {}
        Some(format) => {
            return Err(refuse(format!(
                "it has format {format} and this program reads formats up to {FORMAT}: update tablesweep; or replace it, by \
                 `tablesweep cursor import` of a copy in an older format or by `tablesweep cursor reset`, which starts anew"
            )));
        }
        None => return Err(refuse("it has no format number, so another program wrote it; choose another cursor table".to_owned())),
    }
    let item: Item = serde_json::from_str(text).map_err(|error| refuse(format!("it is damaged ({error})")))?;
    if item.identity.key() != *key {
        return Err(refuse(format!("it describes {}, so it was copied here from elsewhere", item.identity.key().place)));
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::super::listing::{Listing, part};
    use super::*;

    fn identity() -> Identity {
        Identity {
            connector: "c".into(),
            alias: "inc".into(),
            source: "servicenow".into(),
            instance: "acme.service-now.com".into(),
            table: "incident".into(),
            field: "sys_updated_on".into(),
            id_field: "sys_id".into(),
            fingerprint: Identity::fingerprint_of(&["incident", "active=true", "true"]),
        }
    }

    #[test]
    fn the_fingerprint_cannot_be_forged_by_moving_a_boundary() {
        assert_ne!(Identity::fingerprint_of(&["ab", "c"]), Identity::fingerprint_of(&["a", "bc"]));
    }

    #[test]
    fn an_item_survives_storage_and_a_foreign_or_newer_one_is_refused_naming_the_partition() {
        let item = Item::new(identity());
        let key = item.identity.key();
        assert_eq!(decode(&key, &encode(&item)).expect("own format"), item);
        for text in ["{}", "[]", "nonsense", &encode(&Item { format: 99, ..item.clone() })] {
            let error = decode(&key, text).expect_err("foreign").to_string();
            assert!(error.contains("partition c") && error.contains(&key.place), "{error}");
        }
        let other = Key { place: "servicenow/else/incident/0/sys_updated_on".into(), ..key };
        assert!(decode(&other, &encode(&item)).expect_err("copied").to_string().contains("copied"));
    }

    #[test]
    fn what_cannot_be_read_is_kept_apart_with_whose_cursor_it_calls_itself() {
        let (key, newer) = (identity().key(), Item { format: 99, ..Item::new(identity()) });
        let renewed = encode(&newer).replace("\"alias\":", "\"shard\":3,\"alias\":");
        for (text, whose) in [(encode(&newer), Some(identity())), (renewed, Some(identity())), ("nonsense".to_owned(), None)] {
            let mut listing = Listing::default();
            listing.take(key.clone(), decode(&key, &text), || part(&text, "identity")).expect("no error of the store");
            assert_eq!((listing.items.len(), &listing.unreadable[0].key, &listing.unreadable[0].identity), (0, &key, &whose));
            assert!(listing.unreadable[0].error().to_string().contains(&key.place));
        }
    }

    #[test]
    fn an_item_of_the_first_format_is_read_with_the_place_of_its_window() {
        let key = identity().key();
        for (window, expected) in [
            ("\"none\"", StoredWindow::None),
            (r#"{"inline":"AAAA"}"#, StoredWindow::Inline("AAAA".into())),
            (r#"{"beside":3}"#, StoredWindow::Beside(3)),
            (r#"{"beside":0}"#, StoredWindow::Beside(0)),
        ] {
            let written = Item { format: 1, ..Item::new(identity()) };
            let text = encode(&written).replace("\"window\":\"none\"", &format!("\"window\":{window}"));
            assert_eq!(decode(&key, &text).expect("an older format").progress.window, expected);
        }
        assert!(decode(&key, &encode(&Item { format: 0, ..Item::new(identity()) })).is_err());
    }

    #[test]
    fn a_changed_query_is_a_new_place_and_a_changed_instance_is_a_move() {
        let stored = identity();
        let requeried = Identity { fingerprint: Identity::fingerprint_of(&["incident", "", "true"]), ..identity() };
        assert_ne!(stored.key(), requeried.key());
        assert_eq!(requeried.moved(&stored), None);
        let cloned = Identity { instance: "dev.service-now.com".into(), ..identity() };
        assert_eq!(cloned.moved(&stored).map(|moved| moved.what), Some("instance"));
        let other_id = Identity { id_field: "inc_sys_id".into(), ..identity() };
        assert_eq!(other_id.moved(&stored).map(|moved| moved.what), Some("id field"));
    }
}
