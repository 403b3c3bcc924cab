//! What a query selects.

use super::client::{IN_ORDER, get, incidents, selected};
use crate::table_api::{Collation, ColumnSpec, Fields, Kind, TableApi};

/// Five rows in which every operator has something to select and something to leave.
fn five() -> TableApi {
    let api = TableApi::start().unwrap();
    let columns = [ColumnSpec::new("weight", Kind::Number), ColumnSpec::reference("caller_id", "sys_user")];
    api.create("incident", &columns).unwrap();
    api.load("sys_user", vec![Fields::from([("sys_id", "u1"), ("name", "Ada")])]).unwrap();
    let rows = [
        ["a", "network down", "1", "high", "9", "2026-01-01 00:00:01", "u1"],
        ["b", "printer down", "2", "low", "10", "2026-01-01 00:00:02", ""],
        ["c", "Network slow", "3", "low", "100", "2026-01-01 00:00:03", "u1"],
        ["d", "", "10", "", "", "2026-01-01 00:00:04", "gone"],
        ["e", "a^b", "2", "2", "-3", "2026-01-01 00:00:05", ""],
    ];
    let names = ["number", "short_description", "priority", "impact", "weight", "sys_updated_on", "caller_id"];
    let row = |values: [&str; 7]| names.into_iter().zip(values).collect::<Fields>();
    api.load("incident", rows.map(row).into()).unwrap();
    api
}

#[test]
fn every_operator_selects_what_it_says() {
    let api = five();
    for (query, expected) in [
        ("number=a", "a"),
        ("number!=a", "bcde"),
        ("short_description=", "d"),
        ("priority>2", "cd"),
        ("priority>=2", "bcde"),
        ("priority<2", "a"),
        ("priority<=2", "abe"),
        ("weight>9", "bc"),
        ("weight<9", "e"),
        ("weight=9.0", "a"),
        ("sys_updated_on>2026-01-01 00:00:03", "de"),
        ("sys_updated_on>=2026-01-01 00:00:03", "cde"),
        ("sys_updated_on<2026-01-01 00:00:03", "ab"),
        ("sys_updated_on<=2026-01-01 00:00:03", "abc"),
        ("sys_updated_on=2026-01-01 00:00:03", "c"),
        ("sys_updated_on>2026-01-01", "abcde"),
        ("short_descriptionLIKEdown", "ab"),
        ("short_descriptionNOT LIKEdown", "cde"),
        ("short_descriptionSTARTSWITHnetwork", "a"),
        ("short_descriptionENDSWITHdown", "ab"),
        ("numberINa,c", "ac"),
        ("numberNOT INa,c", "bde"),
        ("sys_updated_onBETWEEN2026-01-01 00:00:02@2026-01-01 00:00:04", "bcd"),
        ("priorityBETWEEN2@3", "bce"),
        ("impactISEMPTY", "d"),
        ("impactISNOTEMPTY", "abce"),
        ("impactEMPTYSTRING", "d"),
        ("impactANYTHING", "abcde"),
        ("prioritySAMEASimpact", "e"),
        ("priorityNSAMEASimpact", "abcd"),
        ("short_description=a^^b", "e"),
        ("caller_id.name=Ada", "ac"),
        ("caller_id.nameISEMPTY", "bde"),
    ] {
        assert_eq!(selected(&api, query).concat(), expected, "{query}");
    }
    assert_eq!(api.refusals(), Vec::<String>::new());
}

#[test]
fn an_or_binds_to_the_condition_before_it_and_a_new_query_takes_the_conjunction() {
    let api = five();
    assert_eq!(selected(&api, "impact=low^number=a^ORnumber=b").concat(), "b");
    assert_eq!(selected(&api, "impact=low^number=b^NQnumber=a").concat(), "ab");
    // A cursor appended to the last branch filters that branch alone.
    assert_eq!(selected(&api, "number=a^NQnumber=b^sys_updated_on>2026-01-01 00:00:04").concat(), "a");
}

#[test]
fn pairs_of_name_and_value_are_conditions_of_equality_unless_there_is_a_query() {
    let api = five();
    assert_eq!(incidents(&api, &[("impact", "low"), ("number", "c")]).column("number"), ["c"]);
    assert_eq!(incidents(&api, &[("impact", "low"), ("sysparm_query", "number=c")]).status, 501);
}

