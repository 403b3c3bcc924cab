//! A table and its paging, as small as they can be while the real [`Window`] still decides what is a duplicate.
//!
//! Rows lie in the order (second, id). A session walks over them from its cursor with the same shapes of request as the
//! ServiceNow planner: the re-read of the overlap in the first request while the window is small, else exactly from the
//! cursor on, and the overlap afterwards, one page per sweep. There are no hidden rows, no clocks and no lost
//! answers in here; generated histories drive the planner itself through those.

use std::collections::BTreeMap;

use tablesweep::cursor::{Phase, Position, Progress};
use tablesweep::source::Checkpoint;
use tablesweep::sweep::{Kept, Owed, Stretch, Version, Window, WindowChange};

/// The version of a row that is in the table now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row {
    /// Its cursor timestamp.
    pub second: i64,
    /// Its id; from 1.
    pub id: u8,
    /// Its modification count.
    pub version: u8,
}

impl Row {
    /// A row as it was first inserted.
    pub const fn new(second: i64, id: u8) -> Self {
        Self { second, id, version: 0 }
    }

    fn hash(self) -> Version {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&self.second.to_be_bytes());
        hash[8] = self.id;
        hash[9] = self.version;
        hash
    }

    /// Where it lies in the order of the table.
    pub fn at(self) -> At {
        At { second: self.second, id: self.id }
    }
}

/// A position. Id 0 lies before every row of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At {
    /// The second.
    pub second: i64,
    /// The id.
    pub id: u8,
}

impl At {
    /// The position as the cursor item carries it.
    pub fn position(self) -> Position {
        Position::new([("timestamp", Some(self.second.to_string())), ("sys_id", Some(self.id.to_string()))])
    }

    /// Reads what [`At::position`] wrote.
    pub fn read(position: &Position) -> Option<Self> {
        Some(Self { second: position.get("timestamp")?.parse().ok()?, id: position.get("sys_id")?.parse().ok()? })
    }
}

/// How the table is paged.
#[derive(Debug, Clone, Copy)]
pub struct Paging {
    /// Rows per page.
    pub page: usize,
    /// Seconds before the cursor that are read again.
    pub overlap: i64,
    /// The most versions in the window.
    pub window: usize,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Page {
    /// New rows, in order.
    pub rows: Vec<Row>,
    /// Its checkpoint.
    pub checkpoint: Checkpoint,
    /// The sweep ends with it.
    pub last: bool,
}

/// More requests than this for one page are no progress.
const REQUESTS: usize = 16;

/// A sweep of the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Session {
    /// The last position that was read.
    pub cursor: At,
    window: Window,
    owed: Owed,
    ask: Option<Ask>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Ask {
    /// Everything from this second on.
    From(i64),
    /// The rest of a second.
    Rest(At),
    /// A page of the overlap.
    Again { from: At, to: i64 },
}

impl Session {
    /// Goes on where `progress` stands.
    pub fn open(progress: &Progress, kept: Kept, paging: Paging) -> Self {
        let cursor = progress.cursor.as_ref().and_then(At::read).unwrap_or(At { second: 0, id: 0 });
        let mut owed = Owed::from_notes(&progress.notes, cursor.second);
        let overlap_from = cursor.second - paging.overlap;
        let window = match kept {
            Kept::Fresh => return Self { cursor, window: Window::complete_from(cursor.second), owed, ask: None },
            Kept::Whole(window) => return Self { cursor, window, owed, ask: None },
            Kept::Older(window, of) => window.ignorant_of(At::read(&of).map_or(0, |at| at.second), cursor.second),
            Kept::Lost => Window::lost(owed.from().map_or(overlap_from, |from| from.min(overlap_from)), cursor.second),
        };
        owed.restart(overlap_from);
        Self { cursor, window, owed, ask: None }
    }

    /// The window as the session begins with it.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Up to where the session has read, rows that are not there yet included: a second that was read to its end is done
    /// with, and a row that appears in it later is found by the overlap only.
    pub fn read_to(&self) -> At {
        match self.ask {
            Some(Ask::From(second)) if second > self.cursor.second => At { second: second - 1, id: u8::MAX },
            _ => self.cursor,
        }
    }

    /// Whether the next sweep has to read again what this one did not.
    pub fn owes(&self) -> bool {
        self.owed.is_round_under_way() || self.window.unknown().is_some()
    }

    /// The next page; `None` if request after request brought neither a new row nor another position.
    pub fn next_page(&mut self, table: &[Row], paging: Paging) -> Option<Page> {
        (0..REQUESTS).find_map(|_| self.ask(table, paging))
    }

    /// One request; `None` if its answer makes no page.
    fn ask(&mut self, table: &[Row], paging: Paging) -> Option<Page> {
        let ask = self.ask.take().unwrap_or_else(|| self.begin(paging));
        match ask {
            Ask::Again { from, to } => Some(self.read_again(table, from, to, paging)),
            Ask::From(second) => {
                let range: Vec<Row> = table.iter().copied().filter(|row| row.second >= second).collect();
                self.forward(ask, &range, paging)
            }
            Ask::Rest(at) => {
                let range: Vec<Row> = table.iter().copied().filter(|row| row.second == at.second && row.id > at.id).collect();
                self.forward(ask, &range, paging)
            }
        }
    }

