//! Credentials and tokens.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::client::{Reply, get_with, numbered, send};
use crate::table_api::{Credentials, Effect, Fault, JwtSigner, TableApi};

fn guarded() -> TableApi {
    let api = numbered(1);
    let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
    api.set_credentials(Credentials {
        basic: pair("sweep", "pass:word"),
        oauth: pair("client", "s&cret"),
        api_key: Some("key-1".to_owned()),
        ..Credentials::default()
    });
    api.set_clock("2026-01-01 00:00:00").unwrap();
    api.freeze_clock();
    api
}

fn read(api: &TableApi, headers: &str) -> Reply {
    get_with(api, "/api/now/table/incident", &[], headers).unwrap()
}

fn token(api: &TableApi, pairs: &[(&str, &str)]) -> Reply {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let head = "POST /oauth_token.do HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded";
    send(api, head, &body).unwrap()
}

fn as_client<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [&[("client_id", "client"), ("client_secret", "s&cret")], more].concat()
}

fn bearer(api: &TableApi) -> String {
    let reply = token(api, &as_client(&[("grant_type", "client_credentials")]));
    format!("authorization: Bearer {}\n", reply.json()["access_token"].as_str().unwrap())
}

#[test]
fn each_kind_of_credentials_admits_and_anything_else_is_401() {
    let api = guarded();
    // sweep:pass:word
    assert_eq!(read(&api, "authorization: Basic c3dlZXA6cGFzczp3b3Jk\n").status, 200);
    assert_eq!(read(&api, "x-sn-apikey: key-1\n").status, 200);
    assert_eq!(read(&api, &bearer(&api)).status, 200);
    for wrong in ["", "authorization: Basic c3dlZXA6d3Jvbmc=\n", "x-sn-apikey: key-2\n", "authorization: Bearer x\n"] {
        let reply = read(&api, wrong);
        assert_eq!(reply.status, 401, "{wrong}");
        assert_eq!(
            reply.text(),
            r#"{"error":{"message":"User Not Authenticated","detail":"Required to provide Auth information"},"status":"failure"}"#
        );
    }
    let kinds: Vec<String> = api.reads("incident").into_iter().map(|entry| entry.auth).collect();
    assert_eq!(kinds, ["basic", "api_key", "bearer", "none", "basic", "api_key", "bearer"]);
}

#[test]
fn a_request_inside_the_lifetime_answers_the_current_token_with_what_is_left() {
    let api = guarded();
    let ask = || token(&api, &as_client(&[("grant_type", "client_credentials")])).json();
    let first = ask();
    assert_eq!((&first["expires_in"], &first["token_type"]), (&1800.into(), &"Bearer".into()));
    api.step_clock(1790);
    let again = ask();
    assert_eq!((&again["access_token"], &again["expires_in"]), (&first["access_token"], &10.into()));
    let old = bearer(&api);
    api.step_clock(10);
    assert_eq!(read(&api, &old).status, 401);
    assert_ne!(ask()["access_token"], first["access_token"]);
    assert_eq!(api.counters().tokens_issued, 2);
}

#[test]
fn a_token_dies_after_its_uses_or_when_it_is_revoked() {
    let api = guarded();
    api.configure(|s| s.token_uses = Some(3)).unwrap();
    let first = bearer(&api);
    let statuses: Vec<u16> = (0..4).map(|_| read(&api, &first).status).collect();
    assert_eq!(statuses, [200, 200, 200, 401]);
    let second = bearer(&api);
    assert_eq!(read(&api, &second).status, 200);
    api.revoke_tokens();
    assert_eq!(read(&api, &second).status, 401);
    assert_eq!(read(&api, &bearer(&api)).status, 200);
}

#[test]
fn the_password_grant_gives_a_refresh_token_that_can_be_used() {
    let api = guarded();
    let user = [("grant_type", "password"), ("username", "sweep"), ("password", "pass:word")];
    let given = token(&api, &as_client(&user)).json();
    let refresh = given["refresh_token"].as_str().unwrap();
    api.step_clock(1800);
    let renewed = token(&api, &as_client(&[("grant_type", "refresh_token"), ("refresh_token", refresh)])).json();
    let header = format!("authorization: Bearer {}\n", renewed["access_token"].as_str().unwrap());
    assert_eq!(read(&api, &header).status, 200);
}

#[test]
fn a_token_is_denied_with_the_body_of_an_instance() {
    let api = guarded();
    let denied = r#"{"error_description":"access_denied","error":"server_error"}"#;
    let wrong_secret = [("client_id", "client"), ("client_secret", "no"), ("grant_type", "client_credentials")];
    let wrong_user = [("grant_type", "password"), ("username", "sweep"), ("password", "no")];
    let wrong_refresh = [("grant_type", "refresh_token"), ("refresh_token", "")];
    for form in [wrong_secret.to_vec(), as_client(&wrong_user), as_client(&wrong_refresh), vec![]] {
        let reply = token(&api, &form);
        assert_eq!((reply.status, reply.text().as_str()), (401, denied), "{form:?}");
    }
    api.configure(|s| s.grants.retain(|grant| grant != "client_credentials")).unwrap();
    assert_eq!(token(&api, &as_client(&[("grant_type", "client_credentials")])).status, 401);
    let json = send(&api, "POST /oauth_token.do HTTP/1.1\r\ncontent-type: application/json", "{}").unwrap();
    assert_eq!(json.status, 401);
}

