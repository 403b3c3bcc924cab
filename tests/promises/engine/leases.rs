//! Leases of sweeps that could not end as they should: the store was out of reach for a while, or the sweep panicked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tablesweep::cursor::memory::MemoryStore;
use tablesweep::cursor::{Blob, Change, CursorStore, Expect, Item, Key, LeaseTerm, Listing, StoreError, Write, WriteError};
use tablesweep::delivery::ToOne;
use tablesweep::failure::Failure;
use tablesweep::host::Host;
use tablesweep::record::Record;
use tablesweep::sink::ndjson::NdjsonSink;
use tablesweep::sink::{Acks, Sink};
use tablesweep::sweep::{ByteBudget, Engine, LeasePlan, Mode, Outcome, Run, TableReport};
use tokio::sync::watch;

use super::code;
use crate::laptop::Laptop;

/// A network between a sweep and its store.
#[derive(Debug)]
struct Network {
    store: Arc<dyn CursorStore>,
    fault: Mutex<Option<Fault>>,
}

/// What it does to writes.
#[derive(Debug, Clone, Copy)]
struct Fault {
    /// The writes that it strikes.
    strikes: fn(&Change) -> bool,
    /// So many of them.
    times: u32,
    /// They arrive, and their answers do not.
    arrives: bool,
    /// Nothing gets through after the first one, of which `times` is the largest number there is.
    cut: bool,
}

impl Fault {
    fn is_cut(&self) -> bool {
        self.cut && self.times < u32::MAX
    }
}

impl Network {
    fn error(&self) -> StoreError {
        StoreError::Unreachable { store: self.store.name().to_owned(), detail: "the line is cut".to_owned() }
    }

    /// Whether a fault strikes this write, and whether it arrives then.
    fn struck(&self, change: &Change) -> Option<bool> {
        let mut fault = self.fault.lock().expect("a lock");
        let fault = fault.as_mut().filter(|fault| fault.is_cut() || fault.times > 0 && (fault.strikes)(change))?;
        // What is sent when the line is cut has gone through before.
        let arrives = fault.arrives && !fault.is_cut();
        fault.times -= 1;
        Some(arrives)
    }

    fn passes(&self) -> Result<(), StoreError> {
        if self.fault.lock().expect("a lock").as_ref().is_some_and(Fault::is_cut) { Err(self.error()) } else { Ok(()) }
    }

    fn set(&self, fault: Option<Fault>) {
        *self.fault.lock().expect("a lock") = fault;
    }
}

#[async_trait]
impl CursorStore for Network {
    fn name(&self) -> &str {
        self.store.name()
    }

    fn lease_term(&self) -> LeaseTerm {
        self.store.lease_term()
    }

    async fn write(&self, key: &Key, write: &Write) -> Result<Item, WriteError> {
        match self.struck(&write.change) {
            None => self.store.write(key, write).await,
            Some(arrives) => {
                if arrives {
                    self.store.write(key, write).await?;
                }
                Err(self.error().into())
            }
        }
    }

    async fn read(&self, key: &Key) -> Result<Option<Item>, StoreError> {
        self.passes()?;
        self.store.read(key).await
    }

    async fn survey(&self, connector: &str) -> Result<Listing, StoreError> {
        self.store.survey(connector).await
    }

    async fn connectors(&self) -> Result<Vec<String>, StoreError> {
        self.store.connectors().await
    }

    async fn remove(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.store.remove(key, now_ms).await
    }

    async fn discard(&self, key: &Key, now_ms: i64) -> Result<(), WriteError> {
        self.store.discard(key, now_ms).await
    }

    async fn get_blob(&self, partition: &str, place: &str) -> Result<Option<Blob>, StoreError> {
        self.store.get_blob(partition, place).await
    }

