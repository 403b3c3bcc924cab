//! Reads and writes the dedup windows that lie beside cursor items.
//!
//! A window is cut into parts and put under the revision of the cursor that its writer knows: the store does not let an
//! earlier writer write over a later one ([`Expect::UpTo`]). What a process wrote or read last it keeps in memory
//! ([`WindowCache`]), so that a warm one does not ask for it again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::fold::{Beside, PART};
use super::kept::{self, Kept};
use super::window::Window;
use crate::cursor::{CursorStore, Expect, Hold, Item, Key, Position, Slot, StoreError, StoredWindow};

/// An item of up to this many bytes costs one write unit.
pub(super) const SMALL_ITEM: usize = 1024;

/// The most bytes of windows that a process keeps: some tens of thousands of versions a megabyte.
const MOST_CACHED: usize = 8 << 20;

/// The windows that this process wrote or read last, as they lie beside their items.
///
/// A window is found by the digest that the item names, so one that somebody else has replaced since is never taken for
/// it. Bounded: what was used longest ago leaves first.
#[derive(Debug)]
pub struct WindowCache {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    windows: BTreeMap<Key, Cached>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Cached {
    digest: String,
    bytes: Vec<u8>,
    used: u64,
}

impl Default for WindowCache {
    fn default() -> Self {
        Self::of(MOST_CACHED)
    }
}

impl WindowCache {
    /// A cache of up to `most` bytes.
    pub fn of(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    fn get(&self, key: &Key, slot: &Slot, cursor: Option<&Position>) -> Option<Kept> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.uses += 1;
        let uses = held.uses;
        let cached = held.windows.get_mut(key).filter(|cached| cached.digest == slot.digest)?;
        cached.used = uses;
        Some(Kept::in_slot(slot, &cached.bytes, cursor))
    }

    fn put(&self, key: &Key, digest: &str, bytes: Vec<u8>) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.uses += 1;
        let used = held.uses;
        held.bytes += bytes.len();
        if let Some(before) = held.windows.insert(key.clone(), Cached { digest: digest.to_owned(), bytes, used }) {
            held.bytes -= before.bytes.len();
        }
        while held.bytes > self.most {
            let Some(oldest) = held.windows.iter().min_by_key(|(_, cached)| cached.used).map(|(key, _)| key.clone()) else { break };
            held.bytes -= held.windows.remove(&oldest).map_or(0, |cached| cached.bytes.len());
        }
    }
}

/// Reads the window of `item`.
pub(super) async fn load(store: &dyn CursorStore, cache: &WindowCache, item: &Item) -> Result<Kept, StoreError> {
    let (key, cursor) = (item.identity.key(), item.progress.cursor.as_ref());
    if let Some(kept) = Kept::in_item(&item.progress.window) {
        return Ok(kept);
    }
    match &item.progress.window {
        StoredWindow::Slot(slot) => {
            if let Some(kept) = cache.get(&key, slot, cursor) {
                return Ok(kept);
            }
            let mut bytes = Vec::new();
            for part in 0..slot.parts {
                let Some(blob) = store.get_blob(&partition(&key), &place(&key, slot, part)).await? else { return Ok(Kept::Lost) };
                bytes.extend(blob.bytes);
            }
            let kept = Kept::in_slot(slot, &bytes, cursor);
            cache.put(&key, &slot.digest, bytes);
            Ok(kept)
        }
        StoredWindow::Beside(parts) => first_format(store, &key, cursor, *parts).await,
        StoredWindow::None | StoredWindow::Inline(_) | StoredWindow::Lost => Ok(Kept::Lost),
    }
}

/// Writes a window beside the item at `key`, for the holder of `hold`. Returns whether it lies there now.
pub(super) async fn write(
    store: &dyn CursorStore,
    cache: &WindowCache,
    key: &Key,
    hold: &Hold,
    beside: Beside,
) -> Result<bool, StoreError> {
    let partition = partition(key);
    for (part, bytes) in (0..).zip(beside.bytes.chunks(PART)) {
        let place = place(key, &beside.slot, part);
        let put = || store.put_blob(&partition, &place, bytes, Expect::UpTo(hold.revision), None);
        if put().await?.is_some() {
            continue;
        }
        // A later holder wrote it, or a cursor that was removed has left it behind.
        let holder = store.read(key).await?;
        if !holder.is_some_and(|item| item.revision == hold.revision && item.lease.is_some_and(|lease| lease.owner == hold.owner)) {
            return Ok(false);
        }
        store.remove_blob(&partition, &place).await?;
        if put().await?.is_none() {
            return Ok(false);
        }
    }
    cache.put(key, &beside.slot.digest, beside.bytes);
    Ok(true)
}

