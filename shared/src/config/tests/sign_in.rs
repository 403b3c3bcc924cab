use super::Dir;
use crate::source::servicenow::keys::{Auth, Grant, ServiceNow};
use crate::tls::Place;

const KEY: &str = include_str!("../../../../tests/testbed/data/certificates/signing.key");

/// The document with these changes; the user of the base document goes where none is wanted.
fn document(changes: &[(&str, &str)]) -> Dir {
    Dir::new().servicenow("snow", changes)
}

const OAUTH: [(&str, &str); 5] = [
    ("snow.auth.type", "oauth2"),
    ("snow.auth.username", ""),
    ("snow.auth.password", ""),
    ("snow.oauth.client.id", "cid"),
    ("snow.oauth.client.secret", "${env:S}"),
];

fn with<'a>(base: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    base.iter().chain(more).copied().collect()
}

#[test]
fn what_a_way_to_sign_in_needs_is_asked_for_together_with_all_other_faults() {
    for (changes, missing) in [
        (vec![("snow.auth.username", ""), ("snow.auth.password", "")], vec!["snow.auth.password", "snow.auth.username"]),
        (vec![("snow.auth.type", "api_key")], vec!["snow.auth.api.key"]),
        (vec![("snow.auth.type", "certificate")], vec!["snow.tls.keystore.path"]),
        (vec![("snow.auth.type", "oauth2")], vec!["snow.oauth.client.id", "snow.oauth.client.secret"]),
        (with(&OAUTH, &[("snow.oauth.grant.type", "password")]), vec!["snow.auth.password", "snow.auth.username"]),
        (with(&OAUTH, &[("snow.oauth.grant.type", "refresh_token")]), vec!["snow.oauth.refresh.token"]),
        (
            with(&OAUTH, &[("snow.oauth.grant.type", "jwt_bearer"), ("snow.oauth.client.id", "")]),
            vec!["snow.oauth.client.id", "snow.oauth.jwt.private.key", "snow.oauth.jwt.subject"],
        ),
    ] {
        let faults = document(&with(&changes, &[("snow.source.batch.size", "0")])).load().expect_err("at fault").faults;
        let mut found: Vec<&str> = faults.iter().filter_map(|fault| fault.key.as_deref()).collect();
        found.sort_unstable();
        let mut expected = missing;
        expected.push("snow.source.batch.size");
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn each_way_to_sign_in_is_read_into_the_settings() {
    let read = |changes: &[(&str, &str)]| {
        let documents = document(changes).load().unwrap_or_else(|faults| panic!("{faults}"));
        ServiceNow::read(&documents.connectors[0].values).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let oauth = with(&OAUTH, &[("snow.oauth.client.secret", "s")]);
    let nobody = [("snow.auth.username", ""), ("snow.auth.password", "")];
    let settings = read(&with(&nobody, &[("snow.auth.type", "api_key"), ("snow.auth.api.key", "now_abc")]));
    assert!(matches!(settings.auth, Auth::ApiKey { .. }));
    let certificate = [("snow.auth.type", "certificate"), ("snow.tls.keystore.path", "/c.pem"), ("snow.tls.keystore.type", "pem")];
    let settings = read(&with(&nobody, &certificate));
    assert!(matches!(settings.auth, Auth::Certificate));
    let store = settings.tls.keystore.unwrap();
    assert_eq!((store.key.as_str(), store.format.as_deref()), ("snow.tls.keystore.path", Some("PEM")));
    assert!(matches!(&store.place, Place::File(path) if path == "/c.pem"), "{:?}", store.place);
    let grant = |changes: &[(&str, &str)]| match read(changes).auth {
        Auth::Oauth(oauth) => oauth,
        other => panic!("{other:?}"),
    };
    let user = [("snow.oauth.grant.type", "password"), ("snow.auth.username", "u"), ("snow.auth.password", "p")];
    assert!(matches!(grant(&with(&oauth, &user)).grant, Grant::Password { .. }));
    let refresh = [("snow.oauth.grant.type", "refresh_token"), ("snow.oauth.refresh.token", "r")];
    assert!(matches!(grant(&with(&oauth, &refresh)).grant, Grant::RefreshToken { .. }));
    let jwt = [
        ("snow.oauth.grant.type", "jwt_bearer"),
        ("snow.oauth.client.secret", ""),
        ("snow.oauth.jwt.private.key", KEY),
        ("snow.oauth.jwt.subject", "sweep@example.com"),
    ];
    let client = grant(&with(&oauth, &jwt));
    assert!(client.client_secret.is_none());
    let Grant::JwtBearer(assertion) = client.grant else { panic!("{:?}", client.grant) };
    assert_eq!((assertion.issuer.as_str(), assertion.audience.as_str()), ("cid", "cid"), "both are the client by default");
    assert_eq!((assertion.subject.as_str(), assertion.lifetime.as_secs(), assertion.key_id), ("sweep@example.com", 300, None));
}

#[test]
fn a_default_of_the_store_type_contradicts_nothing() {
    let changes = [("snow.tls.truststore.path", "/t.pem")];
    let documents = document(&changes).load().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(documents.connectors[0].values.text("snow.tls.truststore.type"), Some("JKS"));
    let document = document(&with(&changes, &[("snow.auth.username", "u"), ("snow.auth.password", "p")])).load().unwrap();
    let settings = ServiceNow::read(&document.connectors[0].values).unwrap();
    assert_eq!(settings.tls.truststore.unwrap().format, None);
}

#[test]
fn a_key_that_another_way_to_sign_in_needs_is_warned_about() {
    let changes = with(&OAUTH, &[("snow.auth.username", "u"), ("snow.auth.api.key", "${env:K}"), ("snow.oauth.refresh.token", "${env:R}")]);
    let documents = document(&changes).load().unwrap_or_else(|faults| panic!("{faults}"));
    let text = documents.warnings.to_string();
    for key in ["snow.auth.username", "snow.auth.api.key", "snow.oauth.refresh.token"] {
        assert!(text.contains(key) && text.contains("has no effect with snow.auth.type=oauth2"), "{text}");
    }
    assert!(!text.contains("snow.oauth.client.id"), "{text}");
}

#[test]
fn a_secret_that_cannot_be_sent_or_sign_is_at_fault_and_not_shown() {
    for (key, changes) in [
        ("snow.auth.api.key", vec![("snow.auth.type", "api_key"), ("snow.auth.api.key", "hunter2 hunter2")]),
        (
            "snow.oauth.jwt.private.key",
            with(
                &OAUTH,
                &[("snow.oauth.grant.type", "jwt_bearer"), ("snow.oauth.jwt.private.key", "hunter2"), ("snow.oauth.jwt.subject", "u")],
            ),
        ),
    ] {
        let (found, value, message) = document(&changes).fault();
        assert_eq!((found.as_str(), value), (key, None));
        assert!(!message.contains("hunter2"), "{message}");
    }
    let (key, _, _) = document(&[("snow.http.user.agent", "Zürich")]).fault();
    assert_eq!(key, "snow.http.user.agent");
    let (key, _, message) = document(&[("snow.auth.username", "a:b")]).fault();
    assert!(key == "snow.auth.username" && message.contains("colon"), "{message}");
}

#[test]
fn a_secret_in_the_document_itself_is_warned_about() {
    let documents =
        document(&[("snow.auth.type", "api_key"), ("snow.auth.api.key", "now_abc")]).load().unwrap_or_else(|faults| panic!("{faults}"));
    let text = documents.warnings.to_string();
    assert!(text.contains("snow.auth.api.key") && text.contains("placeholder") && !text.contains("now_abc"), "{text}");
}

#[test]
fn a_client_certificate_needs_https() {
    let (key, _, message) = document(&[("snow.url", "http://acme"), ("snow.tls.keystore.path", "/c.pem")]).fault();
    assert!(key == "snow.tls.keystore.path" && message.contains("https"), "{message}");
}

#[test]
fn a_store_password_or_type_without_its_store_is_at_fault() {
    for which in ["truststore", "keystore"] {
        for part in ["password", "type"] {
            let (given, needed) = (format!("snow.tls.{which}.{part}"), format!("snow.tls.{which}.path"));
            let (key, _, message) = document(&[(&given, if part == "type" { "PEM" } else { "${env:P}" })]).fault();
            assert!(key == needed && message.contains(&given), "{message}");
        }
    }
}
