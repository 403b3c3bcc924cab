//! The REST API of Confluent's Schema Registry.
//!
//! Three questions of that API are all that a producer has (docs.confluent.io, "Schema Registry API Reference"):
//!
//! ```text
//! auto.register.schemas     POST /subjects/{subject}/versions         registers, or finds what is there
//! use.latest.version        GET  /subjects/{subject}/versions/latest  the schema to write with
//! neither                   POST /subjects/{subject}                  finds
//! ```
//!
//! As in Confluent's serialisers the first of the settings that is on decides. A record begins with a zero and the schema's
//! id as four bytes, the highest first ("Wire format" of the same documentation).
//!
//! Of several addresses the next is asked when one gives no answer or says that it cannot; the one that answered is asked
//! first the next time. When none answers, the round is repeated after a pause that doubles and is random below that.
//!
//! A login that is refused, and a certificate that one side or the other does not trust, may have been rotated: what we show and
//! whom we trust is then read again, once, and asked with if it is something else by now.

mod reply;
mod settings;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::Method;
use serde_json::json;
use tokio::sync::RwLock;
use url::Url;

use super::answers::{Answers, Question};
use super::{Error, Rotation, end};
use crate::failure::Failure;
use crate::host::Host;
use crate::record::converter::registration::{Candidate, Kept, Language, Part, Registered, Registry};
use reply::Reply;
pub use settings::{Credential, Settings, Strategy};
use transport::Transport;

/// A client of one registry, for the keys or the values of one connector.
pub struct Confluent {
    settings: Settings,
    access: RwLock<Arc<Access>>,
    rotation: Arc<dyn Rotation>,
    /// The address that answered last.
    preferred: AtomicUsize,
    /// The registry and how it is asked, as answers are told apart by.
    identity: Arc<str>,
    answers: Answers,
    host: Host,
}

impl fmt::Debug for Confluent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confluent").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// What we show and whom we trust, and the connections that were made with it.
struct Access {
    settings: Settings,
    transport: Transport,
}

impl Access {
    fn new(settings: Settings) -> Result<Arc<Self>, Error> {
        Ok(Arc::new(Self { transport: Transport::new(&settings)?, settings }))
    }
}

/// A request, by what it is for.
#[derive(Debug)]
struct Request<'r> {
    method: Method,
    path: Vec<&'r str>,
    normalize: bool,
    body: Option<String>,
}

impl Confluent {
    /// Reads the stores of certificates; contacts nothing.
    ///
    /// # Errors
    /// A store cannot be used.
    pub fn new(settings: Settings, rotation: Arc<dyn Rotation>, answers: Answers, host: Host) -> Result<Self, Error> {
        let access = Access::new(settings.clone())?;
        let last = u64::try_from(settings.addresses.len().saturating_sub(1)).unwrap_or_default();
        let first = if settings.randomize { usize::try_from(host.jitter(last)).unwrap_or_default() } else { 0 };
        Ok(Self {
            identity: settings.identity().into(),
            access: RwLock::new(access),
            preferred: AtomicUsize::new(first),
            settings,
            rotation,
            answers,
            host,
        })
    }

    /// How the subjects of keys or values are named.
    fn strategy(&self, part: Part) -> Strategy {
        match part {
            Part::Key => self.settings.key_strategy,
            Part::Value => self.settings.value_strategy,
        }
    }

    async fn ask(&self, candidate: &Candidate, subject: &str, end: Duration) -> Result<(Registered, Option<Duration>), Error> {
        let settings = &self.settings;
        let schema = || {
            let mut body = json!({"schema": candidate.text});
            // Avro is what a registry takes a schema for that does not say; old ones know no other.
            if candidate.language != Language::Avro {
                body["schemaType"] = language(candidate.language).into();
            }
            Some(body.to_string())
        };
        let latest = !settings.auto_register && settings.use_latest;
        let request = if settings.auto_register {
            let path = vec!["subjects", subject, "versions"];
            Request { method: Method::POST, path, normalize: settings.normalize, body: schema() }
        } else if settings.use_latest {
            Request { method: Method::GET, path: vec!["subjects", subject, "versions", "latest"], normalize: false, body: None }
        } else {
            Request { method: Method::POST, path: vec!["subjects", subject], normalize: settings.normalize, body: schema() }
        };
        let (address, body) = self.send(&request, end).await?;
        let reply = Reply::read(&body).map_err(|detail| Error::NotARegistry { address: address.clone(), detail })?;
        let id = reply.id;
        let instead = if latest { reply.latest(candidate)? } else { None };
        let until = match (latest, settings.latest_ttl) {
            (true, Some(ttl)) => Some(self.host.monotonic() + ttl),
            _ => None,
        };
        Ok((Registered { header: header(id), zlib: false, instead }, until))
    }

