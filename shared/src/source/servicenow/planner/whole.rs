//! Whether an answer covers its range to the end.
//!
//! Fewer rows than were asked for can mean two things. Rows are hidden: access rules are applied after the limit. Or the instance
//! has a limit of its own below ours, and the rest is still to come. The count tells neither from the other, and the
//! difference is lost rows. A `Link` to a next page gives the second away, but not every instance sends one. So a page whose count
//! fits the limit is taken for whole only where no limit of the instance's own can have cut it, as far as the answers so far
//! have shown (docs/decisions/0004).

use std::collections::BTreeMap;

use super::{Answer, Planner};

/// An instance's own limit is taken to be no smaller than this.
const SMALLEST_LIMIT: u64 = 100;

/// What the answers of this run have shown of a limit of the instance's own.
#[derive(Debug, Clone)]
pub(super) struct OwnLimit {
    /// It is at least this.
    at_least: u64,
    /// The instance sends a `Link` where rows follow.
    links: bool,
}

impl Default for OwnLimit {
    fn default() -> Self {
        Self { at_least: SMALLEST_LIMIT, links: false }
    }
}

impl OwnLimit {
    /// Learns from an answer with rows.
    pub(super) fn saw<R>(&mut self, answer: &Answer<R>) {
        self.at_least = self.at_least.max(answer.visible());
        self.links |= answer.next_link;
    }

    /// Whether no row of the range can lie behind this answer to a request for up to `limit` rows that asked for the count.
    fn spares<R>(&self, answer: &Answer<R>, limit: u32) -> bool {
        let visible = answer.visible();
        match answer.total {
            _ if answer.next_link => false,
            None => visible == 0,
            Some(total) if total > u64::from(limit) => false,
            Some(total) => visible >= total || total <= self.at_least || (self.links && visible < SMALLEST_LIMIT),
        }
    }
}

/// Whether the instance counts, as far as its answers have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Counting {
    /// It was not asked.
    #[default]
    Unknown,
    /// It was asked once, by this run or an earlier one, and has not. That may be an answer that lost its count.
    Missed,
    /// It has counted. An answer without a count is one that lost it.
    Does,
    /// It was asked twice and has not. Where that is wrongly believed, an empty page ends a sweep that hidden rows had only
    /// interrupted, so no run believes it without having asked.
    DoesNot,
}

/// The name under which it is kept that no count came.
const NOTE: &str = "uncounted";

impl Counting {
    /// An answer came to a request that asked for the count.
    pub(super) fn asked(&mut self, total: Option<u64>) {
        *self = match (total, *self) {
            (Some(_), _) | (None, Self::Does) => Self::Does,
            (None, Self::Unknown) => Self::Missed,
            (None, Self::Missed | Self::DoesNot) => Self::DoesNot,
        };
    }

    /// What an earlier run has seen.
    pub(super) fn read(notes: &BTreeMap<String, String>) -> Self {
        if notes.contains_key(NOTE) { Self::Missed } else { Self::Unknown }
    }

    /// Keeps it for the next run.
    pub(super) fn note(self, notes: &mut BTreeMap<String, String>) {
        if let Self::Missed | Self::DoesNot = self {
            notes.insert(NOTE.to_owned(), "true".to_owned());
        }
    }
}

impl<R: Clone> Planner<R> {
    /// Whether an answer to a request for up to `limit` rows covers its range to the end. Without a count that shows only on an instance
    /// that never gives one.
    pub(super) fn covers(&self, answer: &Answer<R>, limit: u32) -> bool {
        (answer.total.is_some() || self.counting == Counting::DoesNot) && self.own_limit.spares(answer, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Head;
    use super::*;

    fn answer(rows: i64, total: Option<u64>, next_link: bool) -> Answer<()> {
        let row = |second| (Head { second, id: "a".into(), mod_count: "0".into() }, ());
        Answer { rows: (0..rows).map(row).collect(), skipped: Vec::new(), total, next_link, date: None, sent_ms: 0, elapsed_ms: 0 }
    }

    #[test]
    fn a_page_is_whole_only_where_no_limit_can_have_cut_it() {
        let mut own = OwnLimit::default();
        for (rows, total, link, whole) in [
            (150, Some(150), false, true),
            (150, Some(150), true, false),
            (150, Some(1_001), false, false),
            (150, Some(160), false, false),
            (40, Some(100), false, true),
            (40, Some(101), false, false),
            (0, Some(101), false, false),
            (0, None, false, true),
            (0, None, true, false),
            (3, None, false, false),
        ] {
            assert_eq!(own.spares(&answer(rows, total, link), 1_000), whole, "{rows} of {total:?}, link {link}");
        }
        own.saw(&answer(160, Some(160), false));
        assert!(own.spares(&answer(40, Some(160), false), 1_000), "as many came at once before");
        assert!(!own.spares(&answer(40, Some(161), false), 1_000));
        own.saw(&answer(5, Some(5_000), true));
        assert!(own.spares(&answer(40, Some(900), false), 1_000), "it would have sent a link");
        assert!(!own.spares(&answer(100, Some(900), false), 1_000), "a limit seldom leaves so many by chance");
    }
}
