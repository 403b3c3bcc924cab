//! What is explored: a table, what happens to it, and how many faults of each kind may strike.
//!
//! The product of everything at once is too large to be searched. Each scenario allows a few kinds of events and is
//! searched to its end: every order of them, at every point.

use std::time::Duration;

use tablesweep::sweep::LAST_COMMIT;

use super::source::{Paging, Row};

/// One unit of the model's time, in milliseconds: as long as a lease outlives its holder's deadline.
pub const TICK_MS: i64 = 10_000;

/// What happens to the table, in this order and at any time.
#[derive(Debug, Clone, Copy)]
pub enum Happening {
    /// A row appears.
    Insert(Row),
    /// The row with this id gets another second and its next version.
    Update(u8, i64),
}

/// How often each kind of thing may happen at most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Invocations, duplicate ones included.
    pub triggers: u8,
    /// Processes that die.
    pub crashes: u8,
    /// Pages that the sink gives up on.
    pub nacks: u8,
    /// Writes that are lost, delayed or answered into the void, and windows that cannot be written.
    pub store: u8,
    /// Processes that stand still for any length of time.
    pub freezes: u8,
    /// Requests to end.
    pub stops: u8,
    /// Deliveries of one operator's request to rewind.
    pub rewinds: u8,
}

/// The limits as they are printed.
impl std::fmt::Display for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { triggers, crashes, nacks, store, freezes, stops, rewinds } = self;
        let named = [(crashes, "kills"), (nacks, "nacks"), (store, "store"), (freezes, "freezes"), (stops, "stops"), (rewinds, "rewinds")];
        write!(f, "{triggers} triggers")?;
        named.iter().filter(|(count, _)| **count > 0).try_for_each(|(count, name)| write!(f, ", {count} {name}"))
    }
}

/// One search.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The rows at the start.
    pub rows: Vec<Row>,
    /// What happens to them.
    pub happenings: Vec<Happening>,
    /// They happen only while nobody sweeps: a row that appears during a sweep lies above its high-water mark, which is not
    /// modelled.
    pub between_sweeps: bool,
    /// How they are paged.
    pub paging: Paging,
    /// The window lies beside the item.
    pub beside: bool,
    /// Ticks from an invocation's start to its deadline.
    pub deadline: i64,
    /// The lease is renewed and no deadline ends the process; else it lasts until a deadline.
    pub renewed: bool,
    /// At most so many of each.
    pub limits: Limits,
    /// The last tick.
    pub horizon: i64,
}

impl Scenario {
    /// How long the sink may try.
    pub fn message_timeout(&self) -> Duration {
        Duration::from_millis(TICK_MS.unsigned_abs())
    }

    /// What is kept of an invocation for acknowledgements and the last commit.
    pub fn reserve_ms(&self) -> i64 {
        TICK_MS + i64::try_from(LAST_COMMIT.as_millis()).unwrap_or(i64::MAX)
    }

    /// The length of a renewed lease.
    pub fn lease_ms(&self) -> u64 {
        3 * TICK_MS.unsigned_abs()
    }
}

/// Four pages, the second and third of them of one second.
fn rows() -> Vec<Row> {
    vec![Row::new(1, 1), Row::new(2, 2), Row::new(2, 3), Row::new(2, 4), Row::new(3, 5)]
}

fn base(name: &'static str, about: &'static str) -> Scenario {
    Scenario {
        name,
        about,
        rows: rows(),
        happenings: Vec::new(),
        between_sweeps: false,
        paging: Paging { page: 1, overlap: 2, window: 100 },
        beside: false,
        deadline: 2,
        renewed: false,
        limits: Limits { triggers: 2, ..Limits::default() },
        horizon: 9,
    }
}

