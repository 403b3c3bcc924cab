//! The floor: the least that it takes to bring the same bytes from the same instance into Kafka.
//!
//! It asks for the pages that a sweep asked for, inflates them, and hands pieces of them to librdkafka under the same
//! settings. It does not read JSON: where each record's key and value lie in which page was found out before, by
//! another process, and is read from a file ([`plan`](crate::plan)). It keeps no cursor, knows no lease, bounds nothing and trusts the
//! instance. Inflating belongs to it, since librdkafka is given the bytes of rows and not those of gzip.
//!
//! So the difference between floor and sweep is what the sweep adds: finding rows, checking them, remembering them,
//! committing cursors. The floor is made with care: one buffer for all pages, one topic handle's worth of settings,
//! the headers built once, an acknowledgement counted by one atomic addition.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flate2::write::MultiGzDecoder;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use tokio::sync::Notify;

use crate::failed::Failed;
use crate::job::{FloorDone, FloorJob};
use crate::plan::{Page, Piece, Reader};
use crate::usage::Usage;

/// How often a full queue is tried again; the sink does it at the same pace.
const QUEUE_RETRY: Duration = Duration::from_millis(2);

/// Downloads all pages of the plan and produces their records.
pub async fn run(job: FloorJob) -> Result<FloorDone, Failed> {
    let failed = |why: &dyn std::fmt::Display| Failed::at("the floor", why);
    let mut config = ClientConfig::new();
    config.extend(job.producer.clone());
    let producer = ThreadedProducer::from_config_and_context(&config, Reports::default()).map_err(|error| failed(&error))?;
    let http = reqwest::Client::builder().no_proxy().build().map_err(|error| failed(&error))?;
    let floor = Floor { producer, http, headers: headers(&job.headers), job: &job };
    let mut plan = Reader::open(&job.plan)?;
    let (mut body, mut sent, mut bytes_in, mut bytes_out) = (Vec::new(), 0, 0, 0);
    while let Some((page, pieces)) = plan.next_page()? {
        (body, bytes_in) = floor.download(&page, body, bytes_in).await?;
        for piece in &pieces {
            let (key, value) = piece.of(&body).ok_or_else(|| failed(&format!("the plan does not fit the page {}", page.url)))?;
            floor.produce(key, value, piece).await?;
            bytes_out += (key.len() + value.len()) as u64;
        }
        sent += pieces.len() as u64;
    }
    let records = floor.acknowledged(sent).await?;
    Ok(FloorDone { records, bytes_in, bytes_out, usage: Usage::own()? })
}

fn headers(headers: &[(String, String)]) -> OwnedHeaders {
    let made = OwnedHeaders::new_with_capacity(headers.len());
    headers.iter().fold(made, |made, (key, value)| made.insert(Header { key, value: Some(value) }))
}

struct Floor<'a> {
    producer: ThreadedProducer<Reports>,
    http: reqwest::Client,
    headers: OwnedHeaders,
    job: &'a FloorJob,
}

impl Floor<'_> {
    /// The page, inflated into `buffer`; and the bytes that came so far, with those of the page.
    async fn download(&self, page: &Page, mut buffer: Vec<u8>, mut bytes_in: u64) -> Result<(Vec<u8>, u64), Failed> {
        let failed = |why: &dyn std::fmt::Display| Failed::at(format!("downloading {}", page.url), why);
        let (user, password) = &self.job.user;
        let request = self.http.get(&page.url).header("accept", "application/json").header("accept-encoding", "gzip");
        let sent = request.basic_auth(user, Some(password)).send().await.and_then(reqwest::Response::error_for_status);
        let mut answer = sent.map_err(|error| failed(&error))?;
        if answer.headers().get("content-encoding").is_none_or(|encoding| encoding != "gzip") {
            return Err(failed(&"the answer is not compressed"));
        }
        buffer.clear();
        let mut inflate = MultiGzDecoder::new(buffer);
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
            bytes_in += chunk.len() as u64;
            inflate.write_all(&chunk).map_err(|error| failed(&error))?;
        }
        let body = inflate.finish().map_err(|error| failed(&error))?;
        if body.len() as u64 != page.bytes {
            return Err(failed(&format!("it has {} bytes and had {} when the plan was made", body.len(), page.bytes)));
        }
        Ok((body, bytes_in))
    }

    async fn produce(&self, key: &[u8], value: &[u8], piece: &Piece) -> Result<(), Failed> {
        let mut next = BaseRecord::to(&self.job.topic).key(key).payload(value).timestamp(piece.timestamp_ms).headers(self.headers.clone());
        loop {
            let Err((error, returned)) = self.producer.send(next) else { return Ok(()) };
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                return Err(Failed::at("producing", error));
            }
            next = returned;
            tokio::time::sleep(QUEUE_RETRY).await;
        }
    }

    /// Waits for all acknowledgements.
    async fn acknowledged(&self, sent: u64) -> Result<u64, Failed> {
        let reports = self.producer.client().context();
        reports.last.store(sent, Ordering::SeqCst);
        while reports.seen.load(Ordering::SeqCst) < sent {
            reports.all.notified().await;
        }
        match reports.failed.load(Ordering::SeqCst) {
            0 => Ok(sent),
            failed => Err(Failed::at("producing", format!("{failed} of {sent} records were not acknowledged"))),
        }
    }
}

/// Counts the delivery reports.
#[derive(Debug)]
struct Reports {
    seen: AtomicU64,
    failed: AtomicU64,
    /// The count at which somebody waits.
    last: AtomicU64,
    all: Notify,
}

impl Default for Reports {
    fn default() -> Self {
        Self { seen: AtomicU64::new(0), failed: AtomicU64::new(0), last: AtomicU64::new(u64::MAX), all: Notify::new() }
    }
}

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, report: &DeliveryResult<'_>, (): ()) {
        if report.is_err() {
            self.failed.fetch_add(1, Ordering::SeqCst);
        }
        if self.seen.fetch_add(1, Ordering::SeqCst) + 1 >= self.last.load(Ordering::SeqCst) {
            self.all.notify_one();
        }
    }
}
