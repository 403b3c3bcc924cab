//! What the functions are invoked with.
//!
//! Events are written by hand, by a schedule, by a state machine, and a misspelt field must not be a sweep of everything
//! or a catch-up that never rewinds. So every field is known or refused, and each refusal names the field.

use std::fmt;

use jiff::civil::DateTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::assembly::Selection;
use crate::failure::{Failure, Retry};
use crate::plan::{Plan, Task};
use crate::sweep::Mode;

/// What is done with the tasks of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dispatch {
    /// Each is handed to the sweep function, which is not waited for.
    #[default]
    Invoke,
    /// Nothing: whoever asked invokes them.
    Return,
}

/// An event of EventBridge or EventBridge Scheduler: a tick.
///
/// Only the time says anything. The other fields are named so that they are not unknown ones; Scheduler gives `detail`
/// as a text, and a rule gives an object.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledEvent {
    /// The envelope's version.
    pub version: Option<String>,
    /// The event's id.
    pub id: Option<String>,
    /// `Scheduled Event`.
    #[serde(rename = "detail-type")]
    pub detail_type: String,
    /// `aws.scheduler` or `aws.events`.
    pub source: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// The time that it was scheduled for, in RFC 3339.
    pub time: String,
    /// The region.
    pub region: Option<String>,
    /// The schedule.
    pub resources: Option<Vec<String>>,
    /// Whatever the sender adds.
    pub detail: Option<Value>,
}

/// An order of an operator or of a state machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// How far to go.
    pub mode: Mode,
    /// Names of connectors; none means all.
    pub connectors: Vec<String>,
    /// Aliases, alone or as `connector/alias`; none means all.
    pub tables: Vec<String>,
    /// Set the cursors of the selected tables back to this time first.
    pub from: Option<String>,
    /// What tells this order from others.
    pub request_id: Option<String>,
    /// What is done with the tasks.
    pub dispatch: Dispatch,
}

/// What fan-out is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The scheduled time, or the id of the request.
    pub tick: String,
    /// How far to go.
    pub mode: Mode,
    /// Which tables.
    pub selection: Selection,
    /// What to rewind them to first.
    pub rewind: Option<RewindOrder>,
    /// What is done with the tasks.
    pub dispatch: Dispatch,
}

/// A rewind before a catch-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindOrder {
    /// Where to: a time, as it was given.
    pub from: String,
    /// No table is rewound twice by one request.
    pub request_id: String,
}

/// One task, as the sweep function is given it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepTask {
    /// The connector's name.
    pub connector: String,
    /// The task's number, from 0.
    pub task: u32,
    /// The number of tasks of the connector.
    pub tasks: u32,
    /// The aliases of its tables.
    pub tables: Vec<String>,
    /// The scheduled time, or the id of the request.
    pub tick: Option<String>,
    /// How far to go.
    pub mode: Mode,
}

impl SweepTask {
    /// A task of `plan`.
    pub fn new(plan: &Plan, task: &Task) -> Self {
        let Task { connector, task, tasks, tables } = task.clone();
        Self { connector, task, tasks, tables, tick: plan.tick.clone(), mode: plan.mode }
    }

    /// Reads the event of the sweep function.
    ///
    /// # Errors
    /// `Event.Invalid` names the field.
    pub fn read(event: &Value) -> Result<Self, Failure> {
        let task: Self = read("the event of sweep is one task of a plan", event)?;
        if task.tables.is_empty() {
            return Err(invalid("the event of sweep names no `tables`; a plan has no such task"));
        }
        Ok(task)
    }

    /// Whether a schedule started this: then a table that is not due, or parked until later, is left alone.
    pub fn is_scheduled(&self) -> bool {
        self.mode == Mode::Stream && self.tick.as_deref().is_some_and(is_time)
    }
}

impl fmt::Display for SweepTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} task {} of {} ({})", self.connector, self.task, self.tasks, self.tables.join(", "))
    }
}

