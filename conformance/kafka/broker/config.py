"""Broker configuration by release: ``server.properties``, ZooKeeper's configuration, logging, JVM options.

A broker is small and local: it uses the loopback address only, has one replica of each partition, and does not wait
unnecessarily. No setting here changes what the broker writes to a log or an index; callers do that with ``config``.
"""

from __future__ import annotations

import base64
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.kafka.broker.ports import HOST
from kidx.dialect import dialect_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["kraft", "zookeeper"]

# Time after which ZooKeeper considers a killed broker dead; the broker's restart waits for it. This is Kafka's default
# until 2.4. With a shorter time, healthy brokers would lose their sessions on a loaded machine.
ZOOKEEPER_SESSION_MS = 6000
# The same time for a KRaft controller, counted from the controller's start; Kafka's default is 9 s.
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
    # The tests' records are from 2023 and must not be deleted.
    "log.retention.ms": -1,
    # The default, 128 MiB, would be allocated immediately; it is a third of the heap below.
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
    # A broker runs for seconds on few cores, so it uses only the first compiler, and a collector without threads.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.jmx.log4j.disable=true",  # ZooKeeper would log many lines because reload4j has no JMX
)


@dataclass(frozen=True, slots=True)
class Node:
    """Broker to start: its directory, its ports, and its peers.

    Attributes:
        release: release of Kafka.
        mode: ``"kraft"`` or ``"zookeeper"``.
        directory: directory of all files.
        port: port for clients.
        voters: KRaft controllers as ``{node id: port}``; a node among them is broker and controller in one process.
        zookeeper: port of ZooKeeper; None with KRaft.
        listen: address on which the broker listens for clients. Clients always connect to the loopback address.
        cluster_id: cluster id for KRaft; if empty, a random id is chosen.
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
        """Log directory, with one directory per partition; KRaft's metadata log is elsewhere."""
        return self.directory / "data"

    @property
    def metadata(self) -> Path:
        """Directory of KRaft's own log."""
        return self.directory / "metadata"


def new_cluster_id() -> str:
    """Return an id for a new cluster in Kafka's format: sixteen bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode("ascii")


def default_mode(release: str) -> Mode:
    """Return the default mode of a release: ZooKeeper before 3.3, KRaft from then on."""
    return "kraft" if dialect_of(release).runs_with_kraft else "zookeeper"


def modes_of(release: str) -> tuple[Mode, ...]:
    """Return all modes in which a release can run here. KRaft before 3.3 was a preview and is excluded."""
    dialect = dialect_of(release)
    kraft: tuple[Mode, ...] = ("kraft",) if dialect.runs_with_kraft else ()
    zookeeper: tuple[Mode, ...] = ("zookeeper",) if dialect.runs_with_zookeeper else ()
    return kraft + zookeeper


def server_properties(node: Node, config: Mapping[str, object]) -> str:
    """Return the text of ``server.properties``; ``config`` overrides everything."""
    properties: dict[str, object] = {**COMMON, "log.dirs": node.data}
    if dialect_of(node.release).has_share_groups:
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
            # Both settings make the start seconds faster; they matter only for durability and for many clients.
            "forceSync": "no",
            "preAllocSize": 1024,
        }
    )


def properties_text(properties: Mapping[str, object]) -> str:
    """Return a Java properties file, with backslashes escaped."""
    escaped = ((key, str(value).replace("\\", "\\\\").replace("\n", "\\n")) for key, value in properties.items())
    return "".join(f"{key}={value}\n" for key, value in escaped)


_PATTERN = "[%d{ISO8601}] %-5p %m (%c)%n"


def logging_configuration(backend: str, directory: Path) -> tuple[Path, str, str]:
    """Return path and text of a logging backend's configuration file, and the JVM option that names the file.

    Messages go to standard output, and so to the same file as the output of the JVM itself.
    """
    if backend == "log4j2":
        file = directory / "log4j2.properties"
        text = {
            "status": "error",
            # With this hook, logging would end at SIGTERM, before the broker logs its shutdown.
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
