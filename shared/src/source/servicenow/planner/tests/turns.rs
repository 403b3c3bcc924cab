//! The re-read of a large overlap in turns, while the table goes on; and seconds that are read again past hidden rows.

use super::super::super::position;
use super::*;

#[test]
fn a_late_row_in_a_large_overlap_is_found_though_the_table_moves_on_before_its_turn() {
    for page_size in [1, 2, 5] {
        let mut instance = Instance::new((10..30).map(|n| row(100 + n as i64 / 10, n)));
        let mut poller = Poller::new(3, page_size);
        poller.invoke(&mut instance, None);
        let late = row(101, 1);
        instance.rows.insert(late.id.clone(), late.clone());
        // The next row puts the late one outside of the overlap of every sweep but the next.
        for n in 100..200 {
            let ahead = row(10 * n as i64, n);
            instance.rows.insert(ahead.id.clone(), ahead);
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert!(poller.delivered.contains(&head(&late)), "page size {page_size}");
        assert_eq!(poller.delivered.len(), instance.visible().len(), "page size {page_size}");
    }
}

#[test]
fn a_row_that_comes_late_behind_a_pass_over_the_overlap_is_found_by_the_next_pass() {
    for page_size in [1, 2, 5] {
        let mut instance = Instance::new((10..40).map(|n| row(100 + n as i64 / 20, n)));
        let mut poller = Poller::new(3, page_size);
        poller.invoke(&mut instance, None);
        for _ in 0..3 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        // A pass has gone by this row's place, and the table moves on while the pass is under way.
        let late = Stored { id: "00000000000000000000000000000001".into(), ..row(100, 0) };
        instance.rows.insert(late.id.clone(), late.clone());
        for n in 100..120 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
            let ahead = row(10 * n as i64, n);
            instance.rows.insert(ahead.id.clone(), ahead);
        }
        for _ in 0..200 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert!(poller.delivered.contains(&head(&late)), "page size {page_size}");
        assert_eq!(poller.delivered.len(), instance.visible().len(), "page size {page_size}");
    }
}

#[test]
fn hidden_rows_in_the_overlap_keep_no_late_row_behind_them_from_being_found() {
    for (page_size, counts) in [(1, true), (2, true), (3, false), (5, true)] {
        let hidden = |n: u64| (10..22).contains(&n);
        let mut instance = Instance::new((10..40).map(|n| Stored { hidden: hidden(n), ..row(100 + n as i64 / 22, n) }));
        instance.counts = counts;
        let mut poller = Poller::new(3, page_size);
        poller.invoke(&mut instance, None);
        let late = row(101, 1);
        instance.rows.insert(late.id.clone(), late.clone());
        for _ in 0..200 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert!(poller.delivered.contains(&head(&late)), "page size {page_size}");
        assert_eq!(poller.delivered.len(), instance.visible().len(), "page size {page_size}");
    }
}

#[test]
fn the_cursor_stays_while_its_own_second_is_stepped_over_again() {
    let mut instance = Instance::new((0..5).map(|n| Stored { hidden: true, ..row(100, n) }));
    instance.counts = false;
    let mut poller = Poller::new(0, 1);
    for _ in 0..20 {
        instance.now += 5;
        // Each commit compares positions.
        poller.invoke(&mut instance, None);
    }
}

#[test]
fn the_cursor_stays_while_a_second_before_it_is_stepped_over_again() {
    // Both seconds are cut at the same id: there the cursor comes to rest in the later one, and there a part of the earlier begins.
    let hidden = |second, digit: char| Stored { second, id: format!("{digit}{:031}", 0), mod_count: 0, hidden: true };
    let mut instance = Instance::new([hidden(100, '8'), hidden(100, '9'), hidden(101, '1'), hidden(101, 'a')]);
    instance.counts = false;
    let mut poller = Poller::new(3, 1);
    for _ in 0..20 {
        instance.now += 5;
        poller.invoke(&mut instance, None);
        assert_eq!(poller.start.cursor, At { second: 101, id: format!("7{}", "f".repeat(31)) });
    }
}

