use super::*;

const NOW: i64 = 1_772_366_400_000;

fn told(limit: u64, ends_in_s: u64) -> Told {
    Told { limit: Some(limit), ends_in: Some(Duration::from_secs(ends_in_s)), rule: "r".to_owned(), refused_for: None }
}

/// Makes requests until one is denied, at most `most`; each answer says `told`.
fn spend(hourly: &Hourly, connector: &str, told: &Told, now_ms: i64, most: u64) -> u64 {
    (0..most)
        .take_while(|_| {
            let ticket = hourly.take(connector, now_ms);
            ticket.is_ok_and(|ticket| {
                hourly.told(connector, &ticket, told.clone(), now_ms);
                true
            })
        })
        .count() as u64
}

#[test]
fn requests_end_before_the_allowance_does_and_begin_again_with_the_next_hour() {
    let hourly = Hourly::default();
    assert_eq!(spend(&hourly, "c", &told(100, 600), NOW, 1_000), 95);
    assert_eq!(spend(&hourly, "c", &told(100, 600), NOW + 599_000, 1_000), 0);
    assert_eq!(spend(&hourly, "c", &told(100, 3600), NOW + 600_000, 1_000), 95);
    assert_eq!(spend(&Hourly::default(), "c", &told(5, 3600), NOW, 1_000), 5, "a small one is used whole");
}

#[test]
fn an_account_of_another_rule_is_counted_apart_and_one_of_the_same_rule_is_not() {
    let hourly = Hourly::default();
    spend(&hourly, "c", &told(10, 600), NOW, 1_000);
    let other = Told { rule: "other".to_owned(), ..told(10, 600) };
    assert_eq!(spend(&hourly, "d", &other, NOW, 1_000), 10);
    assert_eq!(spend(&hourly, "e", &told(10, 600), NOW, 1_000), 1, "the first answer tells whose allowance it is");
}

#[test]
fn nothing_that_an_instance_says_blocks_a_table_for_more_than_an_hour() {
    let second = Duration::from_secs(1);
    for nonsense in [
        Told { ends_in: None, ..told(3, 0) },
        Told { ends_in: Some(Duration::MAX), ..told(3, 0) },
        Told { ends_in: Some(Duration::ZERO), ..told(3, 0) },
        Told { refused_for: Some(Duration::MAX), ..told(3, 0) },
        Told { refused_for: Some(second * 86_400), limit: None, ..told(3, 0) },
        told(1, 3_600),
    ] {
        let hourly = Hourly::default();
        spend(&hourly, "c", &nonsense, NOW, 1_000);
        assert!(hourly.spent("c", NOW).is_some(), "{nonsense:?}");
        assert_eq!(hourly.spent("c", NOW + HOUR_MS), None, "{nonsense:?}");
        let (bytes, _) = hourly.merged(None, NOW);
        assert_eq!(Hourly::read(&bytes).spent("c", NOW - 1), None, "the clock was set back: {nonsense:?}");
    }
    assert_eq!(Hourly::read(b"{\"rules\":7}").spent("c", NOW), None, "written by another version");
}

#[test]
fn an_end_that_moves_on_with_each_answer_ends_no_hour() {
    let hourly = Hourly::default();
    let made: u64 = (0..100).map(|minute| spend(&hourly, "c", &told(50, 3_600), NOW + minute * 30_000, 1)).sum();
    assert_eq!(made, 48);
}

#[test]
fn what_two_invocations_count_at_the_same_time_is_added_up() {
    let (one, other) = (Hourly::default(), Hourly::default());
    spend(&one, "c", &told(100, 600), NOW, 30);
    spend(&other, "d", &told(100, 600), NOW, 40);
    let (first, _) = one.merged(None, NOW);
    let (both, ends_ms) = other.merged(Some(&first), NOW);
    let next = Hourly::read(&both);
    assert_eq!(spend(&next, "c", &told(100, 600), NOW, 1_000), 25, "of 95");
    assert!(ends_ms > NOW + 600_000);
    let (later, _) = next.merged(Some(&both), NOW + 600_000);
    assert_eq!(Hourly::read(&later).windows().rules, BTreeMap::new(), "an hour that is over is forgotten");
}

#[test]
fn a_refusal_is_kept_for_those_that_come_after() {
    let hourly = Hourly::default();
    let refusal = Told { refused_for: Some(Duration::from_secs(90)), ..told(100, 90) };
    spend(&hourly, "c", &refusal, NOW, 1);
    let (bytes, _) = hourly.merged(None, NOW);
    let next = Hourly::read(&bytes);
    let spent = next.spent("c", NOW).expect("spent");
    let text = spent.text(NOW);
    assert!(text.contains("100 requests per hour") && text.contains("rule r") && text.contains("in 2 min"), "{text}");
    assert_eq!(next.spent("c", NOW + 90_000), None);
}
