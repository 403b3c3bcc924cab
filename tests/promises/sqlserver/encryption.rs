//! Encryption: who is trusted, what is refused before a login is sent, and what a server without it may do.

use tablesweep::sweep::{Outcome, TableReport};
use tablesweep_testbed::tds::{Encryption, Identity, Redirect, Server, Settings};

use super::bed::{Bed, code};

fn message(report: &TableReport) -> String {
    report.reason.as_ref().map(|reason| reason.message.clone()).unwrap_or_default()
}

fn certificate(name: &str) -> String {
    let path = format!("{}/testbed/data/certificates/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn identity(name: &str) -> Identity {
    Identity::of_pem(&certificate(name))
}

/// A server with this certificate, and a document that trusts the test's authority.
fn bed(certificate_name: &str, encryption: Encryption) -> Bed {
    let bed = Bed::new().with("mssql.encrypt", "mandatory");
    let own = identity(certificate_name);
    bed.server.configure(|settings: &mut Settings| (settings.encryption, settings.identity) = (encryption, Some(own)));
    let path = bed.path("authority.pem");
    std::fs::write(&path, certificate("authority.pem")).expect("written");
    bed.insert(2);
    bed.with("mssql.tls.ca.path", path.display())
}

#[tokio::test]
async fn everything_is_encrypted_and_the_certificate_verified_whatever_the_server_would_do_by_itself() {
    for encryption in [Encryption::Off, Encryption::On, Encryption::Required] {
        for wanted in ["mandatory", "optional"] {
            let bed = bed("server.pem", encryption).with("mssql.encrypt", wanted);
            let report = bed.sweep().await;
            assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{encryption:?} {wanted}: {report:?}");
            assert!(
                bed.server.attempts().iter().all(|attempt| attempt.encrypted && attempt.encrypted_after),
                "{:?}",
                bed.server.attempts()
            );
        }
    }
}

#[tokio::test]
async fn a_server_with_encryption_costs_one_connection_and_one_that_has_it_now_is_not_answered_in_clear() {
    let bed = bed("server.pem", Encryption::Required).with("mssql.encrypt", "optional");
    let assembly = bed.assembly();
    let opened = bed.server.connections().opened;
    bed.sweep_with(&assembly).await;
    assert_eq!(bed.server.connections().opened - opened, 1);
    bed.server.configure(|settings: &mut Settings| settings.encryption = Encryption::NotSupported);
    bed.insert(1);
    assert_eq!(bed.sweep_with(&assembly).await[0].rows, 1, "it may be taken as it is");
    // Now it is remembered that it has none, and it wants some again.
    bed.server.configure(|settings: &mut Settings| settings.encryption = Encryption::Required);
    bed.insert(1);
    bed.server.clear_log();
    let report = bed.sweep_with(&assembly).await.remove(0);
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    let attempts = bed.server.attempts();
    assert!(!attempts.is_empty() && attempts.iter().all(|attempt| attempt.encrypted && attempt.encrypted_after), "{attempts:?}");
}

#[tokio::test]
async fn a_certificate_that_is_unknown_expired_or_another_servers_is_refused_before_the_login() {
    for name in ["stranger.pem", "expired-server.pem", "elsewhere-server.pem"] {
        let mut bed = bed(name, Encryption::On);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.Tls")), "{name}: {report:?}");
        assert!(
            message(&report).contains("stage handshake") && message(&report).contains("mssql.tls.ca.path"),
            "{name}: {}",
            message(&report)
        );
        assert_eq!(bed.server.attempts(), [], "{name}: the login was not sent");
        bed.config.as_object_mut().expect("a map").remove("mssql.tls.ca.path");
        bed.set("mssql.trust.server.certificate", "true");
        assert_eq!(bed.sweep().await.rows, 2, "{name}: unless any is good enough");
    }
}

#[tokio::test]
async fn strict_encryption_begins_with_the_first_byte() {
    let bed = bed("server.pem", Encryption::On).with("mssql.encrypt", "strict");
    bed.server.configure(|settings| settings.strict = true);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 2), "{report:?}");
    assert!(bed.server.attempts().iter().all(|attempt| attempt.encrypted && attempt.encrypted_after));
    bed.server.configure(|settings| settings.strict = false);
    let bed = bed.with("mssql.login.timeout.ms", 500);
    let report = bed.sweep().await;
    assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Source.Unavailable")), "an old server: {report:?}");
    assert!(message(&report).contains("mssql.encrypt=strict"), "{}", message(&report));
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_named_by_their_path() {
    let mut bed = bed("server.pem", Encryption::On);
    let key = bed.path("key.pem");
    std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").expect("written");
    let text = bed.path("text.pem");
    std::fs::write(&text, "not a certificate").expect("written");
    let (key, text) = (key.display().to_string(), text.display().to_string());
    for (path, problem) in
        [("/nowhere/authority.pem", "cannot be read"), (&*key, "holds no certificate"), (&*text, "neither PEM nor PKCS12")]
    {
        bed.set("mssql.tls.ca.path", path);
        let report = bed.sweep().await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Parked, Some("Source.CertificateStore")), "{report:?}");
        for part in ["mssql.tls.ca.path", path, problem] {
            assert!(message(&report).contains(part), "{part} in {}", message(&report));
        }
    }
    assert_eq!(bed.server.attempts().len(), 0, "nothing is contacted");
}

#[tokio::test]
async fn after_a_redirect_the_certificate_must_be_that_of_the_host_it_leads_to() {
    let bed = bed("elsewhere-server.pem", Encryption::On);
    let gateway = Server::start().expect("a gateway");
    let port = bed.server.port();
    let own = identity("server.pem");
    gateway.configure(|settings| {
        (settings.encryption, settings.identity) = (Encryption::On, Some(own));
        settings.redirect = Some(Redirect { host: "127.0.0.1".to_owned(), port, read_only: false });
    });
    let bed = bed.with("mssql.port", gateway.port());
    let report = bed.sweep().await;
    assert_eq!(code(&report), Some("Source.Tls"), "the gateway's name is not enough: {report:?}");
    let good = identity("server.pem");
    bed.server.configure(|settings| settings.identity = Some(good));
    assert_eq!(bed.sweep().await.rows, 2);
}
