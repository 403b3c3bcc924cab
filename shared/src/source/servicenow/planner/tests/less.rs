//! Answers that hold less than was asked for: too large and asked for smaller, cut by the instance, hidden, or without a count.

use super::*;

/// `count` rows, one per second from `second` on, whose ids sort before those of other rows.
fn late(second: i64, count: u64) -> Vec<Stored> {
    (0..count).map(|n| Stored { id: format!("{:032x}", n + 1), ..row(second + n as i64, n) }).collect()
}

/// A table of 300 rows, one per second, with an overlap that is read again in turns.
fn swept(page_size: u32) -> (Instance, Poller) {
    let mut instance = Instance::new((1_000..1_300).map(|n| row(n as i64, n)));
    let mut poller = Poller::new(300, page_size);
    sweeps(&mut instance, &mut poller, 10);
    assert_eq!(poller.delivered, instance.visible());
    (instance, poller)
}

fn sweeps(instance: &mut Instance, poller: &mut Poller, count: u64) {
    for _ in 0..count {
        instance.now += 5;
        poller.invoke(instance, None);
    }
}

/// All that is visible was delivered, each version once.
fn is_complete(instance: &Instance, poller: &Poller, what: &str) {
    let mut delivered = poller.delivered.clone();
    delivered.sort_by_key(|head| (head.second, head.id.clone()));
    assert_eq!(delivered, instance.visible(), "{what}");
}

#[test]
fn unknown_rows_that_a_smaller_answer_leaves_out_are_found_by_later_sweeps() {
    for (count, most_whole) in [(80, 25), (80, 60), (30, 10), (41, 40), (5, 1)] {
        let (mut instance, mut poller) = swept(100);
        instance.load(late(1_010, count));
        poller.most_whole = most_whole;
        // The cursor moves on, so that the late rows are outside of the overlap once they have been read.
        instance.load((1_400..1_450).map(|n| row(n as i64, n)));
        sweeps(&mut instance, &mut poller, 150);
        is_complete(&instance, &poller, &format!("{count} rows, at most {most_whole} at once"));
    }
}

#[test]
fn unknown_rows_that_are_pushed_off_a_page_by_others_are_found_by_later_sweeps() {
    for (count, appearing) in [(80, 60), (41, 100), (30, 80)] {
        let (mut instance, mut poller) = swept(100);
        instance.load(late(1_010, count));
        instance.load((1_400..1_450).map(|n| row(n as i64, n)));
        instance.appearing = (0..appearing).map(|n| Stored { id: format!("{:032x}", n + 1_000), ..row(1_005, n) }).collect();
        sweeps(&mut instance, &mut poller, 1);
        instance.load((2_000..2_010).map(|n| row(n as i64, n)));
        sweeps(&mut instance, &mut poller, 100);
        let lost: Vec<_> = late(1_010, count).iter().map(head).filter(|head| !poller.delivered.contains(head)).collect();
        assert!(lost.is_empty(), "{count} rows, {appearing} others: {lost:?}");
    }
}

#[test]
fn late_rows_behind_hidden_ones_come_a_page_at_a_time() {
    for ids in [false, true] {
        let hidden = (0..250).map(|n| Stored { hidden: true, ..row(1_000 + n as i64 / 10, n) });
        let mut instance = Instance::new(hidden.chain((1_100..1_400).map(|n| row(n as i64, n))));
        let mut poller = Poller::new(2_000, 100);
        sweeps(&mut instance, &mut poller, 10);
        instance.load((0..900).map(|n| {
            let late = row(1_050, 10_000 + n);
            if ids { Stored { id: format!("Miller, Bob {n:04}"), ..late } } else { late }
        }));
        sweeps(&mut instance, &mut poller, 100);
        is_complete(&instance, &poller, "each delivery is at most a page");
    }
}

