//! What a registry answers.
//!
//! A refusal is `{"error_code": 42201, "message": "…"}`; the code's first three digits are those of the status. What has no
//! such body did not come from a registry: it is a page of a proxy, or another service at that address.

use reqwest::StatusCode;
use serde::Deserialize;

use super::{Error, language};
use crate::record::converter::registration::Candidate;

/// A message of the registry is cut here: some repeat whole schemas.
const LONGEST: usize = 400;

/// The schema that a registry means.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reply {
    /// The schema's id.
    pub(super) id: u32,
    #[serde(default)]
    version: Option<u64>,
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    schema_type: Option<String>,
    #[serde(default)]
    references: Option<Vec<serde_json::Value>>,
}

impl Reply {
    /// Reads the body of a 200.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|_| "an answer without the id of a schema".to_owned())
    }

    /// The text of the latest version, where it is another than the candidate's.
    pub(super) fn latest(self, candidate: &Candidate) -> Result<Option<String>, Error> {
        let version = self.version.map_or_else(|| "the latest version".to_owned(), |version| format!("version {version}"));
        let (kind, own) = (self.schema_type.as_deref().unwrap_or("AVRO"), language(candidate.language));
        if kind != own {
            return Err(Error::Incompatible { detail: format!("{version} is of type {kind}, and records are {own}") });
        }
        if self.references.is_some_and(|references| !references.is_empty()) {
            return Err(Error::Refused { detail: format!("{version} refers to other schemas, which is not supported") });
        }
        match self.schema {
            Some(text) if text == candidate.text => Ok(None),
            Some(text) => Ok(Some(text)),
            None => Err(Error::Refused { detail: format!("{version} came without its text") }),
        }
    }
}

/// A refusal, as far as it has a form.
#[derive(Debug, Default, Deserialize)]
struct Refusal {
    error_code: Option<u32>,
    message: Option<String>,
}

/// What is wrong with an answer; `None` if nothing is.
pub(super) fn refusal(status: StatusCode, body: &[u8], address: &str, signed_in: bool) -> Option<Error> {
    if status.is_success() {
        return None;
    }
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let code = refusal.error_code.map_or_else(|| status.as_u16().to_string(), |code| code.to_string());
    let detail = match refusal.message.as_deref().map(shortened) {
        Some(words) => format!("{code}: {words}"),
        None => code,
    };
    let address = address.to_owned();
    Some(match status.as_u16() {
        401 => Error::Unauthorized { address, detail, advice: if signed_in { REFUSED } else { ABSENT } },
        403 => Error::Forbidden { detail, advice: DENIED.to_owned() },
        // A 404 without a code is no registry's.
        404 if refusal.error_code.is_some_and(|code| code == 404 || code / 100 == 404) => {
            Error::Missing { detail, advice: "Register it, or set auto.register.schemas=true" }
        }
        409 => Error::Incompatible { detail },
        408 | 429 | 500..=599 => Error::Unable { address, detail },
        _ if refusal.error_code.is_some() => Error::Refused { detail },
        _ => Error::NotARegistry { address, detail },
    })
}

const REFUSED: &str = "Check basic.auth.user.info, or whatever else the converter's settings sign in with";
const ABSENT: &str = "It wants a login: set basic.auth.credentials.source and basic.auth.user.info of the converter";
const DENIED: &str = "Have the user given the right to read the subject, and with auto.register.schemas=true to write it";

/// The beginning of a message, on one line.
fn shortened(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::converter::registration::{Language, Part};

    fn candidate(text: &str) -> Candidate {
        Candidate { topic: "t".to_owned(), part: Part::Value, record: None, language: Language::Avro, text: text.to_owned() }
    }

    #[test]
    fn each_refusal_has_its_code_and_only_what_may_pass_is_tried_again() {
        let body = |code: u32| format!(r#"{{"error_code":{code},"message":"words"}}"#);
        for (status, body, code, transient) in [
            (401, body(401), "Registry.Unauthorized", false),
            (403, body(40301), "Registry.Forbidden", false),
            (404, body(40401), "Registry.SchemaMissing", false),
            (404, body(40403), "Registry.SchemaMissing", false),
            (404, String::new(), "Registry.NotARegistry", false),
            (409, body(409), "Registry.Incompatible", false),
            (422, body(42201), "Registry.Refused", false),
            (422, body(42205), "Registry.Refused", false),
            (429, body(429), "Registry.Unavailable", true),
            (408, String::new(), "Registry.Unavailable", true),
            (500, body(50001), "Registry.Unavailable", true),
            (503, "<html>".to_owned(), "Registry.Unavailable", true),
            (302, String::new(), "Registry.NotARegistry", false),
            (405, "<html>".to_owned(), "Registry.NotARegistry", false),
        ] {
            let error = refusal(StatusCode::from_u16(status).expect("a status"), body.as_bytes(), "https://r", true).expect("a refusal");
            assert_eq!((error.code(), error.is_transient()), (code, transient), "{status} {body}");
            assert!(!body.contains("words") || error.to_string().contains("words"), "{error}");
        }
        assert_eq!(refusal(StatusCode::OK, b"", "https://r", false), None);
    }

    #[test]
    fn the_latest_version_is_written_with_only_if_it_is_of_the_same_language_and_whole() {
        let latest = |body: &str| Reply::read(body.as_bytes()).expect("a reply").latest(&candidate("\"string\""));
        assert_eq!(latest(r#"{"id":1,"version":2,"schema":"\"string\""}"#), Ok(None));
        let other = latest(r#"{"id":1,"version":2,"schema":"\"bytes\"","schemaType":"AVRO","references":[]}"#);
        assert_eq!(other, Ok(Some("\"bytes\"".to_owned())));
        for (body, words) in [
            (r#"{"id":1,"version":2,"schema":"{}","schemaType":"JSON"}"#, "version 2 is of type JSON"),
            (r#"{"id":1,"version":2,"schema":"{}","references":[{"name":"x"}]}"#, "refers to other schemas"),
            (r#"{"id":1,"version":2}"#, "without its text"),
        ] {
            assert!(latest(body).expect_err("refused").to_string().contains(words), "{body}");
        }
        assert!(Reply::read(b"<html>").is_err() && Reply::read(br#"{"id":-1}"#).is_err());
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(shortened(" a\n\tb "), "a b");
        assert_eq!(shortened(&"ü".repeat(500)).chars().count(), LONGEST + 1);
    }
}
