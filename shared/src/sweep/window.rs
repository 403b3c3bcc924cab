//! The dedup window: which row versions were delivered lately.
//!
//! A sweep reads some rows again on purpose, because rows can appear behind the cursor: a transaction that commits late, an
//! update within the cursor's second. A re-read row is recognised by its *version*, a hash over timestamp, id and
//! modification count, never by its position, so a changed or late row is delivered and an unchanged one is not.
//!
//! The window says from which second on it is complete. Before that it knows nothing: versions were evicted, since it is
//! bounded. Within, there may be a stretch that it does not know, because a process died with a newer window than the
//! one that is stored. What an old window contains was delivered all the same. A plain value: no I/O, no clock.

use std::collections::{BTreeMap, BTreeSet};

/// A 16-byte hash of a row version.
pub type Version = [u8; 16];

/// Delivered row versions by second, in epoch seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Window {
    complete_from: i64,
    /// First and last second of what it does not know.
    unknown: Option<(i64, i64)>,
    seconds: BTreeMap<i64, BTreeSet<Version>>,
    len: usize,
}

/// What a page does to the window once its records are acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct WindowChange {
    /// Versions delivered, with their second.
    pub delivered: Vec<(i64, Version)>,
    /// Versions of earlier seconds are not needed any more.
    pub forget_before: Option<i64>,
    /// The most versions to keep; `0` keeps the window as large as it is.
    pub limit: usize,
    /// A re-read has gone through all that was unknown.
    pub refilled: bool,
}

impl WindowChange {
    /// Whether the change leaves every window as it is.
    pub fn is_empty(&self) -> bool {
        self.delivered.is_empty() && self.forget_before.is_none() && !self.refilled
    }
}

impl Window {
    /// A window of a cursor that has delivered nothing at or after `from`: it is complete from there on.
    pub fn complete_from(from: i64) -> Self {
        Self { complete_from: from, unknown: None, seconds: BTreeMap::new(), len: 0 }
    }

    /// The window of a cursor in second `through` whose stored window was lost: what was delivered in the seconds
    /// `from..=through` is not known, and everything after will be.
    pub fn lost(from: i64, through: i64) -> Self {
        Self::complete_from(from).ignorant_of(from, through)
    }

    /// The same window for a cursor that has gone on since it was stored: what was delivered meanwhile, in the seconds
    /// `from..=through`, is not known.
    pub fn ignorant_of(mut self, from: i64, through: i64) -> Self {
        let (before, after) = self.unknown.unwrap_or((from, through));
        self.unknown = Some((before.min(from).max(self.complete_from), after.max(through)));
        self
    }

    /// The second from which on versions are kept. Late rows before it are not looked for.
    pub fn from(&self) -> i64 {
        self.complete_from
    }

    /// The first and last second whose delivered versions are unknown, if that has not been made good yet.
    pub fn unknown(&self) -> Option<(i64, i64)> {
        self.unknown
    }

    /// Whether all versions delivered in `second` are in the window.
    pub fn knows(&self, second: i64) -> bool {
        second >= self.complete_from && self.unknown.is_none_or(|(from, through)| second < from || second > through)
    }

    /// Whether the version was delivered.
    pub fn contains(&self, second: i64, version: &Version) -> bool {
        self.seconds.get(&second).is_some_and(|versions| versions.contains(version))
    }

    /// Whether any version of `second` was delivered: a look that costs no hash.
    pub fn has_second(&self, second: i64) -> bool {
        self.seconds.contains_key(&second)
    }

    /// Whether the version is among those of `second` or any later one.
    pub fn contains_since(&self, second: i64, version: &Version) -> bool {
        self.seconds.range(second..).any(|(_, versions)| versions.contains(version))
    }

    /// How many versions were delivered in `second`.
    pub fn count_at(&self, second: i64) -> usize {
        self.seconds.get(&second).map_or(0, BTreeSet::len)
    }

