# moto with DynamoDB's calls one at a time. moto evaluates a condition and writes in two steps that threads can interleave,
# so two equal conditional writes could both succeed; DynamoDB's are atomic, and the cursor protocol lives on that.
import threading

import moto.dynamodb.responses as responses
from moto.server import main

lock = threading.RLock()
unlocked = responses.DynamoHandler.call_action


def call_action(self):
    with lock:
        return unlocked(self)


responses.DynamoHandler.call_action = call_action
main()
