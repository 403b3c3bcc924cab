//! One sweep of a history: what strikes it is planned, it runs, and what happened is read off the data.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tablesweep::assembly::{Selection, Sinks};
use tablesweep::config::Connector;
use tablesweep::cursor::{CursorStore, StoredWindow};
use tablesweep::failure::Failure;
use tablesweep::sink::Sink;
use tablesweep::sweep::{ByteBudget, Engine, Job, LeasePlan, Mode, Run, TableReport};
use tablesweep_testbed::table_api::{Command, Effect, Entry, Fault as ApiFault, HtmlPage};
use tokio::sync::watch;

use super::changes::{KEY, fields};
use super::{Life, TABLE, open_store, stamp};
use crate::bed::words;
use crate::faulty::sink::{Collector, MESSAGE_TIMEOUT};
use crate::faulty::store::FaultyStore;
use crate::faulty::{Death, clock, sink, store};
use crate::history::{Change, Fault, HttpFault, Ids, LeaseKind, SinkFault, StoreKind, SweepStep};
use crate::world::{Row, sys_id};

/// What the engine keeps of a deadline for the last acknowledgements and the release.
const RESERVE: Duration = Duration::from_secs(MESSAGE_TIMEOUT.as_secs() + 3);

/// No sweep of these few rows takes as long.
const STUCK: Duration = Duration::from_secs(10);

/// The name of the fault by which a node answers with a clock of its own.
const DATE: &str = "date_header";

/// How ids are asked for in a list.
const LISTS: [&str; 2] = ["sys_idIN", "u_keyIN"];

/// A change that is planned for the middle of a sweep.
enum Planned {
    Step(i64),
    Rows(i64, Vec<(String, Row)>),
}

struct OneSink(Arc<Collector>);

#[async_trait]
impl Sinks for OneSink {
    fn of(&self, _connector: &Connector) -> Result<Arc<dyn Sink>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Sink>)
    }
}

