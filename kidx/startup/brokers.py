"""Grouping of log directories by broker, according to their files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kidx.discovery import CLEAN_SHUTDOWN
from kidx.files import read_text
from kidx.startup.checkpoints import UnreadableError, properties_of, topic_id_of

_EPOCH: Final = "brokerEpoch"


def brokers_of(directories: Sequence[Path]) -> list[list[Path]]:
    """Return the log directories, grouped by broker.

    A broker has one cluster id and one node id. Directories with different ids belong to one broker nevertheless if
    they have the same broker epoch of one cluster (from 3.7), or partitions of the same topic: then one
    ``meta.properties`` comes from another broker. A directory without readable properties belongs to the other
    directories' broker if they have only one.
    """
    known: dict[tuple[str, str], list[Path]] = {}
    rest: list[Path] = []
    for directory in directories:
        with contextlib.suppress(UnreadableError):
            properties = properties_of(directory) or {}
            cluster, node = properties.get("cluster.id"), properties.get("node.id", properties.get("broker.id"))
            if cluster and node:
                known.setdefault((cluster, node), []).append(directory)
                continue
        rest.append(directory)
    groups = _merged(known)
    if len(groups) == 1:
        return [sorted([*groups[0], *rest])]
    return [*groups, *([directory] for directory in rest)]


def _merged(known: dict[tuple[str, str], list[Path]]) -> list[list[Path]]:
    groups: list[tuple[str, list[Path]]] = []
    for (cluster, _), directories in known.items():
        for other, members in groups:
            epochs = _epochs(members) & _epochs(directories) if cluster == other else set()
            if epochs or (cluster != other and _topics(members) & _topics(directories)):
                members.extend(directories)
                break
        else:
            groups.append((cluster, list(directories)))
    return [members for _, members in groups]


def _epochs(directories: Iterable[Path]) -> set[str]:
    """Return the contents of clean shutdown files with a broker epoch, which no other broker of the cluster has."""
    found = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            text = read_text(directory / CLEAN_SHUTDOWN, limit=1 << 10)
            if _EPOCH in text:
                found.add(text.strip())
    return found


def _topics(directories: Iterable[Path]) -> set[str]:
    """Return the ids of the topics of some partitions."""
    found = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            for path in directory.iterdir():
                with contextlib.suppress(UnreadableError):
                    found.add(topic_id_of(path))
    return {each for each in found if each is not None}
