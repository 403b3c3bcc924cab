//! The pages that a sweep has in hand: fetched, and not yet given to the sink.
//!
//! The [`Pipeline`] numbers pages and decides what may happen to each; here lie the pages themselves, between the source
//! that answered and the sink that is asked. A plain value like the pipeline, and with it the whole of what a
//! sweep decides about its pages:
//!
//! * a page goes to the sink when the pipeline has let it through, and in order;
//! * once a page has failed, the lease is lost or the sweep is told to end, what is in hand is dropped. The cursor stays
//!   before it, so the next sweep fetches it again;
//! * a sweep that dropped a page has not caught up, even if the page was the table's last.

use std::collections::VecDeque;

use super::pipeline::{Effect, Event, Pipeline};

/// Pages `P` in hand, and the pipeline of their checkpoints `C`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hand<C, P> {
    pipeline: Pipeline<C>,
    unsent: VecDeque<(u64, P)>,
    /// The last page that the pipeline has let through to the sink.
    let_through: u64,
    caught_up: bool,
}

/// What is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Wish<C> {
    /// The next page, of the source.
    Page,
    /// A commit of these acknowledged pages' checkpoints, in order.
    Commit(Vec<C>),
}

impl<C: Clone, P> Default for Hand<C, P> {
    fn default() -> Self {
        Self { pipeline: Pipeline::default(), unsent: VecDeque::new(), let_through: 0, caught_up: false }
    }
}

impl<C: Clone, P> Hand<C, P> {
    /// The next thing to ask for, if there is one now.
    pub fn wish(&mut self) -> Option<Wish<C>> {
        loop {
            match self.pipeline.effect()? {
                Effect::Fetch => return Some(Wish::Page),
                Effect::Commit(checkpoints) => return Some(Wish::Commit(checkpoints)),
                Effect::Send(page) => self.let_through = page,
            }
        }
    }

    /// The number of the page that is fetched next.
    pub fn next_page(&self) -> u64 {
        self.pipeline.next_page()
    }

    /// A page is here. `last`: nothing is left to deliver for now after it.
    pub fn fetched(&mut self, checkpoint: C, page: P, last: bool) {
        let number = self.pipeline.next_page();
        self.pipeline.on(Event::Fetched(checkpoint));
        if !self.pipeline.is_waiting() {
            // The sweep failed while this page was fetched.
            return;
        }
        self.unsent.push_back((number, page));
        if last {
            self.caught_up = true;
            self.pipeline.on(Event::Closed);
        }
    }

    /// No page follows.
    pub fn closed(&mut self) {
        self.pipeline.on(Event::Closed);
    }

    /// The page to hand to the sink now, with its number. The pages of a sink that takes one at a time are taken one at a
    /// time.
    pub fn take(&mut self) -> Option<(u64, P)> {
        let (number, _) = self.unsent.front()?;
        if *number > self.let_through { None } else { self.unsent.pop_front() }
    }

    /// The sink has acknowledged the page.
    pub fn acked(&mut self, page: u64) {
        self.pipeline.on(Event::Acked(page));
    }

    /// The page was not handed over after all, or the sink has given up on it; nothing of it is in flight.
    pub fn failed(&mut self, page: u64) {
        self.caught_up = false;
        self.pipeline.on(Event::Failed(page));
        self.drop_unsent();
    }

    /// The commit in flight took effect.
    pub fn committed(&mut self) {
        self.pipeline.on(Event::Committed);
    }

    /// A write did not take effect and never will: nothing may be written any more.
    pub fn fenced(&mut self) {
        self.caught_up = false;
        self.pipeline.on(Event::Fenced);
        self.drop_unsent();
    }

    /// The sweep is told to end. A page that is being fetched is not waited for; what is with the sink is.
    pub fn stop(&mut self) {
        self.pipeline.on(Event::Closed);
        self.pipeline.stop();
        self.drop_unsent();
    }

    /// Forgets the pages that the sink has not been given. Those that the pipeline counts on have failed.
    fn drop_unsent(&mut self) {
        self.caught_up &= self.unsent.is_empty();
        for (number, _) in std::mem::take(&mut self.unsent) {
            if number <= self.let_through {
                self.pipeline.on(Event::Failed(number));
            }
        }
    }

    /// Whether everything that was begun has ended.
    pub fn is_done(&self) -> bool {
        self.unsent.is_empty() && self.pipeline.is_done()
    }

    /// Whether a write was refused: nothing may be written any more.
    pub fn is_fenced(&self) -> bool {
        self.pipeline.is_fenced()
    }

    /// Whether the table's last page has come and nothing was given up on the way.
    pub fn caught_up(&self) -> bool {
        self.caught_up
    }

    /// Of a sweep that is done: the checkpoints of acknowledged pages that no commit has covered yet.
    pub fn remainder(&self) -> Vec<C> {
        self.pipeline.remainder()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hand into which `pages` pages were fetched, the last of them the table's last.
    fn holding(pages: u64) -> Hand<u64, &'static str> {
        let mut hand = Hand::default();
        for page in 1..=pages {
            assert_eq!(hand.wish(), Some(Wish::Page));
            hand.fetched(page, "rows", page == pages);
            assert_eq!(hand.next_page(), page + 1);
        }
        while hand.wish().is_some() {}
        hand
    }

    #[test]
    fn pages_are_taken_in_order_and_only_when_they_are_let_through() {
        let mut hand = holding(3);
        assert_eq!((hand.take(), hand.take(), hand.take()), (Some((1, "rows")), Some((2, "rows")), None));
        hand.acked(1);
        assert_eq!(hand.wish(), Some(Wish::Commit(vec![1])));
        assert_eq!(hand.take(), None, "the first is not committed yet");
        hand.committed();
        assert_eq!((hand.wish(), hand.take()), (None, Some((3, "rows"))));
        assert!(hand.caught_up() && !hand.is_done());
    }

    #[test]
    fn a_sweep_that_drops_its_last_page_has_not_caught_up() {
        let mut stopped = holding(3);
        stopped.stop();
        assert!(!stopped.caught_up());
        let mut fenced = holding(3);
        fenced.fenced();
        assert!(!fenced.caught_up() && fenced.is_fenced());
        let mut failed = holding(2);
        failed.take();
        failed.failed(1);
        assert!(!failed.caught_up() && failed.is_done(), "the second was let through and is in hand");
    }

    #[test]
    fn a_sweep_that_is_told_to_end_awaits_what_the_sink_has_and_commits_it() {
        let mut hand = holding(3);
        hand.take();
        hand.stop();
        assert!(!hand.is_done());
        hand.acked(1);
        assert!(hand.is_done());
        assert_eq!((hand.remainder(), hand.wish()), (vec![1], None));
    }

    #[test]
    fn a_page_that_comes_after_a_failure_is_dropped_and_claims_nothing() {
        let mut hand: Hand<u64, &str> = holding(1);
        hand = Hand { caught_up: false, ..hand };
        hand.take();
        hand.failed(1);
        hand.fetched(2, "rows", true);
        assert!(hand.is_done() && !hand.caught_up() && hand.take().is_none());
    }
}
