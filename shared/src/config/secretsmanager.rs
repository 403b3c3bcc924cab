//! Reading secrets from AWS Secrets Manager.

use async_trait::async_trait;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::SdkError;
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use secrecy::SecretString;

use super::placeholder::{FetchError, SecretFetch};
use crate::http::with_causes;

/// The current versions of secrets, by way of the AWS SDK.
///
/// The client finds region, credentials and endpoint where the SDK always does.
#[derive(Clone, Debug)]
pub struct SecretsManager {
    client: Client,
}

impl SecretsManager {
    /// Reads with a client of this configuration.
    pub fn new(config: &aws_config::SdkConfig) -> SecretsManager {
        SecretsManager { client: Client::new(config) }
    }
}

#[async_trait]
impl SecretFetch for SecretsManager {
    async fn fetch(&self, id: &str) -> Result<SecretString, FetchError> {
        let answer = self.client.get_secret_value().secret_id(id).send().await.map_err(|error| told(&error))?;
        match answer.secret_string {
            Some(text) => Ok(SecretString::from(text)),
            None => Err(FetchError { message: "the secret is binary; store it as text".into(), transient: false }),
        }
    }
}

const UNDECRYPTED: &str = "the secret cannot be decrypted; allow kms:Decrypt on its key";

/// What went wrong, with what to do about it.
fn told(error: &SdkError<GetSecretValueError>) -> FetchError {
    let permanent = |message: String| FetchError { message, transient: false };
    match error.as_service_error() {
        Some(GetSecretValueError::ResourceNotFoundException(_)) => {
            permanent("there is no such secret in this account and region, or it has no current version".into())
        }
        Some(GetSecretValueError::DecryptionFailure(_)) => permanent(UNDECRYPTED.into()),
        Some(GetSecretValueError::InvalidParameterException(_) | GetSecretValueError::InvalidRequestException(_)) => {
            permanent(format!("the secret cannot be read: {}", said(error)))
        }
        // By the same name: what may be read cannot be decrypted ("Access to KMS is not allowed").
        Some(service) if is_denied(service) && service.meta().message().is_some_and(|said| said.contains("KMS")) => {
            permanent(UNDECRYPTED.into())
        }
        Some(service) if is_denied(service) => permanent("access is denied; allow secretsmanager:GetSecretValue on the secret".into()),
        _ => FetchError { message: format!("the secret cannot be read: {}", said(error)), transient: true },
    }
}

/// What the service said, or why it said nothing. What it answered is not shown where it says neither: an answer that breaks off has
/// the secret in it, and the error's own `Debug`, which the SDK's `DisplayErrorContext` adds, has the answer as it came.
fn said(error: &SdkError<GetSecretValueError>) -> String {
    let meta = error.as_service_error().map(GetSecretValueError::meta);
    if let Some((code, meta)) = meta.and_then(|meta| Some((meta.code()?, meta))) {
        return format!("{code}: {}", meta.message().unwrap_or("no message"));
    }
    match error.raw_response() {
        Some(answer) => format!("the answer with status {} is none of Secrets Manager's", answer.status().as_u16()),
        None => with_causes(error.to_string(), error),
    }
}

fn is_denied(service: &GetSecretValueError) -> bool {
    service.meta().code() == Some("AccessDeniedException")
}
