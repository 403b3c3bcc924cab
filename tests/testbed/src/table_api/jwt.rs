//! The assertion of the grant `jwt_bearer`, checked as an instance checks it.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio_rustls::rustls::pki_types::SubjectPublicKeyInfoDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::settings::JwtSigner;

/// The name of the grant.
pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
}

/// What an assertion says.
#[derive(Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    aud: String,
    exp: i64,
    iat: Option<i64>,
    nbf: Option<i64>,
    pub jti: Option<String>,
}

/// The claims of an assertion of `client`, if it is good at this moment; the clock has no tolerance.
pub(super) fn verified(text: &str, signer: &JwtSigner, client: &str, now: i64) -> Option<Claims> {
    let (message, signature) = text.rsplit_once('.')?;
    let (header, claims) = message.split_once('.')?;
    let (header, claims): (Header, Claims) = (part(header)?, part(claims)?);
    let key = SubjectPublicKeyInfoDer::from_pem_slice(signer.public_key.as_bytes()).ok()?;
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.as_ref());
    key.verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
    let is_known = header.alg == "RS256" && header.kid == signer.key_id && claims.sub == signer.user;
    let is_for_us = claims.iss == client && claims.aud == client;
    let has_begun = [claims.iat, claims.nbf].into_iter().flatten().all(|from| from <= now);
    (is_known && is_for_us && has_begun && now < claims.exp).then_some(claims)
}

fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}
