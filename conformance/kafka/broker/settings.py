"""What a broker is told, by release: ``server.properties``, ZooKeeper's configuration, logging, JVM options.

A broker here is small and local: loopback only, one replica of everything, no waiting where nothing is waited
for. Nothing is set that changes what is written to a log or an index; callers do that with ``config``.
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.kafka.broker.ports import HOST
from conformance.kafka.releases import version_key

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["kraft", "zookeeper"]

# KRaft was declared ready for production in 3.3; ZooKeeper left with 4.0.
FIRST_KRAFT = (3, 3)
LAST_ZOOKEEPER = (3, 9)

# How long ZooKeeper takes a killed broker for alive, which is how long its restart waits; Kafka's own default
# until 2.4. Shorter, and a loaded machine would lose sessions of healthy brokers.
ZOOKEEPER_SESSION_MS = 6000
# The same for a KRaft controller, which counts from its own start; 9 s by default.
KRAFT_SESSION_MS = 4000
KRAFT_HEARTBEAT_MS = 500

COMMON: dict[str, object] = {
    "num.partitions": 1,
    "default.replication.factor": 1,
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    # Records of the tests are from 2023.
    "log.retention.ms": -1,
    # 128 MiB by default, allocated at once: more than half of the heap given here.
    "log.cleaner.dedupe.buffer.size": 4 * 1024 * 1024,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "background.threads": 2,
    "num.replica.fetchers": 1,
    "num.recovery.threads.per.data.dir": 1,
}

SHARE_GROUPS: dict[str, object] = {  # since 4.0
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}

JVM_OPTIONS = (
    "-Xms64m",
    "-Xmx384m",
    # A broker that lives for seconds on two cores: the first compiler only, and a collector without threads.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.jmx.log4j.disable=true",  # reload4j has no JMX, and ZooKeeper complains at length
)


@dataclass(frozen=True, slots=True)
class Node:
    """One broker to start: its directory, its ports, and its peers.

    ``voters`` are the KRaft controllers as ``{node id: port}``; a node among them is broker and controller in
    one. ``zookeeper`` is ZooKeeper's port in that mode. ``listen`` is the address it listens on for clients, which find
    it on the loopback address. ``cluster_id`` is KRaft's, drawn when it is empty.
    """

    release: str
    mode: Mode
    directory: Path
    port: int
    node_id: int = 1
    voters: Mapping[int, int] = field(default_factory=dict)
    zookeeper: int | None = None
    listen: str = HOST
    cluster_id: str = ""

    @property
    def data(self) -> Path:
        """The log directory: one directory per partition, and nothing of KRaft's own."""
        return self.directory / "data"

    @property
    def metadata(self) -> Path:
        """KRaft's own log."""
        return self.directory / "metadata"


def new_cluster_id() -> str:
    """Return an id for a new cluster, as Kafka writes it: sixteen bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii")


def default_mode(release: str) -> Mode:
    """Return how a release runs unless told otherwise: with ZooKeeper before 3.3, with KRaft from then on."""
    return "kraft" if version_key(release) >= FIRST_KRAFT else "zookeeper"


def modes_of(release: str) -> tuple[Mode, ...]:
    """Return all the ways a release can run here. KRaft before 3.3 was a preview and is left out."""
    version = version_key(release)
    kraft: tuple[Mode, ...] = ("kraft",) if version >= FIRST_KRAFT else ()
    zookeeper: tuple[Mode, ...] = ("zookeeper",) if version[:2] <= LAST_ZOOKEEPER else ()
    return kraft + zookeeper


def server_properties(node: Node, config: Mapping[str, object]) -> str:
    """Return the text of ``server.properties``; ``config`` wins over everything."""
    properties: dict[str, object] = {**COMMON, "log.dirs": node.data}
    if version_key(node.release) >= (4,):
        properties |= SHARE_GROUPS
    properties |= _kraft(node) if node.mode == "kraft" else _zookeeper(node)
    return properties_text(properties | dict(config))


def _kraft(node: Node) -> dict[str, object]:
    listeners = [f"PLAINTEXT://{node.listen}:{node.port}"]
    if node.node_id in node.voters:
        listeners.append(f"CONTROLLER://{HOST}:{node.voters[node.node_id]}")
    return {
        "process.roles": "broker,controller" if node.node_id in node.voters else "broker",
        "node.id": node.node_id,
        "controller.quorum.voters": ",".join(f"{voter}@{HOST}:{port}" for voter, port in node.voters.items()),
        "listeners": ",".join(listeners),
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "metadata.log.dir": node.metadata,
        "broker.session.timeout.ms": KRAFT_SESSION_MS,
        "broker.heartbeat.interval.ms": KRAFT_HEARTBEAT_MS,
    }


def _zookeeper(node: Node) -> dict[str, object]:
    return {
        "broker.id": node.node_id,
        "listeners": f"PLAINTEXT://{node.listen}:{node.port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{node.port}",
        "zookeeper.connect": f"{HOST}:{node.zookeeper}",
        "zookeeper.connection.timeout.ms": 20_000,
        "zookeeper.session.timeout.ms": ZOOKEEPER_SESSION_MS,
    }


def zookeeper_properties(directory: Path, port: int) -> str:
    """Return the text of a stand-alone ZooKeeper's configuration."""
    return properties_text(
        {
            "dataDir": directory,
            "clientPort": port,
            "clientPortAddress": HOST,
            "tickTime": 1000,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "conf,dump",
            # Both are for disks and masses of clients, and cost seconds at the start.
            "forceSync": "no",
            "preAllocSize": 1024,
        }
    )


def properties_text(properties: Mapping[str, object]) -> str:
    """Return a Java properties file; backslashes are its escape character."""
    escaped = ((key, str(value).replace("\\", "\\\\").replace("\n", "\\n")) for key, value in properties.items())
    return "".join(f"{key}={value}\n" for key, value in escaped)


_PATTERN = "[%d{ISO8601}] %-5p %m (%c)%n"


def logging_configuration(backend: str, directory: Path) -> tuple[Path, str, str]:
    """Return the file to write for a logging backend, its text, and the JVM option that names it.

    Everything goes to standard output, and so to the same file as what the JVM itself has to say.
    """
    if backend == "log4j2":
        file = directory / "log4j2.properties"
        text = {
            "status": "error",
            # Else logging ends with SIGTERM, before the broker says how it shuts down.
            "shutdownHook": "disable",
            "appender.out.type": "Console",
            "appender.out.name": "out",
            "appender.out.layout.type": "PatternLayout",
            "appender.out.layout.pattern": _PATTERN,
            "rootLogger.level": "info",
            "rootLogger.appenderRef.out.ref": "out",
        }
        return file, properties_text(text), f"-Dlog4j2.configurationFile={file.as_uri()}"
    file = directory / "log4j.properties"
    text = {
        "log4j.rootLogger": "INFO, out",
        "log4j.appender.out": "org.apache.log4j.ConsoleAppender",
        "log4j.appender.out.layout": "org.apache.log4j.PatternLayout",
        "log4j.appender.out.layout.ConversionPattern": _PATTERN,
    }
    return file, properties_text(text), f"-Dlog4j.configuration={file.as_uri()}"
