//! Commands that change cursors: told, confirmed, done.

use std::io::BufRead as _;

use tablesweep::config::Documents;
use tablesweep::cursor::CursorStore;
use tablesweep::host::{Host, env};
use tablesweep::operate::{Operator, Order, Outcome, Place, shown};

use crate::args::{ChangeArgs, Output, SelectionArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output::{self, can_ask, note};
use crate::stores::StoreSpec;

/// Carries `order` out on the tables that were named.
pub async fn run(arguments: ChangeArgs, order: impl Fn(&Place) -> Result<Order, Stop>) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let places = named(&documents, &arguments)?;
    let orders = places.into_iter().map(|place| Ok((order(&place)?, place))).collect::<Result<Vec<_>, Stop>>()?;
    let orders = orders.into_iter().map(|(order, place)| (place, order)).collect();
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    carry_out(&spec, orders, arguments.yes, arguments.read.output.output).await
}

/// The tables that were named; an alias that two connectors have is not enough of a name.
pub fn named(documents: &Documents, arguments: &ChangeArgs) -> Result<Vec<Place>, Stop> {
    let wanted = SelectionArgs { connectors: arguments.connectors.clone(), tables: arguments.tables.clone() };
    let selection = documents::selected(documents, &wanted)?;
    let places: Vec<Place> =
        documents::places(documents).into_iter().filter(|place| selection.includes(&place.connector, &place.alias)).collect();
    for table in &arguments.tables {
        let owners: Vec<&str> = places.iter().filter(|place| place.alias == *table).map(|place| place.connector.as_str()).collect();
        if owners.len() > 1 {
            let choices: Vec<String> = owners.iter().map(|owner| format!("{owner}/{table}")).collect();
            return Err(Stop::wrong(format!("--table {table} is a table of several connectors; write {}", choices.join(" or "))));
        }
    }
    if places.is_empty() {
        return Err(Stop::wrong("no document has such a table in such a connector"));
    }
    Ok(places)
}

/// Tells what will happen, asks, and does it. Nothing is done unless everything can be.
pub async fn carry_out(spec: &StoreSpec, orders: Vec<(Place, Order)>, yes: bool, output: Output) -> Result<Exit, Stop> {
    if !yes && !can_ask() {
        return Err(Stop::wrong("there is no terminal to ask on: `--yes` says that the command is meant"));
    }
    if *spec == StoreSpec::Memory {
        return Err(Stop::wrong("--cursors memory is empty and gone with this command: name the store whose cursors are meant"));
    }
    let store = open(spec, &orders).await?;
    let host = Host::system();
    let who = env("USER").or_else(|| env("USERNAME")).unwrap_or_else(|| "unknown".to_owned());
    let operator = Operator { store: &*store, host: &host, who };
    let mut prepared = Vec::new();
    for (place, order) in orders {
        prepared.push(operator.prepare(&place, order).await?);
    }
    for command in &prepared {
        note(&command.announcement);
    }
    if prepared.iter().any(|command| command.changes) && !yes && !is_confirmed()? {
        return Err(Stop::failed("nothing was changed"));
    }
    let mut outcomes = Vec::new();
    for command in prepared {
        outcomes.push(operator.carry_out(command).await?);
    }
    tell(&outcomes, output)?;
    Ok(Exit::Good)
}

/// A store that does not exist is made only for what can be the first entry of one.
async fn open(spec: &StoreSpec, orders: &[(Place, Order)]) -> Result<std::sync::Arc<dyn CursorStore>, Stop> {
    if orders.iter().any(|(_, order)| matches!(order, Order::Pause { .. } | Order::Import(_))) {
        return spec.open().await;
    }
    match spec.look().await? {
        Some(store) => Ok(store),
        None => Err(Stop::failed(format!("Cursor.Missing: {} does not exist: nothing was ever swept with it", spec.name()))),
    }
}

fn is_confirmed() -> Result<bool, Stop> {
    note("go on? [y/N]");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Stop::failed(format!("the answer cannot be read: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn tell(outcomes: &[Outcome], output: Output) -> Result<(), Stop> {
    if output == Output::Json {
        return output::json(&outcomes);
    }
    let mut text = String::new();
    for outcome in outcomes {
        let name = format!("{}/{}", outcome.connector, outcome.table);
        text.push_str(&match (outcome.changed, outcome.command) {
            (false, _) => format!("{name}: left as it is\n"),
            (true, "rewind" | "import") => format!("{name}: at {}\n", shown(outcome.after.as_ref())),
            (true, "reset") => format!("{name}: starts anew\n"),
            (true, "accept-schema") => format!("{name}: goes on with the new schema\n"),
            (true, command) => format!("{name}: {command}d\n"),
        });
    }
    output::text(&text)
}
