//! How many rows the next batch asks for, and how much room that takes.
//!
//! Rows are asked for by number and are in the way by their bytes, which nobody knows before. So a batch that turned out too large is
//! dropped and asked for with fewer rows, and what its rows weighed is remembered: room is asked for before the next batch and not
//! taken while it comes, and a batch size that was lowered is raised again only as far as rows of that weight fit.
//!
//! A plain value; whoever holds it reads the rows.

use super::batch::LARGEST;

/// The room asked for before the first batch, whose rows nobody knows.
const FIRST_BATCH: u64 = 8 << 20;

/// The least room that is asked for.
const LEAST: u64 = 64 << 10;

/// Good full batches in a row after which a batch size that was lowered is raised.
const GOOD_BATCHES: u32 = 4;

/// The batch size of a table, and what is known of its rows.
#[derive(Debug)]
pub(super) struct BatchSize {
    configured: u32,
    rows: u32,
    good: u32,
    /// Bytes of a row, on the average of the last batch that had rows; 0 before it.
    row_bytes: u64,
    /// Bytes that a batch would have taken that was dropped; at least so much room is asked for before the next one.
    dropped: u64,
}

impl BatchSize {
    /// `rows` to begin with, where up to `configured` are wanted.
    pub(super) fn new(configured: u32, rows: u32) -> Self {
        Self { configured, rows: rows.max(1), good: 0, row_bytes: 0, dropped: 0 }
    }

    /// Rows to ask for.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// The rows to ask for, if they are not as many as configured.
    pub(super) fn lowered(&self) -> Option<u32> {
        Some(self.rows).filter(|rows| *rows != self.configured)
    }

    /// The room to ask for before a batch of `rows` rows: half as much again as rows took lately, and what one that was
    /// dropped would have taken.
    pub(super) fn room(&self, rows: u32) -> u64 {
        let expected = self.row_bytes.saturating_mul(u64::from(rows));
        // Beyond that a batch is not read, unless it is a single row.
        let most = (LARGEST as u64).max(self.row_bytes.saturating_mul(2));
        let room = if expected == 0 { FIRST_BATCH } else { (expected + expected / 2).clamp(LEAST, most) };
        room.max(self.dropped)
    }

    /// The bytes that a batch of `rows` rows is likely to have; 0 while nobody knows.
    pub(super) fn expected(&self, rows: u32) -> usize {
        let bytes = self.row_bytes.saturating_mul(u64::from(rows));
        usize::try_from(bytes + bytes / 16).unwrap_or_default().min(LARGEST)
    }

    /// A batch was read: so many rows of so many bytes together.
    pub(super) fn read(&mut self, rows: usize, bytes: usize) {
        self.dropped = 0;
        if rows > 0 {
            self.row_bytes = (bytes as u64).div_ceil(rows as u64);
        }
        if rows >= self.rows as usize && self.rows < self.configured {
            self.good += 1;
            self.raise();
        }
    }

    fn raise(&mut self) {
        if self.good < GOOD_BATCHES {
            return;
        }
        self.good = 0;
        // A quarter is left for rows that are larger than those were.
        let fit = (LARGEST as u64 / 4 * 3).checked_div(self.row_bytes).unwrap_or(u64::MAX);
        let raised = self.rows.saturating_mul(2).min(self.configured);
        self.rows = raised.min(u32::try_from(fit).unwrap_or(u32::MAX)).max(self.rows);
    }

    /// A batch was dropped: `fit` rows had room, and with one more it would have taken `bytes`. Answers whether the next one is another: fewer rows, or
    /// with more room asked for.
    pub(super) fn dropped(&mut self, fit: u32, bytes: u64) -> bool {
        let before = (self.rows, self.dropped);
        self.dropped = self.dropped.max(bytes);
        self.lower(fit - fit / 4);
        before != (self.rows, self.dropped)
    }

    /// A batch did not come in time. Answers whether there is a smaller one.
    pub(super) fn halve(&mut self) -> bool {
        let before = self.rows;
        self.lower(before / 2);
        self.rows < before
    }

    fn lower(&mut self, rows: u32) {
        self.rows = rows.clamp(1, (self.rows / 2).max(1));
        self.good = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEGABYTE: usize = 1 << 20;

    #[test]
    fn a_lowered_batch_size_is_raised_as_far_as_rows_of_that_weight_fit_and_no_further() {
        let mut size = BatchSize::new(500, 500);
        assert!(size.dropped(32, 33 << 20));
        assert_eq!((size.rows(), size.lowered()), (24, Some(24)));
        for _ in 0..40 {
            size.read(24, 24 * MEGABYTE);
            assert_eq!(size.rows(), 24, "48 megabytes do not fit, and that is known");
        }
        for _ in 0..4 {
            size.read(24, 24 * MEGABYTE / 2);
        }
        assert_eq!(size.rows(), 48, "lighter rows");
        for _ in 0..64 {
            size.read(size.rows() as usize, size.rows() as usize);
        }
        assert_eq!((size.rows(), size.lowered()), (500, None), "what is configured is never exceeded");
    }

    #[test]
    fn a_size_that_was_lowered_for_lack_of_time_grows_with_full_batches_only() {
        let mut size = BatchSize::new(500, 500);
        assert!(size.halve() && size.halve());
        for _ in 0..12 {
            size.read(100, 100);
        }
        assert_eq!(size.rows(), 125, "short ones prove nothing");
        (0..4).for_each(|_| size.read(125, 125));
        assert_eq!(size.rows(), 250);
        while size.halve() {}
        assert_eq!(size.rows(), 1);
    }

    #[test]
    fn room_is_asked_for_by_what_rows_weigh_and_by_what_was_dropped() {
        let mut size = BatchSize::new(100, 100);
        assert_eq!(size.room(100), FIRST_BATCH, "nobody knows yet");
        size.read(10, 10 * 64 * 1024);
        assert_eq!(size.room(100), 100 * 64 * 1024 * 3 / 2, "ten rows came, a hundred are asked for");
        assert_eq!(size.room(1), 96 * 1024);
        size.dropped(90, 13 << 20);
        assert_eq!(size.room(50), 13 * MEGABYTE as u64, "as much as it had come to");
        size.read(50, 50);
        assert_eq!(size.room(50), LEAST, "that was then");
        size.read(1, 100 * MEGABYTE);
        assert_eq!(size.room(1), 150 * MEGABYTE as u64, "a single row may be larger than a batch");
    }

    #[test]
    fn a_single_row_that_had_no_room_is_asked_for_with_its_own_size_once() {
        let mut size = BatchSize::new(100, 1);
        assert!(size.dropped(0, 12 << 20), "now it waits for its room");
        assert_eq!((size.rows(), size.room(1)), (1, 12 * MEGABYTE as u64));
        assert!(!size.dropped(0, 12 << 20), "the same again would come to the same");
    }
}
