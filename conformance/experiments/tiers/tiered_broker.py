"""Broker whose remote tier is a directory: Kafka's ``LocalTieredStorage``, from the test jar that Kafka publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.kafka.broker import LocalBroker
from conformance.kafka.tiered_storage import moved_classes, storage_jar
from kidx.remote import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RELEASES: Final = ("3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
"""The last release of each series from 3.9 on."""

_INTERVAL_MS: Final = 500
_STORAGE: Final = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


def tiered_broker(release: str, directory: Path, config: Mapping[str, object] | None = None) -> LocalBroker:
    """Return a broker with a remote tier in ``directory/remote``, not started.

    Args:
        release: One of :data:`RELEASES`.
        directory: The directory of the broker and of both tiers.
        config: More properties of the broker.

    Raises:
        FetchError: The test jar cannot be fetched.
    """
    tiers: Mapping[str, object] = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": _STORAGE,
        "remote.log.storage.manager.class.path": storage_jar(release),
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": directory / "remote",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "remote.log.metadata.manager.impl.prefix": "rlmm.config.",
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
        "remote.log.manager.task.interval.ms": _INTERVAL_MS,
        "log.retention.check.interval.ms": _INTERVAL_MS,
        "log.initial.task.delay.ms": 100,
    }
    return LocalBroker(release, directory, {**tiers, **(config or {})}, more_jars=moved_classes(release))


def cache_of(directory: Path) -> Path:
    """Return the directory of the cache of remote index files."""
    return directory / "data" / DIRECTORY


def remote_files(directory: Path, suffix: str) -> list[Path]:
    """Return the files of the remote tier with a suffix, in the order of their names."""
    return sorted(directory.glob(f"remote/*/*/*{suffix}"))
