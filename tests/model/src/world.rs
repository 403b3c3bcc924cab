//! Everything that there is at one moment, and the steps that lead to the next.

mod choice;

pub use choice::Action;

use tablesweep::cursor::{Acquire, Change, Expect, Identity, Item, Refusal, Rewind, StoredWindow, Write, apply};
use tablesweep::sweep::{Held, Kept};

use super::ghost::{Ghost, Promise};
use super::scenario::{Happening, Scenario, TICK_MS};
use super::source::{At, Row};
use super::worker::{Acquiring, Doing, Sweep, Worker};

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    /// The time, in ticks.
    pub now: i64,
    /// The cursor item.
    pub item: Option<Item>,
    /// The windows beside the item, with the revisions that they were written under.
    slots: [Option<(u64, Vec<u8>)>; 2],
    /// The rows, in order.
    pub table: Vec<Row>,
    happened: usize,
    /// The workers.
    pub workers: [Worker; 2],
    /// A write that is under way in the network and that nobody waits for.
    pub stray: Option<Write>,
    spent: Spent,
    /// The observer.
    pub ghost: Ghost,
}

/// How much of the scenario's limits is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Spent {
    triggers: u8,
    crashes: u8,
    nacks: u8,
    store: u8,
    freezes: u8,
    stops: u8,
    rewinds: u8,
}

/// The table's identity. Short, since it is hashed with every state.
fn identity() -> Identity {
    let [connector, alias, source, instance, table, field, id_field, fingerprint] =
        ["c", "a", "s", "i", "t", "f", "k", "0"].map(str::to_owned);
    Identity { connector, alias, source, instance, table, field, id_field, fingerprint }
}

impl World {
    /// Before anything has happened.
    pub fn new(scenario: &Scenario) -> Self {
        let mut table = scenario.rows.clone();
        table.sort_unstable();
        Self {
            now: 0,
            item: None,
            slots: [None, None],
            table,
            happened: 0,
            workers: [Worker::default(), Worker::default()],
            stray: None,
            spent: Spent::default(),
            ghost: Ghost::default(),
        }
    }

    /// Whether no process runs and no write is under way.
    pub fn is_quiet(&self) -> bool {
        self.stray.is_none() && self.workers.iter().all(|worker| worker.doing == Doing::Nothing)
    }

    /// The committed cursor.
    pub fn cursor(&self) -> Option<At> {
        cursor_of(self.item.as_ref()?)
    }

    /// The sweeps under way.
    pub fn sweeps(&self) -> impl Iterator<Item = &Sweep> {
        self.workers.iter().filter_map(|worker| match &worker.doing {
            Doing::Sweeping(sweep) => Some(&**sweep),
            _ => None,
        })
    }

