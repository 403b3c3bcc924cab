//! Signing in to a registry, and the connection below it.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tablesweep::sweep::Outcome;
use tablesweep_testbed::proxy::Action;
use tablesweep_testbed::schema_registry::{PATH, Secure};
use tablesweep_testbed::table_api::{ClientCertificate, Fields, Tls};

use super::Stand;

const REFUSED: &str = r#"{"error_code":401,"message":"User cannot access the resource."}"#;

fn unauthorized() -> Action {
    Action::Answer { status: 401, headers: Vec::new(), body: REFUSED.to_owned() }
}

fn basic(info: &str) -> String {
    format!("authorization: Basic {}\r\n", STANDARD.encode(info))
}

/// A file of the test's certificates.
fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testbed/data/certificates").join(name);
    path.to_str().expect("UTF-8").to_owned()
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[tokio::test]
async fn every_way_of_signing_in_sends_its_header() {
    let stand = Stand::new("sign-in").await;
    let carrying = stand.proxy.url().replace("http://", "http://me%40acme:p%3Aw@");
    for (settings, header) in [
        (&[("basic.auth.credentials.source", "USER_INFO"), ("basic.auth.user.info", "me:pass:word")][..], basic("me:pass:word")),
        (&[("basic.auth.credentials.source", "user_info"), ("schema.registry.basic.auth.user.info", "me:old")], basic("me:old")),
        (&[("schema.registry.url", &format!("{carrying}{PATH}"))], basic("me@acme:p:w")),
        (
            &[("bearer.auth.credentials.source", "STATIC_TOKEN"), ("bearer.auth.token", "a-token")],
            "authorization: Bearer a-token\r\n".to_owned(),
        ),
        // The original's trap: without a source nobody signs in.
        (&[("basic.auth.user.info", "me:unused")], String::new()),
    ] {
        let mut stand = Stand::new("sign-in").await;
        for (setting, value) in settings {
            let value = value.replace(&carrying, &stand.proxy.url().replace("http://", "http://me%40acme:p%3Aw@"));
            stand = stand.with(setting, value);
        }
        assert_eq!(stand.sweep().await.rows, 5);
        let carried = stand.proxy.carried();
        assert_eq!(carried.len(), 1);
        assert!(carried[0].contains(&header), "{header}");
        assert_eq!(carried[0].contains("authorization"), !header.is_empty());
    }
}

#[tokio::test]
async fn a_refused_login_is_tried_once_and_never_shown() {
    for (settings, words) in [
        (
            &[("basic.auth.credentials.source", "USER_INFO"), ("basic.auth.user.info", "me:hunter2-hunter2")][..],
            "Check basic.auth.user.info",
        ),
        (&[], "It wants a login"),
    ] {
        let mut stand = Stand::new("login").await;
        for (setting, value) in settings {
            stand = stand.with(setting, value);
        }
        stand.proxy.on("POST", 1.., unauthorized());
        let report = stand.sweep().await;
        let reason = report.reason.expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Registry.Unauthorized"));
        assert!(reason.message.contains(words) && !reason.message.contains("hunter2-hunter2"), "{}", reason.message);
        assert_eq!(stand.asked().len(), 1);
        stand.assert_untouched().await;
    }
}

#[tokio::test]
async fn a_rotated_credential_is_read_again_and_used_in_the_same_sweep() {
    let stand = Stand::new("rotated").await;
    let secrets = stand.laptop.path("registry.properties");
    let write = |info: &str| std::fs::write(&secrets, format!("info={info}\n")).expect("written");
    write("me:first");
    let placeholder = format!("${{file:{}:info}}", secrets.display());
    let stand = stand.with("basic.auth.credentials.source", "USER_INFO").with("basic.auth.user.info", placeholder);
    let process = stand.laptop.assembly(&stand.laptop.host);
    assert_eq!(stand.warm(&process).await.rows, 5);

    stand.proxy.on(basic("me:first").trim_end(), 1.., unauthorized());
    write("me:second");
    let row = Fields::from([("sys_updated_on", "2026-02-02 00:00:00"), ("u_new", "x")]);
    stand.laptop.api.insert("incident", row).expect("a row");
    let report = stand.warm(&process).await;
    assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 1), "{report:?}");
    let carried = stand.proxy.carried();
    assert_eq!(carried.len(), 3);
    assert!(carried[1].contains(&basic("me:first")) && carried[2].contains(&basic("me:second")));
}

/// A stand whose registry is behind TLS.
async fn secured(server: &str, clients: ClientCertificate) -> (Stand, Secure) {
    let stand = Stand::new("tls").await;
    let tls = Tls { server: text(server), authority: text("authority.pem"), clients };
    let secure = Secure::start(&tls, stand.proxy.address()).await.expect("a port");
    let stand = stand.with("schema.registry.url", format!("https://localhost:{}{PATH}", secure.port())).with("max.retries", "0");
    (stand, secure)
}

