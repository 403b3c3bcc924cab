"""What the template promises. Names are sentences; each promise is checked on the translation."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from jsonschema import Draft202012Validator
from samtranslator.yaml_helper import yaml_parse
from translated import CLUSTER, EVERYTHING, LEAST, MOST, PACES, REQUIRED, ROOT, SOURCE, Template, listed, paced

# A lease outlives the invocation by this much, since clocks differ; the next tick should find it over.
SKEW_SECONDS = 10

# Lambda asks for these on everything when it puts a function into a VPC; most have no narrower form.
ON_EVERYTHING = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
}


def seconds(rate):
    number, unit = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", rate).groups()
    return int(number) * {"minute": 60, "hour": 3600, "day": 86400}[unit]


class Retries(unittest.TestCase):
    def test_the_scheduler_delivers_a_tick_once_and_not_after_its_period(self):
        (schedule,) = MOST.of_type("AWS::Scheduler::Schedule").values()
        policy = schedule["Target"]["RetryPolicy"]
        self.assertEqual(policy["MaximumRetryAttempts"], 0)
        self.assertLessEqual(policy["MaximumEventAgeInSeconds"], seconds(schedule["ScheduleExpression"]))
        self.assertEqual(schedule["FlexibleTimeWindow"], {"Mode": "OFF"})
        (queue,) = MOST.of_type("AWS::SQS::Queue")
        self.assertEqual(schedule["Target"]["DeadLetterConfig"], {"Arn": MOST.attribute(queue, "Arn")})

    def test_no_function_is_invoked_again_by_lambda_and_its_failures_are_kept(self):
        configured = {one["FunctionName"]: one for one in MOST.of_type("AWS::Lambda::EventInvokeConfig").values()}
        self.assertEqual(set(configured), {"stack-fan-out", "stack-sweep", "stack-catch-up"})
        (queue,) = MOST.of_type("AWS::SQS::Queue")
        for one in configured.values():
            self.assertEqual((one["MaximumRetryAttempts"], one["MaximumEventAgeInSeconds"]), (0, 60))
            self.assertEqual(one["DestinationConfig"]["OnFailure"]["Destination"], MOST.attribute(queue, "Arn"))

    def test_whoever_sends_to_the_queue_may_do_so(self):
        (queue,) = MOST.of_type("AWS::SQS::Queue")
        for role in ("TickRole", "FanOutRole", "SweepRole"):
            sent = [one["Resource"] for one in MOST.statements(role) if "sqs:SendMessage" in listed(one["Action"])]
            self.assertEqual(sent, [MOST.attribute(queue, "Arn")], role)


class Times(unittest.TestCase):
    def test_the_schedule_and_the_alarms_take_the_time_between_two_ticks_from_one_parameter(self):
        self.assertEqual({str(minutes) for minutes in PACES}, set(SOURCE["Mappings"]["Schedule"]))
        for minutes in PACES:
            (schedule,) = paced(minutes).of_type("AWS::Scheduler::Schedule").values()
            self.assertEqual(seconds(schedule["ScheduleExpression"]), 60 * minutes)
            of = SOURCE["Mappings"]["Schedule"][str(minutes)]
            self.assertEqual((of["Tick"], of["State"]), (60 * minutes, max(300, 60 * minutes)))

    def test_each_deployment_ends_with_a_line_that_says_whether_the_tables_are_swept(self):
        for state in ("ENABLED", "DISABLED"):
            template = Template(REQUIRED | {"ScheduleState": state, "ScheduleMinutes": 5})
            self.assertEqual(template.resolve(template.translation["Outputs"]["Schedule"]["Value"]), f"{state}, every 5 min")

    def test_a_sweep_and_its_lease_are_over_before_the_next_tick(self):
        (schedule,) = LEAST.of_type("AWS::Scheduler::Schedule").values()
        functions = LEAST.functions()
        period = seconds(schedule["ScheduleExpression"])
        self.assertLess(functions["sweep"]["Timeout"], period - SKEW_SECONDS)
        self.assertLess(functions["fan-out"]["Timeout"], period)

    def test_the_catch_up_twin_is_the_same_program_with_a_quarter_of_an_hour(self):
        sweep, twin = (SOURCE["Resources"][name]["Properties"] for name in ("SweepFunction", "CatchUpFunction"))
        self.assertEqual(twin["CodeUri"], sweep["CodeUri"])
        self.assertEqual(LEAST.functions()["catch-up"]["Timeout"], 900)

    def test_every_function_is_told_its_own_timeout(self):
        for given in (REQUIRED, REQUIRED | {"SweepTimeout": 50}):
            for name, function in Template(given).functions().items():
                told = function["Environment"]["Variables"]["TABLESWEEP_TIMEOUT_SECONDS"]
                self.assertEqual(int(told), function["Timeout"], name)

    def test_only_one_plan_runs_at_a_time_and_sweeps_are_bounded(self):
        functions = Template(REQUIRED | {"SweepConcurrency": 7}).functions()
        self.assertEqual(functions["fan-out"]["ReservedConcurrentExecutions"], 1)
        self.assertEqual(functions["sweep"]["ReservedConcurrentExecutions"], 7)


class Functions(unittest.TestCase):
    def test_every_function_is_a_prebuilt_bootstrap_of_make_bootstraps(self):
        wanted = {"FanOutFunction": "fan-out", "SweepFunction": "sweep", "CatchUpFunction": "sweep"}
        for name, program in wanted.items():
            function = SOURCE["Resources"][name]
            self.assertEqual(function["Properties"]["CodeUri"], f"target/lambda/{program}/")
            self.assertNotIn("Metadata", function, "sam build would build it again")
            self.assertTrue((ROOT / "functions" / program / "Cargo.toml").is_file(), program)
        staged = re.search(r"^BOOTSTRAPS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
        self.assertEqual(set(staged[1].split()), set(wanted.values()))
        for architecture in ("x86_64", "arm64"):
            for function in Template(REQUIRED | {"Architecture": architecture}).functions().values():
                self.assertEqual((function["Runtime"], function["Handler"]), ("provided.al2023", "bootstrap"))
                self.assertEqual(function["Architectures"], [architecture])

    def test_every_function_finds_documents_and_cursors(self):
        (layer,) = LEAST.of_type("AWS::Lambda::LayerVersion")
        self.assertEqual(SOURCE["Resources"]["ConfigLayer"]["Properties"]["ContentUri"], "target/layer")
        for name, function in LEAST.functions().items():
            variables = function["Environment"]["Variables"]
            self.assertEqual(variables["TABLESWEEP_CONFIG"], "/opt/config", name)
            self.assertEqual(variables["TABLESWEEP_CURSORS"], "dynamodb:stack-cursors", name)
            self.assertEqual(function["Layers"], [LEAST.reference(layer)], name)
            self.assertNotIn("TABLESWEEP_BOOTSTRAP_SERVERS", variables, name)
        for function in MOST.functions().values():
            self.assertEqual(function["Environment"]["Variables"]["TABLESWEEP_BOOTSTRAP_SERVERS"], EVERYTHING["BootstrapServers"])

    def test_every_function_knows_how_often_sql_server_tables_may_be_polled(self):
        # The name that the product reads. Fan-out judges the documents too, and must judge them as sweep does.
        keys = (ROOT / "shared/src/source/sqlserver/keys.rs").read_text()
        (name,) = re.findall(r'MIN_INTERVAL: &str = "(\w+)"', keys)
        for template, seconds in ((LEAST, 1), (MOST, EVERYTHING["SqlServerMinIntervalSeconds"])):
            for function_name, function in template.functions().items():
                self.assertEqual(int(function["Environment"]["Variables"][name]), seconds, function_name)

    def test_fan_out_knows_and_may_invoke_the_sweep_function_and_no_other(self):
        self.assertEqual(MOST.functions()["fan-out"]["Environment"]["Variables"]["SWEEP_FUNCTION"], "stack-sweep")
        invoked = [one["Resource"] for one in MOST.statements("FanOutRole") if "lambda:InvokeFunction" in listed(one["Action"])]
        self.assertEqual(invoked, [MOST.attribute("SweepFunction", "Arn")])

    def test_the_schedule_starts_fan_out_and_may(self):
        (schedule,) = MOST.of_type("AWS::Scheduler::Schedule").values()
        fan_out = MOST.attribute("FanOutFunction", "Arn")
        self.assertEqual(schedule["Target"]["Arn"], fan_out)
        self.assertEqual(schedule["Target"]["RoleArn"], MOST.attribute("TickRole", "Arn"))
        invoked = [one["Resource"] for one in MOST.statements("TickRole") if "lambda:InvokeFunction" in listed(one["Action"])]
        self.assertEqual(invoked, [fan_out])

    def test_the_event_of_the_schedule_is_one_that_fan_out_takes(self):
        (schedule,) = MOST.of_type("AWS::Scheduler::Schedule").values()
        attributes = {"<aws.scheduler.execution-id>": "d32c5kddcf5bb8c3", "<aws.scheduler.scheduled-time>": "2026-03-22T18:59:43Z"}
        event = schedule["Target"]["Input"]
        for attribute, value in attributes.items():
            self.assertIn(attribute, event)
            event = event.replace(attribute, value)
        self.assertNotIn("<", event)
        contract = json.loads((ROOT / "tests/schemas/fan-out-in.json").read_text())
        Draft202012Validator(contract).validate(json.loads(event))

    def test_functions_that_talk_to_brokers_are_in_the_vpc(self):
        functions = MOST.functions()
        for name in ("sweep", "catch-up"):
            self.assertEqual(functions[name]["VpcConfig"], {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]})
        self.assertNotIn("VpcConfig", functions["fan-out"])

    def test_logs_are_json_and_kept_for_the_time_that_was_asked_for(self):
        template = Template(REQUIRED | {"LogRetentionDays": 14})
        groups = {one["LogGroupName"]: one["RetentionInDays"] for one in template.of_type("AWS::Logs::LogGroup").values()}
        self.assertEqual(set(groups.values()), {14})
        for name, function in template.functions().items():
            self.assertEqual(function["LoggingConfig"], {"LogGroup": f"/aws/lambda/stack-{name}", "LogFormat": "JSON"})
            self.assertIn(f"/aws/lambda/stack-{name}", groups)


class Cursors(unittest.TestCase):
    def setUp(self):
        ((self.name, self.table),) = LEAST.of_type("AWS::DynamoDB::Table").items()

    def test_the_table_outlives_the_stack_and_every_mistake(self):
        self.assertIs(self.table["DeletionProtectionEnabled"], True)
        self.assertIs(self.table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"], True)
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            self.assertEqual(LEAST.resources[self.name][policy], "Retain")

    def test_its_keys_are_those_of_the_store(self):
        layout = (ROOT / "shared/src/cursor/dynamodb/layout.rs").read_text()
        named = dict(re.findall(r'const (\w+): &str = "(\w+)";', layout))
        keys = [{"AttributeName": named["CONNECTOR"], "KeyType": "HASH"}, {"AttributeName": named["PLACE"], "KeyType": "RANGE"}]
        self.assertEqual(self.table["KeySchema"], keys)
        strings = [{"AttributeName": key["AttributeName"], "AttributeType": "S"} for key in keys]
        self.assertEqual(self.table["AttributeDefinitions"], strings)
        self.assertEqual(self.table["TimeToLiveSpecification"], {"AttributeName": named["EXPIRES"], "Enabled": True})
        self.assertEqual(self.table["BillingMode"], "PAY_PER_REQUEST")

    def test_the_functions_may_do_with_it_what_the_store_does_and_no_more(self):
        store = (ROOT / "shared/src/cursor/dynamodb.rs").read_text()
        calls = set(re.findall(r"\.(\w+)\(\)\s*\.table_name\(", store))
        used = {"dynamodb:" + "".join(word.title() for word in call.split("_")) for call in calls}
        self.assertGreaterEqual(len(used), 6, "the calls of the store are not found in its source any more")
        # To look for connectors without a document is `tablesweep status`'s alone, with the rights of whoever runs it.
        self.assertIn("store.connectors()", (ROOT / "shared/src/operate/status.rs").read_text())
        used.remove("dynamodb:Scan")
        for role in ("FanOutRole", "SweepRole"):
            allowed = [one for one in LEAST.statements(role) if listed(one["Action"])[0].startswith("dynamodb:")]
            self.assertEqual([one["Resource"] for one in allowed], [LEAST.attribute(self.name, "Arn")])
            self.assertEqual(set(allowed[0]["Action"]), used)


class Rights(unittest.TestCase):
    def test_no_statement_allows_an_action_by_wildcard(self):
        for template in (LEAST, MOST):
            statements = list(template.statements())
            self.assertGreater(len(statements), 5)
            for one in statements:
                self.assertNotIn("NotAction", one)
                for action in listed(one["Action"]):
                    self.assertRegex(action, r"^[a-z0-9-]+:[A-Za-z]+$")

    def test_only_rights_that_lambda_asks_for_on_everything_are_on_everything(self):
        for template in (LEAST, MOST):
            for one in template.statements():
                self.assertNotIn("NotResource", one)
                if one["Effect"] == "Allow" and "*" in listed(one["Resource"]):
                    self.assertLessEqual(set(listed(one["Action"])), ON_EVERYTHING)
                for resource in listed(one["Resource"]):
                    if resource != "*":
                        self.assertRegex(resource, r"^arn:aws:[a-z]+:")

    def test_what_is_on_everything_is_taken_from_the_code_of_the_functions(self):
        statements = list(MOST.statements("SweepRole"))
        allowed = [one for one in statements if one["Effect"] == "Allow" and one["Resource"] == "*"]
        (denied,) = [one for one in statements if one["Effect"] == "Deny"]
        self.assertEqual([set(one["Action"]) for one in allowed], [set(denied["Action"])])
        self.assertEqual(denied["Resource"], "*")
        functions = {MOST.attribute(name, "Arn") for name in ("SweepFunction", "CatchUpFunction")}
        self.assertEqual(denied["Condition"], {"ArnEquals": {"lambda:SourceFunctionArn": sorted(functions, reverse=True)}})

    def test_a_function_writes_its_own_logs_only(self):
        for role, groups in {"FanOutRole": ["FanOutLogs"], "SweepRole": ["SweepLogs", "CatchUpLogs"]}.items():
            (logs,) = [one for one in MOST.statements(role) if listed(one["Action"])[0].startswith("logs:")]
            self.assertEqual(set(listed(logs["Resource"])), {MOST.attribute(group, "Arn") for group in groups})

    def test_brokers_secrets_and_key_are_reached_only_as_given(self):
        services = ("kafka-cluster", "secretsmanager", "ssm", "kms")

        def rights(template, role="SweepRole"):
            found = {}
            for one in template.statements(role):
                for action in listed(one["Action"]):
                    if action.split(":")[0] in services:
                        found[action] = set(listed(one["Resource"]))
            return found

        self.assertEqual(rights(LEAST), {})
        self.assertEqual(rights(MOST, "FanOutRole"), {}, "fan-out reads no secret and knows no broker")
        topics = set(EVERYTHING["MskTopicArns"].split(","))
        wanted = {
            "kafka-cluster:Connect": {CLUSTER},
            "kafka-cluster:WriteDataIdempotently": {CLUSTER},
            "kafka-cluster:DescribeTopic": topics,
            "kafka-cluster:WriteData": topics,
            "kafka-cluster:CreateTopic": topics,
            "secretsmanager:GetSecretValue": {EVERYTHING["SecretArns"]},
            "ssm:GetParameters": {EVERYTHING["ParameterArns"]},
            "kms:Decrypt": {EVERYTHING["SecretsKmsKeyArn"]},
        }
        self.assertEqual(rights(MOST), wanted)
        asked = Template(EVERYTHING | {"CreateTopics": "false"})
        self.assertNotIn("kafka-cluster:CreateTopic", rights(asked))
        for kind in ("scram", "tls", "none"):
            signed = rights(Template(EVERYTHING | {"MskAuthentication": kind}))
            self.assertEqual({action.split(":")[0] for action in signed}, {"secretsmanager", "ssm", "kms"}, kind)

    def test_iam_without_a_cluster_or_without_topics_is_refused_before_anything_is_deployed(self):
        self.assertEqual((LEAST.refused_by(), MOST.refused_by()), ([], []))
        for missing in ("MskClusterArn", "MskTopicArns"):
            (told,) = Template(EVERYTHING | {missing: ""}).refused_by()
            self.assertIn(missing, told)

    def test_the_key_is_used_by_way_of_the_two_services_only(self):
        (key,) = [one for one in MOST.statements("SweepRole") if "kms:Decrypt" in listed(one["Action"])]
        services = [f"{name}.eu-west-1.amazonaws.com" for name in ("secretsmanager", "ssm")]
        self.assertEqual(key["Condition"], {"StringEquals": {"kms:ViaService": services}})

    def test_the_schemas_of_one_registry_are_read_where_it_is_named_and_made_where_that_is_asked_for(self):
        def rights(given, role="SweepRole"):
            found = {}
            for one in Template(given).statements(role):
                for action in listed(one["Action"]):
                    if action.startswith("glue:"):
                        found[action] = set(listed(one["Resource"]))
            return found

        glue = "arn:aws:glue:eu-west-1:123456789012"
        schemas = {f"{glue}:registry/snow", f"{glue}:schema/snow/*"}
        read = {"glue:GetSchemaByDefinition": schemas}
        made = {action: schemas for action in ("glue:CreateSchema", "glue:RegisterSchemaVersion", "glue:TagResource")}
        self.assertEqual(rights(EVERYTHING), read | made)
        self.assertEqual(rights(EVERYTHING | {"RegisterSchemas": "false"}), read)
        self.assertEqual(rights(EVERYTHING | {"GlueRegistry": ""}), {}, "without a registry there is nothing to register in")
        self.assertEqual(rights(EVERYTHING, "FanOutRole"), {})
        # To make a schema asks for the right to tag it as well.
        client = (ROOT / "shared/src/registry/glue.rs").read_text()
        named = dict(re.findall(r'const (\w+): &str = "(\w+)";', client))
        called = {named.get(name, name) for name in re.findall(r'self\.call\(\w+, "?(\w+)"?,', client)}
        self.assertEqual({"glue:" + name for name in called} | {"glue:TagResource"}, set(read | made), "what the client calls, and no more")

    def test_every_role_is_written_here_and_assumed_by_one_service(self):
        roles = MOST.of_type("AWS::IAM::Role")
        services = {"TickRole": "scheduler", "FanOutRole": "lambda", "SweepRole": "lambda", "CatchUpRole": "states"}
        self.assertEqual(set(roles), set(services), "SAM makes roles with wider rights")
        for name, role in roles.items():
            (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
            service = services[name]
            self.assertEqual(trust["Principal"], {"Service": f"{service}.amazonaws.com"})
            self.assertLessEqual(set(role.get("ManagedPolicyArns", [])), set(MOST.of_type("AWS::IAM::ManagedPolicy")))


class CatchUp(unittest.TestCase):
    DEFINITION = (ROOT / "functions/catch-up.asl.yaml").read_text()

    def setUp(self):
        ((_, self.machine),) = MOST.of_type("AWS::StepFunctions::StateMachine").items()
        self.arn = "arn:aws:states:eu-west-1:123456789012:stateMachine:stack-catch-up"

    def test_every_name_of_the_definition_is_filled_in_with_a_function_that_it_may_invoke(self):
        source = SOURCE["Resources"]["CatchUpMachine"]["Properties"]
        self.assertEqual(source["DefinitionUri"], "functions/catch-up.asl.yaml")
        named = set(re.findall(r"\$\{(\w+)\}", self.DEFINITION))
        given = self.machine["DefinitionSubstitutions"]
        self.assertEqual(named, set(given))
        invoked = [one["Resource"] for one in MOST.statements("CatchUpRole") if one["Action"] == "lambda:InvokeFunction"]
        self.assertEqual([set(one) for one in invoked], [{given[name] for name in ("FanOutFunction", "CatchUpFunction")}])

    def test_no_resource_is_bound_to_one_partition(self):
        # GovCloud and the regions in China have partitions of their own.
        source = (ROOT / "template.yaml").read_text().split("\nResources:\n")[1]
        self.assertNotIn("arn:aws:", source + self.DEFINITION)

    def test_it_may_start_itself_and_nothing_else(self):
        self.assertEqual(self.machine["StateMachineName"], "stack-catch-up")
        self.assertEqual(self.machine["StateMachineType"], "STANDARD")
        started = [one["Resource"] for one in MOST.statements("CatchUpRole") if one["Action"] == "states:StartExecution"]
        self.assertEqual(started, [self.arn])
        self.assertEqual(len(list(MOST.statements("CatchUpRole"))), 2)

    def test_it_waits_for_its_functions_longer_than_they_may_run(self):
        definition = yaml_parse(self.DEFINITION)
        longest = {"${FanOutFunction}": MOST.functions()["fan-out"]["Timeout"], "${CatchUpFunction}": MOST.functions()["catch-up"]["Timeout"]}
        states = definition["States"] | definition["States"]["Sweep"]["ItemProcessor"]["States"]
        tasks = [state for state in states.values() if state.get("Resource") == "arn:${Partition}:states:::lambda:invoke"]
        self.assertEqual(len(tasks), 3)
        for task in tasks:
            self.assertGreater(task["TimeoutSeconds"], longest[task["Arguments"]["FunctionName"]])

    def test_an_invocation_that_is_throttled_is_tried_again_for_as_long_as_a_tick_may_be_in_the_way(self):
        # Fan-out runs once at a time, and a tick's takes half a minute at most; sweeps wait for concurrency.
        definition = yaml_parse(self.DEFINITION)
        states = definition["States"] | definition["States"]["Sweep"]["ItemProcessor"]["States"]
        for name in ("Rewind", "Plan", "SweepTask"):
            (retry,) = [one for one in states[name]["Retry"] if "Lambda.TooManyRequestsException" in one["ErrorEquals"]]
            pauses = (retry["IntervalSeconds"] * retry["BackoffRate"] ** count for count in range(retry["MaxAttempts"]))
            patience = sum(min(pause, retry["MaxDelaySeconds"]) for pause in pauses)
            self.assertGreaterEqual(patience, 2 * MOST.functions()["fan-out"]["Timeout"], name)
        (leased,) = [one for one in states["Rewind"]["Retry"] if "Cursor.Leased" in one["ErrorEquals"]]
        self.assertEqual((leased["IntervalSeconds"] * leased["MaxAttempts"], leased["BackoffRate"]), (15 * 60, 1))

    def test_the_name_of_an_execution_that_takes_over_is_not_too_long(self):
        # Step Functions takes 80 characters; the last generation has two digits.
        (kept,) = re.findall(r"\$substring\(\$origin, 0, (\d+)\)", self.DEFINITION)
        self.assertLessEqual(int(kept) + len("-20"), 80)

    def test_the_definition_is_one_that_step_functions_takes(self):
        def faults(definition):
            template = {
                "Resources": {
                    "Machine": {
                        "Type": "AWS::StepFunctions::StateMachine",
                        "Properties": {"RoleArn": "arn:aws:iam::123456789012:role/any", "Definition": definition},
                    }
                }
            }
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump(template, file)
                file.flush()
                lint = [str(Path(sys.executable).with_name("cfn-lint")), "--format", "parseable", file.name]
                return subprocess.run(lint, capture_output=True, text=True, check=False).stdout

        given = {"Partition": "aws", "FanOutFunction": "fan-out", "CatchUpFunction": "catch-up"}
        definition = yaml_parse(re.sub(r"\$\{(\w+)\}", lambda named: given[named[1]], self.DEFINITION))
        self.assertEqual(faults(definition), "")
        definition["States"]["Rest"]["Secondes"] = 20
        self.assertIn("E3601", faults(definition))


class Form(unittest.TestCase):
    def test_there_are_no_yaml_aliases_since_cloudformation_refuses_them(self):
        # An asterisk in quotes, or within a word, is none.
        for line in (ROOT / "template.yaml").read_text().splitlines():
            if "Expression:" in line or '"metrics"' in line:
                continue
            self.assertNotRegex(line.split("#")[0], r"(^|[\s\[{,:-])[&*][A-Za-z]")


if __name__ == "__main__":
    unittest.main()
