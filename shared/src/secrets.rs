//! Looking placeholders up in the world: the environment, files, and AWS once one asks for that.
//!
//! The clients of Secrets Manager and Parameter Store are made when the first secret or parameter is fetched and not
//! before. A laptop without AWS sweeps the connectors that need none, and the metadata service that the SDK would ask for
//! credentials is not asked for nothing.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use aws_config::SdkConfig;
use secrecy::SecretString;
use tokio::sync::OnceCell;

use crate::aws;
use crate::config::parameterstore::ParameterStore;
use crate::config::placeholder::{FetchError, ParameterFetch, Provider, SecretFetch};
use crate::config::secretsmanager::SecretsManager;
use crate::config::{Documents, Resolver};
use crate::host::{Host, env};

/// Looks up what `documents` ask for.
pub fn resolver(documents: &Documents, host: &Host) -> Resolver {
    let clock = host.clone();
    let mut resolver = Resolver::new(env, move || moment(clock.now_ms()));
    let asks = |provider: Provider| {
        let values = documents.connectors.iter().map(|connector| &connector.values).chain([&documents.worker.values]);
        values.flat_map(|values| values.references()).any(|(_, reference)| reference.provider == provider)
    };
    let lazy = Arc::new(Lazy::new(host.clone()));
    if asks(Provider::SecretsManager) {
        resolver = resolver.with_secrets(lazy.clone());
    }
    if asks(Provider::Ssm) {
        resolver = resolver.with_parameters(lazy);
    }
    resolver
}

fn moment(now_ms: i64) -> SystemTime {
    let since = Duration::from_millis(now_ms.unsigned_abs());
    let moment = if now_ms < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
    moment.unwrap_or(UNIX_EPOCH)
}

/// Clients that are made when they are needed, of one configuration.
struct Lazy {
    host: Host,
    config: OnceCell<SdkConfig>,
    secrets: OnceCell<SecretsManager>,
    parameters: OnceCell<ParameterStore>,
}

impl Lazy {
    fn new(host: Host) -> Self {
        Self { host, config: OnceCell::new(), secrets: OnceCell::new(), parameters: OnceCell::new() }
    }

    async fn config(&self) -> &SdkConfig {
        self.config.get_or_init(|| async { Box::pin(aws_config::load_from_env()).await }).await
    }

    async fn parameters(&self) -> Result<&ParameterStore, aws::Error> {
        let made = async { aws::Client::new(self.config().await, aws::SSM, self.host.clone()).map(ParameterStore::new) };
        self.parameters.get_or_try_init(|| made).await
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").field("made", &self.config.initialized()).finish()
    }
}

#[async_trait]
impl SecretFetch for Lazy {
    async fn fetch(&self, id: &str) -> Result<SecretString, FetchError> {
        let made = async { SecretsManager::new(self.config().await) };
        self.secrets.get_or_init(|| made).await.fetch(id).await
    }
}

#[async_trait]
impl ParameterFetch for Lazy {
    async fn fetch(&self, names: &[String]) -> Vec<Result<SecretString, FetchError>> {
        match self.parameters().await {
            Ok(parameters) => parameters.fetch(names).await,
            Err(error) => {
                let error = FetchError { message: error.to_string(), transient: error.is_transient() };
                names.iter().map(|_| Err(error.clone())).collect()
            }
        }
    }
}
