//! Looking placeholders up, with a cache and one second look after an authentication failure.
//!
//! A place that was read once and cannot be read again is no reason to stop: what was read before stands in, and is most likely
//! what would be read now. Only a value that was refused by whoever it is for has nothing to stand in for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::future::{join, join_all};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use super::{Provider, Reference};
use crate::config::document;
use crate::config::values::{Content, Values};

/// How long a value is used before it is looked up again.
pub const TTL: Duration = Duration::from_secs(300);
/// How long what was read before stands in for a place that cannot be read, until that is tried again.
const AGAIN: Duration = Duration::from_secs(60);
/// How long one look into a file, the secrets manager or the parameter store may take. The SDK alone would wait for ever for an endpoint
/// that takes connections and says nothing, and a sweep would spend its whole budget here.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// Reads secrets from where they are kept.
#[async_trait]
pub trait SecretFetch: Send + Sync {
    /// The text of the secret's current version, by name or ARN.
    async fn fetch(&self, id: &str) -> Result<SecretString, FetchError>;
}

/// Reads parameters from where they are kept.
#[async_trait]
pub trait ParameterFetch: Send + Sync {
    /// The current values of parameters, by name or ARN, in the order of the names. All of them are handed over at once,
    /// since the store is asked for several in one request.
    async fn fetch(&self, names: &[String]) -> Vec<Result<SecretString, FetchError>>;
}

/// Why a secret could not be read. The message never carries the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// What went wrong and what to do.
    pub message: String,
    /// Whether the same request may succeed later without anybody's doing.
    pub transient: bool,
}

/// One placeholder without a value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Missing {
    /// The key of the document.
    pub key: String,
    /// The placeholder as written.
    pub placeholder: String,
    /// Why there is no value.
    pub reason: String,
    /// Whether a later look may find it without anybody's doing.
    pub transient: bool,
}

/// The placeholders of one document that have no value, all of them.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unresolved {
    /// The document.
    pub file: String,
    /// What is missing.
    pub missing: Vec<Missing>,
}

impl Unresolved {
    /// The stable code of this error.
    pub const CODE: &'static str = "Config.Unresolved";

    /// Whether a later look may find everything without anybody's doing.
    pub fn is_transient(&self) -> bool {
        self.missing.iter().all(|missing| missing.transient)
    }
}

impl std::error::Error for Unresolved {}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = self.missing.len();
        write!(f, "{}: {many} placeholder{} without a value:", self.file, if many == 1 { "" } else { "s" })?;
        for missing in &self.missing {
            write!(f, "\n  {} of {}: {}", missing.placeholder, missing.key, missing.reason)?;
        }
        Ok(())
    }
}

/// When the values of a document were looked up.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// The count of looks that the resolver had taken.
    generation: u64,
    /// Set when the look was taken because a credential had been refused.
    refreshed: Option<SystemTime>,
}

/// What a second look found.
#[derive(Debug)]
pub struct Refreshed {
    /// The values as they are now.
    pub values: Values,
    /// Whether any of them differs. If not, the credential is wrong and must not be tried again.
    pub changed: bool,
}

/// The environment as the resolver keeps it.
type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;
/// The wall clock: a monotonic one stands still while a function is frozen.
type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;
/// What is read at once: a file, a secret or a parameter, with all its entries.
type Place = (Provider, String);

struct Cached {
    /// What was last read; `None` if nothing ever was.
    text: Option<SecretString>,
    /// Why the last read failed, if it did.
    failed: Option<FetchError>,
    /// When the last read was.
    at: SystemTime,
    generation: u64,
    /// Whether it was read because a credential had been refused.
    for_refusal: bool,
}

#[derive(Default)]
struct Cache {
    places: BTreeMap<Place, Cached>,
    generation: u64,
}

