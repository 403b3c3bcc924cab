//! Connections: what goes wrong at each stage, said with stage and numbers, tried again only where that may help.

use std::time::Duration;

use tablesweep::operate::Order;
use tablesweep::sweep::{Outcome, TableReport, refused_logins};
use tablesweep_testbed::tds::{self, Effect, Fault, Redirect, Server, ServerError, Stage};

use super::bed::{Bed, code};

fn message(report: &TableReport) -> String {
    report.reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default()
}

/// A bed with three rows delivered and two to come.
async fn bed() -> Bed {
    let bed = Bed::new();
    bed.insert(3);
    bed.sweep().await;
    bed.insert(2);
    bed.server.clear_log();
    bed
}

/// The next sweep delivers what is left.
async fn goes_on(bed: &Bed) {
    bed.server.clear_faults();
    let report = bed.sweep().await;
    assert_eq!(report.outcome, Outcome::CaughtUp, "{report:?}");
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn a_server_that_falls_silent_at_any_stage_ends_the_sweep_in_time_and_the_stage_is_named() {
    let host = tablesweep::host::Host::system();
    for (stage, named) in [
        (Stage::Accept, "stage handshake"),
        (Stage::Prelogin, "stage handshake"),
        (Stage::Login, "stage login"),
        (Stage::Statement, "stage statement"),
    ] {
        let mut bed = bed().await;
        bed.set("mssql.login.timeout.ms", 200);
        bed.set("mssql.query.timeout.ms", 200);
        bed.server.fault(Fault::new(Effect::Silence(stage)).always());
        let begun = host.monotonic();
        let report = bed.sweep().await;
        let took = host.monotonic() - begun;
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{stage:?}: {report:?}");
        assert!(message(&report).contains(named) && message(&report).contains("200 ms"), "{stage:?}: {}", message(&report));
        assert!(took < Duration::from_secs(3), "{stage:?} took {took:?}");
        goes_on(&bed).await;
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_reported_though_no_time_out_of_its_own_fits_the_invocation() {
    // Eight of these seconds are kept for the last page, and ten of silence are the server's doing.
    let sweep = async |stage: Stage, words: &'static str, named: &str| {
        let mut bed = bed().await;
        bed.set("mssql.login.timeout.ms", 60_000);
        bed.max_time = Some(Duration::from_secs(20));
        let fault = Fault::new(Effect::Silence(stage)).always();
        bed.server.fault(if stage == Stage::Statement { fault.containing(words) } else { fault });
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::Failed, Some("Source.Unavailable"), 0), "{named}: {report:?}");
        assert!(message(&report).contains(named) && message(&report).contains("the invocation had left"), "{}", message(&report));
        assert_eq!(bed.item().await.progress.page_size, None, "{named}: no row came, so no batch was too large");
        bed.max_time = None;
        goes_on(&bed).await;
    };
    tokio::join!(
        sweep(Stage::Prelogin, "", "stage handshake"),
        sweep(Stage::Login, "", "stage login"),
        sweep(Stage::Statement, "sys.schemas", "stage statement"),
        sweep(Stage::Statement, "select top", "stage statement"),
    );
}

#[tokio::test]
async fn a_short_invocation_that_was_cut_off_says_so_and_blames_neither_server_nor_batch() {
    let mut bed = bed().await;
    bed.max_time = Some(Duration::from_millis(9_500));
    for words in ["sys.schemas", "select top"] {
        bed.server.fault(Fault::new(Effect::Silence(Stage::Statement)).containing(words));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report), report.rows), (Outcome::More, Some("Source.BudgetSpent"), 0), "{words}: {report:?}");
        assert_eq!(bed.item().await.progress.page_size, None, "{words}");
    }
    bed.server.fault(Fault::new(Effect::SilenceAfterRows(1)).containing("select top"));
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::More, Some("Source.BudgetSpent")), "{report:?}");
    assert_eq!(bed.item().await.progress.page_size, Some(250), "rows came, and not all");
    // What was brought before the end is what counts.
    bed.insert(500);
    bed.server.fault(Fault::new(Effect::Silence(Stage::Statement)).containing("select top").skip(1));
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report), report.rows), (Outcome::More, None, 250), "{report:?}");
    bed.max_time = None;
    goes_on(&bed).await;
}

