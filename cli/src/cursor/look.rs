//! `tablesweep cursor show`: cursors as they are stored.

use serde::Serialize;
use tablesweep::cursor::{Item, Listing, Slot, StoredWindow};
use tablesweep::operate::{Audit, Place, audits, rfc3339, shown, whose, whose_unreadable};

use crate::args::{LookArgs, Output};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output::{self, note};
use crate::text::wrapped;

/// The answer as JSON.
#[derive(Debug, Serialize)]
struct Shown {
    store: String,
    cursors: Vec<ShownCursor>,
}

#[derive(Debug, Serialize)]
struct ShownCursor {
    connector: String,
    table: String,
    place: String,
    /// What was done to it by hand in the last thirty days, oldest first.
    audit: Vec<Audit>,
    item: Item,
}

/// What was looked for, and where.
#[derive(Debug)]
pub struct Looked {
    /// The cursors, each with the alias that its table has now.
    pub found: Vec<(Item, String)>,
    /// How many of what should be cursors cannot be read; each was told.
    pub unreadable: usize,
    /// Whether there is no store.
    pub is_missing: bool,
    /// The store, as it was named.
    pub name: String,
}

/// Runs the command.
pub async fn show(arguments: LookArgs) -> Result<Exit, Stop> {
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    let Looked { found, unreadable, is_missing, name } = items(&arguments).await?;
    let mut answer = Shown { store: name, cursors: Vec::new() };
    if let Some(store) = spec.look().await? {
        for (item, table) in found {
            let (connector, place) = (item.identity.connector.clone(), item.identity.key().place);
            let mut audit = audits(&*store, &connector).await?;
            audit.retain(|entry| entry.is_of(&place, &table));
            answer.cursors.push(ShownCursor { connector, table, place, audit, item });
        }
    }
    if is_missing {
        note(&format!("{} does not exist: nothing was ever swept with it", answer.store));
    }
    match arguments.read.output.output {
        Output::Json => output::json(&answer)?,
        Output::Text => output::text(&text(&answer, unreadable))?,
    }
    Ok(Exit::Good)
}

/// The stored cursors of the tables that are meant, those of former queries and places included. What cannot be read is told on
/// standard error.
pub async fn items(arguments: &LookArgs) -> Result<Looked, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let selection = documents::selected(&documents, &arguments.selection)?;
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    let mut looked = Looked { found: Vec::new(), unreadable: 0, is_missing: false, name: spec.name() };
    let Some(store) = spec.look().await? else { return Ok(Looked { is_missing: true, ..looked }) };
    let places: Vec<Place> = documents::places(&documents);
    for connector in &documents.connectors {
        let Listing { items, unreadable } = store.survey(&connector.name).await?;
        for item in items {
            let owner = whose(&places, &item.identity).map(|(place, _)| place.alias.clone());
            // An alias that left the documents cannot be named any more, and is shown with all the others.
            let is_nameable = owner.is_some() || selection.tables.is_empty();
            let alias = owner.unwrap_or_else(|| item.identity.alias.clone());
            if is_nameable && selection.includes(&connector.name, &alias) {
                looked.found.push((item, alias));
            }
        }
        for lies in &unreadable {
            let named = whose_unreadable(&places, lies).map(|place| place.alias.as_str());
            let alias = named.or_else(|| lies.identity.as_ref().map(|identity| identity.alias.as_str()));
            // Of what does not even say whose it is nothing is known, and it is told with all the others.
            let is_meant = alias.map_or(selection.tables.is_empty(), |alias| selection.includes(&connector.name, alias));
            if is_meant && selection.includes(&connector.name, alias.unwrap_or_default()) {
                note(&format!("{}/{}: {}", connector.name, alias.unwrap_or("?"), lies.error()));
                looked.unreadable += 1;
            }
        }
    }
    Ok(looked)
}

fn text(answer: &Shown, unreadable: usize) -> String {
    if answer.cursors.is_empty() && unreadable > 0 {
        return format!("{} holds nothing of these tables that can be read\n", answer.store);
    }
    if answer.cursors.is_empty() {
        return format!("{} holds no cursor of these tables\n", answer.store);
    }
    let mut text = String::new();
    for cursor in &answer.cursors {
        let item = &cursor.item;
        text.push_str(&format!("{}/{}\n", cursor.connector, cursor.table));
        let mut lines = vec![
            format!("place: {}", cursor.place),
            format!("id field: {}", item.identity.id_field),
            format!("cursor: {}", shown(item.progress.cursor.as_ref())),
            format!("phase: {:?}", item.progress.phase).to_lowercase(),
            format!("swept to: {}", item.progress.swept_to_ms.map_or_else(|| "-".to_owned(), rfc3339)),
            format!("revision: {}", item.revision),
            format!("window: {}", window(&item.progress.window)),
        ];
        if let Some(lease) = &item.lease {
            let until = if lease.until_ms == i64::MAX { "its process ends".to_owned() } else { rfc3339(lease.until_ms) };
            lines.push(format!("lease: until {until}"));
        }
        for entry in &cursor.audit {
            let (before, after) = (shown(entry.before.as_ref()), shown(entry.after.as_ref()));
            lines.push(format!("{}: {} by {}: {before} -> {after}", entry.at, entry.what, entry.who));
        }
        lines.iter().for_each(|line| wrapped(&mut text, line));
    }
    text
}

fn window(window: &StoredWindow) -> String {
    match window {
        StoredWindow::None => "none".to_owned(),
        StoredWindow::Inline(_) => "in the cursor item".to_owned(),
        StoredWindow::Lost | StoredWindow::Beside(0) => "lost".to_owned(),
        StoredWindow::Slot(Slot { parts, .. }) | StoredWindow::Beside(parts) => format!("beside the cursor item, {parts} parts"),
    }
}