    /// Takes a step.
    pub fn step(&mut self, action: Action, scenario: &Scenario) {
        match action {
            Action::Trigger(index) => self.trigger(index, scenario),
            Action::Answer(index) => self.answer(index, scenario),
            Action::AnswerLost(index) => {
                self.spent.store += 1;
                if let Some(write) = self.in_flight(index) {
                    // A refusal that is lost is given again.
                    let _ = self.store(&write);
                }
            }
            Action::Delayed(index) => {
                self.spent.store += 1;
                self.stray = self.in_flight(index);
            }
            Action::OutOfReach(index) => {
                self.spent.store += 1;
                self.out_of_reach(index, scenario);
            }
            Action::StrayArrives => {
                if let Some(write) = self.stray.take() {
                    // Whatever the answer is, nobody hears it.
                    let _ = self.store(&write);
                }
            }
            Action::Fetched(index) => {
                let table = self.table.clone();
                let mut arrived = true;
                self.turn(index, scenario, |sweep| arrived = sweep.fetched(&table, scenario));
                if !arrived {
                    self.ghost.breaks(Promise::Progress);
                }
            }
            Action::Cut(index) => self.turn(index, scenario, Sweep::cut),
            Action::Landed(index, page) => self.land(index, page),
            Action::Acked(index, page) => {
                self.land(index, page);
                let rows = self.rows_of(index, page);
                self.ghost.acked(&rows);
                self.turn(index, scenario, |sweep| sweep.acked(page));
            }
            Action::Refused(index, page) => {
                self.spent.nacks += 1;
                self.ghost.fault(scenario.paging.page);
                self.turn(index, scenario, |sweep| sweep.refused(page));
            }
            Action::WindowStored(index, stored) => self.window_stored(index, stored, scenario),
            Action::Looked(index) => {
                let item = self.item.clone();
                self.turn(index, scenario, |sweep| sweep.looked(item.as_ref()));
            }
            Action::Renew(index) => {
                let now = self.now;
                self.turn(index, scenario, |sweep| sweep.renew(now, scenario));
            }
            Action::Dies(index, write_arrives) => {
                self.spent.crashes += u8::from(!self.is_past_deadline(index, scenario, self.now + 1));
                if write_arrives {
                    self.stray = self.in_flight(index);
                }
                self.dies(index, scenario);
            }
            Action::Freezes(index, answered) => self.freeze(index, answered, scenario),
            Action::Thaws(index) => self.workers[index].frozen = false,
            Action::Stop(index) => {
                self.spent.stops += 1;
                self.turn(index, scenario, Sweep::stop);
            }
            Action::RewindDelivered => {
                self.spent.rewinds += 1;
                let wish =
                    Rewind { to: REWOUND_TO.position(), now_ms: self.now * TICK_MS, revision: None, request_id: Some("r".to_owned()) };
                // Refused while a lease is held: the operator tries again.
                let _ = self.store(&Write { id: format!("r{}", self.spent.rewinds), change: Change::Rewind(wish) });
            }
            Action::Happens => self.happens(scenario),
            Action::Tick => self.tick(scenario),
        }
        self.one_writer();
        // What was read matters only to what appears later.
        if self.happened < scenario.happenings.len() {
            let read_to = self.sweeps().filter_map(Sweep::read_to).max();
            self.ghost.read(read_to);
        }
    }

    fn trigger(&mut self, index: usize, scenario: &Scenario) {
        self.spent.triggers += 1;
        let owner = self.spent.triggers.to_string();
        let write = acquire_write(&owner, "a", self.now, scenario);
        self.workers[index] = Worker { frozen: false, doing: Doing::Acquiring(Box::new(Acquiring { owner, began: self.now, write })) };
    }

    /// The write that the worker waits for.
    fn in_flight(&self, index: usize) -> Option<Write> {
        match &self.workers[index].doing {
            Doing::Nothing => None,
            Doing::Acquiring(acquiring) => Some(acquiring.write.clone()),
            Doing::Sweeping(sweep) => sweep.writing.as_ref().map(|writing| writing.write.clone()),
        }
    }

    /// The store takes a write or refuses it; the observer looks at what it did.
    fn store(&mut self, write: &Write) -> Result<Item, Refusal> {
        let after = apply(self.item.as_ref(), write)?;
        if let Some(before) = self.item.replace(after.clone())
            && before != after
        {
            self.observe(&before, &after, write);
        }
        Ok(after)
    }

    fn observe(&mut self, before: &Item, after: &Item, write: &Write) {
        let holder = before.lease.as_ref().map(|lease| lease.owner.as_str());
        match &write.change {
            Change::Rewind(_) => self.ghost.rewound(&self.table, REWOUND_TO),
            Change::Commit(hold, _) | Change::Renew(hold, _) | Change::Release(hold, _, _) if holder != Some(hold.owner.as_str()) => {
                self.ghost.breaks(Promise::OneWriter);
            }
            Change::Acquire(_) if before.is_leased(self.now * TICK_MS) => self.ghost.breaks(Promise::OneWriter),
            _ => {}
        }
        if !matches!(write.change, Change::Rewind(_)) && cursor_of(after) < cursor_of(before) {
            self.ghost.breaks(Promise::CursorOnlyForward);
        }
    }

    /// Two living processes never both have good reason to believe that they hold the lease.
    fn one_writer(&mut self) {
        let now = self.now;
        if self.sweeps().filter(|sweep| sweep.believes(now)).count() > 1 {
            self.ghost.breaks(Promise::OneWriter);
        }
    }

    fn answer(&mut self, index: usize, scenario: &Scenario) {
        let Some(write) = self.in_flight(index) else {
            return;
        };
        let answer = self.store(&write);
        if let Doing::Acquiring(acquiring) = self.workers[index].doing.clone() {
            self.acquired(index, &acquiring, answer, scenario);
            return;
        }
        self.turn(index, scenario, |sweep| match &answer {
            Ok(item) => sweep.wrote(item),
            Err(_) => sweep.not_written(true),
        });
    }

