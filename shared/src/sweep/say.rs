//! A write that moves the cursor, with the window that it names.

use super::acquire::write;
use super::engine::Engine;
use super::fold::Saying;
use super::window_store;
use crate::cursor::{Change, Hold, Item, Key, Progress, StoredWindow, WriteError};
use crate::host::failpoint;

/// What came of it.
pub(super) struct Said {
    /// Where the window was to lie.
    pub(super) window: StoredWindow,
    /// The item as it is now, or why it was not written.
    pub(super) item: Result<Item, WriteError>,
}

/// Writes the window that `saying` puts beside the item, if it does, and then the item. `change` makes the write of it. A
/// window that cannot be written is no reason to keep the cursor where it is.
pub(super) async fn say(engine: &Engine, key: &Key, hold: Hold, saying: Saying, change: impl FnOnce(Hold, Progress) -> Change) -> Said {
    let Saying { mut progress, beside } = saying;
    let window = progress.window.clone();
    if let Some(beside) = beside {
        let otherwise = beside.otherwise.clone();
        match window_store::write(&*engine.store, &engine.windows, key, &hold, beside).await {
            Ok(true) => {}
            // A later holder has written there: the write of the item will be refused.
            Ok(false) => progress.window = otherwise,
            Err(error) => {
                tracing::warn!(connector = key.connector, place = key.place, %error, "the dedup window could not be stored; a part of the overlap may be delivered once more");
                progress.window = otherwise;
            }
        }
    }
    let change = change(hold, progress);
    failpoint(if matches!(change, Change::Release(..)) { "before-release" } else { "before-commit" });
    Said { window, item: write(engine, key, change).await }
}
