//! The paging against a table held in memory. What must come out is computed from the table, not by paging it.

mod less;
mod turns;

use std::collections::BTreeMap;

use super::*;

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stored {
    second: i64,
    id: String,
    mod_count: u32,
    hidden: bool,
}

/// A table and its instance's clock.
#[derive(Debug, Clone)]
struct Instance {
    rows: BTreeMap<String, Stored>,
    now: i64,
    counts: bool,
    /// The most rows of an answer, whatever limit is asked for; and whether a `Link` says that rows follow.
    own_limit: u32,
    links: bool,
    /// An answer without a count has no `Link` either.
    blind: bool,
    /// The request, counted from 0, whose count is lost.
    uncounted: Option<usize>,
    /// Seconds that an answer takes.
    takes: i64,
    /// Rows that appear right after the next answer with versions.
    appearing: Vec<Stored>,
    /// The request, counted from 0, that is answered by a node whose clock is so many seconds behind.
    behind: Option<(usize, i64)>,
    requests: Vec<Request>,
}

impl Instance {
    fn new(rows: impl IntoIterator<Item = Stored>) -> Self {
        let mut instance = Self {
            rows: BTreeMap::new(),
            now: 1_000_000,
            counts: true,
            own_limit: u32::MAX,
            links: true,
            blind: false,
            uncounted: None,
            takes: 0,
            appearing: Vec::new(),
            behind: None,
            requests: Vec::new(),
        };
        instance.load(rows);
        instance
    }

    fn load(&mut self, rows: impl IntoIterator<Item = Stored>) {
        self.rows.extend(rows.into_iter().map(|row| (row.id.clone(), row)));
    }

    /// Filters, orders, limits and then hides, as an instance does.
    fn answer(&mut self, request: &Request) -> Answer<()> {
        self.requests.push(request.clone());
        let mut matching: Vec<&Stored> = self.rows.values().filter(|row| is_in(&request.range, row)).collect();
        if !request.ids.is_empty() {
            // A list is one text, and commas separate.
            let list = request.ids.join(",");
            matching.retain(|row| list.split(',').any(|id| id == row.id));
        }
        let limit = request.limit.min(self.own_limit) as usize;
        matching.sort_by_key(|row| (row.second, row.id.clone()));
        let page: Vec<_> = matching.iter().take(limit).filter(|row| !row.hidden).collect();
        let rows = match request.projection {
            Projection::Count => Vec::new(),
            _ => page.into_iter().map(|row| (head(row), ())).collect(),
        };
        let behind = self.behind.filter(|(nth, _)| nth + 1 == self.requests.len()).map_or(0, |(_, seconds)| seconds);
        let is_lost = self.uncounted.is_some_and(|nth| nth + 1 == self.requests.len());
        let total = (self.counts && request.counted && !is_lost).then_some(matching.len() as u64);
        let answer = Answer {
            rows,
            skipped: Vec::new(),
            total,
            next_link: self.links && matching.len() > limit && (total.is_some() || !self.blind),
            date: Some(self.now - behind),
            sent_ms: self.now * 1000,
            elapsed_ms: 0,
        };
        self.now += self.takes;
        if request.projection == Projection::Versions {
            let appearing = std::mem::take(&mut self.appearing);
            self.load(appearing);
        }
        answer
    }

    /// The versions that may be seen.
    fn visible(&self) -> Vec<Head> {
        let mut rows: Vec<_> = self.rows.values().filter(|row| !row.hidden && row.second < self.now).collect();
        rows.sort_by_key(|row| (row.second, row.id.clone()));
        rows.into_iter().map(head).collect()
    }
}

fn is_in(range: &Range, row: &Stored) -> bool {
    match range {
        Range::Seconds { from, inclusive, to } => {
            (row.second > *from || (*inclusive && row.second == *from)) && to.is_none_or(|to| row.second <= to)
        }
        Range::Second { at, after, through } => {
            row.second == *at && (after.is_empty() || row.id > *after) && through.as_ref().is_none_or(|through| row.id <= *through)
        }
    }
}

fn head(row: &Stored) -> Head {
    Head { second: row.second, id: row.id.clone(), mod_count: row.mod_count.to_string() }
}

