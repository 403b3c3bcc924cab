//! What a sweep has brought so far, as its next commit will say it.
//!
//! Each acknowledged page is a [`Step`]: the source's checkpoint and what was counted on the way to it. A [`Fold`] takes
//! steps in, in order, and holds the [`Progress`] after them and the dedup window that belongs to it. It also decides
//! where that window is to lie. A plain value: it neither reads nor writes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::window::{Version, Window};
use crate::cursor::{Item, Progress, StoredWindow, encode};
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

/// Where the window is to lie.
#[derive(Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The item says it, and nothing else is to be written.
    Item(StoredWindow),
    /// Beside the item: this window is to be written before the item is.
    Beside(&'a Window),
}

/// The steps so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fold {
    progress: Progress,
    window: Option<Window>,
    changed: bool,
    delivered: BTreeMap<u64, Delivered>,
    counted: Counted,
}

impl Fold {
    /// Nothing has been brought since `progress`. `window`: as the source begins with it, if it needs one; `changed`:
    /// whether that is not what is stored.
    pub fn new(progress: Progress, window: Option<Window>, changed: bool) -> Self {
        Self { progress, window, changed, delivered: BTreeMap::new(), counted: Counted::default() }
    }

    /// The sink has acknowledged the page. Its step is taken in later, in its turn.
    pub fn acknowledged(&mut self, page: u64, delivered: Delivered) {
        self.delivered.insert(page, delivered);
    }

    /// Takes in the steps of acknowledged pages. `now_ms`: epoch milliseconds.
    pub fn take_in(&mut self, steps: &[Step], now_ms: i64) {
        for step in steps {
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
        let skipped = step.skipped + delivered.skipped;
        let counters = &mut self.progress.counters;
        counters.rows += delivered.rows;
        counters.suppressed += step.suppressed;
        counters.hidden += step.hidden;
        counters.late += step.late;
        counters.skipped += skipped;
        self.counted.rows += delivered.rows;
        self.counted.suppressed += step.suppressed;
        self.counted.hidden += step.hidden;
        self.counted.late += step.late;
        self.counted.skipped += skipped;
    }

    /// The page size that works, as the source said it last; it is kept even if no page came of it.
    pub fn learned(&mut self, page_size: Option<u32>) {
        self.progress.page_size = page_size;
    }

    /// The progress after the steps so far.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The progress, with its window lying there.
    pub fn with_window(&mut self, stored: StoredWindow) -> Progress {
        self.progress.window = stored;
        self.progress.clone()
    }

    /// What was counted in this invocation. Rows that were acknowledged and could not be committed count.
    pub fn counted(&self) -> Counted {
        let waiting: u64 = self.delivered.values().map(|delivered| delivered.rows).sum();
        Counted { rows: self.counted.rows + waiting, ..self.counted }
    }

    /// Where the window is with a commit in the middle of a run: one too large for the item is not written then, and
    /// counts as lost until the end of the run writes it.
    pub fn place_underway(&self, item: &Item, small: usize) -> StoredWindow {
        match self.place_at_rest(item, small) {
            Place::Item(stored) => stored,
            Place::Beside(_) => StoredWindow::Beside(0),
        }
    }

    /// Where the window is at the end of a run. `small`: the bytes up to which it goes into the item, item included.
    pub fn place_at_rest(&self, item: &Item, small: usize) -> Place<'_> {
        match &self.window {
            Some(window) if self.changed && self.progress.cursor.is_some() => match self.inline(item, window, small) {
                Some(inline) => Place::Item(inline),
                None => Place::Beside(window),
            },
            _ => Place::Item(self.progress.window.clone()),
        }
    }

    /// The window as it is stored inside the item, if the item stays small with it.
    fn inline(&self, item: &Item, window: &Window, small: usize) -> Option<StoredWindow> {
        if window.len() * size_of::<Version>() > small {
            return None;
        }
        let text = StoredWindow::Inline(STANDARD.encode(window.encode()));
        let with = Item { progress: Progress { window: text, ..self.progress.clone() }, ..item.clone() };
        (encode(&with).len() <= small).then_some(with.progress.window)
    }
}
