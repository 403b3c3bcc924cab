//! A worker: what the engine does around the plain types, one event at a time.
//!
//! [`Sweep::turn`] is the loop of `sweep/table.rs` between two awaits: it carries out what the [`Hand`] wishes as far as that
//! needs no answer from outside. Every await there is an action of the model here, and between any two of them time
//! may pass, the other worker may move, or this one may die.

use std::time::Duration;

use tablesweep::cursor::{Change, Item, Progress, Standing, StoredWindow, Write};
use tablesweep::sink::Delivered;
use tablesweep::sweep::{Beside, Ending, Fold, Hand, Held, Kept, LeasePlan, Reading, Saying, Step, Wish, given_back};

use super::scenario::{Scenario, TICK_MS};
use super::source::{At, Page, Row, Session};

/// One of the two workers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Worker {
    /// Takes no step while time goes on.
    pub frozen: bool,
    /// What it is doing.
    pub doing: Doing,
}

/// What a worker is doing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Doing {
    /// There is no process, or it has ended.
    #[default]
    Nothing,
    /// It asks for the lease.
    Acquiring(Box<Acquiring>),
    /// It holds a lease, or believes so.
    Sweeping(Box<Sweep>),
}

/// A request for the lease whose answer has not come yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acquiring {
    /// The nonce.
    pub owner: String,
    /// The tick of the start.
    pub began: i64,
    /// The write.
    pub write: Write,
}

/// A write whose answer has not come yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Writing {
    /// The write.
    pub write: Write,
    /// What it is for.
    pub purpose: Purpose,
}

/// What a write is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A commit in the middle of a sweep.
    Commit,
    /// A renewal of the lease.
    Renew,
    /// The end.
    Release,
    /// The end of a sweep that does not know whether it holds its lease.
    GiveBack,
}

/// Records that the sink was given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sent {
    /// The page's number.
    pub page: u64,
    /// Its rows.
    pub rows: Vec<Row>,
    /// The tick at which they were handed over.
    pub since: i64,
    /// They are in the topic.
    pub landed: bool,
    /// The process stood still while it waited for their acknowledgement.
    pub in_hand: bool,
}

/// A window that is being written beside the item, and the write that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Storing {
    /// The window.
    pub beside: Beside,
    progress: Progress,
    purpose: Purpose,
}

/// A sweep under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// The tick of the start.
    pub began: i64,
    /// The nonce.
    pub owner: String,
    held: Held,
    item: Item,
    /// What is in hand, and the order of things.
    pub hand: Hand<Step, Page>,
    fold: Fold,
    session: Option<Session>,
    /// A page is being fetched.
    pub fetching: bool,
    /// Its answer has come, and the process has not looked at it.
    answered: Option<Page>,
    /// What is with the sink.
    pub sent: Vec<Sent>,
    pending_commit: Option<Vec<Step>>,
    /// What is with the store.
    pub writing: Option<Writing>,
    /// A window that is being written beside the item.
    pub storing: Option<Storing>,
    /// Where the window of the write under way was to lie.
    said: StoredWindow,
    /// The writes that it has begun.
    pub writes: u8,
    renew_at: i64,
    /// It was told to end.
    pub stopped: bool,
    /// The last write did not take effect.
    pub failed: bool,
    /// It got no answer.
    unanswered: bool,
    /// The item is read, to see whether the lease is still held.
    pub looking: bool,
    /// The sweep is over.
    pub ended: bool,
}

impl Sweep {
    /// The sweep that an acquire brought.
    pub fn begin(acquiring: &Acquiring, item: Item, held: Held, kept: Kept, scenario: &Scenario) -> Self {
        let is_news = matches!(kept, Kept::Older(..) | Kept::Lost);
        let session = Session::open(&item.progress, kept, scenario.paging);
        Self {
            began: acquiring.began,
            owner: acquiring.owner.clone(),
            held,
            fold: Fold::new(item.progress.clone(), Some(session.window().clone()), is_news),
            item,
            hand: Hand::default(),
            session: Some(session),
            fetching: false,
            answered: None,
            sent: Vec::new(),
            pending_commit: None,
            writing: None,
            storing: None,
            said: StoredWindow::None,
            writes: 0,
            renew_at: acquiring.began + 1,
            stopped: false,
            failed: false,
            unanswered: false,
            looking: false,
            ended: false,
        }
    }

    /// Up to where it has read.
    pub fn read_to(&self) -> Option<At> {
        self.session.as_ref().map(Session::read_to)
    }

    /// The cursor after the last page that was fetched.
    pub fn fetched_to(&self) -> Option<At> {
        self.session.as_ref().map(|session| session.cursor)
    }

    /// Whether the page may reach the topic now: records of one row keep their order.
    pub fn may_land(&self, sent: &Sent) -> bool {
        let earlier = self.sent.iter().take_while(|other| other.page != sent.page).filter(|other| !other.landed);
        !earlier.flat_map(|other| &other.rows).any(|row| sent.rows.iter().any(|own| own.id == row.id))
    }

