//! A dedup window as it lies in a store, and what it is worth to the cursor that finds it.
//!
//! A window beside the item says which cursor it belongs to. If that is not the item's any more, because a process died
//! after it had moved the cursor and before it had stored its window, the older one is still true of what it contains: those
//! versions were delivered. Only what was delivered since is unknown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::window::Window;
use crate::cursor::{Position, Slot, StoredWindow};

/// What is known of the rows that were delivered before a sweep.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kept {
    /// Nothing was delivered since the cursor was set.
    Fresh,
    /// All that the overlap needs.
    Whole(Window),
    /// What an earlier cursor knew, and which one.
    Older(Window, Position),
    /// Nothing.
    Lost,
}

/// A window as it is stored beside an item, with the cursor that it belongs to.
pub fn encode(cursor: &Position, window: &Window) -> Vec<u8> {
    // String keys are representable.
    let cursor = serde_json::to_vec(cursor).expect("a position is representable in JSON");
    let mut bytes = Vec::with_capacity(4 + cursor.len());
    bytes.extend(u32::try_from(cursor.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(cursor);
    bytes.extend(window.encode());
    bytes
}

/// Reads what [`encode`] wrote.
fn decode(bytes: &[u8]) -> Option<(Position, Window)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (cursor, window) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some((serde_json::from_slice(cursor).ok()?, Window::decode(window)?))
}

/// 16 hexadecimal digits of the digest of `bytes`.
pub fn digest(bytes: &[u8]) -> String {
    crate::host::hex(&Sha256::digest(bytes)[..8])
}

impl Kept {
    /// What the item itself says; `None` if that lies beside it.
    pub fn in_item(stored: &StoredWindow) -> Option<Self> {
        match stored {
            StoredWindow::None => Some(Self::Fresh),
            StoredWindow::Inline(text) => {
                let window = STANDARD.decode(text).ok().and_then(|bytes| Window::decode(&bytes));
                Some(window.map_or(Self::Lost, Self::Whole))
            }
            StoredWindow::Lost | StoredWindow::Beside(0) => Some(Self::Lost),
            StoredWindow::Slot(_) | StoredWindow::Beside(_) => None,
        }
    }

    /// What lies in the slot that an item with `cursor` names.
    pub fn in_slot(slot: &Slot, bytes: &[u8], cursor: Option<&Position>) -> Self {
        if digest(bytes) != slot.digest {
            return Self::Lost;
        }
        match (decode(bytes), cursor) {
            (Some((at, window)), Some(cursor)) if at == *cursor => Self::Whole(window),
            (Some((at, window)), Some(_)) => Self::Older(window, at),
            _ => Self::Lost,
        }
    }
}

/// The text of a window that lies in the item.
pub(super) fn inline(window: &Window) -> StoredWindow {
    StoredWindow::Inline(STANDARD.encode(window.encode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: &str) -> Position {
        Position::new([("timestamp", Some(second.to_owned()))])
    }

    fn slot(bytes: &[u8]) -> Slot {
        Slot { number: 0, parts: 1, digest: digest(bytes) }
    }

    #[test]
    fn a_window_beside_the_item_knows_whose_it_is() {
        let window = Window::lost(3, 9);
        let bytes = encode(&at("9"), &window);
        assert_eq!(Kept::in_slot(&slot(&bytes), &bytes, Some(&at("9"))), Kept::Whole(window.clone()));
        assert_eq!(Kept::in_slot(&slot(&bytes), &bytes, Some(&at("99"))), Kept::Older(window, at("9")));
        assert_eq!(Kept::in_slot(&slot(&bytes), &bytes, None), Kept::Lost);
    }

    #[test]
    fn whatever_else_lies_there_counts_as_lost() {
        let bytes = encode(&at("9"), &Window::complete_from(9));
        for cut in 0..bytes.len() {
            assert_eq!(Kept::in_slot(&slot(&bytes), &bytes[..cut], Some(&at("9"))), Kept::Lost, "cut at {cut}");
            assert_eq!(Kept::in_slot(&slot(&bytes[..cut]), &bytes[..cut], Some(&at("9"))), Kept::Lost, "an odd window cut at {cut}");
        }
        let another = encode(&at("9"), &Window::complete_from(8));
        assert_eq!(Kept::in_slot(&slot(&bytes), &another, Some(&at("9"))), Kept::Lost, "a whole one that the item does not name");
        assert_eq!(Kept::in_item(&StoredWindow::Inline("?".into())), Some(Kept::Lost));
        assert_eq!(Kept::in_item(&StoredWindow::Lost), Some(Kept::Lost));
    }

    #[test]
    fn a_window_in_the_item_belongs_to_its_cursor() {
        let window = Window::lost(3, 9);
        assert_eq!(Kept::in_item(&inline(&window)), Some(Kept::Whole(window)));
        assert_eq!(Kept::in_item(&StoredWindow::None), Some(Kept::Fresh));
    }
}