    fn begin(&mut self, paging: Paging) -> Ask {
        let At { second, id } = self.cursor;
        let half = |rows: usize| rows * 2 < paging.page;
        let from = (second - paging.overlap).max(self.window.from());
        let knows = self.window.knows(second);
        let (ask, owed) = if knows && self.window.unknown().is_none() && half(self.window.count_from(from)) {
            (Ask::From(from), None)
        } else if id == 0 || (knows && half(self.window.count_at(second))) {
            (Ask::From(second), Some((from, second - 1)))
        } else {
            (Ask::Rest(self.cursor), Some((from, second)))
        };
        if let Some((from, to)) = owed {
            self.owed.add(from, to, self.window.unknown());
        }
        ask
    }

    fn forward(&mut self, ask: Ask, range: &[Row], paging: Paging) -> Option<Page> {
        let rows = &range[..range.len().min(paging.page)];
        let is_last = rows.len() == range.len();
        let new: Vec<Row> = rows.iter().copied().filter(|row| !self.window.contains(row.second, &row.hash())).collect();
        let before = self.cursor;
        if let Some(last) = rows.last() {
            let passed_own = rows.iter().any(|row| row.at() == before);
            let beyond = last.second > before.second || (last.second == before.second && (before.id == 0 || passed_own));
            if matches!(ask, Ask::Rest(_)) || beyond {
                self.cursor = last.at();
            }
        }
        let moved = before != self.cursor;
        let change = self.delivered(&new, paging);
        let next = match ask {
            Ask::Rest(at) if is_last => Some(Ask::From(at.second + 1)),
            Ask::Rest(_) => Some(Ask::Rest(self.cursor)),
            Ask::From(_) | Ask::Again { .. } if is_last => None,
            Ask::From(second) => Some(self.after_seconds(second, moved, !new.is_empty(), paging)),
            Ask::Again { .. } => None,
        };
        match next.or_else(|| self.overlap()) {
            Some(ask) => {
                self.ask = Some(ask);
                (moved || !new.is_empty()).then(|| self.page(new, change, false))
            }
            None => {
                let change = self.settle(change, paging);
                Some(self.page(new, change, true))
            }
        }
    }

    fn after_seconds(&mut self, first: i64, moved: bool, new: bool, paging: Paging) -> Ask {
        let At { second, id } = self.cursor;
        if !moved && first <= second {
            self.owed.add(first, second, self.window.unknown());
        }
        let known = self.window.knows(second) && self.window.count_at(second) * 2 < paging.page;
        if id == 0 || (known && new && moved) { Ask::From(second) } else { Ask::Rest(self.cursor) }
    }

    /// The re-read that this sweep still has to do.
    fn overlap(&mut self) -> Option<Ask> {
        self.owed.forget_before(self.window.from());
        let Stretch { from, after, to } = self.owed.next()?;
        Some(Ask::Again { from: At { second: from, id: after.parse().unwrap_or(0) }, to })
    }

    fn read_again(&mut self, table: &[Row], from: At, to: i64, paging: Paging) -> Page {
        let range: Vec<Row> = table.iter().copied().filter(|row| row.at() > from && row.second <= to).collect();
        let rows = &range[..range.len().min(paging.page)];
        let refilled = match rows.last().filter(|_| rows.len() < range.len()) {
            None => self.owed.read_through(to),
            Some(last) => {
                self.owed.read_to(last.second, &last.id.to_string());
                false
            }
        };
        let new: Vec<Row> = rows.iter().copied().filter(|row| !self.window.contains(row.second, &row.hash())).collect();
        let delivered = new.iter().map(|row| (row.second, row.hash())).collect();
        let change = WindowChange { delivered, refilled, limit: paging.window, forget_before: None };
        self.window.apply(&change);
        let change = self.settle(change, paging);
        self.page(new, change, true)
    }

    fn delivered(&mut self, rows: &[Row], paging: Paging) -> WindowChange {
        let keep = self.keep_from(paging);
        let delivered = rows.iter().filter(|row| row.second >= keep).map(|row| (row.second, row.hash())).collect();
        let change = WindowChange { delivered, forget_before: Some(keep), limit: paging.window, refilled: false };
        self.window.apply(&change);
        change
    }

    fn keep_from(&self, paging: Paging) -> i64 {
        let overlap_from = self.cursor.second - paging.overlap;
        self.owed.from().map_or(overlap_from, |owed| owed.min(overlap_from))
    }

    /// At the end of a sweep only the overlap before the cursor is kept, and what is still owed.
    fn settle(&mut self, mut change: WindowChange, paging: Paging) -> WindowChange {
        change.forget_before = Some(self.keep_from(paging));
        self.window.apply(&change);
        change
    }

    fn page(&self, rows: Vec<Row>, window: WindowChange, last: bool) -> Page {
        let mut notes = BTreeMap::new();
        self.owed.note(&mut notes);
        let checkpoint = Checkpoint {
            cursor: Some(self.cursor.position()),
            window,
            swept_to_ms: None,
            phase: Phase::Stream,
            page_size: None,
            clock_difference_ms: None,
            notes,
        };
        Page { rows, checkpoint, last }
    }
}