#[test]
fn what_the_simulator_does_not_understand_is_refused_loudly_and_kept() {
    let api = five();
    for params in [
        [("sysparm_querry", "number=a")],
        [("sysparm_query", "numberINSTANCEOFtask")],
        [("sysparm_query", "sys_updated_on>javascript:gs.daysAgo(1)")],
        [("sysparm_limit", "ten")],
        [("sysparm_limit", "0")],
        [("sysparm_offset", "-1")],
        [("sysparm_display_value", "yes")],
        [("sysparm_no_count", "1")],
        [("sysparm_view", "mobile")],
    ] {
        let before = api.refusals().len();
        let reply = incidents(&api, &params);
        assert_eq!((reply.status, api.refusals().len()), (501, before + 1), "{params:?}");
    }
    let before = api.refusals().len();
    assert_eq!(get(&api, "/api/now/stats/incident", &[]).status, 501);
    assert_eq!(api.refusals().len(), before + 1);
}

#[test]
fn an_invalid_part_is_dropped_and_the_rest_runs_unless_the_instance_answers_with_nothing() {
    let api = five();
    for query in ["impact=low^nosuch=1", "impact=low^sys_updated_on>yesterday", "impact=low^weight>heavy"] {
        assert_eq!(selected(&api, query).concat(), "bc", "{query}");
        assert_eq!(api.log().last().unwrap().dropped.len(), 1);
    }
    api.configure(|s| s.invalid_query_returns_no_rows = true).unwrap();
    let reply = incidents(&api, &[("sysparm_query", "impact=low^nosuch=1")]);
    assert_eq!((reply.rows().len(), reply.total()), (0, Some(0)));
}

#[test]
fn literals_can_follow_the_zone_of_the_user() {
    let api = five();
    api.configure(|s| s.literal_offset_seconds = -7 * 3600).unwrap();
    assert_eq!(selected(&api, "sys_updated_on=2026-01-01 00:00:03").concat(), "");
    assert_eq!(selected(&api, "sys_updated_on=2025-12-31 17:00:03").concat(), "c");
}

#[test]
fn the_order_is_obeyed_in_both_directions_and_numbers_order_as_numbers() {
    let api = five();
    let ordered = |query: &str| incidents(&api, &[("sysparm_query", query)]).column("number").concat();
    assert_eq!(ordered(IN_ORDER), "abcde");
    assert_eq!(ordered("ORDERBYDESCsys_updated_on"), "edcba");
    assert_eq!(ordered("ORDERBYweight"), "deabc");
    assert_eq!(ordered("impact=low^ORDERBYDESCnumber"), "cb");
}

#[test]
fn without_an_order_rows_come_shuffled_and_ties_are_broken_by_sys_id_alone() {
    let api = TableApi::start().unwrap();
    let row = |n: usize| Fields::from([("sys_id", format!("{n:04}")), ("sys_updated_on", "2026-01-01 00:00:00".to_owned())]);
    api.load("incident", (0..50).map(row).collect()).unwrap();
    let ids = |query: &str| incidents(&api, &[("sysparm_query", query), ("sysparm_limit", "50")]).column("sys_id");
    let differs = |query: &str| (0..5).map(|_| ids(query)).collect::<std::collections::BTreeSet<_>>().len() > 1;
    assert!(differs(""));
    assert!(differs("ORDERBYsys_updated_on"));
    assert!(!differs(IN_ORDER));
    assert!(ids(IN_ORDER).is_sorted());
    // A page that ends inside a tie holds any of the tied rows.
    let first = || incidents(&api, &[("sysparm_query", "ORDERBYsys_updated_on"), ("sysparm_limit", "3")]);
    assert_ne!(first().column("sys_id"), first().column("sys_id"));
}

#[test]
fn identities_are_ordered_and_compared_by_the_collation_of_the_database() {
    for (collation, expected, after) in [(Collation::Binary, "B,D,a,c", "D,a,c"), (Collation::CaseInsensitive, "a,B,c,D", "c,D")] {
        let api = TableApi::start().unwrap();
        api.configure(|s| s.collation = collation).unwrap();
        let row = |id: &str| Fields::from([("sys_id", id), ("sys_updated_on", "2026-01-01 00:00:00")]);
        api.load("incident", ["a", "B", "c", "D"].map(row).into()).unwrap();
        let ids = |query: &str| incidents(&api, &[("sysparm_query", query)]).column("sys_id").join(",");
        assert_eq!(ids(IN_ORDER), expected);
        assert_eq!(ids("sys_updated_on=2026-01-01 00:00:00^sys_id>B^ORDERBYsys_id"), after);
        assert_eq!(ids("sys_id>B^ORDERBYsys_id"), after);
    }
}

