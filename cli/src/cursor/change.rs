//! Commands that change cursors: told, confirmed, done.

use std::io::BufRead as _;

use tablesweep::config::Documents;
use tablesweep::cursor::CursorStore;
use tablesweep::host::Host;
use tablesweep::operate::{Operator, Order, Outcome, Place, TopicSchema, shown};

use super::who;
use crate::args::{ChangeArgs, Output, SelectionArgs};
use crate::documents;
use crate::exit::{Exit, Stop};
use crate::output::{self, can_ask, note};
use crate::stores::StoreSpec;

/// What is to be done, all of it or nothing.
#[derive(Debug, Default)]
pub struct Orders {
    /// Schemas of topics that are put in.
    pub schemas: Vec<TopicSchema>,
    /// What is to become of each table.
    pub tables: Vec<(Place, Order)>,
}

/// Carries `order` out on the tables that were named.
pub async fn run(arguments: ChangeArgs, order: impl Fn(&Place) -> Result<Order, Stop>) -> Result<Exit, Stop> {
    let documents = documents::load(&arguments.read.config.config)?;
    let places = named(&documents, &arguments)?;
    let orders = places.into_iter().map(|place| Ok((order(&place)?, place))).collect::<Result<Vec<_>, Stop>>()?;
    let orders = Orders { tables: orders.into_iter().map(|(order, place)| (place, order)).collect(), ..Orders::default() };
    let spec = arguments.read.cursors.cursors.clone().unwrap_or_default();
    carry_out(&spec, &documents::places(&documents), orders, arguments.yes, arguments.read.output.output).await
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

/// Refuses a command that nobody could confirm, or on a store that nobody keeps.
pub fn refuse_unheard(spec: &StoreSpec, yes: bool) -> Result<(), Stop> {
    if !yes && !can_ask() {
        return Err(Stop::wrong("there is no terminal to ask on: `--yes` says that the command is meant"));
    }
    if *spec == StoreSpec::Memory {
        return Err(Stop::wrong("--cursors memory is empty and gone with this command: name the store whose cursors are meant"));
    }
    Ok(())
}

/// Asks, unless it was said already.
pub fn confirm(yes: bool) -> Result<(), Stop> {
    if yes || is_confirmed()? { Ok(()) } else { Err(Stop::failed("nothing was changed")) }
}

/// Tells what will happen, asks, and does it. Nothing is done unless everything can be. `places`: all tables of the documents.
pub async fn carry_out(spec: &StoreSpec, places: &[Place], orders: Orders, yes: bool, output: Output) -> Result<Exit, Stop> {
    refuse_unheard(spec, yes)?;
    let store = open(spec, &orders).await?;
    let host = Host::system();
    let operator = Operator { store: &*store, host: &host, places, who: who::commands() };
    let mut schemas = Vec::new();
    for schema in orders.schemas {
        schemas.extend(operator.prepare_schema(&schema).await?.map(|announcement| (schema, announcement)));
    }
    let mut prepared = Vec::new();
    for (place, order) in orders.tables {
        prepared.push(operator.prepare(&place, order).await?);
    }
    for announcement in schemas.iter().map(|(_, announcement)| announcement).chain(prepared.iter().map(|command| &command.announcement)) {
        note(announcement);
    }
    if !schemas.is_empty() || prepared.iter().any(|command| command.changes) {
        confirm(yes)?;
    }
    // A schema without a cursor harms nobody; a cursor whose sweeps begin a schema anew does.
    for (schema, _) in &schemas {
        operator.put_schema(schema).await?;
    }
    let mut outcomes = Vec::new();
    for command in prepared {
        outcomes.push(operator.carry_out(command).await?);
    }
    tell(&outcomes, output)?;
    Ok(Exit::Good)
}

/// A store that does not exist is made only for what can be the first entry of one.
async fn open(spec: &StoreSpec, orders: &Orders) -> Result<std::sync::Arc<dyn CursorStore>, Stop> {
    if !orders.schemas.is_empty() || orders.tables.iter().any(|(_, order)| matches!(order, Order::Pause { .. } | Order::Import { .. })) {
        return spec.open().await;
    }
    match spec.existing().await? {
        Some(store) => Ok(store),
        None => Err(no_store(spec)),
    }
}

/// The end of a command on a store that is not there.
pub fn no_store(spec: &StoreSpec) -> Stop {
    Stop::failed(format!("Cursor.Missing: {} does not exist: nothing was ever swept with it", spec.name()))
}

fn is_confirmed() -> Result<bool, Stop> {
    note("go on? [y/N]");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Stop::failed(format!("the answer cannot be read: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Says what was done.
pub fn tell(outcomes: &[Outcome], output: Output) -> Result<(), Stop> {
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