    /// How many versions were delivered at or after `second`.
    pub fn count_from(&self, second: i64) -> usize {
        if self.seconds.first_key_value().is_none_or(|(first, _)| *first >= second) {
            return self.len;
        }
        self.seconds.range(second..).map(|(_, versions)| versions.len()).sum()
    }

    /// How many versions the window holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes in what a page delivered. Returns whether anything changed.
    pub fn apply(&mut self, change: &WindowChange) -> bool {
        let mut changed = false;
        for (second, version) in &change.delivered {
            if *second >= self.complete_from && self.seconds.entry(*second).or_default().insert(*version) {
                self.len += 1;
                changed = true;
            }
        }
        if let Some(before) = change.forget_before {
            changed |= self.forget_before(before);
        }
        while change.limit > 0 && self.len > change.limit {
            // The oldest second leaves as a whole: a second of which a part is known counts as unknown anyway.
            let Some((&oldest, _)) = self.seconds.first_key_value() else { break };
            changed |= self.forget_before(oldest.saturating_add(1));
        }
        if change.refilled && self.unknown.take().is_some() {
            changed = true;
        }
        changed
    }

    fn forget_before(&mut self, before: i64) -> bool {
        if before <= self.complete_from {
            return false;
        }
        let kept = self.seconds.split_off(&before);
        let forgotten: usize = self.seconds.values().map(BTreeSet::len).sum();
        self.seconds = kept;
        self.len -= forgotten;
        self.complete_from = before;
        self.unknown = self.unknown.map(|(from, through)| (from.max(before), through)).filter(|(from, through)| from <= through);
        // Moving the edge over nothing is no reason to store the window again.
        forgotten > 0
    }

    /// The window as bytes: what is stored.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.len * 18);
        out.push(2);
        out.extend(self.complete_from.to_be_bytes());
        out.push(u8::from(self.unknown.is_some()));
        if let Some((from, through)) = self.unknown {
            out.extend(from.to_be_bytes());
            out.extend(through.to_be_bytes());
        }
        for (second, versions) in &self.seconds {
            out.extend(second.to_be_bytes());
            out.extend(u32::try_from(versions.len()).unwrap_or(u32::MAX).to_be_bytes());
            versions.iter().for_each(|version| out.extend(version));
        }
        out
    }

    /// Reads what [`Window::encode`] wrote, in this format or the one before; `None` if it is anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first()?;
        let (complete_from, rest) = take_i64(rest)?;
        let (has_unknown, mut rest) = rest.split_first()?;
        let mut window = Self::complete_from(complete_from);
        match (format, has_unknown) {
            // The first format always has the last unknown second and never the first: it is that of the window.
            (1, 0 | 1) => {
                let through;
                (through, rest) = take_i64(rest)?;
                window.unknown = (*has_unknown == 1).then_some((complete_from, through));
            }
            (2, 0) => {}
            (2, 1) => {
                let (from, through);
                (from, rest) = take_i64(rest)?;
                (through, rest) = take_i64(rest)?;
                window.unknown = Some((from, through));
            }
            _ => return None,
        }
        while !rest.is_empty() {
            let (second, after) = take_i64(rest)?;
            let (count, mut after) = after.split_first_chunk::<4>().map(|(count, after)| (u32::from_be_bytes(*count), after))?;
            let versions = window.seconds.entry(second).or_default();
            for _ in 0..count {
                let (version, next) = after.split_first_chunk::<16>()?;
                versions.insert(*version);
                after = next;
            }
            window.len += versions.len();
            rest = after;
        }
        Some(window)
    }
}

