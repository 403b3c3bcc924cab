//! What lies behind the cursor: has the sequence begun anew, was the cursor set above all rows, and did rows come late?
//!
//! All are asked at the end of a sweep, on the connection that is open anyway, and both may have to wait for others where the rows did
//! not: for a row that is being deleted below the cursor, for one that is being updated in a range that is counted. So neither holds
//! rows back, and neither fails a sweep because it could not be answered now.

use super::super::audit::{Audit, Late, Range};
use super::super::error::Error;
use super::super::keys::{Intent, Start};
use super::super::position;
use super::super::sequence::Sequence;
use super::{Names, Poll, REACHED, Session, count};
use crate::cursor::REMARK_NOTE;
use crate::sweep::{Allowance, Reason};

/// The code of a cursor above all rows that no row gave.
const ABOVE_ALL: &str = "Source.CursorAboveAll";

impl Session {
    /// Nothing is above the cursor: has the sequence begun anew? A cursor that no row gave, but a person or the document, may lie above all
    /// of them on purpose: that is said, and is no fault. The poll is answered back, unless its connection is of no use any more.
    ///
    /// # Errors
    /// It has.
    pub(super) async fn check_highest(&mut self, mut poll: Poll, allowance: &Allowance) -> Result<Option<Poll>, Error> {
        // A readable secondary may be behind the cursor, which the primary gave.
        let (false, Some(cursor)) = (self.may_lag(), self.place.position()) else { return Ok(Some(poll)) };
        match self.highest(&mut poll, allowance).await {
            Ok(Some(highest)) if highest < cursor && self.notes.contains_key(REACHED) => Err(Error::Regressed { cursor }),
            Ok(Some(highest)) if highest < cursor => {
                self.tell_above_all(cursor, highest);
                Ok(Some(poll))
            }
            Ok(_) => Ok(Some(poll)),
            // That nothing is above the cursor is known all the same.
            Err(error) if error.is_wait() => {
                let Names { connector, alias } = &self.names;
                tracing::warn!(connector, table = alias, %error, "whether the sequence has begun anew is looked at by the next sweep");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn tell_above_all(&mut self, cursor: Sequence, highest: Sequence) {
        let Names { connector, alias } = &self.names;
        let table = &self.table.name;
        let by = match &self.table.start {
            Start::After(digits) if Sequence::parse(digits) == Some(cursor) => "where its document says to begin",
            _ => "where it was set by hand",
        };
        let message = format!(
            "{connector}/{alias} (table {table}): the cursor stands at {cursor}, {by}, and the highest sequence is {highest}. Rows up to {cursor} are not \
             delivered. If that is not meant, `tablesweep cursor rewind --connector {connector} --table {alias} --to {highest}` delivers the rows \
             that come after the present ones"
        );
        self.notes.insert(REMARK_NOTE.to_owned(), ABOVE_ALL.to_owned());
        self.remarks.push(Reason { code: ABOVE_ALL.to_owned(), message });
    }

    /// Whether the rows of one moment may be missing at the next, because another replica answers.
    fn may_lag(&self) -> bool {
        self.server.settings.application_intent == Intent::ReadOnly
    }

    pub(super) fn is_audit_due(&mut self, allowance: &Allowance) -> bool {
        let (now_ms, interval_ms) = (allowance.host().now_ms(), self.audit_interval_ms());
        // One for which there is no time is due until there is.
        self.audit.as_mut().is_some_and(|audit| audit.is_due(now_ms, interval_ms)) && allowance.covers(self.last_took)
    }

    fn audit_interval_ms(&self) -> i64 {
        let interval = self.server.settings.audit_interval.unwrap_or_default();
        i64::try_from(interval.as_millis()).unwrap_or(i64::MAX)
    }

    /// Counts the audit's ranges again, as many as can be, and ends the poll.
    pub(super) async fn count_late(&mut self, mut poll: Poll, allowance: &Allowance) -> Vec<Late> {
        let ranges = self.audit.as_ref().map(Audit::ranges).unwrap_or_default();
        let mut counts = Vec::with_capacity(ranges.len());
        let counted = self.count_ranges(&mut poll, &ranges, &mut counts, allowance).await;
        match counted {
            Ok(()) => poll.open.close().await,
            Err(error) => {
                let Names { connector, alias } = &self.names;
                tracing::warn!(
                    connector, table = alias, %error, counted = counts.len(), ranges = ranges.len(),
                    "late rows could not be looked for; the next audit does it"
                );
            }
        }
        let (now_ms, interval_ms, may_lag) = (allowance.host().now_ms(), self.audit_interval_ms(), self.may_lag());
        let late = self.audit.as_mut().map(|audit| audit.counted(&counts, may_lag, now_ms, interval_ms)).unwrap_or_default();
        self.tell_late(&late);
        late
    }

    async fn count_ranges(&mut self, poll: &mut Poll, ranges: &[Range], counts: &mut Vec<u64>, allowance: &Allowance) -> Result<(), Error> {
        for range in ranges {
            let results = self.ask(&mut poll.open, |locks| poll.plan.count(range.from, Some(range.to), locks), allowance).await?;
            counts.push(count(&results)?);
        }
        Ok(())
    }

    fn tell_late(&self, late: &[Late]) {
        let Names { connector, alias } = &self.names;
        for late in late {
            tracing::error!(connector, table = alias, code = "Source.LateRows", rows = late.rows, "{}", told(&late.range));
        }
    }
}

fn told(range: &Range) -> String {
    let from = range.from.map_or_else(|| "from the first row".to_owned(), |from| format!("above {from}"));
    format!(
        "rows became visible behind the cursor, {from} and up to {}, and were not delivered; `tablesweep cursor rewind --to {}` delivers the \
         range again",
        range.to,
        position::typed_as(range.from)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sqlserver::keys::SOURCE;

    #[test]
    fn what_is_told_of_late_rows_can_be_done() {
        let at = |number| Sequence::new(number).expect("in range");
        for (from, words) in [(None, "from the first row and up to 101"), (Some(at(-3)), "above -3 and up to 101")] {
            let told = told(&Range { from, to: at(101), count: 2 });
            assert!(told.contains(words), "{told}");
            let (_, typed) = told.split_once("--to ").expect("a command");
            let (typed, _) = typed.split_once('`').expect("its end");
            assert_eq!((SOURCE.cursors.read)(typed), Ok(position::written(from)), "the range begins behind it");
        }
    }
}