impl Life<'_> {
    /// Sweeps once. No report: the process was killed.
    pub(crate) async fn sweep(&mut self, step: &SweepStep) -> Result<Vec<TableReport>, String> {
        if step.patient {
            self.outlast_lease().await?;
        }
        self.plan_node(step)?;
        let due = self.due(step);
        self.world.swept_at(self.now);
        self.tally.add("sweeps", 1);
        self.api.clear_log();
        let planned = self.plan_change(step)?;
        if let Some(Fault::Http(nth, once, how)) = step.fault {
            let fault = ApiFault::new(effect(how)).table(TABLE).skip(u64::from(nth));
            self.api.fault(if once { fault } else { fault.always() });
        }
        if let Some(Fault::Count(nth, once, how)) = step.fault {
            let id = if self.setup.ids == Ids::SysId { "sys_id" } else { KEY };
            let fault = ApiFault::new(effect(how)).table(TABLE).fields(id).skip(u64::from(nth));
            self.api.fault(if once { fault } else { fault.always() });
        }
        let death = Arc::new(Death::default());
        let (stop, stopped) = watch::channel(false);
        let store = self.faulty_store(step.fault, &death);
        let sink_fault = if let Some(Fault::Sink(nth, how)) = step.fault { Some((u64::from(nth), how)) } else { None };
        self.sink.follow(sink::Plan { fault: sink_fault, death: Arc::clone(&death) });
        let run = self.plan_run(step, stopped);
        self.clock.follow(clock::Plan {
            tick_ms: step.deadline.map_or(0, |(_, tick)| i64::from(tick)),
            stop: step.stop_at.map(|at| (u64::from(at), stop.clone())),
            kill: if let Some(Fault::Kill(at)) = step.fault { Some((u64::from(at), Arc::clone(&death))) } else { None },
        });
        let reports = self.run(step, &run, &store, &death).await?;
        // A sender that is gone would count as an interrupt.
        drop(stop);
        self.clock.follow(clock::Plan::default());
        self.read_off(step, planned)?;
        self.count_faults(step, reports.is_none()).await?;
        match reports {
            Some(reports) => {
                self.judge_lease(step, &reports).await?;
                self.judge_reports(step, &reports, &due)?;
                self.reported.rows += reports.iter().map(|report| report.rows).sum::<u64>();
                self.reported.suppressed += reports.iter().map(|report| report.duplicates_suppressed).sum::<u64>();
                for report in &reports {
                    let code = report.reason.as_ref().map(|reason| format!(" {}", reason.code)).unwrap_or_default();
                    self.tally.add(format!("outcome {:?}{code}", report.outcome), 1);
                }
                if reports.iter().any(|report| report.reason.as_ref().is_some_and(|reason| reason.code == "Source.Unauthorized")) {
                    // A process does not repeat a login that was refused; a new one does.
                    self.assembly = None;
                }
                if self.setup.store == StoreKind::Sqlite {
                    // A run of the command line is a process, and its leases end with it.
                    self.bury(store).await?;
                }
                Ok(reports)
            }
            None => {
                self.bury(store).await?;
                Ok(Vec::new())
            }
        }
    }

    fn faulty_store(&self, fault: Option<Fault>, death: &Arc<Death>) -> Arc<FaultyStore> {
        let fault = if let Some(Fault::Store(nth, how)) = fault { Some((u64::from(nth), how)) } else { None };
        let plan = store::Plan { fault, death: Arc::clone(death) };
        Arc::new(FaultyStore::new(Arc::clone(&self.store), plan, Arc::clone(&self.seen), Arc::clone(&self.sink)))
    }

    fn plan_run(&self, step: &SweepStep, stop: watch::Receiver<bool>) -> Run {
        let budget = step.deadline.map(|(left, _)| RESERVE + Duration::from_millis(u64::from(left)));
        let lasts = budget.unwrap_or(Duration::from_secs(60)) + Duration::from_secs(10);
        let until = self.clock.wall().saturating_add(i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX));
        Run {
            mode: Mode::Stream,
            scheduled: step.scheduled,
            deadline: budget.map(|budget| self.clock.elapsed() + budget),
            max_rows: step.max_rows.map(u64::from),
            lease: match (self.setup.store, self.setup.lease) {
                (StoreKind::Sqlite, _) => LeasePlan::Process,
                (StoreKind::Memory, LeaseKind::Until) => LeasePlan::Until(until),
                (StoreKind::Memory, LeaseKind::Renewed) => LeasePlan::Renewed(Duration::from_secs(20)),
            },
            stop,
        }
    }

    /// Runs the engine until it ends or its process is killed.
    async fn run(
        &mut self,
        step: &SweepStep,
        run: &Run,
        store: &Arc<FaultyStore>,
        death: &Death,
    ) -> Result<Option<Vec<TableReport>>, String> {
        let sinks = OneSink(Arc::clone(&self.sink));
        let host = self.host.clone();
        let (jobs, refused) = self.process()?.jobs(&Selection::default(), &sinks).await;
        if let Some(refused) = refused.first() {
            return Err(format!("{refused:?}"));
        }
        let engine = Engine {
            host,
            store: Arc::clone(store) as Arc<dyn CursorStore>,
            bytes: ByteBudget::of_memory(64 << 20),
            windows: Arc::clone(&self.windows),
            left: Arc::clone(&self.left),
        };
        let runs = Box::pin(run_once_or_twice(&engine, jobs, run, step.twice));
        let ended = async {
            tokio::select! {
                biased;
                () = death.struck() => None,
                reports = runs => Some(reports),
            }
        };
        tokio::time::timeout(STUCK, ended).await.map_err(|_| format!("a sweep does not end: {step:?}"))
    }

    /// A process that has ended leaves nothing behind but what was stored.
    async fn bury(&mut self, store: Arc<FaultyStore>) -> Result<(), String> {
        self.assembly = None;
        (self.windows, self.left) = (Arc::default(), Arc::default());
        let buried = async {
            // Its tasks are dropped by the runtime, in their turn.
            while Arc::strong_count(&store) > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(STUCK, buried).await.map_err(|_| "a process does not end")?;
        drop(store);
        if self.setup.store == StoreKind::Sqlite {
            let (folder, setup, host) = (self.folder.clone(), self.setup.clone(), self.host.clone());
            self.store = open_store(&folder, &setup, &host).await?;
        }
        Ok(())
    }

    /// One request is answered by a node with a clock of its own.
    fn plan_node(&mut self, step: &SweepStep) -> Result<(), String> {
        let Some((nth, ahead)) = step.node else { return Ok(()) };
        let date = jiff::Timestamp::from_second(self.now + i64::from(ahead)).map_err(words)?;
        let value = date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        self.api.fault(ApiFault::new(Effect::DateHeader { value }).table(TABLE).skip(u64::from(nth)));
        self.world.swept_at(self.now + i64::from(ahead));
        self.steady = false;
        Ok(())
    }

    fn plan_change(&mut self, step: &SweepStep) -> Result<Option<Planned>, String> {
        let Some((nth, change)) = step.change else { return Ok(None) };
        let planned = match change {
            Change::Step(seconds) => Planned::Step(i64::from(seconds)),
            Change::Insert(seconds, rows) => {
                let second = self.now + i64::from(seconds);
                let rows = (0..rows).map(|_| (self.world.new_id(), Row { second, mod_count: 0, hidden: false })).collect();
                Planned::Rows(i64::from(seconds), rows)
            }
            Change::Late(back, rows) => {
                let second = self.now - i64::from(back);
                Planned::Rows(0, (0..rows).map(|_| (self.world.new_id(), Row { second, mod_count: 0, hidden: false })).collect())
            }
            Change::Update(seconds, pick) => {
                let second = self.now + i64::from(seconds);
                let Some(id) = self.world.pick(pick).filter(|id| !self.world.rows[id].hidden) else { return Ok(None) };
                let mod_count = self.world.rows[&id].mod_count + 1;
                Planned::Rows(i64::from(seconds), vec![(id, Row { second, mod_count, hidden: false })])
            }
        };
        let mut commands = Vec::new();
        match &planned {
            Planned::Step(seconds) => commands.push(Command::StepClock { seconds: *seconds }),
            Planned::Rows(seconds, rows) => {
                if rows.first().is_none_or(|(_, row)| !self.world.may_appear_in(row.second)) {
                    return Ok(None);
                }
                commands.push(Command::StepClock { seconds: *seconds });
                for (id, row) in rows {
                    let (table, fields) = (TABLE.to_owned(), fields(&self.setup, id, row.second, row.mod_count)?);
                    commands.push(match row.mod_count {
                        0 => Command::Insert { table, fields },
                        _ => Command::Update { table, sys_id: sys_id(id), fields },
                    });
                }
            }
        }
        self.api.fault(ApiFault::then(commands).table(TABLE).skip(u64::from(nth)));
        Ok(Some(planned))
    }

    /// What happened on the instance, from its data.
    fn read_off(&mut self, step: &SweepStep, planned: Option<Planned>) -> Result<(), String> {
        // From here on nothing strikes any more, also not for a request that is still on its way.
        self.api.clear_faults();
        let log = self.api.log();
        self.tally.add("requests", log.len() as u64);
        self.tally_answers(&log);
        if let Some(Fault::Http(_, _, how) | Fault::Count(_, _, how)) = step.fault {
            let is_strike = |fault: &String| fault != "then" && fault != DATE;
            let strikes = log.iter().filter(|entry| entry.faults.iter().any(is_strike)).count();
            let what = if let Some(Fault::Count(..)) = step.fault { "struck: count".to_owned() } else { format!("struck: {how:?}") };
            self.tally.add(what, strikes as u64);
        }
        let passed = match &planned {
            None => 0,
            Some(Planned::Step(seconds)) => {
                self.steady = false;
                if self.api.now() == stamp(self.now)? { 0 } else { *seconds }
            }
            Some(Planned::Rows(seconds, rows)) => {
                let data = self.api.visible_versions(TABLE).map_err(words)?;
                let (id, row) = rows.first().ok_or("a change without rows")?;
                let has_struck = data.contains(&(stamp(row.second)?, sys_id(id), row.mod_count));
                if has_struck {
                    rows.iter().for_each(|(id, row)| self.world.put(id.clone(), row.clone()));
                    self.tally.add("changes within a sweep", 1);
                    *seconds
                } else {
                    0
                }
            }
        };
        self.now += passed;
        // The local clock sees the same time pass, unless it was the instance's that was set.
        if matches!(planned, Some(Planned::Rows(..))) {
            self.clock.pass(passed * 1000);
        }
        self.world.swept_at(self.now);
        Ok(())
    }

    /// What answers were like that hold less than was asked for, and how unknown rows were asked for.
    fn tally_answers(&mut self, log: &[Entry]) {
        let parameter = |entry: &Entry, name: &str| entry.params.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone());
        let versions = |entry: &Entry| entry.rows > 0 && parameter(entry, "sysparm_fields").is_some_and(|fields| fields.contains(','));
        for (before, entry) in [None].into_iter().chain(log.iter().map(Some)).zip(log) {
            let asked = parameter(entry, "sysparm_limit").and_then(|limit| limit.parse::<usize>().ok());
            let is_cut = asked.is_some_and(|asked| entry.limit < asked) && entry.rows + entry.hidden == entry.limit;
            self.tally.add("answers cut by the instance", u64::from(is_cut));
            self.tally.add("answers of a node of its own", u64::from(entry.faults.iter().any(|fault| fault == DATE)));
            let (follows, has_ids) = (before.is_some_and(versions), LISTS.iter().any(|list| entry.query.contains(list)));
            let is_whole = parameter(entry, "sysparm_fields").is_none();
            self.tally.add("unknown rows asked for by id", u64::from(follows && is_whole && has_ids));
            self.tally.add("unknown rows asked for by range", u64::from(follows && is_whole && !has_ids));
        }
    }

    async fn count_faults(&mut self, step: &SweepStep, killed: bool) -> Result<(), String> {
        let (store_struck, store_costs) = {
            let seen = self.seen();
            (seen.struck, seen.costly)
        };
        let sink_struck = self.sink.has_struck();
        match step.fault {
            Some(Fault::Store(_, how)) => self.tally.add(format!("struck: store {how:?}"), u64::from(store_struck)),
            Some(Fault::Sink(_, how)) => self.tally.add(format!("struck: sink {}", name(how)), u64::from(sink_struck)),
            Some(Fault::Kill(_)) => self.tally.add("struck: kill", u64::from(killed)),
            _ => {}
        }
        let item = self.item().await?;
        let is_smaller = item.as_ref().is_some_and(|item| item.progress.page_size.is_some());
        self.tally.add("pages asked for smaller", u64::from(is_smaller));
        let sink_costs = sink_struck && !matches!(step.fault, Some(Fault::Sink(_, SinkFault::Delayed(_))));
        if killed || store_costs || sink_costs {
            self.faults += 1;
            let stored = item.map_or(StoredWindow::None, |item| item.progress.window);
            // A window that lies in the item was stored with its cursor.
            self.faults_beside += u64::from(!matches!(stored, StoredWindow::None | StoredWindow::Inline(_)));
            if stored == StoredWindow::Lost {
                self.owed_again += self.rows_owed().await?;
                self.tally.add("windows not stored", 1);
            }
        }
        Ok(())
    }
}

