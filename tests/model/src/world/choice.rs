//! What can happen next in a world: the part of the model that decides how much is explored.

use super::World;
use crate::scenario::{Scenario, TICK_MS};
use crate::worker::{Doing, Sweep};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// An invocation begins.
    Trigger(usize),
    /// The store takes or refuses the worker's write and answers.
    Answer(usize),
    /// The store takes the write, and the answer is lost; it is sent again.
    AnswerLost(usize),
    /// The write is held up in the network; it is sent again.
    Delayed(usize),
    /// However often it is sent, the write does not get through.
    OutOfReach(usize),
    /// A write that nobody waits for arrives.
    StrayArrives,
    /// The source answers.
    Fetched(usize),
    /// The time for fetching is over.
    Cut(usize),
    /// The page's records are in the topic; the acknowledgement is not here yet.
    Landed(usize, u64),
    /// The page is acknowledged.
    Acked(usize, u64),
    /// The sink gives up on the page.
    Refused(usize, u64),
    /// The window is written beside the item, or cannot be.
    WindowStored(usize, bool),
    /// The item is read by a sweep that does not know whether it holds its lease.
    Looked(usize),
    /// The lease is due to be renewed.
    Renew(usize),
    /// The process dies, and a write that it has sent arrives later or never.
    Dies(usize, bool),
    /// The process stands still; an answer of the source has reached the machine already, or has not.
    Freezes(usize, bool),
    /// It goes on.
    Thaws(usize),
    /// The process is told to end.
    Stop(usize),
    /// An operator's request to rewind is delivered.
    RewindDelivered,
    /// The next thing happens to the table.
    Happens,
    /// Time goes on.
    Tick,
}

impl World {
    /// What can happen now.
    pub fn actions(&self, scenario: &Scenario, actions: &mut Vec<Action>) {
        if self.ghost.broken.is_some() {
            return;
        }
        let (spent, limits) = (&self.spent, &scenario.limits);
        if spent.triggers < limits.triggers
            && let Some(idle) = self.workers.iter().position(|worker| worker.doing == Doing::Nothing)
        {
            actions.push(Action::Trigger(idle));
        }
        for index in 0..self.workers.len() {
            self.actions_of(index, scenario, actions);
        }
        if self.stray.is_some() {
            actions.push(Action::StrayArrives);
        }
        if spent.rewinds < limits.rewinds && self.item.is_some() {
            actions.push(Action::RewindDelivered);
        }
        if self.happened < scenario.happenings.len() && (!scenario.between_sweeps || self.is_quiet()) {
            actions.push(Action::Happens);
        }
        if self.may_tick(scenario) {
            actions.push(Action::Tick);
        }
    }

    fn actions_of(&self, index: usize, scenario: &Scenario, actions: &mut Vec<Action>) {
        let (spent, limits) = (&self.spent, &scenario.limits);
        let worker = &self.workers[index];
        if worker.doing == Doing::Nothing {
            return;
        }
        if worker.frozen {
            actions.push(Action::Thaws(index));
            return;
        }
        let mut writes = false;
        if let Doing::Sweeping(sweep) = &worker.doing {
            writes = sweep.writing.is_some();
            self.actions_of_sweep(index, sweep, scenario, actions);
        }
        if writes || matches!(worker.doing, Doing::Acquiring(_)) {
            actions.push(Action::Answer(index));
            if spent.store < limits.store {
                actions.extend([Action::AnswerLost(index), Action::OutOfReach(index)]);
                if self.stray.is_none() {
                    actions.push(Action::Delayed(index));
                }
            }
        }
        if spent.crashes < limits.crashes || self.is_past_deadline(index, scenario, self.now + 1) {
            actions.push(Action::Dies(index, false));
            if self.stray.is_none() && (writes || matches!(worker.doing, Doing::Acquiring(_))) {
                actions.push(Action::Dies(index, true));
            }
        }
        if spent.freezes < limits.freezes {
            actions.push(Action::Freezes(index, false));
            if matches!(&worker.doing, Doing::Sweeping(sweep) if sweep.fetching) {
                actions.push(Action::Freezes(index, true));
            }
        }
    }

