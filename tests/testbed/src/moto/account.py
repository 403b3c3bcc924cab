# What an account does beyond moto, for commands that deploy a stack and set it up. Each piece says what AWS does there.
import functools
import json
import os
import subprocess
from urllib.parse import unquote

import moto.cloudformation.models as stacks
from moto.awslambda.models import LambdaFunction
from moto.kafka.responses import KafkaResponse
from moto.s3.models import s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.stepfunctions.models import StateMachine

# CloudFormation translates what begins with this transform. moto takes resources as they stand, so that the translator, which is
# the one that AWS publishes, is asked first. It lies with the SAM CLI, in an environment of its own.
TRANSFORM = "AWS::Serverless-2016-10-31"
TRANSLATE = """
import json, logging, sys
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse
logging.getLogger("samtranslator.metrics").setLevel(logging.ERROR)
no_managed_policies = type("Loader", (), {"load": lambda self: {}})()
print(json.dumps(transform(yaml_parse(sys.stdin.read()), {}, no_managed_policies)))
"""


@functools.cache
def translated(template):
    python = [os.environ["TESTBED_SAM_PYTHON"], "-c", TRANSLATE]
    region = os.environ | {"AWS_DEFAULT_REGION": "us-east-1"}
    return subprocess.run(python, env=region, input=template, text=True, check=True, stdout=subprocess.PIPE).stdout


untranslated = stacks.Stack.parse_template


def parse_template(template):
    return untranslated(translated(template) if TRANSFORM in template else template)


def parse_change_set(self):
    self.template_dict = parse_template(self.template)


stacks.Stack.parse_template = staticmethod(parse_template)
stacks.ChangeSet._parse_template = parse_change_set

# A change set changes the outputs and the parameters of its stack, and not the resources alone.
applied = stacks.ChangeSet.apply


def apply(self):
    applied(self)
    stack = self.stack
    stack.template_dict, stack.parameters = self.template_dict, self.parameters
    stack.output_map = stack._create_output_map()


stacks.ChangeSet.apply = apply


# A parameter that is a list is shown, and kept for the next change, as it was given.
def given(self):
    resolved = self.resource_map.resolved_parameters
    return {name: ",".join(value) if isinstance(value, list) else value for name, value in resolved.items()}


def shown(self):
    return [{"ParameterKey": name, "ParameterValue": value} for name, value in given(self).items()]


stacks.Stack.stack_parameters = property(given)
stacks.Stack.parameter_list = property(shown)

# A stack's function refers to its layer; moto has resolved the reference to the layer itself when it changes the function.
with_arns = LambdaFunction._get_layers_data
LambdaFunction._get_layers_data = lambda self, layers: with_arns(self, [getattr(layer, "arn", layer) for layer in layers])


# The definition of a state machine lies in the bucket, and the names of the stack are filled in.
def with_definition(change):
    def changed(cls, *given, **named):
        (resource,) = [one for one in given if isinstance(one, dict)]
        place = resource["Properties"]["DefinitionS3Location"]
        definition = s3_backends["123456789012"]["aws"].get_object(place["Bucket"], place["Key"]).value.decode()
        for name, value in resource["Properties"].get("DefinitionSubstitutions", {}).items():
            definition = definition.replace(f"${{{name}}}", value)
        resource["Properties"]["DefinitionString"] = definition
        return change(cls, *given, **named)

    return classmethod(changed)


for change in ("create_from_cloudformation_json", "update_from_cloudformation_json"):
    setattr(StateMachine, change, with_definition(getattr(StateMachine, change).__func__))


# Amazon MSK takes a secret by its name's beginning and with a key of one's own, and says in a list which it did not take.
# https://docs.aws.amazon.com/msk/latest/developerguide/msk-password.html
def batch_associate_scram_secret(self):
    cluster = unquote(self.parsed_url.path.split("/clusters/")[-1].removesuffix("/scram-secrets"))
    self.kafka_backend.describe_cluster(cluster)
    secrets = secretsmanager_backends[self.current_account][self.region].secrets
    refused = []
    for arn in self._get_param("secretArnList"):
        secret = next((one for one in secrets.values() if one.arn == arn), None)
        why = None
        if secret is None:
            why = "the secret does not exist"
        elif not secret.name.startswith("AmazonMSK_"):
            why = "its name does not begin with AmazonMSK_"
        elif not (secret.kms_key_id or "").startswith("arn:"):
            why = "it is encrypted with the default key"
        if why:
            refused.append({"secretArn": arn, "errorCode": "InvalidSecretArn", "errorMessage": why})
    return json.dumps({"clusterArn": cluster, "unprocessedScramSecrets": refused})


KafkaResponse.batch_associate_scram_secret = batch_associate_scram_secret
