//! One producer, from its creation to its end.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _};
use rdkafka::error::{KafkaError as ClientError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, PurgeConfig, ThreadedProducer};
use tokio::time::Sleep;

use super::context::{Context, Refused, Since, Trouble};
use super::error::{self, KafkaError, shown_key};
use super::iam::Signer;
use super::page::{Failed, Page};
use super::settings::Settings;
use crate::host::Host;
use crate::record::Record;

/// How often a full queue is tried again. librdkafka makes room only after the report's callback has returned, so there
/// is no event to wait for; at this pace the queue cannot run empty meanwhile.
const QUEUE_RETRY: Duration = Duration::from_millis(2);

/// After so many records the other tasks of this thread get a turn.
const TURN: usize = 1_000;

/// How long a purge may take to report what it purged.
pub(super) const PURGE: Duration = Duration::from_secs(1);

/// A topic whose leader is being elected is asked for again after this time.
const ELECTION_RETRY: Duration = Duration::from_millis(100);

/// How often. A topic that was just created has its leaders by then.
const ELECTION_TRIES: usize = 20;

/// A producer and what is known through it.
pub(super) struct Session {
    /// Taken when the session ends.
    producer: Option<ThreadedProducer<Context>>,
    settings: Arc<Settings>,
    /// The access key of AWS that signed its tokens when it was made.
    access_key: Option<String>,
    checked: Mutex<BTreeSet<String>>,
    /// No further page is given to this producer.
    condemned: AtomicBool,
}

/// What the brokers can have against a topic.
enum TopicFault {
    /// A leader is being elected.
    Election,
    Refused(RDKafkaErrorCode),
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("checked", &self.checked).finish_non_exhaustive()
    }
}

impl Session {
    /// Creates a producer. It connects in the background.
    pub(super) fn open(settings: Arc<Settings>, host: &Host, signer: Option<Arc<Signer>>) -> Result<Self, KafkaError> {
        let config: ClientConfig = settings.client_config();
        let access_key = signer.as_ref().and_then(|signer| signer.access_key());
        let context = Context::new(host.clone(), settings.secrets(), signer);
        let producer = ThreadedProducer::from_config_and_context(&config, context).map_err(|error| settings.refused(&error))?;
        Ok(Self { producer: Some(producer), settings, access_key, checked: Mutex::default(), condemned: AtomicBool::new(false) })
    }

    /// The settings that the producer was made with.
    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The access key of AWS that signed its tokens when it was made, if it signs in with one.
    pub(super) fn access_key(&self) -> Option<&str> {
        self.access_key.as_deref()
    }

    /// Whether these are the settings that the producer was made with.
    pub(super) fn was_made_of(&self, settings: &Arc<Settings>) -> bool {
        Arc::ptr_eq(&self.settings, settings)
    }

    /// This moment of the producer's life.
    pub(super) fn now(&self) -> Since {
        self.context().now()
    }

    /// Returns once this producer was refused for who it is, if that was not overcome before this moment.
    pub(super) async fn refused(&self, since: Since) -> Refused {
        self.context().refused(since).await
    }

    /// Whether the producer waits for a token that it was not given, longer than a page can wait.
    pub(super) fn starved(&self) -> bool {
        self.context().starved()
    }

    fn producer(&self) -> &ThreadedProducer<Context> {
        self.producer.as_ref().expect("the producer is taken only when the session is dropped")
    }

    pub(super) fn trouble(&self) -> Trouble {
        self.context().trouble()
    }

    /// The error after which this producer takes nothing any more.
    pub(super) fn fatal_error(&self) -> Option<(RDKafkaErrorCode, String)> {
        self.producer().client().fatal_error()
    }

    /// No further page is given to this producer. Those that are with it keep it until they are settled.
    pub(super) fn condemn(&self) {
        self.condemned.store(true, Ordering::Release);
    }

    /// Whether a page may still be given to this producer.
    pub(super) fn usable(&self) -> bool {
        !self.condemned.load(Ordering::Acquire) && self.fatal_error().is_none()
    }

    /// Whether no record is queued, in flight, or waiting for its report to be counted.
    pub(super) fn idle(&self) -> bool {
        self.context().in_flight() == 0
    }

