//! Schema registries: what is registered under which name, what is asked how often, and what happens to a table when a
//! registry refuses or is gone. The registry is Apicurio's, behind a proxy that sees and breaks the traffic; Glue is moto.

mod confluent;
mod faults;
mod glue;
mod sign_in;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tablesweep::assembly::Assembly;
use tablesweep::delivery::ToOne;
use tablesweep::failure::Failure;
use tablesweep::record::Record;
use tablesweep::sink::{Acks, Delivered, Sink};
use tablesweep::sweep::TableReport;
use tablesweep_testbed::proxy::Proxy;
use tablesweep_testbed::schema_registry::{self, PATH, Server};
use tokio::sync::watch;

use crate::laptop::Laptop;

/// A sink that keeps what it is given.
#[derive(Debug, Default)]
struct Heap(Mutex<Vec<Record>>);

#[async_trait]
impl Sink for Heap {
    async fn check(&self, _topics: &[&str]) -> Result<(), Failure> {
        Ok(())
    }

    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure> {
        let rows = records.len() as u64;
        self.0.lock().expect("whole").extend(records);
        Ok(Box::pin(async move { Ok(Delivered { rows, skipped: 0 }) }))
    }

    fn message_timeout(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// A laptop whose values are Avro, with a registry of which every request is seen.
struct Stand {
    laptop: Laptop,
    registry: &'static Server,
    proxy: Proxy,
    topic: String,
    heap: Arc<Heap>,
}

impl Stand {
    /// Five rows for a topic of the test's own.
    async fn new(topic: &str) -> Self {
        let registry = schema_registry::shared().await.expect("the registry starts");
        let proxy = Proxy::http(registry.address()).await.expect("a proxy");
        let topic = format!("registries.{topic}");
        let laptop = Laptop::new()
            .with("snow.table.inc.topic", &topic)
            .with("snow.source.schema.mode", "strings")
            .with("value.converter", "io.confluent.connect.avro.AvroConverter")
            .with("value.converter.schema.registry.url", format!("{}{PATH}", proxy.url()))
            .with("value.converter.retries.wait.ms", "1");
        laptop.generate(5, 1);
        Self { laptop, registry, proxy, topic, heap: Arc::default() }
    }

    /// The same with a setting of the values' converter.
    fn with(mut self, setting: &str, value: impl ToString) -> Self {
        self.laptop.set(&format!("value.converter.{setting}"), value);
        self
    }

    /// The subject of values.
    fn subject(&self) -> String {
        format!("{}-value", self.topic)
    }

    /// A sweep by a process of its own.
    async fn sweep(&self) -> TableReport {
        self.warm(&self.laptop.assembly(&self.laptop.host)).await
    }

    /// A sweep by a process that keeps what it knows.
    async fn warm(&self, process: &Assembly) -> TableReport {
        let (_stop, stopped) = watch::channel(false);
        let sink = ToOne(Arc::clone(&self.heap) as Arc<dyn Sink>);
        let mut reports = self.laptop.sweep_warm(process, &sink, stopped).await;
        assert_eq!(reports.len(), 1);
        reports.remove(0)
    }

    /// The lines of the requests so far: method and path.
    fn asked(&self) -> Vec<String> {
        let line = |request: &[u8]| String::from_utf8_lossy(request).lines().next().unwrap_or_default().to_owned();
        self.proxy.carried().iter().map(|carried| line(&carried.request).trim_end_matches(" HTTP/1.1").to_owned()).collect()
    }

    /// The bytes of every value so far.
    fn values(&self) -> Vec<Vec<u8>> {
        self.heap.0.lock().expect("whole").iter().map(|record| record.value.as_ref().expect("no tombstone").to_vec()).collect()
    }

    /// Every row was delivered, once.
    fn assert_complete(&self) {
        let keys: Vec<String> =
            self.heap.0.lock().expect("whole").iter().map(|record| String::from_utf8(record.key.to_vec()).expect("text")).collect();
        let expected: BTreeSet<String> = self.laptop.expected().into_iter().map(|(_, id, _)| id).collect();
        assert_eq!(keys.len(), expected.len());
        assert_eq!(keys.into_iter().collect::<BTreeSet<_>>(), expected);
    }

    /// The cursor stands where it stood before the first sweep, and nothing was produced.
    async fn assert_untouched(&self) {
        assert!(self.values().is_empty(), "{} records were produced", self.values().len());
        let item = self.laptop.item().await;
        assert_eq!(item.progress.cursor, None);
    }
}

/// The id in the header of a record.
fn id(value: &[u8]) -> u64 {
    assert_eq!(value[0], 0, "the magic byte");
    u32::from_be_bytes(value[1..5].try_into().expect("four bytes")).into()
}
