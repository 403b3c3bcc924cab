#!/usr/bin/env bash
# Makes the certificates and keys beside it anew, with openssl and keytool: what users make theirs with. They guard
# nothing; they are kept in the repository so that the tests need neither program. Valid until 2126, but for the one
# that is meant to have expired.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f -- signed.txt *.pem *.p12 *.jks *.key
export PASSWORD=changeit

authority() { # name, common name
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj "/CN=$2" \
    -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout "$work/$1.key" -out "$1.pem" 2>/dev/null
}

sign() { # name, authority, common name, extensions, start, end
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$3" -keyout "$work/$1.key" -out "$work/$1.csr" 2>/dev/null
  touch "$work/index.txt"
  printf '%b' "$4" >"$work/$1.ext"
  cat >"$work/ca.cnf" <<CNF
[ca]
default_ca = own
[own]
database = $work/index.txt
new_certs_dir = $work
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
CNF
  openssl ca -batch -notext -config "$work/ca.cnf" -cert "$2.pem" -keyfile "$work/$2.key" -in "$work/$1.csr" \
    -extfile "$work/$1.ext" -startdate "${5:-20260101000000Z}" -enddate "${6:-21260101000000Z}" -out "$1.pem" 2>/dev/null
}

here='subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n'
user='extendedKeyUsage=clientAuth\n'
authority authority "Test authority"
authority other-authority "Another authority"
sign server authority localhost "$here"
sign expired-server authority localhost "$here" 20190101000000Z 20200101000000Z
sign elsewhere-server authority elsewhere.example 'subjectAltName=DNS:elsewhere.example\nextendedKeyUsage=serverAuth\n'
for name in server expired-server elsewhere-server; do cat "$work/$name.key" >>$name.pem; done

# The client's certificate comes by way of an intermediate authority, as they mostly do: the chain has to be sent along.
sign intermediate authority "Intermediate authority" 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n'
sign client intermediate sweep "$user"
sign stranger other-authority stranger "$user"
cp client.pem "$work/leaf.pem"
cat "$work/leaf.pem" intermediate.pem "$work/client.key" >client.pem
cat "$work/stranger.key" >>stranger.pem
openssl pkcs8 -topk8 -v2 aes-256-cbc -in "$work/client.key" -passout env:PASSWORD -out "$work/encrypted.key"
cat "$work/encrypted.key" "$work/leaf.pem" intermediate.pem >client-encrypted.pem
p12=(openssl pkcs12 -export -name sweep -inkey "$work/client.key" -in "$work/leaf.pem" -certfile intermediate.pem -passout env:PASSWORD)
"${p12[@]}" -out client.p12
"${p12[@]}" -legacy -out client-legacy.p12
keytool -importkeystore -noprompt -srckeystore client.p12 -srcstorepass $PASSWORD -destkeystore client-java.p12 \
  -deststoretype PKCS12 -deststorepass $PASSWORD 2>/dev/null
keytool -importkeystore -noprompt -srckeystore client.p12 -srcstorepass $PASSWORD -destkeystore client.jks \
  -deststoretype JKS -deststorepass $PASSWORD -destkeypass $PASSWORD 2>/dev/null
for kind in PKCS12 JKS; do
  suffix=p12; [ $kind = JKS ] && suffix=jks
  keytool -importcert -noprompt -alias test -file authority.pem -keystore trust.$suffix -storetype $kind -storepass $PASSWORD 2>/dev/null
done
openssl pkcs12 -export -nokeys -in authority.pem -passout env:PASSWORD -out trust-openssl.p12
rm intermediate.pem

# The key that signs assertions, in both forms of PEM, and its public half as the instance knows it.
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out signing.key 2>/dev/null
openssl rsa -in signing.key -traditional -out signing-pkcs1.key 2>/dev/null
openssl pkey -in signing.key -pubout -out signing-public.pem
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out signing-small.key 2>/dev/null
openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out signing-other.key 2>/dev/null
printf header.claims | openssl dgst -sha256 -sign signing.key | base64 -w0 >signed.txt
