//! Carries a history out.

mod changes;
mod sweep;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tablesweep::assembly::{Assembly, SOURCES};
use tablesweep::config::{Resolver, load};
use tablesweep::cursor::memory::MemoryStore;
use tablesweep::cursor::sqlite::SqliteStore;
use tablesweep::cursor::{CursorStore, Item};
use tablesweep::host::Host;
use tablesweep::operate::{Operator, Order, Place, Rewinding, read_position};
use tablesweep::sweep::{Left, Outcome, WindowCache, forget_window};
use tablesweep_testbed::table_api::{Command, TableApi};

use crate::bed::words;
use crate::faulty::clock::PlannedClock;
use crate::faulty::sink::Collector;
use crate::faulty::store::Seen;
use crate::history::{History, Ids, Setup, Step, StoreKind, SweepStep};
use crate::run::changes::KEY;
use crate::world::World;

/// What happened in a history, or which promise it broke.
pub type Verdict = Result<Tally, String>;

/// The instance's time at which every history begins: 2026-03-01 12:00:00.
pub(crate) const BASE: i64 = 1_772_366_400;

/// Where the first sweep starts: no row is older, however the clock is set.
const START: i64 = BASE - 86_400;

pub(crate) const TABLE: &str = "incident";

/// How often things happened, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(pub BTreeMap<String, u64>);

impl Tally {
    pub(crate) fn add(&mut self, what: impl Into<String>, times: u64) {
        *self.0.entry(what.into()).or_default() += times;
    }

    /// Adds another history's.
    pub fn merge(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            self.add(what, *times);
        }
    }
}

/// What the reports of sweeps say, summed up.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    pub(crate) rows: u64,
    pub(crate) suppressed: u64,
}

/// A history under way.
pub(crate) struct Life<'a> {
    pub(crate) api: &'a TableApi,
    folder: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) world: World,
    /// The instance's time.
    pub(crate) now: i64,
    pub(crate) clock: Arc<PlannedClock>,
    host: Host,
    store: Arc<dyn CursorStore>,
    seen: Arc<Mutex<Seen>>,
    pub(crate) sink: Arc<Collector>,
    /// What a warm process keeps; gone when it ends.
    assembly: Option<Assembly>,
    windows: Arc<WindowCache>,
    left: Arc<Left>,
    pub(crate) reported: Reported,
    /// No clock has been set so far.
    pub(crate) steady: bool,
    /// Faults after which rows may be delivered again, windows lost by hand, and rows that a rewind delivers again.
    pub(crate) faults: u64,
    /// Those of them that found the window beside the item, where it may be older than the cursor.
    pub(crate) faults_beside: u64,
    pub(crate) lost_windows: u64,
    pub(crate) rewound: u64,
    /// Rows of seconds that were owed when a window was lost.
    pub(crate) owed_again: u64,
    pub(crate) tally: Tally,
}

