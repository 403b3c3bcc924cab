//! What must have arrived, and how often something may have arrived twice.

use std::collections::{BTreeMap, BTreeSet};

use tablesweep::cursor::Item;

use super::data::TABLES;
use super::sink::Arrived;
use super::{OVERLAP, PAGE};

/// Adds up the bounds of the kills, per table.
#[derive(Debug, Default)]
pub struct Oracle {
    bounds: BTreeMap<String, usize>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Seen {
    pub records: usize,
    pub duplicates: usize,
    /// Per alias: what came twice, and what could have.
    pub by_table: BTreeMap<&'static str, (usize, usize)>,
}

impl Oracle {
    /// A process was killed while it swept the table of `item`: two pages may come again, and, as the window may be lost, the rows of
    /// the overlap and of the cursor's second.
    pub fn killed(&mut self, item: &Item, log: &[Arrived]) {
        let alias = &item.identity.alias;
        let cursor = item.progress.cursor.as_ref().and_then(|cursor| cursor.get("timestamp")).and_then(second);
        let overlap = log.iter().filter(|record| record.alias == alias.as_str()).filter(|record| {
            let at = second(&record.at);
            at.zip(cursor).is_some_and(|(at, cursor)| (cursor - OVERLAP..=cursor).contains(&at))
        });
        let versions: BTreeSet<_> = overlap.map(|record| (&record.at, &record.id, record.mod_count)).collect();
        *self.bounds.entry(alias.clone()).or_default() += 2 * PAGE + versions.len();
    }

    /// Judges what arrived against the rows as they are now.
    pub fn judge(&self, log: &[Arrived], expected: &BTreeMap<(&'static str, String), (String, u64)>) -> Seen {
        let mut last: BTreeMap<(&'static str, String), (String, u64)> = BTreeMap::new();
        let mut seen = Seen { records: log.len(), ..Seen::default() };
        let mut known = BTreeSet::new();
        for record in log {
            let Arrived { alias, id, at, mod_count } = record.clone();
            let before = last.insert((alias, id.clone()), (at.clone(), mod_count));
            let in_order = before.as_ref().is_none_or(|(_, before)| *before <= mod_count);
            assert!(in_order, "{alias} {id}: version {mod_count} after {before:?}");
            if !known.insert((alias, id, at, mod_count)) {
                seen.duplicates += 1;
                seen.by_table.entry(alias).or_default().0 += 1;
            }
        }
        for (key, version) in expected {
            assert_eq!(last.get(key), Some(version), "{key:?}: what arrived last, and the row as it is");
        }
        for table in &TABLES {
            let (twice, bound) = seen.by_table.entry(table.alias).or_default();
            *bound = self.bounds.get(table.alias).copied().unwrap_or(0);
            assert!(*twice <= *bound, "{}: {twice} records came twice, and the kills account for {bound}", table.alias);
        }
        seen
    }
}

fn second(text: &str) -> Option<i64> {
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    jiff::tz::TimeZone::UTC.to_timestamp(civil).ok().map(jiff::Timestamp::as_second)
}
