//! TLS: whom the driver trusts, and for which name.

use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::tds::{Encryption, Identity, Redirect, Settings};

use super::super::bed::code;
use super::Bed;

macro_rules! certificate {
    ($name:literal) => {
        include_str!(concat!("../../../testbed/data/certificates/", $name, ".pem"))
    };
}

/// A bed whose server encrypts with this certificate; its authority is what the document trusts.
fn bed(certificate: &str, change: impl FnOnce(&mut Settings)) -> Bed {
    let bed = Bed::new();
    bed.insert(1);
    bed.server.configure(|settings| {
        settings.encryption = Encryption::On;
        settings.identity = Some(Identity::of_pem(certificate));
        change(settings);
    });
    std::fs::write(bed.path("authority.pem"), certificate!("authority")).expect("a file");
    let authority = bed.path("authority.pem").display().to_string();
    bed.with("mssql.encrypt", "mandatory").with("mssql.tls.ca.path", authority)
}

fn assert_untrusted(bed: &Bed, report: &TableReport) {
    assert_eq!((report.outcome, code(report), report.rows), (Outcome::Parked, Some("Source.Tls"), 0), "{report:?}");
    assert!(bed.server.attempts().is_empty(), "a password was sent to a server that is not trusted");
}

#[tokio::test]
async fn everything_is_encrypted_by_every_mode_that_says_so() {
    for mode in ["mandatory", "optional", "strict"] {
        let bed = bed(certificate!("server"), |settings| settings.strict = true).with("mssql.encrypt", mode);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{mode}: {report:?}");
        for attempt in bed.server.attempts() {
            assert!(attempt.encrypted && attempt.encrypted_after, "{mode}: {attempt:?}");
        }
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_of_another_authority_or_out_of_date_is_not_trusted() {
    for mode in ["mandatory", "strict"] {
        let elsewhere = bed(certificate!("elsewhere-server"), |settings| settings.strict = true).with("mssql.encrypt", mode);
        assert_untrusted(&elsewhere, &elsewhere.sweep().await);
        let expired = bed(certificate!("expired-server"), |settings| settings.strict = true).with("mssql.encrypt", mode);
        assert_untrusted(&expired, &expired.sweep().await);
        let stranger = bed(certificate!("server"), |settings| settings.strict = true).with("mssql.encrypt", mode);
        std::fs::write(stranger.path("authority.pem"), certificate!("other-authority")).expect("a file");
        assert_untrusted(&stranger, &stranger.sweep().await);
    }
}

#[tokio::test]
async fn a_certificate_is_taken_as_it_is_only_when_the_document_says_so() {
    let mut bed = bed(certificate!("elsewhere-server"), |_| {});
    bed.config.as_object_mut().expect("an object").remove("mssql.tls.ca.path");
    bed.set("mssql.trust.server.certificate", true);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
}

#[tokio::test]
async fn a_redirect_is_trusted_for_the_name_that_it_leads_to() {
    // https://github.com/denisenkom/go-mssqldb/issues/288
    for (certificate, trusted) in [(certificate!("server"), true), (certificate!("elsewhere-server"), false)] {
        let worker = bed(certificate, |_| {});
        let port = worker.server.port();
        let gateway = bed(certificate!("server"), |settings| {
            settings.redirect = Some(Redirect { host: "localhost".to_owned(), port, read_only: false });
        });
        let report = gateway.sweep().await;
        if trusted {
            assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
        } else {
            assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.Tls")), "{report:?}");
            assert!(worker.server.attempts().is_empty(), "a password was sent on");
        }
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_strict_is_told_apart_from_one_that_is_not_there() {
    let bed = bed(certificate!("server"), |_| {}).with("mssql.encrypt", "strict");
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "{report:?}");
    let reason = report.reason.map(|reason| reason.message).unwrap_or_default();
    for part in ["stage handshake", "SQL Server 2022", "mssql.encrypt=strict", "mandatory"] {
        assert!(reason.contains(part), "{part} in {reason}");
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let nobody = Bed::new().with("mssql.encrypt", "strict").with("mssql.port", free);
    let reason = nobody.sweep().await.reason.map(|reason| reason.message).unwrap_or_default();
    assert!(reason.contains("stage connect") && !reason.contains("2022"), "{reason}");
}
