//! What is remembered of a probe from one sweep to the next.
//!
//! It lies among the source's notes in the cursor item, so that an idle tick needs no read to know that nothing is to be
//! probed: what was probed, as a digest of what the document says; when; and whether a row was there to prove it by.

use sha2::{Digest as _, Sha256};

use super::super::keys::{ServiceNow, Table};
use crate::host::hex;

/// The name of the note.
pub(in super::super) const NOTE: &str = "probe";

/// Rights and time zones change without a word from the instance, so that what was proven is proven again. A zone that is moved
/// west by some hours hides rows from a sweep for as many hours before the cursor can pass them: a probe within three
/// finds it in time for every zone of UTC-3 and further west. Those nearer to UTC are left: the Atlantic, Greenland, Newfoundland in summer.
const GOOD_FOR_HOURS: u64 = 3;

/// Probes of another program version ask other questions.
const VERSION: &str = "1";

/// A probe that nothing was found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Memory {
    /// [`asked`] of the document that was probed.
    asked: String,
    /// When, in hours since the epoch.
    hour: i64,
    /// Whether there was a row to prove it by.
    is_proven: bool,
}

/// What of a document matters to a probe, in eight digits: where, as whom, which rows and fields.
pub(in super::super) fn asked(settings: &ServiceNow, table: &Table) -> String {
    let flag = |flag: bool| if flag { "true" } else { "false" };
    let mut digest = Sha256::new();
    let fields = table.fields.as_ref().map(|fields| fields.join(","));
    for part in [
        VERSION,
        settings.url.as_str(),
        &settings.principal,
        &table.name,
        &table.query,
        &table.timestamp_field,
        &table.sys_id_field,
        fields.as_deref().unwrap_or_default(),
        flag(table.query_domain),
        table.query_category.as_deref().unwrap_or_default(),
    ] {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize()[..4])
}

impl Memory {
    pub(in super::super) fn new(asked: &str, now_ms: i64, is_proven: bool) -> Self {
        Self { asked: asked.to_owned(), hour: hour(now_ms), is_proven }
    }

    /// The note's text.
    pub(in super::super) fn write(&self) -> String {
        format!("{} {}{}", self.asked, self.hour, if self.is_proven { "" } else { " no-row" })
    }

    /// Reads what [`Memory::write`] wrote.
    pub(in super::super) fn read(text: &str) -> Option<Self> {
        let (text, is_proven) = text.strip_suffix(" no-row").map_or((text, true), |rest| (rest, false));
        let (asked, hour) = text.split_once(' ')?;
        Some(Self { asked: asked.to_owned(), hour: hour.parse().ok()?, is_proven })
    }

    /// Whether this still answers what would be `asked` now. `has_rows`: the table has delivered rows.
    pub(in super::super) fn answers(&self, asked: &str, now_ms: i64, has_rows: bool) -> bool {
        // A clock that was set back does not make a probe last for ever.
        let is_fresh = hour(now_ms).abs_diff(self.hour) < GOOD_FOR_HOURS;
        self.asked == asked && is_fresh && (self.is_proven || !has_rows)
    }
}

fn hour(now_ms: i64) -> i64 {
    now_ms.div_euclid(3_600_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn what_was_proven_holds_for_three_hours_and_for_the_same_document() {
        let memory = Memory::new("abcd", 100 * HOUR, true);
        assert_eq!(Memory::read(&memory.write()).as_ref(), Some(&memory));
        for (asked, hours, answers) in
            [("abcd", 100, true), ("abcd", 102, true), ("abcd", 103, false), ("abce", 100, false), ("abcd", 97, false)]
        {
            assert_eq!(memory.answers(asked, hours * HOUR, true), answers, "{asked} at hour {hours}");
        }
    }

    #[test]
    fn a_probe_without_a_row_is_repeated_once_there_are_rows() {
        let memory = Memory::new("abcd", 100 * HOUR, false);
        assert_eq!(Memory::read(&memory.write()).as_ref(), Some(&memory));
        assert!(memory.answers("abcd", 101 * HOUR, false));
        assert!(!memory.answers("abcd", 101 * HOUR, true));
    }

    #[test]
    fn a_note_of_another_form_is_no_memory() {
        for text in ["", "abcd", "abcd soon", "abcd 1 maybe"] {
            assert_eq!(Memory::read(text), None, "{text:?}");
        }
    }
}
