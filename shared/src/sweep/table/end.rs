//! How the sweep of a table ends: the last commit gives the lease back, and says how the table stands from now on.

use std::time::Duration;

use super::super::engine::LAST_PAGE;
use super::super::lease::Ending;
use super::super::left::give_back;
use super::super::report::{Outcome, Reason, TableReport};
use super::super::requests;
use super::super::say::say;
use super::super::window_store::{self, SMALL_ITEM};
use super::Sweep;
use crate::cursor::{Change, Failed, Parked, Standing, StoreError, StoredWindow, Waiting, WriteError};
use crate::failure::{Failure, Retry, Scope};

/// Tries of giving back a lease, with about a second between them; before them a write was tried as often.
const GIVE_BACK_TRIES: u32 = 3;

impl Sweep<'_> {
    /// Commits what is left, gives the lease back, and reports.
    pub(super) async fn finish(&mut self) {
        let steps = self.hand.remainder();
        self.take_in(&steps);
        if let Some(page_size) = self.learned {
            self.fold.learned(page_size);
        }
        if !self.hand.is_fenced() {
            self.release().await;
        }
        let is_known = if self.unanswered { self.give_back().await } else { !self.hand.is_fenced() };
        if is_known {
            self.report.lag_seconds = self.item.lag_seconds(self.engine.host.now_ms());
        }
        let counted = self.fold.counted();
        self.report.rows = counted.rows;
        self.report.duplicates_suppressed = counted.suppressed;
        self.report.rows_hidden = counted.hidden;
        self.report.rows_late = counted.late;
        self.report.rows_skipped = counted.skipped;
        self.report.phase = Some(self.item.progress.phase);
        self.report.cursor.clone_from(&self.item.progress.cursor);
        self.report.reason = self.failure.as_ref().map(Reason::from).or_else(|| self.remark.take());
        self.report.outcome = match &self.failure {
            Some(failure) if failure.retry == Retry::Never => Outcome::Parked,
            Some(failure) if failure.retry == Retry::Wait => Outcome::Paused,
            Some(_) => Outcome::Failed,
            None if self.hand.caught_up() => Outcome::CaughtUp,
            None => match self.allowance.denied() {
                Some(why) => {
                    let identity = self.job.table.identity();
                    let message = format!("{}/{} (table {}): {why}", identity.connector, identity.alias, identity.table);
                    self.report.reason = Some(Reason { code: requests::CODE.to_owned(), message });
                    Outcome::Skipped
                }
                None => Outcome::More,
            },
        };
    }

    async fn release(&mut self) {
        let mut saying = self.fold.saying(&self.item, SMALL_ITEM, true);
        let is_cut = self.failure.is_none() && !self.hand.caught_up() && self.allowance.denied().is_none();
        saying.progress = saying.progress.with_failed(self.failed().as_ref()).with_cut(is_cut);
        let standing = self.standing();
        self.tell_waiting();
        let before = self.item.progress.window.clone();
        let said = say(self.engine, &self.key, self.held.hold(), saying, |hold, progress| Change::Release(hold, progress, standing)).await;
        match said.item {
            Ok(item) => {
                self.unanswered = false;
                self.item = item;
                self.tidy(&before).await;
            }
            Err(error) => {
                self.unanswered |= matches!(error, WriteError::Store(_));
                let lost = lease_lost(self.report, error);
                self.failure.get_or_insert(lost);
            }
        }
    }

    /// Gives back the lease of which is not known whether it is held, and says whether that could be found out. A store that comes back
    /// within some seconds is waited for, as long as there is time and nobody asks for the end.
    async fn give_back(&mut self) -> bool {
        let ending = Ending { failed: self.failed(), standing: Some(self.standing()) };
        for tries in 1..=GIVE_BACK_TRIES {
            let left = self.run.deadline.map(|deadline| deadline.saturating_sub(self.engine.host.monotonic() + LAST_PAGE));
            let giving = give_back(self.engine, &self.key, self.held.owner(), &ending);
            let given = match left {
                Some(left) => tokio::time::timeout(left, giving).await.ok(),
                None => Some(giving.await),
            };
            match given {
                Some(Ok(item)) => {
                    self.item = item.unwrap_or_else(|| self.item.clone());
                    return true;
                }
                Some(Err(StoreError::Unreachable { .. } | StoreError::Busy { .. }))
                    if tries < GIVE_BACK_TRIES && !*self.run.stop.borrow() =>
                {
                    tokio::time::sleep(Duration::from_millis(self.engine.host.jitter(400 << tries))).await;
                }
                given => {
                    let why = given.and_then(Result::err).map_or_else(|| "there is no time left".to_owned(), |error| error.to_string());
                    let (connector, table) = (&self.report.connector, &self.report.table);
                    tracing::warn!(connector, table, why, "the lease could not be given back; nobody else sweeps the table until it ends");
                    break;
                }
            }
        }
        self.engine.left.remember(self.key.clone(), self.held.owner().to_owned(), self.engine.host.monotonic());
        false
    }

    /// Removes a window of the first format that the item does not name any more.
    async fn tidy(&self, before: &StoredWindow) {
        if let StoredWindow::Beside(parts) = before
            && self.item.progress.window != *before
            && let Err(error) = window_store::remove_first_format(&*self.engine.store, &self.key, *parts).await
        {
            tracing::warn!(table = self.report.table, %error, "an old dedup window could not be removed; it does no harm");
        }
    }

    /// The failures in a row after this sweep. A login that was refused is kept for the whole instance. A sweep that was cut before it
    /// had brought anything neither failed nor succeeded.
    fn failed(&self) -> Option<Failed> {
        match &self.failure {
            Some(failure) if matches!(failure.retry, Retry::Never | Retry::Wait) => None,
            Some(failure) => Some(Failed::after(self.failed_before.as_ref(), &failure.code, self.engine.host.now_ms())),
            None if !self.brought => self.failed_before.clone(),
            None => None,
        }
    }

    /// How the table stands after this sweep.
    fn standing(&self) -> Standing {
        match &self.failure {
            Some(failure) if failure.scope == Scope::Instance => self.item.standing.clone(),
            Some(failure) if failure.retry == Retry::Never => {
                Standing::Parked(Parked::after(&self.item.standing, &failure.code, failure.message.clone(), self.engine.host.now_ms()))
            }
            Some(failure) if failure.retry == Retry::Wait => {
                Standing::Waiting(Waiting::after(&self.item.standing, &failure.code, failure.message.clone(), self.engine.host.now_ms()))
            }
            Some(_) => self.item.standing.clone(),
            None if !self.brought => self.item.standing.clone(),
            None => Standing::Active,
        }
    }

    /// Says once that the table waits for its source and once that it goes on; in between it is as if it had not been
    /// tried. What was said last is what the table stands by.
    fn tell_waiting(&mut self) {
        let (connector, table) = (&self.report.connector, &self.report.table);
        match (&self.item.standing, &self.failure) {
            (Standing::Waiting(waiting), Some(failure)) if waiting.code == failure.code && waiting.message == failure.message => {
                self.report.tried = false;
            }
            (_, Some(failure)) if failure.retry == Retry::Wait => {
                tracing::error!(connector, table, code = &*failure.code, reason = failure.message, "the table waits for its source");
            }
            (Standing::Waiting(waiting), None) if self.brought => {
                // Not that all is as it was: rows may have passed by meanwhile, and what it waited for says which.
                tracing::warn!(connector, table, code = waiting.code, waited_for = waiting.message, "the table goes on from its cursor");
            }
            _ => {}
        }
    }
}

/// What a write means that did not take effect, or whose effect is not known.
pub(super) fn lease_lost(report: &TableReport, error: WriteError) -> Failure {
    let table = format!("{}/{}", report.connector, report.table);
    match error {
        WriteError::Refused(refusal) => Failure::new(
            "Cursor.Conflict",
            Retry::NextTick,
            format!(
                "{table}: the cursor was not moved: {refusal}. Another sweep or an operator took over; the next tick goes on from the stored cursor"
            ),
        ),
        WriteError::Store(error) => {
            let failure = Failure::from(error);
            Failure { message: format!("{table}: {}; records sent since the last commit are sent again", failure.message), ..failure }
        }
    }
}
