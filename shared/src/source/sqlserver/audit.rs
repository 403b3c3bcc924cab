//! The audit: counts ranges again that were delivered before, and so finds rows that became visible behind the cursor.
//!
//! A row with a lower sequence may be committed after one with a higher (two transactions at once), and a reader that goes
//! by the sequence never comes back for it. It can be noticed, though: the range that it belongs to has one row more than
//! were delivered from it. So the last few ranges are kept with their counts, and counted again every
//! `mssql.audit.interval.ms`. What is found is reported once and not delivered: nobody knows which row it is.
//!
//! Rows that were deleted make a range smaller. They are taken off its count, or a row that comes late afterwards would
//! go unnoticed; one that comes while another goes is not noticed. A replica that lags behind shows fewer rows, too, though none is
//! gone: what it lacks is not taken off.
//!
//! A range holds what was delivered from it and nothing else: its batches adjoin, and where a stretch was passed over (a cursor that was
//! set by hand, a time without an audit) another range begins. It is also not larger than what a server counts in passing, so that a
//! backfill does not leave its whole table to be counted.
//!
//! Everything here is a plain value; the statements are sent by whoever holds it.

use super::sequence::Sequence;

/// Closed ranges that are kept. Each is counted again that many times.
const KEPT: usize = 4;

/// The most rows of a range.
const LARGEST: u64 = 250_000;

/// Rows above `from` (`None`: from the first) up to and with `to`, and how many of them were delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: Option<Sequence>,
    pub(super) to: Sequence,
    pub(super) count: u64,
}

impl Range {
    /// A batch has 100,000 rows at most.
    fn is_countable(&self) -> bool {
        self.count <= LARGEST
    }
}

/// Rows that came late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) range: Range,
    pub(super) rows: u64,
}

/// What is kept from one audit to the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Audit {
    /// When the next one is due, in epoch milliseconds.
    next_ms: i64,
    /// What was delivered since the last one.
    open: Option<Range>,
    /// What was delivered before that, newest last.
    closed: Vec<Range>,
}

impl Audit {
    /// A batch of `count` rows, above `from` and up to `to`, is being delivered.
    pub(super) fn delivered(&mut self, from: Option<Sequence>, to: Sequence, count: u64) {
        match &mut self.open {
            Some(open) if Some(open.to) == from && open.count + count <= LARGEST => (open.to, open.count) = (to, open.count + count),
            _ => {
                self.close();
                self.open = Some(Range { from, to, count });
            }
        }
    }

    /// Nothing more is added to the open range.
    fn close(&mut self) {
        self.closed.extend(self.open.take());
        let spare = self.closed.len().saturating_sub(KEPT);
        self.closed.drain(..spare);
    }

    /// Whether an audit is due; the first one is after an interval. A time that lies too far ahead was written under another clock.
    pub(super) fn is_due(&mut self, now_ms: i64, interval_ms: i64) -> bool {
        if self.next_ms == 0 {
            self.next_ms = now_ms.saturating_add(interval_ms);
        }
        self.next_ms <= now_ms || self.next_ms > now_ms.saturating_add(interval_ms)
    }

    /// What is to be counted, oldest first.
    pub(super) fn ranges(&self) -> Vec<Range> {
        self.closed.iter().chain(&self.open).copied().collect()
    }

    /// Takes in the counts of [`Audit::ranges`], in their order, and tells what came late. Those that are missing at the end could not be
    /// counted; they stay as they are until the next audit, which is an interval away in any case. `may_lag`: who counted may
    /// not have seen every row yet.
    pub(super) fn counted(&mut self, counts: &[u64], may_lag: bool, now_ms: i64, interval_ms: i64) -> Vec<Late> {
        let is_whole = counts.len() == self.ranges().len();
        let mut late = Vec::new();
        for (range, now) in self.closed.iter_mut().chain(&mut self.open).zip(counts) {
            if *now > range.count {
                late.push(Late { range: *range, rows: now - range.count });
            } else if may_lag {
                continue;
            }
            range.count = *now;
        }
        if is_whole {
            self.close();
        }
        self.next_ms = now_ms.saturating_add(interval_ms);
        late
    }

    /// The text that is kept with the cursor: `next|open|closed|closed`, each range `from:to:count`.
    pub(super) fn text(&self) -> String {
        let written = |range: &Range| {
            let from = range.from.map_or_else(String::new, |from| from.to_string());
            format!("{from}:{}:{}", range.to, range.count)
        };
        let mut text = format!("{}|{}", self.next_ms, self.open.as_ref().map_or_else(String::new, written));
        for range in &self.closed {
            text.push('|');
            text.push_str(&written(range));
        }
        text
    }

    /// Reads [`Audit::text`]; what is no such text is forgotten, and the audit begins anew.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let next_ms = parts.next()?.parse().ok()?;
        let open = match parts.next()? {
            "" => None,
            range => Some(read_range(range)?),
        };
        let mut audit = Self { next_ms, open, closed: parts.map(read_range).collect::<Option<_>>()? };
        // Ranges had no bound once.
        audit.open = audit.open.filter(Range::is_countable);
        audit.closed.retain(Range::is_countable);
        Some(audit)
    }
}