    async fn put_blob(
        &self,
        partition: &str,
        place: &str,
        bytes: &[u8],
        expect: Expect,
        expires_at_ms: Option<i64>,
    ) -> Result<Option<u64>, StoreError> {
        self.store.put_blob(partition, place, bytes, expect, expires_at_ms).await
    }

    async fn list_blobs(&self, partition: &str) -> Result<Vec<(String, Blob)>, StoreError> {
        self.store.list_blobs(partition).await
    }

    async fn remove_blob(&self, partition: &str, place: &str) -> Result<(), StoreError> {
        self.store.remove_blob(partition, place).await
    }
}

/// A process that sweeps more than once, with a network between it and its store.
struct Process {
    laptop: Laptop,
    network: Arc<Network>,
    engine: Engine,
    lease: LeasePlan,
}

impl Process {
    /// Its leases last as long as it lives, as with SQLite, or for an hour, as if a function had that long.
    async fn new(as_process: bool) -> Self {
        let laptop = Laptop::new().with("snow.source.batch.size", 10);
        laptop.generate(60, 3);
        let store: Arc<dyn CursorStore> = if as_process { laptop.store().await } else { Arc::new(MemoryStore::new()) };
        let network = Arc::new(Network { store, fault: Mutex::default() });
        let host = Host::system();
        let lease = if as_process { LeasePlan::Process } else { LeasePlan::Until(host.now_ms() + 3_600_000) };
        let engine = Engine::new(host, Arc::clone(&network) as Arc<dyn CursorStore>, ByteBudget::of_memory(laptop.memory));
        Self { laptop, network, engine, lease }
    }

    async fn sweep(&self) -> TableReport {
        self.sweep_some(None).await
    }

    async fn sweep_some(&self, max_rows: Option<u64>) -> TableReport {
        let file = Arc::new(NdjsonSink::open(self.laptop.path("out.ndjson")).expect("a file"));
        self.sweep_into(&self.engine, file, max_rows).await
    }

    async fn sweep_into(&self, engine: &Engine, sink: Arc<dyn Sink>, max_rows: Option<u64>) -> TableReport {
        let (jobs, refused) = self.laptop.assembly(&engine.host).jobs(&self.laptop.selection, &ToOne(sink)).await;
        assert!(refused.is_empty(), "{refused:?}");
        let (_stop, stop) = watch::channel(false);
        let run = Run { mode: Mode::CatchUp, scheduled: false, deadline: None, max_rows, lease: self.lease, stop };
        engine.run(jobs, &run).await.remove(0)
    }

    async fn item(&self) -> Item {
        self.network.store.list("snow").await.expect("a store").remove(0)
    }

    fn assert_all_is_delivered(&self, most_twice: usize) {
        let delivered = self.laptop.versions();
        assert_eq!(BTreeSet::from_iter(delivered.clone()), BTreeSet::from_iter(self.laptop.expected()));
        assert!(delivered.len() <= 60 + most_twice, "{} records of 60 rows", delivered.len());
    }
}

fn is_commit(change: &Change) -> bool {
    matches!(change, Change::Commit(..))
}

fn is_release(change: &Change) -> bool {
    matches!(change, Change::Release(..))
}

/// Tries of one write, as many as the engine makes.
const TRIES: u32 = 3;

