//! Records into Kafka, through librdkafka.
//!
//! A row counts as delivered when the broker's answer for it has been counted, and for no other reason. `flush` is never
//! asked: it returns when nothing is queued any more, and a record that failed is not queued any more either. So
//! each page has a counter (`page`), each record carries a reference to its page, and the page's [`Acks`] resolve when
//! the last report is in, with the first failure if there was one. That is also why nothing of a failed page is
//! in flight when its failure is known, which a frozen Lambda environment depends on: what is in flight at the freeze
//! would be sent at the thaw, after newer rows of another environment.
//!
//! * One producer serves all tables with equal settings ([`KafkaSinks`]), from invocation to invocation. It is replaced
//!   after a fatal error and after a long sleep (`connection`).
//! * Timeouts nest, and a combination that does not is refused at the start (`settings`): a request within the life of
//!   a record, the life of a record within [`Sink::message_timeout`], and that within the invocation.
//! * Who we are is said anew when it has changed: secrets and certificates that were replaced are read again after a refusal
//!   (`rotation`), and an identity of AWS signs tokens with credentials that are fetched before they end (`iam`).
//! * A connection that fails for a reason that does not pass is told apart from one that just fails (`barrier`).
//! * Should librdkafka be late with its reports, the producer is purged and given up, so that `message_timeout` holds.
//! * A record that is too large is found before it is sent. The broker would refuse its neighbours with it.

mod barrier;
mod conflicts;
mod connection;
mod context;
mod creation;
mod error;
mod iam;
mod page;
mod probe;
mod rotation;
mod session;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use sha2::{Digest as _, Sha256};
use tokio::time::Sleep;

use crate::failure::Failure;
use crate::host::{Host, env, hex};
use crate::record::Record;
use crate::sink::{Acks, Delivered, Sink, TopicProbe};

pub use conflicts::{Conflict, conflicts};
use connection::Connection;
use context::{Refused, Since};
use creation::Purpose;
pub use creation::{NewTopic, TopicMaker};
use error::{KafkaError, shown_key};
use page::{Outcome, Page};
pub use rotation::Rotation;
use session::Session;

/// What to do with a record that is larger than `message.max.bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OversizePolicy {
    /// The page fails with `Sink.TooLarge` before any of it is sent.
    #[default]
    Fail,
    /// The record is left out, counted, and logged with its key, its sizes and the digest of its value.
    Skip,
}

/// What the sinks of a process have in common, beside the settings of the documents.
#[derive(Debug, Clone)]
pub struct KafkaOptions {
    /// The timeout of the Lambda function, from which the producer's timeouts follow. `None` outside Lambda.
    pub function_timeout: Option<Duration>,
    /// `client.id`, unless the documents set it: what the broker's logs and quotas call this process.
    pub client_id: String,
    /// The clock.
    pub host: Host,
    /// Where the identity of AWS comes from that signs in to Amazon MSK. `None`: from the surroundings of the process, as the SDK
    /// looks for it.
    pub credentials: Option<SharedCredentialsProvider>,
    /// The region of such a cluster, if the names of its brokers say none.
    pub region: Option<String>,
}

impl KafkaOptions {
    /// Outside Lambda, with the identity and the region of the surroundings.
    pub fn new(client_id: impl Into<String>, host: Host) -> Self {
        let region = env("AWS_REGION").or_else(|| env("AWS_DEFAULT_REGION"));
        Self { function_timeout: None, client_id: client_id.into(), host, credentials: None, region }
    }
}

/// The sinks of one process. Sinks with equal settings share one producer: its connections, its memory, its thread.
#[derive(Debug)]
pub struct KafkaSinks {
    options: KafkaOptions,
    connections: Mutex<BTreeMap<Secret, Arc<Connection>>>,
}

/// Settings, and what they were read from, as a key of a map, and never in a log.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Secret(BTreeMap<String, String>, BTreeMap<String, String>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Secret {
    /// Whether these are the settings of the same documents, whose placeholders stood for something else.
    fn is_another_reading_of(&self, other: &Self) -> bool {
        let Self(settings, places) = self;
        let is_read_or_equal = |(name, text): (&String, &String)| places.contains_key(name) || other.0.get(name) == Some(text);
        *places == other.1 && settings.len() == other.0.len() && settings.iter().all(is_read_or_equal)
    }
}