fn row(second: i64, n: u64) -> Stored {
    // Spread over the id space, as real ids are.
    Stored { second, id: format!("{:016x}{n:016x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)), mod_count: 0, hidden: false }
}

fn settings(overlap: i64) -> Settings {
    let fields = CursorFields { timestamp: "sys_updated_on".into(), id: "sys_id".into(), mod_count: "sys_mod_count".into() };
    Settings { overlap, lag: 1, poll: 5, window_limit: 50_000, fields }
}

/// A planner with what a store would keep of it between invocations.
struct Poller {
    settings: Settings,
    page_size: u32,
    start: Start,
    window: Window,
    delivered: Vec<Head>,
    hidden: u64,
    suppressed: u64,
    /// An answer with more whole rows is too large.
    most_whole: usize,
    /// Requests for a count fail.
    counts_fail: bool,
    /// An address holds no more ids.
    most_ids: usize,
    /// There is no time for more of the overlap than this many pages.
    most_reread: usize,
    /// Sweeps that gave seconds up.
    gave_up: u32,
}

impl Poller {
    fn new(overlap: i64, page_size: u32) -> Self {
        let start = Start {
            cursor: At { second: 0, id: String::new() },
            kept: Kept::Fresh,
            phase: Phase::Backfill,
            swept_to: None,
            difference_ms: None,
            notes: BTreeMap::new(),
            page_size,
            max_rows: None,
        };
        Self {
            settings: settings(overlap),
            page_size,
            start,
            window: Window::complete_from(0),
            delivered: Vec::new(),
            hidden: 0,
            suppressed: 0,
            most_whole: usize::MAX,
            counts_fail: false,
            most_ids: usize::MAX,
            most_reread: usize::MAX,
            gave_up: 0,
        }
    }

    /// One invocation: until caught up, or for `pages` pages. Everything delivered is acknowledged and committed.
    fn invoke(&mut self, instance: &mut Instance, pages: Option<usize>) -> bool {
        let start = Start { page_size: self.page_size, ..self.start.clone() };
        let mut planner: Planner<()> = Planner::new(self.settings.clone(), start);
        self.window = planner.window().clone();
        let mut left = pages.unwrap_or(usize::MAX);
        let (mut rows, mut reread) = (0, 0);
        for turn in 0.. {
            assert!(turn < 200_000, "no end in sight");
            let request = planner.request(instance.now * 1000);
            if request.ids.len() > self.most_ids {
                assert!(planner.ask_for_fewer_ids(), "by ids");
                continue;
            }
            reread += usize::from(request.projection == Projection::Versions);
            let in_time = if reread > self.most_reread { planner.end_without_the_rest() } else { None };
            if let Some(Outcome::Page(delivery)) = in_time {
                self.commit(&delivery, planner.difference_ms());
                return true;
            }
            let answer = instance.answer(&request);
            let outcome = if self.counts_fail && request.projection == Projection::Count {
                let outcome = planner.do_without_count().expect("an honest instance");
                let Some(outcome) = outcome else { return false };
                outcome
            } else if request.projection == Projection::Whole && answer.rows.len() > self.most_whole {
                planner.set_page_size(planner.page_size() / 2);
                continue;
            } else {
                match planner.answer(&request, answer) {
                    Err(Error::Uncounted { .. }) if instance.uncounted.is_some() => return false,
                    outcome => outcome.expect("an honest instance"),
                }
            };
            let Outcome::Page(delivery) = outcome else { continue };
            self.commit(&delivery, planner.difference_ms());
            self.gave_up += u32::from(delivery.end.is_some() && planner.given_up().is_some());
            if delivery.end.is_some_and(|end| end.caught_up) {
                return true;
            }
            left -= 1;
            rows += delivery.rows.len() as u64;
            let done = self.start.max_rows.is_some_and(|most| rows >= most);
            if left == 0 || done {
                return false;
            }
        }
        unreachable!("the loop returns")
    }

    fn commit(&mut self, delivery: &Delivery<()>, difference_ms: Option<i64>) {
        self.delivered.extend(delivery.rows.iter().map(|(head, ())| head.clone()));
        self.hidden += delivery.hidden;
        self.suppressed += delivery.suppressed;
        let start = &mut self.start;
        let place = |at: &At| (at.second, at.id.clone());
        assert!(delivery.rows.len() <= self.page_size as usize, "more than a page: {}", delivery.rows.len());
        assert!(place(&delivery.cursor) >= place(&start.cursor), "the cursor moved back: {:?} -> {:?}", start.cursor, delivery.cursor);
        start.cursor = delivery.cursor.clone();
        self.window.apply(&delivery.window);
        start.kept = Kept::Whole(self.window.clone());
        start.phase = delivery.phase;
        start.swept_to = delivery.swept_to.or(start.swept_to);
        start.difference_ms = difference_ms;
        start.notes = delivery.notes.clone();
    }

    fn lose_window(&mut self) {
        self.start.kept = Kept::Lost;
    }
}

#[test]
fn a_backfill_delivers_each_row_once_and_in_order_whatever_the_page_size() {
    let mut rows: Vec<Stored> = (0..40).map(|n| row(100 + n as i64 / 3, n)).collect();
    rows.extend((40..90).map(|n| row(200, n)));
    rows.extend((90..100).map(|n| row(201 + n as i64, n)));
    for page_size in 1..=101 {
        for overlap in [0, 2, 1_000] {
            let mut instance = Instance::new(rows.clone());
            let mut poller = Poller::new(overlap, page_size);
            assert!(poller.invoke(&mut instance, None));
            assert_eq!(poller.delivered, instance.visible(), "page size {page_size}, overlap {overlap}");
        }
    }
}

#[test]
fn an_invocation_may_end_after_any_page() {
    let rows: Vec<Stored> = (0..60).map(|n| row(100 + n as i64 / 20, n)).collect();
    for page_size in [1, 2, 3, 5, 7, 19, 20, 21, 59, 60, 61] {
        let mut instance = Instance::new(rows.clone());
        let mut poller = Poller::new(2, page_size);
        let mut invocations = 0;
        while !poller.invoke(&mut instance, Some(1)) {
            invocations += 1;
            assert!(invocations < 500, "page size {page_size} makes no progress");
        }
        assert_eq!(poller.delivered, instance.visible(), "page size {page_size}");
    }
}

#[test]
fn an_idle_table_of_any_shape_delivers_nothing_again() {
    for (rows, page_size) in [
        ((0..12).map(|n| row(100, n)).collect::<Vec<_>>(), 5),
        ((0..12).map(|n| row(100 + n as i64, n)).collect(), 5),
        ((0..3).map(|n| row(100, n)).collect(), 50),
        (Vec::new(), 5),
        ((0..40).map(|n| row(100 + n as i64 / 10, n)).collect(), 10),
        ((0..40).map(|n| Stored { hidden: n % 3 == 0, ..row(100 + n as i64 / 10, n) }).collect(), 10),
    ] {
        let mut instance = Instance::new(rows);
        let mut poller = Poller::new(2, page_size);
        poller.invoke(&mut instance, None);
        let (delivered, hidden) = (poller.delivered.len(), poller.hidden);
        for _ in 0..100 {
            instance.now += 5;
            assert!(poller.invoke(&mut instance, None), "an idle table is caught up");
        }
        assert_eq!((poller.delivered.len(), poller.hidden), (delivered, hidden));
    }
}

#[test]
fn an_idle_sweep_is_one_request() {
    let mut instance = Instance::new((0..30).map(|n| row(100 + n as i64, n)));
    let mut poller = Poller::new(2, 10);
    poller.invoke(&mut instance, None);
    for _ in 0..3 {
        instance.now += 5;
        instance.requests.clear();
        poller.invoke(&mut instance, None);
        assert_eq!(instance.requests.len(), 1, "{:?}", instance.requests);
    }
}

#[test]
fn a_hundred_thousand_rows_in_pages_of_two_thousand_take_at_most_55_requests() {
    let mut instance = Instance::new((0..100_000).map(|n| row(100 + n as i64 / 7, n)));
    let mut poller = Poller::new(2, 2_000);
    assert!(poller.invoke(&mut instance, None));
    assert_eq!(poller.delivered.len(), 100_000);
    assert!(instance.requests.len() <= 55, "{} requests", instance.requests.len());
}

#[test]
fn a_late_row_with_a_smaller_id_and_an_update_within_the_cursors_second_are_delivered() {
    for page_size in [4, 5, 7, 100] {
        let mut instance = Instance::new((10..20).map(|n| row(100, n)));
        let mut poller = Poller::new(0, page_size);
        poller.invoke(&mut instance, None);
        let before = poller.delivered.len();
        let late = Stored { id: "00000000000000000000000000000001".into(), ..row(100, 0) };
        instance.rows.insert(late.id.clone(), late.clone());
        let updated = instance.rows.values_mut().nth(5).expect("a row");
        updated.mod_count += 1;
        let updated = updated.clone();
        for _ in 0..6 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        let mut news = poller.delivered[before..].to_vec();
        news.sort_by_key(|head| head.id.clone());
        assert_eq!(news, [head(&late), head(&updated)], "page size {page_size}");
    }
}

#[test]
fn a_late_row_inside_the_overlap_is_delivered_after_an_hour_of_idle_ticks() {
    for (count, page_size) in [(3, 50), (30, 7)] {
        let mut instance = Instance::new((10..10 + count).map(|n| row(100 + (n as i64 % 3), n)));
        let mut poller = Poller::new(5, page_size);
        for _ in 0..720 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert_eq!(poller.delivered.len(), count as usize);
        let late = row(98, 1);
        instance.rows.insert(late.id.clone(), late.clone());
        for _ in 0..6 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert_eq!(poller.delivered[count as usize..], [head(&late)]);
    }
}

#[test]
fn hidden_rows_are_stepped_over_and_counted_once() {
    // Whole pages and whole seconds among them, a third of all.
    let is_hidden = |n: u64| (300..900).contains(&n) || (n >= 1_000 && n.is_multiple_of(5)) || (1_500..1_510).contains(&n);
    let rows: Vec<Stored> = (0..3_030).map(|n| Stored { hidden: is_hidden(n), ..row(100 + n as i64 / 50, n) }).collect();
    let hidden = rows.iter().filter(|row| row.hidden).count() as u64;
    assert_eq!(hidden, 1_014);
    for page_size in [1, 10, 49, 50, 51, 100, 1_000, 5_000] {
        let mut instance = Instance::new(rows.clone());
        let mut poller = Poller::new(2, page_size);
        assert!(poller.invoke(&mut instance, None));
        assert_eq!(poller.delivered, instance.visible(), "page size {page_size}");
        assert_eq!(poller.hidden, hidden, "page size {page_size}");
    }
}

#[test]
fn a_second_that_is_hidden_from_its_first_page_on_is_stepped_over_by_id() {
    let rows: Vec<Stored> = (0..200).map(|n| row(100, n)).collect();
    let mut instance = Instance::new(rows);
    let ids: Vec<String> = instance.rows.keys().cloned().collect();
    for id in &ids[..150] {
        instance.rows.get_mut(id).expect("a row").hidden = true;
    }
    let mut poller = Poller::new(0, 10);
    assert!(poller.invoke(&mut instance, None));
    assert_eq!(poller.delivered, instance.visible());
    assert_eq!(poller.hidden, 150);
}

#[test]
fn an_instance_that_gives_no_count_is_read_to_an_empty_page_without_a_link() {
    for page_size in [1, 3, 10, 100] {
        let rows = (0..50).map(|n| Stored { hidden: (10..30).contains(&n), ..row(100 + n as i64 / 5, n) });
        let mut instance = Instance::new(rows);
        instance.counts = false;
        let mut poller = Poller::new(2, page_size);
        assert!(poller.invoke(&mut instance, None));
        assert_eq!(poller.delivered, instance.visible(), "page size {page_size}");
    }
}

#[test]
fn after_a_lost_window_the_overlap_is_delivered_once_more_and_then_never_again() {
    for (count, page_size) in [(12, 5), (3, 50), (200, 30)] {
        let mut instance = Instance::new((0..count).map(|n| row(100 + (n as i64 % 2), n)));
        let mut poller = Poller::new(2, page_size);
        poller.invoke(&mut instance, None);
        poller.lose_window();
        for _ in 0..60 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert_eq!(poller.delivered.len(), 2 * count as usize, "page size {page_size}");
        assert_eq!(poller.window.unknown(), None);
    }
}

#[test]
fn rows_above_the_high_water_mark_wait_for_the_next_sweep() {
    let mut instance = Instance::new((0..10).map(|n| row(999_995 + n as i64, n)));
    let mut poller = Poller::new(2, 100);
    assert!(poller.invoke(&mut instance, None));
    assert_eq!(poller.delivered, instance.visible());
    assert_eq!(poller.delivered.last().map(|head| head.second), Some(999_999));
    instance.now += 10;
    assert!(poller.invoke(&mut instance, None));
    assert_eq!(poller.delivered, instance.visible());
}

#[test]
fn a_local_clock_that_steps_forward_lets_no_open_second_be_closed() {
    let mut instance = Instance::new((0..5).map(|n| row(999_990 + n as i64, n)));
    let mut poller = Poller::new(0, 100);
    poller.invoke(&mut instance, None);
    // The stored difference is now an hour off: the first mark lies an hour ahead of the instance.
    poller.start.difference_ms = Some(3_600_000);
    let early = row(1_000_000, 77);
    instance.rows.insert(early.id.clone(), early.clone());
    poller.invoke(&mut instance, None);
    assert!(!poller.delivered.contains(&head(&early)), "the second was still open");
    let late = row(1_000_000, 30);
    instance.rows.insert(late.id.clone(), late);
    instance.now += 5;
    poller.invoke(&mut instance, None);
    assert_eq!(poller.delivered, instance.visible());
}

#[test]
fn a_clock_that_goes_back_leaves_the_rows_above_the_mark_to_a_later_sweep_and_none_comes_twice() {
    for (overlap, window_limit) in [(0, 0), (0, 50_000), (3, 1), (3, 50_000)] {
        for counts in [true, false] {
            let mut instance = Instance::new((0..7).map(|n| row(999_990 + n as i64 / 4, n)));
            instance.counts = counts;
            let mut poller = Poller::new(overlap, 2);
            poller.settings.window_limit = window_limit;
            poller.start.max_rows = Some(1);
            poller.invoke(&mut instance, None);
            poller.start.max_rows = None;
            instance.now -= 3_600;
            poller.invoke(&mut instance, None);
            assert_eq!(poller.delivered.len(), 1, "the others lie above the mark");
            instance.now += 3_600;
            for _ in 0..10 {
                instance.now += 5;
                poller.invoke(&mut instance, None);
            }
            assert_eq!(poller.delivered, instance.visible(), "overlap {overlap}, window {window_limit}, counts {counts}");
        }
    }
}

#[test]
fn a_bound_on_rows_cuts_a_page_and_the_next_run_goes_on_there() {
    let mut instance = Instance::new((0..120).map(|n| row(100 + n as i64 / 60, n)));
    for overlap in [0, 2] {
        let mut poller = Poller::new(overlap, 50);
        poller.start.max_rows = Some(7);
        for _ in 0..100 {
            poller.invoke(&mut instance, None);
        }
        assert_eq!(poller.delivered, instance.visible(), "overlap {overlap}");
    }
}

#[test]
fn an_instance_that_cuts_pages_to_its_own_limit_loses_no_row() {
    let rows: Vec<Stored> = (0..3_000).map(|n| row(100 + n as i64 / 4, n)).collect();
    let mut instance = Instance::new(rows);
    let mut poller = Poller::new(2, 5_000);
    let mut planner: Planner<()> = Planner::new(poller.settings.clone(), poller.start.clone());
    planner.set_page_size(5_000);
    for _ in 0..100 {
        let request = planner.request(0);
        let clamped = Request { limit: request.limit.min(1_000), ..request.clone() };
        let answer = Answer { next_link: false, ..instance.answer(&clamped) };
        if let Outcome::Page(delivery) = planner.answer(&request, answer).expect("an honest instance") {
            poller.commit(&delivery, None);
            if delivery.end.is_some() {
                break;
            }
        }
    }
    assert_eq!(poller.delivered, instance.visible());
}

#[test]
fn a_dedup_window_too_small_for_the_overlap_costs_late_rows_and_never_a_row_ahead() {
    let mut instance = Instance::new((0..100).map(|n| row(100 + n as i64 / 25, n)));
    let mut poller = Poller::new(10, 20);
    poller.settings.window_limit = 5;
    for _ in 0..20 {
        poller.invoke(&mut instance, None);
        instance.now += 5;
    }
    assert_eq!(poller.delivered, instance.visible());
}

#[test]
fn a_late_row_in_a_large_overlap_is_found_though_sweeps_end_before_they_get_to_it() {
    // Every invocation ends after one page, far from the end of the forward part.
    let mut instance = Instance::new((10..40).map(|n| row(100, n)));
    let mut poller = Poller::new(5, 10);
    poller.invoke(&mut instance, None);
    let late = row(98, 1);
    instance.rows.insert(late.id.clone(), late.clone());
    for n in 100..300 {
        let row = row(110 + n as i64, n);
        instance.rows.insert(row.id.clone(), row);
    }
    poller.invoke(&mut instance, Some(1));
    for _ in 0..100 {
        instance.now += 5;
        poller.invoke(&mut instance, None);
    }
    assert!(poller.delivered.contains(&head(&late)));
    assert_eq!(poller.delivered.len(), instance.visible().len());
}
