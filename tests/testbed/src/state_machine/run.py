"""Runs a state machine of Step Functions (query language JSONata) against a Lambda Invoke API.

    run.py ORDER        ORDER is a JSON object, see `main`; prints a JSON list of executions

It knows the states, fields, integrations and errors that are written down here, and refuses every other before it runs
anything: what would be looked past here would be looked past in a test as well. Time is virtual: a wait takes the share of its
seconds that the order says, and the history tells when, in virtual seconds, a state was entered.
"""

import http.client
import json
import re
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import jsonata
import yaml

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:catch-up"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:catch-up:"
# Of one state's input or output, and of one variable: https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
LARGEST = 256 * 1024
# What an execution of the type Standard may have in its history.
MOST_EVENTS = 25_000

COMMON = {"Type", "Comment"}
MOVES = {"Next", "End"}
FIELDS = {
    "Pass": COMMON | MOVES | {"Assign", "Output"},
    "Choice": COMMON | {"Choices", "Default"},
    "Task": COMMON | MOVES | {"Resource", "Arguments", "TimeoutSeconds", "Retry", "Catch", "Assign", "Output"},
    "Map": COMMON | MOVES | {"Items", "MaxConcurrency", "ItemProcessor", "Assign", "Output"},
    "Wait": COMMON | MOVES | {"Seconds"},
    "Succeed": COMMON | {"Output"},
    "Fail": COMMON | {"Error", "Cause"},
}
REQUIRED = {
    "Choice": {"Choices", "Default"},
    "Task": {"Resource", "Arguments"},
    "Map": {"Items", "ItemProcessor", "MaxConcurrency"},
    "Wait": {"Seconds"},
    "Fail": {"Error", "Cause"},
}
RETRY = {"ErrorEquals", "IntervalSeconds", "BackoffRate", "MaxAttempts", "MaxDelaySeconds"}
CATCH = {"ErrorEquals", "Next", "Output", "Assign"}
ARGUMENTS = {
    "arn:aws:states:::lambda:invoke": {"FunctionName", "Payload"},
    "arn:aws:states:::states:startExecution": {"StateMachineArn", "Name", "Input"},
}
EXPRESSION = re.compile(r"\{%.*%\}", re.DOTALL)


class Unknown(Exception):
    """Something that this interpreter does not know. A fault of the definition or of this program, never of a run."""


class Failed(Exception):
    """An error as the machine sees it: with a name, which Retry and Catch go by, and a cause."""

    def __init__(self, error, cause):
        super().__init__(f"{error}: {cause}")
        self.error, self.cause = error, cause


def only(what, given, known, required=()):
    odd = set(given) - set(known)
    if odd or not set(required) <= set(given):
        raise Unknown(f"{what}: unknown {sorted(odd)}, missing {sorted(set(required) - set(given))}")


def check(machine, top=True):
    """Refuses what `Execution` would not carry out as AWS does."""
    shape = {"Comment", "QueryLanguage", "StartAt", "States"} if top else {"ProcessorConfig", "StartAt", "States"}
    only("a machine", machine, shape, shape - {"Comment"})
    if top and machine["QueryLanguage"] != "JSONata" or not top and machine["ProcessorConfig"] != {"Mode": "INLINE"}:
        raise Unknown("a query language or a mode of Map that is not known here")
    names, reached = set(machine["States"]), {machine["StartAt"]}
    for name, state in machine["States"].items():
        if state["Type"] not in FIELDS:
            raise Unknown(f"{name}: the type {state['Type']}")
        only(name, state, FIELDS[state["Type"]], REQUIRED.get(state["Type"], ()))
        if "Next" in FIELDS[state["Type"]] and ("Next" in state) == (state.get("End") is True):
            raise Unknown(f"{name}: exactly one of Next and End")
        for choice in state.get("Choices", []):
            only(name, choice, {"Condition", "Next"}, {"Condition", "Next"})
            reached.add(choice["Next"])
        for retry in state.get("Retry", []):
            only(name, retry, RETRY, RETRY - {"MaxDelaySeconds"})
        for catch in state.get("Catch", []):
            only(name, catch, CATCH, {"ErrorEquals", "Next"})
            reached.add(catch["Next"])
        if "Resource" in state:
            if state["Resource"] not in ARGUMENTS:
                raise Unknown(f"{name}: the resource {state['Resource']}")
            only(name, state["Arguments"], ARGUMENTS[state["Resource"]], ARGUMENTS[state["Resource"]])
            if state["Resource"].endswith(":invoke") and "TimeoutSeconds" not in state:
                raise Unknown(f"{name}: a function is waited for without an end")
        if "ItemProcessor" in state:
            check(state["ItemProcessor"], top=False)
        reached |= {state[key] for key in ("Next", "Default") if key in state}
    if reached != names:
        raise Unknown(f"states that are not there {sorted(reached - names)}, or never reached {sorted(names - reached)}")