    /// Whether this worker has reason to believe at `now` that it holds the lease.
    pub fn believes(&self, now: i64) -> bool {
        let gives_back = |writing: &Writing| matches!(writing.purpose, Purpose::Release | Purpose::GiveBack);
        !self.looking && !self.writing.as_ref().is_some_and(gives_back) && !self.hand.is_fenced() && self.item.is_leased(now * TICK_MS)
    }

    /// Whether the next sweep has to read again what this one did not.
    pub fn owes(&self) -> bool {
        self.session.as_ref().is_some_and(Session::owes)
    }

    /// Whether it says that nothing is left to deliver for now.
    pub fn says_caught_up(&self) -> bool {
        self.hand.caught_up() && !self.failed
    }

    /// Does everything that needs no answer from outside.
    pub fn turn(&mut self, now: i64, scenario: &Scenario) {
        loop {
            while let Some(wish) = self.hand.wish() {
                match wish {
                    Wish::Page if self.session.is_some() && scenario.leaves_reserve(self.began, now) => self.fetching = true,
                    Wish::Page => self.hand.closed(),
                    Wish::Commit(steps) => self.pending_commit = Some(steps),
                }
            }
            match self.hand.take() {
                Some((number, page)) => self.send(number, page, now, scenario),
                None => break,
            }
        }
        if self.writing.is_none()
            && self.storing.is_none()
            && let Some(steps) = self.pending_commit.take()
        {
            self.fold.take_in(&steps, now * TICK_MS);
            self.say(Purpose::Commit, scenario);
        }
        let idle = self.writing.is_none() && self.storing.is_none() && self.sent.is_empty();
        if idle && self.hand.is_done() && !self.ended && !self.looking {
            self.finish(now, scenario);
        }
    }

    /// Hands a page to the sink.
    fn send(&mut self, number: u64, page: Page, now: i64, scenario: &Scenario) {
        if page.rows.is_empty() {
            self.fold.acknowledged(number, Delivered::default());
            self.hand.acked(number);
            return;
        }
        let reading = Reading { wall_ms: now * TICK_MS, monotonic: scenario.since_start(now) };
        let deadline = scenario.deadline(self.began).map(|deadline| scenario.since_start(deadline));
        if !self.held.may_hand_over(reading, deadline, scenario.message_timeout()) {
            self.hand.failed(number);
            return;
        }
        self.sent.push(Sent { page: number, rows: page.rows, since: now, landed: false, in_hand: false });
    }

    fn write(&mut self, purpose: Purpose, change: Change) {
        self.writes += 1;
        let id = format!("{}.{}", self.owner, self.writes);
        self.writing = Some(Writing { write: Write { id, change }, purpose });
    }

    /// The page that was asked for is here. Returns whether there was one.
    pub fn fetched(&mut self, table: &[Row], scenario: &Scenario) -> bool {
        self.fetching = false;
        let answered = self.answered.take();
        let Some(page) = answered.or_else(|| self.ask(table, scenario)) else {
            return false;
        };
        let step = Step {
            checkpoint: page.checkpoint.clone(),
            suppressed: 0,
            hidden: 0,
            late: 0,
            skipped: 0,
            page: self.hand.next_page(),
            ends: page.last,
        };
        let last = page.last;
        self.hand.fetched(step, page, last);
        true
    }

    fn ask(&mut self, table: &[Row], scenario: &Scenario) -> Option<Page> {
        self.session.as_mut()?.next_page(table, scenario.paging)
    }

    /// The process stands still from here on; `table`: as the source has answered from it.
    pub fn freeze(&mut self, table: Option<&[Row]>, scenario: &Scenario) {
        self.sent.iter_mut().for_each(|sent| sent.in_hand = true);
        self.answered = table.and_then(|table| self.ask(table, scenario));
    }

    /// The time for fetching is over.
    pub fn cut(&mut self) {
        self.fetching = false;
        self.answered = None;
        self.hand.closed();
    }

    /// The sink has acknowledged the page.
    pub fn acked(&mut self, page: u64) {
        self.sent.retain(|sent| sent.page != page);
        // How many rows there were is the observer's to count.
        self.fold.acknowledged(page, Delivered::default());
        self.hand.acked(page);
    }

    /// The sink has given up on the page.
    pub fn refused(&mut self, page: u64) {
        self.sent.retain(|sent| sent.page != page);
        self.hand.failed(page);
    }

    /// It is told to end.
    pub fn stop(&mut self) {
        self.stopped = true;
        if std::mem::take(&mut self.fetching) {
            (self.session, self.answered) = (None, None);
        }
        self.hand.stop();
    }

    /// Whether the lease is to be renewed now.
    pub fn must_renew(&self, now: i64, scenario: &Scenario) -> bool {
        scenario.lease(self.began).renew_every().is_some()
            && self.writing.is_none()
            && self.storing.is_none()
            && now >= self.renew_at
            && self.is_driving()
    }