#[test]
fn a_page_limit_of_the_instances_own_hides_no_late_row() {
    for (own_limit, links, page_size) in [(100, false, 1_000), (30, true, 1_000), (250, false, 5_000)] {
        let mut instance = Instance::new((1_000..1_600).map(|n| row(n as i64, n)));
        (instance.own_limit, instance.links) = (own_limit, links);
        let mut poller = Poller::new(3_000, page_size);
        sweeps(&mut instance, &mut poller, 4);
        instance.load(late(1_300, 5));
        instance.load(late(1_400, 60).into_iter().map(|row| Stored { id: format!("1{}", &row.id[1..]), ..row }));
        sweeps(&mut instance, &mut poller, 80);
        is_complete(&instance, &poller, &format!("limit {own_limit}, links {links}"));
    }
}

#[test]
fn a_page_limit_of_the_instances_own_loses_no_row_behind_hidden_ones() {
    // The instance's page is hidden but for a few rows, or whole, and the count fits the limit that was asked for.
    for (own_limit, links, shown) in [(100, false, 5), (100, false, 0), (1_000, false, 7), (10, true, 1)] {
        for per_second in [1, 10, 3_000] {
            let rows = (0..3_000).map(|n| Stored { hidden: (shown..1_200).contains(&n), ..row(1_000 + n as i64 / per_second, n) });
            let mut instance = Instance::new(rows);
            (instance.own_limit, instance.links) = (own_limit, links);
            let mut poller = Poller::new(2, 5_000);
            sweeps(&mut instance, &mut poller, 3);
            is_complete(&instance, &poller, &format!("limit {own_limit}, {per_second} per second"));
        }
    }
}

#[test]
fn ids_that_are_not_hexadecimal_are_stepped_over_where_they_are_hidden() {
    for hidden in [5..25, 0..20, 10..30, 0..30] {
        for (page_size, window_limit) in [(5, 50_000), (5, 3), (1, 50_000), (2, 0)] {
            let rows = |second, from: u64, count| (from..from + count).map(move |n| Stored { id: format!("INC{n:04}"), ..row(second, n) });
            let mut instance = Instance::new(rows(100, 0, 30).chain(rows(110, 100, 5)));
            for n in hidden.clone() {
                instance.rows.get_mut(&format!("INC{n:04}")).expect("a row").hidden = true;
            }
            let mut poller = Poller::new(2, page_size);
            poller.settings.fields.id = "number".into();
            poller.settings.window_limit = window_limit;
            sweeps(&mut instance, &mut poller, 20);
            assert_eq!(poller.delivered, instance.visible(), "{hidden:?} of 30, page size {page_size}, window {window_limit}");
            assert_eq!(poller.hidden, hidden.end - hidden.start, "{hidden:?} of 30, page size {page_size}, window {window_limit}");
        }
    }
}

#[test]
fn an_id_that_another_program_made_is_never_cut_at() {
    let rows = (0..40).map(|n| Stored { id: format!("task-{n:04}"), hidden: (10..30).contains(&n), ..row(100, n) });
    let mut instance = Instance::new(rows);
    let mut poller = Poller::new(2, 5);
    sweeps(&mut instance, &mut poller, 3);
    assert_eq!(poller.delivered, instance.visible());
}

#[test]
fn a_hidden_block_that_cannot_be_stepped_over_is_named_as_what_it_is() {
    let rows = (0..5_000).map(|n| Stored { id: format!("INC{n:04}"), hidden: true, ..row(100, n) });
    let mut instance = Instance::new(rows);
    let mut poller = Poller::new(0, 1);
    poller.settings.fields.id = "number".into();
    let mut planner: Planner<()> = Planner::new(poller.settings.clone(), poller.start.clone());
    let error = loop {
        let request = planner.request(0);
        let answer = instance.answer(&request);
        if let Err(error) = planner.answer(&request, answer) {
            break error.to_string();
        }
    };
    assert!(error.starts_with("4096 rows that follow one another in second 1970-01-01 00:01:40 are hidden"), "{error}");
}