#[test]
fn rows_without_a_timestamp_are_neither_before_nor_after_one() {
    let api = TableApi::start().unwrap();
    api.load("incident", vec![Fields::from([("number", "x"), ("sys_updated_on", "")])]).unwrap();
    for query in ["sys_updated_on<2026-01-01 00:00:00", "sys_updated_on<=2026-01-01 00:00:00^ORDERBYsys_updated_on"] {
        assert_eq!(selected(&api, query).concat(), "", "{query}");
    }
    assert_eq!(selected(&api, "sys_updated_onISEMPTY").concat(), "x");
}

/// A condition on (timestamp, identity, priority), as text and as a judgement of a row that knows nothing of the grammar.
type Judged = (String, Box<dyn Fn(&(String, String, i64)) -> bool>);

fn condition(random: &mut crate::table_api::random::Random) -> Judged {
    let stamp = format!("2026-01-01 00:00:{:02}", random.below(20));
    let id = format!("{:02}", random.below(100));
    let priority = random.below(4) as i64;
    match random.below(11) {
        0 => (format!("sys_updated_on>{stamp}"), Box::new(move |row| row.0 > stamp)),
        1 => (format!("sys_updated_on>={stamp}"), Box::new(move |row| row.0 >= stamp)),
        2 => (format!("sys_updated_on<{stamp}"), Box::new(move |row| row.0 < stamp)),
        3 => (format!("sys_updated_on<={stamp}"), Box::new(move |row| row.0 <= stamp)),
        4 | 5 => (format!("sys_updated_on={stamp}"), Box::new(move |row| row.0 == stamp)),
        6 => (format!("sys_id>{id}"), Box::new(move |row| row.1 > id)),
        7 => (format!("sys_id<={id}"), Box::new(move |row| row.1 <= id)),
        8 => (format!("sys_id={id}"), Box::new(move |row| row.1 == id)),
        9 => (format!("priority={priority}"), Box::new(move |row| row.2 == priority)),
        _ => (format!("priority={priority}^ORsys_id<{id}"), Box::new(move |row| row.2 == priority || row.1 < id)),
    }
}

#[test]
fn pages_read_off_an_index_hold_what_a_scan_of_the_rows_would() {
    let mut random = crate::table_api::random::Random::new(7);
    let api = TableApi::start().unwrap();
    let rows: Vec<(String, String, i64)> = (0..100)
        .map(|n| {
            let stamp = format!("2026-01-01 00:00:{:02}", random.below(20));
            (stamp, format!("{n:02}"), random.below(4) as i64)
        })
        .collect();
    let fields = |row: &(String, String, i64)| {
        let (stamp, id, priority) = row.clone();
        Fields::from([("sys_updated_on", stamp), ("sys_id", id), ("priority", priority.to_string())])
    };
    api.load("incident", rows.iter().map(fields).collect()).unwrap();
    for _ in 0..400 {
        let group = |random: &mut _| (0..3).map(|_| condition(random)).collect::<Vec<Judged>>();
        let groups: Vec<Vec<Judged>> = (0..=random.below(2)).map(|_| group(&mut random)).collect();
        let kept = 1 + random.below(3);
        let text = |group: &Vec<Judged>| group.iter().take(kept).map(|c| c.0.clone()).collect::<Vec<_>>().join("^");
        let query = groups.iter().map(text).collect::<Vec<_>>().join("^NQ");
        let passes = |row: &&(String, String, i64)| groups.iter().any(|group| group.iter().take(kept).all(|condition| condition.1(row)));
        let mut expected: Vec<_> = rows.iter().filter(passes).collect();
        expected.sort();
        let (limit, offset) = (1 + random.below(30), random.below(10));
        for order in [IN_ORDER, "ORDERBYDESCsys_updated_on^ORDERBYDESCsys_id", "ORDERBYsys_id"] {
            let mut expected: Vec<&str> = expected.iter().map(|row| row.1.as_str()).collect();
            match order {
                IN_ORDER => {}
                "ORDERBYsys_id" => expected.sort(),
                _ => expected.reverse(),
            }
            let page: Vec<&str> = expected.iter().skip(offset).take(limit).copied().collect();
            let reply = incidents(
                &api,
                &[
                    ("sysparm_query", &format!("{query}^{order}")),
                    ("sysparm_limit", &limit.to_string()),
                    ("sysparm_offset", &offset.to_string()),
                ],
            );
            assert_eq!(reply.column("sys_id"), page, "{query}");
            assert_eq!(reply.total(), Some(expected.len() as u64), "{query}");
            let more = expected.len() > offset + limit;
            let next = reply.header("link").is_some_and(|links| links.contains("\"next\""));
            assert_eq!(next, more, "{query}");
        }
    }
}