/// Removes what may lie beside the item.
///
/// # Errors
/// The store does not answer.
pub async fn remove(store: &dyn CursorStore, key: &Key) -> Result<(), StoreError> {
    let prefix = format!("{}#", key.place);
    for (place, _) in store.list_blobs(&partition(key)).await? {
        if place.starts_with(&prefix) {
            store.remove_blob(&partition(key), &place).await?;
        }
    }
    Ok(())
}

fn partition(key: &Key) -> String {
    format!("{}#window", key.connector)
}

fn place(key: &Key, slot: &Slot, part: u32) -> String {
    let letter = if slot.number == 0 { 'a' } else { 'b' };
    format!("{}#{letter}{part}", key.place)
}

/// Cursor digest and window digest in front of each part in the first format.
const FIRST_HEADER: usize = 16 + 16;

fn first_place(key: &Key, part: u32) -> String {
    format!("{}#{part}", key.place)
}

/// A window as the first format of the item had it: one place, and each part names the cursor and the window.
async fn first_format(store: &dyn CursorStore, key: &Key, cursor: Option<&Position>, parts: u32) -> Result<Kept, StoreError> {
    let Some(cursor) = cursor else { return Ok(Kept::Lost) };
    let mut whole = Vec::new();
    let mut generation = None;
    for part in 0..parts {
        let Some(blob) = store.get_blob(&partition(key), &first_place(key, part)).await? else { return Ok(Kept::Lost) };
        let Some((header, body)) = blob.bytes.split_at_checked(FIRST_HEADER) else { return Ok(Kept::Lost) };
        if !header.starts_with(cursor.digest().as_bytes()) || generation.as_deref().is_some_and(|first| first != header) {
            return Ok(Kept::Lost);
        }
        generation = Some(header.to_vec());
        whole.extend_from_slice(body);
    }
    let intact = generation.is_some_and(|header| header.ends_with(kept::digest(&whole).as_bytes()));
    Ok(Window::decode(&whole).filter(|_| intact).map_or(Kept::Lost, Kept::Whole))
}

