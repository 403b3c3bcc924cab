//! The order of things in a sweep: fetch, send, acknowledge, commit.
//!
//! Three steps overlap: while page n+1 is fetched, page n is with the sink and page n-1 is being committed. What may
//! happen when is decided here, by a plain value that takes events and gives effects; who carries the effects out (the engine over real
//! sockets, a model checker) makes no difference. The rules:
//!
//! * a page is committed only when it and all pages before it are acknowledged;
//! * one commit is in flight at a time; what is acknowledged meanwhile goes with the next one;
//! * at most [`UNCOMMITTED`] pages are with the sink and not committed: that bounds the duplicates of a kill;
//! * after a failure nothing more is fetched or sent, and what was acknowledged before it is still committed;
//! * the last commit is not an effect: it travels with the release of the lease ([`Pipeline::remainder`]).

use std::collections::VecDeque;

/// Pages that may be with the sink and not yet committed.
pub const UNCOMMITTED: usize = 2;

/// Pages on their way, each with the checkpoint `C` that its acknowledgement allows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pipeline<C> {
    next: u64,
    fetching: bool,
    closed: bool,
    failed: bool,
    fenced: bool,
    waiting: Option<Entry<C>>,
    sent: VecDeque<Entry<C>>,
    committing: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Entry<C> {
    page: u64,
    checkpoint: C,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Pending,
    Acked,
    Failed,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event<C> {
    /// The page that was asked for is here.
    Fetched(C),
    /// No page follows: the sweep is exhausted, the budget is spent, or the source failed.
    Closed,
    /// The sink has acknowledged every record of the page.
    Acked(u64),
    /// The sink has given up on a record of the page, and nothing of it is in flight.
    Failed(u64),
    /// The commit in flight took effect.
    Committed,
    /// The commit in flight did not take effect and never will: the lease is lost or the store is out of reach.
    Fenced,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect<C> {
    /// Ask the source for the next page.
    Fetch,
    /// Hand the fetched page to the sink under this number.
    Send(u64),
    /// Commit the checkpoints of these acknowledged pages, in order.
    Commit(Vec<C>),
}

impl<C: Clone> Default for Pipeline<C> {
    fn default() -> Self {
        Self { next: 1, fetching: false, closed: false, failed: false, fenced: false, waiting: None, sent: VecDeque::new(), committing: 0 }
    }
}

impl<C: Clone> Pipeline<C> {
    /// Takes in what happened.
    pub fn on(&mut self, event: Event<C>) {
        match event {
            Event::Fetched(checkpoint) => {
                self.fetching = false;
                self.waiting = Some(Entry { page: self.next, checkpoint, state: State::Pending });
                self.next += 1;
            }
            Event::Closed => {
                self.fetching = false;
                self.closed = true;
            }
            Event::Acked(page) => self.settle(page, State::Acked),
            Event::Failed(page) => {
                self.settle(page, State::Failed);
                self.failed = true;
            }
            Event::Committed => {
                self.sent.drain(..self.committing.min(self.sent.len()));
                self.committing = 0;
            }
            Event::Fenced => {
                self.committing = 0;
                self.fenced = true;
            }
        }
        if self.failed || self.fenced {
            self.closed = true;
            self.waiting = None;
        }
    }

    /// The number of the page that is fetched next.
    pub fn next_page(&self) -> u64 {
        self.next
    }

    /// Nothing new is fetched or sent: what is waiting is dropped, what is with the sink is awaited.
    pub fn stop(&mut self) {
        self.closed = true;
        self.waiting = None;
    }

    /// The next thing to do, if there is one now.
    pub fn effect(&mut self) -> Option<Effect<C>> {
        if let Some(checkpoints) = self.next_commit() {
            return Some(Effect::Commit(checkpoints));
        }
        if self.sent.len() < UNCOMMITTED
            && let Some(entry) = self.waiting.take()
        {
            let page = entry.page;
            self.sent.push_back(entry);
            return Some(Effect::Send(page));
        }
        if !self.fetching && !self.closed && self.waiting.is_none() {
            self.fetching = true;
            return Some(Effect::Fetch);
        }
        None
    }

    fn next_commit(&mut self) -> Option<Vec<C>> {
        if self.committing > 0 || self.fenced || self.is_drained() {
            return None;
        }
        let acked: Vec<C> = self.acked_prefix().map(|entry| entry.checkpoint.clone()).collect();
        self.committing = acked.len();
        (!acked.is_empty()).then_some(acked)
    }

    fn acked_prefix(&self) -> impl Iterator<Item = &Entry<C>> {
        self.sent.iter().take_while(|entry| entry.state == State::Acked)
    }

    fn settle(&mut self, page: u64, state: State) {
        if let Some(entry) = self.sent.iter_mut().find(|entry| entry.page == page) {
            entry.state = state;
        }
    }

    fn is_drained(&self) -> bool {
        self.closed && !self.fetching && self.waiting.is_none() && self.sent.iter().all(|entry| entry.state != State::Pending)
    }

    /// Whether everything that was begun has ended.
    pub fn is_done(&self) -> bool {
        self.is_drained() && self.committing == 0
    }

    /// Whether a fetched page waits to be sent; one that came after a failure does not.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether the store refused a commit: nothing may be written any more.
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// Of a pipeline that is done: the checkpoints of acknowledged pages that no commit has covered yet.
    pub fn remainder(&self) -> Vec<C> {
        if self.fenced { Vec::new() } else { self.acked_prefix().map(|entry| entry.checkpoint.clone()).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(pipeline: &mut Pipeline<u32>) -> Vec<Effect<u32>> {
        std::iter::from_fn(|| pipeline.effect()).collect()
    }

    fn after(events: &[Event<u32>]) -> (Pipeline<u32>, Vec<Effect<u32>>) {
        let mut pipeline = Pipeline::default();
        let mut last = effects(&mut pipeline);
        for event in events {
            pipeline.on(event.clone());
            last = effects(&mut pipeline);
        }
        (pipeline, last)
    }

    #[test]
    fn the_next_page_is_fetched_while_this_one_is_with_the_sink() {
        assert_eq!(after(&[Event::Fetched(1)]).1, [Effect::Send(1), Effect::Fetch]);
    }

    #[test]
    fn a_page_is_committed_only_after_every_page_before_it_is_acknowledged() {
        let (mut pipeline, none) = after(&[Event::Fetched(1), Event::Fetched(2), Event::Acked(2)]);
        assert_eq!(none, []);
        pipeline.on(Event::Acked(1));
        assert_eq!(effects(&mut pipeline), [Effect::Commit(vec![1, 2])]);
    }

    #[test]
    fn one_commit_is_in_flight_and_later_pages_go_with_the_next() {
        let (mut pipeline, first) = after(&[Event::Fetched(1), Event::Fetched(2), Event::Acked(1)]);
        assert_eq!(first, [Effect::Commit(vec![1])]);
        pipeline.on(Event::Acked(2));
        assert_eq!(effects(&mut pipeline), []);
        pipeline.on(Event::Committed);
        assert_eq!(effects(&mut pipeline), [Effect::Commit(vec![2])]);
    }

    #[test]
    fn a_third_page_is_not_sent_before_the_first_is_committed() {
        let (mut pipeline, third) = after(&[Event::Fetched(1), Event::Fetched(2), Event::Fetched(3)]);
        assert_eq!(third, []);
        pipeline.on(Event::Acked(1));
        assert_eq!(effects(&mut pipeline), [Effect::Commit(vec![1])]);
        pipeline.on(Event::Committed);
        assert_eq!(effects(&mut pipeline), [Effect::Send(3), Effect::Fetch]);
    }

    #[test]
    fn a_failed_page_keeps_the_cursor_before_it_however_much_came_after() {
        let (pipeline, none) = after(&[Event::Fetched(1), Event::Fetched(2), Event::Closed, Event::Failed(1), Event::Acked(2)]);
        assert_eq!(none, []);
        assert!(pipeline.is_done() && pipeline.remainder().is_empty());
    }

    #[test]
    fn a_page_that_comes_after_a_failure_is_not_waited_for() {
        let (pipeline, none) = after(&[Event::Fetched(1), Event::Failed(1), Event::Fetched(2)]);
        assert_eq!(none, []);
        assert!(!pipeline.is_waiting() && pipeline.is_done());
    }

    #[test]
    fn what_was_acknowledged_before_a_failure_is_still_committed() {
        let (pipeline, _) = after(&[Event::Fetched(1), Event::Fetched(2), Event::Closed, Event::Failed(2), Event::Acked(1)]);
        assert!(pipeline.is_done());
        assert_eq!(pipeline.remainder(), [1]);
    }

    #[test]
    fn the_last_commit_travels_with_the_release() {
        let (pipeline, none) = after(&[Event::Fetched(1), Event::Closed, Event::Acked(1)]);
        assert_eq!(none, []);
        assert!(pipeline.is_done());
        assert_eq!(pipeline.remainder(), [1]);
    }

    #[test]
    fn after_a_refused_commit_nothing_is_sent_or_committed() {
        let (mut pipeline, _) =
            after(&[Event::Fetched(1), Event::Fetched(2), Event::Fetched(3), Event::Acked(1), Event::Fenced, Event::Acked(2)]);
        assert_eq!(effects(&mut pipeline), []);
        assert!(pipeline.is_done() && pipeline.is_fenced() && pipeline.remainder().is_empty());
    }
}
