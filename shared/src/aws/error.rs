//! Why a call has no answer, with what to do about it.

use serde::Deserialize;

/// A message of a service is cut here: it goes into errors that people read.
const LONGEST_MESSAGE: usize = 600;

/// A call without an answer. It becomes a failure with a code of its own in the part that asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No region is configured.
    #[error("{service}: no region is configured; set AWS_REGION, or region in the profile")]
    NoRegion {
        /// The service, as the SDK names it.
        service: &'static str,
    },
    /// No credentials can be had.
    #[error("{service}: no credentials can be had ({detail}); in a function they are the role's, elsewhere set AWS_PROFILE or sign in")]
    NoCredentials {
        /// The service.
        service: &'static str,
        /// What was tried.
        detail: String,
    },
    /// A configured endpoint is no address.
    #[error("{service}: {address:?} is not an address; set AWS_ENDPOINT_URL to one with http or https, or not at all")]
    Endpoint {
        /// The service.
        service: &'static str,
        /// What is configured.
        address: String,
    },
    /// The request could not be signed.
    #[error("{service}: the request cannot be signed: {detail}")]
    Unsigned {
        /// The service.
        service: &'static str,
        /// Why.
        detail: String,
    },
    /// No answer came.
    #[error("{service}: {detail}; is there a way from here to it, such as a NAT gateway or an interface endpoint of the service?")]
    NoAnswer {
        /// The service.
        service: &'static str,
        /// What happened on the way.
        detail: String,
    },
    /// The service answered with an error.
    #[error("{service} refused {operation} with {code} (status {status}): {message}{}{}", remedy(code), told(request_id))]
    Refused {
        /// The service.
        service: &'static str,
        /// The operation.
        operation: String,
        /// The error's name, such as `AccessDeniedException`.
        code: String,
        /// The status of HTTP.
        status: u16,
        /// The service's words.
        message: String,
        /// What support asks for.
        request_id: Option<String>,
    },
    /// An answer, or a request, is not what the protocol says.
    #[error("{service}: {operation}: {what}")]
    Garbled {
        /// The service.
        service: &'static str,
        /// The operation.
        operation: String,
        /// What is wrong.
        what: &'static str,
    },
}

/// Names of errors that a service gives when it was asked too often.
const THROTTLED: &[&str] = &[
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Names of errors of a signature whose time is not the service's.
const CLOCK: &[&str] = &["InvalidSignatureException", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"];

impl Error {
    /// Whether the same call may succeed without anybody's doing.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::NoAnswer { .. } => true,
            // A metadata service that does not answer is the usual reason, on a laptop and in a function alike.
            Error::NoCredentials { .. } => true,
            Error::Refused { code, status, .. } => *status >= 500 || *status == 429 || THROTTLED.contains(&code.as_str()),
            Error::NoRegion { .. } | Error::Endpoint { .. } | Error::Unsigned { .. } | Error::Garbled { .. } => false,
        }
    }

    /// The name of the service's error, where it answered with one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Error::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// The right that the service says is missing, such as `ssm:GetParameters` or `kms:Decrypt`.
    pub fn missing_right(&self) -> Option<&str> {
        let Error::Refused { code, message, .. } = self else { return None };
        if !code.starts_with("AccessDenied") {
            return None;
        }
        let (_, after) = message.split_once("not authorized to perform: ")?;
        after.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '-'))).next().filter(|right| right.contains(':'))
    }
}

fn remedy(code: &str) -> &'static str {
    if CLOCK.contains(&code) {
        "; check this machine's clock, and that secret key and session token belong together"
    } else if matches!(code, "ExpiredTokenException" | "ExpiredToken" | "UnrecognizedClientException" | "InvalidClientTokenId") {
        "; the credentials have expired or are of another partition: sign in again"
    } else {
        ""
    }
}

fn told(request_id: &Option<String>) -> String {
    request_id.as_ref().map_or_else(String::new, |id| format!(" (request {id})"))
}

/// The protocol's error body. Its type stands in a header or in one of two members, with a namespace before it or an
/// address behind it; its message is spelt in two ways.
#[derive(Deserialize, Default)]
struct Body {
    #[serde(rename = "__type")]
    kind: Option<String>,
    code: Option<String>,
    #[serde(alias = "Message", alias = "errorMessage")]
    message: Option<String>,
}

/// What the service's error answer says.
pub(super) fn refusal(
    service: &'static str,
    operation: &str,
    status: u16,
    header: Option<String>,
    request_id: Option<String>,
    body: &[u8],
) -> Error {
    let body: Body = serde_json::from_slice(body).unwrap_or_default();
    let code = header.or(body.kind).or(body.code).map_or_else(|| "an unnamed error".to_owned(), |name| bare(&name).to_owned());
    let message = body.message.map_or_else(|| "no more is said".to_owned(), |text| text.chars().take(LONGEST_MESSAGE).collect());
    Error::Refused { service, operation: operation.to_owned(), code, status, message, request_id }
}

/// `com.amazonaws.ssm#ParameterNotFound:http://…` without what is around the name.
fn bare(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit('#').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(message: &str) -> Error {
        let body = serde_json::json!({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": message}).to_string();
        refusal("SSM", "GetParameters", 400, None, Some("r-1".into()), body.as_bytes())
    }

    #[test]
    fn the_errors_name_is_found_wherever_the_protocol_puts_it() {
        let of = |header: Option<&str>, body: &str| refusal("SSM", "X", 400, header.map(str::to_owned), None, body.as_bytes());
        assert_eq!(of(None, r#"{"__type":"com.amazonaws.ssm#InvalidKeyId"}"#).code(), Some("InvalidKeyId"));
        assert_eq!(of(Some("ThrottlingException:http://x/y"), "not JSON").code(), Some("ThrottlingException"));
        assert_eq!(of(None, r#"{"code":"Plain","message":"m"}"#).code(), Some("Plain"));
        assert_eq!(of(None, "<html>").code(), Some("an unnamed error"));
    }

    #[test]
    fn a_missing_right_is_named() {
        let ssm =
            "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: ssm:GetParameters on resource: arn:aws:ssm:x because …";
        assert_eq!(denied(ssm).missing_right(), Some("ssm:GetParameters"));
        let kms = "User: arn:aws:sts::1:assumed-role/r/f is not authorized to perform: kms:Decrypt on this resource";
        assert_eq!(denied(kms).missing_right(), Some("kms:Decrypt"));
        assert_eq!(denied("no").missing_right(), None);
        assert!(denied(ssm).to_string().contains("(request r-1)"));
    }

    #[test]
    fn what_a_pause_may_mend_is_transient_and_nothing_else() {
        let of = |status, code: &str| refusal("SSM", "X", status, Some(code.into()), None, b"{}").is_transient();
        assert!(of(400, "ThrottlingException") && of(503, "ServiceUnavailable") && of(429, "Whatever"));
        assert!(!of(400, "AccessDeniedException") && !of(400, "ValidationException"));
    }
}