#[test]
fn rows_behind_hidden_ones_are_delivered_once_though_the_window_keeps_none_of_them() {
    // The first row of the second is hidden, so that the others are reached by halving the ids.
    for window_limit in [0, 1, 3] {
        for page_size in 1..=4 {
            for counts in [true, false] {
                let mut instance = Instance::new((0..12).map(|n| row(100 + n as i64 / 6, n)));
                instance.counts = counts;
                let first = instance.rows.keys().next().cloned().expect("rows");
                instance.rows.get_mut(&first).expect("there").hidden = true;
                let mut poller = Poller::new(2, page_size);
                poller.settings.window_limit = window_limit;
                for _ in 0..20 {
                    instance.now += 5;
                    poller.invoke(&mut instance, None);
                }
                assert_eq!(poller.delivered, instance.visible(), "window {window_limit}, page size {page_size}, counts {counts}");
            }
        }
    }
}

#[test]
fn a_late_row_that_waits_for_its_turn_is_found_after_a_death_and_what_is_known_is_not_sent_again() {
    let mut instance = Instance::new((10..50).map(|n| row(100 + n as i64 / 10, n)));
    let mut poller = Poller::new(3, 10);
    poller.invoke(&mut instance, None);
    let (stored, of) = (poller.window.clone(), position::written(&poller.start.cursor));
    // It waits behind rows that lie far ahead; the process dies after it has committed some of those.
    let late = row(102, 1);
    instance.rows.insert(late.id.clone(), late.clone());
    for n in 100..200 {
        let ahead = row(200 + n as i64, n);
        instance.rows.insert(ahead.id.clone(), ahead);
    }
    poller.invoke(&mut instance, Some(4));
    let second = poller.start.cursor.second;
    poller.start.kept = Kept::Older(stored, of);
    for _ in 0..100 {
        instance.now += 5;
        poller.invoke(&mut instance, None);
    }
    assert!(poller.delivered.contains(&head(&late)));
    let unknown = |row: &&Stored| (second - 3..=second).contains(&row.second) || row.second == 104;
    let bound = instance.rows.values().filter(unknown).count();
    let duplicates = poller.delivered.len() - instance.visible().len();
    assert!(duplicates > 0 && duplicates <= bound, "{duplicates} duplicates, at most {bound}");
}

/// A table that gets `rate` rows a second and is swept every `tick` seconds. After each sweep a row comes late, somewhere in the overlap.
/// Returns the most seconds by which the cursor had gone on before a late row was delivered.
fn slowest(overlap: i64, page_size: u32, rate: u64, tick: i64, window_limit: usize) -> i64 {
    let mut instance = Instance::new([]);
    let mut poller = Poller::new(overlap, page_size);
    poller.settings.window_limit = window_limit;
    (poller.start.cursor.second, poller.start.kept) = (1_000, Kept::Fresh);
    instance.now = 1_001;
    let (mut made, mut waiting, mut slowest) = (0, Vec::<(i64, Head)>::new(), 0);
    for nth in 0..200_i64 {
        for second in instance.now..instance.now + tick {
            instance.load((0..rate).map(|n| row(second, made + n)));
            made += rate;
        }
        instance.now += tick;
        poller.invoke(&mut instance, None);
        let cursor = poller.start.cursor.second;
        waiting.retain(|(since, late)| {
            let is_found = poller.delivered.contains(late);
            if is_found {
                slowest = slowest.max(cursor - since);
            }
            assert!(is_found || cursor - since < 4 * (overlap + tick), "{late:?} is not found at {cursor}");
            !is_found
        });
        // Nothing is looked for before the start.
        let late = row((cursor - nth * 7 % overlap.min(tick * 10)).max(1_001), 1_000_000 + made);
        waiting.push((cursor, head(&late)));
        instance.load([late]);
        assert!(poller.window.len() <= window_limit);
    }
    assert_eq!(poller.gave_up, 0, "nothing is given up");
    slowest
}