    fn acquired(&mut self, index: usize, acquiring: &Acquiring, answer: Result<Item, Refusal>, scenario: &Scenario) {
        let again = |id: &str, change| {
            Doing::Acquiring(Box::new(Acquiring { write: Write { id: format!("{}.{id}", acquiring.owner), change }, ..acquiring.clone() }))
        };
        let creating = matches!(acquiring.write.change, Change::Create(_));
        self.workers[index].doing = match answer {
            Err(Refusal::Missing) => again("c", Change::Create(identity())),
            Ok(_) | Err(Refusal::Exists) if creating => again("b", acquire_write(&acquiring.owner, "b", self.now, scenario).change),
            Ok(item) => match Held::from_item(&item, &acquiring.owner) {
                Some(held) => self.begun(acquiring, item, held, scenario),
                None => Doing::Nothing,
            },
            Err(_) => Doing::Nothing,
        };
        self.turn(index, scenario, |_| {});
    }

    fn begun(&mut self, acquiring: &Acquiring, item: Item, held: Held, scenario: &Scenario) -> Doing {
        let kept = self.kept(&item);
        if let Some(cursor) = cursor_of(&item) {
            let overlap = (cursor.second - scenario.paging.overlap)..=cursor.second;
            // The bound of docs/semantics.md: the overlap, and the second of the window that is found, or all that is owed.
            let covers = |second: i64| match &kept {
                Kept::Fresh | Kept::Whole(_) => false,
                Kept::Older(_, of) => overlap.contains(&second) || At::read(of).is_some_and(|at| at.second == second),
                Kept::Lost => overlap.contains(&second) || is_owed(&item, second),
            };
            if kept == Kept::Lost && matches!(item.progress.window, StoredWindow::Slot(_)) {
                // The item names a place, and somebody else has been there.
                self.ghost.breaks(Promise::WindowKept);
            }
            if matches!(kept, Kept::Older(..) | Kept::Lost) {
                self.ghost.window_lost(self.table.iter().filter(|row| covers(row.second)).count());
            }
        }
        Doing::Sweeping(Box::new(Sweep::begin(acquiring, item, held, kept, scenario)))
    }

    /// What the item and its slots say of what was delivered.
    fn kept(&self, item: &Item) -> Kept {
        if let Some(kept) = Kept::in_item(&item.progress.window) {
            return kept;
        }
        match &item.progress.window {
            StoredWindow::Slot(slot) => match &self.slots[usize::from(slot.number)] {
                Some((_, bytes)) => Kept::in_slot(slot, bytes, item.progress.cursor.as_ref()),
                None => Kept::Lost,
            },
            _ => Kept::Lost,
        }
    }

    fn out_of_reach(&mut self, index: usize, scenario: &Scenario) {
        if let Doing::Sweeping(_) = self.workers[index].doing {
            self.ghost.fault(scenario.paging.page);
            self.turn(index, scenario, |sweep| sweep.not_written(false));
        } else {
            self.workers[index].doing = Doing::Nothing;
        }
    }

    /// Something happened to a sweep: its loop goes round.
    fn turn(&mut self, index: usize, scenario: &Scenario, event: impl FnOnce(&mut Sweep)) {
        let now = self.now;
        let Doing::Sweeping(sweep) = &mut self.workers[index].doing else {
            return;
        };
        event(sweep);
        sweep.turn(now, scenario);
        if sweep.writes > MOST_WRITES {
            self.ghost.breaks(Promise::Progress);
            return;
        }
        if sweep.ended {
            let (claims, read_to) = (sweep.says_caught_up(), sweep.fetched_to());
            if claims && read_to.is_some() && read_to != self.cursor() {
                self.ghost.breaks(Promise::CaughtUpIsTrue);
            }
            self.workers[index] = Worker::default();
        }
    }

    fn rows_of(&self, index: usize, page: u64) -> Vec<Row> {
        let Doing::Sweeping(sweep) = &self.workers[index].doing else {
            return Vec::new();
        };
        sweep.sent.iter().find(|sent| sent.page == page).map(|sent| sent.rows.clone()).unwrap_or_default()
    }

