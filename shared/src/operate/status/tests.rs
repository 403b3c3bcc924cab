use super::*;
use crate::cursor::memory::MemoryStore;
use crate::cursor::{Acquire, Change, Expect, Hold, Identity, Key, Parked, Progress, Waiting, Write};
use crate::operate::place::place;

const NOW: i64 = 1_800_000_000_000;

fn at(ms: i64) -> Position {
    let stamp = rfc3339(ms).replace('T', " ").replace('Z', "");
    Position::new([("timestamp", Some(stamp)), ("sys_id", Some(String::new()))])
}

async fn write(store: &MemoryStore, key: &Key, change: Change) -> Item {
    let id = crate::host::Host::system().nonce();
    store.write(key, &Write { id, change }).await.expect("written")
}

/// A store with one swept table; the lease is kept where there is no standing to release it with.
async fn swept(identity: Identity, progress: Progress, standing: Option<Standing>) -> MemoryStore {
    let (store, key) = (MemoryStore::new(), identity.key());
    write(&store, &key, Change::Create(identity)).await;
    let acquire = Acquire { owner: "o".into(), until_ms: NOW + 60_000, now_ms: NOW, scheduled: None };
    let item = write(&store, &key, Change::Acquire(acquire)).await;
    let hold = Hold { owner: "o".into(), revision: item.revision };
    match standing {
        Some(standing) => write(&store, &key, Change::Release(hold, progress, standing)).await,
        None => write(&store, &key, Change::Commit(hold, progress)).await,
    };
    store
}

async fn look(store: &MemoryStore, now_ms: i64) -> StatusReport {
    status(Some(store), "memory", &[place()], now_ms).await.expect("an answer")
}

fn own() -> Identity {
    place().identity().expect("all is known")
}

#[tokio::test]
async fn a_parked_table_shows_why_since_when_and_when_it_is_tried_again() {
    let parked = Parked::after(&Standing::Active, "Source.Forbidden", "c/inc: no access".into(), NOW - 5_000);
    let next = parked.next_try_ms;
    let store = swept(own(), Progress::default(), Some(Standing::Parked(parked))).await;
    let row = look(&store, NOW).await.tables.remove(0);
    assert_eq!(row.state, Activity::Parked);
    assert_eq!(row.reason, Some(Reason { code: "Source.Forbidden".into(), message: "c/inc: no access".into() }));
    assert_eq!((row.since, row.next_try), (Some(rfc3339(NOW - 5_000)), Some(rfc3339(next))));
}

#[tokio::test]
async fn a_cursor_of_a_connector_that_no_document_has_is_an_orphan() {
    let store = swept(own(), Progress::default(), Some(Standing::Active)).await;
    let gone = Identity { connector: "gone".into(), ..own() };
    write(&store, &gone.key(), Change::Create(gone)).await;
    let orphans = look(&store, NOW).await.orphans;
    let found: Vec<_> = orphans.iter().map(|orphan| (orphan.connector.as_str(), orphan.why)).collect();
    assert_eq!(found, [("gone", Why::NoDocument)]);
}

#[tokio::test]
async fn a_remark_of_the_source_is_shown() {
    let notes = [("remark".to_owned(), "Source.CursorAhead".to_owned())].into();
    let store = swept(own(), Progress { notes, ..Progress::default() }, Some(Standing::Active)).await;
    let row = look(&store, NOW).await.tables.remove(0);
    assert_eq!((row.state, row.remark.as_deref()), (Activity::Active, Some("Source.CursorAhead")));
}

#[tokio::test]
async fn a_lease_is_shown_until_its_end() {
    let store = swept(own(), Progress::default(), None).await;
    let row = look(&store, NOW).await.tables.remove(0);
    assert_eq!((row.leased, row.leased_until), (true, Some(rfc3339(NOW + 60_000))));
    let later = look(&store, NOW + 60_001).await.tables.remove(0);
    assert_eq!((later.leased, later.leased_until), (false, None));
}