#[tokio::test]
async fn a_registrys_authority_is_trusted_from_a_file_or_from_the_document() {
    for (setting, value) in [
        ("schema.registry.ssl.truststore.location", file("authority.pem")),
        ("schema.registry.ssl.truststore.certificates", text("authority.pem")),
        ("schema.registry.ssl.truststore.certificates", text("authority.pem").replace('\n', "\\n")),
    ] {
        let (stand, _secure) = secured("server.pem", ClientCertificate::None).await;
        let stand = stand.with(setting, value).with("schema.registry.ssl.truststore.type", "PEM");
        let report = stand.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
    }
}

#[tokio::test]
async fn what_is_not_trusted_is_refused_with_the_key_that_mends_it() {
    let trusted = [("schema.registry.ssl.truststore.location", file("authority.pem"))];
    for (server, clients, settings, words) in [
        ("server.pem", ClientCertificate::None, &[][..], "value.converter.schema.registry.ssl.truststore.location"),
        ("expired-server.pem", ClientCertificate::None, &trusted, "has expired"),
        ("elsewhere-server.pem", ClientCertificate::None, &trusted, "Set value.converter.schema.registry.url to a name"),
        ("server.pem", ClientCertificate::Required, &trusted, "value.converter.schema.registry.ssl.keystore.location"),
    ] {
        let (mut stand, _secure) = secured(server, clients).await;
        for (setting, value) in settings {
            stand = stand.with(setting, value);
        }
        let report = stand.sweep().await;
        let reason = report.reason.expect("a reason");
        assert_eq!((report.outcome, reason.code.as_str()), (Outcome::Parked, "Registry.Tls"), "{server}: {}", reason.message);
        assert!(reason.message.contains(words), "{}", reason.message);
        stand.assert_untouched().await;
    }
}

#[tokio::test]
async fn a_client_certificate_is_shown_from_a_file_or_from_the_document() {
    let pem = text("client.pem");
    let key = format!("-----BEGIN {}", pem.split("-----BEGIN ").find(|part| part.contains("PRIVATE KEY")).expect("a key"));
    for settings in [
        vec![("schema.registry.ssl.keystore.location", file("client.pem"))],
        vec![
            ("schema.registry.ssl.keystore.location", file("client-encrypted.pem")),
            ("schema.registry.ssl.key.password", "changeit".to_owned()),
        ],
        vec![
            ("schema.registry.ssl.keystore.location", file("client.p12")),
            ("schema.registry.ssl.keystore.password", "changeit".to_owned()),
        ],
        vec![
            ("schema.registry.ssl.keystore.type", "PEM".to_owned()),
            ("schema.registry.ssl.keystore.key", key.clone()),
            ("schema.registry.ssl.keystore.certificate.chain", pem.replace(&key, "")),
        ],
    ] {
        let (stand, _secure) = secured("server.pem", ClientCertificate::Required).await;
        let mut stand = stand.with("schema.registry.ssl.truststore.location", file("authority.pem"));
        for (setting, value) in settings {
            stand = stand.with(setting, value);
        }
        let report = stand.sweep().await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{report:?}");
    }
}

#[tokio::test]
async fn rotated_certificates_are_read_again_and_used_in_the_same_sweep() {
    let key_of = |pem: &str| format!("-----BEGIN {}", pem.split("-----BEGIN ").find(|part| part.contains("PRIVATE KEY")).expect("a key"));
    let content = |client: &str, authority: &str| {
        let (client, key) = (text(client), key_of(&text(client)));
        serde_json::json!({"key": key, "chain": client.replace(&key, ""), "authority": text(authority)}).to_string()
    };
    for (client, authority) in [("stranger.pem", "authority.pem"), ("client.pem", "other-authority.pem")] {
        let (stand, _secure) = secured("server.pem", ClientCertificate::Required).await;
        let secrets = stand.laptop.path("certificates.json");
        let placeholder = |entry: &str| format!("${{file:{}:{entry}}}", secrets.display());
        std::fs::write(&secrets, content(client, authority)).expect("written");
        let stand = stand
            .with("schema.registry.ssl.truststore.type", "PEM")
            .with("schema.registry.ssl.truststore.certificates", placeholder("authority"))
            .with("schema.registry.ssl.keystore.type", "PEM")
            .with("schema.registry.ssl.keystore.key", placeholder("key"))
            .with("schema.registry.ssl.keystore.certificate.chain", placeholder("chain"));
        let process = stand.laptop.assembly(&stand.laptop.host);
        // Connected, and not yet asked.
        process.table("snow", "inc").await.expect("a table");
        std::fs::write(&secrets, content("client.pem", "authority.pem")).expect("written");
        let report = stand.warm(&process).await;
        assert_eq!((report.outcome, report.rows), (Outcome::CaughtUp, 5), "{client} {authority}: {report:?}");
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_named_with_its_key() {
    let stand = Stand::new("store").await.with("schema.registry.ssl.truststore.location", "/no/such/file.pem");
    let refused = stand.laptop.refused().await;
    let failure = &refused[0].failure;
    assert_eq!(failure.code, "Registry.CertificateStore");
    assert!(failure.message.contains("value.converter.schema.registry.ssl.truststore.location (/no/such/file.pem)"), "{failure}");
}
