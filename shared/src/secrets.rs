//! Looking placeholders up in the world: the environment, files, and Secrets Manager once one asks for that.
//!
//! The client of Secrets Manager is made when the first secret is fetched and not before. A laptop without AWS sweeps the
//! connectors that need none, and the metadata service that the SDK would ask for credentials is not asked for nothing.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use secrecy::SecretString;
use tokio::sync::OnceCell;

use crate::config::placeholder::{FetchError, Provider, SecretFetch};
use crate::config::secretsmanager::SecretsManager;
use crate::config::{Documents, Resolver};
use crate::host::{Host, env};

/// Looks up what `documents` ask for.
pub fn resolver(documents: &Documents, host: &Host) -> Resolver {
    let clock = host.clone();
    let resolver = Resolver::new(env, move || moment(clock.now_ms()));
    let values = documents.connectors.iter().map(|connector| &connector.values).chain([&documents.worker.values]);
    let asks = values.flat_map(|values| values.references()).any(|(_, reference)| reference.provider == Provider::SecretsManager);
    if asks { resolver.with_secrets(Arc::new(Lazy::default())) } else { resolver }
}

fn moment(now_ms: i64) -> SystemTime {
    let since = Duration::from_millis(now_ms.unsigned_abs());
    let moment = if now_ms < 0 { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) };
    moment.unwrap_or(UNIX_EPOCH)
}

#[derive(Default)]
struct Lazy {
    client: OnceCell<SecretsManager>,
}

impl fmt::Debug for Lazy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").field("made", &self.client.initialized()).finish()
    }
}

#[async_trait]
impl SecretFetch for Lazy {
    async fn fetch(&self, id: &str) -> Result<SecretString, FetchError> {
        let made = async { SecretsManager::new(&Box::pin(aws_config::load_from_env()).await) };
        self.client.get_or_init(|| made).await.fetch(id).await
    }
}