/// Takes out the connections that no sink will be asked for any more, now that the same documents say `now`.
fn superseded(connections: &mut BTreeMap<Secret, Arc<Connection>>, now: &Secret) -> Vec<Arc<Connection>> {
    let mut taken = Vec::new();
    connections.retain(|key, connection| {
        // One that a sink holds is in use: not everybody has looked again.
        let is_old = key.is_another_reading_of(now) && Arc::strong_count(connection) == 1;
        if is_old {
            taken.push(Arc::clone(connection));
        }
        !is_old
    });
    taken
}

impl KafkaSinks {
    /// No sinks yet.
    pub fn new(options: KafkaOptions) -> Self {
        Self { options, connections: Mutex::default() }
    }

    /// The sink for the settings of a connector, by librdkafka's names. `rotation` reads them again after a refused login.
    ///
    /// # Errors
    /// As [`KafkaSink::new`].
    pub fn sink(
        &self,
        settings: &BTreeMap<String, String>,
        rotation: Option<Arc<dyn Rotation>>,
        oversize: OversizePolicy,
    ) -> Result<KafkaSink, Failure> {
        let places = rotation.as_ref().map(|rotation| rotation.places()).unwrap_or_default();
        let key = Secret(settings.clone(), places);
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match connections.get(&key) {
            Some(connection) => connection.clone(),
            None => {
                let made = Connection::new(settings, &self.options, rotation)?;
                let made = Arc::new(made.after(superseded(&mut connections, &key)));
                connections.insert(key, made.clone());
                made
            }
        };
        Ok(KafkaSink { connection, oversize, topics: TopicMaker::none() })
    }

    /// Ends the producers and their threads, for a process that is about to end itself: a thread that is still in TLS code
    /// then may crash on it. What is not acknowledged yet fails. A sink that is used again gets a new producer.
    pub async fn close(&self) {
        let connections: Vec<_> = self.connections.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for connection in connections {
            connection.close().await;
        }
    }
}

/// A sink that produces to Kafka. Clones share their producer.
#[derive(Debug, Clone)]
pub struct KafkaSink {
    connection: Arc<Connection>,
    oversize: OversizePolicy,
    topics: TopicMaker,
}

impl KafkaSink {
    /// A sink with a producer of its own. Nothing is connected before the first [`Sink::check`] or [`Sink::send`].
    ///
    /// # Errors
    /// `Config.Invalid` names a setting that librdkafka does not take, that does not nest with the other timeouts, or
    /// that would break a promise.
    pub fn new(settings: &BTreeMap<String, String>, options: &KafkaOptions, oversize: OversizePolicy) -> Result<Self, Failure> {
        Ok(Self { connection: Arc::new(Connection::new(settings, options, None)?), oversize, topics: TopicMaker::none() })
    }

    /// The same sink, which creates missing topics as `topics` says.
    #[must_use]
    pub fn creating(self, topics: TopicMaker) -> Self {
        Self { topics, ..self }
    }

    /// Applies the policy for records that are too large, and gives the number of those left out.
    fn sift(&self, records: &mut Vec<Record>) -> Result<u64, KafkaError> {
        let limit = self.connection.settings().max_bytes;
        let all = records.len();
        if self.oversize == OversizePolicy::Fail {
            return match records.iter().find(|record| settings::size_on_the_wire(record) > limit) {
                Some(record) => Err(KafkaError::TooLarge {
                    topic: record.topic.to_string(),
                    key: shown_key(&record.key),
                    size: settings::size_on_the_wire(record),
                    limit,
                }),
                None => Ok(0),
            };
        }
        records.retain(|record| {
            let size = settings::size_on_the_wire(record);
            if size > limit {
                note_left_out(record, size, limit);
            }
            size <= limit
        });
        Ok((all - records.len()) as u64)
    }

    /// Waits for the reports of what was sent. When they do not come in time, the producer is purged: the reports come
    /// then, and what they say is that the page failed. So it is when the login was refused and there is another to try: nothing
    /// would come of waiting longer.
    async fn settle(
        connection: Arc<Connection>,
        session: Arc<Session>,
        page: Arc<Page>,
        since: Since,
        timer: Pin<Box<Sleep>>,
    ) -> Result<u64, KafkaError> {
        let (overdue, renewed) = tokio::select! {
            biased;
            () = page.settled() => (false, None),
            () = timer => (true, None),
            refused = another_login(&connection, &session, since) => (true, Some(refused)),
        };
        if overdue {
            session.give_up().await;
        }
        connection.touch();
        match page.outcome() {
            Outcome { acked, failed: None, in_flight: 0, .. } => Ok(acked),
            outcome => Err(Self::explain(&session, &outcome).await.with_another_login(renewed)),
        }
    }