#[test]
fn no_secret_reaches_the_log() {
    let api = guarded();
    let header = bearer(&api);
    read(&api, &header);
    read(&api, "authorization: Basic c3dlZXA6cGFzczp3b3Jk\n");
    let log = serde_json::to_string(&api.log()).unwrap();
    let bearer = header.trim().rsplit(' ').next().unwrap();
    for secret in ["s&cret", "pass:word", "c3dlZXA6cGFzczp3b3Jk", bearer] {
        assert!(!log.contains(secret));
    }
    assert!(log.contains("client_credentials"));
}

#[test]
fn faults_can_be_aimed_at_the_token_alone() {
    let api = guarded();
    api.fault(Fault::status(503, "busy").on_token());
    api.fault(Fault::new(Effect::EmptyBody).on_token().skip(1));
    let ask = || token(&api, &as_client(&[("grant_type", "client_credentials")]));
    assert_eq!(read(&api, "x-sn-apikey: key-1\n").status, 200);
    assert_eq!(ask().status, 503);
    assert_eq!(ask().text(), "");
    assert_eq!(ask().status, 200);
    assert_eq!(api.counters().token_requests, 3);
}

#[test]
fn a_user_is_locked_out_after_wrong_passwords_in_a_row() {
    let api = guarded();
    api.configure(|s| s.lock_after = Some(2)).unwrap();
    let (right, wrong) = ("authorization: Basic c3dlZXA6cGFzczp3b3Jk\n", "authorization: Basic c3dlZXA6d3Jvbmc=\n");
    let ask = |headers: [&str; 5]| headers.map(|header| read(&api, header).status);
    assert_eq!(ask([wrong, right, wrong, right, wrong]), [401, 200, 401, 200, 401]);
    assert_eq!(ask([wrong, right, right, right, right]), [401; 5]);
    let user = [("grant_type", "password"), ("username", "sweep"), ("password", "pass:word")];
    assert_eq!(token(&api, &as_client(&user)).status, 401);
}

#[test]
fn a_refresh_token_that_rotates_is_good_once() {
    let api = guarded();
    api.configure(|s| s.refresh_tokens_rotate = true).unwrap();
    let user = [("grant_type", "password"), ("username", "sweep"), ("password", "pass:word")];
    let refresh = |reply: &Reply| reply.json()["refresh_token"].as_str().unwrap().to_owned();
    let first = refresh(&token(&api, &as_client(&user)));
    let ask = |text: &str| token(&api, &as_client(&[("grant_type", "refresh_token"), ("refresh_token", text)]));
    let second = refresh(&ask(&first));
    assert_ne!(first, second);
    assert_eq!((ask(&first).status, ask(&second).status), (401, 200));
}

/// An assertion of the test's key with these claims.
fn signed(header: &Value, claims: &Value) -> String {
    let pem = include_str!("../../../data/certificates/signing.key");
    let key = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap();
    let message = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature).unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[test]
fn an_assertion_is_checked_claim_by_claim_and_good_once() {
    let api = guarded();
    let signer = JwtSigner {
        public_key: include_str!("../../../data/certificates/signing-public.pem").to_owned(),
        key_id: Some("k1".to_owned()),
        user: "ada@example.com".to_owned(),
    };
    let oauth = Some(("client".to_owned(), "s&cret".to_owned()));
    api.set_credentials(Credentials { oauth, jwt: Some(signer), ..Credentials::default() });
    let now = 1_767_225_600; // 2026-01-01 00:00:00
    let header = json!({"alg": "RS256", "kid": "k1"});
    let claims = json!({"iss": "client", "aud": "client", "sub": "ada@example.com", "iat": now, "exp": now + 60, "jti": "1"});
    let ask = |assertion: &str| {
        let form = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("client_id", "client"), ("assertion", assertion)];
        token(&api, &form).status
    };
    let changed = |whole: &Value, name: &str, value: Value| {
        let mut whole = whole.clone();
        whole[name] = value;
        whole
    };
    for (name, value) in [
        ("iss", json!("other")),
        ("aud", json!("other")),
        ("sub", json!("bob@example.com")),
        ("exp", json!(now)),
        ("iat", json!(now + 1)),
        ("jti", json!(null)),
    ] {
        assert_eq!(ask(&signed(&header, &changed(&claims, name, value))), 401, "{name}");
    }
    for (name, value) in [("kid", json!("k2")), ("alg", json!("none"))] {
        assert_eq!(ask(&signed(&changed(&header, name, value), &claims)), 401, "{name}");
    }
    let good = signed(&header, &claims);
    let (message, _) = good.rsplit_once('.').unwrap();
    let (_, foreign) =
        signed(&header, &changed(&claims, "jti", json!("2"))).rsplit_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(ask(&format!("{message}.{foreign}")), 401, "another message's signature");
    assert_eq!((ask(&good), ask(&good)), (200, 401));
}
