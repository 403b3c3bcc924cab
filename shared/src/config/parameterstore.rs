//! Reading parameters from AWS Systems Manager's Parameter Store.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use super::placeholder::{FetchError, ParameterFetch, TIMEOUT};
use crate::aws::{Client, Error};

/// How many names one request may have: the service's limit.
const BATCH: usize = 10;
/// How long a request with its retries may take: less than the resolver allows, whose words would say less.
const WITHIN: Duration = Duration::from_secs(8);
const _: () = assert!(WITHIN.as_millis() < TIMEOUT.as_millis());

/// The current values of parameters.
///
/// A `SecureString` is given decrypted. Names are asked for ten at a time; when the service refuses ten for the sake of
/// one, each is asked for alone, so that the message stands with the parameter that it is about.
#[derive(Clone, Debug)]
pub struct ParameterStore {
    client: Client,
}

impl ParameterStore {
    /// Reads with this client of [`SSM`](crate::aws::SSM).
    pub fn new(client: Client) -> ParameterStore {
        ParameterStore { client }
    }

    async fn batch(&self, names: &[String]) -> Vec<Result<SecretString, FetchError>> {
        match self.ask(names).await {
            Ok(found) => names.iter().map(|name| found.get(name).cloned().ok_or_else(missing)).collect(),
            Err(error) if names.len() > 1 && !error.is_transient() && error.code().is_some() => {
                let alone = names.iter().map(async |name| match self.ask(std::slice::from_ref(name)).await {
                    Ok(found) => found.get(name).cloned().ok_or_else(missing),
                    Err(error) => Err(told(&error)),
                });
                join_all(alone).await
            }
            Err(error) => names.iter().map(|_| Err(told(&error))).collect(),
        }
    }

    /// The values of those of `names` that exist.
    async fn ask(&self, names: &[String]) -> Result<BTreeMap<String, SecretString>, Error> {
        let request = json!({"Names": names, "WithDecryption": true});
        let answer: Answer = self.client.call("GetParameters", &request, WITHIN).await?;
        let mut found = BTreeMap::new();
        for Parameter { name, arn, value } in answer.parameters {
            // A parameter that was asked for by its ARN is given under its name.
            if let Some(arn) = arn {
                found.insert(arn, value.clone());
            }
            found.insert(name, value);
        }
        Ok(found)
    }
}

#[async_trait]
impl ParameterFetch for ParameterStore {
    async fn fetch(&self, names: &[String]) -> Vec<Result<SecretString, FetchError>> {
        join_all(names.chunks(BATCH).map(|names| self.batch(names))).await.concat()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    parameters: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "ARN")]
    arn: Option<String>,
    #[serde(rename = "Value", deserialize_with = "secret")]
    value: SecretString,
}

fn secret<'de, D: serde::Deserializer<'de>>(from: D) -> Result<SecretString, D::Error> {
    String::deserialize(from).map(SecretString::from)
}

fn missing() -> FetchError {
    FetchError { message: "there is no such parameter in this account and region".into(), transient: false }
}

/// What went wrong, with the right that is missing. No error of a call carries a value.
fn told(error: &Error) -> FetchError {
    let permanent = |message: String| FetchError { message, transient: false };
    match (error.code(), error.missing_right()) {
        (Some("AccessDeniedException"), Some(right)) if !right.starts_with("kms:") => {
            permanent(format!("access is denied; allow {right} on the parameter"))
        }
        // The key management service does not name the right: it says that there is no such key, or that it is denied.
        (Some("AccessDeniedException"), _) => permanent("the parameter cannot be decrypted; allow kms:Decrypt on its key".into()),
        (Some("InvalidKeyId"), _) => {
            permanent("the parameter cannot be decrypted: its key is disabled, is to be deleted, or is not of this region".into())
        }
        (Some("ValidationException"), _) => permanent(format!("the name is not one of a parameter: {error}")),
        _ => FetchError { message: format!("the parameter cannot be read: {error}"), transient: error.is_transient() },
    }
}