    /// Whether the sweep has not come to its last write.
    fn is_driving(&self) -> bool {
        !self.ended && !self.looking && !self.is_releasing()
    }

    fn is_releasing(&self) -> bool {
        self.storing.as_ref().is_some_and(|storing| storing.purpose == Purpose::Release)
    }

    /// Asks for a longer lease.
    pub fn renew(&mut self, now: i64, scenario: &Scenario) {
        self.renew_at = now + 1;
        let until_ms = scenario.lease(self.began).until_ms(now * TICK_MS);
        self.write(Purpose::Renew, Change::Renew(self.held.hold(), until_ms));
    }

    /// A write took effect, and `item` is its answer.
    pub fn wrote(&mut self, item: &Item) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        self.unanswered = false;
        self.held.wrote(item);
        self.item = item.clone();
        if matches!(writing.purpose, Purpose::Commit | Purpose::Release) {
            self.fold.said(&self.said, item);
        }
        match writing.purpose {
            Purpose::Commit => self.hand.committed(),
            Purpose::Renew => {}
            Purpose::Release | Purpose::GiveBack => self.ended = true,
        }
    }

    /// A write was refused, or got no answer however often it was sent. `refused`: the store answered.
    pub fn not_written(&mut self, refused: bool) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        self.unanswered |= !refused;
        match writing.purpose {
            // A renewal that got no answer is tried again.
            Purpose::Renew if !refused => {}
            Purpose::Commit | Purpose::Renew => self.hand.fenced(),
            Purpose::Release => {
                self.failed = true;
                self.end();
            }
            // Another write came in between; or the store does not answer, and it is given up.
            Purpose::GiveBack if refused => self.looking = true,
            Purpose::GiveBack => self.ended = true,
        }
    }

    fn finish(&mut self, now: i64, scenario: &Scenario) {
        let steps = self.hand.remainder();
        self.fold.take_in(&steps, now * TICK_MS);
        if self.hand.is_fenced() {
            self.end();
            return;
        }
        self.say(Purpose::Release, scenario);
    }

    fn end(&mut self) {
        if self.unanswered { self.looking = true } else { self.ended = true }
    }

    /// The item was read: its lease is given back, if it is still this sweep's.
    pub fn looked(&mut self, item: Option<&Item>) {
        self.looking = false;
        match item.and_then(|item| given_back(item, &self.owner, &Ending::default())) {
            Some(change) => self.write(Purpose::GiveBack, change),
            None => self.ended = true,
        }
    }

    /// Writes the progress, and before it the window, if that is to lie beside the item.
    fn say(&mut self, purpose: Purpose, scenario: &Scenario) {
        let Saying { progress, beside } = self.fold.saying(&self.item, scenario.small_item(), purpose == Purpose::Release);
        self.said = progress.window.clone();
        match beside {
            Some(beside) => self.storing = Some(Storing { beside, progress, purpose }),
            None => self.write_progress(purpose, progress),
        }
    }

    /// The window lies beside the item now, or could not be put there.
    pub fn stored(&mut self, stored: bool) {
        let Some(Storing { beside, mut progress, purpose }) = self.storing.take() else { return };
        if !stored {
            progress.window = beside.otherwise;
        }
        self.write_progress(purpose, progress);
    }

    fn write_progress(&mut self, purpose: Purpose, progress: Progress) {
        let hold = self.held.hold();
        let change =
            if purpose == Purpose::Release { Change::Release(hold, progress, Standing::Active) } else { Change::Commit(hold, progress) };
        self.write(purpose, change);
    }

    /// The revision that it knows.
    pub fn revision(&self) -> u64 {
        self.held.hold().revision
    }
}

impl Scenario {
    /// The lease of a sweep that began at this tick.
    pub fn lease(&self, began: i64) -> LeasePlan {
        if self.renewed {
            LeasePlan::Renewed(Duration::from_millis(self.lease_ms()))
        } else {
            LeasePlan::Until((began + self.deadline) * TICK_MS + tablesweep::cursor::LEASE_SKEW_MS)
        }
    }

    /// The bytes up to which a window goes into the item.
    pub fn small_item(&self) -> usize {
        if self.beside { 0 } else { usize::MAX }
    }

    /// The monotonic reading at this tick.
    pub fn since_start(&self, tick: i64) -> Duration {
        Duration::from_millis((tick * TICK_MS).unsigned_abs())
    }

    /// Whether what is begun now can be acknowledged and committed before the deadline.
    pub fn leaves_reserve(&self, began: i64, now: i64) -> bool {
        self.deadline(began).is_none_or(|deadline| now * TICK_MS + self.reserve_ms() <= deadline * TICK_MS)
    }

    /// The tick at which a sweep that began at `began` is ended from outside.
    pub fn deadline(&self, began: i64) -> Option<i64> {
        (!self.renewed).then_some(began + self.deadline)
    }
}
