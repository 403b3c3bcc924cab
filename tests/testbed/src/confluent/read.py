"""Reads what went through a schema registry with Confluent's own client for Python.

Arguments: the registry's address, and `avro` or `json-schema`. Standard input: a record's value per line, header included, in
base64. Standard output: a line of JSON per value. What Avro knows and JSON does not is a text that says its type: `int -3`,
`float 0x1.8p+0`, `bytes 00ff`, `decimal 150 scale 2`, `timestamp`, `time` and `date` with milliseconds and days.
"""

import base64
import datetime
import decimal
import json
import sys

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def shown(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if isinstance(value, int):
        return f"int {value}"
    if isinstance(value, float):
        return f"float {value.hex()}"
    if isinstance(value, bytes):
        return f"bytes {value.hex()}"
    if isinstance(value, decimal.Decimal):
        sign, digits, exponent = value.as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return f"decimal {unscaled} scale {-exponent}"
    if isinstance(value, datetime.datetime):
        return f"timestamp {(value - EPOCH) // datetime.timedelta(milliseconds=1)}"
    if isinstance(value, datetime.date):
        return f"date {(value - EPOCH.date()).days}"
    if isinstance(value, datetime.time):
        midnight = datetime.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond)
        return f"time {midnight // datetime.timedelta(milliseconds=1)}"
    raise TypeError(f"{type(value)}: {value!r}")


def main():
    url, language = sys.argv[1:]
    registry = SchemaRegistryClient({"url": url})
    if language == "avro":
        read = AvroDeserializer(registry)
    else:
        read = JSONDeserializer(None, schema_registry_client=registry)
    context = SerializationContext("topic", MessageField.VALUE)
    for line in sys.stdin:
        value = read(base64.b64decode(line), context)
        print(json.dumps(shown(value) if language == "avro" else value))


main()