    /// The error of a page that was not delivered. A producer that takes nothing any more is given up here, so that nothing of
    /// it is in flight when the next page gets a new one.
    async fn explain(session: &Arc<Session>, outcome: &Outcome) -> KafkaError {
        if let Some((code, reason)) = session.fatal_error() {
            session.give_up().await;
            return error::fatal(code, reason, session.settings());
        }
        if let Some(failed) = &outcome.failed {
            session.forget(&failed.topic);
        }
        let error = error::undelivered(outcome, &session.trouble(), session.settings());
        if error.bars_the_way() {
            session.condemn();
        }
        error
    }

    /// Asks about the topics, with another login if the brokers refuse this one and there is another.
    async fn check_topics(&self, topics: &[&str]) -> Result<(), KafkaError> {
        let mut tried_another = false;
        loop {
            let session = self.connection.session().await?;
            let since = session.now();
            let checked = tokio::select! {
                checked = session.check(topics) => checked,
                _ = another_login(&self.connection, &session, since), if !tried_another => {
                    session.give_up().await;
                    tried_another = true;
                    continue;
                }
            };
            self.connection.touch();
            if checked.as_ref().is_err_and(KafkaError::bars_the_way) {
                // Nothing of it is worth keeping: it would go on trying in vain, and remember this when it is over.
                session.condemn();
            }
            return checked;
        }
    }
}

/// Returns once `session` was refused for who it is since then and there is something else to be, and else never.
async fn another_login(connection: &Connection, session: &Session, since: Since) -> Refused {
    let refused = session.refused(since).await;
    if !connection.renew(session, refused).await {
        std::future::pending::<()>().await;
    }
    refused
}

/// The dead-letter note: enough to find the row at its source and to recognise it, and nothing of what it says.
fn note_left_out(record: &Record, size: usize, limit: usize) {
    let value = record.value.as_deref().unwrap_or_default();
    tracing::warn!(
        code = "Sink.TooLarge",
        topic = &*record.topic,
        key = shown_key(&record.key),
        size,
        limit,
        key_bytes = record.key.len(),
        value_bytes = value.len(),
        value_sha256 = hex(&Sha256::digest(value)),
        "a row is larger than message.max.bytes and is left out, as the oversize policy `skip` says"
    );
}

#[async_trait]
impl Sink for KafkaSink {
    async fn check(&self, topics: &[&str]) -> Result<(), Failure> {
        let mut created = BTreeSet::new();
        loop {
            match self.check_topics(topics).await {
                // Once: a topic that is missing although it was created is told as any missing one.
                Err(KafkaError::TopicMissing { topic, brokers }) => {
                    let Some(new) = self.topics.of(&topic).filter(|_| !created.contains(&topic)) else {
                        return Err(KafkaError::TopicMissing { topic, brokers }.into());
                    };
                    creation::create(&topic, &new, &self.connection, Purpose::Create).await?;
                    created.insert(topic);
                }
                settled => return Ok(settled?),
            }
        }
    }

    async fn probe(&self, topics: &[&str]) -> Vec<TopicProbe> {
        probe::topics(self, topics).await
    }

    async fn send(&self, mut records: Vec<Record>) -> Result<Acks, Failure> {
        let skipped = self.sift(&mut records)?;
        let mut timer = Box::pin(tokio::time::sleep(self.connection.settings().page_timeout()));
        let session = self.connection.session().await?;
        let (page, since) = (Page::expecting(records.len()), session.now());
        let queued = session.queue(&records, &page, &mut timer).await;
        drop(records);
        let settled = Self::settle(self.connection.clone(), session.clone(), page.clone(), since, timer);
        if let Err(refused) = queued {
            // What was taken before must be settled before this page may be called failed.
            if let Err(cause) = settled.await {
                return Err(cause.into());
            }
            let outcome = Outcome { failed: Some(refused), refused: 1, ..page.outcome() };
            return Err(Self::explain(&session, &outcome).await.into());
        }
        Ok(Box::pin(async move { Ok(Delivered { rows: settled.await?, skipped }) }))
    }

    fn message_timeout(&self) -> Duration {
        self.connection.settings().message_timeout()
    }
}

#[cfg(test)]
mod tests;