#[test]
fn a_late_row_in_a_large_overlap_is_found_before_the_table_has_gone_on_by_two_overlaps() {
    for (overlap, page_size, rate, tick) in [(60, 50, 4, 60), (20, 25, 6, 20), (100, 20, 3, 5), (40, 10, 2, 20), (300, 50, 2, 7)] {
        // What the page on semantics says of the window's size.
        let rows = 2 * (overlap + tick) * rate as i64 + i64::from(page_size);
        let late = 2 * (overlap + tick) / tick + 1;
        let slowest = slowest(overlap, page_size, rate, tick, usize::try_from(rows + late).expect("a size"));
        assert!(slowest <= 2 * (overlap + tick), "overlap {overlap}, tick {tick}: {slowest} s");
    }
}

#[test]
fn what_is_owed_is_read_before_the_window_has_to_forget_it() {
    for (page_size, most_reread) in [(10, usize::MAX), (30, usize::MAX), (3, usize::MAX), (10, 0)] {
        let mut instance = Instance::new((0..60).map(|n| row(1_000 + n as i64 / 6, n)));
        let mut poller = Poller::new(10, page_size);
        poller.settings.window_limit = 100;
        poller.most_reread = most_reread;
        for _ in 0..30 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        // While nobody swept, a transaction committed late, and many rows came after it.
        let late = row(1_005, 999);
        instance.load([late.clone()]);
        instance.load((100..500).map(|n| row(2_000 + n as i64, n)));
        for _ in 0..3 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        assert!(poller.delivered.contains(&head(&late)), "page size {page_size}");
        assert_eq!(poller.delivered.len(), instance.visible().len(), "page size {page_size}");
        assert_eq!(poller.gave_up, 0);
    }
}

#[test]
fn seconds_of_the_overlap_that_the_window_has_no_room_for_are_said_to_be_given_up() {
    for (second, window_limit, is_said) in [(999_990, 20, true), (999_990, 100, false), (1_000, 20, false)] {
        let mut instance = Instance::new((0..40).map(|n| row(second + n as i64 / 5, n)));
        let mut poller = Poller::new(30, 10);
        poller.settings.window_limit = window_limit;
        poller.invoke(&mut instance, None);
        assert_eq!(poller.gave_up > 0, is_said, "rows of {second}, at {}, window {window_limit}", instance.now);
    }
}

#[test]
fn a_sweep_without_the_time_for_all_of_the_overlap_is_through_and_owes_the_rest() {
    let mut instance = Instance::new((0..100).map(|n| row(1_000 + n as i64, n)));
    let mut poller = Poller::new(100, 10);
    for _ in 0..20 {
        instance.now += 5;
        poller.invoke(&mut instance, None);
    }
    instance.load([row(1_050, 998)]);
    poller.most_reread = 2;
    for n in 0..20 {
        // Each sweep goes on by enough to read all of the overlap again.
        instance.load([row(1_150 + 10 * n, 200 + n as u64)]);
        instance.now += 5;
        assert!(poller.invoke(&mut instance, None), "what lies ahead was read");
    }
    assert_eq!(poller.delivered.len(), instance.visible().len());
}

#[test]
fn late_rows_behind_hidden_ones_are_found_though_the_instance_shows_fewer_at_once_than_are_hidden() {
    for (own_limit, hidden, counts) in [(1, 1, false), (1, 3, true), (10, 25, true)] {
        let mut instance = Instance::new([row(1_000, 0), row(1_001, 5_000)]);
        (instance.own_limit, instance.counts) = (own_limit, counts);
        let mut poller = Poller::new(2, 20);
        instance.load((1..=hidden).map(|n| Stored { id: format!("{n:032x}"), hidden: true, ..row(1_001, n) }));
        for _ in 0..4 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        instance.load((900..903).map(|n| Stored { id: format!("{n:032x}"), ..row(1_001, n) }));
        for _ in 0..10 {
            instance.now += 5;
            poller.invoke(&mut instance, None);
        }
        let mut delivered = poller.delivered.clone();
        delivered.sort_by_key(|head| (head.second, head.id.clone()));
        assert_eq!(delivered, instance.visible(), "{hidden} hidden, {own_limit} at once, counts {counts}");
    }
}