def evaluate(node, states, variables):
    """`node` with every JSONata expression in it worked out."""
    if isinstance(node, dict):
        return {key: evaluate(value, states, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [evaluate(value, states, variables) for value in node]
    if not isinstance(node, str) or not EXPRESSION.fullmatch(node):
        if isinstance(node, str) and "{%" in node:
            raise Unknown(f"an expression in the middle of a text: {node}")
        return node
    expression = jsonata.Jsonata(node[2:-2].strip())
    frame = expression.create_frame()
    for name, value in {**variables, "states": states}.items():
        frame.bind(name, value)
    try:
        value = expression.evaluate(None, frame)
    except Exception as error:
        raise Failed("States.QueryEvaluationError", f"{error} in {node}") from error
    if value is None:
        # AWS fails for what is undefined. A null cannot be told from that here, and no field wants one.
        raise Failed("States.QueryEvaluationError", f"undefined: {node}")
    # Sequences are lists with a memory; what goes on is plain JSON.
    return sized(json.loads(json.dumps(value)), "an expression")


def sized(value, what):
    if len(json.dumps(value).encode()) > LARGEST:
        raise Failed("States.DataLimitExceeded", f"{what} is larger than {LARGEST} bytes")
    return value


class Execution:
    def __init__(self, machine, order, name, given):
        self.machine, self.order, self.name, self.input = machine, order, name, given
        self.history, self.started, self.now = [], [], 0.0
        self.events, self.counting = 0, threading.Lock()

    def run(self):
        told = {"name": self.name, "input": self.input}
        try:
            self.happened(1)
            output, _ = self.walk(self.machine, self.input, {}, {})
            self.happened(1)
            told |= {"status": "SUCCEEDED", "output": output}
        except Failed as failed:
            told |= {"status": "FAILED", "error": failed.error, "cause": failed.cause}
        told |= {"history": self.history, "events": self.events, "started": [one["Name"] for one in self.started]}
        return told

    def happened(self, events):
        """Counts what AWS writes down. It ends an execution whose history is full, and nothing in it can catch that."""
        with self.counting:
            self.events += events
            if self.events > self.order["most_events"]:
                raise Failed("States.Runtime", f"the history has more than {self.order['most_events']} events")

    def walk(self, machine, given, variables, context):
        """Runs the states of a machine, or of one item of a Map; answers the last output and the variables."""
        name = machine["StartAt"]
        while True:
            state = machine["States"][name]
            if len(self.history) > self.order["most_states"]:
                raise Unknown(f"more than {self.order['most_states']} states were entered")
            self.history.append({"state": name, "at": round(self.now, 3), "input": given})
            self.happened(1)
            about = {**context, "State": {"Name": name, "RetryCount": 0}, "StateMachine": {"Id": MACHINE}}
            about["Execution"] = {"Id": EXECUTION + self.name, "Name": self.name, "Input": self.input}
            states = {"input": sized(given, name), "context": about}
            kind = state["Type"]
            if kind == "Fail":
                raise Failed(*(evaluate(state[key], states, variables) for key in ("Error", "Cause")))
            if kind == "Choice":
                name = self.choose(state, states, variables)
                self.happened(1)
                continue
            caught = None
            result = given
            try:
                if kind == "Wait":
                    self.sleep(evaluate(state["Seconds"], states, variables))
                elif kind == "Map":
                    result = states["result"] = self.each(state, states, variables, about)
                elif kind == "Task":
                    result = states["result"] = self.tried(state, states, variables)
                settled, next_name = state, state.get("Next")
            except Failed as failed:
                caught = next((one for one in state.get("Catch", []) if matches(one, failed)), None)
                if caught is None:
                    raise
                states["errorOutput"] = {"Error": failed.error, "Cause": failed.cause}
                settled, next_name = caught, caught["Next"]
                result = states["errorOutput"]
            # Both see the variables as they were before.
            output = evaluate(settled["Output"], states, variables) if "Output" in settled else result
            assigned = evaluate(settled.get("Assign", {}), states, variables)
            self.happened(1)
            given, variables = output, {**variables, **assigned}
            if next_name is None:
                return given, variables
            name = next_name

    @staticmethod
    def choose(state, states, variables):
        for choice in state["Choices"]:
            holds = evaluate(choice["Condition"], states, variables)
            if not isinstance(holds, bool):
                raise Failed("States.QueryEvaluationError", f"not a boolean: {choice['Condition']}")
            if holds:
                return choice["Next"]
        return state["Default"]

    def each(self, state, states, variables, context):
        items = evaluate(state["Items"], states, variables)
        if not isinstance(items, list):
            raise Failed("States.QueryEvaluationError", "the items of a Map are no array")

        def one(place):
            item = {"Item": {"Index": place, "Value": items[place]}}
            self.happened(2)
            return self.walk(state["ItemProcessor"], items[place], dict(variables), {**context, "Map": item})[0]

        # That it begins and that it ends.
        self.happened(2)
        with ThreadPoolExecutor(state["MaxConcurrency"]) as pool:
            return list(pool.map(one, range(len(items))))

    def tried(self, state, states, variables):
        attempts = {}
        while True:
            # Scheduled, started, and how it ended.
            self.happened(3)
            states["context"]["State"]["RetryCount"] = sum(attempts.values())
            try:
                return self.task(state, evaluate(state["Arguments"], states, variables))
            except Failed as failed:
                place = next((at for at, one in enumerate(state.get("Retry", [])) if matches(one, failed)), None)
                if place is None:
                    raise
                retry, done = state["Retry"][place], attempts.get(place, 0)
                if done >= retry["MaxAttempts"]:
                    raise
                attempts[place] = done + 1
                pause = retry["IntervalSeconds"] * retry["BackoffRate"] ** done
                self.sleep(min(pause, retry.get("MaxDelaySeconds", pause)))

    def task(self, state, arguments):
        if state["Resource"].endswith(":startExecution"):
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", arguments["Name"]):
                raise Failed("StepFunctions.InvalidNameException", arguments["Name"])
            if self.order["start_faults"]:
                raise Failed(self.order["start_faults"].pop(0), "as the test ordered")
            if arguments["StateMachineArn"] != MACHINE:
                raise Failed("StepFunctions.StateMachineDoesNotExistException", arguments["StateMachineArn"])
            self.started.append(arguments)
            return {"ExecutionArn": EXECUTION + arguments["Name"], "StartDate": "2026-03-01T00:00:00Z"}
        return self.invoke(arguments, state["TimeoutSeconds"])

    def invoke(self, arguments, timeout):
        function = urllib.parse.quote(arguments["FunctionName"], safe="")
        url = f"{self.order['lambda']}/2015-03-31/functions/{function}/invocations"
        request = urllib.request.Request(url, json.dumps(arguments["Payload"]).encode(), {"X-Amz-Invocation-Type": "RequestResponse"})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                payload, failed = json.loads(answer.read() or b"null"), answer.headers.get("X-Amz-Function-Error")
        except urllib.error.HTTPError as refused:
            # The error's name as the integration reports it: Lambda. and the name of the API's exception.
            kind = refused.headers.get("X-Amzn-Errortype") or {429: "TooManyRequestsException"}.get(refused.code, "ServiceException")
            raise Failed(f"Lambda.{kind}", refused.read().decode()) from refused
        except TimeoutError as late:
            raise Failed("States.Timeout", str(late)) from late
        except (urllib.error.URLError, ConnectionError, http.client.HTTPException) as lost:
            raise Failed("Lambda.SdkClientException", str(lost)) from lost
        if failed:
            raise Failed(payload.get("errorType", "Lambda.Unknown"), json.dumps(payload))
        return sized({"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200}, "the answer of a function")

    def sleep(self, seconds):
        self.now += seconds
        time.sleep(seconds * self.order["second"])


def matches(rule, failed):
    # States.ALL stands for all but these two: https://states-language.net/#appendix-a
    beyond = {"States.DataLimitExceeded", "States.Runtime"}
    named = rule["ErrorEquals"]
    return failed.error in named or "States.ALL" in named and failed.error not in beyond


def main():
    """ORDER: {"definition": text, "name", "input", "lambda": url, "second": real seconds of a virtual one, "most_states"}.

    Beside them "most_events", if the history is to be shorter than AWS's, and "start_faults": with what errors executions are not started.
    """
    order = {"most_events": MOST_EVENTS, "start_faults": []} | json.loads(sys.argv[1])
    machine = yaml.safe_load(order["definition"])
    check(machine)
    executions, waiting = [], [(order["name"], order["input"])]
    while waiting:
        execution = Execution(machine, order, *waiting.pop(0))
        executions.append(execution.run())
        waiting += [(one["Name"], one["Input"]) for one in execution.started]
    json.dump(executions, sys.stdout)


if __name__ == "__main__":
    main()
