//! Rows without a readable cursor that are met for the first time.

use super::super::answer::Skipped;
use super::super::range::Head;
use super::Planner;

/// Rows without a readable cursor, each with the second under which the window remembers it.
pub(super) type Passed = Vec<(i64, Skipped)>;

/// The rows alone.
pub(super) fn rows_of(passed: Passed) -> Vec<Skipped> {
    passed.into_iter().map(|(_, skipped)| skipped).collect()
}

impl<R: Clone> Planner<R> {
    /// Which of the rows without a readable cursor of an answer to a request from second `from` up to second `hi` are met for the
    /// first time, each with the second under which the window remembers it. A row without a readable time is remembered under the
    /// second of the row that follows it, so that it does not leave the window before it has left the overlap.
    pub(super) fn met_first(&self, from: i64, hi: i64, rows: &[(Head, R)], skipped: Vec<Skipped>) -> Passed {
        let second_of = |place: usize| rows.get(place).map(|(head, _)| head.second);
        let mut first = Passed::new();
        for skipped in skipped {
            let before = skipped.after.checked_sub(1).and_then(second_of);
            let (earliest, remembered) = match skipped.second {
                Some(second) => (second, second),
                None => (before.unwrap_or(from), second_of(skipped.after).unwrap_or(hi).min(hi)),
            };
            let has_left = remembered < self.window.from() && remembered < self.cursor.second;
            // Above the high-water mark it is left for a later sweep, like any other row.
            if earliest <= hi && !has_left && !self.window.contains_since(earliest, &skipped.version) {
                first.push((remembered, skipped));
            }
        }
        first
    }
}