    pub(super) fn context(&self) -> &Context {
        self.producer().client().context()
    }

    /// Hands the records over in their order. However this ends, the page expects the reports of what was taken, and no
    /// others.
    pub(super) async fn queue(&self, records: &[Record], page: &Arc<Page>, timer: &mut Pin<Box<Sleep>>) -> Result<(), Failed> {
        let mut headers = Headers::default();
        self.context().expect(records.len());
        let mut open = Open { context: self.context(), page, records: records.len() };
        for (index, record) in records.iter().enumerate() {
            let queued = match headers.of(record) {
                Ok(headers) => self.queue_one(record, headers, page, timer).await,
                Err(code) => Err(code),
            };
            queued.map_err(|code| Failed { code, topic: record.topic.to_string(), key: shown_key(&record.key) })?;
            open.records -= 1;
            if index % TURN == TURN - 1 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    async fn queue_one(
        &self,
        record: &Record,
        headers: Option<OwnedHeaders>,
        page: &Arc<Page>,
        timer: &mut Pin<Box<Sleep>>,
    ) -> Result<(), RDKafkaErrorCode> {
        let mut next = BaseRecord {
            topic: &record.topic,
            partition: None,
            payload: record.value.as_deref(),
            key: Some(&*record.key),
            // librdkafka takes 0 for "now", and a broker refuses what lies before 1970.
            timestamp: record.timestamp_ms.filter(|ms| *ms > 0),
            headers,
            delivery_opaque: page.clone(),
        };
        loop {
            // A producer that is being given up would never become idle, and its successor could overtake this page.
            if self.condemned.load(Ordering::Acquire) {
                return Err(RDKafkaErrorCode::PurgeQueue);
            }
            let Err((error, returned)) = self.producer().send(next) else { return Ok(()) };
            match error.rdkafka_error_code() {
                Some(RDKafkaErrorCode::QueueFull) => next = returned,
                // A name with a NUL in it never reaches librdkafka, which is why it has no code.
                code => return Err(code.unwrap_or(RDKafkaErrorCode::InvalidArgument)),
            }
            tokio::select! {
                () = timer.as_mut() => return Err(RDKafkaErrorCode::QueueFull),
                () = tokio::time::sleep(QUEUE_RETRY) => {}
            }
        }
    }

    /// Purges the producer and waits until each of its records has been reported.
    ///
    /// What is queued and what waits for an answer is thrown away. An answer that is on its way is not waited for: the
    /// outcome of such a record is unknown, and counts as failed.
    pub(super) async fn give_up(&self) {
        self.condemn();
        // The reports come on the producer's own thread, which knows nothing of who waits here. A record that was being handed
        // over at the first purge is caught by the next.
        let reported = async {
            while !self.idle() {
                // Not waiting inside the call: a thread that looks up a host name cannot be hurried.
                self.producer().purge(PurgeConfig::default().queue().inflight().non_blocking());
                tokio::time::sleep(QUEUE_RETRY).await;
            }
        };
        if tokio::time::timeout(PURGE, reported).await.is_err() {
            tracing::error!(in_flight = self.context().in_flight(), "a purged Kafka producer has not reported all of its records");
        }
    }

    /// Ends the producer and waits for its end.
    pub(super) async fn end(mut self) {
        let producer = self.producer.take();
        if let Err(ended) = tokio::task::spawn_blocking(move || drop(producer)).await {
            tracing::error!(%ended, "the end of a Kafka producer was broken off");
        }
    }

    /// Asks the brokers about the topics that were not asked about yet.
    pub(super) async fn check(self: &Arc<Self>, topics: &[&str]) -> Result<(), KafkaError> {
        let settings = self.settings();
        let open: Vec<String> = {
            let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
            let open: BTreeSet<&str> = topics.iter().copied().filter(|topic| !checked.contains(*topic)).collect();
            open.into_iter().map(str::to_owned).collect()
        };
        if open.is_empty() {
            return Ok(());
        }
        let asked = tokio::time::timeout(settings.check_timeout(), async {
            for topic in &open {
                self.check_one(topic).await?;
            }
            Ok(())
        });
        match asked.await {
            Ok(checked) => checked,
            Err(_) => Err(error::unanswered(&open, &self.trouble(), settings)),
        }
    }

    async fn check_one(self: &Arc<Self>, topic: &str) -> Result<(), KafkaError> {
        let settings = self.settings();
        for _ in 0..ELECTION_TRIES {
            let (session, name, limit) = (self.clone(), topic.to_owned(), settings.check_timeout());
            let asked = tokio::task::spawn_blocking(move || session.fault_of(&name, limit));
            let fault = asked.await.map_err(|ended| KafkaError::Broken { reason: ended.to_string() })?;
            match fault {
                Ok(None) => {
                    self.checked.lock().unwrap_or_else(PoisonError::into_inner).insert(topic.to_owned());
                    return Ok(());
                }
                Ok(Some(TopicFault::Election)) => tokio::time::sleep(ELECTION_RETRY).await,
                Ok(Some(TopicFault::Refused(code))) => return Err(error::topic(topic, code, settings)),
                Err(_) => return Err(error::unanswered(&[topic.to_owned()], &self.trouble(), settings)),
            }
        }
        Err(error::topic(topic, RDKafkaErrorCode::LeaderNotAvailable, settings))
    }

    /// What the brokers say is wrong with a topic. Blocks.
    fn fault_of(&self, topic: &str, limit: Duration) -> Result<Option<TopicFault>, ClientError> {
        let metadata = self.producer().client().fetch_metadata(Some(topic), limit)?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        Ok(match found.map(|found| (found.error().map(RDKafkaErrorCode::from), found.partitions().is_empty())) {
            None => Some(TopicFault::Refused(RDKafkaErrorCode::UnknownTopicOrPartition)),
            Some((Some(RDKafkaErrorCode::LeaderNotAvailable), _)) | Some((None, true)) => Some(TopicFault::Election),
            Some((Some(code), _)) => Some(TopicFault::Refused(code)),
            Some((None, false)) => None,
        })
    }

    /// How many partitions a topic that was checked has. Blocks.
    pub(super) fn partitions(&self, topic: &str, limit: Duration) -> Result<usize, ClientError> {
        let metadata = self.producer().client().fetch_metadata(Some(topic), limit)?;
        Ok(metadata.topics().iter().find(|found| found.name() == topic).map_or(0, |found| found.partitions().len()))
    }

    /// The next check asks about this topic again.
    pub(super) fn forget(&self, topic: &str) {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).remove(topic);
    }
}

impl Drop for Session {
    /// Ending a producer joins its thread, which takes up to 600 ms: too long for a thread of the runtime.
    fn drop(&mut self) {
        let Some(producer) = self.producer.take() else { return };
        let ending = std::thread::Builder::new().name("producer end".to_owned()).spawn(move || drop(producer));
        if let Err(error) = ending {
            // The closure, and the producer with it, was dropped here instead.
            tracing::debug!(%error, "no thread to end a producer on");
        }
    }
}

/// Records that are still to be handed over. A sweep that is dropped meanwhile drops this as well, and with it what was
/// expected of them.
struct Open<'a> {
    context: &'a Context,
    page: &'a Page,
    records: usize,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.context.unexpect(self.records);
        self.page.closed(self.records);
    }
}

/// The headers of the records, made once for all records that share them. librdkafka owns what it is given, so each record
/// gets a copy; the copy is made in C and costs less than building.
#[derive(Default)]
struct Headers<'a> {
    of: Option<&'a Arc<[(String, String)]>>,
    made: Option<OwnedHeaders>,
}

impl<'a> Headers<'a> {
    fn of(&mut self, record: &'a Record) -> Result<Option<OwnedHeaders>, RDKafkaErrorCode> {
        if !self.of.is_some_and(|known| Arc::ptr_eq(known, &record.headers)) {
            // The name goes through C, where a NUL would end it.
            if record.headers.iter().any(|(name, _)| name.contains('\0')) {
                return Err(RDKafkaErrorCode::InvalidArgument);
            }
            self.of = Some(&record.headers);
            self.made = (!record.headers.is_empty()).then(|| {
                let made = OwnedHeaders::new_with_capacity(record.headers.len());
                record.headers.iter().fold(made, |made, (name, value)| made.insert(Header { key: name, value: Some(value.as_bytes()) }))
            });
        }
        Ok(self.made.clone())
    }
}