/// Removes a window of the first format, once the item names another place.
pub(super) async fn remove_first_format(store: &dyn CursorStore, key: &Key, parts: u32) -> Result<(), StoreError> {
    for part in 0..parts {
        store.remove_blob(&partition(key), &first_place(key, part)).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::memory::MemoryStore;
    use crate::cursor::{Acquire, Change, Identity, Write};
    use crate::sweep::WindowChange;

    fn identity() -> Identity {
        let text = |text: &str| text.to_owned();
        Identity {
            connector: text("c"),
            alias: text("inc"),
            source: text("servicenow"),
            instance: text("acme"),
            table: text("incident"),
            field: text("sys_updated_on"),
            id_field: text("sys_id"),
            fingerprint: text("0123456789abcdef"),
        }
    }

    fn at(second: i64) -> Position {
        Position::new([("timestamp", Some(second.to_string()))])
    }

    fn window(versions: u16) -> Window {
        let mut window = Window::complete_from(0);
        let delivered = (0..versions).map(|n| (1, [n.to_be_bytes(); 8].concat().try_into().expect("16 bytes"))).collect();
        window.apply(&WindowChange { delivered, ..WindowChange::default() });
        window
    }

    fn beside(number: u8, cursor: &Position, window: &Window) -> Beside {
        let bytes = kept::encode(cursor, window);
        let parts = u32::try_from(bytes.len().div_ceil(PART)).expect("few");
        Beside { slot: Slot { number, parts, digest: kept::digest(&bytes) }, bytes, otherwise: StoredWindow::Lost }
    }

    /// An item whose cursor is `cursor` and that names `slot`.
    fn naming(cursor: Position, slot: &Slot) -> Item {
        let mut item = Item::new(identity());
        (item.progress.cursor, item.progress.window) = (Some(cursor), StoredWindow::Slot(slot.clone()));
        item
    }

    /// A store in which `owner` holds the lease, and what it has to name.
    async fn held() -> (MemoryStore, Key, Hold) {
        let (store, key) = (MemoryStore::new(), identity().key());
        let write = |id: &str, change| Write { id: id.to_owned(), change };
        store.write(&key, &write("1", Change::Create(identity()))).await.expect("created");
        let acquire = Acquire { owner: "o".to_owned(), until_ms: 10, now_ms: 0, scheduled: None };
        let item = store.write(&key, &write("2", Change::Acquire(acquire))).await.expect("free");
        (store, key, Hold { owner: "o".to_owned(), revision: item.revision })
    }

    async fn blobs(store: &MemoryStore) -> usize {
        store.list_blobs("c#window").await.expect("a list").len()
    }

    #[tokio::test]
    async fn a_warm_process_does_not_read_what_it_wrote_or_read_last() {
        let (store, key, hold) = held().await;
        let (warm, reader) = (WindowCache::default(), WindowCache::default());
        let (cursor, written) = (at(5), window(20_000));
        let beside = beside(0, &cursor, &written);
        assert!(beside.slot.parts > 1, "large enough to be cut");
        let item = naming(cursor.clone(), &beside.slot);
        assert!(write(&store, &warm, &key, &hold, beside).await.expect("written"));
        assert_eq!(load(&store, &reader, &item).await.expect("read"), Kept::Whole(written.clone()));
        // Whoever asks the store from here on finds nothing.
        remove(&store, &key).await.expect("removed");
        for cache in [&warm, &reader] {
            assert_eq!(load(&store, cache, &item).await.expect("kept"), Kept::Whole(written.clone()));
        }
        assert_eq!(load(&store, &WindowCache::default(), &item).await.expect("an answer"), Kept::Lost);
        let later = Slot { digest: "f".repeat(16), ..slot_of(&item) };
        assert_eq!(
            load(&store, &warm, &naming(cursor, &later)).await.expect("an answer"),
            Kept::Lost,
            "somebody else's is not taken for it"
        );
    }

    fn slot_of(item: &Item) -> Slot {
        match &item.progress.window {
            StoredWindow::Slot(slot) => slot.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_used_longest_ago_leaves_the_memory_first() {
        let cache = WindowCache::of(100);
        let key = |n: u8| Key { connector: "c".to_owned(), place: n.to_string() };
        let has = |n: u8| cache.get(&key(n), &Slot { number: 0, parts: 1, digest: "d".to_owned() }, None).is_some();
        (0..3).for_each(|n| cache.put(&key(n), "d", vec![0; 30]));
        assert!(has(0));
        cache.put(&key(3), "d", vec![0; 30]);
        assert_eq!([has(0), has(1), has(2), has(3)], [true, false, true, true]);
        cache.put(&key(4), "d", vec![0; 101]);
        assert!(!has(4) && cache.held.lock().expect("no panic").bytes <= 100, "one that is too large is not kept");
    }

    #[tokio::test]
    async fn whoever_lost_the_lease_writes_over_no_window_of_the_holder() {
        let (store, key, hold) = held().await;
        let cache = WindowCache::default();
        let own = beside(0, &at(5), &window(3));
        let item = naming(at(5), &own.slot);
        assert!(write(&store, &cache, &key, &hold, own).await.expect("written"));
        let frozen = Hold { owner: "frozen".to_owned(), revision: hold.revision - 1 };
        assert!(!write(&store, &cache, &key, &frozen, beside(0, &at(2), &window(9))).await.expect("an answer"));
        assert_eq!(load(&store, &WindowCache::default(), &item).await.expect("read"), Kept::Whole(window(3)));
    }

    #[tokio::test]
    async fn what_a_removed_cursor_left_behind_does_not_keep_the_next_from_its_place() {
        let (store, key, hold) = held().await;
        let left = Expect::UpTo(hold.revision + 100);
        assert!(store.put_blob("c#window", &format!("{}#a0", key.place), b"left", left, None).await.expect("an answer").is_some());
        let own = beside(0, &at(5), &window(3));
        let item = naming(at(5), &own.slot);
        let cache = WindowCache::default();
        assert!(write(&store, &cache, &key, &hold, own).await.expect("written"));
        assert_eq!(load(&store, &WindowCache::default(), &item).await.expect("read"), Kept::Whole(window(3)));
    }

    #[tokio::test]
    async fn a_window_of_the_first_format_is_read_and_removed_once_it_is_not_named() {
        let (store, key, _) = held().await;
        let (cursor, bytes) = (at(5), window(3).encode());
        for (part, body) in bytes.chunks(40).enumerate() {
            let part_bytes = [cursor.digest().as_bytes(), kept::digest(&bytes).as_bytes(), body].concat();
            let place = format!("{}#{part}", key.place);
            store.put_blob("c#window", &place, &part_bytes, Expect::Any, None).await.expect("written");
        }
        let parts = u32::try_from(bytes.chunks(40).len()).expect("few");
        let mut item = naming(cursor, &Slot { number: 0, parts: 0, digest: String::new() });
        item.progress.window = StoredWindow::Beside(parts);
        assert_eq!(load(&store, &WindowCache::default(), &item).await.expect("read"), Kept::Whole(window(3)));
        item.progress.cursor = Some(at(6));
        assert_eq!(load(&store, &WindowCache::default(), &item).await.expect("read"), Kept::Lost, "it belongs to another cursor");
        assert_eq!(blobs(&store).await, parts as usize);
        remove_first_format(&store, &key, parts).await.expect("removed");
        assert_eq!(blobs(&store).await, 0);
    }
}