/// A raw date-time value.
pub(crate) fn stamp(second: i64) -> Result<String, String> {
    let time = jiff::Timestamp::from_second(second).map_err(words)?;
    Ok(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

impl<'a> Life<'a> {
    pub(crate) async fn new(api: &'a TableApi, folder: &Path, history: &History) -> Result<Self, String> {
        let setup = history.setup.clone();
        api.clear_faults();
        api.set_clock(&stamp(BASE)?).map_err(words)?;
        api.configure(|settings| {
            settings.counts = setup.counts;
            settings.limit_clamp = setup.own_limit.map(|(rows, _)| usize::from(rows));
            settings.links = setup.own_limit.is_none_or(|(_, links)| links);
            settings.links_without_count = !setup.blind;
        })
        .map_err(words)?;
        api.apply(Command::Create { table: TABLE.to_owned(), columns: Vec::new(), without: Vec::new() }).map_err(words)?;
        let clock = PlannedClock::at((BASE + setup.ahead) * 1000);
        let host = Host::with_clock(Arc::clone(&clock) as _);
        let store = open_store(folder, &setup, &host).await?;
        let mut life = Self {
            api,
            folder: folder.to_owned(),
            world: World::new(&setup),
            now: BASE,
            clock,
            host,
            store,
            seen: Arc::default(),
            sink: Arc::default(),
            assembly: None,
            windows: Arc::default(),
            left: Arc::default(),
            reported: Reported::default(),
            steady: true,
            faults: 0,
            faults_beside: 0,
            lost_windows: 0,
            rewound: 0,
            owed_again: 0,
            tally: Tally::default(),
            setup,
        };
        life.write_document()?;
        for (gap, rows) in life.setup.first.clone() {
            life.pass(i64::from(gap));
            life.insert(rows, 0, false)?;
        }
        Ok(life)
    }

    fn write_document(&self) -> Result<(), String> {
        let Setup { batch, overlap, lag, window, poll, most_bytes, ids, .. } = &self.setup;
        let mut document = json!({ "name": "snow", "config": {
            "connector.class": "servicenow",
            "tasks.max": "1",
            "snow.url": self.api.url(),
            "snow.auth.username": "sweep",
            "snow.auth.password": "correct-horse-9",
            "snow.tables": "inc",
            "snow.table.inc.name": TABLE,
            "snow.table.inc.topic": "snow.incident",
            "snow.table.inc.start.timestamp": stamp(START)?,
            "snow.http.request.timeout.ms": "1000",
            "snow.retry.max.attempts": "3",
            "snow.retry.initial.backoff.ms": "1",
            "snow.retry.max.backoff.ms": "3",
            "snow.source.batch.size": batch.to_string(),
            "snow.source.overlap.seconds": overlap.to_string(),
            "snow.source.safety.lag.seconds": lag.to_string(),
            "snow.source.dedup.window.records": window.to_string(),
            "snow.source.poll.interval.ms": (poll * 1000).to_string(),
        }});
        if *ids != Ids::SysId {
            document["config"]["snow.table.inc.sys.id.field"] = json!(KEY);
        }
        if let Some(bytes) = most_bytes {
            document["config"]["snow.http.max.response.bytes"] = json!(bytes.to_string());
        }
        std::fs::write(self.folder.join("config/connectors/snow.json"), document.to_string()).map_err(words)
    }

    /// The process: warm, or built from the documents.
    fn process(&mut self) -> Result<&Assembly, String> {
        let assembly = match self.assembly.take() {
            Some(warm) => warm,
            None => {
                let documents = load(&self.folder.join("config"), SOURCES, &|_| None).map_err(words)?;
                let resolver = Arc::new(Resolver::new(|_| None, || std::time::UNIX_EPOCH));
                Assembly::new(documents, resolver, self.host.clone())
            }
        };
        Ok(self.assembly.insert(assembly))
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stored cursor of the table, if there is one yet.
    pub(crate) async fn item(&self) -> Result<Option<Item>, String> {
        Ok(self.store.list("snow").await.map_err(words)?.pop())
    }

    /// Time passes here and there.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.api.step_clock(seconds);
        self.now += seconds;
        self.clock.pass(seconds * 1000);
    }

    /// All of it: the steps, the quiet after them, and the verdict.
    pub(crate) async fn live(&mut self, steps: &[Step]) -> Verdict {
        for step in steps {
            self.step(step).await?;
        }
        self.settle().await?;
        self.judge().await?;
        Ok(std::mem::take(&mut self.tally))
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Insert { rows, back, hidden } => self.insert(*rows, i64::from(*back), *hidden)?,
            Step::Update { pick, back } => self.update(*pick, i64::from(*back))?,
            Step::Hide { pick } => self.hide(*pick)?,
            Step::Show { pick } => self.show(*pick)?,
            Step::Delete { pick } => self.delete(*pick)?,
            Step::Pass { seconds } => self.pass(i64::from(*seconds)),
            Step::StepInstance { seconds } => {
                self.api.step_clock(i64::from(*seconds));
                self.now += i64::from(*seconds);
                self.steady = false;
            }
            Step::StepLocal { seconds } => {
                self.clock.step(i64::from(*seconds) * 1000);
                self.steady = false;
            }
            Step::Sweep(sweep) => {
                self.sweep(sweep).await?;
            }
            Step::Rewind { back } => self.rewind(i64::from(*back)).await?,
            Step::LoseWindow => self.lose_window().await?,
            Step::Restart => (self.assembly, self.windows, self.left) = (None, Arc::default(), Arc::default()),
        }
        Ok(())
    }

    /// Sets the cursor back as an operator does; while a lease is held, or before a cursor is there, nothing happens.
    async fn rewind(&mut self, back: i64) -> Result<(), String> {
        let Some(last) = self.world.last_second() else { return Ok(()) };
        let to = last - back;
        if self.missing().iter().any(|(_, second, _)| *second < to) {
            // Late rows before the new position would not be looked for any more.
            return Ok(());
        }
        let documents = load(&self.folder.join("config"), SOURCES, &|_| None).map_err(words)?;
        let connector = documents.connector("snow").ok_or("no connector")?;
        let place = Place::of(connector, &|_| None).pop().ok_or("no table")?;
        let position = read_position("servicenow", &stamp(to)?)?;
        let places = std::slice::from_ref(&place);
        let operator = Operator { store: &*self.store, host: &self.host, places, who: "history".to_owned() };
        let order = Order::Rewind(Rewinding { to: position, forward: false, request_id: None });
        let Ok(prepared) = operator.prepare(&place, order).await else { return Ok(()) };
        if operator.carry_out(prepared).await.is_ok_and(|done| done.changed) {
            self.rewound += self.world.rewound_to(to);
            self.seen().cursor = None;
            self.tally.add("rewinds", 1);
        }
        Ok(())
    }

    async fn lose_window(&mut self) -> Result<(), String> {
        let Some(item) = self.item().await? else { return Ok(()) };
        if self.store.list_blobs("snow#window").await.map_err(words)?.is_empty() {
            return Ok(());
        }
        forget_window(&*self.store, &item.identity.key()).await.map_err(words)?;
        self.lost_windows += 1;
        self.owed_again += self.rows_owed().await?;
        self.tally.add("windows lost", 1);
        Ok(())
    }

    /// The rows of the seconds that the cursor says are still to be read again.
    pub(crate) async fn rows_owed(&self) -> Result<u64, String> {
        let Some(item) = self.item().await? else { return Ok(0) };
        let notes = ["overdue", "again"].iter().filter_map(|name| item.progress.notes.get(*name));
        let spans = notes.flat_map(|text| text.split(','));
        let spans: Vec<(i64, i64)> =
            spans.filter_map(|text| text.split_once('|')).filter_map(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?))).collect();
        Ok(self.world.rows_in(|second| spans.iter().any(|(from, to)| (*from..=*to).contains(&second))))
    }

    /// Time passes until a lease that a killed process left is over.
    pub(crate) async fn outlast_lease(&mut self) -> Result<(), String> {
        let lease = self.item().await?.and_then(|item| item.lease);
        if let Some(lease) = lease.filter(|lease| lease.until_ms != i64::MAX) {
            let wait = lease.until_ms.saturating_sub(self.clock.wall());
            if wait >= 0 {
                self.pass(wait / 1000 + 1);
            }
        }
        Ok(())
    }

    /// Quiet sweeps without faults, until everything has been delivered and the overlap been read again.
    async fn settle(&mut self) -> Result<(), String> {
        self.outlast_lease().await?;
        let last = self.world.last_second().unwrap_or(self.now);
        self.pass((last + self.setup.lag + 1 - self.now).max(0));
        // A late row may lie just behind the re-read, which then goes round once more, a page of one row at a time at worst.
        let rounds = 3 * (self.world.widest + self.setup.overlap.unsigned_abs() + 4) + 15;
        let mut idle = 0;
        let mut last = None;
        for round in 0..rounds {
            self.pass(2);
            let reports = self.sweep(&SweepStep::default()).await?;
            let report = reports.into_iter().next().ok_or("a sweep without a report")?;
            let died = report.reason.as_ref().is_some_and(|reason| reason.code == "Sweep.Died");
            if !(report.outcome == Outcome::CaughtUp || report.outcome == Outcome::More || (round == 0 && died)) {
                return Err(format!("a sweep after all faults: {report:?}"));
            }
            if self.missing().is_empty() && report.outcome == Outcome::CaughtUp {
                idle += 1;
            }
            last = Some(report);
            if idle > 3 + self.world.widest / u64::from(self.setup.batch) {
                return Ok(());
            }
        }
        Err(format!("after {rounds} quiet sweeps not delivered: {:?}; the last: {last:?}", self.missing()))
    }
}

async fn open_store(folder: &Path, setup: &Setup, host: &Host) -> Result<Arc<dyn CursorStore>, String> {
    Ok(match setup.store {
        StoreKind::Memory => Arc::new(MemoryStore::with_host(host.clone())),
        StoreKind::Sqlite => Arc::new(SqliteStore::open_with(folder.join("cursors.db"), host.clone()).await.map_err(words)?),
    })
}