#[tokio::test]
async fn a_sweep_whose_write_gets_no_answer_gives_its_lease_back_and_the_next_goes_on_at_once() {
    for as_process in [true, false] {
        for (last, arrives) in [(false, false), (false, true), (true, false), (true, true)] {
            let strikes = if last { is_release } else { is_commit };
            let process = Process::new(as_process).await;
            process.network.set(Some(Fault { strikes, times: TRIES, arrives, cut: false }));
            let report = process.sweep().await;
            let item = process.item().await;
            assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Cursor.Unreachable")), "{report:?}");
            assert_eq!(item.lease, None, "arrives: {arrives}");
            assert_eq!(report.cursor, item.progress.cursor, "what is reported is what the store has");
            assert_eq!(report.lag_seconds.is_some(), report.cursor.is_some(), "{report:?}");
            if !(arrives && last) {
                let failed = item.progress.failed().expect("a failure that is noted");
                assert_eq!((failed.code.as_str(), failed.times), ("Cursor.Unreachable", 1));
            }
            // Another process would find it free as well.
            let elsewhere = Engine::new(Host::system(), Arc::clone(&process.engine.store), ByteBudget::of_memory(process.laptop.memory));
            let file = Arc::new(NdjsonSink::open(process.laptop.path("out.ndjson")).expect("a file"));
            let next = process.sweep_into(&elsewhere, file, None).await;
            assert_eq!((next.outcome, code(&next)), (Outcome::CaughtUp, None), "{next:?}");
            assert_eq!(process.item().await.progress.failed(), None);
            process.assert_all_is_delivered(20);
        }
    }
}

#[tokio::test]
async fn a_lease_that_cannot_be_given_back_is_given_back_by_the_next_sweep_of_the_process() {
    for as_process in [true, false] {
        // The line is cut at the acquire, whose answer does not come, and then at a commit.
        for strikes in [(|change: &Change| matches!(change, Change::Acquire(_))) as fn(&Change) -> bool, is_commit] {
            let process = Process::new(as_process).await;
            let first = process.sweep_some(Some(10)).await;
            assert_eq!((first.outcome, first.rows), (Outcome::More, 10), "{first:?}");
            process.network.set(Some(Fault { strikes, times: u32::MAX, arrives: true, cut: true }));
            let report = process.sweep().await;
            assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Cursor.Unreachable")), "{report:?}");
            assert!(process.item().await.lease.is_some(), "nothing gets through");
            let still = process.sweep().await;
            assert_eq!(still.outcome, Outcome::Failed, "{still:?}");
            process.network.set(None);
            let next = process.sweep().await;
            assert_eq!((next.outcome, code(&next)), (Outcome::CaughtUp, None), "{next:?}");
            process.assert_all_is_delivered(20);
        }
    }
}

/// A sink with a defect that shows once.
#[derive(Debug)]
struct PanicsOnce {
    sink: NdjsonSink,
    panicked: AtomicBool,
    sends: AtomicU32,
    timeout: Duration,
}

#[async_trait]
impl Sink for PanicsOnce {
    async fn check(&self, topics: &[&str]) -> Result<(), Failure> {
        self.sink.check(topics).await
    }

    async fn send(&self, records: Vec<Record>) -> Result<Acks, Failure> {
        let nth = self.sends.fetch_add(1, Ordering::SeqCst);
        assert!(nth != 2 || self.panicked.swap(true, Ordering::SeqCst), "a defect of the test's sink");
        self.sink.send(records).await
    }

    fn message_timeout(&self) -> Duration {
        self.timeout
    }
}

#[tokio::test]
async fn a_table_whose_sweep_panicked_goes_on_in_the_same_process_once_nothing_of_it_is_with_the_sink() {
    for (timeout, expected) in [(Duration::ZERO, Outcome::CaughtUp), (Duration::from_secs(3600), Outcome::Skipped)] {
        let process = Process::new(true).await;
        let file = NdjsonSink::open(process.laptop.path("out.ndjson")).expect("a file");
        let sink = Arc::new(PanicsOnce { sink: file, panicked: AtomicBool::new(false), sends: AtomicU32::new(0), timeout });
        let report = process.sweep_into(&process.engine, Arc::clone(&sink) as _, None).await;
        assert_eq!((report.outcome, code(&report)), (Outcome::Failed, Some("Sweep.Panicked")), "{report:?}");
        let next = process.sweep_into(&process.engine, sink, None).await;
        assert_eq!(next.outcome, expected, "{next:?}");
        if expected == Outcome::CaughtUp {
            process.assert_all_is_delivered(20);
        }
    }
}