    fn land(&mut self, index: usize, page: u64) {
        let Doing::Sweeping(sweep) = &mut self.workers[index].doing else {
            return;
        };
        let Some(sent) = sweep.sent.iter_mut().find(|sent| sent.page == page && !sent.landed) else {
            return;
        };
        sent.landed = true;
        let (rows, in_hand) = (sent.rows.clone(), sent.in_hand);
        self.ghost.landed(&rows, in_hand);
    }

    fn window_stored(&mut self, index: usize, answers: bool, scenario: &Scenario) {
        if !answers {
            self.spent.store += 1;
            self.ghost.fault(0);
        }
        let Doing::Sweeping(sweep) = &self.workers[index].doing else { return };
        let Some(storing) = &sweep.storing else { return };
        let slot = &mut self.slots[usize::from(storing.beside.slot.number)];
        let revision = sweep.revision();
        let stored = answers && Expect::UpTo(revision).holds(slot.as_ref().map(|(revision, _)| *revision));
        if stored {
            *slot = Some((revision, storing.beside.bytes.clone()));
        }
        self.turn(index, scenario, |sweep| sweep.stored(stored));
    }

    fn dies(&mut self, index: usize, scenario: &Scenario) {
        if matches!(self.workers[index].doing, Doing::Sweeping(_)) {
            self.ghost.fault(scenario.paging.page);
        }
        self.workers[index] = Worker::default();
    }

    fn freeze(&mut self, index: usize, answered: bool, scenario: &Scenario) {
        self.spent.freezes += 1;
        let worker = &mut self.workers[index];
        worker.frozen = true;
        if let Doing::Sweeping(sweep) = &mut worker.doing {
            self.ghost.fault(scenario.paging.page);
            sweep.freeze(answered.then_some(self.table.as_slice()), scenario);
        }
    }

    fn happens(&mut self, scenario: &Scenario) {
        let row = match scenario.happenings[self.happened] {
            Happening::Insert(row) => row,
            Happening::Update(id, second) => {
                let version = self.table.iter().find(|row| row.id == id).map_or(0, |row| row.version + 1);
                self.table.retain(|row| row.id != id);
                Row { second, id, version }
            }
        };
        self.happened += 1;
        self.table.push(row);
        self.table.sort_unstable();
        self.ghost.appeared(row);
    }

    fn tick(&mut self, scenario: &Scenario) {
        let nobody = self.workers.iter().all(|worker| worker.doing == Doing::Nothing);
        // With nobody at work nothing can happen before the lease ends.
        let ends = self.item.as_ref().and_then(|item| item.lease.as_ref()).map_or(0, |lease| (lease.until_ms + TICK_MS - 1) / TICK_MS);
        self.now = if nobody { ends.max(self.now + 1) } else { self.now + 1 };
        for index in 0..self.workers.len() {
            if self.is_past_deadline(index, scenario, self.now) {
                self.dies(index, scenario);
            } else if self.is_past_deadline(index, scenario, self.now + 1) && self.waits_for_the_sink(index) {
                self.ghost.breaks(Promise::EndsInTime);
            }
        }
    }
}

/// A sweep that has begun more writes than this goes round in circles: there is one for each page and each tick.
const MOST_WRITES: u8 = 24;

/// Where the operator's request leads: before every row.
const REWOUND_TO: At = At { second: 1, id: 0 };

fn cursor_of(item: &Item) -> Option<At> {
    item.progress.cursor.as_ref().and_then(At::read)
}

/// Whether the item's notes say that the second is to be read again.
fn is_owed(item: &Item, second: i64) -> bool {
    let notes = ["overdue", "again"].iter().filter_map(|name| item.progress.notes.get(*name));
    let spans = notes.flat_map(|text| text.split(','));
    let span = |text: &str| text.split_once('|').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    spans.filter_map(span).any(|(from, to): (i64, i64)| (from..=to).contains(&second))
}

fn acquire_write(owner: &str, id: &str, now: i64, scenario: &Scenario) -> Write {
    let now_ms = now * TICK_MS;
    let until_ms = scenario.lease(now).until_ms(now_ms);
    let wish = Acquire { owner: owner.to_owned(), until_ms, now_ms, scheduled: None };
    Write { id: format!("{owner}.{id}"), change: Change::Acquire(wish) }
}