#[test]
fn rows_in_hand_are_delivered_though_no_count_comes() {
    for overlap in [0, 3, 300] {
        let rows = (0..60).map(|n| Stored { hidden: (5..8).contains(&n) || n == 55, ..row(1_000 + n as i64 / 2, n) });
        let mut instance = Instance::new(rows);
        let mut poller = Poller::new(overlap, 20);
        poller.counts_fail = true;
        sweeps(&mut instance, &mut poller, 10);
        assert_eq!(poller.delivered, instance.visible(), "overlap {overlap}");
        poller.counts_fail = false;
        sweeps(&mut instance, &mut poller, 3);
        instance.load([row(1_500, 100), Stored { hidden: true, ..row(1_500, 101) }]);
        // What tells new hidden rows from known ones is a count as well.
        poller.counts_fail = true;
        sweeps(&mut instance, &mut poller, 5);
        assert_eq!(poller.delivered, instance.visible(), "overlap {overlap}");
    }
}

#[test]
fn a_mark_that_is_lowered_within_a_sweep_leaves_what_lies_above_it_to_the_next() {
    // Most of the rows are hidden, so that the sweep narrows its ranges.
    let is_hidden = |n: u64| (1..40).contains(&n) || (60..75).contains(&n);
    for (nth, behind) in (0..25).flat_map(|nth| [1, 5, 12, 24, 60].map(|behind| (nth, behind))) {
        for (overlap, page_size) in [(0, 2), (2, 2), (200, 1)] {
            let rows = (0..40)
                .chain([41, 50])
                .chain(60..90)
                .map(|n| Stored { hidden: is_hidden(n), ..row(999_900 + if n < 60 { n as i64 } else { 55 }, n) });
            let mut instance = Instance::new(rows);
            instance.now = 999_960;
            instance.behind = Some((nth, behind));
            let mut poller = Poller::new(overlap, page_size);
            poller.invoke(&mut instance, None);
            sweeps(&mut instance, &mut poller, 20);
            assert_eq!(poller.delivered, instance.visible(), "request {nth}, {behind} s behind, overlap {overlap}");
        }
    }
}

#[test]
fn a_count_that_is_lost_is_not_taken_for_an_instance_that_never_counts() {
    let is_hidden = |n: u64| (10..30).contains(&n) || (63..68).contains(&n);
    for nth in 0..40 {
        for (overlap, page_size) in [(2, 10), (0, 4), (200, 10)] {
            let rows = (0..60).map(|n| row(1_000, n)).chain((60..90).map(|n| row(1_000 + n as i64, n)));
            let mut rows: Vec<Stored> = rows.collect();
            rows.sort_by_key(|row| (row.second, row.id.clone()));
            (0..).zip(&mut rows).for_each(|(n, row)| row.hidden = is_hidden(n));
            let mut instance = Instance::new(rows);
            (instance.blind, instance.uncounted) = (true, Some(nth));
            let mut poller = Poller::new(overlap, page_size);
            sweeps(&mut instance, &mut poller, 5);
            is_complete(&instance, &poller, &format!("the count of request {nth}, overlap {overlap}, page size {page_size}"));
        }
    }
}

#[test]
fn an_idle_table_with_hidden_rows_at_its_cursor_is_caught_up_however_slow_the_instance_is() {
    for (count, shown) in [(60, 59), (60, 30), (300, 250)] {
        let mut rows: Vec<Stored> = (0..count).map(|n| row(1_000, n)).collect();
        rows.sort_by_key(|row| row.id.clone());
        (0..).zip(&mut rows).for_each(|(n, row)| row.hidden = n != shown);
        let mut instance = Instance::new(rows);
        let mut poller = Poller::new(2, 10);
        sweeps(&mut instance, &mut poller, 2);
        instance.takes = 1;
        instance.requests.clear();
        assert!(poller.invoke(&mut instance, None));
        assert!(instance.requests.len() < 100, "one sweep around the hidden rows: {} requests", instance.requests.len());
        is_complete(&instance, &poller, "the row that can be seen");
    }
}

#[test]
fn late_rows_are_found_whatever_number_of_ids_an_address_holds() {
    for most_ids in [0, 1, 3, 20, 39] {
        for count in [2, 30, 45] {
            let (mut instance, mut poller) = swept(100);
            poller.most_ids = most_ids;
            instance.load(late(1_010, count));
            sweeps(&mut instance, &mut poller, 60);
            is_complete(&instance, &poller, &format!("{count} rows, {most_ids} at once"));
        }
    }
}
