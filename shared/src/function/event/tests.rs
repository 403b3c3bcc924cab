use serde_json::json;

use super::*;

fn refused(event: Value) -> String {
    let failure = Order::read(&event, "lambda").expect_err("refused");
    assert_eq!((&*failure.code, failure.retry), ("Event.Invalid", Retry::Never));
    failure.message
}

#[test]
fn an_empty_event_means_everything_and_its_tick_is_the_invocation() {
    let order = Order::read(&json!({}), "lambda").expect("an order");
    let expected =
        Order { tick: "lambda".to_owned(), mode: Mode::Stream, selection: Selection::default(), rewind: None, dispatch: Dispatch::Invoke };
    assert_eq!(order, expected);
}

#[test]
fn the_event_of_a_schedule_is_a_tick_whether_its_detail_is_a_text_or_an_object() {
    for detail in [json!("{}"), json!({})] {
        let event = json!({"version": "0", "id": "i", "detail-type": "Scheduled Event", "source": "aws.scheduler", "account": "1",
            "time": "2026-01-01T00:00:00Z", "region": "eu-central-1", "resources": ["arn"], "detail": detail});
        let order = Order::read(&event, "lambda").expect("a tick");
        assert_eq!((&*order.tick, order.mode, order.dispatch), ("2026-01-01T00:00:00Z", Mode::Stream, Dispatch::Invoke));
    }
}

#[test]
fn an_order_is_read_with_all_its_fields() {
    let event = json!({"mode": "catch-up", "connectors": ["snow"], "tables": ["snow/inc"], "from": "2026-01-01 00:00:00",
        "request_id": "r", "dispatch": "return"});
    let order = Order::read(&event, "lambda").expect("an order");
    assert_eq!((&*order.tick, order.mode, order.dispatch), ("r", Mode::CatchUp, Dispatch::Return));
    assert_eq!(order.selection, Selection { connectors: vec!["snow".into()], tables: vec!["snow/inc".into()] });
    let rewind = order.rewind.expect("a rewind");
    assert_eq!((&*rewind.from, &*rewind.request_id), ("2026-01-01 00:00:00", "r"));
}

#[test]
fn what_is_unknown_or_wrong_is_refused_naming_the_field() {
    for (event, field) in [
        (json!({"tabels": ["inc"]}), "`tabels`"),
        (json!({"mode": "fast"}), "`mode`"),
        (json!({"tables": "inc"}), "`tables`"),
        (json!({"tables": ["inc"], "connectors": 7}), "`connectors`"),
        (json!({"dispatch": "wait"}), "`dispatch`"),
        (json!({"from": "2026-01-01", "request_id": "r"}), "`from`"),
        (json!({"from": "2026-02-30 00:00:00", "request_id": "r"}), "`from`"),
        (json!({"from": "1200", "request_id": "r"}), "`from`"),
        (json!({"from": "2026-1-1 0:00:00", "request_id": "r"}), "`from`"),
        (json!({"from": "2026-01-01 00:00:00"}), "`request_id`"),
        (json!({"request_id": "2026-01-01T00:00:00Z"}), "`request_id`"),
        (json!({"detail-type": "Scheduled Event", "time": "2026-01-01T00:00:00Z", "mode": "stream"}), "`mode`"),
        (json!({"detail-type": "Scheduled Event"}), "`time`"),
        (json!({"detail-type": "Scheduled Event", "time": "today"}), "`time`"),
        (json!([]), "no object"),
    ] {
        let message = refused(event.clone());
        assert!(message.contains(field), "{event}: {message}");
    }
}

#[test]
fn only_a_time_of_a_schedule_is_scheduled_and_a_catch_up_never_is() {
    let task = |tick: Value, mode: &str| {
        let event = json!({"connector": "snow", "task": 0, "tasks": 1, "tables": ["inc"], "tick": tick, "mode": mode});
        SweepTask::read(&event).expect("a task").is_scheduled()
    };
    assert!(task(json!("2026-01-01T00:00:00Z"), "stream"));
    assert!(task(json!("2026-01-01T01:00:00.5+01:00"), "stream"));
    for tick in [json!("20260101T000000Z"), json!("2026-01-01"), json!("2026-01-01 00:00:00Z"), json!("r"), json!(null)] {
        assert!(!task(tick.clone(), "stream"), "{tick}");
    }
    assert!(!task(json!("2026-01-01T00:00:00Z"), "catch-up"));
}

#[test]
fn a_task_survives_its_way_to_the_sweep_function_and_a_broken_one_names_the_field() {
    let task = Task { connector: "snow".into(), task: 1, tasks: 2, tables: vec!["inc".into()] };
    let plan = Plan { tick: Some("r".into()), mode: Mode::CatchUp, tasks: vec![task.clone()], invoked: 0, not_rewound: vec![] };
    let sent = SweepTask::new(&plan, &task);
    let event = serde_json::to_value(&sent).expect("JSON");
    assert_eq!(SweepTask::read(&event).expect("a task"), sent);
    for (field, wrong) in [("extra", json!(1)), ("task", json!(-1)), ("tables", json!([])), ("tables", json!("inc")), ("mode", json!(1))] {
        let mut broken = event.clone();
        broken[field] = wrong;
        let failure = SweepTask::read(&broken).expect_err("broken");
        assert!(failure.code == "Event.Invalid" && failure.message.contains(&format!("`{field}`")), "{failure}");
    }
}
