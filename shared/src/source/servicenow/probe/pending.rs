//! The probe that a sweep may have to begin with, or that is asked for by itself.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::super::SnowTable;
use super::{Asking, At, BadRow, CursorFields, Error, Instance, NOTE, Probe, Trouble, Verdict, Zone, keys, memory::Memory};
use crate::failure::Failure;
use crate::source::{Resume, Siblings, Spent};
use crate::sweep::Allowance;

/// Room for the few rows of an answer.
const ROOM: u64 = 64 << 10;

/// A table, ready to be probed.
pub(in super::super) struct Prober {
    instance: Arc<Instance>,
    table: keys::Table,
    fields: CursorFields,
    bad_row: BadRow,
    cursor: At,
    zone: Arc<OnceCell<Zone>>,
    /// What the probe has to say beside its verdict.
    pub(in super::super) remarks: Vec<String>,
}

impl Prober {
    pub(in super::super) fn new(table: &SnowTable, cursor: At) -> Self {
        Self {
            instance: Arc::clone(&table.instance),
            table: table.table.clone(),
            fields: table.fields(),
            bad_row: table.settings.bad_row,
            cursor,
            zone: Arc::clone(&table.zone),
            remarks: Vec::new(),
        }
    }

    /// Probes within `allowance` and counts in `spent` what it takes.
    ///
    /// # Errors
    /// As of [`Probe::run`].
    pub(in super::super) async fn run(&mut self, allowance: &Allowance, spent: &mut Spent) -> Result<Verdict, Trouble> {
        let Some(admission) = allowance.admit(ROOM).await else { return Err(Error::BudgetSpent.into()) };
        let asking = Asking { instance: &self.instance, table: &self.table, allowance, admission: &admission, spent, cut: None };
        let (fields, cursor) = (self.fields.clone(), self.cursor.clone());
        let mut probe = Probe { asking, fields, bad_row: self.bad_row, cursor, zone: &self.zone, remarks: Vec::new() };
        let verdict = probe.run().await;
        self.remarks = probe.remarks;
        verdict
    }
}

/// The sibling that keeps the last probe: for people, and for the next sweep if this one ends before a commit could carry the
/// note. A tick that finds the note has no need of it.
const SIBLING: &str = "probe";

/// What a probe came to.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    at: String,
    /// `proven`, `no-row`, `unsettled`, or the code of a failure.
    result: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    remarks: Vec<String>,
    /// The note, if there is something to remember.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A probe that is due unless what is remembered answers for it.
pub(in super::super) struct Pending {
    pub(in super::super) prober: Prober,
    asked: String,
    note: Option<String>,
    is_parked: bool,
    has_rows: bool,
    siblings: Arc<dyn Siblings>,
}

impl Pending {
    /// The probe of a sweep that starts at `cursor`; `None` if probes are switched off.
    pub(in super::super) fn of(table: &SnowTable, from: &Resume, cursor: &At) -> Option<Self> {
        table.settings.startup_probe.then(|| Self {
            prober: Prober::new(table, cursor.clone()),
            asked: table.asked.clone(),
            note: from.progress.notes.get(NOTE).cloned(),
            // A failure of ours may have its cause in what a probe looks for; one of the sink has not.
            is_parked: from.parked.as_deref().is_some_and(|code| code.starts_with("Source.")),
            // Not the cursor's id: where rows are hidden, the cursor stands at ids that no row has.
            has_rows: from.progress.counters.rows > 0,
            siblings: Arc::clone(&from.siblings),
        })
    }

    /// The note that makes this probe unnecessary, if there is one.
    pub(in super::super) async fn answered(&self, now_ms: i64) -> Option<String> {
        if self.is_parked {
            return None;
        }
        let answers = |note: &String| Memory::read(note).is_some_and(|memory| memory.answers(&self.asked, now_ms, self.has_rows));
        match self.note.clone().filter(answers) {
            Some(note) => Some(note),
            None => self.recorded().await.filter(answers),
        }
    }

    async fn recorded(&self) -> Option<String> {
        let stored = self.siblings.get(SIBLING).await;
        // Without an answer, or with one of another version, the probe is run: that is what it is for.
        let bytes = stored.inspect_err(|error| tracing::debug!(%error, "the last probe could not be read")).ok()??;
        serde_json::from_slice::<Record>(&bytes).ok()?.note
    }

    /// Keeps what the probe came to, and says what is to be remembered of it; `None` if the next sweep has to try again.
    pub(in super::super) async fn record(&self, verdict: Result<Verdict, &Failure>, now_ms: i64) -> Option<String> {
        let (result, message, is_proven) = match &verdict {
            Ok(Verdict::Proven) => ("proven", None, Some(true)),
            Ok(Verdict::NoRow) => ("no-row", None, Some(false)),
            Ok(Verdict::Unsettled) => ("unsettled", None, None),
            Err(failure) => (&*failure.code, Some(failure.message.clone()), None),
        };
        let note = is_proven.map(|is_proven| Memory::new(&self.asked, now_ms, is_proven).write());
        let at = Timestamp::from_millisecond(now_ms).unwrap_or_default().to_string();
        let record = Record { at, result: result.to_owned(), message, remarks: self.prober.remarks.clone(), note: note.clone() };
        let bytes = serde_json::to_vec(&record).expect("texts are representable in JSON");
        if let Err(error) = self.siblings.put(SIBLING, &bytes).await {
            tracing::warn!(%error, "what the probe came to could not be stored; the sweep can do without");
        }
        note
    }
}
