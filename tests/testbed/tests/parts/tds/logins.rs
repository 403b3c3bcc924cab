//! Who gets in, and by which way.

use serde_json::json;
use tablesweep_testbed::tds::{Effect, Encryption, Fault, Identity, Login, PASSWORD, Server, ServerError, USER};

use super::client::{PYTHON, Settings, Tsql, python};

/// A server with a certificate for `localhost` and 127.0.0.1.
fn encrypting(encryption: Encryption) -> Server {
    let server = Server::start().expect("a server");
    server.configure(|settings| {
        settings.encryption = encryption;
        settings.identity = Some(Identity::of_pem(include_str!("../../../data/certificates/server.pem")));
    });
    server
}

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/certificates/authority.pem");

#[test]
fn a_login_says_who_it_is_and_what_it_wants() {
    let server = Server::start().expect("a server");
    let settings = Settings::of(&server).with("application", "sweeper").with("read_only", true).with("packet_size", 8192);
    let lines = python("pytds", &settings, &json!([["SELECT SUSER_SNAME(), DB_NAME(), APP_NAME()", []]]));
    assert_eq!(lines[0]["rows"], json!([["sa", "shop", "sweeper"]]), "{lines:?}");
    let attempt = server.attempts().remove(0);
    assert_eq!((attempt.request.user.as_str(), attempt.request.database.as_str()), (USER, "shop"));
    assert_eq!((attempt.request.application.as_str(), attempt.request.read_only), ("sweeper", true));
    assert_eq!((attempt.packet_size, attempt.encrypted, attempt.error), (8192, false, None));
    assert!(!format!("{attempt:?}").contains(PASSWORD), "a password is in no output");
    assert_eq!(server.refusals(), Vec::<String>::new());
}

#[test]
fn a_wrong_password_is_18456_and_a_database_that_cannot_be_opened_4060() {
    let server = Server::start().expect("a server");
    server.add_login(Login {
        name: "reader".to_owned(),
        password: "r".to_owned(),
        administrator: false,
        databases: vec!["other".to_owned()],
    });
    for client in PYTHON {
        let wrong = python(client, &Settings::of(&server).with("password", "wrong"), &json!([]));
        assert!(wrong[0]["message"].as_str().is_some_and(|message| message.contains("Login failed for user 'sa'")), "{client}: {wrong:?}");
    }
    // python-tds takes 4060 for something that passes, and tries again until its time is up.
    // A server says both that the database cannot be opened and that the login failed for it, and pymssql shows the last that is said.
    let missing = python("pymssql", &Settings::of(&server).with("database", "nowhere"), &json!([]));
    assert!(missing[0]["message"].as_str().is_some_and(|message| message.contains("Login failed for user 'sa'")), "{missing:?}");
    let plain = Tsql::of(&server, &["encryption = off"]);
    let printed = plain.run(USER, "wrong", &["SELECT 1"]);
    assert!(printed.contains("Msg 18456 (severity 14, state 1)"), "{printed}");
    let printed = plain.run("reader", "r", &["SELECT 1"]);
    for said in ["Msg 4060 (severity 11, state 1)", "Msg 18456 (severity 14, state 1)"] {
        assert!(printed.contains(said), "a database that is not this login's: {printed}");
    }
    server.fault(Fault::new(Effect::LoginError(ServerError::new(18_456, "Login failed for user 'sa'.").state(8).class(14))));
    let printed = plain.run(USER, PASSWORD, &["SELECT 1"]);
    assert!(printed.contains("Msg 18456 (severity 14, state 8)"), "{printed}");
    let errors: Vec<Option<i32>> = server.attempts().iter().map(|attempt| attempt.error).collect();
    assert_eq!(errors, [18_456, 18_456, 4060, 18_456, 4060, 18_456].map(Some));
}

#[test]
fn everything_is_encrypted_when_both_can() {
    for encryption in [Encryption::On, Encryption::Required, Encryption::Off] {
        let server = encrypting(encryption);
        let large = json!([["SELECT 1", []], ["SELECT REPLICATE(CAST('x' AS varchar(max)), 300000)", []]]);
        let read = python("pytds", &Settings::of(&server).with("tls", AUTHORITY), &large);
        assert_eq!(read.last().unwrap()["rows"][0][0].as_str().map(str::len), Some(300_000), "{encryption:?}: {:?}", read[0]);
        let read = python("pymssql", &Settings::of(&server).with("tls", AUTHORITY), &large);
        assert_eq!(read.last().unwrap()["rows"][0][0].as_str().map(str::len), Some(300_000), "{encryption:?}: {:?}", read[0]);
        let printed = Tsql::of(&server, &["encryption = require"]).run(USER, PASSWORD, &["SELECT CONNECTIONPROPERTY('encrypt_option')"]);
        assert!(printed.lines().any(|line| line == "TRUE"), "{encryption:?}: {printed}");
        for attempt in server.attempts() {
            assert!(attempt.encrypted && attempt.encrypted_after, "{encryption:?}: {attempt:?}");
        }
        assert_eq!(server.attempts().len(), 3);
    }
}

#[test]
fn the_login_alone_is_encrypted_when_neither_insists() {
    let server = encrypting(Encryption::Off);
    let settings = Settings::of(&server).with("tls", AUTHORITY).with("login_only", true);
    let read = python("pytds", &settings, &json!([["SELECT 1", []], ["SELECT 2", []]]));
    assert_eq!(read.last().unwrap()["rows"], json!([["2"]]), "{read:?}");
    let attempt = server.attempts().remove(0);
    assert!(attempt.encrypted && !attempt.encrypted_after, "{attempt:?}");
}

#[test]
fn a_client_that_does_not_trust_the_server_does_not_log_in() {
    let server = encrypting(Encryption::Required);
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/data/certificates/other-authority.pem");
    let read = python("pytds", &Settings::of(&server).with("tls", other), &json!([["SELECT 1", []]]));
    assert!(read[0]["message"].as_str().is_some_and(|message| message.contains("certificate verify failed")), "{read:?}");
    assert!(server.attempts().is_empty());
}

#[test]
fn a_server_without_tls_is_left_by_a_client_that_insists() {
    let server = Server::start().expect("a server");
    let printed = Tsql::of(&server, &["encryption = require"]).run(USER, PASSWORD, &["SELECT 1"]);
    assert!(server.attempts().is_empty(), "{printed}");
    let server = encrypting(Encryption::Required);
    let printed = Tsql::of(&server, &["encryption = off"]).run(USER, PASSWORD, &["SELECT 1"]);
    let encrypted = server.attempts().iter().all(|attempt| attempt.encrypted);
    assert!(encrypted, "a password has crossed the wire as it is: {printed}");
}
