//! What a sweep has brought so far, as its next commit will say it.
//!
//! Each acknowledged page is a [`Step`]: the source's checkpoint and what was counted on the way to it. A [`Fold`] takes
//! steps in, in order, and holds the [`Progress`] after them and the dedup window that belongs to it. It also decides
//! where that window is to lie:
//!
//! * in the item, while that stays small;
//! * else beside it. It is written there at the end of a sweep, and at once if the item names none there. In between the
//!   item names the last one, which says whose it is ([`Kept`](super::Kept)).
//!
//! There are two places beside the item. A window goes into the one that the item does not name, and is found only once
//! the item names it: so a process that dies between the two writes leaves the other one whole, and one that was
//! frozen for longer than its lease changes nothing that anybody looks for. A plain value: it neither reads nor writes.

use std::collections::BTreeMap;

use super::kept;
use super::window::{Version, Window};
use crate::cursor::{Item, Position, Progress, Slot, StoredWindow, encode};
use crate::sink::Delivered;
use crate::source::Checkpoint;

/// A checkpoint with what was counted on the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Step {
    /// What may be committed.
    pub checkpoint: Checkpoint,
    /// Rows read again and not sent again.
    pub suppressed: u64,
    /// Hidden rows found.
    pub hidden: u64,
    /// Rows left out because their cursor cannot be read.
    pub skipped: u64,
    /// Rows found behind the cursor that were not delivered.
    pub late: u64,
    /// The page's number in the pipeline, under which the sink's report is kept.
    pub page: u64,
    /// Whether a sweep ends with it.
    pub ends: bool,
}

/// What was counted in one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Counted {
    /// Rows acknowledged by the sink.
    pub rows: u64,
    /// Rows read again and not sent again.
    pub suppressed: u64,
    /// Hidden rows found.
    pub hidden: u64,
    /// Rows found behind the cursor that were not delivered.
    pub late: u64,
    /// Rows left out by policy, at the source or at the sink.
    pub skipped: u64,
}

/// What a commit is to say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Saying {
    /// The progress.
    pub progress: Progress,
    /// What is to be written beside the item before that.
    pub beside: Option<Beside>,
}

/// A window that is to lie beside the item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Beside {
    /// Where.
    pub slot: Slot,
    /// What.
    pub bytes: Vec<u8>,
    /// What the item says of the window if it cannot be written.
    pub otherwise: StoredWindow,
}

/// The most bytes of one part of a window beside the item.
pub const PART: usize = 256 * 1024;

/// The steps so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fold {
    progress: Progress,
    window: Option<Window>,
    /// The window is not the one that is stored.
    changed: bool,
    /// The page that was taken in last ended a sweep.
    rests: bool,
    delivered: BTreeMap<u64, Delivered>,
    counted: Counted,
}

impl Fold {
    /// Nothing has been brought since `progress`. `window`: as the source begins with it, if it needs one; `changed`:
    /// whether that is not what is stored.
    pub fn new(progress: Progress, window: Option<Window>, changed: bool) -> Self {
        Self { progress, window, changed, rests: false, delivered: BTreeMap::new(), counted: Counted::default() }
    }

    /// The sink has acknowledged the page. Its step is taken in later, in its turn.
    pub fn acknowledged(&mut self, page: u64, delivered: Delivered) {
        self.delivered.insert(page, delivered);
    }

    /// Takes in the steps of acknowledged pages. `now_ms`: epoch milliseconds.
    pub fn take_in(&mut self, steps: &[Step], now_ms: i64) {
        for step in steps {
            self.rests |= step.ends;
            let delivered = self.delivered.remove(&step.page).unwrap_or_default();
            self.count(step, delivered);
            let (progress, checkpoint) = (&mut self.progress, &step.checkpoint);
            if let Some(window) = &mut self.window {
                self.changed |= window.apply(&checkpoint.window) || checkpoint.cursor != progress.cursor;
            }
            progress.cursor.clone_from(&checkpoint.cursor);
            progress.swept_to_ms = checkpoint.swept_to_ms.or(progress.swept_to_ms);
            progress.phase = checkpoint.phase;
            progress.page_size = checkpoint.page_size;
            progress.clock_difference_ms = checkpoint.clock_difference_ms;
            progress.notes.clone_from(&checkpoint.notes);
        }
        if self.counted.rows > 0 {
            self.progress.counters.last_rows = self.counted.rows;
            self.progress.counters.last_rows_ms = now_ms;
        }
    }

