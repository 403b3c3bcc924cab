//! Who is asking: Basic, an API key, or a bearer token from `/oauth_token.do`.
//!
//! A token request inside the lifetime of a token answers the current one with what is left of its seconds: a client
//! that asks anew after a 401 and gets the same dead token back must not spin. A token can also die early, by a number of
//! uses or by being revoked, as tokens of a restarted instance do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::error_body;
use super::clock::Clock;
use super::random::Random;
use super::settings::{Credentials, Settings};

/// What a request says about its sender.
#[derive(Clone, Default)]
pub(super) struct Claim {
    pub authorization: Option<String>,
    pub api_key: Option<String>,
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
    pub issued: u64,
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
        (credentials, settings): (&Credentials, &Settings),
        clock: &Clock,
        random: &mut Random,
    ) -> Grant {
        let field = |name: &str| form.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        let grant_type = field("grant_type").unwrap_or_default();
        if grant_type == "urn:ietf:params:oauth:grant-type:jwt-bearer" {
            return Grant::Refused("the JWT bearer grant is not simulated".to_owned());
        }
        let Some(expected) = &credentials.oauth else {
            return Grant::Refused("a token was asked for, and no OAuth application is configured".to_owned());
        };
        let client = field("client_id").zip(field("client_secret")).or_else(|| claim.basic());
        let user = || field("username").zip(field("password"));
        let granted = client.as_ref() == Some(expected)
            && settings.grants.contains(&grant_type)
            && match grant_type.as_str() {
                "client_credentials" => true,
                "password" => credentials.basic.is_some() && user() == credentials.basic,
                "refresh_token" => self.refresh.is_some() && field("refresh_token") == self.refresh,
                _ => false,
            };
        if !granted {
            let body = serde_json::json!({"error_description": "access_denied", "error": "server_error"});
            return Grant::Denied(body.to_string());
        }
        Grant::Given(self.issue(&grant_type, settings, clock.seconds(), random))
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
pub(super) fn admit(claim: &Claim, credentials: &Credentials, tokens: &mut Tokens, now: i64) -> Result<(), String> {
    let open = *credentials == Credentials::default();
    let known = || {
        let basic = credentials.basic.is_some() && claim.basic() == credentials.basic;
        let key = credentials.api_key.is_some() && claim.api_key == credentials.api_key;
        basic || key
    };
    let by_token = |tokens: &mut Tokens| claim.bearer().is_some_and(|token| tokens.accepts(token, now));
    if open || known() || by_token(tokens) {
        Ok(())
    } else {
        Err(error_body("User Not Authenticated", Some("Required to provide Auth information")))
    }
}
