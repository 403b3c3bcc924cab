//! What must have come of a history, computed from the data and from the faults that happened.

use std::collections::{BTreeMap, BTreeSet};

use tablesweep::sweep::{Outcome, TableReport};

use crate::bed::words;
use crate::history::{Fault, StoreFault, SweepStep};
use crate::run::{Life, TABLE, stamp};
use crate::world::{Version, sys_id};

/// Pages that may be with the sink and not yet committed, as docs/semantics.md says.
const UNCOMMITTED: usize = 2;

impl Life<'_> {
    /// Row versions that must have been delivered and were not.
    pub(crate) fn missing(&self) -> Vec<Version> {
        let delivered: BTreeSet<Version> = self.delivered().into_iter().collect();
        self.world.visible().into_iter().filter(|version| !delivered.contains(version)).collect()
    }

    /// What a sweep that ends caught up must have delivered: all that lies ahead. Where a clock is set, or the data
    /// changes meanwhile, that depends on the moment, and nothing is said.
    pub(crate) fn due(&self, step: &SweepStep) -> Vec<Version> {
        if !self.steady || step.change.is_some() || step.deadline.is_some() {
            return Vec::new();
        }
        let end = self.now - self.setup.lag;
        let is_due = |version: &Version| version.1 <= end && self.world.is_beyond_the_cursor(version.1);
        self.missing().into_iter().filter(is_due).collect()
    }

    /// # Errors
    /// A report that says more than was done, or a sweep that did more than it may.
    pub(crate) fn judge_reports(&self, step: &SweepStep, reports: &[TableReport], due: &[Version]) -> Result<(), String> {
        if let (Some(most), Some(report)) =
            (step.max_rows, reports.iter().find(|report| step.max_rows.is_some_and(|most| report.rows > u64::from(most))))
        {
            return Err(format!("at most {most} rows were asked for: {report:?}"));
        }
        let is_lost = |report: &&TableReport| {
            report.reason.as_ref().is_some_and(|why| ["Cursor.Conflict", "Cursor.Unreachable"].contains(&why.code.as_str()))
        };
        if let Some(report) = reports.iter().find(is_lost).filter(|_| self.seen().sent_again) {
            return Err(format!("a write without an answer was not sent again, or not recognised: {report:?}"));
        }
        let missing = self.missing();
        let left: Vec<_> = due.iter().filter(|version| missing.contains(version)).collect();
        match reports.iter().find(|report| report.outcome == Outcome::CaughtUp) {
            Some(report) if !left.is_empty() => Err(format!("caught up, but not delivered: {left:?} {report:?}")),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// A sweep that ended with its lease, though the store answered again and there was time.
    pub(crate) async fn judge_lease(&mut self, step: &SweepStep, reports: &[TableReport]) -> Result<(), String> {
        // What another left is not a lease of this sweep.
        if reports.iter().any(|report| report.reason.as_ref().is_some_and(|why| why.code == "Cursor.Leased")) {
            return Ok(());
        }
        let answers = !matches!(step.fault, Some(Fault::Store(_, StoreFault::Outage)));
        match self.item().await?.and_then(|item| item.lease) {
            Some(lease) if answers && step.deadline.is_none() => Err(format!("a sweep ended with its lease: {lease:?} {step:?}")),
            _ => Ok(()),
        }
    }

    fn delivered(&self) -> Vec<Version> {
        self.sink.arrived().into_iter().map(|record| (record.id, record.second, record.mod_count)).collect()
    }

    /// # Errors
    /// The promise that was broken.
    pub(crate) async fn judge(&mut self) -> Result<(), String> {
        self.judge_the_bed()?;
        let delivered = self.delivered();
        if let Some(version) = delivered.iter().find(|version| !self.world.has_had(version)) {
            return Err(format!("a row was delivered that never was: {version:?}"));
        }
        self.judge_order(&delivered)?;
        if self.sink.most_uncommitted() > UNCOMMITTED {
            return Err(format!("{} pages were handed over and not committed", self.sink.most_uncommitted()));
        }
        let duplicates = self.judge_duplicates(&delivered)?;
        self.tally.add("records", delivered.len() as u64);
        self.tally.add("duplicates", duplicates);
        if self.faults + self.lost_windows + self.rewound == 0 {
            self.judge_counters(delivered.len() as u64).await?;
            self.tally.add("histories without a fault that may cost", 1);
        }
        let went_back = std::mem::take(&mut self.seen().went_back);
        if went_back.is_empty() { Ok(()) } else { Err(format!("the cursor went back: {went_back:?}")) }
    }

    /// The simulator understood everything, and the reference set is what it holds.
    fn judge_the_bed(&self) -> Result<(), String> {
        let (refusals, unreadable) = (self.api.refusals(), self.sink.unreadable());
        if !refusals.is_empty() || !unreadable.is_empty() {
            return Err(format!("not understood: {refusals:?} {unreadable:?}"));
        }
        let mut reference = Vec::new();
        for (id, second, mod_count) in self.world.visible() {
            reference.push((stamp(second)?, sys_id(&id), mod_count));
        }
        reference.sort();
        let data = self.api.visible_versions(TABLE).map_err(words)?;
        if data == reference { Ok(()) } else { Err(format!("the reference set differs from the data: {reference:?} {data:?}")) }
    }

    /// Records of one row arrive in the order of its versions; repeated ones are no older than what came before.
    fn judge_order(&self, delivered: &[Version]) -> Result<(), String> {
        let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
        for (id, second, mod_count) in delivered {
            let newest = newest.entry(id).or_default();
            if mod_count < newest {
                return Err(format!("version {mod_count} ({second}) of {id} came after version {newest}"));
            }
            *newest = *mod_count;
        }
        Ok(())
    }

    /// Docs/semantics: a fault costs two pages. Where it finds an older window beside the item, it costs the rows of the overlap and those of
    /// the second at which that was stored, too; a lost window costs the rows of the overlap and of what was owed.
    fn judge_duplicates(&self, delivered: &[Version]) -> Result<u64, String> {
        let mut times: BTreeMap<&Version, u64> = BTreeMap::new();
        for version in delivered {
            *times.entry(version).or_default() += 1;
        }
        let duplicates: u64 = times.values().map(|times| times - 1).sum();
        let again = self.world.widest;
        let bound = self.faults * 2 * u64::from(self.setup.batch)
            + self.faults_beside * (again + self.world.fullest)
            + self.lost_windows * again
            + self.owed_again
            + self.rewound;
        if duplicates <= bound {
            return Ok(duplicates);
        }
        let several: Vec<_> = times.into_iter().filter(|(_, times)| *times > 1).collect();
        Err(format!("{duplicates} duplicates where {} faults allow {bound}: {several:?}", self.faults))
    }

    /// Without a fault that may cost, the counters are what was delivered.
    async fn judge_counters(&self, delivered: u64) -> Result<(), String> {
        let counters = self.item().await?.ok_or("no cursor")?.progress.counters;
        let reported = &self.reported;
        if counters.rows == delivered && reported.rows == delivered && counters.suppressed == reported.suppressed {
            return Ok(());
        }
        Err(format!("{delivered} rows arrived, but the counters are {counters:?} and the reports say {reported:?}"))
    }
}