    fn count(&mut self, step: &Step, delivered: Delivered) {
        let skipped = step.skipped.saturating_add(delivered.skipped);
        let counters = &mut self.progress.counters;
        // What is stored may have been set by hand, to anything.
        let counted = &mut self.counted;
        for (count, more) in [
            (&mut counters.rows, delivered.rows),
            (&mut counters.suppressed, step.suppressed),
            (&mut counters.hidden, step.hidden),
            (&mut counters.late, step.late),
            (&mut counters.skipped, skipped),
            (&mut counted.rows, delivered.rows),
            (&mut counted.suppressed, step.suppressed),
            (&mut counted.hidden, step.hidden),
            (&mut counted.late, step.late),
            (&mut counted.skipped, skipped),
        ] {
            *count = count.saturating_add(more);
        }
    }

    /// The page size that works, as the source said it last; it is kept even if no page came of it.
    pub fn learned(&mut self, page_size: Option<u32>) {
        self.progress.page_size = page_size;
    }

    /// What was counted in this invocation. Rows that were acknowledged and could not be committed count.
    pub fn counted(&self) -> Counted {
        let waiting: u64 = self.delivered.values().map(|delivered| delivered.rows).sum();
        Counted { rows: self.counted.rows + waiting, ..self.counted }
    }

    /// What the next write is to say of the steps so far. `item`: as it is now; `small`: the bytes up to which the window goes
    /// into it, item included; `last`: the lease is given back with this write.
    pub fn saying(&self, item: &Item, small: usize, last: bool) -> Saying {
        let (Some(window), Some(cursor), true) = (&self.window, &self.progress.cursor, self.changed) else {
            return Saying { progress: self.progress.clone(), beside: None };
        };
        if let Some(progress) = self.inline(item, window, small) {
            return Saying { progress, beside: None };
        }
        let named = match &self.progress.window {
            StoredWindow::Slot(slot) => Some(slot),
            _ => None,
        };
        if named.is_some() && !last && !self.rests {
            return Saying { progress: self.progress.clone(), beside: None };
        }
        let beside = beside(named, cursor, window);
        let progress = Progress { window: StoredWindow::Slot(beside.slot.clone()), ..self.progress.clone() };
        Saying { progress, beside: Some(beside) }
    }

    /// A write took effect; `said`: where its window was to lie, `item`: the answer.
    pub fn said(&mut self, said: &StoredWindow, item: &Item) {
        // If the window could not be written beside the item, the item says something else.
        let is_stored = item.progress.window == *said && self.progress.window != *said;
        self.changed &= !is_stored;
        self.rests &= !is_stored;
        self.progress.window = item.progress.window.clone();
    }

    /// The progress with the window inside the item, if the item stays small with it.
    fn inline(&self, item: &Item, window: &Window, small: usize) -> Option<Progress> {
        if window.len() * size_of::<Version>() > small {
            return None;
        }
        let with = Item { progress: Progress { window: kept::inline(window), ..self.progress.clone() }, ..item.clone() };
        (encode(&with).len() <= small).then_some(with.progress)
    }
}

