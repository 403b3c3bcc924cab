//! The files of `events/` are what the functions take, and what the schemas say.

use std::path::PathBuf;

use serde_json::Value;
use tablesweep::assembly::SOURCES;
use tablesweep::config;
use tablesweep::function::event::Order;
use tablesweep::function::{Dispatch, SweepTask};
use tablesweep::plan;
use tablesweep::sweep::Mode;

use super::bed::event;

fn keeps(schema: &str, value: &Value) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{schema}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let schema: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let validator = jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let faults: Vec<String> = validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{}: {faults:#?}\n{value:#}", file.display());
}

#[test]
fn the_events_of_fan_out_are_taken_as_they_are() {
    for (name, mode, dispatch, rewinds) in [
        ("schedule", Mode::Stream, Dispatch::Invoke, false),
        ("catch-up", Mode::CatchUp, Dispatch::Return, false),
        ("catch-up-from", Mode::CatchUp, Dispatch::Return, true),
        ("one-table", Mode::Stream, Dispatch::Invoke, false),
    ] {
        let event = event(name);
        keeps("fan-out-in", &event);
        let order = Order::read(&event, "lambda").unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!((order.mode, order.dispatch, order.rewind.is_some()), (mode, dispatch, rewinds), "{name}");
    }
}

#[test]
fn the_events_of_sweep_are_tasks_of_the_example_documents() {
    for (name, mode) in [("sweep-task", Mode::Stream), ("catch-up-task", Mode::CatchUp)] {
        let event = event(name);
        keeps("sweep-in", &event);
        let task = SweepTask::read(&event).expect("a task");
        assert_eq!(task.mode, mode);
        is_planned(&task);
    }
}

fn is_planned(task: &SweepTask) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../config");
    let documents = config::load(&folder, SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    let connector = documents.connector(&task.connector).expect("its connector");
    let tasks = plan::tasks(&connector.name, connector.tables(), connector.tasks_max, |_| true);
    let owned = tasks.iter().any(|own| (own.task, own.tasks, &own.tables) == (task.task, task.tasks, &task.tables));
    assert!(owned, "{task} is not one of {tasks:?}");
}

#[test]
fn the_events_name_what_the_example_documents_have() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../config");
    let documents = config::load(&folder, SOURCES, &|_| None).unwrap_or_else(|faults| panic!("{faults}"));
    for name in ["schedule", "catch-up", "catch-up-from", "one-table"] {
        let order = Order::read(&event(name), "lambda").expect("an order");
        assert_eq!(order.selection.unknown(&documents), Vec::<String>::new(), "{name}");
    }
}
