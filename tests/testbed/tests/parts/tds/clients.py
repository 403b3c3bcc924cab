"""Two clients of TDS that share no code with ours: python-tds, which is Python alone, and pymssql, which is FreeTDS.

    clients.py pytds|pymssql SETTINGS

SETTINGS is JSON: port, user, password, database, and optionally tls (a file of certificates to trust), read_only,
packet_size. Standard input holds JSON: a list of [statement, [parameters]]. For each a line of JSON is printed: {"rows":
[[...]]} or {"error": number, "message": text}. Values are written so that nothing is lost on the way: see `shown`.
"""

import datetime
import decimal
import json
import sys
import uuid


def shown(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return "0x" + bytes(value).hex().upper()
    if isinstance(value, uuid.UUID):
        return str(value).upper()
    if isinstance(value, (datetime.date, datetime.time, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    return str(value)


def connect(client, settings):
    if client == "pymssql":
        import pymssql

        return pymssql, pymssql.connect(
            server="127.0.0.1",
            port=str(settings["port"]),
            user=settings["user"],
            password=settings["password"],
            database=settings["database"],
            tds_version="7.4",
            charset="UTF-8",
            login_timeout=20,
            timeout=20,
            autocommit=True,
            encryption="require" if settings.get("tls") else "off",
        )
    import pytds

    return pytds, pytds.connect(
        # The name in the certificate's subject: that of an address is looked up in a way that pyOpenSSL no longer has.
        dsn="localhost" if settings.get("tls") else "127.0.0.1",
        port=settings["port"],
        user=settings["user"],
        password=settings["password"],
        database=settings["database"],
        autocommit=True,
        login_timeout=20,
        timeout=20,
        appname=settings.get("application"),
        readonly=settings.get("read_only", False),
        blocksize=settings.get("packet_size", 4096),
        cafile=settings.get("tls"),
        validate_host=True,
        enc_login_only=settings.get("login_only", False),
    )


def error_of(error):
    number = getattr(error, "number", None) or getattr(error, "msg_no", None)
    if number is None and error.args and isinstance(error.args[0], int):
        number = error.args[0]
    if number is None and error.args and isinstance(error.args[0], tuple):
        number = error.args[0][0]
    return {"error": number, "message": getattr(error, "text", None) or str(error) or repr(error)}


def main():
    client, settings = sys.argv[1], json.loads(sys.argv[2])
    try:
        module, connection = connect(client, settings)
    except Exception as error:  # What it is called differs per client, and is what the test looks at.
        print(json.dumps(error_of(error)))
        return
    cursor = connection.cursor()
    for statement, parameters in json.load(sys.stdin):
        try:
            # Without parameters a percent sign is one.
            cursor.execute(statement, tuple(parameters)) if parameters else cursor.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
            print(json.dumps({"rows": [[shown(value) for value in row] for row in rows]}))
        except module.Error as error:
            print(json.dumps(error_of(error)))
    connection.close()


main()