/// The window as it goes into the slot that is not `named`.
fn beside(named: Option<&Slot>, cursor: &Position, window: &Window) -> Beside {
    let bytes = kept::encode(cursor, window);
    let slot = Slot {
        number: named.map_or(0, |slot| 1 - slot.number.min(1)),
        parts: u32::try_from(bytes.len().div_ceil(PART)).unwrap_or(u32::MAX),
        digest: kept::digest(&bytes),
    };
    // An older window that is named stands; of any other the item cannot say whose it was.
    let otherwise = named.map_or(StoredWindow::Lost, |slot| StoredWindow::Slot(slot.clone()));
    Beside { slot, bytes, otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::{Identity, Phase};
    use crate::sweep::WindowChange;

    fn item(window: StoredWindow) -> Item {
        let text = || "x".to_owned();
        let identity = Identity {
            connector: text(),
            alias: text(),
            source: text(),
            instance: text(),
            table: text(),
            field: text(),
            id_field: text(),
            fingerprint: text(),
        };
        Item { progress: Progress { window, ..Progress::default() }, ..Item::new(identity) }
    }

    fn step(second: i64, rows: u8, ends: bool) -> Step {
        let delivered = (0..rows).map(|n| (second, [n; 16])).collect();
        let checkpoint = Checkpoint {
            cursor: Some(Position::new([("timestamp", Some(second.to_string()))])),
            window: WindowChange { delivered, ..WindowChange::default() },
            swept_to_ms: None,
            phase: Phase::Stream,
            page_size: None,
            clock_difference_ms: None,
            notes: BTreeMap::new(),
        };
        Step { checkpoint, suppressed: 0, hidden: 0, late: 0, skipped: 0, page: 1, ends }
    }

    /// A fold that begins at `stored`, with what it took in.
    fn fold(stored: StoredWindow, steps: &[Step]) -> (Fold, Item) {
        let item = item(stored);
        let mut fold = Fold::new(item.progress.clone(), Some(Window::complete_from(0)), false);
        fold.take_in(steps, 0);
        (fold, item)
    }

    fn slot(number: u8) -> StoredWindow {
        StoredWindow::Slot(Slot { number, parts: 1, digest: "0".repeat(16) })
    }

    fn number(saying: &Saying) -> Option<u8> {
        saying.beside.as_ref().map(|beside| beside.slot.number)
    }

    #[test]
    fn a_small_window_goes_into_the_item_with_each_commit() {
        let (fold, item) = fold(StoredWindow::None, &[step(1, 2, false)]);
        let saying = fold.saying(&item, 1024, false);
        assert!(matches!(saying.progress.window, StoredWindow::Inline(_)) && saying.beside.is_none());
    }

    #[test]
    fn a_large_window_is_written_beside_at_the_end_of_a_sweep_and_at_once_if_none_lies_there() {
        for stored in [StoredWindow::None, StoredWindow::Inline("AAAA".into()), StoredWindow::Lost, StoredWindow::Beside(2)] {
            let (fold, item) = fold(stored, &[step(1, 200, false)]);
            assert_eq!(number(&fold.saying(&item, 1024, false)), Some(0));
        }
        let (mut fold, mut item) = fold(slot(0), &[step(1, 200, false)]);
        let underway = fold.saying(&item, 1024, false);
        assert_eq!((underway.progress.window, underway.beside), (slot(0), None), "the older one stands");
        assert_eq!(number(&fold.saying(&item, 1024, true)), Some(1), "the last write of the run");
        fold.take_in(&[step(2, 200, true), step(3, 1, false)], 0);
        let end = fold.saying(&item, 1024, false);
        assert_eq!(number(&end), Some(1), "a sweep has ended in between");
        item.progress = end.progress.clone();
        fold.said(&end.progress.window, &item);
        assert_eq!(fold.saying(&item, 1024, true).beside, None, "it lies there now");
    }

    #[test]
    fn a_window_that_cannot_be_written_is_tried_again_and_the_older_one_stands() {
        let (mut fold, mut item) = fold(slot(1), &[step(1, 200, true)]);
        let saying = fold.saying(&item, 1024, false);
        let beside = saying.beside.expect("too large for the item");
        assert_eq!((beside.slot.number, &beside.otherwise), (0, &slot(1)));
        item.progress = Progress { window: beside.otherwise, ..saying.progress.clone() };
        fold.said(&saying.progress.window, &item);
        assert_eq!(number(&fold.saying(&item, 1024, false)), Some(0));
        let (fold, item) = super::tests::fold(StoredWindow::None, &[step(1, 200, false)]);
        assert_eq!(fold.saying(&item, 1024, true).beside.map(|beside| beside.otherwise), Some(StoredWindow::Lost));
    }

    #[test]
    fn a_cursor_that_moved_over_hidden_rows_takes_its_window_along() {
        let (fold, item) = fold(slot(1), &[step(1, 0, true)]);
        assert_eq!(number(&fold.saying(&item, 0, true)), Some(0), "else the next sweep would believe that a process had died");
    }

    #[test]
    fn a_count_that_was_set_to_its_most_stays_there() {
        let mut item = item(StoredWindow::None);
        item.progress.counters.rows = u64::MAX;
        item.progress.counters.hidden = u64::MAX - 1;
        let mut fold = Fold::new(item.progress.clone(), None, false);
        fold.acknowledged(1, Delivered { rows: 3, ..Delivered::default() });
        fold.take_in(&[Step { hidden: 7, ..step(1, 3, false) }], 0);
        let counters = fold.saying(&item, 0, true).progress.counters;
        assert_eq!((counters.rows, counters.hidden, fold.counted().rows), (u64::MAX, u64::MAX, 3));
    }

    #[test]
    fn a_window_that_is_stored_as_it_is_is_not_written_again() {
        let (fold, item) = fold(slot(1), &[]);
        assert_eq!(fold.saying(&item, 1024, true), Saying { progress: item.progress, beside: None });
    }
}
