//! What happens in a history: plain values, made by proptest.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// A document and what happens under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The document and the machine.
    pub setup: Setup,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// The document and the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Rows per page.
    pub batch: u32,
    /// `snow.source.overlap.seconds`.
    pub overlap: i64,
    /// `snow.source.safety.lag.seconds`.
    pub lag: i64,
    /// `snow.source.dedup.window.records`.
    pub window: usize,
    /// Seconds of the poll interval.
    pub poll: i64,
    /// Where cursors lie.
    pub store: StoreKind,
    /// How leases are held.
    pub lease: LeaseKind,
    /// Whether the instance gives a count.
    pub counts: bool,
    /// Seconds that the local clock is ahead of the instance's.
    pub ahead: i64,
    /// Rows before the first sweep: seconds since the group before, and rows of that second.
    pub first: Vec<(u8, u8)>,
}

/// Which store keeps the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreKind {
    /// In memory.
    Memory,
    /// A database file; its leases die with their process.
    Sqlite,
}

/// How leases are held on the store in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseKind {
    /// Until the deadline, as in a function.
    Until,
    /// Renewed, as on a laptop.
    Renewed,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Rows of one second, `back` seconds before the instance's now.
    Insert {
        /// How many.
        rows: u8,
        /// How late.
        back: u8,
        /// Whether a row rule hides them.
        hidden: bool,
    },
    /// A row changes; the change is stamped `back` seconds before now.
    Update {
        /// Which of the rows.
        pick: u16,
        /// How late.
        back: u8,
    },
    /// A row is hidden.
    Hide {
        /// Which of the rows.
        pick: u16,
    },
    /// A row is shown: as it is if no sweep can have passed it, else with an update.
    Show {
        /// Which of the rows.
        pick: u16,
    },
    /// A row is deleted.
    Delete {
        /// Which of the rows.
        pick: u16,
    },
    /// Time passes.
    Pass {
        /// Seconds.
        seconds: u8,
    },
    /// The instance's clock is set.
    StepInstance {
        /// By this many seconds.
        seconds: i32,
    },
    /// The local clock is set.
    StepLocal {
        /// By this many seconds.
        seconds: i32,
    },
    /// A sweep.
    Sweep(SweepStep),
    /// The cursor is rewound by hand to this many seconds before the last row.
    Rewind {
        /// Seconds.
        back: u8,
    },
    /// What lies beside the item is lost.
    LoseWindow,
    /// The process ends in peace; the next sweep starts cold.
    Restart,
}

/// A sweep, its budget and what strikes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepStep {
    /// The most rows.
    pub max_rows: Option<u8>,
    /// Milliseconds of budget, and milliseconds that pass at each reading of the clock.
    pub deadline: Option<(u16, u16)>,
    /// Interrupted at this reading of the clock.
    pub stop_at: Option<u8>,
    /// A schedule starts it.
    pub scheduled: bool,
    /// It is triggered twice at once.
    pub twice: bool,
    /// If a lease is left over from a killed process, it is waited for.
    pub patient: bool,
    /// What changes on the instance once it has answered this many requests.
    pub change: Option<(u8, Change)>,
    /// What strikes.
    pub fault: Option<Fault>,
}

/// What changes in the middle of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The instance's clock is set by so many seconds.
    Step(i8),
    /// Seconds pass, then rows of that second are inserted.
    Insert(u8, u8),
    /// Seconds pass, then a row changes.
    Update(u8, u16),
}

/// What strikes a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// The nth call of the store, from 1.
    Store(u8, StoreFault),
    /// The nth page that is sent, from 1.
    Sink(u8, SinkFault),
    /// The requests after the first n, once or as often as they are tried.
    Http(u8, bool, HttpFault),
    /// The process is killed at the nth reading of the clock.
    Kill(u8),
}

/// How a call of the store fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoreFault {
    /// Refused for good; nothing took effect.
    Denied,
    /// No answer; nothing took effect. The next call is answered.
    Unreachable,
    /// It took effect and the answer is lost. The next call is answered.
    AnswerLost,
    /// No answer from here to the end of the sweep; nothing takes effect.
    Outage,
    /// The process is killed while it waits; nothing took effect.
    KilledBefore,
    /// The process is killed while it waits; it took effect.
    KilledAfter,
}

/// How a page fails in the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SinkFault {
    /// Not taken.
    Refused,
    /// Taken and then given up: so many of its records have arrived.
    GivenUp(u8),
    /// Acknowledged after so many milliseconds.
    Delayed(u8),
    /// The process is killed before anything arrives.
    KilledBefore,
    /// Neither it nor what follows is acknowledged. All of it arrives, and then the process is killed.
    KilledAfter,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are those of the simulator's effects")]
pub enum HttpFault {
    Status(u16),
    Cancelled,
    MalformedJson,
    CutBody,
    EmptyBody,
    Accepted,
    LoginPage,
    TimedOut,
    SlowBody,
    Reset,
    Redirect,
    PredicateIgnored,
    RowsRepeated,
    EmptyRows,
    NoTimestamp,
}

fn store_fault() -> impl Strategy<Value = StoreFault> {
    use StoreFault::*;
    prop_oneof![
        2 => Just(Denied), 1 => Just(Unreachable), 2 => Just(AnswerLost), 1 => Just(Outage), 3 => Just(KilledBefore), 3 => Just(KilledAfter)
    ]
}

