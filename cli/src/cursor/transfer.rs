//! `tablesweep cursor export` and `import`: cursors as lines of JSON.

use std::path::Path;

use tablesweep::operate::{Order, Place, export_line, read_line, whose};

use super::look::Looked;
use super::{change, look};
use crate::args::{ImportArgs, LookArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output;

/// Runs `export`.
pub async fn export(arguments: LookArgs) -> Result<Exit, Stop> {
    let Looked { found, is_missing, name } = look::items(&arguments).await?;
    let mut text = String::new();
    for (item, _) in &found {
        text.push_str(&export_line(item));
        text.push('\n');
    }
    output::text(&text)?;
    // An empty copy that passes for a whole one is found out when it is needed.
    match (found.is_empty(), is_missing) {
        (false, _) => Ok(Exit::Good),
        (true, true) => Err(Stop::failed(format!("Cursor.Missing: {name} does not exist: nothing was exported"))),
        (true, false) => Err(Stop::failed(format!("Cursor.Missing: {name} holds no cursor of these tables: nothing was exported"))),
    }
}

/// Runs `import`.
pub async fn import(arguments: ImportArgs) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    if arguments.file == Path::new("-") && !arguments.yes {
        return Err(Stop::wrong("with lines from standard input there is nothing to ask on: `--yes` says that the command is meant"));
    }
    let places = documents::places(&documents);
    let orders = orders(&read(&arguments.file)?, &places, arguments.forward)?;
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    change::carry_out(&spec, &places, orders, arguments.yes, arguments.read.output.output).await
}

fn read(file: &Path) -> Result<String, Stop> {
    let text = if file == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    text.map_err(|error| Stop::wrong(format!("{} cannot be read: {error}", file.display())))
}

/// An order for each line. A line of a table that stands in no document is refused: nothing would ever read it.
fn orders(text: &str, places: &[Place], forward: bool) -> Result<Vec<(Place, Order)>, Stop> {
    let mut orders = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let item = read_line(line).map_err(|error| Stop::wrong(format!("line {number}: {error}")))?;
        let (connector, alias) = (&item.identity.connector, &item.identity.alias);
        let (place, _) = whose(places, &item.identity)
            .ok_or_else(|| Stop::wrong(format!("line {number}: no document has {connector}/{alias}; take the line out")))?;
        orders.push((place.clone(), Order::Import { item: Box::new(item), forward }));
    }
    if orders.is_empty() {
        return Err(Stop::wrong("there is no line to import"));
    }
    Ok(orders)
}
