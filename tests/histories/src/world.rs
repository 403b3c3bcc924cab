//! The reference set: which rows there are, and which changes keep within the documented limits.
//!
//! What is documented as not found (docs/semantics.md: late rows, hidden rows, what leaves no trace) is not made. Where the
//! limit depends on how far sweeps have got, the farthest that they can have got is computed from the data and the
//! instance's clock. The stored cursor is never asked: a cursor that runs ahead must be found out, not obeyed.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{Ids, Setup};

/// A row as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) second: i64,
    pub(crate) mod_count: u64,
    pub(crate) hidden: bool,
}

/// A row version: id, second, modification count.
pub(crate) type Version = (String, i64, u64);

/// The rows, and what is known of the sweeps so far.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) rows: BTreeMap<String, Row>,
    overlap: i64,
    lag: i64,
    /// The window is so small that seconds may leave it.
    bounded: bool,
    /// The highest time of the instance's clock during a sweep.
    peak: Option<i64>,
    /// The highest second of a row, by the high-water mark at which a sweep can have read it.
    seconds: Vec<i64>,
    /// Some row was hidden: the cursor may stand at positions where no row is.
    ever_hidden: bool,
    /// Late rows before this are not looked for: the cursor was set here by hand.
    floor: i64,
    made: u64,
    ids: Ids,
    /// Every version that there ever was.
    ever: BTreeSet<Version>,
    /// The most rows that any span of the overlap's length ever had.
    pub(crate) widest: u64,
    /// The most rows that any second ever had.
    pub(crate) fullest: u64,
}

/// The `sys_id` of the row with this id, which is the same where ids are `sys_id`s.
pub(crate) fn sys_id(id: &str) -> String {
    let number = id.get(id.len().saturating_sub(6)..).and_then(|digits| digits.parse::<u64>().ok());
    match number {
        Some(number) if id.len() != 32 => format!("{number:032x}"),
        _ => id.to_owned(),
    }
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self {
            rows: BTreeMap::new(),
            overlap: setup.overlap,
            lag: setup.lag,
            bounded: setup.window < 10_000,
            peak: None,
            seconds: Vec::new(),
            ever_hidden: false,
            floor: i64::MIN,
            made: 0,
            ids: setup.ids,
            ever: BTreeSet::new(),
            widest: 0,
            fullest: 0,
        }
    }

    /// A sweep may run while the instance's clock shows `now`.
    pub(crate) fn swept_at(&mut self, now: i64) {
        self.peak = self.peak.max(Some(now));
    }

    /// The highest high-water mark that a sweep can have had.
    fn mark(&self) -> i64 {
        self.peak.map_or(i64::MIN, |peak| peak - self.lag)
    }

    /// The highest second in which the cursor can stand.
    fn farthest(&self) -> i64 {
        let mark = self.mark();
        if self.ever_hidden {
            return mark;
        }
        self.seconds.iter().copied().filter(|second| *second <= mark).max().unwrap_or(i64::MIN)
    }

    /// Whether a row version that appears now in `second` is one that must be found.
    pub(crate) fn may_appear_in(&self, second: i64) -> bool {
        let farthest = self.farthest();
        if self.bounded { second > farthest } else { second >= self.floor && second >= farthest.saturating_sub(self.overlap) }
    }

    /// Whether no sweep can have gone by `second` yet.
    pub(crate) fn is_ahead(&self, second: i64) -> bool {
        second > self.mark()
    }

    /// Whether `second` lies after every position that the cursor can have reached.
    pub(crate) fn is_beyond_the_cursor(&self, second: i64) -> bool {
        second > self.farthest()
    }

    /// An id that no row has had.
    pub(crate) fn new_id(&mut self) -> String {
        self.made += 1;
        let mix = |n: u64| {
            let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            n ^ (n >> 31)
        };
        let (n, spread) = (self.made, mix(self.made.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        match self.ids {
            Ids::SysId => format!("{spread:016x}{n:016x}"),
            Ids::Number => format!("INC{:03}{n:06}", spread % 1_000),
            Ids::Text => {
                let begin = ["Miller, Bob ", "a^b", "^NQactive=true^", ",", "ORDERBYx ", "plain", "9-"];
                format!("{}{n:06}", begin[(spread % 7) as usize])
            }
        }
    }

    pub(crate) fn put(&mut self, id: String, row: Row) {
        self.seconds.push(row.second);
        self.ever.insert((id.clone(), row.second, row.mod_count));
        self.ever_hidden |= row.hidden;
        self.rows.insert(id, row);
        self.measure();
    }

    pub(crate) fn hide(&mut self, id: &str, hidden: bool) {
        self.ever_hidden |= hidden;
        if let Some(row) = self.rows.get_mut(id) {
            row.hidden = hidden;
        }
    }

    /// The cursor was set to `second` by hand. Returns how many rows are delivered again for that.
    pub(crate) fn rewound_to(&mut self, second: i64) -> u64 {
        self.floor = self.floor.max(second);
        self.rows.values().filter(|row| row.second >= second).count() as u64
    }

    /// Whether there ever was such a version.
    pub(crate) fn has_had(&self, version: &Version) -> bool {
        self.ever.contains(version)
    }

    /// The id of one of the rows.
    pub(crate) fn pick(&self, pick: u16) -> Option<String> {
        if self.rows.is_empty() { None } else { self.rows.keys().nth(usize::from(pick) % self.rows.len()).cloned() }
    }

    pub(crate) fn last_second(&self) -> Option<i64> {
        self.rows.values().map(|row| row.second).max()
    }

    /// What must have been delivered in the end.
    pub(crate) fn visible(&self) -> Vec<Version> {
        self.rows.iter().filter(|(_, row)| !row.hidden).map(|(id, row)| (id.clone(), row.second, row.mod_count)).collect()
    }

    fn measure(&mut self) {
        let ends = self.rows.values().map(|row| row.second);
        let count = |end: i64| self.rows.values().filter(|row| (end - self.overlap..=end).contains(&row.second)).count() as u64;
        self.widest = self.widest.max(ends.clone().map(count).max().unwrap_or(0));
        self.fullest = self.fullest.max(ends.map(|end| self.rows_in(|second| second == end)).max().unwrap_or(0));
    }

    /// How many rows lie in seconds that are `among` them.
    pub(crate) fn rows_in(&self, among: impl Fn(i64) -> bool) -> u64 {
        self.rows.values().filter(|row| among(row.second)).count() as u64
    }
}