fn sink_fault() -> impl Strategy<Value = SinkFault> {
    use SinkFault::*;
    prop_oneof![
        2 => Just(Refused), 3 => (0_u8..6).prop_map(GivenUp), 2 => (1_u8..12).prop_map(Delayed), 2 => Just(KilledBefore),
        3 => Just(KilledAfter)
    ]
}

fn http_fault() -> impl Strategy<Value = HttpFault> {
    // Not `EmptyRows`: rows that are blank in one answer and not in the next are rows that become visible after the cursor has
    // passed them. That is among the documented limits (docs/semantics.md, what leaves no trace), and is not made here.
    use HttpFault::*;
    let status = prop_oneof![Just(500_u16), Just(503), Just(429), Just(403), Just(401), Just(404)].prop_map(Status);
    prop_oneof![
        4 => status, 2 => Just(Cancelled), 2 => Just(MalformedJson), 2 => Just(CutBody), 1 => Just(EmptyBody), 1 => Just(Accepted),
        1 => Just(LoginPage), 1 => Just(TimedOut), 1 => Just(SlowBody), 2 => Just(Reset), 1 => Just(Redirect), 2 => Just(PredicateIgnored),
        2 => Just(RowsRepeated), 1 => Just(NoTimestamp)
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => (1_u8..9, store_fault()).prop_map(|(nth, how)| Fault::Store(nth, how)),
        7 => (1_u8..4, sink_fault()).prop_map(|(nth, how)| Fault::Sink(nth, how)),
        4 => (0_u8..7, any::<bool>(), http_fault()).prop_map(|(nth, once, how)| Fault::Http(nth, once, how)),
        3 => (1_u8..80).prop_map(Fault::Kill),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        1 => (-4_i8..5).prop_map(Change::Step),
        3 => (0_u8..3, 1_u8..5).prop_map(|(seconds, rows)| Change::Insert(seconds, rows)),
        2 => (0_u8..3, any::<u16>()).prop_map(|(seconds, pick)| Change::Update(seconds, pick)),
    ]
}

fn sweep() -> impl Strategy<Value = SweepStep> {
    (
        prop::option::weighted(0.2, 1_u8..12),
        prop::option::weighted(0.15, (50_u16..3_000, 5_u16..120)),
        prop::option::weighted(0.1, 1_u8..70),
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.08),
        prop::bool::weighted(0.8),
        prop::option::weighted(0.25, (0_u8..6, change())),
        prop::option::weighted(0.3, fault()),
    )
        .prop_map(|(max_rows, deadline, stop_at, scheduled, twice, patient, change, fault)| SweepStep {
            max_rows,
            deadline,
            stop_at,
            scheduled,
            twice,
            patient,
            change,
            fault,
        })
}

/// A step of a clock: mostly a little, sometimes far.
fn seconds() -> impl Strategy<Value = i32> {
    prop_oneof![4 => -6_i32..7, 2 => Just(-3_600), 2 => Just(3_600)]
}

fn step() -> impl Strategy<Value = Step> {
    let back = || prop_oneof![3 => Just(0_u8), 2 => 1_u8..9];
    prop_oneof![
        12 => sweep().prop_map(Step::Sweep),
        7 => (1_u8..9, back(), prop::bool::weighted(0.2)).prop_map(|(rows, back, hidden)| Step::Insert { rows, back, hidden }),
        4 => (any::<u16>(), back()).prop_map(|(pick, back)| Step::Update { pick, back }),
        1 => any::<u16>().prop_map(|pick| Step::Hide { pick }),
        1 => any::<u16>().prop_map(|pick| Step::Show { pick }),
        1 => any::<u16>().prop_map(|pick| Step::Delete { pick }),
        5 => (1_u8..8).prop_map(|seconds| Step::Pass { seconds }),
        1 => seconds().prop_map(|seconds| Step::StepInstance { seconds }),
        2 => seconds().prop_map(|seconds| Step::StepLocal { seconds }),
        1 => (0_u8..12).prop_map(|back| Step::Rewind { back }),
        1 => Just(Step::LoseWindow),
        1 => Just(Step::Restart),
    ]
}

fn setup() -> impl Strategy<Value = Setup> {
    let batch = prop_oneof![4 => 1_u32..4, 4 => 4_u32..9, 2 => 9_u32..25];
    let window = prop_oneof![10 => Just(50_000_usize), 1 => Just(0_usize), 2 => 1_usize..25];
    let store = prop_oneof![7 => Just(StoreKind::Memory), 1 => Just(StoreKind::Sqlite)];
    let lease = prop_oneof![3 => Just(LeaseKind::Until), 1 => Just(LeaseKind::Renewed)];
    let ahead = prop_oneof![3 => Just(0_i64), 2 => -100_i64..100];
    let first = prop::collection::vec((0_u8..4, 1_u8..9), 0..5);
    (batch, 0_i64..6, 0_i64..3, window, 1_i64..11, store, lease, prop::bool::weighted(0.85), ahead, first).prop_map(
        |(batch, overlap, lag, window, poll, store, lease, counts, ahead, first)| Setup {
            batch,
            overlap,
            lag,
            window,
            poll,
            store,
            lease,
            counts,
            ahead,
            first,
        },
    )
}

/// Histories.
pub fn histories() -> impl Strategy<Value = History> {
    (setup(), prop::collection::vec(step(), 3..22)).prop_map(|(setup, steps)| History { setup, steps })
}
