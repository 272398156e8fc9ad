"""Jars of Kafka's ``LocalTieredStorage``, a remote tier in a directory, from the test jars that Kafka publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.kafka.jar_fetch import class_path, tool_jar

if TYPE_CHECKING:
    from pathlib import Path

_STORAGE_OF: Final = {
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.2",
    "4.0": "4.0.2",
    "4.1": "4.1.2",
    "4.2": "4.2.1",
    "4.3": "4.3.1",
    "4.4": "4.3.1",  # no test jar of 4.4.0 is published
}
"""The release whose ``LocalTieredStorage`` the releases of each series use."""


def storage_jar(release: str) -> Path:
    """Return the jar with the ``LocalTieredStorage`` of a release.

    Raises:
        FetchError: The jar cannot be fetched.
        KeyError: No test jar is locked for the series of the release.
    """
    return tool_jar(f"tiers-{_storage_release(release)}")


def moved_classes(release: str) -> list[Path]:
    """Return the jars with classes that the storage needs and that the release no longer has, for the class path's end.

    Raises:
        FetchError: A jar cannot be fetched.
        KeyError: As :func:`storage_jar`.
    """
    storage = _storage_release(release)
    if storage.startswith(_series(release)):
        return []
    return [jar for jar in class_path(storage, "log") if jar.name.startswith("kafka-clients-")]


def _storage_release(release: str) -> str:
    return _STORAGE_OF[_series(release)]


def _series(release: str) -> str:
    return release.rpartition(".")[0]
