"""template.yaml as SAM translates it, with parameters filled in.

The rules of the template are about what is deployed: SAM adds roles, policies and permissions of its own, and a statement
behind a condition is there or not. So the tests look at the translation, and every function of CloudFormation in it is
worked out. A function that is not known here is an error, not something to look past.
"""

import copy
import functools
import logging
import re
from pathlib import Path

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

# It counts for its makers how often it is used, and complains that nobody collects that.
logging.getLogger("samtranslator.metrics").setLevel(logging.ERROR)

ROOT = Path(__file__).resolve().parents[2]
SOURCE = yaml_parse((ROOT / "template.yaml").read_text())

PSEUDO = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::StackName": "stack",
    "AWS::URLSuffix": "amazonaws.com",
}
CLUSTER = "arn:aws:kafka:eu-west-1:123456789012:cluster/main/4f0e"

# What has no default, and no more.
REQUIRED = {"SubnetIds": "subnet-1,subnet-2", "SecurityGroupIds": "sg-1"}
# Everything that may be given.
EVERYTHING = REQUIRED | {
    "BootstrapServers": "b-1.example:9098,b-2.example:9098",
    "MskAuthentication": "iam",
    "CreateTopics": "true",
    "AlarmTopicArn": "arn:aws:sns:eu-west-1:123456789012:on-call",
    "MskClusterArn": CLUSTER,
    "MskTopicArns": f"{CLUSTER.replace(':cluster/', ':topic/')}/snow.*,{CLUSTER.replace(':cluster/', ':topic/')}/orders",
    "SecretArns": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:snow-AbCdEf",
    "ParameterArns": "arn:aws:ssm:eu-west-1:123456789012:parameter/tablesweep/*",
    "SecretsKmsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/1234",
    "GlueRegistry": "snow",
    "RegisterSchemas": "true",
    "SqlServerMinIntervalSeconds": 60,
}


class NoManagedPolicies:
    """AWS's managed policies are wider than what is wanted here; a template that names one fails to translate."""

    def load(self):
        return {}


