#!/usr/bin/env bash
# Starts a broker, and in the same container what it needs: a controller of its own (KRaft), or a ZooKeeper.
#
#   KAFKA_<PROPERTY>   any property of the broker, in capitals and with _ for . : KAFKA_LOG_SEGMENT_BYTES=1048576
#   KIDX_PROPERTIES    the file with its other properties; ZooKeeper's lie beside it. Default: those of the image
#   KIDX_CLUSTER_ID    KRaft: what its storage is formatted with the first time. Default: drawn
#   KIDX_LOG           everything that is said goes to the end of this file. Default: standard output
#   KIDX_LEASE         a file locked by the harness; when the lock is gone, the container ends at once
set -euo pipefail

[ -z "${KIDX_LOG:-}" ] || exec >>"$KIDX_LOG" 2>&1

given=${KIDX_PROPERTIES:-/opt/kafka/server.properties}
properties=/tmp/server.properties # healthy.sh reads it too
broker=

# As process 1 this shell gets only the signals that it asks for, and "wait" lets it act on them at once.
trap '[ -z "$broker" ] || kill -TERM "$broker"' TERM INT
trap 'kill -KILL $(jobs -p); exit 137' USR1

property() { sed -n "s/^$1=//p" "$properties" | tail -n 1; }

start() { java @/opt/kafka/java.args "$@" & }

# Waits for a process to its end, whatever signals arrive meanwhile; returns its status.
await() {
    local status
    while :; do
        status=0
        wait "$1" || status=$?
        kill -0 "$1" 2>/dev/null || return "$status"
    done
}

compose_properties() {
    local name value
    cp "$given" "$properties"
    while IFS='=' read -r -d '' name value; do
        case $name in KAFKA_*)
            name=${name#KAFKA_}
            name=${name,,}
            printf '%s=%s\n' "${name//_/.}" "$value" >>"$properties"
            ;;
        esac
    done < <(env -0)
}

format_storage() {
    local id=${KIDX_CLUSTER_ID:-}
    [ ! -e "$(property log.dirs)/meta.properties" ] || return 0
    [ -n "$id" ] || id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c 1-22)
    start kafka.tools.StorageTool format "--cluster-id=$id" -c "$properties"
    await $!
}

# Asks the ZooKeeper in this container one of its four-letter commands.
ask_zookeeper() { (exec 3<>"/dev/tcp/127.0.0.1/$1" && printf '%s' "$2" >&3 && timeout 2 cat <&3) 2>/dev/null; }

start_zookeeper() {
    local port=$1 node zookeeper
    node=/brokers/ids/$(property broker.id)
    start org.apache.zookeeper.server.ZooKeeperServerMain "${given%/*}/zookeeper.properties"
    zookeeper=$!
    until [[ $(ask_zookeeper "$port" conf) == *dataDir=* ]]; do
        kill -0 "$zookeeper" # without it there is nothing to wait for
        sleep 0.1
    done
    # A broker that was killed is forgotten when its session is over, and refuses to start before.
    while [[ $(ask_zookeeper "$port" dump)$'\n' == *"$node"$'\n'* ]]; do sleep 0.1; done
}

compose_properties
if [ -n "${KIDX_LEASE:-}" ]; then
    (flock "$KIDX_LEASE" true && kill -USR1 $$) &
fi
connect=$(property zookeeper.connect)
case $connect in
"") format_storage ;;
127.0.0.1:*) start_zookeeper "${connect#*:}" ;;
esac
start kafka.Kafka "$properties"
broker=$!
await "$broker"
