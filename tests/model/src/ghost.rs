//! What an observer outside would write down: which versions are in the topic, which of them were acknowledged, and the
//! first promise that was broken.
//!
//! Nothing in here is seen by the protocol. The bound of duplicates is counted from the faults that struck, with the
//! numbers of docs/semantics.md and not with those of the code.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{At, Row};

/// A promise of docs/semantics.md that one step can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Promise {
    /// The cursor moves back by an operator's hand only.
    CursorOnlyForward,
    /// A write of a sweep takes effect only while that sweep holds the lease, and a lease is taken only when it is free.
    OneWriter,
    /// No older version of a row follows a newer one, but for what a process had handed over when it was frozen.
    VersionsInOrder,
    /// A window is lost only by a fault.
    WindowKept,
    /// One request rewinds once.
    RewoundOnce,
    /// A sweep says that it caught up only if what it read last is committed.
    CaughtUpIsTrue,
    /// A sweep whose sink keeps to its time-out is done with it before its deadline.
    EndsInTime,
    /// Request after request brings a new row or another position, and write after write another revision.
    Progress,
}

/// Pages that a fault may repeat, as docs/semantics.md says.
const REPEATED_PAGES: usize = 2;

/// The observer's notes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ghost {
    /// How often each version is in the topic, since the cursor was last set before it by hand.
    topic: BTreeMap<(u8, u8), usize>,
    acked: BTreeSet<(u8, u8)>,
    newest: BTreeMap<u8, u8>,
    /// Versions that appeared behind a position that was already read up to.
    late: BTreeSet<(u8, u8)>,
    /// The furthest position that any sweep has read up to.
    read_to: Option<At>,
    /// Versions that are in the topic once more.
    pub duplicates: usize,
    /// So many are within the bound.
    pub allowed: usize,
    faults: usize,
    losses: usize,
    rewinds: usize,
    /// The first promise that a step broke.
    pub broken: Option<Promise>,
}

impl Ghost {
    /// Notes that a step broke a promise.
    pub fn breaks(&mut self, promise: Promise) {
        self.broken.get_or_insert(promise);
    }

    /// A fault strikes a sweep.
    pub fn fault(&mut self, page: usize) {
        self.faults += 1;
        self.allowed += REPEATED_PAGES * page;
    }

    /// A window was found lost; `overlap`: the rows that the table has in what it covered.
    pub fn window_lost(&mut self, overlap: usize) {
        self.losses += 1;
        self.allowed += overlap;
        if self.losses > self.faults {
            self.breaks(Promise::WindowKept);
        }
    }

    /// A sweep has read up to here.
    pub fn read(&mut self, to: Option<At>) {
        self.read_to = self.read_to.max(to);
    }

    /// A row version appears in the table.
    pub fn appeared(&mut self, row: Row) {
        if self.read_to.is_some_and(|read| row.at() <= read) {
            self.late.insert((row.id, row.version));
        }
    }

    /// Records are in the topic now. `in_hand`: their process stood still after it had handed them over.
    pub fn landed(&mut self, rows: &[Row], in_hand: bool) {
        for row in rows {
            let count = self.topic.entry((row.id, row.version)).or_default();
            self.duplicates += usize::from(*count > 0);
            *count += 1;
            let newest = self.newest.entry(row.id).or_default();
            if row.version < *newest && !in_hand {
                self.broken.get_or_insert(Promise::VersionsInOrder);
            }
            *newest = row.version.max(*newest);
        }
    }

    /// Records were acknowledged.
    pub fn acked(&mut self, rows: &[Row]) {
        self.acked.extend(rows.iter().map(|row| (row.id, row.version)));
    }

    /// The cursor was set to `to` by hand: what lies after it is to come again.
    pub fn rewound(&mut self, table: &[Row], to: At) {
        self.rewinds += 1;
        if self.rewinds > 1 {
            self.breaks(Promise::RewoundOnce);
        }
        for row in table.iter().filter(|row| row.at() > to) {
            self.topic.remove(&(row.id, row.version));
            self.acked.remove(&(row.id, row.version));
        }
    }

    /// Whether the row's version was acknowledged.
    pub fn has(&self, row: &Row) -> bool {
        self.acked.contains(&(row.id, row.version))
    }

    /// Whether the row's version appeared behind what was read.
    pub fn is_late(&self, row: &Row) -> bool {
        self.late.contains(&(row.id, row.version))
    }
}