class Template:
    """One translation. `resources` maps logical ids to resources whose properties are plain values."""

    def __init__(self, given):
        declared = SOURCE["Parameters"]
        unknown = set(given) - set(declared)
        assert not unknown, f"the template has no parameters {unknown}"
        self.parameters = {name: self.value(declared[name], given.get(name)) for name in declared}
        source = copy.deepcopy(SOURCE)
        for resource in source["Resources"].values():
            # Only what lies in S3 can be translated; `sam deploy` puts it there.
            for local in ("CodeUri", "ContentUri", "DefinitionUri"):
                if local in resource["Properties"]:
                    resource["Properties"][local] = "s3://bucket/key"
        self.translation = transform(source, {}, NoManagedPolicies())
        self.resources = {
            name: self.resolve(resource)
            for name, resource in self.translation["Resources"].items()
            if "Condition" not in resource or self.condition(resource["Condition"])
        }

    @staticmethod
    def value(parameter, given):
        value = parameter["Default"] if given is None else given
        if parameter["Type"].startswith("List<") or parameter["Type"] == "CommaDelimitedList":
            return value.split(",")
        return value

    def condition(self, name):
        return self.resolve(self.translation["Conditions"][name])

    def reference(self, name):
        if name in self.parameters:
            return self.parameters[name]
        if name in PSEUDO:
            return PSEUDO[name]
        resource = self.translation["Resources"][name]
        # Names that the template fixes, so that those built from parts can be compared with references.
        for named in ("FunctionName", "TableName", "LogGroupName", "LayerName", "QueueName", "StateMachineName"):
            if named in resource["Properties"]:
                return self.resolve(resource["Properties"][named])
        return name

    def attribute(self, name, attribute):
        kind = self.translation["Resources"][name]["Type"]
        account = f"{PSEUDO['AWS::Region']}:{PSEUDO['AWS::AccountId']}"
        arns = {
            "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{account}:table/{{}}",
            "AWS::IAM::Role": "arn:aws:iam::123456789012:role/{}",
            "AWS::Lambda::Function": f"arn:aws:lambda:{account}:function:{{}}",
            "AWS::Logs::LogGroup": f"arn:aws:logs:{account}:log-group:{{}}:*",
            "AWS::SQS::Queue": f"arn:aws:sqs:{account}:{{}}",
        }
        if (kind, attribute) == ("AWS::SQS::Queue", "QueueName"):
            return self.reference(name)
        assert attribute == "Arn", f"what is {name}.{attribute}?"
        return arns[kind].format(self.reference(name))

    def substitute(self, text):
        assert isinstance(text, str), "Fn::Sub with a map is not known here"
        def named(name):
            return self.attribute(*name.split(".")) if "." in name and not name.startswith("AWS::") else self.reference(name)

        return re.sub(r"\$\{([^}]+)\}", lambda found: str(named(found[1])), text)

    def resolve(self, node):
        """`node` with every function worked out. What resolves to AWS::NoValue is left out of its list or map."""
        if isinstance(node, list):
            return [value for value in map(self.resolve, node) if value is not None]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (key, argument), = node.items()
            if key == "Ref":
                return None if argument == "AWS::NoValue" else self.reference(argument)
            if key == "Condition" and isinstance(argument, str):
                return self.condition(argument)
            if key.startswith("Fn::"):
                return self.function(key, argument)
        resolved = {key: self.resolve(value) for key, value in node.items()}
        return {key: value for key, value in resolved.items() if value is not None}

    def function(self, name, argument):
        if name == "Fn::If":
            condition, yes, no = argument
            return self.resolve(yes if self.condition(condition) else no)
        if name == "Fn::GetAtt":
            return self.attribute(*(argument.split(".", 1) if isinstance(argument, str) else argument))
        if name == "Fn::Sub":
            return self.substitute(argument)
        values = self.resolve(argument)
        if name == "Fn::Equals":
            return values[0] == values[1]
        if name == "Fn::Not":
            return not values[0]
        if name == "Fn::And":
            return all(values)
        if name == "Fn::Join":
            return values[0].join(values[1])
        if name == "Fn::FindInMap":
            table, key, entry = values
            return self.translation["Mappings"][table][str(key)][entry]
        if name == "Fn::EachMemberEquals":
            return all(value == values[1] for value in values[0])
        raise AssertionError(f"{name} is not known here")

    def refused_by(self):
        """What the rules have against these parameters, in the words of the template."""
        rules = [rule for rule in self.translation["Rules"].values() if self.resolve(rule.get("RuleCondition", True))]
        asserted = [one for rule in rules for one in rule["Assertions"]]
        return [one["AssertDescription"] for one in asserted if not self.resolve(one["Assert"])]

    def of_type(self, kind):
        return {name: resource["Properties"] for name, resource in self.resources.items() if resource["Type"] == kind}

    def functions(self):
        """The Lambda functions, by the last part of their names."""
        return {one["FunctionName"].removeprefix("stack-"): one for one in self.of_type("AWS::Lambda::Function").values()}

    def documents(self):
        """Every policy, with where it stands. A role's own policies and the managed ones that hang on it."""
        for name, role in self.of_type("AWS::IAM::Role").items():
            for policy in role.get("Policies", []):
                yield name, policy["PolicyDocument"]
        for kind in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy", "AWS::SQS::QueuePolicy"):
            for name, policy in self.of_type(kind).items():
                yield name, policy["PolicyDocument"]

    def statements(self, role=None):
        """Every statement of every policy, or of those that `role` has."""
        wanted = None
        if role is not None:
            wanted = {role, *self.of_type("AWS::IAM::Role")[role].get("ManagedPolicyArns", [])}
        for name, document in self.documents():
            if wanted is None or name in wanted:
                yield from document["Statement"]


def listed(value):
    return value if isinstance(value, list) else [value]


# Of the fewest parameters, and of all.
LEAST, MOST = Template(REQUIRED), Template(EVERYTHING)

# The minutes that may lie between two ticks.
PACES = SOURCE["Parameters"]["ScheduleMinutes"]["AllowedValues"]


@functools.cache
def paced(minutes):
    """All parameters, and this many minutes from tick to tick. A translation takes a second."""
    return Template(EVERYTHING | {"ScheduleMinutes": minutes})
