"""Reads commands of the AWS CLI from standard input, one a line, and says what is wrong with them, one fault a line.

There is no account to run them in, and the CLI is not needed to know whether they could run: it is made of the service
descriptions that botocore brings. So each is taken apart as the CLI would, and service, operation and options are looked up there.
What a command names of ours is looked up too: files of events/, and what the template calls its functions, table, queue and outputs.
"""

import json
import re
import shlex
import sys
from pathlib import Path

import botocore.session
import yaml
from botocore import xform_name

ROOT = Path(sys.argv[1])
STACK = "tablesweep"
# Options that the CLI has for every command, with a value or without.
GLOBAL = {"cli-binary-format", "cli-read-timeout", "query", "output", "region", "profile"}
# Commands that the CLI adds to what the service has, and their options.
OWN = {("logs", "tail"): {"since", "follow"}}
# Arguments without an option that an operation has in the CLI.
POSITIONAL = {("lambda", "invoke"): 1, ("logs", "tail"): 1}

loader = type("Loader", (yaml.SafeLoader,), {})
loader.add_multi_constructor("!", lambda loader, suffix, node: getattr(node, "value", None))
TEMPLATE = yaml.load((ROOT / "template.yaml").read_text(), loader)


def names(kind, field):
    found = [one["Properties"].get(field) for one in TEMPLATE["Resources"].values() if one["Type"] == kind]
    return {name.replace("${AWS::StackName}", STACK) for name in found if name}


FUNCTIONS = names("AWS::Serverless::Function", "FunctionName")
TABLES = names("AWS::DynamoDB::Table", "TableName")
QUEUES = names("AWS::SQS::Queue", "QueueName")


def split(command):
    """The command, and before it those that it contains as `$(…)`."""
    parts = []
    while inner := re.search(r"\$\(([^()]*)\)", command):
        parts.append(inner[1])
        command = command[: inner.start()] + "VALUE" + command[inner.end() :]
    return [*parts, command]


def faults(command):
    words = shlex.split(command.split("&&")[0])
    service, operation, rest = words[1], words[2], words[3:]
    members = OWN.get((service, operation))
    if members is None:
        session = botocore.session.Session()
        if service not in session.get_available_services():
            yield f"there is no service {service}"
            return
        model = session.get_service_model(service)
        known = {xform_name(name, "-"): name for name in model.operation_names}
        if operation not in known:
            yield f"{service} has no {operation}"
            return
        shape = model.operation_model(known[operation]).input_shape
        members = {xform_name(name, "-"): member.type_name for name, member in shape.members.items()}
        needed = {xform_name(name, "-") for name in shape.required_members}
        lacking = needed - {word[2:] for word in rest if word.startswith("--")}
        if lacking:
            yield f"{service} {operation} needs {sorted(lacking)}"
    positional = 0
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            positional += 1
            if (service, operation) == ("logs", "tail") and word.removeprefix("/aws/lambda/") not in FUNCTIONS:
                yield f"no function writes to {word}"
            continue
        option = word[2:]
        if option.removeprefix("no-") in members and isinstance(members, dict) and members[option.removeprefix("no-")] == "boolean":
            continue
        if option not in members and option not in GLOBAL:
            yield f"{service} {operation} has no option {word}"
        value = rest.pop(0)
        yield from named(option, value)
    if positional != POSITIONAL.get((service, operation), 0):
        yield f"{service} {operation} takes no {positional} arguments"


def named(option, value):
    """What a value names, and is not there."""
    if value.startswith("file://events/"):
        file = ROOT / value.removeprefix("file://")
        if not file.is_file():
            yield f"there is no {value}"
        else:
            json.loads(file.read_text())
    if option == "function-name" and value not in FUNCTIONS:
        yield f"the template has no function {value}, but {sorted(FUNCTIONS)}"
    if option in ("table-name", "source-table-name") and value not in TABLES:
        yield f"the template has no table {value}"
    if option == "queue-name" and value not in QUEUES:
        yield f"the template has no queue {value}"
    if option == "stack-name" and value != STACK:
        yield f"the pages call the stack {STACK}, and not {value}"
    for output in re.findall(r"OutputKey=='(\w+)'", value):
        if output not in TEMPLATE["Outputs"]:
            yield f"the template has no output {output}"


for line in sys.stdin:
    for part in split(line.strip()):
        if not part.startswith("aws "):
            continue
        for fault in faults(part):
            print(f"{part}: {fault}")
