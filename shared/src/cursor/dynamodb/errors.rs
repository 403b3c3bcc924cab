//! What an error of DynamoDB means for a sweep, and what a person can do about it.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};

use crate::cursor::StoreError;

/// The table, for messages.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) table: String,
    pub(super) name: String,
}

/// What is known of the attempts of one call. The SDK tries again by itself and tells of the last attempt only; but a
/// write may have been taken by an earlier one whose answer was lost.
#[derive(Debug, Clone, Default)]
pub(super) struct Attempts {
    unanswered: Arc<AtomicBool>,
}

impl Attempts {
    fn is_any_unanswered(&self) -> bool {
        self.unanswered.load(Ordering::SeqCst)
    }
}

impl Intercept for Attempts {
    fn name(&self) -> &'static str {
        "Attempts"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let failed = matches!(context.output_or_error(), Some(Err(_)));
        // After an error on the server's side nobody knows either.
        let answered = context.response().is_some_and(|response| response.status().as_u16() < 500);
        if failed && !answered {
            self.unanswered.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Target {
    pub(super) fn new(table: String) -> Self {
        Self { name: format!("dynamodb:{table}"), table }
    }

    /// What `error` of `operation` means.
    pub(super) fn error<E>(&self, operation: &str, error: &SdkError<E, HttpResponse>, attempts: &Attempts) -> StoreError
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let store = self.name.clone();
        let SdkError::ServiceError(service) = error else {
            let said = chain(error);
            // The SDK looks for credentials and a region before it sends, and says so in the chain only.
            return if said.contains("credential") {
                let detail = format!(
                    "{operation} found no AWS credentials ({said}): set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give the function a role"
                );
                StoreError::Denied { store, detail }
            } else if said.contains("Missing Region") {
                StoreError::Denied { store, detail: format!("{operation} knows no region ({said}): set AWS_REGION") }
            } else {
                StoreError::Unreachable { store, detail: format!("{operation}: {said}") }
            };
        };
        let status = service.raw().status().as_u16();
        let code = service.err().code().unwrap_or("no code");
        let said = format!("{operation}: {code}: {}", service.err().message().unwrap_or("no message"));
        match code {
            "ProvisionedThroughputExceededException"
            | "ThrottlingException"
            | "RequestLimitExceeded"
            | "LimitExceededException"
            | "TransactionConflictException"
            | "ReplicatedWriteConflictException" => {
                if attempts.is_any_unanswered() {
                    StoreError::Unreachable { store, detail: format!("{said}, after an attempt without an answer") }
                } else {
                    StoreError::Busy { store, detail: said }
                }
            }
            _ if status >= 500 => StoreError::Unreachable { store, detail: said },
            _ => StoreError::Denied { store, detail: format!("{said}: {}", self.remedy(operation, code)) },
        }
    }

    fn remedy(&self, operation: &str, code: &str) -> String {
        let table = &self.table;
        match code {
            "ResourceNotFoundException" => {
                format!("there is no table {table} in this account and region; deploy it, or correct the name or AWS_REGION")
            }
            "AccessDeniedException" => format!("allow dynamodb:{operation} on the table {table}"),
            "UnrecognizedClientException"
            | "InvalidSignatureException"
            | "ExpiredTokenException"
            | "IncompleteSignatureException"
            | "MissingAuthenticationTokenException"
            | "MissingAuthenticationToken" => "the AWS credentials are not accepted; renew them".to_owned(),
            "ValidationException" => {
                format!("the table {table} must have the keys connector and place, both strings, and names must fit them")
            }
            _ => format!("see what DynamoDB says of {code}"),
        }
    }
}

/// An error and its causes, in one line. The SDK's own display says "service error" and no more.
fn chain(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !said.ends_with(&next) {
            said.push_str(": ");
            said.push_str(&next);
        }
        cause = error.source();
    }
    // Some causes are lists, a line for each.
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}