    fn actions_of_sweep(&self, index: usize, sweep: &Sweep, scenario: &Scenario, actions: &mut Vec<Action>) {
        let (spent, limits) = (&self.spent, &scenario.limits);
        if sweep.fetching {
            actions.push(Action::Fetched(index));
            if !scenario.renewed && self.now > sweep.began {
                actions.push(Action::Cut(index));
            }
        }
        for sent in &sweep.sent {
            if !sent.landed && !sweep.may_land(sent) {
                continue;
            }
            actions.push(Action::Acked(index, sent.page));
            if !sent.landed && self.may_strike(index, scenario) {
                actions.push(Action::Landed(index, sent.page));
            }
            if spent.nacks < limits.nacks || self.now > sent.since + 1 {
                actions.push(Action::Refused(index, sent.page));
            }
        }
        if sweep.storing.is_some() {
            actions.push(Action::WindowStored(index, true));
            if spent.store < limits.store {
                actions.push(Action::WindowStored(index, false));
            }
        }
        if sweep.looking {
            actions.push(Action::Looked(index));
        }
        if sweep.must_renew(self.now, scenario) {
            actions.push(Action::Renew(index));
        }
        if spent.stops < limits.stops && !sweep.stopped {
            actions.push(Action::Stop(index));
        }
    }

    /// Whether anything can come between a record's arrival in the topic and its acknowledgement; else one step does both.
    fn may_strike(&self, index: usize, scenario: &Scenario) -> bool {
        let (spent, limits) = (&self.spent, &scenario.limits);
        spent.crashes < limits.crashes
            || spent.nacks < limits.nacks
            || spent.freezes < limits.freezes
            || self.is_past_deadline(index, scenario, self.now + 1)
    }

    /// Whether time may go on: what takes no time has happened, and what has a time-out keeps to it.
    fn may_tick(&self, scenario: &Scenario) -> bool {
        if self.now >= scenario.horizon {
            return false;
        }
        if self.workers.iter().all(|worker| worker.doing == Doing::Nothing) {
            return self.item.as_ref().is_some_and(|item| item.is_leased(self.now * TICK_MS));
        }
        // Nothing but a frozen process makes a renewed lease end while somebody is at work.
        if scenario.renewed && !self.workers.iter().any(|worker| worker.frozen) {
            return false;
        }
        self.workers.iter().enumerate().all(|(index, worker)| match &worker.doing {
            _ if worker.frozen => true,
            Doing::Nothing => true,
            Doing::Acquiring(_) => false,
            Doing::Sweeping(sweep) => {
                let fetches_in_time = !sweep.fetching || scenario.leaves_reserve(sweep.began, self.now + 1);
                let sink_in_time = sweep.sent.iter().all(|sent| self.now <= sent.since);
                let idle = sweep.writing.is_none() && sweep.storing.is_none() && !sweep.must_renew(self.now, scenario);
                fetches_in_time && sink_in_time && idle && !self.is_past_deadline(index, scenario, self.now + 1)
            }
        })
    }

    pub(super) fn waits_for_the_sink(&self, index: usize) -> bool {
        let worker = &self.workers[index];
        matches!(&worker.doing, Doing::Sweeping(sweep) if !worker.frozen && !sweep.sent.is_empty())
    }

    pub(super) fn is_past_deadline(&self, index: usize, scenario: &Scenario, now: i64) -> bool {
        let began = match &self.workers[index].doing {
            Doing::Nothing => return false,
            Doing::Acquiring(acquiring) => acquiring.began,
            Doing::Sweeping(sweep) => sweep.began,
        };
        scenario.deadline(began).is_some_and(|deadline| now > deadline)
    }

    /// One fault-free sweep from here to its end, by one worker. Whether the next one has nothing left to read again;
    /// `None` if it does not come to an end.
    pub fn sweep_undisturbed(&mut self, scenario: &Scenario) -> Option<bool> {
        self.trigger(0, scenario);
        let mut owes = false;
        for _ in 0..200 {
            let action = match &self.workers[0].doing {
                Doing::Nothing => return Some(!owes),
                Doing::Acquiring(_) => Action::Answer(0),
                Doing::Sweeping(sweep) => {
                    owes = sweep.owes();
                    if sweep.writing.is_some() {
                        Action::Answer(0)
                    } else if sweep.storing.is_some() {
                        Action::WindowStored(0, true)
                    } else if sweep.fetching {
                        Action::Fetched(0)
                    } else {
                        Action::Acked(0, sweep.sent.first()?.page)
                    }
                }
            };
            self.step(action, scenario);
        }
        None
    }
}
