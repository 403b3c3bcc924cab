use tablesweep::cursor::Position;
use tablesweep::sweep::Reason;

use super::*;

fn table(alias: &str) -> TableStatus {
    TableStatus {
        connector: "snow".into(),
        table: alias.into(),
        state: Activity::Active,
        reason: None,
        remark: None,
        since: None,
        next_try: None,
        failures: 0,
        failed_at: None,
        changed_query: false,
        phase: Some(Phase::Stream),
        cursor: Some(Position::new([("timestamp", Some("2026-01-01 00:00:04".to_owned())), ("sys_id", Some("9d38".to_owned()))])),
        swept_to: None,
        lag_seconds: Some(42),
        rows: 123_456,
        suppressed: 0,
        hidden: 0,
        late: 0,
        skipped: 0,
        last_rows: 7,
        last_rows_at: None,
        started_at: None,
        started_seconds: Some(21),
        page_size: None,
        leased: false,
        leased_until: None,
    }
}

fn shown_as(tables: Vec<TableStatus>, orphans: Vec<Orphan>, is_missing: bool) -> String {
    text(&StatusReport { store: "sqlite:x.db".into(), at: String::new(), tables, orphans }, is_missing)
}

#[test]
fn a_line_has_state_phase_cursor_lag_the_age_of_the_last_start_and_the_rows_of_all_sweeps_and_of_the_last() {
    let never = TableStatus {
        state: Activity::NeverSwept,
        phase: None,
        cursor: None,
        lag_seconds: None,
        started_seconds: None,
        rows: 0,
        last_rows: 0,
        ..table("new")
    };
    let text = shown_as(vec![table("inc"), never], vec![], false);
    let expected = "\
connector/table  state        phase   cursor               lag  started    rows  last
snow/inc         active       stream  2026-01-01 00:00:04  42s      21s  123456     7
snow/new         never swept  -       -                      -        -       0     0
";
    assert_eq!(text, expected);
}

#[test]
fn what_is_worth_knowing_of_a_table_stands_below_its_line() {
    let parked = TableStatus {
        state: Activity::Parked,
        reason: Some(Reason { code: "Source.Forbidden".into(), message: "no right to read".into() }),
        since: Some("2026-01-01T01:00:00Z".into()),
        failed_at: Some("2026-01-01T00:30:00Z".into()),
        next_try: Some("2026-01-01T02:00:00Z".into()),
        remark: Some("Source.CursorAhead".into()),
        leased: true,
        leased_until: Some("2026-01-01T01:30:00Z".into()),
        suppressed: 1,
        hidden: 2,
        late: 3,
        skipped: 4,
        page_size: Some(125),
        ..table("inc")
    };
    let text = shown_as(vec![parked], vec![], false);
    let notes: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
    let expected = [
        "Source.Forbidden since 2026-01-01T01:00:00Z: no right to read",
        "last failed 2026-01-01T00:30:00Z",
        "Source.CursorAhead: see this heading of docs/operations.md",
        "next scheduled try 2026-01-01T02:00:00Z; `tablesweep cursor resume` tries at the next tick",
        "a sweep is under way, its lease ends 2026-01-01T01:30:00Z",
        "1 suppressed, 2 hidden, 3 late, 4 skipped",
        "page size lowered to 125: a larger one was too slow or too large",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn a_sequence_too_wide_for_a_column_stands_below_the_line_whole() {
    let of = |digits: &str| TableStatus { cursor: Some(Position::new([("sequence", Some(digits.to_owned()))])), ..table("orders") };
    let (short, long) = ("9".repeat(19), "9".repeat(38));
    let text = shown_as(vec![of(&short)], vec![], false);
    assert!(text.contains(&format!("  {short}  ")) && !text.contains("see below"), "{text}");
    let text = shown_as(vec![of(&long)], vec![], false);
    assert!(text.contains("  see below  ") && text.contains(&format!("    cursor {long}\n")), "{text}");
}

#[test]
fn a_changed_query_is_told_until_the_new_one_was_swept() {
    let changed = TableStatus { changed_query: true, ..table("inc") };
    let never = TableStatus { state: Activity::NeverSwept, ..changed.clone() };
    assert!(shown_as(vec![never], vec![], false).contains("its query changed: the next sweep starts at start.timestamp"));
    assert!(!shown_as(vec![changed], vec![], false).contains("its query changed"));
}

#[test]
fn a_store_that_is_not_there_and_cursors_without_a_table_are_told_below() {
    let text = shown_as(vec![table("inc")], vec![], true);
    assert!(text.ends_with("\nsqlite:x.db does not exist yet: nothing was ever swept with it\n"), "{text}");
    let of = |why| Orphan { connector: "snow".into(), table: "old".into(), place: "p".into(), why, cursor: None, rows: 9 };
    for (why, said) in [
        (Why::NoDocument, "no document has this connector and alias"),
        (Why::ChangedQuery, "the query changed"),
        (Why::Moved, "the alias means another place now"),
        (Why::Unreadable, "it cannot be read"),
    ] {
        let text = shown_as(vec![table("inc")], vec![of(why)], false);
        let told = format!("\ncursors that no sweep goes on from:\n    snow/old at the beginning: {said} (p, 9 rows)\n");
        let how = "`tablesweep cursor remove --connector NAME --place PLACE` removes one\n";
        assert!(text.ends_with(&format!("{told}{how}")), "{text}");
    }
}