#[tokio::test]
async fn a_table_that_is_caught_up_lags_from_what_was_swept_and_one_that_is_behind_from_its_cursor() {
    let behind = Progress { cursor: Some(at(NOW - 3_600_000)), swept_to_ms: Some(NOW - 9_000), ..Progress::default() };
    let there = Progress { phase: Phase::Stream, ..behind.clone() };
    let ahead = Progress { clock_difference_ms: Some(20_000), ..there.clone() };
    for (progress, lag) in [(behind, 3600), (there, 9), (ahead, 29)] {
        let store = swept(own(), progress, Some(Standing::Active)).await;
        assert_eq!(look(&store, NOW).await.tables[0].lag_seconds, Some(lag));
    }
}

#[tokio::test]
async fn a_cursor_without_a_table_is_an_orphan_and_says_why() {
    let cases = [
        (Identity { alias: "gone".into(), table: "gone".into(), ..own() }, Activity::NeverSwept, Why::NoDocument),
        (Identity { fingerprint: "f".into(), ..own() }, Activity::NeverSwept, Why::ChangedQuery),
        (Identity { instance: "dev.service-now.com".into(), ..own() }, Activity::Moved, Why::Moved),
    ];
    for (identity, state, why) in cases {
        let store = swept(identity, Progress::default(), Some(Standing::Active)).await;
        let report = look(&store, NOW).await;
        assert_eq!(report.tables[0].state, state);
        assert_eq!(report.orphans.iter().map(|orphan| orphan.why).collect::<Vec<_>>(), [why]);
        assert_eq!(report.tables[0].changed_query, why == Why::ChangedQuery);
    }
    assert_eq!(look(&swept(own(), Progress::default(), Some(Standing::Active)).await, NOW).await.orphans, []);
}

#[tokio::test]
async fn where_there_is_no_store_every_table_was_never_swept() {
    let report = status(None, "sqlite:x.db", &[place()], NOW).await.expect("an answer");
    assert_eq!((report.tables[0].state, report.tables[0].phase), (Activity::NeverSwept, None));
}

#[tokio::test]
async fn each_count_and_each_moment_is_its_own() {
    let last_rows_ms = NOW - 7_000;
    let counters = Counters { rows: 1, suppressed: 2, hidden: 3, late: 4, skipped: 5, last_rows: 6, last_rows_ms };
    let progress = Progress { counters, page_size: Some(7), swept_to_ms: Some(NOW - 8_000), ..Progress::default() };
    let row = look(&swept(own(), progress, Some(Standing::Active)).await, NOW).await.tables.remove(0);
    assert_eq!((row.rows, row.suppressed, row.hidden, row.late, row.skipped, row.last_rows), (1, 2, 3, 4, 5, 6));
    let moments = (row.last_rows_at, row.swept_to, row.started_at, row.page_size);
    assert_eq!(moments, (Some(rfc3339(last_rows_ms)), Some(rfc3339(NOW - 8_000)), Some(rfc3339(NOW)), Some(7)));
    let never = look(&swept(own(), Progress::default(), Some(Standing::Active)).await, NOW).await.tables.remove(0);
    assert_eq!((never.last_rows_at, never.swept_to, never.lag_seconds), (None, None, None));
}

#[tokio::test]
async fn a_table_that_waits_for_its_source_is_paused_by_the_sources_code() {
    let waiting = Waiting { code: "Source.SchemaChanged".into(), message: "c/inc: a column is new".into(), since_ms: NOW - 5_000 };
    let store = swept(own(), Progress::default(), Some(Standing::Waiting(waiting))).await;
    let row = look(&store, NOW).await.tables.remove(0);
    let reason = Reason { code: "Source.SchemaChanged".into(), message: "c/inc: a column is new".into() };
    assert_eq!((row.state, row.reason), (Activity::Paused, Some(reason)));
    assert_eq!((row.since, row.next_try), (Some(rfc3339(NOW - 5_000)), None), "nobody has to wait for a next try");
}

#[tokio::test]
async fn a_cursor_without_a_time_lags_from_what_was_swept_and_of_one_ahead_of_the_clock_it_is_not_known() {
    let number = Position::new([("sequence", Some("17".to_owned()))]);
    let behind = Progress { cursor: Some(number), swept_to_ms: Some(NOW - 9_000), ..Progress::default() };
    let ahead = Progress { cursor: Some(at(NOW + 3_600_000)), ..Progress::default() };
    for (progress, lag) in [(behind, Some(9)), (ahead, None)] {
        let store = swept(own(), progress, Some(Standing::Active)).await;
        assert_eq!(look(&store, NOW).await.tables[0].lag_seconds, lag);
    }
}

