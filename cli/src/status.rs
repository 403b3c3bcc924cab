//! `tablesweep status`: is it up to date?

use tablesweep::cursor::Phase;
use tablesweep::host::Host;
use tablesweep::operate::{Activity, Orphan, StatusReport, TableStatus, Why, shown, status};

use crate::args::{Output, ReadArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output;
use crate::text::{Table, lag};

/// Runs the command.
pub async fn run(arguments: ReadArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.config.config)?;
    let spec = arguments.cursors.cursors.unwrap_or_default();
    let store = spec.look().await?;
    let places = documents::places(&documents);
    let report = status(store.as_deref(), &spec.name(), &places, Host::system().now_ms()).await?;
    match arguments.output.output {
        Output::Json => output::json(&report)?,
        Output::Text => output::text(&text(&report, store.is_none()))?,
    }
    Ok(Exit::Good)
}

fn text(report: &StatusReport, is_missing: bool) -> String {
    let mut table = Table::new(&["connector/table", "state", "phase", "cursor", "lag", "started", "rows", "last"], 4);
    for row in &report.tables {
        table.row(cells(row), notes(row));
    }
    let mut text = table.render();
    if is_missing {
        text.push_str(&format!("\n{} does not exist yet: nothing was ever swept with it\n", report.store));
    }
    if !report.orphans.is_empty() {
        text.push_str("\ncursors that no sweep goes on from:\n");
        for orphan in &report.orphans {
            crate::text::wrapped(&mut text, &abandoned(orphan));
        }
        text.push_str("`tablesweep cursor remove --connector NAME --place PLACE` removes one\n");
    }
    text
}

fn cells(row: &TableStatus) -> Vec<String> {
    let state = match row.state {
        Activity::NeverSwept => "never swept",
        Activity::Active => "active",
        Activity::Failing => "failing",
        Activity::Paused => "paused",
        Activity::Parked => "parked",
        Activity::Moved => "moved",
        Activity::Unreadable => "unreadable",
    };
    let phase = match row.phase {
        None => "-",
        Some(Phase::Backfill) => "backfill",
        Some(Phase::Stream) => "stream",
    };
    // The row's identity is for machines; a position in time is what a person asks for.
    let cursor = row
        .cursor
        .as_ref()
        .map_or_else(|| "-".to_owned(), |cursor| cursor.get("timestamp").map_or_else(|| shown(Some(cursor)), str::to_owned));
    let cursor = if is_wide(&cursor) { "see below".to_owned() } else { cursor };
    let name = format!("{}/{}", row.connector, row.table);
    let (behind, started) = (lag(row.lag_seconds), lag(row.started_seconds));
    vec![name, state.to_owned(), phase.to_owned(), cursor, behind, started, row.rows.to_string(), row.last_rows.to_string()]
}

/// A sequence may have 38 digits, which no column of a hundred has room for.
fn is_wide(cursor: &str) -> bool {
    cursor.len() > "YYYY-MM-DD hh:mm:ss".len()
}

fn notes(row: &TableStatus) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cursor) = row.cursor.as_ref().filter(|cursor| cursor.get("timestamp").is_none()) {
        let cursor = shown(Some(cursor));
        if is_wide(&cursor) {
            notes.push(format!("cursor {cursor}"));
        }
    }
    if let Some(reason) = &row.reason {
        let since = row.since.as_ref().map_or_else(String::new, |since| format!(" since {since}"));
        notes.push(format!("{}{since}: {}", reason.code, reason.message));
    }
    if let Some(at) = &row.failed_at {
        notes.push(format!("last failed {at}"));
    }
    if let Some(code) = &row.remark {
        notes.push(format!("{code}: see this heading of docs/operations.md"));
    }
    if let Some(next) = &row.next_try {
        notes.push(format!("next scheduled try {next}; `tablesweep cursor resume` tries at the next tick"));
    }
    if row.leased {
        let until = row.leased_until.as_ref().map_or_else(String::new, |until| format!(", its lease ends {until}"));
        notes.push(format!("a sweep is under way{until}"));
    }
    let counted = [("suppressed", row.suppressed), ("hidden", row.hidden), ("late", row.late), ("skipped", row.skipped)];
    let counted: Vec<String> = counted.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{n} {what}")).collect();
    if !counted.is_empty() {
        notes.push(counted.join(", "));
    }
    if let Some(size) = row.page_size {
        notes.push(format!("page size lowered to {size}: a larger one was too slow or too large"));
    }
    if row.changed_query && row.state == Activity::NeverSwept {
        notes.push("its query changed: the next sweep starts at start.timestamp".to_owned());
    }
    notes
}

fn abandoned(orphan: &Orphan) -> String {
    let why = match orphan.why {
        Why::NoDocument => "no document has this connector and alias",
        Why::ChangedQuery => "the query changed",
        Why::Moved => "the alias means another place now",
        Why::Unreadable => "it cannot be read",
    };
    format!("{}/{} at {}: {why} ({}, {} rows)", orphan.connector, orphan.table, shown(orphan.cursor.as_ref()), orphan.place, orphan.rows)
}

#[cfg(test)]
mod tests;
