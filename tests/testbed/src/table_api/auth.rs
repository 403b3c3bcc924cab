//! Who is asking: Basic, an API key, a client certificate, or a bearer token from `/oauth_token.do`.
//!
//! A token request inside the lifetime of a token answers the current one with what is left of its seconds: a client
//! that asks anew after a 401 and gets the same dead token back must not spin. A token can also die early, by a number of
//! uses or by being revoked, as tokens of a restarted instance do.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::error_body;
use super::clock::Clock;
use super::jwt::{self, GRANT};
use super::random::Random;
use super::settings::{Credentials, Settings};
use super::tls;

/// What a request says about its sender.
#[derive(Clone, Default)]
pub(super) struct Claim {
    pub authorization: Option<String>,
    pub api_key: Option<String>,
    /// The client's certificate in DER, of a connection that was checked.
    pub certificate: Option<Vec<u8>>,
}

impl Claim {
    /// The kind of claim, for the log: never the secret itself.
    pub fn kind(&self) -> &'static str {
        let scheme = self.authorization.as_deref().and_then(|text| text.split(' ').next());
        match scheme {
            Some(scheme) if scheme.eq_ignore_ascii_case("basic") => "basic",
            Some(scheme) if scheme.eq_ignore_ascii_case("bearer") => "bearer",
            Some(_) => "other",
            None if self.api_key.is_some() => "api_key",
            None if self.certificate.is_some() => "certificate",
            None => "none",
        }
    }

    fn basic(&self) -> Option<(String, String)> {
        let (scheme, rest) = self.authorization.as_deref()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }

    fn bearer(&self) -> Option<&str> {
        let (scheme, rest) = self.authorization.as_deref()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
    }
}

/// The token of the moment.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    current: Option<Token>,
    refresh: Option<String>,
    /// Assertions that were used.
    jti: BTreeSet<String>,
    pub issued: u64,
}

/// Wrong passwords in a row.
#[derive(Debug, Default)]
pub(super) struct Lockout {
    failures: u32,
}

impl Lockout {
    /// Whether this is the user's password, and the user is not locked out.
    fn admits(&mut self, given: Option<(String, String)>, credentials: &Credentials, most: Option<u32>) -> bool {
        let (Some((user, password)), Some(known)) = (given, &credentials.basic) else { return false };
        let is_locked = most.is_some_and(|most| self.failures >= most);
        let is_right = user == known.0 && password == known.1;
        if user == known.0 && !is_right {
            self.failures += 1;
        } else if is_right && !is_locked {
            self.failures = 0;
        }
        is_right && !is_locked
    }
}

struct Token {
    text: String,
    dies_at: i64,
    uses_left: Option<u64>,
    revoked: bool,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Token").field("dies_at", &self.dies_at).field("uses_left", &self.uses_left).finish_non_exhaustive()
    }
}

/// The outcome of a token request.
pub(super) enum Grant {
    Given(String),
    Denied(String),
    Refused(String),
}

impl Tokens {
    /// Ends the current token before its time.
    pub fn revoke(&mut self) {
        if let Some(token) = &mut self.current {
            token.revoked = true;
        }
    }

    fn accepts(&mut self, text: &str, now: i64) -> bool {
        let Some(token) = self.current.as_mut().filter(|token| token.text == text) else {
            return false;
        };
        if token.revoked || now >= token.dies_at || token.uses_left == Some(0) {
            return false;
        }
        token.uses_left = token.uses_left.map(|left| left - 1);
        true
    }

    /// Answers a form posted to `/oauth_token.do`.
    pub fn grant(
        &mut self,
        form: &[(String, String)],
        claim: &Claim,
        (credentials, settings, lockout): (&Credentials, &Settings, &mut Lockout),
        clock: &Clock,
        random: &mut Random,
    ) -> Grant {
        let field = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let grant_type = field("grant_type").unwrap_or_default();
        let Some(expected) = &credentials.oauth else {
            return Grant::Refused("a token was asked for, and no OAuth application is configured".to_owned());
        };
        let client = field("client_id").zip(field("client_secret")).or_else(|| claim.basic());
        // The signature takes the place of the secret, but a secret that is given has to be right.
        let is_client = match (grant_type.as_str(), field("client_secret")) {
            (GRANT, None) => field("client_id").as_ref() == Some(&expected.0),
            _ => client.as_ref() == Some(expected),
        };
        let granted = is_client
            && settings.grants.contains(&grant_type)
            && match grant_type.as_str() {
                "client_credentials" => true,
                "password" => lockout.admits(field("username").zip(field("password")), credentials, settings.lock_after),
                "refresh_token" => self.refresh.is_some() && field("refresh_token") == self.refresh,
                GRANT => self.accepts_assertion(&field("assertion").unwrap_or_default(), credentials, settings, clock),
                _ => false,
            };
        if !granted {
            let body = serde_json::json!({"error_description": "access_denied", "error": "server_error"});
            return Grant::Denied(body.to_string());
        }
        if grant_type == "refresh_token" && settings.refresh_tokens_rotate {
            self.refresh = None;
        }
        Grant::Given(self.issue(&grant_type, settings, clock.seconds(), random))
    }

    fn accepts_assertion(&mut self, text: &str, credentials: &Credentials, settings: &Settings, clock: &Clock) -> bool {
        let (Some(signer), Some((client, _))) = (&credentials.jwt, &credentials.oauth) else { return false };
        let Some(claims) = jwt::verified(text, signer, client, clock.seconds()) else { return false };
        !settings.jti_check || claims.jti.is_some_and(|id| self.jti.insert(id))
    }

    fn issue(&mut self, grant_type: &str, settings: &Settings, now: i64, random: &mut Random) -> String {
        let alive = |token: &&Token| !token.revoked && now < token.dies_at && token.uses_left != Some(0);
        if self.current.as_ref().filter(alive).is_none() {
            self.issued += 1;
            self.current = Some(Token {
                text: random.id() + &random.id(),
                dies_at: now.saturating_add(settings.token_lifetime_seconds),
                uses_left: settings.token_uses,
                revoked: false,
            });
        }
        let (text, left) = match &self.current {
            Some(token) => (token.text.clone(), token.dies_at - now),
            None => (String::new(), 0),
        };
        let mut body = serde_json::json!({
            "access_token": text, "scope": "useraccount", "token_type": "Bearer", "expires_in": left,
        });
        if grant_type != "client_credentials" {
            let refresh = self.refresh.get_or_insert_with(|| random.id());
            body["refresh_token"] = serde_json::Value::String(refresh.clone());
        }
        body.to_string()
    }
}

/// May this sender read? The error is the body of the 401.
pub(super) fn admit(
    claim: &Claim,
    credentials: &Credentials,
    (tokens, lockout): (&mut Tokens, &mut Lockout),
    lock_after: Option<u32>,
    now: i64,
) -> Result<(), String> {
    let open = *credentials == Credentials::default();
    let by_key = credentials.api_key.is_some() && claim.api_key == credentials.api_key;
    let mapped = credentials.certificate.as_deref().and_then(tls::first_certificate);
    let by_certificate = mapped.is_some() && claim.certificate == mapped;
    let by_token = |tokens: &mut Tokens| claim.bearer().is_some_and(|token| tokens.accepts(token, now));
    if open || by_key || by_certificate || lockout.admits(claim.basic(), credentials, lock_after) || by_token(tokens) {
        Ok(())
    } else {
        Err(error_body("User Not Authenticated", Some("Required to provide Auth information")))
    }
}