#[tokio::test]
async fn a_lease_that_lives_as_long_as_its_process_has_no_end_to_show() {
    let (store, key) = (MemoryStore::new(), own().key());
    write(&store, &key, Change::Create(own())).await;
    let acquire = Acquire { owner: "o".into(), until_ms: i64::MAX, now_ms: NOW, scheduled: None };
    write(&store, &key, Change::Acquire(acquire)).await;
    let row = look(&store, NOW).await.tables.remove(0);
    assert_eq!((row.leased, row.leased_until), (true, None));
}

#[tokio::test]
async fn a_table_under_a_new_alias_is_the_one_that_was_swept_and_its_cursor_is_no_orphan() {
    let store = swept(
        Identity { alias: "incidents".into(), ..own() },
        Progress { phase: Phase::Stream, ..Progress::default() },
        Some(Standing::Active),
    )
    .await;
    let report = look(&store, NOW).await;
    assert_eq!((report.tables[0].state, report.tables[0].phase, report.orphans), (Activity::Active, Some(Phase::Stream), vec![]));
}

#[tokio::test]
async fn failures_in_a_row_are_shown_with_their_code_and_since_when() {
    let first = Failed::after(None, "Sink.Timeout", NOW - 60_000);
    let failed = Failed::after(Some(&first), "Sink.Unreachable", NOW - 1_000);
    let store = swept(own(), Progress::default().with_failed(Some(&failed)), Some(Standing::Active)).await;
    let row = look(&store, NOW).await.tables.remove(0);
    assert_eq!((row.state, row.failures), (Activity::Failing, 2));
    assert!(row.reason.is_some_and(|reason| reason.code == "Sink.Unreachable" && reason.message.contains("2 sweeps")));
    assert_eq!((row.since, row.failed_at), (Some(rfc3339(NOW - 60_000)), Some(rfc3339(NOW - 1_000))));
    assert_eq!((row.started_at, row.started_seconds), (Some(rfc3339(NOW)), Some(0)));
}

#[tokio::test]
async fn a_cursor_that_cannot_be_read_is_one_bad_line_and_takes_no_other_away() {
    let store = swept(own(), Progress::default(), Some(Standing::Active)).await;
    let problem = Place { alias: "prb".into(), table: Some("problem".into()), fingerprint: Some("p".into()), ..place() };
    let other = problem.identity().expect("all is known");
    let gone = Identity { alias: "gone".into(), table: "gone".into(), ..own() };
    for identity in [other, gone.clone()] {
        let key = identity.key();
        write(&store, &key, Change::Create(identity)).await;
        store.set_format(&key, 99);
    }
    let report = status(Some(&store), "memory", &[place(), problem], NOW).await.expect("an answer");
    assert_eq!(report.tables.iter().map(|row| row.state).collect::<Vec<_>>(), [Activity::Active, Activity::Unreadable]);
    assert!(report.tables[1].reason.as_ref().is_some_and(|reason| reason.code == "Cursor.Format" && reason.message.contains("format 99")));
    let orphans: Vec<_> = report.orphans.iter().map(|orphan| (orphan.table.as_str(), orphan.place.as_str(), orphan.why)).collect();
    assert_eq!(orphans, [("gone", gone.key().place.as_str(), Why::Unreadable)]);
}

#[tokio::test]
async fn a_refused_login_of_the_instance_is_shown_for_its_tables_unless_they_are_held_themselves() {
    let refused = Parked::after(&Standing::Active, "Source.Unauthorized", "the login was refused".into(), NOW);
    let blob = serde_json::json!({ "parked": refused }).to_string();
    let paused = Standing::Paused(crate::cursor::Paused { reason: "r".into(), since_ms: NOW });
    for (standing, code, next_try) in
        [(Standing::Active, "Source.Unauthorized", Some(rfc3339(refused.next_try_ms))), (paused, "Cursor.Paused", None)]
    {
        let store = swept(own(), Progress::default(), Some(standing)).await;
        store.put_blob(&format!("@{}", own().instance), "login", blob.as_bytes(), Expect::Any, None).await.expect("kept");
        let row = look(&store, NOW).await.tables.remove(0);
        assert_eq!((row.reason.map(|reason| reason.code), row.next_try), (Some(code.to_owned()), next_try));
    }
}