/// It found nothing out, so nothing that was known of the table is forgotten.
#[tokio::test]
async fn a_sweep_that_was_cut_before_it_brought_anything_leaves_the_table_as_it_stood() {
    let cut = async |bed: &mut Bed| {
        bed.max_time = Some(Duration::from_millis(9_500));
        bed.server.clear_faults();
        bed.server.fault(Fault::new(Effect::Silence(Stage::Statement)).always());
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::More, Some("Source.BudgetSpent")), "{report:?}");
        bed.server.clear_faults();
        bed.max_time = None;
    };
    let waiting = async {
        let mut bed = bed().await;
        bed.run("ALTER TABLE dbo.orders ADD extra int NULL");
        assert_eq!(bed.sweep().await.outcome, Outcome::Paused);
        let before = bed.item().await.standing;
        cut(&mut bed).await;
        assert_eq!(bed.item().await.standing, before);
        let again = bed.sweep().await;
        assert_eq!((again.outcome, again.tried), (Outcome::Paused, false), "told already: {again:?}");
    };
    let parked = async {
        let mut bed = bed().await;
        bed.server.fault(Fault::new(Effect::Error(ServerError::new(229, "SELECT was denied"))).always());
        assert_eq!(bed.sweep().await.outcome, Outcome::Parked);
        let before = bed.item().await.standing;
        cut(&mut bed).await;
        assert_eq!(bed.item().await.standing, before);
    };
    let failing = async {
        let mut bed = bed().await;
        bed.server.fault(Fault::new(Effect::Close(Stage::Login)).always());
        assert_eq!(bed.sweep().await.outcome, Outcome::Failed);
        let before = bed.item().await.progress.failed();
        assert_eq!(before.as_ref().map(|failed| failed.times), Some(1));
        cut(&mut bed).await;
        assert_eq!(bed.item().await.progress.failed(), before);
        goes_on(&bed).await;
        assert_eq!(bed.item().await.progress.failed(), None);
    };
    tokio::join!(waiting, parked, failing);
}

#[tokio::test]
async fn a_failure_that_is_tried_again_is_not_hidden_by_the_end_of_the_invocation() {
    let mut bed = bed().await;
    bed.max_time = Some(Duration::from_millis(9_500));
    bed.server.fault(Fault::new(Effect::Close(Stage::Login)));
    bed.server.fault(Fault::new(Effect::Silence(Stage::Statement)).always());
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{report:?}");
    assert!(message(&report).contains("stage login"), "{}", message(&report));
    bed.max_time = None;
    goes_on(&bed).await;
}

#[tokio::test]
async fn a_question_without_an_answer_is_not_taken_for_a_batch_that_is_too_large() {
    for words in ["sys.schemas", "select top"] {
        let mut bed = bed().await;
        bed.set("mssql.query.timeout.ms", 200);
        bed.server.fault(Fault::new(Effect::Silence(Stage::Statement)).containing(words).always());
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{words}: {report:?}");
        assert_eq!(bed.server.log().len(), if words == "select top" { 2 } else { 1 }, "{words}: asked once");
        assert_eq!(bed.item().await.progress.page_size, None, "{words}");
        goes_on(&bed).await;
    }
}

#[tokio::test]
async fn every_statement_says_how_long_it_waits_for_locks() {
    let bed = bed().await.with("mssql.audit.interval.ms", 1_000).with("mssql.query.timeout.ms", 9_000);
    for _ in 0..2 {
        bed.sweep().await;
        tokio::time::sleep(Duration::from_millis(1_050)).await;
    }
    let log = bed.server.log();
    for words in ["sys.schemas", "SELECT TOP", "SELECT MAX", "SELECT COUNT_BIG"] {
        assert!(log.iter().any(|entry| entry.text.contains(words)), "{words} in {log:#?}");
    }
    assert!(log.iter().all(|entry| entry.text.starts_with("SET LOCK_TIMEOUT 5000; ")), "less than the time-out: {log:#?}");
}

