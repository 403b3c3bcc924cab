//! The rules themselves. That every store follows them is shown by `cursor/conformance.rs`.

use proptest::prelude::*;

use super::super::{Counters, Phase};
use super::*;

fn identity() -> Identity {
    Identity {
        connector: "c".to_owned(),
        alias: "inc".to_owned(),
        source: "servicenow".to_owned(),
        instance: "acme.service-now.com".to_owned(),
        table: "incident".to_owned(),
        field: "sys_updated_on".to_owned(),
        id_field: "sys_id".to_owned(),
        fingerprint: Identity::fingerprint_of(&["incident"]),
    }
}

#[test]
fn the_pause_of_a_parked_table_doubles_up_to_an_hour() {
    let mut standing = Standing::Active;
    let mut pauses = vec![];
    for number in 0..8_i64 {
        let now_ms = 1_000 * number;
        let parked = Parked::after(&standing, "Source.Forbidden", "no".to_owned(), now_ms);
        assert_eq!((parked.since_ms, i64::from(parked.times)), (0, number + 1), "one series has one beginning");
        pauses.push((parked.next_try_ms - now_ms) / 60_000);
        standing = Standing::Parked(parked);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
}

#[test]
fn no_series_of_parkings_is_too_long() {
    let parked = Parked { code: "c".into(), message: "m".into(), since_ms: 0, next_try_ms: 0, times: u32::MAX };
    let next = Parked::after(&Standing::Parked(parked), "c", "m".to_owned(), i64::MAX - 1);
    assert_eq!((next.times, next.next_try_ms), (u32::MAX, i64::MAX));
}

#[test]
fn a_table_that_is_tried_and_fails_again_stays_in_its_series_and_one_that_succeeds_leaves_it() {
    let first = Parked::after(&Standing::Active, "Source.Forbidden", "no".to_owned(), 5);
    let again = Parked::after(&Standing::Parked(first.clone()), "Source.TooLarge", "no".to_owned(), 70_000);
    assert_eq!((again.since_ms, again.times, again.code.as_str()), (5, 2, "Source.TooLarge"));
    let afresh = Parked::after(&Standing::Active, "Source.Forbidden", "no".to_owned(), 70_000);
    assert_eq!((afresh.since_ms, afresh.times), (70_000, 1));
}

/// One thing that somebody does: who, what, and how long after the last.
#[derive(Debug, Clone)]
struct Act {
    who: usize,
    what: u8,
    later_ms: i64,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0..3_usize, 0..10_u8, 0..80_i64).prop_map(|(who, what, later_ms)| Act { who, what, later_ms });
    proptest::collection::vec(act, 1..60)
}

fn waiting() -> Waiting {
    Waiting::after(&Standing::Active, "c", "m".to_owned(), 0)
}

/// A table that waits now and then.
fn standing(number: u64) -> Standing {
    if number.is_multiple_of(2) { Standing::Active } else { Standing::Waiting(waiting()) }
}

/// What `act` asks for, from somebody who knows the item as it was in `known`.
fn change(act: &Act, known: Option<&Item>, number: u64, now_ms: i64) -> Change {
    let owner = format!("owner-{}", act.who);
    let hold = Hold { owner: owner.clone(), revision: known.map_or(0, |item| item.revision) };
    let progress = Progress {
        cursor: Some(Position::new([("sequence", Some(number.to_string()))])),
        phase: Phase::Stream,
        counters: Counters { rows: number, ..Counters::default() },
        ..Progress::default()
    };
    match act.what {
        0 | 1 => Change::Acquire(Acquire { owner, until_ms: now_ms + 100, now_ms, scheduled: (act.what == 1).then_some(50) }),
        2 | 3 => Change::Commit(hold, progress),
        4 => Change::Renew(hold, now_ms + 100),
        5 => Change::Release(hold, progress, standing(number)),
        6 => Change::Pause { reason: "why".to_owned(), now_ms },
        7 => Change::Resume { now_ms },
        8 => Change::Accept { baseline: "digest".to_owned(), told: waiting(), now_ms },
        _ => Change::Rewind(Rewind { to: Position::new([("sequence", None)]), now_ms, revision: None, request_id: None }),
    }
}

proptest! {
    /// Three who act in any order, each on what it saw last, with leases that run out under them.
    #[test]
    fn whatever_happens_the_cursor_moves_under_its_holder_or_while_there_is_none(acts in acts()) {
        let create = Write { id: "create".to_owned(), change: Change::Create(identity()) };
        let mut item = apply(None, &create).expect("the first create");
        let mut seen: [Option<Item>; 3] = [None, None, None];
        let mut now_ms = 0;
        for (number, act) in (0_u64..).zip(&acts) {
            now_ms += act.later_ms;
            let write = Write { id: format!("{number}"), change: change(act, seen[act.who].as_ref(), number, now_ms) };
            let before = item.clone();
            let Ok(after) = apply(Some(&before), &write) else {
                // Whoever was refused reads the item, and next time acts on that.
                seen[act.who] = Some(before);
                continue;
            };
            prop_assert_eq!(after.revision, before.revision + 1);
            prop_assert_eq!(&after.write_id, &write.id);
            prop_assert_eq!(apply(Some(&after), &write), Ok(after.clone()), "sent twice");
            let own = before.lease.as_ref().is_some_and(|lease| lease.owner == format!("owner-{}", act.who));
            let saw = seen[act.who].as_ref().is_some_and(|seen| seen.revision == before.revision);
            if matches!(write.change, Change::Commit(..) | Change::Release(..) | Change::Renew(..)) {
                prop_assert!(own && saw, "a holder's write by another, or on an old revision");
            } else {
                prop_assert!(!before.is_leased(now_ms), "a change under the holder");
            }
            prop_assert!(after.tries < DEATHS);
            prop_assert!(!(after.lease.is_some() && before.lease.is_none() && matches!(before.standing, Standing::Paused(_))));
            seen[act.who] = Some(after.clone());
            item = after;
        }
    }
}