    /// Asks until there is an answer, nothing more is to be expected, or the time is over.
    async fn send(&self, request: &Request<'_>, end: Duration) -> Result<(String, Bytes), Error> {
        let (mut repeated, mut renewed) = (0, false);
        loop {
            let access = Arc::clone(&*self.access.read().await);
            let error = match self.round(&access, request, end).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if matches!(error, Error::Unauthorized { .. } | Error::Tls(_)) && !renewed {
                renewed = true;
                if self.renew(&access).await? {
                    continue;
                }
            }
            let pause = self.pause_after(repeated);
            let left = end.saturating_sub(self.host.monotonic());
            if !error.is_transient() || repeated == self.settings.max_retries || left <= pause {
                return Err(error);
            }
            tracing::debug!(registry = %self.identity, repeated, %error, "a registry is asked again");
            tokio::time::sleep(pause).await;
            repeated += 1;
        }
    }

    /// Asks one address after the other, from the one that answered last.
    async fn round(&self, access: &Access, request: &Request<'_>, end: Duration) -> Result<(String, Bytes), Error> {
        let addresses = &self.settings.addresses;
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failed = None;
        for at in (0..addresses.len()).map(|step| (first + step) % addresses.len()) {
            let left = end.saturating_sub(self.host.monotonic());
            if left.is_zero() {
                break;
            }
            match self.once(access, &addresses[at], request, left).await {
                Err(error) if error.is_transient() || matches!(error, Error::Tls(_)) => {
                    failed.get_or_insert(error);
                }
                settled => {
                    self.preferred.store(at, Ordering::Relaxed);
                    return settled;
                }
            }
        }
        let address = || addresses.get(first).map_or_else(String::new, shown);
        Err(failed.unwrap_or_else(|| Error::NoAnswer { address: address(), detail: "the time for it was over".to_owned() }))
    }