fn read_range(text: &str) -> Option<Range> {
    let mut parts = text.split(':');
    let from = match parts.next()? {
        "" => None,
        from => Some(Sequence::parse(from)?),
    };
    let range = Range { from, to: Sequence::parse(parts.next()?)?, count: parts.next()?.parse().ok()? };
    parts.next().is_none().then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: i128) -> Sequence {
        Sequence::new(number).expect("in range")
    }

    #[test]
    fn a_late_row_is_told_once_with_its_range_and_a_deleted_one_makes_room_for_none() {
        let mut audit = Audit::default();
        audit.delivered(None, at(99), 99);
        audit.delivered(Some(at(99)), at(101), 1);
        assert_eq!(audit.ranges(), [Range { from: None, to: at(101), count: 100 }]);
        let late = audit.counted(&[101], false, 1_000, 500);
        assert_eq!(late, [Late { range: Range { from: None, to: at(101), count: 100 }, rows: 1 }]);
        assert_eq!(audit.counted(&[101], false, 1_500, 500), [], "told once");
        assert_eq!(audit.counted(&[100], false, 2_000, 500), [], "a row was deleted");
        assert_eq!(audit.counted(&[101], false, 2_500, 500).len(), 1, "and another came late");
        assert!(!audit.is_due(2_999, 500) && audit.is_due(3_000, 500) && audit.is_due(0, 500));
    }

    #[test]
    fn the_last_ranges_are_counted_again_and_older_ones_are_let_go() {
        let mut audit = Audit::default();
        for n in 1..=9 {
            audit.delivered(Some(at(n - 1)), at(n), 1);
            let counts = vec![1; audit.ranges().len()];
            assert_eq!(audit.counted(&counts, false, 0, 1), []);
        }
        assert_eq!(audit.ranges().iter().map(|range| range.to.number()).collect::<Vec<_>>(), [6, 7, 8, 9]);
    }

    #[test]
    fn a_range_holds_what_was_delivered_from_it_and_no_stretch_that_was_passed_over() {
        let mut audit = Audit::default();
        audit.delivered(None, at(10), 10);
        audit.delivered(Some(at(10)), at(20), 10);
        // Set by hand, or swept without an audit.
        audit.delivered(Some(at(30)), at(40), 10);
        let expected = [Range { from: None, to: at(20), count: 20 }, Range { from: Some(at(30)), to: at(40), count: 10 }];
        assert_eq!(audit.ranges(), expected);
        assert_eq!(audit.counted(&[20, 10], false, 0, 1), [], "nothing came late");
    }

    #[test]
    fn a_backfill_leaves_ranges_that_a_server_counts_in_passing() {
        let mut audit = Audit::default();
        for n in 0..1_000 {
            audit.delivered(Some(at(n * 10_000)), at((n + 1) * 10_000), 10_000);
        }
        let ranges = audit.ranges();
        assert!(ranges.len() == KEPT + 1 && ranges.iter().all(|range| range.count <= LARGEST), "{ranges:?}");
        assert_eq!(ranges.last().map(|range| range.to), Some(at(10_000_000)), "the newest are kept");
        assert!(ranges.windows(2).all(|pair| Some(pair[0].to) == pair[1].from), "without a gap");
        let unbounded = "9|1:2:250001|3:4:4000000|5:6:250000";
        assert_eq!(Audit::read(unbounded).map(|audit| audit.ranges()), Some(vec![Range { from: Some(at(5)), to: at(6), count: 250_000 }]));
    }

    #[test]
    fn what_could_not_be_counted_stays_for_the_next_audit_and_is_not_tried_before() {
        let mut audit = Audit::default();
        audit.delivered(None, at(10), 10);
        audit.counted(&[10], false, 0, 500);
        audit.delivered(Some(at(10)), at(20), 10);
        let before = audit.ranges();
        assert_eq!(audit.counted(&[], false, 1_000, 500), []);
        assert!(audit.ranges() == before && !audit.is_due(1_499, 500) && audit.is_due(1_500, 500));
        assert_eq!(audit.counted(&[11], false, 1_500, 500).len(), 1, "the first was counted, the second was not");
        audit.delivered(Some(at(20)), at(30), 10);
        assert_eq!(audit.ranges().len(), 2, "what was not counted goes on");
        assert_eq!(audit.counted(&[11, 21], false, 2_000, 500).len(), 1);
    }

    #[test]
    fn rows_that_a_replica_does_not_show_yet_are_not_late_when_it_does() {
        let mut audit = Audit::default();
        audit.delivered(None, at(10), 10);
        assert_eq!(audit.counted(&[4], true, 0, 1), []);
        assert_eq!(audit.counted(&[10], true, 0, 1), []);
        assert_eq!(audit.counted(&[11], true, 0, 1).len(), 1);
    }

    #[test]
    fn an_audit_is_read_back_and_what_is_none_is_forgotten() {
        let mut audit = Audit::default();
        audit.delivered(None, at(-5), 7);
        audit.counted(&[7], false, -3, 60_000);
        let digits = 10_i128.pow(38) - 1;
        audit.delivered(Some(at(-5)), at(digits), 12);
        assert_eq!(Audit::read(&audit.text()), Some(audit));
        assert_eq!(Audit::read(&Audit::default().text()), Some(Audit::default()));
        for odd in ["", "x|", "1", "1|2", "1|1:2:3:4", "1|1:2:-3", "1||x:1:1"] {
            assert_eq!(Audit::read(odd), None, "{odd}");
        }
    }
}
