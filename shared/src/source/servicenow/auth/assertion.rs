//! The assertion of the grant `jwt_bearer`: a JWT, signed with RS256 (RFC 7515, RFC 7523).
//!
//! Instances check the signature by the certificate that `kid` names, `iss` and `aud` against the client's id, `exp`
//! against their own clock without any tolerance, and, unless that is switched off, that no `jti` comes twice.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use serde::Serialize;

use super::super::keys::Assertion;
use crate::host::Host;
use crate::tls::pem;

/// An assertion counts from a little before it is made: an instance whose clock is behind would find it premature.
const BACKDATED: Duration = Duration::from_secs(30);

/// An RSA private key.
#[derive(Clone)]
pub struct SigningKey(Arc<RsaKeyPair>);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey([secret])")
    }
}

impl SigningKey {
    /// Reads a key in PEM: PKCS #8 or PKCS #1, from 2048 bits, unencrypted.
    ///
    /// # Errors
    /// What is wrong with it, without a character of it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let sections = pem::sections(text)?;
        let Some(section) = sections.iter().find(|section| section.label.ends_with("PRIVATE KEY")) else {
            return Err("holds no private key in PEM".into());
        };
        let key = match section.label.as_str() {
            "PRIVATE KEY" => RsaKeyPair::from_pkcs8(&section.der),
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(&section.der),
            "ENCRYPTED PRIVATE KEY" => return Err("is encrypted; `openssl pkey` writes it without a password".into()),
            _ => return Err("is no RSA key; the signature is RS256".into()),
        };
        key.map(|key| Self(Arc::new(key))).map_err(|error| format!("is no RSA private key that can sign ({error})"))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut signature = vec![0; self.0.public_modulus_len()];
        // The padding of PKCS #1 v1.5 is not random; the interface asks for a source all the same.
        let signed = self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature);
        signed.map(|()| signature).map_err(|_| "the assertion cannot be signed with snow.oauth.jwt.private.key".into())
    }
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    typ: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
    jti: String,
}

/// A new assertion, valid from now on.
///
/// # Errors
/// The key does not sign.
pub(super) fn assertion(settings: &Assertion, host: &Host) -> Result<SecretString, String> {
    let now = host.now_ms().div_euclid(1000);
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    let header = Header { alg: "RS256", typ: "JWT", kid: settings.key_id.as_deref() };
    let claims = Claims {
        iss: &settings.issuer,
        sub: &settings.subject,
        aud: &settings.audience,
        iat: now.saturating_sub(seconds(BACKDATED)),
        exp: now.saturating_add(seconds(settings.lifetime)),
        jti: host.nonce(),
    };
    let part = |json: serde_json::Result<Vec<u8>>| URL_SAFE_NO_PAD.encode(json.expect("texts and numbers are representable in JSON"));
    let message = format!("{}.{}", part(serde_json::to_vec(&header)), part(serde_json::to_vec(&claims)));
    let signature = settings.key.sign(message.as_bytes())?;
    Ok(SecretString::from(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::host::ManualClock;

    macro_rules! file {
        ($name:literal) => {
            include_str!(concat!("../../../../../tests/testbed/data/certificates/", $name))
        };
    }

    fn settings(key: &str) -> Assertion {
        Assertion {
            key: SigningKey::parse(key).expect("a key"),
            key_id: Some("kid-1".into()),
            issuer: "iss-1".into(),
            subject: "sweep@example.com".into(),
            audience: "aud-1".into(),
            lifetime: Duration::from_secs(300),
        }
    }

    fn decoded(part: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON")
    }

    #[test]
    fn an_assertion_names_client_user_audience_key_and_time_and_never_repeats_its_id() {
        let host = Host::with_clock(ManualClock::at(1_700_000_000_999));
        let settings = settings(file!("signing.key"));
        let texts = [assertion(&settings, &host), assertion(&settings, &host)].map(|made| made.expect("signed"));
        let parts: Vec<&str> = texts[0].expose_secret().split('.').collect();
        assert_eq!(decoded(parts[0]), json!({"alg": "RS256", "typ": "JWT", "kid": "kid-1"}));
        let claims = decoded(parts[1]);
        let known = json!({"iss": "iss-1", "sub": "sweep@example.com", "aud": "aud-1", "iat": 1_699_999_970, "exp": 1_700_000_300});
        for (name, value) in known.as_object().expect("a map") {
            assert_eq!(&claims[name], value);
        }
        let other = decoded(texts[1].expose_secret().split('.').nth(1).expect("claims"));
        assert_ne!(claims["jti"], other["jti"]);
    }

    #[test]
    fn the_signature_is_the_one_that_openssl_makes() {
        // printf header.claims | openssl dgst -sha256 -sign signing.key | base64: the padding of RS256 is not random.
        let expected = file!("signed.txt").trim();
        for key in [file!("signing.key"), file!("signing-pkcs1.key")] {
            let signature = SigningKey::parse(key).expect("a key").sign(b"header.claims").expect("signed");
            assert_eq!(base64::engine::general_purpose::STANDARD.encode(signature), expected);
        }
    }

    #[test]
    fn a_key_that_cannot_sign_is_told_apart_and_never_quoted() {
        for (text, words) in [
            ("hunter2", "no private key"),
            (file!("signing-public.pem"), "no private key"),
            (file!("authority.pem"), "no private key"),
            (file!("client.pem"), "no RSA private key"),
            (file!("client-encrypted.pem"), "is encrypted"),
            (file!("signing-small.key"), "no RSA private key that can sign"),
        ] {
            let error = SigningKey::parse(text).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(format!("{:?}", SigningKey::parse(file!("signing.key")).expect("a key")), "SigningKey([secret])");
    }
}