/// Looks placeholders up and remembers what it read.
pub struct Resolver {
    env: Environment,
    secrets: Option<Arc<dyn SecretFetch>>,
    parameters: Option<Arc<dyn ParameterFetch>>,
    clock: Clock,
    ttl: Duration,
    timeout: Duration,
    // Held across a fetch, so that twenty tables that start together read a secret once.
    cache: Mutex<Cache>,
}

impl Resolver {
    /// A resolver without a secrets manager and a parameter store, as for documents that use none.
    pub fn new(
        env: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Resolver {
        Resolver {
            env: Arc::new(env),
            secrets: None,
            parameters: None,
            clock: Arc::new(clock),
            ttl: TTL,
            timeout: TIMEOUT,
            cache: Mutex::default(),
        }
    }

    /// Reads `secretsmanager` placeholders from here.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Arc<dyn SecretFetch>) -> Resolver {
        self.secrets = Some(secrets);
        self
    }

    /// Reads `ssm` placeholders from here.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Arc<dyn ParameterFetch>) -> Resolver {
        self.parameters = Some(parameters);
        self
    }

    /// Sets how long a value is used before it is looked up again.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Resolver {
        self.ttl = ttl;
        self
    }

    /// Sets how long one look may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Resolver {
        self.timeout = timeout;
        self
    }

    /// The environment that the resolver looks into.
    pub(in crate::config) fn env(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |name| (self.env)(name)
    }

    /// Looks up every placeholder of a document. What is missing is one error that lists all of it.
    pub async fn resolve(&self, values: &Values) -> Result<Values, Unresolved> {
        self.look(values, None).await
    }

    /// Looks up the placeholders of values again if what they came of is older than the TTL or has been read again since; `None`
    /// if there is nothing to look for. A place that cannot be read again keeps what it was, which the log says.
    pub async fn renew(&self, values: &Values) -> Result<Option<Refreshed>, Unresolved> {
        if !self.is_due(values).await {
            return Ok(None);
        }
        let fresh = self.look(values, None).await?;
        let changed = !fresh.says_the_same(values);
        Ok(Some(Refreshed { values: fresh, changed }))
    }

    async fn is_due(&self, values: &Values) -> bool {
        let now = (self.clock)();
        let known = values.lookup.map_or(0, |lookup| lookup.generation);
        let cache = self.cache.lock().await;
        let is_newer = |place: Place| match cache.places.get(&place) {
            None => true,
            Some(cached) => cached.generation > known || self.is_stale(cached, None, now),
        };
        values.references().filter_map(|(_, reference)| place_of(reference)).any(is_newer)
    }

    /// Looks again after a credential of these values was refused.
    ///
    /// A place is read again only if nobody did for the same reason since these values were looked up, and values that come out
    /// of a refresh are not refreshed again within the TTL: one rotation costs one more read and one more attempt, however
    /// many tables share the credential, and a wrong password is not hammered until the account locks.
    pub async fn refresh(&self, values: &Values) -> Result<Refreshed, Unresolved> {
        let now = (self.clock)();
        let just_refreshed = values.lookup.and_then(|lookup| lookup.refreshed).is_some_and(|at| self.is_fresh(at, now));
        if just_refreshed || values.references().next().is_none() {
            return Ok(Refreshed { values: values.clone(), changed: false });
        }
        let known = values.lookup.map_or(0, |lookup| lookup.generation);
        let fresh = self.look(values, Some(known)).await?;
        let changed = !fresh.says_the_same(values);
        Ok(Refreshed { values: fresh, changed })
    }

    fn is_fresh(&self, at: SystemTime, now: SystemTime) -> bool {
        is_younger(at, self.ttl, now)
    }

    /// Whether a place has to be read again: for any values, or for some that were refused and are of the generation `after`.
    fn is_stale(&self, cached: &Cached, after: Option<u64>, now: SystemTime) -> bool {
        match (after, &cached.text, &cached.failed) {
            // A read that was not taken for a refusal may be older than what led to this one.
            (Some(known), ..) => {
                cached.failed.is_some() || !self.is_fresh(cached.at, now) || !cached.for_refusal || cached.generation <= known
            }
            (None, _, None) => !self.is_fresh(cached.at, now),
            (None, Some(_), Some(_)) => !is_younger(cached.at, AGAIN.min(self.ttl), now),
            (None, None, Some(_)) => true,
        }
    }

    /// Fills the templates; with `after`, from reads that are younger than that generation.
    async fn look(&self, values: &Values, after: Option<u64>) -> Result<Values, Unresolved> {
        let now = (self.clock)();
        let mut cache = self.cache.lock().await;
        self.read_places(&mut cache, values, after, now).await;

        let mut missing = Vec::new();
        let mut found: BTreeMap<&Reference, SecretString> = BTreeMap::new();
        for (key, reference) in values.references() {
            match self.value_of(&cache, reference, after.is_some()) {
                Ok(value) => drop(found.insert(reference, value)),
                Err(FetchError { message, transient }) => {
                    missing.push(Missing { key: key.to_owned(), placeholder: reference.source.clone(), reason: message, transient })
                }
            }
        }
        if !missing.is_empty() {
            return Err(Unresolved { file: values.file.clone(), missing });
        }

        let mut resolved = values.clone();
        for entry in resolved.entries.values_mut() {
            let Some(template) = entry.template().cloned() else {
                continue;
            };
            if let Some(text) = template.fill(|reference| found.get(reference).map(ExposeSecret::expose_secret)) {
                let text = entry.key.kind.tidy(&text).to_owned();
                entry.content = Content::Resolved(SecretString::from(text), template);
            }
        }
        resolved.lookup = Some(Lookup { generation: cache.generation, refreshed: after.map(|_| now) });
        Ok(resolved)
    }

    /// Reads what is not in the cache, or too old for it, side by side.
    async fn read_places(&self, cache: &mut Cache, values: &Values, after: Option<u64>, now: SystemTime) {
        let stale = |place: &Place| match cache.places.get(place) {
            None => true,
            Some(cached) => self.is_stale(cached, after, now),
        };
        let places: BTreeSet<Place> = values.references().filter_map(|(_, reference)| place_of(reference)).filter(stale).collect();
        if places.is_empty() {
            return;
        }
        let (parameters, others): (Vec<Place>, Vec<Place>) = places.into_iter().partition(|(provider, _)| *provider == Provider::Ssm);
        let one_by_one = join_all(others.iter().map(|place| self.read(place)));
        let (mut reads, read_together) = join(one_by_one, self.read_parameters(&parameters)).await;
        reads.extend(read_together);
        cache.generation += 1;
        let generation = cache.generation;
        for (place, read) in others.into_iter().chain(parameters).zip(reads) {
            let before = cache.places.remove(&place).and_then(|cached| cached.text);
            let (text, failed) = match read {
                Ok(text) => (Some(text), None),
                Err(error) => (before, Some(error)),
            };
            if let (Some(_), Some(error), None) = (&text, &failed, after) {
                tracing::warn!(
                    code = Unresolved::CODE,
                    place = place.1,
                    "what stands behind a placeholder cannot be read again, and what was read before is used: {error}"
                );
            }
            cache.places.insert(place, Cached { text, failed, at: now, generation, for_refusal: after.is_some() });
        }
    }

    async fn read(&self, place: &Place) -> Result<SecretString, FetchError> {
        tokio::time::timeout(self.timeout, self.read_unbounded(place)).await.unwrap_or_else(|_| Err(self.silence()))
    }

    async fn read_parameters(&self, places: &[Place]) -> Vec<Result<SecretString, FetchError>> {
        let each = |error: FetchError| places.iter().map(|_| Err(error.clone())).collect();
        if places.is_empty() {
            return Vec::new();
        }
        let Some(parameters) = &self.parameters else {
            return each(permanent("no parameter store is available here"));
        };
        let names: Vec<String> = places.iter().map(|(_, name)| name.clone()).collect();
        match tokio::time::timeout(self.timeout, parameters.fetch(&names)).await {
            Ok(read) => read,
            Err(_) => each(self.silence()),
        }
    }

    fn silence(&self) -> FetchError {
        FetchError { message: format!("no answer came within {:?}", self.timeout), transient: true }
    }

    async fn read_unbounded(&self, (provider, path): &Place) -> Result<SecretString, FetchError> {
        match (provider, &self.secrets) {
            (Provider::SecretsManager, Some(secrets)) => secrets.fetch(path).await,
            (Provider::SecretsManager, None) => Err(permanent("no secrets manager is available here")),
            _ => match tokio::fs::read(path).await {
                Ok(bytes) => Ok(SecretString::from(document::decode(&bytes))),
                Err(error) => Err(permanent(format!("the file cannot be read: {error}"))),
            },
        }
    }

    /// The value of a placeholder; after a refusal, only one that could be read again.
    fn value_of(&self, cache: &Cache, reference: &Reference, refused: bool) -> Result<SecretString, FetchError> {
        match reference.provider {
            Provider::Env => (self.env)(&reference.path)
                .map(SecretString::from)
                .ok_or_else(|| permanent(format!("the environment has no variable {}, or it is empty", reference.path))),
            Provider::File | Provider::SecretsManager | Provider::Ssm => {
                let place = (reference.provider, reference.path.clone());
                let cached = cache.places.get(&place).ok_or_else(|| permanent("was not read"))?;
                let whole = match (&cached.text, &cached.failed) {
                    (Some(_), Some(error)) if refused => return Err(error.clone()),
                    (Some(text), _) => text.clone(),
                    (None, failed) => return Err(failed.clone().unwrap_or_else(|| permanent("was not read"))),
                };
                match &reference.key {
                    Some(key) => entry_of(reference, whole.expose_secret(), key),
                    None => Ok(whole),
                }
            }
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

fn is_younger(at: SystemTime, than: Duration, now: SystemTime) -> bool {
    // A clock that went back proves nothing about age: look again.
    now.duration_since(at).is_ok_and(|age| age < than)
}

/// What has to be read for a placeholder; the environment is at hand.
fn place_of(reference: &Reference) -> Option<Place> {
    (reference.provider != Provider::Env).then(|| (reference.provider, reference.path.clone()))
}

fn permanent(message: impl Into<String>) -> FetchError {
    FetchError { message: message.into(), transient: false }
}

/// Takes one entry out of a secret or a file. Parse errors are not passed on: they quote what they could not read.
fn entry_of(reference: &Reference, whole: &str, key: &str) -> Result<SecretString, FetchError> {
    let (what, entries) = match reference.provider {
        Provider::File if !reference.path.ends_with(".json") => {
            ("file", document::properties(whole).map_err(|_| permanent("the file is not in the properties format"))?)
        }
        Provider::File => ("file", scalars(whole).ok_or_else(|| permanent("the file is not a JSON object"))?),
        provider => {
            let what = if provider == Provider::Ssm { "parameter" } else { "secret" };
            let no_keys = || permanent(format!("the {what} is not a JSON object, so it has no keys; leave the key out"));
            (what, scalars(whole).ok_or_else(no_keys)?)
        }
    };
    entries
        .into_iter()
        .rev()
        .find(|(name, _)| name == key)
        .map(|(_, value)| SecretString::from(value))
        .ok_or_else(|| permanent(format!("the {what} has no entry {key:?} that is text, number or boolean")))
}

fn scalars(text: &str) -> Option<Vec<(String, String)>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
    let scalar = |value| match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Number(number) => Some(number.to_string()),
        serde_json::Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    };
    Some(object.into_iter().filter_map(|(name, value)| Some((name, scalar(value)?))).collect())
}