    async fn once(&self, access: &Access, address: &Url, request: &Request<'_>, left: Duration) -> Result<(String, Bytes), Error> {
        let mut url = address.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(&request.path);
        }
        if request.normalize {
            url.query_pairs_mut().append_pair("normalize", "true");
        }
        let credential = access.settings.credential.as_ref();
        let (status, body) = access.transport.send(request.method.clone(), url, credential, request.body.clone(), left).await?;
        let address = shown(address);
        match reply::refusal(status, &body, &address, credential.is_some()) {
            None => Ok((address, body)),
            Some(error) => Err(error),
        }
    }

    /// Looks up again what was refused; whether there is something else to ask with now.
    async fn renew(&self, refused: &Arc<Access>) -> Result<bool, Error> {
        // Held across the look, so that tables that are refused together look once; the later ones find it changed.
        let mut access = self.access.write().await;
        if !Arc::ptr_eq(&access, refused) {
            return Ok(true);
        }
        match self.rotation.renew().await.map_err(Error::Secrets)? {
            Some(renewed) if !renewed.shows_the_same(&access.settings) => {
                *access = Access::new(renewed)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn pause_after(&self, repeated: u32) -> Duration {
        let doubled = self.settings.wait.saturating_mul(2_u32.saturating_pow(repeated));
        let longest = doubled.min(self.settings.max_wait);
        Duration::from_millis(self.host.jitter(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX)))
    }
}

#[async_trait]
impl Registry for Confluent {
    async fn register(&self, candidate: &Candidate, by: Option<Duration>) -> Result<Registered, Failure> {
        let subject = self.strategy(candidate.part).subject(candidate).map_err(|error| error.of("topic", &candidate.topic))?;
        let question =
            Question { registry: Arc::clone(&self.identity), name: subject, language: candidate.language, text: candidate.text.clone() };
        if let Some(known) = self.answers.get(&question, self.host.monotonic()) {
            return Ok(known);
        }
        let end = end(self.host.monotonic(), by);
        let (registered, until) = self.ask(candidate, &question.name, end).await.map_err(|error| error.of("subject", &question.name))?;
        self.answers.put(question, registered.clone(), until);
        Ok(registered)
    }

    async fn probe(&self, topic: &str, part: Part) -> Result<Kept, Failure> {
        // No record, so that a subject that is named after one is not known. Asking for any subject shows who is there.
        let nobody = Candidate { topic: topic.to_owned(), part, record: None, language: Language::Avro, text: String::new() };
        let (name, is_known) = self.strategy(part).subject(&nobody).map_or_else(|_| (topic.to_owned(), false), |subject| (subject, true));
        let request = Request { method: Method::GET, path: vec!["subjects", &name, "versions", "latest"], normalize: false, body: None };
        let is_there = match self.send(&request, end(self.host.monotonic(), None)).await {
            Ok((address, body)) => match Reply::read(&body) {
                Ok(_) => true,
                Err(detail) => return Err(Error::NotARegistry { address, detail }.of("subject", &name)),
            },
            Err(Error::Missing { .. }) => false,
            Err(error) => return Err(error.of("subject", &name)),
        };
        Ok(Kept { name, is_there: is_known.then_some(is_there), registers: self.settings.auto_register })
    }
}

/// What goes before the data: a zero, and the id.
fn header(id: u32) -> Bytes {
    let mut header = vec![0];
    header.extend_from_slice(&id.to_be_bytes());
    Bytes::from(header)
}

/// A language as the API names it.
fn language(language: Language) -> &'static str {
    match language {
        Language::Avro => "AVRO",
        Language::JsonSchema => "JSON",
    }
}

/// An address as messages show it.
fn shown(address: &Url) -> String {
    address.as_str().trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use secrecy::SecretString;

    use super::*;

    /// Gives another password each time, and counts.
    struct Turns(AtomicU32);

    #[async_trait]
    impl Rotation for Turns {
        async fn renew(&self) -> Result<Option<Settings>, Failure> {
            Ok(Some(settings(&format!("p{}", self.0.fetch_add(1, Ordering::Relaxed) + 1))))
        }
    }

    fn settings(password: &str) -> Settings {
        Settings {
            addresses: vec![Url::parse("http://registry/").expect("an address")],
            randomize: false,
            credential: Some(Credential::Basic("u".to_owned(), SecretString::from(password))),
            truststore: None,
            keystore: None,
            prefix: String::new(),
            proxy: None,
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(1),
            max_retries: 0,
            wait: Duration::ZERO,
            max_wait: Duration::ZERO,
            auto_register: true,
            use_latest: false,
            latest_ttl: None,
            normalize: false,
            key_strategy: Strategy::Topic,
            value_strategy: Strategy::Topic,
        }
    }

    #[tokio::test]
    async fn of_tables_that_are_refused_together_one_looks_again_and_all_ask_with_what_it_finds() {
        let rotation = Arc::new(Turns(AtomicU32::new(0)));
        let registry = Confluent::new(settings("p0"), Arc::clone(&rotation) as Arc<dyn Rotation>, Answers::default(), Host::system());
        let registry = registry.expect("a client");
        let refused = Arc::clone(&*registry.access.read().await);
        for _ in 0..3 {
            assert!(registry.renew(&refused).await.expect("there is another"));
        }
        assert_eq!(rotation.0.load(Ordering::Relaxed), 1);
        let now = Arc::clone(&*registry.access.read().await);
        assert_eq!(now.settings.credential, settings("p1").credential);
    }

    #[test]
    fn a_header_is_a_zero_and_the_id_with_its_highest_byte_first() {
        assert_eq!(header(0x0102_0304)[..], [0, 1, 2, 3, 4]);
    }
}
