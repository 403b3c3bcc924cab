//! Counting hidden rows: rows that the instance counts and, by row access rules, does not show.
//!
//! An answer tells how many rows match (hidden ones too) and shows the visible ones. The difference is the number of
//! hidden rows from the request's lower bound on; where among them they lie is not known. So a count is opened at
//! the first answer of a sweep that shows a difference and follows the sweep: what was counted at the opening, less what still
//! lies ahead, less the rows seen since, are the hidden rows passed. Each is reported once, though the overlap is read
//! again and again. On a table that changes meanwhile the figure is an estimate.

/// The count of one sweep.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct HiddenCount {
    open: Option<Open>,
    /// The hidden rows in sight were all reported by earlier sweeps.
    known: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Open {
    /// Rows, hidden ones too, from `from` to the end of the span when the count was opened.
    total: u64,
    /// Rows of earlier seconds do not belong to the count.
    from: i64,
    /// Visible rows of the span so far.
    seen: u64,
    /// Hidden rows already reported.
    reported: u64,
    /// The span is the rest of one second and not the rest of the sweep.
    second_only: bool,
}

impl HiddenCount {
    /// Whether a difference in an answer is news to this sweep.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_none() && !self.known
    }

    /// Everything in sight was reported before.
    pub(super) fn set_known(&mut self) {
        self.known = true;
    }

    /// Opens a count of `total` rows from second `from` on.
    pub(super) fn open(&mut self, total: u64, from: i64, second_only: bool) {
        self.open = Some(Open { total, from, seen: 0, reported: 0, second_only });
    }

    /// Takes in visible rows of these seconds, none of them taken in before.
    pub(super) fn saw(&mut self, seconds: impl Iterator<Item = i64>) {
        if let Some(open) = &mut self.open {
            open.seen += seconds.filter(|second| *second >= open.from).count() as u64;
        }
    }

    /// A request to the end of the sweep found `total` rows ahead, of which `seen_again` were taken in before. Returns
    /// the hidden rows passed and not yet reported.
    pub(super) fn ahead(&mut self, total: u64, seen_again: u64) -> u64 {
        let Some(open) = self.open.as_mut().filter(|open| !open.second_only) else { return 0 };
        let passed = open.total.saturating_sub(total).saturating_sub(open.seen.saturating_sub(seen_again));
        let news = passed.saturating_sub(open.reported);
        open.reported += news;
        news
    }

    /// The second has been read to its end. Returns the hidden rows not yet reported.
    pub(super) fn second_ends(&mut self) -> u64 {
        match self.open.take_if(|open| open.second_only) {
            Some(open) => open.rest(),
            None => 0,
        }
    }

    /// The sweep has been read to its end. Returns the hidden rows not yet reported.
    pub(super) fn sweep_ends(&mut self) -> u64 {
        self.known = false;
        self.open.take().map_or(0, |open| open.rest())
    }
}

impl Open {
    fn rest(&self) -> u64 {
        self.total.saturating_sub(self.seen).saturating_sub(self.reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_rows_are_reported_once_each_as_the_sweep_passes_them() {
        let mut count = HiddenCount::default();
        count.open(10, 0, false);
        count.saw([1, 1, 2].into_iter());
        assert_eq!(count.ahead(6, 1), 2, "4 passed of which 2 were seen: the third lies ahead again");
        count.saw([3, 4].into_iter());
        assert_eq!(count.sweep_ends(), 3);
        assert_eq!(count.sweep_ends(), 0);
    }

    #[test]
    fn a_count_of_one_second_ends_with_it() {
        let mut count = HiddenCount::default();
        count.open(5, 7, true);
        count.saw([7, 7].into_iter());
        assert_eq!(count.ahead(100, 0), 0, "another span");
        assert_eq!((count.second_ends(), count.sweep_ends()), (3, 0));
    }
}