fn take_i64(bytes: &[u8]) -> Option<(i64, &[u8])> {
    bytes.split_first_chunk::<8>().map(|(number, rest)| (i64::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(n: u8) -> Version {
        [n; 16]
    }

    fn delivered(rows: &[(i64, u8)]) -> WindowChange {
        WindowChange { delivered: rows.iter().map(|(second, n)| (*second, version(*n))).collect(), ..WindowChange::default() }
    }

    #[test]
    fn a_delivered_version_is_known_and_a_changed_one_is_not() {
        let mut window = Window::complete_from(10);
        assert!(window.apply(&delivered(&[(10, 1), (11, 2)])));
        assert!(window.contains(10, &version(1)) && !window.contains(10, &version(3)));
        assert!(!window.apply(&delivered(&[(10, 1)])), "the same version again changes nothing");
        assert_eq!((window.len(), window.count_from(11)), (2, 1));
    }

    #[test]
    fn a_bounded_window_says_from_where_it_is_complete() {
        let mut window = Window::complete_from(0);
        window.apply(&WindowChange { limit: 3, ..delivered(&[(1, 1), (1, 2), (2, 3), (3, 4)]) });
        assert!(!window.knows(1) && window.knows(2) && window.knows(3));
        assert_eq!((window.len(), window.from()), (2, 2));
    }

    #[test]
    fn a_lost_window_knows_nothing_of_the_cursors_second_until_it_is_refilled() {
        let mut window = Window::lost(8, 10);
        assert!(!window.knows(9) && !window.knows(10) && window.knows(11));
        window.apply(&delivered(&[(9, 1), (10, 2)]));
        assert!(!window.knows(10));
        window.apply(&WindowChange { refilled: true, ..WindowChange::default() });
        assert!(window.knows(10) && window.knows(8) && !window.knows(7));
    }

    #[test]
    fn a_lost_window_is_forgotten_with_the_seconds_that_it_did_not_know() {
        let mut window = Window::lost(8, 10);
        window.apply(&WindowChange { forget_before: Some(11), ..WindowChange::default() });
        assert!(window.unknown().is_none() && window.knows(11) && !window.knows(10));
    }

    #[test]
    fn an_older_window_still_knows_what_it_knew() {
        let mut older = Window::complete_from(5);
        older.apply(&delivered(&[(6, 1), (8, 2)]));
        let window = older.ignorant_of(8, 20);
        assert!(window.knows(6) && !window.knows(8) && !window.knows(20) && window.knows(21));
        assert!(window.contains(8, &version(2)), "what it contains was delivered");
        assert_eq!(window.clone().ignorant_of(12, 30).unknown(), Some((8, 30)), "and once more");
        let mut window = window;
        window.apply(&WindowChange { forget_before: Some(15), ..WindowChange::default() });
        assert_eq!(window.unknown(), Some((15, 20)));
    }

    #[test]
    fn a_stored_window_is_read_back_and_damage_is_noticed() {
        let mut window = Window::lost(-5, 7);
        window.apply(&delivered(&[(8, 1), (8, 2), (9, 3)]));
        let bytes = window.encode();
        assert_eq!(Window::decode(&bytes), Some(window));
        for cut in 0..bytes.len() {
            let read = Window::decode(&bytes[..cut]);
            assert!(read.is_none_or(|read| read.len() < 3), "cut at {cut}");
        }
        assert_eq!((Window::decode(b"\x02"), Window::decode(b"\x03\0\0\0\0\0\0\0\0\0")), (None, None));
    }

    #[test]
    fn a_window_of_the_first_format_is_read() {
        let mut first = vec![1];
        first.extend((-5_i64).to_be_bytes());
        first.push(1);
        first.extend(7_i64.to_be_bytes());
        first.extend(8_i64.to_be_bytes());
        first.extend(1_u32.to_be_bytes());
        first.extend(version(1));
        let mut window = Window::lost(-5, 7);
        window.apply(&delivered(&[(8, 1)]));
        assert_eq!(Window::decode(&first), Some(window));
        first[9] = 0;
        assert_eq!(Window::decode(&first).map(|window| (window.unknown(), window.len())), Some((None, 1)));
    }
}
