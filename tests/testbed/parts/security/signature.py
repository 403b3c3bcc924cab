"""Signs anew what a token of Amazon MSK signs, with botocore, and prints the address.

Arguments: the token's address, the secret key. The moment, region, access key and session are the token's.
"""

import datetime
import sys
from urllib.parse import parse_qs, urlsplit

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

address, secret = sys.argv[1:]
query = {name: values[0] for name, values in parse_qs(urlsplit(address).query, strict_parsing=True).items()}
access_key, _, region, service, _ = query["X-Amz-Credential"].split("/")
moment = datetime.datetime.strptime(query["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
botocore.auth.get_current_datetime = lambda *_, **__: moment
request = AWSRequest(method="GET", url=f"https://kafka.{region}.amazonaws.com/", params={"Action": "kafka-cluster:Connect"})
credentials = Credentials(access_key, secret, query.get("X-Amz-Security-Token"))
botocore.auth.SigV4QueryAuth(credentials, service, region, expires=900).add_auth(request)
print(request.prepare().url)
