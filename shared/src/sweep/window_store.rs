//! Where the dedup window lies between sweeps: inside the cursor item while that stays small, else beside it.
//!
//! A window beside the item is written in parts, before the write that moves the cursor. Each part names the cursor that
//! the window belongs to and the window itself, so that parts of two generations, or a window whose cursor was
//! never committed, are recognised. Such a window counts as lost, which costs duplicates and never a row.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::window::Window;
use crate::cursor::{CursorStore, Expect, Item, Key, Position, StoreError, StoredWindow};

/// An item of up to this many bytes costs one write unit.
pub(super) const SMALL_ITEM: usize = 1024;

/// The most bytes of one part.
const PART: usize = 256 * 1024 - HEADER;

/// Cursor digest and window digest in front of each part.
const HEADER: usize = 16 + 16;

/// A window as found in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Loaded {
    /// Nothing was delivered since the cursor was set.
    Fresh,
    /// This one.
    Found(Window),
    /// One was stored, and it does not belong to the cursor.
    Lost,
}

/// Reads the window of `item`.
pub(super) async fn load(store: &dyn CursorStore, item: &Item) -> Result<Loaded, StoreError> {
    let found = match &item.progress.window {
        StoredWindow::None => return Ok(Loaded::Fresh),
        StoredWindow::Inline(text) => STANDARD.decode(text).ok().and_then(|bytes| Window::decode(&bytes)),
        StoredWindow::Beside(parts) => beside(store, &item.identity.key(), item.progress.cursor.as_ref(), *parts).await?,
    };
    Ok(found.map_or(Loaded::Lost, Loaded::Found))
}

async fn beside(store: &dyn CursorStore, key: &Key, cursor: Option<&Position>, parts: u32) -> Result<Option<Window>, StoreError> {
    let Some(cursor) = cursor else { return Ok(None) };
    let mut whole = Vec::new();
    let mut generation = None;
    for part in 0..parts {
        let Some(blob) = store.get_blob(&partition(key), &place(key, part)).await? else { return Ok(None) };
        let Some((header, body)) = blob.bytes.split_at_checked(HEADER) else { return Ok(None) };
        if !header.starts_with(cursor.digest().as_bytes()) || generation.as_deref().is_some_and(|first| first != header) {
            return Ok(None);
        }
        generation = Some(header.to_vec());
        whole.extend_from_slice(body);
    }
    let intact = generation.is_some_and(|header| header.ends_with(digest(&whole).as_bytes()));
    Ok(if intact { Window::decode(&whole) } else { None })
}

/// Writes a window that belongs to `cursor` beside the item at `key`.
pub(super) async fn write(store: &dyn CursorStore, key: &Key, cursor: &Position, window: &Window) -> Result<StoredWindow, StoreError> {
    let bytes = window.encode();
    let header = format!("{}{}", cursor.digest(), digest(&bytes));
    let mut parts = 0;
    for body in bytes.chunks(PART) {
        let part = [header.as_bytes(), body].concat();
        store.put_blob(&partition(key), &place(key, parts), &part, Expect::Any, None).await?;
        parts += 1;
    }
    Ok(StoredWindow::Beside(parts))
}

/// Removes what may lie beside the item.
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

fn place(key: &Key, part: u32) -> String {
    format!("{}#{part}", key.place)
}

fn digest(bytes: &[u8]) -> String {
    crate::host::hex(&Sha256::digest(bytes)[..8])
}
