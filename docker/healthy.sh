#!/usr/bin/env bash
# Healthy is a broker that answers a request: ApiVersions, version 0, correlation id 1, no client id.
set -euo pipefail
port=$(sed -n 's,^listeners=.*PLAINTEXT://[^:]*:\([0-9]*\).*,\1,p' /tmp/server.properties | tail -n 1)
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf '\0\0\0\012\0\022\0\0\0\0\0\1\377\377' >&3
# The size of the reply is what it is; then the correlation id, and an error code of 0.
[ "$(timeout 3 head -c 10 <&3 | od -An -v -t x1 -j 4 | tr -d ' \n')" = 000000010000 ]
