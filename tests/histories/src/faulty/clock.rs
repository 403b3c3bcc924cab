//! A local clock that is set by the history, and that a sweep's every reading may move, interrupt or stop for good.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tablesweep::host::Clock;
use tokio::sync::watch;

use super::Death;

/// What readings of the clock do during one sweep.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Milliseconds that pass at each.
    pub(crate) tick_ms: i64,
    /// The reading at which the sweep is interrupted, and how.
    pub(crate) stop: Option<(u64, watch::Sender<bool>)>,
    /// The reading at which its process is killed.
    pub(crate) kill: Option<(u64, Arc<Death>)>,
}

/// The clock.
#[derive(Debug)]
pub(crate) struct PlannedClock {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicI64,
    readings: AtomicU64,
    plan: Mutex<Plan>,
}

impl PlannedClock {
    pub(crate) fn at(wall_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            wall_ms: AtomicI64::new(wall_ms),
            monotonic_ms: AtomicI64::new(0),
            readings: AtomicU64::new(0),
            plan: Mutex::default(),
        })
    }

    /// Time passes on both readings.
    pub(crate) fn pass(&self, ms: i64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.monotonic_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The wall clock is set.
    pub(crate) fn step(&self, ms: i64) {
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// What shows without being a reading of the sweep's.
    pub(crate) fn wall(&self) -> i64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    /// The same of the reading that never goes back.
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms.load(Ordering::SeqCst).unsigned_abs())
    }

    /// From here on readings count anew and do what `plan` says.
    pub(crate) fn follow(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
        self.readings.store(0, Ordering::SeqCst);
    }

    fn reading(&self) {
        let nth = self.readings.fetch_add(1, Ordering::SeqCst) + 1;
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        self.pass(plan.tick_ms);
        if let Some((at, stop)) = &plan.stop
            && *at == nth
        {
            stop.send_replace(true);
        }
        if let Some((at, death)) = &plan.kill
            && *at == nth
        {
            death.strike();
        }
    }
}

impl Clock for PlannedClock {
    fn now_ms(&self) -> i64 {
        self.reading();
        self.wall()
    }

    fn monotonic(&self) -> Duration {
        self.reading();
        self.elapsed()
    }
}