/// The short run: each kind of fault by itself.
pub fn short() -> Vec<Scenario> {
    let late = vec![Happening::Update(3, 3), Happening::Insert(Row::new(2, 6))];
    let pair = Paging { page: 2, overlap: 2, window: 100 };
    vec![
        Scenario {
            happenings: late.clone(),
            paging: pair,
            limits: Limits { triggers: 3, ..Limits::default() },
            ..base("no fault", "late rows, an update and duplicate triggers, and nothing goes wrong")
        },
        Scenario {
            rows: rows()[..3].to_vec(),
            limits: Limits { triggers: 3, crashes: 2, ..Limits::default() },
            ..base("kills", "two processes die at any point; pages of one row")
        },
        Scenario {
            rows: rows()[..3].to_vec(),
            happenings: late.clone(),
            paging: pair,
            beside: true,
            limits: Limits { triggers: 3, crashes: 1, ..Limits::default() },
            ..base("window lost", "a process dies before the window beside the item is written")
        },
        Scenario {
            rows: rows()[..3].to_vec(),
            happenings: late.clone(),
            paging: pair,
            beside: true,
            limits: Limits { triggers: 2, store: 1, ..Limits::default() },
            ..base("window not written", "the store takes the cursor and not the window, and then a late row comes")
        },
        Scenario {
            happenings: vec![Happening::Insert(Row::new(1, 6)), Happening::Insert(Row::new(9, 7))],
            between_sweeps: true,
            paging: pair,
            limits: Limits { triggers: 3, ..Limits::default() },
            ..base(
                "table moves on",
                "a row comes late behind the round over the overlap, and then one so far ahead that the overlap moves on",
            )
        },
        Scenario {
            rows: rows()[..3].to_vec(),
            limits: Limits { triggers: 2, nacks: 1, store: 1, ..Limits::default() },
            ..base("sink and store", "a page is given up on; a write is lost, delayed or answered into the void")
        },
        Scenario {
            rows: rows()[..2].to_vec(),
            limits: Limits { triggers: 2, store: 2, ..Limits::default() },
            ..base("store out of reach", "a write is held up, others get no answer, and the lease is given back as the store has it")
        },
        Scenario {
            rows: rows()[..2].to_vec(),
            happenings: vec![Happening::Update(1, 3)],
            renewed: true,
            horizon: 4,
            limits: Limits { triggers: 2, freezes: 1, ..Limits::default() },
            ..base("zombie", "a process stands still for any length of time, and wakes")
        },
        Scenario {
            rows: rows()[..2].to_vec(),
            limits: Limits { triggers: 3, rewinds: 2, crashes: 1, ..Limits::default() },
            ..base("rewind", "an operator's request to rewind arrives twice")
        },
        Scenario {
            happenings: vec![Happening::Update(1, 3)],
            paging: Paging { window: 2, ..pair },
            limits: Limits { triggers: 3, stops: 1, ..Limits::default() },
            ..base("small window", "the window is bounded below what the overlap holds; a process is told to end")
        },
    ]
}

/// The long run: more rows, more time, and faults of different kinds together.
pub fn long() -> Vec<Scenario> {
    let late = vec![Happening::Update(3, 3), Happening::Insert(Row::new(2, 6))];
    let pair = Paging { page: 2, overlap: 2, window: 100 };
    let mut scenarios = short();
    scenarios.extend([
        Scenario {
            happenings: late.clone(),
            paging: pair,
            deadline: 3,
            limits: Limits { triggers: 3, stops: 1, ..Limits::default() },
            ..base("no fault, longer", "five rows and an invocation in which pages are sent at different times")
        },
        Scenario {
            limits: Limits { triggers: 3, crashes: 2, ..Limits::default() },
            ..base("kills of five pages", "two processes die; five pages of one row")
        },
        Scenario {
            rows: rows()[..4].to_vec(),
            happenings: late,
            paging: pair,
            beside: true,
            limits: Limits { triggers: 3, crashes: 1, ..Limits::default() },
            ..base("window lost, four rows", "as above, over more pages")
        },
        Scenario {
            rows: rows()[..3].to_vec(),
            limits: Limits { triggers: 3, crashes: 1, store: 1, ..Limits::default() },
            ..base("kill and store", "a process dies, and a write is lost, delayed or answered into the void")
        },
        Scenario {
            rows: rows()[..2].to_vec(),
            beside: true,
            renewed: true,
            horizon: 4,
            limits: Limits { triggers: 2, freezes: 1, ..Limits::default() },
            ..base("zombie, window beside", "the process that woke writes its window over the other's")
        },
    ]);
    scenarios
}
