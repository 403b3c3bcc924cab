//! The interpreter of state machines refuses what it does not carry out as AWS does.

use std::time::Duration;

use serde_json::{Value, json};
use tablesweep_testbed::parts::PartError;
use tablesweep_testbed::state_machine::{Execution, StateMachine};

const NOBODY: &str = "http://127.0.0.1:9";

async fn run(definition: &Value, input: &Value) -> Result<Execution, PartError> {
    let machine = StateMachine::from_text(&definition.to_string());
    let mut executions = machine.run(NOBODY, "name", input, Duration::ZERO).await?;
    assert_eq!(executions.len(), 1);
    Ok(executions.remove(0))
}

fn machine(states: &Value) -> Value {
    let first = states.as_object().and_then(|states| states.keys().next()).expect("a state");
    json!({"QueryLanguage": "JSONata", "StartAt": first, "States": states})
}

#[tokio::test]
async fn what_is_not_known_is_refused_before_anything_runs() {
    let end = json!({"Type": "Succeed"});
    let with = |first: Value| machine(&json!({"A": first, "B": end}));
    for (definition, said) in [
        (with(json!({"Type": "Parallel", "Next": "B"})), "Parallel"),
        (with(json!({"Type": "Pass", "Next": "B", "ResultPath": "$.x"})), "ResultPath"),
        (with(json!({"Type": "Pass"})), "exactly one of Next and End"),
        (with(json!({"Type": "Pass", "Next": "C"})), "never reached"),
        (with(json!({"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage", "Arguments": {}, "Next": "B"})), "sqs"),
        (
            with(json!({"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Arguments": {"FunctionName": "f"}, "Next": "B"})),
            "Payload",
        ),
        (with(json!({"Type": "Choice", "Choices": [{"Condition": "{% true %}", "Next": "B"}]})), "Default"),
        (json!({"StartAt": "A", "States": {"A": end}}), "QueryLanguage"),
    ] {
        let refused = run(&definition, &json!({})).await.expect_err(said).to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[tokio::test]
async fn an_undefined_value_fails_the_execution_as_on_aws() {
    let definition = machine(&json!({"A": {"Type": "Pass", "Output": "{% $states.input.absent %}", "End": true}}));
    let execution = run(&definition, &json!({})).await.expect("it runs");
    assert_eq!((&*execution.status, execution.error.as_deref()), ("FAILED", Some("States.QueryEvaluationError")));
}

#[tokio::test]
async fn assignments_see_the_variables_of_before_and_a_map_keeps_order_and_its_own_variables() {
    let definition = machine(&json!({
        "A": {"Type": "Pass", "Assign": {"x": 1}, "Next": "B"},
        "B": {"Type": "Pass", "Assign": {"x": "{% $x + 1 %}", "y": "{% $x %}"}, "Next": "C"},
        "C": {
            "Type": "Map", "Items": "{% [3, 1, 2] %}", "MaxConcurrency": 2,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "INLINE"},
                "StartAt": "Inner",
                "States": {"Inner": {"Type": "Pass", "Assign": {"x": 9}, "Output": "{% $states.input * $x %}", "End": true}},
            },
            "Next": "D",
        },
        "D": {"Type": "Succeed", "Output": {"products": "{% $states.input %}", "x": "{% $x %}", "y": "{% $y %}"}},
    }));
    let execution = run(&definition, &json!({})).await.expect("it runs");
    assert_eq!(execution.output, json!({"products": [6, 2, 4], "x": 2, "y": 1}), "{execution:?}");
}

#[tokio::test]
async fn a_retry_waits_as_it_says_and_a_catch_sees_the_error() {
    let definition = machine(&json!({
        "A": {
            "Type": "Task", "Resource": "arn:aws:states:::states:startExecution",
            "Arguments": {"StateMachineArn": "{% $states.context.StateMachine.Id %}", "Name": "no spaces", "Input": {}},
            "Retry": [{
                "ErrorEquals": ["StepFunctions.InvalidNameException"],
                "IntervalSeconds": 5, "BackoffRate": 2, "MaxAttempts": 3, "MaxDelaySeconds": 12,
            }],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Output": "{% $states.errorOutput.Error %}", "Next": "B"}],
            "End": true,
        },
        "B": {"Type": "Succeed"},
    }));
    let execution = run(&definition, &json!({})).await.expect("it runs");
    assert_eq!(execution.output, "StepFunctions.InvalidNameException");
    assert!((execution.history[1].at - (5.0 + 10.0 + 12.0)).abs() < 0.001, "{:?}", execution.history);
    // Begun and ended; the task entered, tried four times and left; the end entered and left.
    assert_eq!(execution.events, 2 + 2 + 4 * 3 + 2);
}

#[tokio::test]
async fn an_execution_whose_history_is_full_fails_and_nothing_catches_that() {
    let definition = machine(&json!({
        "A": {
            "Type": "Task", "Resource": "arn:aws:states:::states:startExecution",
            "Arguments": {"StateMachineArn": "{% $states.context.StateMachine.Id %}", "Name": "no spaces", "Input": {}},
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "A"}],
            "End": true,
        },
    }));
    let endless = StateMachine::from_text(&definition.to_string()).with_history_of(51);
    let executions = endless.run(NOBODY, "name", &json!({}), Duration::ZERO).await.expect("it runs");
    assert_eq!((&*executions[0].status, executions[0].error.as_deref()), ("FAILED", Some("States.Runtime")));
    assert!(executions[0].entered("A") == 11, "five events each, after the one of the start: {:?}", executions[0].history);
}