impl Order {
    /// Reads the event of the fan-out function. `invocation` is Lambda's id of the request, for an order that has none of its
    /// own.
    ///
    /// # Errors
    /// `Event.Invalid` names the field.
    pub fn read(event: &Value, invocation: &str) -> Result<Self, Failure> {
        if event.get("detail-type").is_some() {
            return tick(&read("the event of fan-out has `detail-type`, so it is one of EventBridge", event)?);
        }
        requested(read("the event of fan-out is an order", event)?, invocation)
    }
}

fn tick(event: &ScheduledEvent) -> Result<Order, Failure> {
    if !is_time(&event.time) {
        return Err(invalid(&format!("`time` is {:?}, which is not a time such as 2026-01-01T00:00:00Z", event.time)));
    }
    Ok(Order { tick: event.time.clone(), mode: Mode::Stream, selection: Selection::default(), rewind: None, dispatch: Dispatch::Invoke })
}

fn requested(request: Request, invocation: &str) -> Result<Order, Failure> {
    // The tick of a sweep says whether a schedule started it, by being a time.
    if let Some(id) = request.request_id.as_deref().filter(|id| id.is_empty() || is_time(id)) {
        return Err(invalid(&format!("`request_id` is {id:?}; it must be a name, since a time is the tick of a schedule")));
    }
    let rewind = match (request.from, &request.request_id) {
        (None, _) => None,
        (Some(_), None) => {
            return Err(invalid("`from` needs a `request_id`, without which a repeated invocation would rewind the tables again"));
        }
        (Some(from), Some(id)) => {
            if !is_civil_time(&from) {
                return Err(invalid(&format!("`from` is {from:?}, which is not a time of the form \"YYYY-MM-DD hh:mm:ss\" (UTC)")));
            }
            Some(RewindOrder { from, request_id: id.clone() })
        }
    };
    Ok(Order {
        tick: request.request_id.unwrap_or_else(|| invocation.to_owned()),
        mode: request.mode,
        selection: Selection { connectors: request.connectors, tables: request.tables },
        rewind,
        dispatch: request.dispatch,
    })
}

/// Whether a text is a time of RFC 3339, as a schedule gives it. Shorter forms of ISO 8601 are not: an id may look like them.
pub fn is_time(text: &str) -> bool {
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let has_form = separators.iter().all(|(at, separator)| text.as_bytes().get(*at) == Some(separator));
    has_form && text.parse::<jiff::Timestamp>().is_ok()
}

/// Whether a text is a time of the one form that `from` has. Whether a table's cursor can be set to a time is its source's to say.
fn is_civil_time(text: &str) -> bool {
    const FORM: &str = "%Y-%m-%d %H:%M:%S";
    DateTime::strptime(FORM, text).is_ok_and(|time| time.strftime(FORM).to_string() == text)
}

/// Reads a typed event. serde names a field that is unknown or missing, but not one whose value is wrong.
fn read<T: DeserializeOwned>(what: &str, event: &Value) -> Result<T, Failure> {
    let Value::Object(fields) = event else {
        return Err(invalid(&format!("{what}, and this is no object")));
    };
    serde_json::from_value(event.clone()).map_err(|error| {
        let said = error.to_string();
        let culprit = fields.iter().find(|(name, value)| {
            let alone = Map::from_iter([((*name).clone(), (*value).clone())]);
            serde_json::from_value::<T>(Value::Object(alone)).is_err_and(|error| error.to_string() == said)
        });
        match culprit {
            Some((name, _)) if !said.contains(&format!("`{name}`")) => invalid(&format!("{what}: `{name}`: {said}")),
            _ => invalid(&format!("{what}: {said}")),
        }
    })
}

/// A failure of whoever invoked.
pub(super) fn invalid(message: &str) -> Failure {
    Failure::new("Event.Invalid", Retry::Never, message)
}

#[cfg(test)]
mod tests;
