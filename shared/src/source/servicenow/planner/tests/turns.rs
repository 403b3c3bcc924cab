//! The re-read of a large overlap in turns, while the table goes on; and seconds that are read again past hidden rows.

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
