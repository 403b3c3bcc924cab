//! The seconds that a source owes a re-read: those in which rows can still have appeared behind the cursor.
//!
//! An overlap that is small is read again with every sweep. A large one is read in rounds, some pages per sweep, after the
//! rows ahead. While a round is under way the cursor moves on and other seconds come to be owed: those that the round has not come
//! to join it, and those that it has gone by wait for the next round. So a table that is swept all the time is
//! still read to the end, and a row that appears just behind the round is found by the next.
//!
//! What is owed is stored with every commit, so that it outlives its process.

use std::collections::BTreeMap;

/// What is owed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Owed {
    round: Spans,
    /// Where the round goes on: a second, and the id of the last row of it that was read, or none.
    at: Option<(i64, String)>,
    /// For the next round.
    later: Spans,
}

/// What is to be read next: from behind the row `after` of second `from`, or from the second's first row on if that is
/// empty, up to the end of second `to`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stretch {
    /// The first second.
    pub from: i64,
    /// The last row of it that was read.
    pub after: String,
    /// The last second.
    pub to: i64,
}

/// Disjoint spans of seconds in order, none next to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Spans(Vec<(i64, i64)>);

/// What is owed is noted in the cursor item. Of more spans than this the two with the least between them become one, and what
/// lies between is read again as well.
const MOST_SPANS: usize = 12;

impl Owed {
    /// What stored notes say. `through`: the cursor's second.
    pub fn from_notes(notes: &BTreeMap<String, String>, through: i64) -> Self {
        let note = |name: &str| notes.get(name).map_or("", String::as_str);
        let at = note("reread").split_once('|').and_then(|(second, id)| Some((second.parse().ok()?, id.to_owned())));
        // Once only the first second was noted.
        let later = note("again").parse().map_or_else(|_| Spans::decode(note("again")), |from| Spans::default().with(from, through));
        Self { round: Spans::decode(note("overdue")), at, later }
    }

    /// Adds the notes that say it.
    pub fn note(&self, notes: &mut BTreeMap<String, String>) {
        if let Some((second, id)) = &self.at {
            notes.insert("reread".to_owned(), format!("{second}|{id}"));
        }
        for (name, spans) in [("overdue", &self.round), ("again", &self.later)] {
            if !spans.0.is_empty() {
                notes.insert(name.to_owned(), spans.encode());
            }
        }
    }

    /// Whether a round has been begun and not ended.
    pub fn is_round_under_way(&self) -> bool {
        self.at.is_some()
    }

    /// The first second that is owed.
    pub fn from(&self) -> Option<i64> {
        self.round.first().into_iter().chain(self.later.first()).map(|(from, _)| from).min()
    }

    /// The seconds `from..=to` are owed. `unknown`: seconds whose delivered versions are not known, which would be delivered
    /// once more if they were read again without need.
    pub fn add(&mut self, from: i64, to: i64, unknown: Option<(i64, i64)>) {
        let passed = match &self.at {
            Some((second, id)) if id.is_empty() => second.saturating_sub(1),
            Some((second, _)) => *second,
            None => i64::MIN,
        };
        self.later.add(from, to.min(passed));
        self.round.add(from.max(passed.saturating_add(1)), to);
        while self.round.0.len() + self.later.0.len() > MOST_SPANS {
            let spans = if self.later.0.len() > self.round.0.len() { &mut self.later } else { &mut self.round };
            spans.join_nearest(unknown);
        }
    }

    /// What was delivered from `second` on is not known any more: a round that has come that far begins anew.
    pub fn restart(&mut self, second: i64) {
        if self.at.as_ref().is_none_or(|(at, _)| *at >= second) {
            self.at = None;
            for (from, to) in std::mem::take(&mut self.later).0 {
                self.round.add(from, to);
            }
        }
    }

    /// Seconds before this one are given up. Returns whether any of them was owed.
    pub fn forget_before(&mut self, second: i64) -> bool {
        let is_given_up = self.from().is_some_and(|from| from < second);
        self.later.remove_before(second);
        self.round.remove_before(second);
        if self.at.as_ref().is_some_and(|(at, _)| *at < second) {
            self.go_to_next_span();
        }
        if self.round.0.is_empty() {
            (self.round, self.at) = (std::mem::take(&mut self.later), None);
        }
        is_given_up
    }

    /// What is to be read next.
    pub fn next(&self) -> Option<Stretch> {
        let (from, to) = self.round.first()?;
        let after = self.at.as_ref().filter(|(second, _)| *second == from).map(|(_, id)| id.clone()).unwrap_or_default();
        Some(Stretch { from, after, to })
    }

    /// A page ended with the row `id` of `second`, and more follow.
    pub fn read_to(&mut self, second: i64, id: &str) {
        self.round.remove_before(second);
        self.at = Some((second, id.to_owned()));
    }

    /// Everything up to the end of `second` was read. Returns whether that ends the round.
    pub fn read_through(&mut self, second: i64) -> bool {
        self.round.remove_before(second.saturating_add(1));
        self.go_to_next_span();
        let ended = self.at.is_none();
        if ended {
            self.round = std::mem::take(&mut self.later);
        }
        ended
    }

    fn go_to_next_span(&mut self) {
        self.at = self.round.first().map(|(from, _)| (from, String::new()));
    }
}

impl Spans {
    fn first(&self) -> Option<(i64, i64)> {
        self.0.first().copied()
    }

