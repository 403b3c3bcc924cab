//! The Invoke API of Lambda, asked once per event.
//!
//! The SDK's retries are off: an Invoke whose answer was lost may have been taken, and asking again would run the task
//! twice. Without retries a connection that died while the environment was frozen would cost an invocation. So each
//! invocation of fan-out makes its connections anew; configuration and credentials are kept.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use tablesweep::function::Invoke;

/// Establishing a connection takes milliseconds inside a region.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// Accepting an event takes well under a second. The failure must be told before the function's own end.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Accepted for asynchronous invocation.
const ACCEPTED: i32 = 202;

/// How Lambda is reached.
#[derive(Debug)]
pub struct Lambda {
    config: SdkConfig,
}

impl Lambda {
    /// As the environment says. Contacts nothing.
    pub async fn from_env() -> Self {
        let timeouts = TimeoutConfig::builder().connect_timeout(CONNECT_WITHIN).operation_timeout(ANSWER_WITHIN).build();
        let loader = aws_config::from_env()
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(timeouts);
        Self { config: Box::pin(loader.load()).await }
    }

    /// With new connections.
    pub fn awake(&self) -> Invocations {
        Invocations { client: Client::new(&self.config) }
    }
}

/// The connections of one invocation of fan-out.
#[derive(Debug)]
pub struct Invocations {
    client: Client,
}

#[async_trait]
impl Invoke for Invocations {
    async fn invoke(&self, function: &str, event: Vec<u8>) -> Result<(), String> {
        let request = self.client.invoke().function_name(function).invocation_type(InvocationType::Event).payload(Blob::new(event));
        match Box::pin(request.send()).await {
            Ok(answer) if answer.status_code() == ACCEPTED => Ok(()),
            Ok(answer) => Err(format!("Lambda answered {} where {ACCEPTED} was due", answer.status_code())),
            Err(error) => Err(said(&error)),
        }
    }
}

/// What Lambda said, or why it said nothing.
fn said<E, R>(error: &SdkError<E, R>) -> String
where
    E: ProvideErrorMetadata + Error + 'static,
    R: std::fmt::Debug,
{
    if let Some(service) = error.as_service_error() {
        return format!("{}: {}", service.code().unwrap_or("no code"), service.message().unwrap_or("no message"));
    }
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