#[tokio::test]
async fn an_answer_that_trickles_is_bounded_as_a_whole_and_asked_for_in_smaller_batches() {
    let mut bed = bed().await;
    bed.set("mssql.query.timeout.ms", 250);
    bed.insert(60);
    // Every row comes in time, and all of them do not.
    for row in 1..20 {
        bed.server.fault(Fault::new(Effect::DelayAfterRows(row, Duration::from_millis(60))).containing("select top").always());
    }
    let report = bed.sweep().await;
    assert_eq!(code(&report), Some("Source.Unavailable"), "{report:?}");
    assert!(bed.item().await.progress.page_size.is_some_and(|rows| rows < 500), "a smaller batch next time");
    goes_on(&bed).await;
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_anew_three_times_at_most() {
    for stage in [Stage::Accept, Stage::Prelogin, Stage::Login, Stage::Statement] {
        let bed = bed().await;
        bed.server.fault(Fault::new(Effect::Close(stage)));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{stage:?}: once is not even noticed: {report:?}");
        let bed = self::bed().await;
        let before = bed.server.connections().opened;
        bed.server.fault(Fault::new(Effect::Close(stage)).always());
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{stage:?}: {report:?}");
        let opened = bed.server.connections().opened - before;
        assert!((3..=6).contains(&opened), "{stage:?}: {opened} connections");
        goes_on(&bed).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_delivers_no_row_twice_and_loses_none() {
    let bed = bed().await;
    bed.sweep().await;
    // Every answer with two rows is as long as this one.
    let whole = bed.batches()[0].bytes;
    for bytes in [1, 7, 8, 9, whole / 4, whole / 3, whole / 2, whole * 2 / 3, whole * 3 / 4, whole - 13, whole - 1] {
        bed.insert(2);
        bed.server.clear_log();
        bed.server.fault(Fault::new(Effect::Cut(bytes)).containing("select top"));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{bytes} of {whole}: {report:?}");
        let sent: Vec<usize> = bed.batches().iter().map(|entry| entry.bytes).collect();
        assert_eq!(sent, [bytes, whole], "it was cut there, and asked for again");
    }
    assert_eq!(bed.keys(), bed.expected());
}

#[tokio::test]
async fn an_error_behind_rows_drops_the_rows_and_the_batch_is_read_again() {
    for number in [1205, 3947, 40197, 49918] {
        let bed = bed().await;
        let error = ServerError::new(number, "not now").class(13).state(45);
        bed.server.fault(Fault::new(Effect::ErrorAfterRows(1, error.clone())).containing("select top"));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
        assert_eq!(bed.keys(), bed.expected(), "none twice");
        bed.insert(1);
        bed.server.fault(Fault::new(Effect::ErrorAfterRows(1, error)).containing("select top").always());
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{report:?}");
        for part in [&*format!("error {number}"), "state 45", "class 13", "stage statement", "not now", "shop/orders", "dbo.orders"] {
            assert!(message(&report).contains(part), "{part} in {}", message(&report));
        }
        goes_on(&bed).await;
    }
}

#[tokio::test]
async fn an_error_that_only_a_person_can_mend_parks_the_table_with_what_the_server_said() {
    for (number, expected) in [(229, "Source.Forbidden"), (8655, "Source.Refused"), (102, "Source.Refused")] {
        let bed = bed().await;
        bed.server.fault(Fault::new(Effect::Error(ServerError::new(number, "that is so"))).containing("select top"));
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some(expected)), "{report:?}");
        assert!(message(&report).contains(&format!("error {number}")) && message(&report).contains("that is so"), "{}", message(&report));
        assert_eq!(bed.batches().len(), 1, "not tried again");
        goes_on(&bed).await;
    }
}

/// Three tables of one connector.
async fn three() -> Bed {
    let mut bed = Bed::new();
    bed.run("CREATE TABLE dbo.t1 (id int CONSTRAINT t1_id PRIMARY KEY); CREATE TABLE dbo.t2 (id int CONSTRAINT t2_id PRIMARY KEY)");
    bed.set("mssql.tables", "orders,t1,t2");
    for table in ["t1", "t2"] {
        bed.set(&format!("mssql.table.{table}.name"), format!("dbo.{table}"));
        bed.set(&format!("mssql.table.{table}.topic"), format!("shop.{table}"));
        bed.set(&format!("mssql.table.{table}.sequence.column"), "id");
    }
    bed
}

#[tokio::test]
async fn a_refused_login_is_sent_once_for_all_tables_and_not_again_before_its_time() {
    let mut bed = three().await;
    bed.set("mssql.password", "n0t-the-password");
    for scheduled in [false, true, true] {
        bed.scheduled = scheduled;
        let reports = bed.sweep_all().await;
        for report in &reports {
            assert_eq!((report.outcome, code(report)), (Outcome::Parked, Some("Source.Unauthorized")), "{report:?}");
            assert!(message(report).contains("error 18456") && message(report).contains("state"), "{}", message(report));
            assert!(!message(report).contains("n0t-the-password"), "{}", message(report));
        }
        assert_eq!(bed.server.attempts().len(), 1, "tried once for three tables and every tick");
    }
    bed.set("mssql.password", tds::PASSWORD);
    bed.scheduled = false;
    let reports = bed.sweep_all().await;
    assert!(reports.iter().all(|report| report.outcome == Outcome::CaughtUp), "by hand it is tried at once: {reports:?}");
    assert_eq!(bed.server.attempts().iter().filter(|attempt| attempt.error.is_some()).count(), 1);
}

#[tokio::test]
async fn a_login_is_refused_by_the_server_and_so_kept_once_for_all_its_databases() {
    let mut bed = Bed::new();
    bed.server.add_database("depot");
    bed.set("mssql.password", "n0t-the-password");
    let mut depot = bed.config.clone();
    depot["mssql.database"] = "depot".into();
    let document = serde_json::json!({ "name": "depot", "config": depot });
    std::fs::write(bed.documents().join("connectors/depot.json"), document.to_string()).expect("a document");
    bed.scheduled = true;
    // Each connector in an invocation of its own, as a plan has it.
    for connector in ["shop", "depot", "shop", "depot"] {
        bed.selection.connectors = vec![connector.to_owned()];
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.Unauthorized")), "{report:?}");
        assert_eq!(bed.server.attempts().len(), 1, "{connector}: tried once for both databases");
    }
    let server = format!("127.0.0.1:{}", bed.server.port());
    for instance in [format!("{server}/shop"), format!("{server}/depot")] {
        let refused = refused_logins(&*bed.store().await, &instance).await.expect("a store");
        assert_eq!(refused.len(), 1, "{instance}: whoever looks at either table is told");
    }
    // Resumed for a table of the one database, it is tried again for the other.
    bed.order(Order::Resume).await;
    bed.selection.connectors = vec!["shop".to_owned()];
    assert_eq!(bed.sweep().await.outcome, Outcome::Parked);
    assert_eq!(bed.server.attempts().len(), 2);
}

#[tokio::test]
async fn a_rotated_password_is_read_again_once_and_the_sweep_goes_on() {
    let mut bed = three().await;
    let secret = bed.path("secret.properties");
    std::fs::write(&secret, format!("password={}\n", tds::PASSWORD)).expect("written");
    bed.set("mssql.password", format!("${{file:{}:password}}", secret.display()));
    let assembly = bed.assembly();
    assert!(bed.sweep_with(&assembly).await.iter().all(|report| report.outcome == Outcome::CaughtUp));
    let renewed = "Another-password-2";
    let login = tds::Login { name: tds::USER.to_owned(), password: renewed.to_owned(), administrator: true, databases: Vec::new() };
    bed.server.add_login(login);
    std::fs::write(&secret, format!("password={renewed}\n")).expect("written");
    bed.server.clear_log();
    // An accepted login vouches for others for a while, so each table may find out by itself; within a sweep that is soon.
    let reports = bed.sweep_with(&assembly).await;
    assert!(reports.iter().all(|report| report.outcome == Outcome::CaughtUp), "{reports:?}");
    let refused = bed.server.attempts().iter().filter(|attempt| attempt.error.is_some()).count();
    assert!((1..=3).contains(&refused), "{refused} with the old password");
    for report in &reports {
        assert!(!format!("{report:?}").contains(renewed));
    }
}

#[tokio::test]
async fn a_database_that_never_could_be_opened_parks_the_table_and_is_found_again() {
    let bed = Bed::new();
    bed.insert(2);
    bed.server.set_offline(tds::DATABASE, true);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.NoDatabase")), "{report:?}");
    assert!(message(&report).contains("error 4060"), "{}", message(&report));
    bed.server.set_offline(tds::DATABASE, false);
    goes_on(&bed).await;
}

/// A failover says what a misspelt name says. The name was good before, so nobody is woken for it, and the next tick goes on.
#[tokio::test]
async fn a_database_that_goes_away_parks_nothing() {
    let bed = bed().await;
    bed.server.set_offline(tds::DATABASE, true);
    for _ in 0..2 {
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.NoDatabase")), "{report:?}");
        assert!(message(&report).contains("error 4060") && message(&report).contains("next tick"), "{}", message(&report));
    }
    bed.server.set_offline(tds::DATABASE, false);
    goes_on(&bed).await;
}

#[tokio::test]
async fn a_database_of_any_name_is_named_and_not_spliced_in() {
    for name in ["gssd-gsp_mes", "a;b]c=d", "drop'x"] {
        let mut bed = Bed::new();
        bed.server.add_database(name);
        bed.set("mssql.database", name);
        let report = bed.sweep().await;
        assert_eq!(code(&report), Some("Source.TableMissing"), "the other database has no such table: {report:?}");
        assert_eq!(bed.server.attempts()[0].request.database, name);
    }
}

#[tokio::test]
async fn a_redirect_is_followed_once_and_a_circle_is_an_error() {
    let bed = bed().await;
    let gateway = Server::start().expect("a gateway");
    let mut through = Bed::new();
    through.set("mssql.port", gateway.port());
    gateway.configure(|settings| {
        settings.redirect = Some(Redirect { host: "127.0.0.1".to_owned(), port: bed.server.port(), read_only: false })
    });
    let report = through.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
    assert_eq!(gateway.connections().open, 0, "the gateway is not held");
    let host = bed.server.attempts().last().map(|attempt| attempt.request.server.clone()).unwrap_or_default();
    assert!(host.starts_with("127.0.0.1"), "the login names the server that was asked for: {host}");
    let port = gateway.port();
    bed.server.configure(|settings| settings.redirect = Some(Redirect { host: "127.0.0.1".to_owned(), port, read_only: false }));
    bed.insert(1);
    let report = through.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.Redirected")), "{report:?}");
    assert!(message(&report).contains(&port.to_string()), "{}", message(&report));
}

#[tokio::test]
async fn a_server_without_encryption_is_refused_unless_it_is_said_to_be_good_enough() {
    let mut bed = bed().await;
    bed.set("mssql.encrypt", "mandatory");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.Tls")), "{report:?}");
    assert!(message(&report).contains("mssql.encrypt=optional"), "{}", message(&report));
    assert_eq!(bed.server.attempts(), [], "the login was not sent");
    bed.set("mssql.encrypt", "optional");
    goes_on(&bed).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_with_its_address_and_tried_by_the_next_tick() {
    let mut bed = bed().await;
    let port = bed.config["mssql.port"].clone();
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let elsewhere = Bed::new().with("mssql.port", free);
    let report = elsewhere.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{report:?}");
    assert!(message(&report).contains("stage connect") && message(&report).contains(&free.to_string()), "{}", message(&report));
    bed.set("mssql.port", port.as_str().unwrap_or_default());
    goes_on(&bed).await;
}

#[tokio::test]
async fn garbage_at_any_stage_is_an_error_and_no_panic() {
    for stage in [Stage::Accept, Stage::Prelogin, Stage::Login, Stage::Statement] {
        for bytes in [
            vec![0; 64],
            vec![0xff; 64],
            (0..=255).collect(),
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            vec![4, 1, 0xff, 0xff, 0, 0, 1, 0, 0x81, 0xff, 0xff],
        ] {
            let mut bed = bed().await;
            bed.set("mssql.login.timeout.ms", 300);
            bed.set("mssql.query.timeout.ms", 300);
            bed.server.fault(Fault::new(Effect::Garbage(stage, bytes.clone())).always());
            let report = bed.sweep().await;
            assert!(matches!(report.outcome, Outcome::Failed | Outcome::Parked), "{stage:?} {bytes:?}: {report:?}");
            assert_ne!(code(&report), Some("Sweep.Panicked"), "{stage:?} {bytes:?}: {report:?}");
            goes_on(&bed).await;
        }
    }
}