    fn add(&mut self, mut from: i64, mut to: i64) {
        if from > to {
            return;
        }
        self.0.retain(|(first, last)| {
            let apart = *last < from.saturating_sub(1) || *first > to.saturating_add(1);
            if !apart {
                (from, to) = (from.min(*first), to.max(*last));
            }
            apart
        });
        let place = self.0.partition_point(|(first, _)| *first < from);
        self.0.insert(place, (from, to));
    }

    /// Joins the two spans with the least between them, if it can be without touching what is `unknown`.
    fn join_nearest(&mut self, unknown: Option<(i64, i64)>) {
        let gap = |place: &usize| {
            let (last, first) = (self.0[*place].1, self.0[place + 1].0);
            let harms = unknown.is_some_and(|(from, through)| last < through && from < first);
            (harms, first.saturating_sub(last))
        };
        if let Some(place) = (0..self.0.len().saturating_sub(1)).min_by_key(gap) {
            self.0[place].1 = self.0[place + 1].1;
            self.0.remove(place + 1);
        }
    }

    fn with(mut self, from: i64, to: i64) -> Self {
        self.add(from, to);
        self
    }

    fn remove_before(&mut self, second: i64) {
        self.0.retain(|(_, last)| *last >= second);
        if let Some((first, _)) = self.0.first_mut() {
            *first = second.max(*first);
        }
    }

    fn encode(&self) -> String {
        let spans: Vec<_> = self.0.iter().map(|(from, to)| format!("{from}|{to}")).collect();
        spans.join(",")
    }

    fn decode(text: &str) -> Self {
        let span = |text: &str| {
            let (from, to) = text.split_once('|')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        text.split(',').filter_map(span).fold(Self::default(), |spans, (from, to)| spans.with(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owing(spans: &[(i64, i64)]) -> Owed {
        let mut owed = Owed::default();
        spans.iter().for_each(|(from, to)| owed.add(*from, *to, None));
        owed
    }

    fn stretch(from: i64, after: &str, to: i64) -> Option<Stretch> {
        Some(Stretch { from, after: after.to_owned(), to })
    }

    #[test]
    fn what_a_round_has_gone_by_waits_for_the_next_and_the_rest_joins_it() {
        let mut owed = owing(&[(10, 14)]);
        owed.read_to(12, "b");
        owed.add(11, 16, None);
        assert_eq!(owed.next(), stretch(12, "b", 16));
        assert!(owed.read_through(16), "the round ends");
        assert_eq!(owed.next(), stretch(11, "", 12));
        assert!(owed.read_through(12));
        assert_eq!((owed.next(), owed), (None, Owed::default()));
    }

    #[test]
    fn spans_that_touch_are_one_and_a_gap_between_others_is_not_read() {
        let mut owed = owing(&[(20, 22), (10, 12), (13, 14), (9, 9)]);
        assert_eq!(owed.next(), stretch(9, "", 14));
        assert!(!owed.read_through(14));
        assert_eq!(owed.next(), stretch(20, "", 22));
    }

    #[test]
    fn a_table_that_is_swept_all_the_time_is_read_to_the_end_of_each_round() {
        let mut owed = Owed::default();
        let mut rounds = 0;
        for _ in 0..20 {
            owed.add(10, 13, None);
            let next = owed.next().expect("owed");
            rounds += u32::from(owed.read_through(next.from));
        }
        assert!(rounds >= 4, "{rounds} rounds of four seconds in twenty sweeps");
    }

    #[test]
    fn a_lost_window_begins_the_round_anew_unless_it_has_not_come_that_far() {
        let mut far = owing(&[(10, 14)]);
        far.read_to(13, "b");
        far.add(11, 14, None);
        far.restart(11);
        far.add(11, 14, None);
        assert_eq!(far.next(), stretch(11, "", 14));
        let mut near = owing(&[(1, 2), (10, 14)]);
        near.read_to(2, "b");
        near.restart(10);
        assert_eq!(near.next(), stretch(2, "b", 2));
    }

    #[test]
    fn what_is_given_up_is_not_owed() {
        let mut owed = owing(&[(1, 2), (10, 14)]);
        owed.read_to(2, "b");
        owed.forget_before(11);
        assert_eq!((owed.next(), owed.from()), (stretch(11, "", 14), Some(11)));
        owed.forget_before(20);
        assert_eq!(owed, Owed::default());
    }

    #[test]
    fn of_many_spans_the_nearest_become_one_and_none_is_given_up() {
        let mut owed = Owed::default();
        for n in 0..40 {
            owed.add(n * n, n * n, Some((0, 10)));
        }
        let spans = &owed.round.0;
        assert!(spans.len() == MOST_SPANS && (0..40).all(|n| spans.iter().any(|(from, to)| (*from..=*to).contains(&(n * n)))), "{spans:?}");
        assert!(spans.starts_with(&[(0, 1), (4, 4), (9, 9)]), "what is unknown between them stays out: {spans:?}");
    }

    #[test]
    fn it_is_read_back_from_its_notes_and_from_those_of_earlier_versions() {
        let mut owed = owing(&[(1, 2), (10, 14)]);
        owed.read_to(2, "b|c,d");
        owed.add(1, 14, None);
        let mut notes = BTreeMap::new();
        owed.note(&mut notes);
        assert_eq!(Owed::from_notes(&notes, 14), owed);
        let earlier = [("reread", "12|b"), ("overdue", "10|14"), ("again", "9")];
        let earlier = earlier.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let mut read = Owed::from_notes(&earlier, 14);
        assert_eq!(read.next(), stretch(10, "", 14));
        assert!(read.read_through(14));
        assert_eq!(read.next(), stretch(9, "", 14));
    }
}