fn name(how: SinkFault) -> &'static str {
    match how {
        SinkFault::Refused => "Refused",
        SinkFault::GivenUp(_) => "GivenUp",
        SinkFault::Delayed(_) => "Delayed",
        SinkFault::KilledBefore => "KilledBefore",
        SinkFault::KilledAfter => "KilledAfter",
    }
}

async fn run_once_or_twice(engine: &Engine, jobs: Vec<Job>, run: &Run, twice: bool) -> Vec<TableReport> {
    if !twice {
        return engine.run(jobs, run).await;
    }
    let (mut one, other) = tokio::join!(Box::pin(engine.run(jobs.clone(), run)), Box::pin(engine.run(jobs, run)));
    one.extend(other);
    one
}

fn effect(how: HttpFault) -> Effect {
    match how {
        HttpFault::Status(status) => ApiFault::status(status, "as the history says").effect,
        HttpFault::Cancelled => Effect::Cancelled { keep: 1 },
        HttpFault::MalformedJson => Effect::MalformedJson,
        HttpFault::CutBody => Effect::CutBody { after: 40 },
        HttpFault::EmptyBody => Effect::EmptyBody,
        HttpFault::Accepted => Effect::Accepted { body: "{}".to_owned() },
        HttpFault::LoginPage => Effect::Html { page: HtmlPage::Login },
        HttpFault::TimedOut => Effect::DelayHeaders { millis: 1_300 },
        HttpFault::SlowBody => Effect::SlowBody { chunk: 64, millis: 1 },
        HttpFault::Reset => Effect::Reset,
        HttpFault::Redirect => Effect::Redirect { location: "/login".to_owned(), status: None },
        HttpFault::PredicateIgnored => Effect::PredicateIgnored,
        HttpFault::RowsRepeated => Effect::RowsRepeated { rows: 1 },
        HttpFault::EmptyRows => Effect::EmptyRows { every: 2 },
        // No rows, no count, and the reason in the body.
        HttpFault::GivenUp => Effect::Status {
            status: 200,
            body: Some(r#"{"result":[],"error":{"message":"Transaction cancelled"},"status":"failure"}"#.to_owned()),
            content_type: None,
            headers: Default::default(),
        },
        HttpFault::NoTimestamp => Effect::FieldMissing { field: "sys_updated_on".to_owned() },
    }
}
